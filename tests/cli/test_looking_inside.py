"""`events`, `why` and `explain`: what was understood, and why a rule holds or not."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from support import case

SIGKILL = str(case("sigkill").paths[0])


def run(*args: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "ncclscope", *args], capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_events_stand_at_their_lines() -> None:
    """Each event with the place of its line, and derived facts after them."""
    rows = json.loads(run("events", SIGKILL, "--format", "json").stdout)
    lines = case("sigkill").paths[0].read_text().split("\n")
    starts = [r for r in rows if r["kind"] == "nccl.init_start"]
    assert {tuple(r["ranks"]) for r in starts} == {(0,), (1,)}
    for row in starts:
        assert "Init START" in lines[int(row["place"].rpartition(":")[2]) - 1]
    assert "rank.died" in [r["kind"] for r in rows]


def test_events_can_be_narrowed() -> None:
    """By kind, by rank, and to the last."""
    out = run("events", SIGKILL, "--kind", "nccl.init", "--rank", "1").stdout.splitlines()
    assert out
    assert all("nccl.init" in line and "rank 1" in line for line in out)
    assert run("events", SIGKILL, "--kind", "nccl.init", "--rank", "1", "--tail", "1").stdout.splitlines() == out[-1:]


def test_events_of_nothing_say_so(tmp_path: Any) -> None:
    """No silent empty answer."""
    (tmp_path / "x.log").write_text("hello\n")
    assert "no event" in run("events", str(tmp_path / "x.log")).stdout


@pytest.mark.parametrize(("path", "word"), [(SIGKILL, "holds"), (str(case("healthy-lazy").paths[0]), "does not hold")])
def test_why_answers_condition_by_condition(path: str, word: str) -> None:
    """The first line is the outcome, then every signal and condition with its answer."""
    done = run("why", "NS8201", path)
    assert done.returncode == 0
    first, *rest = done.stdout.splitlines()
    assert first.startswith("NS8201")
    assert word in first
    assert any("signal" in line for line in rest)
    assert any("when" in line for line in rest)


def test_an_unknown_rule_is_wrong_usage() -> None:
    """With the command that lists them."""
    done = run("why", "NS0000", SIGKILL)
    assert done.returncode == 2
    assert "rules list" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("NS8201", "Next checks"),
        ("xid 79", "79"),
        ("rank-absent", "NS2103"),
        ("sm_120", "12.0"),
        ("rank-died", "NS8201"),
    ],
)
def test_explain(words: str, said: str) -> None:
    """A rule, an Xid, a class and an architecture."""
    done = run("explain", *words.split())
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_explain_of_nothing_known_shows_what_can_be_asked() -> None:
    """The message names one of each kind."""
    done = run("explain", "flux-capacitor")
    assert done.returncode == 2
    for example in ("NS2101", "xid 79", "rank-absent", "sm_120"):
        assert example in done.stderr


def test_an_xid_is_explained_in_words() -> None:
    """Meaning, class, whose list the action is from, and a command; not the fields of a type."""
    shown = run("explain", "xid", "79").stdout
    assert shown.startswith("Xid 79: GPU fell off the bus")
    assert "gpu-fell-off-bus" in shown
    assert "NVIDIA's Xid catalogue" in shown
    assert "(number=" not in shown
