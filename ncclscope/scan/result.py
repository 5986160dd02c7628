"""What a scan keeps of one job: the report, and the rows that questions over many jobs need."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

import msgspec

from ncclscope.clocks import Stamp, format_stamp
from ncclscope.facts import Facts
from ncclscope.model import Event
from ncclscope.report import UNSET, Finding, InputInfo, LineEvidence, Report
from ncclscope.scan.jobs import Job
from ncclscope.store import EventStore
from ncclscope.version import __version__

__all__ = ["InputRow", "JobResult", "failed_result", "lost_result", "make_result"]

Value = str | int | float | None
Row = tuple[Value, ...]

_MOST_EVIDENCE = 8
_MOST_TEXT = 400
_MOST_UNEXPLAINED = 20
_BAD = frozenset({"cause", "symptom"})  # consequences echo what another rank did
# What a line of an unknown program says when something went wrong; asked only of the ends of jobs without a cause.
_LOOKS_BAD = re.compile(r"(?i)\b(?:error|exception|fatal|failed|failure|abort(?:ed)?|panic|core dumped|segfault)\b")


# Notes of an input that hold back a part of it, as opposed to those that say what it is (UTF-16, NUL bytes).
_NOT_IN_FULL = re.compile(
    r"(?:^|; )(?:(?:truncated|damaged) |reading stopped: |only the first )"
    r"|(?:^|; )not a readable flight-recorder dump|come other bytes, which were left out|in a stream was left out"
)
# Files in archives that are no logs: nothing is wrong with them.
_PASSED_OVER = "passed over "


class InputRow(msgspec.Struct):
    """One input: path under the root, size as stored, hash of the stored bytes (XXH3, 128 bits)."""

    path: str
    size: int | None = None
    mtime: float | None = None
    hash: str | None = None


class JobResult(msgspec.Struct):
    """One job's answer. `job` holds the columns of the table jobs by name, `rows` those of the other tables without
    the job's id, which is the first column of each. lost: why the place that its files lie in could not be asked; such
    a job has no answer and is not stored, so that the next scan reads it."""

    id: int
    name: str
    job: dict[str, Value]
    report: bytes
    rows: dict[str, list[Row]]
    stored_bytes: int = 0
    lost: str = ""


def failed_result(job: Job, reason: str, *, again: bool = False) -> JobResult:
    """For a job that could not be read at all: recorded, so that the scan goes on. again: the next scan tries anew."""
    report = Report("1", "unreadable", [], unknowns=[reason], tool_version=__version__)
    row: dict[str, Value] = {**_own(job), "verdict": "unreadable", "problem": reason[:_MOST_TEXT]}
    if again:
        row["fingerprint"] = ""
    inputs: list[Row] = [(f.path, f.size, f.mtime, None, 0, 0, 0, None, reason[:_MOST_TEXT]) for f in job.files]
    return JobResult(job.id, job.name, row, msgspec.json.encode(report), {"inputs": inputs}, job.size)


def lost_result(job: Job, reason: str) -> JobResult:
    """For a job whose files lie in a place that stopped answering."""
    return JobResult(job.id, job.name, {}, b"", {}, lost=reason)


def make_result(job: Job, report: Report, facts: Facts, store: EventStore, inputs: dict[str, InputRow]) -> JobResult:
    """The rows of a job. inputs: by the name that the report gives them."""
    first, last, wall = _span(facts)
    top = report.findings[0] if report.findings else None
    unread = [i for i in report.inputs if _is_unread(i)]
    if not unread and report.verdict == "unreadable":  # nothing but files that are no logs
        unread = [i for i in report.inputs if i.format == "unreadable"]
    nothing = "nothing in it is known from distributed jobs" if report.verdict == "unreadable" else None
    row: dict[str, Value] = {
        **_own(job),
        "verdict": report.verdict,
        "category": _text(top.category) if top else None,
        "rule": top.rule if top else None,
        "confidence": top.confidence if top else None,
        "title": top.title[:_MOST_TEXT] if top else None,
        "phase": top.phase if top else None,
        "ranks": report.ranks.expected if isinstance(report.ranks.expected, int) else len(report.ranks.seen) or None,
        "hosts": len(facts.hosts) or None,
        "first_time": _shown(first),
        "last_time": _shown(last),
        "day": _day(last, job.mtime),
        "wall_s": wall,
        "bytes": sum(i.bytes for i in report.inputs),
        "lines": sum(i.lines for i in report.inputs),
        "events": sum(i.events for i in report.inputs),
        "problem": "; ".join(f"{i.path}: {i.note}" for i in unread)[:_MOST_TEXT] or nothing,
    }
    gpus = _Gpus(facts, store)
    rows: dict[str, list[Row]] = {
        "findings": [], "culprits": [], "evidence": [], "unexplained": [], "hosts": [(h,) for h in facts.hosts],
        "versions": [(what, v) for what, values in sorted(facts.versions.items()) for v in values],
        "xids": gpus.xids(), "inputs": _input_rows(report, inputs),
    }  # fmt: skip
    path_of = {name: entry.path for name, entry in inputs.items()}
    used: set[tuple[str, int]] = set()
    for place, (finding, parent) in enumerate(_flat(report.findings)):
        rows["findings"].append(
            (place, parent, finding.rule, finding.role, _text(finding.category), finding.confidence,
             finding.title[:_MOST_TEXT], finding.phase)
        )  # fmt: skip
        rows["culprits"] += [(place, *culprit) for culprit in gpus.culprits(finding)]
        for number, proof in enumerate(finding.evidence):
            if isinstance(proof, LineEvidence):
                used.add((proof.source, proof.line))
            if number < _MOST_EVIDENCE:
                rows["evidence"].append((place, number, *_evidence(proof, path_of)))
    for event, count in _unexplained(store, facts, used, report.verdict):
        source = path_of.get(event.ref.path, event.ref.path)
        rows["unexplained"].append((event.kind, source, event.ref.line, count, event.text.strip()[:_MOST_TEXT]))
    return JobResult(job.id, job.name, row, msgspec.json.encode(report), rows, job.size)


def _is_unread(info: InputInfo) -> bool:
    note = info.note if info.note is not UNSET else ""
    if info.format == "unreadable":
        return not note.startswith(_PASSED_OVER)
    return bool(_NOT_IN_FULL.search(note))


def _own(job: Job) -> dict[str, Value]:
    return {
        "root": job.root.identity,
        "fingerprint": job.fingerprint,
        "stored_bytes": job.size,
        "tool_version": __version__,
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _flat(findings: Sequence[Finding]) -> Iterator[tuple[Finding, int | None]]:
    """Findings and the consequences folded in them, with the place of the one above; places count from 0."""
    number = -1
    pending: list[tuple[Finding, int | None]] = [(f, None) for f in reversed(findings)]
    while pending:
        finding, parent = pending.pop()
        number += 1
        yield finding, parent
        pending += [(f, number) for f in reversed(finding.explains)]


def _evidence(proof: object, path_of: dict[str, str]) -> Row:
    if isinstance(proof, LineEvidence):
        source = path_of.get(proof.source, proof.source)
        return "line", source, proof.line, proof.count, _text(proof.time), proof.text[:_MOST_TEXT]
    expected, result = getattr(proof, "expected", ""), getattr(proof, "result", "")
    return "absence", None, None, 1, None, f"{expected}: {result}"[:_MOST_TEXT]


def _input_rows(report: Report, inputs: dict[str, InputRow]) -> list[Row]:
    rows: list[Row] = []
    for info in report.inputs:
        own = inputs.get(info.path) or InputRow(info.path)
        note = info.note if info.note is not UNSET else None
        rows.append(
            (own.path, own.size, own.mtime, own.hash, info.bytes, info.lines, info.events, info.format, _text(note))
        )  # fmt: skip
    return rows


def _span(facts: Facts) -> tuple[Stamp | None, Stamp | None, float | None]:
    """First and last time of the ranks' and launchers' streams, and seconds between them; one clock is assumed."""
    streams = {s.path: s for s in facts.streams if not s.hints.kernel}
    firsts = [s.first_time for s in streams.values() if s.first_time and _dated(s.first_time)]
    lasts = [s.last_time for s in streams.values() if s.last_time and _dated(s.last_time)]
    lasts += [o.time for o in facts.observations if o.time and _dated(o.time) and o.source in streams]
    first = min(firsts, key=lambda s: s.seconds, default=None)
    last = max(lasts, key=lambda s: s.seconds, default=None)
    if first is None or last is None or first.zone != last.zone or last.seconds < first.seconds:
        return first, last, None
    return first, last, round(last.seconds - first.seconds, 3)


def _dated(stamp: Stamp) -> bool:
    return stamp.year_known and stamp.clock != "boot"


def _shown(stamp: Stamp | None) -> str | None:
    shown = format_stamp(stamp) if stamp else None
    return shown[0] if shown else None


def _day(last: Stamp | None, mtime: float | None) -> str | None:
    """The day of the last line as printed, else that of the newest file in UTC."""
    seconds = last.seconds if last is not None else mtime
    return None if seconds is None else time.strftime("%Y-%m-%d", time.gmtime(seconds))


def _unexplained(store: EventStore, facts: Facts, used: set[tuple[str, int]], verdict: str) -> list[tuple[Event, int]]:
    """Lines that tell of trouble and that no finding rests on."""
    found: list[tuple[Event, int]] = []
    groups = [(g, any((e.ref.path, e.ref.line) in used for e in (*g.first, *g.last))) for g in store.groups()]
    explained = {g.first[0].kind for g, cited in groups if cited} - {"nccl.warn"}
    for group, cited in groups:
        event = group.first[0]
        bad = event.kind == "nccl.warn" or event.get("nature") in _BAD
        if bad and not cited and event.kind not in explained:
            found.append((event, group.count))
    if verdict in ("symptom_only", "unreadable"):
        known = used | {(e.ref.path, e.ref.line) for e, _ in found}
        for stream in facts.streams:
            found += [
                (Event("line", {}, line.env, line.ref, line.text), 1)
                for line in stream.tail
                if _LOOKS_BAD.search(line.text) and (line.ref.path, line.ref.line) not in known
            ]
    return found[:_MOST_UNEXPLAINED]


class _Gpus:
    """Who is who in one job: ranks to hosts and GPUs, and GPUs to what is printed on them."""

    def __init__(self, facts: Facts, store: EventStore) -> None:
        self._facts = facts
        self._host: dict[int, str] = {}
        self._gpu: dict[int, str] = {}
        self._uuid: dict[tuple[str | None, str], str] = {}
        self._serial: dict[tuple[str | None, str], str] = {}
        host_of: dict[str, str] = {}
        for seen in facts.observations:
            if len(seen.ranks) == 1 and len(seen.hosts) == 1:
                self._host.setdefault(seen.ranks[0], seen.hosts[0])
            if len(seen.ranks) == 1 and len(seen.gpus) == 1:
                self._gpu.setdefault(seen.ranks[0], seen.gpus[0])
            if seen.source and len(seen.hosts) == 1:
                host_of.setdefault(seen.source, seen.hosts[0])
        last: tuple[str | None, str] | None = None
        for event in store.events("kernel.gpu_uuid", "kernel.gpu_serial"):
            host = event.env.host or host_of.get(event.ref.path)
            gpu, uuid, serial = event.get("gpu"), event.get("uuid"), event.get("serial")
            if isinstance(gpu, str):
                last = host, gpu
            if last is not None and isinstance(uuid, str):
                self._uuid[last] = uuid
            if last is not None and last[0] == host and isinstance(serial, str):  # the driver prints it right after
                self._serial[last] = serial

    def culprits(self, finding: Finding) -> list[Row]:
        """(rank, host, PCI address, GPU UUID, serial, pid), one a culprit, with what is not known left out."""
        who = finding.culprit
        host = who.hosts[0] if len(who.hosts) == 1 else None
        gpu = who.gpus[0] if len(who.gpus) == 1 else None
        pid = who.pids[0] if len(who.pids) == 1 and len(who.ranks) <= 1 else None
        own = gpu if len(who.ranks) == 1 else None
        rows = [self._row(r, self._host.get(r, host), self._gpu.get(r, own), pid) for r in who.ranks]
        rows += [self._row(None, host, g, None) for g in who.gpus if g not in {row[2] for row in rows}]
        rows += [self._row(None, h, None, None) for h in who.hosts if h not in {row[1] for row in rows}]
        if not rows and pid is not None:
            rows.append(self._row(None, None, None, pid))
        return rows

    def _row(self, rank: int | None, host: str | None, gpu: str | None, pid: int | None) -> Row:
        key = (host, gpu or "")
        return rank, host, gpu, self._uuid.get(key), self._serial.get(key), pid

    def xids(self) -> list[Row]:
        """(host, PCI address, UUID, serial, Xid, how often)."""
        counts: dict[tuple[str | None, str | None, int], int] = {}
        for seen in self._facts.observations:
            number = seen.fields.get("xid")
            if seen.kind == "kernel.xid" and isinstance(number, int):
                gpu = seen.fields.get("gpu")
                key = seen.hosts[0] if len(seen.hosts) == 1 else None, gpu if isinstance(gpu, str) else None, number
                counts[key] = counts.get(key, 0) + seen.count
        return [
            (host, gpu, self._uuid.get((host, gpu or "")), self._serial.get((host, gpu or "")), number, count)
            for (host, gpu, number), count in sorted(counts.items(), key=lambda item: str(item[0]))
        ]
