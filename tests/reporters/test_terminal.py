"""The terminal report: fits the width, says the cause first, and is the same text without colours."""

from __future__ import annotations

import re

import pytest
from reports import report_of, report_with

from ncclscope.reporters import terminal

NAMES = ("sigkill", "w8-raise-tee", "healthy-lazy", "efa-libfabric-vs-nccl219")


def commands(name: str) -> set[str]:
    report = report_of(name)
    return {c.command for f in report.findings for c in f.next_checks} | {c.command for c in report.collect}


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("name", NAMES)
def test_prose_keeps_to_the_width(name: str, width: int) -> None:
    """Only commands and places, which are to be copied whole, may be longer than the terminal is wide."""
    own = commands(name)
    for line in terminal.render(report_of(name), to_terminal=False, width=width).splitlines():
        copied = any(c in line for c in own) or re.search(r"\S+:\d+(?:  \(.* times\))?$", line)
        assert len(line) <= width or copied, line


@pytest.mark.parametrize("name", NAMES)
def test_colours_change_no_word(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text with its colours taken off is the text without."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = terminal.render(report_of(name), to_terminal=True, width=100)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == terminal.render(report_of(name), to_terminal=False, width=100)


def test_first_screen_holds_cause_culprit_and_proof() -> None:
    """Ten seconds: the first nine lines answer what happened, who, how sure, and where it stands."""
    first = "\n".join(terminal.render(report_of("sigkill"), to_terminal=False, width=80).splitlines()[:9])
    for part in (
        "ROOT CAUSE: Rank 1 died of SIGKILL",
        "confirmed",
        "rank 1, host gpu-node-00",
        "job.log:151",
        "exitcode: -9",
    ):
        assert part in first


def test_commands_stand_on_lines_of_their_own() -> None:
    """A command is never wrapped or joined with other text: it works as printed."""
    lines = [line.strip() for line in terminal.render(report_of("sigkill"), to_terminal=False, width=50).splitlines()]
    assert commands("sigkill") <= set(lines)


def test_directory_of_all_inputs_is_said_once() -> None:
    """Places are relative to it; commands keep the whole path."""
    report = report_of("w8-raise-tee")
    text = terminal.render(report, to_terminal=False, width=200)
    directory = str(report.inputs[0].path).rpartition("/")[0] + "/"
    own = commands("w8-raise-tee")
    without_commands = [line for line in text.splitlines() if not any(c in line for c in own)]
    assert sum(directory in line for line in without_commands) == 1


def test_wide_characters_count_twice() -> None:
    """East Asian text does not run over the edge."""
    text = terminal.render(report_with("漢字 " * 40), to_terminal=False, width=60)
    wide = [line for line in text.splitlines() if line.startswith("           - ")]
    assert wide
    assert all(sum(2 if ord(c) > 0x2FFF else 1 for c in line) <= 60 for line in wide)
