"""Several reports out of one run: which format goes where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import case

from ncclscope.cli import main

PATHS = [str(p) for p in case("sigkill").paths]


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["triage", *PATHS, *args])
    return int(stop.value.code or 0)


def test_repeated_formats_and_files_pair_up(tmp_path: Path) -> None:
    """Each --format goes to the -o at its place."""
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    assert run("--format", "html", "-o", str(page), "--format", "json", "-o", str(data)) == 1
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads(data.read_text())["verdict"] == "cause_found"


def test_one_format_without_a_file_goes_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file for the ticket and text for the person, in one run."""
    assert run("--format", "markdown", "-o", str(tmp_path / "a.md"), "--format", "text") == 1
    assert capsys.readouterr().out.startswith("ROOT CAUSE: ")
    assert (tmp_path / "a.md").read_text().startswith("### Root cause: ")


def test_format_follows_the_suffix(tmp_path: Path) -> None:
    """-o report.html needs no --format."""
    for name, start in (("a.html", "<!doctype"), ("a.md", "### "), ("a.json", "{"), ("a.txt", "ROOT CAUSE")):
        assert run("-o", str(tmp_path / name)) == 1
        assert (tmp_path / name).read_text().startswith(start)


@pytest.mark.parametrize(
    "args",
    [
        ("--format", "html", "--format", "json"),
        ("--format", "html", "-o", "a", "-o", "b"),
        ("--format", "html", "-o", "a", "--format", "json", "-o", "a"),
        ("--format", "yaml"),
    ],
)
def test_what_cannot_be_paired_is_refused(
    args: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong usage ends with 2 and writes nothing."""
    monkeypatch.chdir(tmp_path)
    assert run(*args) == 2
    assert list(tmp_path.iterdir()) == []


def test_json_holds_the_timeline_only_on_request(tmp_path: Path) -> None:
    """Other formats in the same run do not make the JSON grow."""
    plain, full = tmp_path / "plain.json", tmp_path / "full.json"
    run("--format", "json", "-o", str(plain), "--format", "html", "-o", str(tmp_path / "a.html"))
    run("--format", "json", "-o", str(full), "--timeline")
    assert not {"timeline", "job", "excerpts"} & set(json.loads(plain.read_text()))
    assert {"timeline", "job"} <= set(json.loads(full.read_text()))


def test_redaction_writes_the_way_back_for_its_owner_only(tmp_path: Path) -> None:
    """--redact-map implies --redact; the map leads back to every original and nobody else may read it."""
    out, back = tmp_path / "a.json", tmp_path / "map.json"
    run("-o", str(out), "--redact-map", str(back))
    assert "gpu-node-00" not in out.read_text()
    assert json.loads(back.read_text())["host-1"] == "gpu-node-00"
    assert back.stat().st_mode & 0o077 == 0
