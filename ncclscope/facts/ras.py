"""What a report of NCCL's RAS client says of the ranks: who is behind, and whose process does not answer.

The report is a snapshot. Counts that differ are ordinary while a job works, so a difference says more where a second
query finds the same numbers, and nothing where they grew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from ncclscope.facts.base import Basis
from ncclscope.model import Event

__all__ = ["add_ras_facts"]


class _Level(msgspec.Struct):
    """The ranks of a communicator that stand at one number or in one state."""

    value: int | str
    size: int
    event: Event
    people: list[Event] = msgspec.field(default_factory=list)


class _Comm(msgspec.Struct):
    """What one report says of one communicator: counts by operation, states, ranks without data."""

    name: str
    group: str
    event: Event | None = None
    sections: set[str] = msgspec.field(default_factory=set)
    counts: dict[str, list[_Level]] = msgspec.field(default_factory=dict)
    states: list[_Level] = msgspec.field(default_factory=list)
    missing: list[Event] = msgspec.field(default_factory=list)


class _Report(msgspec.Struct):
    """One answer of RAS; processes that it calls dead, and others that it got no data from."""

    sizes: dict[str, int] = msgspec.field(default_factory=dict)
    comms: dict[str, _Comm] = msgspec.field(default_factory=dict)
    dead: list[Event] = msgspec.field(default_factory=list)
    silent: list[Event] = msgspec.field(default_factory=list)
    heads: list[Event] = msgspec.field(default_factory=list)  # the lines that say so


_KINDS = (
    *("ras.report", "ras.comm", "ras.missing", "ras.dead", "ras.process", "ras.unanswered", "ras.differ"),
    *("ras.launched", "ras.state", "ras.errors", "ras.error", "ras.rank", "ras.rank_list"),
)


def add_ras_facts(basis: Basis) -> None:
    """ras.behind and ras.gone, of the last report of each input."""
    by_path: dict[str, list[Event]] = {}
    for event in basis.events(*_KINDS):
        by_path.setdefault(event.ref.path, []).append(event)
    for events in by_path.values():
        reports = _Reader().read(events)
        _gone(basis, reports[-1])
        for comm in reports[-1].comms.values():
            _behind(basis, comm, reports)


class _Reader:
    """Puts the lines back together: a line about a rank belongs to the group that the line above it names."""

    def __init__(self) -> None:
        self._reports = [_Report()]
        self._comm: _Comm | None = None
        self._counts: list[_Level] | None = None
        self._people: list[Event] | None = None

    def read(self, events: Iterable[Event]) -> list[_Report]:
        take: dict[str, Callable[[Event], None]] = {
            "ras.report": self._table,
            "ras.comm": self._section,
            "ras.missing": self._no_data,
            "ras.dead": self._died,
            "ras.differ": self._difference,
            "ras.launched": self._level,
            "ras.state": self._level,
            "ras.rank": self._one,
            "ras.rank_list": self._one,
            "ras.process": self._one,
        }
        for event in events:
            take.get(event.kind, self._other)(event)
        return self._reports

    def _table(self, event: Event) -> None:
        groups, sizes = event.get("groups"), event.get("sizes")
        report = _Report()
        if isinstance(groups, tuple) and isinstance(sizes, tuple):
            report.sizes = {str(group): int(str(size)) for group, size in zip(groups, sizes, strict=True)}
        self._reports.append(report)
        self._comm = self._counts = self._people = None

    def _section(self, event: Event) -> None:
        name, group, what = str(event.get("comm")), str(event.get("group")), str(event.get("errors"))
        report = self._reports[-1]
        if name in report.comms and what in report.comms[name].sections:  # the next answer, its table cut off
            report = _Report()
            self._reports.append(report)
        self._comm = report.comms.setdefault(name, _Comm(name, group, event))
        self._comm.sections.add(what)
        self._counts = self._people = None

    def _no_data(self, event: Event) -> None:
        if event.get("what") == "rank" and self._comm is not None:
            self._people = self._comm.missing
        else:
            self._people = self._reports[-1].silent
            self._reports[-1].heads.append(event)

    def _died(self, event: Event) -> None:
        self._people = self._reports[-1].dead
        if event.get("pid") is None:
            self._reports[-1].heads.append(event)
        else:
            self._people.append(event)
            self._people = None

    def _of(self) -> _Comm:
        """The communicator of the lines that follow, also where an excerpt lost its heading."""
        if self._comm is None:
            self._comm = self._reports[-1].comms.setdefault("", _Comm("", ""))
        return self._comm

    def _difference(self, event: Event) -> None:
        op = event.get("op")
        self._counts = self._of().counts.setdefault(str(op), []) if op else self._of().states
        self._people = None

    def _level(self, event: Event) -> None:
        if self._counts is None:
            self._counts = self._of().states if event.kind == "ras.state" else self._of().counts.setdefault("", [])
        launched, size = event.get("launched"), event.get("size")
        value = int(str(launched)) if launched is not None else str(event.get("state"))
        level = _Level(value, size if isinstance(size, int) else 1, event)
        if event.get("rank") is not None:
            level.people.append(event)
        self._counts.append(level)
        self._people = level.people

    def _one(self, event: Event) -> None:
        if self._people is not None:
            self._people.append(event)

    def _other(self, _event: Event) -> None:
        self._people = None


def _ranks(people: Iterable[Event]) -> set[int]:
    ranks: set[int] = set()
    for event in people:
        rank, listed = event.get("rank"), event.get("ranks")
        if isinstance(rank, int):
            ranks.add(rank)
        elif isinstance(listed, tuple):
            ranks |= {int(r) for r in listed}
    return ranks


def _whole(basis: Basis, report: _Report, group: str) -> bool:
    """Whether the ranks of this communicator are the job's: no other is larger, in the report or in the log."""
    size = report.sizes.get(group)
    world = basis.identity.world
    if size is None:
        return len(report.sizes) <= 1
    return size == max(report.sizes.values()) and (world is None or size >= world)


