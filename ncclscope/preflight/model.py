"""What a check says and what a run of all checks says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ncclscope.preflight.rules import TRIAGE_RULES

Status = Literal["pass", "warn", "fail", "not_checked"]
Effect = Literal["read_only", "reruns_job", "changes_environment", "disruptive"]
Verdict = Literal["pass", "fail", "unknown"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that a check read: where (a path, a variable, NVML) and what stood there."""

    source: str
    value: str


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do about a result; `command` works as printed, `effect` says what running it changes."""

    do: str
    command: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer of one check.

    `category` is the cause class that triage would name if this went wrong at run time, so that a failure
    seen later points back here; it is set on every result. For `not_checked`, `detail` is the reason.
    """

    id: str
    title: str
    status: Status
    category: str
    detail: str
    evidence: tuple[Evidence, ...] = ()
    next_step: NextStep | None = None

    @property
    def rules(self) -> tuple[str, ...]:
        """The ids of the triage rules that name this in a log, the likeliest first; empty where none does."""
        return TRIAGE_RULES.get((self.id, self.category), ())

    def as_dict(self) -> dict[str, Any]:
        """The result as plain JSON values; fields without a value are absent."""
        record: dict[str, Any] = {
            "id": self.id,
            "title": self.title,
            "status": self.status,
            "category": self.category,
            "detail": self.detail,
        }
        if self.rules:
            record["rules"] = list(self.rules)
        record["evidence"] = [{"source": item.source, "value": item.value} for item in self.evidence]
        if self.next_step is not None:
            step = self.next_step
            record["next_step"] = {"do": step.do, "command": step.command, "effect": step.effect}
        return record


@dataclass(frozen=True, slots=True)
class Subject:
    """The fixed part of a check's results: its id, title and cause class."""

    id: str
    title: str
    category: str

    def passed(self, detail: str, *evidence: Evidence) -> CheckResult:
        return CheckResult(self.id, self.title, "pass", self.category, detail, evidence)

    def warned(self, detail: str, step: NextStep, *evidence: Evidence, category: str = "") -> CheckResult:
        return CheckResult(self.id, self.title, "warn", category or self.category, detail, evidence, step)

    def failed(self, detail: str, step: NextStep, *evidence: Evidence, category: str = "") -> CheckResult:
        return CheckResult(self.id, self.title, "fail", category or self.category, detail, evidence, step)

    def not_checked(self, reason: str, step: NextStep | None = None, *evidence: Evidence) -> CheckResult:
        return CheckResult(self.id, self.title, "not_checked", self.category, reason, evidence, step)


@dataclass(frozen=True, slots=True)
class Report:
    """All results of one run on one host, in the order of the checks."""

    host: str
    gpus: tuple[str, ...]
    driver: str | None
    results: tuple[CheckResult, ...]
    decisive: frozenset[str] = field(default_factory=frozenset)

    def verdict(self, fail_on: Literal["warn", "fail"] = "fail") -> Verdict:
        """`fail` if a result is as bad as `fail_on`.

        `unknown` if a decisive check could not tell; else `pass`.
        """
        bad = {"fail"} if fail_on == "fail" else {"fail", "warn"}
        if any(result.status in bad for result in self.results):
            return "fail"
        if any(result.status == "not_checked" and result.id in self.decisive for result in self.results):
            return "unknown"
        return "pass"
