"""The command line: a thin layer on the library. Each command lives in its own module and is imported when called."""

from __future__ import annotations

import gc
import sys
from collections.abc import Container, Sequence

__all__ = ["main"]

# What a shell shows of a program that SIGPIPE ended.
_CLOSED_PIPE = 141


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point. A first word that is no command means `triage`; interrupts end with 130, a closed pipe quietly
    with 141, as other tools do."""
    # Start-up makes many objects that live to the end; looking through them for cycles again and again costs a tenth
    # of a short run.
    gc.set_threshold(1_000_000, 50, 50)
    from ncclscope.cli.app import COMMANDS, build

    args = _with_command(list(sys.argv[1:] if argv is None else argv), COMMANDS)
    command = args[0] if args and args[0] in COMMANDS else None
    try:
        build(command)(args=args, prog_name="ncclscope", standalone_mode=True)
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as stop:
        # typer makes it a 1, which would say that a failure was found.
        if isinstance(stop.__context__, BrokenPipeError):
            sys.exit(_CLOSED_PIPE)
        raise


def _with_command(args: list[str], commands: Container[str]) -> list[str]:
    """Puts `triage` in front unless the first word names a command or only help or version is asked for."""
    if args and args[0] in commands:
        return args
    if args and args[0] in ("--help", "-h", "--version", "--install-completion", "--show-completion"):
        return args
    if not args and (sys.stdin is None or sys.stdin.isatty()):
        return ["--help"]
    return ["triage", *args]