def _hosts(people: list[Event]) -> list[str]:
    return sorted({str(host) for e in people if (host := e.get("host")) is not None})


def _pids(people: list[Event]) -> list[int]:
    return sorted({pid for e in people if isinstance(pid := e.get("pid"), int)})


def _gone(basis: Basis, report: _Report) -> None:
    """Processes that RAS cannot reach, and the ranks that it has no data of for that reason."""
    how = "dead" if report.dead else "missing"
    people = [*report.dead, *report.silent]
    comms = [comm for comm in report.comms.values() if comm.missing]
    if not people and not comms and not report.heads:
        return
    ranks: set[int] = set()
    listed: set[int] = set()
    for comm in comms:
        listed |= _ranks(comm.missing)
        people += [e for e in comm.missing if e.get("pid") is not None]
        if _whole(basis, report, comm.group):
            ranks |= _ranks(comm.missing)
    proof = {e.order: e for e in (*report.heads, *people, *(e for comm in comms for e in comm.missing))}
    basis.add(
        "ras.gone",
        {
            "how": how,
            "processes": sum(n for e in report.heads if isinstance(n := e.get("count"), int)) or len(_pids(people)),
            "missing": tuple(sorted(listed)) or None,
        },
        [proof[order] for order in sorted(proof)],
        ranks=ranks,
        hosts=_hosts(people),
        pids=_pids(people),
    )


def _numbers(levels: list[_Level]) -> dict[int | str, int]:
    return {level.value: level.size for level in levels}


def _earlier(comm: _Comm, reports: list[_Report]) -> list[_Comm]:
    return [report.comms[comm.name] for report in reports[:-1] if comm.name and comm.name in report.comms]


