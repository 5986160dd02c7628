"""Broken rules: each file says one thing wrong, and its .txt holds every message that it must get, with the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclscope.engine.lint import lint
from ncclscope.engine.rule import RuleError, load_rule
from ncclscope.kinds import kinds

BAD = Path(__file__).parent.parent / "fixtures" / "_bad_rules"
# What a file of these rules is called; the fixtures are called after what is wrong with them.
NAME = "NS9901-bad.yml"


def problems(file: Path) -> list[str]:
    """The messages that a broken rule gets, without the file's name."""
    try:
        rule = load_rule(file.read_text(encoding="utf-8"), NAME)
    except RuleError as error:
        return [f"{error.line}: {error.message}"]
    prefix = f"{file}:"
    found = [p._replace(path=file.name).at(file.parent) for p in lint([rule], kinds())]
    assert all(text.startswith(prefix) for text in found)
    return [text[len(prefix) :] for text in found]


@pytest.mark.parametrize("file", sorted(BAD.glob("*.yml")), ids=lambda f: f.stem)
def test_a_broken_rule_gets_exactly_its_message(file: Path) -> None:
    """The message, the line and nothing else."""
    expected = file.with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    assert expected
    assert problems(file) == expected
