"""Zip archives: the members a directory names, or those that can be found when the directory is lost."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ncclscope.sources.formats import BrokenStreamError, decompress, flate
from ncclscope.sources.streams import Notes, Reader, human, read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ZipMember", "zip_members"]

# Signature, version, flags, method, time, date, CRC, packed size, size, length of name, length of extra.
_LOCAL = struct.Struct("<4s5H3I2H")
_SIGNATURE = b"PK\x03\x04"
_METHODS = {0: "stored", 8: "deflate", 12: "bzip2", 95: "xz", 93: "zstd"}


class ZipMember(msgspec.Struct, frozen=True):
    """A file in a zip.

    size and crc are None where only the lost directory knew them; trouble says why the file cannot be read.
    """

    name: str
    size: int | None
    mtime: float | None
    trouble: str | None
    archive: str
    header: int  # offset of the local header
    packed: int
    method: int
    crc: int | None

    def read(self, notes: Notes) -> Iterator[bytes]:
        """The content; a wrong checksum or an early end becomes a note.

        The standard library's reader decodes bzip2 members without a bound, so members are decoded here.
        """
        start = Reader(read_file(self.archive, notes, self.header)).take(_LOCAL.size)
        if len(start) < _LOCAL.size or not start.startswith(_SIGNATURE):
            notes.append("damaged zip: the member is not where the directory says")
            return
        *_, name_length, extra_length = _LOCAL.unpack(start)
        begin = self.header + _LOCAL.size + name_length + extra_length
        packed = Reader(Reader(read_file(self.archive, notes, begin)).rest(self.packed))
        before = len(notes)
        check = total = 0
        try:
            for piece in self._unpack(packed, notes):
                check = zlib.crc32(piece, check)
                total += len(piece)
                yield piece
        except BrokenStreamError as broken:
            notes.append(f"{broken}: read {human(total)} of it")
        if len(notes) > before:
            return
        if self.size is not None and total < self.size:
            notes.append(f"truncated zip: read {human(total)} of {human(self.size)}")
        elif self.crc is not None and check != self.crc:
            notes.append(f"damaged zip (its checksum does not fit): read {human(total)} of it")

    def _unpack(self, packed: Reader, notes: Notes) -> Iterator[bytes]:
        if self.method == 0:
            return packed.rest()
        if self.method == 8:
            return flate(packed, "zip")
        return decompress(_METHODS[self.method], packed, notes)


def zip_members(path: str, notes: Notes) -> list[ZipMember]:
    """The files in a zip. Without a readable directory of its own the archive is searched for them."""
    import zipfile

    errors = (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error, RuntimeError)
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except errors:
        notes.append("truncated or damaged zip, its directory is lost: it was searched for files")
        return _searched(path)
    return [
        ZipMember(
            entry.filename,
            entry.file_size,
            _unix_time(entry.extra),
            _trouble(entry.flag_bits, entry.compress_type),
            path,
            entry.header_offset,
            entry.compress_size,
            entry.compress_type,
            entry.CRC,
        )
        for entry in entries
        if not entry.is_dir()
    ]


def _trouble(flags: int, method: int) -> str | None:
    if flags & 1:
        return "encrypted zip member; unpack it first"
    if method not in _METHODS:
        return f"zip compression method {method} is not supported; unpack it first"
    return None


def _unix_time(extra: bytes) -> float | None:
    """The last write from the extended timestamp, which is in UTC.

    The time that every zip has is local to a zone that it does not name.
    """
    while len(extra) >= 4:
        tag, length = struct.unpack_from("<HH", extra)
        if tag == 0x5455 and length >= 5 and len(extra) >= 9 and extra[4] & 1:
            return float(struct.unpack_from("<i", extra, 5)[0])
        extra = extra[4 + length :]
    return None


def _searched(path: str) -> list[ZipMember]:
    """Members by their local headers, in the order they stand in."""
    offsets: list[int] = []
    base, tail = 0, b""
    for chunk in read_file(path, []):
        window = tail + chunk
        at = window.find(_SIGNATURE)
        while at >= 0:
            offsets.append(base + at)
            at = window.find(_SIGNATURE, at + 4)
        tail = window[-3:]
        base += len(window) - len(tail)
    end = base + len(tail)
    found: list[ZipMember] = []
    with Path(path).open("rb") as handle:
        for offset in offsets:
            handle.seek(offset)
            start = handle.read(_LOCAL.size)
            if len(start) < _LOCAL.size:
                continue
            fields = _LOCAL.unpack(start)
            _, version, flags, method, _, _, crc, packed, size, name_length, extra_length = fields
            raw, extra = handle.read(name_length), handle.read(extra_length)
            if version > 100 or not 0 < name_length < 4096 or len(raw) < name_length:
                continue
            name = raw.decode("utf-8" if flags & 0x800 else "cp437", "replace").split("\0", 1)[0]
            known = not flags & 8 and packed != 0xFFFFFFFF
            if not known:  # written as a stream: the sizes stand after the data
                begin = offset + _LOCAL.size + name_length + extra_length
                size, crc, packed = None, None, -begin
            found.append(
                ZipMember(
                    name, size, _unix_time(extra), _trouble(flags, method), path, offset, packed, method, crc
                )
            )
    members: list[ZipMember] = []
    covered = 0
    for number, member in enumerate(found):
        if member.header < covered:  # inside a stored member, such as a zip in a zip
            continue
        if member.packed < 0:
            follower = found[number + 1].header if number + 1 < len(found) else end
            member = msgspec.structs.replace(member, packed=max(0, follower + member.packed))
        else:
            covered = member.header + member.packed
        if not member.name.endswith("/"):
            members.append(member)
    return members
