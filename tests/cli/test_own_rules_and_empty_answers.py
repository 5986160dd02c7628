"""`explain` and `events` where what is asked for is the user's own, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import case

from ncclscope.cli import main
from ncclscope.engine.pack import shipped_rules

LOG = str(case("sigkill").paths[0])


def status(*args: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(args)
    return int(stop.value.code or 0)


def test_rules_that_ncclscope_toml_names_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report that names a rule of one's own can be followed up like any other."""
    text = next(shipped_rules().rglob("NS2101-*.yml")).read_text()
    (tmp_path / "mine").mkdir()
    own = text.replace("id: NS2101", "id: NS5190").replace("name: init-silent-before-start", "name: of-our-own")
    (tmp_path / "mine" / "NS5190-of-our-own.yml").write_text(own)
    (tmp_path / "ncclscope.toml").write_text('rules = ["mine"]\n')
    monkeypatch.chdir(tmp_path)
    assert status("explain", "NS5190") == 0
    assert capsys.readouterr().out.startswith("NS5190 of-our-own")


def test_a_filter_that_leaves_nothing_does_not_say_that_nothing_was_recognised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The log is readable; only no event of the kind is in it."""
    assert status("events", LOG, "--kind", "nothing.of.this.name") == 0
    assert capsys.readouterr().out == "no event of this kind and rank\n"


def test_the_last_events_are_one_at_least() -> None:
    """--tail -5 is wrong usage, not the events without the first five."""
    assert status("events", LOG, "--tail", "-5") == 2
