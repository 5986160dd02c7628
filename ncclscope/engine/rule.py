"""The typed form of a rule file, and how YAML becomes it with positions in every error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ncclscope.errors import NcclscopeError
from ncclscope.report import Confidence, Effect, Phase, Ref

__all__ = [
    "Adjust",
    "Case",
    "ConfidenceSpec",
    "Expect",
    "NextSpec",
    "Rule",
    "RuleError",
    "Signal",
    "load_rule",
    "parse_signal",
]


class RuleError(NcclscopeError):
    """A rule that cannot be used: says the file, the line and what would have been right."""

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path, self.line, self.message = path, line, message


class Adjust(Struct, frozen=True, forbid_unknown_fields=True):
    """One step up or down of the confidence, with the reason the report gives."""

    when: Any = msgspec.field(name="if")
    why: str


class ConfidenceSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """base, and named reasons to leave it by one step each."""

    base: Confidence
    higher: list[Adjust] = msgspec.field(name="raise", default_factory=list)
    lower: list[Adjust] = []
    at_most: Confidence = "confirmed"


class NextSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A next check; placeholders in braces are filled from the finding."""

    do: str
    run: str
    where: str
    effect: Effect
    when: Any = msgspec.field(name="if", default=None)


class Expect(Struct, frozen=True, forbid_unknown_fields=True):
    """What a test case must give."""

    silent: bool = False
    confidence: Confidence | None = None
    ranks: list[int] | None = None
    hosts: list[str] | None = None
    gpus: list[str] | None = None
    phase: Phase | None = None
    title: str | None = None
    evidence: list[str] = []
    folds: list[str] = []
    folded_under: str | None = None
    first: bool = False
    next_contains: str | None = None
    why_contains: str | None = None
    unknowns_contain: str | None = None


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    """A test of the rule: inputs by file name and what must come out."""

    name: str
    expect: Expect
    given: dict[str, str] = {}
    fixture: str | None = None
    options: dict[str, str] = {}


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """One rule file. role root names a cause (and a category), symptom says that something failed."""

    id: str
    name: str
    title: str
    role: Literal["root", "symptom"]
    since: str
    summary: str
    cause: str
    not_proof_of: str
    signals: dict[str, Any]
    when: Any
    blame: str
    confidence: ConfidenceSpec
    next: list[NextSpec]
    fix: str
    refs: list[Ref]
    tests: list[Case] = []
    schema: int = 1
    category: str | None = None
    status: Literal["experimental", "stable", "deprecated"] = "stable"
    take: Literal["first", "all", "none"] = "first"
    phase: Phase | None = None
    explains: list[str] = []
    aliases: list[str] = []
    path: str = ""


class Signal(Struct, frozen=True):
    """A named selector: kinds (with `*` at the end) and conditions on fields."""

    kinds: tuple[str, ...]
    conditions: tuple[tuple[str, str, tuple[str, ...]], ...]
    line: str | None = None
    has: str | None = None


MODIFIERS = ("is", "not", "re", "contains", "gt", "gte", "lt", "lte", "known")


def parse_signal(rule_id: str, name: str, raw: Any) -> Signal:
    """A selector from its YAML mapping; raises ValueError with what would have been right."""
    if not isinstance(raw, dict):
        raise ValueError(f"signal {name}: give a mapping such as {{event: torch.oom}}")
    kinds: tuple[str, ...] = ()
    line = has = None
    conditions: list[tuple[str, str, tuple[str, ...]]] = []
    for key, value in raw.items():
        values = tuple(str(v) for v in value) if isinstance(value, list) else (str(value),)
        if key in ("event", "fact"):
            kinds += values
        elif key == "line":
            line = values[0]
        elif key == "has":
            has = values[0]
        else:
            field, _, modifier = key.partition("|")
            modifier = modifier or "is"
            if modifier not in MODIFIERS:
                raise ValueError(
                    f"signal {name}: unknown modifier {modifier!r}; known: {', '.join(MODIFIERS)}"
                )
            if modifier == "re":
                re.compile(values[0])
            conditions.append((field, modifier, values))
    if line is not None:
        if has is None:
            raise ValueError(f"signal {name}: `line` needs `has`, the literal to look for first")
        kinds += (f"rule.{rule_id}.{name}",)
    if not kinds:
        raise ValueError(f"signal {name}: needs `event`, `fact` or `line`")
    return Signal(kinds, tuple(conditions), line, has)


def load_rule(text: str, path: str) -> Rule:
    """The rule in `text`; RuleError names `path`, the line and the remedy."""
    data, lines = _compose(text, path)
    if not isinstance(data, dict):
        raise RuleError(path, 1, "a rule file holds one mapping; `ncclscope rules new` writes a skeleton")
    try:
        rule = msgspec.convert({**data, "path": path}, Rule, strict=False)
    except msgspec.ValidationError as error:
        where = re.search(r"at `\$\.?([^`]*)`", str(error))
        raise RuleError(path, _line_of(lines, where[1] if where else ""), str(error)) from None
    for name, raw in rule.signals.items():
        try:
            parse_signal(rule.id, name, raw)
        except (ValueError, re.error) as error:
            raise RuleError(path, _line_of(lines, f"signals.{name}"), str(error)) from None
    return rule


def _line_of(lines: dict[str, int], where: str) -> int:
    where = re.sub(r"\[(\d+|\.\.\.)\]", r".\1", where)
    while where:
        if where in lines:
            return lines[where]
        where = where.rpartition(".")[0]
    return 1


def _compose(text: str, path: str) -> tuple[Any, dict[str, int]]:
    """YAML with every scalar as text (0000:43:00.0 is no number, `no` no truth value) and repeated keys refused."""
    import yaml

    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise RuleError(path, mark.line + 1 if mark else 1, f"not valid YAML: {error}") from None
    lines: dict[str, int] = {}

    def build(item: Any, where: str) -> Any:
        lines[where] = item.start_mark.line + 1
        if isinstance(item, yaml.MappingNode):
            out: dict[str, Any] = {}
            for key_node, value_node in item.value:
                key = key_node.value
                inner = f"{where}.{key}" if where else key
                if key in out:
                    raise RuleError(
                        path, key_node.start_mark.line + 1, f"the key `{key}` stands twice; keep one"
                    )
                out[key] = build(value_node, inner)
                lines[inner] = key_node.start_mark.line + 1
            return out
        if isinstance(item, yaml.SequenceNode):
            return [build(child, f"{where}.{i}" if where else str(i)) for i, child in enumerate(item.value)]
        plain_null = item.style is None and item.value in ("", "null", "~")
        return None if plain_null else item.value

    return (build(node, "") if node is not None else None), lines


def rule_files(directory: Path) -> list[Path]:
    """Every rule file below `directory`, in a fixed order."""
    return sorted(p for p in directory.rglob("*.yml") if p.is_file())
