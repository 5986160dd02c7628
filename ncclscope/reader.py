"""Reads one input: blocks of bytes -> lines around hits -> envelopes off -> parsers -> events.

Only lines that hold a literal are looked at one by one, and after an opener such as `Traceback` the lines that follow
it. The end of the stream, its line count and a sample for learning the envelope never depend on the gate.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from ncclscope.blocks import sample_of, whole_lines
from ncclscope.clocks import Stamp, parse_iso, without_year
from ncclscope.envelopes import Unwrapper
from ncclscope.index import PatternIndex, searchable
from ncclscope.lazy import lazy
from ncclscope.model import Event, Line, Voice
from ncclscope.parsers.flight_recorder import MAX_DUMP_BYTES, DumpError, looks_like_dump, parse_dump
from ncclscope.parsers.pattern import MAX_BLOCK_LINES, Block, Collector, compiled, match
from ncclscope.sources import Input
from ncclscope.store import EventStore, StreamInfo

__all__ = ["Warn", "read_input"]

Warn = Callable[[str], None]

# Enough of a file to tell a flight-recorder dump.
_DUMP_HEAD = 4096
_TAIL_BYTES = 32 * 1024
_TAIL_LINES = 60
# The first time of a stream is looked for in so many lines.
_DATED_SOON = 80
# Bytes before a hit in which the last dated line is looked for (see Pattern.context).
_LOOK_BACK = 8 * 1024
_NOTHING: frozenset[str] = frozenset()


class _Open(msgspec.Struct):
    voice: Voice
    logger: str | None
    collector: Collector
    kinds: frozenset[str]
    left: int = MAX_BLOCK_LINES


class _State(msgspec.Struct):
    """What is under way in one input."""

    index: PatternIndex
    unwrapper: Unwrapper
    store: EventStore
    info: StreamInfo
    warn: Warn
    gated: bool
    open: list[_Open] = msgspec.field(default_factory=list)
    raised: set[str] = msgspec.field(default_factory=set)
    line_no: int = 0
    unended: bool = False  # the last block ended inside a line
    before: bytes = b""  # ends where the block under way begins; at least the last _TAIL_BYTES


def read_input(
    source: Input,
    index: PatternIndex,
    store: EventStore,
    warn: Warn,
    *,
    gated: bool = True,
    progress: Callable[[str, int], None] | None = None,
) -> StreamInfo:
    """Reads `source` to its end into `store` and returns what is known of the stream.

    gated: False looks at every line. progress: called after each block with the input's name and the bytes in it.
    """
    blocks = source.blocks()
    head = b""
    for block in blocks:
        head += block
        if len(head) >= _DUMP_HEAD:
            break
    if looks_like_dump(head[:_DUMP_HEAD], source.name):
        return _read_dump(source, head, blocks, store)
    info = StreamInfo(source.name, source.hints, source.group, source.mtime)
    unwrapper = Unwrapper(source.name)
    state = _State(index, unwrapper, store, info, warn, gated)
    learned = False
    for block in whole_lines(itertools.chain([head] if head else [], blocks), info):
        if not learned:
            sample = sample_of(block)
            unwrapper.learn(sample)
            _look_at_sample(sample, state)
            learned = True
        _read_block(block, state)
        if progress is not None:
            progress(source.name, len(block))
        # Nothing is copied where the block alone is enough.
        state.before = block if len(block) >= _TAIL_BYTES else (state.before + block)[-_TAIL_BYTES:]
    for line in unwrapper.flush():
        _take(line, index.numbers_in(line), state, None)
    _close_all(state)
    _look_at_tail(state.before[-_TAIL_BYTES:], state)
    info.format = unwrapper.describe()
    info.notes = [*source.notes, *info.notes]
    store.streams.append(info)
    return info


def _read_dump(source: Input, head: bytes, blocks: Iterator[bytes], store: EventStore) -> StreamInfo:
    """A flight-recorder dump is read whole, under a limit; what is wrong with it becomes a note."""
    data = bytearray(head)
    for block in blocks:
        data += block
        if len(data) > MAX_DUMP_BYTES:
            break
    info = StreamInfo(source.name, source.hints, source.group, source.mtime, bytes=len(data), format="flight recorder")
    try:
        dump = parse_dump(bytes(data))
    except DumpError as error:
        info.notes = [f"not a readable flight-recorder dump: {error}"]
    else:
        info.events = len(dump.entries)
        store.dumps.append((source.hints.rank, source.name, dump))
        if source.hints.rank is None:
            info.notes = ["the file name names no rank: the dump could not be joined with the others"]
    store.streams.append(info)
    return info


def _read_block(block: bytes, state: _State) -> None:
    if block:
        state.line_no -= state.unended  # the pieces of a long line are one line
        state.unended = not block.endswith(b"\n")
    if state.unwrapper.splits_text:
        _read_every_line(block, state)
        return
    hits = _hits_by_line(block, state) if state.gated else None
    before = state.line_no
    at = 0  # offset from which lines were not handled yet; state.line_no lines stand before it
    if hits is None:
        starts: Iterator[int] = _line_starts(block)
    else:
        starts = iter(hits)
    for start in starts:
        while state.open and at < start:  # lines between hits belong to what an opener began
            at = _one_line(block, at, (), state)
        if at < start:
            state.line_no += block.count(b"\n", at, start)
            at = start
        if at == start:
            at = _one_line(block, start, hits[start] if hits is not None else None, state)
    while state.open and at < len(block):
        at = _one_line(block, at, (), state)
    if at < len(block):
        if 2 * at < len(block):
            state.line_no = before + _line_ends(block)
        else:  # most of the block is counted
            state.line_no += block.count(b"\n", at)
        state.line_no += not block.endswith(b"\n")
    state.info.lines = state.line_no


def _line_ends(block: bytes) -> int:
    """How many lines end in the block, at twice the speed of count: taking them out jumps from one to the next, where
    count looks at every byte."""
    return len(block) - len(block.replace(b"\n", b""))


def _hits_by_line(block: bytes, state: _State) -> dict[int, list[int]]:
    """Literal numbers by the offset of the line they stand in, in order."""
    found: dict[int, list[int]] = {}
    line_end = -1
    here: list[int] = []
    for end, number in state.index.gate.hits(block):
        if end > line_end:
            start = block.rfind(b"\n", 0, end) + 1
            line_end = block.find(b"\n", end)
            if line_end < 0:
                line_end = len(block)
            here = found[start] = []
        if number not in here:
            here.append(number)
    return found


def _line_starts(block: bytes) -> Iterator[int]:
    at = 0
    while at < len(block):
        yield at
        end = block.find(b"\n", at)
        if end < 0:
            return
        at = end + 1


def _one_line(block: bytes, start: int, numbers: Sequence[int] | None, state: _State) -> int:
    """Handles the physical line at `start` and returns where the next begins."""
    end = block.find(b"\n", start)
    if end < 0:
        end = len(block)
    state.line_no += 1
    for line in state.unwrapper.unwrap(block[start:end], state.line_no):
        known = state.index.numbers_in(line) if numbers is None else numbers
        _take(line, known, state, (block, start))
    return end + 1


def _read_every_line(block: bytes, state: _State) -> None:
    """For envelopes that split or escape text: unwrap first, then search."""
    lines: list[Line] = []
    for start in _line_starts(block):
        end = block.find(b"\n", start)
        state.line_no += 1
        lines += state.unwrapper.unwrap(block[start : end if end >= 0 else len(block)], state.line_no)
    state.info.lines = state.line_no
    if not state.gated:
        for line in lines:
            _take(line, state.index.numbers_in(line), state, None)
        return
    texts = [searchable(line).encode("utf-8", "replace") for line in lines]
    joined = b"\n".join(texts) + b"\n"
    hits = _hits_by_line(joined, state)
    at = 0
    for line, text in zip(lines, texts, strict=True):
        numbers = hits.get(at, ())
        if numbers or state.open:
            _take(line, numbers, state, None)
        at += len(text) + 1


def _take(line: Line, numbers: Sequence[int], state: _State, place: tuple[bytes, int] | None) -> None:
    """One logical line: to the blocks under way, then to the patterns that its literals call for."""
    # A line that belongs to a block under way (the second half of a chained traceback) does not open its like anew.
    taken = _feed(line, state) if state.open else _NOTHING
    recurring = state.index.recurring
    known = recurring.lookup(line, numbers)
    if known is not None:
        for kind, fields in known:
            _emit(Event(kind, fields, line.env, line.ref, line.text), state)
        return
    repeatable = True
    events: list[Event] = []
    for number in sorted(numbers):  # one order, however the literals were found
        for pattern in state.index.patterns[number]:
            repeatable = repeatable and not (pattern.context or pattern.alone)
            try:
                event = match(pattern, line)
            except Exception as error:  # a bug in one pattern must not cost the report
                _report(state, pattern.kind, line, error)
                repeatable = False
                continue
            if event is not None:
                events.append(event)
                if pattern.context and place is not None:
                    event = _with_context(event, place, state)
                _emit(event, state)
        for block in state.index.blocks[number]:
            repeatable = False
            if taken.isdisjoint(block.kinds):
                _open(block, line, state)
    if repeatable:
        recurring.remember(line, numbers, events)


def _open(block: Block, line: Line, state: _State) -> None:
    m = compiled(block.regex).search(line.text)
    if m is None:
        return
    try:
        collector = block.open(m, line)
    except Exception as error:
        _report(state, "/".join(block.kinds), line, error)
        return
    if collector is not None:
        state.open.append(_Open(line.env.voice, line.env.logger, collector, frozenset(block.kinds)))


def _feed(line: Line, state: _State) -> frozenset[str]:
    """Offers the line to every block under way; the kinds of those that took it."""
    env = line.env
    taken = _NOTHING
    for item in list(state.open):
        item.left -= 1
        other_voice = env.voice != item.voice
        other_logger = env.logger is not None and env.logger != item.logger
        if not (other_voice or other_logger):
            try:
                wants_more = item.collector.feed(line)
            except Exception as error:
                _report(state, type(item.collector).__name__, line, error)
                wants_more = False
            if wants_more:
                taken |= item.kinds
            else:
                item.left = 0
        if item.left <= 0:
            state.open.remove(item)
            _close(item, state)
    return taken


def _close(item: _Open, state: _State) -> None:
    try:
        events = item.collector.close()
    except Exception as error:
        _report(state, type(item.collector).__name__, None, error)
        return
    for event in events:
        _emit(event, state)


def _close_all(state: _State) -> None:
    for item in state.open:
        _close(item, state)
    state.open.clear()


def _emit(event: Event, state: _State) -> None:
    state.info.events += 1
    if event.env.rank is not None:
        state.info.ranks.add(event.env.rank)
    if event.env.repeated:
        state.info.deduplicated = True
    state.store.add(event)


def _report(state: _State, what: str, line: Line | None, error: Exception) -> None:
    if what in state.raised:
        return
    state.raised.add(what)
    where = f" at {line.ref}" if line is not None else f" in {state.info.path}"
    state.warn(f"a parser failed{where}: {what}: {type(error).__name__}: {error}")


def _with_context(event: Event, place: tuple[bytes, int], state: _State) -> Event:
    """Adds gap_s, the seconds since the last dated line before this one in the same input."""
    now = event.env.time
    if now is None:
        return event
    block, start = place
    before = (state.before[-_LOOK_BACK:] + block[max(0, start - _LOOK_BACK) : start])[-_LOOK_BACK:]
    for raw in reversed(before.split(b"\n")):
        for line in reversed(state.unwrapper.unwrap(raw, 0)):
            then = line.env.time or loose_time(line.text)
            if then is not None and then.clock != "boot":
                # Loggers differ in printing the year; a gap never spans one.
                gap = without_year(now).seconds - without_year(then).seconds
                return msgspec.structs.replace(event, fields={**event.fields, "gap_s": round(gap, 3)})
    return event


_LOOSE_TIME = lazy(r"\b\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")


def loose_time(text: str) -> Stamp | None:
    """The first full date and time near the start of a line whose logger we do not know."""
    return parse_iso(text[:80]) if _LOOSE_TIME.search(text[:80]) else None


# Minutes and seconds, but not of a PCI address, which has four digits before them. An expression that begins with a
# fixed character is searched for ten times as fast.
_CLOCK = re.compile(rb":\d\d:\d\d(?<!\d{3}:\d\d:\d\d)")
_ODD_BEGIN = re.compile(rb"\n(?![A-Za-z])")


def _may_be_dated(raw: bytes) -> bool:
    """Whether a line can hold a time: hours, minutes and seconds, or one of the other forms, which begin the line."""
    return not raw[:1].isalpha() or _CLOCK.search(raw) is not None


def _any_dated(lines: Sequence[bytes]) -> bool:
    """Whether any of the lines may be dated, asked of all at once."""
    joined = b"\n".join([b"", *lines])
    return _CLOCK.search(joined) is not None or _ODD_BEGIN.search(joined) is not None


def _look_at_sample(sample: Sequence[bytes], state: _State) -> None:
    """First time of the stream. An unwrapper that holds pieces of lines is not disturbed: a fresh one looks then."""
    probe = state.unwrapper
    if probe.splits_text:
        probe = Unwrapper(state.info.path)
        probe.learn(sample)
    sample = sample[:_DATED_SOON]
    if not (probe.splits_text or _any_dated(sample)):
        return
    for number, raw in enumerate(sample, 1):
        if not (probe.splits_text or _may_be_dated(raw)):
            continue
        for line in probe.unwrap(raw, number):
            stamp = line.env.time or loose_time(line.text)
            if stamp is not None:
                state.info.first_time = stamp
                return


def _look_at_tail(tail: bytes, state: _State) -> None:
    """The last lines and the last time of the stream."""
    raws = tail.rstrip(b"\n").rsplit(b"\n", _TAIL_LINES)[-_TAIL_LINES:]
    first = state.line_no - len(raws) + 1
    unwrapper = state.unwrapper

    def lines() -> list[Line]:
        found: list[Line] = []
        for offset, raw in enumerate(raws):
            found += unwrapper.unwrap(raw, first + offset)
        return found + unwrapper.flush()

    if unwrapper.splits_text:
        known = lines()
        state.info.tail_of = lambda: known
        dated: Iterable[Line] = reversed(known)
    else:
        state.info.tail_of = lines
        if not _any_dated(raws):
            return
        dated = (line for raw in reversed(raws) if _may_be_dated(raw) for line in reversed(unwrapper.unwrap(raw, 0)))
    for line in dated:
        stamp = line.env.time or loose_time(line.text)
        if stamp is not None:
            state.info.last_time = stamp
            return
