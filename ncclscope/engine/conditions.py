"""The closed set of condition operators; each answers yes, no or unknown.

name                                      the signal occurs
{all: [...]}, {any: [...]}, {none: [...]} trees
{count: name, at_least: 3, distinct: rank}
{together: [a, b], same: [host], within: 60s}     in any order, agreeing in the named keys
{ordered: [a, b], same: [...], within: 10m}       a before b
{absent: name, given: kernel_log}         it does not occur; unknown where no such input was given
{version: nccl, range: "<2.26.5"}         unknown where the input shows no version
{given: kernel_log}                       such an input was given
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ncclscope.clocks import Answer
from ncclscope.engine.match import in_range
from ncclscope.observation import Observation, earlier, identity

__all__ = ["GIVEN", "OPERATORS", "Context", "Outcome", "evaluate", "signals_in"]

OPERATORS = {
    "all": set(),
    "any": set(),
    "none": set(),
    "count": {"at_least", "distinct"},
    "together": {"same", "within"},
    "ordered": {"same", "within"},
    "absent": {"given"},
    "version": {"range"},
    "given": set(),
}
GIVEN = ("kernel_log", "rank_log", "launcher_log", "flight_recorder", "all_ranks")

# Pairs looked at by one `together`; beyond it the first ones decide, and bursts are folded before.
_MAX_PAIRS = 200_000


class Context(msgspec.Struct):
    """What conditions may look at: the rule's signals, what was given, and the versions seen."""

    bound: dict[str, list[Observation]]
    given: frozenset[str]
    versions: Mapping[str, Sequence[str]]
    unknowns: list[str] = msgspec.field(default_factory=list)


class Outcome(msgspec.Struct, frozen=True):
    """The answer, and for pair operators the observations that satisfied them."""

    answer: Answer
    narrowed: Mapping[str, list[Observation]] = msgspec.field(default_factory=dict)


def evaluate(condition: Any, context: Context) -> Outcome:
    """The answer of a condition tree."""
    if isinstance(condition, str):
        return Outcome(Answer.YES if context.bound[condition] else Answer.NO)
    if isinstance(condition, list):
        return _all(condition, context)
    operator = next(name for name in OPERATORS if name in condition)
    return _FUNCTIONS[operator](condition, context)


def _all(conditions: Sequence[Any], context: Context) -> Outcome:
    narrowed: dict[str, list[Observation]] = {}
    answer = Answer.YES
    for inner in conditions:
        outcome = evaluate(inner, context)
        if outcome.answer is Answer.NO:
            return outcome
        if outcome.answer is Answer.UNKNOWN:
            answer = Answer.UNKNOWN
        narrowed.update(outcome.narrowed)
    return Outcome(answer, narrowed)


def _any(condition: Mapping[str, Any], context: Context) -> Outcome:
    outcomes = [evaluate(inner, context) for inner in condition["any"]]
    for wanted in (Answer.YES, Answer.UNKNOWN):
        for outcome in outcomes:
            if outcome.answer is wanted:
                return outcome
    return Outcome(Answer.NO)


def _none(condition: Mapping[str, Any], context: Context) -> Outcome:
    answers = [evaluate(inner, context).answer for inner in condition["none"]]
    if Answer.YES in answers:
        return Outcome(Answer.NO)
    return Outcome(Answer.UNKNOWN if Answer.UNKNOWN in answers else Answer.YES)


def _count(condition: Mapping[str, Any], context: Context) -> Outcome:
    some = context.bound[condition["count"]]
    key = condition.get("distinct")
    number = len({v for o in some for v in identity(o, key)}) if key else sum(o.count for o in some)
    return Outcome(Answer.YES if number >= int(condition.get("at_least", 1)) else Answer.NO)


