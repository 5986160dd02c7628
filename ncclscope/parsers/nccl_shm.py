"""NCCL and the limits of a host: shared memory, locked memory, open files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.nccl_common import errno_of, unless_probe
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]


def _shm(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    # ENOSPC is the size of /dev/shm; with ENOENT a peer removed the segment or lives in another namespace.
    groups = m.groupdict()
    name = errno_of(groups.get("errno_text"))
    if name is None:
        return {} if groups.get("errno_text") else {"suggests": "shm-limit"}
    fields: dict[str, Value] = {"errno_name": name}
    if name == "ENOSPC":
        fields |= {"nature": "cause", "cause": "shm-limit"}
    elif name in ("EMFILE", "ENFILE"):
        fields |= {"nature": "cause", "cause": "fd-limit"}
    return fields


def _attach(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    # Who attaches allocates nothing: without an errno the size is no more likely than a peer that is gone.
    return {name: value for name, value in (_shm(m, line) or {}).items() if name != "suggests"}


def _shm_pattern(kind: str, literal: str, regex: str, since: str, until: str = "") -> Pattern:
    return Pattern(
        kind,
        literal,
        regex,
        nature="symptom",
        refine=unless_probe(_shm),
        adds=("errno_name", "suggests"),
        since=since,
        until=until,
    )


_ERRNO = r"(?:,? error:? (?P<errno_text>[A-Z][^(\n]*[^( \n])(?: \((?P<errno>\d+)\))?)?"

PATTERNS: tuple[Pattern, ...] = (
    # Error: failed to extend /dev/shm/nccl-pbfZBL to 9637892 bytes, error: No space left on device (28)
    #     errno: 2.22+
    _shm_pattern(
        "nccl.shm_extend_failed",
        "ailed to extend ",
        r"[Ff]ailed to extend (?P<path>/\S+) to (?P<bytes>\d+) bytes" + _ERRNO,
        "2.12.7",
    ),
    # Error while creating shared memory segment /dev/shm/nccl-pbfZBL (size 9637888), error: No space
    #     left ... (28)
    _shm_pattern(
        "nccl.shm_create_failed",
        "Error while creating shared memory segment",
        r"Error while creating shared memory segment (?P<path>\S*) ?\(size (?P<bytes>\d+)\)" + _ERRNO,
        "2.4.2",
    ),
    # Error while attaching to shared memory segment /dev/shm/nccl-tY7bQe (size 14156128), error: No such
    #     file ... (2)
    Pattern(
        "nccl.shm_attach_failed",
        "Error while attaching to shared memory segment",
        r"Error while attaching to shared memory segment (?P<path>\S*) ?\(size (?P<bytes>\d+)\)" + _ERRNO,
        nature="symptom",
        refine=unless_probe(_attach),
        adds=("errno_name",),
        since="2.4.2",
    ),
    # Error: failed to create shared memory file /dev/shm/nccl-XXXXXX, error No space left on device (28)
    _shm_pattern(
        "nccl.shm_create_failed",
        "failed to create shared memory file",
        r"failed to create shared memory file (?P<path>\S+)" + _ERRNO,
        "2.22.3",
    ),
    # Call to posix_fallocate failed : No space left on device    shared memory is all that NCCL
    #     allocates so
    _shm_pattern(
        "nccl.shm_extend_failed",
        "Call to posix_fallocate failed",
        r"Call to posix_fallocate failed ?: (?P<errno_text>[A-Z][^\n]*)",
        "2.4.2",
    ),
    _shm_pattern(
        "nccl.shm_create_failed",
        "Call to shm_open failed",
        r"Call to shm_open failed ?: (?P<errno_text>[A-Z][^\n]*)",
        "2.3.5",
    ),
    # shm_open failed to open /dev/shm/nccl-... : No space left on device       2.3
    _shm_pattern(
        "nccl.shm_create_failed",
        "shm_open failed to open",
        r"shm_open failed to open (?P<path>\S+) : (?P<errno_text>[A-Z][^\n]*)",
        "2.3.5",
        "2.3.7",
    ),
    # Unable to allocate shared memory (8392704 bytes) : No space left on device        2.3
    _shm_pattern(
        "nccl.shm_create_failed",
        "Unable to allocate shared memory",
        r"Unable to allocate shared memory \((?P<bytes>\d+) bytes\) : (?P<errno_text>[A-Z][^\n]*)",
        "2.3.5",
        "2.3.7",
    ),
)
