"""`ncclscope triage`: the main job."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncclscope.cli.common import (
    RULES,
    chosen_pack,
    complain,
    die,
    gpu_option,
    is_terminal,
    moment_option,
    pick_stdin,
    write_out,
    write_private,
)

if TYPE_CHECKING:
    from ncclscope.pipeline import Read
    from ncclscope.redact import Redactor
    from ncclscope.report import Report

__all__ = ["triage"]


class ReportFormat(str, enum.Enum):
    """What a report can be written as."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


_BY_SUFFIX = {
    ".json": ReportFormat.JSON,
    ".md": ReportFormat.MARKDOWN,
    ".markdown": ReportFormat.MARKDOWN,
    ".html": ReportFormat.HTML,
    ".htm": ReportFormat.HTML,
}


def triage(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files, directories, globs or archives; '-' is standard input.", show_default=False),
    ] = None,
    format: Annotated[
        list[ReportFormat] | None,
        typer.Option(
            "--format",
            help="text for people, json as the published schema says, markdown for a ticket, html for a browser."
            " Repeat it with -o for several files.",
            show_default="by the file's suffix, else text",
        ),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", "--output", help="Write the report to this file. Repeatable.", show_default=False),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(help="The GPUs' architecture where the log does not show it, such as sm_120 or 'RTX 5090'."),
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(help="When a job that still hangs was looked at (ISO time or 'now'), to measure its silence."),
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace hosts, addresses, users, keys and the like by pseudonyms.")
    ] = False,
    redact_map: Annotated[
        Path | None,
        typer.Option(help="Write which pseudonym stands for what to this file; implies --redact.", show_default=False),
    ] = None,
    timeline: Annotated[
        bool, typer.Option("--timeline", help="Add the timeline and the facts of the job to the JSON.")
    ] = False,
    rules: Annotated[list[Path] | None, RULES] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 also when a failure was found.")] = False,
) -> None:
    """Name the root cause of a failed or hanging job, the lines that prove it, and the next check.

    Exit status: 0 no failure, 1 a failure was found, 2 wrong usage, 3 nothing readable, or no failure in what could be
    read while a path that was named could not be.
    """
    from ncclscope.pipeline import Options, judge, read

    outputs = _outputs(format or [], output or [])
    names, stdin = pick_stdin(list(paths or []))
    progress = _progress() if sys.stderr.isatty() else None
    options = Options(gpu=gpu_option(gpu), as_of=moment_option(as_of), progress=progress)
    pack = chosen_pack(rules)
    try:
        seen = read(names, stdin=stdin, options=options, pack=pack)
    finally:
        if progress is not None:
            sys.stderr.write("\r\x1b[K")
    unread = complain(seen.missing)
    formats = {kind for kind, _ in outputs}
    report = judge(seen, pack, picture=timeline or not formats <= {ReportFormat.TEXT, ReportFormat.JSON})
    if ReportFormat.HTML in formats:
        from ncclscope.excerpts import with_excerpts

        report = with_excerpts(report, names)
    if redact or redact_map is not None:
        redactor = _redactor(seen)
        report = redactor.report(report)
        if redact_map is not None:
            import json

            write_private(json.dumps(redactor.mapping(), indent=2, ensure_ascii=False) + "\n", redact_map)
    for kind, path in outputs:
        write_out(_text(report, kind, path, timeline=timeline), path)
    status = report.exit_status or unread
    raise typer.Exit(0 if exit_zero and status == 1 else status)


def _outputs(formats: Sequence[ReportFormat], files: Sequence[Path]) -> list[tuple[ReportFormat, Path | None]]:
    """Each format with its file, in the order given; one that has none goes to standard output."""
    paths = [None if str(path) == "-" else path for path in files]
    if not formats:
        formats = [
            _BY_SUFFIX.get(path.suffix.lower(), ReportFormat.TEXT) if path else ReportFormat.TEXT for path in paths
        ]
        return list(zip(formats, paths, strict=True)) or [(ReportFormat.TEXT, None)]
    if len(paths) > len(formats):
        die(f"{len(paths)} files but {len(formats)} formats: give each -o its --format, or no --format at all")
    if len(formats) - len(paths) > 1:
        die(f"{len(formats)} formats but {len(paths)} files: only one can go to standard output, add -o FILE")
    if len({path for path in paths if path}) < len([path for path in paths if path]):
        die("two reports to one file: give each its own -o")
    return [*zip(formats, paths, strict=False), *((kind, None) for kind in formats[len(paths) :])]


def _text(report: Report, kind: ReportFormat, path: Path | None, *, timeline: bool) -> str:
    if kind is ReportFormat.JSON:
        from ncclscope.report import to_json, without_picture

        return to_json(report if timeline else without_picture(report))
    if kind is ReportFormat.MARKDOWN:
        from ncclscope.reporters import markdown

        return markdown.render(report)
    if kind is ReportFormat.HTML:
        from ncclscope.reporters import html

        return html.render(report)
    from ncclscope.reporters import terminal

    return terminal.render(report, to_terminal=path is None and is_terminal())


def _redactor(seen: Read) -> Redactor:
    from ncclscope.redact import Redactor, hosts_of

    return Redactor(hosts_of(seen.store, seen.facts.hosts))


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
