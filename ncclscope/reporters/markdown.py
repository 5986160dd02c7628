"""A page for a ticket in GitHub's Markdown. Whatever a log holds comes out as text: nothing of it is markup, a link, a
mention or a reference. Fits one comment, and says what had to be left out for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from ncclscope.report import AbsenceEvidence, Finding, Report
from ncclscope.reporters import words
from ncclscope.reporters.safe import harmless, shown

__all__ = ["LIMIT", "render"]

# Characters that GitHub takes in one comment; counted here in UTF-8 bytes, which are never fewer.
LIMIT = 65_536

_MAX_TITLE = 300
_MAX_LINE = 400
_MAX_CELL = 600
_MAX_COMMAND = 1000
_MAX_LIST = 30
_MAX_PROOF = 8
# What Markdown or GitHub could take for more than a character: anywhere, at the edge of a word, before a name that
# ends in a colon (an emoji), and at the start of a text.
_SPECIAL = re.compile(r"[\\`*\[\]|~$#]|_(?![A-Za-z0-9])|(?<![A-Za-z0-9])_|:(?=[\w+-]+:)|^[-+=>]")
_NUMBERED = re.compile(r"^(\d{1,9})([.)])")
# Mentions, references to issues and addresses, which GitHub makes of plain text: a zero-width space ends them.
_REFERENCE = re.compile(r"@|\\#(?=\d)|\bGH-(?=\d)|//|\bwww(?=\.)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of the page. need: 0 must stay, higher goes first when the page is too long; name: said when it goes."""

    text: str
    need: int = 0
    name: str = ""


def render(report: Report, *, limit: int = LIMIT) -> str:
    """The page, at most `limit` bytes of UTF-8 (at least 4,096)."""
    sections = list(_sections(*words.relative(report)))
    cut: list[str] = []
    while True:
        page = _page(sections, cut)
        if len(page.encode("utf-8", "replace")) <= limit:
            return page
        last = max(range(len(sections)), key=lambda i: (sections[i].need, i))
        if sections[last].need == 0:
            return _clipped(page, limit)
        cut.append(sections.pop(last).name)


def _page(sections: Sequence[_Section], cut: Sequence[str]) -> str:
    parts = [s.text for s in sections]
    if cut:
        names = ", ".join(dict.fromkeys(reversed(cut)))
        parts.append(f"_Left out, to fit a comment: {_text(names)}. The JSON and HTML reports hold everything._")
    return "\n\n".join(parts) + "\n"


def _clipped(page: str, limit: int) -> str:
    """The last resort: whole lines up to the limit."""
    note = "\n```\n\n_Cut here, to fit a comment._\n"
    kept = page.encode("utf-8", "replace")[: limit - len(note)].decode("utf-8", "ignore")
    kept = kept[: kept.rfind("\n")]
    inside = sum(line.lstrip().startswith("```") for line in kept.splitlines()) % 2
    return kept + (note if inside else note.replace("```\n", ""))


def _sections(report: Report, directory: str) -> Iterable[_Section]:
    title = _text(shown(words.headline(report), _MAX_TITLE))
    yield _Section(f"### {words.HEADLINE[report.verdict].capitalize()}: {title}")
    yield _Section(_facts(report, directory))
    for number, finding in enumerate(report.findings[:3]):
        if number:
            label = "Also possible" if finding.role == "root_cause" else "Also seen"
            yield _Section(
                f"#### {label}: {_text(shown(finding.title, _MAX_TITLE))}\n\n"
                f"{_code(finding.rule)} {_text(words.category(finding))}, {words.LABEL[finding.confidence]}\n\n"
                + "\n\n".join(_proof(finding)[:3]),
                3 + number,
                "other findings",
            )
            continue
        yield from _whole(finding)
    if len(report.findings) > 3:
        yield _Section(f"{len(report.findings) - 3} more findings are in the JSON report.")
    yield from _open_ends(report)
    yield _Section(f"<sub>ncclscope {_text(report.tool_version)}, rules by id: `ncclscope explain ID`</sub>")


def _facts(report: Report, directory: str) -> str:
    first = report.findings[0] if report.findings else None
    rows = [("Seen", words.seen(report))]
    if first is not None:
        rule = f"{first.rule} {words.category(first)}".strip()
        rows.insert(0, ("Finding", f"{rule}, {words.LABEL[first.confidence]}"))
        rows.insert(1, ("Culprit", words.culprit(first) or "nobody is named"))
        rows += [("First failure", words.first_failure(report)), ("Phase", first.phase.replace("_", " "))]
    if report.job is not UNSET:
        rows += [("Hosts", words.some(report.job.hosts)), ("Versions", words.versions(report))]
    rows.append(("Files in", directory))
    cells = [f"| {name} | {_text(shown(value, _MAX_CELL))} |" for name, value in rows if value and value != "unknown"]
    return "\n".join(["| | |", "| --- | --- |", *cells])


