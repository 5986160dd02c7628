"""Every operator answers yes, no or unknown, and unknown only where the input cannot decide."""

from __future__ import annotations

from typing import Any

import pytest
from rule_parts import answer_of, observe

from ncclscope.clocks import Answer
from ncclscope.engine.conditions import seconds
from ncclscope.engine.match import Index, in_range, select
from ncclscope.engine.rule import parse_signal

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
A = observe("a", at=100, ranks=(1,), hosts=("node01",))
B = observe("b", at=130, order=2, ranks=(1,), hosts=("node01",))
ELSEWHERE = observe("b", at=130, order=2, ranks=(2,), hosts=("node02",))
UNDATED = observe("b", source="other.log")
NOBODY = observe("b", at=130, order=2)
# Three-valued leaves to build trees from: no kernel log was given, so its absence is not known.
LEAVES = {YES: "yes", NO: "no", UNKNOWN: {"absent": "no", "given": "kernel_log"}}
BOUND = {"yes": [A], "no": []}


@pytest.mark.parametrize(("name", "answer"), [("yes", YES), ("no", NO)])
def test_a_name_is_whether_the_signal_occurs(name: str, answer: Answer) -> None:
    """A bare name needs no operator."""
    assert answer_of(name, **BOUND) is answer


TREES: list[tuple[str, tuple[Answer, ...], Answer]] = [
    ("all", (YES, YES), YES), ("all", (YES, UNKNOWN), UNKNOWN), ("all", (UNKNOWN, NO), NO), ("all", (YES, NO), NO),
    ("any", (NO, YES), YES), ("any", (NO, UNKNOWN), UNKNOWN), ("any", (UNKNOWN, YES), YES), ("any", (NO, NO), NO),
    ("none", (NO, NO), YES), ("none", (NO, UNKNOWN), UNKNOWN), ("none", (UNKNOWN, YES), NO), ("none", (YES,), NO),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "inner", "answer"), TREES)
def test_trees(operator: str, inner: tuple[Answer, ...], answer: Answer) -> None:
    """Kleene's logic: unknown spreads only where the other members do not decide."""
    assert answer_of({operator: [LEAVES[a] for a in inner]}, **BOUND) is answer


COUNTS: list[tuple[dict[str, Any], Answer]] = [
    ({"count": "many", "at_least": "3"}, YES),
    ({"count": "many", "at_least": "9"}, NO),
    ({"count": "many", "at_least": "2", "distinct": "rank"}, YES),
    ({"count": "many", "at_least": "3", "distinct": "rank"}, NO),
    ({"count": "many", "at_least": "2", "distinct": "xid"}, YES),
    ({"count": "none"}, NO),
    ({"count": "none", "at_least": "1", "distinct": "rank"}, NO),
]


@pytest.mark.parametrize(("condition", "answer"), COUNTS)
def test_count(condition: dict[str, Any], answer: Answer) -> None:
    """Lines are counted, or the different values of one key; folded bursts count as many as they were."""
    many = [observe("x", ranks=(1,), count=5, xid=31), observe("x", order=2, ranks=(1, 2), xid=13)]
    assert answer_of(condition, many=many, none=[]) is answer


TOGETHER: list[tuple[dict[str, Any], Any, Answer]] = [
    ({}, B, YES),
    ({"same": ["host"]}, B, YES),
    ({"same": ["host", "rank"]}, ELSEWHERE, NO),
    ({"same": ["host"]}, NOBODY, UNKNOWN),
    ({"within": "60s"}, B, YES),
    ({"within": "10s"}, B, NO),
    ({"within": "10s"}, UNDATED, UNKNOWN),
    ({"within": "1m", "same": ["rank"]}, ELSEWHERE, NO),
]


@pytest.mark.parametrize(("more", "other", "answer"), TOGETHER)
def test_together(more: dict[str, Any], other: Any, answer: Answer) -> None:
    """Two signals that agree in keys and time, in any order; unknown where a key or a clock is missing."""
    assert answer_of({"together": ["a", "b"], **more}, a=[A], b=[other]) is answer
    assert answer_of({"together": ["b", "a"], **more}, a=[A], b=[other]) is answer
    assert answer_of({"together": ["a", "b"], **more}, a=[A], b=[]) is NO


ORDERED: list[tuple[Any, Any, Answer]] = [
    (A, B, YES),
    (B, A, NO),
    (A, UNDATED, UNKNOWN),
    (observe("a", order=1), observe("b", order=2), YES),
    (observe("a", order=3), observe("b", order=2), NO),
    (observe("a", order=9, at=500), observe("b", order=1, at=600, attempt=1), YES),
    (observe("a", at=100, hosts=("n1",)), observe("b", at=102, hosts=("n2",), source="x"), UNKNOWN),
]


@pytest.mark.parametrize(("a", "b", "answer"), ORDERED)
def test_ordered(a: Any, b: Any, answer: Answer) -> None:
    """By clock, then by line in one stream, and never across hosts within their skew."""
    assert answer_of({"ordered": ["a", "b"]}, a=[a], b=[b]) is answer


