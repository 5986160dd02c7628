"""`rules docs` and `rules schema`: they write what is missing, and --check names what is not up to date."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from ncclscope.cli.app import build

if TYPE_CHECKING:
    from pathlib import Path


def cli(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(build(), ["rules", *arguments])
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("docs") / "rules"
    assert cli("docs", "--out", str(out))[0] == 0
    return out


def test_fresh_pages_pass_the_check(docs: Path) -> None:
    """Made twice, the pages of the shipped rules are the same."""
    assert cli("docs", "--check", "--out", str(docs)) == (0, "")


def test_the_check_names_changed_missing_and_stale_pages(docs: Path) -> None:
    """And changes nothing; writing mends all three."""
    changed, missing, stale = docs / "NS4101.md", docs / "NS4102.md", docs / "NS0000.md"
    changed.write_text(changed.read_text(encoding="utf-8") + "edited\n", encoding="utf-8")
    missing.unlink()
    stale.write_text("gone\n", encoding="utf-8")
    status, output = cli("docs", "--check", "--out", str(docs))
    assert status == 1
    assert output.splitlines() == [
        f"{changed} differs",
        f"{missing} is missing",
        f"{stale} is stale: no rule makes it",
        "`ncclscope rules docs` brings them up to date",
    ]
    assert stale.exists()
    assert cli("docs", "--out", str(docs))[0] == 0
    assert not stale.exists()
    assert cli("docs", "--check", "--out", str(docs))[0] == 0


def test_both_schemas_are_written_side_by_side(tmp_path: Path) -> None:
    """For editors and for programs that read reports."""
    out = tmp_path / "schema" / "rule.schema.json"
    assert cli("schema", "--check", "--out", str(out))[0] == 1
    assert cli("schema", "--out", str(out))[0] == 0
    assert cli("schema", "--check", "--out", str(out))[0] == 0
    assert json.loads(out.read_text(encoding="utf-8"))["title"] == "ncclscope rule"
    report = json.loads((out.parent / "report.schema.json").read_text(encoding="utf-8"))
    assert "Finding" in report["$defs"]
    out.write_text("{}", encoding="utf-8")
    assert cli("schema", "--check", "--out", str(out))[0] == 1
