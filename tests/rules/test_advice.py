"""What rules advise: never to wait longer for ranks that diverged, never a variable that NCCL does not read, and load
on a network or GPU only under its own name, and other programs only for what is no input."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support import shipped

from ncclscope.preflight.settings import known_variables

if TYPE_CHECKING:
    from ncclscope.engine.rule import Rule

DIVERGED = {"collective-mismatch", "rank-absent", "rank-died", "config-mismatch"}
LONGER = re.compile(
    r"(?i)(rais|increas|longer|larger|higher|extend)\w*\b.{0,50}\btime(-?out| limit)"
    r"|time(-?out| limit).{0,50}\b(rais|increas|longer|larger|higher|extend)"
)
# TORCH_NCCL_DUMP_ON_TIMEOUT=1 asks for a dump and leaves the limit alone.
SETS_A_TIMEOUT = re.compile(r"(?i)(?<!DUMP_ON_)TIMEOUT\w*=\d|timeout=\w*timedelta")
MAKES_LOAD = re.compile(r"\b(ib_(write|read|send)_(bw|lat)|\w+_perf|iperf3?|nvbandwidth|dcgmi diag|stress-ng|fio)\b")
NCCL_VARIABLE = re.compile(r"\bNCCL_[A-Z0-9_]+\b")

EACH_RULE = pytest.mark.parametrize("rule", [pytest.param(r, id=r.id) for r in shipped().rules])


def advice(rule: Rule) -> list[str]:
    """Each sentence that tells somebody to do something, and each command."""
    texts = [rule.fix, *(text for check in rule.next for text in (check.do, check.run))]
    return [sentence for text in texts if text for sentence in re.split(r"(?<=[.;])\s+", text)]


@EACH_RULE
def test_nobody_is_told_to_wait_longer_for_ranks_that_diverged(rule: Rule) -> None:
    if rule.category not in DIVERGED:
        return
    for sentence in advice(rule):
        assert not SETS_A_TIMEOUT.search(sentence), sentence
        # "A longer timeout only hides ranks that diverged" warns of it, and that is welcome.
        assert not LONGER.search(sentence) or " only " in sentence, sentence


@EACH_RULE
def test_a_variable_that_is_advised_is_one_that_the_newest_nccl_reads(rule: Rule) -> None:
    known = known_variables()
    for sentence in advice(rule):
        for name in NCCL_VARIABLE.findall(sentence):
            assert name in known, sentence
            assert known[name].last is None, f"{name} was last read by NCCL {known[name].last}: {sentence}"


@EACH_RULE
def test_a_check_that_makes_load_is_not_called_read_only(rule: Rule) -> None:
    for check in rule.next:
        assert check.effect != "read_only" or not MAKES_LOAD.search(check.run), check.run


@EACH_RULE
def test_only_ncclscope_is_given_the_input(rule: Rule) -> None:
    """Other programs read no archives, and each but its own kinds of packed files."""
    for check in rule.next:
        assert not re.search(r"\{(inputs|source)\b", check.run) or check.run.startswith("ncclscope "), check.run
