"""Promises for any input: no error, no state between lines, no dependence on how a sample was cut."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ncclscope.envelopes import Unwrapper

from .test_prefixes import LEARNED, NESTED, SURE

_EXAMPLES = [c[1].encode() for c in SURE + LEARNED] + [c[0].encode() for c in NESTED]
_CHUNK = st.one_of(
    st.sampled_from(_EXAMPLES),
    st.binary(max_size=40),
    st.text(max_size=40).map(lambda s: s.encode("utf-8", "replace")),
    st.sampled_from(
        [b"\r", b"[1,1]<stderr>:", b"[default1]:", b"NCCL WARN ", b'{"log":"', b"[rank1]:", b" NCCL INFO "]
    ),
)
_LINE = st.lists(_CHUNK, max_size=4).map(b"".join).map(lambda b: b.replace(b"\n", b""))
_LINES = st.lists(_LINE, max_size=12)


@given(_LINES)
@settings(max_examples=300, deadline=None)
def test_any_bytes_give_lines_of_clean_text(lines: list[bytes]) -> None:
    unwrapper = Unwrapper("a")
    unwrapper.learn(lines)
    found = [line for n, raw in enumerate(lines, 1) for line in unwrapper.unwrap(raw, n)] + unwrapper.flush()
    for line in found:
        line.text.encode("utf-8")
        assert "\n" not in line.text
        assert "\x1b" not in line.text
        assert 1 <= line.ref.line <= len(lines)
    unwrapper.describe().encode("utf-8")


@given(_LINES, st.integers(0, 12))
@settings(max_examples=150, deadline=None)
def test_a_sample_in_two_pieces_teaches_the_same(lines: list[bytes], cut: int) -> None:
    whole, pieces = Unwrapper("a"), Unwrapper("a")
    whole.learn(lines)
    pieces.learn(lines[:cut])
    pieces.learn(lines[cut:])
    assert (whole.describe(), whole.splits_text) == (pieces.describe(), pieces.splits_text)
    assert [whole.unwrap(raw, 1) for raw in lines] == [pieces.unwrap(raw, 1) for raw in lines]


@given(_LINES)
@settings(max_examples=150, deadline=None)
def test_a_line_is_unwrapped_the_same_whatever_came_before(lines: list[bytes]) -> None:
    used, fresh = Unwrapper("a"), Unwrapper("a")
    used.learn(lines)
    if used.splits_text:
        return
    for raw in lines:
        fresh = Unwrapper("a")
        fresh.learn(lines)
        first = used.unwrap(raw, 1)
        assert first == used.unwrap(raw, 1) == fresh.unwrap(raw, 1)
