"""Blocks of bytes cut at line ends, and freed of what people cannot see."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ncclscope.gate import make_byte_test
from ncclscope.store import StreamInfo

__all__ = ["sample_of", "whole_lines"]

# Enough lines to see which wrappers repeat; a run prints its banner and first steps within them.
_SAMPLE_LINES = 400
_SAMPLE_BYTES = 512 * 1024
# A line is read in pieces beyond this; no producer that we parse writes such lines, and memory must not follow them.
_MAX_LINE = 1024 * 1024
# Colour and cursor codes, raw or as JSON escapes, and characters that nobody sees can stand inside a literal. The
# envelopes take the same out of decoded text (envelopes/text.py); here it goes before the literals are searched for.
_ANSI = re.compile(
    rb"(?:\x1b|\\u001[bB])\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|\xc2\x9b[0-9;?]*[ -/]*[@-~]"
)
_CONTROL = bytes([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
_holds_control = make_byte_test(_CONTROL)
# Without any of these a block has nothing to take out: what most blocks are told by in one look.
_may_hide = make_byte_test(_CONTROL + b"\\" + bytes(range(0x80, 0x100)))
# By first byte: one expression with a fixed first byte is searched for many times as fast as alternatives.
_UNSEEN = (
    (b"\xc2", re.compile(rb"\xc2[\x80-\x9f]")),
    (b"\xe2", re.compile(rb"\xe2(?:\x80[\x8b-\x8f\xa8-\xae]|\x81[\xa0-\xa9])")),
    (b"\xef", re.compile(rb"\xef\xbb\xbf")),
)


def whole_lines(blocks: Iterator[bytes], info: StreamInfo) -> Iterator[bytes]:
    """Blocks cut at line ends; the first holds the whole sample, so that what is learned does not depend on splits."""
    parts: list[bytes] = []
    held = 0
    first = True
    for block in blocks:
        info.bytes += len(block)
        parts.append(block)
        held += len(block)
        if first and held < _SAMPLE_BYTES:
            continue
        cut = block.rfind(b"\n") + 1
        if cut == 0 and len(parts) > 1:  # rare: a line longer than a block
            parts = [block := b"".join(parts)]
            cut = block.rfind(b"\n") + 1
        if cut == 0 and held > _MAX_LINE:
            cut = (block.rfind(b"\r") + 1) or len(block)
            if b"\r" not in block:
                _note(info, "a line longer than 1 MiB was read in pieces")
        if cut == 0:
            continue
        first = False
        # One copy of what is handed on: joining first and cutting then would make two.
        yield _clean(b"".join((*parts[:-1], memoryview(block)[:cut])), info)
        parts = [block[cut:]]
        held = len(parts[0])
    joined = b"".join(parts)
    if joined:
        yield _clean(joined, info)


def _clean(block: bytes, info: StreamInfo) -> bytes:
    """The block without what people cannot see."""
    if not _may_hide(block):
        return block
    control, plain = _holds_control(block), block.isascii()
    if control and b"\0" in block:
        _note(info, "NUL bytes")
        block = block.replace(b"\0", b"")
    if (
        (control and b"\x1b" in block)
        or (b"\\" in block and b"\\u001" in block)
        or (not plain and b"\xc2\x9b" in block)
    ):
        block = _ANSI.sub(b"", block)
    if not plain:
        for first, unseen in _UNSEEN:
            if first in block:
                block = unseen.sub(b"", block)
    return block.translate(None, _CONTROL) if control else block


def _note(info: StreamInfo, text: str) -> None:
    if text not in info.notes:
        info.notes.append(text)


def sample_of(block: bytes) -> list[bytes]:
    """The first lines of the first block."""
    # An eighth is mostly enough, and what is not looked at is not copied.
    lines = block[: _SAMPLE_BYTES // 8].split(b"\n", _SAMPLE_LINES)
    if len(lines) <= _SAMPLE_LINES:
        lines = block[:_SAMPLE_BYTES].split(b"\n", _SAMPLE_LINES)
    return lines[:_SAMPLE_LINES]
