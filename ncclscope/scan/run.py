"""One scan: lists, leaves out what the store already has, hands jobs to an engine, and stores what comes back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import xxhash

from ncclscope.engine.pack import Pack, load_pack
from ncclscope.scan.engines import Engine, WorkerOptions
from ncclscope.scan.files import Root, ScanError, root_of
from ncclscope.scan.jsonl import JsonLines
from ncclscope.scan.options import ScanOptions
from ncclscope.scan.plan import Leaving, make_plan
from ncclscope.scan.progress import Progress
from ncclscope.scan.result import JobResult
from ncclscope.scan.store import BESIDE, JobStore
from ncclscope.sources.inputs import printable

__all__ = ["Summary", "scan"]

# Results are committed together: after so many, or so many seconds.
_BATCH = 64
_BATCH_S = 0.5
# So many jobs in a row that a place gives no answer for end the scan: each may have waited a minute for it.
_LOST_IN_A_ROW = 3


class Summary(msgspec.Struct):
    """What a scan did. jobs: under the paths, each of those in an archive that the pattern splits; read: done now;
    unread: of those, how many could not be read in full. older, other_rules: unchanged jobs that another version, or
    this one with other rules, had read. problems: files and directories that could not be listed; links: to
    directories, which are not followed."""

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
    own = _own_files(store, jsonl)
    options.grouping()  # a pattern that is none ends the scan before anything is started
    rules = _mark(options.pack or load_pack())
    # Workers are started before threads and open databases exist here.
    engine = make_engine(options.worker())
    try:
        with JobStore(store, create=True) as kept:
            plan = make_plan(list(roots.values()), kept, options, own)
            older, other_rules = kept.count_older(plan.done, rules)
            jobs = len(plan.done) + len(plan.todo)
            summary = Summary(jobs, older=older, other_rules=other_rules, problems=plan.problems, links=plan.links)
            lines = JsonLines(jsonl, kept.reports(plan.done)) if jsonl else None
            if progress is not None:
                progress.begin(plan.todo, engine.at_hand)
            lost = _read(engine.run(iter(plan.todo)), kept, rules, plan.leaving, lines, summary, progress)
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


def _own_files(store: Path, jsonl: Path | None) -> set[str]:
    """The absolute paths of what a scan writes, which may lie among the logs. Raises ScanError where they are one."""
    if str(store) == ":memory:":
        raise ScanError("--store :memory: would be gone at the end; name a file")
    files = {printable(f"{store.resolve()}{end}") for end in ("", *BESIDE)}
    if jsonl is not None and str(jsonl) != "-":
        lines = printable(str(jsonl.resolve()))
        if lines in files:
            raise ScanError(f"--jsonl {jsonl} is the store; name another file")
        files.add(lines)
    return files


def _mark(pack: Pack) -> str:
    """Changes with every rule that is asked, and not with where it lies."""
    rules = [msgspec.structs.replace(rule, path="") for rule in pack.rules]
    return xxhash.xxh3_64_hexdigest(msgspec.json.encode(rules))


def _read(
    answers: Iterator[list[JobResult] | int],
    kept: JobStore,
    rules: str,
    leaving: Leaving,
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
                summary.jobs += len(answer) - 1
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
