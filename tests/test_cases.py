"""Labelled logs: the right answer, with proof that stands where it says and a next check that can be run."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import msgspec
import pytest
from support import CASES, HEALTHY, LogCase, case, options

from ncclscope.engine.fold import flat
from ncclscope.parsers.flight_recorder import looks_like_dump
from ncclscope.pipeline import analyze
from ncclscope.report import CONFIDENCE, LineEvidence, json_schema, to_json

if TYPE_CHECKING:
    from ncclscope.engine.pack import Pack
    from ncclscope.report import Report

FAULTY = tuple(case for case in CASES if not case.healthy)


def by_name(cases: tuple[LogCase, ...]) -> list[object]:
    return [pytest.param(case, id=case.name) for case in cases]


_reports: dict[str, Report] = {}


def triage(case: LogCase, pack: Pack) -> Report:
    if case.name not in _reports:
        _reports[case.name] = analyze(case.paths, options=options(), pack=pack)
    return _reports[case.name]


@pytest.mark.parametrize("case", by_name(FAULTY))
def test_verdict_and_class(case: LogCase, pack: Pack) -> None:
    """The class is right where the log shows the cause, and never wrong where it does not."""
    report = triage(case, pack)
    first = report.findings[0]
    if case.expected["verdict"] == "cause_found":
        assert report.verdict == "cause_found"
    if report.verdict == "cause_found":
        assert first.role == "root_cause"
        assert first.category in case.expected["category"]
    else:
        assert report.verdict == "symptom_only"
    ceiling = case.expected.get("at_most", "confirmed")
    assert CONFIDENCE.index(first.confidence) <= CONFIDENCE.index(ceiling)


@pytest.mark.parametrize("case", by_name(tuple(c for c in FAULTY if "ranks" in c.expected)))
def test_culprit_ranks(case: LogCase, pack: Pack) -> None:
    """Exactly the ranks that the fault was planted in are blamed."""
    assert triage(case, pack).findings[0].culprit.ranks == case.expected["ranks"]


@pytest.mark.parametrize("case", by_name(tuple(c for c in FAULTY if "phase" in c.expected)))
def test_phase(case: LogCase, pack: Pack) -> None:
    """The report names the phase in which the fault struck."""
    assert triage(case, pack).findings[0].phase == case.expected["phase"]


@pytest.mark.parametrize("case", by_name(FAULTY))
def test_next_check_has_a_command(case: LogCase, pack: Pack) -> None:
    """Whatever the verdict, the first finding says what to run next, and names every hole in a command."""
    checks = triage(case, pack).findings[0].next_checks
    assert checks
    for check in checks:
        assert check.command.strip()
        holes = set(re.findall(r"<([a-z][a-z_ ]*)>", check.command))
        assert holes <= set(check.unfilled), check


@pytest.mark.parametrize("case", by_name(HEALTHY))
def test_healthy_run_has_no_finding(case: LogCase, pack: Pack) -> None:
    """No rule, symptoms included, holds on the log of a run in which nothing failed."""
    report = triage(case, pack)
    assert [(f.rule, f.title) for f in flat(report.findings)] == []
    assert report.verdict == "no_failure"


@pytest.mark.parametrize("case", by_name(CASES))
def test_exit_status_follows_the_label(case: LogCase, pack: Pack) -> None:
    """A script that looks at the exit status alone can tell a failed run from a healthy one."""
    assert triage(case, pack).exit_status == (0 if case.healthy else 1)


@pytest.mark.parametrize("case", by_name(CASES))
def test_evidence_stands_where_it_says(case: LogCase, pack: Pack) -> None:
    """The text of every quoted line is part of that line of that file."""
    for finding in flat(triage(case, pack).findings):
        for item in finding.evidence:
            if isinstance(item, LineEvidence):
                lines = lines_of(item.source)
                if lines is not None:
                    assert item.text in lines[item.line - 1], (finding.rule, item)


@lru_cache(maxsize=128)
def lines_of(path: str) -> list[str] | None:
    """Lines of a text file without colours and NULs; None for a flight-recorder dump, which has none."""
    data = Path(path).read_bytes()
    if looks_like_dump(data[:4096], path):
        return None
    text = data.replace(b"\0", b"").decode("utf-8", "replace")
    return re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", text).split("\n")


@pytest.mark.parametrize("case", by_name(FAULTY))
def test_findings_rest_on_evidence(case: LogCase, pack: Pack) -> None:
    """No finding, folded ones included, comes without a line or an absence that proves it."""
    for finding in flat(triage(case, pack).findings):
        assert finding.evidence, finding.rule


@pytest.mark.parametrize("case", by_name(CASES))
def test_titles_have_no_holes(case: LogCase, pack: Pack) -> None:
    """What a person reads first has no unfilled placeholder in it."""
    for finding in flat(triage(case, pack).findings):
        assert not re.search(r"<[a-z_ ]+>|\{[a-z_.]+[|?}]", finding.title), finding.title


@pytest.mark.parametrize("case", by_name(CASES))
def test_json_validates_against_the_published_schema(case: LogCase, pack: Pack) -> None:
    """What is printed as JSON is what the schema promises."""
    jsonschema.validate(msgspec.json.decode(to_json(triage(case, pack))), json_schema())


@pytest.mark.parametrize("case", by_name(CASES))
def test_no_warning_about_our_own_code(case: LogCase, pack: Pack) -> None:
    """No parser, correlator or rule fails on a log that was really printed."""
    assert triage(case, pack).warnings == []


@pytest.mark.parametrize("case", by_name(CASES))
def test_ranks_seen_are_within_the_job(case: LogCase, pack: Pack) -> None:
    """No rank is reported, or blamed, that the job cannot have."""
    report = triage(case, pack)
    blamed = {r for f in flat(report.findings) for r in f.culprit.ranks}
    if isinstance(report.ranks.expected, int):
        assert max(blamed | set(report.ranks.seen), default=0) < report.ranks.expected


def test_every_class_with_a_recorded_log_is_covered() -> None:
    """The labelled logs span the vocabulary, but for classes that no log could be recorded or found for."""
    from ncclscope.knowledge.causes import CAUSES

    without = {"ib-config", "net-plugin-abi", "fd-limit", "storage-hang", "gpu-thermal-power", "healthy"}
    labelled = {c.expected["category"][0] for c in FAULTY}
    assert labelled >= set(CAUSES) - without


@pytest.mark.parametrize("name", ["jit-226-eager", "noarch-226-eager", "noarch-228-lazy"])
def test_missing_machine_code_is_told_for_both_kinds_of_init(name: str, pack: Pack) -> None:
    """The same library fails in init when communicators are made eagerly and at the first collective when lazily: the
    report says where the other kind would have shown it."""
    finding = triage(case(name), pack).findings[0]
    told = " ".join([finding.title, *finding.why, finding.fix]).lower()
    assert "first collective" in told
    assert "lazily" in told or "lazy" in told
