"""Reading files: fixtures with known code, and files that must be refused."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from arch_files import ELF, container, elf, entry

from ncclscope.arch import ArchError, read_library

if TYPE_CHECKING:
    from pathlib import Path


def codes(name: str) -> tuple[str, str]:
    library = read_library(ELF / name)
    return " ".join(a.sass for a in library.sass), " ".join(a.ptx for a in library.ptx)


@pytest.mark.parametrize(
    ("name", "sass", "ptx"),
    [
        ("nccl-2.26.2.so", "sm_50 sm_60 sm_61 sm_70 sm_80 sm_90", "compute_90"),
        ("nccl-2.26.5.so", "sm_50 sm_60 sm_61 sm_70 sm_80 sm_90 sm_100 sm_120", "compute_120"),
        ("nccl-2.28.9.so", "sm_80 sm_90 sm_100 sm_100f sm_120", "compute_120"),
        ("variants.o", "sm_90 sm_90a sm_100a sm_103a sm_120f", "compute_90a"),
        ("nccl_static.a", "sm_80 sm_90 sm_100 sm_100f sm_120", "compute_120"),
        ("compression.so", "sm_80", "compute_80"),
    ],
)
def test_architectures_are_those_that_were_compiled(name: str, sass: str, ptx: str) -> None:
    """What nvcc was told to build is read: stored or compressed, linked, relocatable or in an archive."""
    assert codes(name) == (sass, ptx)


def test_nccl_version_and_cuda_come_from_the_banner() -> None:
    """The version and the toolkit that it was built with stand in the file, as NCCL prints them."""
    library = read_library(ELF / "nccl-2.26.2.so")
    assert (library.nccl_version, library.cuda_version, library.is_libnccl) == ("2.26.2", "12.2", True)
    assert read_library(ELF / "variants.o").nccl_version is None


def test_nccl_inside_pytorch_is_not_a_libnccl() -> None:
    """A library that needs libc10 is PyTorch's: its NCCL is found, and said to be linked in."""
    library = read_library(ELF / "torch-static.so")
    assert (library.nccl_version, library.is_libnccl) == ("2.28.9", False)


def test_counts_show_what_a_union_hides() -> None:
    """Each architecture is counted per code object, linked and relocatable ones apart."""
    library = read_library(ELF / "partial.so")
    assert {a.sass: n for a, n in library.sass_counts.items()} == {
        "sm_80": 3, "sm_86": 1, "sm_90": 2, "sm_100": 3, "sm_100f": 1, "sm_120": 3,
    }  # fmt: skip
    assert library.fullest == 3
    linked = read_library(ELF / "nccl-2.26.2.so")
    assert [c.relocatable for c in linked.code_objects] == [True, True, False]
    assert [len(c.ptx) for c in linked.code_objects] == [1, 1, 0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"hello, world", "not an ELF file"),
        (b"\x7fELF\x02\x02" + bytes(100), "big-endian"),
        (b"\x7fELF\x02\x01\x01" + bytes(30), "cannot be read"),
        (b"\x7fELF\x02\x01\x01".ljust(64, b"\0"), "without section headers"),
        (elf({".text": b"abc"}), "holds no GPU code"),
        (elf({".nv_fatbin": bytes(64)}), "holds no GPU code"),
        (elf({".nv_fatbin": b"garbage garbage!"}), "section .nv_fatbin, byte 64: 0x62726167"),
        (b"!<arch>\nnonsense", "a damaged static archive"),
        (b"!<arch>\n" + b"a/".ljust(48) + b"999".ljust(10) + b"`\n", "a static archive that is cut short"),
        (b"!<thin>\n" + bytes(60), "not an ELF file"),
    ],
)
def test_other_files_are_refused_with_a_reason(tmp_path: Path, content: bytes, reason: str) -> None:
    """A file that cannot be judged raises ArchError with the file's name and what is wrong with it."""
    path = tmp_path / "file.so"
    path.write_bytes(content)
    with pytest.raises(ArchError, match=reason) as caught:
        read_library(path)
    assert str(caught.value).startswith(str(path))


def test_32_bit_and_code_less_libraries_are_refused() -> None:
    """Real files made by gcc."""
    with pytest.raises(ArchError, match="32-bit"):
        read_library(ELF / "32-bit.o")
    with pytest.raises(ArchError, match="holds no GPU code"):
        read_library(ELF / "no-gpu-code.so")


def test_missing_files_and_directories(tmp_path: Path) -> None:
    """What the operating system refuses is the reason."""
    with pytest.raises(ArchError, match="No such file"):
        read_library(tmp_path / "absent.so")
    with pytest.raises(ArchError, match="Is a directory"):
        read_library(tmp_path)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_library_is_never_read_as_a_smaller_one(tmp_path: Path, keep: float) -> None:
    """A download that stopped half-way is an error."""
    whole = (ELF / "nccl-2.28.9.so").read_bytes()
    path = tmp_path / "cut.so"
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(ArchError, match="cut short"):
        read_library(path)


def test_a_section_larger_than_the_file_is_refused(tmp_path: Path) -> None:
    """A size of 2^60 bytes in a section header costs nothing and is named."""
    data = bytearray(elf({".nv_fatbin": container(entry(2, 90))}))
    table = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<Q", data, table + 64 + 32, 1 << 60)
    path = tmp_path / "huge.so"
    path.write_bytes(data)
    with pytest.raises(ArchError, match=r"section \.nv_fatbin should be bytes 64 to 1152921504606847040"):
        read_library(path)


def test_a_sparse_file_of_gigabytes_does_not_fill_memory(tmp_path: Path) -> None:
    """A .nv_fatbin of 8 GiB of zero bytes is refused after its first MiB."""
    size = 8 << 30
    data = bytearray(elf({".nv_fatbin": b""}))
    table = struct.unpack_from("<Q", data, 40)[0]
    struct.pack_into("<QQ", data, table + 64 + 24, len(data), size - len(data))
    path = tmp_path / "sparse.so"
    with path.open("wb") as file:
        file.write(data)
        file.truncate(size)
    with pytest.raises(ArchError, match="the first MiB is zero"):
        read_library(path)


def test_too_many_sections_are_refused(tmp_path: Path) -> None:
    """A section count that the file cannot hold is damage, not work."""
    data = bytearray(elf({".nv_fatbin": container(entry(2, 90))}))
    struct.pack_into("<H", data, 60, 0xFF00)
    path = tmp_path / "many.so"
    path.write_bytes(data)
    with pytest.raises(ArchError, match="65280 section headers"):
        read_library(path)
