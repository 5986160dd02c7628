"""Checks on rules: what would fail when the rule is asked, and what would make it weak."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ncclscope.engine.conditions import GIVEN, OPERATORS, seconds, signals_in
from ncclscope.engine.match import in_range
from ncclscope.engine.rule import Rule, line_of, parse_signal
from ncclscope.knowledge.causes import CAUSES
from ncclscope.literal import bad_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["VERSIONS", "Problem", "lint", "unusable"]

# Programs whose versions the facts collect.
VERSIONS = ("nccl", "nccl_cuda", "torch", "driver")

_ID = re.compile(r"NS\d{4}")
# Texts that `rules new` leaves to be written begin with it.
_PLACEHOLDER = "TODO"
_EFFECTS = ("read_only", "reruns_job", "changes_environment", "disruptive")
# What every observation may have, whatever its kind.
_COMMON_FIELDS = frozenset({"rank", "host", "gpu", "cause", "nature", "gap_s"})


class Problem(NamedTuple):
    """level "error": the rule must not ship; "issue": it works, but is poor. where: the key, such as next.0.run."""

    rule: str
    level: str
    text: str
    path: str = ""
    where: str = ""

    def at(self, base: Path) -> str:
        """The problem on one line behind its file (below `base`) and line."""
        file = base / self.path
        try:
            line = line_of(file.read_text(encoding="utf-8"), self.where)
        except (OSError, ValueError):
            line = 1
        return f"{file}:{line}: {self.rule}: {self.text}"


def lint(
    rules: Sequence[Rule], kinds: Mapping[str, frozenset[str]], among: Sequence[Rule] | None = None
) -> list[Problem]:
    """Every problem of every rule. kinds: event and fact kinds that exist, with their field names; among: all rules
    that `rules` work with, when these are not all."""
    everyone = list(among if among is not None else rules)
    problems = [p for rule in rules for p in [*unusable(rule, kinds), *_poor(rule)]]
    for rule in rules:
        problems += [Problem(rule.id, "error", text, rule.path, where) for text, where in _explains(rule, everyone)]
        twins = [r.path for r in everyone if r.name == rule.name and r.id != rule.id]
        if twins:
            text = f"the name {rule.name} is taken by {twins[0]}; names are unique"
            problems.append(Problem(rule.id, "error", text, rule.path, "name"))
    return problems + _cycles(rules)


def unusable(rule: Rule, kinds: Mapping[str, frozenset[str]]) -> list[Problem]:
    """What would go wrong, or never hold, when the rule is asked."""
    found: list[Problem] = []

    def error(text: str, where: str) -> None:
        found.append(Problem(rule.id, "error", text, rule.path, where))

    conditions = [("when", rule.when)]
    for key, steps in (("raise", rule.confidence.higher), ("lower", rule.confidence.lower)):
        conditions += [(f"confidence.{key}.{i}.if", step.when) for i, step in enumerate(steps)]
    conditions += [(f"next.{i}.if", n.when) for i, n in enumerate(rule.next) if n.when is not None]
    sound = [(where, signals_in(c)) for where, c in conditions if _condition(c, where, error)]
    uses = [("blame", [rule.blame]), *sound]
    for where, names in uses:
        for name in names:
            if name not in rule.signals:
                error(f"the signal {name!r} is not defined; defined: {', '.join(rule.signals) or 'none'}", where)
    for name, raw in rule.signals.items():
        _signal(rule, name, raw, kinds, error)
    filled = [rule.title, rule.fix, rule.not_proof_of, *(t for n in rule.next for t in (n.run, n.do, n.where))]
    used = {name for _, names in uses for name in names}
    for name in rule.signals if len(sound) == len(conditions) else ():
        if name not in used and not any(f"{{{name}." in text for text in filled):
            error(f"the signal {name!r} is never used; use it or drop it", f"signals.{name}")
    return found


def _signal(
    rule: Rule, name: str, raw: Any, kinds: Mapping[str, frozenset[str]], error: Callable[[str, str], None]
) -> None:
    signal = parse_signal(rule.id, name, raw)
    where = f"signals.{name}"
    own: frozenset[str] = frozenset()
    if signal.line is not None:
        own = _raw_pattern(name, signal.line, error)
    if signal.has is not None:
        reason = bad_literal(signal.has)
        if reason:
            error(f"signal {name}: `has`: {reason}", f"{where}.has")
        if signal.line is None:
            error(f"signal {name}: `has` goes with `line`", f"{where}.has")
    for kind in signal.kinds:
        if kind.startswith("rule."):
            fields = own
        else:
            known = [k for k in kinds if k == kind or (kind.endswith("*") and k.startswith(kind[:-1]))]
            if not known:
                error(f"signal {name}: no event or fact of kind {kind!r}{_close(kind, kinds, 'events')}", where)
                continue
            fields = frozenset[str]().union(*(kinds[k] for k in known))
        fields |= _COMMON_FIELDS
        for field, modifier, _ in signal.conditions:
            if field not in fields:
                key = field if modifier == "is" else f"{field}|{modifier}"
                known_fields = ", ".join(sorted(fields))
                error(f"signal {name}: {kind} has no field {field!r}; it has {known_fields}", f"{where}.{key}")


def _close(wrong: str, known: Iterable[str], command: str) -> str:
    """The nearest known word, or else the command that shows them all."""
    near = difflib.get_close_matches(wrong, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; `ncclscope {command}` shows what there is"


def _raw_pattern(name: str, pattern: str, error: Callable[[str, str], None]) -> frozenset[str]:
    """The named groups of a rule's own expression."""
    where = f"signals.{name}.line"
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        error(f"signal {name}: not a regular expression: {problem}", where)
        return frozenset()
    if compiled.search(""):
        error(f"signal {name}: the expression matches the empty line", where)
    return frozenset(compiled.groupindex)


