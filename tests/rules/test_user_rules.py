"""Rules of the user's own: added, replacing, switched off; the report says so, and broken ones are named in one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from sample import RULE, other_rule, write_rule

from ncclscope.config import read_config, user_pack
from ncclscope.engine.pack import PackError, load_pack
from ncclscope.pipeline import analyze

if TYPE_CHECKING:
    from pathlib import Path

STUCK = "[rank1]: valve a7 is stuck\n[rank1]: pressure rises to 9\n"


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current directory and a home without a configuration."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ncclscope", *arguments], capture_output=True, text=True, check=False, env=os.environ
    )


def test_a_rule_is_added(tmp_path: Path) -> None:
    """It is asked with the shipped ones, and the report says where it comes from."""
    write_rule(tmp_path / "mine")
    (tmp_path / "job.log").write_text(STUCK, encoding="utf-8")
    report = analyze([tmp_path / "job.log"], pack=user_pack([tmp_path / "mine"]))
    assert [f.rule for f in report.findings] == ["NS9901"]
    assert f"{tmp_path / 'mine'} adds rule NS9901" in report.warnings


def test_a_rule_with_a_shipped_id_replaces_it(tmp_path: Path) -> None:
    """In its place in the pack, and the report says so."""
    file = write_rule(tmp_path / "mine", other_rule("NS4101", "mine"), "NS4101-mine.yml")
    pack = user_pack([tmp_path / "mine"])
    shipped = load_pack()
    assert [r.id for r in pack.rules] == [r.id for r in shipped.rules]
    assert pack.get("NS4101") is not None
    assert pack.get("NS4101").name == "mine"  # type: ignore[union-attr]
    assert pack.notes == (f"rule NS4101 comes from {file} instead of the shipped one",)
    assert pack.own == {"NS4101"}


def test_a_later_directory_replaces_an_earlier_one(tmp_path: Path) -> None:
    """The last one named wins, and the note names the one that lost."""
    first = write_rule(tmp_path / "a")
    second = write_rule(tmp_path / "b", RULE.replace("cause: Rust.", "cause: Ice."))
    pack = user_pack([tmp_path / "a", tmp_path / "b"])
    assert pack.get("NS9901").cause == "Ice."  # type: ignore[union-attr]
    assert f"rule NS9901 comes from {second} instead of {first}" in pack.notes


def test_the_configuration_adds_and_disables(tmp_path: Path) -> None:
    """Directories are relative to the file; the note names the file."""
    write_rule(tmp_path / "here" / "mine")
    (tmp_path / "here" / "ncclscope.toml").write_text(
        'rules = ["mine"]\ndisable = ["NS4101", "different-collective-size"]\n', encoding="utf-8"
    )
    pack = user_pack()
    assert pack.get("NS9901") is not None
    assert pack.get("NS4101") is None
    assert pack.get("NS4102") is None
    assert "rule NS4101 is disabled by ncclscope.toml" in pack.notes
    assert "rule NS4102 is disabled by ncclscope.toml" in pack.notes


def test_the_home_configuration_counts_where_there_is_none_here(tmp_path: Path) -> None:
    """The current directory's file comes first and alone."""
    home = tmp_path / "config" / "ncclscope"
    write_rule(home / "mine")
    (home / "config.toml").write_text('rules = ["mine"]\n', encoding="utf-8")
    assert read_config().rules == (home / "mine",)
    assert user_pack().own == {"NS9901"}
    (tmp_path / "here" / "ncclscope.toml").write_text("", encoding="utf-8")
    assert read_config().rules == ()


def test_without_user_rules_nothing_is_noted() -> None:
    """A plain installation's reports carry no word about rules."""
    pack = user_pack()
    assert pack.notes == ()
    assert pack.own == frozenset()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rule = []\n", "ncclscope.toml: unknown key `rule`; known: rules, disable"),
        ('rules = "mine"\n', 'ncclscope.toml: `rules` is a list of texts, such as rules = ["my-rules"]'),
        ("disable = [4101]\n", 'ncclscope.toml: `disable` is a list of texts, such as disable = ["NS4101"]'),
        ('disable = ["NS0000"]\n', "ncclscope.toml: cannot disable 'NS0000': no such rule; see `ncclscope rules list`"),
        ('rules = ["gone"]\n', "gone: not a directory; name the directory that holds the rule files"),
    ],
)
def test_a_wrong_configuration_says_what_would_be_right(tmp_path: Path, text: str, message: str) -> None:
    """The file, the key and the remedy."""
    (tmp_path / "here" / "ncclscope.toml").write_text(text, encoding="utf-8")
    with pytest.raises(PackError) as caught:
        user_pack()
    assert str(caught.value) == message


def test_a_configuration_that_is_no_toml_names_its_line(tmp_path: Path) -> None:
    """As the TOML reader tells it."""
    (tmp_path / "here" / "ncclscope.toml").write_text("rules = [}\n", encoding="utf-8")
    with pytest.raises(PackError, match=r"^ncclscope\.toml: not valid TOML: .*line"):
        user_pack()


