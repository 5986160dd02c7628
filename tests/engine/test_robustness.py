"""A bug of ours, or a slow expression of a user's, costs a warning and never the report."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from rule_parts import pack_of, rule_of
from support import case, options, shipped, write

import ncclscope.pipeline as pipeline
from ncclscope.parsers.pattern import Block, Pattern
from ncclscope.pipeline import analyze

if TYPE_CHECKING:
    from pathlib import Path


def test_a_rule_that_raises_becomes_a_warning() -> None:
    """The other rules still answer, and the warning names the rule."""
    plain = analyze(case("sigkill").paths, options=options(), pack=shipped())
    ask = pipeline.diagnose

    def broken(rule: object, *rest: object) -> object:
        if rule.id == "NS0102":  # type: ignore[attr-defined]
            raise KeyError("no such field")
        return ask(rule, *rest)  # type: ignore[arg-type]

    with patch.object(pipeline, "diagnose", broken):
        report = analyze(case("sigkill").paths, options=options(), pack=shipped())
    assert report.findings[0].rule == plain.findings[0].rule
    assert [w for w in report.warnings if "NS0102" in w and "no such field" in w]


def boom(*_: object) -> None:
    raise ZeroDivisionError("a bug")


class Breaks:
    """A collector that fails at the second line."""

    def __init__(self) -> None:
        self.lines = 0

    def feed(self, line: object) -> bool:
        del line
        self.lines += 1
        if self.lines > 1:
            raise ZeroDivisionError("a bug in feed")
        return True

    def close(self) -> list[object]:
        raise ZeroDivisionError("a bug in close")


@pytest.mark.parametrize(
    ("patterns", "blocks"),
    [
        ((Pattern("x.bad", "step 3", "step 3", refine=boom),), ()),
        ((), (Block({"x.bad": ()}, "step 3", "step 3", boom),)),
        ((), (Block({"x.bad": ()}, "step 3", "step 3", lambda *_: Breaks()),)),  # type: ignore[arg-type,return-value]
    ],
    ids=["pattern", "opener", "collector"],
)
def test_a_parser_that_raises_becomes_a_warning(patterns: tuple[object, ...], blocks: tuple[object, ...]) -> None:
    """The warning names the file; what the other parsers saw is reported as before."""
    plain = analyze(case("sigkill").paths, options=options(), pack=shipped())
    (path,) = case("sigkill").paths
    with (
        patch.object(pipeline, "PATTERNS", (*pipeline.PATTERNS, *patterns)),
        patch.object(pipeline, "BLOCKS", (*pipeline.BLOCKS, *blocks)),
    ):
        report = analyze([path], options=options(), pack=shipped())
    assert report.findings == plain.findings
    assert report.warnings
    assert all("a parser failed" in w and str(path) in w for w in report.warnings)


def test_the_warning_names_the_line(tmp_path: Path) -> None:
    """File and line of the text that the parser failed on, once however often it fails."""
    (path,) = write(tmp_path, {"job.log": "[rank0]: hello\n[rank0]: boom here\n[rank0]: boom again\n"})
    bad = Pattern("x.bad", "boom", "boom", refine=boom)
    with patch.object(pipeline, "PATTERNS", (*pipeline.PATTERNS, bad)):
        report = analyze([path], options=options(), pack=shipped())
    (warning,) = report.warnings
    assert f"{path}:2" in warning
    assert "a bug" in warning


def test_a_correlator_that_raises_becomes_a_warning() -> None:
    """The facts of the others stay."""
    import ncclscope.facts as facts

    with patch.object(facts, "add_disagreement_facts", boom):
        report = analyze(case("sigkill").paths, options=options(), pack=shipped())
    assert report.findings[0].culprit.ranks == [1]
    assert any("a bug" in w for w in report.warnings)


def slow_rule() -> object:
    """A user's rule whose expression takes exponential time on a line that almost matches."""
    return rule_of("NS9999", signals={"seen": {"line": r"stuck (a|aa)+$", "has": "stuck"}})


def test_a_slow_expression_of_a_user_is_cut_off(tmp_path: Path) -> None:
    """It ends after its time limit, says so, and the rest of the log is read."""
    text = "[rank0]: stuck " + "a" * 60 + "!\n[rank1]: stuck aaa\n"
    (path,) = write(tmp_path, {"job.log": text})
    report = analyze([path], options=options(), pack=pack_of(slow_rule(), own=True))  # type: ignore[arg-type]
    assert [w for w in report.warnings if "longer than" in w and f"{path}:1" in w]
    assert [f.rule for f in report.findings] == ["NS9999"]
    assert report.findings[0].culprit.ranks == [1]
