"""Workers that take a while for some jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from support import write

from ncclscope.scan.engines import WorkerOptions
from ncclscope.scan.files import list_root, root_of
from ncclscope.scan.jobs import Job, group
from ncclscope.scan.result import JobResult
from ncclscope.scan.worker import Analyst

__all__ = ["SlowOptions", "jobs_named"]


class _Slow(Analyst):
    def run(self, job: Job, progress: Callable[[str, int], None] | None = None) -> list[JobResult]:
        if progress is not None and job.name.startswith("slow"):
            progress("", 80 << 20)
            time.sleep(1.5)
        return super().run(job, progress)


class SlowOptions(WorkerOptions, frozen=True):
    """A job whose name begins with slow takes 1.5 s longer and says that it read 80 MiB."""

    def analyst(self) -> Analyst:
        return _Slow()


def jobs_named(directory: Path, *names: str) -> list[Job]:
    """Small jobs in the order of their names."""
    write(directory, {f"{name}/a.log": "x\n" for name in names})
    root = root_of(str(directory))
    return group(root, list_root(root, []))
