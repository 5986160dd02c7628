"""The report for a tired person: cause, culprit, proof, next checks, in ten seconds.

Plain text when it does not go to a terminal or NO_COLOR is set; the words are the same either way.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator, Sequence

from ncclscope.report import UNSET, AbsenceEvidence, Finding, LineEvidence, Report
from ncclscope.reporters.safe import harmless, shorten

__all__ = ["render"]

_MAX_PROOF = 6
_MAX_FOLDED = 8
_PLAIN_WIDTH = 110
_EFFECT = {
    "read_only": "",
    "reruns_job": "reruns the job",
    "changes_environment": "changes the environment",
    "disruptive": "DISRUPTIVE",
}
_LABEL = {"confirmed": "confirmed", "likely": "likely", "possible": "possible", "hint": "a hint only"}


def render(report: Report, *, to_terminal: bool, width: int | None = None) -> str:
    """The report as text. to_terminal: colours and the terminal's width."""
    from rich.console import Console
    from rich.text import Text

    width = width or (shutil.get_terminal_size((_PLAIN_WIDTH, 40)).columns if to_terminal else _PLAIN_WIDTH)
    colour = to_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    out = io.StringIO()
    console = Console(
        file=out,
        width=max(40, width),
        force_terminal=colour,
        no_color=not colour,
        highlight=False,
        emoji=False,
        markup=False,
    )
    for indent, style, text, wrap in _lines(report, max(40, width)):
        line = Text(harmless(text), style=style if colour else "")
        if not wrap:
            console.print(Text(" " * indent) + line, soft_wrap=True)
            continue
        for row in line.wrap(console, max(20, width - indent)):
            row.rstrip()
            console.print(Text(" " * indent) + row, soft_wrap=True)
    return out.getvalue()


# (indent, style, text, whether to wrap)
_Row = tuple[int, str, str, bool]


def _lines(report: Report, width: int) -> Iterator[_Row]:
    yield from _headline(report)
    for number, finding in enumerate(report.findings[:3]):
        if number:
            yield 0, "", "", True
            yield (
                0,
                "bold",
                f"Also {'possible' if finding.role == 'root_cause' else 'seen'}: {finding.title}",
                True,
            )
            yield 2, "dim", f"{finding.rule}{_category(finding)}, {_LABEL[finding.confidence]}", True
            yield from _proof(finding, width, 2)
            continue
        yield from _whole(finding, width)
    if len(report.findings) > 3:
        yield 0, "", "", True
        yield 0, "dim", f"{len(report.findings) - 3} more findings: --format json lists them", True
    yield from _open_ends(report)


def _headline(report: Report) -> Iterator[_Row]:
    style = {"cause_found": "bold red", "symptom_only": "bold yellow", "no_failure": "bold green"}.get(
        report.verdict, "bold magenta"
    )
    words = {
        "cause_found": "ROOT CAUSE",
        "symptom_only": "NO CAUSE VISIBLE",
        "no_failure": "NO FAILURE",
        "unreadable": "UNREADABLE",
    }[report.verdict]
    first = report.findings[0] if report.findings else None
    if first is not None:
        yield 0, style, f"{words}: {first.title}", True
    elif report.verdict == "no_failure":
        yield 0, style, f"{words}: nothing in the input is a fault", True
    else:
        reason = report.unknowns[0] if report.unknowns else "nothing was recognised"
        yield 0, style, f"{words}: {reason}", True
    yield 0, "dim", _seen(report), True


def _seen(report: Report) -> str:
    ranks = report.ranks
    files = len(report.inputs)
    lines = sum(i.lines for i in report.inputs)
    parts = []
    if ranks.expected is not UNSET:
        parts.append(f"{len(ranks.seen)} of {ranks.expected} ranks seen")
    elif ranks.seen:
        parts.append(f"{len(ranks.seen)} rank{'s' * (len(ranks.seen) != 1)} seen")
    parts.append(f"{files} input{'s' * (files != 1)}, {lines:,} lines")
    bad = [i.path for i in report.inputs if i.format == "unreadable"]
    if bad:
        parts.append(f"{len(bad)} unreadable")
    return "; ".join(parts)


