"""Finding the inputs that a command names."""

from __future__ import annotations

import glob
import os
import stat
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from ncclscope.sources.archives import Found, SourceProblem, expand, passed_over
from ncclscope.sources.hints import Hints, hints_of
from ncclscope.sources.names import is_skipped, natural, rotations
from ncclscope.sources.streams import Notes, read_file, read_handle, reason_of
from ncclscope.sources.text import text_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["STDIN", "Input", "SourceProblem", "discover", "missing", "printable"]

STDIN = "<stdin>"

_SPECIAL = (
    (stat.S_ISCHR, "is a character device; save its text to a file first"),
    (stat.S_ISBLK, "is a block device; name a log file"),
    (stat.S_ISSOCK, "is a socket; name a log file"),
)


class Input(msgspec.Struct):
    """One stream of bytes.

    name is the path as the user gave it; for an archive's member `a.tar.gz/dir/b.log`, for standard input
    `<stdin>`. size (bytes as stored, so compressed where the file is) and mtime (last write, seconds since
    1970) are None where unknown. Rotated files of one stream share their group, and `discover` gives them
    oldest first. notes is filled by `blocks`: `truncated gzip: read 1.2 MiB of it`, `UTF-16`.
    """

    name: str
    hints: Hints
    size: int | None
    mtime: float | None
    group: str
    open: Callable[[Notes], Iterator[bytes]]
    notes: list[str] = msgspec.field(default_factory=list)

    def blocks(self) -> Iterator[bytes]:
        """The bytes in order, split anywhere into blocks of at most 256 KiB, the whole never in memory.

        Decompressed, and UTF-16 or UTF-32 with a byte order mark converted to UTF-8. Bad data and failing
        reads raise nothing: what could be read is yielded and a note added. Standard input and FIFOs can be
        read once.
        """
        self.notes.clear()
        return text_blocks(self.open(self.notes), self.notes)


def discover(
    paths: Sequence[str], *, stdin: BinaryIO | None = None
) -> tuple[list[Input], list[SourceProblem]]:
    """The inputs under `paths`, and what could not be read or was passed over.

    A path is a file, a directory (searched to its leaves, links to directories not followed), a pattern that
    the shell left alone, a file or folder in an archive by the name that its input has, or `-` for `stdin`,
    which is used for nothing else. Archives become one input for each file in them. The order is natural by
    name whatever the order of `paths`, rotated files oldest first; the files of a compressed tar keep the
    archive's own order, since it can only be read forwards. A file given twice comes once.
    """
    search = _Search(stdin)
    for path in sorted(dict.fromkeys(paths), key=lambda path: (natural(path), path)):
        search.add(path)
    return search.result()


def missing(
    paths: Sequence[str], inputs: Sequence[Input], problems: Sequence[SourceProblem]
) -> tuple[SourceProblem, ...]:
    """Those of the problems that are one of `paths` itself, of which nothing could be read."""
    asked = {printable(path) for path in paths}
    return tuple(
        problem
        for problem in problems
        if problem.path in asked
        and not problem.skipped
        and not any(f"{item.name}/".startswith(f"{problem.path.rstrip('/')}/") for item in inputs)
    )


