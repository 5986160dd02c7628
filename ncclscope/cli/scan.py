"""`ncclscope scan`: many jobs into one store."""

from __future__ import annotations

import os
import re
import sys
import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncclscope.cli.common import RULES, Format, chosen_pack, die, write_out

if TYPE_CHECKING:
    from ncclscope.scan.engines import Engine, WorkerOptions
    from ncclscope.scan.run import Summary

__all__ = ["scan"]

_AGES = {"h": 3600, "d": 86_400, "w": 604_800}


class EngineName(str, Enum):
    local = "local"
    ray = "ray"


def scan(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH|URL...",
            help="Directories, archives, or URLs such as s3://bucket/prefix (with an extra).",
            show_default=False,
        ),
    ],
    store: Annotated[
        Path, typer.Option("--store", help="The SQLite file to fill; made where there is none.", show_default=False)
    ],
    jsonl: Annotated[
        Path | None,
        typer.Option("--jsonl", help="Also write each job's report here, one line of JSON a job; - is stdout."),
    ] = None,
    job_pattern: Annotated[
        str | None,
        typer.Option(
            help="Regular expression searched in each path below PATH; its group `job` names the job,"
            " such as '(?P<job>run-[0-9]+)/'."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Look at no more than so many jobs.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Leave out jobs last written before this: 7d, 12h, or a date such as 2026-05-26.")
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="Do the Ith of N parts (from 1), for a scheduler's array.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("-j", "--workers", min=1, help="Processes; default: one a core.")
    ] = None,
    engine: Annotated[
        EngineName, typer.Option(help="Where to read: this machine, or a Ray cluster.")
    ] = EngineName.local,
    ray_address: Annotated[
        str | None, typer.Option(help="The Ray cluster: auto, HOST:PORT or ray://HOST:PORT.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(help="The GPUs' architecture where logs do not show it, such as sm_90.")
    ] = None,
    rules: Annotated[list[Path] | None, RULES] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Also read jobs again whose files did not change.")
    ] = False,
    format: Annotated[Format, typer.Option("--format", help="How to print the summary.")] = Format.TEXT,
) -> None:
    """Triage every job under the paths and keep the answers in a store for `ncclscope fleet`.

    It can be stopped and started again at any time: jobs that were read and did not change are not read again.

    Exit status: 0 done, 1 done but some jobs could not be read, 2 wrong usage or not done.
    """
    from ncclscope.errors import NcclscopeError
    from ncclscope.scan.options import ScanOptions
    from ncclscope.scan.progress import Progress
    from ncclscope.scan.run import scan as run

    if ray_address is not None and engine is not EngineName.ray:
        die("--ray-address is for --engine ray")
    pack = chosen_pack(rules)  # broken rules end the scan here, not every worker
    own = pack if pack.notes else None
    options = ScanOptions(job_pattern, limit, _moment(since), _shard(shard), refresh, _gpu(gpu), own)

    def make(worker: WorkerOptions) -> Engine:
        if engine is EngineName.ray:
            from ncclscope.scan.ray_engine import RayEngine

            return RayEngine(worker, ray_address)
        from ncclscope.scan.engines import LocalEngine

        return LocalEngine(worker, workers or _cores())

    try:
        summary = run(paths, store, make, options, jsonl=jsonl, progress=Progress() if sys.stderr.isatty() else None)
    except NcclscopeError as error:
        die(str(error))
    _print(summary, store, format, to_stderr=str(jsonl) == "-")
    raise typer.Exit(1 if summary.unread or summary.problems else 0)


def _cores() -> int:
    """The cores that this process may use, which in a batch job are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _print(summary: Summary, store: Path, format: Format, *, to_stderr: bool) -> None:
    if format is Format.JSON:
        import msgspec

        text = msgspec.json.encode(summary).decode() + "\n"
    else:
        rate = summary.bytes / 1e6 / max(summary.seconds, 0.001)
        text = (
            f"{summary.jobs} jobs, {summary.jobs - summary.read} unchanged, {summary.read} read"
            f" ({summary.bytes / 1e6:.0f} MB in {summary.seconds:.1f} s, {rate:.0f} MB/s): {summary.failing} failed"
            f", {summary.unread} could not be read in full\n"
        )
        if summary.problems:
            text += f"{summary.problems} files could not be listed: see the table problems in the store\n"
        if summary.links:
            text += f"{summary.links} links to directories were not followed: see the table problems in the store\n"
        if summary.older:
            text += f"{summary.older} unchanged jobs were read by another version: --refresh reads them again\n"
        if summary.other_rules:
            text += f"{summary.other_rules} unchanged jobs were read with other rules: --refresh reads them again\n"
        text += f"next: ncclscope fleet {store}\n"
    if to_stderr:
        sys.stderr.write(text)
    else:
        write_out(text, None)


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    m = re.fullmatch(r"(\d{1,7})/(\d{1,7})", text)
    if m is None or not 1 <= int(m[1]) <= int(m[2]):
        die(f"--shard {text!r}: write I/N with I from 1 to N, such as 3/16")
    return int(m[1]), int(m[2])


def _moment(text: str | None) -> float | None:
    """Seconds since 1970 of `7d`, `12h` or a date."""
    if text is None:
        return None
    if m := re.fullmatch(r"(\d{1,6})([hdw])", text):
        return time.time() - int(m[1]) * _AGES[m[2]]
    from ncclscope.clocks import parse_iso

    stamp = parse_iso(text) or parse_iso(f"{text} 00:00:00Z")
    if stamp is None:
        die(f"--since {text!r}: write for example 7d, 12h, 2026-05-26 or 2026-05-26T12:00:00Z")
    return stamp.utc if stamp.utc is not None else stamp.seconds


def _gpu(text: str | None) -> str | None:
    if text is None:
        return None
    from ncclscope.knowledge.gpus import capability_of, parse_capability

    capability = parse_capability(text) or capability_of(text)
    if capability is None:
        die(f"--gpu {text!r}: not an architecture or a GPU name that is known; write for example sm_120 or 'RTX 5090'")
    return capability.sm
