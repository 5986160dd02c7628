"""Which jobs a scan's meter names: those that take long, with how much of them was read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from slow import SlowOptions, jobs_named

from ncclscope.scan.engines import AtHand, LocalEngine
from ncclscope.scan.files import File, Root
from ncclscope.scan.jobs import Job
from ncclscope.scan.progress import Progress, long_jobs

MB = 1_000_000


def at_hand(name: str, read: int | None, seconds: float, *, file: str = "a.log", size: int = 2_048 * MB) -> AtHand:
    return AtHand(Job(Root("logs", "/logs"), name, (File(file, size, None, ""),)), read, seconds)


@pytest.mark.parametrize(
    ("job", "line"),
    [
        (at_hand("run-1", 512 * MB, 2), ["  run-1: 512 MB of 2,048 MB, 2 s"]),
        (at_hand("run-1", 512 * MB, 2, file="a.log.gz", size=80 * MB), ["  run-1: 512 MB of text in 80 MB packed, 2 s"]),
        (at_hand("run-1", 512 * MB, 2, file="a.tar", size=80 * MB), ["  run-1: 512 MB of text in 80 MB packed, 2 s"]),
        (at_hand("stuck", 0, 75), ["  stuck: 0 MB of 2,048 MB, 75 s"]),
        (at_hand("sent", None, 75), ["  sent: 2,048 MB, sent 75 s ago"]),
        (at_hand("just sent", None, 9), []),
        (at_hand("quick", 60 * MB, 9), []),
        (at_hand("\x1b[2J", 512 * MB, 2), ["  \\x1b[2J: 512 MB of 2,048 MB, 2 s"]),
    ],
    ids=["large", "packed", "archive", "silent", "elsewhere", "elsewhere and quick", "quick", "hostile name"],
)
def test_a_job_that_takes_long_is_named(job: AtHand, line: list[str]) -> None:
    """By what was read of it or by time; never by its mere size."""
    assert long_jobs([job]) == line


def test_of_many_the_longest_are_named() -> None:
    """The meter keeps its height."""
    lines = long_jobs([at_hand(f"run-{n}", 0, 10.0 + n) for n in range(9)])
    assert [line.partition(":")[0] for line in lines] == ["  run-8", "  run-7", "  run-6", "  run-5", "  and 5 more"]


def test_an_engine_tells_what_is_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """A job counts from its own begin, a scan that waits gets a word, and the meter shows the job by its name."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich draws a meter on a terminal alone
    jobs = jobs_named(tmp_path, "fast", "slow")
    engine = LocalEngine(SlowOptions(), 1)
    meter = Progress()
    meter.begin(jobs, engine.at_hand)
    seen: list[AtHand] = []
    try:
        for answer in engine.run(iter(jobs)):
            time.sleep(0.3)  # the meter is drawn five times a second
            seen += engine.at_hand()
            meter.step(0, answer if isinstance(answer, list) else [])
    finally:
        engine.close()
        meter.end()
    assert {(a.job.name, a.read) for a in seen} >= {("slow", 80 << 20)}
    assert max(a.seconds for a in seen if a.job.name == "slow") > 1
    assert {a.read for a in seen if a.job.name == "fast"} <= {0, 2}
    assert engine.at_hand() == []
    assert "slow: 84 MB of 0 MB" in capfd.readouterr().err