def test_a_pair_narrows_what_the_rule_goes_on_with() -> None:
    """Of several, only those that took part in a pair are blamed and quoted."""
    from ncclscope.engine.conditions import Context, evaluate

    context = Context({"a": [A], "b": [ELSEWHERE, B]}, frozenset(), {})
    outcome = evaluate({"together": ["a", "b"], "same": ["host"]}, context)
    assert (outcome.answer, outcome.narrowed["b"]) == (YES, [B])


def test_one_observation_is_no_pair_with_itself() -> None:
    """Two names bound to the same line are not two events."""
    assert answer_of({"together": ["a", "b"]}, a=[A], b=[A]) is NO


def test_absent_needs_the_input_in_which_it_would_stand() -> None:
    """Not found is yes only where one could have found it."""
    assert answer_of({"absent": "gone"}, gone=[]) is YES
    assert answer_of({"absent": "gone"}, gone=[A]) is NO
    assert answer_of({"absent": "gone", "given": "kernel_log"}, gone=[]) is UNKNOWN
    assert answer_of({"absent": "gone", "given": "kernel_log"}, given=["kernel_log"], gone=[]) is YES
    assert answer_of({"absent": "gone", "given": "kernel_log"}, given=["kernel_log"], gone=[A]) is NO


def test_version_and_given() -> None:
    """A version that the input does not show is unknown, not outside the range."""
    condition = {"version": "nccl", "range": ">=2.26,<2.26.5"}
    assert answer_of(condition, versions={"nccl": ("2.26.2",)}) is YES
    assert answer_of(condition, versions={"nccl": ("2.28.9",)}) is NO
    assert answer_of(condition, versions={"nccl": ("2.28.9", "2.26.2")}) is YES
    assert answer_of(condition) is UNKNOWN
    assert answer_of({"given": "kernel_log"}, given=["kernel_log"]) is YES
    assert answer_of({"given": "kernel_log"}) is NO


RANGES = [
    ("2.26.2", ">=2.26,<2.26.5", True), ("2.26.5", "<2.26.5", False), ("2.9.1", "<2.10", True), ("2.10", ">=2.9", True),
    ("2.18.3+cuda12.1", "==2.18.3", True), ("v1.2", "!=1.2.0", False), ("none", ">1", None), ("2.26", "<=2.26.0", True),
]  # fmt: skip


@pytest.mark.parametrize(("version", "spec", "answer"), RANGES)
def test_version_ranges_compare_numbers(version: str, spec: str, answer: bool | None) -> None:
    """2.10 is later than 2.9, a build suffix does not count, and what is no version is unknown."""
    assert in_range(version, spec) is answer


@pytest.mark.parametrize("wrong", ["2.26", "~2.26", ">=", "latest"])
def test_a_wrong_range_says_what_would_be_right(wrong: str) -> None:
    """The message shows a range."""
    with pytest.raises(ValueError, match="write for example"):
        in_range("2.26", wrong)


def test_durations() -> None:
    """Seconds, minutes and hours."""
    assert [seconds(t) for t in ("60s", "10m", "2h", "1.5s")] == [60, 600, 7200, 1.5]
    with pytest.raises(ValueError, match="60s"):
        seconds("10 days")


SELECTED: list[tuple[dict[str, Any], bool]] = [
    ({"xid": 31}, True),
    ({"xid": [13, 31]}, True),
    ({"xid": 13}, False),
    ({"xid|not": 13}, True),
    ({"xid|not": 31}, False),
    ({"name|re": "^pyt"}, True),
    ({"name|contains": "tho"}, True),
    ({"name|contains": "xyz"}, False),
    ({"xid|gte": 31}, True),
    ({"xid|gt": 31}, False),
    ({"xid|lt": 40}, True),
    ({"xid|lte": 30}, False),
    ({"missing|known": "false"}, True),
    ({"missing|known": "true"}, False),
    ({"name|known": "true"}, True),
    ({"missing": 1}, False),
    ({"missing|not": 1}, True),
    ({"rank": 3}, True),
    ({"rank|known": "true"}, True),
    ({"host": "node01"}, True),
    ({"ok": "true"}, True),
    ({"ok": "false"}, False),
    ({"list|contains": "b"}, True),
    ({"list": "a"}, True),
    ({"name|gt": 1}, False),
]


@pytest.mark.parametrize(("conditions", "chosen"), SELECTED, ids=str)
def test_selectors(conditions: dict[str, Any], chosen: bool) -> None:
    """Each modifier on a field that fits, does not, or is not there."""
    one = observe(
        "kernel.xid", ranks=(3,), hosts=("node01",), xid=31, name="python", ok=True, list=("a", "b"), cause="gpu-hang"
    )
    for event in ("kernel.xid", "kernel.*", "*"):
        signal = parse_signal("NS9901", "s", {"event": event, **conditions})
        assert bool(select(signal, Index([one]))) is chosen
    assert select(parse_signal("NS9901", "s", {"event": "torch.*", **conditions}), Index([one])) == []
