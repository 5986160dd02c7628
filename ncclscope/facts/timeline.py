"""The job over time, for the picture: a lane for each rank and kernel log, the lines that matter as marks."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msgspec import UNSET

from ncclscope.clocks import Stamp, format_stamp, without_year
from ncclscope.facts.ending import MIN_SILENCE_S
from ncclscope.reader import loose_time
from ncclscope.report import Finding, Lane, LineEvidence, Mark, Span, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ncclscope.facts.base import Basis
    from ncclscope.model import Event

__all__ = ["build_timeline"]

_MAX_LANES = 8192
_MAX_MARKS = 16
_MAX_TEXT = 160
# What each kind of mark may take of a lane's marks, so that a flood of one does not hide the others.
_SHARE = {"init": 2, "cause": 6, "failure": 5, "echo": 3, "kernel": 12, "end": 1}
_NATURE = {"cause": "failure", "symptom": "failure", "consequence": "echo"}
# Lines that others print about a rank: they say nothing of how long it ran itself.
_TOLD_BY_OTHERS = ("launch.", "mpi.", "slurm.", "k8s.", "ds.", "ray.", "pl.", "acc.")
# A kernel log goes back to the last boot; what is older than this before the job's start is no part of it.
_BEFORE_JOB_S = 3600.0


@dataclass(frozen=True, slots=True)
class _Point:
    """A mark before the axis is settled; dated is False where `at` is taken from the line before."""

    kind: str
    sort: str
    source: str
    line: int
    text: str
    at: float | None
    dated: bool = True


@dataclass(slots=True)
class _Lane:
    """One lane while it is filled. times: seconds on the common axis at which its rank printed something."""

    about: str
    rank: int | None = None
    host: str | None = None
    points: list[_Point] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)
    last: _Point | None = None


class _Axis:
    """Puts printed times on one axis: UTC where every line shows its zone, else as they are printed."""

    def __init__(self, stamps: Iterable[Stamp]) -> None:
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
        """ISO text, without the year where the input shows none."""
        shown = format_stamp(Stamp(seconds))
        text = shown[0] if shown else ""
        return text[5:] if self._yearless else text


def build_timeline(basis: Basis, findings: Sequence[Finding]) -> Timeline:
    """The picture of the input. findings: the proof of the first one becomes the marks that stand out."""
    return _Builder(basis, findings).build()


class _Builder:
    def __init__(self, basis: Basis, findings: Sequence[Finding]) -> None:
        self._basis = basis
        self._proof = [e for f in findings[:1] for e in f.evidence if isinstance(e, LineEvidence)]
        self._places = {(e.source, e.line) for e in self._proof}
        self._culprits = set(findings[0].culprit.ranks) if findings else set()
        self._lanes: dict[tuple[str, int | str | None], _Lane] = {}
        self._events = basis.events()
        stamps = {e.order: s for e in self._events if (s := basis.time(e)) is not None}
        self._axis = _Axis([*stamps.values(), *self._stream_stamps()])
        self._at = {order: self._axis.seconds(stamp) for order, stamp in stamps.items()}
        self._dated = self._dated_lines()

    def _stream_stamps(self) -> list[Stamp]:
        found = [s for stream in self._basis.store.streams for s in (stream.first_time, stream.last_time) if s]
        return [self._with_year(s) for s in found]

    def _with_year(self, stamp: Stamp) -> Stamp:
        return stamp if self._basis.year is None else stamp.with_year(self._basis.year)

    def _dated_lines(self) -> dict[str, list[tuple[int, float]]]:
        dated: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for event in self._events:
            at = self._at.get(event.order)
            if at is not None:
                dated[event.ref.path].append((event.ref.line, at))
        for stream in self._basis.store.streams:
            for line in stream.tail:
                stamp = line.env.time or loose_time(line.text)
                at = self._axis.seconds(self._with_year(stamp)) if stamp is not None else None
                if at is not None:
                    dated[line.ref.path].append((line.ref.line, at))
        for lines in dated.values():
            lines.sort()
        return dated

    def _near(self, source: str, line: int) -> float | None:
        """The time of the last dated line before this one in the same input, or of the first after it."""
        lines = self._dated.get(source)
        if not lines:
            return None
        return lines[max(0, bisect_right(lines, (line, float("inf"))) - 1)][1]

    def build(self) -> Timeline:
        for event in self._events:
            self._place(event)
        self._place_proof()
        self._add_streams()
        self._add_silent_ranks()
        return self._finish()

    def _lane(self, about: str, rank: int | None, host: str | None) -> _Lane:
        lane = self._lanes.setdefault((about, rank if about == "rank" else host), _Lane(about, rank, host))
        lane.host = lane.host or host
        return lane

    def _place(self, event: Event) -> None:
        who = self._basis.who(event)
        kernel = event.kind.startswith(("kernel.", "tool."))
        kind = _kind(event)
        if kernel or who.rank is None:
            if kind is None:
                return
            lane = self._lane("kernel" if kernel else "other", None, who.host)
        else:
            lane = self._rank_lane(who.rank, who.host)
        at = self._at.get(event.order)
        dated = at is not None
        if at is None:
            at = self._near(event.ref.path, event.ref.line)
        if self._stands_out((event.ref.path, event.ref.line), lane):
            kind = "cause"
        sort = str(event.ref.line) if kind == "cause" else event.kind
        point = _Point(kind or "end", sort, event.ref.path, event.ref.line, event.text.strip(), at, dated)
        if kind is not None:
            lane.points.append(point)
        if not event.kind.startswith(_TOLD_BY_OTHERS):
            lane.last = point
            if at is not None and dated:
                lane.times.append(at)
                lane.waits += _wait(event, at)

    def _rank_lane(self, rank: int, host: str | None = None) -> _Lane:
        return self._lane("rank", rank, self._basis.identity.host_of_rank.get(rank) or host)

    def _stands_out(self, place: tuple[str, int], lane: _Lane) -> bool:
        return place in self._places and (not self._culprits or lane.rank is None or lane.rank in self._culprits)

    def _place_proof(self) -> None:
        """Proof that is no event: entries of flight-recorder dumps."""
        rank_of_dump = {path: rank for rank, path, _ in self._basis.store.dumps if rank is not None}
        for item in self._proof:
            rank = rank_of_dump.get(item.source)
            if rank is not None:
                lane = self._rank_lane(rank)
                kind = "cause" if self._stands_out((item.source, item.line), lane) else "failure"
                lane.points.append(_Point(kind, str(item.line), item.source, item.line, item.text, None))

    def _add_streams(self) -> None:
        """First and last times of the inputs that are one rank's, and their last line."""
        identity = self._basis.identity
        for stream in self._basis.store.streams:
            rank = identity.rank_of_file.get(stream.path)
            if rank is None:
                continue
            lane = self._rank_lane(rank, identity.host_of_file.get(stream.path))
            at = None
            for stamp in (stream.first_time, stream.last_time):
                if stamp is not None:
                    at = self._axis.seconds(self._with_year(stamp))
                    lane.times += [] if at is None else [at]
            if stream.tail:
                last = stream.tail[-1]
                lane.last = _Point(
                    "end", "", last.ref.path, last.ref.line, last.text.strip(), at, last.env.time is not None
                )

    def _add_silent_ranks(self) -> None:
        """Ranks that only dumps show, and ranks of the job that nothing shows."""
        world = self._basis.identity.world
        known = {rank for rank, _, _ in self._basis.store.dumps if rank is not None} | self._culprits
        for rank in sorted(known | set(range(world if world is not None and world <= _MAX_LANES else 0))):
            self._rank_lane(rank)

    def _finish(self) -> Timeline:
        lanes = sorted(self._lanes.values(), key=_order)
        times = [t for lane in lanes for t in (*lane.times, *(began for began, _ in lane.waits))]
        others = [p.at for lane in lanes for p in lane.points if p.at is not None and p.dated]
        placed = [p.at for lane in lanes for p in (*lane.points, lane.last) if p is not None and p.at is not None]
        start = min(times or others or placed, default=0.0)
        start = min([start, *(t for t in others if t >= start - _BEFORE_JOB_S)])
        end = max([start, *times, *placed])
        notes = []
        if self._axis.mixed:
            notes.append("lines show different time zones, or none: times are drawn as they are printed")
        if old := sum(t < start for t in others):
            notes.append(f"{old} lines more than an hour before the job's first line are drawn at its start")
        if lost := sum(any(p.at is None for p in lane.points) for lane in lanes):
            notes.append(f"{lost} lanes hold marks without a time: they are placed by order")
        if len(lanes) > _MAX_LANES:
            notes.append(f"{len(lanes) - _MAX_LANES} lanes are left out")
        return Timeline(
            start=self._axis.text(start) if times or placed else UNSET,
            zone=self._axis.zone if times or placed else UNSET,
            length_s=round(end - start, 3),
            lanes=[self._made(lane, start, end) for lane in lanes[:_MAX_LANES]],
            notes=notes,
        )

    def _made(self, lane: _Lane, start: float, end: float) -> Lane:
        points = sorted(_chosen(lane), key=lambda p: (p.at is None, p.at or 0.0, p.kind == "end", p.source, p.line))
        return Lane(
            about=lane.about,  # type: ignore[arg-type]  # one of the three that `_lane` is called with
            rank=UNSET if lane.rank is None else lane.rank,
            host=UNSET if lane.host is None else lane.host,
            spans=_spans(lane, points, start, end),
            marks=[self._mark(p, start) for p in points],
            seen=bool(points or lane.times),
        )

    def _mark(self, point: _Point, start: float) -> Mark:
        text = point.text if len(point.text) <= _MAX_TEXT else point.text[: _MAX_TEXT - 1] + "…"
        at = None if point.at is None else max(0.0, point.at - start)
        return Mark(
            kind=point.kind,  # type: ignore[arg-type]  # a key of _SHARE
            source=point.source,
            line=point.line,
            text=text,
            at=UNSET if at is None else round(at, 3),
            time=self._axis.text(point.at) if point.at is not None and point.dated else UNSET,
        )