def _whole(finding: Finding) -> Iterable[_Section]:
    proof = _proof(finding)
    if proof:
        yield _Section("**Proof**\n\n" + "\n\n".join(proof[:2]))
    for item in proof[2:_MAX_PROOF]:
        yield _Section(item, 5, "part of the proof")
    if len(proof) > _MAX_PROOF:
        yield _Section(f"{len(proof) - _MAX_PROOF} more lines of proof are in the JSON report.")
    if finding.why:
        yield _Section("**How sure**\n\n" + _bullets(finding.why), 6, "how sure this is")
    if finding.fix:
        yield _Section("**Fix**\n\n" + _text(shown(finding.fix, 2000)), 1, "the fix")
    if finding.next_checks:
        yield _Section("**Next checks**\n\n" + "\n".join(_checks(finding)), 1, "next checks")
    if finding.explains:
        lines = [_consequence(f) for f in finding.explains]
        yield _folded(f"Consequences of it ({len(lines)})", lines, 8, "consequences")


def _proof(finding: Finding) -> list[str]:
    out = []
    for item in finding.evidence:
        if isinstance(item, AbsenceEvidence):
            out.append(_text(shown(words.absence(item), _MAX_CELL)))
            continue
        times = f" ({item.count:,} times)" if item.count > 1 else ""
        place = _code(f"{shown(item.source, 200)}:{item.line}")
        out.append(f"{place}{times}\n\n{_fence(shown(item.text, _MAX_LINE))}")
    return out


def _checks(finding: Finding) -> Iterable[str]:
    for check in finding.next_checks[:_MAX_LIST]:
        effect = f" **{words.EFFECT[check.effect]}**" if words.EFFECT[check.effect] else ""
        yield f"- [ ] {_line(check.do)} ({_line(check.where)}){effect}\n"
        yield _fence(shown(check.command, _MAX_COMMAND), "sh", indent="  ") + "\n"


def _consequence(finding: Finding) -> str:
    lines = words.lines_of(finding)
    times = sum(e.count for e in lines)
    where = f", first at {lines[0].source}:{lines[0].line}" if lines else ""
    return f"{finding.title}{f', {times:,} lines' if times > 1 else ''}{where}"


def _open_ends(report: Report) -> Iterable[_Section]:
    if report.unknowns and report.verdict != "unreadable":
        yield _folded(f"Not known ({len(report.unknowns)})", report.unknowns, 4, "what is not known")
    if report.collect:
        items = [
            f"- {_line(c.what)}\n\n{_fence(shown(c.command, _MAX_COMMAND), 'sh', indent='  ')}\n"
            for c in report.collect[:_MAX_LIST]
        ]
        yield _Section("**To decide it, collect**\n\n" + "\n".join(items), 2, "what to collect")
    notes = [f"{i.path}: {i.note}" for i in report.inputs if i.note is not UNSET] + report.warnings
    if notes:
        yield _folded(f"Notes on the input ({len(notes)})", notes, 9, "notes on the input")


def _folded(summary: str, items: Sequence[str], need: int, name: str) -> _Section:
    more = f"\n- and {len(items) - _MAX_LIST} more" if len(items) > _MAX_LIST else ""
    body = _bullets(items[:_MAX_LIST]) + more
    return _Section(f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>", need, name)


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {_line(item)}" for item in items)


def _line(text: str) -> str:
    return _text(shown(text, _MAX_CELL))


def _text(text: str) -> str:
    """Text that renders as itself."""
    out = _SPECIAL.sub(r"\\\g<0>", harmless(text).strip())
    out = _NUMBERED.sub(r"\1\\\2", out).replace("&", "&amp;").replace("<", "&lt;")
    return _REFERENCE.sub(r"\g<0>&#8203;", out)


def _code(text: str) -> str:
    """A code span, longer in its marks than any run of backticks inside."""
    text = harmless(text)
    mark = "`" * (_longest(text) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return f"{mark}{pad}{text}{pad}{mark}"


def _fence(text: str, language: str = "text", *, indent: str = "") -> str:
    mark = "`" * max(3, _longest(text) + 1)
    return f"{indent}{mark}{language}\n{indent}{text}\n{indent}{mark}"


def _longest(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
