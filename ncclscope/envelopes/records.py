"""Lines that are JSON records of a collector: the text inside, and what the record says about it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ncclscope.clocks import Stamp, parse_iso
from ncclscope.envelopes.draft import Draft, epoch_stamp
from ncclscope.envelopes.layer import compiled

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MOST_NESTING", "RECORD_STARTS", "hides_ascii", "open_record", "open_records"]

# What a record, or a field of one printed over several lines, can begin with.
RECORD_STARTS = ("{", "[", '"', " ")
MOST_NESTING = 4

_TEXT_KEYS = ("MESSAGE", "log", "textPayload", "message", "line", "msg", "_raw")
_NESTED = ("jsonPayload", "_source", "result", "fields")
_TIME_KEYS = ("time", "timestamp", "@timestamp", "ts", "date", "_time")
_DOCKER = frozenset({"log", "stream", "time", "attrs"})
# dockerd cuts lines into records of 16 KiB; only the last of a line ends in a newline.
_DOCKER_PIECE = 16_000
_SEVERITY = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")

# ASCII that an encoder escaped without need: `\/`, `\u0027`; a byte search does not see such literals.
_HIDDEN = rb"\\/|\\u00(?:2[013-57-9a-fA-F]|3[0-9abdABDfF]|[4-6][0-9a-fA-F]|5[0-9abdefABDEF]|7[0-9a-eA-E])"
# A record that was cut, or a line of one printed over several lines.
_FIELD = r'"(log|message|MESSAGE|textPayload|line)"\s{0,8}:\s{0,8}"((?:[^"\\]|\\.)*)(")?'
_ONE_FIELD = r'\s{0,40}"(log|message|MESSAGE|textPayload)"\s{0,8}:\s{0,8}"((?:[^"\\]|\\.)*)",?\s*$'


def hides_ascii(raw: bytes) -> bool:
    """Whether a JSON line writes plain ASCII text as escapes or as an array of byte values."""
    return b"__REALTIME_TIMESTAMP" in raw or re.search(_HIDDEN, raw) is not None


def open_records(text: str, pos: int, draft: Draft) -> list[tuple[str, Draft]] | None:
    """The texts in the record (or the array of records) at `pos`, or None when it is no collector's record.

    A Draft has `partial` set when its text goes on in the next record of the stream.
    """
    if text[pos] != "{" and text[pos : pos + 2] != "[{":
        m = compiled(_ONE_FIELD).match(text, pos)
        return _lines(_unquote(m[2]), draft, "JSON field") if m else None
    try:
        value = json.loads(text[pos:] if pos else text)
    except (ValueError, RecursionError):
        m = compiled(_FIELD).search(text, pos)
        return _lines(_unquote(m[2]), draft, "JSON, cut") if m else None
    found: list[tuple[str, Draft]] = []
    for record in value if isinstance(value, list) else (value,):
        if isinstance(record, dict):
            found += open_record(record, draft)
    return found or None


def _unquote(inner: str) -> str:
    try:
        return str(json.loads(f'"{inner}"'))
    except ValueError:
        return inner


def _lines(text: str, draft: Draft, name: str) -> list[tuple[str, Draft]]:
    draft = draft.fork()
    draft.layers += (name,)
    return [(line, draft) for line in text.removesuffix("\n").split("\n")]


def open_record(record: Mapping[str, Any], draft: Draft) -> list[tuple[str, Draft]]:
    """The texts of one decoded record; none when it is no collector's."""
    events = record.get("events")
    if isinstance(events, list):  # aws logs get-log-events
        return [pair for e in events if isinstance(e, dict) for pair in open_record(e, draft)]
    inner: Mapping[str, Any] = record
    text = _text(record)
    if text is None:
        for key in _NESTED:
            nested = record.get(key)
            if isinstance(nested, dict) and (text := _text(nested)) is not None:
                inner = {**record, **nested}
                break
        else:
            return []
    draft = draft.fork()
    name = _name(record)
    if name == "docker json":
        d_time, stream = record["time"], record.get("stream")
        draft.collect(parse_iso(d_time, clock="collector") if isinstance(d_time, str) else None)
        draft.stream = stream if isinstance(stream, str) else None
    else:
        _fields(draft, inner)
    draft.partial = record.get("logtag") == "P" or (
        name == "docker json"
        and not text.endswith("\n")
        and len(text.encode("utf-8", "replace")) >= _DOCKER_PIECE
    )
    return _lines(text, draft, name)


