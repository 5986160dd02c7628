"""`ncclscope grep`: lines of the inputs, however they are packed."""

from __future__ import annotations

import re
import sys
from itertools import islice
from typing import Annotated

import typer

from ncclscope.cli.common import complain, die, pick_stdin, write_out

__all__ = ["grep"]

# Lines that are printed together.
_AT_ONCE = 1000


def grep(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="A regular expression, as Python has them.")],
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files, directories, globs or archives; '-' is standard input.", show_default=False),
    ] = None,
    before: Annotated[int, typer.Option("-B", "--before", min=0, help="Also print N lines above each.")] = 0,
    most: Annotated[int | None, typer.Option("-m", "--most", min=1, help="Only the first N lines of an input.")] = None,
) -> None:
    """Print the lines in which PATTERN is found, with their places: in files, packed files, archives and directories.

    Exit status: 0 found, 1 not found, 2 wrong usage, 3 a path that was named could not be read.
    """
    from ncclscope.excerpts import find_lines, shown_line
    from ncclscope.reporters.safe import harmless
    from ncclscope.reporters.words import several
    from ncclscope.sources import discover, missing

    try:
        sought = re.compile(pattern.encode("utf-8", "surrogateescape"))
    except re.error as error:
        die(f"{pattern!r} is no regular expression: {error}")
    names, stdin = pick_stdin(list(paths or []))
    inputs, problems = discover(names, stdin=stdin)
    unread = complain(missing(names, inputs, problems))
    rows = (
        harmless(f"{source.name}{':' if found else '-'}{number}{':' if found else '-'}{shown_line(line)}") + "\n"
        for source in inputs
        for number, line, found in find_lines(source, sought, before=before, most=most)
    )
    any_found = False
    while text := "".join(islice(rows, _AT_ONCE)):
        any_found = True
        write_out(text, None)
    if not any_found:
        sys.stderr.write(f"ncclscope: no line of {several(len(inputs), 'input')} has it\n")
    raise typer.Exit(unread or (0 if any_found else 1))
