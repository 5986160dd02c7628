"""The mutation check: a rule is weakened in one place at a time, and its own cases have to notice.

A condition, a field or a step that can be dropped without any case failing is a claim that nothing tests. Each input
is read once; only the changed rule is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ncclscope.engine.diagnose import Candidate, Surroundings, diagnose
from ncclscope.engine.fold import fold
from ncclscope.engine.match import Index
from ncclscope.engine.rule import Adjust, ConfidenceSpec, Rule, Signal, parse_signal
from ncclscope.report import SCHEMA_VERSION, Report
from ncclscope.selftest import ReadCase, compare
from ncclscope.verdict import conclude

if TYPE_CHECKING:
    from ncclscope.engine.pack import Pack

__all__ = ["Mutant", "mutants", "survivors"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule with one thing taken out. what: the thing; remedy: the case that would notice."""

    rule: Rule
    what: str
    remedy: str


def survivors(
    rule: Rule, cases: Sequence[ReadCase], pack: Pack, *, alternatives: bool = False
) -> tuple[int, list[Mutant]]:
    """How many mutants of `rule` were tried, and those that none of its cases notices.

    cases: those of `rule`, as read for `pack`; they pass while the rule is as it stands.
    """
    scenes = [_Scene.of(rule, given, pack) for given in cases]
    tried = list(mutants(rule, alternatives=alternatives))
    return len(tried), [m for m in tried if not any(scene.notices(m.rule) for scene in scenes)]


@dataclass(frozen=True, slots=True)
class _Scene:
    """A case's observations, with what every other rule makes of them."""

    given: ReadCase
    index: Index
    around: Surroundings
    before: list[Candidate]
    after: list[Candidate]

    @classmethod
    def of(cls, rule: Rule, given: ReadCase, pack: Pack) -> _Scene:
        facts = given.seen.facts
        index = Index(facts.observations)
        around = Surroundings(facts.given, facts.versions, facts.phase_of, facts.placeholders)
        before: list[Candidate] = []
        after: list[Candidate] = []
        side = before
        for other in pack.rules:
            if other.id == rule.id:
                side = after
            elif (candidate := _ask(other, pack.signals[other.id], index, around)) is not None:
                side.append(candidate)
        return cls(given, index, around, before, after)

    def notices(self, mutant: Rule) -> bool:
        """Whether the case fails once the rule is `mutant`."""
        signals = {name: parse_signal(mutant.id, name, raw) for name, raw in mutant.signals.items()}
        own = _ask(mutant, signals, self.index, self.around)
        candidates = [*self.before, *([own] if own is not None else []), *self.after]
        verdict, findings, unknowns, _ = conclude(fold(candidates), self.given.seen.facts)
        return bool(compare(mutant, self.given, Report(SCHEMA_VERSION, verdict, findings, unknowns)))


def _ask(rule: Rule, signals: Mapping[str, Signal], index: Index, around: Surroundings) -> Candidate | None:
    try:
        return diagnose(rule, signals, index, around)
    except Exception:  # as in a triage, where a rule that fails is left out
        return None


def mutants(rule: Rule, *, alternatives: bool = False) -> Iterator[Mutant]:
    """Every rule that `rule` becomes by losing one condition, field, key, step or consequence.

    alternatives: also by losing one kind or value of a list. They are left out as a rule, because a list of codes is
    data, and lint looks up every kind.
    """
    for what, remedy, when in _conditions(_as_list(rule.when), rule.blame):
        yield Mutant(replace(rule, when=when), f"when: {what}", remedy)
    for name, raw in rule.signals.items():
        for what, remedy, smaller in _selectors(raw, alternatives):
            yield Mutant(replace(rule, signals={**rule.signals, name: smaller}), f"signal {name}: {what}", remedy)
    for what, remedy, confidence in _steps(rule.confidence, rule.blame):
        yield Mutant(replace(rule, confidence=confidence), f"confidence: {what}", remedy)
    for i, other in enumerate(rule.explains):
        # The engine puts symptoms under the first cause whether or not it asks for them.
        if other == "symptoms":
            continue
        remedy = f"add a case in which {other} holds too, and name what it `folds` (one case may fold many)"
        if other == "any_order":
            remedy = "add a case with `folds` in which the consequence is printed before this cause"
        yield Mutant(replace(rule, explains=_drop(rule.explains, i)), f"explains: {other}", remedy)
    if rule.phase is not None:
        yield Mutant(replace(rule, phase=None), "phase", f"add `phase: {rule.phase}` to a case that fires")
    if rule.take != "first":
        remedy = "state the ranks, hosts or gpus (`ranks: []` for nobody) in a case whose lines show several"
        yield Mutant(replace(rule, take="first"), f"take: {rule.take}", remedy)
    if rule.last_resort:
        remedy = "add a silent case in which another rule holds as well"
        yield Mutant(replace(rule, last_resort=False), "last_resort", remedy)
    for i, spec in enumerate(rule.next):
        if spec.when is not None:
            remedy = "add a case that states it under `next_contains`"
            yield Mutant(replace(rule, next=_drop(rule.next, i)), f"next: {spec.do!r}", remedy)


_Smaller = Iterator[tuple[str, str, Any]]


def _drop(items: Sequence[Any], i: int) -> list[Any]:
    return [*items[:i], *items[i + 1 :]]


