"""Which files belong to one job: a directory, an archive, or what Slurm, Kubernetes and Ray call their outputs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec
import xxhash

from ncclscope.scan.files import File, Root
from ncclscope.sources.hints import hints_of
from ncclscope.sources.names import natural, plain_name

__all__ = ["Job", "group", "in_shard", "is_archive", "is_split", "job_of_member"]

_ARCHIVE = re.compile(r"\.(?:zip|tar|tgz|tbz2?|txz|tzst|tar\.(?:gz|bz2|xz|zst|zstd))$", re.IGNORECASE)
# A directory of a part of a job: a rank's, a host's, an attempt's, or one kind of log.
_PART = re.compile(
    r"^(?:(?:node|rank|host|worker|attempt|replica|proc|task|gpu|local[-_]?rank|nid)[-_.]?\d+"
    r"|logs?|stdout|stderr|out|err|kernel|dmesg|nccl(?:[-_]logs?)?|fr|flight[-_]?recorder|dumps?|traces?|pods|containers?)$",
    re.IGNORECASE,
)
# Below a job's own directory: torchrun's local ranks.
_NUMBER = re.compile(r"^\d{1,2}$")
# Ray: /tmp/ray/session_2026-05-26_12-34-56_123456_789/logs/...
_SESSION = re.compile(r"^session_\d{4}-\d\d-\d\d_[\d\-_]+$")
# kubelet: <namespace>_<pod>_<uid>/<container>/0.log
_POD_DIRECTORY = re.compile(r"^[a-z0-9\-]+_[a-z0-9][a-z0-9.\-]*_(?:[0-9a-f\-]{36}|[0-9a-f]{32})$")
# train-worker-0, train-node-0-3, train-0-x2k4p, train-7f9c8d6b5-x2k4p
_OF_POD = re.compile(
    r"(?:-(?:worker|master|launcher|ps|chief|node)-\d+(?:-\d+)?(?:-[a-z0-9]{5})?|-\d{1,5}-[a-z0-9]{5}|-[a-z0-9]{8,10}-[a-z0-9]{5})$"
)
_LOG = re.compile(r"\.(?:log|txt|out|err|json)$", re.IGNORECASE)
# slurm-1234.out, slurm-1234_5.out, slurm-1234-dgx-17.out, pretrain-1234.err, pretrain_1234.log, 1234.out
_NUMBERED = re.compile(
    r"^(?P<job>(?:[A-Za-z][\w.]*(?:-[A-Za-z][\w.]*)*[-_.])?\d{3,}(?:_\d{1,5}(?!\d*_log))?)(?=$|[-_.])"
)
# SGE and PBS: pretrain.o1234, pretrain.e1234
_GRID = re.compile(r"^(?P<name>.+)\.[oe](?P<id>\d{3,})(?:\.\d+)?$")
# Files beside jobs that are about them and no logs.
_NO_LOG = re.compile(r"\.(?:jsonl?|ya?ml|md|csv|tsv|html?|toml|ini|cfg|sh|rst)$", re.IGNORECASE)


class Job(msgspec.Struct, frozen=True):
    """Files that are read together. name is unique under the root."""

    root: Root
    name: str
    files: tuple[File, ...]

    @property
    def id(self) -> int:
        """The job's key in every store, whichever scan wrote it."""
        return xxhash.xxh3_64_intdigest(f"{self.root.identity}\0{self.name}".encode("utf-8", "surrogateescape")) >> 1

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def mtime(self) -> float | None:
        """When the newest file was written; None where no file tells."""
        return max((file.mtime for file in self.files if file.mtime is not None), default=None)

    @property
    def fingerprint(self) -> str:
        """Changes when a file of the job comes, goes or changes."""
        text = "\n".join(f"{file.path}\0{file.size}\0{file.tag}" for file in self.files)
        return xxhash.xxh3_128_hexdigest(text.encode("utf-8", "surrogateescape"))


def in_shard(name: str, shard: tuple[int, int] | None) -> bool:
    """Whether the job is of this shard (number from 1, count); each job is of exactly one, on every machine."""
    return shard is None or xxhash.xxh3_64_intdigest(name.encode("utf-8", "replace")) % shard[1] == shard[0] - 1


