"""All patterns by their literals: what the reader searches for, and what a hit calls for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ncclscope.gate import Gate, Wanted, make_gate
from ncclscope.model import Event, Line, Value
from ncclscope.parsers.pattern import Block, Pattern

__all__ = ["PatternIndex", "searchable"]


# Longer texts are rarely the same twice.
_LONGEST = 300
_MOST = 4096

# What the patterns saw in a line: kind and fields of each event.
Seen = tuple[tuple[str, Mapping[str, Value]], ...]


class RecurringLines:
    """What patterns saw in NCCL's lines: all ranks of all jobs print many of them word for word.

    The literals that called for the patterns are part of what is remembered. They are those of the whole physical line,
    which may hold more than the text (a rule's literal in the prefix) or less (a character written as an escape).
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[object, ...], Seen] = {}

    def lookup(self, line: Line, numbers: Sequence[int]) -> Seen | None:
        """What was seen in a line that says the same, () for nothing; None where no such line was remembered."""
        return self._seen.get(_key(line, numbers)) if line.env.logger == "nccl" else None

    def remember(self, line: Line, numbers: Sequence[int], events: Sequence[Event]) -> None:
        """Takes note of all that the patterns saw in `line`; none of them may be `alone` or want `context`."""
        if line.env.logger != "nccl" or len(line.text) > _LONGEST:
            return
        if len(self._seen) >= _MOST:
            self._seen.clear()
        self._seen[_key(line, numbers)] = tuple((event.kind, event.fields) for event in events)


def _key(line: Line, numbers: Sequence[int]) -> tuple[object, ...]:
    """All of a line that a pattern may look at unless it is `alone`, and which patterns do."""
    env = line.env
    return line.text, env.level, env.code, env.rank, *numbers


class PatternIndex:
    """All patterns and blocks, and which of them a literal calls for."""

    def __init__(
        self,
        patterns: Sequence[Pattern],
        blocks: Sequence[Block],
        make: Callable[[Sequence[Wanted]], Gate] = make_gate,
    ) -> None:
        literals = sorted({p.literal for p in patterns} | {b.literal for b in blocks})
        number = {literal: i for i, literal in enumerate(literals)}
        self.literals = literals
        self.patterns: list[list[Pattern]] = [[] for _ in literals]
        self.blocks: list[list[Block]] = [[] for _ in literals]
        for pattern in patterns:
            self.patterns[number[pattern.literal]].append(pattern)
        for block in blocks:
            self.blocks[number[block.literal]].append(block)
        self.recurring = RecurringLines()
        self.gate = make([(literal, self._also(i)) for i, literal in enumerate(literals)])

    def _also(self, number: int) -> str:
        """What else stands in every line that anything with this literal matches."""
        also = {pattern.also for pattern in self.patterns[number]}
        return "" if self.blocks[number] or len(also) != 1 else also.pop()

    def numbers_in(self, line: Line) -> list[int]:
        """The literals that stand in `line`, without the gate."""
        text = searchable(line)
        return [i for i, literal in enumerate(self.literals) if literal in text]


def searchable(line: Line) -> str:
    """The text of a line with the one word of its logger's prefix that a literal may name."""
    if line.env.logger == "nccl" and line.env.level == "WARN":
        return f"NCCL WARN {line.text}"
    return line.text
