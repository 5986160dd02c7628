"""The schemas hold what they describe: all rules, broken rules, and real reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from support import CASES

from ncclscope.engine.conditions import OPERATORS
from ncclscope.engine.pack import Pack, shipped_rules
from ncclscope.engine.rule import rule_files
from ncclscope.pipeline import analyze
from ncclscope.report import json_schema, to_json
from ncclscope.rulesschema import rule_schema

BAD = Path(__file__).parent.parent / "fixtures" / "_bad_rules"


class _Core(yaml.SafeLoader):
    """YAML 1.2 as editors read it: `on` and `off` are texts, dates and clock times too."""


_Core.yaml_implicit_resolvers = {
    first: [(tag, regex) for tag, regex in some if tag.rpartition(":")[2] in ("null", "int", "float", "bool")]
    for first, some in yaml.SafeLoader.yaml_implicit_resolvers.items()
    if first not in "yYnNoO"
}


def read_yaml(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_Core)  # noqa: S506 - derived from the safe one


@pytest.fixture(scope="module")
def of_rules() -> Draft202012Validator:
    schema = rule_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture(scope="module")
def of_reports() -> Draft202012Validator:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("path", rule_files(shipped_rules()), ids=lambda p: p.stem)
def test_every_shipped_rule_fits_the_schema(path: Path, of_rules: Draft202012Validator) -> None:
    """An editor that knows the schema underlines nothing in the rules that ship."""
    assert [e.message for e in of_rules.iter_errors(read_yaml(path))] == []


@pytest.mark.parametrize(
    "name",
    """unknown-key unknown-key-inside missing-key missing-key-inside wrong-type unknown-role unknown-confidence
    unknown-effect unknown-event-kind unknown-modifier literal-missing literal-too-short signal-without-kind
    signal-not-a-mapping unknown-operator two-operators operator-without-list pair-of-one unknown-argument bad-count
    bad-duration version-without-range version-of-an-unknown-program unknown-input condition-of-a-step
    unknown-category symptom-with-category explains-unknown-name bad-id""".split(),
)
def test_an_editor_underlines_a_broken_rule(name: str, of_rules: Draft202012Validator) -> None:
    """What the loader and lint refuse by shape alone, the schema refuses too."""
    path = BAD / f"{name}.yml"
    assert list(of_rules.iter_errors(read_yaml(path)))


def test_keys_conditions_and_signals_are_described() -> None:
    """An editor shows a text for every key of a rule and every operator."""
    schema = rule_schema()
    assert [k for k, v in schema["properties"].items() if not v.get("description")] == []
    described = {s["required"][0] for s in schema["$defs"]["Condition"]["anyOf"] if s["type"] == "object"}
    assert described == set(OPERATORS)
    assert "path" not in schema["properties"]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_real_reports_fit_the_schema(case: Any, of_reports: Draft202012Validator, pack: Pack) -> None:
    """The JSON that a program reads is what the published schema says."""
    report = json.loads(to_json(analyze(case.paths, pack=pack)))
    assert [e.message for e in of_reports.iter_errors(report)] == []


def test_a_report_with_a_wrong_word_does_not_fit(of_reports: Draft202012Validator) -> None:
    """The schema is no empty promise: an unknown verdict or a missing field is refused."""
    good = {"schema_version": "1", "verdict": "no_failure", "findings": []}
    assert of_reports.is_valid(good)
    assert not of_reports.is_valid({**good, "verdict": "fine"})
    assert not of_reports.is_valid({"schema_version": "1", "findings": []})
