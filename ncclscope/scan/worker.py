"""Reads and judges one job after the other in one process: the rules and the gate are prepared once."""

from __future__ import annotations

import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import xxhash

from ncclscope.engine.pack import Pack, load_pack
from ncclscope.facts import FactOptions, build_facts
from ncclscope.index import PatternIndex
from ncclscope.parsers import BLOCKS, PATTERNS
from ncclscope.pipeline import Read, judge, raw_patterns, with_commands
from ncclscope.reader import read_input
from ncclscope.scan.files import File, filesystem_of, is_lost, is_url, remote_reason
from ncclscope.scan.jobs import Job, is_archive, is_split, job_of_member
from ncclscope.scan.result import InputRow, JobResult, failed_result, lost_result, make_result
from ncclscope.sources import Input, SourceProblem, discover
from ncclscope.sources.hints import hints_of
from ncclscope.sources.names import rotations
from ncclscope.store import EventStore

__all__ = ["Analyst"]

_REMOTE_BLOCK = 1 << 20


class _LostError(Exception):
    """A place stopped answering in the middle of a job. No OSError: those end one input, and half a log would be
    judged and kept as if it were whole."""


class Analyst:
    """Triages jobs exactly as `triage` does with their files alone."""

    def __init__(self, *, gpu: str | None = None, pattern: str | None = None, pack: Pack | None = None) -> None:
        self._pack = pack or load_pack()
        self._index = PatternIndex([*PATTERNS, *raw_patterns(self._pack)], BLOCKS)
        self._options = FactOptions(gpu=gpu)
        self._pattern = re.compile(pattern) if pattern else None

    def run(self, job: Job, progress: Callable[[str, int], None] | None = None) -> list[JobResult]:
        """The results of a job, several where the job pattern splits an archive; what goes wrong becomes a result."""
        try:
            with _spool(job) as spool:
                inputs, problems = _inputs(job, spool)
                if is_split(job, self._pattern):
                    return self._split(job, inputs, problems, progress)
                given = [job.root.full(file.path) for file in job.files]
                return [self._one(job, given, inputs, problems, progress)]
        except _LostError as error:
            return [lost_result(job, str(error))]
        except Exception as error:  # one job must not end the scan
            return [failed_result(job, f"{type(error).__name__}: {error}")]

    def _split(
        self, job: Job, inputs: list[Input], problems: list[SourceProblem], progress: Callable[[str, int], None] | None
    ) -> list[JobResult]:
        parts: dict[str, list[Input]] = defaultdict(list)
        for source in inputs:
            parts[job_of_member(job.name, _below(job, source.name), self._pattern)].append(source)
        if not parts:
            return [self._one(job, [], [], problems, progress)]
        results = []
        for number, (name, some) in enumerate(parts.items()):
            part = Job(job.root, name, job.files)
            given = [source.name for source in some]  # the archive holds other jobs too
            results.append(self._one(part, given, some, problems if number == 0 else [], progress))
        return results

    def _one(
        self,
        job: Job,
        given: list[str],
        inputs: list[Input],
        problems: list[SourceProblem],
        progress: Callable[[str, int], None] | None,
    ) -> JobResult:
        """given: by which names the inputs are found again."""
        store = EventStore()
        warnings: list[str] = []
        rows: dict[str, InputRow] = {}
        problems = list(problems)
        for source in inputs:
            row = rows[source.name] = InputRow(_below(job, source.name), source.size, source.mtime)
            state = xxhash.xxh3_128()
            source.open = partial(_hashed, source.open, state)
            try:
                read_input(source, self._index, store, warnings.append, progress=progress)
            except OSError as error:
                problems.append(SourceProblem(source.name, error.strerror or str(error)))
            row.hash = state.hexdigest()
        facts = build_facts(store, self._options, warnings.append)
        facts = with_commands(facts, given)
        report = judge(Read(store, facts, tuple(problems), tuple(warnings)), self._pack)
        for info in report.inputs:
            rows.setdefault(info.path, InputRow(_below(job, info.path)))
        return make_result(job, report, facts, store, rows)


def _below(job: Job, name: str) -> str:
    """A path as given, relative to the root."""
    return name.removeprefix(job.root.full("")) if job.root.given else name


def _hashed(open_: Callable[[list[str]], Iterator[bytes]], state: xxhash.xxh3_128, notes: list[str]) -> Iterator[bytes]:
    for block in open_(notes):
        state.update(block)
        yield block


def _spool(job: Job) -> AbstractContextManager[str]:
    """Where archives of an object store are kept while they are read; local jobs are spared the directory."""
    if is_url(job.root.given):
        return tempfile.TemporaryDirectory(prefix="ncclscope-")
    return nullcontext("")


def _inputs(job: Job, spool: str) -> tuple[list[Input], list[SourceProblem]]:
    if not is_url(job.root.given):
        return discover([job.root.full(file.path) for file in job.files])
    inputs: list[Input] = []
    problems: list[SourceProblem] = []
    groups = rotations(file.path for file in job.files)
    for file in sorted(job.files, key=lambda f: (groups[f.path], f.path)):
        url = job.root.full(file.path)
        if is_archive(file.path):
            found, trouble = _fetched(file, url, spool)
            inputs += found
            problems += trouble
        else:
            group = job.root.full(groups[file.path][0])
            inputs.append(Input(url, hints_of(file.path), file.size, file.mtime, group, partial(_read_remote, url)))
    return inputs, problems


def _fetched(file: File, url: str, spool: str) -> tuple[list[Input], list[SourceProblem]]:
    """An archive is copied to disk: its directory stands at its end, and parts of it are read twice."""
    system, path = filesystem_of(url)
    local = str(Path(spool) / os.path.basename(file.path))  # noqa: PTH119 - a URL's path
    try:
        system.get_file(path, local)
    except Exception as error:  # every store's library has errors of its own
        if is_lost(error):
            raise _LostError(f"{url}: {remote_reason(error)}") from None
        return [], [SourceProblem(url, remote_reason(error))]
    inputs, problems = discover([local])
    for source in inputs:
        source.name = url + source.name.removeprefix(local)
        source.group = url + source.group.removeprefix(local)
    return inputs, [SourceProblem(url + p.path.removeprefix(local), p.reason, p.skipped) for p in problems]


def _read_remote(url: str, notes: list[str]) -> Iterator[bytes]:
    try:
        system, path = filesystem_of(url)
        with system.open(path, "rb", block_size=8 * _REMOTE_BLOCK, cache_type="readahead") as handle:
            while data := handle.read(_REMOTE_BLOCK):
                yield data
    except Exception as error:  # as in _fetched
        if is_lost(error):
            raise _LostError(f"{url}: {remote_reason(error)}") from None
        notes.append(f"reading stopped: {remote_reason(error)}")
