"""What the size of the rule pack costs: a triage with few rules beside one with all, in turn, on the same logs.

    python benchmarks/pack_cost.py [--few 30] [--mb 512] [--runs 7]

Both run as whole processes over one long log and one short one. Ratios are of CPU seconds (user and system), taken run
by run, and the median is printed; memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from triage_speed import SHORT, make_log

from ncclscope.engine.pack import shipped_rules

RUN = """\
import resource, sys, time
from pathlib import Path
from ncclscope.engine.pack import load_pack
from ncclscope.pipeline import analyze
analyze([sys.argv[2]], pack=load_pack(Path(sys.argv[1])))
own = resource.getrusage(resource.RUSAGE_SELF)
print(own.ru_utime + own.ru_stime, own.ru_maxrss)
"""


def few_rules(target: Path, count: int) -> None:
    """Copies `count` rules, taken evenly from all, so that every area has some."""
    files = sorted(shipped_rules().rglob("*.yml"))
    for file in files[:: max(1, len(files) // count)][:count]:
        shutil.copy(file, target / file.name)


def timed(rules: Path, log: Path) -> tuple[float, int]:
    """CPU seconds and peak memory in KiB."""
    done = subprocess.run([sys.executable, "-c", RUN, str(rules), str(log)], check=True, capture_output=True, text=True)
    cpu, memory = done.stdout.split()
    return float(cpu), int(memory)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--few", type=int, default=30)
    options.add_argument("--mb", type=int, default=512)
    options.add_argument("--runs", type=int, default=7)
    chosen = options.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as name:
        few, long = Path(name) / "rules", Path(name) / "job.log"
        few.mkdir()
        few_rules(few, chosen.few)
        make_log(long, chosen.mb)
        packs = (few, shipped_rules())
        print(f"{len(list(few.iterdir()))} rules beside {len(list(shipped_rules().rglob('*.yml')))}, {chosen.runs} runs")
        for log in (long, SHORT):
            for pack in packs:
                timed(pack, log)  # the rules are prepared, the log is in memory
            pairs = [tuple(timed(pack, log) for pack in packs) for _ in range(chosen.runs)]
            ratio = statistics.median(full[0] / part[0] for part, full in pairs)
            part, full = (statistics.median(pair[i][0] for pair in pairs) for i in (0, 1))
            memory = [max(pair[i][1] for pair in pairs) / 1024 for i in (0, 1)]
            size = log.stat().st_size / 1e6
            print(f"{size:8.1f} MB  {part:.2f} s and {full:.2f} s of CPU, ratio {ratio:.2f}; {memory[0]:.0f} and {memory[1]:.0f} MiB")


if __name__ == "__main__":
    main()
