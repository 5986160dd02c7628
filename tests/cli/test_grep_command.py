"""`ncclscope grep`, and that every command of a report that reads the input again works as printed."""

from __future__ import annotations

import gzip
import os
import shlex
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from msgspec.structs import replace
from support import options, shipped, write

from ncclscope.pipeline import analyze
from ncclscope.report import NextCheck

ASSERTION = "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1290: block: [3,0,0], thread: [64,0,0] Assertion `srcIndex < n` failed."
LOG = f"""\
[rank0]: starting
{ASSERTION}
[rank0]: Traceback (most recent call last):
[rank0]:   File "/app/train.py", line 3, in <module>
[rank0]:     main()
[rank0]: RuntimeError: CUDA error: device-side assert triggered
"""
COMMAND = [sys.executable, "-m", "ncclscope"]


def run(*args: str, cwd: Path | None = None, **more: Any) -> subprocess.CompletedProcess[str]:
    given = more or {"stdin": subprocess.DEVNULL}
    return subprocess.run(
        [*COMMAND, *args], capture_output=True, text=True, timeout=60, check=False, cwd=cwd, **given
    )


def test_lines_are_printed_with_their_places(tmp_path: Path) -> None:
    """The number is that of the evidence; a colon marks the line, a hyphen those above it."""
    write(tmp_path, {"job.log": LOG})
    done = run("grep", "-B", "1", "Assertion `", "job.log", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"job.log-1-[rank0]: starting\njob.log:2:{ASSERTION}\n")


def test_at_most_so_many_lines_of_each_input(tmp_path: Path) -> None:
    """-m counts lines with the expression; a line above that has it too is printed once."""
    write(tmp_path, {"a.log": "x\nx\nx\n", "b.log": "y\nx"})
    done = run("grep", "-m2", "-B9", "x", "a.log", "b.log", cwd=tmp_path)
    assert done.stdout.splitlines() == ["a.log:1:x", "a.log:2:x", "b.log-1-y", "b.log:2:x"]


def test_standard_input_is_searched() -> None:
    """`kubectl logs ... | ncclscope grep EXPRESSION`."""
    assert run("grep", "b+", input="a\nabb\n").stdout == "<stdin>:2:abb\n"


@pytest.mark.parametrize(
    ("args", "status"), [(["x", "a.log"], 0), (["z", "a.log"], 1), (["(", "a.log"], 2), (["x", "a.log", "b.log"], 3)], ids=str
)
def test_exit_status(args: list[str], status: int, tmp_path: Path) -> None:
    """0 found, 1 not found, 2 wrong usage, 3 not all could be read; only the first is without a word on standard error."""
    write(tmp_path, {"a.log": "x\n"})
    done = run("grep", *args, cwd=tmp_path)
    assert done.returncode == status
    assert bool(done.stderr) == (status != 0)
    assert "Traceback" not in done.stderr


def test_a_long_line_has_one_number(tmp_path: Path) -> None:
    """A line of megabytes comes in pieces; those after it are counted right, and it is not printed whole."""
    write(tmp_path, {"a.log": b"a" * (3 << 20) + b"x\nx\n"})
    numbers = [line.split(":")[1] for line in run("grep", "x", "a.log", cwd=tmp_path).stdout.splitlines()]
    assert numbers == ["1", "2"]


def gz(text: str) -> bytes:
    return gzip.compress(text.encode())


def _tar(top: Path) -> list[str]:
    (path,) = write(top, {"in/rank0.log": LOG})
    with tarfile.open(top / "logs.tar.gz", "w:gz") as archive:
        archive.add(path, "run/rank0.log")
    return ["logs.tar.gz"]


def _zip(top: Path) -> list[str]:
    with zipfile.ZipFile(top / "logs.zip", "w") as archive:
        archive.writestr("run/rank0.log", LOG)
    return ["logs.zip"]


def _many(top: Path) -> list[str]:
    names = [f"logs [1]/rank{n}.log.gz" for n in range(12)]
    write(top, {name: gz(LOG if n == 11 else "[rank0]: starting\n") for n, name in enumerate(names)})
    return names


def _bundle(top: Path) -> list[str]:
    write(top, {"rank0.log": LOG})
    assert run("bundle", "b.zip", "rank0.log", cwd=top).returncode == 0
    (top / "rank0.log").unlink()
    return ["b.zip"]


PACKED: dict[str, Callable[[Path], list[str]]] = {
    "plain": lambda top: [p.name for p in write(top, {"rank0.log": LOG})],
    "name like an option": lambda top: [p.name for p in write(top, {"-r.log": LOG})],
    "name to quote": lambda top: [p.name for p in write(top, {"it's 1.log": LOG})],
    "gz": lambda top: [p.name for p in write(top, {"rank0.log.gz": gz(LOG)})],
    "zst": lambda top: [p.name for p in write(top, {"rank0.log.zst": zstandard.compress(LOG.encode())})],
    "tar": _tar,
    "member": lambda top: [f"{name}/run/rank0.log" for name in _tar(top)],
    "zip": _zip,
    "bundle": _bundle,
    "directory": lambda top: [f"{p.parent.name}/" for p in write(top, {"logs/rank0.log.gz": gz(LOG)})],
    "pattern": lambda top: [p.name.replace("0", "*") for p in write(top, {"rank0.log.gz": gz(LOG)})],
    "many": _many,
    "beside a wrong path": lambda top: ["gone.log", *(p.name for p in write(top, {"rank0.log": LOG}))],
}


def checks(names: list[str]) -> list[NextCheck]:
    """What a report on these inputs says to search again: the one that tells, and all of them."""
    rule = shipped().get("NS3251")
    assert rule is not None
    found = []
    for hole in ("{source}", "{inputs}"):
        spec = replace(rule.next[0], run=f"ncclscope grep 'Assertion `' {hole}")
        pack = replace(shipped(), rules=(replace(rule, next=[spec]),))
        found += analyze(names, options=options(), pack=pack).findings[0].next_checks
    return found


@pytest.mark.parametrize("make", PACKED.values(), ids=PACKED)
def test_commands_work_as_printed(make: Callable[[Path], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the input was packed or named, the shell finds the line with what the report prints."""
    monkeypatch.chdir(tmp_path)
    shim = tmp_path / "bin" / "ncclscope"
    write(tmp_path, {"bin/ncclscope": f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n'})
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
    for check in checks(make(tmp_path)):
        assert check.unfilled == []
        done = subprocess.run(["sh", "-c", check.command], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, ""), check.command
        assert done.stdout.count("Assertion `") == 1
        assert len(check.command) < 200


def test_inputs_that_no_command_can_name_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names with control characters, and many that no pattern finds alone."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"a\nb.log": LOG, **{f"rank{n}.log": LOG for n in range(12)}})
    for names in (["a\nb.log"], [f"rank{n}.log" for n in range(11)]):
        assert (checks(names)[1].command, checks(names)[1].unfilled) == ("ncclscope grep 'Assertion `' <log>", ["log"])
