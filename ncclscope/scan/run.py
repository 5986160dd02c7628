"""One scan: lists, leaves out what the store already has, hands jobs to an engine, and stores what comes back."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import xxhash

from ncclscope.engine.pack import Pack, load_pack
from ncclscope.scan.engines import Engine, WorkerOptions
from ncclscope.scan.files import LINK, Root, ScanError, list_root, root_of
from ncclscope.scan.jobs import Job, group, in_shard, is_split
from ncclscope.scan.jsonl import JsonLines
from ncclscope.scan.progress import Progress
from ncclscope.scan.result import JobResult
from ncclscope.scan.store import JobStore, plain

__all__ = ["ScanOptions", "Summary", "scan"]

# Results are committed together: after so many, or so many seconds.
_BATCH = 64
_BATCH_S = 0.5
# So many jobs in a row that a place gives no answer for end the scan: each may have waited a minute for it.
_LOST_IN_A_ROW = 3


class ScanOptions(msgspec.Struct, frozen=True):
    """limit: at most so many jobs, in order of their names. since: seconds since 1970; jobs whose newest file is older
    are left out. shard: (number from 1, count). refresh: also reads jobs whose files did not change. pack: the rules,
    where they are not the shipped ones alone."""

    pattern: str | None = None
    limit: int | None = None
    since: float | None = None
    shard: tuple[int, int] | None = None
    refresh: bool = False
    gpu: str | None = None
    pack: Pack | None = None

    def worker(self) -> WorkerOptions:
        return WorkerOptions(self.gpu, self.pattern, msgspec.json.encode(self.pack) if self.pack else b"")


class Summary(msgspec.Struct):
    """What a scan did. jobs: under the paths; read: done now; unread: of those, how many could not be read in full.
    older, other_rules: unchanged jobs that another version, or this one with other rules, had read. problems: files and
    directories that could not be listed; links: to directories, which are not followed."""

    jobs: int = 0
    read: int = 0
    unread: int = 0
    failing: int = 0
    bytes: int = 0
    seconds: float = 0.0
    older: int = 0
    other_rules: int = 0
    problems: int = 0
    links: int = 0


def scan(
    paths: Sequence[str],
    store: Path,
    make_engine: Callable[[WorkerOptions], Engine],
    options: ScanOptions,
    *,
    jsonl: Path | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Triages every job under `paths` that the store does not have yet, or has with other files.

    May be killed at any moment: jobs that were stored stay, the others are read by the next scan. Raises ScanError.
    """
    started = time.monotonic()
    roots: dict[tuple[str, str | None], Root] = {}
    for root in map(root_of, paths):  # one place may be written in several ways
        roots.setdefault((root.identity, root.single), root)
    pattern = _compiled(options.pattern)
    rules = _mark(options.pack or load_pack())
    # Workers are started before threads and open databases exist here.
    engine = make_engine(options.worker())
    try:
        with JobStore(store, create=True) as kept:
            summary, todo, done, leaving = _plan(list(roots.values()), kept, pattern, options, rules)
            lines = JsonLines(jsonl, kept.reports(done)) if jsonl else None
            if progress is not None:
                progress.begin(todo, engine.at_hand)
            lost = _read(engine.run(iter(todo)), kept, rules, leaving, lines, summary, progress)
            if lines is not None:
                lines.close()
            if lost:
                raise _lost_error(lost, store)
    finally:
        engine.close()
        if progress is not None:
            progress.end()
    summary.seconds = time.monotonic() - started
    return summary


def _mark(pack: Pack) -> str:
    """Changes with every rule that is asked, and not with where it lies."""
    rules = [msgspec.structs.replace(rule, path="") for rule in pack.rules]
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(rules))


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ScanError(f"--job-pattern {pattern!r}: {error}; write for example 'job-(?P<job>[0-9]+)'") from None


def _plan(
    roots: Sequence[Root], kept: JobStore, pattern: re.Pattern[str] | None, options: ScanOptions, rules: str
) -> tuple[Summary, list[Job], list[int], _Leaving]:
    """The jobs to read, the ids of those that the store already has, and those that give way to others."""
    summary = Summary()
    todo: list[Job] = []
    done: list[int] = []
    leaving = _Leaving()
    for root in roots:
        kept.keep_pattern(root.identity, options.pattern)
        problems: list[tuple[str, str]] = []
        jobs = group(root, list_root(root, problems), pattern)
        by_name = {plain(job.name): job for job in jobs}
        # What the store has of each job: several where the pattern splits an archive, with its files as they are now
        # or as they were.
        same: dict[str, list[int]] = defaultdict(list)
        changed: dict[str, list[int]] = defaultdict(list)
        nameless: list[int] = []
        for number, name, mark in kept.jobs(root.identity):
            job = _of_name(name, by_name, pattern)
            if job is None:
                nameless.append(number)
            else:
                (same if mark == job.fingerprint else changed)[job.name].append(number)
        ahead: set[str] = set()
        for job in jobs:
            if not in_shard(job.name, options.shard):
                continue
            newest = job.mtime
            old = options.since is not None and newest is not None and newest < options.since
            if old or (options.limit is not None and summary.jobs >= options.limit):
                if job.name not in same:
                    ahead.add(job.name)
                continue
            summary.jobs += 1
            if job.name in same and not options.refresh:
                done += same[job.name]
            else:
                todo.append(job)
                ahead.add(job.name)
                for number in same[job.name] + changed[job.name]:
                    leaving.wait(number, [job])
        if nameless:
            _regrouped(nameless, kept, root, jobs, ahead, leaving)
        kept.put_problems(root.identity, problems)
        links = sum(reason == LINK for _, reason in problems)
        summary.problems += len(problems) - links
        summary.links += links
    kept.put([], gone=leaving.at_once)
    summary.older, summary.other_rules = kept.count_older(done, rules)
    return summary, todo, done, leaving


