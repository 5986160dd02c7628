"""Reads CUDA fat binaries: which architectures a container has code for, without touching the code itself.
 A container is a 16-byte header (magic, version, header size, size of what follows) and a run of entries. An
entry is a header of its own size and a payload. All numbers are little-endian. Layout and flags were read
off the output of nvcc 13.0 and the wheels nvidia-nccl 2.16 to 2.32 and xformers 0.0.28, and agree with what
cuobjdump 13.5 prints for them.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, NamedTuple

from ncclscope.knowledge.gpus import Arch

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterator

MAGIC = 0xBA55ED50
_HEADER = struct.Struct("<IHHQ")
# kind, version, header size, payload size, 12 bytes that are not needed (compressed size, options), minor,
# major, architecture, name offset and length, flags
_ENTRY = struct.Struct("<HHIQ12xI8xQ")
_KIND_PTX = 1
_KIND_ELF = 2
# sm_90a: this GPU only. Seen from CUDA 12.1 on.
_FLAG_ARCH_SPECIFIC = 0x100000
# sm_100f: this GPU and later ones of its family. Seen from CUDA 12.9 on.
_FLAG_FAMILY = 0x200000
_NON_ZERO = re.compile(rb"[^\0]")
# Padding is at most a page of 64 KiB; more would only cost time.
_MAX_PADDING = 1 << 20
# One for each architecture and kind: real ones have about ten.
_MAX_ENTRIES = 1000


class BadFatbinError(ValueError):
    """Bytes that are no fat binary; `offset` counts from the start of the buffer."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset


class Container(NamedTuple):
    """Architectures of one fat binary; entries of other kinds (the linker's code) are left out."""

    offset: int
    sass: frozenset[Arch]
    ptx: frozenset[Arch]


def containers(data: mmap.mmap | bytes, start: int, end: int) -> Iterator[Container]:
    """Yields the fat binaries in data[start:end], which may have zero bytes between them.

    Raises BadFatbinError at the first byte that does not fit, so that a damaged file never looks like one
    with less code.
    """
    position = start
    while (found := _NON_ZERO.search(data, position, min(end, position + _MAX_PADDING))) is not None:
        # Containers are aligned to 8 bytes, and the lowest byte of the magic is not zero.
        position = found.start()
        if end - position < _HEADER.size:
            raise BadFatbinError(position, f"{end - position} stray bytes where a fat binary should start")
        magic, _version, header_size, body_size = _HEADER.unpack_from(data, position)
        if magic != MAGIC:
            raise BadFatbinError(
                position, f"0x{magic:08x} where a fat binary should start with 0x{MAGIC:08x}"
            )
        if header_size < _HEADER.size or header_size + body_size > end - position:
            raise BadFatbinError(
                position, f"a fat binary of {header_size + body_size} bytes where {end - position} are left"
            )
        yield _container(data, position, position + header_size, position + header_size + body_size)
        position += header_size + body_size
    if position + _MAX_PADDING < end:
        raise BadFatbinError(
            position, f"{end - position} bytes where a fat binary should start, and the first MiB is zero"
        )


def _container(data: mmap.mmap | bytes, offset: int, start: int, end: int) -> Container:
    sass: set[Arch] = set()
    ptx: set[Arch] = set()
    position, count = start, 0
    while position < end:
        count += 1
        if end - position < _ENTRY.size or count > _MAX_ENTRIES:
            raise BadFatbinError(position, "an entry of a fat binary is cut short, or there are far too many")
        kind, _version, header_size, payload_size, arch, flags = _ENTRY.unpack_from(data, position)
        if header_size < _ENTRY.size or header_size + payload_size > end - position:
            raise BadFatbinError(
                position,
                f"an entry of {header_size + payload_size} bytes where {end - position} are left",
            )
        variant = "a" if flags & _FLAG_ARCH_SPECIFIC else "f" if flags & _FLAG_FAMILY else ""
        if kind == _KIND_ELF:
            sass.add(Arch(arch, variant))
        elif kind == _KIND_PTX:
            ptx.add(Arch(arch, variant))
        position += header_size + payload_size
    return Container(offset, frozenset(sass), frozenset(ptx))
