"""What the tests of `arch` share."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol

import pytest
from arch_files import ELF, MAGIC

if TYPE_CHECKING:
    from pathlib import Path


class Retag(Protocol):
    """Copies a fixture with some architectures changed, in all fat binaries or in those numbered."""

    def __call__(
        self, name: str, mapping: dict[tuple[int, int], int], only: set[int] | None = None
    ) -> Path: ...


@pytest.fixture
def retag(tmp_path: Path) -> Retag:
    """Entries are named by kind (1 PTX, 2 machine code) and architecture: {(2, 90): 99}."""

    def copy(name: str, mapping: dict[tuple[int, int], int], only: set[int] | None = None) -> Path:
        data = bytearray((ELF / name).read_bytes())
        at, number = data.find(MAGIC.to_bytes(4, "little")), 0
        while at >= 0:
            header, size = struct.unpack_from("<HQ", data, at + 6)
            position, end = at + header, at + header + size
            while position < end:
                kind, width, payload, arch = struct.unpack_from("<H2xIQ12xI", data, position)
                if (kind, arch) in mapping and (only is None or number in only):
                    struct.pack_into("<I", data, position + 28, mapping[kind, arch])
                position += width + payload
            at, number = data.find(MAGIC.to_bytes(4, "little"), end), number + 1
        copied = tmp_path / name
        copied.write_bytes(data)
        return copied

    return copy
