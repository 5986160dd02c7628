"""What patterns saw in a line of NCCL is remembered for lines that say the same; the answers stay as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support import CASES, one_gate
from test_catalogue import ROWS

from ncclscope.index import PatternIndex
from ncclscope.model import Envelope, Line, SourceRef
from ncclscope.parsers import BLOCKS, PATTERNS
from ncclscope.parsers.pattern import match
from ncclscope.reader import read_input
from ncclscope.sources import discover
from ncclscope.store import EventStore

if TYPE_CHECKING:
    from ncclscope.model import Event

ENVELOPES = (
    Envelope(),
    Envelope(logger="nccl", level="INFO", pid=7, tid=8, rank=3, host="node-1", device=1),
    Envelope(logger="nccl", level="WARN", code="init.cc:1"),
    Envelope(logger="c10", level="E", rank=2, repeated=3, actor="(W pid=4)"),
)
# RecurringLines keeps lines apart by these alone.
KEPT_APART = {"logger", "level", "code", "rank"}


class Watched:
    """An envelope that notes what it is asked for."""

    def __init__(self, env: Envelope, asked: set[str]) -> None:
        self._env, self._asked = env, asked

    def __getattr__(self, name: str) -> Any:
        self._asked.add(name)
        return getattr(self._env, name)


def test_patterns_that_are_not_alone_look_at_nothing_else_of_a_line() -> None:
    texts = sorted({text for row in ROWS for text in row.text.split("\n")})
    for pattern in PATTERNS:
        if pattern.alone or pattern.refine is None:
            continue
        asked: set[str] = set()
        for text in texts:
            if pattern.literal not in text:
                continue
            for env in ENVELOPES:
                watched: Any = Watched(env, asked)
                ref: Any = None  # its path tells nothing either
                match(pattern, Line(text, watched, ref))
        assert asked <= KEPT_APART, pattern.kind


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


def test_the_same_words_at_another_level_are_another_line() -> None:
    index = PatternIndex(PATTERNS, BLOCKS, one_gate)
    ref = SourceRef("a.log", 1)
    index.recurring.remember(Line("x", Envelope(logger="nccl", level="WARN"), ref), [])
    assert index.recurring.lookup(Line("x", Envelope(logger="nccl", level="WARN", pid=9), ref)) == ()
    assert index.recurring.lookup(Line("x", Envelope(logger="nccl", level="INFO"), ref)) is None
    assert index.recurring.lookup(Line("x", Envelope(logger="nccl", level="WARN", rank=1), ref)) is None
    assert index.recurring.lookup(Line("x", Envelope(level="WARN"), ref)) is None


def test_what_is_remembered_has_a_bound() -> None:
    index = PatternIndex(PATTERNS, BLOCKS, one_gate)
    env, ref = Envelope(logger="nccl", level="INFO"), SourceRef("a.log", 1)
    lines = [Line(f"line {n}", env, ref) for n in range(20_000)]
    for line in lines:
        index.recurring.remember(line, [])
    assert sum(index.recurring.lookup(line) is not None for line in lines) <= 4096
    long = Line("x" * 2000, env, ref)
    index.recurring.remember(long, [])
    assert index.recurring.lookup(long) is None
