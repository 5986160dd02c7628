"""The literal gate: finds every declared literal in a block of bytes at memory speed.

Most bytes of a log concern nobody. All literals of all patterns are searched for at once over whole blocks, and only
lines with a hit become Python objects. The gate is an optimisation: with it off, every report is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = [
    "AhoCorasickGate", "Gate", "GrowingGate", "HyperscanGate", "PlainGate", "Test", "Wanted", "make_byte_test",
    "make_gate", "make_text_test",
]  # fmt: skip

# Measured with 660 literals: the database takes 35 ms to build, plain search 8 MB/s.
_PLAIN_BYTES = 192 * 1024


# Whether a block holds something.
Test = Callable[[bytes], bool]
# A literal, and what else must stand in its line; "" for nothing.
Wanted = tuple[str, str]


class Gate(Protocol):
    """Searches blocks for a fixed set of literals."""

    def hits(self, block: bytes) -> list[tuple[int, int]]:
        """(offset, number of the literal) of the lines that hold a literal and what it wants beside it, in order of the
        offset, which lies in the line behind what was found. A line may come more than once."""


class HyperscanGate:
    """Intel's (on Arm: Vectorscan's) multi-pattern engine; gigabytes per second with a thousand literals."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        import hyperscan

        self._database: Any = hyperscan.Database()
        self._database.compile(
            expressions=[_expression(*one) for one in wanted],
            ids=list(range(len(wanted))),
            elements=len(wanted),
            flags=[0] * len(wanted),
        )

    def hits(self, block: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []

        def on_match(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append((end, number))

        self._database.scan(block, match_event_handler=on_match)
        return found


class AhoCorasickGate:
    """A Rust automaton, for Linux on Arm, where hyperscan has no wheel; some hundred megabytes per second."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        import ahocorasick_rs

        self._automaton: Any = ahocorasick_rs.BytesAhoCorasick([text.encode("ascii") for text, _ in wanted])
        self._also = [also.encode("ascii") for _, also in wanted]

    def hits(self, block: bytes) -> list[tuple[int, int]]:
        found = [
            (end, number)
            for number, _, end in self._automaton.find_matches_as_indexes(block, overlapping=True)
            if not self._also[number] or _in_line(self._also[number], block, end)
        ]
        found.sort()
        return found


class PlainGate:
    """The same answer from the standard library; a few megabytes per second."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        self._wanted = [(text.encode("ascii"), also.encode("ascii")) for text, also in wanted]

    def hits(self, block: bytes) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for number, (literal, also) in enumerate(self._wanted):
            at = block.find(literal)
            while at >= 0:
                end = at + len(literal)
                if not also or _in_line(also, block, end):
                    found.append((end, number))
                at = block.find(literal, at + 1)
        found.sort()
        return found


def _in_line(text: bytes, block: bytes, at: int) -> bool:
    """Whether `text` stands in the line of the block that holds the offset."""
    end = block.find(b"\n", at)
    return block.find(text, block.rfind(b"\n", 0, at) + 1, end if end >= 0 else len(block)) >= 0


class GrowingGate:
    """Plain for the first bytes, the fast engine after: building its database takes longer than a short log."""

    def __init__(self, wanted: Sequence[Wanted]) -> None:
        self._wanted = wanted
        self._left = _PLAIN_BYTES
        self._gate: Gate = PlainGate(wanted)

    def hits(self, block: bytes) -> list[tuple[int, int]]:
        if self._left >= 0:
            self._left -= len(block)
            if self._left < 0:
                self._gate = _fastest(self._wanted)
        return self._gate.hits(block)


def _fastest(wanted: Sequence[Wanted]) -> Gate:
    for engine in (HyperscanGate, AhoCorasickGate):
        try:
            return engine(wanted)
        except ImportError:
            continue
    return PlainGate(wanted)


def make_gate(wanted: Sequence[Wanted]) -> Gate:
    """The gate that is fastest on this installation, whatever the size of the input."""
    return GrowingGate(wanted)


def make_byte_test(unwanted: bytes) -> Test:
    """Tells whether a block holds any of these bytes: 11 GB/s, without hyperscan 1.5."""
    characters = "".join(f"\\x{byte:02x}" for byte in unwanted)
    return _growing_test(f"[{characters}]", lambda block: len(block.translate(None, unwanted)) != len(block))


def make_text_test(texts: Sequence[bytes]) -> Test:
    """Tells whether a block holds any of these texts: 6 GB/s for a few, without hyperscan 1.5 for each."""
    expression = "|".join(_hex_escape(text.decode("ascii")) for text in texts)
    return _growing_test(expression, lambda block: any(text in block for text in texts))


def _growing_test(expression: str, plainly: Test) -> Test:
    """`plainly` for the first bytes, the engine after, where there is one."""
    database: Any = None
    left = _PLAIN_BYTES

    def holds(block: bytes) -> bool:
        nonlocal database, left
        left -= len(block)
        if left >= 0:  # no reason to import the engine
            return plainly(block)
        if database is None:
            database = _test_database(expression)
        if database is False:
            return plainly(block)
        found: list[int] = []
        database.scan(block, match_event_handler=lambda *match: found.append(match[0]))
        return bool(found)

    return holds


def _test_database(expression: str) -> Any:
    """A database that matches once where the expression does; False without hyperscan."""
    try:
        import hyperscan
    except ImportError:
        return False
    database = hyperscan.Database()
    database.compile(
        expressions=[expression.encode("ascii")], ids=[0], elements=1, flags=[hyperscan.HS_FLAG_SINGLEMATCH]
    )
    return database


def _expression(literal: str, also: str) -> bytes:
    """For the engine; both in one line in either order, which it finds as fast as the literal alone."""
    one, other = _hex_escape(literal), _hex_escape(also)
    both = f"{one}[^\\n]*{other}|{other}[^\\n]*{one}"
    return (both if also else one).encode("ascii")


def _hex_escape(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode("ascii"))
