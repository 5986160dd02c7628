"""Lines of launchers and schedulers become the events that facts are derived from, and nothing else does."""

from __future__ import annotations

import pytest
from helpers import events_of, line_of, pattern_problems, the_event, unmatched_patterns
from launcher_rows import FRAMEWORKS, KUBERNETES, MPI, NEIGHBOURS, RAY, ROWS, SLURM, TORCHRUN

from ncclscope.parsers import launcher
from ncclscope.parsers.launcher_exit import exit_facts, expand_numbers, signal_number

IDS = [f"{kind}-{number}" for number, (_, kind, _) in enumerate(ROWS)]


def test_patterns_keep_the_promises_of_their_declaration() -> None:
    """Literals are searchable in wrapped text, kinds are well named, a cause goes with its nature."""
    assert pattern_problems(launcher) == []


def test_every_pattern_has_a_line_that_it_matches() -> None:
    """No pattern is there that nobody has seen work."""
    assert unmatched_patterns(launcher, [line_of(text) for text, _, _ in ROWS]) == []


@pytest.mark.parametrize(("text", "kind", "fields"), ROWS, ids=IDS)
def test_line_gives_event(text: str, kind: str, fields: dict[str, object]) -> None:
    """One line as printed gives one event of its kind, with its numbers as numbers."""
    event = the_event(launcher, kind, text)
    assert {name: event.get(name) for name in fields} == fields


@pytest.mark.parametrize(("text", "kind"), [row[:2] for row in ROWS], ids=IDS)
def test_cause_and_nature_go_together(text: str, kind: str) -> None:
    """Whatever a refinement decides, nature `cause` and the field cause go together."""
    event = the_event(launcher, kind, text)
    assert event.get("nature") in ("cause", "symptom", "consequence", "noise", "info")
    assert (event.get("nature") == "cause") == (event.get("cause") is not None)


@pytest.mark.parametrize("text", NEIGHBOURS)
def test_words_of_a_program_are_no_event(text: str) -> None:
    """A program's own words, code lines of tracebacks and bare heads of tables stay unmatched."""
    assert events_of(launcher, text) == []


@pytest.mark.parametrize(("text", "kind"), [row[:2] for row in ROWS], ids=IDS)
def test_a_cut_line_names_no_cause_that_the_whole_line_does_not(text: str, kind: str) -> None:
    """A line cut anywhere gives its event or none; less text never makes it more certain."""
    whole = the_event(launcher, kind, text).get("cause")
    for end in range(0, len(text), 5):
        for event in events_of(launcher, text[:end]):
            assert event.get("cause") in (None, whole)


def test_a_bare_word_behind_a_logger_is_not_the_shells() -> None:
    """`Killed` is the shell's only when it stands alone on the line and no logger printed it."""
    assert events_of(launcher, "Killed", logger="python", level="INFO") == []


def test_lightning_prefix_in_the_envelope_is_enough() -> None:
    """`[rank: 3] ` may have been taken off as an envelope; the rest is still recognised."""
    event = the_event(launcher, "pl.received_signal", "Received SIGTERM: 15", rank=3)
    assert event.get("signal") == 15
    assert event.env.rank == 3


def test_tables_are_complete() -> None:
    """Each family of launchers has rows; an empty one would make the tests above pass for nothing."""
    assert all((TORCHRUN, RAY, SLURM, MPI, KUBERNETES, FRAMEWORKS))


@pytest.mark.parametrize(
    ("code", "signal", "nature"),
    [
        (0, None, "info"),
        (1, None, "consequence"),
        (2, None, "consequence"),
        (127, None, "symptom"),
        (-15, 15, "consequence"),
        (143, 15, "consequence"),
        (-9, 9, "symptom"),
        (137, 9, "symptom"),
        (247, 9, "symptom"),
        (-6, 6, "symptom"),
        (134, 6, "symptom"),
        (-11, 11, "symptom"),
        (245, 11, "symptom"),
        (255, None, "consequence"),
        (-1, 1, "consequence"),
        (130, 2, "consequence"),
    ],
)
def test_exit_code_tells_signal_and_nature(code: int, signal: int | None, nature: str) -> None:
    """Negative, 128 plus and 256 minus the signal are read alike; being stopped is never the reason."""
    fields = exit_facts(code)
    assert (fields.get("signal"), fields["nature"]) == (signal, nature)


def test_an_abort_does_not_suggest_that_the_rank_is_the_culprit() -> None:
    """A watchdog aborts its own process, so -6 alone suggests nothing; a kill does."""
    assert "suggests" not in exit_facts(-6)
    assert exit_facts(-9)["suggests"] == "rank-died"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SIGKILL", 9),
        ("Signals.SIGTERM", 15),
        ("9", 9),
        ("Segmentation fault", 11),
        ("killed", 9),
        ("SIGFOO", None),
    ],
)
def test_signal_number(text: str, number: int | None) -> None:
    """Names, numbers and the words of strsignal give Linux's number; unknown names give none."""
    assert signal_number(text) == number


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("3", (3,)),
        ("0-3,7", (0, 1, 2, 3, 7)),
        ("", ()),
        ("a-b", ()),
        ("5-", (5,)),
        ("1, 2", (1, 2)),
        ("4-2", ()),
    ],
)
def test_expand_numbers(text: str, numbers: tuple[int, ...]) -> None:
    """Ranges are expanded; parts that are no numbers are left out."""
    assert expand_numbers(text) == numbers


def test_expand_numbers_is_bounded() -> None:
    """A garbage range does not cost memory."""
    assert len(expand_numbers("0-99999999999")) == 4096
