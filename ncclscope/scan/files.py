"""Files under a path or a URL, with what tells whether one changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ncclscope.errors import NcclscopeError
from ncclscope.sources.inputs import printable
from ncclscope.sources.names import is_skipped

__all__ = [
    "LINK", "File", "Root", "ScanError", "above", "filesystem_of", "found_twice", "is_lost", "is_url",
    "list_root", "nested", "remote_reason", "root_of",
]  # fmt: skip

# The extra that brings the file system of a URL.
_EXTRAS = {
    "s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az",
    "http": "http", "https": "http",
}  # fmt: skip

# What object stores and web servers call the mark that changes with the content, the best first.
_TAGS = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "Last-Modified", "updated")


# Why what lies below a link is not listed: a file would be found under two names, or for ever.
LINK = "a link to a directory, which is not followed"
# An error's text in a message; servers send pages.
_MOST_REASON = 300


class ScanError(NcclscopeError):
    """A scan that cannot start or go on; the message says what to change."""


class File(msgspec.Struct, frozen=True):
    """One file. path is relative to its root, with `/`; size in bytes as stored; mtime in seconds since 1970, None
    where it says nothing about the log (an object store's upload time); tag changes whenever the content does."""

    path: str
    size: int
    mtime: float | None
    tag: str


class Root(msgspec.Struct, frozen=True):
    """What a scan was pointed at. given: as the user wrote it, to which paths of files are appended; identity: the
    same wherever it is started from; single: it is a file, and `given` its directory."""

    given: str
    identity: str
    single: str | None = None

    def full(self, path: str) -> str:
        """The path or URL by which the file can be opened."""
        if not self.given:
            return path
        return f"{self.given.rstrip('/')}/{path}"

    @property
    def name(self) -> str:
        """A name for the job that is the root itself."""
        return self.identity.rstrip("/").rpartition("/")[2] or self.identity


def above(path: str) -> Iterator[str]:
    """The directories above a path or URL, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def nested(roots: Iterable[str]) -> list[tuple[str, str]]:
    """(inner, outer) for roots, by identity, of which one lies under the other."""
    plain = {root.rstrip("/"): root for root in roots}
    return [(plain[inner], plain[outer]) for inner in sorted(plain) for outer in above(inner) if outer in plain]


def found_twice(mine: str, paths: Iterable[str], other: str, theirs: Iterable[str]) -> str | None:
    """The first file by its full path, of those under one root, that is, or holds, one of those under another."""
    top, its = (f"{root.rstrip('/')}/" for root in (mine, other))
    known: set[str] = set()
    for path in theirs:
        known.update((its + path, *above(its + path)))
    return next((top + path for path in paths if top + path in known), None)


def is_url(text: str) -> bool:
    """Whether `text` is a URL such as `s3://bucket/prefix` and not a path."""
    scheme, mark, _ = text.partition("://")
    return bool(mark) and scheme.isalnum()


def root_of(text: str) -> Root:
    """The root for a path or URL as given. Raises ScanError when there is none."""
    if is_url(text):
        system, path = filesystem_of(text)
        try:
            single = system.isfile(path)
        except Exception as error:  # every store's library has errors of its own, few of them an OSError
            raise ScanError(f"cannot list {text}: {remote_reason(error)}") from None
        if single and not text.endswith("/"):
            above, _, name = text.rpartition("/")
            return Root(above, above, name)
        return Root(text.rstrip("/"), text.rstrip("/"))
    if not text:
        raise ScanError("an empty PATH; name a directory, an archive or a URL")
    path_ = Path(text)
    try:
        status = path_.stat()
    except (OSError, ValueError) as error:
        raise ScanError(f"cannot read {text}: {_reason(error)}; name a directory, an archive or a URL") from None
    if stat.S_ISDIR(status.st_mode):
        return Root(text.rstrip("/") or "/", printable(str(path_.resolve())))
    if not stat.S_ISREG(status.st_mode):  # a pipe is read once and by one, and may have no writer
        raise ScanError(f"cannot read {text}: a pipe, socket or device; name a directory, an archive or a URL")
    above = str(path_.parent)
    return Root("" if above == "." and "/" not in text else above, printable(str(path_.resolve().parent)), path_.name)


def _reason(error: Exception) -> str:
    strerror = getattr(error, "strerror", None)
    return str(strerror or error or type(error).__name__)


def remote_reason(error: Exception) -> str:
    """What the library of an object store or web server says, as one line; some send the server's whole page."""
    lines = [line.strip() for line in _reason(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:_MOST_REASON]


def is_lost(error: Exception) -> bool:
    """Whether a place gave no answer, or none that is complete, as opposed to saying no to this one object."""
    if isinstance(error, (FileNotFoundError, PermissionError)):
        return False
    if isinstance(error, OSError):
        return True
    if type(error).__module__ == "builtins":  # a library that stumbles over an object does so each time
        return False
    # azure-core, aiohttp, gcsfs
    status = next((s for name in ("status_code", "status", "code") if (s := getattr(error, name, None))), None)
    # 408 and 429 say "later".
    return not (isinstance(status, int) and 400 <= status < 500 and status not in (408, 429))


def filesystem_of(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL and the path in it. Raises ScanError naming the extra that is missing."""
    scheme = url.partition("://")[0].lower()
    extra = _EXTRAS.get(scheme)
    try:
        import fsspec
    except ImportError:
        raise ScanError(f"{url}: URLs need an extra: pip install 'ncclscope[{extra or 's3'}]'") from None
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        hint = f"pip install 'ncclscope[{extra}]'" if extra else str(error)
        raise ScanError(f"{url}: {scheme}:// needs an extra: {hint}") from None
    except ValueError as error:
        known = "" if extra else f"; known are {', '.join(sorted(_EXTRAS))}"
        raise ScanError(f"{url}: {remote_reason(error)}{known}") from None
    except Exception as error:  # credentials that are missing or have no sound form
        raise ScanError(f"{url}: {remote_reason(error)}") from None
    return system, path


def list_root(root: Root, problems: list[tuple[str, str]]) -> Iterator[File]:
    """The files under a root in no particular order, without those that are no logs; unreadable ones go to problems,
    and so do links to directories, with the reason LINK."""
    if is_url(root.given):
        yield from _list_remote(root, problems)
    elif root.single is not None:
        yield _local(Path(root.full(root.single)).stat(), root, root.single)
    else:
        yield from _list_local(root, problems)


def _local(status: os.stat_result, root: Root, path: str) -> File:
    # One that may be read from now on is not what it was.
    closed = "" if os.access(root.full(path), os.R_OK) else " closed"
    return File(path, status.st_size, status.st_mtime, f"{status.st_mtime_ns}{closed}")


def _list_local(root: Root, problems: list[tuple[str, str]]) -> Iterator[File]:
    pending = [""]
    while pending:
        below = pending.pop()
        try:
            with os.scandir(root.full(below) if below else root.given or ".") as entries:
                for entry in entries:
                    path = f"{below}/{entry.name}" if below else entry.name
                    if is_skipped(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(path)
                        continue
                    try:
                        status = entry.stat()
                    except OSError as error:
                        problems.append((path, _reason(error)))
                        continue
                    if stat.S_ISREG(status.st_mode):
                        yield _local(status, root, path)
                    elif stat.S_ISDIR(status.st_mode):
                        problems.append((path, LINK))
        except OSError as error:
            problems.append((below or ".", _reason(error)))


def _list_remote(root: Root, problems: list[tuple[str, str]]) -> Iterator[File]:
    system, top = filesystem_of(root.given if root.single is None else root.full(root.single))
    try:
        # Of a single file adlfs' find gives its name alone.
        found = system.find(top, detail=True) if root.single is None else {top: system.info(top)}
    except Exception as error:  # as in root_of
        raise ScanError(f"cannot list {root.given}: {remote_reason(error)}") from None
    if not found:  # stores have no empty directories: a misspelt name must not look like an archive without jobs
        try:
            system.ls(top)
        except Exception as error:  # web servers' `find` keeps to itself that there was no answer
            if is_lost(error):
                raise ScanError(f"{root.given} gave no answer: {remote_reason(error)}") from None
        raise ScanError(f"nothing lies under {root.given}: no such bucket, container or prefix")
    if root.single is not None:
        top = top.rpartition("/")[0]
    for full, info in found.items():
        path = full[len(top) :].lstrip("/") if full.startswith(top) else full
        if is_skipped(path):
            continue
        try:  # web servers list names alone
            known = info if info.get("size") is not None else system.info(full)
        except Exception as error:  # as in root_of
            problems.append((path, remote_reason(error)))
            continue
        tag = next((known[name] for name in _TAGS if known.get(name)), "")
        # A server need not tell the size of what it makes while it is asked.
        yield File(path, int(known.get("size") or 0), None, str(tag).strip('"'))
