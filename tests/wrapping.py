"""Logs as collectors and launchers would have delivered them: the same lines inside other envelopes.

Kernel logs and flight-recorder dumps stay as they are. Where a collector adds its own time, it is the time that the
line itself shows, or that of the line before, a little late; all zones are UTC.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["ENVELOPES", "wrap"]

_FULL = re.compile(r"(\d{4}-\d\d-\d\d)[T_ ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
_C10 = re.compile(r"[EWIF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})")
_LATE = timedelta(milliseconds=40)
# containerd and CRI-O write a line longer than this as several records.
CRI_RECORD = 16 * 1024


@dataclass(frozen=True)
class Row:
    """One line of one file, with the time at which a collector would have got it."""

    at: datetime
    file: int
    text: str


def _own_time(text: str) -> datetime | None:
    head = text[:100]
    if m := _FULL.search(head):
        return datetime.fromisoformat(f"{m[1]}T{m[2]}.{(m[3] or '0'):0<6}")
    if m := _C10.search(head):
        return datetime(2026, int(m[1]), int(m[2]), int(m[3]), int(m[4]), int(m[5]), int(m[6]))  # noqa: DTZ001
    return None


def _rows(number: int, lines: list[str]) -> Iterator[Row]:
    own = [_own_time(line) for line in lines]
    at = next((t for t in own if t), datetime(2026, 11, 30, 12)) - timedelta(seconds=1)  # noqa: DTZ001
    for line, shown in zip(lines, own, strict=True):
        at = max(at + timedelta(microseconds=5), shown or at)
        yield Row(at + _LATE, number, line)


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


def _kubectl(name: str, row: Row, tag: int) -> str:  # kubectl logs --prefix --timestamps
    del tag
    return f"[pod/{name}-0/trainer] {_stamp(row.at)} {row.text}\n"


def _srun(name: str, row: Row, tag: int) -> str:  # srun --label
    del name
    return f"{tag}: {row.text}\n"


def _mpirun(name: str, row: Row, tag: int) -> str:  # mpirun --tag-output
    del name
    return f"[1,{tag}]<stdout>:{row.text}\n"


def _cri(row: Row) -> str:
    text, out = row.text, ""
    while len(text) > CRI_RECORD:
        out += f"{_stamp(row.at)} stdout P {text[:CRI_RECORD]}\n"
        text = text[CRI_RECORD:]
    return f"{out}{_stamp(row.at)} stdout F {text}\n"


def _dockerjson(row: Row) -> str:
    return json.dumps({"log": row.text + "\n", "stream": "stderr", "time": _stamp(row.at)}) + "\n"


MERGED: dict[str, Callable[[str, Row, int], str]] = {"kubectl": _kubectl, "srun": _srun, "mpirun": _mpirun}
EACH: dict[str, Callable[[Row], str]] = {
    "cri": _cri,
    "dockerjson": _dockerjson,
    "crlf": lambda row: row.text + "\r\n",
    "gzip": lambda row: row.text + "\n",
}
ENVELOPES = (*MERGED, *EACH)


def wrap(envelope: str, paths: tuple[Path, ...], target: Path) -> list[Path]:
    """Writes the files of one job below `target` inside `envelope`; returns what a triage is to read."""
    out: list[Path] = []
    logs: list[tuple[Path, list[Row]]] = []
    for path in paths:
        if path.suffix not in (".log", ".txt") or path.name.startswith("dmesg"):
            copy = target / path.name
            copy.write_bytes(path.read_bytes())
            out.append(copy)
            continue
        text = path.read_bytes().decode("utf-8", "replace").removesuffix("\n")
        logs.append((path, list(_rows(len(logs), text.split("\n")))))
    if envelope in MERGED and logs:
        tagged = [_tag(path.name, i) for i, (path, _) in enumerate(logs)]
        rows = sorted((row for _, some in logs for row in some), key=lambda row: (row.at, row.file))
        body = "".join(MERGED[envelope](_pod(logs[r.file][0]), r, tagged[r.file]) for r in rows)
        out.append(_write(target / "all.log", body.encode(), rows[-1].at))
        return out
    for path, some in logs:
        data = "".join(map(EACH[envelope], some)).encode()
        name = path.name + ".gz" if envelope == "gzip" else path.name
        out.append(_write(target / name, gzip.compress(data) if envelope == "gzip" else data, some[-1].at))
    return out


def _pod(path: Path) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.stem.lower())


def _tag(name: str, number: int) -> int:
    """Launchers number their tasks; where a file is one rank or one node, its number is the task."""
    m = re.search(r"\.r(\d+)\.log$|(?:rank|node)[-_]?(\d+)", name)
    return int(m[1] or m[2]) if m else number


def _write(path: Path, data: bytes, last: datetime) -> Path:
    """The file, last written when its last line was: a finished job that was collected as it ran."""
    path.write_bytes(data)
    written = last.replace(tzinfo=timezone.utc).timestamp()
    os.utime(path, (written, written))
    return path
