"""Results as lines of JSON, one a job, while they come."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from ncclscope.scan.files import ScanError
from ncclscope.sources.inputs import printable

__all__ = ["JsonLines"]


class JsonLines:
    """Writes `{"job": name, "report": {...}}` a line.

    A file is begun anew from what the store has, so that after a scan that was killed it holds each job once and whole;
    `-` is standard output.
    """

    def __init__(self, path: Path, done: Iterable[tuple[str, bytes]]) -> None:
        self._path = path
        with _said_of(path):
            if str(path) == "-":
                self._file: BinaryIO = os.fdopen(os.dup(1), "wb")
                self.write(done)
            elif path.exists() and not path.is_file():  # a pipe or a terminal
                self._file = path.open("wb")
                self.write(done)
            else:
                fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
                self._file = fresh.open("wb")
                try:
                    self.write(done)
                    fresh.replace(path)
                except BaseException:
                    self._file.close()
                    fresh.unlink(missing_ok=True)
                    raise

    def write(self, results: Iterable[tuple[str, bytes]]) -> None:
        """Adds the lines of these jobs and hands them to the system."""
        with _said_of(self._path):
            for name, report in results:
                self._file.write(b'{"job":' + msgspec.json.encode(printable(name)) + b',"report":' + report + b"}\n")
            self._file.flush()

    def close(self) -> None:
        """Ends the file."""
        self._file.close()


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    """Errors of writing name the file. A reader that went is for the command to answer."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ScanError(f"cannot write {path}: {error.strerror or error}") from None
