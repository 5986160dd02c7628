"""`ncclscope arch`: which GPUs the machine code in a library covers, and a gate on it."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ncclscope.arch import (
    ArchError,
    Gpu,
    LocatedLibrary,
    NoGpuInfoError,
    find_nccl,
    gpus_here,
    judge,
    read_library,
)
from ncclscope.arch.render import FileReport, Report, to_github, to_json, to_text
from ncclscope.cli.common import is_terminal, write_out
from ncclscope.knowledge.gpus import parse_capability

_EXIT = {"pass": 0, "fail": 1, "unknown": 3}
_USAGE, _UNKNOWN = 2, 3


class OutputFormat(str, Enum):
    text = "text"
    json = "json"
    github = "github"


def arch(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Libraries to read. Without any: the NCCL that this Python's PyTorch loads.",
        ),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root", metavar="DIR", help="Look for NCCL in the unpacked image in DIR instead of this system."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="GPU architectures to judge for, such as sm_90,sm_120, or auto: the GPUs of this machine.",
        ),
    ] = None,
    allow_jit: Annotated[
        bool,
        typer.Option(
            "--allow-jit", help="Accept code that the driver must first compile, which can take minutes."
        ),
    ] = False,
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="How to print.")
    ] = OutputFormat.text,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to FILE instead of standard output."),
    ] = None,
) -> None:
    """Show which GPUs a library's machine code covers; needs no GPU and no CUDA.

    Exit status: 0 every target is native (or no target is asked for), 1 a target fails, 2 wrong usage,
    3 something could not be read or judged.
    """
    if files and root is not None:
        _stop("give either files or --root, not both", _USAGE)
    if root is not None and not root.is_dir():
        _stop(f"--root {root}: no such directory", _USAGE)
    gpus, targets = _targets(target)
    located = [LocatedLibrary(path, "") for path in files] if files else find_nccl(root)
    loaded = [library for library in located if library.loaded]
    if not loaded:
        where = (
            f"in {root}"
            if root
            else "by this Python's PyTorch, in LD_LIBRARY_PATH, as a wheel or in the system's directories"
        )
        _stop(f"no NCCL found {where}; name the file: ncclscope arch /path/to/libnccl.so.2", _UNKNOWN)
    report = Report(
        tuple(_read(library, targets, allow_jit=allow_jit) for library in loaded),
        gpus,
        tuple(library for library in located if not library.loaded),
    )
    _print(report, output_format, output)
    raise typer.Exit(_EXIT[report.outcome])


def _targets(text: str | None) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    """GPUs of this machine if asked for, and the targets without repetition, in the order given."""
    if text is None:
        return (), ()
    gpus: tuple[Gpu, ...] = ()
    targets: list[str] = []
    for name in (part.strip() for part in text.split(",")):
        capability = parse_capability(name)
        if name == "auto":
            try:
                gpus = tuple(gpus_here())
            except NoGpuInfoError as error:
                _stop(f"--target auto: {error}, or name the GPU: --target sm_90", _UNKNOWN)
            if not gpus:
                _stop("--target auto: the driver says that there is no GPU here", _UNKNOWN)
            if unclear := [gpu.name for gpu in gpus if gpu.capability is None]:
                _stop(
                    f"--target auto: {unclear[0]} is not in the table of GPUs; name it, as in sm_90",
                    _UNKNOWN,
                )
            targets += [gpu.capability.sm for gpu in gpus if gpu.capability]
        elif capability is None:
            _stop(f"--target {name!r} is no GPU architecture: write sm_90, 9.0 or auto", _USAGE)
        else:
            targets.append(capability.sm)
    return gpus, tuple(dict.fromkeys(targets))


def _read(library: LocatedLibrary, targets: tuple[str, ...], *, allow_jit: bool) -> FileReport:
    try:
        code = read_library(library.path)
    except ArchError as error:
        return FileReport(str(library.path), library.how, library.static, None, error.reason, ())
    judgements = tuple(judge(code, name, allow_jit=allow_jit) for name in targets)
    return FileReport(str(library.path), library.how, library.static, code, "", judgements)


def _print(report: Report, output_format: OutputFormat, output: Path | None) -> None:
    if output_format is OutputFormat.json:
        text = to_json(report)
    elif output_format is OutputFormat.github:
        text = to_github(report)
    elif output is None and is_terminal() and not os.environ.get("NO_COLOR"):
        text = to_text(report, _style)
    else:
        text = to_text(report)
    write_out(text, output)


def _style(text: str, colour: str) -> str:
    return typer.style(text, bold=True) if colour == "bold" else typer.style(text, fg=colour, bold=True)


def _stop(message: str, status: int) -> NoReturn:
    typer.echo(f"ncclscope arch: {message}", err=True)
    raise typer.Exit(status)
