"""One stream of physical lines in, logical lines without prefixes out."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

from ncclscope.envelopes.draft import Draft, Known
from ncclscope.envelopes.glue import may_be_glued, may_be_tagged, split_tags, starts
from ncclscope.envelopes.inner import INNER
from ncclscope.envelopes.learning import Peeled, learn
from ncclscope.envelopes.peel import Peeler
from ncclscope.envelopes.records import hides_ascii, open_records
from ncclscope.envelopes.recurring import RecurringPrefixes
from ncclscope.model import Line, SourceRef
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CUT", "MAX_BODY", "Unwrapper"]

# Longer bodies are cut; no producer that we parse writes them.
MAX_BODY = 64 * 1024
CUT = "cut at 64 KiB"
_MOST_SAMPLE = 2000
_SAMPLE_WIDTH = 20_000
_MOST_NESTING = 4

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]|\x9b[0-9;?]*[ -/]*[@-~]")
# Control characters but tab and carriage return, what reorders or hides text on a terminal, and lone surrogates.
_CONTROL = re.compile(
    "[\x00-\x08\x0a-\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
# `text [repeated 7x across cluster] (Ray deduplicates logs by default. ...)`
_REPEATED = re.compile(
    r" ?\[repeated (\d{1,9})x across cluster\](?: \(Ray deduplicates logs .{0,500}\))?\s*$", re.ASCII
)
_CRI_PARTIAL = re.compile(rb"\d (?:stdout|stderr) P(?::\S{0,64})? ")
_RECORD_STARTS = ("{", "[", '"', " ")
_PIECES = ("docker json", "JSON")
_RANK_NAMES = frozenset({"[rankN]:", "Lightning"})
_INNER_NAMES = frozenset(layer.name for layer in INNER) - _RANK_NAMES


def _clean(text: str) -> str:
    if text.isprintable():
        return text
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    return _CONTROL.sub("", text).strip("\r")


@dataclass(slots=True)
class _Held:
    """Records of a line that goes on."""

    draft: Draft
    ref: SourceRef
    parts: list[str]
    size: int = 0

    def add(self, text: str) -> None:
        if self.size <= MAX_BODY:
            self.parts.append(text)
            self.size += len(text)


class Unwrapper:
    """Takes the envelopes of one input stream off; holds what was learned about the stream.

    Any bytes are accepted. Without `learn` only prefixes that nothing else looks like are taken off.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._sample: list[str] = []
        self._splits = False
        self._peeler = Peeler(Known())
        self._chain = "plain"
        self._held: dict[tuple[str | None, ...], _Held] = {}
        self._prefixes = RecurringPrefixes()

    def learn(self, sample: Sequence[bytes]) -> None:
        """Looks at raw physical lines to tell which ambiguous prefixes are real.

        May be called again with later lines; what counts is all lines seen so far, not how they were handed over.
        """
        for raw in sample:
            self._splits = self._splits or _splits(raw)
            if len(self._sample) < _MOST_SAMPLE:
                self._sample.append(_clean(raw[:_SAMPLE_WIDTH].decode("utf-8", "replace")))
        known, peeled = learn(self._peel_sample)
        self._peeler = Peeler(known)
        self._prefixes.clear()
        self._chain = _chain(peeled)

    def _peel_sample(self, known: Known) -> list[Peeled]:
        peeler = Peeler(known)
        return [p for text in self._sample for p in _open(peeler, text.split("\r", 1)[0], Draft(), 0)]

    @property
    def splits_text(self) -> bool:
        """Whether every line must be unwrapped before its text can be searched: the envelope splits or escapes it."""
        return self._splits

    def unwrap(self, raw: bytes, line_no: int) -> list[Line]:
        """The logical lines of one physical line, usually one; [] while it goes on in a later record."""
        text = _clean(raw.decode("utf-8", "replace"))
        ref = SourceRef(self._path, line_no)
        found = None if self._held else self._prefixes.lookup(text)
        if found is not None:
            body = text[found[0] :]
            if _is_simple(body):
                return [Line(body, found[1], ref)]
        out: list[Line] = []
        self._take(text, None, ref, out, 0)
        if len(out) == 1 and not self._held:
            self._prefixes.remember(text, out[0].text, out[0].env)
        return out

    def flush(self) -> list[Line]:
        """Lines that were still waiting for their continuation when the stream ended."""
        held, self._held = self._held, {}
        self._peeler.joins = False
        out: list[Line] = []
        for one in held.values():
            self._take("".join(one.parts), one.draft, one.ref, out, 1)
        return out

    def describe(self) -> str:
        """The layers of this stream as far as the sample showed, outermost first: `kubectl --prefix > time > c10`."""
        return self._chain

    # The stages of one text: tags that share a line, layers, records, continuation, progress bars, glued lines.

    def _take(self, text: str, base: Draft | None, ref: SourceRef, out: list[Line], depth: int) -> None:
        if depth > _MOST_NESTING:
            self._emit(text, base or Draft(), ref, out)
            return
        draft = base.fork() if base else Draft()
        if "[repeated " in text and (m := _REPEATED.search(text)):
            draft.repeated = int(m[1])
            text = text[: m.start()]
        pos, inner_at, piece = self._peeler.peel(text, draft)
        if piece:
            self._join(text[pos:], draft, ref, out, depth)
            return
        if text[pos : pos + 1] in _RECORD_STARTS and self._records(text, pos, draft, ref, out, depth):
            return
        if may_be_tagged(text) and self._split_tags(text, base, ref, out, depth):
            return
        if "\r" in text:
            outer = self._outer(text, inner_at, base)
            parts = [part for part in text[inner_at:].split("\r") if part]
            for part in parts:
                self._take(part, outer, ref, out, depth + 1)
            if not parts:
                self._emit("", draft, ref, out)
            return
        body = text[pos:] if pos else text
        if may_be_glued(body) and (cuts := starts(body, self._peeler.known.hosts)):
            self._split_glued(text, pos, inner_at, cuts, draft, base, ref, out, depth)
        else:
            self._emit(body, draft, ref, out)

    def _emit(self, body: str, draft: Draft, ref: SourceRef, out: list[Line]) -> None:
        if len(body) > MAX_BODY:
            body = body[:MAX_BODY]
            draft = replace(draft, layers=(*draft.layers, CUT))
        out.append(Line(body, draft.envelope(self._peeler.known.zone), ref))

    def _outer(self, text: str, inner_at: int, base: Draft | None) -> Draft:
        """What the launcher and collector layers alone say, for further lines in the same physical line."""
        draft = base.fork() if base else Draft()
        if inner_at:
            self._peeler.peel(text[:inner_at], draft)
        return draft

    def _split_tags(self, text: str, base: Draft | None, ref: SourceRef, out: list[Line], depth: int) -> bool:
        for tagged in split_tags(text):
            head = tagged.head
            draft = base.fork() if base else Draft()
            pos, inner_at, _ = self._peeler.peel(head, draft)
            if len(tagged.parts) == 1 and pos == len(head) and head + tagged.parts[0] == text:
                continue  # an ordinary line
            if head[pos:].strip() and not self._peeler.only_tags(head[pos:], draft):
                self._take(head, base, ref, out, depth + 1)
                draft = self._outer(head, inner_at, base)
            lines: list[Line] = []
            for part in tagged.parts:
                self._take(part, draft, ref, lines, depth + 1)
            out += [line for line in lines if line.text] or lines[:1]
            return True
        return False

    def _split_glued(
        self, text: str, pos: int, inner_at: int, cuts: list[int], draft: Draft, base: Draft | None,
        ref: SourceRef, out: list[Line], depth: int,
    ) -> None:  # fmt: skip
        head = text[pos : pos + cuts[0]]
        if inner_at == pos and self._peeler.only_tags(head, draft):
            outer = draft
        else:
            if head.strip():
                self._emit(head.rstrip(), draft, ref, out)
            outer = self._outer(text, inner_at, base)
        for start, end in zip(cuts, [*cuts[1:], len(text) - pos], strict=True):
            self._take(text[pos + start : pos + end], outer, ref, out, depth + 1)

    def _records(
        self, text: str, pos: int, draft: Draft, ref: SourceRef, out: list[Line], depth: int
    ) -> bool:
        found = open_records(text, pos, draft)
        if found is None:
            return False
        for inner, record in found:
            clean = _clean(inner)
            if record.partial or (self._held and record.layers[-1] in _PIECES):
                self._join(clean, record, ref, out, depth)
            else:
                self._take(clean, record, ref, out, depth + 1)
        return True

    def _join(self, text: str, draft: Draft, ref: SourceRef, out: list[Line], depth: int) -> None:
        """A record that is, or may be, a piece of a longer line."""
        partial, draft.partial = draft.partial, False
        key = (draft.pod, draft.container, draft.stream)
        held = self._held.get(key)
        if partial and self._splits:
            if held is None:
                held = self._held[key] = _Held(draft, ref, [])
                self._peeler.joins = True
            held.add(text)
            return
        if held is not None:
            held.add(text)
            del self._held[key]
            self._peeler.joins = bool(self._held)
            text, draft, ref = "".join(held.parts), held.draft, held.ref
        self._take(text, draft, ref, out, depth + 1)


