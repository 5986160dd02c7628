"""Reports to render: of labelled logs, of large jobs, and with any text in every place that shows log text."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from large_job import write_large_job
from support import case, options, shipped

from ncclscope.excerpts import with_excerpts
from ncclscope.pipeline import judge, read
from ncclscope.report import (
    AbsenceEvidence,
    Collect,
    CommunicatorInfo,
    Culprit,
    Excerpt,
    Finding,
    InputInfo,
    Job,
    Lane,
    LineEvidence,
    Mark,
    NextCheck,
    Ranks,
    Report,
    SettingInfo,
    Span,
    Timeline,
)

__all__ = ["large_report", "report_of", "report_with"]


def report_of(name: str) -> Report:
    """The report of a labelled log with everything that any format shows."""
    paths = case(name).paths
    seen = read(paths, options=options(), pack=shipped())
    return with_excerpts(judge(seen, shipped(), picture=True), paths)


@functools.lru_cache(maxsize=2)
def large_report(ranks: int) -> Report:
    """The report of a generated job of so many ranks."""
    with tempfile.TemporaryDirectory() as directory:
        paths = write_large_job(Path(directory), ranks)
        return with_excerpts(judge(read(paths, options=options(), pack=shipped()), shipped(), picture=True), paths)


def report_with(text: str) -> Report:
    """A report that shows `text` wherever a report can show text of a log."""
    line = LineEvidence(f"{text}.log", 3, text, count=2, time="2026-05-26T12:00:00.000000", zone="unknown")
    folded = Finding("NS0001", "symptom", text, "likely", evidence=[line])
    finding = Finding(
        rule="NS8101",
        role="root_cause",
        title=text,
        confidence="likely",
        category="user-exception",
        why=[text],
        culprit=Culprit(ranks=[1], hosts=[text], gpus=["0000:1b:00.0"], pids=[7]),
        phase="steady",
        evidence=[line, AbsenceEvidence(text, [text], "not_found")],
        next_checks=[NextCheck(text, text, text, "read_only")],
        fix=text,
        explains=[folded],
    )
    mark = Mark("cause", f"{text}.log", 3, text, at=1.0, time="2026-05-26T12:00:00.000000")
    lanes = [
        Lane(rank=0, host=text, marks=[mark]),
        Lane(rank=1, host=text, spans=[Span("running", 0, 2)], marks=[mark]),
    ]
    return Report(
        schema_version="1",
        verdict="cause_found",
        findings=[finding, folded],
        unknowns=[text],
        collect=[Collect(text, text)],
        ranks=Ranks(2, [0, 1]),
        inputs=[InputInfo(f"{text}.log", 10, 3, 1, text, note=text), InputInfo("other.log", 10, 3, 1, "plain")],
        warnings=[text],
        tool_version="0.1.0",
        job=Job(
            [text],
            {"nccl": [text]},
            [CommunicatorInfo(text, 2, True, [0, 1], [0], [1])],
            [SettingInfo(text, {text: [text]})],
        ),
        timeline=Timeline("2026-05-26T12:00:00.000000", "unknown", 2.0, lanes, [text]),
        excerpts=[Excerpt(f"{text}.log", 2, [text, text, text])],
    )
