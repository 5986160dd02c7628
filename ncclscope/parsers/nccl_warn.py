"""NCCL's warnings as such, its back-trace, and what PyTorch repeats of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.knowledge.nccl_warns import known_warn
from ncclscope.model import Event, Line, Value
from ncclscope.parsers.pattern import Block, Collector, Pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

__all__ = ["BLOCKS", "PATTERNS"]


_WARN_FIELDS = ("text", "id", "first", "last", "phase", "returned", "meaning", "suggests")


def _warn(_m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    text = line.text
    if "NCCL WARN" in text:  # the prefix was cut or not recognised, so it still stands in the body
        text = text.rsplit("NCCL WARN", 1)[1]
    elif (line.env.logger, line.env.level) != ("nccl", "WARN"):
        return None
    text = text.strip()
    return {"text": text, **_known(text)}


def _known(text: str) -> dict[str, Value]:
    known = known_warn(text)
    if known is None:
        return {}
    more = {"returned": known.returned, "meaning": known.meaning, "suggests": known.suggests}
    return {
        "id": known.id, "first": known.first, "last": known.last, "phase": known.phase, "nature": known.nature,
        **{name: value for name, value in more.items() if value},
    }  # fmt: skip


# Names of ncclResult_t and the words after them in PyTorch's exceptions.
_CODES = {
    "ncclUnhandledCudaError": 1,
    "ncclSystemError": 2,
    "ncclInternalError": 3,
    "ncclInvalidArgument": 4,
    "ncclInvalidUsage": 5,
    "ncclRemoteError": 6,
}


def _error_class(name: str) -> Pattern:
    consequence = name == "ncclRemoteError"
    return Pattern(
        "nccl.error_class",
        f"{name}:",
        rf"\b(?P<name>{name}): (?P<text>[A-Z].*)",
        nature="consequence" if consequence else "symptom",
        fields={"code": _CODES[name]},
    )


def _result_words(words: str, name: str) -> Pattern:
    return Pattern(
        "nccl.error_class",
        words,
        r"(?:NCCL error[^\n]{0,200}|NCCL failure[^\n]{0,120}|NCCL Error \d: "
        rf"|\bnccl[A-Z]\w{{2,40}} failed: ){words}",
        nature="consequence" if name == "ncclRemoteError" else "symptom",
        fields={"name": name, "code": _CODES[name]},
    )


class _LastError:
    """Takes the line after `Last error:`; PyTorch puts NCCL's last warning there, or nothing."""

    def __init__(self, opener: Line) -> None:
        self._opener = opener
        self._found: Line | None = None

    def feed(self, line: Line) -> bool:
        if self._found is None and line.text.strip():
            self._found = line
            return True
        return False

    def close(self) -> list[Event]:
        text = self._found.text.strip() if self._found else ""
        if not text or text.startswith("Exception raised from"):
            return []
        line = self._found or self._opener
        fields: dict[str, Value] = {"nature": "symptom", "text": text, **_known(text)}
        return [Event("nccl.last_error", fields, line.env, line.ref, line.text)]


def _open_last_error(_m: re.Match[str], line: Line) -> Collector | None:
    return _LastError(line)


_CONSEQUENCE = "consequence"
# A name starts where no name character stands before it: long runs are then tried once, not from every place.
_FILE = r"(?<![\w./+-])(?P<file>[\w./+-]{1,200}"
_ARROW = r":(?P<line>\d+)(?: \((?P<func>[^()]{1,200})\))? -> (?P<code>\d+)"
_ARROW_END = r"(?: \((?P<errno_text>[^)]{0,100})\))?(?: \[(?P<thread>[^\]]{1,60})\])?\s*$"

PATTERNS: tuple[Pattern, ...] = (
    # node1:11:42 [0] transport/net_ib.cc:1234 NCCL WARN NET/IB : ...       every version
    Pattern("nccl.warn", "NCCL WARN", r"", nature="symptom", refine=_warn, adds=_WARN_FIELDS),
    # init.cc:1345 -> 1      misc/socket.cc:829 (socketProgress) -> 6      group.cc:70 -> 1 [Async thread]
    # misc/shmutils.cc:72 -> 2 (No space left on device)
    Pattern("nccl.trail", ".cc:", _FILE + r"\.cc)" + _ARROW + _ARROW_END, nature=_CONSEQUENCE, also=" -> "),
    # enqueue.cu:198 -> 1     up to 2.5
    Pattern("nccl.trail", ".cu:", _FILE + r"\.cu)" + _ARROW + _ARROW_END, nature=_CONSEQUENCE, also=" -> "),
    # include/shm.h:48 -> 2
    Pattern(
        "nccl.trail",
        "include/",
        r"(?<![\w./+-])(?P<file>(?:[\w./+-]{1,200}/)?include/\w{1,80}\.h)" + _ARROW + _ARROW_END,
        nature=_CONSEQUENCE,
    ),
    # ncclUnhandledCudaError: Call to CUDA function failed.        PyTorch 1.10+
    *(_error_class(name) for name in _CODES),
    # ProcessGroupNCCL.cpp:1970, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL
    #     version 2.21.5
    # RuntimeError: ncclCommInitRank failed: unhandled cuda error (run with NCCL_DEBUG=INFO for details)    Horovod
    # misc/.../all_reduce.cu: Test NCCL failure common.cu:957 'unhandled cuda error / '        nccl-tests
    _result_words("unhandled cuda error", "ncclUnhandledCudaError"),
    _result_words("unhandled system error", "ncclSystemError"),
    _result_words("internal error", "ncclInternalError"),
    _result_words("invalid usage", "ncclInvalidUsage"),
    _result_words("invalid argument", "ncclInvalidArgument"),
    _result_words("remote process exited or there was a network error", "ncclRemoteError"),
)

BLOCKS: tuple[Block, ...] = (
    # Last error:
    # Cuda failure 'named symbol not found'
    Block({"nccl.last_error": _WARN_FIELDS}, "Last error:", r"Last error:\s*$", _open_last_error),
)
