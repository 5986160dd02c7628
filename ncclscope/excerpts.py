"""Goes back to the inputs for lines: those around a line of evidence, and those in which an expression is found."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from ncclscope.envelopes.text import clean
from ncclscope.report import Excerpt, LineEvidence, Report
from ncclscope.sources import Input, discover

__all__ = ["find_lines", "merged", "pick_lines", "shown_line", "with_excerpts"]

_AROUND = 3
_MAX_FINDINGS = 8
_MAX_TEXT = 1000
_MAX_LINE = 1024 * 1024

Range = tuple[int, int]  # first and last line, counted from 1


def with_excerpts(report: Report, paths: Sequence[str | Path]) -> Report:
    """The report with the lines around its evidence. Standard input cannot be read twice and has none."""
    wanted: dict[str, list[Range]] = defaultdict(list)
    for finding in report.findings[:_MAX_FINDINGS]:
        for item in finding.evidence:
            if isinstance(item, LineEvidence):
                wanted[item.source].append((item.line - _AROUND, item.line + _AROUND))
    texts = {i.path for i in report.inputs if i.format != "flight recorder"}
    inputs = discover([str(p) for p in paths if str(p) != "-"])[0] if wanted else []
    excerpts = []
    for source in inputs:
        if source.name in wanted and source.name in texts:
            for first, lines in pick_lines(source, merged(wanted[source.name])):
                excerpts.append(Excerpt(source.name, first, [shown_line(line) for line in lines]))
    return replace(report, excerpts=excerpts)


def shown_line(line: bytes) -> str:
    """A line as text, without colours, cut where it is very long."""
    return clean(line.decode("utf-8", "replace"))[:_MAX_TEXT]


def find_lines(
    source: Input, pattern: re.Pattern[bytes], *, before: int = 0, most: int | None = None
) -> Iterator[tuple[int, bytes, bool]]:
    """(number, line, whether `pattern` is in it) of each line with the pattern and of up to `before` lines above it.

    Reading stops after `most` lines with the pattern.
    """
    above: deque[tuple[int, bytes]] = deque(maxlen=before)
    number = 1  # of the first line in the block
    for block in _whole_lines(source.blocks()):
        for at, line in enumerate(block.removesuffix(b"\n").split(b"\n"), number):
            if not pattern.search(line):
                above.append((at, line))
                continue
            yield from ((*held, False) for held in above)
            above.clear()
            yield at, line, True
            if most is not None:
                most -= 1
                if most <= 0:
                    return
        number += block.count(b"\n")


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same lines as ranges in order that neither overlap nor touch; none begins before line 1."""
    out: list[Range] = []
    for first, last in sorted((max(1, a), b) for a, b in ranges):
        if out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        elif last >= first:
            out.append((first, last))
    return out


def pick_lines(source: Input, ranges: Sequence[Range]) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of `ranges` (as `merged` gives them), each range as its first line's number and its lines.

    Lines end at a line feed, as everywhere; a last line without one counts. Reading stops after the last range.
    """
    left = list(ranges)
    kept: dict[Range, list[bytes]] = {r: [] for r in left}
    at = 1  # number of the first line in the block
    inside = False  # the block begins inside a line
    for block in _whole_lines(source.blocks()):
        if not left:
            break
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        end = at + count - 1
        if left[0][0] <= end:
            lines = block.split(b"\n")
            for r in left:
                here = lines[max(r[0], at) - at : min(r[1], end) - at + 1] if r[0] <= end else []
                if inside and here and r[0] <= at:
                    kept[r][-1] += here.pop(0)
                kept[r] += here
        inside = not block.endswith(b"\n")
        left = [r for r in left if r[1] >= end + (not inside)]
        at = end + (not inside)
    for first, last in ranges:
        if kept[first, last]:
            yield first, kept[first, last]


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks that end with a line, but for a line of more than 1 MiB, which comes in pieces as the reader takes it."""
    rest = b""
    for block in blocks:
        joined = rest + block
        cut = joined.rfind(b"\n") + 1
        if cut == 0 and len(joined) > _MAX_LINE:
            cut = (joined.rfind(b"\r") + 1) or len(joined)
        if cut:
            yield joined[:cut]
        rest = joined[cut:]
    if rest:
        yield rest
