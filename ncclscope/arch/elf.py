"""The little of an ELF file that is needed, read without trusting any number in it.
 pyelftools knows the layout of headers; sizes and offsets are checked here against the file before anything
is read, so that a hostile file costs neither memory nor time.
"""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from elftools.common.exceptions import ELFError
from elftools.common.utils import struct_parse
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

if TYPE_CHECKING:
    import mmap

# A libtorch_cuda has about 50 sections, an object file with a section for each function some ten thousand.
_MAX_SECTIONS = 100_000
_MAX_NAME = 256
# 32 tags and some 20 needed libraries are usual.
_MAX_DYNAMIC = 4096
_DT_NEEDED, _DT_RPATH, _DT_RUNPATH = 1, 15, 29
_PARSE_ERRORS = (
    ELFError,
    ConstructError,
    ValueError,
    OverflowError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
)


class BadElfError(ValueError):
    """Bytes that are no 64-bit little-endian ELF file, or a damaged one."""


class Section(NamedTuple):
    """A section; `offset` counts from the start of the buffer. `end` is past its last byte in the file."""

    name: str
    kind: str
    offset: int
    end: int
    executable: bool
    link: int


class Window(io.RawIOBase):
    """Bytes [start, end) of a buffer as a stream, without a copy."""

    def __init__(self, data: mmap.mmap | bytes, start: int, end: int) -> None:
        self._data, self._start, self._size, self._at = data, start, end - start, 0

    def read(self, size: int | None = -1) -> bytes:
        stop = self._size if size is None or size < 0 else min(self._size, self._at + size)
        piece = self._data[self._start + self._at : self._start + max(stop, self._at)]
        self._at += len(piece)
        return piece

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = min(max(base + offset, 0), self._size)
        return self._at

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return True


def sections(data: mmap.mmap | bytes, start: int, end: int) -> list[Section]:
    """Sections of the ELF file in data[start:end]. Raises BadElfError, with the reason in plain words."""
    if data[start : start + 4] != b"\x7fELF":
        raise BadElfError("not an ELF file (a Linux library starts with the bytes 7f 45 4c 46)")
    if data[start + 4 : start + 5] == b"\x01":
        raise BadElfError("a 32-bit ELF file; CUDA libraries are 64-bit")
    if data[start + 5 : start + 6] == b"\x02":
        raise BadElfError("a big-endian ELF file; CUDA libraries are little-endian")
    size = end - start
    stream = cast("IO[bytes]", Window(data, start, end))
    try:
        elf = ELFFile(stream)
        count, table, width, names = (
            elf.num_sections(),
            elf["e_shoff"],
            elf["e_shentsize"],
            elf.get_shstrndx(),
        )
        if not table or not count:
            raise BadElfError("an ELF file without section headers, so its GPU code cannot be found")
        if count > _MAX_SECTIONS or width < 64 or table + count * width > size:
            raise BadElfError(
                f"damaged or cut short: {count} section headers at byte {table} of a file of {size} bytes"
            )
        headers = [struct_parse(elf.structs.Elf_Shdr, stream, table + i * width) for i in range(count)]
        name_table = headers[names]["sh_offset"] if names < count else 0
    except _PARSE_ERRORS as error:
        if isinstance(error, BadElfError):
            raise
        raise BadElfError(
            f"damaged or cut short: its headers cannot be read ({type(error).__name__})"
        ) from None
    found = []
    for header in headers:
        name = c_string(data, start + name_table + header["sh_name"], end)
        kind = str(header["sh_type"])
        offset, length = header["sh_offset"], header["sh_size"]
        if kind not in ("SHT_NOBITS", "SHT_NULL") and offset + length > size:
            raise BadElfError(
                f"damaged or cut short: section {name or '?'} should be bytes {offset} to {offset + length}"
                f" of a file of {size} bytes"
            )
        if kind not in ("SHT_NOBITS", "SHT_NULL"):
            executable = bool(header["sh_flags"] & 4)
            found.append(
                Section(name, kind, start + offset, start + offset + length, executable, header["sh_link"])
            )
    return found


def c_string(data: mmap.mmap | bytes, position: int, end: int) -> str:
    """The zero-terminated string at `position`, at most 256 bytes of it; '' when it is outside the buffer."""
    if not 0 <= position < end:
        return ""
    stop = data.find(b"\0", position, min(end, position + _MAX_NAME))
    return data[position : stop if stop >= 0 else min(end, position + _MAX_NAME)].decode("utf-8", "replace")


class Dynamic(NamedTuple):
    """What the dynamic loader is told: libraries needed and where to look; `$ORIGIN` is not yet replaced."""

    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]


def dynamic(data: mmap.mmap | bytes) -> Dynamic:
    """The dynamic section of a whole file; empty when it has none. Raises BadElfError."""
    found: dict[int, list[str]] = {_DT_NEEDED: [], _DT_RPATH: [], _DT_RUNPATH: []}
    every = sections(data, 0, len(data))
    strings = next((s for s in every if s.name == ".dynstr"), None)
    table = next((s for s in every if s.kind == "SHT_DYNAMIC"), None)
    if table is not None and strings is not None:
        for at in range(table.offset, min(table.end, table.offset + 16 * _MAX_DYNAMIC) - 15, 16):
            tag, value = (int.from_bytes(data[at + i : at + i + 8], "little") for i in (0, 8))
            if tag == 0:
                break
            if tag in found:
                stop = data.find(b"\0", strings.offset + value, strings.end)
                found[tag].append(data[strings.offset + value : max(stop, 0)].decode("utf-8", "replace"))
    paths = {
        tag: tuple(p for text in found[tag] for p in text.split(":") if p) for tag in (_DT_RPATH, _DT_RUNPATH)
    }
    return Dynamic(tuple(found[_DT_NEEDED]), paths[_DT_RPATH], paths[_DT_RUNPATH])