class _Search:
    """The state of one call of `discover`."""

    def __init__(self, stdin: BinaryIO | None) -> None:
        self._stdin = stdin
        self._files: list[tuple[str, os.stat_result]] = []
        self._found: list[Found] = []
        self._problems: list[SourceProblem] = []

    def _problem(self, path: str, reason: str) -> None:
        self._problems.append(SourceProblem(path, reason))

    def add(self, path: str) -> None:
        if path != "-":
            self._add_path(path)
        elif self._stdin is None:
            self._problem("-", "standard input is not available")
        else:
            self._found.append(Found(STDIN, None, None, partial(read_handle, self._stdin)))

    def _add_path(self, path: str) -> None:
        try:
            status = Path(path).stat()
        except FileNotFoundError:
            self._add_pattern(path)
        except NotADirectoryError:
            self._add_member(path)
        except OSError as error:
            self._problem(path, reason_of(error))
        except ValueError:  # a NUL in the path
            self._problem(path, "is not a path")
        else:
            if stat.S_ISDIR(status.st_mode):
                self._add_directory(path)
            else:
                self._add_file(path, status)

    def _add_pattern(self, path: str) -> None:
        if not glob.has_magic(path):
            dangling = Path(path).is_symlink()
            self._problem(
                path, "links to a file that does not exist" if dangling else "no such file or directory"
            )
            return
        matches = glob.glob(path, recursive=True)  # noqa: PTH207 - Path.glob loses the name as given
        if not matches:
            self._problem(path, "no file matches this pattern")
        for match in sorted(matches):
            if Path(match).exists():  # not a dangling link, nor gone since
                self._add_path(match)

    def _add_member(self, path: str) -> None:
        """A name below an archive, as reports print it."""
        archive = path
        while archive and not Path(archive).is_file():
            archive = archive.rpartition("/")[0]
        if not archive:
            self._problem(path, "not a directory")
            return
        status = Path(archive).stat()
        found, trouble = expand(archive, status.st_size, status.st_mtime)
        folder = f"{path.rstrip('/')}/"
        mine = [item for item in found if item.name == path or item.name.startswith(folder)]
        self._found += mine
        self._problems += [item for item in trouble if item.path == path or item.path.startswith(folder)]
        if not mine:
            self._problem(path, f"{archive} holds no such file")

    def _add_file(self, path: str, status: os.stat_result) -> None:
        for test, reason in _SPECIAL:
            if test(status.st_mode):
                self._problem(path, reason)
                return
        self._files.append((path, status))

    def _add_directory(self, top: str) -> None:
        skipped: Counter[str] = Counter()
        before = len(self._files)
        pending = [top]
        while pending:
            directory = pending.pop()
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        if reason := is_skipped(entry.name):
                            skipped[reason] += 1
                        elif entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
                        else:
                            self._add_entry(entry)
            except OSError as error:
                self._problem(directory, reason_of(error))
        self._problems += passed_over(top, skipped)
        if len(self._files) == before and not skipped:
            self._problem(top, "holds no files to read")

    def _add_entry(self, entry: os.DirEntry[str]) -> None:
        try:
            status = entry.stat()
        except OSError as error:
            self._problem(entry.path, reason_of(error))
            return
        if stat.S_ISREG(status.st_mode):
            self._files.append((entry.path, status))

    def result(self) -> tuple[list[Input], list[SourceProblem]]:
        seen: set[tuple[int, int]] = set()
        for name, status in sorted(self._files, key=lambda file: (natural(file[0]), file[0])):
            identity = (status.st_dev, status.st_ino)
            if identity in seen:
                continue
            seen.add(identity)
            if stat.S_ISREG(status.st_mode):
                found, trouble = expand(name, status.st_size, status.st_mtime)
                self._found += found
                self._problems += trouble
            else:  # a FIFO, which must not be opened yet: that waits for its writer
                self._found.append(Found(name, None, None, partial(read_file, name)))
        problems = list(
            dict.fromkeys(msgspec.structs.replace(item, path=printable(item.path)) for item in self._problems)
        )
        problems.sort(key=lambda item: (natural(item.path), item.path, item.reason))
        return _ordered(list({item.name: item for item in self._found}.values())), problems


def printable(name: str) -> str:
    """A name as a report can hold it: bytes that are no UTF-8 (lone surrogates in Python) shown as escapes."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _ordered(found: list[Found]) -> list[Input]:
    groups = rotations(item.name for item in found)

    def key(item: Found) -> tuple[object, ...]:
        group, age = groups[item.name]
        head = (natural(item.archive), item.place) if item.archive is not None else (natural(group), 0)
        if item.hints is not None:
            return head
        return (*head, age, natural(item.name), item.name)

    return [
        Input(
            printable(item.name),
            item.hints or hints_of(item.name),
            item.size,
            item.mtime,
            item.group or groups[item.name][0],
            item.open,
        )
        for item in sorted(found, key=key)
    ]
