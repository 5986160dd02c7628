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
    "UNSET",
    "AbsenceEvidence",
    "Collect",
    "CommunicatorInfo",
    "Culprit",
    "Excerpt",
    "Finding",
    "InputInfo",
    "Job",
    "Lane",
    "LineEvidence",
    "Mark",
    "NextCheck",
    "Ranks",
    "Ref",
    "Report",
    "SettingInfo",
    "Span",
    "Timeline",
    "json_schema",
    "to_json",
    "without_picture",
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


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line worth a mark in the picture of a rank. kind: init (a communicator completed), cause (proof of the first
    finding), failure (something failed), echo (a failure elsewhere was noticed), kernel (the host's kernel log) or end
    (the last line). at: seconds after Timeline.start; time: as printed. Without time, at is that of the last dated line
    before it in the same input; without both, nothing in that input is dated."""

    kind: Literal["init", "cause", "failure", "echo", "kernel", "end"]
    source: str
    line: int
    text: str
    at: float | UnsetType = UNSET
    time: str | UnsetType = UNSET


class Span(msgspec.Struct, frozen=True):
    """A stretch of a lane in seconds after Timeline.start: starting (up to the first communicator), running, waiting
    (in a collective that did not return), stopping (after the first sign of failure) or silent (no line until the input
    ends)."""

    state: Literal["starting", "running", "waiting", "stopping", "silent"]
    start: float
    end: float


class Lane(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one rank, the kernel log of one host, or lines of no known rank show over time. Marks stand in time order,
    those without a time in reading order. seen is False for a rank of the job that no input shows."""

    about: Literal["rank", "kernel", "other"] = "rank"
    rank: int | UnsetType = UNSET
    host: str | UnsetType = UNSET
    spans: list[Span] = []
    marks: list[Mark] = []
    seen: bool = True


class Timeline(msgspec.Struct, frozen=True):
    """The picture of the job: lanes by host, then rank. start: ISO 8601; zone as for evidence; length_s: to the last
    time shown. Bounded: at most 8,192 lanes of 16 marks, each text at most 160 characters; notes say what is cut."""

    start: str | UnsetType = UNSET
    zone: str | UnsetType = UNSET
    length_s: float = 0.0
    lanes: list[Lane] = []
    notes: list[str] = []


class CommunicatorInfo(msgspec.Struct, frozen=True):
    """One NCCL communicator. Ranks are those inside it, which are global ones where `world` is true."""

    name: str
    size: int
    world: bool
    started: list[int] = []
    completed: list[int] = []
    missing: list[int] = []


class SettingInfo(msgspec.Struct, frozen=True):
    """A variable that ranks print with different values: for each value who printed it ("rank 3", "host a01")."""

    name: str
    values: dict[str, list[str]]
    must_agree: bool = False


class Job(msgspec.Struct, frozen=True):
    """The job in a few facts. versions: by component (nccl, nccl_cuda, torch, driver), every one that was printed."""

    hosts: list[str] = []
    versions: dict[str, list[str]] = {}
    communicators: list[CommunicatorInfo] = []
    settings: list[SettingInfo] = []


class Excerpt(msgspec.Struct, frozen=True):
    """Lines around a line of evidence as they stand in the input; first is the number of the first."""

    source: str
    first: int
    lines: list[str]


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
    # Only where asked for (`--timeline`, or by a format that shows them): they are large.
    job: Job | UnsetType = UNSET
    timeline: Timeline | UnsetType = UNSET
    excerpts: list[Excerpt] | UnsetType = UNSET

    @property
    def exit_status(self) -> int:
        """0 no failure, 1 a failure was found, 3 unreadable."""
        return {"no_failure": 0, "unreadable": 3}.get(self.verdict, 1)


def without_picture(report: Report) -> Report:
    """The report without what only pictures need."""
    return msgspec.structs.replace(report, job=UNSET, timeline=UNSET, excerpts=UNSET)


def to_json(report: Report, *, indent: int = 2) -> str:
    """The report as JSON text, keys in declared order."""
    raw = msgspec.json.encode(report)
    return (msgspec.json.format(raw, indent=indent) if indent else raw).decode() + "\n"


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of the report."""
    return msgspec.json.schema(Report)
