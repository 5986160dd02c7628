"""The NCCL library that this Python's torch would load, read once for all checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncclscope.arch import ArchError, find_nccl, read_library

if TYPE_CHECKING:
    from pathlib import Path

    from ncclscope.arch import LibraryCode, LocatedLibrary


@dataclass(frozen=True, slots=True)
class Library:
    """Where NCCL is and what code it holds; `code` is None with the `reason` why it is not known."""

    located: LocatedLibrary | None
    code: LibraryCode | None
    reason: str = ""

    @property
    def nccl_version(self) -> tuple[int, ...] | None:
        """NCCL's version as numbers, (2, 26, 2)."""
        return None if self.code is None else version_numbers(self.code.nccl_version)


def load(root: Path | None) -> Library:
    """Finds and reads the library; `root` is the directory of an unpacked image, None for this machine."""
    found = find_nccl(root)
    if not found:
        return Library(None, None, "no libnccl.so was found and this Python has no torch with NCCL inside")
    first = next((library for library in found if library.loaded), found[0])
    try:
        return Library(first, read_library(first.path))
    except ArchError as error:
        return Library(first, None, str(error))


def version_numbers(text: str | None) -> tuple[int, ...] | None:
    """The leading numbers of a version: '2.7.1+cu128' gives (2, 7, 1); None without any."""
    if not text:
        return None
    numbers: list[int] = []
    for part in text.split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers) or None
