"""Which finding is the cause and which ones it accounts for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ncclscope.clocks import Answer
from ncclscope.engine.diagnose import Candidate
from ncclscope.engine.rule import Rule
from ncclscope.knowledge.causes import consequences_of
from ncclscope.observation import earlier
from ncclscope.report import CONFIDENCE, UNSET, Finding

__all__ = ["fold"]


class _Node(msgspec.Struct):
    candidate: Candidate
    under: _Node | None = None
    folded: list[_Node] = msgspec.field(default_factory=list)


def fold(candidates: Sequence[Candidate]) -> list[Finding]:
    """Findings best first: an explained finding stands inside its cause, symptoms inside the first cause."""
    told = [c for c in candidates if not c.rule.last_resort]
    nodes = [_Node(c) for c in told or candidates]
    for node in nodes:
        causes = [
            other for other in nodes if other is not node and _accounts_for(other.candidate, node.candidate)
        ]
        if causes:
            node.under = min(causes, key=lambda n: _key(n.candidate))
    for node in nodes:
        _break_cycle(node)
    tops = _in_order([n for n in nodes if n.under is None])
    roots = [n for n in tops if n.candidate.rule.role == "root"]
    if roots and CONFIDENCE.index(roots[0].candidate.confidence) >= CONFIDENCE.index("possible"):
        for node in tops:
            if node.candidate.rule.role == "symptom":
                node.under = roots[0]
    for node in nodes:
        if node.under is not None:
            node.under.folded.append(node)
    return [_finding(node) for node in _in_order([n for n in nodes if n.under is None])]


def _accounts_for(cause: Candidate, effect: Candidate) -> bool:
    """Whether the cause's rule explains the effect's and the clocks do not contradict."""
    rule = cause.rule
    if rule.role != "root" or CONFIDENCE.index(cause.confidence) < CONFIDENCE.index("possible"):
        return False
    if effect.rule.role == "root" and not _names(rule, effect.rule):
        # What a rule claims for itself says more than what holds for classes in general.
        known = consequences_of(rule.category) if rule.category else frozenset()
        if effect.rule.category not in known or _names(effect.rule, rule):
            return False
    return earlier(effect.head, cause.head) is not Answer.YES or "any_order" in rule.explains


def _names(rule: Rule, other: Rule) -> bool:
    """Whether `rule` itself says that it explains `other`, by id or by class."""
    return not {other.id, other.category}.isdisjoint(rule.explains)


def _break_cycle(node: _Node) -> None:
    seen = [node]
    at = node.under
    while at is not None:
        if at is node:
            best = min(seen, key=lambda n: _key(n.candidate))
            best.under = None
            return
        if at in seen:
            return
        seen.append(at)
        at = at.under


def _key(candidate: Candidate) -> tuple[bool, int, bool, bool, str]:
    """Sort key where clocks say nothing: causes first and surest first, a mere hint after what is known to have failed,
    an echo after a failure of the rank's own, then by id."""
    level = CONFIDENCE.index(candidate.confidence)
    cause = candidate.rule.role == "root" and level >= CONFIDENCE.index("possible")
    echo = candidate.head.fields.get("nature") == "consequence"
    return (not cause, -level, echo, candidate.rule.role != "root", candidate.rule.id)


def _in_order(nodes: Sequence[_Node]) -> list[_Node]:
    """Surest first; among equals the earliest failure first."""
    rest = sorted(nodes, key=lambda n: _key(n.candidate))
    out: list[_Node] = []
    while rest:
        best = rest[0]
        for other in rest[1:]:
            if _key(other.candidate)[:3] != _key(best.candidate)[:3]:
                break
            if earlier(other.candidate.head, best.candidate.head) is Answer.YES:
                best = other
        out.append(best)
        rest.remove(best)
    return out


def _finding(node: _Node) -> Finding:
    c = node.candidate
    root = c.rule.role == "root"
    return Finding(
        rule=c.rule.id,
        role="root_cause" if root else "symptom",
        title=c.title,
        confidence=c.confidence,
        category=(c.rule.category or UNSET) if root else UNSET,
        why=list(c.why),
        culprit=c.culprit,
        phase=c.phase,
        evidence=list(c.evidence),
        next_checks=list(c.next_checks),
        fix=c.fix,
        explains=[_finding(n) for n in _in_order(node.folded)],
        refs=list(c.rule.refs),
    )


def flat(findings: Sequence[Finding]) -> list[Finding]:
    """Every finding, folded ones after their cause."""
    out: list[Finding] = []
    for finding in findings:
        out.append(finding)
        out += flat(finding.explains)
    return out
