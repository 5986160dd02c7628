"""One stream of physical lines in, logical lines without prefixes out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ncclscope.envelopes.draft import Draft, Known
from ncclscope.envelopes.export import ExportRecords
from ncclscope.envelopes.glue import may_be_glued, may_be_tagged, split_tags, starts
from ncclscope.envelopes.layer import compiled
from ncclscope.envelopes.learning import SAMPLE_WIDTH, Peeled, any_splits, chain, learn, learn_briefly, open_text
from ncclscope.envelopes.peel import Peeler
from ncclscope.envelopes.records import MOST_NESTING, RECORD_STARTS, open_records
from ncclscope.envelopes.recurring import RecurringPrefixes
from ncclscope.envelopes.text import MAX_BODY, clean
from ncclscope.model import Line, SourceRef

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CUT", "MAX_BODY", "Unwrapper"]

CUT = "cut at 64 KiB"
_MOST_SAMPLE = 2000

# `text [repeated 7x across cluster] (Ray deduplicates logs by default. ...)`
_REPEATED = r" ?\[repeated (\d{1,9})x across cluster\](?: \(Ray deduplicates logs .{0,500}\))?\s*$"
_PIECES = ("docker json", "JSON")


class _Held(msgspec.Struct):
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
        self._sample: list[bytes] = []
        self._splits = False
        self._peeler = Peeler(Known())
        self._chain = "plain"
        self._held: dict[tuple[str | None, ...], _Held] = {}
        self._prefixes = RecurringPrefixes()
        self._export: ExportRecords | None = None

    def learn(self, sample: Sequence[bytes]) -> None:
        """Looks at raw physical lines to tell which ambiguous prefixes are real.

        May be called again with later lines; all lines seen so far count, however they were handed over.
        """
        whole = b"\n".join([b"", *sample])
        if self._export is None and ExportRecords.begin(whole):
            self._export, self._splits = ExportRecords(), True
        self._splits = self._splits or any_splits(sample, whole)
        more = sample[: _MOST_SAMPLE - len(self._sample)]
        too_wide = max(map(len, more), default=0) > SAMPLE_WIDTH
        self._sample += [raw[:SAMPLE_WIDTH] for raw in more] if too_wide else more
        bare = Peeler(Known())
        brief = None if self._splits else learn_briefly(self._sample, lambda raw: _peel(bare, raw))
        known, peeled = brief or learn(self._peel_sample)
        self._peeler = Peeler(known)
        self._peeler.joins = bool(self._held)
        self._prefixes.clear()
        self._chain = chain(peeled)

    def _peel_sample(self, known: Known) -> list[Peeled]:
        peeler = Peeler(known)
        return [peeled for raw in self._sample for peeled in _peel(peeler, raw)]

    @property
    def splits_text(self) -> bool:
        """Whether text must be unwrapped before it can be searched: the envelope splits or escapes it."""
        return self._splits

    def unwrap(self, raw: bytes, line_no: int) -> list[Line]:
        """The logical lines of one physical line, usually one; [] while it goes on in a later record."""
        ref = SourceRef(self._path, line_no)
        if self._export is not None:
            return self._exported(self._export.feed(raw, ref))
        known = None if self._held else self._prefixes.lookup(raw)
        if known is not None:
            return [Line(*known, ref)]
        out: list[Line] = []
        self._take(clean(raw.decode("utf-8", "replace")), None, ref, out, 0)
        if len(out) == 1 and not self._held:
            self._prefixes.remember(raw, out[0].text, out[0].env)
        return out

    def flush(self) -> list[Line]:
        """Lines that were still waiting for their continuation when the stream ended."""
        held, self._held = self._held, {}
        self._peeler.joins = False
        out = self._exported(self._export.close()) if self._export is not None else []
        for one in held.values():
            self._take("".join(one.parts), one.draft, one.ref, out, 1)
        return out

    def describe(self) -> str:
        """The layers that the sample showed, outermost first: `kubectl --prefix > time > [rankN]: > c10`."""
        return self._chain

    def _exported(self, record: tuple[list[tuple[str, Draft]], SourceRef] | None) -> list[Line]:
        out: list[Line] = []
        if record is not None:
            for text, draft in record[0]:
                self._take(clean(text), draft, record[1], out, 1)
        return out

    # The stages of one text: layers, continuation, records, tags that share a line, bars, glued lines.

    def _take(self, text: str, base: Draft | None, ref: SourceRef, out: list[Line], depth: int) -> None:
        if depth > MOST_NESTING:
            self._emit(text, base or Draft(), ref, out)
            return
        draft = base.fork() if base else Draft()
        if "[repeated " in text and (m := compiled(_REPEATED).search(text)):
            draft.repeated = int(m[1])
            text = text[: m.start()]
        pos, inner_at, piece = self._peeler.peel(text, draft)
        if piece:
            self._join(text[pos:], draft, ref, out, depth)
            return
        if text[pos : pos + 1] in RECORD_STARTS and self._records(text, pos, draft, ref, out, depth):
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
            draft = msgspec.structs.replace(draft, layers=(*draft.layers, CUT))
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
            body = clean(inner)
            if record.partial or (self._held and record.layers[-1] in _PIECES):
                self._join(body, record, ref, out, depth)
            else:
                self._take(body, record, ref, out, depth + 1)
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


def _peel(peeler: Peeler, raw: bytes) -> list[Peeled]:
    """The texts of a line of the sample with the layers off that `peeler` knows."""
    text = clean(raw.decode("utf-8", "replace"))
    return open_text(peeler, text.split("\r", 1)[0], Draft(), 0)
