"""What is known of a line while its prefixes come off, and the times they print."""

from __future__ import annotations

import re
import time
from functools import lru_cache

import msgspec

from ncclscope.clocks import Stamp, stamp_of
from ncclscope.model import Envelope

__all__ = ["Draft", "Known", "epoch_stamp", "iso_stamp", "short_stamp", "zone_between"]

# A collector stamps a line after it was written; one that waited longer than this does not show the zone.
_LAG_S = 120.0
_QUARTER_S = 900
_HALF_A_YEAR_S = 180 * 86_400
_MAX_EPOCH_S = 253_402_300_799  # the end of year 9999


class Known(msgspec.Struct):
    """What the sample of a stream showed.

    layers: names of the ambiguous layers that are real here. words: for layers that take a word, the forms
    seen (digits replaced by `#`). hosts: NCCL hosts. zone: minutes east of UTC of the processes' own times.
    """

    layers: frozenset[str] = frozenset()
    words: dict[str, frozenset[str]] = msgspec.field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    zone: int | None = None


class Draft(msgspec.Struct):
    """The fields of an Envelope under construction."""

    host: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    task: int | None = None
    pid: int | None = None
    tid: int | None = None
    device: int | None = None
    pod: str | None = None
    container: str | None = None
    actor: str | None = None
    stream: str | None = None
    own: Stamp | None = None
    collected: Stamp | None = None
    logger: str | None = None
    level: str | None = None
    code: str | None = None
    repeated: int = 0
    layers: tuple[str, ...] = ()
    partial: bool = False  # the record goes on in the next one

    def fork(self) -> Draft:
        return Draft(
            self.host, self.rank, self.local_rank, self.task, self.pid, self.tid, self.device, self.pod,
            self.container, self.actor, self.stream, self.own, self.collected, self.logger, self.level,
            self.code, self.repeated, self.layers, self.partial,
        )  # fmt: skip

    def collect(self, stamp: Stamp | None) -> None:
        """Takes a collector's time; the innermost wins, unless an outer one alone shows zone and year."""
        if stamp is not None and (
            self.collected is None or stamp.utc is not None or self.collected.utc is None
        ):
            self.collected = stamp

    def envelope(self, zone: int | None) -> Envelope:
        """The finished Envelope; `zone` is what the stream's sample says about times without one."""
        own, collected = self.own, self.collected
        if own is None:
            own, collected = collected, None
        elif own.clock == "boot":
            if collected is not None:  # seconds since boot compare with nothing else in the input
                own, collected = collected, None
        elif own.zone is None:
            own = _complete(own, collected, zone)
        return Envelope(
            self.host, self.rank, self.local_rank, self.task, self.pid, self.tid, self.device, self.pod,
            self.container, self.actor, self.stream, own, collected, self.logger, self.level, self.code,
            self.repeated, self.layers,
        )  # fmt: skip


def _complete(own: Stamp, collected: Stamp | None, zone: int | None) -> Stamp:
    """Year and zone of a local time, from the collector's time on its line and the stream's zone."""
    if collected is None or collected.utc is None:
        return own if zone is None else msgspec.structs.replace(own, zone=zone)
    if not own.year_known:
        own = _with_nearest_year(own, collected)
    if zone is None:
        zone = zone_between(own, collected)
    return own if zone is None else msgspec.structs.replace(own, zone=zone)


def _with_nearest_year(own: Stamp, near: Stamp) -> Stamp:
    year = time.gmtime(near.seconds).tm_year
    dated = own.with_year(year)
    if dated.year_known and abs(dated.seconds - near.seconds) < _HALF_A_YEAR_S:
        return dated
    others = [own.with_year(y) for y in (year - 1, year + 1)]
    return min((s for s in others if s.year_known), key=lambda s: abs(s.seconds - near.seconds), default=own)


def zone_between(own: Stamp, collected: Stamp) -> int | None:
    """Minutes east of UTC of a process's own time, or None where the two times cannot be of one moment."""
    if own.zone is not None or own.clock == "boot" or collected.utc is None:
        return None
    if not own.year_known:
        own = _with_nearest_year(own, collected)
        if not own.year_known:
            return None
    quarters = round((own.seconds - collected.utc) / _QUARTER_S)
    lag = collected.utc + quarters * _QUARTER_S - own.seconds
    if not -2.0 <= lag <= _LAG_S or abs(quarters) > 4 * 14:
        return None
    return quarters * 15


@lru_cache(maxsize=4096)
def _minute(date_to_minute: str) -> float | None:
    """The start of the minute `2026-05-26T12:34`: most lines of a log share it with their neighbours."""
    d = date_to_minute
    stamp = stamp_of(int(d[:4]), int(d[5:7]), int(d[8:10]), d[11:16] + ":00")
    return None if stamp is None else stamp.seconds


@lru_cache(maxsize=64)
def _zone(text: str | None) -> int | None:
    if not text:
        return None
    if text == "Z":
        return 0
    digits = text[1:].replace(":", "")
    if int(digits[2:]) > 59 or int(digits[:2]) > 23:
        return None
    return (int(digits[:2]) * 60 + int(digits[2:])) * (-1 if text[0] == "-" else 1)


def iso_stamp(text: str, fraction: str | None, zone: str | None, clock: str = "process") -> Stamp | None:
    """A Stamp from `2026-05-26T12:34:56`, the decimals after it and `Z`, `+02:00`, `+0200` or nothing."""
    base = _minute(text[:16])
    second = float(f"{text[17:19]}.{fraction}" if fraction else text[17:19])
    if base is None or second >= 61:
        return None
    return Stamp(base + second, _zone(zone), True, clock)


def short_stamp(
    month: str, day: str, hms: str, fraction: str | None, clock: str, year: str | None = None
) -> Stamp | None:
    """A Stamp from `May`, `26`, `12:34:56` (a number for the month is fine), with or without a year."""
    number: int | str = int(month) if month.isdigit() else month
    return stamp_of(int(year) if year else None, number, int(day), hms, fraction or "", clock=clock)


_NUMBER = r"\d{1,20}(?:\.\d{1,9})?$"


def epoch_stamp(value: object, per_second: int = 1) -> Stamp | None:
    """A collector's Stamp from a number (or its digits) that counts since 1970 in 1/per_second seconds."""
    if isinstance(value, str) and re.match(_NUMBER, value, re.ASCII):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 < value < _MAX_EPOCH_S * per_second:
        return None
    return Stamp(value / per_second, 0, True, "collector")
