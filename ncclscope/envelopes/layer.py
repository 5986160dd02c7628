"""A layer: one kind of prefix, how it looks and what it says."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from functools import lru_cache

from ncclscope.envelopes.draft import Draft, Known

__all__ = ["DIGITS", "LETTERS", "UPPER", "WORD", "Layer", "compiled", "shape"]

DIGITS = string.digits
LETTERS = string.ascii_letters
UPPER = string.ascii_uppercase
WORD = string.ascii_letters + string.digits + "_.-"


@lru_cache(maxsize=128)
def compiled(source: str) -> re.Pattern[str]:
    """The compiled form, made on first use: a stream uses few of the layers, and start-up must be short."""
    return re.compile(source, re.ASCII)


# False: the match is no such prefix after all.
Take = Callable[[Draft, "re.Match[str]", Known], bool | None]


class Layer:
    """One kind of prefix.

    first: the characters it can start with, and those that can stand second (empty: any). needs: stands somewhere in
    every text that carries it, which is asked before the expression. inner: written
    by the rank's own logger, so no launcher prefix can follow it. last: the message follows. learned: common
    text can look like it, so it counts only where many lines of the stream carry it; word then gives the part
    whose form must recur.
    """

    __slots__ = ("_second", "_source", "_start", "inner", "last", "learned", "match", "name", "needs", "take", "word")

    def __init__(
        self,
        name: str,
        first: tuple[str, str],
        source: str,
        take: Take,
        *,
        needs: str = "",
        inner: bool = False,
        last: bool = False,
        learned: bool = False,
        word: Callable[[re.Match[str]], str | None] | None = None,
    ) -> None:
        self.name = name
        self._start, self._second = first
        self._source = source
        self.take = take
        self.needs = needs
        self.inner = inner
        self.last = last
        self.learned = learned
        self.word = word
        self.match: Callable[[str, int], re.Match[str] | None] = self._compile_and_match

    def _compile_and_match(self, text: str, pos: int) -> re.Match[str] | None:
        self.match = compiled(self._source).match
        return self.match(text, pos)

    def may_start(self, two: str) -> bool:
        """Whether a text that begins with these (at most two) characters can carry this prefix."""
        if not two or two[0] not in self._start:
            return False
        return not self._second or (len(two) > 1 and two[1] in self._second)


def shape(word: str) -> str:
    """`node-02` -> `node-#`: the form that the words of one kind of prefix share."""
    return compiled(r"\d+").sub("#", word)
