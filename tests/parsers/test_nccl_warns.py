"""The table of all warnings in NCCL's source."""

from __future__ import annotations

import re

import pytest

from ncclscope.knowledge.nccl_warns import KnownWarn, known_warn, known_warns, literal_parts

_FILLERS = (
    (re.compile(r"%\{\w+\}"), "nvmlSomething"),
    (re.compile(r"%l?[xX]|%ll[xX]"), "1b000"),
    (re.compile(r"%p"), "0x7f00a1"),
    (re.compile(r"%[.\d]*(?:hh|h|ll|l|z)?[diu]"), "17"),
    (re.compile(r"%[.\d]*f"), "0.25"),
    (re.compile(r"%c"), "x"),
    (re.compile(r"%[sm]"), "value"),
)


def _filled(warn: KnownWarn) -> str:
    text = warn.template
    for conversion, value in _FILLERS:
        text = conversion.sub(value, text)
    return text


@pytest.mark.parametrize("warn", known_warns(), ids=lambda warn: warn.id)
def test_every_template_is_recognised_when_filled_in(warn: KnownWarn) -> None:
    """A line made from a template is found again, as that template or one with at least as many words."""
    text = _filled(warn)
    assert "%" not in text or "%" in re.sub(r"%\S+", "", text) or warn.template.count("%%")
    found = known_warn(text)
    assert found is not None
    assert sum(map(len, literal_parts(found.template))) >= sum(map(len, literal_parts(warn.template)))


def test_rows_are_complete_and_unique() -> None:
    """Each row has an id of its own, two versions in order and a phase; a meaning comes with a nature."""
    warns = known_warns()
    assert len({warn.id for warn in warns}) == len(warns) > 900
    for warn in warns:
        first, last = (tuple(map(int, version.split("."))) for version in (warn.first, warn.last))
        assert (2, 3, 5) <= first <= last
        assert warn.phase
        assert warn.nature in ("symptom", "consequence", "noise", "info")
        assert warn.returned == "" or warn.returned.startswith("nccl")


def test_text_that_no_release_prints_is_unknown() -> None:
    for text in ("", "hello", "step 100: loss is nan", "%s", "failed : error"):
        assert known_warn(text) is None


def test_the_template_with_more_words_wins() -> None:
    found = known_warn("Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1")
    assert found is not None
    assert found.template.startswith("Call to ibv_modify_qp failed with")


def test_blanks_and_length_do_not_matter() -> None:
    found = known_warn("Bootstrap   :  no socket interface found " + "x" * 100_000)
    assert found is not None
    assert found.template == "Bootstrap : no socket interface found"