def _category(finding: Finding) -> str:
    return f" {finding.category}" if finding.category is not UNSET else ""


def _whole(finding: Finding, width: int) -> Iterator[_Row]:
    yield 0, "dim", f"{finding.rule}{_category(finding)}, {_LABEL[finding.confidence]}{_phase(finding)}", True
    culprit = _culprit(finding)
    if culprit:
        yield 0, "", "", True
        yield 0, "bold", "Culprit", True
        yield 2, "", culprit, True
    yield 0, "", "", True
    yield 0, "bold", "Proof", True
    yield from _proof(finding, width, 2)
    if finding.why:
        yield 0, "", "", True
        yield 0, "bold", "How sure", True
        for reason in finding.why:
            yield 2, "", f"- {reason}", True
    if finding.fix:
        yield 0, "", "", True
        yield 0, "bold", "Fix", True
        yield 2, "", finding.fix, True
    if finding.next_checks:
        yield 0, "", "", True
        yield 0, "bold", "Next checks", True
        for check in finding.next_checks:
            effect = f" [{_EFFECT[check.effect]}]" if _EFFECT[check.effect] else ""
            yield 2, "", f"- {check.do} ({check.where}){effect}", True
            yield 4, "cyan", check.command, False
    if finding.explains:
        yield 0, "", "", True
        yield 0, "bold", "Consequences of it", True
        for folded in finding.explains[:_MAX_FOLDED]:
            times = sum(e.count for e in folded.evidence if isinstance(e, LineEvidence))
            where = next((f" ({e.source}:{e.line})" for e in folded.evidence if isinstance(e, LineEvidence)), "")
            yield (
                2,
                "dim",
                f"- {shorten(folded.title, 160)}{f', {times} lines' if times > 1 else ''}{where}",
                True,
            )
        if len(finding.explains) > _MAX_FOLDED:
            yield 2, "dim", f"- and {len(finding.explains) - _MAX_FOLDED} more", True


def _phase(finding: Finding) -> str:
    return "" if finding.phase == "unknown" else f", in phase {finding.phase.replace('_', ' ')}"


def _culprit(finding: Finding) -> str:
    c = finding.culprit
    parts = []
    for word, values in (("rank", c.ranks), ("host", c.hosts), ("GPU", c.gpus), ("pid", c.pids)):
        if values:
            shown = ", ".join(map(str, values[:8])) + (f" and {len(values) - 8} more" if len(values) > 8 else "")
            parts.append(f"{word}{'s' * (len(values) > 1)} {shown}")
    return ", ".join(parts)


def _proof(finding: Finding, width: int, indent: int) -> Iterator[_Row]:
    room = max(40, width - indent)
    for item in finding.evidence[:_MAX_PROOF]:
        if isinstance(item, AbsenceEvidence):
            words = {
                "not_found": "not found",
                "not_given": "no such input was given",
                "not_checked": "the input may be cut there",
            }
            yield indent, "", f"{item.expected}: {words[item.result]} in {', '.join(item.searched[:3])}", True
            continue
        times = f"  ({item.count} times)" if item.count > 1 else ""
        place = f"{item.source}:{item.line}"
        yield indent, "dim", f"{place}{times}", False
        yield indent + 2, "", shorten(harmless(item.text), room - 2), False


def _open_ends(report: Report) -> Iterator[_Row]:
    if report.unknowns and report.verdict != "unreadable":
        yield 0, "", "", True
        yield 0, "bold", "Not known", True
        for text in report.unknowns:
            yield 2, "", f"- {text}", True
    if report.collect:
        yield 0, "", "", True
        yield 0, "bold", "To decide it, collect", True
        for item in report.collect:
            yield 2, "", f"- {item.what}", True
            yield 4, "cyan", item.command, False
    notes = [f"{i.path}: {i.note}" for i in report.inputs if i.note is not UNSET]
    if notes or report.warnings:
        yield 0, "", "", True
        yield 0, "bold", "Notes on the input", True
        yield from _some([*notes, *report.warnings])


def _some(texts: Sequence[str]) -> Iterator[_Row]:
    for text in texts[:8]:
        yield 2, "dim", f"- {text}", True
    if len(texts) > 8:
        yield 2, "dim", f"- and {len(texts) - 8} more", True
