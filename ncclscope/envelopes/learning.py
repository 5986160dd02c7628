"""Tells from a sample which ambiguous prefixes are real: a wrapper is real when many lines carry it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ncclscope.envelopes.draft import Draft, Known, zone_between
from ncclscope.envelopes.glue import split_tags
from ncclscope.envelopes.inner import INNER
from ncclscope.envelopes.layer import shape
from ncclscope.envelopes.peel import AMBIGUOUS, Peeler
from ncclscope.envelopes.records import MOST_NESTING, RECORD_STARTS, hides_ascii, open_records
from ncclscope.envelopes.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["SAMPLE_WIDTH", "Peeled", "chain", "learn", "open_text", "splits"]

# A text with what was taken off it: (text, where its body begins, its draft).
Peeled = tuple[str, int, Draft]

_FEW = 10  # up to so many lines, all must carry a prefix
_SHARE = 0.6
# A banner without prefixes can come first: so many lines in a row of which nearly all carry it are enough.
_RUN = 50
_RUN_SHARE = 0.9
_MOST_DEPTH = 4
SAMPLE_WIDTH = 20_000
_CRI_PARTIAL = rb"[\dZ] (?:stdout|stderr) P(?::\S{0,64})? "
_RANK_NAMES = frozenset({"[rankN]:", "Lightning"})
_INNER_NAMES = frozenset(layer.name for layer in INNER) - _RANK_NAMES


def learn(peel_all: Callable[[Known], list[Peeled]]) -> tuple[Known, list[Peeled]]:
    """What the sample shows; `peel_all` takes the layers that count by then off every line of it."""
    known = Known()
    peeled = peel_all(known)
    for _ in range(_MOST_DEPTH):
        more = _one_more(peeled, known)
        if more is None:
            break
        known = more
        peeled = peel_all(known)
    hosts = frozenset(d.host for _, _, d in peeled if d.logger == "nccl" and d.host)
    return replace(known, hosts=hosts, zone=_zone(peeled)), peeled


def _one_more(peeled: Sequence[Peeled], known: Known) -> Known | None:
    # Only lines whose launcher layers are all off can show another one; a rank's own layers come after those.
    rest = [(text, pos, draft) for text, pos, draft in peeled if pos < len(text)]
    for layer in AMBIGUOUS:
        if layer.name in known.layers:
            continue
        words: Counter[str] = Counter()
        carried: list[str | None] = []
        for text, pos, draft in rest:
            word = None
            if not draft.logger and layer.may_start(text[pos : pos + 2]) and (m := layer.match(text, pos)):
                word = shape(layer.word(m) or "") or None if layer.word else "yes"
                if layer.name == "CloudWatch" and draft.collected is None:
                    word = None
            carried.append(word)
            if word:
                words[word] += 1
        if not _many([word is not None for word in carried]):
            continue
        forms = frozenset(word for word, count in words.items() if count > 1 or len(carried) <= _FEW)
        if layer.word is None or _many([word in forms for word in carried]):
            return replace(
                known, layers=known.layers | {layer.name}, words={**known.words, layer.name: forms}
            )
    return None


def _many(carried: Sequence[bool]) -> bool:
    count = sum(carried)
    if count < 2:
        return False
    if len(carried) <= _FEW:
        return count == len(carried)
    if count >= _SHARE * len(carried):
        return True
    here = sum(carried[:_RUN])
    for i in range(_RUN, len(carried)):
        if here >= _RUN * _RUN_SHARE:
            return True
        here += carried[i] - carried[i - _RUN]
    return here >= _RUN * _RUN_SHARE


def _zone(peeled: Sequence[Peeled]) -> int | None:
    zones: Counter[int] = Counter()
    for _, _, draft in peeled:
        if draft.own is not None and draft.collected is not None:
            zone = zone_between(draft.own, draft.collected)
            if zone is not None:
                zones[zone] += 1
    if not zones:
        return None
    return min(zones, key=lambda z: (-zones[z], abs(z)))


def splits(raw: bytes) -> bool:
    """Whether one line of the sample shows an envelope that splits or escapes text."""
    start = raw[:64].lstrip()
    if start.startswith((b"{", b"[{")):
        return (
            hides_ascii(raw)
            or b'"logtag":"P"' in raw
            or (raw.startswith(b'{"log":') and b'\\n","' not in raw and len(raw) > 16_000)
        )
    if b"]<std" in raw or b"[default" in raw:
        text = raw[:SAMPLE_WIDTH].decode("utf-8", "replace")
        if any(tagged.cut for tagged in split_tags(text)):
            return True
    return re.search(_CRI_PARTIAL, raw[:512]) is not None


def open_text(peeler: Peeler, text: str, draft: Draft, depth: int) -> list[Peeled]:
    """The texts of one line of the sample with their layers off, not split any further."""
    pos, _, piece = peeler.peel(text, draft)
    if piece:
        draft.partial = False
        text = text[pos:]
        pos, _, _ = peeler.peel(text, draft)
    if (
        text[pos : pos + 1] in RECORD_STARTS
        and depth < MOST_NESTING
        and (found := open_records(text, pos, draft))
    ):
        return [p for inner, record in found for p in open_text(peeler, clean(inner), record, depth + 1)]
    return [(text, pos, draft)]


def chain(peeled: Sequence[Peeled]) -> str:
    counts: Counter[str] = Counter()
    places: Counter[str] = Counter()
    lines = 0
    for text, _, draft in peeled:
        lines += bool(text)
        for place, name in enumerate(dict.fromkeys(draft.layers)):
            counts[name] += 1
            places[name] += place
    wrappers = [n for n in counts if n not in _INNER_NAMES and (n in _RANK_NAMES or 2 * counts[n] >= lines)]
    outer = sorted(wrappers, key=lambda n: (n in _RANK_NAMES, places[n] / counts[n], n))
    loggers = sorted((n for n in counts if n in _INNER_NAMES), key=lambda n: (-counts[n], n))
    return " > ".join([*outer, ", ".join(loggers)] if loggers else outer) or "plain"
