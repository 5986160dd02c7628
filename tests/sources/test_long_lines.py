"""Lines longer than what is read at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclscope import analyze
from ncclscope.excerpts import with_excerpts
from ncclscope.report import LineEvidence

TRACEBACK = (
    "[rank0]: Traceback (most recent call last):\n"
    '[rank0]:   File "/app/train.py", line 3, in <module>\n'
    "[rank0]:     main()\n"
    "[rank0]: ValueError: bad shape 3\n"
)
BAR = "".join(f"\r{i}/400000 [00:01<00:00, 10.0it/s]" for i in range(100000))


@pytest.mark.parametrize("long", ["x" * 5_000_000, BAR], ids=["one word", "a progress bar"])
def test_a_line_read_in_pieces_counts_once(long: str, tmp_path: Path) -> None:
    """The lines after it keep the numbers that grep -n gives them, in the proof and in the lines around it."""
    log = tmp_path / "job.log"
    log.write_text(f"start\n{long}\n{TRACEBACK}")
    report = with_excerpts(analyze([log]), [log])
    assert report.inputs[0].lines == 6
    evidence = [item for item in report.findings[0].evidence if isinstance(item, LineEvidence)]
    assert [item.line for item in evidence] == [6]
    (excerpt,) = report.excerpts
    assert excerpt.first + excerpt.lines.index("[rank0]: ValueError: bad shape 3") == 6
