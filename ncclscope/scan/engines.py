"""Runs jobs on the cores of this machine. An engine takes jobs and gives results back in any order."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

import msgspec

from ncclscope.engine.pack import Pack
from ncclscope.scan.jobs import Job
from ncclscope.scan.result import JobResult, failed_result
from ncclscope.scan.worker import Analyst

__all__ = ["AtHand", "Engine", "LocalEngine", "WorkerOptions"]

# How often a job may take its process down with it before it is recorded as the one that does.
_TRIES = 2
# Bytes read between two reports of progress out of a long job.
_STEP = 32 << 20
# Seconds after which a scan gets a word where no worker has one.
_PATIENCE = 1.0
# Jobs that a worker holds beyond the one at hand, so that it never waits for the next; none behind so many stored
# bytes, where they would wait while other workers have nothing left to do.
_AHEAD = 2
_AHEAD_BYTES = 16 << 20


class WorkerOptions(msgspec.Struct, frozen=True):
    """What every worker needs to know, on whatever machine it runs. pack: the rules as JSON, since a user's own lie on
    one machine; empty for the shipped ones, which are everywhere."""

    gpu: str | None = None
    pattern: str | None = None
    pack: bytes = b""

    def analyst(self) -> Analyst:
        pack = msgspec.json.decode(self.pack, type=Pack) if self.pack else None
        return Analyst(gpu=self.gpu, pattern=self.pattern, pack=pack)


class AtHand(msgspec.Struct, frozen=True):
    """A job that is being read. read: bytes of text so far; seconds: for how long. Where read is None neither is known:
    seconds count from when the job was sent, whether or not it had to wait there."""

    job: Job
    read: int | None
    seconds: float


class Engine(Protocol):
    """Does jobs somewhere."""

    def run(self, jobs: Iterator[Job]) -> Iterator[list[JobResult] | int]:
        """The results of each job, and between them how many bytes of text were read since the last."""

    def at_hand(self) -> list[AtHand]:
        """The jobs that are being read now, as far as that is known."""

    def close(self) -> None:
        """Ends the workers."""


class LocalEngine:
    """One process a core, each with its own rules and gate; a process that dies is replaced and its job done again."""

    def __init__(self, options: WorkerOptions, workers: int) -> None:
        # Forked workers start in milliseconds; elsewhere than on Linux forking is not safe with system libraries.
        method = "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"
        self._context: Any = multiprocessing.get_context(method)
        # What is ready before the fork is ready in each of them.
        self._given = options.analyst() if method == "fork" else options
        self._pool: list[_Worker] = []
        for _ in range(max(1, workers)):
            self._pool.append(self._start())

    def run(self, jobs: Iterator[Job]) -> Iterator[list[JobResult] | int]:
        tries: dict[int, int] = {}
        again: list[Job] = []
        more = True
        while True:
            while (more or again) and (worker := self._least_busy(alone=bool(again))) is not None:
                job = again.pop() if again else next(jobs, None)
                if job is None:
                    more = False
                else:
                    worker.give(job, suspect=job.id in tries)
            busy = [worker for worker in self._pool if worker.jobs]
            if not busy:
                return
            ready = wait([worker.pipe for worker in busy], _PATIENCE)
            if not ready:
                yield 0
            for number, worker in enumerate(self._pool):
                if worker.pipe not in ready:
                    continue
                try:
                    answer = worker.pipe.recv()
                except (EOFError, OSError):
                    lost, rest = worker.jobs[0], worker.jobs[1:]
                    tries[lost.id] = tries.get(lost.id, 0) + 1
                    if tries[lost.id] < _TRIES:
                        again.append(lost)
                    else:
                        yield [failed_result(lost, f"the process that read it died ({worker.how()})", again=True)]
                    again += rest
                    self._pool[number] = self._start()
                    continue
                if isinstance(answer, list):
                    worker.jobs.pop(0)
                    worker.suspect = False
                    worker.begin()
                else:
                    worker.read += answer
                yield answer

    def _least_busy(self, *, alone: bool) -> _Worker | None:
        """The worker that should have the next job, if any may. alone: the job must have nothing before it."""
        ready = [worker for worker in self._pool if not worker.jobs or not (alone or worker.is_full())]
        return min(ready, key=lambda worker: len(worker.jobs), default=None)

    def at_hand(self) -> list[AtHand]:
        now = time.monotonic()
        return [AtHand(worker.jobs[0], worker.read, now - worker.since) for worker in self._pool if worker.jobs]

    def close(self) -> None:
        for worker in self._pool:
            worker.end()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        inherited = [worker.pipe for worker in self._pool] if self._context.get_start_method() == "fork" else []
        process = self._context.Process(
            target=_work, args=(theirs, [*inherited, ours], self._given, os.getpid()), daemon=True
        )
        process.start()
        theirs.close()
        return _Worker(process, ours)


class _Worker:
    """A process, the pipe to it, and the jobs that it holds, the one at hand first."""

    def __init__(self, process: Any, pipe: Connection) -> None:
        self.process = process
        self.pipe = pipe
        self.jobs: list[Job] = []
        self.suspect = False
        self.begin()

    def begin(self) -> None:
        """Another job is at hand."""
        self.read = 0
        self.since = time.monotonic()

    def give(self, job: Job, *, suspect: bool) -> None:
        if not self.jobs:
            self.begin()
        self.jobs.append(job)
        self.suspect = self.suspect or suspect
        # A worker that is gone shows up when its answer is waited for.
        with contextlib.suppress(OSError):
            self.pipe.send(job)

    def is_full(self) -> bool:
        """Whether another job had better not wait here; behind one that already took a process down none does."""
        return self.suspect or len(self.jobs) > _AHEAD or sum(job.size for job in self.jobs) > _AHEAD_BYTES

    def how(self) -> str:
        self.process.join(5)
        code = self.process.exitcode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return signal.Signals(-code).name
        return f"exit code {code}"

    def end(self) -> None:
        self.process.terminate()
        self.process.join(5)
        self.pipe.close()


def _work(pipe: Connection, others: list[Connection], given: Analyst | WorkerOptions, parent: int) -> None:
    """A worker's life: takes jobs until the pipe closes."""
    # What a fork inherits is never collected here: it may belong to libraries whose threads stayed behind.
    gc.freeze()
    for other in others:  # as long as they are open here, nobody sees that their process is gone
        other.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    analyst = given.analyst() if isinstance(given, WorkerOptions) else given
    unsaid = 0

    def progress(_: str, size: int) -> None:
        nonlocal unsaid
        unsaid += size
        if unsaid >= _STEP:
            pipe.send(unsaid)
            unsaid = 0

    # Jobs are taken in as they come: were they left in the pipe until this one's results are out, and both too large
    # for it, the two processes would wait for each other.
    jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
    threading.Thread(target=_take_in, args=(pipe, jobs), daemon=True).start()
    with contextlib.suppress(OSError):
        while (job := jobs.get()) is not None:
            results = analyst.run(job, progress)
            pipe.send(unsaid)
            unsaid = 0
            pipe.send(results)


def _take_in(pipe: Connection, jobs: queue.SimpleQueue[Job | None]) -> None:
    """Puts the jobs that come through the pipe into `jobs`, and None when it closes."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            jobs.put(pipe.recv())
    jobs.put(None)


def _watch(parent: int) -> None:
    """Ends the worker when the scan was killed in the middle of a long job."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