def _pairs(
    condition: Mapping[str, Any], names: Sequence[str], context: Context, *, in_order: bool
) -> Outcome:
    a_name, b_name = names
    keys = condition.get("same", [])
    within = seconds(condition["within"]) if "within" in condition else None
    best = Answer.NO
    found: dict[Answer, tuple[list[Observation], list[Observation]]] = {
        Answer.YES: ([], []),
        Answer.UNKNOWN: ([], []),
    }
    pairs = itertools.product(context.bound[a_name], context.bound[b_name])
    for a, b in itertools.islice(pairs, _MAX_PAIRS):
        answer = _pair(a, b, keys, within, in_order)
        if answer is Answer.NO:
            continue
        if answer is Answer.YES or best is Answer.NO:
            best = answer
        for item, kept in zip((a, b), found[answer], strict=True):
            if item not in kept:
                kept.append(item)
    if best is Answer.NO:
        return Outcome(best)
    left, right = found[best]
    return Outcome(best, {a_name: left, b_name: right})


def _pair(
    a: Observation, b: Observation, keys: Sequence[str], within: float | None, in_order: bool
) -> Answer:
    if a is b:
        return Answer.NO
    answer = Answer.YES
    for key in keys:
        left, right = identity(a, key), identity(b, key)
        if not left or not right:
            answer = Answer.UNKNOWN
        elif not left & right:
            return Answer.NO
    if in_order:
        order = earlier(a, b)
        if order is Answer.NO:
            return Answer.NO
        if order is Answer.UNKNOWN:
            answer = Answer.UNKNOWN
    if within is not None:
        gap = _gap(a, b)
        if gap is None:
            answer = Answer.UNKNOWN
        elif gap > within:
            return Answer.NO
    return answer


def _gap(a: Observation, b: Observation) -> float | None:
    if a.time is None or b.time is None or (a.time.clock == "boot") != (b.time.clock == "boot"):
        return None
    if a.time.utc is not None and b.time.utc is not None:
        return abs(a.time.utc - b.time.utc)
    if a.time.zone == b.time.zone and a.time.year_known == b.time.year_known:
        return abs(a.time.seconds - b.time.seconds)
    return None


def _together(condition: Mapping[str, Any], context: Context) -> Outcome:
    return _pairs(condition, condition["together"], context, in_order=False)


def _ordered(condition: Mapping[str, Any], context: Context) -> Outcome:
    return _pairs(condition, condition["ordered"], context, in_order=True)


def _absent(condition: Mapping[str, Any], context: Context) -> Outcome:
    if context.bound[condition["absent"]]:
        return Outcome(Answer.NO)
    needed = condition.get("given")
    return Outcome(Answer.YES if needed is None or needed in context.given else Answer.UNKNOWN)


def _version(condition: Mapping[str, Any], context: Context) -> Outcome:
    seen = context.versions.get(condition["version"], ())
    answers = [in_range(version, condition["range"]) for version in seen]
    if True in answers:
        return Outcome(Answer.YES)
    return Outcome(Answer.NO if False in answers else Answer.UNKNOWN)


def _given(condition: Mapping[str, Any], context: Context) -> Outcome:
    return Outcome(Answer.YES if condition["given"] in context.given else Answer.NO)


_FUNCTIONS = {
    "all": lambda condition, context: _all(condition["all"], context),
    "any": _any,
    "none": _none,
    "count": _count,
    "together": _together,
    "ordered": _ordered,
    "absent": _absent,
    "version": _version,
    "given": _given,
}


def seconds(text: str) -> float:
    """Seconds of a duration such as 60s, 10m, 2h."""
    m = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)", str(text).strip())
    if not m:
        raise ValueError(f"not a duration: {text!r}; write for example 60s, 10m or 2h")
    return float(m[1]) * {"s": 1, "m": 60, "h": 3600}[m[2]]


def signals_in(condition: Any) -> list[str]:
    """The names of the signals that a condition tree looks at."""
    if isinstance(condition, str):
        return [condition]
    if isinstance(condition, list):
        return [name for inner in condition for name in signals_in(inner)]
    names: list[str] = []
    for key in ("all", "any", "none"):
        names += signals_in(condition.get(key, []))
    for key in ("count", "absent"):
        if key in condition:
            names.append(condition[key])
    for key in ("together", "ordered"):
        names += condition.get(key, [])
    return names
