"""torchrun's table of failed workers and its per-worker error files."""

from __future__ import annotations

import json
import re

import msgspec

from ncclscope.lazy import lazy
from ncclscope.model import Event, Line, Value
from ncclscope.parsers.launcher_exit import ExceptionTail, exit_facts, from_exit_code, from_signal
from ncclscope.parsers.pattern import Block, Collector, Pattern

__all__ = ["BLOCKS", "PATTERNS"]

_SECTION = r"^\s*(?P<head>(?:Other )?Failures:|Root Cause(?: \(first observed failure\))?:)\s*$"
_RULER = lazy(r"^\s*([-=*])\1{4,}\s*$")
_HEAD = lazy(_SECTION)
_NUMBER = lazy(r"^\s*\[\d+\]:\s*$")
_ROW = lazy(r"^\s*(?P<name>time|host|rank|exitcode|error_file|traceback|msg)\s*:\s?(?P<value>.*?)\s*$")
_RANK = lazy(r"^(\d+) \(local_rank: (\d+)\)")
_EXIT = lazy(r"^(-?\d+) \(pid: (\d+)\)")
_NO_MESSAGE = lazy(
    r"^(?:Signal \d+ \(|To enable traceback see|Process failed with exitcode|<N/A>|<NONE>)"
)

_ROW_FIELDS = (
    "rank",
    "local_rank",
    "exit_code",
    "signal",
    "pid",
    "time",
    "host",
    "error_file",
    "type",
    "message",
    "first",
    "nature",
    "suggests",
)


class _Row(msgspec.Struct):
    fields: dict[str, Value] = msgspec.field(default_factory=dict)
    tail: ExceptionTail = msgspec.field(default_factory=ExceptionTail)
    line: Line | None = None  # the one that names the exit code, else the first of the row
    in_traceback: bool = False

    def take(self, line: Line) -> None:
        if self.in_traceback:
            self.tail.feed(line.text)
            return
        m = _ROW.match(line.text)
        if m is None:
            return
        name, value = m["name"], m["value"]
        if self.line is None:
            self.line = line
        if name in ("traceback", "msg"):
            self._message(name, value, line)
        elif name == "rank" and (found := _RANK.match(value)):
            self.fields |= {"rank": int(found[1]), "local_rank": int(found[2])}
        elif name == "exitcode" and (found := _EXIT.match(value)):
            self.fields |= exit_facts(int(found[1])) | {"pid": int(found[2])}
            self.line = line
        elif name in ("time", "host", "error_file") and value and value != "<N/A>":
            self.fields[name] = value

    def _message(self, name: str, value: str, line: Line) -> None:
        self.in_traceback = name == "traceback"
        if value.startswith("Traceback (most recent call last):"):
            self.tail.feed(line.text)
        elif not _NO_MESSAGE.match(text := value.strip('"')) and text:
            self.fields["message"] = text


class _Section(Collector):
    """The rows under one head, up to the ruler or the next head."""

    def __init__(self, first: bool) -> None:
        self._first = first
        self._rows: list[_Row] = [_Row()]
        self._fed = 0

    def feed(self, line: Line) -> bool:
        if _RULER.match(line.text) or _HEAD.match(line.text):
            return False
        if _NUMBER.match(line.text):
            self._rows.append(_Row())
        else:
            self._rows[-1].take(line)
        return True

    def close(self) -> list[Event]:
        events: list[Event] = []
        for row in self._rows:
            line = row.line
            if line is None or not {"rank", "pid"} & row.fields.keys():
                continue
            fields = {"nature": "symptom", **row.fields, **row.tail.fields(), "first": self._first}
            events.append(Event("launch.failure_row", fields, line.env, line.ref, line.text))
        return events


def _open(m: re.Match[str], _line: Line) -> Collector:
    return _Section(first=m["head"].startswith("Root Cause"))


def _open_row(_m: re.Match[str], line: Line) -> Collector:
    section = _Section(first=False)
    section.feed(line)
    return section


_PATH = lazy(r"attempt_(\d+)/(\d+)/error\.json$")
_CALL_STACK = lazy(r'"py_callstack": ?("(?:[^"\\]|\\.)*")')
_TIME = lazy(r'"timestamp": ?"?(\d{6,})')


def _error_file(m: re.Match[str], line: Line) -> dict[str, Value] | None:
    """Type and message out of the traceback text, the local rank out of the file's own path."""
    stack = _CALL_STACK.search(line.text, m.start())
    if stack is None:
        return None
    try:
        text = json.loads(stack[1])
    except ValueError:
        return None
    fields: dict[str, Value] = dict(ExceptionTail.of(text.split("\n")).fields())
    if not fields:
        return None
    if time := _TIME.search(line.text):
        fields["time"] = time[1]
    if place := _PATH.search(line.ref.path):
        fields |= {"attempt": int(place[1]), "local_rank": int(place[2])}
    return fields


PATTERNS: tuple[Pattern, ...] = (
    # A row of the table that was pasted without its head; the same row as launch.failure_row when the head is
    # there too.
    #   exitcode  : -9 (pid: 17746)  (SIGKILL)      (1.10 to 2.14; `exitcode: 1 (pid: 7)` in 1.9)
    Pattern(
        "launch.exit_row",
        "(pid: ",
        r"^\s*exitcode\s*: (?P<exit_code>-?\d+) \(pid: (?P<pid>\d+)\)",
        nature="symptom",
        refine=from_exit_code,
        adds=("signal", "suggests"),
    ),
    # traceback : Signal 9 (SIGKILL) received by PID 17746                                     (1.10 to 2.14)
    Pattern(
        "launch.exit_row",
        "received by PID",
        r"Signal (?P<signal>\d+) \(SIG\w+\) received by PID (?P<pid>\d+)",
        nature="symptom",
        refine=from_signal,
        adds=("suggests",),
    ),
    # {"message": {"message": "ValueError: bad", "extraInfo": {"py_callstack": "Traceback ...", "timestamp":
    # "1796"}}}
    # One line in attempt_N/LOCALRANK/error.json, 1.9 to 2.14.
    Pattern(
        "launch.error_file",
        "py_callstack",
        r'"py_callstack":',
        nature="symptom",
        refine=_error_file,
        alone=True,
        adds=("type", "message", "time", "attempt", "local_rank"),
    ),
)

# The table under `ChildFailedError:`, one per node. "Root Cause (first observed failure)" is the first child
# that this agent saw end, to the second; it is a victim often enough that it only says who came first here.
#   Failures:
#   [1]:
#     time      : 2026-11-30_20:32:10
#     host      : node-01
#     rank      : 1 (local_rank: 1)
#     exitcode  : -15 (pid: 5888)  (SIGTERM)
#     error_file: <N/A>
#     traceback : Signal 15 (SIGTERM) received by PID 5888
#   Root Cause (first observed failure):           (1.10 to 2.14; `Root Cause:` and `Other Failures:` in 1.9)
BLOCKS: tuple[Block, ...] = (
    *(
        Block({"launch.failure_row": _ROW_FIELDS}, literal, _SECTION, _open)
        for literal in ("Failures:", "Root Cause")
    ),
    # The same rows in an excerpt that starts below the head.
    Block(
        {"launch.failure_row": _ROW_FIELDS},
        " (local_rank: ",
        r"^\s*rank\s*: \d+ \(local_rank: \d+\)",
        _open_row,
    ),
)
