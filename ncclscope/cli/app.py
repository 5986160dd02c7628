"""Puts the commands together, importing only the one that is called."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from ncclscope.version import __version__

__all__ = ["COMMANDS", "build"]

# Command -> "module:name"; a name `app` is a group of commands.
COMMANDS = {
    "triage": "ncclscope.cli.triage:triage",
    "events": "ncclscope.cli.events:events",
    "why": "ncclscope.cli.events:why",
    "grep": "ncclscope.cli.grep:grep",
    "explain": "ncclscope.cli.explain:explain",
    "rules": "ncclscope.cli.rules:app",
    "diff": "ncclscope.cli.diff:diff",
    "arch": "ncclscope.cli.arch:arch",
    "preflight": "ncclscope.cli.preflight:preflight",
    "scan": "ncclscope.cli.scan:scan",
    "bundle": "ncclscope.cli.bundle:bundle",
    "fleet": "ncclscope.cli.fleet:fleet",
}


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ncclscope {__version__}")
        raise typer.Exit


def build(command: str | None = None) -> typer.Typer:
    """The application with all commands, or with `command` alone: start-up time is part of the product."""
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Reads the logs of a failed distributed training job and names the root cause, the proof and the next"
        " check. `kubectl logs job/train --prefix --all-containers | ncclscope` or `ncclscope logs/ dmesg.txt`.",
    )

    @app.callback()
    def root(
        version: Annotated[
            bool,
            typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop."),
        ] = False,
    ) -> None:
        del version

    for name, place in COMMANDS.items():
        if command in (None, name):
            module, _, attribute = place.partition(":")
            target = getattr(import_module(module), attribute)
            if isinstance(target, typer.Typer):
                app.add_typer(target, name=name)
            else:
                app.command(name)(target)
    return app
