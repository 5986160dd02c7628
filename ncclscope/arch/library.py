"""Reads the GPU code of one file by memory map: an ELF file, or a static archive of them."""

from __future__ import annotations

import mmap
import re
from collections import Counter
from typing import TYPE_CHECKING

from ncclscope.arch.elf import BadElfError, Section, sections
from ncclscope.arch.fatbin import BadFatbinError, containers
from ncclscope.arch.model import ArchError, CodeObject, LibraryCode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Linked code stands in .nv_fatbin; what `nvcc -dc` leaves for the device linker stands in __nv_relfatbin.
_LINKED, _RELOCATABLE = ".nv_fatbin", "__nv_relfatbin"
# libtorch_cuda has a few thousand. The limit bounds memory on a hostile file.
_MAX_CODE_OBJECTS = 50_000
_ARCHIVE = b"!<arch>\n"
_ARCHIVE_HEADER = 60
# The banner as it is compiled in: "NCCL version 2.26.2+cuda12.2"; release candidates have a suffix.
_BANNER = re.compile(rb"NCCL version (\d{1,3}\.\d{1,3}\.\d{1,3}[\w.-]{0,16})\+cuda(\d{1,3}\.\d{1,3})")
# Every library of PyTorch needs libc10, and NCCL never does.
_TORCH = re.compile(rb"libc10")
# A piece of a search, after which its pages are let go; and the longest match, which may cross into the next.
_PIECE, _OVERLAP = 1 << 24, 256


def read_library(path: Path) -> LibraryCode:
    """Reads the fat binaries of a 64-bit ELF file or static archive, by memory map.

    Raises ArchError when the file cannot be opened, is damaged, or holds no GPU code.
    """
    try:
        with path.open("rb") as file:
            # Mapping nothing is an error of its own kind.
            if not file.seek(0, 2):
                raise ArchError(path, "the file is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                if hasattr(data, "madvise"):
                    # Headers are far apart: reading ahead would only fill memory.
                    data.madvise(mmap.MADV_RANDOM)
                return _read(path, data)
    except (BadElfError, BadFatbinError) as error:
        raise ArchError(path, str(error)) from None
    except (OSError, ValueError) as error:
        # ValueError: a name with a zero byte, a device that cannot be mapped.
        raise ArchError(path, getattr(error, "strerror", None) or str(error)) from None


def nccl_banner(path: Path) -> tuple[str, str] | None:
    """NCCL version and the CUDA it was built with, as compiled into `path`; None if that cannot be found."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _banner(data, sections(data, 0, len(data)))
    except (OSError, ValueError):
        return None


def _read(path: Path, data: mmap.mmap) -> LibraryCode:
    objects: list[CodeObject] = []
    banner: tuple[str, str] | None = None
    torch = False
    for start, end in _members(data):
        found = sections(data, start, end)
        for section in found:
            if section.name in (_LINKED, _RELOCATABLE):
                objects.extend(_code_objects(data, section))
                if len(objects) > _MAX_CODE_OBJECTS:
                    raise BadFatbinError(
                        section.offset, f"more than {_MAX_CODE_OBJECTS} fat binaries in one file"
                    )
        banner = banner or _banner(data, found)
        torch = torch or any(s.name == ".dynstr" and _search(_TORCH, data, s) for s in found)
    if not objects:
        raise ArchError(
            path, f"holds no GPU code (no section {_LINKED} or {_RELOCATABLE} with a fat binary in it)"
        )
    sass = Counter(arch for code in objects for arch in code.sass)
    ptx = Counter(arch for code in objects for arch in code.ptx)
    version, cuda = banner or (None, None)
    return LibraryCode(
        path=path,
        nccl_version=version,
        cuda_version=cuda,
        is_libnccl=banner is not None and not torch,
        code_objects=tuple(objects),
        sass=tuple(sorted(sass)),
        ptx=tuple(sorted(ptx)),
        sass_counts=dict(sorted(sass.items())),
        ptx_counts=dict(sorted(ptx.items())),
    )


def _code_objects(data: mmap.mmap, section: Section) -> Iterator[CodeObject]:
    try:
        for count, found in enumerate(containers(data, section.offset, section.end)):
            if count > _MAX_CODE_OBJECTS:
                return
            if found.sass or found.ptx:
                yield CodeObject(
                    section.name, found.offset, section.name == _RELOCATABLE, found.sass, found.ptx
                )
    except BadFatbinError as error:
        raise BadFatbinError(error.offset, f"section {section.name}, byte {error.offset}: {error}") from None


def _members(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Byte ranges of the ELF files in the file: itself, or the members of a static archive."""
    if data[: len(_ARCHIVE)] != _ARCHIVE:
        yield 0, len(data)
        return
    position = len(_ARCHIVE)
    while position < len(data):
        header = data[position : position + _ARCHIVE_HEADER]
        size = header[48:58].strip()
        if len(header) < _ARCHIVE_HEADER or header[58:] != b"`\n" or not size.isdigit():
            raise BadElfError(f"a damaged static archive: no member header at byte {position}")
        start = position + _ARCHIVE_HEADER
        end = start + int(size)
        if end > len(data):
            raise BadElfError(
                f"a static archive that is cut short: a member ends at byte {end} of {len(data)}"
            )
        # Symbol and name tables are no ELF files.
        if data[start : start + 4] == b"\x7fELF":
            yield start, end
        position = end + end % 2


def _banner(data: mmap.mmap, found: list[Section]) -> tuple[str, str] | None:
    for section in found:
        # String constants only: the GPU code and the machine code of the host are most of the file.
        if section.name.startswith(".rodata"):
            match = _search(_BANNER, data, section)
            if match:
                return match[1].decode(), match[2].decode()
    return None


def _search(pattern: re.Pattern[bytes], data: mmap.mmap, section: Section) -> re.Match[bytes] | None:
    """The first match in a section. Its pages do not stay in memory, whatever size the section claims."""
    for start in range(section.offset, section.end, _PIECE):
        match = pattern.search(data, start, min(start + _PIECE + _OVERLAP, section.end))
        if match:
            return match
        if hasattr(data, "madvise"):
            page = start - start % mmap.PAGESIZE
            data.madvise(mmap.MADV_DONTNEED, page, min(_PIECE, len(data) - page))
    return None
