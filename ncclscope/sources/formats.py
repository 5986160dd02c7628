"""Compression formats, told by their first bytes and undone as a stream.

Every decoder takes a Reader and yields pieces of bounded size whatever the ratio of compression. `decompress`
never raises for damaged data: what could be read is yielded, and a note says how far it went.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from ncclscope.sources.streams import Notes, Reader, human

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "HEAD",
    "TAR_UNIT",
    "BrokenStreamError",
    "decompress",
    "flate",
    "is_tar",
    "sniff",
    "tar_number",
    "undecided",
]

TAR_UNIT = 512
HEAD = TAR_UNIT  # bytes that `sniff` wants to see: one tar header

_ZSTD = b"\x28\xb5\x2f\xfd"
_MAGIC = {
    "gzip": (b"\x1f\x8b\x08",),
    # A level, then the magic of a first block or that of an empty stream's end.
    "bzip2": tuple(
        b"BZh%d" % level + start for level in range(1, 10) for start in (b"1AY&SY", b"\x17rE8P\x90")
    ),
    "xz": (b"\xfd7zXZ\x00",),
    # A frame, or one of the sixteen kinds of skippable frame.
    "zstd": (_ZSTD, *(bytes([first]) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))),
}
_LONGEST = 10  # bytes of the longest of them
_OUT = 1 << 18  # decoded bytes a call; several pieces make up a block
_XZ_MEMORY = 256 << 20  # xz -9 needs 64 MiB; a hostile header can ask for gigabytes


def tar_number(field: bytes) -> int | None:
    """A tar header's number, octal or (GNU) base 256; None if it is neither."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    try:
        return int(field.split(b"\0", 1)[0].strip() or b"0", 8)
    except ValueError:
        return None


def is_tar(head: bytes) -> bool:
    """Whether these 512 bytes are a tar header: its checksum fits, in every dialect of tar."""
    if len(head) < TAR_UNIT or not head[0]:
        return False
    block = head[:TAR_UNIT]
    stated = tar_number(block[148:156])
    return stated is not None and stated == sum(block[:148]) + 8 * 0x20 + sum(block[156:])


def sniff(head: bytes) -> str | None:
    """The format that starts with these bytes: gzip, bzip2, xz, zstd, zip or tar; None for anything else."""
    for kind, starts in _MAGIC.items():
        if head.startswith(starts):
            return kind
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    return "tar" if is_tar(head) else None


def undecided(head: bytes) -> bool:
    """Whether so few bytes could still become the start of a compressed stream."""
    return any(start.startswith(head) for starts in _MAGIC.values() for start in starts)


class BrokenStreamError(Exception):
    """The data ended early or is damaged; the words say which."""


def decompress(kind: str, reader: Reader, notes: Notes) -> Iterator[bytes]:
    """The content of every member or frame, one after the other."""
    decode = {"gzip": _gzip_member, "bzip2": _bzip2_stream, "xz": _xz_stream, "zstd": _zstd_frame}[kind]
    total = 0
    try:
        while True:
            for piece in decode(reader):
                total += len(piece)
                yield piece
            # Zero padding after a member is usual on tapes and from writers of whole blocks.
            while (head := reader.peek(_LONGEST)) and not head.strip(b"\0"):
                reader.skip(len(head))
            reader.skip(len(head) - len(head.lstrip(b"\0")))
            if not head:
                return
            if sniff(reader.peek(_LONGEST)) != kind:
                notes.append(f"{kind}: after {human(total)} of content come other bytes, which were left out")
                return
    except BrokenStreamError as broken:
        notes.append(f"{broken}: read {human(total)} of it")


def _zlib() -> Any:
    """ISA-L's deflate and CRC where it is installed, else zlib's.

    On a 200 MiB log ISA-L decodes 680 to 780 MB/s, zlib 1.2.13 263 to 273 MB/s.
    """
    try:
        from isal import isal_zlib
    except ImportError:  # no wheel for this machine
        return zlib
    return isal_zlib


def flate(reader: Reader, kind: str) -> Iterator[bytes]:
    """A raw deflate stream, the reader left right after it. BrokenStreamError follows what could be read."""
    library = _zlib()
    yield from _drain(library.decompressobj(-15), (library.error,), reader, kind)


