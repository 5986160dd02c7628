"""Tells from a sample which ambiguous prefixes of a stream are real: a wrapper is real when many lines carry it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ncclscope.envelopes.draft import Draft, Known, zone_between
from ncclscope.envelopes.layer import shape
from ncclscope.envelopes.peel import AMBIGUOUS
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Peeled", "learn"]

# A text with what was taken off it: (text, where its body begins, its draft).
Peeled = tuple[str, int, Draft]

_FEW = 10  # up to so many lines, all must carry a prefix
_SHARE = 0.6
# A banner without prefixes can come first: so many lines in a row that nearly all carry the prefix are enough too.
_RUN = 50
_RUN_SHARE = 0.9
_MOST_DEPTH = 4


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
