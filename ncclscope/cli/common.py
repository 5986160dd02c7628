"""What several commands share: formats, output files, inputs and their errors."""

from __future__ import annotations

import contextlib
import enum
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import typer

if TYPE_CHECKING:
    from ncclscope.engine.pack import Pack
    from ncclscope.sources import SourceProblem

__all__ = [
    "RULES",
    "UNREADABLE",
    "Format",
    "chosen_pack",
    "complain",
    "die",
    "gpu_option",
    "is_terminal",
    "moment_option",
    "pick_stdin",
    "write_out",
    "write_private",
]

UNREADABLE = 3

RULES: Any = typer.Option(
    "--rules",
    metavar="DIR",
    help="Directory of rules to add; one with a shipped rule's id replaces it. Repeatable.",
    show_default=False,
)


class Format(str, enum.Enum):
    """Output formats of commands that print a result."""

    TEXT = "text"
    JSON = "json"


def die(message: str, status: int = 2) -> NoReturn:
    """Prints an error and ends with `status` (2: wrong usage)."""
    from ncclscope.reporters.safe import harmless

    sys.stderr.write("\n".join(map(harmless, f"ncclscope: {message}".split("\n"))) + "\n")
    raise SystemExit(status)


def complain(missing: Sequence[SourceProblem]) -> int:
    """Names on standard error what was asked for and could not be read, and returns the exit status that goes with it.

    The other inputs still have their answer.
    """
    if not missing:
        return 0
    from ncclscope.reporters.safe import harmless

    for problem in missing:
        sys.stderr.write(f"ncclscope: {harmless(problem.path)}: {problem.reason}\n")
    return UNREADABLE


def chosen_pack(directories: Sequence[Path] | None) -> Pack:
    """The rules to use: shipped, configured, and of these directories. Ends with status 2 when they are broken."""
    from ncclscope.config import user_pack
    from ncclscope.engine.pack import PackError

    try:
        return user_pack(directories or ())
    except PackError as error:
        die(str(error))


def pick_stdin(paths: list[str]) -> tuple[list[str], BinaryIO | None]:
    """The paths and the standard input to read, if any: with `-`, or without paths when something is piped in.

    A standard input that is neither a terminal nor ever closed (cron) is never waited for when files are named.
    """
    if "-" in paths and sys.stdin is not None:
        return paths, sys.stdin.buffer
    if paths and "-" not in paths:
        return paths, None
    if sys.stdin is None or sys.stdin.isatty():
        die("no input: name files or directories, or pipe a log in (`kubectl logs ... | ncclscope`)")
    return ["-"], sys.stdin.buffer


def is_terminal() -> bool:
    """Whether standard output is one; a closed one is none."""
    return sys.stdout is not None and sys.stdout.isatty()


def write_out(text: str, output: Path | None) -> None:
    """To standard output, or to `output` as a whole or not at all."""
    if output is None:
        _print(text)
        return
    temporary = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        if output.is_symlink() or (output.exists() and not output.is_file()):
            # A rename would put a file in the place of /dev/null, /dev/stdout or a pipe.
            output.write_text(text, encoding="utf-8")
            return
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(output)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        die(f"cannot write {output}: {error.strerror or error}")


def _print(text: str) -> None:
    """To standard output in whatever encoding it has; a full disk is a named error, a closed pipe the caller's."""
    if sys.stdout is None:
        die("cannot write to standard output: it is closed; use -o FILE")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # Python would fail again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        die(f"cannot write to standard output: {error.strerror or error}")


def gpu_option(text: str | None) -> str | None:
    """The architecture that `--gpu` names."""
    if text is None:
        return None
    from ncclscope.knowledge.gpus import capability_of, parse_capability

    capability = parse_capability(text) or capability_of(text)
    if capability is None:
        die(f"--gpu {text!r}: not an architecture or a GPU name that is known; write for example sm_120 or 'RTX 5090'")
    return capability.sm


def moment_option(text: str | None) -> float | None:
    """The moment that `--as-of` names, in seconds since 1970."""
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


def write_private(text: str, output: Path) -> None:
    """To a file that only its owner can read."""
    try:
        output.touch(mode=0o600)
        if output.is_file():  # not /dev/null, which is everybody's
            output.chmod(0o600)
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        die(f"cannot write {output}: {error.strerror or error}")
