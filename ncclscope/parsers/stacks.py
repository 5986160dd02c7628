"""Stack dumps as events: where each thread of a process stood when somebody looked.

py-spy, gdb (`thread apply all bt`), faulthandler, PyTorch's handler of fatal signals, and `/proc/PID/stack`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncclscope.model import Event, Line, Value
from ncclscope.parsers.pattern import Block, Pattern
from ncclscope.parsers.stacks_frames import (
    StackFrame,
    fatal_signal_frame,
    faulthandler_frame,
    gdb_frame,
    innermost_python,
    innermost_user,
    pyspy_frame,
)
from ncclscope.parsers.stacks_where import collective_in, during, where_of

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

__all__ = ["BLOCKS", "FIELDS", "PATTERNS"]

FIELDS = (
    *("via", "pid", "tid", "thread", "state", "main", "where", "during", "collective", "nature"),
    *(
        "frame_func",
        "frame_file",
        "frame_line",
        "user_func",
        "user_file",
        "user_line",
        "native_func",
        "depth",
    ),
)
# A frame's symbol can be kilobytes of template arguments.
_MAX_FUNC = 200


@dataclass(frozen=True, slots=True)
class _Header:
    """What the line that begins a thread's stack says. main None: it does not say."""

    via: str
    thread: str
    tid: int | None = None
    pid: int | None = None
    state: str | None = None
    main: bool | None = None


class _Thread:
    """Collects the frames of one thread."""

    def __init__(self, opener: Line, header: _Header, read: Callable[[Line], StackFrame | None]) -> None:
        self._opener = opener
        self._header = header
        self._read = read
        self._frames: list[StackFrame] = []
        self._lines = 1

    def feed(self, line: Line) -> bool:
        frame = self._read(line)
        if frame is not None:
            self._frames.append(frame)
        elif not self._goes_on(line.text):
            return False
        self._lines += 1
        return True

    def _goes_on(self, text: str) -> bool:
        """Lines inside a stack that are no frames: py-spy's `Arguments:` and locals, what gdb wraps."""
        if self._header.via == "py-spy":
            return text.startswith("        ") and bool(self._frames)
        if self._header.via == "gdb":
            return text.startswith(("    ", "No locals", "No symbol table", "warning: "))
        if self._header.via == "faulthandler":
            return text.lstrip() == "..." or text.lstrip().startswith("<no Python frame>")
        return False

    def close(self) -> list[Event]:
        frames, header = self._frames, self._header
        if not frames:
            return []
        main = header.main if header.main is not None else frames[-1].func == "<module>"
        # The main thread's number is the process's.
        pid = header.pid if header.pid is not None else header.tid if main else None
        known: dict[str, Value | None] = {
            "nature": "info",
            "via": header.via,
            "thread": header.thread,
            "main": main,
            "where": where_of(frames),
            "depth": len(frames),
            "pid": pid,
            "tid": header.tid,
            "state": header.state,
            "during": during(frames),
            "collective": collective_in(frames),
        }
        fields = {name: value for name, value in known.items() if value is not None}
        user = innermost_user(frames)
        inner = innermost_python(frames) or next((f for f in frames if f.named), frames[0])
        native = next((f for f in frames if not f.python and f.named), None)
        _put(fields, "frame", inner)
        if user is not None:
            _put(fields, "user", user)
        if native is not None:
            fields["native_func"] = native.func[:_MAX_FUNC]
        shown = (user or inner).printed
        return [Event("py.stack", fields, self._opener.env, shown.ref, shown.text, lines=self._lines)]


def _put(fields: dict[str, Value], prefix: str, frame: StackFrame) -> None:
    fields[f"{prefix}_func"] = frame.func[:_MAX_FUNC]
    if frame.file is not None:
        fields[f"{prefix}_file"] = frame.file
    if frame.line is not None:
        fields[f"{prefix}_line"] = frame.line


