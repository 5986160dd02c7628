"""Remembers what recurring prefixes of NCCL lines say: debug logs repeat a few of them millions of times."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ncclscope.envelopes.draft import iso_stamp
from ncclscope.envelopes.glue import may_be_glued, may_be_tagged
from ncclscope.envelopes.layer import compiled
from ncclscope.envelopes.records import RECORD_STARTS
from ncclscope.envelopes.text import MAX_BODY, clean
from ncclscope.model import Envelope

if TYPE_CHECKING:
    import re

    from ncclscope.clocks import Stamp

__all__ = ["RecurringPrefixes"]

_MARK = b" NCCL INFO "
_LONGEST = 400
_MOST = 4096
# Longer bodies are rarely the same twice.
_LONGEST_BODY = 200
# A collector's time with date and zone: the one part of a prefix that differs from line to line.
_TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{1,9})(Z|[+-]\d\d:\d\d) "


class RecurringPrefixes:
    """Envelopes by prefix, as bytes, without its time."""

    def __init__(self) -> None:
        self._plain: dict[bytes, Envelope] = {}
        self._timed: dict[tuple[str, str, int, bool], Envelope] = {}

    def clear(self) -> None:
        self._plain.clear()
        self._timed.clear()

    def lookup(self, raw: bytes) -> tuple[str, Envelope] | None:
        """(body, envelope) of a line whose prefix was remembered and in whose body nothing is left to take apart."""
        end = raw.find(_MARK, 0, _LONGEST) + len(_MARK)
        if end < len(_MARK):
            return None
        env = self._plain.get(raw[:end])
        if env is None:
            env = self._with_time(raw[:end]) if self._timed else None
            if env is None:
                return None
        body = (_recurring_body if len(raw) < end + _LONGEST_BODY else _body)(raw[end:])
        return None if body is None else (body, env)

    def _with_time(self, prefix: bytes) -> Envelope | None:
        text = prefix.decode("utf-8", "replace")
        m = compiled(_TIME).search(text)
        if m is None:
            return None
        env = self._timed.get(_around(text, m))
        if env is None:
            return None
        stamp = iso_stamp(m[1], m[2], m[3], "collector")
        return None if stamp is None else _at(env, stamp)

    def remember(self, raw: bytes, body: str, env: Envelope) -> None:
        """Takes note of a line that is a prefix and `body`, if only a collector's time varies in it."""
        end = raw.find(_MARK, 0, _LONGEST) + len(_MARK)
        if end < len(_MARK) or env.logger != "nccl" or env.collected or env.repeated:
            return
        prefix = raw[:end].decode("utf-8", "replace")
        if "{" in prefix:  # of a record that was cut; one that is whole ends otherwise
            return
        if clean(prefix) != prefix or _text(raw[end:]) != body:
            return
        if len(self._plain) + len(self._timed) >= _MOST:
            self.clear()
        if env.time is None:
            self._plain[raw[:end]] = env
            return
        m = compiled(_TIME).search(prefix)
        if m is not None and env.time == iso_stamp(m[1], m[2], m[3], "collector"):
            self._timed[_around(prefix, m)] = env


def _around(prefix: str, time: re.Match[str]) -> tuple[str, str, int, bool]:
    """What is alike in prefixes that say the same: collectors are told apart by the form of their times too."""
    return prefix[: time.start()], prefix[time.end() :], len(time[2]), time[3] == "Z"


def _text(raw: bytes) -> str:
    """Clean text that stands behind other text: what `clean` takes off the begin of a line stays."""
    return clean("." + raw.decode("utf-8", "replace"))[1:]


def _body(raw: bytes) -> str | None:
    """The text behind a prefix; None where it may begin with a record or a time, or hold another line, a tag or a
    repetition."""
    text = _text(raw)
    if text[:1] in RECORD_STARTS or text[:4].isdigit():
        return None
    plain = len(text) <= MAX_BODY and "\r" not in text and "[repeated " not in text
    return text if plain and not may_be_glued(text) and not may_be_tagged(text) else None


# Ranks of one job and jobs of one site say the same.
_recurring_body = lru_cache(maxsize=_MOST)(_body)


def _at(e: Envelope, time: Stamp) -> Envelope:
    """msgspec.structs.replace, at half its price."""
    return Envelope(
        e.host, e.rank, e.local_rank, e.task, e.pid, e.tid, e.device, e.pod, e.container, e.actor, e.stream,
        time, e.collected, e.logger, e.level, e.code, e.repeated, e.layers,
    )  # fmt: skip
