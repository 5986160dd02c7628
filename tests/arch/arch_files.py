"""Files made by hand, byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path

ELF = Path(__file__).parent.parent / "fixtures" / "elf"
MAGIC = 0xBA55ED50


def entry(kind: int, arch: int, flags: int = 0x11, payload: bytes = b"", header: int = 64) -> bytes:
    """One entry of a fat binary, as nvcc lays it out."""
    head = struct.pack("<HHIQ12xI8xQ", kind, 0x101, header, len(payload), arch, flags)
    return head.ljust(header, b"\0") + payload


def container(*entries: bytes) -> bytes:
    """A fat binary around entries."""
    body = b"".join(entries)
    return struct.pack("<IHHQ", MAGIC, 1, 16, len(body)) + body


def elf(sections: dict[str, bytes]) -> bytes:
    """A 64-bit little-endian ELF file with these sections and nothing else."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*sections, ".shstrtab"))
    body, headers, name_at = b"", bytes(64), 1
    for name, data in (*sections.items(), (".shstrtab", names)):
        offset = 64 + len(body)
        kind = 3 if name.endswith("str") or name == ".shstrtab" else 1
        headers += struct.pack("<IIQQQQIIQQ", name_at, kind, 2, 0, offset, len(data), 0, 0, 8, 0)
        name_at += len(name) + 1
        body += data
    count = len(sections) + 2
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, count, count - 1)
    return ident + head + body + headers
