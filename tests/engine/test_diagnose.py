"""One rule against what was seen: how sure, whom it blames, and what it tells the reader to do."""

from __future__ import annotations

from typing import Any

import pytest
from rule_parts import candidate, observe, pack_of, rule_of, surroundings

from ncclscope.engine.diagnose import describe_ranks, diagnose
from ncclscope.engine.match import Index
from ncclscope.engine.rule import parse_signal

OOM = observe("torch.oom", at=100, ranks=(1,), hosts=("node01",), gpus=("0000:00:07.0",), pids=(653,), asked="2 GiB")
HELP = {"help": {"event": "kernel.oom_kill"}, "doubt": {"event": "torch.note"}}
STEPS = {
    "base": "possible",
    "raise": [{"if": "help", "why": "the kernel says so too"}],
    "lower": [{"if": "doubt", "why": "a note speaks against it"}],
}
HELPS, DOUBTS = observe("kernel.oom_kill", order=2), observe("torch.note", order=3)


@pytest.mark.parametrize(
    ("extra", "confidence", "why"),
    [
        ([], "possible", []),
        ([HELPS], "likely", ["the kernel says so too"]),
        ([DOUBTS], "hint", ["a note speaks against it"]),
        ([HELPS, DOUBTS], "possible", ["the kernel says so too", "a note speaks against it"]),
    ],
)
def test_confidence_moves_by_named_steps(extra: list[Any], confidence: str, why: list[str]) -> None:
    """Each reason is one step, and is told."""
    rule = rule_of(signals={"seen": {"event": "torch.oom"}, **HELP}, confidence=STEPS)
    found = candidate(rule, OOM, *extra)
    assert (found.confidence, list(found.why)) == (confidence, why)


def test_confidence_has_a_ceiling_and_a_floor() -> None:
    """at_most holds whatever speaks for it, and below a hint there is nothing."""
    high = {**STEPS, "base": "likely", "at_most": "likely"}
    assert (
        candidate(rule_of(signals={"seen": {"event": "torch.oom"}, **HELP}, confidence=high), OOM, HELPS).confidence
        == "likely"
    )
    low = {**STEPS, "base": "hint"}
    assert (
        candidate(rule_of(signals={"seen": {"event": "torch.oom"}, **HELP}, confidence=low), OOM, DOUBTS).confidence
        == "hint"
    )


def test_what_could_not_be_checked_costs_a_step() -> None:
    """An unknown condition does not hide the finding, but lowers it and says so."""
    rule = rule_of(
        signals={"seen": {"event": "torch.oom"}, "gone": {"event": "kernel.xid"}},
        when={"all": ["seen", {"absent": "gone", "given": "kernel_log"}]},
    )
    unsure = candidate(rule, OOM)
    assert unsure.confidence == "possible"
    assert any("could not be checked" in reason for reason in unsure.why)
    assert candidate(rule, OOM, given=frozenset({"kernel_log"})).confidence == "likely"


def test_not_proof_of_stands_among_the_reasons() -> None:
    """What a finding must not be read as is told with it, its values filled in."""
    rule = rule_of(not_proof_of="a broken GPU on rank {rank}")
    assert candidate(rule, OOM).why[-1] == "not proof of: a broken GPU on rank 1"


def test_the_culprit_is_everything_known_of_the_blamed() -> None:
    """Rank, host, GPU and pid of the first failure, and the line first among the proof."""
    helped = rule_of(signals={"seen": {"event": "torch.oom"}, **HELP})
    found = candidate(helped, observe("torch.oom", at=300, order=9, ranks=(2,)), OOM, HELPS)
    c = found.culprit
    assert (c.ranks, c.hosts, c.gpus, c.pids) == ([1], ["node01"], ["0000:00:07.0"], [653])
    assert found.evidence[0] == OOM.evidence[0]


@pytest.mark.parametrize(("take", "ranks"), [("first", [1]), ("all", [1, 2]), ("none", [])])
def test_take_says_who_of_several_is_blamed(take: str, ranks: list[int]) -> None:
    """The first to fail, all of them, or nobody."""
    later = observe("torch.oom", at=300, order=9, ranks=(2,), hosts=("node01",))
    assert candidate(rule_of(take=take), later, OOM).culprit.ranks == ranks


def test_those_that_fail_together_are_blamed_together() -> None:
    """Within two seconds nobody was first."""
    other = observe("torch.oom", at=101, order=9, ranks=(2,), hosts=("node01",))
    assert candidate(rule_of(), OOM, other).culprit.ranks == [1, 2]


FILLED = {
    "Rank {rank} asked for {asked}": ("Rank 1 asked for 2 GiB", []),
    "Rank {ranks|?} of {size|an unknown world}": ("Rank 1 of an unknown world", []),
    "It died{signal? of {}}.": ("It died.", []),
    "It asked{asked? for {} more}.": ("It asked for 2 GiB more.", []),
    "See {seen.asked} on {host}": ("See '2 GiB' on node01", []),
    "ssh {nowhere}": ("ssh <nowhere>", ["nowhere"]),
    "run <your command> on {host}": ("run <your command> on node01", ["your command"]),
}


@pytest.mark.parametrize("template", FILLED)
def test_placeholders(template: str) -> None:
    """Values, defaults in words, text only where there is a value, and holes that are named."""
    wanted, unfilled = FILLED[template]
    rule = rule_of(title=template, next=[{"do": "x", "run": template, "where": "w", "effect": "read_only"}])
    found = candidate(rule, OOM)
    assert found.title.replace("'", "") == wanted.replace("'", "")
    assert found.next_checks[0].unfilled == unfilled


HOSTILE = ["$(reboot)", "a; rm -rf /", "`id`", "it's", "a b", "--flag\nx", "x|y", "$HOME"]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_from_a_log_is_one_word_in_a_command(value: str) -> None:
    """What a log says can never become a command of its own."""
    import shlex

    rule = rule_of(next=[{"do": "x", "run": "grep -F {name} log", "where": "w", "effect": "read_only"}])
    found = candidate(rule, observe("torch.oom", name=value))
    assert shlex.split(found.next_checks[0].command)[2] == value


def test_next_checks_can_depend_on_what_was_seen() -> None:
    """A check with a condition is given only where it holds."""
    checks = [
        {"do": "always", "run": "true", "where": "w", "effect": "read_only"},
        {"do": "sometimes", "run": "true", "where": "w", "effect": "read_only", "if": "help"},
    ]
    rule = rule_of(signals={"seen": {"event": "torch.oom"}, **HELP}, next=checks)
    assert [c.do for c in candidate(rule, OOM).next_checks] == ["always"]
    assert [c.do for c in candidate(rule, OOM, HELPS).next_checks] == ["always", "sometimes"]


def test_a_rule_that_does_not_hold_makes_no_candidate() -> None:
    """Neither without its signal nor against its condition."""
    rule = rule_of()
    signals = {name: parse_signal(rule.id, name, raw) for name, raw in rule.signals.items()}
    assert diagnose(rule, signals, Index([observe("torch.note")]), surroundings()) is None
    assert pack_of(rule).get("ns9901") == rule


RANKS = {(): "", (0,): "0", (0, 1): "0,1", (0, 1, 2): "0-2", (5, 0, 1, 2): "0-2,5", (1, 3, 4, 7, 8, 9): "1,3,4,7-9"}


@pytest.mark.parametrize("ranks", RANKS, ids=str)
def test_ranks_are_described_as_ranges(ranks: tuple[int, ...]) -> None:
    """512 ranks in one line."""
    assert describe_ranks(set(ranks)) == RANKS[ranks]
