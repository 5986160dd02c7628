"""Deaths by signal as the dying process prints them: Python's faulthandler and PyTorch's own handler."""

from __future__ import annotations

from ncclscope.lazy import lazy
from ncclscope.model import Event, Line, Value
from ncclscope.parsers.pattern import Block, Pattern
from ncclscope.parsers.torch_frames import Frame, user_frame

__all__ = ["BLOCKS", "PATTERNS"]

_SIGNALS = {
    "Segmentation fault": 11,
    "Bus error": 7,
    "Aborted": 6,
    "Floating-point exception": 8,
    "Floating point exception": 8,
    "Illegal instruction": 4,
    "Terminated": 15,
    "Killed": 9,
    "Hangup": 1,
}
_FRAME = lazy(r'\s*File "(?P<file>[^"]{1,1000})", line (?P<line>\d+|\?\?\?) in (?P<func>.{1,200}?)\s*$')
_THREAD = lazy(r"(?:Current thread|Thread) 0x[0-9a-f]+|Stack \(most recent call first\)")


def _signal_fields(signal: int | None) -> dict[str, Value]:
    """A crash is the process's own, a bus error may be shared memory, an abort has its reason above."""
    if signal is None:
        return {"nature": "symptom"}
    fields: dict[str, Value] = {"signal": signal}
    if signal in (4, 8, 11):
        fields.update(nature="cause", cause="rank-died")
    elif signal == 7:
        fields.update(nature="symptom", suggests="shm-limit")
    elif signal in (6, 15, 1):
        fields.update(nature="consequence")
    else:
        fields.update(nature="symptom", suggests="rank-died")
    return fields


class _Fatal:
    """faulthandler's report: the error, then one stack per thread, innermost frame first."""

    def __init__(self, opener: Line, error: str) -> None:
        self._opener = opener
        self._error = error.strip()
        self._line = opener
        self._current = False
        self._seen_thread = False
        self._frames: list[Frame] = []
        self._lines = 1

    def feed(self, line: Line) -> bool:
        text = line.text.rstrip()
        if not self._take(text, line):
            return False
        self._lines += 1
        return True

    def _take(self, text: str, line: Line) -> bool:
        if not text.strip():
            return True
        if not self._error:  # a launcher's tag can stand between `Fatal Python error: ` and its text
            self._error = text.strip()
            self._line = line
            return True
        if _THREAD.match(text.strip()):
            self._seen_thread = True
            self._current = not text.lstrip().startswith("Thread ")
            return True
        frame = _FRAME.match(text)
        if frame is not None:
            if self._current:
                number = int(frame["line"]) if frame["line"].isdigit() else 0
                self._frames.append(Frame(frame["file"], number, frame["func"]))
            return True
        if text.lstrip().startswith(
            ("<", "...", "Binary file", "Current thread's C stack", "Python runtime state")
        ):
            return True
        return not self._seen_thread and self._lines < 10

    def close(self) -> list[Event]:
        if not self._error:
            return []
        name = next((name for name in _SIGNALS if self._error.startswith(name)), None)
        fields: dict[str, Value] = {"error": self._error[:200]}
        fields.update(_signal_fields(_SIGNALS.get(name) if name else None))
        if self._frames:
            inmost = self._frames[0]
            fields.update(frame_file=inmost.file, frame_line=inmost.line, frame_func=inmost.func)
            user = user_frame(self._frames[::-1])
            if user is not None:
                fields.update(user_file=user.file, user_line=user.line, user_func=user.func)
        return [
            Event(
                "py.fatal", fields, self._opener.env, self._opener.ref, self._opener.text, lines=self._lines
            )
        ]


PATTERNS: tuple[Pattern, ...] = (
    # /opt/venv/bin/python: can't open file '/app/trian.py': [Errno 2] No such file or directory   (Python 3)
    Pattern(
        "py.not_started",
        "can't open file '",
        r"python[\d.]*: (?P<message>can't open file '.{1,1000}?': \[Errno \d+\] \w.{0,80})",
        nature="cause",
        cause="user-exception",
    ),
    # train.py: error: unrecognized arguments: --learning-rte 0.1                                  (argparse)
    Pattern(
        "py.not_started",
        ": error: unrecognized arguments",
        r"\S: error: (?P<message>unrecognized arguments: .{1,300})",
        nature="cause",
        cause="user-exception",
    ),
    # train.py: error: the following arguments are required: --data                                (argparse)
    Pattern(
        "py.not_started",
        ": error: the following arguments are required",
        r"\S: error: (?P<message>the following arguments are required: .{1,300})",
        nature="cause",
        cause="user-exception",
    ),
    # train.py: error: argument --steps: invalid int value: 'ten'                                  (argparse)
    Pattern(
        "py.not_started",
        ": error: argument ",
        r"\S: error: (?P<message>argument -\S{1,100}?: (?:invalid|expected|not allowed|ignored).{1,300})",
        nature="cause",
        cause="user-exception",
    ),
    # !!!!!!! Segfault encountered !!!!!!!   (PyTorch's own handler, TORCH_CUSTOM_TERMINATE and c10d builds)
    Pattern(
        "py.fatal",
        "Segfault encountered",
        r"!+ Segfault encountered !+",
        nature="cause",
        cause="rank-died",
        fields={"error": "Segmentation fault", "signal": 11},
    ),
)

BLOCKS: tuple[Block, ...] = (
    # Fatal Python error: Segmentation fault      Current thread 0x00007f4b20b8a140 (most recent call first):
    Block(
        {
            "py.fatal": (
                *("error", "signal", "nature", "cause", "suggests"),
                *("frame_file", "frame_line", "frame_func", "user_file", "user_line", "user_func"),
            )
        },
        "Fatal Python error",
        r"Fatal Python error: ?(?P<error>.*)",
        lambda m, line: _Fatal(line, m["error"]),
    ),
)