def _drain(decoder: Any, errors: tuple[type[Exception], ...], reader: Reader, kind: str) -> Iterator[bytes]:
    """Run one decoder object of the zlib, bz2 or lzma kind to its end.

    A call that meets damage gives back nothing of what it decoded before, so the first bytes go in small
    pieces: a small damaged file must not come out empty.
    """
    fed = 0
    while not decoder.eof:
        data = reader.some(1024 if fed < 1 << 16 else 1 << 15)
        if not data:
            raise BrokenStreamError(f"truncated {kind}")
        fed += len(data)
        while True:
            try:
                piece = decoder.decompress(data, _OUT)
            except errors as error:
                raise BrokenStreamError(f"damaged {kind} ({error})") from None
            if piece:
                yield piece
            # zlib leaves input that did not fit in unconsumed_tail, bz2 and lzma keep it inside.
            data = getattr(decoder, "unconsumed_tail", b"")
            if decoder.eof or not (data or len(piece) >= _OUT):
                break
    reader.back(decoder.unused_data)


def _gzip_member(reader: Reader) -> Iterator[bytes]:
    """One member (RFC 1952). The frame is read here, so that a wrong checksum costs no content."""
    header = reader.take(10)
    if len(header) < 10:
        raise BrokenStreamError("truncated gzip")
    flags = header[3]
    if flags & 4:
        reader.skip(int.from_bytes(reader.take(2), "little"))
    for flag in (8, 16):  # name, comment: up to a zero byte
        if flags & flag:
            for _ in range(1 << 16):
                if reader.take(1) in (b"", b"\0"):
                    break
    if flags & 2:
        reader.skip(2)
    crc32 = _zlib().crc32
    check = size = 0
    for piece in flate(reader, "gzip"):
        check = crc32(piece, check)
        size += len(piece)
        yield piece
    trailer = reader.take(8)
    if len(trailer) < 8:
        raise BrokenStreamError("truncated gzip")
    if trailer != check.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little"):
        raise BrokenStreamError("damaged gzip (its checksum does not fit)")


def _bzip2_stream(reader: Reader) -> Iterator[bytes]:
    import bz2

    yield from _drain(bz2.BZ2Decompressor(), (OSError, ValueError, EOFError), reader, "bzip2")


def _xz_stream(reader: Reader) -> Iterator[bytes]:
    import lzma

    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    yield from _drain(decoder, (lzma.LZMAError, EOFError), reader, "xz")


def _zstd_frame(reader: Reader) -> Iterator[bytes]:
    """One frame (RFC 8878), block by block: each decodes to 128 KiB at most, and a missing one is noticed."""
    magic = reader.take(4)
    if magic != _ZSTD:  # a skippable frame
        length = int.from_bytes(reader.take(4), "little")
        if reader.skip(length) < length:
            raise BrokenStreamError("truncated zstd")
        return
    import zstandard

    decoder = zstandard.ZstdDecompressor().decompressobj()
    descriptor = reader.take(1)
    kind = descriptor[0] if descriptor else 0
    single = kind >> 5 & 1
    header = (1 - single) + (0, 1, 2, 4)[kind & 3] + (single, 2, 4, 8)[kind >> 6]
    data = magic + descriptor + reader.take(header)
    last = False
    try:
        while not last:
            block = reader.take(3)
            word = int.from_bytes(block, "little")
            last = bool(word & 1)
            length = 1 if word >> 1 & 3 == 1 else word >> 3
            if length > 1 << 17:
                raise BrokenStreamError("damaged zstd (a block is longer than the format allows)")
            body = reader.take(length)
            if len(block) < 3 or len(body) < length:
                raise BrokenStreamError("truncated zstd")
            piece = decoder.decompress(data + block + body)
            data = b""
            if piece:
                yield piece
        if kind & 4:
            checksum = reader.take(4)
            if len(checksum) < 4:
                raise BrokenStreamError("truncated zstd")
            decoder.decompress(checksum)
    except zstandard.ZstdError as error:
        raise BrokenStreamError(f"damaged zstd ({error})") from None
