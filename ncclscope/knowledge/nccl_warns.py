"""Every warning text of NCCL's source, with the versions that hold it and what it means in our words.

The tables are data files beside this module, read when the first warning is looked up.
Source: the WARN() calls of NVIDIA/nccl, release tags 2.3.5 to 2.30.7. Meanings and classes are ours.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec

from ncclscope.lazy import lazy

__all__ = ["KnownWarn", "known_warn", "known_warns", "literal_parts"]

_HERE = Path(__file__).parent
# A conversion of printf, or the name of a call that a macro puts in.
_CONVERSION = lazy(r"%\{\w+\}|%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t)?[diuxXpscfgem]|\.\.\.$")
# Warnings are at most 1 KiB up to 2.28; what follows in a longer line is another line's.
_LOOKED_AT = 2048


class KnownWarn(msgspec.Struct, frozen=True):
    """One warning text.

    first and last are the first and last release whose source holds the text (last "2.30.7": still there in
    the newest release read). returned is the ncclResult_t that the code returns right after it, "" where
    unknown. nature is that of events (`ncclscope.parsers.pattern.Pattern`), never "cause"; suggests a class
    that the text may point to, or "". template is the text in printf form.
    """

    id: str
    first: str
    last: str
    phase: str
    returned: str
    template: str
    nature: str
    suggests: str
    meaning: str


@lru_cache(maxsize=1)
def known_warns() -> tuple[KnownWarn, ...]:
    """All known warnings, in the order of the table."""
    notes = {row[0]: row[1:] for row in _rows("nccl_warn_notes.tsv")}
    nothing = ["symptom", "", ""]
    return tuple(
        KnownWarn(ident, first, last, phase, returned, template, *notes.get(note, nothing))
        for ident, first, last, phase, returned, note, template in _rows("nccl_warns.tsv")
    )


def _rows(name: str) -> list[list[str]]:
    text = (_HERE / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.split("\n") if line and not line.startswith("#")]


def literal_parts(template: str) -> tuple[str, ...]:
    """The parts of a printf template that stand in every line made from it, blanks squeezed."""
    parts = (" ".join(part.split()) for part in _CONVERSION.split(template))
    return tuple(part for part in parts if part)


@lru_cache(maxsize=1)
def _index() -> tuple[tuple[str, tuple[str, ...], int, KnownWarn], ...]:
    entries = []
    for warn in known_warns():
        parts = literal_parts(warn.template)
        entries.append((max(parts, key=len), parts, sum(map(len, parts)), warn))
    return tuple(entries)


def known_warn(text: str) -> KnownWarn | None:
    """The warning whose words `text` holds in their order, the one with the most words when several do."""
    return _known_warn(" ".join(text[:_LOOKED_AT].split()))


@lru_cache(maxsize=512)
def _known_warn(text: str) -> KnownWarn | None:
    best, best_size = None, 0
    for longest, parts, size, warn in _index():
        if size > best_size and longest in text and _in_order(parts, text):
            best, best_size = warn, size
    return best


def _in_order(parts: tuple[str, ...], text: str) -> bool:
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True
