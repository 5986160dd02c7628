"""`ncclscope fleet`: what stores say, and putting several together."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ncclscope.cli.common import die, write_out

__all__ = ["fleet"]


class FleetFormat(str, Enum):
    text = "text"
    json = "json"
    html = "html"


def fleet(
    stores: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STORE... | merge STORE...", help="Stores that `ncclscope scan` filled.", show_default=False
        ),
    ] = None,
    format: Annotated[
        FleetFormat, typer.Option("--format", help="html is one page with charts that needs nothing else.")
    ] = FleetFormat.text,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the report, or with merge the new store, to this file.")
    ] = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the tables of a store, which are an interface, and stop.")
    ] = False,
) -> None:
    """Say what kills jobs, which nodes and GPUs come back more often than chance gives, and what nothing explains.

    `ncclscope fleet merge STORE... -o ALL` puts the stores of several machines or shards into a new one.

    Exit status: 0 done, 1 done but some jobs could not be read, 2 wrong usage.
    """
    from ncclscope.errors import NcclscopeError
    from ncclscope.scan.schema import schema_sql

    if sql:
        write_out(schema_sql(), output)
        return
    names = list(stores or [])
    try:
        if names[:1] == ["merge"]:
            _merge(names[1:], output)
        else:
            _report(names, format, output)
    except NcclscopeError as error:
        die(str(error))
    except sqlite3.DatabaseError as error:
        die(f"{', '.join(names)}: not a sound store ({error})")


def _merge(names: list[str], output: Path | None) -> None:
    from ncclscope.errors import NcclscopeError
    from ncclscope.scan.store import BESIDE, JobStore, merge

    if not names or output is None:
        die("write: ncclscope fleet merge STORE... -o ALL")
    if output.exists() or output.is_symlink():
        die(f"{output} is there already: merge makes a new store; remove it first, or name another file")
    if not output.parent.is_dir():
        die(f"cannot write {output}: there is no directory {output.parent}")
    # A store appears when it is whole.
    partial = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        with JobStore(partial, create=True) as into:
            copied = merge(into, [Path(name) for name in names])
        partial.rename(output)
    except OSError as error:
        die(f"cannot write {output}: {error.strerror or error}")
    except NcclscopeError as error:
        die(str(error).replace(str(partial), str(output)))
    finally:
        for end in ("", *BESIDE):
            with contextlib.suppress(OSError):
                Path(f"{partial}{end}").unlink(missing_ok=True)
    typer.echo(f"{copied} jobs of {len(names)} stores into {output}")


def _report(names: list[str], format: FleetFormat, output: Path | None) -> None:
    from ncclscope.fleet.query import fleet_report
    from ncclscope.scan.store import JobStore, merge

    if not names:
        die("name a store; `ncclscope scan PATH --store FILE` makes one")
    if len(names) == 1:
        with JobStore(Path(names[0])) as store:
            report = fleet_report(store.db)
    else:
        with JobStore(Path(":memory:"), create=True) as store:
            merge(store, [Path(name) for name in names])
            report = fleet_report(store.db)
    if format is FleetFormat.json:
        import msgspec

        text = msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
    elif format is FleetFormat.html:
        from ncclscope.fleet.page import render_page

        text = render_page(report, f"Fleet report: {', '.join(Path(name).name for name in names)}")
    else:
        from ncclscope.fleet.text import render

        text = render(report)
    write_out(text, output)
    raise typer.Exit(1 if report.unreadable else 0)
