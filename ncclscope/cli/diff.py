"""`ncclscope diff`: what differs between a run that went well and one that did not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncclscope.cli.common import Format, die, write_out

if TYPE_CHECKING:
    from ncclscope.diff import Comparison, Difference
    from ncclscope.pipeline import Read

__all__ = ["diff"]

_MAX_VALUES = 8


def diff(
    good: Annotated[str, typer.Argument(metavar="GOOD", help="File, directory or archive of the run that went well.")],
    bad: Annotated[str, typer.Argument(metavar="BAD", help="The same of the run that did not.")],
    format: Annotated[Format, typer.Option("--format")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("-o", "--output")] = None,
) -> None:
    """What differs between two runs, by what their logs show, differences that matter first.

    Exit status: 0 no difference that matters, 1 a difference that matters, 2 wrong usage or nothing to compare.
    """
    from ncclscope.diff import compare

    result = compare(_run(good), _run(bad))
    text = _json(result, good, bad) if format is Format.JSON else _text(result, good, bad)
    write_out(text, output)
    raise typer.Exit(1 if result.matters else 0)


def _run(path: str) -> Read:
    from ncclscope.pipeline import read

    if path == "-":
        die("diff reads files, directories or archives; save standard input to a file first")
    run = read([path])
    if not run.facts.streams:
        die("; ".join(f"{p.path}: {p.reason}" for p in run.problems) or f"{path}: holds no files to read")
    if run.facts.recognised == 0:
        die(f"{path}: nothing of NCCL, PyTorch, a launcher or the kernel in it; give the log of a run")
    return run


def _json(result: Comparison, good: str, bad: str) -> str:
    import msgspec

    document = {
        "schema_version": 1,
        "good": good,
        "bad": bad,
        "matters": result.matters,
        "differences": result.differences,
        "same": result.same,
        "not_compared": result.not_compared,
    }
    return msgspec.json.format(msgspec.json.encode(document)).decode() + "\n"


def _text(result: Comparison, good: str, bad: str) -> str:
    from ncclscope.reporters.safe import harmless

    deciding = [d for d in result.differences if d.matters]
    other = [d for d in result.differences if not d.matters]
    lines = [f"good  {good}", f"bad   {bad}", ""]
    lines.append(f"{_count(len(deciding), 'difference')} that {'matters' if len(deciding) == 1 else 'matter'}")
    for difference in deciding:
        lines += _shown(difference)
    if other:
        lines += ["", f"{_count(len(other), 'other difference')}: where it ran, what it printed, how it ended"]
        for difference in other:
            lines += _shown(difference)
    if result.same:
        lines += ["", f"the same: {', '.join(result.same)}"]
    if result.not_compared:
        lines += ["", "not compared:"]
        by_reason: dict[str, list[str]] = {}
        for item in result.not_compared:
            by_reason.setdefault(item.reason, []).append(item.name)
        lines += [f"  {', '.join(names)}: {reason}" for reason, names in by_reason.items()]
    return "".join(harmless(line) + "\n" for line in lines)


def _shown(difference: Difference) -> list[str]:
    head = f"  {difference.topic}: {difference.name}"
    lines = [head + (f" ({difference.why})" if difference.why else "")]
    for side, values, places in (
        ("good", difference.good, difference.good_at),
        ("bad ", difference.bad, difference.bad_at),
    ):
        more = f", and {len(values) - _MAX_VALUES} more" if len(values) > _MAX_VALUES else ""
        at = f"  [{', '.join(places[:2])}]" if places else ""
        lines.append(f"    {side}  {', '.join(values[:_MAX_VALUES])}{more}{at}")
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
