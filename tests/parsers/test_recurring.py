"""What patterns saw in a line of NCCL is remembered for lines that say the same; the answers stay as they were."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from support import CASES, one_gate, write
from test_catalogue import ROWS

from ncclscope.envelopes import Unwrapper
from ncclscope.index import PatternIndex
from ncclscope.model import Envelope, Line, SourceRef
from ncclscope.parsers import BLOCKS, PATTERNS
from ncclscope.parsers.pattern import Pattern, match
from ncclscope.reader import read_input
from ncclscope.sources import discover
from ncclscope.store import EventStore

if TYPE_CHECKING:
    from pathlib import Path

    from ncclscope.model import Event

ENVELOPES = (
    Envelope(),
    Envelope(logger="nccl", level="INFO", pid=7, tid=8, rank=3, host="node-1", device=1),
    Envelope(logger="nccl", level="WARN", code="init.cc:1"),
    Envelope(logger="c10", level="E", rank=2, repeated=3, actor="(W pid=4)"),
)
# RecurringLines keeps lines apart by these alone.
KEPT_APART = {"logger", "level", "code", "rank"}


# Lines of patterns that stand in no table.
MORE = (
    "Setting up process group for: env:// [rank=0, world_size=4]",
    ('{"message": {"message": "KeyError: 1", "extraInfo": {"py_callstack": '
    '"Traceback (most recent call last):\\n  File \\"a.py\\", line 3, in f\\n    x()\\nKeyError: 1\\n"}}}'),
)


class Watched:
    """A part of a line that notes what it is asked for."""

    def __init__(self, part: Any, asked: set[str]) -> None:
        self._part, self._asked = part, asked

    def __getattr__(self, name: str) -> Any:
        self._asked.add(name)
        return getattr(self._part, name)


def _texts() -> list[str]:
    unwrapper = Unwrapper("a.log")
    raw = {text for row in ROWS for text in row.text.split("\n")} | set(MORE)
    return sorted(raw | {line.text for text in raw for line in unwrapper.unwrap(text.encode(), 1)})


def test_patterns_look_at_no_more_of_a_line_than_they_say() -> None:
    texts = _texts()
    for pattern in PATTERNS:
        if pattern.refine is None:
            continue
        asked: set[str] = set()
        mine = [text for text in texts if pattern.literal in text]
        for text, env in itertools.product(mine, ENVELOPES):
            watched: Any = Watched(env, asked)
            ref: Any = Watched(SourceRef("a/attempt_0/1/error.json", 1), asked)
            match(pattern, Line(text, watched, ref))
        assert pattern.alone is not (asked <= KEPT_APART), (pattern.kind, asked)


def _events(paths: tuple[str, ...], index: PatternIndex) -> list[Event]:
    store = EventStore()
    for source in discover(paths)[0]:
        read_input(source, index, store, pytest.fail)
    return store.events()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_log_gives_the_same_after_another_like_it(case: Any) -> None:
    paths = tuple(map(str, case.paths))
    index = PatternIndex(PATTERNS, BLOCKS, one_gate)
    first = _events(paths, index)
    assert _events(paths, index) == first


def test_the_same_words_at_another_level_or_called_for_by_others_are_another_line() -> None:
    """A literal can stand in the prefix alone, or only where an escape is taken off."""
    recurring = PatternIndex(PATTERNS, BLOCKS, one_gate).recurring
    ref = SourceRef("a.log", 1)
    recurring.remember(Line("x", Envelope(logger="nccl", level="WARN"), ref), (3,), [])
    assert recurring.lookup(Line("x", Envelope(logger="nccl", level="WARN", pid=9), ref), (3,)) == ()
    assert recurring.lookup(Line("x", Envelope(logger="nccl", level="WARN"), ref), ()) is None
    assert recurring.lookup(Line("x", Envelope(logger="nccl", level="WARN"), ref), (3, 4)) is None
    assert recurring.lookup(Line("x", Envelope(logger="nccl", level="INFO"), ref), (3,)) is None
    assert recurring.lookup(Line("x", Envelope(logger="nccl", level="WARN", rank=1), ref), (3,)) is None
    assert recurring.lookup(Line("x", Envelope(level="WARN"), ref), (3,)) is None


def test_a_literal_in_the_prefix_answers_for_its_own_line_alone(tmp_path: Path) -> None:
    own = Pattern("custom.line", "gpu-node-07", r"unit \d+ broke")
    lines = [f"gpu-node-0{host}:1:2 [0] NCCL INFO Flumox unit 3 broke" for host in (8, 7, 8, 7)]
    paths = [str(path) for path in write(tmp_path, {"a.log": "Traceback\n" + "\n".join(lines) + "\n"})]
    index = PatternIndex([*PATTERNS, own], BLOCKS)
    assert [(e.kind, e.ref.line) for e in _events(tuple(paths), index)] == [("custom.line", 3), ("custom.line", 5)]


def test_what_is_remembered_has_a_bound() -> None:
    recurring = PatternIndex(PATTERNS, BLOCKS, one_gate).recurring
    env, ref = Envelope(logger="nccl", level="INFO"), SourceRef("a.log", 1)
    lines = [Line(f"line {n}", env, ref) for n in range(20_000)]
    for line in lines:
        recurring.remember(line, (), [])
    assert sum(recurring.lookup(line, ()) is not None for line in lines) <= 4096
    long = Line("x" * 2000, env, ref)
    recurring.remember(long, (), [])
    assert recurring.lookup(long, ()) is None
