"""Which jobs a scan reads, which it has, and which stored ones give way to others."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from ncclscope.scan.files import LINK, Root, ScanError, above, found_twice, list_root, nested
from ncclscope.scan.jobs import Job, group, in_shard, is_split
from ncclscope.scan.options import ScanOptions
from ncclscope.scan.result import JobResult
from ncclscope.scan.store import JobStore
from ncclscope.sources.inputs import printable

__all__ = ["Leaving", "Plan", "make_plan"]

# A job with its files as they were listed; all results of it bear both.
_Key = tuple[object, object]
# A root, its jobs, and what could not be listed.
_Listed = tuple[Root, list[Job], list[tuple[str, str]]]


class Leaving:
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


class Plan(msgspec.Struct):
    """What a scan has to do. todo: the jobs to read; done: ids of those that the store already has; leaving: stored
    ones that give way to others. problems: files and directories that could not be listed; links: to directories, which
    are not followed."""

    todo: list[Job] = []
    done: list[int] = []
    leaving: Leaving = msgspec.field(default_factory=Leaving)
    problems: int = 0
    links: int = 0


def make_plan(
    roots: Sequence[Root], kept: JobStore, options: ScanOptions, own: Collection[str] = frozenset()
) -> Plan:
    """Lists what lies under the roots and compares it with the store, from which jobs without a successor are taken.

    own: absolute paths of files that the scan itself writes, which are no logs.
    """
    plan = Plan()
    pattern = options.grouping()
    leaving = plan.leaving
    asked = 0
    again: list[int] = []
    listed: list[_Listed] = []
    for root in roots:
        problems: list[tuple[str, str]] = []
        files = list_root(root, problems)
        top = f"{root.identity.rstrip('/')}/"
        if mine := {path[len(top) :] for path in own if path.startswith(top)}:
            files = (file for file in files if printable(file.path) not in mine)
        listed.append((root, group(root, files, pattern), problems))
    _refuse_twice(listed, kept)
    for root, jobs, _ in listed:
        if jobs:
            kept.keep_pattern(root.identity, options.pattern)
    for root, jobs, problems in listed:
        by_name = {printable(job.name): job for job in jobs}
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
            if old or (options.limit is not None and asked >= options.limit):
                if job.name not in same:
                    ahead.add(job.name)
                continue
            asked += 1
            if job.name in same and not options.refresh:
                plan.done += same[job.name]
                # Of an archive as it was before: a merge may have brought them back.
                for number in changed[job.name]:
                    leaving.wait(number, [])
            else:
                plan.todo.append(job)
                ahead.add(job.name)
                again += same[job.name]
                for number in same[job.name] + changed[job.name]:
                    leaving.wait(number, [job])
        if nameless:
            _regrouped(nameless, kept, root, jobs, ahead, leaving)
        kept.put_problems(root.identity, problems)
        links = sum(reason == LINK for _, reason in problems)
        plan.problems += len(problems) - links
        plan.links += links
    kept.forget_files(again)
    kept.put([], gone=leaving.at_once)
    return plan


def _refuse_twice(listed: Sequence[_Listed], kept: JobStore) -> None:
    """Raises ScanError where a file lies under two roots, of this scan or of one before: its job would count twice."""
    here: dict[str, list[Job]] = defaultdict(list)
    for root, jobs, _ in listed:
        here[root.identity] += jobs
    for pair in nested(here.keys() | kept.roots()):
        for mine, other in (pair, pair[::-1]):
            if mine not in here:
                continue
            theirs = [*_paths(here.get(other, ())), *kept.paths(other)]
            twice = found_twice(mine, _paths(here[mine]), other, theirs)
            if twice is not None:
                raise ScanError(
                    f"{twice} was or would be read under {other} too, and its job would count twice: leave one of the"
                    " two places out, or scan it into a store of its own"
                )


def _paths(jobs: Iterable[Job]) -> Iterator[str]:
    """The paths of the jobs' files as the store has them."""
    return (printable(file.path) for job in jobs for file in job.files)


def _of_name(name: str, by_name: Mapping[str, Job], pattern: re.Pattern[str] | None) -> Job | None:
    """The job that was stored under the name, or the archive of which it is a part."""
    job = by_name.get(name)
    if job is not None or pattern is None:
        return job
    archives = (by_name.get(path) for path in above(name))
    return next((job for job in archives if job is not None and is_split(job, pattern)), None)


def _regrouped(
    numbers: Iterable[int], kept: JobStore, root: Root, jobs: Iterable[Job], ahead: Collection[str], leaving: Leaving
) -> None:
    """Stored jobs of names that there are no more. Where a file of theirs is still there it is now in another job, and
    would be counted twice; where none is, the job is all that is known of them. ahead: names of jobs of this shard
    that are not stored as they are now."""
    owners = {printable(file.path): job for job in jobs for file in job.files}
    for number in numbers:
        heirs: dict[str, Job] = {}
        missing = False
        for path in kept.inputs(number):
            owner = next((owners[p] for p in (path, *above(path)) if p in owners), None)
            if owner is None:
                missing = True
            else:
                heirs[owner.name] = owner
        # Beside a file that was named alone may lie others, which were not listed.
        if heirs and not (missing and root.single is not None):
            leaving.wait(number, [job for name, job in heirs.items() if name in ahead])
