"""The literal gate: finds every declared literal in a block of bytes at memory speed.

Most bytes of a log concern nobody. All literals of all patterns are searched for at once over whole blocks, and only
lines with a hit become Python objects. The gate is an optimisation: with it off, every report is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["AhoCorasickGate", "Gate", "GrowingGate", "HyperscanGate", "PlainGate", "make_byte_test", "make_gate"]

# Measured with 660 literals: the database takes 35 ms to build, plain search 8 MB/s.
_PLAIN_BYTES = 192 * 1024


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

        def on_match(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append((end, number))

        self._database.scan(block, match_event_handler=on_match)
        return found


class AhoCorasickGate:
    """A Rust automaton, for Linux on Arm, where hyperscan has no wheel; some hundred megabytes per second."""

    def __init__(self, literals: Sequence[str]) -> None:
        import ahocorasick_rs

        self._automaton: Any = ahocorasick_rs.BytesAhoCorasick([text.encode("ascii") for text in literals])

    def hits(self, block: bytes) -> list[tuple[int, int]]:
        found = [(end, number) for number, _, end in self._automaton.find_matches_as_indexes(block, overlapping=True)]
        found.sort()
        return found


class PlainGate:
    """The same answer from the standard library; a few megabytes per second."""

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


class GrowingGate:
    """Plain for the first bytes, the fast engine after: building its database takes longer than a short log."""

    def __init__(self, literals: Sequence[str]) -> None:
        self._literals = literals
        self._left = _PLAIN_BYTES
        self._gate: Gate = PlainGate(literals)

    def hits(self, block: bytes) -> list[tuple[int, int]]:
        if self._left >= 0:
            self._left -= len(block)
            if self._left < 0:
                self._gate = _fastest(self._literals)
        return self._gate.hits(block)


def _fastest(literals: Sequence[str]) -> Gate:
    for engine in (HyperscanGate, AhoCorasickGate):
        try:
            return engine(literals)
        except ImportError:
            continue
    return PlainGate(literals)


def make_gate(literals: Sequence[str]) -> Gate:
    """The gate that is fastest on this installation, whatever the size of the input."""
    return GrowingGate(literals)


def make_byte_test(unwanted: bytes) -> Callable[[bytes], bool]:
    """A function that tells whether a block holds any of these bytes: 11 GB/s, without hyperscan 1.5."""
    database: Any = None

    def plainly(block: bytes) -> bool:
        return len(block.translate(None, unwanted)) != len(block)

    def holds(block: bytes) -> bool:
        nonlocal database
        if len(block) < _PLAIN_BYTES:  # no reason to import the engine
            return plainly(block)
        if database is None:
            database = _class_database(unwanted)
        if database is False:
            return plainly(block)
        found: list[int] = []
        database.scan(block, match_event_handler=lambda *match: found.append(match[0]))
        return bool(found)

    return holds


def _class_database(unwanted: bytes) -> Any:
    """A database that matches once where any of these bytes stands; False without hyperscan."""
    try:
        import hyperscan
    except ImportError:
        return False
    database = hyperscan.Database()
    characters = "".join(f"\\x{byte:02x}" for byte in unwanted)
    database.compile(
        expressions=[f"[{characters}]".encode("ascii")], ids=[0], elements=1, flags=[hyperscan.HS_FLAG_SINGLEMATCH]
    )
    return database


def _hex_escape(text: str) -> bytes:
    return "".join(f"\\x{byte:02x}" for byte in text.encode("ascii")).encode("ascii")