def _condition(condition: Any, where: str, error: Callable[[str, str], None]) -> bool:
    """Checks the shape of a condition tree; False when its signals cannot be told."""
    if isinstance(condition, str):
        return True
    if isinstance(condition, list):
        answers = [_condition(inner, f"{where}.{i}", error) for i, inner in enumerate(condition)]
        return all(answers)
    if not isinstance(condition, dict):
        error(f"not a condition: {condition!r}; name a signal or write one of {', '.join(OPERATORS)}", where)
        return False
    operators = [name for name in OPERATORS if name in condition]
    # `absent: x, given: y` names its input with the word of another operator.
    if "absent" in operators:
        operators = ["absent"]
    if len(operators) != 1:
        error(f"give exactly one of {', '.join(OPERATORS)}, not {', '.join(condition) or 'nothing'}", where)
        return False
    operator = operators[0]
    problems = list(_arguments(operator, condition))
    for text in problems:
        error(text, where)
    value = condition[operator]
    if operator in ("all", "any", "none") and not problems:
        return _condition(value, f"{where}.{operator}", error)
    return not problems


def _arguments(operator: str, condition: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the keys and values of one operator."""
    value = condition[operator]
    unknown = sorted(set(condition) - {operator} - OPERATORS[operator])
    if unknown:
        takes = ", ".join(sorted(OPERATORS[operator])) or "nothing else"
        yield f"`{operator}` takes {takes}, not {', '.join(unknown)}"
    if operator in ("all", "any", "none") and not (isinstance(value, list) and value):
        yield f"`{operator}` takes a list of conditions"
    if operator in ("together", "ordered") and not (_names(value) and len(value) == 2):
        yield f"`{operator}` takes a list of two signals"
    if operator in ("count", "absent") and not isinstance(value, str):
        yield f"`{operator}` takes the name of one signal"
    if "same" in condition and not _names(condition["same"]):
        yield "`same` takes a list of keys, such as [host, gpu]"
    if "at_least" in condition and not str(condition["at_least"]).isdigit():
        yield f"`at_least` takes a whole number, not {condition['at_least']!r}"
    if "distinct" in condition and not isinstance(condition["distinct"], str):
        yield "`distinct` takes one key, such as rank"
    if operator == "version" and value not in VERSIONS:
        yield f"`version`: {value!r} is none of {', '.join(VERSIONS)}"
    if operator == "version" and "range" not in condition:
        yield "`version` needs `range`, such as '>=2.26,<2.26.5'"
    if "given" in condition and condition["given"] not in GIVEN:
        yield f"`given`: {condition['given']!r} is none of {', '.join(GIVEN)}"
    try:
        if "within" in condition:
            seconds(condition["within"])
        if "range" in condition:
            in_range("1.0", str(condition["range"]))
    except ValueError as problem:
        yield str(problem)


def _names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) for v in value)


def _poor(rule: Rule) -> list[Problem]:
    """What a rule must have to ship, though it would run without."""
    found: list[Problem] = []

    def error(text: str, where: str) -> None:
        found.append(Problem(rule.id, "error", text, rule.path, where))

    if not _ID.fullmatch(rule.id):
        error(f"the id {rule.id!r} is not NS and four digits", "id")
    if not rule.path.endswith(f"{rule.id}-{rule.name}.yml"):
        error(f"the file is {rule.path}, but should end in {rule.id}-{rule.name}.yml", "name")
    if rule.role == "root" and rule.category not in CAUSES:
        error(f"no category {rule.category!r}{_close(str(rule.category), CAUSES, 'rules list')}", "category")
    if rule.role == "symptom" and rule.category is not None:
        error("a symptom has no category", "category")
    if rule.role == "root" and not rule.refs:
        error("a cause names its sources under refs", "refs")
    if rule.role == "root" and not rule.fix:
        error("a cause says what puts it right under fix", "fix")
    if not rule.next:
        error("at least one next check with a command", "next")
    order = [_EFFECTS.index(n.effect) for n in rule.next]
    if order != sorted(order):
        error("next checks go from read_only to disruptive; put the least disruptive first", "next")
    if not any(not case.expect.silent for case in rule.tests):
        error("at least one test in which the rule fires", "tests")
    if not any(case.expect.silent for case in rule.tests):
        error("at least one test in which it stays silent, on its nearest neighbour", "tests")
    for i, case in enumerate(rule.tests):
        if bool(case.given) == bool(case.fixture):
            error(f"test {case.name!r}: give either `given` or `fixture`", f"tests.{i}")
    for where, text in _texts(msgspec.to_builtins(rule)):
        if text.startswith(_PLACEHOLDER):
            error(f"left as the skeleton has it: {text.strip()!r}; write what it asks for", where)
    return found


def _texts(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a rule, behind its key."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(inner, f"{where}.{key}" if where else str(key))


def _explains(rule: Rule, everyone: Sequence[Rule]) -> Iterator[tuple[str, str]]:
    known = {r.id for r in everyone} | set(CAUSES) | {"symptoms", "any_order"}
    for i, other in enumerate(rule.explains):
        if other not in known:
            yield f"explains {other!r}: no such rule or category", f"explains.{i}"
        if other == rule.id:
            yield "a rule does not explain itself", f"explains.{i}"
        if other in rule.explains[:i]:
            yield f"explains {other!r} twice", f"explains.{i}"


def _cycles(rules: Sequence[Rule]) -> list[Problem]:
    """Rules that name each other as consequences, by id.

    Categories may well explain each other (a GPU that hangs can end a rank, and the other way round): there the clocks
    decide which came first. A rule named by its id is one certain consequence, so a ring of those is a contradiction.
    """
    named = {r.id: [o for o in r.explains if o != r.id] for r in rules}
    found: list[Problem] = []

    done: set[str] = set()

    def walk(at: str, trail: list[str]) -> None:
        for other in named.get(at, ()):
            if other in trail:
                ring = trail[trail.index(other) :]
                text = f"explains in a ring: {' -> '.join([*ring, other])}; decide which one is the cause"
                path = next(r.path for r in rules if r.id == other)
                found.append(Problem(other, "error", text, path, "explains"))
            elif other in named and other not in done:
                walk(other, [*trail, other])
        done.add(at)

    for rule in rules:
        if rule.id not in done:
            walk(rule.id, [rule.id])
    return found