def _text(record: Mapping[str, Any]) -> str | None:
    for key in _TEXT_KEYS:
        value = record.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and key == "MESSAGE":  # journald: not UTF-8, or with control characters
            if all(isinstance(b, int) and 0 <= b < 256 for b in value):
                return bytes(value).decode("utf-8", "replace")
            return "\n".join(str(part) for part in value)
        if isinstance(value, dict) and isinstance(value.get("message"), str):  # torchelastic's error file
            extra = value.get("extraInfo")
            stack = extra.get("py_callstack") if isinstance(extra, dict) else None
            return stack if isinstance(stack, str) else str(value["message"])
    return None


def _name(record: Mapping[str, Any]) -> str:
    if "MESSAGE" in record:
        return "journald json"
    if record.keys() <= _DOCKER and "time" in record:
        return "docker json"
    if "textPayload" in record or "jsonPayload" in record:
        return "GCP json"
    if "line" in record:
        return "Loki json"
    if "ingestionTime" in record:
        return "CloudWatch json"
    return "JSON"


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _first(*values: object) -> str | None:
    return next((v for v in values if isinstance(v, str) and v), None)


def _fields(d: Draft, record: Mapping[str, Any]) -> None:
    d.collect(_time(record))
    stream = record.get("stream")
    if stream in ("stdout", "stderr"):
        d.stream = str(stream)
    kubernetes = _dict(record.get("kubernetes"))
    labels = {**_dict(_dict(record.get("resource")).get("labels")), **_dict(record.get("labels"))}
    pod, container = kubernetes.get("pod"), kubernetes.get("container")
    d.pod = _first(
        kubernetes.get("pod_name"),
        _dict(pod).get("name"),
        labels.get("pod_name"),
        labels.get("pod"),
        record.get("podName"),
        d.pod,
    )
    d.container = _first(
        kubernetes.get("container_name"), _dict(container).get("name"), labels.get("container_name"),
        labels.get("container"), record.get("containerName"), d.container,
    )  # fmt: skip
    d.host = _first(
        record.get("_HOSTNAME"), kubernetes.get("host"), _dict(kubernetes.get("node")).get("name"),
        labels.get("node_name"), labels.get("compute.googleapis.com/resource_name"), labels.get("host"),
        record.get("nodeName"),
        record.get("hostname"), d.host,
    )  # fmt: skip
    pid = record.get("_PID")
    if isinstance(pid, str) and pid.isascii() and pid.isdigit() and len(pid) <= 10:
        d.pid = int(pid)
    app = _first(record.get("SYSLOG_IDENTIFIER"))
    if record.get("_TRANSPORT") == "kernel":
        app = "kernel"
    priority = record.get("PRIORITY")
    if app == "kernel" and isinstance(priority, str) and priority in "01234567" and priority:
        d.level = _SEVERITY[int(priority[0])]
    level = _first(record.get("levelname"), record.get("level"))
    if level:
        d.logger, d.level = "python", level
    d.logger = app or d.logger


def _time(record: Mapping[str, Any]) -> Stamp | None:
    micros = record.get("_SOURCE_REALTIME_TIMESTAMP") or record.get("__REALTIME_TIMESTAMP")
    if micros is not None:
        return epoch_stamp(micros, 1_000_000)
    for key in _TIME_KEYS:
        value = record.get(key)
        if isinstance(value, str) and (stamp := parse_iso(value, clock="collector")) is not None:
            return stamp
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 19:
            value = int(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            per_second = next(
                (p for p in (1, 1000, 1_000_000, 1_000_000_000) if value < 1e11 * p), 1_000_000_000
            )
            if (stamp := epoch_stamp(value, per_second)) is not None:
                return stamp
    return None
