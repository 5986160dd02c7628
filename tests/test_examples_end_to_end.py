"""Every example line of the parsers' tables that names a cause by itself leads to that cause when it is all there is."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml
from support import shipped

from ncclscope.pipeline import Options, analyze

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "parsers"))

from launcher_rows import ROWS as LAUNCHER_ROWS  # noqa: E402
from nccl_rows import WARN_ROWS  # noqa: E402
from test_kernel import ROWS as KERNEL_ROWS  # noqa: E402


def _examples() -> list[tuple[str, str, str]]:
    """(file name, text, cause) of each example with a cause."""
    found = []
    for item in yaml.safe_load((HERE / "fixtures" / "torch" / "lines.yaml").read_text(encoding="utf-8")):
        causes = {e["cause"] for e in item["events"] if e.get("cause")}
        if len(causes) == 1 and item.get("env", {}).get("level") != "INFO":
            found.append(("job.log", item["line"], causes.pop()))
    for line, _, fields in WARN_ROWS:
        if fields.get("cause"):
            found.append(("job.log", f"[2026-01-05 10:00:03] a01:11:40 [0] enqueue.cc:77 NCCL WARN {line}", fields["cause"]))
    for line, _, verdict, _ in KERNEL_ROWS:
        if verdict and not verdict.startswith("?") and "-" in verdict:
            found.append(("a01/dmesg.txt", f"[12345.678901] {line}", verdict))
    for line, _, fields in LAUNCHER_ROWS:
        if fields.get("cause"):
            found.append(("job.log", line, fields["cause"]))
    return sorted(set(found))


def _answer(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    report = analyze([path], options=Options(), pack=shipped())
    first = report.findings[0] if report.findings else None
    return str(first.category) if first is not None and first.role == "root_cause" else report.verdict


def test_every_example_that_names_a_cause_leads_to_it(tmp_path: Path) -> None:
    examples = _examples()
    assert len(examples) > 150
    wrong = {text: (cause, got) for name, text, cause in examples if (got := _answer(tmp_path, name, text)) != cause}
    assert not wrong
