"""`ncclscope bundle`: everything that a ticket needs in one file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from ncclscope.bundle import BundleError, write_bundle
from ncclscope.cli.common import RULES, chosen_pack, complain, die, gpu_option, moment_option, write_private
from ncclscope.pipeline import Options
from ncclscope.reporters import words
from ncclscope.reporters.safe import harmless

__all__ = ["bundle"]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def bundle(
    out: Annotated[Path, typer.Argument(metavar="OUT.zip", help="The file to write; it must not exist.")],
    paths: Annotated[list[str], typer.Argument(metavar="PATHS...", help="Files, directories, globs or archives.")],
    redact: Annotated[
        bool, typer.Option("--redact/--no-redact", help="Replace hosts, addresses, users, keys and the like.")
    ] = True,
    redact_map: Annotated[
        Path | None, typer.Option(help="Write which pseudonym stands for what to this file.", show_default=False)
    ] = None,
    max_size: Annotated[str, typer.Option(metavar="SIZE", help="The most that the file may have.")] = "25MB",
    gpu: Annotated[str | None, typer.Option(help="As for triage.", show_default=False)] = None,
    as_of: Annotated[str | None, typer.Option(help="As for triage.", show_default=False)] = None,
    rules: Annotated[list[Path] | None, RULES] = None,
) -> None:
    """Pack reports and excerpts of the logs for a ticket, redacted; `ncclscope OUT.zip` gives the same answer.

    Exit status: 0 written, 1 written but a triage of it gives another answer or a path that was named could not be
    read, 2 wrong usage or not written.
    """
    if out.suffix.lower() != ".zip":
        die(f"{out}: the first name is the bundle to write and ends in .zip")
    if out.exists():
        die(f"{out} exists; remove it or choose another name")
    if not out.parent.is_dir():
        die(f"cannot write {out}: {out.parent} is no directory")
    if "-" in paths:
        die("a pipe cannot be read twice: save it to a file and name that")
    if redact_map is not None and not redact:
        die("--redact-map needs redaction, and --no-redact turns it off")
    options = Options(gpu=gpu_option(gpu), as_of=moment_option(as_of))
    try:
        done = write_bundle(
            out, paths, pack=chosen_pack(rules), options=options, redacted=redact, limit=_bytes(max_size)
        )
    except (BundleError, OSError) as error:
        die(str(error))
    unread = complain(done.missing)
    if redact_map is not None:
        write_private(json.dumps(done.names, indent=2, ensure_ascii=False) + "\n", redact_map)
    state = f"redacted, {words.several(len(done.names), 'pseudonym')}" if redact else "NOT redacted"
    typer.echo(f"{words.HEADLINE[done.report.verdict]}: {harmless(words.headline(done.report))}")
    lines = f"{done.lines:,} of {words.several(done.of_lines, 'line')}"
    typer.echo(f"wrote {out}: {done.size / 1000:,.0f} kB with {lines}, {state}")
    if not done.same:
        typer.echo("a triage of the bundle gives another answer than the originals: raise --max-size", err=True)
    raise typer.Exit(1 if unread or not done.same else 0)


def _bytes(text: str) -> int:
    found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,3})?)\s*([kmg]?)i?b?\s*", text, re.IGNORECASE)
    if found is None or float(found[1]) == 0:
        die(f"--max-size {text!r}: not a size; write for example 25MB")
    return int(float(found[1]) * _UNITS[found[2].lower()])
