"""Memory does not grow with the input."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MIB = 1024 * 1024
LIMIT_MIB = 200
# What is measured runs in a process of its own. ru_maxrss starts at the parent's size after fork and exec on Linux, so
# the kernel's own mark of this address space is taken where there is one.
MEASURE = """
import resource, sys
from pathlib import Path
from ncclscope.pipeline import analyze
report = analyze(sys.argv[1:])
status = Path("/proc/self/status")
if status.exists():
    peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(report.verdict, report.inputs[0].bytes, peak // 1024)
"""


def healthy_steps() -> Iterator[bytes]:
    """A long healthy run: start-up once, then steps."""
    yield case("healthy-lazy").paths[0].read_bytes()
    for i in itertools.count():
        yield b"2026-11-30 19:41:%02d,%03d INFO train: step %d loss 0.5\n" % (i % 60, i % 1000, i)


def failing_all_over() -> Iterator[bytes]:
    """Every line is an event that no other line repeats: another rank, number and time."""
    for i in itertools.count():
        rank = i % 4096
        yield (
            b"[rank%d]:[E1130 19:42:%02d.%06d000 ProcessGroupNCCL.cpp:689] [Rank %d] Watchdog caught collective "
            b"operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=%d, NumelOut=%d, Timeout(ms)=20000) "
            b"ran for 20083 milliseconds before timing out.\n"
        ) % (rank, i % 60, i % 1000000, rank, i, i, i)


def endless_line() -> Iterator[bytes]:
    """A progress bar that never ends its line."""
    yield b"[rank0]: hello\n"
    for i in itertools.count():
        yield b"\r[rank0]: 12%%|####      | %d/1000000 [00:10<01:13, 12.0it/s]" % i


def no_line_at_all() -> Iterator[bytes]:
    """Text without any end of a line."""
    yield b"[rank0]: hello\n"
    while True:
        yield b"x" * 4096


@pytest.mark.parametrize(
    ("make", "size"),
    [(healthy_steps, 64), (endless_line, 64), (no_line_at_all, 64), (failing_all_over, 12)],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_large_log_is_never_held(make: Callable[[], Iterator[bytes]], size: int, tmp_path: Path) -> None:
    """Not its lines, not its events, not a line without an end: under 200 MiB, libraries and all."""
    path, written = tmp_path / "job.log", 0
    with path.open("wb") as file:
        for line in make():
            written += file.write(line)
            if written > size * MIB:
                break
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    path.unlink()
    verdict, read, peak = done.stdout.split()
    assert int(read) == written
    assert verdict != "unreadable"
    assert int(peak) < LIMIT_MIB
