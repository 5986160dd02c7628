"""The meter of a scan: jobs, rate and time left, on a terminal's standard error."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ncclscope.scan.jobs import Job
from ncclscope.scan.result import JobResult

__all__ = ["Progress"]


class Progress:
    """Drawn by the caller's own steps: a thread would have to be stopped before workers are forked."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("scan"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("jobs  {task.fields[rate]}  {task.fields[failing]} failed  left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        self._started = self._drawn = time.monotonic()
        self._failing = 0
        self._jobs = self._bar.add_task("jobs", rate="", failing=0, total=None)

    def begin(self, jobs: Sequence[Job]) -> None:
        """Shows the bar for these jobs."""
        self._started = time.monotonic()
        self._bar.start()
        self._bar.update(self._jobs, total=len(jobs))

    def step(self, read: int, results: Sequence[JobResult]) -> None:
        """read: bytes of text in all; results: the jobs that are done since the last step."""
        self._failing += sum(r.job.get("verdict") in ("cause_found", "symptom_only") for r in results)
        now = time.monotonic()
        self._bar.update(
            self._jobs,
            advance=1 if results else 0,
            rate=f"{read / 1e6 / max(now - self._started, 0.001):.0f} MB/s",
            failing=self._failing,
        )
        if now - self._drawn > 0.2:
            self._drawn = now
            self._bar.refresh()

    def end(self) -> None:
        """Takes the bar away."""
        self._bar.stop()
