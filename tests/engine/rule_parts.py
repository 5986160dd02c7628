"""Small observations and rules for the tests beside this file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from ncclscope.clocks import Stamp
from ncclscope.engine.conditions import Context, evaluate
from ncclscope.engine.diagnose import Candidate, Surroundings, diagnose
from ncclscope.engine.match import Index
from ncclscope.engine.pack import Pack
from ncclscope.engine.rule import Rule, load_rule, parse_signal
from ncclscope.observation import Observation
from ncclscope.report import LineEvidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ncclscope.clocks import Answer

__all__ = ["answer_of", "candidate", "observe", "pack_of", "rule_of", "surroundings"]


def observe(kind: str, *, at: float | None = None, order: int = 1, source: str = "job.log", **more: Any) -> Observation:
    """An observation in line `order` of `source`; `at` seconds on a clock whose zone is known."""
    known = {name: more.pop(name) for name in ("ranks", "hosts", "gpus", "pids", "count", "attempt") if name in more}
    return Observation(
        kind=kind,
        fields=more,
        evidence=(LineEvidence(source=source, line=order, text=kind),),
        time=None if at is None else Stamp(at, zone=0),
        source=source,
        order=order,
        **known,
    )


def answer_of(condition: Any, *, given: Sequence[str] = (), versions: Any = None, **bound: Any) -> Answer:
    """What a condition says of signals bound to these observations."""
    some = {name: list(value) for name, value in bound.items()}
    return evaluate(condition, Context(some, frozenset(given), versions or {})).answer


_DEFAULTS: dict[str, Any] = {
    "title": "something failed",
    "role": "root",
    "category": "other",
    "since": "0.1.0",
    "summary": "seen",
    "cause": "means",
    "not_proof_of": "",
    "signals": {"seen": {"event": "torch.oom"}},
    "when": {"all": ["seen"]},
    "blame": "seen",
    "confidence": {"base": "likely"},
    "next": [{"do": "look", "run": "dmesg -T", "where": "host", "effect": "read_only"}],
    "fix": "mend it",
    "refs": [],
}


def rule_of(rule_id: str = "NS9901", **changes: Any) -> Rule:
    """A rule as its file would say it, with `changes` to a plain one."""
    data = {"id": rule_id, "name": rule_id.lower(), **_DEFAULTS, **changes}
    if data["role"] == "symptom":
        data.pop("category")
    return load_rule(yaml.safe_dump(data), f"{rule_id}.yml")


def pack_of(*rules: Rule, own: bool = False) -> Pack:
    """A pack of these rules alone."""
    signals = {r.id: {n: parse_signal(r.id, n, raw) for n, raw in r.signals.items()} for r in rules}
    return Pack(tuple(rules), signals, (), frozenset(r.id for r in rules) if own else frozenset())


def surroundings(**changes: Any) -> Surroundings:
    """An input that shows nothing but its observations."""
    plain = {"given": frozenset(), "versions": {}, "phase_of": lambda _: "unknown", "values": {}}
    return Surroundings(**{**plain, **changes})


def candidate(rule: Rule, *observations: Observation, **changes: Any) -> Candidate:
    """What `rule` makes of the observations; it has to hold."""
    signals = {name: parse_signal(rule.id, name, raw) for name, raw in rule.signals.items()}
    found = diagnose(rule, signals, Index(observations), surroundings(**changes))
    assert found is not None
    return found