def _pyspy(m: re.Match[str], line: Line) -> _Thread:
    name = m["name"]
    tid = int(m["tid"]) if m["tid"].isdigit() else None
    state = "gil" if m["gil"] else m["state"]
    main = None if name is None else name == "MainThread"
    return _Thread(line, _Header("py-spy", name or m["tid"], tid, state=state, main=main), pyspy_frame)


def _gdb(m: re.Match[str], line: Line) -> _Thread:
    tid = int(m["lwp"])
    return _Thread(line, _Header("gdb", m["name"] or m["n"], tid, main=m["n"] == "1"), gdb_frame)


def _faulthandler(m: re.Match[str], line: Line) -> _Thread:
    return _Thread(line, _Header("faulthandler", m["name"] or m["id"] or "current"), faulthandler_frame)


def _fatal_signal(m: re.Match[str], line: Line) -> _Thread:
    pid, tid = int(m["pid"]), int(m["tid"])
    return _Thread(line, _Header("torch", m["tid"], tid, pid, main=pid == tid), fatal_signal_frame)


_PYSPY = (
    r"^\s*Thread (?P<tid>0x[0-9A-Fa-f]+|\d+) \((?P<state>active|idle)(?P<gil>\+gil)?\)"
    r'(?:: "(?P<name>[^"]{1,200})")?\s*$'
)
_KINDS = {"py.stack": FIELDS}

BLOCKS: tuple[Block, ...] = (
    # Thread 865 (idle): "MainThread"    (py-spy 0.4.3 dump; `active+gil` holds the GIL)
    Block(_KINDS, " (idle", _PYSPY, _pyspy),
    Block(_KINDS, " (active", _PYSPY, _pyspy),
    # Thread 1 (Thread 0x7f401d055140 (LWP 876) "python"):     Thread 2 (LWP 1234):
    # (gdb 8 to 15, cuda-gdb 13)
    Block(
        _KINDS,
        "(LWP ",
        r"^\s*Thread (?P<n>\d+) \((?:Thread 0x[0-9a-f]+ )?\(?LWP (?P<lwp>\d+)\)?"
        r'(?: "(?P<name>[^"]{1,64})")?\)?:\s*$',
        _gdb,
    ),
    # Current thread 0x00007f4e83fd1b80 (most recent call first):      Stack (most recent call first):
    # Thread 0x00007f4e83fd1b80 [name] (most recent call first):       (the name from Python 3.14 on)
    Block(
        _KINDS,
        "(most recent call first)",
        r"^\s*(?:(?:Current thread|Thread) (?P<id>0x[0-9a-f]+)(?: \[(?P<name>[^\]]{1,64})\])?|Stack) "
        r"\(most recent call first\):",
        _faulthandler,
    ),
    # SIGABRT(6), PID: 4711, Thread 4720:    (c10/util/signal_handler.cpp, PyTorch 1.13 to 2.11)
    Block(
        _KINDS, "), PID: ", r"SIG[A-Z]{2,8}\(\d+\), PID: (?P<pid>\d+), Thread (?P<tid>\d+):", _fatal_signal
    ),
)


def _in_kernel(func: str) -> Pattern:
    return Pattern(
        "py.stack",
        f"{func}+0x",
        rf"^\s*\[<[0-9a-f]+>\] (?P<native_func>{func})\+0x",
        fields={"via": "proc", "main": True, "where": "filesystem", "thread": "main"},
    )


# [<0>] rpc_wait_bit_killable+0x24/0xb0 [sunrpc]     (/proc/PID/stack of kernel 6.18; older print an address)
PATTERNS: tuple[Pattern, ...] = tuple(
    _in_kernel(func)
    for func in (
        "rpc_wait_bit_killable",  # NFS: the server does not answer
        "cl_sync_io_wait",  # Lustre: a read or write
        "ptlrpc_set_wait",  # Lustre: a request to a server
        "request_wait_answer",  # FUSE: s3fs, gcsfuse, mountpoint-s3, JuiceFS
        "ceph_mdsc_wait_request",  # CephFS
        "folio_wait_bit_common",  # a page of a file that does not come
        "wait_on_page_bit",  # the same before 5.14
        "jbd2_log_wait_commit",  # ext4: fsync waits for the disk
    )
)
