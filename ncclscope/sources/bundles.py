"""What `ncclscope bundle` wrote, read again: excerpts under the names and line numbers of the logs they are from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ncclscope.sources.archives import MANIFEST, Found, SourceProblem
from ncclscope.sources.hints import Hints
from ncclscope.sources.streams import BLOCK, Notes

if TYPE_CHECKING:
    from ncclscope.sources.zips import ZipMember

__all__ = ["VERSION", "BundledStream", "Manifest", "open_bundle"]

VERSION = 1

_MAX_MANIFEST = 64 << 20
_MAX_MEMBER = 256 << 20
# Lines that a manifest may claim for one stream; a blank line stands for each that is left out.
_MAX_LINES = 2_000_000_000


class BundledStream(msgspec.Struct, frozen=True):
    """One input as it was read, and which of its lines the bundle holds.

    path: its name, redacted where the bundle is; member: where its lines are in the archive. runs: first line and
    count of each run of lines in the member, in order. lines: of the original, so that what is absent keeps its
    place. mtime: last write, seconds since 1970, from which a silence is measured. notes: how reading it ended where
    it did not end well. whole: the member is the file itself (a flight-recorder dump), runs do not count.
    """

    path: str
    member: str
    hints: Hints
    group: str
    lines: int
    mtime: float | None = None
    runs: list[tuple[int, int]] = []
    whole: bool = False
    notes: list[str] = []


class Manifest(msgspec.Struct, frozen=True):
    """The table of contents. problems: inputs that could not be read, with the reason. same_answer: whether a triage of
    the bundle gave the rules, classes, culprits and confidence that the originals gave when it was written."""

    format: str
    version: int
    tool_version: str
    redacted: bool
    streams: list[BundledStream]
    problems: list[tuple[str, str]] = []
    same_answer: bool = True


def open_bundle(name: str, members: Mapping[str, ZipMember]) -> tuple[list[Found], list[SourceProblem]]:
    """The inputs in a bundle, in the order in which they were read first."""
    raw = _content(members[MANIFEST], _MAX_MANIFEST, [])
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except msgspec.MsgspecError as error:
        return [], [SourceProblem(f"{name}/{MANIFEST}", f"is no manifest of a bundle: {error}")]
    if manifest.version > VERSION:
        return [], [SourceProblem(name, f"is a bundle of version {manifest.version}; this program reads {VERSION}")]
    found: list[Found] = []
    problems = [SourceProblem(f"{name}/{path}", reason) for path, reason in manifest.problems]
    for place, stream in enumerate(manifest.streams):
        shown = f"{name}/{stream.path.lstrip('/')}"
        member = members.get(stream.member)
        if member is None or member.trouble:
            problems.append(SourceProblem(shown, (member and member.trouble) or "is missing from the bundle"))
        elif not _sound(stream):
            problems.append(SourceProblem(shown, "the manifest's line numbers make no sense"))
        else:
            read = partial(_whole if stream.whole else _expanded, stream, member)
            group = f"{name}/{stream.group.lstrip('/')}"
            hints = stream.hints
            found.append(Found(shown, member.size, stream.mtime, read, name, place, hints, group))
    return found, problems


def _sound(stream: BundledStream) -> bool:
    at = 0
    for first, count in stream.runs:
        if first <= at or count < 1:
            return False
        at = first + count - 1
    return at <= max(stream.lines, 0) <= _MAX_LINES


def _content(member: ZipMember, limit: int, notes: Notes) -> bytes:
    data = bytearray()
    for piece in member.read(notes):
        data += piece
        if len(data) > limit:
            notes.append(f"only the first {limit >> 20} MiB were read")
            break
    return bytes(data[:limit])


def _whole(stream: BundledStream, member: ZipMember, notes: Notes) -> Iterator[bytes]:
    notes += stream.notes
    yield from member.read(notes)


def _expanded(stream: BundledStream, member: ZipMember, notes: Notes) -> Iterator[bytes]:
    """The stream with a blank line for each line that is left out, so that every line has its number."""
    notes += stream.notes
    lines = _content(member, _MAX_MEMBER, notes).split(b"\n")
    taken = at = 0
    for first, count in stream.runs:
        yield from _blank(first - 1 - at)
        run = lines[taken : taken + count]
        at, taken = first + count - 1, taken + count
        yield b"\n".join(run) + b"\n"
    yield from _blank(stream.lines - at)


def _blank(count: int) -> Iterator[bytes]:
    for _ in range(count // BLOCK):
        yield b"\n" * BLOCK
    if count % BLOCK > 0:
        yield b"\n" * (count % BLOCK)
