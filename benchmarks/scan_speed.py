"""Measures `ncclscope scan` on an archive of job logs, beside `rg -z -c` with the same literals over the same files.

    python benchmarks/scan_speed.py CORPUS [--runs 5] [--workers N] [--no-rg]

CORPUS is what benchmarks/scan_corpus.py makes, or any directory of jobs. Both run on the same cores, one after the
other, `--runs` times; medians are printed, their ratio, bytes of text a second and core, and the most memory that one
process took. ripgrep must be on PATH.
"""

from __future__ import annotations

import argparse
import gzip
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ncclscope.engine.pack import load_pack
from ncclscope.parsers import BLOCKS, PATTERNS
from ncclscope.pipeline import raw_patterns


def literals() -> list[str]:
    """Everything that the gate searches for."""
    found = {p.literal for p in (*PATTERNS, *raw_patterns(load_pack()))} | {b.literal for b in BLOCKS}
    return sorted(found)


def timed(command: list[str], cores: int) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds, and the most memory in MiB that one process of the command took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    keep = (lambda: os.sched_setaffinity(0, range(cores))) if hasattr(os, "sched_setaffinity") else None
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, preexec_fn=keep)
    wall = time.perf_counter() - started
    if done.returncode not in (0, 1):
        sys.exit(f"{command[0]} failed: {done.stderr.decode(errors='replace')}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, after.ru_maxrss // (1024 if sys.platform == "linux" else 1 << 20)


def size_of(path: Path) -> int:
    """Bytes of text in a file."""
    if path.suffix != ".gz":
        return path.stat().st_size
    with gzip.open(path) as file:
        return sum(len(block) for block in iter(lambda: file.read(1 << 20), b""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-rg", action="store_true")
    a = parser.parse_args()
    rg = None if a.no_rg else shutil.which("rg")
    if rg is None and not a.no_rg:
        sys.exit("ripgrep (rg) is not on PATH: install it, or pass --no-rg")
    files = [path for path in sorted(a.corpus.rglob("*.log*")) if path.is_file()]
    text = sum(map(size_of, files))
    words = literals()
    scans: list[tuple[float, float, int]] = []
    greps: list[tuple[float, float, int]] = []
    with tempfile.TemporaryDirectory() as scratch:
        listed = Path(scratch) / "literals"
        listed.write_text("\n".join(words) + "\n")
        for run in range(a.runs):
            store = Path(scratch) / f"{run}.db"
            command = [sys.executable, "-m", "ncclscope", "scan", str(a.corpus), "--store", str(store)]
            scans.append(timed([*command, "-j", str(a.workers)], a.workers))
            if not store.is_file():
                sys.exit(f"no store was made: run {' '.join(command)} to see why")
            if rg:
                grep = [rg, "-z", "-c", "-F", "-j", str(a.workers), "-f", str(listed), "--no-config", "--no-ignore"]
                greps.append(timed([*grep, str(a.corpus)], a.workers))
    wall, cpu = (statistics.median(run[i] for run in scans) for i in (0, 1))
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{len(files)} files, {text / 1e6:.0f} MB of text, {len(words)} literals, {a.workers} workers, {a.runs} runs")
    print(
        f"scan      {wall:.2f} s wall, {cpu:.2f} s CPU: {text / 1e6 / cpu:.0f} MB/s a core, {max(s[2] for s in scans)} MiB"
    )
    if greps:
        wall_rg, cpu_rg = (statistics.median(run[i] for run in greps) for i in (0, 1))
        print(f"rg -z -c  {wall_rg:.2f} s wall, {cpu_rg:.2f} s CPU: {text / 1e6 / cpu_rg:.0f} MB/s a core")
        print(f"ratio     {wall / wall_rg:.2f} of the wall time, {cpu / cpu_rg:.2f} of the CPU time")


if __name__ == "__main__":
    main()
