"""Raw bytes and the ways to get at them: files, pipes, and reading a forward-only stream piece by piece."""

from __future__ import annotations

import os
import select
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["BLOCK", "Forward", "Notes", "Reader", "human", "read_file", "read_handle", "reason_of"]

# No stage hands on more than this at once. Larger buffers are mapped anew each time, which costs more than reading.
BLOCK = 1 << 18

Notes = list[str]


def human(size: int) -> str:
    """A byte count for people: `812 bytes`, `1.2 MiB`."""
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"


def reason_of(error: OSError) -> str:
    """The operating system's words without the path, which the caller names."""
    return (error.strerror or str(error) or type(error).__name__).lower()


def read_file(path: str, notes: Notes, offset: int = 0) -> Iterator[bytes]:
    """The bytes of a file or FIFO from `offset` on; an error ends the stream with a note.

    Unbuffered, so that a FIFO yields what there is instead of waiting for a full block.
    """
    try:
        with Path(path).open("rb", buffering=0) as handle:
            if offset:
                handle.seek(offset)
            while data := handle.read(BLOCK):
                yield data
    except OSError as error:
        notes.append(f"reading stopped: {reason_of(error)}")


def read_handle(handle: BinaryIO, notes: Notes) -> Iterator[bytes]:
    """The bytes of an open handle as they come, so that a slow pipe still yields each line soon."""
    try:
        descriptor = handle.fileno()
    except (OSError, AttributeError):  # an in-memory handle
        while data := handle.read(BLOCK):
            yield data
        return
    try:
        while True:
            try:
                data = os.read(descriptor, BLOCK)
            except BlockingIOError:  # another process made the shared pipe non-blocking
                select.select([descriptor], [], [])
                continue
            if not data:
                return
            yield data
    except OSError as error:
        notes.append(f"reading stopped: {reason_of(error)}")


class Reader:
    """Exact reads over an iterator of bytes, holding no more than was asked for and one piece."""

    __slots__ = ("_at", "_buffer", "_chunks", "_ended", "_jump", "_size", "position")

    def __init__(
        self, chunks: Iterator[bytes], *, jump: Callable[[int], Iterator[bytes]] | None = None, size: int = 0
    ) -> None:
        """`jump` opens the same `size` bytes at another offset, so that `skip` need not read them."""
        self._chunks = chunks
        self._jump = jump
        self._size = size
        self._buffer = b""
        self._at = 0
        self._ended = False
        self.position = 0  # bytes handed out so far

    def _fill(self) -> bool:
        """Replace the used-up buffer by the next piece; False at the end."""
        while not self._ended:
            data = next(self._chunks, None)
            if data is None:
                self._ended = True
            elif data:
                self._buffer, self._at = data, 0
                return True
        return False

    def some(self, limit: int = BLOCK) -> bytes:
        """Between 1 and `limit` bytes, b"" at the end."""
        if self._at >= len(self._buffer) and not self._fill():
            return b""
        data = self._buffer[self._at : self._at + limit]
        self._at += len(data)
        self.position += len(data)
        return data

    def take(self, count: int) -> bytes:
        """Exactly `count` bytes, fewer only at the end."""
        parts = []
        while count > 0 and (data := self.some(count)):
            parts.append(data)
            count -= len(data)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def back(self, data: bytes) -> None:
        """Put bytes that `some` or `take` gave back in front."""
        self.position -= len(data)
        if len(data) <= self._at and self._buffer.startswith(data, self._at - len(data)):
            # The usual case, and no copy: with many small members each would copy the whole buffer.
            self._at -= len(data)
        else:
            self._buffer = data + self._buffer[self._at :]
            self._at = 0

    def peek(self, count: int) -> bytes:
        """The next `count` bytes without using them up, fewer only at the end."""
        data = self.take(count)
        self.back(data)
        return data

    def skip(self, count: int) -> int:
        """Drop `count` bytes; how many there were to drop."""
        dropped = 0
        if self._jump is not None and count > len(self._buffer) - self._at:
            dropped = max(0, min(count, self._size - self.position))
            self.position += dropped
            self._chunks, self._buffer, self._at = self._jump(self.position), b"", 0
            return dropped
        while dropped < count and (data := self.some(min(BLOCK, count - dropped))):
            dropped += len(data)
        return dropped

    def rest(self, limit: int | None = None) -> Iterator[bytes]:
        """What is left, or its first `limit` bytes."""
        left = limit
        while left is None or left > 0:
            data = self.some(BLOCK if left is None else min(BLOCK, left))
            if not data:
                return
            if left is not None:
                left -= len(data)
            yield data


class Forward:
    """A stream that can only be read forwards, such as the inside of a .tar.gz, asked for slices.

    Slices asked for in rising order cost one pass in all; going back starts again from the front.
    `end` is where the last slice ends, after which nothing is kept open.
    """

    __slots__ = ("_open", "_parked", "end")

    def __init__(self, open_at_front: Callable[[Notes], Iterator[bytes]]) -> None:
        self._open = open_at_front
        self._parked: tuple[Reader, Notes] | None = None
        self.end = 0

    def slice(self, offset: int, size: int, notes: Notes) -> Iterator[bytes]:
        """`size` bytes from `offset`, fewer with a note where the stream ends before."""
        parked, self._parked = self._parked, None
        if parked is None or parked[0].position > offset:
            fresh: Notes = []
            parked = (Reader(self._open(fresh)), fresh)
        reader, own = parked
        reader.skip(offset - reader.position)
        yield from reader.rest(size)
        if reader.position < offset + size:
            read = max(0, reader.position - offset)
            notes.append(f"truncated archive: read {human(read)} of {human(size)}")
            notes.extend(own)
        elif reader.position < self.end:
            self._parked = parked
