"""Puts the real output of the example into the README; with --check only says whether it is up to date."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- example-output -->\n```console\n\$ ncclscope ([^\n]+)\n).*?(```\n<!-- end -->)", re.DOTALL)


def updated(text: str) -> str:
    """The README with the command's output as it is now."""

    def put(m: re.Match[str]) -> str:
        command = [sys.executable, "-m", "ncclscope", *m[2].split(), "--exit-zero"]
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
        return m[1] + shown.stdout + m[3]

    return BLOCK.sub(put, text)


def main() -> int:
    readme = ROOT / "README.md"
    before = readme.read_text(encoding="utf-8")
    after = updated(before)
    if "--check" in sys.argv[1:]:
        if before != after:
            print("README.md: the example's output is out of date; run tools/update_readme.py")
        return int(before != after)
    readme.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
