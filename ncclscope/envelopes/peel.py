"""Takes layers off one text, from the outside in."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ncclscope.envelopes.draft import Draft, Known, iso_stamp
from ncclscope.envelopes.inner import INNER
from ncclscope.envelopes.layer import Layer, compiled, shape
from ncclscope.envelopes.outer import CRI, OUTER, TIME

if TYPE_CHECKING:
    import re

__all__ = ["AMBIGUOUS", "Peeler", "accepts", "ambiguous"]

AMBIGUOUS: tuple[Layer, ...] = tuple(layer for layer in OUTER if layer.learned)
_MOST_LAYERS = 16


def accepts(layer: Layer, word: str | None, known: Known) -> bool:
    """Whether the word of an ambiguous layer has a form that the sample showed."""
    return word is not None and shape(word) in known.words.get(layer.name, ())


@lru_cache(maxsize=4096)
def ambiguous(two: str) -> tuple[Layer, ...]:
    """The ambiguous layers that may begin with these two characters, learned or not."""
    return tuple(layer for layer in AMBIGUOUS if layer.may_start(two))


# What can begin with two given characters: for launchers and collectors, for loggers.
Tables = tuple[dict[str, tuple[Layer, ...]], dict[str, tuple[Layer, ...]]]


@lru_cache(maxsize=64)
def _layers(learned: frozenset[str]) -> tuple[tuple[Layer, ...], Tables]:
    """The layers to try, and room for what is found out about them; streams of one kind share both."""
    outer = [la for la in OUTER if not la.learned or la.name in learned]
    # Inner layers come before the ambiguous ones: those must not take what a logger printed.
    order = (*(la for la in outer if not la.learned), *INNER, *(la for la in outer if la.learned))
    return order, ({}, {})


class Peeler:
    """The layers that count in one stream."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.joins = False
        self._outer, self._tables = _layers(known.layers)

    def _candidates(self, two: str, phase: int) -> tuple[Layer, ...]:
        table = self._tables[phase]
        found = table.get(two)
        if found is None:
            pool = (self._outer, INNER)[phase]
            found = tuple(layer for layer in pool if layer.may_start(two))
            if len(table) < 10_000:
                table[two] = found
        return found

    def peel(self, text: str, draft: Draft) -> tuple[int, int, bool]:
        """Fills `draft`; returns (where the body begins, where the layers of the rank itself begin, False).

        The last is True when it stopped behind a CRI header, because draft.partial or self.joins is set: that
        text is or may be a piece of a longer one, and its other layers have not come off.
        """
        pos = 0
        inner_at = -1
        phase = 0
        for _ in range(_MOST_LAYERS):
            for layer in self._candidates(text[pos : pos + 2], phase):
                if layer.needs not in text:
                    continue
                m = layer.match(text, pos)
                if m is None or (layer.learned and not self._real(layer, m, draft)):
                    continue
                if layer.take(draft, m, self.known) is not False:
                    break
            else:
                break
            if layer.inner and phase == 0:
                inner_at = pos
                phase = 1
            pos = m.end()
            draft.layers += (layer.name,)
            if layer is CRI and (draft.partial or self.joins):
                return pos, pos, True
            if layer.last:
                break
        if draft.own is None and draft.collected is None and text[pos : pos + 1].isdigit():
            _look_at_time(text, pos, draft)
        return pos, inner_at if inner_at >= 0 else pos, False

    def _real(self, layer: Layer, m: re.Match[str], draft: Draft) -> bool:
        if layer.name in draft.layers and layer is not TIME:  # several collectors in a row print a time
            return False
        return layer.word is None or accepts(layer, layer.word(m), self.known)

    def only_tags(self, text: str, draft: Draft) -> bool:
        """Whether `text`, which stands right before an unmistakable prefix, is nothing but ambiguous tags.

        What follows is proof enough that they are tags; `draft` is filled only then.
        """
        trial = draft.fork()
        pos = 0
        while pos < len(text):
            for layer in ambiguous(text[pos : pos + 2]):
                m = layer.match(text, pos)
                if m is None or (layer.word is not None and layer.word(m) is None):
                    continue
                if (layer is TIME or layer.name not in trial.layers) and layer.take(
                    trial, m, self.known
                ) is not False:
                    break
            else:
                return False
            trial.layers += (layer.name,)
            if m is None or m.end() == pos:
                return False
            pos = m.end()
        for name in Draft.__struct_fields__:
            setattr(draft, name, getattr(trial, name))
        return True


# A time that the program printed itself stays in the text: other parsers may need it there.
_ISO = r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?(?!\d)"


def _look_at_time(text: str, pos: int, draft: Draft) -> None:
    m = compiled(_ISO).match(text, pos)
    if m is None:
        return
    if m[3]:  # programs rarely print a zone, collectors always do
        draft.collect(iso_stamp(m[1], m[2], m[3], "collector"))
    else:
        draft.own = iso_stamp(m[1], m[2], None)
