"""The typed form of a rule file, and how YAML becomes it with positions in every error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, NoReturn

import msgspec
import msgspec.inspect
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
    "line_of",
    "load_rule",
    "parse_signal",
    "rule_files",
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
    """One rule file. role root names a cause (and a category), symptom says that something failed; a last resort speaks
    only where no other rule holds."""

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
    last_resort: bool = False
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
        if not values:
            raise ValueError(f"signal {name}: `{key}` is an empty list; name at least one value")
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
                raise ValueError(f"signal {name}: unknown modifier {modifier!r}; known: {', '.join(MODIFIERS)}")
            if modifier == "re":
                for pattern in values:
                    re.compile(pattern)
            if modifier in ("gt", "gte", "lt", "lte"):
                _number(name, key, values[0])
            if modifier == "known" and values[0] not in ("true", "false"):
                raise ValueError(f"signal {name}: `{key}` is true or false, not {values[0]!r}")
            conditions.append((field, modifier, values))
    if line is not None:
        if has is None:
            raise ValueError(f"signal {name}: `line` needs `has`, the literal to look for first")
        kinds += (f"rule.{rule_id}.{name}",)
    if not kinds:
        raise ValueError(f"signal {name}: needs `event`, `fact` or `line`")
    return Signal(kinds, tuple(conditions), line, has)


def _number(name: str, key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"signal {name}: `{key}` takes a number, not {text!r}") from None


def load_rule(text: str, path: str) -> Rule:
    """The rule in `text`; RuleError names `path`, the line and the remedy."""
    data, lines = _compose(text, path)
    if data is None:
        raise RuleError(path, 1, "the file is empty; `ncclscope rules new` writes a skeleton")
    if not isinstance(data, dict):
        raise RuleError(path, 1, "a rule file holds one mapping; `ncclscope rules new` writes a skeleton")
    try:
        rule = msgspec.convert({**data, "path": path}, Rule, strict=False)
    except msgspec.ValidationError as error:
        where, message = _remedy(str(error), data)
        raise RuleError(path, _nearest(lines, where), message) from None
    for name, raw in rule.signals.items():
        try:
            signal = parse_signal(rule.id, name, raw)
            patterns = [v for _, modifier, values in signal.conditions if modifier == "re" for v in values]
            for pattern in [*patterns, *([signal.line] if signal.line else [])]:
                re.compile(pattern)
        except (ValueError, re.error) as error:
            raise RuleError(path, _nearest(lines, f"signals.{name}"), _of_signal(name, error)) from None
    return rule


def _of_signal(name: str, error: Exception) -> str:
    return f"signal {name}: not a regular expression: {error}" if isinstance(error, re.error) else str(error)


def line_of(text: str, where: str) -> int:
    """The line of `where` in a rule file, a path such as next.0.run; of what holds it when it is not there."""
    return _nearest(_compose(text, "")[1], where)


def _nearest(lines: dict[str, int], where: str) -> int:
    while where:
        if where in lines:
            return lines[where]
        where = where.rpartition(".")[0]
    return 1


def _remedy(problem: str, data: Any) -> tuple[str, str]:
    """Where the decoder's complaint is about, and the complaint with what would have been right."""
    m = re.search(r"^(.*?)(?: - at `\$\.?([^`]*)`)?$", problem)
    text, where = (m[1], m[2] or "") if m else (problem, "")
    where = re.sub(r"\[(\d+|\.\.\.)\]", r".\1", where)
    inside = f" of `{where}`" if where else ""
    kind, value = _expected(where, data)
    known = [f.encode_name for f in msgspec.structs.fields(kind)] if kind and issubclass(kind, Struct) else []
    if m := re.search(r"unknown field `(.*)`", text):
        key = f"{where}.{m[1]}" if where else m[1]
        return key, f"unknown key `{m[1]}`{inside}; known: {', '.join(k for k in known if k != 'path')}"
    if m := re.search(r"missing required field `(.*)`", text):
        return where, f"the key `{m[1]}`{inside} is missing"
    if text.startswith("Invalid enum value"):
        return where, f"`{where}`: {value!r} is none of: {', '.join(_choices(where))}"
    plain = text.replace("`object`", "a mapping").replace("`array`", "a list").replace("`str`", "text")
    plain = plain.replace("`null`", "nothing").replace("`int`", "a whole number").replace("`bool`", "true or false")
    return where, f"`{where}`: {plain[:1].lower()}{plain[1:]}"


def _expected(where: str, data: Any) -> tuple[Any, Any]:
    """The struct at `where`, if it is one, and the value that stands there."""
    kind: Any = msgspec.inspect.type_info(Rule)
    for part in where.split(".") if where else ():
        kind = _inner(kind, part)
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and part.isdigit():
            data = data[int(part)]
    return (kind.cls if isinstance(kind, msgspec.inspect.StructType) else None), data


def _choices(where: str) -> list[str]:
    kind: Any = msgspec.inspect.type_info(Rule)
    for part in where.split("."):
        kind = _inner(kind, part)
    return [str(v) for v in kind.values] if isinstance(kind, msgspec.inspect.LiteralType) else []


def _inner(kind: Any, part: str) -> Any:
    """The type of one step into `kind`."""
    if isinstance(kind, msgspec.inspect.StructType):
        kind = next((f.type for f in kind.fields if f.encode_name == part), None)
    elif isinstance(kind, msgspec.inspect.ListType):
        kind = kind.item_type
    elif isinstance(kind, msgspec.inspect.DictType):
        kind = kind.value_type
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next((t for t in kind.types if not isinstance(t, msgspec.inspect.NoneType)), None)
    return kind


_YAML_HINT = "look on this line and above for a quote or bracket left open, or a text with `: ` that needs quotes"


def _compose(text: str, path: str) -> tuple[Any, dict[str, int]]:
    """YAML with every scalar as text (0000:43:00.0 is no number, `no` no truth value) and repeated keys refused."""
    import yaml

    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise RuleError(path, mark.line + 1 if mark else 1, f"not valid YAML: {what}; {_YAML_HINT}") from None
    lines: dict[str, int] = {}
    open_nodes: list[Any] = []

    def refuse(item: Any, message: str) -> NoReturn:
        raise RuleError(path, item.start_mark.line + 1, message)

    def build(item: Any, where: str) -> Any:
        lines.setdefault(where, item.start_mark.line + 1)
        if isinstance(item, yaml.ScalarNode):
            plain_null = item.style is None and item.value in ("", "null", "~")
            return None if plain_null else item.value
        if item in open_nodes:
            refuse(item, "an alias stands inside its own anchor; write the value out")
        open_nodes.append(item)
        out: Any
        if isinstance(item, yaml.MappingNode):
            out = {}
            for key_node, value_node in item.value:
                key = key_node.value
                if not isinstance(key, str):
                    refuse(key_node, "a key is plain text")
                if key in out:
                    refuse(key_node, f"the key `{key}` stands twice; keep one")
                inner = f"{where}.{key}" if where else key
                lines[inner] = key_node.start_mark.line + 1
                out[key] = build(value_node, inner)
        else:
            out = [build(child, f"{where}.{i}" if where else str(i)) for i, child in enumerate(item.value)]
        open_nodes.pop()
        return out

    return (build(node, "") if node is not None else None), lines


def rule_files(directory: Path) -> list[Path]:
    """Every rule file below `directory`, in a fixed order."""
    return sorted(p for p in directory.rglob("*.yml") if p.is_file())
