"""How a process ended, as launchers write it: exit codes, signal names and the words of strsignal(3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ncclscope.model import Line, Value

__all__ = [
    "ENDED",
    "ExceptionTail",
    "exit_facts",
    "expand_numbers",
    "from_exit_code",
    "from_signal",
    "ints",
    "signal_facts",
    "signal_number",
    "with_ints",
    "with_signal",
]

# The logs come from Linux, so the numbers are Linux's, whatever this program runs on.
_BY_NAME = {
    "SIGHUP": 1,
    "SIGINT": 2,
    "SIGQUIT": 3,
    "SIGILL": 4,
    "SIGTRAP": 5,
    "SIGABRT": 6,
    "SIGBUS": 7,
    "SIGFPE": 8,
    "SIGKILL": 9,
    "SIGUSR1": 10,
    "SIGSEGV": 11,
    "SIGUSR2": 12,
    "SIGPIPE": 13,
    "SIGALRM": 14,
    "SIGTERM": 15,
    "SIGCONT": 18,
    "SIGSTOP": 19,
    "SIGXCPU": 24,
    "SIGXFSZ": 25,
    "SIGSYS": 31,
}
_BY_TEXT = {
    "hangup": 1,
    "interrupt": 2,
    "quit": 3,
    "illegal instruction": 4,
    "trace/breakpoint trap": 5,
    "aborted": 6,
    "abort": 6,
    "bus error": 7,
    "floating point exception": 8,
    "killed": 9,
    "user defined signal 1": 10,
    "segmentation fault": 11,
    "user defined signal 2": 12,
    "broken pipe": 13,
    "alarm clock": 14,
    "terminated": 15,
}

# strsignal texts that a shell or srun prints for a child it reaped, as one alternation.
ENDED = (
    "Killed|Terminated|Aborted|Segmentation fault|Bus error|Illegal instruction|Floating point exception"
    "|Hangup|Interrupt|Quit|Broken pipe|User defined signal [12]"
)

# Deaths that are somebody's fault: by the kernel or an administrator, or by a bug in native code.
_DEATHS = frozenset({4, 5, 7, 8, 9, 11, 31})
_ABORT = 6
_WRAPPED = 128  # a shell or a container runtime reports death by signal n as 128 + n
_LAST_SIGNAL = 64
_BYTE = 256
_FOLDED = frozenset({4, 6, 7, 8, 9, 11, 15})  # 255 is left out: it is everybody's "failed"
_CANNOT_START = frozenset({126, 127})

# Groups of the launcher patterns that are whole numbers, beside INT_FIELDS.
_INTS = frozenset(
    [
        "task",
        "group_rank",
        "node_rank",
        "restart_count",
        "attempts_left",
        "attempts_max",
        "line",
        "limit_s",
        "waited_s",
        "signal",
    ]
)


def signal_number(text: str) -> int | None:
    """The number of `SIGKILL`, `Signals.SIGKILL`, `9`, `Killed` or `segmentation fault`; None when
    unknown."""
    word = text.strip().removeprefix("Signals.")
    if word.isdigit():
        return int(word)
    return _BY_NAME.get(word) or _BY_TEXT.get(word.lower())


def signal_facts(number: int) -> dict[str, Value]:
    """Fields signal, nature and perhaps suggests of a death by signal `number`.

    Being stopped politely is an echo of whoever asked; an abort says that the process found something wrong
    itself; the rest are deaths that nothing else explains so far.
    """
    if number in _DEATHS:
        return {"signal": number, "nature": "symptom", "suggests": "rank-died"}
    return {"signal": number, "nature": "symptom" if number == _ABORT else "consequence"}


def exit_facts(code: int) -> dict[str, Value]:
    """Fields exit_code, nature and perhaps signal and suggests of an exit status as launchers print it.

    Negative is minus the signal. 129 to 192 is 128 plus the signal, and a launcher that passes a negative
    status on to exit(3) ends with 256 minus the signal. Other codes above zero follow an error that
    the process printed, except 126 and 127: the program could not be started.
    """
    fields: dict[str, Value] = {"exit_code": code}
    if -_LAST_SIGNAL <= code < 0:
        return fields | signal_facts(-code)
    if _WRAPPED < code <= _WRAPPED + _LAST_SIGNAL:
        return fields | signal_facts(code - _WRAPPED)
    if _BYTE - code in _FOLDED:
        return fields | signal_facts(_BYTE - code)
    if code == 0:
        return fields | {"nature": "info"}
    return fields | {"nature": "symptom" if code in _CANNOT_START else "consequence"}


def ints(m: re.Match[str]) -> dict[str, Value]:
    """The named groups that are whole numbers in launcher messages, as int."""
    return {k: int(v) for k, v in m.groupdict().items() if k in _INTS and v is not None and v.isdigit()}


def with_ints(m: re.Match[str], _line: Line) -> dict[str, Value]:
    """Refines a match whose groups only need their numbers read."""
    return ints(m)


def from_exit_code(m: re.Match[str], _line: Line) -> dict[str, Value]:
    """Refines a match with the group exit_code."""
    return ints(m) | exit_facts(int(m["exit_code"]))


def from_signal(m: re.Match[str], _line: Line) -> dict[str, Value]:
    """Refines a match with the group signal, a number, name or text, that ended a process."""
    number = signal_number(m["signal"])
    return ints(m) | (signal_facts(number) if number is not None else {})


def with_signal(m: re.Match[str], _line: Line) -> dict[str, Value]:
    """Refines a match with the group signal that was sent or received; what the line is stays as declared."""
    number = signal_number(m["signal"])
    return ints(m) | ({"signal": number} if number is not None else {})


def expand_numbers(text: str, most: int = 4096) -> tuple[int, ...]:
    """The numbers of `0-3,7`, at most `most` of them; parts that are no numbers are left out."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            continue
        end = int(last) if last else int(first)
        found += range(int(first), min(end, int(first) + most) + 1)
        if len(found) >= most:
            return tuple(found[:most])
    return tuple(found)


_EXCEPTION = lazy(r"^\s*(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z_]\w*)(?:: (?P<message>.*?))?\s*$")
_MESSAGE_LENGTH = 1000


class ExceptionTail:
    """Finds the exception line under the frames of a traceback that stands inside other text."""

    def __init__(self) -> None:
        self._indent: int | None = None
        self.type: str | None = None
        self.message: str | None = None

    @property
    def complete(self) -> bool:
        """A traceback was read down to its exception."""
        return self.type is not None and self._indent is None

    def feed(self, text: str) -> None:
        indent = len(text) - len(text.lstrip())
        if "Traceback (most recent call last):" in text:
            self._indent = indent
            return
        if self._indent is None or indent > self._indent:
            return
        m = _EXCEPTION.match(text)
        if m:
            self.type, self.message = m["type"].rpartition(".")[2], m["message"]
            self._indent = None

    def fields(self) -> dict[str, Value]:
        """type (without its module) and message, as far as they were seen."""
        found: dict[str, Value] = {}
        if self.type:
            found["type"] = self.type
        if self.message:
            found["message"] = self.message[:_MESSAGE_LENGTH]
        return found

    @classmethod
    def of(cls, lines: Iterable[str]) -> ExceptionTail:
        """The tail of a whole traceback."""
        tail = cls()
        for text in lines:
            tail.feed(text)
        return tail