def test_all_problems_of_broken_rules_come_in_one_run(tmp_path: Path) -> None:
    """Status 2, and for each file its line and message."""
    mine = tmp_path / "mine"
    write_rule(mine, RULE.replace("blame: stuck\n", "blame: stuck\nseverity: high\n"), "a.yml")
    write_rule(mine, RULE.replace("base: possible", "base: sure"), "b.yml")
    (mine / "c.yml").write_bytes(b"schema: 1\nid: \xff\n")
    write_rule(mine, RULE, "d.yml")
    write_rule(mine, RULE, "e.yml")
    result = cli("triage", "--rules", str(mine), str(mine / "a.yml"))
    assert result.returncode == 2
    assert result.stdout == ""
    lines = result.stderr.removeprefix("ncclscope: ").splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        f"{mine}/a.yml:22",
        f"{mine}/b.yml:23",
        f"{mine}/c.yml:2",
        f"{mine}/e.yml:2",
    ]
    assert lines[3].endswith("the id NS9901 is taken by d.yml; ids are never reused")


def test_what_would_fail_only_when_asked_is_refused_too(tmp_path: Path) -> None:
    """A signal or an event that does not exist stops the run; a rule without tests does not."""
    mine = tmp_path / "mine"
    write_rule(mine, RULE.replace("none: [drill]", "none: [exercise]"))
    with pytest.raises(PackError, match=r"NS9901-valve-stuck\.yml:16: NS9901: the signal 'exercise' is not defined"):
        user_pack([mine])
    write_rule(mine, RULE[: RULE.index("tests:")])
    assert user_pack([mine]).own == {"NS9901"}


def test_every_command_that_asks_rules_takes_them(tmp_path: Path) -> None:
    """triage, why, events, rules list, show, test and lint."""
    mine, log = tmp_path / "mine", tmp_path / "job.log"
    file = write_rule(mine)
    log.write_text(STUCK, encoding="utf-8")
    report = json.loads(cli("triage", "--rules", str(mine), "--format", "json", str(log)).stdout)
    assert report["findings"][0]["rule"] == "NS9901"
    assert any("adds rule NS9901" in w for w in report["warnings"])
    assert "NS9901 valve-stuck holds, possible" in cli("why", "--rules", str(mine), "NS9901", str(log)).stdout
    assert "rule.NS9901.stuck" in cli("events", "--rules", str(mine), str(log)).stdout
    assert "NS9901  other" in cli("rules", "list", "--rules", str(mine)).stdout
    assert cli("rules", "show", "--rules", str(mine), "NS9901").stdout == file.read_text(encoding="utf-8")
    tested = cli("rules", "test", "--mutate", "--rules", str(mine))
    assert (tested.returncode, tested.stdout.splitlines()[-1].partition(";")[0]) == (0, "6 passed, 0 failed")
    assert tested.stdout.endswith(" 0 survived\n")
    linted = cli("rules", "lint", "--rules", str(mine))
    assert (linted.returncode, linted.stdout) == (0, "1 rules, 0 errors, 0 issues\n")


def test_a_failing_case_and_a_surviving_mutant_fail_the_run(tmp_path: Path) -> None:
    """Status 1, with the case, or with what was dropped and the remedy."""
    mine = tmp_path / "mine"
    write_rule(mine, RULE.replace("expect: {confidence: likely}", "expect: {confidence: hint}"))
    result = cli("rules", "test", "--mutate", "--rules", str(mine))
    assert result.returncode == 1
    assert "FAIL NS9901: hot as well\n     confidence: expected 'hint', got 'likely'" in result.stdout
    assert "SKIP NS9901 valve-stuck: not mutated while its own cases fail" in result.stdout
    write_rule(mine, RULE.replace("expect: {confidence: likely}", "expect: {}"))
    assert cli("rules", "test", "--rules", str(mine)).returncode == 0
    result = cli("rules", "test", "--mutate", "--rules", str(mine))
    assert result.returncode == 1
    assert "SURVIVED NS9901 valve-stuck: no case notices 1 of " in result.stdout
    assert "without confidence: raise if hot\n       add a case in which it applies, and state the" in result.stdout


def test_a_skeleton_is_no_rule_yet(tmp_path: Path) -> None:
    """Every placeholder of `rules new` is an error of its own, at its line."""
    assert cli("rules", "new", "NS9901", "valve-stuck", "--in", str(tmp_path)).returncode == 0
    file = tmp_path / "NS9901-valve-stuck.yml"
    # A text of several lines is named where it begins.
    left = {n for n, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1) if "TODO" in line}
    linted = cli("rules", "lint", "--rules", str(tmp_path))
    named = {int(line.split(":")[1]) for line in linted.stdout.splitlines() if "left as the skeleton has it" in line}
    assert linted.returncode == 1
    assert len(left) == len(named) == 12
    assert all(n in named or n - 1 in named for n in left)


def test_an_expression_that_explodes_costs_one_line_and_not_the_run(tmp_path: Path) -> None:
    """A user's expression runs under a time limit; the report says that it ran out."""
    mine, log = tmp_path / "mine", tmp_path / "job.log"
    hot = """hot: {line: 'temperature high', has: "temperature high"}"""
    write_rule(mine, RULE.replace(hot, """hot: {line: 'temperature (a|aa)+$', has: "temperature "}"""))
    log.write_text(f"{STUCK}[rank1]: temperature {'a' * 4000} low\n", encoding="utf-8")
    report = analyze([log], pack=user_pack([mine]))
    assert [f.rule for f in report.findings] == ["NS9901"]
    assert any("longer than" in w for w in report.warnings)
