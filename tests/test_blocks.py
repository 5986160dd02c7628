"""Blocks end at line ends whatever the reads were, and hold nothing that people cannot see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclscope.blocks import whole_lines
from ncclscope.sources.hints import hints_of
from ncclscope.store import StreamInfo


def info() -> StreamInfo:
    return StreamInfo("a.log", hints_of("a.log"), "a.log")


@given(st.lists(st.binary(min_size=1, max_size=40).map(lambda b: b.replace(b"\0", b"x")), max_size=20))
def test_lines_are_the_same_however_they_were_read(reads: list[bytes]) -> None:
    """Only the last block may end inside a line, and all bytes are counted."""
    one, many = info(), info()
    blocks = list(whole_lines(iter(reads), many))
    assert b"".join(blocks) == b"".join(whole_lines(iter([b"".join(reads)]), one))
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    assert one.bytes == many.bytes == sum(map(len, reads))


@pytest.mark.parametrize("filler", [b"", b"x" * (300 << 10) + b"\n"])
def test_nul_bytes_are_taken_out_and_noted_once(filler: bytes) -> None:
    """With the plain test of the first bytes and with the engine that comes after."""
    stream = info()
    blocks = [filler, b"N\0C\0C\0L\n", filler, b"\0\0"]
    assert b"".join(whole_lines(iter(blocks), stream)) == filler + b"NCCL\n" + filler
    assert stream.notes == ["NUL bytes"]


def test_a_line_of_more_than_a_mebibyte_comes_in_pieces() -> None:
    stream = info()
    blocks = list(whole_lines(iter([b"x" * (1 << 18)] * 9), stream))
    assert len(blocks) > 1
    assert b"".join(blocks) == b"x" * (9 << 18)
    assert stream.notes == ["a line longer than 1 MiB was read in pieces"]
