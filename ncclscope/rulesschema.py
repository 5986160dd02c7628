"""The JSON Schema of rule files, for editors: from the types that load them, with the parts that those leave open."""

from __future__ import annotations

from typing import Any

import msgspec

from ncclscope.engine.conditions import GIVEN, OPERATORS
from ncclscope.engine.lint import VERSIONS
from ncclscope.engine.rule import MODIFIERS, Rule
from ncclscope.kinds import kinds
from ncclscope.knowledge.causes import CAUSES

__all__ = ["rule_schema"]

_NAMES: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_SIGNAL_NAME: dict[str, Any] = {"type": "string", "description": "A name from `signals`."}
_PAIR: dict[str, Any] = {"type": "array", "items": _SIGNAL_NAME, "minItems": 2, "maxItems": 2}
_CONDITIONS: dict[str, Any] = {"type": "array", "items": {"$ref": "#/$defs/Condition"}, "minItems": 1}

_KEYS = {
    "schema": "Version of this format.",
    "id": "Permanent code, never used again.",
    "name": "Permanent slug; the file is called <id>-<name>.yml.",
    "title": "One line for people. {field} is filled from what was blamed, {signal.field} from another signal, "
    "{field|text} has a default, {field?text {}} stands only where the value is known.",
    "role": "root names a cause and has a category; symptom says that something failed.",
    "category": "The class of causes that a root belongs to; `ncclscope explain <category>` describes it.",
    "status": "How settled the rule is.",
    "since": "First release that has it.",
    "summary": "What was seen.",
    "cause": "What it most likely means.",
    "not_proof_of": "What it must not be read as; may hold {field} as in the title.",
    "signals": "Named selectors over events and facts; each is used somewhere.",
    "when": "The condition under which the rule holds.",
    "blame": "The signal whose observations name the culprit; the rule does not hold without one.",
    "take": "Which of them are blamed: the first and those that came with it, all, or nobody.",
    "last_resort": "Whether the rule counts only where no other rule holds.",
    "phase": "The phase of the job, where the rule knows it better than the time of its lines.",
    "confidence": "How sure the rule is, and what makes it surer or less sure by one step each.",
    "explains": "Consequences: ids of rules, categories, `symptoms`, and `any_order` where these may be printed first.",
    "next": "Checks in order, from read_only to disruptive.",
    "fix": "What puts it right.",
    "refs": "Where this is known from.",
    "aliases": "Former names.",
    "tests": "Cases: at least one in which the rule fires and one in which its nearest neighbour stays silent.",
}

_OPERATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "all": ("Every one of these holds.", _CONDITIONS),
    "any": ("At least one of these holds.", _CONDITIONS),
    "none": ("None of these holds.", _CONDITIONS),
    "count": ("The signal occurs so often, or with so many different values of a key.", _SIGNAL_NAME),
    "together": ("Both occur, in any order, agreeing in the keys of `same` and as close as `within`.", _PAIR),
    "ordered": ("Both occur, the first before the second.", _PAIR),
    "absent": ("The signal does not occur; unknown where no such input was `given`.", _SIGNAL_NAME),
    "version": ("A version in the range was seen; unknown where the input shows none.", {"enum": [*VERSIONS]}),
    "given": ("Such an input was given.", {"enum": [*GIVEN]}),
}

_ARGUMENTS: dict[str, dict[str, Any]] = {
    "same": {**_NAMES, "description": "rank, host, gpu, pid, source or a field that must be equal."},
    "within": {"type": "string", "pattern": r"^\d+(\.\d+)?\s*[smh]$", "description": "Such as 60s, 10m, 2h."},
    "at_least": {"type": "integer", "minimum": 1},
    "distinct": {"type": "string", "description": "Count different values of this key: rank, host, a field."},
    "range": {"type": "string", "description": "Such as '>=2.26,<2.26.5'."},
    "given": {"enum": [*GIVEN], "description": "The input in which it would be seen."},
}