def _kind(event: Event) -> str | None:
    nature = event.get("nature")
    if event.kind == "nccl.init_complete":
        return "init"
    kind = _NATURE.get(nature) if isinstance(nature, str) else None
    return "kernel" if kind is not None and event.kind.startswith(("kernel.", "tool.")) else kind


def _wait(event: Event, at: float) -> list[tuple[float, float]]:
    """How long the rank had waited before this line: as a watchdog says, or the silence before the line."""
    elapsed, gap = event.get("elapsed_ms"), event.get("gap_s")
    if event.kind == "torch.watchdog_timeout" and isinstance(elapsed, int):
        return [(at - elapsed / 1000, at)]
    if isinstance(gap, (int, float)) and gap >= MIN_SILENCE_S:
        return [(at - gap, at)]
    return []


def _order(lane: _Lane) -> tuple[bool, str, str, int]:
    """Hosts together, unknown ones last; of one host its ranks, its kernel log, then lines of no rank."""
    return (
        lane.host is None,
        lane.host or "",
        {"rank": "a", "kernel": "b"}.get(lane.about, "c"),
        lane.rank or 0,
    )


def _chosen(lane: _Lane) -> list[_Point]:
    """The marks that a lane keeps: of each kind the first few, of one sort of event only the first."""
    left = Counter(_SHARE)
    sorts: set[tuple[str, str]] = set()
    kept: list[_Point] = []
    for point in lane.points:
        if left[point.kind] > 0 and (point.kind, point.sort) not in sorts and len(kept) < _MAX_MARKS - 1:
            left[point.kind] -= 1
            sorts.add((point.kind, point.sort))
            kept.append(point)
    if lane.last is not None and lane.about == "rank":
        kept.append(replace(lane.last, kind="end"))
    return kept


def _spans(lane: _Lane, points: Sequence[_Point], start: float, end: float) -> list[Span]:
    """From first time to last: starting, running, waiting, stopping; then silent to the input's end."""
    if not lane.times:
        return []
    first, last = min(lane.times), max(lane.times)
    ready = next((p.at for p in points if p.kind == "init" and p.at is not None), first)
    bad = min((p.at for p in points if p.kind in ("cause", "failure", "echo") and p.at is not None), default=last)
    began, until = min((w for w in lane.waits if w[0] <= bad), default=(bad, bad))
    stretches = (("starting", min(ready, began)), ("running", began), ("waiting", until), ("stopping", last))
    spans: list[Span] = []
    at = first
    for state, until_then in (*stretches, ("silent", end if end - last >= MIN_SILENCE_S else last)):
        if until_then > at:
            spans.append(Span(state, round(at - start, 3), round(until_then - start, 3)))  # type: ignore[arg-type]
            at = until_then
    return spans
