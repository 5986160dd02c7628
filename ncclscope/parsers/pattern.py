"""How a parser declares what it recognises.

A `Pattern` recognises one line, a `Block` a bounded run of lines after an opener. Both name a literal that stands in
every line they match: the gate searches whole blocks of bytes for all literals at once, and only lines with a hit
reach a regular expression. So a literal is a promise about the regular expression, and must survive every envelope:
ASCII without the characters that JSON encoders escape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from ncclscope.literal import bad_literal
from ncclscope.model import Event, Line, Value

__all__ = ["INT_FIELDS", "MAX_BLOCK_LINES", "Block", "Collector", "Pattern", "bad_literal", "match", "parse_pid"]

# A run of lines after an opener (a traceback, a failure table) longer than this is cut; the event says what was read.
MAX_BLOCK_LINES = 400

_PATTERN_LIMIT_S = 0.2

# Named groups that are whole numbers wherever they occur. Hexadecimal and dotted values stay text.
INT_FIELDS = frozenset(
    """rank ranks_total nranks nnodes local_rank local_ranks world_size device cuda_dev nvml_dev seq seq_last_enqueued
    seq_last_completed seq_last_started numel_in numel_out timeout_ms elapsed_ms pid tid port errno code exit_code
    signal xid sxid prev_xid count size bytes attempt peer peer_rank local_rank_peer channel step pg_id status
    vendor_err got expected driver_version uptime_s line retcode""".split()
)


class Pattern(msgspec.Struct, frozen=True):
    """One kind of line.

    kind: the event's kind. literal: stands in every matching body, at least 4 characters. regex: searched in the body;
    its named groups become fields (absent groups are left out, INT_FIELDS become int). fields: constants to add.
    nature: what the line is for the rank that prints it: "cause" (it names a root cause by itself), "symptom"
    (something failed, not why), "consequence" (an echo of a failure elsewhere), "noise" (harmless, looks bad), "info".
    cause: the cause class (knowledge/causes) that a line of nature "cause" names; both become fields of the event.
    refine: looks at the match and the line and returns more fields (it may override nature and cause), or None to say
    that this is no such event. also: a second literal that stands in every matching body; for a first one that stands
    in many other lines, which then cost little. alone: refine looks at more of the line than its text and the logger,
    level, code and rank of its envelope, so what it says of one line goes for no other. since/until: first and last
    version known to print it, for readers and the catalogue.
    """

    kind: str
    literal: str
    regex: str
    nature: str = "info"
    cause: str | None = None
    fields: Mapping[str, Value] = msgspec.field(default_factory=dict)
    refine: Callable[[re.Match[str], Line], Mapping[str, Value] | None] | None = None
    adds: tuple[str, ...] = ()  # names that refine may add, for the dictionary of kinds
    context: bool = False  # also tell how long the stream had been silent before this line (field gap_s)
    guarded: bool = False  # comes from a user's rule: runs under a time limit
    since: str = ""
    until: str = ""
    also: str = ""
    alone: bool = False


class Collector(Protocol):
    """Takes the lines of one voice after an opener."""

    def feed(self, line: Line) -> bool:
        """Looks at the next line; False when the block ended before this line."""

    def close(self) -> list[Event]:
        """The events of what was read, also when the input ended in the middle."""


class Block(msgspec.Struct, frozen=True):
    """A run of lines that starts with a line matching regex; `open` makes the collector from the opening line."""

    kinds: Mapping[str, tuple[str, ...]]  # kind -> field names
    literal: str
    regex: str
    open: Callable[[re.Match[str], Line], Collector | None]


@lru_cache(maxsize=4096)
def compiled(regex: str) -> re.Pattern[str]:
    """The compiled form, made when its literal is first seen: most runs need a few dozen of several hundred."""
    return re.compile(regex)


def match(pattern: Pattern, line: Line) -> Event | None:
    """The event that `pattern` sees in `line`, or None."""
    m = _search_guarded(pattern, line.text) if pattern.guarded else compiled(pattern.regex).search(line.text)
    if m is None:
        return None
    fields: dict[str, Value] = {"nature": pattern.nature, **pattern.fields}
    if pattern.cause is not None:
        fields["cause"] = pattern.cause
    for name, text in m.groupdict().items():
        if text is None:
            continue
        if name in INT_FIELDS:
            number = _int(text)
            if number is not None:
                fields[name] = number
        else:
            fields[name] = text
    if pattern.refine is not None:
        more = pattern.refine(m, line)
        if more is None:
            return None
        fields.update(more)
    return Event(pattern.kind, fields, line.env, line.ref, line.text)


class PatternTimeoutError(Exception):
    """A pattern of a rule took longer than its time limit on one line."""


def _search_guarded(pattern: Pattern, text: str) -> re.Match[str] | None:
    try:
        found: re.Match[str] | None = _guarded(pattern.regex).search(text, timeout=_PATTERN_LIMIT_S)
    except TimeoutError:
        limit = f"ran longer than {_PATTERN_LIMIT_S} s on one line"
        raise PatternTimeoutError(f"the pattern of {pattern.kind} {limit}") from None
    else:
        return found


@lru_cache(maxsize=512)
def _guarded(pattern: str) -> Any:
    import regex

    return regex.compile(pattern)


def _int(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def parse_pid(text: str | None) -> int | None:
    """A process id from kernel or launcher text, None for `<unknown>` and the like."""
    return int(text) if text and text.isdigit() else None
