"""Seconds of the job to places across the picture. Long stretches in which nothing stands are shortened and say so."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import UNSET

from ncclscope.report import Lane, Timeline

__all__ = ["Axis", "Break", "duration"]

_LEFT, _RIGHT, _GUTTER = 1.5, 98.5, 92.0  # per cent of the width; right of the gutter stands what has no time
_LONG = 0.4  # a gap longer than this part of the whole hides the rest
_BREAK_WIDTH = 12.0
_MAX_BREAKS = 3


@dataclass(frozen=True, slots=True)
class Break:
    """A stretch that is drawn shorter than it lasted: from and to in per cent, and how long it was."""

    start: float
    end: float
    seconds: float


class Axis:
    """Maps `at` of marks to per cent of the width; later is never further left."""

    def __init__(self, timeline: Timeline) -> None:
        self.right = _GUTTER if any(_half_dated(lane) for lane in timeline.lanes) else _RIGHT
        times = {0.0, max(timeline.length_s, 0.001)}
        for lane in timeline.lanes:
            times.update(m.at for m in lane.marks if m.at is not UNSET)
            times.update(edge for s in lane.spans for edge in (s.start, s.end))
        ordered = sorted(times)
        whole = ordered[-1] - ordered[0]
        gaps = sorted(itertools.pairwise(ordered), key=lambda g: g[0] - g[1])[:_MAX_BREAKS]
        long = {(a, b) for a, b in gaps if b - a > _LONG * whole and whole > 10}
        rest = whole - sum(b - a for a, b in long)
        if rest <= 0:
            long, rest = set(), whole
        scale = (self.right - _LEFT - _BREAK_WIDTH * len(long)) / rest
        self.breaks: list[Break] = []
        self._knots = [(ordered[0], _LEFT)]
        for a, b in itertools.pairwise(ordered):
            x = self._knots[-1][1] + (_BREAK_WIDTH if (a, b) in long else (b - a) * scale)
            if (a, b) in long:
                self.breaks.append(Break(self._knots[-1][1], x, b - a))
            self._knots.append((b, x))
        self._start = timeline.start if timeline.start is not UNSET else None
        self._fine = whole < 10

    def x(self, at: float) -> float:
        """Per cent from the left."""
        return round(_between(at, self._knots), 2)

    def ticks(self, count: int = 6) -> Iterable[tuple[float, str]]:
        """Places and their times, evenly spaced; none within a break."""
        inverse = [(x, t) for t, x in self._knots]
        for i in range(count):
            x = _LEFT + (self.right - _LEFT) * i / (count - 1)
            if not any(b.start - 3 < x < b.end + 3 for b in self.breaks):
                yield round(x, 2), self.clock(_between(x, inverse))

    def beside(self, number: int, count: int) -> float:
        """The place of mark `number` of `count`, from 1, that has no time, in a row that has times."""
        return round(self.right + 2 + (98.5 - self.right - 2) * number / count, 2)

    def clock(self, at: float) -> str:
        """The time of day as the logs print it; without any printed time the seconds since the start."""
        if self._start is None or "T" not in self._start:
            return duration(at)
        hours, minutes, seconds = self._start.partition("T")[2].split(":")
        total = int(hours) * 3600 + int(minutes) * 60 + float(seconds) + at
        days, rest = divmod(total, 86400)
        h, m = divmod(int(rest) // 60, 60)
        s = f"{rest % 60:06.3f}" if self._fine else f"{int(rest) % 60:02d}"
        return f"{h:02d}:{m:02d}:{s}" + (f" (+{int(days)} d)" if days else "")


def _half_dated(lane: Lane) -> bool:
    return any(m.at is UNSET for m in lane.marks) and (bool(lane.spans) or any(m.at is not UNSET for m in lane.marks))


def _between(value: float, knots: list[tuple[float, float]]) -> float:
    i = bisect_right(knots, (value, float("inf")))
    if i == 0:
        return knots[0][1]
    if i == len(knots):
        return knots[-1][1]
    (a, fa), (b, fb) = knots[i - 1], knots[i]
    return fa + (fb - fa) * (value - a) / (b - a)


def duration(seconds: float) -> str:
    """`86 s`, `2 min 3 s`, `5 h 12 min`, `3 d 4 h`."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    left = int(seconds)
    parts: list[str] = []
    for name, size in units:
        n, left = divmod(left, size)
        if n or parts:
            parts.append(f"{n} {name}")
    return " ".join(parts[:2])
