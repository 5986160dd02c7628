"""What NCCL's start-up lines, peers, limits and CUDA failures are read as."""

from __future__ import annotations

import pytest
from helpers import (
    events_of,
    events_of_lines,
    kinds_of,
    line_of,
    pattern_problems,
    the_event,
    unmatched_patterns,
)
from nccl_ras_rows import CLIENT_ROWS, LOG_ROWS
from nccl_rows import INFO_ROWS, WARN_ROWS

from ncclscope.parsers import nccl

ROWS = [("INFO", *row) for row in [*INFO_ROWS, *LOG_ROWS]] + [("WARN", *row) for row in WARN_ROWS]


@pytest.mark.parametrize(("level", "text", "kind", "fields"), ROWS)
def test_line_is_read_as_its_kind(level: str, text: str, kind: str, fields: dict[str, object]) -> None:
    """The body that NCCL printed gives one event of the kind, with at least these fields."""
    event = the_event(nccl, kind, text, logger="nccl", level=level)
    assert {name: event.get(name) for name in fields} == fields


@pytest.mark.parametrize(("level", "text", "kind", "fields"), ROWS)
def test_pasted_line_with_its_prefix_is_read_alike(
    level: str, text: str, kind: str, fields: dict[str, object]
) -> None:
    """A pasted line whose prefix nobody took off means the same."""
    place = "misc/x.cc:88 " if level == "WARN" else ""
    event = the_event(nccl, kind, f"node1:11:42 [0] {place}NCCL {level} {text}")
    assert {name: event.get(name) for name in fields if name != "where"} == {
        name: value for name, value in fields.items() if name != "where"
    }


def test_patterns_keep_their_promises() -> None:
    """Literals can be searched in wrapped text, expressions compile, causes have their nature."""
    assert pattern_problems(nccl) == []


def test_every_pattern_is_matched_by_a_row() -> None:
    rows = [line_of(text, logger="nccl", level=level) for level, text, *_ in ROWS]
    rows += [line_of(text) for text, *_ in CLIENT_ROWS]
    assert unmatched_patterns(nccl, rows) == []


@pytest.mark.parametrize(("level", "text"), [row[:2] for row in ROWS])
def test_a_cut_line_never_crashes_and_names_no_other_cause(level: str, text: str) -> None:
    """Cut anywhere, a line gives no event of a cause that the whole line does not name."""
    whole = {event.get("cause") for event in events_of(nccl, text, logger="nccl", level=level)}
    for end in range(len(text)):
        for event in events_of(nccl, text[:end], logger="nccl", level=level):
            assert not event.get("cause") or event.get("cause") in whole


@pytest.mark.parametrize("text", [text for level, text, *_ in ROWS if level == "WARN"])
def test_a_warning_text_at_info_level_is_never_a_cause(text: str) -> None:
    """NCCL tries things on purpose and prints the failing try at INFO."""
    for event in events_of(nccl, text, logger="nccl", level="INFO"):
        assert not event.get("cause"), event


# Bodies that must say nothing: the nearest neighbours of the above, healthy lines, and users' own words.
SILENT = [
    "",
    "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
    "Channel 00/02 :    0   1",
    "Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
    "threadThresholds 8/8/64 | 16/8/64 | 512 | 512",
    "channel.cc:41 Cuda Alloc Size 1152 pointer 0x7f0000",
    "resp.opId=0x7f matches expected opId=0x7f",
    "step 100 loss 2.31 connection closed, retrying (1/3)",
    "RuntimeError: connect to 10.0.0.2 failed : Connection refused",
    "CUDA out of memory. Tried to allocate 2.00 GiB",
    "out of memory",
    "invalid usage: train.py [options]",
    "shared memory segment created",
    "INFO: Using network storage",
    "rank 3 nranks 8",
    "foo.cc:12 -> done",
    "Call to arms failed: Permission denied",
    "Last error: none",
]


@pytest.mark.parametrize("text", SILENT)
def test_neighbours_and_users_words_are_not_nccl_events(text: str) -> None:
    assert kinds_of(nccl, text) == []


