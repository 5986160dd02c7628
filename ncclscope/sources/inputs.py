"""Finding the inputs that a command names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from ncclscope.sources.hints import Hints

__all__ = ["Input", "SourceProblem", "discover"]


@dataclass(frozen=True, slots=True)
class SourceProblem:
    """An input that could not be read, or could be read only in part; the rest goes on."""

    path: str
    reason: str


@dataclass(slots=True)
class Input:
    """One stream of bytes."""

    name: str
    hints: Hints
    size: int | None
    mtime: float | None
    group: str
    notes: list[str] = field(default_factory=list)

    def blocks(self) -> Iterator[bytes]:
        """Decompressed bytes in order, at arbitrary split points, each block at most 1 MiB."""
        raise NotImplementedError


def discover(
    paths: Sequence[str], *, stdin: BinaryIO | None = None
) -> tuple[list[Input], list[SourceProblem]]:
    """The inputs under `paths`, in canonical order, and what could not be read."""
    raise NotImplementedError