def rule_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of one rule file."""
    (whole,), parts = msgspec.json.schema_components([Rule], ref_template="#/$defs/{name}")
    rule = parts.pop("Rule")
    del whole
    keys: dict[str, Any] = rule["properties"]
    # Filled in by the loader.
    del keys["path"]
    for key, text in _KEYS.items():
        keys[key] = {**keys[key], "description": text}
    keys["schema"] |= {"const": 1}
    keys["id"] |= {"pattern": r"^NS\d{4}$"}
    keys["name"] |= {"pattern": r"^[a-z0-9]+(-[a-z0-9]+)*$"}
    keys["category"] = {"enum": [*CAUSES], "description": _KEYS["category"]}
    keys["signals"] = {
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/Signal"},
        "description": _KEYS["signals"],
    }
    keys["when"] = {"$ref": "#/$defs/Condition", "description": _KEYS["when"]}
    keys["explains"]["items"] = {
        "anyOf": [{"enum": ["symptoms", "any_order", *CAUSES]}, {"pattern": r"^NS\d{4}$"}],
    }
    # Plain numbers are numbers to an editor and texts to the loader.
    parts["Case"]["properties"]["options"]["additionalProperties"] = {"type": ["string", "number"]}
    for name in ("Adjust", "NextSpec"):
        parts[name]["properties"]["if"] = {"$ref": "#/$defs/Condition"}
    parts["Signal"] = _signal()
    parts["Condition"] = _condition()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ncclscope rule",
        **{k: v for k, v in rule.items() if k != "title"},
        "if": {"properties": {"role": {"const": "root"}}},
        "then": {"required": ["category"]},
        "else": {"not": {"required": ["category"]}},
        "$defs": {name: _tidy(parts[name]) for name in sorted(parts)},
    }


def _tidy(part: dict[str, Any]) -> dict[str, Any]:
    """A docstring's line breaks are of no use to an editor."""
    if "description" in part:
        part["description"] = " ".join(part["description"].split())
    return part


def _signal() -> dict[str, Any]:
    scalar = {"type": ["string", "number", "boolean"]}
    kind = {"anyOf": [{"enum": [*kinds()]}, {"type": "string", "pattern": r"\*$"}]}
    one_or_many = {"anyOf": [kind, {"type": "array", "items": kind, "minItems": 1}]}
    modifiers = "|".join(MODIFIERS)
    return {
        "type": "object",
        "description": "A selector: event or fact kinds (or an expression of its own) and conditions on fields, all of "
        "which must hold. `field: value`, `field|modifier: value`; a list means any of. Modifiers: "
        f"{', '.join(MODIFIERS)}.",
        "properties": {
            "event": {**one_or_many, "description": "Kinds of parsed lines; `*` at the end matches any ending."},
            "fact": {**one_or_many, "description": "Kinds of facts derived over ranks and hosts."},
            "line": {
                "type": "string",
                "description": "A regular expression of this rule's own; named groups become fields.",
            },
            "has": {
                "type": "string",
                "minLength": 4,
                "description": "A literal that stands in every line which `line` matches; looked for first.",
            },
        },
        "patternProperties": {
            rf"^(?!(event|fact|line|has)$)[a-z_0-9]+(\|({modifiers}))?$": {
                "anyOf": [scalar, {"type": "array", "items": scalar, "minItems": 1}]
            }
        },
        "additionalProperties": False,
        "anyOf": [{"required": ["event"]}, {"required": ["fact"]}, {"required": ["line", "has"]}],
    }


def _condition() -> dict[str, Any]:
    operators = [
        {
            "type": "object",
            "description": text,
            "properties": {name: shape, **{a: _ARGUMENTS[a] for a in sorted(OPERATORS[name])}},
            "required": [name, "range"] if name == "version" else [name],
            "additionalProperties": False,
        }
        for name, (text, shape) in _OPERATORS.items()
    ]
    return {
        "description": "Answered with yes, no or unknown; unknown costs one step of confidence.",
        "anyOf": [
            {"type": "string", "description": "The signal of this name occurs."},
            {**_CONDITIONS, "description": "Every one of these holds."},
            *operators,
        ],
    }
