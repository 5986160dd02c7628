"""The package as users get it: built, installed into an empty environment, and used far from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ncclscope.engine.pack import shipped_rules
from ncclscope.engine.rule import rule_files

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parent.parent
LOG = """\
[rank0]:[E526 12:34:56.123456789 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=20000) ran for 20020 milliseconds before timing out.
[rank1]:[E526 12:34:56.123456789 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=_ALLGATHER_BASE, NumelIn=4, NumelOut=12, Timeout(ms)=20000) ran for 20020 milliseconds before timing out.
[rank2]:[E526 12:34:56.123456789 ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=20000) ran for 20020 milliseconds before timing out.
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist, and the wheel that was built from it."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)], check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The python of an environment that holds the wheel and its declared dependencies alone."""
    directory = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    python = directory / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    return python


def run(python: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The installed command in `home`, which is also the current directory."""
    environment = {"PATH": os.defpath, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    command = [str(python.parent / "ncclscope"), *arguments]
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)


def test_the_wheel_holds_every_rule_and_the_prepared_form(wheel: Path) -> None:
    """And nothing of the checkout besides the package."""
    names = zipfile.ZipFile(wheel).namelist()
    root = shipped_rules()
    rules = {f"ncclscope/_rules/{p.relative_to(root).as_posix()}" for p in rule_files(root)}
    assert rules <= set(names)
    assert "ncclscope/_rules/prepared.json" in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"ncclscope"}


def test_the_source_archive_holds_what_a_build_needs(built: Path) -> None:
    """Rules, the build hook, tests, license; the wheel beside it was built from it."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "LICENSE", "README.md", "tests/test_wheel.py"} <= names
    assert "rules/collective/NS4101-different-collective.yml" in names


def test_an_installation_triages_from_the_prepared_rules(installed: Path, tmp_path: Path) -> None:
    """Far from the checkout, and without writing a cache: the shipped form fits the shipped files."""
    listed = run(installed, tmp_path, "rules", "list")
    assert listed.returncode == 0, listed.stderr
    assert len(listed.stdout.splitlines()) == len(rule_files(shipped_rules()))
    (tmp_path / "job.log").write_text(LOG, encoding="utf-8")
    triaged = run(installed, tmp_path, "triage", "--format", "json", "job.log")
    assert triaged.returncode == 1, triaged.stderr
    finding = json.loads(triaged.stdout)["findings"][0]
    assert (finding["rule"], finding["culprit"]["ranks"]) == ("NS4101", [1])
    assert not (tmp_path / "cache").exists()


def test_an_installation_tests_its_own_rules(installed: Path, tmp_path: Path) -> None:
    """The cases ship inside the rule files."""
    tested = run(installed, tmp_path, "rules", "test", "NS4101")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert tested.stdout.endswith(" passed, 0 failed\n")


def test_a_changed_rule_file_makes_the_shipped_form_stale(installed: Path, tmp_path: Path) -> None:
    """The change counts at the next start, from a form that is prepared anew."""
    (rule,) = installed.parent.parent.glob("lib/python*/site-packages/ncclscope/_rules/*/NS4101-*.yml")
    text = rule.read_text(encoding="utf-8")
    try:
        rule.write_text(text.replace("name: different-collective", "name: changed-here", 1), encoding="utf-8")
        listed = run(installed, tmp_path, "rules", "list")
    finally:
        rule.write_text(text, encoding="utf-8")
    assert "changed-here" in listed.stdout
    assert len(list((tmp_path / "cache" / "ncclscope").iterdir())) == 1
