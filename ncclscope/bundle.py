"""Packs an incident for a ticket: the reports, and the excerpts of the logs that give the same answer again.

What is left out matters as much as what is in: the manifest keeps line numbers, how long each stream was and how it
ended, so that silence stays silence. After writing, the bundle is triaged; where that gives another answer, more of the
logs goes in, up to the size limit.
"""

from __future__ import annotations

import re
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ncclscope.excerpts import merged, pick_lines, with_excerpts
from ncclscope.pipeline import Options, Read, judge, read
from ncclscope.redact import Redactor, hosts_of
from ncclscope.report import Finding, LineEvidence, Report, to_json, without_picture
from ncclscope.reporters import html, markdown
from ncclscope.sources import Input, SourceProblem, discover
from ncclscope.sources.archives import MANIFEST
from ncclscope.sources.bundles import VERSION, BundledStream, Manifest
from ncclscope.version import __version__

if TYPE_CHECKING:
    from ncclscope.engine.pack import Pack
    from ncclscope.parsers.flight_recorder import Dump
    from ncclscope.store import StreamInfo

__all__ = ["BundleError", "Bundled", "answer", "write_bundle"]

_EVIDENCE = 3  # lines around one that a finding shows
# What log text packs to at least; a level that could never fit is not tried.
_PACKED = 40


class BundleError(Exception):
    """Why no bundle could be written."""


@dataclass(frozen=True, slots=True)
class _Level:
    """How much goes in: lines at the start and the end of each stream, around each event, and entries of each dump."""

    head: int
    tail: int
    before: int
    after: int
    entries: int


_SMALL = _Level(20, 10, 2, 1, 20)
_LEVELS = (_Level(60, 60, 12, 4, 100), _Level(400, 400, 80, 20, 2000), _Level(1 << 40, 0, 0, 0, 1 << 30))


@dataclass(frozen=True, slots=True)
class Bundled:
    """What was written. same: a triage of it gives the same answer as the originals; lines: in it and of all;
    missing: what was asked for and could not be read."""

    report: Report
    same: bool
    size: int
    lines: int
    of_lines: int
    missing: tuple[SourceProblem, ...] = ()
    names: dict[str, str] = field(default_factory=dict)


def write_bundle(
    out: Path,
    paths: Sequence[str | Path],
    *,
    pack: Pack,
    options: Options | None = None,
    redacted: bool = True,
    limit: int = 25_000_000,
) -> Bundled:
    """Writes the bundle of `paths` to `out`, at most `limit` bytes. Raises BundleError when nothing useful fits,
    or when there is nothing to pack."""
    options = options or Options()
    seen = read(paths, options=options, pack=pack)
    if not seen.store.dumps and not any(s.lines for s in seen.store.streams):
        reasons = "; ".join(f"{p.path}: {p.reason}" for p in seen.problems)
        raise BundleError(f"nothing to pack: {reasons or 'the input is empty'}")
    report = with_excerpts(judge(seen, pack, picture=True), paths)
    writer = _Writer(seen, report, discover([str(p) for p in paths])[0], redacted, limit)
    draft = out.with_name(f".{out.name}.tmp.zip")
    best: Bundled | None = None
    try:
        for level in (*_LEVELS, _SMALL):
            if best is not None and (best.same or level is _SMALL):
                break
            written = writer.write(draft, level)
            if written is None:
                continue
            again = judge(read([draft], options=options, pack=pack), pack)
            if best is None or answer(again) == answer(report):
                same = answer(again) == answer(report)
                if not same:
                    writer.write(draft, level, same=False)
                size = draft.stat().st_size
                draft.replace(out)
                names = writer.redactor.mapping()
                best = Bundled(report, same, size, written, writer.of_lines, seen.missing, names)
    finally:
        draft.unlink(missing_ok=True)
    if best is None:
        raise BundleError(f"even short excerpts of these inputs are larger than {limit:,} bytes; raise --max-size")
    return best


def answer(report: Report) -> object:
    """What must be the same in a triage of the bundle: verdict, and of each finding rule, class, ranks, confidence."""
    return report.verdict, [_answer(f) for f in report.findings]


def _answer(f: Finding) -> object:
    return f.rule, f.role, f.category, f.confidence, f.culprit.ranks, sorted(map(repr, map(_answer, f.explains)))


