"""Damaged files: any bytes give a library or an ArchError, nothing else."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from arch_files import ELF, container, elf, entry
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncclscope.arch import ArchError, judge, read_library
from ncclscope.arch.elf import BadElfError, dynamic

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = [
    (ELF / name).read_bytes()
    for name in ("variants.o", "nccl_static.a", "compression.so", "torch-runpath.so")
]
QUIET = settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# Where the numbers that matter are: the ELF header, the section table at the end, and anywhere.
PLACES = st.one_of(st.integers(0, 63), st.integers(-2000, -1), st.integers(0, 40_000))
VALUES = st.one_of(
    st.binary(min_size=1, max_size=8), st.sampled_from([b"\xff" * 8, bytes(8), b"\x00\x00\x00\x80"])
)


def survives(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with contextlib.suppress(ArchError):
        assert judge(read_library(path), "sm_90").needed > 0
    with contextlib.suppress(BadElfError):
        dynamic(data)


@QUIET
@given(
    seed=st.sampled_from(SEEDS),
    edits=st.lists(st.tuples(PLACES, VALUES), max_size=6),
    cut=st.integers(0, 500),
)
def test_mutated_files(tmp_path: Path, seed: bytes, edits: list[tuple[int, bytes]], cut: int) -> None:
    """Real files with some bytes overwritten and the end cut off."""
    data = bytearray(seed)
    for place, value in edits:
        at = place % len(data)
        data[at : at + len(value)] = value
    survives(tmp_path / "fuzz.so", bytes(data[: len(data) - cut]))


@QUIET
@given(
    numbers=st.lists(
        st.tuples(
            st.integers(0, 9),
            st.integers(0, 2**32 - 1),
            st.integers(0, 2**64 - 1),
            st.binary(max_size=40),
            st.integers(0, 120),
        ),
        max_size=6,
    ),
    tail=st.binary(max_size=60),
)
def test_odd_entries(tmp_path: Path, numbers: list[tuple[int, int, int, bytes, int]], tail: bytes) -> None:
    """Fat binaries with any kind, architecture, flags and header size, and bytes after them."""
    body = container(*(entry(k, a, f, p, h) for k, a, f, p, h in numbers))
    survives(tmp_path / "fuzz.so", elf({".nv_fatbin": body + tail}))


@QUIET
@given(st.binary(max_size=300))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    """Noise, bare and behind the start of an ELF file."""
    survives(tmp_path / "fuzz.so", data)
    survives(tmp_path / "fuzz.so", b"\x7fELF\x02\x01\x01" + data)
