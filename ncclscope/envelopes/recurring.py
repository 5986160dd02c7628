"""Remembers what recurring prefixes of NCCL lines say: debug logs repeat a few of them millions of times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.envelopes.draft import iso_stamp
from ncclscope.envelopes.layer import compiled
from ncclscope.model import Envelope

if TYPE_CHECKING:
    from ncclscope.clocks import Stamp

__all__ = ["RecurringPrefixes"]

_MARK = " NCCL INFO "
_LONGEST = 400
_MOST = 4096
# A collector's time with date and zone: the one part of a prefix that differs from line to line.
_TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{1,9})(Z|[+-]\d\d:\d\d) "

Key = tuple[str, str]


class RecurringPrefixes:
    """Envelopes by prefix without its time."""

    def __init__(self) -> None:
        self._plain: dict[str, Envelope] = {}
        self._timed: dict[Key, Envelope] = {}

    def clear(self) -> None:
        self._plain.clear()
        self._timed.clear()

    def lookup(self, text: str) -> tuple[int, Envelope] | None:
        """(where the body begins, the envelope) of a line whose prefix was remembered."""
        end = text.find(_MARK, 0, _LONGEST)
        if end < 0:
            return None
        end += len(_MARK)
        env = self._plain.get(text[:end])
        if env is not None:
            return end, env
        if not self._timed:
            return None
        m = compiled(_TIME).search(text, 0, end)
        if m is None:
            return None
        env = self._timed.get((text[: m.start()], text[m.end() : end]))
        if env is None:
            return None
        stamp = iso_stamp(m[1], m[2], m[3], "collector")
        return None if stamp is None else (end, _with_time(env, stamp))

    def remember(self, text: str, body: str, env: Envelope) -> None:
        """Takes note of a line that is a prefix and `body`, if only a collector's time varies in it."""
        end = text.find(_MARK, 0, _LONGEST) + len(_MARK)
        if end < len(_MARK) or text[end:] != body or env.logger != "nccl" or env.collected or env.repeated:
            return
        if len(self._plain) + len(self._timed) >= _MOST:
            self.clear()
        if env.time is None:
            self._plain[text[:end]] = env
            return
        m = compiled(_TIME).search(text, 0, end)
        if m is not None and env.time == iso_stamp(m[1], m[2], m[3], "collector"):
            self._timed[text[: m.start()], text[m.end() : end]] = env


def _with_time(e: Envelope, time: Stamp) -> Envelope:
    """msgspec.structs.replace, at half its price."""
    return Envelope(
        e.host, e.rank, e.local_rank, e.task, e.pid, e.tid, e.device, e.pod, e.container, e.actor, e.stream,
        time, e.collected, e.logger, e.level, e.code, e.repeated, e.layers,
    )  # fmt: skip
