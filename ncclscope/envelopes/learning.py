"""Tells from a sample which ambiguous prefixes are real: a wrapper is real when many lines carry it."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from operator import itemgetter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ncclscope.envelopes.draft import Draft, Known, zone_between
from ncclscope.envelopes.glue import split_tags
from ncclscope.envelopes.inner import INNER
from ncclscope.envelopes.layer import shape
from ncclscope.envelopes.peel import AMBIGUOUS, Peeler, ambiguous
from ncclscope.envelopes.records import MOST_NESTING, RECORD_STARTS, hides_ascii, open_records
from ncclscope.envelopes.text import clean
from ncclscope.gate import make_text_test

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ncclscope.envelopes.layer import Layer

__all__ = ["SAMPLE_WIDTH", "Peeled", "any_splits", "chain", "learn", "learn_briefly", "open_text", "splits"]

# A text with what was taken off it: (text, where its body begins, its draft).
Peeled = tuple[str, int, Draft]
# What counts in the stream, and lines of the sample, each with how many it stands for.
Learned = tuple[Known, "list[tuple[Peeled, int]]"]

_FEW = 10  # up to so many lines, all must carry a prefix
_SHARE = 0.6
# A banner without prefixes can come first: so many lines in a row of which nearly all carry it are enough.
_RUN = 50
_RUN_SHARE = 0.9
_MOST_DEPTH = 4
SAMPLE_WIDTH = 20_000
# Of a sample with so many lines, about so many are enough to see that nothing ambiguous is in it.
_LONG = 96
_PICKED = 10
_head = itemgetter(slice(8))
_ALIKE = bytes.maketrans(b"123456789", b"000000000")
# What stands before NCCL's host in most logs: nothing, a rank, a time.
_HOST_AT = rb"(?:\[[^\]]{1,64}\]:? ?){0,3}([A-Za-z0-9][\w.-]{0,254}):\d{1,10}:\d{1,10} "
# How a line of JSON begins; an expression that begins with a fixed character is searched for many times as fast.
_RECORD = rb"\n[ \t\r\x0b\x0c]{0,63}\[?\{"
_NCCL = b" NCCL "
# Without any of these, and without a record, no line is split.
_may_split = make_text_test([b"]<std", b"[default", b" stdout P", b" stderr P"])
_CRI_PARTIAL = rb"[\dZ] (?:stdout|stderr) P(?::\S{0,64})? "
_RANK_NAMES = frozenset({"[rankN]:", "Lightning"})
_LOGGERS = frozenset(layer.name for layer in INNER)
_INNER_NAMES = _LOGGERS - _RANK_NAMES


def learn(peel_all: Callable[[Known], list[Peeled]]) -> Learned:
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
    return replace(known, hosts=hosts, zone=_zone(peeled)), [(p, 1) for p in peeled]


def _one_more(peeled: Sequence[Peeled], known: Known) -> Known | None:
    # Only lines whose launcher layers are all off can show another one; a rank's own layers come after those.
    rest = [(text, pos, draft) for text, pos, draft in peeled if pos < len(text)]
    for layer in AMBIGUOUS:
        if layer.name in known.layers:
            continue
        words: Counter[str] = Counter()
        carried: list[str | None] = []
        for text, pos, draft in rest:
            may = not draft.logger and layer.may_start(text[pos : pos + 2])
            word = _carried(layer, text, pos, draft) if may else None
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


def _carried(layer: Layer, text: str, pos: int, draft: Draft) -> str | None:
    """The form of the word in an ambiguous layer at `pos`, or "yes" for one without words; None without the layer.

    The layer may start with the two characters at `pos`, and no logger's prefix stands before them."""
    m = layer.match(text, pos) if layer.needs in text else None
    if m is None or (layer.name == "CloudWatch" and draft.collected is None):
        return None
    return shape(layer.word(m) or "") or None if layer.word else "yes"


def learn_briefly(sample: Sequence[bytes], peel: Callable[[bytes], list[Peeled]]) -> Learned | None:
    """What `learn` would find, from a few lines of a long sample in which nothing ambiguous shows; else None.

    A prefix that is real is carried by most of the lines, or of 50 in a row, so lines picked evenly show it.
    """
    if len(sample) < _LONG:
        return None
    picked = [p for raw in sample[:: len(sample) // _PICKED] for p in peel(raw)]
    # One line stands for all that begin alike, so that a logger of a few lines is seen too.
    heads = [*map(_head, sample)]
    stands_for: Counter[bytes] = Counter()
    first: dict[bytes, bytes] = {}
    for head, count in Counter(heads).items():
        kind = head.translate(_ALIKE)
        if kind not in first:
            first[kind] = sample[heads.index(head)]
        stands_for[kind] += count
    alike = {kind: peel(raw) for kind, raw in first.items()}
    for text, pos, draft in itertools.chain(picked, *alike.values()):
        if draft.collected is not None or not _LOGGERS.issuperset(draft.layers):
            return None
        if draft.logger or pos == len(text):
            continue
        for layer in ambiguous(text[pos : pos + 2]):
            if _carried(layer, text, pos, draft):
                return None
    return Known(hosts=_hosts(sample, peel)), [(p, stands_for[kind]) for kind in alike for p in alike[kind]]


def _hosts(sample: Sequence[bytes], peel: Callable[[bytes], list[Peeled]]) -> frozenset[str]:
    """The hosts in NCCL's prefix. A process prints the same prefix over and over, and one line of it is enough; where
    times make prefixes differ, each line is looked at closely only if it can show a new host."""
    host_at = re.compile(_HOST_AT).match
    one_each = {parts[0]: raw for raw in reversed(sample) if (parts := raw.partition(_NCCL))[1]}
    hosts: set[str] = set()
    for raw in one_each.values():
        m = host_at(raw)
        if m is None or m[1].decode() not in hosts:
            hosts |= {d.host for _, _, d in peel(raw) if d.logger == "nccl" and d.host}
    return frozenset(hosts)


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


def any_splits(sample: Sequence[bytes], whole: bytes) -> bool:
    """Whether a line of the sample shows an envelope that splits or escapes text. whole: the sample joined, each line
    behind a line end."""
    marked = _may_split(whole) or (b"{" in whole and re.search(_RECORD, whole) is not None)
    return marked and any(splits(raw) for raw in sample)


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


def chain(peeled: Sequence[tuple[Peeled, int]]) -> str:
    """The layers of a sample from the outside in, for people."""
    counts: Counter[str] = Counter()
    places: Counter[str] = Counter()
    lines = 0
    for (text, _, draft), stands_for in peeled:
        lines += stands_for if text else 0
        for place, name in enumerate(dict.fromkeys(draft.layers)):
            counts[name] += stands_for
            places[name] += place * stands_for
    wrappers = [n for n in counts if n not in _INNER_NAMES and (n in _RANK_NAMES or 2 * counts[n] >= lines)]
    outer = sorted(wrappers, key=lambda n: (n in _RANK_NAMES, places[n] / counts[n], n))
    loggers = sorted((n for n in counts if n in _INNER_NAMES), key=lambda n: (-counts[n], n))
    return " > ".join([*outer, ", ".join(loggers)] if loggers else outer) or "plain"
