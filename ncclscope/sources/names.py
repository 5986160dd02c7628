"""What file names mean to the list of inputs: their order, rotation, and what is no log."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from posixpath import basename
from typing import TYPE_CHECKING

from ncclscope.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["is_skipped", "natural", "plain_name", "rotations", "without_rotation"]

Key = tuple[tuple[tuple[int, int, str], ...], ...]

_DIGITS = lazy(r"([0-9]+)")
_PACKED = lazy(r"\.(?:gz|bz2|xz|zst|zstd)$", re.IGNORECASE)
# logrotate and Python's RotatingFileHandler: job.log.1
_NUMBERED = lazy(r"^(?P<base>.+)\.(?P<mark>\d{1,3})$", re.DOTALL)
# logrotate's dateext: messages-20260526; kubelet: 0.log.20260526-123456
_DATED = lazy(r"^(?P<base>.+)[-.](?P<mark>(?:19|20)\d{6}(?:[-T_]?\d{2,6})?)$", re.DOTALL)
_ROTATED_BASE = lazy(r"(?:\.log|(?:^|/)(?:messages|syslog|kern|dmesg))$", re.IGNORECASE)
_DATED_BASE = lazy(r"(?:^|/)(?:messages|syslog|kern\.log|\d+\.log)$")

# Code, weights, data sets, pictures, profiles, libraries.
_NO_LOGS_TEXT = """
    py pyc pyi ipynb c cc cpp cxx cu cuh h hpp cubin fatbin ptx rs go js ts css class whl jar so o a
    dylib dll exe pt pth ckpt safetensors bin onnx gguf npy npz pkl pickle h5 hdf5 parquet arrow feather
    tfrecord sqlite db png jpg jpeg gif bmp svg webp ico tif tiff pdf mp4 wav mp3 ttf woff woff2
    nsys-rep qdrep ncu-rep qdstrm
"""
_NO_LOGS = frozenset(_NO_LOGS_TEXT.split())
_SHARED_OBJECT = lazy(r"\.so(?:\.\d+)+$")
_FLIGHT_RECORDER = lazy(r"(?:fr|trace)_rank_?\d+")


def natural(name: str) -> Key:
    """A key that puts rank2 before rank10 and keeps a directory together; numbers may be of any length."""
    return tuple([_component(component) for component in name.split("/")])


@lru_cache(maxsize=512)
def _component(name: str) -> tuple[tuple[int, int, str], ...]:
    return tuple(_part(run) for run in _DIGITS.split(name) if run)


def _part(run: str) -> tuple[int, int, str]:
    if run.isascii() and run.isdecimal():
        digits = run.lstrip("0")
        return (0, len(digits), digits)
    return (1, 0, run)


def plain_name(name: str) -> str:
    """The name without the suffix of a compression."""
    return _PACKED.sub("", name)


def without_rotation(name: str) -> str:
    """The name without the marks of rotation, as far as they are beyond doubt: x.log.3.gz is x.log."""
    name = plain_name(name)
    for pattern, base in ((_NUMBERED, _ROTATED_BASE), (_DATED, _ROTATED_BASE)):
        found = pattern.match(name)
        if found and base.search(found["base"]):
            return plain_name(found["base"])
    return name


def rotations(names: Iterable[str]) -> dict[str, tuple[str, int]]:
    """For each name its group, and its place in it from the oldest, 0, on; most files are their own group.

    Numbered files are one stream if the current file is there too, or if their base is a log's name and the
    numbers run from 1: nccl.log.4242 is a process, and log.0 to log.7 are ranks. Dated files need the current
    file, except where only rotation makes such names (the system's logs, the kubelet's).
    """
    given = sorted(set(names))
    current = {plain_name(name) for name in given}
    numbered: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    dated: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name in given:
        stem = plain_name(name)
        if found := _NUMBERED.match(stem):
            numbered[found["base"]][int(found["mark"])].append(name)
        elif found := _DATED.match(stem):
            dated[found["base"]].append((found["mark"], name))
    groups: dict[str, list[str]] = {}
    for base, by_number in numbered.items():
        whole = sorted(by_number) == list(range(1, len(by_number) + 1))
        if 0 not in by_number and (base in current or (whole and _ROTATED_BASE.search(base))):
            groups[base] = [name for number in sorted(by_number, reverse=True) for name in by_number[number]]
    for base, marks in dated.items():
        if base in current or _DATED_BASE.search(base):
            groups[base] = [name for _, name in sorted(marks)] + groups.get(base, [])
    result = {name: (name, 0) for name in given}
    for base, members in groups.items():
        for place, name in enumerate([*members, *(name for name in given if plain_name(name) == base)]):
            result[name] = (base, place)
    return result


def is_skipped(name: str) -> str | None:
    """Why a file of a directory or an archive is passed over: "hidden", or its suffix; None for what is read.

    Only the part of the name below what the user gave counts.
    """
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    if any(part.startswith(".") or part in ("__MACOSX", "__pycache__") for part in parts):
        return "hidden"
    last = basename(name)
    suffix = last.rpartition(".")[2].lower() if "." in last else ""
    if ".so." in last and _SHARED_OBJECT.search(last):
        reason = ".so"
    elif ".tfevents." in last:
        reason = "tfevents"
    elif suffix in _NO_LOGS:
        reason = f".{suffix}"
    else:
        return None
    return None if _FLIGHT_RECORDER.search(last) else reason
