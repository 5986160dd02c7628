"""Hypothesis strategies: bytes and lines such as logs hold, hostile ones included."""

from __future__ import annotations

from hypothesis import strategies as st
from support import CASES

__all__ = ["HOSTILE", "chunks", "log_bytes", "log_lines"]

# What could steer a terminal or reorder what a reader sees.
HOSTILE = (
    "\x1b[2J",
    "\x1b]0;owned\x07",
    "\x1b]8;;http://example.org\x1b\\link",
    "\x9b31m",
    "\x00",
    "\x08\x08\x08",
    "\r",
    "\u202e",
    "\u2066",
    "\u200f",
    "\u2028",
    "\x7f",
)

# Lines that some parser knows, out of every labelled log: fuzz that only ever meets unknown text tests nothing.
_KNOWN = sorted(
    {
        line
        for case in CASES
        for path in case.paths
        if path.suffix in (".log", ".txt") and path.stat().st_size < 30_000
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n")
        if any(word in line for word in ("NCCL", "rank", "Error", "Xid", "exit", "Traceback", "Watchdog", "File "))
    }
)
_PREFIXES = (
    "",
    "0: ",
    "[1,0]<stdout>:",
    "[rank3]: ",
    "[default1]:",
    "(RayTrainWorker pid=12, ip=10.0.0.2) ",
    "2026-11-30T19:41:17.000001Z stdout F ",
    "[pod/train-0/main] 2026-11-30T19:41:17.000001Z ",
    "Nov 30 19:41:17 node01 kernel: ",
    "[  123.456789] ",
    '{"log":"',
)


def _mangled(line: str, at: int, what: str) -> str:
    at = at % (len(line) + 1)
    return line[:at] + what + line[at:]


def log_lines() -> st.SearchStrategy[str]:
    """A line that a program printed, cut, wrapped or with something hostile in it, or any text."""
    known = st.sampled_from(_KNOWN)
    return st.one_of(
        known,
        st.builds(lambda line, n: line[: n % (len(line) + 1)], known, st.integers(0, 400)),
        st.builds(_mangled, known, st.integers(0, 400), st.sampled_from(HOSTILE) | st.text(max_size=6)),
        st.builds(lambda prefix, line: prefix + line, st.sampled_from(_PREFIXES), known),
        st.text(max_size=80),
    )


def log_bytes() -> st.SearchStrategy[bytes]:
    """A whole input: lines of all kinds with some line end, or any bytes at all."""
    lines = st.lists(log_lines(), max_size=25)
    ends = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])
    return st.one_of(
        st.builds(lambda some, end: end.join(some).encode("utf-8", "surrogatepass"), lines, ends),
        st.binary(max_size=600),
        st.builds(
            lambda head, some: head + "\n".join(some).encode("utf-16"), st.sampled_from([b"", b"\x1f\x8b"]), lines
        ),
    )


def chunks(data: bytes, sizes: list[int]) -> list[bytes]:
    """`data` cut into pieces of these sizes in turn, over and over."""
    out, at, turn = [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        out.append(data[at : at + size])
        at, turn = at + size, turn + 1
    return out
