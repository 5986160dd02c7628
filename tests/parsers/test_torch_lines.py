"""One line at a time: what PyTorch, CUDA, Python and engines print, and what must not be taken for it.

The lines stand in tests/fixtures/torch/lines.yaml with every event and field that each must give.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from helpers import events_of_lines, line_of, pattern_problems, unmatched_patterns

from ncclscope.parsers import torch

if TYPE_CHECKING:
    from ncclscope.model import Event, Line

ROWS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "fixtures" / "torch" / "lines.yaml").read_text("utf-8")
)


def _line(row: dict[str, Any]) -> Line:
    return line_of(row["line"], 1, **row.get("env", {}))


def _shown(event: Event) -> dict[str, Any]:
    return {"kind": event.kind} | {k: list(v) if isinstance(v, tuple) else v for k, v in event.fields.items()}


def _key(event: dict[str, Any]) -> str:
    return str(event["kind"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["line"][:60])
def test_a_line_gives_exactly_these_events(row: dict[str, Any]) -> None:
    """Kind, nature, cause and every field; py.exception_line is asked for only where nothing else matches."""
    wanted = row["events"]
    got = [_shown(e) for e in events_of_lines(torch, [_line(row)]) if e.kind != "py.exception"]
    if not any(event["kind"] == "py.exception_line" for event in wanted):
        got = [event for event in got if event["kind"] != "py.exception_line"]
    assert sorted(got, key=_key) == sorted(wanted, key=_key)


def test_every_pattern_is_usable_and_seen_by_a_row() -> None:
    """Literals survive wrapping, kinds are well formed, cause and nature agree, no pattern lacks a line."""
    assert pattern_problems(torch) == []
    assert unmatched_patterns(torch, map(_line, ROWS)) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["line"][:60])
def test_text_before_the_message_does_not_hide_it(row: dict[str, Any]) -> None:
    """Excerpts keep an unknown prefix; only a bare exception needs the start of its line."""
    wanted = {e["kind"] for e in row["events"]} - {"py.exception_line", "py.keyboard_interrupt"}
    if row["line"].startswith(("failed to recv", "Failed to recv")):
        wanted.discard("torch.store_closed")
    glued = line_of("  8%|8         | 81/1000 [00:41<07:21] " + row["line"], 1, **row.get("env", {}))
    assert wanted <= {e.kind for e in events_of_lines(torch, [glued])}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["line"][:60])
def test_a_line_cut_anywhere_never_fails(row: dict[str, Any]) -> None:
    """Collectors cut lines in the middle; what is left may say less but never raises."""
    text = row["line"]
    for cut in range(0, len(text), 23):
        events_of_lines(torch, [line_of(text[:cut], 1), line_of(text[cut:], 2)])


# The nearest neighbours: a user's own words, progress, healthy start-up, NCCL's own lines.
OTHERS = [
    "",
    "step 1200 loss: nan lr: 3e-4",
    "killed 3 stale checkpoints",
    "Killed by the user? no, still running",
    "timeout waiting for data: 12 s",
    "Watchdog caught up with the queue",
    "INFO train: out of memory guard enabled (limit 70 GiB)",
    "using CUDA 12.8 on GPU 0",
    "CUDA version: 12.8, driver 570.86",
    "[0] NCCL INFO CUDA Dev 0, error checks on",
    "torch.cuda.empty_cache() called",
    "Epoch 3: loss=0.21, grad_norm=1.7, no nan found",
    "Error rate 0.3 after 200 steps",
    "worker 3 exited normally",
    "lr scheduler stepped to 1e-4",
    "Possible speed-up: enable bf16",
    "No available checkpoint, starting from scratch",
    "Assertion: everything is fine",
    "The client connected after 12 ms",
    "Finished writing checkpoint to /ckpt/step_100",
    "Process 12 has joined",
    "Cuda failure 'out of memory'",
    "CUDA error rate is 0.0 per hour",
    "NCCL version 2.27.3+cuda12.9",
    "Read error rate of the disk: 0",
    "iteration 5310/ 100000 | consumed samples: 5437440 | elapsed time per iteration (ms): 4021.7 |",
]


@pytest.mark.parametrize("text", OTHERS)
def test_a_programs_own_words_are_not_taken(text: str) -> None:
    """Training logs say error, killed, nan and timeout freely; only the producers' wording counts."""
    assert [e.kind for e in events_of_lines(torch, [line_of(text)])] == []


