"""The words that all reports share, made from the report alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from ncclscope.report import AbsenceEvidence, LineEvidence

if TYPE_CHECKING:
    from ncclscope.report import Finding, Lane, Report

__all__ = [
    "EFFECT",
    "HEADLINE",
    "LABEL",
    "absence",
    "category",
    "culprit",
    "first_failure",
    "headline",
    "lines_of",
    "ranges",
    "relative",
    "seen",
    "several",
    "shared_directory",
    "some",
    "version",
    "versions",
]

HEADLINE = {
    "cause_found": "ROOT CAUSE",
    "symptom_only": "NO CAUSE VISIBLE",
    "no_failure": "NO FAILURE",
    "unreadable": "UNREADABLE",
}
LABEL = {"confirmed": "confirmed", "likely": "likely", "possible": "possible", "hint": "a hint only"}
EFFECT = {
    "read_only": "",
    "reruns_job": "reruns the job",
    "changes_environment": "changes the environment",
    "disruptive": "DISRUPTIVE",
}
_RESULT = {
    "not_found": "not found in",
    "not_given": "no such input was given, looked in",
    "not_checked": "cannot be checked, the input may be cut:",
}
_COMPONENT = {"nccl": "NCCL", "nccl_cuda": "NCCL's CUDA", "torch": "PyTorch", "driver": "driver's CUDA"}


def several(count: int, word: str) -> str:
    """`1 rank`, `2 ranks`."""
    return f"{count:,} {word}{'s' * (count != 1)}"


def some(values: Sequence[object], most: int = 8) -> str:
    """The first few values, and how many more there are."""
    shown = ", ".join(map(str, values[:most]))
    return f"{shown} and {len(values) - most} more" if len(values) > most else shown


def ranges(ranks: Iterable[int]) -> str:
    """Ranks as ranges: [0, 1, 2, 5] is "0-2, 5"."""
    parts: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return some([str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in parts], 24)


def headline(report: Report) -> str:
    """The one line that says what came out."""
    if report.findings:
        return report.findings[0].title
    if report.verdict == "no_failure":
        return "nothing in the input is a fault"
    return report.unknowns[0] if report.unknowns else "nothing was recognised"


def seen(report: Report) -> str:
    """How much of the job the input shows."""
    ranks, parts = report.ranks, []
    if ranks.expected is not UNSET:
        parts.append(f"{len(ranks.seen):,} of {several(ranks.expected, 'rank')} seen")
    elif ranks.seen:
        parts.append(f"{several(len(ranks.seen), 'rank')} seen")
    lines = sum(i.lines for i in report.inputs)
    parts.append(f"{several(len(report.inputs), 'input')}, {several(lines, 'line')}")
    bad = sum(i.format == "unreadable" for i in report.inputs)
    if bad:
        parts.append(f"{bad} unreadable")
    return "; ".join(parts)


def category(finding: Finding) -> str:
    """The cause class, or nothing for a symptom."""
    return finding.category if finding.category is not UNSET else ""


def culprit(finding: Finding) -> str:
    """`rank 7, host gpu-node-01, GPU 0000:00:07.0, pid 653`; empty where nobody is named."""
    c, parts = finding.culprit, []
    if c.ranks:
        parts.append(f"rank{'s' * (len(c.ranks) > 1)} {ranges(c.ranks)}")
    for word, values in (("host", c.hosts), ("GPU", c.gpus), ("pid", c.pids)):
        if values:
            parts.append(f"{word}{'s' * (len(values) > 1)} {some(values)}")
    return ", ".join(parts)


def absence(item: AbsenceEvidence) -> str:
    """What was expected and where it is not."""
    return f"{item.expected}: {_RESULT[item.result]} {some(item.searched, 3)}"


def lines_of(finding: Finding) -> list[LineEvidence]:
    """The evidence that is a line."""
    return [item for item in finding.evidence if isinstance(item, LineEvidence)]


def first_failure(report: Report) -> str:
    """When and where the first finding's first line was printed."""
    for item in lines_of(report.findings[0]) if report.findings else ():
        zone = "" if item.zone in (UNSET, "unknown") else item.zone
        when = f"{item.time}{zone}, " if item.time is not UNSET else ""
        return f"{when}{item.source}:{item.line}"
    return ""


def versions(report: Report) -> str:
    """`NCCL 2.28.9, PyTorch 2.11.0`; several of one component where ranks differ."""
    found = report.job.versions if report.job is not UNSET else {}
    return ", ".join(
        f"{_COMPONENT.get(name, name)} {' and '.join(version(name, v) for v in values)}"
        for name, values in found.items()
    )


def version(component: str, value: str) -> str:
    """NCCL prints the CUDA version of the driver as 13000 for 13.0."""
    number = int(value) if component == "driver" and value.isdigit() else 0
    return f"{number // 1000}.{number % 1000 // 10}" if number >= 1000 else value


def relative(report: Report) -> tuple[Report, str]:
    """The report with sources relative to the directory that all inputs are in, and that directory with its slash.

    Commands keep the whole paths: they must work as printed.
    """
    directory = shared_directory(report)
    if not directory:
        return report, ""

    def short(path: str) -> str:
        return path.removeprefix(directory)

    def finding(f: Finding) -> Finding:
        evidence = [
            replace(e, source=short(e.source))
            if isinstance(e, LineEvidence)
            else replace(e, searched=[short(s) for s in e.searched])
            for e in f.evidence
        ]
        return replace(f, evidence=evidence, explains=[finding(e) for e in f.explains])

    def lane(one: Lane) -> Lane:
        return replace(one, marks=[replace(m, source=short(m.source)) for m in one.marks])

    timeline, excerpts = report.timeline, report.excerpts
    if timeline is not UNSET:
        timeline = replace(timeline, lanes=[lane(one) for one in timeline.lanes])
    if excerpts is not UNSET:
        excerpts = [replace(e, source=short(e.source)) for e in excerpts]
    return replace(
        report,
        findings=[finding(f) for f in report.findings],
        inputs=[replace(i, path=short(i.path)) for i in report.inputs],
        timeline=timeline,
        excerpts=excerpts,
    ), directory


def shared_directory(report: Report) -> str:
    """The directory that all inputs are in, with its slash; it need not be repeated on every line."""
    # What was passed over is listed as an input of no bytes, under the name of its directory.
    directories = [i.path.split("/")[:-1] for i in report.inputs if i.bytes]
    shared: list[str] = []
    for names in zip(*directories, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "/".join(shared) + "/" if any(shared) else ""
