"""How fast one log is triaged, beside `grep -cE` with the same literals, and what a run over a short log costs.

    python benchmarks/triage_speed.py [--mb 1024] [--runs 3] [--dir DIR]

Makes one log of that size (a failed run with the noise of weeks between its init and its end), then times whole
processes in turn: ncclscope on the file, ncclscope on standard input, grep with every literal, and for the short log the
bare import of the libraries. CPU seconds are of user and system; ratios are taken run by run and the median is printed.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from scan_corpus import noise

ROOT = Path(__file__).resolve().parent.parent
SHORT = ROOT / "tests" / "fixtures" / "h200" / "retagged-eager.log"
TRIAGE = [sys.executable, "-m", "ncclscope", "triage", "--exit-zero", "--format", "json"]


def literals() -> list[str]:
    """Every literal that the gate searches for."""
    from ncclscope.engine.pack import load_pack
    from ncclscope.parsers import BLOCKS, PATTERNS
    from ncclscope.pipeline import raw_patterns

    return sorted({p.literal for p in [*PATTERNS, *raw_patterns(load_pack())]} | {b.literal for b in BLOCKS})


def make_log(path: Path, megabytes: int) -> int:
    """A log of about that size; returns its bytes."""
    template = SHORT.read_text(encoding="utf-8").splitlines(keepends=True)
    cut = next(i for i, line in enumerate(template) if "NCCL WARN" in line)
    random_ = random.Random(1)  # noqa: S311
    with path.open("w", encoding="utf-8") as file:
        file.writelines(template[:cut])
        block = "\n".join(noise(random_, 20_000)) + "\n"
        for _ in range(max(1, (megabytes << 20) // len(block))):
            file.write(block)
        file.writelines(template[cut:])
    return path.stat().st_size


def timed(command: list[str], stdin: Path | None = None) -> tuple[float, float, int]:
    """(wall seconds, CPU seconds, peak memory in MiB of the largest child so far) of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    source = stdin.open("rb") if stdin else subprocess.DEVNULL
    # To a pipe: grep stops at the first match when it sees that nobody will read the count.
    subprocess.run(command, stdin=source, stdout=subprocess.PIPE, check=False)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, after.ru_maxrss // 1024


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mb", type=int, default=1024)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()))
    chosen = options.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory(dir=chosen.dir) as name:
        log, patterns = Path(name) / "job.log", Path(name) / "literals"
        size = make_log(log, chosen.mb) / 1e6
        patterns.write_text("\n".join(literals()) + "\n", encoding="ascii")
        rows: dict[str, list[tuple[float, float, int]]] = {}
        jobs = {
            "ncclscope, file": ([*TRIAGE, str(log)], None),
            "ncclscope, standard input": ([*TRIAGE, "-"], log),
            "grep -cF -f literals": (["grep", "-c", "-a", "-F", "-f", str(patterns), str(log)], None),
        }
        subprocess.run([*TRIAGE, str(SHORT)], stdout=subprocess.DEVNULL, check=False)  # the rules are prepared
        for _ in range(chosen.runs):
            for job, (command, stdin) in jobs.items():
                rows.setdefault(job, []).append(timed(command, stdin))
        for job, runs in rows.items():
            wall = statistics.median(run[0] for run in runs)
            cpu = statistics.median(run[1] for run in runs)
            print(f"{job:<28} {size:7.0f} MB  {size / wall:6.0f} MB/s wall  {size / cpu:6.0f} MB/s of CPU")
        print(f"peak memory of any of them   {max(run[2] for runs in rows.values() for run in runs)} MiB")
    ratios = []
    for _ in range(10):
        bare = timed([sys.executable, "-c", "import typer, rich, regex, yaml"])
        whole = timed([sys.executable, "-m", "ncclscope", str(SHORT)])
        ratios.append(whole[1] / bare[1])
    print(f"a run over {SHORT.name}: {statistics.median(ratios):.2f} times the CPU of importing typer, rich, regex, yaml")


if __name__ == "__main__":
    main()
