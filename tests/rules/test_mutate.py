"""The mutation check: what is dropped from a rule, and which missing case it finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from sample import RULE, without_case, write_rule

from ncclscope.engine.pack import load_pack
from ncclscope.engine.rule import load_rule
from ncclscope.mutate import mutants, survivors
from ncclscope.selftest import run_rule

if TYPE_CHECKING:
    from pathlib import Path


def survived(directory: Path, text: str, *, alternatives: bool = False) -> list[str]:
    """What can be dropped from the rule without a case of it failing; the cases pass before."""
    write_rule(directory, text)
    rule = load_rule(text, "NS9901-valve-stuck.yml")
    pack = load_pack(directory)
    results = run_rule(rule, pack)
    assert [r.problems for r in results if r.problems] == []
    _, left = survivors(rule, [r.given for r in results if r.given is not None], pack, alternatives=alternatives)
    assert all(mutant.remedy for mutant in left)
    return [mutant.what for mutant in left]


def dropped(**changes: object) -> list[str]:
    """Everything that is dropped from the sample with these keys changed."""
    data = {**yaml.load(RULE, Loader=yaml.BaseLoader), **changes}  # noqa: S506 - texts only
    return [m.what for m in mutants(load_rule(yaml.safe_dump(data, sort_keys=False), "x.yml"), alternatives=True)]


def test_a_rule_whose_cases_cover_it_has_no_survivors(tmp_path: Path) -> None:
    """Each condition of the sample is decided by one of its cases."""
    assert survived(tmp_path, RULE) == []


@pytest.mark.parametrize(
    ("case", "what"),
    [
        ("an open valve", "signal stuck: state: stuck"),
        ("the pressure of another rank", "when: `same` of {together: [stuck, rising], same: [rank]}"),
        ("a drill", "when: {none: [drill]}"),
        ("hot as well", "confidence: raise if hot"),
    ],
)
def test_a_missing_case_leaves_its_mutant_alive(tmp_path: Path, case: str, what: str) -> None:
    """Without the one case that decides it, the dropped part is named, and nothing else is."""
    assert [what] == survived(tmp_path, without_case(RULE, case))


def test_a_step_that_always_applies_needs_a_case_in_which_it_does_not(tmp_path: Path) -> None:
    """The step's own condition is dropped too, so that a stated confidence without it is needed."""
    text = RULE.replace("expect: {confidence: possible, ranks", "expect: {ranks")
    assert survived(tmp_path, text) == ["confidence: raise if: hot"]


def test_a_whole_condition_survives_when_no_case_decides_any_of_it(tmp_path: Path) -> None:
    """The pair and its key are two mutants: one silent case with other ranks decides both."""
    left = survived(tmp_path, without_case(RULE, "the pressure of another rank", "no pressure"))
    assert left == [
        "when: {together: [stuck, rising], same: [rank]}",
        "when: `same` of {together: [stuck, rising], same: [rank]}",
    ]


def test_naming_the_blamed_signal_needs_no_case() -> None:
    """A rule never holds without its blamed signal, so `all: [blamed]` is nothing that a case could notice."""
    assert "when: stuck" not in dropped()


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"when": {"any": ["stuck", "hot"]}}, "when: stuck in `any`"),
        ({"when": {"all": ["stuck", {"none": ["hot", "drill"]}]}}, "when: hot in `none`"),
        (
            {"when": [{"count": "stuck", "at_least": "3", "distinct": "rank"}]},
            "when: `at_least` of {count: stuck, at_least: 3, distinct: rank}",
        ),
        (
            {"when": [{"count": "stuck", "at_least": "3", "distinct": "rank"}]},
            "when: `distinct` of {count: stuck, at_least: 3, distinct: rank}",
        ),
        (
            {"when": [{"together": ["stuck", "hot"], "same": ["rank", "host"]}]},
            "when: `same` key host of {together: [stuck, hot], same: [rank, host]}",
        ),
        (
            {"when": [{"ordered": ["stuck", "hot"], "within": "9s"}]},
            "when: `within` of {ordered: [stuck, hot], within: 9s}",
        ),
        (
            {"when": [{"ordered": ["stuck", "hot"], "within": "9s"}]},
            "when: order of {ordered: [stuck, hot], within: 9s}",
        ),
        (
            {"when": ["stuck", {"absent": "hot", "given": "kernel_log"}]},
            "when: `given` of {absent: hot, given: kernel_log}",
        ),
        ({"when": ["stuck", {"given": "kernel_log"}]}, "when: {given: kernel_log}"),
        (
            {"when": ["stuck", {"version": "nccl", "range": ">=2.1,<2.3"}]},
            "when: <2.3 of {version: nccl, range: >=2.1,<2.3}",
        ),
        (
            {"when": ["stuck", {"version": "nccl", "range": "<2.3"}]},
            "when: {version: nccl, range: <2.3}",
        ),
        ({"explains": ["symptoms", "preempted"]}, "explains: preempted"),
        ({"explains": ["any_order", "preempted"]}, "explains: any_order"),
        ({"confidence": {"base": "hint", "at_most": "likely"}}, "confidence: at_most: likely"),
        (
            {"confidence": {"base": "likely", "lower": [{"if": "drill", "why": "so"}]}},
            "confidence: lower if drill",
        ),
        ({"phase": "init"}, "phase"),
        ({"last_resort": "true"}, "last_resort"),
        ({"take": "none"}, "take: none"),
        ({"signals": {"stuck": {"event": ["torch.oom", "cuda.error"]}}}, "signal stuck: cuda.error of event"),
        ({"signals": {"stuck": {"event": "*", "cause": ["nan", "dns"]}}}, "signal stuck: dns of cause"),
        (
            {"next": [{"do": "Look", "run": "true", "where": "here", "effect": "read_only", "if": "hot"}]},
            "next: 'Look'",
        ),
    ],
)
def test_every_part_of_a_rule_is_dropped_once(changes: dict[str, object], what: str) -> None:
    """Operators, their arguments, fields, members of lists, steps, consequences."""
    assert dropped(**changes).count(what) == 1


def test_members_of_lists_are_dropped_on_request_only() -> None:
    """A list of codes is data: its members are mutants with alternatives alone."""
    data = yaml.load(RULE, Loader=yaml.BaseLoader)  # noqa: S506 - texts only
    data["signals"]["stuck"] = {"event": ["torch.oom", "cuda.error"], "cause": ["nan", "dns"]}
    rule = load_rule(yaml.safe_dump(data, sort_keys=False), "x.yml")
    of_stuck = [m.what for m in mutants(rule) if m.what.startswith("signal stuck")]
    assert of_stuck == ["signal stuck: cause: [nan, dns]"]


def test_symptoms_are_folded_under_a_cause_anyway() -> None:
    """Dropping `symptoms` changes nothing, so no case can be asked to notice."""
    assert not any(what.startswith("explains") for what in dropped())
