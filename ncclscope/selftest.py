"""Runs the test cases that rules carry, through the whole pipeline, as a user's input would go."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ncclscope.engine.fold import flat
from ncclscope.errors import NcclscopeError
from ncclscope.pipeline import Options, Read, judge, read
from ncclscope.report import Finding, LineEvidence, Report

if TYPE_CHECKING:
    from ncclscope.engine.pack import Pack
    from ncclscope.engine.rule import Case, Rule

__all__ = ["CaseError", "CaseResult", "ReadCase", "compare", "read_case", "run_case", "run_rule"]


class ReadCase(msgspec.Struct, frozen=True):
    """A case's input as it was read, before any rule is asked. base: where its file names start from."""

    case: Case
    seen: Read
    base: str


class CaseResult(msgspec.Struct, frozen=True):
    """One case of one rule; problems is empty when it gave what it must. given is None when it could not be read."""

    case: Case
    problems: tuple[str, ...]
    given: ReadCase | None = None


class CaseError(NcclscopeError):
    """A case that cannot be run; says why."""


def run_rule(rule: Rule, pack: Pack, fixtures: Path | None = None) -> list[CaseResult]:
    """Every case of `rule`, each against the whole pack. fixtures: the directory that cases may name a part of."""
    return [run_case(rule, case, pack, fixtures) for case in rule.tests]


def run_case(rule: Rule, case: Case, pack: Pack, fixtures: Path | None = None) -> CaseResult:
    """The outcome of one case."""
    try:
        given = read_case(case, pack, fixtures)
    except CaseError as error:
        return CaseResult(case, (str(error),))
    return CaseResult(case, tuple(compare(rule, given, judge(given.seen, pack))), given)


def read_case(case: Case, pack: Pack, fixtures: Path | None = None) -> ReadCase:
    """The case's input through the readers and facts, as a user's would go. Raises CaseError."""
    options = Options(
        gpu=case.options.get("gpu"),
        as_of=float(case.options["as_of"]) if "as_of" in case.options else None,
    )
    if case.fixture:
        if fixtures is None or not (fixtures / case.fixture).is_dir():
            raise CaseError(f"the fixture {case.fixture!r} is not there")
        path = fixtures / case.fixture
        return ReadCase(case, read([path], options=options, pack=pack), str(path))
    # A directory above a kernel log may be its host: no name with a dot after letters alone is one.
    with tempfile.TemporaryDirectory(prefix="ncclscope.") as name:
        root = Path(name)
        paths: list[str] = []
        for file, text in case.given.items():
            path = root / file
            if not path.resolve().is_relative_to(root.resolve()):
                raise CaseError(f"the file name {file!r} leaves the case's directory")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            paths.append(str(path))
        return ReadCase(case, read(paths, options=options, pack=pack), name)


def compare(rule: Rule, given: ReadCase, report: Report) -> list[str]:
    """Where the report differs from what the case expects of `rule`."""
    expect = given.case.expect
    everything = flat(report.findings)
    mine = [f for f in everything if f.rule == rule.id]
    if expect.silent:
        return [f"must be silent, but says: {mine[0].title} ({mine[0].confidence})"] if mine else []
    if not mine:
        others = ", ".join(f"{f.rule} {f.title}" for f in report.findings) or report.verdict
        return [f"must fire, but does not; the report says: {others}"]
    finding = mine[0]
    problems: list[str] = []

    def same(what: str, wanted: object, got: object) -> None:
        if wanted is not None and wanted != got:
            problems.append(f"{what}: expected {wanted!r}, got {got!r}")

    same("confidence", expect.confidence, finding.confidence)
    same("ranks", expect.ranks, finding.culprit.ranks)
    same("hosts", expect.hosts, finding.culprit.hosts)
    same("gpus", expect.gpus, finding.culprit.gpus)
    same("phase", expect.phase, finding.phase)
    same("title", expect.title, finding.title)
    if expect.first and report.findings[0].rule != rule.id:
        problems.append(f"must come first, but {report.findings[0].rule} {report.findings[0].title!r} does")
    places = [_place(item, given.base) for item in finding.evidence if isinstance(item, LineEvidence)]
    problems += [
        f"evidence {wanted} is missing; there are {places}" for wanted in expect.evidence if wanted not in places
    ]
    folded = {f.rule for f in flat(finding.explains)}
    problems += [f"must fold {other}; folds {sorted(folded)}" for other in expect.folds if other not in folded]
    if expect.folded_under is not None and not _is_under(rule.id, expect.folded_under, report.findings):
        problems.append(f"must be folded under {expect.folded_under}")
    checks = [f"{c.do}: {c.command}" for c in finding.next_checks]
    if expect.next_contains is not None and not any(expect.next_contains in c for c in checks):
        problems.append(f"no next check holds {expect.next_contains!r}; there are {checks}")
    if expect.why_contains is not None and not any(expect.why_contains in w for w in finding.why):
        problems.append(f"no reason holds {expect.why_contains!r}; there are {finding.why}")
    if expect.unknowns_contain is not None and not any(expect.unknowns_contain in u for u in report.unknowns):
        problems.append(f"no unknown holds {expect.unknowns_contain!r}; there are {report.unknowns}")
    if "<" in finding.title and ">" in finding.title:
        problems.append(f"the title has a hole that the input does not fill: {finding.title}")
    return problems


def _place(item: LineEvidence, base: str) -> str:
    source = item.source
    prefix = f"{base}/"
    return f"{source[len(prefix) :] if source.startswith(prefix) else source}:{item.line}"


def _is_under(rule_id: str, cause: str, findings: list[Finding]) -> bool:
    return any(f.rule == cause and any(g.rule == rule_id for g in flat(f.explains)) for f in flat(findings))
