"""Causes come first, with what they account for inside them."""

from __future__ import annotations

from typing import Any

from rule_parts import candidate, observe, rule_of

from ncclscope.engine.fold import flat, fold


def cause(rule_id: str, kind: str, *, at: float | None = None, order: int = 1, **rule: Any) -> Any:
    more = {name: rule.pop(name) for name in ("ranks", "hosts", "source", "nature", "attempt") if name in rule}
    seen = observe(kind, at=at, order=order, **{"ranks": (0,), "hosts": ("n",), **more})
    return candidate(rule_of(rule_id, signals={"seen": {"event": kind}}, **rule), seen)


def shape(*candidates: Any) -> list[Any]:
    def of(finding: Any) -> Any:
        return (finding.rule, [of(f) for f in finding.explains]) if finding.explains else finding.rule

    for order in (candidates, candidates[::-1]):
        found = [of(f) for f in fold(order)]
    assert found == [of(f) for f in fold(candidates)]
    return found


def test_symptoms_stand_under_the_cause() -> None:
    """A cause takes every symptom, asked for or not, whatever the order of the rules."""
    root = cause("NS9902", "torch.oom", at=100)
    echo = cause("NS0901", "torch.closed", at=105, order=2, role="symptom")
    assert shape(echo, root) == [("NS9902", ["NS0901"])]


def test_without_a_cause_symptoms_stand_alone() -> None:
    """The earliest of them first."""
    late = cause("NS0901", "torch.closed", at=105, order=2, role="symptom")
    early = cause("NS0902", "torch.timeout", at=101, role="symptom")
    assert shape(late, early) == ["NS0902", "NS0901"]


def test_a_hint_takes_no_symptoms() -> None:
    """What is no more than a hint explains nothing, and does not come before what is known to have failed."""
    hint = cause("NS9902", "torch.oom", at=100, confidence={"base": "hint"}, explains=["symptoms"])
    failed = cause("NS0901", "torch.closed", at=105, order=2, role="symptom", confidence={"base": "possible"})
    assert shape(hint, failed) == ["NS0901", "NS9902"]


def test_a_cause_folds_what_it_explains() -> None:
    """By rule id or by category."""
    killer = cause("NS9902", "kernel.oom_kill", at=100, category="oom-host", explains=["rank-died", "NS9904"])
    death = cause("NS9903", "rank.died", at=101, order=2, category="rank-died")
    other = cause("NS9904", "torch.note", at=102, order=3, category="nan")
    stranger = cause("NS9905", "torch.oom", at=103, order=4, category="oom-gpu")
    assert shape(stranger, other, death, killer) == [("NS9902", ["NS9903", "NS9904"]), "NS9905"]


def test_an_effect_that_came_clearly_earlier_is_no_effect() -> None:
    """Clocks outrank what the rule would like to explain, unless it says that the order does not matter."""
    late = {"at": 200.0, "order": 5, "category": "oom-host", "explains": ["rank-died"]}
    death = cause("NS9903", "rank.died", at=101, order=2, category="rank-died")
    assert shape(cause("NS9902", "kernel.oom_kill", **late), death) == ["NS9903", "NS9902"]
    late["explains"] = ["rank-died", "any_order"]
    assert shape(cause("NS9902", "kernel.oom_kill", **late), death) == [("NS9902", ["NS9903"])]


def test_what_cannot_be_ordered_may_be_explained() -> None:
    """A kernel log since boot and a training log share no clock: the explanation stands."""
    killer = cause(
        "NS9902", "kernel.oom_kill", source="dmesg.txt", hosts=(), category="oom-host", explains=["rank-died"]
    )
    death = cause("NS9903", "rank.died", at=101, order=2, category="rank-died")
    assert shape(death, killer) == [("NS9902", ["NS9903"])]


def test_two_that_explain_each_other_do_not_vanish() -> None:
    """A circle is broken at the surer one; each finding is told once."""
    a = cause("NS9902", "kernel.xid", source="a.log", category="gpu-hang", explains=["nan"])
    b = cause(
        "NS9903", "torch.nan", source="b.log", category="nan", explains=["gpu-hang"], confidence={"base": "confirmed"}
    )
    assert shape(a, b) == [("NS9903", ["NS9902"])]


def test_a_circle_of_three_keeps_every_finding_once() -> None:
    """However rules refer to each other, nothing is lost and nothing told twice."""
    names = ["gpu-hang", "nan", "oom-gpu"]
    circle = [
        cause(f"NS990{i}", f"k.{i}", source=f"{i}.log", category=names[i], explains=[names[(i + 1) % 3]])
        for i in range(3)
    ]
    found = flat(fold(circle))
    assert sorted(f.rule for f in found) == ["NS9900", "NS9901", "NS9902"]


def test_surer_causes_come_first_and_earlier_ones_among_equals() -> None:
    """Confidence decides, then the clock, then the id."""
    sure = cause("NS9909", "a.x", at=900, order=9, category="dns", confidence={"base": "confirmed"})
    early = cause("NS9908", "b.x", at=100, order=1, category="disk-full")
    late = cause("NS9901", "c.x", at=500, order=5, category="oom-gpu")
    assert shape(late, early, sure) == ["NS9909", "NS9908", "NS9901"]
    classes = {3: "dns", 1: "disk-full", 2: "oom-gpu"}
    undated = [
        cause(f"NS990{i}", f"d.{i}", source=f"{i}.log", ranks=(i,), category=name) for i, name in classes.items()
    ]
    assert shape(*undated) == ["NS9901", "NS9902", "NS9903"]


def test_a_class_accounts_for_its_usual_consequences() -> None:
    """A rank that ran out of memory and then died: the death needs no word in the rule to be its consequence."""
    memory = cause("NS9909", "torch.oom", at=100, category="oom-gpu")
    death = cause("NS9901", "rank.died", at=105, order=2, category="rank-died")
    assert shape(death, memory) == [("NS9909", ["NS9901"])]
    earlier = cause("NS9901", "rank.died", at=50, order=2, category="rank-died")
    assert shape(earlier, memory) == ["NS9901", "NS9909"]


def test_what_a_rule_claims_for_itself_outranks_its_class() -> None:
    """The death's rule says that it explains the memory error: then the class's habit does not count."""
    memory = cause("NS9909", "torch.oom", source="a.log", category="oom-gpu")
    death = cause("NS9901", "rank.died", source="b.log", category="rank-died", explains=["oom-gpu"])
    assert shape(death, memory) == [("NS9901", ["NS9909"])]


def test_the_first_attempts_failure_comes_before_the_seconds() -> None:
    """What failed before the restart is no echo of what failed after it."""
    first = cause("NS9905", "torch.no_space", at=None, order=9, attempt=0, category="disk-full")
    second = cause("NS9901", "torch.oom", at=None, order=1, source="x.log", attempt=1, category="oom-gpu")
    assert shape(second, first) == ["NS9905", "NS9901"]
