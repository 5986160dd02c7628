"""Waits that ran out in different collectives name the ranks that stand apart; other tracebacks name nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ncclscope.facts.tracebacks import odd_ones
from ncclscope.pipeline import read

if TYPE_CHECKING:
    from pathlib import Path

    from ncclscope.observation import Observation

RAN_OUT = "[../gloo/transport/tcp/unbound_buffer.cc:129] Timed out waiting 15000ms for send operation to complete"
C10D = "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
CLOSED = "[../gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:18085"


def traceback(rank: int, collective: str, line: int, error: str) -> str:
    return "".join(
        f"[rank{rank}]: {text}\n"
        for text in (
            "Traceback (most recent call last):",
            f'  File "/app/train.py", line {line}, in main',
            f"    dist.{collective}()",
            f'  File "{C10D}", line 1, in {collective}',
            "    work.wait()",
            f"RuntimeError: {error}",
        )
    )


def frames(tmp_path: Path, *tracebacks: str) -> list[Observation]:
    log = tmp_path / "job.log"
    log.write_text("".join(tracebacks), encoding="utf-8")
    return [o for o in read([log]).facts.observations if o.kind == "collective.frames"]


def test_the_minority_is_named_with_its_own_line(tmp_path: Path) -> None:
    (fact,) = frames(
        tmp_path,
        traceback(0, "barrier", 116, RAN_OUT),
        traceback(1, "all_gather", 114, RAN_OUT),
        traceback(2, "barrier", 116, RAN_OUT),
    )
    assert fact.ranks == (1,)
    assert (fact.fields["op"], fact.fields["other_op"]) == ("all_gather", "barrier")
    assert (fact.fields["user_line"], fact.fields["tie"]) == (114, False)


def test_two_ranks_are_a_tie_that_says_how_it_was_decided(tmp_path: Path) -> None:
    (fact,) = frames(tmp_path, traceback(0, "barrier", 116, RAN_OUT), traceback(1, "all_gather", 114, RAN_OUT))
    assert fact.ranks == (1,)
    assert fact.fields["tie"] is True
    assert "lowest rank" in str(fact.fields["why"])


@pytest.mark.parametrize(
    "other",
    [
        traceback(1, "barrier", 116, RAN_OUT),
        traceback(1, "all_gather", 114, CLOSED),
        traceback(1, "destroy_process_group", 130, RAN_OUT),
        "",
    ],
    ids=["the same collective", "a connection that closed", "tearing down", "nobody else"],
)
def test_nobody_is_named(tmp_path: Path, other: str) -> None:
    assert frames(tmp_path, traceback(0, "barrier", 116, RAN_OUT), other) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({0: "a", 1: "a"}, None),
        ({}, None),
        ({0: "a", 1: "b", 2: "a"}, ([1], "b", "a", False)),
        ({0: "b", 1: "a", 2: "a"}, ([0], "b", "a", False)),
        ({3: "a", 1: "b"}, ([3], "a", "b", True)),
        ({0: "a", 1: "b", 2: "b", 3: "c"}, ([0, 3], "a", "b", False)),
    ],
)
def test_the_most_common_value_is_right_and_the_lowest_rank_breaks_ties(
    values: dict[int, object], expected: object
) -> None:
    assert odd_ones(values) == expected
