"""Compares what `ncclscope arch` reads with what cuobjdump lists, and times both.

    python benchmarks/arch_vs_cuobjdump.py --cuobjdump PATH [--cuobjdump PATH] WHEEL_OR_LIBRARY...
 Installs and fetches nothing. Get the wheels with `pip download --no-deps nvidia-nccl-cu12==2.26.2` and
cuobjdump from the wheel nvidia-cuda-cuobjdump; older ones, which read files that the newest refuses, stand
inside triton wheels. With several, each file is compared with the first that reads it. A wheel is unpacked
to a temporary directory and removed again.

Prints one JSON object a file. Exit status 1 when a listing differs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

OURS = """
import json, sys
from pathlib import Path
from ncclscope.arch import read_library
code = read_library(Path(sys.argv[1]))
print(json.dumps({
    "nccl": code.nccl_version, "cuda": code.cuda_version, "sass": {a.sass: n for a, n in
    code.sass_counts.items()}, "ptx": {a.ptx: n for a, n in code.ptx_counts.items()},
}))
"""
LISTED = re.compile(r"\.sm_(\d+[af]?)\.(cubin|ptx)$", re.MULTILINE)


def run(command: list[str]) -> tuple[str, str, int, float, float]:
    """Standard output and error, exit status, seconds and peak memory in MB of one command."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return out.read(), err.read(), process.returncode, seconds, usage.ru_maxrss / 1024


def best(command: list[str], rounds: int) -> tuple[str, str, int, float, float]:
    """The fastest of some runs."""
    return min((run(command) for _ in range(rounds)), key=lambda result: result[3])


def compare(name: str, library: Path, tools: list[str], rounds: int) -> dict[str, object]:
    """One row: what each reads, whether they agree, how long and how much memory."""
    with library.open("rb") as file:  # both meet a file that is in the page cache
        while file.read(1 << 24):
            pass
    out, err, status, seconds, memory = best([sys.executable, "-c", OURS, str(library)], rounds)
    if status:
        return {"file": name, "error": err.strip().splitlines()[-1:]}
    ours = json.loads(out)
    row: dict[str, object] = {
        "file": name,
        "mb": round(library.stat().st_size / 1e6),
        **ours,
        "seconds": round(seconds, 3),
        "peak_mb": round(memory),
    }
    refusals = {}
    for tool in tools:
        listings = [best([tool, option, "-all", str(library)], rounds) for option in ("-lelf", "-lptx")]
        fatal = next((line for e in listings for line in e[1].splitlines() if "fatal" in line), None)
        version = run([tool, "--version"])[0].split("release ")[-1].split(",")[0]
        if fatal:
            refusals[version] = fatal.split(":")[-1].split(" in ")[0].strip()
            continue
        theirs: dict[str, dict[str, int]] = {"cubin": {}, "ptx": {}}
        for arch, kind in LISTED.findall(listings[0][0] + listings[1][0]):
            theirs[kind][arch] = theirs[kind].get(arch, 0) + 1
        # cuobjdump prints the family variant of machine code, 'sm_100f', without its letter.
        mine: dict[str, int] = {}
        for arch, count in ours["sass"].items():
            plain = arch[3:].rstrip("f")
            mine[plain] = mine.get(plain, 0) + count
        row |= {
            "cuobjdump": version,
            "same": mine == theirs["cubin"] and {k[8:]: v for k, v in ours["ptx"].items()} == theirs["ptx"],
            "cuobjdump_seconds": [round(e[3], 3) for e in listings],
            "times_faster": round(sum(e[3] for e in listings) / seconds, 1),
        }
        break
    return row | ({"refused": refusals} if refusals else {})


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cuobjdump", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    wrong = False
    for path in options.files:
        with tempfile.TemporaryDirectory() as folder:
            library = path
            if path.suffix == ".whl":
                with zipfile.ZipFile(path) as wheel:
                    member = next(n for n in wheel.namelist() if "/libnccl.so" in n)
                    library = Path(wheel.extract(member, folder))
            row = compare(path.name, library, options.cuobjdump, options.rounds)
        wrong = wrong or "error" in row or row.get("same") is False
        print(json.dumps(row), flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
