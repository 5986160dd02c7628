"""The command: exit status, output formats, wrong usage."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
import typer
from arch_files import ELF
from typer.testing import CliRunner

import ncclscope.cli.arch as command
from ncclscope.arch import Gpu, NoGpuInfoError
from ncclscope.knowledge.gpus import ComputeCapability

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

APP = typer.Typer()
APP.command()(command.arch)
OLD, NEW = str(ELF / "nccl-2.26.2.so"), str(ELF / "nccl-2.26.5.so")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(APP, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((OLD,), 0),
        ((OLD, "--target", "sm_89"), 0),
        ((OLD, "--target", "sm_120"), 1),
        ((OLD, "--target", "sm_89,sm_120"), 1),
        ((OLD, "--target", "sm_120", "--allow-jit"), 0),
        ((OLD, "--target", "sm_35", "--allow-jit"), 1),
        ((NEW, "--target", "sm_120,sm_90, 8.9"), 0),
        ((OLD, NEW, "--target", "sm_120"), 1),
        ((str(ELF / "partial.so"), "--target", "sm_90"), 1),
        ((OLD, "--target", "sm_87"), 3),
        ((str(ELF / "32-bit.o"), "--target", "sm_90"), 3),
        ((str(ELF / "32-bit.o"),), 3),
        ((NEW, str(ELF / "no-gpu-code.so"), "--target", "sm_90"), 3),
        ((OLD, "--target", "sm_90,hopper"), 2),
        ((OLD, "--target", ""), 2),
        ((OLD, "--format", "xml"), 2),
        ((OLD, "--root", "/"), 2),
        (("--root", "/nonexistent"), 2),
        ((OLD, "-o", "/nonexistent/report"), 2),
    ],
)
def test_exit_status(arguments: tuple[str, ...], status: int) -> None:
    """0 all native or allowed, 1 a target fails, 2 usage, 3 unreadable or unknown."""
    assert run(*arguments).exit_code == status


def test_text_says_verdict_sight_and_fix() -> None:
    """The failing target's block has what is wrong, what the user would see, and a command."""
    text = run(OLD, "--target", "sm_120,sm_89").stdout
    assert text.startswith("NCCL 2.26.2, built with CUDA 12.2\n")
    assert "FAIL  sm_120 (GeForce RTX 50 series, RTX PRO 6000 Blackwell): jit" in text
    assert "What you would see: Every rank goes quiet" in text
    assert "pip install --no-deps nvidia-nccl-cu12==2.26.2.post1" in text
    assert "PASS  sm_89" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 200


def test_text_shows_holes_only_where_there_are_some() -> None:
    """An architecture that all code objects have carries no number."""
    assert "sm_90 (2/3)" in run(str(ELF / "partial.so")).stdout
    assert "(n/" not in run(OLD).stdout


def test_json_is_complete_and_stable() -> None:
    """Every field that docs/arch.md describes."""
    document = json.loads(run(OLD, "--target", "sm_120,sm_89", "--format", "json").stdout)
    assert (document["schema_version"], document["outcome"]) == ("1", "fail")
    [library] = document["libraries"]
    assert (library["path"], library["nccl_version"], library["cuda_version"]) == (OLD, "2.26.2", "12.2")
    assert library["sass"][-1] == {"arch": "sm_90", "code_objects": 3}
    assert library["ptx"] == [{"arch": "compute_90", "code_objects": 2}]
    first, second = library["targets"]
    assert set(first) == {"target", "verdict", "ok", "summary", "needed", "missing", "effect", "fix"}
    assert set(second) == {"target", "verdict", "ok", "summary", "needed", "missing"}
    assert (first["verdict"], second["verdict"]) == ("jit", "native")


def test_json_of_an_unreadable_file_has_the_error() -> None:
    """No code is listed, and the outcome is unknown."""
    document = json.loads(run(str(ELF / "32-bit.o"), "--format", "json").stdout)
    assert document["outcome"] == "unknown"
    assert set(document["libraries"][0]) == {"path", "outcome", "error"}


