"""Runs jobs on a Ray cluster: jobs are tasks, results come back to the one store."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ncclscope.scan.engines import AtHand, WorkerOptions
from ncclscope.scan.files import ScanError
from ncclscope.scan.jobs import Job
from ncclscope.scan.result import JobResult, failed_result
from ncclscope.scan.worker import Analyst
from ncclscope.version import __version__

__all__ = ["RayEngine", "batches"]

# A task takes so many bytes of stored files, or so many jobs: starting one costs about a millisecond.
_BATCH_BYTES = 32 << 20
_BATCH_JOBS = 32
# Tasks under way for each core of the cluster, so that none waits.
_AHEAD = 2
# Seconds after which a scan gets a word where no task is done.
_PATIENCE = 1.0
# Ray does a lost worker's task again by itself; a job that takes workers with it is given up after so many times.
_RETRIES = 3


class RayEngine:
    """A cluster that is there already, or one of this machine without an address."""

    def __init__(self, options: WorkerOptions, address: str | None = None, *, ray: Any = None) -> None:
        """ray: the library, for tests of what it is asked for. Raises ScanError without it or without the cluster."""
        self._ray = ray or _library()
        self._options = options
        self._ours = not self._ray.is_initialized()
        if self._ours:
            try:
                self._ray.init(address=address, log_to_driver=False, logging_level="error")
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise ScanError(f"no Ray cluster at {address or 'this machine'}: {error}") from None
        # The jobs of each task that is not done, in the order and with the moment of sending.
        self._running: dict[Any, tuple[list[Job], float]] = {}
        self._cores = 1
        self._task = self._ray.remote(num_cpus=1, max_retries=_RETRIES)(_work)

    def run(self, jobs: Iterator[Job]) -> Iterator[list[JobResult] | int]:
        """The results of each job. A worker or a node that is lost has its jobs done again elsewhere."""
        waiting = batches(jobs)
        running = self._running
        while True:
            self._cores = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
            while len(running) < _AHEAD * self._cores and (batch := next(waiting, None)):
                self._send(batch)
            if not running:
                return
            done, _ = self._ray.wait(list(running), num_returns=1, timeout=_PATIENCE)
            if not done:
                yield 0
            for reference in done:
                batch, _since = running.pop(reference)
                try:
                    size, results = self._ray.get(reference)
                except self._ray.exceptions.RayTaskError as error:
                    reason = f"a Ray worker cannot do its task: {error.cause}"
                    raise ScanError(f"{reason}; is ncclscope {__version__} installed there?") from None
                except self._lost() as error:
                    if len(batch) == 1:
                        yield [failed_result(batch[0], f"the workers that read it died ({type(error).__name__})")]
                        continue
                    # One of them ends its worker each time: alone, each shows whether it is the one.
                    for job in batch:
                        self._send([job])
                    continue
                yield size
                yield from results

    def _send(self, batch: list[Job]) -> None:
        self._running[self._task.remote(batch, self._options)] = batch, time.monotonic()

    def at_hand(self) -> list[AtHand]:
        """Jobs that are a task of their own, as large ones are, with the time since they were sent. A task says nothing
        before it is done, so of several in one task it is not known which is being read."""
        now = time.monotonic()
        # Ray begins tasks in about the order in which they came; those beyond its cores still wait.
        oldest = list(self._running.values())[: self._cores]
        return [AtHand(batch[0], None, now - since) for batch, since in oldest if len(batch) == 1]

    def close(self) -> None:
        """Leaves the cluster as it was."""
        if self._ours:
            self._ray.shutdown()

    def _lost(self) -> tuple[type[Exception], ...]:
        known = self._ray.exceptions
        return known.WorkerCrashedError, known.NodeDiedError, known.OutOfMemoryError, known.ObjectLostError


def batches(jobs: Iterator[Job]) -> Iterator[list[Job]]:
    """The jobs in groups worth a task, none of them empty."""
    batch: list[Job] = []
    size = 0
    for job in jobs:
        if batch and (size + job.size > _BATCH_BYTES or len(batch) >= _BATCH_JOBS):
            yield batch
            batch, size = [], 0
        batch.append(job)
        size += job.size
    if batch:
        yield batch


def _library() -> Any:
    try:
        import ray
    except ImportError:
        raise ScanError("--engine ray needs an extra: pip install 'ncclscope[ray]'") from None
    return ray


@lru_cache(maxsize=4)
def _analyst(options: WorkerOptions) -> Analyst:
    """One a process: a worker of Ray does many tasks, and the rules and the gate are prepared once."""
    return options.analyst()


def _work(jobs: list[Job], options: WorkerOptions) -> tuple[int, list[list[JobResult]]]:
    """A task: (bytes of text read, the results of each job)."""
    read = 0

    def progress(_: str, size: int) -> None:
        nonlocal read
        read += size

    results = [_analyst(options).run(job, progress) for job in jobs]
    return read, results