def _of_name(name: str, by_name: Mapping[object, Job], pattern: re.Pattern[str] | None) -> Job | None:
    """The job that was stored under the name, or the archive of which it is a part."""
    job = by_name.get(name)
    if job is not None or pattern is None:
        return job
    archives = (by_name.get(above) for above in _above(name))
    return next((job for job in archives if job is not None and is_split(job, pattern)), None)


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _regrouped(
    numbers: Iterable[int], kept: JobStore, root: Root, jobs: Iterable[Job], ahead: Collection[str], leaving: _Leaving
) -> None:
    """Stored jobs of names that there are no more. Where a file of theirs is still there it is now in another job, and
    would be counted twice; where none is, the job is all that is known of them. ahead: names of jobs of this shard
    that are not stored as they are now."""
    owners = {plain(file.path): job for job in jobs for file in job.files}
    for number in numbers:
        heirs: dict[str, Job] = {}
        missing = False
        for path in kept.inputs(number):
            owner = next((owners[p] for p in (path, *_above(path)) if p in owners), None)
            if owner is None:
                missing = True
            else:
                heirs[owner.name] = owner
        # Beside a file that was named alone may lie others, which were not listed.
        if heirs and not (missing and root.single is not None):
            leaving.wait(number, [job for name, job in heirs.items() if name in ahead])


# A job with its files as they were listed; all results of it bear both.
_Key = tuple[object, object]


class _Leaving:
    """Stored jobs that others take the place of. Each stays until all of those are stored, so that a scan that is
    stopped in between loses none."""

    def __init__(self) -> None:
        self.at_once: list[int] = []
        self._waits: dict[int, set[_Key]] = {}
        self._held_by: dict[_Key, list[int]] = defaultdict(list)

    def wait(self, number: int, jobs: Iterable[Job]) -> None:
        """The stored job leaves when these are stored, of which there may be none left to wait for."""
        keys: set[_Key] = {(job.root.identity, job.fingerprint) for job in jobs}
        if not keys:
            self.at_once.append(number)
            return
        self._waits[number] = keys
        for key in keys:
            self._held_by[key].append(number)

    def after(self, results: Iterable[JobResult]) -> list[int]:
        """The ids of those that leave when these results are stored. One that is among the results stays."""
        gone = []
        for result in results:
            self._waits.pop(result.id, None)
        for key in {(result.job["root"], result.job["fingerprint"]) for result in results}:
            for number in self._held_by.pop(key, ()):
                waits = self._waits.get(number)
                if waits is None:
                    continue
                waits.discard(key)
                if not waits:
                    del self._waits[number]
                    gone.append(number)
        return gone


def _read(
    answers: Iterator[list[JobResult] | int],
    kept: JobStore,
    rules: str,
    leaving: _Leaving,
    lines: JsonLines | None,
    summary: Summary,
    progress: Progress | None,
) -> list[str]:
    """Why each job that a place gave no answer for was not read."""
    lost: list[str] = []
    in_a_row = 0
    held: list[JobResult] = []
    last = time.monotonic()

    def commit() -> None:
        nonlocal last
        kept.put(held, rules, leaving.after(held))
        if lines is not None:
            lines.write((result.name, result.report) for result in held)
        held.clear()
        last = time.monotonic()

    try:
        for answer in answers:
            if isinstance(answer, int):
                summary.bytes += answer
            else:
                for result in answer:
                    in_a_row = in_a_row + 1 if result.lost else 0
                    if result.lost:
                        lost.append(result.lost)
                    else:
                        _count(summary, result)
                # Also where an interrupt falls in here: of an archive all jobs are stored or none.
                held += [result for result in answer if not result.lost]
                if in_a_row >= _LOST_IN_A_ROW:
                    raise _lost_error(lost, kept.path)
            if progress is not None:
                progress.step(summary.bytes, answer if isinstance(answer, list) else [])
            if held and (len(held) >= _BATCH or time.monotonic() - last > _BATCH_S):
                commit()
    finally:
        # Also on an interrupt: what was read is kept.
        if held:
            commit()
    return lost


def _lost_error(lost: list[str], store: Path) -> ScanError:
    jobs = f"{len(lost)} jobs were" if len(lost) > 1 else "1 job was"
    return ScanError(f"{lost[-1]}: {jobs} not read; the others are in {store}: start again to go on")


def _count(summary: Summary, result: JobResult) -> None:
    summary.read += 1
    verdict = result.job.get("verdict")
    summary.failing += verdict in ("cause_found", "symptom_only")
    summary.unread += verdict == "unreadable" or result.job.get("problem") is not None
