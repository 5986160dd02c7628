"""What the NCCL parser modules share: bus ids, levels, errno words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ncclscope.model import Line, Value

__all__ = ["ERRNO_NAMES", "Refine", "at_info", "bus_address", "errno_of", "unless_probe"]

Refine = Callable[[re.Match[str], Line], Mapping[str, Value] | None]

# strerror() words of glibc that NCCL prints -> errno. Only those that decide between causes.
ERRNO_NAMES: dict[str, str] = {
    "No such file or directory": "ENOENT",
    "Cannot allocate memory": "ENOMEM",
    "Permission denied": "EACCES",
    "Operation not permitted": "EPERM",
    "Bad address": "EFAULT",
    "Invalid argument": "EINVAL",
    "Too many open files in system": "ENFILE",
    "Too many open files": "EMFILE",
    "No space left on device": "ENOSPC",
    "Broken pipe": "EPIPE",
    "Address already in use": "EADDRINUSE",
    "Cannot assign requested address": "EADDRNOTAVAIL",
    "Network is unreachable": "ENETUNREACH",
    "Software caused connection abort": "ECONNABORTED",
    "Connection reset by peer": "ECONNRESET",
    "Connection timed out": "ETIMEDOUT",
    "Connection refused": "ECONNREFUSED",
    "Host is down": "EHOSTDOWN",
    "No route to host": "EHOSTUNREACH",
    "No such device": "ENODEV",
    "Operation not supported": "EOPNOTSUPP",
}


def errno_of(text: str | None) -> str | None:
    """The errno's name (`ENOSPC`) for the words of strerror() that `text` starts with, else None."""
    if not text:
        return None
    text = text.strip()
    return next((name for words, name in ERRNO_NAMES.items() if text.startswith(words)), None)


def bus_address(hex_digits: str) -> str | None:
    """NCCL's packed bus id (`1b000`: domain, bus, device and function in one number) as `0000:1b:00.0`."""
    try:
        packed = int(hex_digits, 16)
    except ValueError:
        return None
    return f"{packed >> 20:04x}:{packed >> 12 & 0xFF:02x}:{packed >> 4 & 0xFF:02x}.{packed & 0xF:x}"


def at_info(line: Line) -> bool:
    """Whether NCCL printed the line at INFO level, where the text of a WARN is a probe that may fail."""
    if line.env.logger == "nccl":
        return line.env.level == "INFO"
    return "NCCL INFO " in line.text  # an excerpt whose prefix was cut


def unless_probe(refine: Refine | None = None) -> Refine:
    """`refine`, but a WARN text that stands at INFO level becomes noise: NCCL tried something on purpose."""

    def refined(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
        more: Mapping[str, Value] | None = refine(m, line) if refine else {}
        if more is None or not at_info(line):
            return more
        kept = {name: value for name, value in more.items() if name not in ("cause", "suggests")}
        # Constants of the pattern come before what a refinement adds, so both names are emptied here.
        return {**kept, "nature": "noise", "cause": "", "suggests": "", "probe": True}

    return refined
