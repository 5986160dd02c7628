"""Runs lines through an Unwrapper and shows what an Envelope says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ncclscope.envelopes import Unwrapper

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ncclscope.model import Envelope, Line


def unwrap_all(lines: Sequence[str | bytes], *, learn: bool = True) -> list[Line]:
    """The logical lines of a stream that was learned from all its lines, as a short input is."""
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    unwrapper = Unwrapper("in.log")
    if learn:
        unwrapper.learn(raw)
    found = [line for number, one in enumerate(raw, 1) for line in unwrapper.unwrap(one, number)]
    return found + unwrapper.flush()


def said(env: Envelope) -> dict[str, Any]:
    """The fields an Envelope knows, without times and layers."""
    fields = {
        name: getattr(env, name) for name in env.__slots__ if name not in ("time", "collected", "layers")
    }
    return {
        name: value
        for name, value in fields.items()
        if value is not None and (name, value) != ("repeated", 0)
    }
