"""What a scan is asked for."""

from __future__ import annotations

import re

import msgspec

from ncclscope.engine.pack import Pack
from ncclscope.scan.engines import WorkerOptions
from ncclscope.scan.files import ScanError

__all__ = ["ScanOptions"]


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

    def grouping(self) -> re.Pattern[str] | None:
        """The pattern, compiled. Raises ScanError where it is none."""
        if self.pattern is None:
            return None
        try:
            return re.compile(self.pattern)
        except re.error as error:
            hint = "write for example 'job-(?P<job>[0-9]+)'"
            raise ScanError(f"--job-pattern {self.pattern!r}: {error}; {hint}") from None
