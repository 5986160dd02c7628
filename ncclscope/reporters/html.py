"""One self-contained HTML file: the picture of the job first, then findings with their evidence in context, the
communicators, and settings that differ. It asks nothing of any server; its content security policy forbids it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import UNSET

from ncclscope.report import AbsenceEvidence, Excerpt, Finding, LineEvidence, Report
from ncclscope.reporters import words
from ncclscope.reporters.html_markup import Html, join, tag
from ncclscope.reporters.html_picture import picture
from ncclscope.reporters.safe import shorten, shown

__all__ = ["render"]

_MAX_FINDINGS = 40
_MAX_CONSEQUENCES = 60
_MAX_ROWS = 400
_MAX_TEXT = 2000
_MAX_LINE = 600
_MAX_CONTEXT = 240
# Bytes that the rows of the picture may take, tried until the whole stays under the size that tickets take.
_BUDGETS = (800_000, 400_000, 100_000)
_LIMIT = 1_000_000


def render(report: Report) -> str:
    """The page. It shows what the report holds: `timeline`, `job` and `excerpts` where they were asked for."""
    report = msgspec.convert(_bounded(msgspec.to_builtins(report)), Report)
    page = ""
    for budget in _BUDGETS:
        page = _page(report, budget)
        if len(page.encode("utf-8", "replace")) < _LIMIT:
            break
    return page


def _bounded(value: Any) -> Any:
    """Plain data with every text cut to what a page can show: a line of a log can have any length."""
    if isinstance(value, str):
        return shorten(value, _MAX_TEXT)
    if isinstance(value, list):
        return [_bounded(item) for item in value]
    if isinstance(value, dict):
        return {_bounded(key): _bounded(item) for key, item in value.items()}
    return value


def _page(report: Report, budget: int) -> str:
    report, directory = words.relative(report)
    title = f"{words.HEADLINE[report.verdict].capitalize()}: {words.headline(report)}"
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", shorten(title, 200)),
        tag("style", Html(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the findings", href="#findings", class_="skip"),
        tag("header", _header(report, directory)),
        tag("main", *_main(report, budget)),
        tag("footer", f"ncclscope {report.tool_version}, report schema {report.schema_version}"),
        tag("script", Html(script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _asset(name: str) -> str:
    return files("ncclscope.reporters").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _header(report: Report, directory: str) -> Html:
    first = report.findings[0] if report.findings else None
    rows = [("Seen", words.seen(report)), ("Files in", directory)]
    if first is not None:
        rule = f"{first.rule} {words.category(first)}".strip()
        rows[:0] = [
            ("Finding", f"{rule}, {words.LABEL[first.confidence]}"),
            ("Culprit", words.culprit(first) or "nobody is named"),
            ("First failure", words.first_failure(report)),
            ("Phase", first.phase.replace("_", " ")),
        ]
    if report.job is not UNSET:
        rows += [("Hosts", words.some(report.job.hosts)), ("Versions", words.versions(report))]
    facts = [join(tag("dt", name), tag("dd", value)) for name, value in rows if value and value != "unknown"]
    return join(
        tag("p", words.HEADLINE[report.verdict].capitalize(), class_=f"verdict {report.verdict}"),
        tag("h1", shown(words.headline(report), 400)),
        tag("dl", *facts),
    )


def _main(report: Report, budget: int) -> Iterator[Html]:
    if report.timeline is not UNSET:
        yield tag("section", tag("h2", "What happened when"), picture(report, budget), id="picture")
    yield tag("section", tag("h2", "Findings"), *_findings(report), id="findings")
    if report.unknowns or report.collect:
        yield tag("section", tag("h2", "Not known"), *_open_ends(report), id="unknowns")
    if report.job is not UNSET and report.job.communicators:
        yield tag("section", tag("h2", "Communicators"), _communicators(report), id="communicators")
    if report.job is not UNSET and report.job.settings:
        yield tag("section", tag("h2", "Settings that differ between ranks"), _settings(report), id="settings")
    yield tag("section", tag("h2", "Inputs"), _inputs(report), id="inputs")


def _findings(report: Report) -> Iterator[Html]:
    if not report.findings:
        yield tag("p", words.headline(report))
    found = [] if report.excerpts is UNSET else report.excerpts
    excerpts = {(e.source, number): e for e in found for number in range(e.first, e.first + len(e.lines))}
    for number, finding in enumerate(report.findings[:_MAX_FINDINGS]):
        yield _finding(finding, excerpts, first=number == 0)
    if len(report.findings) > _MAX_FINDINGS:
        yield tag("p", f"{len(report.findings) - _MAX_FINDINGS} more findings are in the JSON report.")


def _finding(finding: Finding, excerpts: dict[tuple[str, int], Excerpt], *, first: bool) -> Html:
    kind = "cause" if finding.role == "root_cause" else "symptom"
    rule = f"{finding.rule} {words.category(finding)}".strip()
    summary = tag(
        "summary",
        tag("h3", shown(finding.title, 400)),
        tag("small", ", ".join(filter(None, (rule, words.LABEL[finding.confidence], words.culprit(finding))))),
    )
    parts: list[object] = [tag("h4", "Proof"), *(_evidence(e, excerpts) for e in finding.evidence)]
    if finding.why:
        parts += [tag("h4", "How sure"), tag("ul", *(tag("li", why) for why in finding.why))]
    if finding.fix:
        parts += [tag("h4", "Fix"), tag("p", finding.fix)]
    if finding.next_checks:
        checks = [_check(c.do, c.where, words.EFFECT[c.effect], c.command) for c in finding.next_checks]
        parts += [tag("h4", "Next checks"), tag("ol", *checks)]
    if finding.explains:
        parts += [tag("h4", f"Consequences of it ({len(finding.explains)})"), tag("ul", *_consequences(finding))]
    if finding.refs:
        parts += [tag("h4", "Read more"), tag("ul", *(tag("li", f"{r.title}: {r.url}") for r in finding.refs))]
    return tag("details", summary, *parts, class_=f"finding {kind}", open=first)


def _evidence(item: LineEvidence | AbsenceEvidence, excerpts: dict[tuple[str, int], Excerpt]) -> Html:
    if isinstance(item, AbsenceEvidence):
        return tag("p", words.absence(item), class_="absence")
    times = f", {item.count:,} times" if item.count > 1 else ""
    when = f", {item.time}" if item.time is not UNSET else ""
    excerpt = excerpts.get((item.source, item.line))
    lines = [(item.line, item.text)] if excerpt is None else list(enumerate(excerpt.lines, excerpt.first))
    rows = [
        tag("mark", tag("i", number), shown(line, _MAX_LINE))
        if number == item.line
        else tag("span", tag("i", number), shown(line, _MAX_CONTEXT))
        for number, line in lines
    ]
    body = tag("pre", Html("\n".join(rows)), tabindex="0")
    return tag("figure", tag("figcaption", f"{item.source}:{item.line}{when}{times}"), body)


def _check(do: str, where: str, effect: str, command: str) -> Html:
    strong = tag("strong", f" {effect}") if effect else ""
    return tag("li", do, f" ({where})", strong, tag("pre", tag("code", command), tabindex="0"))


def _consequences(finding: Finding) -> Iterator[Html]:
    for folded in finding.explains[:_MAX_CONSEQUENCES]:
        lines = words.lines_of(folded)
        times = sum(e.count for e in lines)
        where = f", first at {lines[0].source}:{lines[0].line}" if lines else ""
        yield tag("li", shown(folded.title, 300), f", {times:,} lines" if times > 1 else "", where)
    if len(finding.explains) > _MAX_CONSEQUENCES:
        yield tag("li", f"and {len(finding.explains) - _MAX_CONSEQUENCES} more")


def _open_ends(report: Report) -> Iterator[Html]:
    if report.unknowns:
        yield tag("ul", *(tag("li", shown(u, 1000)) for u in report.unknowns))
    if report.collect:
        yield tag("h3", "To decide it, collect")
        yield tag("ol", *(tag("li", c.what, tag("pre", tag("code", c.command), tabindex="0")) for c in report.collect))


def _table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> Html:
    body = [tag("tr", *(tag("td", cell) for cell in row)) for row in rows[:_MAX_ROWS]]
    more = len(rows) - _MAX_ROWS
    if more > 0:
        body.append(tag("tr", tag("td", f"and {more:,} more", colspan=len(head))))
    header = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in head)))
    return tag("div", tag("table", header, tag("tbody", *body)), class_="wide", tabindex="0")


def _communicators(report: Report) -> Html:
    rows: list[tuple[object, ...]] = []
    for c in report.job.communicators if report.job is not UNSET else ():
        name = f"{c.name}, all ranks" if c.world else c.name
        rows.append((name, c.size, _of(c.started, c.size), _of(c.completed, c.size), _of(c.missing, c.size) or "none"))
    return _table(("communicator", "size", "started", "completed", "missing"), rows)


def _of(ranks: list[int], size: int) -> str:
    return f"all {size:,}" if len(ranks) == size else f"{len(ranks):,}: {words.ranges(ranks)}" if ranks else ""


def _settings(report: Report) -> Html:
    rows: list[tuple[object, ...]] = []
    for setting in report.job.settings if report.job is not UNSET else ():
        for value, who in setting.values.items():
            must = "must agree" if setting.must_agree else ""
            rows.append((setting.name, shown(value, 200), words.some(who), must))
    return _table(("variable", "value", "printed by", ""), rows)


def _inputs(report: Report) -> Html:
    rows: list[tuple[object, ...]] = [
        (
            i.path,
            f"{i.bytes:,}",
            f"{i.lines:,}",
            f"{i.events:,}",
            shown(i.format, 120),
            "" if i.note is UNSET else i.note,
        )
        for i in report.inputs
    ]
    table = _table(("input", "bytes", "lines", "recognised", "format", "note"), rows)
    notes = tag("ul", *(tag("li", w) for w in report.warnings)) if report.warnings else ""
    return tag("details", tag("summary", words.several(len(rows), "input")), table, notes, open=len(rows) < 5)
