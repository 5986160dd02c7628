"""The picture of an HTML report: hosts and their ranks down, time across, as rows of inline SVG.

Hosts whose ranks all went the same way share one row that opens; so the picture of 1,024 ranks is as long as what is
different in it. Rows are drawn until a budget of bytes is used up; then hosts stand for their ranks, and it says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from ncclscope.report import Lane, Mark, Report, Timeline
from ncclscope.reporters import words
from ncclscope.reporters.html_axis import Axis, duration
from ncclscope.reporters.html_markup import Html, join, tag, text
from ncclscope.reporters.safe import shorten

__all__ = ["picture"]

_FOR_CULPRITS = 60_000  # bytes beyond the budget
_MAX_NAME = 100
_FEW = 64  # lanes that are all drawn openly
_CHUNK = 64  # ranks of no known host that stand in one group
_WORDS = {
    "init": "init complete",
    "cause": "proof of the cause",
    "failure": "failure",
    "echo": "echo of a failure elsewhere",
    "kernel": "kernel log",
    "end": "last line",
}
_SHAPES = {
    "init": '<circle r="4"/>',
    "cause": '<path d="M0-8 8 0 0 8-8 0z"/>',
    "failure": '<path d="M-6 5 0-6 6 5z"/>',
    "echo": '<path d="M-5 4 0-5 5 4z"/>',
    "kernel": '<path d="M-5-5H5V5H-5z"/>',
    "end": '<path d="M-1.5-8h3V8h-3z"/>',
}
_STATES = ("starting", "running", "waiting", "stopping", "silent")


@dataclass(frozen=True, slots=True)
class _Group:
    """Lanes that stand together: those of one host, or a run of ranks of no known host."""

    name: str
    lanes: tuple[Lane, ...]

    @property
    def ranks(self) -> list[int]:
        return [lane.rank for lane in self.lanes if lane.rank is not UNSET]


class _Painter:
    def __init__(self, report: Report, timeline: Timeline, budget: int) -> None:
        first = report.findings[0] if report.findings else None
        self.culprits = set(first.culprit.ranks) if first and first.role == "root_cause" else set()
        self.axis = Axis(timeline)
        self.open = len(timeline.lanes) <= _FEW
        self.budget = budget
        self.used = 0
        self.left_out = 0

    def is_culprit(self, lane: Lane) -> bool:
        return lane.rank is not UNSET and lane.rank in self.culprits

    def group(self, group: _Group, *, alike: bool = False) -> Html:
        """A host with its ranks; closed where nothing in it stands out."""
        odd = any(self.is_culprit(lane) or any(m.kind == "cause" for m in lane.marks) for lane in group.lanes)
        ranks = f"{words.several(len(group.ranks), 'rank')}: {words.ranges(group.ranks)}" if group.ranks else ""
        rows = []
        for lane in group.lanes:
            if self.used > self.budget + self.is_culprit(lane) * _FOR_CULPRITS:
                self.left_out += 1
                continue
            row = self.row(lane, brief=alike)
            self.used += len(row)
            rows.append(row)
        label = tag("span", tag("b", shorten(group.name, _MAX_NAME)), " ", tag("small", ranks), class_="label")
        summary = tag("summary", label, tag("svg", self._summary(group), aria_hidden="true"))
        return tag("details", summary, *rows, class_="host", open=odd or self.open)

    def alike(self, groups: Sequence[_Group]) -> Html:
        """Hosts that all went the same way, in one row."""
        lanes = tuple(lane for group in groups for lane in group.lanes)
        name = f"{words.several(len(groups), 'host')} alike"
        count = words.several(sum(len(group.ranks) for group in groups), "rank")
        hosts = f"{count}: {shorten(groups[0].name, _MAX_NAME)} to {shorten(groups[-1].name, _MAX_NAME)}"
        label = tag("span", tag("b", name), " ", tag("small", hosts), class_="label")
        summary = tag("summary", label, tag("svg", self._summary(_Group(name, lanes)), aria_hidden="true"))
        return tag("details", summary, *(self.group(g, alike=True) for g in groups), class_="alike")

    def row(self, lane: Lane, *, brief: bool) -> Html:
        """One lane."""
        name = _name(lane)
        culprit = self.is_culprit(lane)
        label = tag("span", name, tag("em", " culprit") if culprit else "", class_="label")
        parts: list[Html] = [_bar(self.axis, s.state, s.start, s.end) for s in lane.spans]
        dated = [m for m in lane.marks if m.at is not UNSET]
        undated = [m for m in lane.marks if m.at is UNSET]
        if not lane.seen or not lane.marks:
            words_ = "no line of this rank in the input" if not lane.seen else "nothing of note"
            parts.append(tag("text", words_, x="50%", y="13"))
        kinds: set[str] = set()
        for mark in sorted(dated, key=lambda m: (m.at, m.kind == "cause")):  # the cause on top of what it hides
            if brief and mark.kind in kinds:
                continue
            kinds.add(mark.kind)
            parts.append(self.mark(mark, self.axis.x(float(mark.at or 0)), brief=brief))
        for i, mark in enumerate(undated, 1):
            timed = bool(dated or lane.spans)
            x = self.axis.beside(i, len(undated)) if timed else 100 * i / (len(undated) + 1)
            parts.append(self.mark(mark, x, brief=brief))
        order = "" if not undated else ", some marks without a time" if dated else ", marks by order"
        drawing = tag(
            "svg",
            *parts,
            tabindex="0",
            role="group",
            aria_label=f"{name}{', culprit' if culprit else ''}{order}",
        )
        return tag("div", label, drawing, class_="row culprit" if culprit else "row")

    def mark(self, mark: Mark, x: float, *, brief: bool) -> Html:
        when = _time(mark)
        said = f"{_WORDS[mark.kind]} {when} {shorten(mark.source, _MAX_NAME)}:{mark.line}"
        if not brief:
            said += f"\n{mark.text}"
        # `harmless` would show the line feed as an escape; it parts the place from the line in the tooltip.
        title = Html("\n".join(text(part) for part in said.split("\n", 1)))
        return tag(
            "use",
            tag("title", title),
            href=f"#m-{mark.kind}",
            x=f"{x:.2f}%",
            class_=mark.kind,
            role=None if brief else "img",
            data_at=None if mark.at is UNSET or brief else mark.at,
        )

    def _summary(self, group: _Group) -> Html:
        """All lanes of a group on one line: where each kind of mark begins and how far it reaches."""
        spans = [s for lane in group.lanes for s in lane.spans]
        parts = []
        for state in _STATES:
            own = [s for s in spans if s.state == state]
            if own:
                parts.append(_bar(self.axis, state, min(s.start for s in own), max(s.end for s in own)))
        for kind in _WORDS:
            at = [float(m.at) for lane in group.lanes for m in lane.marks if m.kind == kind and m.at is not UNSET]
            if at:
                parts.append(tag("use", href=f"#m-{kind}", x=f"{self.axis.x(min(at)):.2f}%", class_=kind))
        return join(*parts)


def picture(report: Report, budget: int) -> Html:
    """The whole picture, or a sentence where the report holds none. budget: bytes of rows, roughly."""
    timeline = report.timeline
    if timeline is UNSET or not timeline.lanes:
        return tag("p", "The input shows no rank and no kernel line to draw.")
    painter = _Painter(report, timeline, budget)
    rows = list(_rows(painter, timeline))
    notes = list(timeline.notes)
    if painter.left_out:
        notes.append(f"{painter.left_out:,} ranks are drawn only as part of their host, to keep the file small")
    zone = "" if timeline.zone is UNSET else f", zone {timeline.zone}"
    start = (
        ""
        if timeline.start is UNSET
        else f"From {timeline.start.removesuffix('.000000')}{zone}, {duration(timeline.length_s)}."
    )
    return join(
        tag("p", start, " ", tag("small", "; ".join(notes)), class_="when"),
        _legend(),
        tag("div", _scale(painter.axis), *rows, class_="picture"),
        tag(
            "p",
            "Point at a mark, or reach a row with Tab and its marks with the arrow keys.",
            id="line",
            role="status",
            aria_live="polite",
        ),
    )


def _rows(painter: _Painter, timeline: Timeline) -> Iterator[Html]:
    groups, unseen = _groups(painter, timeline)
    same: dict[object, list[_Group]] = defaultdict(list)
    for group in groups:
        same[_course(painter, group)].append(group)
    for course, members in same.items():
        if course is not None and len(members) > 3:
            continue
        for group in members:
            yield painter.group(group)
    for course, members in same.items():
        if course is not None and len(members) > 3:
            yield painter.alike(members)
    if unseen:
        label = tag("span", tag("b", "not seen"), " ", tag("small", words.several(len(unseen), "rank")), class_="label")
        yield tag("div", label, tag("span", f"No line of ranks {words.ranges(unseen)} is in the input."), class_="row")


def _groups(painter: _Painter, timeline: Timeline) -> tuple[list[_Group], list[int]]:
    by_host: dict[str, list[Lane]] = defaultdict(list)
    unseen: list[int] = []
    for lane in timeline.lanes:
        if not lane.seen and not painter.is_culprit(lane) and lane.rank is not UNSET:
            unseen.append(lane.rank)
        elif lane.host is not UNSET:
            by_host[lane.host].append(lane)
        elif lane.rank is not UNSET:
            first = lane.rank // _CHUNK * _CHUNK
            by_host[f"host not shown, ranks {first}-{first + _CHUNK - 1}"].append(lane)
        else:
            by_host["no known host"].append(lane)
    if len(by_host) == 1 and not unseen:
        name = next(iter(by_host))
        if name.startswith("host not shown"):
            by_host = {"host not shown": by_host[name]}
    groups = [_Group(name, tuple(lanes)) for name, lanes in by_host.items()]
    groups.sort(key=lambda g: not any(painter.is_culprit(lane) for lane in g.lanes))
    return groups, unseen


def _course(painter: _Painter, group: _Group) -> object:
    """What a group went through, to fold those alike; None for a group that stands out."""
    for lane in group.lanes:
        if painter.is_culprit(lane) or any(m.kind in ("cause", "kernel") for m in lane.marks):
            return None
    kinds = frozenset(m.kind for lane in group.lanes for m in lane.marks) - {"init", "end"}
    return (kinds, frozenset(lane.about for lane in group.lanes), all(lane.seen for lane in group.lanes))


def _name(lane: Lane) -> str:
    if lane.rank is not UNSET:
        return f"rank {lane.rank}"
    return "kernel log" if lane.about == "kernel" else "of no known rank"


def _time(mark: Mark) -> str:
    if mark.time is not UNSET:
        return mark.time.partition("T")[2].rstrip("0").rstrip(".") or mark.time
    return "(no time of its own)"


def _bar(axis: Axis, state: str, start: float, end: float) -> Html:
    a, b = axis.x(start), axis.x(end)
    return tag("rect", x=f"{a:g}%", width=f"{max(0.1, b - a):.2f}%", class_=state)


def _scale(axis: Axis) -> Html:
    parts = [
        tag("text", label, x=f"{x}%", y="12", text_anchor="start" if x < 10 else "end" if x > 90 else "middle")
        for x, label in axis.ticks()
    ]
    if axis.right < 95:
        parts.append(tag("text", "no time", x="98.5%", y="12", text_anchor="end"))
    for b in axis.breaks:
        middle = (b.start + b.end) / 2
        parts.append(tag("rect", x=f"{b.start:.2f}%", width=f"{b.end - b.start:.2f}%", class_="break"))
        parts.append(tag("text", f"⋯ {duration(b.seconds)} ⋯", x=f"{middle:.2f}%", y="12", text_anchor="middle"))
    return tag("div", tag("span", "time", class_="label"), tag("svg", *parts, aria_hidden="true"), class_="row scale")


def _legend() -> Html:
    symbols = [tag("g", Html(shape), id=f"m-{kind}") for kind, shape in _SHAPES.items()]
    defs = tag("svg", tag("defs", *symbols), width="0", height="0", aria_hidden="true", class_="defs")
    items = [
        tag("li", tag("svg", tag("use", href=f"#m-{kind}", x="9", y="9", class_=kind), aria_hidden="true"), said)
        for kind, said in _WORDS.items()
    ]
    for state in _STATES:
        bar = tag("rect", x="0", width="18", class_=state)
        items.append(tag("li", tag("svg", bar, aria_hidden="true"), state))
    return join(defs, tag("ul", *items, class_="legend"))