def is_archive(path: str) -> bool:
    """Whether the name is that of an archive, which is a job of its own."""
    return bool(_ARCHIVE.search(path))


def group(root: Root, files: Iterable[File], pattern: re.Pattern[str] | None = None) -> list[Job]:
    """The jobs under a root, in natural order of their names.

    pattern is searched in each file's path; its group `job`, else its first group, else what it matched names the job.
    Files that it does not match, and all without a pattern, are grouped by directory and by the names of schedulers.
    An archive that it does not match is one job here, and several when it is read: see job_of_member.
    """
    named: dict[str, list[File]] = defaultdict(list)
    places: dict[str, list[File]] = defaultdict(list)
    for file in files:
        name = _matched(pattern, file.path) if pattern else None
        if name:
            named[name].append(file)
        elif is_archive(file.path):
            named[file.path].append(file)
        else:
            places[_place(file.path)].append(file)
    alone = len(places) == 1 and not named
    for place, members in places.items():
        for name, some in _split(place, members, loose=place == "" and not alone).items():
            named[name or root.single or root.name] += some
    return [
        Job(root, name, tuple(sorted(members, key=lambda f: (natural(f.path), f.path))))
        for name, members in sorted(named.items(), key=lambda item: (natural(item[0]), item[0]))
    ]


def is_split(job: Job, pattern: re.Pattern[str] | None) -> bool:
    """Whether the pattern is asked for each member of the job's archive. One that was found in the archive's own path
    has named the job already, to which other files may belong too."""
    return pattern is not None and is_archive(job.name) and [file.path for file in job.files] == [job.name]


def job_of_member(archive: str, member: str, pattern: re.Pattern[str] | None) -> str:
    """The job of an archive's member: what the pattern finds in `archive/member`, below the archive, else the archive.

    Other archives and directories may hold jobs of the same name, of which each is one of its own.
    """
    found = _matched(pattern, member) if pattern else None
    if not found or found == archive:
        return archive
    return f"{archive}/{found.removeprefix(f'{archive}/')}"


def _matched(pattern: re.Pattern[str], path: str) -> str | None:
    m = pattern.search(path)
    if m is None:
        return None
    if "job" in pattern.groupindex:
        return m["job"]
    return m[1] if pattern.groups else m[0]


def _place(path: str) -> str:
    """The directory of the job that a file belongs to, "" for the root."""
    parts = path.split("/")[:-1]
    for depth, part in enumerate(parts):
        if _SESSION.match(part):
            return "/".join(parts[: depth + 1])
        if _POD_DIRECTORY.match(part):
            return "/".join(parts[:depth])
    while parts and (_PART.match(parts[-1]) or (len(parts) > 1 and _is_part(parts[-1]))):
        parts.pop()
    return "/".join(parts)


def _is_part(directory: str) -> bool:
    return bool(_NUMBER.match(directory)) or hints_of(f"{directory}/x.log").host is not None


def _split(place: str, files: Sequence[File], *, loose: bool) -> dict[str, list[File]]:
    """The jobs in one directory. loose: it holds other jobs' directories too, so that each file may be its own."""
    keys = {file.path: _key(file.path[len(place) :].lstrip("/")) for file in files}
    several = len({key for key in keys.values() if key}) > 1
    found: dict[str, list[File]] = defaultdict(list)
    for file in files:
        key = keys[file.path]
        if several and key:
            found[f"{place}/{key}" if place else key].append(file)
        elif not loose:
            found[place].append(file)
        elif not _NO_LOG.search(plain_name(file.path)):
            found[key or file.path].append(file)
    return found


def _key(path: str) -> str | None:
    """What a scheduler's name says about the job of a file; None where it says nothing."""
    hints = hints_of(path)
    if hints.pod:
        return _OF_POD.sub("", hints.pod)
    name = plain_name(path.rpartition("/")[2])
    if m := _GRID.match(name):
        return f"{m['name']}.{m['id']}"
    if hints.rank is not None or hints.kernel:
        return None
    if hints.pid is not None and not name.startswith("slurm"):
        return None
    m = _NUMBERED.match(_LOG.sub("", name))
    return m["job"] if m else None