def test_the_global_rank_of_the_prefix_outranks_the_rank_in_the_group() -> None:
    """`[Rank 0]` inside a tensor-parallel group of global rank 5 is not global rank 0."""
    text = (
        "[PG ID 2 PG GUID 9(TENSOR_MODEL_PARALLEL_GROUP) Rank 0]  failure detected by watchdog at "
        "work sequence id: 8 PG status: last enqueued work: 9, last started work: 8, last completed work: 7"
    )
    (known,) = events_of_lines(torch, [line_of(text, rank=5)])
    assert (known.get("rank"), known.get("rank_certain"), known.get("pg_rank")) == (5, True, 0)
    assert known.get("pg_desc") == "TENSOR_MODEL_PARALLEL_GROUP"
    assert (
        known.get("seq_last_enqueued"),
        known.get("seq_last_started"),
        known.get("seq_last_completed"),
    ) == (9, 8, 7)
    (unknown,) = events_of_lines(torch, [line_of(text)])
    assert (unknown.get("rank"), unknown.get("rank_certain")) == (0, False)


def test_a_watchdog_that_repeats_itself_is_marked() -> None:
    """The exception that ends the watchdog quotes the line before it."""
    work = (
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=17, OpType=ALLREDUCE, "
        "NumelIn=4, NumelOut=4, Timeout(ms)=20000) ran for 20008 milliseconds before timing out."
    )
    events = events_of_lines(
        torch,
        [
            line_of(work, 1),
            line_of(f"[PG 0 Rank 3] Process group watchdog thread terminated with exception: {work}", 2),
            line_of(f"  what():  {work}", 3),
        ],
    )
    timeouts = [e for e in events if e.kind == "torch.watchdog_timeout"]
    assert [e.get("quoted") for e in timeouts] == [None, True, True]


def test_an_asynchronous_cuda_error_first_seen_by_the_watchdog_is_no_quote() -> None:
    """Nobody else may have printed it; what() does repeat it."""
    first, second = events_of_lines(
        torch,
        [
            line_of(
                "Process group watchdog thread terminated with exception: CUDA error: misaligned address",
                1,
            ),
            line_of("  what():  CUDA error: misaligned address", 2),
        ],
    )[1:]
    assert (first.kind, first.get("quoted")) == ("cuda.error", None)
    assert (second.kind, second.get("quoted")) == ("cuda.error", True)


def test_a_lone_port_clash_names_the_cause_only_as_an_exception() -> None:
    """A second agent on one host logs the same words and goes on as a client."""
    text = (
        "The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, "
        "code: -98, name: EADDRINUSE, message: address already in use"
    )
    (logged,) = events_of_lines(torch, [line_of(text, logger="c10", level="E")])
    assert (logged.get("nature"), logged.get("suggests"), logged.get("port")) == (
        "symptom",
        "rendezvous",
        29500,
    )
    raised = [
        e
        for e in events_of_lines(torch, [line_of(f"torch.distributed.DistNetworkError: {text}")])
        if e.kind == "torch.store_listen_failed"
    ]
    assert [(e.get("nature"), e.get("cause")) for e in raised] == [("cause", "rendezvous")]


def test_lines_of_64_kib_are_read_without_delay() -> None:
    """No expression may take more than linear time on garbage around a real start."""
    for start in (
        "CUDA error: ",
        "Watchdog caught collective operation timeout: WorkNCCL(",
        "ProcessGroupGloo::",
        "x: ",
    ):
        for filler in ("a", " ", "(", "[", "1, ", 'File "'):
            text = start + filler * (65536 // len(filler))
            events_of_lines(
                torch, [line_of(text), line_of("Traceback (most recent call last):"), line_of(text)]
            )


def test_no_event_has_a_field_that_its_kind_does_not_declare() -> None:
    """Rules are checked against the declared names, so an undeclared field could never be used."""
    declared: dict[str, set[str]] = {}
    for pattern in torch.PATTERNS:
        names = {*re.compile(pattern.regex).groupindex, *pattern.fields, *pattern.adds, "nature"}
        declared.setdefault(pattern.kind, set()).update(names | ({"cause"} if pattern.cause else set()))
    for block in torch.BLOCKS:
        for kind, fields in block.kinds.items():
            declared.setdefault(kind, set()).update(fields)
    missing = {
        (event.kind, name)
        for row in ROWS
        for event in events_of_lines(torch, [_line(row)])
        for name in event.fields
        if name not in declared[event.kind]
    }
    assert missing == set()