class _Writer:
    def __init__(self, seen: Read, report: Report, inputs: Sequence[Input], redacted: bool, limit: int) -> None:
        self._seen, self._report, self._limit, self._redacted = seen, report, limit, redacted
        self._inputs = {i.name: i for i in inputs}
        self._dumps = {path: dump for _, path, dump in seen.store.dumps}
        self.of_lines = sum(s.lines for s in seen.store.streams)
        self.redactor = Redactor(hosts_of(seen.store, seen.facts.hosts) if redacted else ())
        self._shown: Report | None = None

    def write(self, out: Path, level: _Level, *, same: bool = True) -> int | None:
        """Writes the archive and returns how many lines of logs it holds; None when it would be too large."""
        wanted = self._wanted(level)
        streams: list[tuple[StreamInfo, list[tuple[int, list[str]]]]] = []
        raw = 0
        for info in self._seen.store.streams:
            runs: list[tuple[int, list[str]]] = []
            if info.path in self._inputs and info.path not in self._dumps and info.format != "flight recorder":
                for first, lines in pick_lines(self._inputs[info.path], wanted[info.path]):
                    runs.append((first, [line.decode("utf-8", "surrogateescape") for line in lines]))
                    raw += sum(map(len, lines))
            if raw > _PACKED * self._limit:
                return None
            streams.append((info, runs))
        if self._redacted:
            for _, runs in streams:
                for _, text in runs:
                    self.redactor.learn("\n".join(text))
        self._pack(out, streams, level, same)
        if out.stat().st_size > self._limit:
            return None
        return sum(len(lines) for _, runs in streams for _, lines in runs)

    def _wanted(self, level: _Level) -> dict[str, list[tuple[int, int]]]:
        """Line ranges by input: the ends, and around every event that was kept and every line of a finding."""
        ranges: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for info in self._seen.store.streams:
            ranges[info.path] += [(1, min(level.head, info.lines)), (max(1, info.lines - level.tail + 1), info.lines)]
        for event in self._seen.store.events():
            # A traceback's place is the line of its exception, a table's that of its first row.
            before, after = max(level.before, event.lines), max(level.after, event.lines)
            ranges[event.ref.path].append((event.ref.line - before, event.ref.line + after))
        for finding in _flat(self._report.findings):
            for item in finding.evidence:
                if isinstance(item, LineEvidence):
                    ranges[item.source].append((item.line - _EVIDENCE, item.line + _EVIDENCE))
        ends = {info.path: info.lines for info in self._seen.store.streams}
        return {path: merged((a, min(b, ends[path])) for a, b in some) for path, some in ranges.items() if path in ends}

    def _pack(
        self, out: Path, streams: list[tuple[StreamInfo, list[tuple[int, list[str]]]]], level: _Level, same: bool
    ) -> None:
        table: list[BundledStream] = []
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for number, (info, runs) in enumerate(streams, 1):
                member = f"logs/{number:04d}.log"
                dump = self._dumps.get(info.path)
                if dump is None:
                    content = "\n".join(self._text("\n".join(lines)) for _, lines in runs)
                else:
                    content = msgspec.json.encode(self._plain(_dump_as_json(dump, level.entries))).decode()
                _add(archive, member, content.encode("utf-8", "surrogateescape"))
                table.append(self._described(info, member, runs, whole=dump is not None))
            problems = [(self._text(p.path), self._text(p.reason)) for p in self._seen.problems]
            manifest = Manifest("ncclscope bundle", VERSION, __version__, self._redacted, table, problems, same)
            _add(archive, MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
            shown = self._report_to_show()
            _add(archive, "report.html", html.render(shown).encode("utf-8", "replace"))
            _add(archive, "report.md", markdown.render(shown).encode("utf-8", "replace"))
            _add(archive, "report.json", to_json(without_picture(shown)).encode("utf-8", "replace"))

    def _report_to_show(self) -> Report:
        return self.redactor.report(self._report) if self._redacted else self._report

    def _described(
        self, info: StreamInfo, member: str, runs: list[tuple[int, list[str]]], *, whole: bool
    ) -> BundledStream:
        path = self._text(info.path)
        if whole and not re.search(r"(fr|trace|flight)[\w.-]*rank", path, re.IGNORECASE):
            path += ".fr_rank"  # a dump as JSON is known by its name
        hints = info.hints
        host, pod = (self._name(hints.host), self._name(hints.pod)) if self._redacted else (hints.host, hints.pod)
        return BundledStream(
            path=path,
            member=member,
            hints=replace(hints, host=host, pod=pod),
            group=self._text(info.group),
            lines=0 if whole else info.lines,
            mtime=info.mtime,
            runs=[(first, len(lines)) for first, lines in runs],
            whole=whole,
            notes=[self._text(note) for note in info.notes],
        )

    def _name(self, host: str | None) -> str | None:
        return None if host is None else self.redactor.host(host)

    def _text(self, text: str) -> str:
        return self.redactor.text(text) if self._redacted else text

    def _plain(self, value: Any) -> Any:
        return self.redactor.plain(value) if self._redacted else value


def _flat(findings: Sequence[Finding]) -> list[Finding]:
    return [g for f in findings for g in (f, *_flat(f.explains))]


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """A member with a fixed time, so that the same input makes the same file."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content)


def _dump_as_json(dump: Dump, most: int) -> dict[str, Any]:
    """The dump in PyTorch's own JSON form, the last `most` entries; an empty one stands for each that is left out."""
    entries: list[dict[str, Any]] = [{} for _ in range(dump.entries[-1].number if dump.entries else 0)]
    for e in dump.entries[-most:]:
        found = re.match(r"(.*):(\S+) (.*)", e.frame or "", re.DOTALL)
        frames = [{"filename": found[1], "line": found[2], "name": found[3]}] if found else []
        entries[e.number - 1] = {
            "process_group": [e.group, ""],
            "p2p_seq_id" if e.p2p else "collective_seq_id": e.seq,
            "is_p2p": e.p2p,
            "profiling_name": e.op,
            "input_sizes": e.sizes[0],
            "output_sizes": e.sizes[1],
            "input_dtypes": e.dtypes,
            "state": e.state,
            "frames": frames,
            "time_created_ns": e.created_ns,
        }
    groups = {name: {"desc": desc, "ranks": str(list(ranks))} for name, (desc, ranks) in dump.groups.items()}
    out = {"entries": entries, "version": dump.version, "pg_config": groups}
    return {**out, "comm_lib_version": dump.library} if dump.library else out
