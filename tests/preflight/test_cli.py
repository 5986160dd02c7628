"""`ncclscope preflight` as a command: exit status, formats, files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from ncclscope.cli.preflight import preflight

from .conftest import FakeNode, gpu

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, node: FakeNode) -> Callable[..., Result]:
    """Runs the command on the healthy host, or on another one given first."""
    app = typer.Typer()
    app.command()(preflight)

    def invoke(*arguments: str, on: FakeNode | None = None) -> Result:
        monkeypatch.setattr("ncclscope.cli.preflight.Node", lambda: on or node)
        return CliRunner().invoke(app, arguments)

    return invoke


def test_a_healthy_host_is_0(call: Callable[..., Result]) -> None:
    result = call()
    assert result.exit_code == 0
    assert result.stdout.startswith("This node passes: 0 failed")
    assert "\x1b" not in result.stdout


def test_a_failure_is_1(call: Callable[..., Result], node: FakeNode) -> None:
    node.environ = {"NCCL_SOCKET_IFNAME": "bond0"}
    assert call().exit_code == 1


def test_a_warning_is_1_only_when_asked_for(call: Callable[..., Result], node: FakeNode) -> None:
    node.environ = {}
    assert call().exit_code == 0
    assert call("--fail-on", "warn").exit_code == 1


def test_no_gpu_to_be_seen_is_3(call: Callable[..., Result], bare: FakeNode) -> None:
    assert call("--skip", "shm", on=bare).exit_code == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("--only", "nothing"),
        ("--write", "a", "--verify", "b"),
        ("--manifest", "init-container"),
        ("--manifest", "helm", "--image", "x"),
        ("--manifest", "init-container", "--image", "a b"),
        ("--image", "x"),
        ("--format", "xml"),
    ],
)
def test_wrong_usage_is_2(call: Callable[..., Result], arguments: tuple[str, ...]) -> None:
    assert call(*arguments).exit_code == 2


def test_json_into_a_file(call: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    result = call("--format", "json", "-o", str(path))
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(path.read_text())["verdict"] == "pass"


def test_a_file_that_cannot_be_written_is_2_and_named(call: Callable[..., Result], tmp_path: Path) -> None:
    result = call("-o", str(tmp_path / "no" / "report"))
    assert result.exit_code == 2
    assert str(tmp_path / "no" / "report") in result.stderr


def test_write_then_verify(call: Callable[..., Result], node: FakeNode, tmp_path: Path) -> None:
    path = str(tmp_path / "node.json")
    assert call("--write", path).exit_code == 0
    assert call("--verify", path).exit_code == 0
    other = FakeNode(node.root)
    other.snapshot = type(node.snapshot)((gpu(6), gpu(7)), "580.159.02", "13.0")
    result = call("--verify", path, on=other)
    assert result.exit_code == 1
    assert gpu(6).uuid in result.stdout


def test_verify_without_a_file_is_3(call: Callable[..., Result], tmp_path: Path) -> None:
    result = call("--verify", str(tmp_path / "none.json"))
    assert result.exit_code == 3
    assert "preflight --write makes it" in result.stderr


def test_write_without_gpus_writes_nothing(
    call: Callable[..., Result], bare: FakeNode, tmp_path: Path
) -> None:
    result = call("--write", str(tmp_path / "node.json"), "--skip", "shm", on=bare)
    assert result.exit_code == 3
    assert not (tmp_path / "node.json").exists()


def test_a_manifest_is_printed_without_looking_at_the_machine(call: Callable[..., Result]) -> None:
    result = call("--manifest", "dockerfile-gate", "--image", "team/train:1")
    assert result.exit_code == 0
    assert "FROM team/train:1 AS nccl-gate" in result.stdout
