"""The shipped rules: their own cases, their lint, and the prepared form that is never stale."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sample import RULE, other_rule, write_rule
from support import CASES, options

from ncclscope.clocks import Answer
from ncclscope.engine import pack as pack_module
from ncclscope.engine.conditions import Context, evaluate
from ncclscope.engine.lint import VERSIONS, lint
from ncclscope.engine.match import Index, select
from ncclscope.engine.pack import Pack, load_pack, prepare, shipped_rules
from ncclscope.engine.rule import Rule, load_rule, rule_files
from ncclscope.kinds import kinds
from ncclscope.pipeline import read
from ncclscope.selftest import run_case

FIXTURES = Path(__file__).parent.parent / "fixtures"


def shipped() -> list[Rule]:
    root = shipped_rules()
    return [load_rule(p.read_text(encoding="utf-8"), p.relative_to(root).as_posix()) for p in rule_files(root)]


RULES = shipped()


@pytest.mark.parametrize(
    ("rule", "number"),
    [pytest.param(rule, i, id=f"{rule.id}: {case.name}") for rule in RULES for i, case in enumerate(rule.tests)],
)
def test_a_case_of_a_rule_gives_what_it_must(rule: Rule, number: int, pack: Pack) -> None:
    """Through the readers, the facts and the whole pack."""
    assert run_case(rule, rule.tests[number], pack, FIXTURES).problems == ()


def test_no_shipped_rule_has_a_lint_problem() -> None:
    """Errors and issues alike."""
    assert [f"{p.path}: {p.text}" for p in lint(RULES, kinds())] == []


def sample(rule_id: str, name: str, explains: str) -> Rule:
    text = other_rule(rule_id, name, RULE.replace("explains: [symptoms]", f"explains: {explains}"))
    return load_rule(text, f"{rule_id}-{name}.yml")


def test_rules_that_name_each_other_by_id_are_a_contradiction() -> None:
    """A ring is told once, at one of its rules."""
    ring = [
        sample("NS9901", "a", "[NS9902]"),
        sample("NS9902", "b", "[NS9903]"),
        sample("NS9903", "c", "[NS9901]"),
        sample("NS9904", "d", "[NS9901]"),
    ]
    (problem,) = lint(ring, {})
    assert problem.text == "explains in a ring: NS9901 -> NS9902 -> NS9903 -> NS9901; decide which one is the cause"


def test_categories_may_explain_each_other() -> None:
    """Either may come first; the clocks decide when both are seen."""
    assert lint([sample("NS9901", "a", "[other]"), sample("NS9902", "b", "[other, symptoms]")], {}) == []


def test_two_rules_of_one_name_are_refused() -> None:
    """The name is as permanent as the id."""
    found = lint([sample("NS9901", "a", "[]"), sample("NS9902", "a", "[]")], {})
    assert {p.text.partition(" is taken")[0] for p in found} == {"the name a"}


def test_a_rule_file_is_called_after_its_rule() -> None:
    """So that a finding's rule is found by its id."""
    (problem,) = lint([load_rule(RULE, "valve.yml")], {})
    assert problem.text == "the file is valve.yml, but should end in NS9901-valve-stuck.yml"


def test_lint_knows_the_programs_whose_versions_are_collected(tmp_path: Path) -> None:
    """A version condition on anything else would never hold."""
    (tmp_path / "job.log").write_text("", encoding="utf-8")
    assert set(read([tmp_path / "job.log"]).facts.versions) == set(VERSIONS)


def test_a_condition_that_lint_accepts_can_be_evaluated() -> None:
    """No operator with well-formed arguments raises."""
    context = Context({"stuck": [], "hot": []}, frozenset(), {})
    for condition in (
        {"any": ["stuck", {"none": ["hot"]}]},
        {"count": "stuck", "at_least": "2", "distinct": "rank"},
        {"ordered": ["stuck", "hot"], "same": ["rank"], "within": "1.5m"},
        {"absent": "stuck", "given": "kernel_log"},
        {"version": "nccl", "range": ">=2.26,<2.26.5"},
    ):
        assert evaluate(condition, context).answer in set(Answer)


def parsed(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rule files that loading `directory` reads as YAML."""
    seen: list[str] = []

    def load(text: str, path: str) -> Rule:
        seen.append(path)
        return load_rule(text, path)

    with monkeypatch.context() as patch:
        patch.setattr(pack_module, "load_rule", load)
        load_pack(directory)
    return seen


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ncclscope"


def test_a_second_start_reads_no_yaml(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one leaves a prepared form in the user's cache."""
    write_rule(tmp_path / "rules")
    assert parsed(tmp_path / "rules", monkeypatch) == ["NS9901-valve-stuck.yml"]
    assert len(list(cache.iterdir())) == 1
    assert parsed(tmp_path / "rules", monkeypatch) == []


def test_a_changed_rule_makes_the_prepared_form_stale(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By content: also when its time and size are the same."""
    rules = tmp_path / "rules"
    file = write_rule(rules)
    prepare(rules, rules / "prepared.json")
    assert parsed(rules, monkeypatch) == []
    assert not cache.exists()
    before = file.stat()
    file.write_text(RULE.replace("cause: Rust.", "cause: Dust."), encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert parsed(rules, monkeypatch) == ["NS9901-valve-stuck.yml"]
    assert load_pack(rules).rules[0].cause == "Dust."


def test_a_damaged_prepared_form_is_made_again(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands in the file."""
    rules = tmp_path / "rules"
    write_rule(rules)
    load_pack(rules)
    for file in cache.iterdir():
        file.write_bytes(b'{"digest":1')
    assert parsed(rules, monkeypatch) == ["NS9901-valve-stuck.yml"]
    assert parsed(rules, monkeypatch) == []


def test_a_read_only_home_only_costs_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cache can be written, and the rules load all the same."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    write_rule(tmp_path / "rules")
    assert [r.id for r in load_pack(tmp_path / "rules").rules] == ["NS9901"]


def test_no_rule_is_passed_over_that_has_somebody_to_blame(pack: Pack) -> None:
    """What was observed tells which rules to ask; no other could hold."""
    for case in CASES:
        index = Index(read(case.paths, options=options(), pack=pack).facts.observations)
        asked = {rule.id for rule in pack.about(index.keys())}
        blaming = {rule.id for rule in pack.rules if select(pack.signals[rule.id][rule.blame], index)}
        assert blaming <= asked, case.name
