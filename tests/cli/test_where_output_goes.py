"""Reports to places that are no ordinary file, and to none."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from support import case

from ncclscope.cli import main
from ncclscope.cli.common import write_out, write_private

LOGS = [str(p) for p in case("sigkill").paths]


def status(*args: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(args)
    return int(stop.value.code or 0)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A named pipe, which stands for any device: a rename onto it would put a file in its place."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    path.chmod(0o666)
    return path


def test_a_report_goes_through_a_pipe_and_leaves_it_one(pipe: Path) -> None:
    """-o /dev/stdout or /dev/null, as root in a container, must not replace the device."""
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_out("report\n", pipe)
    assert os.read(reader, 100) == b"report\n"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """What it points to holds the report."""
    (tmp_path / "latest.txt").symlink_to("report.txt")
    write_out("report\n", tmp_path / "latest.txt")
    assert (tmp_path / "latest.txt").is_symlink()
    assert (tmp_path / "report.txt").read_text() == "report\n"


def test_only_ordinary_files_are_made_private(pipe: Path, tmp_path: Path) -> None:
    """--redact-map /dev/null must not take /dev/null away from everybody else."""
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_private("map\n", pipe)
    os.close(reader)
    assert stat.S_IMODE(pipe.stat().st_mode) == 0o666
    write_private("map\n", tmp_path / "map.json")
    assert stat.S_IMODE((tmp_path / "map.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("command", [["triage", *LOGS], ["explain", "sm_90"], ["events", *LOGS]])
def test_a_closed_standard_output_is_a_named_error(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ncclscope ... >&-` leaves Python without a standard output."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert status(*command) == 2
    assert "standard output" in capsys.readouterr().err


def test_a_closed_standard_input_is_wrong_usage_when_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ncclscope - <&-` names what to do; files beside it do not hide that."""
    monkeypatch.setattr(sys, "stdin", None)
    assert status("triage", "-") == 2
    assert "no input" in capsys.readouterr().err
    assert status("triage", "--exit-zero", *LOGS) == 0
