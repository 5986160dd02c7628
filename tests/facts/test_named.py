"""Ranks that lines of other ranks name: awaited, refused by a check, or sharing a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ncclscope.pipeline import read

if TYPE_CHECKING:
    from pathlib import Path

    from ncclscope.observation import Observation


def facts(tmp_path: Path, kind: str, text: str, name: str = "job.log") -> list[Observation]:
    log = tmp_path / name
    log.write_text(text, encoding="utf-8")
    return [o for o in read([log]).facts.observations if o.kind == kind]


UNIQUE_ID = (
    "[rank{printer}]: torch.distributed.DistBackendError: [{waiting}] is setting up NCCL communicator and "
    "retrieving ncclUniqueId from [{peer}] via c10d key-value store by key '0', but store->get('0') got error: "
    "wait timeout after 600000ms, keys: /default_pg/0//cuda//0\n"
)


def test_who_has_to_publish_the_unique_id_is_awaited(tmp_path: Path) -> None:
    text = UNIQUE_ID.format(printer=3, waiting=3, peer=0) + UNIQUE_ID.format(printer=5, waiting=5, peer=0)
    (fact,) = facts(tmp_path, "rank.awaited", text)
    assert (fact.ranks, fact.fields["waiting"]) == ((0,), (3, 5))


def test_a_number_inside_a_smaller_group_is_no_global_rank(tmp_path: Path) -> None:
    (fact,) = facts(tmp_path, "rank.awaited", UNIQUE_ID.format(printer=7, waiting=1, peer=0))
    assert fact.ranks == ()
    assert fact.fields["peer"] == 0


CLIENTS = "torch.distributed.DistStoreError: Timed out after 21 seconds waiting for clients. {}/{} clients joined.\n"


def test_the_missing_are_named_where_those_who_speak_are_as_many_as_joined(tmp_path: Path) -> None:
    (fact,) = facts(tmp_path, "rank.awaited", CLIENTS.format(1, 2), "worker-0.r0.log")
    assert (fact.ranks, fact.fields["have"], fact.fields["want"]) == ((1,), 1, 2)


@pytest.mark.parametrize(("have", "want"), [(3, 8), (1, 10**9), (2, 2)])
def test_nobody_is_named_by_a_number_alone(tmp_path: Path, have: int, want: int) -> None:
    assert all(not f.ranks for f in facts(tmp_path, "rank.awaited", CLIENTS.format(have, want)))


def test_who_came_alone_to_its_own_store_is_rank_0(tmp_path: Path) -> None:
    """Only the process that holds the store prints this, and it counts itself: no line has to say whose it is."""
    (fact,) = facts(tmp_path, "rank.awaited", CLIENTS.format(1, 3))
    assert fact.ranks == (1, 2)


def test_rank_0_is_among_those_who_came_though_no_line_names_it(tmp_path: Path) -> None:
    (fact,) = facts(tmp_path, "rank.awaited", "[rank1]: RuntimeError: Connection reset by peer\n" + CLIENTS.format(2, 3))
    assert fact.ranks == (2,)


@pytest.mark.parametrize(
    "others",
    ["[rank4]: " + CLIENTS.format(1, 2), "[rank5]: RuntimeError: Connection reset by peer\n" + CLIENTS.format(1, 2)],
)
def test_the_store_of_a_smaller_group_names_no_global_rank(tmp_path: Path, others: str) -> None:
    """A store that another rank than 0 holds, or of fewer processes than the job has, numbers its own group."""
    (fact,) = facts(tmp_path, "rank.awaited", others)
    assert (fact.ranks, fact.fields["have"], fact.fields["want"]) == ((), 1, 2)


def test_those_whom_every_line_names_did_not_come_to_the_barrier(tmp_path: Path) -> None:
    text = "RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 3000 ms\n"
    (fact,) = facts(tmp_path, "rank.awaited", text)
    assert (fact.ranks, fact.fields["what"]) == ((1, 3), "never_joined")


def test_a_rank_that_finished_an_earlier_collective_is_behind(tmp_path: Path) -> None:
    text = " - [2] finished collective #16, but didn't join collective #17 (count from 1)\n"
    text += " - [0, 1, 3] joined but didn't finish collective #17 (count from 1)\n"
    (fact,) = facts(tmp_path, "rank.awaited", text)
    assert (fact.ranks, fact.fields["what"], fact.fields["seq"]) == ((2,), "behind", 17)


def fingerprint(rank: int, op: str, shape: int) -> str:
    print_of = f"CollectiveFingerPrint(SequenceNumber=10, OpType={op}, TensorShape=[{shape}]"
    return f"Rank {rank} is running collective: {print_of}"


def mismatch(first: str, second: str) -> str:
    return (
        f"RuntimeError: Detected mismatch between collectives on ranks. {first}, TensorDtypes=Float), but {second}, "
        "TensorDtypes=Float).Collectives differ in the following aspects: x\n"
    )


def test_all_lines_together_show_which_side_is_smaller(tmp_path: Path) -> None:
    reduce0, reduce1 = fingerprint(0, "ALLREDUCE", 4), fingerprint(1, "ALLREDUCE", 4)
    gather2 = fingerprint(2, "_ALLGATHER_BASE", 4)
    text = mismatch(reduce0, gather2) + mismatch(reduce1, gather2) + mismatch(gather2, reduce0)
    (fact,) = facts(tmp_path, "collective.refused", text)
    assert (fact.ranks, fact.fields["mine"], fact.fields["tie"]) == ((2,), "_ALLGATHER_BASE", False)


def test_equal_operations_are_told_apart_by_their_shapes(tmp_path: Path) -> None:
    text = mismatch(fingerprint(0, "ALLREDUCE", 4), fingerprint(1, "ALLREDUCE", 8))
    (fact,) = facts(tmp_path, "collective.refused", text)
    assert (fact.fields["mine"], fact.fields["theirs"]) == ("ALLREDUCE of shape [8]", "ALLREDUCE of shape [4]")


def test_another_number_of_parameters_names_the_rank_that_differs(tmp_path: Path) -> None:
    text = (
        "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 2 params, while rank 3 has "
        "inconsistent 4 params.\n"
    )
    (fact,) = facts(tmp_path, "collective.refused", text)
    assert (fact.ranks, fact.fields["mine"], fact.fields["theirs"]) == ((3,), "4 parameters", "2 parameters")


def test_where_most_ranks_differ_from_rank_0_it_is_rank_0(tmp_path: Path) -> None:
    text = "".join(
        f"[rank{r}]: RuntimeError: [{r}]: params[0] in this process with sizes [8, 4] appears not to match sizes "
        "of the same param in process 0.\n"
        for r in (1, 2)
    )
    (fact,) = facts(tmp_path, "collective.refused", text)
    assert fact.ranks == (0,)


def test_both_ranks_of_one_line_share_the_gpu(tmp_path: Path) -> None:
    text = "Duplicate GPU detected : rank 3 and rank 2 both on CUDA device 40\n"
    (fact,) = facts(tmp_path, "gpu.shared", text)
    assert (fact.ranks, fact.fields["bus_id"]) == ((2, 3), "0000:00:04.0")
