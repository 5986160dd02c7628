"""Compares two runs: one that went well and one that did not, or simply two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncclscope.diff_aspects import (
    ASPECTS,
    TIMINGS,
    TOPICS,
    Aspect,
    Values,
    environment,
    first_failure,
    progress,
    rank_hosts,
    settings_shown,
    weight_of_variable,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ncclscope.pipeline import Read

__all__ = ["Comparison", "Difference", "NotCompared", "compare"]

# Shorter or less different times are what any two starts show.
_MIN_RATIO = 2.0
_MIN_SLOWER_S = 1.0
_NOT_SET = "not set"
# So many values are shown whole.
_SHORT = 4


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which the runs differ. topic is one of TOPICS; values are sorted; places are `file:line`.

    matters: whether it can change how a job behaves, as against where it ran and what it printed.
    """

    topic: str
    name: str
    good: tuple[str, ...]
    bad: tuple[str, ...]
    good_at: tuple[str, ...]
    bad_at: tuple[str, ...]
    matters: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Something that only one of the runs shows, or neither; reason says which and what would show it."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """differences: those that matter first, then by topic. same: what was compared and is equal."""

    differences: tuple[Difference, ...]
    same: tuple[str, ...]
    not_compared: tuple[NotCompared, ...]

    @property
    def matters(self) -> bool:
        """Whether any difference can explain that one run went well and the other did not."""
        return any(d.matters for d in self.differences)


class _Comparing:
    """Collects what `compare` finds."""

    def __init__(self, good: Read, bad: Read) -> None:
        self.good, self.bad = good, bad
        self.found: list[tuple[int, Difference]] = []
        self.same: list[str] = []
        self.not_compared: list[NotCompared] = []

    def differ(
        self, topic: str, name: str, good: Values, bad: Values, *, matters: bool, why: str = "", place: int = 0
    ) -> None:
        """Notes a difference; `place` orders those of one topic."""
        self.found.append(
            (place, Difference(topic, name, _shown(good), _shown(bad), _places(good), _places(bad), matters, why))
        )

    def aspect(self, aspect: Aspect, place: int) -> None:
        good, bad = aspect.values(self.good), aspect.values(self.bad)
        if not good or not bad:
            self.not_compared.append(NotCompared(aspect.name, _absent(bool(good), bool(bad), aspect.wants)))
        elif set(good) == set(bad):
            self.same.append(aspect.name)
        else:
            good, bad = _only_different(good, bad)
            self.differ(aspect.topic, aspect.name, good, bad, matters=aspect.matters, why=aspect.why, place=place)

    def variables(self) -> None:
        good, bad = environment(self.good), environment(self.bad)
        shown = (settings_shown(self.good), settings_shown(self.bad))
        for name in sorted(good.keys() | bad.keys()):
            mine, theirs = good.get(name, {}), bad.get(name, {})
            if set(mine) == set(theirs):
                self.same.append(name)
                continue
            if not all(shown) and not (mine and theirs):
                reason = _absent(bool(mine), bool(theirs), "NCCL_DEBUG=INFO prints it when it reads it")
                self.not_compared.append(NotCompared(name, reason))
                continue
            matters, place = weight_of_variable(name)
            mine, theirs = mine or {_NOT_SET: []}, theirs or {_NOT_SET: []}
            why = "ranks must agree on it" if place == 0 else ""
            self.differ("environment", name, mine, theirs, matters=matters, why=why, place=place)
        if not good and not bad:
            reason = _absent(False, False, "NCCL_DEBUG=INFO prints those it reads")
            self.not_compared.append(NotCompared("NCCL variables", reason))

    def timings(self) -> None:
        for place, (kind, field, name) in enumerate(TIMINGS):
            good, bad = _slowest(self.good, kind, field), _slowest(self.bad, kind, field)
            if good is None or bad is None:
                reason = _absent(good is not None, bad is not None, "NCCL 2.22 and newer print it with NCCL_DEBUG=INFO")
                self.not_compared.append(NotCompared(name, reason))
                continue
            fast, slow = sorted((good[0], bad[0]))
            if slow - fast <= _MIN_SLOWER_S or slow <= _MIN_RATIO * fast:
                self.same.append(name)
                continue
            slower = bad[0] > good[0]
            times = f", {slow / fast:.1f} times as long as in the other" if fast > 0 else ""
            self.differ(
                "timing",
                name,
                {f"{good[0]:.2f} s": [good[1]]},
                {f"{bad[0]:.2f} s": [bad[1]]},
                matters=slower,
                why=f"the slowest rank of the {'bad' if slower else 'good'} run{times}",
                place=place,
            )

    def placement(self) -> None:
        good, bad = rank_hosts(self.good), rank_hosts(self.bad)
        both = good.keys() & bad.keys()
        if not both:
            reason = _absent(bool(good), bool(bad), "NCCL_DEBUG=INFO prints host and rank")
            self.not_compared.append(NotCompared("hosts of the ranks", reason))
            return
        moved = [r for r in sorted(both) if good[r][0] != bad[r][0]]
        if not moved:
            self.same.append("hosts of the ranks")
            return
        mine: Values = {f"rank {r}: {good[r][0]}": [good[r][1]] for r in moved}
        theirs: Values = {f"rank {r}: {bad[r][0]}": [bad[r][1]] for r in moved}
        self.differ("placement", "hosts of the ranks", mine, theirs, matters=False)

    def outcome(self) -> None:
        good, bad = progress(self.good), progress(self.bad)
        if set(good) == set(bad):
            self.same.append("how far it came")
        else:
            self.differ("outcome", "how far it came", good, bad, matters=False)
        good, bad = first_failure(self.good), first_failure(self.bad)
        if set(good) != set(bad):
            self.differ("outcome", "first failure", good, bad, matters=False, place=1)


def compare(good: Read, bad: Read) -> Comparison:
    """What differs between two runs, what does not, and what could not be compared and why."""
    work = _Comparing(good, bad)
    for place, aspect in enumerate(ASPECTS):
        work.aspect(aspect, place)
    work.variables()
    work.timings()
    work.placement()
    work.outcome()
    ordered = sorted(work.found, key=lambda item: (not item[1].matters, TOPICS.index(item[1].topic), item[0]))
    return Comparison(tuple(d for _, d in ordered), tuple(work.same), tuple(work.not_compared))


def _shown(values: Values) -> tuple[str, ...]:
    return tuple(sorted(values))


def _places(values: Values) -> tuple[str, ...]:
    return tuple(dict.fromkeys(place for name in sorted(values) for place in values[name]))


def _only_different(good: Values, bad: Values) -> tuple[Values, Values]:
    """Long lists without the values that both show, unless that leaves one side without a value."""
    if max(len(good), len(bad)) <= _SHORT:
        return good, bad
    mine = {name: places for name, places in good.items() if name not in bad}
    theirs = {name: places for name, places in bad.items() if name not in good}
    return (mine or good), (theirs or bad)


def _absent(in_good: bool, in_bad: bool, wants: str) -> str:
    where = (
        "neither run shows it" if not (in_good or in_bad) else f"only the {'good' if in_good else 'bad'} run shows it"
    )
    return f"{where}; {wants}"


def _slowest(run: Read, kind: str, field: str) -> tuple[float, str] | None:
    """The longest time of any rank, and the line that says it."""
    times: Sequence[tuple[float, str]] = [
        (float(value), str(event.ref))
        for event in run.store.events(kind)
        if isinstance(value := event.get(field), (int, float))
    ]
    return max(times, default=None)
