"""Times as logs print them, and the question "was a before b?" with three answers.

A training log mixes clocks: c10 prints nanoseconds without year or zone, NCCL whole seconds of local time, collectors
UTC, the kernel seconds since boot. A `Stamp` keeps what was printed and how much of it is known; nothing is guessed.
"""

from __future__ import annotations

import calendar
import enum
import time

import msgspec

from ncclscope.lazy import lazy

__all__ = [
    "HOST_SKEW_S",
    "Answer",
    "Stamp",
    "before",
    "format_stamp",
    "parse_iso",
    "stamp_of",
    "without_year",
]

# Hosts of one cluster run NTP, but a few seconds apart is common in reports; within one host a clock is one clock.
HOST_SKEW_S = 5.0

_MONTHS = {m: i for i, m in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
# A year that leap days fit into, used while the printed text names none.
_NO_YEAR = 1972


class Answer(enum.Enum):
    """Three-valued logic: what the input shows, shows the opposite of, or does not show."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Stamp(msgspec.Struct, frozen=True):
    """One printed time.

    seconds: the printed digits read as UTC, seconds since 1970 (since boot when `clock` is "boot").
    zone: minutes east of UTC when the text shows it, else None (local time of an unknown zone).
    year_known: False for texts without a year; `seconds` then counts within 1972 and compares only with its like.
    clock: "process" (the failing program wrote it), "collector" (a log collector did, maybe late) or "boot".
    """

    seconds: float
    zone: int | None = None
    year_known: bool = True
    clock: str = "process"

    @property
    def utc(self) -> float | None:
        """Seconds since 1970 UTC, or None where zone or year is not shown."""
        if self.zone is None or not self.year_known or self.clock == "boot":
            return None
        return self.seconds - self.zone * 60

    def with_year(self, year: int) -> Stamp:
        """The same month, day and time in `year`, for texts that print none."""
        if self.year_known or self.clock == "boot":
            return self
        whole = int(self.seconds)
        month, day = _month_day(whole)
        if (month, day) == (2, 29) and not calendar.isleap(year):
            return self
        base = calendar.timegm((year, month, day, 0, 0, 0))
        return msgspec.structs.replace(self, seconds=base + whole % 86400 + (self.seconds - whole), year_known=True)


def without_year(stamp: Stamp) -> Stamp:
    """The same month, day and time as a text without a year would give it."""
    if not stamp.year_known or stamp.clock == "boot":
        return stamp
    t = time.gmtime(int(stamp.seconds))
    base = calendar.timegm((_NO_YEAR, t.tm_mon, t.tm_mday, 0, 0, 0))
    whole = int(stamp.seconds)
    return msgspec.structs.replace(stamp, seconds=base + whole % 86400 + (stamp.seconds - whole), year_known=False)


def _month_day(seconds_in_1972: int) -> tuple[int, int]:
    t = time.gmtime(seconds_in_1972)
    return t.tm_mon, t.tm_mday


def stamp_of(
    year: int | None,
    month: int | str,
    day: int,
    hms: str,
    fraction: str = "",
    *,
    zone: int | None = None,
    clock: str = "process",
) -> Stamp | None:
    """A Stamp from the parts of a printed time, or None when they are no valid time.

    month may be a number or an English three-letter name; hms is "HH:MM:SS"; fraction its decimals without the dot.
    """
    if isinstance(month, str):
        month = _MONTHS.get(month, 0)
    try:
        hour, minute, second = (int(part) for part in hms.split(":"))
    except ValueError:
        return None
    ok = 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60
    if not ok or (year is not None and not 1970 <= year <= 9999):
        return None
    base = calendar.timegm((year or _NO_YEAR, month, day, hour, minute, second))
    decimals = float("0." + fraction) if fraction else 0.0
    return Stamp(base + decimals, zone, year is not None, clock)


# 2026-11-30T19:53:21.671442+00:00, 2026-11-30 19:53:21,671, 2026-11-30T19:53:21Z
_ISO = lazy(r"(\d{4})-(\d\d)-(\d\d)[T _](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?(?!\d)")


def parse_iso(text: str, *, clock: str = "process") -> Stamp | None:
    """The first ISO-like time in `text`; zone None when it shows none."""
    m = _ISO.search(text)
    if not m:
        return None
    zone: int | None = None
    if m[6] == "Z":
        zone = 0
    elif m[6]:
        digits = m[6][1:].replace(":", "")
        zone = (int(digits[:2]) * 60 + int(digits[2:])) * (-1 if m[6][0] == "-" else 1)
    return stamp_of(int(m[1]), int(m[2]), int(m[3]), m[4], m[5] or "", zone=zone, clock=clock)


def format_stamp(stamp: Stamp) -> tuple[str, str] | None:
    """(ISO text to the microsecond, zone text or "unknown"); None when the year or the wall clock is not known."""
    if stamp.clock == "boot" or not stamp.year_known:
        return None
    micros = round(stamp.seconds * 1_000_000)
    whole, rest = divmod(micros, 1_000_000)
    t = time.gmtime(whole)
    text = time.strftime("%Y-%m-%dT%H:%M:%S", t) + f".{rest:06d}"
    if stamp.zone is None:
        return text, "unknown"
    sign = "-" if stamp.zone < 0 else "+"
    hours, minutes = divmod(abs(stamp.zone), 60)
    return text, f"{sign}{hours:02d}:{minutes:02d}"


def before(a: Stamp | None, b: Stamp | None, *, same_host: bool) -> Answer:
    """Whether `a` was earlier than `b`: yes or no when the clocks can be compared, else unknown.

    Times of different hosts count only when they are more than HOST_SKEW_S apart.
    """
    if a is None or b is None:
        return Answer.UNKNOWN
    if (a.clock == "boot") != (b.clock == "boot") or (a.clock == "boot" and not same_host):
        return Answer.UNKNOWN
    if a.utc is not None and b.utc is not None:
        delta = b.utc - a.utc
    elif a.zone == b.zone and a.year_known == b.year_known:
        delta = b.seconds - a.seconds
    else:
        return Answer.UNKNOWN
    if not same_host and abs(delta) <= HOST_SKEW_S:
        return Answer.UNKNOWN
    if delta == 0:
        return Answer.UNKNOWN
    return Answer.YES if delta > 0 else Answer.NO
