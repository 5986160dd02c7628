"""`ncclscope triage`: the main job."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ncclscope.cli.common import RULES, Format, chosen_pack, die, pick_stdin, write_out

__all__ = ["triage"]


def triage(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files, directories, globs or archives; '-' is standard input.", show_default=False
        ),
    ] = None,
    format: Annotated[
        Format, typer.Option("--format", help="text for people, json as the published schema says.")
    ] = Format.TEXT,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the report to this file.")
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            help="The GPUs' architecture where the log does not show it, such as sm_120 or 'RTX 5090'."
        ),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            help="When a job that still hangs was looked at (ISO time or 'now'), to measure its silence."
        ),
    ] = None,
    rules: Annotated[list[Path] | None, RULES] = None,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit 0 also when a failure was found.")
    ] = False,
) -> None:
    """Name the root cause of a failed or hanging job, the lines that prove it, and the next check.

    Exit status: 0 no failure, 1 a failure was found, 2 wrong usage, 3 nothing readable.
    """
    from ncclscope.pipeline import Options, analyze
    from ncclscope.report import to_json

    names, stdin = pick_stdin(list(paths or []))
    progress = _progress() if sys.stderr.isatty() else None
    options = Options(gpu=_gpu(gpu), as_of=_moment(as_of), progress=progress)
    pack = chosen_pack(rules)
    try:
        report = analyze(names, stdin=stdin, options=options, pack=pack)
    finally:
        if progress is not None:
            sys.stderr.write("\r\x1b[K")
    if format is Format.JSON:
        text = to_json(report)
    else:
        from ncclscope.reporters.terminal import render

        text = render(report, to_terminal=output is None and sys.stdout.isatty())
    write_out(text, output)
    status = report.exit_status
    raise typer.Exit(0 if exit_zero and status == 1 else status)


def _gpu(text: str | None) -> str | None:
    if text is None:
        return None
    from ncclscope.knowledge.gpus import capability_of, parse_capability

    capability = parse_capability(text) or capability_of(text)
    if capability is None:
        die(
            f"--gpu {text!r}: not an architecture or a GPU name that is known; write for example sm_120 or 'RTX 5090'"
        )
    return capability.sm


def _moment(text: str | None) -> float | None:
    if text is None:
        return None
    import time

    if text == "now":
        return time.time()
    from ncclscope.clocks import parse_iso

    stamp = parse_iso(text)
    if stamp is None:
        die(f"--as-of {text!r}: not a time; write for example 2026-05-26T12:34:56Z, or now")
    return stamp.utc if stamp.utc is not None else stamp.seconds


def _progress() -> Callable[[str, int], None]:
    """A one-line meter on standard error that shows up only when reading takes a while."""
    import time

    started = time.monotonic()
    state = {"bytes": 0, "shown": started}

    def report(name: str, size: int) -> None:
        state["bytes"] += size
        now = time.monotonic()
        if now - started > 1 and now - state["shown"] > 0.2:
            state["shown"] = now
            rate = state["bytes"] / (now - started) / 1e6
            shown = "".join(c if c.isprintable() else "?" for c in name[-50:])
            sys.stderr.write(f"\r\x1b[Kreading {shown}: {state['bytes'] / 1e6:.0f} MB, {rate:.0f} MB/s")
            sys.stderr.flush()

    return report
