"""`ncclscope preflight`: the node check for an init container, and manifests to put it there."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import typer

from ncclscope.cli.common import is_terminal, write_out
from ncclscope.preflight import identity
from ncclscope.preflight.manifests import manifest as make_manifest
from ncclscope.preflight.model import Report
from ncclscope.preflight.node import Node
from ncclscope.preflight.report import as_json, as_text
from ncclscope.preflight.run import run

_EXIT = {"pass": 0, "fail": 1, "unknown": 3}


class Format(str, Enum):
    """How the report is printed."""

    text = "text"
    json = "json"


class FailOn(str, Enum):
    """The least status that fails the gate."""

    warn = "warn"
    fail = "fail"


class Manifest(str, Enum):
    """What `--manifest` prints."""

    init_container = "init-container"
    ray_worker = "ray-worker"
    pytorchjob = "pytorchjob"
    dockerfile_gate = "dockerfile-gate"
    github_action = "github-action"


def preflight(
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="FILE", help="After the checks, note GPUs, driver and library here."),
    ] = None,
    verify: Annotated[
        Path | None, typer.Option("--verify", metavar="FILE", help="Only compare with what --write noted.")
    ] = None,
    format_: Annotated[Format, typer.Option("--format", help="How to print the report.")] = Format.text,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Print into a file.")
    ] = None,
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="The least status that fails.")] = FailOn.fail,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ID", help="Run this check; may be repeated.")
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option("--skip", metavar="ID", help="Leave it out; may be repeated.")
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=1, help="Limit for all checks.")
    ] = 30.0,
    manifest: Annotated[
        Manifest | None,
        typer.Option("--manifest", help="Print a manifest with the gate instead of checking."),
    ] = None,
    image: Annotated[
        str | None, typer.Option("--image", metavar="IMAGE", help="The training image of the manifest.")
    ] = None,
) -> None:
    """Check whether NCCL can run on this node, before the job starts.

    Exit status: 0 pass, 1 a check failed, 2 wrong usage, 3 could not tell (no GPU or no NCCL to be seen).
    """
    if manifest is not None:
        _print_manifest(manifest, image, output)
        return
    if image is not None:
        raise typer.BadParameter("--image goes with --manifest")
    if write is not None and verify is not None:
        raise typer.BadParameter("--write and --verify are for two containers; give one")
    node = Node()
    level: Literal["warn", "fail"] = "warn" if fail_on is FailOn.warn else "fail"
    try:
        report = (
            _compared(node, verify)
            if verify
            else run(node, only=only or (), skip=skip or (), seconds=timeout)
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    except identity.IdentityError as error:
        typer.echo(f"ncclscope preflight: {error}", err=True)
        raise typer.Exit(3) from error
    write_out(
        as_json(report, level) if format_ is Format.json else as_text(report, level, colour=_colour(output)),
        output,
    )
    if write is not None:
        _note(node, write)
    raise typer.Exit(_EXIT[report.verdict(level)])


def _print_manifest(manifest: Manifest, image: str | None, output: Path | None) -> None:
    if image is None:
        raise typer.BadParameter("--manifest needs --image, the training image")
    try:
        text = make_manifest(manifest.value, image)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    write_out(text, output)


def _compared(node: Node, path: Path) -> Report:
    written = identity.read(path)
    now = identity.of(node)
    return Report(
        host=now.host,
        gpus=tuple(gpu.label for gpu in node.gpus().gpus),
        driver=now.driver,
        results=(identity.compare(written, now),),
    )


def _note(node: Node, path: Path) -> None:
    if not node.gpus().gpus:
        typer.echo(f"ncclscope preflight: no GPU is visible, so {path} was not written", err=True)
        return
    try:
        identity.write(identity.of(node), path)
    except identity.IdentityError as error:
        typer.echo(f"ncclscope preflight: {error}", err=True)
        raise typer.Exit(2) from error


def _colour(output: Path | None) -> bool:
    return output is None and is_terminal() and not os.environ.get("NO_COLOR")