def test_bus_id_is_a_four_part_address() -> None:
    """busId 901000 is domain 9, bus 1; busId 70 is device 7 of bus 0."""
    line = "comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId %s commId 0x2 - Init START"
    assert the_event(nccl, "nccl.init_start", line % "901000").get("bus_id") == "0009:01:00.0"
    assert the_event(nccl, "nccl.init_start", line % "70").get("bus_id") == "0000:00:07.0"


def test_cut_init_line_still_shows_that_the_rank_arrived() -> None:
    """A line cut before START or COMPLETE counts as arrival, without an id that may be cut short."""
    cut = "ncclCommInitRank comm 0x2e8b rank 3 nranks 8 cudaDev 1 nvmlDev 1 busId 70 commId 0x2fgpu-00:16"
    event = the_event(nccl, "nccl.init_cut", cut, logger="nccl", level="INFO")
    assert (event.get("rank"), event.get("nranks"), event.get("comm_id")) == (3, 8, None)


def test_whole_init_line_is_not_also_a_cut_one() -> None:
    for level, text, kind, _ in ROWS:
        if kind in ("nccl.init_start", "nccl.init_complete", "nccl.comm_end"):
            assert "nccl.init_cut" not in kinds_of(nccl, text, logger="nccl", level=level)


EXCEPTION = """\
torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled cuda error \
(run with NCCL_DEBUG=INFO for details), NCCL version 2.26.2
ncclUnhandledCudaError: Call to CUDA function failed.
Last error:
Cuda failure 'named symbol not found'
Exception raised from checkForNCCLErrorsInternal"""


def test_exception_of_torch_gives_class_version_and_last_error() -> None:
    """The text after `Last error:` is an event of its own and is read like the warning it repeats."""
    events = {event.kind: event for event in events_of(nccl, EXCEPTION)}
    assert events["nccl.last_error"].get("text") == "Cuda failure 'named symbol not found'"
    assert events["nccl.last_error"].ref.line == 4
    assert events["nccl.cuda_failure"].get("cause") == "arch-mismatch"
    assert events["nccl.error_class"].get("code") == 1
    assert events["nccl.version"].get("version") == "2.26.2"


def test_empty_last_error_gives_no_event() -> None:
    assert kinds_of(nccl, "Last error:\n\nException raised from abort") == []
    assert kinds_of(nccl, "Last error:") == []


def test_cuda_error_in_the_nvls_code_is_no_memory_shortage() -> None:
    """The place decides: NVLS and peer access refuse with the words of other errors."""
    text = "Cuda failure 2 'out of memory'"
    at = "transport/nvls.cc:155"
    event = the_event(nccl, "nccl.cuda_failure", text, logger="nccl", level="WARN", code=at)
    assert (event.get("nature"), event.get("suggests"), event.get("where")) == (
        "symptom",
        "nvlink-fabric",
        at,
    )


def test_every_warning_is_an_event_of_its_own_text() -> None:
    event = the_event(nccl, "nccl.warn", "Something new in 2.40", logger="nccl", level="WARN")
    assert dict(event.fields) == {"nature": "symptom", "text": "Something new in 2.40"}
    assert kinds_of(nccl, "Something new in 2.40", logger="nccl", level="INFO") == []


def test_known_warning_carries_versions_and_meaning() -> None:
    text = "Bootstrap : no socket interface found"
    event = the_event(nccl, "nccl.warn", text, logger="nccl", level="WARN")
    assert event.get("first") == "2.4.8"
    assert event.get("meaning")


def test_long_garbage_is_read_to_its_end() -> None:
    """64 KiB without line breaks: every expression stays linear on it."""
    for filler in (
        "rank 1 nranks 2 cudaDev ",
        "Call to ",
        "NET/OFI x ",
        "a(",
        "- Init START ",
        "NET/IB : peer ",
        "A_",
        "include/",
        "misc/shmutils.cc:72 -> 2 (No ",
        "group.cc:70 -> 1 [x",
        " ",
    ):
        text = (filler * (65536 // len(filler)))[:65536]
        events_of_lines(nccl, [line_of(text), line_of(text, logger="nccl", level="WARN")])