def _behind(basis: Basis, comm: _Comm, reports: list[_Report]) -> None:
    """The few ranks of a communicator that launched less than the others, where the report lists them."""
    low: dict[str, list[_Level]] = {}
    counts = {op: levels for op, levels in comm.counts.items() if levels}  # an excerpt may end after the heading
    for op, levels in counts.items():
        top = max(int(level.value) for level in levels)
        below = [level for level in levels if int(level.value) < top]
        total = sum(level.size for level in levels)
        if below and sum(level.size for level in below) * 2 < total and all(level.people for level in below):
            low[op] = below
    earlier = _earlier(comm, reports)
    if any(
        op in before.counts and _numbers(before.counts[op]) != _numbers(levels)
        for before in earlier[-1:]
        for op, levels in comm.counts.items()
    ):
        return  # the numbers moved between two queries: the communicator is at work
    if not low:
        _at_init(basis, comm, reports)
        return
    op = max(low, key=lambda name: sum(level.size for level in low[name]))
    people = [e for level in low[op] for e in level.people]
    ranks = _ranks(people)
    ahead = _only_they(comm, ranks)
    lowest = min(int(level.value) for level in low[op])
    reached = max(int(level.value) for level in comm.counts[op])
    shape = "op" if ahead else "never" if lowest == 0 and not _launched_any(comm, ranks) else "behind"
    _add(
        basis,
        comm,
        reports,
        people,
        {
            "shape": shape,
            "op": op if op and op != "collective" else None,
            "other_op": ahead,
            "launched": lowest,
            "others_launched": reached,
            "size": sum(level.size for level in comm.counts[op]),
            "unchanged": bool(earlier) and op in earlier[-1].counts,
        },
        [level.event for level in comm.counts[op]],
    )


def _only_they(comm: _Comm, ranks: set[int]) -> str | None:
    """An operation of which these ranks, and no others, launched more than the rest."""
    for op, levels in comm.counts.items():
        if len(levels) < 2:
            continue
        top = max(levels, key=lambda level: int(level.value))
        if top.size * 2 < sum(level.size for level in levels) and _ranks(top.people) == ranks:
            return op
    return None


def _launched_any(comm: _Comm, ranks: set[int]) -> bool:
    """Whether the report says of some operation that one of these ranks launched it."""
    return any(
        int(level.value) > 0 and ranks & _ranks(level.people) for levels in comm.counts.values() for level in levels
    )


def _at_init(basis: Basis, comm: _Comm, reports: list[_Report]) -> None:
    """Ranks that are not where the others are, while the communicator is being made."""
    sizes = {str(level.value): level.size for level in comm.states}
    waits = {"NOCOMM", "UNKNOWN"} if "RUNNING" not in sizes else {"INIT"}
    odd = [level for level in comm.states if level.value in waits]
    if not odd or not sizes.keys() <= {"NOCOMM", "UNKNOWN", "INIT", "RUNNING"} or "INIT" not in sizes:
        return
    count = sum(level.size for level in odd)
    if count * 2 >= sum(sizes.values()) or not all(level.people for level in odd):
        return
    people = [e for level in odd for e in level.people]
    before = [c for c in _earlier(comm, reports)[-1:] if c.states]
    if any(_numbers(c.states) != _numbers(comm.states) for c in before):
        return
    _add(
        basis,
        comm,
        reports,
        people,
        {"shape": "init", "size": sum(sizes.values()), "unchanged": bool(before)},
        [level.event for level in comm.states],
    )


def _add(
    basis: Basis,
    comm: _Comm,
    reports: list[_Report],
    people: list[Event],
    fields: dict[str, str | int | bool | None],
    levels: list[Event],
) -> None:
    ranks = _ranks(people)
    whole = _whole(basis, reports[-1], comm.group)
    basis.add(
        "ras.behind",
        {**fields, "comm": comm.name or None, "behind": tuple(sorted(ranks)), "whole": whole},
        [*([comm.event] if comm.event else []), *levels, *people],
        ranks=ranks if whole else (),
        hosts=_hosts(people),
        pids=_pids(people),
    )
