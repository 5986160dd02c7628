"""Holds what the parsers understood, in memory that does not grow with the input.

Events that say the same thing in the same process are one group: the first and last few are kept, and a count. How a
stream ended, how many lines it had and what its wrappers were is kept per input.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import msgspec

from ncclscope.clocks import Stamp
from ncclscope.model import Envelope, Event, Line
from ncclscope.parsers.flight_recorder import Dump
from ncclscope.sources import Hints

__all__ = ["EventGroup", "EventStore", "StreamInfo"]

_KEEP_FIRST = 4
_KEEP_LAST = 4
# Distinct groups of one kind in one input; what comes after shares one group, so hostile input cannot fill memory.
_MAX_GROUPS_PER_KIND = 4096


_order_of = operator.attrgetter("order")


class EventGroup(msgspec.Struct):
    """Events of one kind, process and meaning."""

    first: list[Event] = msgspec.field(default_factory=list)
    last: list[Event] = msgspec.field(default_factory=list)
    count: int = 0

    def add(self, event: Event) -> None:
        self.count += 1
        if len(self.first) < _KEEP_FIRST:
            self.first.append(event)
        else:
            if len(self.last) == _KEEP_LAST:
                del self.last[0]
            self.last.append(event)

    def __iter__(self) -> object:
        yield from self.first
        yield from self.last


class StreamInfo(msgspec.Struct):
    """One input as it was read."""

    path: str
    hints: Hints
    group: str
    mtime: float | None = None
    bytes: int = 0
    lines: int = 0
    events: int = 0
    format: str = ""
    notes: list[str] = msgspec.field(default_factory=list)
    first_time: Stamp | None = None
    last_time: Stamp | None = None
    tail_of: Callable[[], list[Line]] = list  # unwraps the last lines when somebody wants them
    ranks: set[int] = msgspec.field(default_factory=set)
    deduplicated: bool = False  # Ray dropped other workers' lines
    excerpt: bool = False  # shows signs of having been cut by hand ("...", no beginning)

    @property
    def tail(self) -> list[Line]:
        """The last lines."""
        return self.tail_of()


class EventStore:
    """Takes events in reading order and gives them back grouped."""

    def __init__(self) -> None:
        self.streams: list[StreamInfo] = []
        # (global rank where the file's name tells, path, dump)
        self.dumps: list[tuple[int | None, str, Dump]] = []
        self._groups: dict[tuple[object, ...], EventGroup] = {}
        self._by_kind: dict[str, list[EventGroup]] = {}
        self._kinds: dict[tuple[str, str], int] = {}
        self._last: tuple[Envelope, str, tuple[object, ...]] | None = None
        self._order = 0
        self._sorted: dict[tuple[str, ...], list[Event]] = {}

    def add(self, event: Event) -> None:
        self._order += 1
        if self._sorted:
            self._sorted.clear()
        e = event
        event = Event(e.kind, e.fields, e.env, e.ref, e.text, e.lines, self._order)  # at half the price of replace
        meaning: tuple[object, ...] = tuple(e.fields.values())
        if float in map(type, meaning):  # durations differ where nothing else does
            meaning = tuple([value for value in meaning if type(value) is not float])
        key = (e.kind, self._process(e), meaning)
        group = self._groups.get(key)
        if group is None:
            per_kind = (e.kind, e.ref.path)
            count = self._kinds.get(per_kind, 0) + 1
            self._kinds[per_kind] = count
            place: tuple[object, ...] = key
            if count > _MAX_GROUPS_PER_KIND:
                place = (e.kind, e.ref.path, "overflow")
                group = self._groups.get(place)
            if group is None:
                group = self._groups[place] = EventGroup()
                self._by_kind.setdefault(e.kind, []).append(group)
        group.add(event)

    def _process(self, event: Event) -> tuple[object, ...]:
        """Who wrote the event's line."""
        env, path = event.env, event.ref.path
        last = self._last
        if last is not None and last[0] is env and last[1] is path:  # mostly several lines with one prefix follow
            return last[2]
        who = (path, env.host, env.pid, env.rank, env.local_rank, env.task, env.pod, env.actor)
        self._last = env, path, who
        return who

    def groups(self, *kinds: str) -> list[EventGroup]:
        """Groups of these kinds (all without arguments), in order of their first event."""
        if not kinds:
            return list(self._groups.values())
        if len(kinds) == 1:
            return list(self._by_kind.get(kinds[0], ()))
        found = [group for kind in dict.fromkeys(kinds) for group in self._by_kind.get(kind, ())]
        found.sort(key=lambda group: group.first[0].order)
        return found

    def events(self, *kinds: str) -> list[Event]:
        """The kept events of these kinds in reading order."""
        found = self._sorted.get(kinds)
        if found is None:
            found = [event for group in self.groups(*kinds) for event in [*group.first, *group.last]]
            found.sort(key=_order_of)
            self._sorted[kinds] = found
        return found.copy()

    @property
    def total(self) -> int:
        return sum(group.count for group in self._groups.values())
