"""The literal gate: finds every declared literal in a block of bytes at memory speed.

Most bytes of a log concern nobody. All literals of all patterns are searched for at once over whole blocks, and only
lines with a hit become Python objects. The gate is an optimisation: with it off, every report is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["Gate", "HyperscanGate", "PlainGate", "make_gate"]


class Gate(Protocol):
    """Searches blocks for a fixed set of literals."""

    def hits(self, block: bytes) -> list[tuple[int, int]]:
        """(end offset, literal number) of every occurrence, in order of the offset."""


class HyperscanGate:
    """Intel's (on Arm: Vectorscan's) multi-pattern engine; gigabytes per second with a thousand literals."""

    def __init__(self, literals: Sequence[str]) -> None:
        import hyperscan

        self._database: Any = hyperscan.Database()
        self._database.compile(
            expressions=[_hex_escape(text) for text in literals],
            ids=list(range(len(literals))),
            elements=len(literals),
            flags=[0] * len(literals),
        )

    def hits(self, block: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        def on_match(number: int, start: int, end: int, flags: int, context: object) -> None:
            found.append((end, number))

        self._database.scan(block, match_event_handler=on_match)
        return found


class PlainGate:
    """The same answer from the standard library, where no hyperscan wheel exists; a few megabytes per second."""

    def __init__(self, literals: Sequence[str]) -> None:
        self._literals = [text.encode("ascii") for text in literals]

    def hits(self, block: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for number, literal in enumerate(self._literals):
            at = block.find(literal)
            while at >= 0:
                found.append((at + len(literal), number))
                at = block.find(literal, at + 1)
        found.sort()
        return found


def make_gate(literals: Sequence[str]) -> Gate:
    """The fastest gate that this installation has."""
    try:
        return HyperscanGate(literals)
    except ImportError:
        return PlainGate(literals)


def _hex_escape(text: str) -> bytes:
    return "".join(f"\\x{byte:02x}" for byte in text.encode("ascii")).encode("ascii")