def _as_list(condition: Any) -> list[Any]:
    """The condition as a conjunction, so that its only member can be dropped too."""
    if isinstance(condition, Mapping) and "all" in condition:
        return list(condition["all"])
    return condition if isinstance(condition, list) else [condition]


def _conditions(conditions: list[Any], blame: str) -> _Smaller:
    """A conjunction with one member less, or with one member made smaller."""
    for i, inner in enumerate(conditions):
        # A rule never holds without its blamed signal, so naming that alone adds nothing to test.
        if inner != blame:
            remedy = "add a case in which everything holds but this: silent, or with another confidence"
            yield _show(inner), remedy, _drop(conditions, i)
        for what, remedy, smaller in _condition(inner):
            yield what, remedy, [*conditions[:i], smaller, *conditions[i + 1 :]]


def _condition(condition: Any) -> _Smaller:
    if isinstance(condition, list):
        yield from _members("all", condition)
        return
    if not isinstance(condition, Mapping):
        return
    for operator in ("all", "any", "none"):
        if operator in condition:
            for what, remedy, items in _members(operator, condition[operator]):
                yield what, remedy, {operator: items}
    shown = _show(condition)
    for key, remedy in _PARTS.items():
        # `given` beside `absent` is a part of it, alone it is the condition.
        if key in condition and len(condition) > 1:
            rest = {k: v for k, v in condition.items() if k != key}
            if key != "same" or len(condition[key]) == 1:
                yield f"`{key}` of {shown}", remedy, rest
            else:
                for i, name in enumerate(condition[key]):
                    yield (
                        f"`same` key {name} of {shown}",
                        f"add a case in which only {name} differs between the two",
                        {**condition, "same": _drop(condition[key], i)},
                    )
    if "ordered" in condition:
        pair = {k: v for k, v in condition.items() if k != "ordered"} | {"together": condition["ordered"]}
        yield f"order of {shown}", "add a case in which the second comes first", pair
    if "version" in condition:
        parts = str(condition["range"]).split(",")
        if len(parts) > 1:
            for i, part in enumerate(parts):
                yield (
                    f"{part.strip()} of {shown}",
                    "add a case with a version that only this bound excludes",
                    {**condition, "range": ",".join(_drop(parts, i))},
                )


_PARTS = {
    "same": "add a case in which the two disagree in that key",
    "within": "add a case in which they are further apart than that",
    "at_least": "add a case with fewer than that",
    "distinct": "add a case in which one of them says it as often as that",
    "given": "add a case without that input",
}


def _members(operator: str, items: list[Any]) -> _Smaller:
    """The tree's members with one less; the last one goes with the tree itself."""
    remedies = {
        "all": "add a case in which everything holds but this",
        "any": "add a case that fires in which only this one holds",
        "none": "add a silent case in which only this one holds",
    }
    for i, inner in enumerate(items):
        if len(items) > 1:
            yield f"{_show(inner)} in `{operator}`", remedies[operator], _drop(items, i)
        for what, remedy, smaller in _condition(inner):
            yield what, remedy, [*items[:i], smaller, *items[i + 1 :]]


def _selectors(raw: Mapping[str, Any], alternatives: bool) -> _Smaller:
    """A signal with one field less, or one kind or value of a list."""
    for key, value in raw.items():
        if key in ("line", "has"):
            continue
        if key not in ("event", "fact"):
            yield (
                f"{key}: {_show(value)}",
                "add a case with a neighbour that only this field keeps out",
                {k: v for k, v in raw.items() if k != key},
            )
        if alternatives and isinstance(value, list) and len(value) > 1:
            for i, one in enumerate(value):
                yield (
                    f"{one} of {key}",
                    "add a case in which only this one is seen, or whose `evidence` names its line",
                    {**raw, key: _drop(value, i)},
                )


def _steps(confidence: ConfidenceSpec, blame: str) -> Iterator[tuple[str, str, ConfidenceSpec]]:
    """The confidence with one step less, or with a step that is taken more easily."""

    def change(name: str, steps: list[Adjust]) -> ConfidenceSpec:
        return replace(confidence, higher=steps) if name == "raise" else replace(confidence, lower=steps)

    for name, steps in (("raise", confidence.higher), ("lower", confidence.lower)):
        for i, step in enumerate(steps):
            shown = f"{name} if {_show(step.when)}"
            remedy = "add a case in which it applies, and state the confidence"
            yield shown, remedy, change(name, _drop(steps, i))
            for what, inner_remedy, when in _conditions(_as_list(step.when), blame):
                changed = [*steps[:i], Adjust(when, step.why), *steps[i + 1 :]]
                yield f"{name} if: {what}", f"{inner_remedy}; state the confidence", change(name, changed)
    if confidence.at_most != "confirmed":
        remedy = "add a case in which the steps would lead higher, and state the confidence"
        yield f"at_most: {confidence.at_most}", remedy, replace(confidence, at_most="confirmed")


def _show(condition: Any) -> str:
    """A condition as it stands in the file, on one line."""
    if isinstance(condition, Mapping):
        return "{" + ", ".join(f"{k}: {_show(v)}" for k, v in condition.items()) + "}"
    if isinstance(condition, list):
        return "[" + ", ".join(map(_show, condition)) + "]"
    return str(condition)
