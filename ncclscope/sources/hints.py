"""What file and directory names say about the stream inside."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Hints", "hints_of"]


@dataclass(frozen=True, slots=True)
class Hints:
    """What a name suggests; a hint, never a fact. None where the name says nothing or could be read two ways.

    kernel is True where the name looks like a kernel log (dmesg*, kern.log, messages, journal*, syslog).
    """

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pod: str | None = None
    attempt: int | None = None
    stream: str | None = None
    pid: int | None = None
    node_rank: int | None = None
    kernel: bool = False


def hints_of(name: str) -> Hints:
    """The hints in a path as the user gave it."""
    raise NotImplementedError
