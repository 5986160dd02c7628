"""The ticket page: renders as intended, and fits one comment."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt
from reports import large_report, report_of, report_with
from support import CASES

from ncclscope.report import LineEvidence, Report
from ncclscope.reporters import markdown
from ncclscope.reporters.safe import harmless


def tokens(page: str) -> list[object]:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(page)  # type: ignore[return-value]


def fences(page: str) -> list[str]:
    return [t.content.rstrip("\n") for t in tokens(page) if t.type == "fence"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_page_of_a_labelled_log_renders_as_intended(name: str) -> None:
    """One heading first, one table of facts, every line of the first proof in a fence, every section closed."""
    report = report_of(name)
    page = markdown.render(report)
    parsed = tokens(page)
    kinds = [t.type for t in parsed]  # type: ignore[attr-defined]
    assert kinds[0] == "heading_open"
    assert kinds.count("table_open") == 1
    assert page.count("<details>") == page.count("</details>")
    assert all(t.level == 0 for t in parsed if t.type == "html_block")  # type: ignore[attr-defined]
    shown = fences(page)
    for finding in report.findings[:1]:
        for item in [e for e in finding.evidence if isinstance(e, LineEvidence)][:8]:
            assert any(line.startswith(harmless(item.text)[:100].strip()) for line in shown), item.text
        for check in finding.next_checks:
            assert harmless(check.command)[:200] in "\n".join(shown)
        assert page.count("- [ ] ") == len(finding.next_checks)
    assert len(page.encode()) <= markdown.LIMIT


def test_table_says_what_a_ticket_asks_for() -> None:
    """Finding, culprit, ranks, hosts, versions, first failure and phase each have their row."""
    page = markdown.render(report_of("sigkill"))
    rows = dict(re.findall(r"^\| ([A-Z][^|]*?) \| (.*) \|$", page, re.MULTILINE))
    assert set(rows) >= {"Finding", "Culprit", "Seen", "First failure", "Phase", "Hosts", "Versions"}
    assert rows["Culprit"].startswith("rank 1, host gpu-node-00")
    assert "2 of 2 ranks" in rows["Seen"]
    assert rows["First failure"].endswith("job.log:151")
    assert "NCCL 2.28.9" in rows["Versions"]


def test_page_of_4096_ranks_fits_a_comment() -> None:
    """The size follows what there is to say, not the number of ranks."""
    page = markdown.render(large_report(4096))
    assert len(page.encode()) < markdown.LIMIT
    assert "777" in page.splitlines()[0]


def _swollen(count: int) -> Report:
    from msgspec.structs import replace

    report = report_with("word " * 200)
    first = report.findings[0]
    folded = [replace(f, title=f"{i} {f.title}") for i, f in enumerate(first.explains * count)]
    return replace(
        report,
        findings=[replace(first, why=first.why * count, evidence=first.evidence * count, explains=folded)] * 3,
        unknowns=report.unknowns * count,
        warnings=report.warnings * count,
        collect=report.collect * count,
    )


@pytest.mark.parametrize("limit", [4096, 10_000, 65_536])
def test_page_that_is_too_long_says_what_it_left_out(limit: int) -> None:
    """However much there is, the page fits, keeps its heading and table, and names what is missing."""
    page = markdown.render(_swollen(400), limit=limit)
    assert len(page.encode()) <= limit
    assert page.startswith("### Root cause: ")
    assert "Left out" in page or "Cut here" in page
    assert page.count("<details>") == page.count("</details>")


def test_pathological_lines_are_cut_in_the_middle() -> None:
    """A line of 100 kB costs a few hundred characters."""
    assert len(markdown.render(report_with("a" * 100_000))) < 20_000
