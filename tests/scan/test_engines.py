"""How jobs are spread over the processes of one machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace
from slow import SlowOptions, jobs_named

from ncclscope.scan.engines import LocalEngine
from ncclscope.scan.jobs import Job


def order(jobs: Sequence[Job], workers: int) -> tuple[list[str], int]:
    """The names of the jobs in the order of their results, and how many were at hand at once."""
    engine = LocalEngine(SlowOptions(), workers)
    names: list[str] = []
    most = 0
    try:
        for answer in engine.run(iter(jobs)):
            most = max(most, len(engine.at_hand()))
            names += [result.name for result in answer] if isinstance(answer, list) else []
    finally:
        engine.close()
    return names, most


def test_few_jobs_are_read_side_by_side(tmp_path: Path) -> None:
    """None waits behind another while a worker has none."""
    names, most = order(jobs_named(tmp_path, "slow-1", "slow-2", "slow-3"), 3)
    assert (sorted(names), most) == (["slow-1", "slow-2", "slow-3"], 3)


def test_nothing_waits_behind_a_large_job(tmp_path: Path) -> None:
    """The other worker does all that comes after it."""
    jobs = jobs_named(tmp_path, "slow", *(f"then-{n}" for n in range(6)))
    large = replace(jobs[0], files=tuple(replace(file, size=1 << 30) for file in jobs[0].files))
    names, _ = order([large, *jobs[1:]], 2)
    assert names == [*(f"then-{n}" for n in range(6)), "slow"]
