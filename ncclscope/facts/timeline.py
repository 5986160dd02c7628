"""The job over time, for the picture: a lane for each rank and each kernel log, with the lines that matter as marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ncclscope.clocks import Stamp, format_stamp, without_year
from ncclscope.facts.base import Basis
from ncclscope.facts.ending import MIN_SILENCE_S
from ncclscope.model import Event
from ncclscope.report import UNSET, Finding, Lane, LineEvidence, Mark, Span, Timeline

__all__ = ["build_timeline"]

_MAX_LANES = 8192
_MAX_MARKS = 16
_MAX_TEXT = 160
_MAX_NOTES = 6
# What each kind of mark may take of a lane's marks, so that a flood of one does not hide the others.
_SHARE = {"init": 2, "cause": 6, "failure": 5, "echo": 3, "kernel": 12, "end": 1}
_NATURE = {"cause": "failure", "symptom": "failure", "consequence": "echo"}
# A kernel log goes back to the last boot; what is older than this before the job's first line is no part of it.
_BEFORE_JOB_S = 3600.0


@dataclass(slots=True)
class _Lane:
    """One lane while it is filled. times: every time that is known to be of this lane, as seconds on the common axis."""

    rank: int | None
    host: str | None
    marks: list[tuple[str, Event]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)
    last: Event | None = None


class _Axis:
    """Puts printed times on one axis: UTC where every line shows its zone, else as printed; see `note`."""

    def __init__(self, stamps: Sequence[Stamp]) -> None:
        wall = [s for s in stamps if s.clock != "boot"]
        self._utc = bool(wall) and all(s.utc is not None for s in wall)
        self._yearless = any(not s.year_known for s in wall)
        self.zone = "+00:00" if self._utc else "unknown"
        self.mixed = not self._utc and len({s.zone for s in wall}) > 1

    def seconds(self, stamp: Stamp | None) -> float | None:
        if stamp is None or stamp.clock == "boot":
            return None
        if self._utc:
            return stamp.utc
        return (without_year(stamp) if self._yearless else stamp).seconds

    def text(self, seconds: float) -> str:
        """ISO text; without the year where the input shows none."""
        shown = format_stamp(Stamp(seconds, None))
        text = shown[0] if shown else ""
        return text[5:] if self._yearless else text


def build_timeline(basis: Basis, findings: Sequence[Finding]) -> Timeline:
    """The picture of the whole input. findings: the first one's proof becomes the marks that stand out."""
    proof = {
        (item.source, item.line)
        for item in (findings[0].evidence if findings else ())
        if isinstance(item, LineEvidence)
    }
    events = basis.events()
    stamps = {event.order: stamp for event in events if (stamp := basis.time(event)) is not None}
    ends = [s for stream in basis.store.streams for s in (stream.first_time, stream.last_time) if s is not None]
    ends = [s if basis.year is None else s.with_year(basis.year) for s in ends]
    axis = _Axis([*stamps.values(), *ends])
    lanes = _fill(basis, axis, events, stamps, proof)
    _add_streams(basis, axis, lanes)
    _add_unseen(basis, lanes)
    return _finish(axis, lanes, stamps)


def _fill(
    basis: Basis, axis: _Axis, events: Sequence[Event], stamps: dict[int, Stamp], proof: set[tuple[str, int]]
) -> dict[tuple[int | None, str | None], _Lane]:
    lanes: dict[tuple[int | None, str | None], _Lane] = {}
    for event in events:
        who = basis.who(event)
        kernel = event.kind.startswith(("kernel.", "tool."))
        kind = _kind(event, kernel, proof)
        if kernel:
            if kind is None:
                continue
            lane = lanes.setdefault((None, who.host), _Lane(None, who.host))
        elif who.rank is not None:
            host = basis.identity.host_of_rank.get(who.rank) or who.host
            lane = lanes.setdefault((who.rank, None), _Lane(who.rank, host))
            lane.host = lane.host or host
        elif kind is not None:
            lane = lanes.setdefault((None, who.host), _Lane(None, who.host))
        else:
            continue
        at = axis.seconds(stamps.get(event.order))
        if at is not None and not kernel:
            lane.times.append(at)
            lane.waits += _wait(event, at)
        if kind is not None:
            lane.marks.append((kind, event))
        lane.last = event
    return lanes


def _kind(event: Event, kernel: bool, proof: set[tuple[str, int]]) -> str | None:
    if (event.ref.path, event.ref.line) in proof:
        return "cause"
    nature = event.get("nature")
    if kernel:
        return "kernel" if nature in _NATURE else None
    if event.kind == "nccl.init_complete":
        return "init"
    return _NATURE.get(nature) if isinstance(nature, str) else None


def _wait(event: Event, at: float) -> list[tuple[float, float]]:
    """How long the rank had waited before this line: as a watchdog says, or the silence before the line."""
    elapsed = event.get("elapsed_ms")
    if isinstance(elapsed, int) and event.kind == "torch.watchdog_timeout":
        return [(at - elapsed / 1000, at)]
    gap = event.get("gap_s")
    if isinstance(gap, (int, float)) and gap >= MIN_SILENCE_S:
        return [(at - gap, at)]
    return []


def _add_streams(basis: Basis, axis: _Axis, lanes: dict[tuple[int | None, str | None], _Lane]) -> None:
    """First and last times of the files that are one rank's."""
    for stream in basis.store.streams:
        rank = basis.identity.rank_of_file.get(stream.path)
        if rank is None:
            continue
        host = basis.identity.host_of_rank.get(rank) or basis.identity.host_of_file.get(stream.path)
        lane = lanes.setdefault((rank, None), _Lane(rank, host))
        for stamp in (stream.first_time, stream.last_time):
            if stamp is not None:
                at = axis.seconds(stamp if basis.year is None else stamp.with_year(basis.year))
                lane.times += [] if at is None else [at]
        if stream.tail:
            last = stream.tail[-1]
            lane.last = Event("end", {}, last.env, last.ref, last.text, order=1 << 60)


