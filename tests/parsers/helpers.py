"""Runs text through one parser module as the reader does: literals first, then expressions, then blocks.

Tests beside this file import it as `from helpers import events_of`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from ncclscope.model import Envelope, Event, Line, SourceRef
from ncclscope.parsers.pattern import MAX_BLOCK_LINES, Block, Collector, Pattern, bad_literal, match

if TYPE_CHECKING:
    from collections.abc import Iterable


class ParserModule(Protocol):
    """What every parser module exports."""

    PATTERNS: tuple[Pattern, ...]
    BLOCKS: tuple[Block, ...]


def line_of(text: str, number: int = 1, **env: Any) -> Line:
    """A line whose wrappers, already taken off, said `env`."""
    return Line(text, Envelope(**env), SourceRef("test.log", number))


def written(line: Line) -> str:
    """The line as the gate sees it: NCCL's own prefix put back when the envelope says that it was there."""
    env = line.env
    return f"NCCL {env.level} {line.text}" if env.logger == "nccl" and env.level else line.text


def events_of_lines(module: ParserModule, lines: Iterable[Line]) -> list[Event]:
    """Events of all patterns whose literal stands in a line, then of the blocks that the lines open and feed.

    A block's events come where it closes; lines fed to a collector go through the patterns too.
    """
    events: list[Event] = []
    collector: Collector | None = None
    fed = 0
    for line in lines:
        raw = written(line)
        if collector is not None:
            if fed < MAX_BLOCK_LINES and collector.feed(line):
                fed += 1
            else:
                events += collector.close()
                collector = None
        if collector is None:
            collector, fed = _opened(module, line, raw), 0
        for pattern in module.PATTERNS:
            if pattern.literal in raw:
                event = match(pattern, line)
                if event is not None:
                    events.append(event)
    if collector is not None:
        events += collector.close()
    return events


def _opened(module: ParserModule, line: Line, raw: str) -> Collector | None:
    for block in module.BLOCKS:
        if block.literal in raw:
            m = re.search(block.regex, line.text)
            collector = block.open(m, line) if m else None
            if collector is not None:
                return collector
    return None


def events_of(module: ParserModule, text: str, **env: Any) -> list[Event]:
    """Events of `text` (one body a line, all of one voice), with `env` as what the prefixes said."""
    return events_of_lines(module, [line_of(body, n, **env) for n, body in enumerate(text.split("\n"), 1)])


def kinds_of(module: ParserModule, text: str, **env: Any) -> list[str]:
    """The kinds alone, in the order of `events_of`."""
    return [event.kind for event in events_of(module, text, **env)]


def the_event(module: ParserModule, kind: str, text: str, **env: Any) -> Event:
    """The one event of `kind` in `text`; fails when there is none or more than one."""
    events = events_of(module, text, **env)
    found = [event for event in events if event.kind == kind]
    assert len(found) == 1, f"{len(found)} events of {kind} in {text!r}, all: {[e.kind for e in events]}"
    return found[0]


def pattern_problems(module: ParserModule) -> list[str]:
    """What breaks the promises of `Pattern` and `Block`: unusable literals, names and expressions."""
    problems: list[str] = []
    for item in (*module.PATTERNS, *module.BLOCKS):
        name = item.kind if isinstance(item, Pattern) else "/".join(item.kinds)
        reason = bad_literal(item.literal)
        if reason:
            problems.append(f"{name} {item.literal!r}: {reason}")
        try:
            re.compile(item.regex)
        except re.error as error:
            problems.append(f"{name}: {error}")
        kinds = [item.kind] if isinstance(item, Pattern) else list(item.kinds)
        problems += [f"bad kind {k!r}" for k in kinds if not re.fullmatch(r"[a-z0-9]+\.[a-z0-9_]+", k)]
        if isinstance(item, Pattern):
            if item.nature not in ("cause", "symptom", "consequence", "noise", "info"):
                problems.append(f"{name}: nature {item.nature!r}")
            if (item.nature == "cause") != (item.cause is not None):
                problems.append(f"{name}: nature {item.nature!r} with cause {item.cause!r}")
    return problems


def unmatched_patterns(module: ParserModule, rows: Iterable[Line]) -> list[str]:
    """Patterns that no row matches: a pattern without a test row is a pattern nobody has seen work."""
    missing = dict(enumerate(module.PATTERNS))
    for line in rows:
        raw = written(line)
        for index, pattern in list(missing.items()):
            if pattern.literal in raw and match(pattern, line) is not None:
                del missing[index]
    return [f"{pattern.kind}: {pattern.regex}" for pattern in missing.values()]
