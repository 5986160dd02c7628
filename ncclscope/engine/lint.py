"""Checks on rules: what the loader refuses, and what would make a rule weak."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ncclscope.engine.conditions import GIVEN, OPERATORS, seconds, signals_in
from ncclscope.engine.match import in_range
from ncclscope.engine.rule import Rule, parse_signal
from ncclscope.knowledge.causes import CAUSES
from ncclscope.literal import bad_literal

__all__ = ["Problem", "lint"]

_ID = re.compile(r"NS\d{4}")
_EFFECTS = ("read_only", "reruns_job", "changes_environment", "disruptive")


@dataclass(frozen=True, slots=True)
class Problem:
    """error: the rule cannot be used; issue: it loads, but is poor."""

    rule: str
    level: str
    text: str


def lint(rules: Sequence[Rule], kinds: Mapping[str, frozenset[str]]) -> list[Problem]:
    """Every problem of every rule. kinds: event and fact kinds that exist, with their field names."""
    problems = [p for rule in rules for p in _one(rule, kinds)]
    ids = {rule.id for rule in rules}
    for rule in rules:
        for other in rule.explains:
            if other not in ids | set(CAUSES) | {"symptoms", "any_order"}:
                problems.append(Problem(rule.id, "error", f"explains {other!r}: no such rule or category"))
        if rule.id in rule.explains:
            problems.append(Problem(rule.id, "error", "explains itself"))
    for name in sorted({r.name for r in rules if sum(o.name == r.name for o in rules) > 1}):
        problems.append(Problem(name, "error", "two rules share this name; names are unique"))
    return problems


def _one(rule: Rule, kinds: Mapping[str, frozenset[str]]) -> list[Problem]:
    found: list[Problem] = []

    def error(text: str) -> None:
        found.append(Problem(rule.id, "error", text))

    if not _ID.fullmatch(rule.id):
        error(f"the id {rule.id!r} is not NS and four digits")
    if not rule.path.endswith(f"{rule.id}-{rule.name}.yml"):
        error(f"the file is {rule.path}, but should end in {rule.id}-{rule.name}.yml")
    if rule.role == "root" and rule.category not in CAUSES:
        error(f"category {rule.category!r} is none of: {', '.join(CAUSES)}")
    if rule.role == "symptom" and rule.category is not None:
        error("a symptom has no category")
    if rule.role == "root" and not rule.refs:
        error("a cause names its sources under refs")
    if rule.role == "root" and not rule.fix:
        error("a cause says what puts it right under fix")
    if not rule.next:
        error("at least one next check with a command")
    _signals(rule, kinds, error)
    try:
        _conditions(rule, rule.when, error)
        for adjust in (*rule.confidence.higher, *rule.confidence.lower):
            _conditions(rule, adjust.when, error)
    except ValueError as problem:
        error(str(problem))
    _next(rule, error)
    _tests(rule, error)
    return found


def _signals(rule: Rule, kinds: Mapping[str, frozenset[str]], error: Any) -> None:
    used = set(signals_in(rule.when)) | {rule.blame}
    for adjust in (*rule.confidence.higher, *rule.confidence.lower):
        used |= set(signals_in(adjust.when))
    text = " ".join([rule.title, rule.fix, *(n.run + n.do + n.where for n in rule.next), *(str(n.when) for n in rule.next)])
    for name in rule.signals:
        if name not in used and name not in text:
            error(f"the signal {name!r} is never used")
    for name in used - set(rule.signals):
        error(f"the signal {name!r} is not defined")
    for name, raw in rule.signals.items():
        signal = parse_signal(rule.id, name, raw)
        if signal.has is not None:
            reason = bad_literal(signal.has)
            if reason:
                error(f"signal {name}: {reason}")
        for kind in signal.kinds:
            if kind.startswith("rule."):
                continue
            known = [k for k in kinds if k == kind or (kind.endswith("*") and k.startswith(kind[:-1]))]
            if not known:
                error(f"signal {name}: no event or fact of kind {kind!r}")
                continue
            fields = frozenset().union(*(kinds[k] for k in known)) | {"rank", "host", "gpu", "cause", "nature", "gap_s"}
            for field, _, _ in signal.conditions:
                if field not in fields:
                    error(f"signal {name}: {kind} has no field {field!r}; it has {', '.join(sorted(fields))}")


def _conditions(rule: Rule, condition: Any, error: Any) -> None:
    if isinstance(condition, str):
        return
    if isinstance(condition, list):
        for inner in condition:
            _conditions(rule, inner, error)
        return
    if not isinstance(condition, dict):
        error(f"not a condition: {condition!r}")
        return
    operators = [name for name in OPERATORS if name in condition]
    # `absent: x, given: y` names its input with the word of another operator.
    if "absent" in operators:
        operators = ["absent"]
    if len(operators) != 1:
        error(f"one of {', '.join(OPERATORS)} in {condition!r}")
        return
    operator = operators[0]
    unknown = set(condition) - {operator} - OPERATORS[operator]
    if unknown:
        error(f"{operator} takes {', '.join(sorted(OPERATORS[operator])) or 'nothing else'}, not {', '.join(sorted(unknown))}")
    if "within" in condition:
        seconds(condition["within"])
    if operator == "version":
        in_range("1.0", condition["range"])
    if "given" in condition and condition["given"] not in GIVEN:
        error(f"given: {condition['given']!r} is none of {', '.join(GIVEN)}")
    if operator in ("all", "any", "none"):
        _conditions(rule, condition[operator], error)


def _next(rule: Rule, error: Any) -> None:
    order = [_EFFECTS.index(n.effect) for n in rule.next]
    if order != sorted(order):
        error("next checks go from read_only to disruptive; put the least disruptive first")


def _tests(rule: Rule, error: Any) -> None:
    fires = [case for case in rule.tests if not case.expect.silent]
    silent = [case for case in rule.tests if case.expect.silent]
    if not fires:
        error("at least one test in which the rule fires")
    if not silent:
        error("at least one test in which it stays silent, on its nearest neighbour")
    for case in rule.tests:
        if bool(case.given) == bool(case.fixture):
            error(f"test {case.name!r}: give either `given` or `fixture`")