def _is_simple(body: str) -> bool:
    return (
        len(body) <= MAX_BODY
        and "\r" not in body
        and "[repeated " not in body
        and not may_be_glued(body)
        and not may_be_tagged(body)
    )


def _splits(raw: bytes) -> bool:
    """Whether one line of the sample shows an envelope that splits or escapes text."""
    start = raw[:64].lstrip()
    if start.startswith((b"{", b"[{")):
        return (
            hides_ascii(raw)
            or b'"logtag":"P"' in raw
            or (raw.startswith(b'{"log":') and b'\\n","' not in raw and len(raw) > 16_000)
        )
    if b"]<std" in raw or b"[default" in raw:
        text = raw[:_SAMPLE_WIDTH].decode("utf-8", "replace")
        if any(tagged.cut for tagged in split_tags(text)):
            return True
    return _CRI_PARTIAL.search(raw[:512]) is not None


def _open(peeler: Peeler, text: str, draft: Draft, depth: int) -> list[Peeled]:
    """The texts of one line of the sample with their layers off, as far as this can tell without splitting them."""
    pos, _, piece = peeler.peel(text, draft)
    if piece:
        draft.partial = False
        text = text[pos:]
        pos, _, _ = peeler.peel(text, draft)
    if (
        text[pos : pos + 1] in _RECORD_STARTS
        and depth < _MOST_NESTING
        and (found := open_records(text, pos, draft))
    ):
        return [p for inner, record in found for p in _open(peeler, _clean(inner), record, depth + 1)]
    return [(text, pos, draft)]


def _chain(peeled: Sequence[Peeled]) -> str:
    counts: Counter[str] = Counter()
    places: Counter[str] = Counter()
    lines = 0
    for text, _, draft in peeled:
        lines += bool(text)
        for place, name in enumerate(dict.fromkeys(draft.layers)):
            counts[name] += 1
            places[name] += place
    wrappers = [n for n in counts if n not in _INNER_NAMES and (n in _RANK_NAMES or 2 * counts[n] >= lines)]
    chain = sorted(wrappers, key=lambda n: (n in _RANK_NAMES, places[n] / counts[n], n))
    loggers = sorted((n for n in counts if n in _INNER_NAMES), key=lambda n: (-counts[n], n))
    return " > ".join([*chain, ", ".join(loggers)] if loggers else chain) or "plain"
