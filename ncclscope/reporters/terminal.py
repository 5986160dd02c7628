"""The report for a tired person: cause, culprit, proof, next checks, in ten seconds.

Labels stand in a column of their own and text beside them, so that the eye finds a part without reading the others.
Plain text when it does not go to a terminal or NO_COLOR is set; the words are the same either way.
"""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import Iterator, Sequence

from msgspec import UNSET

from ncclscope.report import AbsenceEvidence, Finding, LineEvidence, Report
from ncclscope.reporters import words
from ncclscope.reporters.safe import harmless, shorten, shown

__all__ = ["render"]

_MAX_PROOF = 6
_MAX_FOLDED = 8
_MAX_NOTES = 8
_MAX_TEXT = 4000
_PLAIN_WIDTH = 110
_PROSE = 108  # longer lines are hard to read on a wide terminal
_GUTTER = 11
_NARROW = 60  # below this the labels stand above their text
_STYLES = {
    "bold": "1",
    "dim": "2",
    "cyan": "36",
    "cause_found": "1;31",
    "symptom_only": "1;33",
    "no_failure": "1;32",
    "unreadable": "1;35",
}

# One paragraph: its mark ("1. ", "- "), the style, the text, and whether it may be wrapped.
_Item = tuple[str, str, str, bool]


def render(report: Report, *, to_terminal: bool, width: int | None = None) -> str:
    """The report as text. to_terminal: colours and the terminal's width."""
    width = width or (shutil.get_terminal_size((_PLAIN_WIDTH, 40)).columns if to_terminal else _PLAIN_WIDTH)
    colour = to_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    page = _Page(max(40, width), colour)
    short, directory = words.relative(report)
    _headline(page, short, directory)
    for number, finding in enumerate(short.findings[:3]):
        if number:
            _other(page, finding)
        else:
            _whole(page, finding)
    if len(short.findings) > 3:
        more = words.several(len(short.findings) - 3, "more finding")
        page.section("", [("", "dim", f"{more}: --format html or json lists them all", True)])
    _open_ends(page, short)
    return "\n".join(page.lines) + "\n"


