"""What a report of NCCL's RAS client says of the ranks: who is behind, whose process does not answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from printed import init

from ncclscope.pipeline import read

if TYPE_CHECKING:
    from pathlib import Path

    from ncclscope.observation import Observation

TITLES = (
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n"
)


def table(*rows: tuple[int, int, str]) -> str:
    """(communicators, ranks of each, errors) by group, the largest first."""
    return TITLES + "".join(
        f"{group:5d}  {comms:8d}         4         8  {size:8d}  {size:8d}   RUNNING  {errors:>6s}\n"
        for group, (comms, size, errors) in enumerate(rows)
    )


def who(rank: int) -> str:
    return f"GPU {rank % 8} managed by process {4800 + rank} on node 10.0.0.{rank // 8 + 1}"


def counts(low: int, top: int, *, of: int = 32, op: str = "AllReduce", rank: int = 5, group: int = 0) -> str:
    """One rank at `low`, the others at `top`."""
    return (
        f"#{group}-0 (27a079b828ff1a7{group}) MISMATCH\n  Communicator ranks have different {op} operation counts\n"
        f"  {of - 1} ranks have launched up to operation {top}\n"
        f"  Rank {rank} has launched up to operation {low} -- {who(rank)}\n\n"
    )


def facts(tmp_path: Path, text: str, kind: str = "ras.behind") -> list[Observation]:
    log = tmp_path / "job.log"
    log.write_text(text, encoding="utf-8")
    return [o for o in read([log]).facts.observations if o.kind == kind]


def test_the_few_ranks_that_launched_less_are_behind(tmp_path: Path) -> None:
    (fact,) = facts(tmp_path, table((1, 32, "MISMATCH")) + counts(8, 9))
    assert (fact.ranks, fact.hosts, fact.pids) == ((5,), ("10.0.0.1",), (4805,))
    assert {name: fact.fields[name] for name in ("launched", "others_launched", "size", "unchanged")} == {
        "launched": 8,
        "others_launched": 9,
        "size": 32,
        "unchanged": False,
    }


def test_the_same_numbers_in_two_reports_are_unchanged_and_others_are_work(tmp_path: Path) -> None:
    first = table((1, 32, "MISMATCH")) + counts(8, 9)
    (fact,) = facts(tmp_path, first + first)
    assert fact.fields["unchanged"] is True
    assert facts(tmp_path, first + table((1, 32, "MISMATCH")) + counts(9, 10)) == []
    assert facts(tmp_path, first + table((1, 32, "OK"))) == []


def test_ranks_of_a_smaller_communicator_are_no_ranks_of_the_job(tmp_path: Path) -> None:
    (fact,) = facts(tmp_path, table((1, 32, "OK"), (8, 4, "MISMATCH")) + counts(8, 9, of=4, rank=1, group=1))
    assert (fact.ranks, fact.fields["behind"], fact.pids) == ((), (1,), (4801,))


def test_a_log_of_a_larger_job_tells_that_the_communicator_is_a_part(tmp_path: Path) -> None:
    log = "".join(init("a01", 100 + rank, rank, 64, bus=f"{rank}0") for rank in range(2))
    (fact,) = facts(tmp_path, log + table((1, 32, "MISMATCH")) + counts(8, 9))
    assert fact.ranks == ()


def test_an_excerpt_without_table_and_heading_is_still_read(tmp_path: Path) -> None:
    (fact,) = facts(tmp_path, "\n".join(counts(8, 9).split("\n")[1:]))
    assert fact.ranks == (5,)
    (fact,) = facts(tmp_path, "\n".join(counts(8, 9).split("\n")[2:]))
    assert fact.ranks == (5,)


def test_an_excerpt_that_ends_after_a_heading_names_nobody(tmp_path: Path) -> None:
    text = counts(8, 9) + "  Communicator ranks have different AllGather operation counts\n"
    (fact,) = facts(tmp_path, text)
    assert (fact.ranks, fact.fields["shape"]) == ((5,), "behind")
    log = tmp_path / "cut.log"
    log.write_text("  Communicator ranks have different AllGather operation counts\n", encoding="utf-8")
    result = read([log])
    assert not [o for o in result.facts.observations if o.kind == "ras.behind"]
    assert not result.warnings


def test_another_operation_is_told_from_fewer(tmp_path: Path) -> None:
    text = table((1, 32, "MISMATCH")) + counts(8, 9)
    text += (
        "  Communicator ranks have different AllGather operation counts\n"
        "  31 ranks have not launched any operations\n"
        f"  Rank 5 has launched up to operation 1 -- {who(5)}\n"
    )
    (fact,) = facts(tmp_path, text)
    assert (fact.fields["shape"], fact.fields["op"], fact.fields["other_op"]) == ("op", "AllReduce", "AllGather")


def test_a_communicator_that_is_made_without_one_rank(tmp_path: Path) -> None:
    text = (
        "#0-0 (27a079b828ff1a70) MISMATCH\n  Communicator ranks have different status\n"
        f"  31 ranks have status INIT\n  Rank 5 has status NOCOMM -- {who(5)}\n"
    )
    (fact,) = facts(tmp_path, table((1, 32, "MISMATCH")) + text)
    assert (fact.fields["shape"], fact.ranks) == ("init", (5,))
    assert facts(tmp_path, table((1, 32, "MISMATCH")) + text.replace("INIT", "FINALIZE")) == []


def test_dead_processes_and_missing_ranks_are_one_fact(tmp_path: Path) -> None:
    text = (
        "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
        "  Process 4805 on node 10.0.0.1 managing GPU 5\n\n"
        "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n"
    )
    before_2_26 = "  The missing rank: 5\n"
    for last in (before_2_26, f"  Rank 5 -- {who(5)}\n"):
        (fact,) = facts(tmp_path, table((1, 32, "INCOMPLETE")) + text + last, "ras.gone")
        assert (fact.fields["how"], fact.ranks, fact.pids) == ("dead", (5,), (4805,))
        assert "considered dead" in fact.evidence[0].text  # type: ignore[union-attr]


def test_a_report_does_not_end_a_run(tmp_path: Path) -> None:
    """A job that hangs and was asked is still open: what RAS says is no end of it."""
    log = "".join(init("a01", 100 + rank, rank, 32, bus=f"{rank}0") for rank in range(2))
    (end,) = facts(tmp_path, log + table((1, 32, "MISMATCH")) + counts(8, 9), "job.end")
    assert end.fields["how"] == "open"
