"""The cause does not change with the envelope, so neither may the answer."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest
from support import answer, case, options, shipped
from wrapping import CRI_RECORD, ENVELOPES, wrap

from ncclscope.pipeline import analyze
from ncclscope.report import LineEvidence

if TYPE_CHECKING:
    from pathlib import Path

    from ncclscope.report import Report

# One stream and several, a rank and a node a file, launchers, NCCL with and without INFO, kernel logs, healthy runs.
NAMES = (
    "absent-comm-lazy-long", "bare-rank-missing", "cgroup-oom", "coll-mismatch", "duplicate-gpu", "healthy-218-2node",
    "healthy-lazy", "ima", "jit-226-eager", "mixed-nccl", "mpi-sigkill", "noarch-226-eager", "noarch-228-lazy", "oom-gpu",
    "preempt", "raise-bare", "ray-import", "segv", "sigkill", "skip-collective", "tr-2node-exc", "tr-exit0-decoy",
    "w8-healthy", "w8-raise-tee",
)  # fmt: skip


@cache
def as_printed(name: str) -> Report:
    return analyze(case(name).paths, options=options(), pack=shipped())


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("name", NAMES)
def test_same_answer_inside_every_envelope(name: str, envelope: str, tmp_path: Path) -> None:
    """Verdict, class and culprit ranks of the wrapped log are those of the log as it was printed."""
    plain = as_printed(name)
    wrapped = analyze(wrap(envelope, case(name).paths, tmp_path), options=options(), pack=shipped())
    assert answer(wrapped) == answer(plain)
    assert wrapped.warnings == plain.warnings


@pytest.mark.parametrize("envelope", ["kubectl", "cri", "dockerjson"])
def test_evidence_keeps_the_line_of_the_file(envelope: str, tmp_path: Path) -> None:
    """Quoted lines are named by their place in the file as delivered, whose text holds them."""
    paths = wrap(envelope, case("sigkill").paths, tmp_path)
    lines = paths[0].read_text(encoding="utf-8").split("\n")
    evidence = analyze(paths, options=options(), pack=shipped()).findings[0].evidence
    quoted = [e for e in evidence if isinstance(e, LineEvidence)]
    assert quoted
    for item in quoted:
        assert item.text[:40].replace('"', '\\"') in lines[item.line - 1]


def test_cri_line_beyond_one_record(tmp_path: Path) -> None:
    """A line that the container runtime cut at 16 KiB is whole again: words across the cut are still found."""
    shard = "x" * (CRI_RECORD - len("[rank1]: RuntimeError: CUDA out of mem") - len(" padding "))
    message = f"[rank1]: RuntimeError: {shard} padding CUDA out of memory. Tried to allocate 200.00 GiB. GPU 1 has a"
    message += " total capacity of 139.81 GiB of which 136.90 GiB is free."
    log = tmp_path / "src" / "rank1.log"
    log.parent.mkdir()
    log.write_text(
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/workspace/train.py", line 80, in <module>\n'
        "[rank1]:     main()\n"
        f"{message}\n"
    )
    paths = wrap("cri", (log,), tmp_path)
    assert " stdout P " in paths[0].read_text()
    plain = analyze([log], options=options(), pack=shipped())
    wrapped = analyze(paths, options=options(), pack=shipped())
    assert answer(wrapped) == answer(plain)
    assert wrapped.findings[0].culprit.ranks == [1]


def test_nested_envelopes(tmp_path: Path) -> None:
    """A collector's envelope around a launcher's: kubectl lines of a pod in which srun labelled its tasks."""
    inner = wrap("srun", case("raise-warn").paths, tmp_path)
    outer = tmp_path / "outer"
    outer.mkdir()
    plain = as_printed("raise-warn")
    for envelope in ("kubectl", "cri", "dockerjson"):
        (outer / envelope).mkdir()
        wrapped = analyze(wrap(envelope, tuple(inner), outer / envelope), options=options(), pack=shipped())
        assert answer(wrapped) == answer(plain), envelope