class _Page:
    """Lines of a given width. All text passes `harmless` here, and nothing else does."""

    def __init__(self, width: int, colour: bool) -> None:
        self.lines: list[str] = []
        self.width = width
        self.gutter = _GUTTER if width >= _NARROW else 2
        self._colour = colour

    def styled(self, style: str, text: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self._colour and style and text else text

    def line(self, style: str, text: str, *, hang: int = 0) -> None:
        """A line of its own at the left edge; its continuation is indented by `hang`."""
        rows = _wrapped(shown(text, _MAX_TEXT), min(self.width, _PROSE + _GUTTER), hang)
        self.lines += [" " * (hang if i else 0) + self.styled(style, row) for i, row in enumerate(rows)]

    def section(self, label: str, items: Sequence[_Item]) -> None:
        """A part of the report after an empty line: the label, and beside it the items."""
        self.lines.append("")
        lead = label.ljust(self.gutter)
        if self.gutter < _GUTTER and label:
            self.lines.append(self.styled("bold", label))
            lead = " " * self.gutter
        for mark, style, text, wraps in items:
            room = min(self.width - self.gutter, _PROSE) - len(mark)
            rows = _wrapped(shown(text, _MAX_TEXT), room) if wraps else [harmless(text)]
            for i, row in enumerate(rows):
                margin = self.styled("bold", lead) if lead.strip() else lead
                self.lines.append((margin + (" " * len(mark) if i else mark) + self.styled(style, row)).rstrip())
                lead = " " * self.gutter

    def room(self, mark: str) -> int:
        """How much of a log line fits beside the label."""
        return max(30, self.width - self.gutter - len(mark))


def _cells(text: str) -> int:
    """Columns that a terminal uses for `text`."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _wrapped(text: str, width: int, hang: int = 0) -> list[str]:
    """`text` in rows of at most `width` columns, broken at spaces, or within a word that is longer than a row."""
    rows: list[str] = []
    row = ""
    for word in text.split(" "):
        limit = max(10, width - (hang if rows else 0))
        if row and _cells(row) + 1 + _cells(word) > limit:
            rows.append(row)
            row = word
        else:
            row = f"{row} {word}" if row else word
        while _cells(row) > limit:
            cut = limit if row.isascii() else limit // 2
            rows.append(row[:cut])
            row = row[cut:]
    return [*rows, row]


def _headline(page: _Page, report: Report, directory: str) -> None:
    page.line(report.verdict, f"{words.HEADLINE[report.verdict]}: {words.headline(report)}", hang=2)
    if report.findings:
        page.line("dim", _what(report.findings[0]))
    where = f", in {shorten(directory, 60)}" if directory else ""
    page.line("dim", words.seen(report) + where)


def _what(finding: Finding) -> str:
    """`confirmed, NS8101 user-exception, phase steady`."""
    phase = "" if finding.phase == "unknown" else f", phase {finding.phase.replace('_', ' ')}"
    return f"{words.LABEL[finding.confidence]}, {finding.rule} {words.category(finding)}".rstrip() + phase


def _whole(page: _Page, finding: Finding) -> None:
    if culprit := words.culprit(finding):
        page.section("culprit", [("", "bold", culprit, True)])
    if finding.evidence:
        page.section("proof", list(_proof(page, finding)))
    if finding.fix:
        page.section("fix", [("", "", finding.fix, True)])
    if finding.next_checks:
        page.section("next", list(_checks(finding)))
    if finding.why:
        page.section("how sure", [("- ", "", reason, True) for reason in finding.why])
    if finding.explains:
        page.section("follows", list(_consequences(finding)))


def _other(page: _Page, finding: Finding) -> None:
    label = "or" if finding.role == "root_cause" else "also"
    items: list[_Item] = [("", "bold", finding.title, True), ("", "dim", _what(finding), True)]
    page.section(label, [*items, *list(_proof(page, finding))[:4]])


def _proof(page: _Page, finding: Finding) -> Iterator[_Item]:
    for item in finding.evidence[:_MAX_PROOF]:
        if isinstance(item, AbsenceEvidence):
            yield "", "", words.absence(item), True
            continue
        times = f"  ({item.count:,} times)" if item.count > 1 else ""
        yield "", "dim", f"{item.source}:{item.line}{times}", False
        yield "  ", "", shown(item.text, page.room("  ")), False
    if len(finding.evidence) > _MAX_PROOF:
        yield "", "dim", f"and {len(finding.evidence) - _MAX_PROOF} more", True


def _checks(finding: Finding) -> Iterator[_Item]:
    for number, check in enumerate(finding.next_checks, 1):
        effect = f" [{words.EFFECT[check.effect]}]" if words.EFFECT[check.effect] else ""
        mark = f"{number}. "
        yield mark, "", f"{check.do} ({check.where}){effect}", True
        yield " " * len(mark), "cyan", check.command, False


def _consequences(finding: Finding) -> Iterator[_Item]:
    for folded in finding.explains[:_MAX_FOLDED]:
        lines = [e for e in folded.evidence if isinstance(e, LineEvidence)]
        times = sum(e.count for e in lines)
        where = f" ({lines[0].source}:{lines[0].line})" if lines else ""
        yield "- ", "dim", f"{shorten(folded.title, 160)}{f', {times:,} lines' if times > 1 else ''}{where}", True
    if len(finding.explains) > _MAX_FOLDED:
        yield "- ", "dim", f"and {len(finding.explains) - _MAX_FOLDED} more", True


def _open_ends(page: _Page, report: Report) -> None:
    if report.unknowns and report.verdict != "unreadable":
        page.section("not known", [("- ", "", text, True) for text in report.unknowns])
    if report.collect:
        items: list[_Item] = []
        for item in report.collect:
            items += [("- ", "", item.what, True), ("  ", "cyan", item.command, False)]
        page.section("collect", items)
    notes = [f"{i.path}: {i.note}" for i in report.inputs if i.note is not UNSET] + report.warnings
    if notes:
        more = [f"and {len(notes) - _MAX_NOTES} more"] if len(notes) > _MAX_NOTES else []
        page.section("notes", [("- ", "dim", text, True) for text in [*notes[:_MAX_NOTES], *more]])