def _add_unseen(basis: Basis, lanes: dict[tuple[int | None, str | None], _Lane]) -> None:
    """Ranks that dumps show, and ranks of the job that nothing shows."""
    for rank, _, _ in basis.store.dumps:
        if rank is not None:
            lanes.setdefault((rank, None), _Lane(rank, basis.identity.host_of_rank.get(rank)))
    world = basis.identity.world
    if world is not None and world <= _MAX_LANES:
        for rank in range(world):
            lanes.setdefault((rank, None), _Lane(rank, basis.identity.host_of_rank.get(rank)))


def _finish(axis: _Axis, lanes: dict[tuple[int | None, str | None], _Lane], stamps: dict[int, Stamp]) -> Timeline:
    times = [t for lane in lanes.values() for t in lane.times]
    times += [began for lane in lanes.values() for began, _ in lane.waits]
    kernel = [
        t
        for lane in lanes.values()
        for kind, event in lane.marks
        if kind in ("kernel", "cause") and (t := axis.seconds(stamps.get(event.order))) is not None
    ]
    if not times:
        times = kernel
    start = min(times, default=0.0)
    start = min([start, *(t for t in kernel if t >= start - _BEFORE_JOB_S)])
    end = max([*times, *kernel], default=0.0)
    notes = []
    if axis.mixed:
        notes.append("lines show different time zones, or none: times are drawn as they are printed")
    old = sum(t < start for t in kernel)
    if old:
        notes.append(f"{old} kernel line(s) more than an hour before the job's first line are drawn at its start")
    ordered = sorted(lanes.values(), key=_place)
    untimed = sum(1 for lane in ordered if lane.marks and not lane.times and lane.rank is not None)
    if untimed:
        notes.append(f"{untimed} rank(s) show no time of their own: their marks are placed by order")
    if len(ordered) > _MAX_LANES:
        notes.append(f"{len(ordered) - _MAX_LANES} lanes are left out")
    clock = _Clock(axis, stamps, start)
    return Timeline(
        start=axis.text(start) if times else UNSET,
        zone=axis.zone if times else UNSET,
        length_s=round(end - start, 3),
        lanes=[_lane(lane, clock, end) for lane in ordered[:_MAX_LANES]],
        notes=notes[:_MAX_NOTES],
    )


def _place(lane: _Lane) -> tuple[bool, str, bool, int]:
    """Hosts together, unknown ones last; a host's kernel log after its ranks."""
    return (lane.host is None, lane.host or "", lane.rank is None, lane.rank or 0)


@dataclass(frozen=True, slots=True)
class _Clock:
    """Where an event stands on the axis that begins at `start`."""

    axis: _Axis
    stamps: dict[int, Stamp]
    start: float

    def of(self, event: Event) -> float | None:
        at = self.axis.seconds(self.stamps.get(event.order, event.env.time))
        return None if at is None else max(self.start, at)


def _lane(lane: _Lane, clock: _Clock, end: float) -> Lane:
    marks = [(kind, event, clock.of(event)) for kind, event in _chosen(lane)]
    marks.sort(key=lambda m: (m[2] is None, m[2] or 0.0, m[1].order))
    return Lane(
        rank=UNSET if lane.rank is None else lane.rank,
        host=UNSET if lane.host is None else lane.host,
        spans=_spans(lane, marks, clock, end) if lane.times else [],
        marks=[_mark(kind, event, at, clock) for kind, event, at in marks],
        seen=bool(lane.marks or lane.times or lane.last),
    )


def _chosen(lane: _Lane) -> list[tuple[str, Event]]:
    """The marks that a lane keeps: of each kind the first few, of one sort of event only the first."""
    left = Counter(_SHARE)
    sorts: set[tuple[str, str]] = set()
    kept: list[tuple[str, Event]] = []
    for kind, event in lane.marks:
        sort = (kind, event.kind if kind != "cause" else str(event.ref.line))
        if left[kind] > 0 and sort not in sorts and len(kept) < _MAX_MARKS - 1:
            left[kind] -= 1
            sorts.add(sort)
            kept.append((kind, event))
    if lane.last is not None and lane.rank is not None:
        kept.append(("end", lane.last))
    return kept


def _mark(kind: str, event: Event, at: float | None, clock: _Clock) -> Mark:
    text = event.text.strip()
    return Mark(
        kind=kind,  # type: ignore[arg-type]  # a key of _SHARE
        source=event.ref.path,
        line=event.ref.line,
        text=text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…",
        at=UNSET if at is None else round(at - clock.start, 3),
        time=UNSET if at is None else clock.axis.text(at),
    )


def _spans(lane: _Lane, marks: list[tuple[str, Event, float | None]], clock: _Clock, end: float) -> list[Span]:
    """From the lane's first time to its last: starting, running, waiting; then silent until the input ends."""
    first, last = min(lane.times), max(lane.times)
    ready = next((at for kind, _, at in marks if kind == "init" and at is not None), first)
    trouble = min((s for s, _ in lane.waits if s >= first), default=last)
    waits = max((e for _, e in lane.waits), default=last)
    edges = [("starting", first, ready), ("running", max(first, ready), trouble)]
    edges += [("waiting", trouble, waits), ("running", waits, last)]
    if end - last >= MIN_SILENCE_S:
        edges.append(("silent", last, end))
    return [
        Span(state, round(a - clock.start, 3), round(b - clock.start, 3))  # type: ignore[arg-type]
        for state, a, b in edges
        if b > a
    ]
