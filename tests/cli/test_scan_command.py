"""`ncclscope scan` as a shell sees it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support import case, write

from ncclscope.cli import main

if TYPE_CHECKING:
    from pathlib import Path

RULE = """\
schema: 1
id: NS9901
name: valve-stuck
title: "A valve is stuck"
role: root
category: other
since: "0.1"
summary: A valve is stuck.
cause: Rust.
not_proof_of: a broken pump
signals:
  stuck: {line: 'valve is stuck', has: "valve is stuck"}
when:
  all: [stuck]
blame: stuck
confidence: {base: likely}
next:
  - {do: "Look at the valve", run: "true", where: here, effect: read_only}
fix: "Oil it."
refs:
  - {title: "A book", url: "https://example.org/"}
"""


def scan(*args: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["scan", "-j", "2", *args])
    return int(stop.value.code or 0)


def test_broken_rules_end_a_scan_before_any_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else every job would be kept as unreadable, and not be read again once the rules are whole."""
    write(tmp_path, {"mine/x.yml": RULE.replace("blame: stuck", "blame: [stuck]")})
    store = tmp_path / "all.db"
    assert scan("--store", str(store), "--rules", str(tmp_path / "mine"), str(case("sigkill").paths[0].parent)) == 2
    assert "x.yml:15: `blame`" in capsys.readouterr().err
    assert not store.exists()


def test_errors_never_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names in them come from file systems."""
    assert scan("--store", str(tmp_path / "s.db"), str(tmp_path / "\x1b[31mred")) == 2
    error = capsys.readouterr().err
    assert "\x1b" not in error
    assert "\\x1b[31mred: No such file" in error


def test_a_reader_of_the_lines_may_go_at_any_time(tmp_path: Path) -> None:
    """Also where all jobs are in the store already: 141, as for every command, and no word."""
    for number in range(30):
        write(tmp_path, {f"logs/{number}/a.log": case("sigkill").paths[0].read_bytes()})
    command = [sys.executable, "-m", "ncclscope", "scan", str(tmp_path / "logs"), "--store", str(tmp_path / "s.db")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run([*command, "--jsonl", "-"], stdout=theirs, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, b"")


def test_own_rules_are_asked_and_the_summary_says_who_was_judged_by_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job that was read without them is not read again by itself, but said not to be; --refresh reads it."""
    write(tmp_path, {"mine/NS9901-valve-stuck.yml": RULE, "logs/a/a.log": "[rank1]: valve is stuck\n"})
    own = ["--rules", str(tmp_path / "mine")]
    words = "1 unchanged jobs were read with other rules: --refresh reads them again"
    store = tmp_path / "s.db"

    def rules_of_jobs(*args: str) -> tuple[list[tuple[str | None]], str]:
        scan("--store", str(store), str(tmp_path / "logs"), *args)
        with sqlite3.connect(store) as db:
            found = db.execute("SELECT rule FROM jobs").fetchall()
        db.close()
        return found, capsys.readouterr().out

    assert rules_of_jobs()[0] == [(None,)]
    found, said = rules_of_jobs(*own)
    assert (found, words in said) == ([(None,)], True)
    found, said = rules_of_jobs(*own, "--refresh")
    assert (found, words in said) == ([("NS9901",)], False)
    assert words not in rules_of_jobs(*own)[1]
    assert words in rules_of_jobs()[1]
