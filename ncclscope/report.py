"""The report: what `ncclscope triage --format json` prints and what `analyze()` returns.

These types are the public interface. Fields may be added; none changes or goes without a new SCHEMA_VERSION. A value
that the input does not show is absent (UNSET in Python), never guessed.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

__all__ = [
    "CONFIDENCE",
    "SCHEMA_VERSION",
    "AbsenceEvidence",
    "Collect",
    "Culprit",
    "Finding",
    "InputInfo",
    "LineEvidence",
    "NextCheck",
    "Ranks",
    "Ref",
    "Report",
    "json_schema",
    "to_json",
]

SCHEMA_VERSION = "1"

Confidence = Literal["hint", "possible", "likely", "confirmed"]
CONFIDENCE: tuple[Confidence, ...] = ("hint", "possible", "likely", "confirmed")
Phase = Literal["rendezvous", "bootstrap", "init", "first_collective", "steady", "teardown", "unknown"]
Verdict = Literal["cause_found", "symptom_only", "no_failure", "unreadable"]
Effect = Literal["read_only", "reruns_job", "changes_environment", "disruptive"]


class LineEvidence(msgspec.Struct, frozen=True, tag_field="kind", tag="line"):
    """A line of an input. count: how many lines say the same; time: the process's own, ISO 8601 to the microsecond;
    zone: "+00:00" or "unknown"."""

    source: str
    line: int
    text: str
    count: int = 1
    time: str | UnsetType = UNSET
    zone: str | UnsetType = UNSET


class AbsenceEvidence(msgspec.Struct, frozen=True, tag_field="kind", tag="absence"):
    """Something that was expected. result: not_found (searched where it would be), not_given (no such input),
    not_checked (the input may be cut there)."""

    expected: str
    searched: list[str]
    result: Literal["not_found", "not_given", "not_checked"]


class Culprit(msgspec.Struct, frozen=True):
    """Who is to blame: global ranks, host names, four-part PCI addresses, process ids. Empty lists: not shown."""

    ranks: list[int] = []
    hosts: list[str] = []
    gpus: list[str] = []
    pids: list[int] = []


class NextCheck(msgspec.Struct, frozen=True):
    """One thing to do. command works as printed unless `unfilled` lists values the input did not show (`<host>`)."""

    do: str
    command: str
    where: str
    effect: Effect
    unfilled: list[str] = []


class Ref(msgspec.Struct, frozen=True):
    """Where a statement comes from."""

    title: str
    url: str


class Finding(msgspec.Struct, frozen=True):
    """One conclusion with its proof. explains holds the consequences that this cause accounts for."""

    rule: str
    role: Literal["root_cause", "symptom"]
    title: str
    confidence: Confidence
    category: str | UnsetType = UNSET
    why: list[str] = []
    culprit: Culprit = Culprit()
    phase: Phase = "unknown"
    evidence: list[LineEvidence | AbsenceEvidence] = []
    next_checks: list[NextCheck] = []
    fix: str = ""
    explains: list[Finding] = []
    refs: list[Ref] = []


class Collect(msgspec.Struct, frozen=True):
    """What to fetch to decide what is unknown; the command is ready to paste."""

    what: str
    command: str


class Ranks(msgspec.Struct, frozen=True):
    """Ranks of the global communicator. expected: its size; seen: ranks that any input shows."""

    expected: int | UnsetType = UNSET
    seen: list[int] = []
    first_to_fail: int | UnsetType = UNSET


class InputInfo(msgspec.Struct, frozen=True):
    """One input as it was read. bytes: after decompression; format: its envelopes from the outside in."""

    path: str
    bytes: int
    lines: int
    events: int
    format: str
    note: str | UnsetType = UNSET


class Report(msgspec.Struct, frozen=True):
    """The whole answer. verdict: cause_found (the first finding is a root cause, possible or better), symptom_only
    (something failed, the input does not show why), no_failure, or unreadable (nothing of ours was recognised)."""

    schema_version: str
    verdict: Verdict
    findings: list[Finding]
    unknowns: list[str] = []
    collect: list[Collect] = []
    ranks: Ranks = Ranks()
    inputs: list[InputInfo] = []
    warnings: list[str] = []
    tool_version: str = ""

    @property
    def exit_status(self) -> int:
        """0 no failure, 1 a failure was found, 3 unreadable."""
        return {"no_failure": 0, "unreadable": 3}.get(self.verdict, 1)


def to_json(report: Report, *, indent: int = 2) -> str:
    """The report as JSON text, keys in declared order."""
    raw = msgspec.json.encode(report)
    return (msgspec.json.format(raw, indent=indent) if indent else raw).decode() + "\n"


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the report."""
    return msgspec.json.schema(Report)
