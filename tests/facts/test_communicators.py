"""Communicators: who started, who completed, who is missing; and init that went silent before it started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from printed import complete, init, nccl, start
from support import of_kind, only, read_texts

if TYPE_CHECKING:
    from pathlib import Path

ENDED = (
    "W1130 19:44:58.602000 640 torch/distributed/elastic/agent/server/api.py:739] Received 15 death signal, "
    "shutting down "
    "workers\n"
)
BEGUN = "2026-11-30 19:41:08,973 INFO train: starting\n"


def banner(pid: int) -> str:
    return nccl("node01", pid, "NCCL version 2.26.2+cuda12.2") + nccl("node01", pid, "Comm config Blocking set to 1")


def test_the_missing_are_size_minus_started(tmp_path: Path) -> None:
    """A rank that never printed START while others wait: it is named, with what was searched for."""
    log = BEGUN + "".join(banner(600 + r) + start("node01", 600 + r, r, 4) for r in (0, 1, 3)) + ENDED
    stuck = only(read_texts(tmp_path, {"job.log": log}), "comm.stuck")
    assert stuck.fields["shape"] == "ranks_missing"
    assert (stuck.fields["started"], stuck.fields["missing"], stuck.ranks) == ((0, 1, 3), (2,), (2,))
    assert [e.expected for e in stuck.evidence if hasattr(e, "expected")] == ["Init START of rank 2"]


def test_all_started_names_nobody(tmp_path: Path) -> None:
    """Every rank is in init and none came out: no rank differs, so none is blamed."""
    log = BEGUN + "".join(banner(600 + r) + start("node01", 600 + r, r, 2) for r in range(2)) + ENDED
    stuck = only(read_texts(tmp_path, {"job.log": log}), "comm.stuck")
    assert (stuck.fields["shape"], stuck.ranks) == ("all_started", ())


def test_some_completed_is_its_own_shape(tmp_path: Path) -> None:
    """One rank came out of init and the other did not."""
    log = BEGUN + "".join(banner(600 + r) + start("node01", 600 + r, r, 2) for r in range(2))
    stuck = only(read_texts(tmp_path, {"job.log": log + complete("node01", 600, 0, 2) + ENDED}), "comm.stuck")
    assert stuck.fields["shape"] == "some_completed"


def test_a_completed_communicator_is_no_finding(tmp_path: Path) -> None:
    """All ranks came up: nothing is stuck, however the log ends."""
    log = BEGUN + "".join(init("node01", 600 + r, r, 2) for r in range(2)) + ENDED
    assert of_kind(read_texts(tmp_path, {"job.log": log}), "comm.stuck") == []


def test_uncollected_logs_are_no_missing_ranks(tmp_path: Path) -> None:
    """The ranks that were collected completed: the others did too, or these could not have."""
    seen = read_texts(tmp_path, {"rank0.log": BEGUN + init("node01", 600, 0, 512) + ENDED})
    assert of_kind(seen, "comm.stuck") == []
    assert seen.facts.ranks.expected == 512
    assert "all_ranks" not in seen.facts.given


def test_a_missing_member_of_a_split_is_no_global_rank(tmp_path: Path) -> None:
    """In a group of two, rank 1 is missing: which global rank that is does not show, so none is blamed."""
    world = "".join(init("node01", 600 + r, r, 4) for r in range(4))
    group = start("node01", 602, 0, 2, comm_id="0xbeef", call="ncclCommSplit")
    stuck = only(read_texts(tmp_path, {"job.log": BEGUN + world + group + ENDED}), "comm.stuck")
    assert (stuck.fields["nranks"], stuck.fields["missing"], stuck.fields["world"]) == (2, (1,), False)
    assert stuck.ranks == ()


def test_two_splits_of_one_size_are_two_communicators(tmp_path: Path) -> None:
    """Groups of equal size are told apart by their id: both came up."""
    world = "".join(init("node01", 600 + r, r, 4) for r in range(4))
    groups = ""
    for rank in range(4):
        comm_id = f"0xbee{rank // 2}"
        groups += start("node01", 600 + rank, rank % 2, 2, comm_id=comm_id, call="ncclCommSplit")
        groups += complete("node01", 600 + rank, rank % 2, 2, comm_id=comm_id, call="ncclCommSplit")
    assert of_kind(read_texts(tmp_path, {"job.log": BEGUN + world + groups + ENDED}), "comm.stuck") == []


def old(pid: int, rank: int, what: str, bus: str = "60") -> str:
    """NCCL 2.10 to 2.15: no commId, and before 2.16 no START line."""
    return nccl("node01", pid, f"comm 0x7f{pid:x} rank {rank} nranks 2 cudaDev {rank} busId {bus} - Init {what}")


def test_versions_without_a_communicator_id(tmp_path: Path) -> None:
    """Ranks of one communicator are joined by its size where the version prints no id."""
    log = BEGUN + old(600, 0, "COMPLETE") + old(601, 1, "COMPLETE", "70") + ENDED
    seen = read_texts(tmp_path / "both", {"job.log": log})
    assert of_kind(seen, "comm.stuck") == []
    assert seen.facts.ranks.seen == [0, 1]
    log = BEGUN + old(600, 0, "START") + ENDED
    assert only(read_texts(tmp_path / "one", {"job.log": log}), "comm.stuck").ranks == (1,)


def test_silent_before_start_is_a_fact_of_its_own(tmp_path: Path) -> None:
    """Banner and Blocking line, then nothing for minutes until stopped: init went silent before START."""
    log = BEGUN + banner(600) + banner(601) + ENDED
    silent = only(read_texts(tmp_path, {"job.log": log}), "init.silent")
    assert silent.fields["nccl"] == "2.26.2"
    assert of_kind(read_texts(tmp_path, {"job.log": log}), "comm.stuck") == []


def test_the_blocking_line_alone_is_no_silence(tmp_path: Path) -> None:
    """It is in every healthy run: without a known end, or with START after it, nothing is said."""
    assert of_kind(read_texts(tmp_path / "a", {"job.log": BEGUN + banner(600)}), "init.silent") == []
    log = BEGUN + init("node01", 600, 0, 2) + init("node01", 601, 1, 2, bus="70") + ENDED
    assert of_kind(read_texts(tmp_path / "b", {"job.log": log}), "init.silent") == []


def test_a_short_silence_is_none(tmp_path: Path) -> None:
    """Stopped within seconds of the banner: that long every init takes."""
    soon = ENDED.replace("19:44:58", "19:41:20")
    assert of_kind(read_texts(tmp_path, {"job.log": BEGUN + banner(600) + soon}), "init.silent") == []


def test_an_error_in_init_is_no_silence(tmp_path: Path) -> None:
    """NCCL said what is wrong: that it then went quiet is no finding of its own."""
    warn = nccl("node01", 600, "enqueue.cc:1 Cuda failure 'named symbol not found'", level="WARN")
    assert of_kind(read_texts(tmp_path, {"job.log": BEGUN + banner(600) + warn + ENDED}), "init.silent") == []