def test_github_annotations() -> None:
    """One error for a failing target, one notice for a passing one, each on one line."""
    lines = run(OLD, "--target", "sm_120,sm_89", "--format", "github").stdout.splitlines()
    assert lines[0].startswith("::error title=NCCL 2.26.2%2C built with CUDA 12.2%3A jit on sm_120::")
    assert lines[1].startswith("::notice title=")
    assert run(str(ELF / "32-bit.o"), "--format", "github").stdout.startswith(
        "::error title=GPU code cannot be read::"
    )


def test_control_characters_of_a_name_are_written_out(tmp_path: Path) -> None:
    """A file name cannot colour the terminal or forge an annotation."""
    path = tmp_path / "lib\x1b[31m\n::error::x.so"
    shutil.copy(OLD, path)
    text = run(str(path), "--target", "sm_90").stdout
    assert "\x1b" not in text
    assert "\\x1b[31m\\n::error::x.so" in text
    assert len(run(str(path), "--target", "sm_90", "--format", "github").stdout.splitlines()) == 1


def test_output_goes_to_a_file(tmp_path: Path) -> None:
    """-o writes the report there and prints nothing."""
    out = tmp_path / "report.json"
    result = run(OLD, "--format", "json", "-o", str(out))
    assert result.stdout == ""
    assert json.loads(out.read_text())["outcome"] == "pass"


def test_root_judges_what_the_image_loads(tmp_path: Path) -> None:
    """The wheel that PyTorch loads decides; another NCCL in the image is only listed."""
    site = tmp_path / "usr/lib/python3/site-packages"
    for where, name in (
        ("torch/lib/libtorch_cuda.so", "torch-runpath.so"),
        ("nvidia/nccl/lib/libnccl.so.2", "nccl-2.26.5.so"),
    ):
        (site / where).parent.mkdir(parents=True)
        shutil.copy(ELF / name, site / where)
    (tmp_path / "usr/lib64").mkdir()
    shutil.copy(OLD, tmp_path / "usr/lib64/libnccl.so.2")
    result = run("--root", str(tmp_path), "--target", "sm_120")
    assert result.exit_code == 0
    assert "(found by: RUNPATH of libtorch_cuda.so)" in result.stdout
    assert "Also found, but not what is loaded:" in result.stdout
    document = json.loads(run("--root", str(tmp_path), "--format", "json").stdout)
    assert document["not_loaded"][0]["path"].endswith("usr/lib64/libnccl.so.2")


def test_an_image_without_nccl_is_unknown(tmp_path: Path) -> None:
    """Nothing found is no pass."""
    result = run("--root", str(tmp_path), "--target", "sm_90")
    assert result.exit_code == 3
    assert "no NCCL found" in result.stderr


def gpu(index: int, name: str, capability: ComputeCapability | None) -> Gpu:
    return Gpu(index, name, f"GPU-{index}", f"0000:00:0{index}.0", capability, "580.1")


def test_auto_judges_for_the_gpus_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal GPUs are judged once and counted."""
    here = [gpu(i, "NVIDIA H200", ComputeCapability(9, 0)) for i in range(2)]
    monkeypatch.setattr(command, "gpus_here", lambda: here)
    result = run(OLD, "--target", "auto")
    assert result.exit_code == 0
    assert "PASS  sm_90 (2 x NVIDIA H200 here): native" in result.stdout
    assert len(json.loads(run(OLD, "--target", "auto", "--format", "json").stdout)["gpus"]) == 2


def test_auto_without_an_answer_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """No driver, no GPU or a GPU that nobody knows: exit 3, never 0."""

    def no_driver() -> list[Gpu]:
        raise NoGpuInfoError("no GPU can be asked here")

    monkeypatch.setattr(command, "gpus_here", no_driver)
    assert run(OLD, "--target", "auto").exit_code == 3
    monkeypatch.setattr(command, "gpus_here", list)
    assert run(OLD, "--target", "auto").exit_code == 3
    monkeypatch.setattr(command, "gpus_here", lambda: [gpu(0, "NVIDIA X9", None)])
    result = run(OLD, "--target", "auto")
    assert result.exit_code == 3
    assert "NVIDIA X9 is not in the table" in result.stderr
