"""From the bytes of any stream to plain text: compression, tar framing and byte order marks come off."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from ncclscope.sources.formats import HEAD, decompress, sniff, undecided
from ncclscope.sources.streams import BLOCK, Notes, Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["plain", "text_blocks"]

# UTF-32's little-endian mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
    (codecs.BOM_UTF8, None, None),
)


def plain(chunks: Iterator[bytes], notes: Notes) -> Iterator[bytes]:
    """The stream without tar framing and compression (twice at most: some servers compress a .gz again)."""
    reader = Reader(chunks)
    for _ in range(2):
        kind = sniff(_head(reader))
        if kind is None:
            yield from reader.rest()
            return
        if kind == "zip":
            notes.append("a zip archive in a stream was left out; unpack it and name its files")
            return
        if kind == "tar":
            notes.append("a tar archive in a stream: its files were read as one")
            from ncclscope.sources.tars import walk

            for member in walk(reader, notes):
                yield from reader.rest(member.size)
            return
        reader = Reader(_joined(decompress(kind, reader, notes)))
    yield from reader.rest()


def _head(reader: Reader) -> bytes:
    """What there is of the first bytes; a slow pipe may have few, so none beyond the needed are awaited."""
    head = reader.some(HEAD)
    while head and undecided(head) and (more := reader.some(HEAD)):
        head += more
    reader.back(head)
    return head


def _joined(pieces: Iterator[bytes]) -> Iterator[bytes]:
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        if size + len(piece) > BLOCK:
            yield b"".join(parts)
            parts, size = [], 0
        parts.append(piece)
        size += len(piece)
    if parts:
        yield b"".join(parts)


def text_blocks(chunks: Iterator[bytes], notes: Notes) -> Iterator[bytes]:
    """The text in a stream, in blocks of at most 1 MiB, and near that size where it was compressed. UTF-16 and UTF-32
    with a byte order mark, which comes off, become UTF-8; other bytes stay as they are."""
    reader = Reader(plain(chunks, notes))
    first = reader.peek(1)
    head = reader.peek(4) if first and first in b"\xff\xfe\xef\0" else b""
    for mark, encoding, title in _MARKS:
        if not head.startswith(mark):
            continue
        reader.skip(len(mark))
        if encoding is None or title is None:
            break
        notes.append(title)
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        while data := reader.some(BLOCK // 2):  # two bytes of UTF-16 become at most three
            if text := decoder.decode(data):
                yield text.encode("utf-8", "replace")
        if text := decoder.decode(b"", final=True):
            yield text.encode("utf-8", "replace")
        return
    yield from reader.rest()
