"""What a file holds: itself, or the members of an archive.

The readers of archives are imported where one is met: most calls have none, and start sooner.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ncclscope.sources.formats import HEAD, decompress, sniff
from ncclscope.sources.hints import Hints
from ncclscope.sources.names import is_skipped, rotations
from ncclscope.sources.streams import Forward, Notes, Reader, read_file, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ncclscope.sources.tars import TarMember

__all__ = ["MANIFEST", "Found", "SourceProblem", "expand", "passed_over"]

# The member by which a zip that `ncclscope bundle` wrote is known.
MANIFEST = "ncclscope-bundle.json"


class SourceProblem(msgspec.Struct, frozen=True):
    """An input that could not be read, or could be read only in part; the rest goes on.

    skipped is True where nothing is wrong: so many files in a directory or an archive are no logs.
    """

    path: str
    reason: str
    skipped: bool = False


class Found(msgspec.Struct, frozen=True):
    """An input before it has its place in the list.

    archive is set, and place counts from 0, for the members of an archive that have an order of their own. hints and
    group are set where a bundle tells them; else the name does.
    """

    name: str
    size: int | None
    mtime: float | None
    open: Callable[[Notes], Iterator[bytes]]
    archive: str | None = None
    place: int = 0
    hints: Hints | None = None
    group: str | None = None


def passed_over(path: str, skipped: Counter[str]) -> Iterator[SourceProblem]:
    """The count of files left out on purpose, by kind; nothing if there were none."""
    if total := sum(skipped.values()):
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(skipped.items()))
        what = "1 file that is no log" if total == 1 else f"{total} files that are no logs"
        yield SourceProblem(path, f"passed over {what} ({kinds})", skipped=True)


def expand(name: str, size: int, mtime: float) -> tuple[list[Found], list[SourceProblem]]:
    """The inputs in a regular file."""
    try:
        with Path(name).open("rb") as handle:
            head = handle.read(HEAD)
    except OSError as error:
        return [], [SourceProblem(name, reason_of(error))]
    kind = sniff(head)
    if kind == "zip":
        return _zip(name)
    if kind == "tar":
        return _tar(name, size)
    if kind is not None:
        unpacked = partial(_unpacked, name, kind)
        if sniff(Reader(unpacked([])).peek(HEAD)) == "tar":
            return _packed_tar(name, unpacked)
    return [Found(name, size, mtime, partial(read_file, name))], []


def _unpacked(name: str, kind: str, notes: Notes) -> Iterator[bytes]:
    return decompress(kind, Reader(read_file(name, notes)), notes)


def _named(archive: str, member: str) -> str:
    """`a.tar/dir/b.log`. Nothing is ever written under a member's name, so one with `..` stays as it is."""
    return f"{archive}/{member.removeprefix('./').lstrip('/')}"


def _zip(name: str) -> tuple[list[Found], list[SourceProblem]]:
    from ncclscope.sources.zips import zip_members

    notes: Notes = []
    found: list[Found] = []
    problems: list[SourceProblem] = []
    skipped: Counter[str] = Counter()
    # A name that comes twice was written again: the later one counts.
    members = {member.name: member for member in zip_members(name, notes)}
    if MANIFEST in members:
        from ncclscope.sources.bundles import open_bundle

        return open_bundle(name, members)
    for member in members.values():
        if reason := is_skipped(member.name):
            skipped[reason] += 1
        elif member.trouble:
            problems.append(SourceProblem(_named(name, member.name), member.trouble))
        else:
            found.append(Found(_named(name, member.name), member.size, member.mtime, member.read))
    return found, problems + _about(name, notes, found, skipped)


def _about(name: str, notes: Notes, found: list[Found], skipped: Counter[str]) -> list[SourceProblem]:
    problems = [SourceProblem(name, f"{note} ({len(found)} files found)") for note in dict.fromkeys(notes)]
    problems += passed_over(name, skipped)
    if not found and not problems:
        problems.append(SourceProblem(name, "holds no files to read"))
    return problems


def _logs(members: Iterable[TarMember], skipped: Counter[str]) -> list[TarMember]:
    """What to read of a tar, in its order. A name that comes twice was appended again: the later counts."""
    kept: dict[str, TarMember] = {}
    for member in members:
        if reason := is_skipped(member.name):
            skipped[reason] += 1
        else:
            kept.pop(member.name, None)
            kept[member.name] = member
    return list(kept.values())


def _tar(name: str, size: int) -> tuple[list[Found], list[SourceProblem]]:
    """An uncompressed tar: its members can be read in any order."""
    from ncclscope.sources.tars import walk

    notes: Notes = []
    skipped: Counter[str] = Counter()
    reader = Reader(read_file(name, notes), jump=lambda offset: read_file(name, notes, offset), size=size)
    found = [
        Found(_named(name, member.name), member.size, member.mtime, partial(_tar_slice, name, member))
        for member in _logs(walk(reader, notes), skipped)
    ]
    return found, _about(name, notes, found, skipped)


def _tar_slice(name: str, member: TarMember, notes: Notes) -> Iterator[bytes]:
    stream = Forward(partial(read_file, name, offset=member.offset))
    return stream.slice(0, member.size, notes)


def _packed_tar(
    name: str, unpacked: Callable[[Notes], Iterator[bytes]]
) -> tuple[list[Found], list[SourceProblem]]:
    """A compressed tar: read once to find its members, and once more, in its own order, to read them."""
    from ncclscope.sources.tars import walk

    notes: Notes = []
    skipped: Counter[str] = Counter()
    stream = Forward(unpacked)
    members = _logs(walk(Reader(unpacked(notes)), notes), skipped)
    stream.end = max((member.offset + member.size for member in members), default=0)
    groups = rotations(_named(name, member.name) for member in members)
    first: dict[str, int] = {}
    for place, member in enumerate(members):
        first.setdefault(groups[_named(name, member.name)][0], place)
    found = [
        Found(
            _named(name, member.name),
            member.size,
            member.mtime,
            partial(stream.slice, member.offset, member.size),
            archive=name,
            place=first[groups[_named(name, member.name)][0]],
        )
        for member in members
    ]
    return found, _about(name, notes, found, skipped)
