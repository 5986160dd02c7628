"""A report as text for people and as JSON."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Literal

from ncclscope.arch.render import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ncclscope.preflight.model import CheckResult, Report, Status

_WORDS: dict[Status, str] = {"fail": "FAIL", "warn": "WARN", "pass": "ok", "not_checked": "--"}
_COLOURS: dict[Status, str] = {"fail": "31;1", "warn": "33", "pass": "32", "not_checked": "2"}
_WIDTH = 100
_INDENT = " " * 7

FailOn = Literal["warn", "fail"]


def as_json(report: Report, fail_on: FailOn = "fail") -> str:
    """The report as one JSON object, the results in the order of the checks."""
    record = {
        "schema_version": "1",
        "verdict": report.verdict(fail_on),
        "fail_on": fail_on,
        "host": report.host,
        "driver": report.driver,
        "gpus": list(report.gpus),
        "counts": {status: sum(r.status == status for r in report.results) for status in _WORDS},
        "checks": [result.as_dict() for result in report.results],
    }
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def as_text(report: Report, fail_on: FailOn = "fail", *, colour: bool = False) -> str:
    """Failures first, then warnings, each with what to do; then a line for what passed or was not checked."""
    lines = [_headline(report, fail_on), ""]
    for status in ("fail", "warn"):
        for result in report.results:
            if result.status == status:
                lines += [*_block(result, colour), ""]
    for status in ("pass", "not_checked"):
        lines += [_line(result, colour) for result in report.results if result.status == status]
    return "\n".join(lines).rstrip("\n") + "\n"


def _headline(report: Report, fail_on: FailOn) -> str:
    verdict = report.verdict(fail_on)
    counts = {status: sum(r.status == status for r in report.results) for status in _WORDS}
    tail = (
        f"{counts['fail']} failed, {counts['warn']} warned, {counts['pass']} passed, "
        f"{counts['not_checked']} not checked"
    )
    says = {
        "pass": "This node passes",
        "fail": "This node fails",
        "unknown": "Could not tell whether this node passes",
    }[verdict]
    return f"{says}: {tail}. Host {clean(report.host)}, {len(report.gpus)} GPU(s)."


def _block(result: CheckResult, colour: bool) -> Iterator[str]:
    tag = ", ".join((result.id, result.category, *result.rules))
    yield f"{_mark(result.status, colour)}  {result.title}  [{tag}]"
    detail = clean(" ".join(result.detail.split()))
    yield from textwrap.wrap(
        detail,
        _WIDTH,
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        # A name or command must stay in one piece to be copied.
        break_long_words=False,
        break_on_hyphens=False,
    )
    step = result.next_step
    if step is not None:
        effect = "" if step.effect == "read_only" else f"  ({step.effect.replace('_', ' ')})"
        yield f"{_INDENT}Next: {step.do}{effect}"
        yield f"{_INDENT}  $ {clean(step.command)}"


def _line(result: CheckResult, colour: bool) -> str:
    detail = clean(" ".join(result.detail.split()))
    middle = "not checked: " if result.status == "not_checked" else ""
    return f"{_mark(result.status, colour)}  {result.id}: {middle}{detail}"


def _mark(status: Status, colour: bool) -> str:
    word = f"{_WORDS[status]:>5}"
    return f"\x1b[{_COLOURS[status]}m{word}\x1b[0m" if colour else word
