"""The meter of a scan: jobs, rate, time left and the jobs that take long, on a terminal's standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ncclscope.reporters.safe import shown
from ncclscope.scan.engines import AtHand
from ncclscope.scan.jobs import Job, is_archive
from ncclscope.scan.result import JobResult
from ncclscope.sources.names import plain_name

__all__ = ["Progress", "long_jobs"]

# A job is named once so much of it was read, or after so many seconds; no more than so many at once.
_LONG = 64 << 20
_LONG_S = 10.0
_NAMED = 4


class Progress:
    """Drawn by the caller's own steps: a thread would have to be stopped before workers are forked."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        self._bar = Bar(
            TextColumn("scan"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("jobs  {task.fields[rate]}  {task.fields[failing]} failed  left"),
            TimeRemainingColumn(),
            console=console,
        )
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._started = self._drawn = time.monotonic()
        self._failing = 0
        self._jobs = self._bar.add_task("jobs", rate="", failing=0, total=None)
        self._at_hand: Callable[[], Sequence[AtHand]] = list

    def begin(self, jobs: Sequence[Job], at_hand: Callable[[], Sequence[AtHand]]) -> None:
        """Shows the bar for these jobs; at_hand tells which of them are being read."""
        self._started = time.monotonic()
        self._at_hand = at_hand
        self._bar.update(self._jobs, total=len(jobs))
        self._live.start()
        self._draw()

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
            self._draw()

    def _draw(self) -> None:
        from rich.console import Group
        from rich.text import Text

        self._live.update(Group(self._bar, *map(Text, long_jobs(self._at_hand()))), refresh=True)

    def end(self) -> None:
        """Takes the bar away."""
        self._live.stop()


def long_jobs(at_hand: Sequence[AtHand]) -> list[str]:
    """A line for each job that takes long, the longest first, with how much of it was read."""
    long = [a for a in at_hand if (a.read or 0) >= _LONG or a.seconds >= _LONG_S]
    long.sort(key=lambda a: -a.seconds)
    lines = [f"  {shown(a.job.name, 60)}: {_part(a)}" for a in long[:_NAMED]]
    return lines + [f"  and {len(long) - _NAMED} more"] * (len(long) > _NAMED)


def _part(a: AtHand) -> str:
    """Of packed files only the packed size is known before they are read."""
    size = f"{a.job.size / 1e6:,.0f} MB"
    if a.read is None:
        return f"{size}, sent {a.seconds:.0f} s ago"
    packed = any(is_archive(f.path) or plain_name(f.path) != f.path for f in a.job.files)
    of = f"of text in {size} packed" if packed else f"of {size}"
    return f"{a.read / 1e6:,.0f} MB {of}, {a.seconds:.0f} s"
