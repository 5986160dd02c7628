"""One stream of physical lines in, logical lines without prefixes out."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ncclscope.clocks import stamp_of
from ncclscope.model import Envelope, Line, SourceRef

_RANK = re.compile(r"\[rank(\d{1,7})\]: ?")
_C10 = re.compile(r"\[([IWEF])(?:(\d{1,2})(\d\d) (\d\d:\d\d:\d\d)\.(\d{6,9}))? ([\w./+-]+:\d+)\] ?")
_NCCL = re.compile(
    r"(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] )?([\w.-]{1,255}):(\d{1,10}):(\d{1,10}) \[(-?\d{1,10})\] "
    r"(?:([^\[\]]{1,400}?:\d{1,7})(?: \([^()]*\))? )??NCCL (INFO|WARN|TRACE|ERROR) ?"
)


class Unwrapper:
    """Takes the envelopes of one input stream off; holds what was learned about the stream."""

    def __init__(self, path: str) -> None:
        self._path = path

    def learn(self, sample: Sequence[bytes]) -> None:
        """Looks at raw physical lines to tell which ambiguous prefixes are real."""

    @property
    def splits_text(self) -> bool:
        """Whether every line must be unwrapped before its text can be searched."""
        return False

    def unwrap(self, raw: bytes, line_no: int) -> list[Line]:
        """The logical lines of one physical line."""
        text = raw.decode("utf-8", "replace").rstrip("\r")
        rank = None
        pos = 0
        ref = SourceRef(self._path, line_no)
        if m := _RANK.match(text):
            rank, pos = int(m[1]), m.end()
        if m := _C10.match(text, pos):
            time = stamp_of(None, int(m[2]), int(m[3]), m[4], m[5]) if m[2] else None
            env = Envelope(rank=rank, logger="c10", level=m[1], code=m[6], time=time)
            return [Line(text[m.end() :], env, ref)]
        if m := _NCCL.match(text, pos):
            env = Envelope(
                host=m[1], pid=int(m[2]), tid=int(m[3]), device=int(m[4]), rank=rank,
                logger="nccl", level=m[6], code=m[5],
            )  # fmt: skip
            return [Line(text[m.end() :], env, ref)]
        return [Line(text[pos:], Envelope(rank=rank), ref)]

    def flush(self) -> list[Line]:
        """Lines that were still waiting for their continuation when the stream ended."""
        return []

    def describe(self) -> str:
        """The layers of this stream, outermost first."""
        return "plain"
