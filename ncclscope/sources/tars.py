"""Walking a tar archive as a stream.

The standard library's reader holds extended headers of any size in memory and keeps every member; this one
does not, and it tells what it could read of a damaged archive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ncclscope.sources.formats import TAR_UNIT, is_tar, tar_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ncclscope.sources.streams import Notes, Reader

__all__ = ["TarMember", "walk"]

_META = 1 << 20  # longest extended header that is read
_REGULAR = frozenset((0, *b"07S"))
_NO_DATA = frozenset(b"123456")  # links, devices, directories, FIFOs: a size there counts no data


class TarMember(msgspec.Struct, frozen=True):
    """A regular file in a tar; offset is where its bytes begin in the (decompressed) archive."""

    name: str
    size: int
    mtime: float | None
    offset: int


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def _pax(data: bytes) -> dict[str, str]:
    """The `LENGTH KEY=VALUE` records of a pax header, as far as they are well formed."""
    records: dict[str, str] = {}
    while data:
        digits, space, _ = data.partition(b" ")
        if not space or not digits.isdigit() or len(digits) > 8:
            break
        length = int(digits)
        if length <= len(digits) + 1:
            break
        key, _, value = data[len(digits) + 1 : length].rstrip(b"\n").partition(b"=")
        records[key.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        data = data[length:]
    return records


def _seconds(text: str | None, field: bytes) -> float | None:
    try:
        return float(text) if text is not None else float(tar_number(field) or 0) or None
    except (ValueError, OverflowError):
        return None


def walk(reader: Reader, notes: Notes) -> Iterator[TarMember]:
    """The regular files in archive order. The reader stands at a member's bytes when it is yielded."""
    extra: dict[str, str] = {}
    while True:
        header = reader.take(TAR_UNIT)
        if not header.strip(b"\0"):  # the end marker, or the end of the bytes
            if 0 < len(header) < TAR_UNIT:
                notes.append("truncated tar")
            return
        size = tar_number(header[124:136])
        if not is_tar(header) or size is None:
            notes.append(
                "truncated tar" if len(header) < TAR_UNIT else "damaged tar (a header's checksum is wrong)"
            )
            return
        kind = header[156]
        if kind in b"xgLK":
            data = reader.take(min(size, _META))
            if size > _META:
                notes.append("tar: an extended header over 1 MiB was left out")
                reader.skip(size - _META)
            reader.skip(-size % TAR_UNIT)
            if kind == ord("x") and size <= _META:
                extra.update(_pax(data))
            elif kind == ord("L") and size <= _META:
                extra["path"] = _text(data)
            continue
        if kind == ord("S"):
            more = header[482]  # a sparse file's map goes on in further blocks; holes are left out
            while more:
                block = reader.take(TAR_UNIT)
                more = block[504] if len(block) == TAR_UNIT else 0
        name, prefix = _text(header[:100]), _text(header[345:500]) if header[257:263] == b"ustar\0" else ""
        name = extra.get("GNU.sparse.name") or extra.get("path") or (f"{prefix}/{name}" if prefix else name)
        if "size" in extra and extra["size"].isdigit() and len(extra["size"]) < 20:
            size = int(extra["size"])
        mtime = _seconds(extra.get("mtime"), header[136:148])
        extra = {}
        if kind in _NO_DATA:
            continue
        start = reader.position
        if kind in _REGULAR and not name.endswith("/"):
            yield TarMember(name, size, mtime, start)
        rest = start + size + -size % TAR_UNIT - reader.position
        if reader.skip(rest) < rest - (-size % TAR_UNIT):
            notes.append("truncated tar")
            return
