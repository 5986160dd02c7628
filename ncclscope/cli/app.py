"""Puts the commands together."""

from __future__ import annotations

from typing import Annotated

import typer

from ncclscope import __version__

__all__ = ["build"]


def _version(value: bool) -> None:
    if value:
        typer.echo(f"ncclscope {__version__}")
        raise typer.Exit


def build() -> typer.Typer:
    """The whole application."""
    from ncclscope.cli.arch import arch
    from ncclscope.cli.events import events, why
    from ncclscope.cli.explain import explain
    from ncclscope.cli.preflight import preflight
    from ncclscope.cli.rules import app as rules
    from ncclscope.cli.triage import triage

    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Reads the logs of a failed distributed training job and names the root cause, the proof and the next check."
        " `kubectl logs job/train --prefix --all-containers | ncclscope` or `ncclscope logs/ dmesg.txt`.",
    )

    @app.callback()
    def root(
        version: Annotated[
            bool,
            typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop."),
        ] = False,
    ) -> None:
        del version

    app.command()(triage)
    app.command()(arch)
    app.command()(preflight)
    app.command()(explain)
    app.command()(events)
    app.command()(why)
    app.add_typer(rules, name="rules")
    return app
