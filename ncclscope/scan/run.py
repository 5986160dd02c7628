"""One scan: lists, leaves out what the store already has, hands jobs to an engine, and stores what comes back."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import xxhash

from ncclscope.engine.pack import Pack, load_pack
from ncclscope.scan.engines import Engine, WorkerOptions
from ncclscope.scan.files import Root, ScanError, list_root, root_of
from ncclscope.scan.jobs import Job, group, in_shard
from ncclscope.scan.jsonl import JsonLines
from ncclscope.scan.progress import Progress
from ncclscope.scan.result import JobResult
from ncclscope.scan.store import JobStore

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
    older, other_rules: unchanged jobs that another version, or this one with other rules, had read."""

    jobs: int = 0
    read: int = 0
    unread: int = 0
    failing: int = 0
    bytes: int = 0
    seconds: float = 0.0
    older: int = 0
    other_rules: int = 0
    problems: int = 0


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
    roots = [root_of(path) for path in dict.fromkeys(paths)]
    pattern = _compiled(options.pattern)
    rules = _mark(options.pack or load_pack())
    # Workers are started before threads and open databases exist here.
    engine = make_engine(options.worker())
    try:
        with JobStore(store, create=True) as kept:
            summary, todo, done = _plan(roots, kept, pattern, options, rules)
            lines = JsonLines(jsonl, kept.reports(done)) if jsonl else None
            if progress is not None:
                progress.begin(todo, engine.at_hand)
            lost = _read(engine.run(iter(todo)), kept, rules, lines, summary, progress)
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
) -> tuple[Summary, list[Job], list[int]]:
    """The jobs to read, and the ids of those that the store already has."""
    summary = Summary()
    todo: list[Job] = []
    done: list[int] = []
    for root in roots:
        kept.keep_pattern(root.identity, options.pattern)
        known = kept.fingerprints(root.identity)
        by_print: dict[str, list[int]] = {}
        for number, mark in known.items():
            by_print.setdefault(mark, []).append(number)
        problems: list[tuple[str, str]] = []
        for job in group(root, list_root(root, problems), pattern):
            newest = job.mtime
            if options.since is not None and newest is not None and newest < options.since:
                continue
            if not in_shard(job.name, options.shard):
                continue
            if options.limit is not None and summary.jobs >= options.limit:
                break
            summary.jobs += 1
            # An archive that a pattern splits has several jobs of one fingerprint.
            same = by_print.get(job.fingerprint)
            if same and not options.refresh:
                done += same
            else:
                todo.append(job)
        kept.put_problems(root.identity, problems)
        summary.problems += len(problems)
    summary.older, summary.other_rules = kept.count_older(done, rules)
    return summary, todo, done


def _read(
    answers: Iterator[list[JobResult] | int],
    kept: JobStore,
    rules: str,
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
        kept.put(held, rules)
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
                        held.append(result)
                        _count(summary, result)
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
