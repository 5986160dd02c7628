"""Who is to blame by the dumps: by majority, with dumps missing, and only when they can tell."""

from __future__ import annotations

import itertools
import pickle
import shutil
from pathlib import Path

import pytest

from ncclscope.pipeline import analyze
from ncclscope.report import Report

DUMPS = Path(__file__).parent.parent / "fixtures" / "flight_recorder"


def _blamed(report: Report) -> list[int]:
    first = report.findings[0] if report.findings else None
    return first.culprit.ranks if first is not None and first.role == "root_cause" else []


def _dump(path: Path, ops: list[tuple[str, str]], ranks: range, sizes: tuple[int, ...] = (4,)) -> None:
    """Writes a dump with one entry for each (operation, state)."""
    entries = [
        {
            "record_id": n,
            "process_group": ("0", "default_pg"),
            "collective_seq_id": n,
            "is_p2p": False,
            "profiling_name": f"nccl:{op}",
            "input_sizes": [list(sizes)],
            "output_sizes": [list(sizes)],
            "input_dtypes": ["Float"],
            "output_dtypes": ["Float"],
            "state": state,
        }
        for n, (op, state) in enumerate(ops, 1)
    ]
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(ranks))}}
    path.write_bytes(pickle.dumps({"version": "2.10", "entries": entries, "pg_config": config}, protocol=2))


@pytest.mark.parametrize(("case", "ranks"), [("other-operation", [1]), ("fewer", [1]), ("fewer-of-eight", [7])])
def test_recorded_dumps_name_the_culprit_without_any_log(case: str, ranks: list[int]) -> None:
    """The dumps alone are enough."""
    report = analyze([DUMPS / case])
    assert _blamed(report) == ranks
    assert report.findings[0].category == "collective-mismatch"


def test_a_third_of_the_dumps_may_be_missing(tmp_path: Path) -> None:
    """Whichever two or three of eight dumps are missing: the culprit is named, or nobody; never somebody else."""
    everyone = sorted((DUMPS / "fewer-of-eight").iterdir())
    named = 0
    for number, gone in enumerate(itertools.combinations(range(8), 3)):
        folder = tmp_path / str(number)
        folder.mkdir()
        for path in everyone:
            if int(path.name.rsplit("_", 1)[1]) not in gone:
                shutil.copy(path, folder)
        blamed = _blamed(analyze([folder]))
        assert blamed in ([7], []), gone
        assert (blamed == [7]) == (7 not in gone), gone
        named += blamed == [7]
    assert named == 35


def test_one_missing_dump_makes_its_rank_the_suspect(tmp_path: Path) -> None:
    """All others wait in the same collective: a rank that died writes no dump."""
    for rank in range(3):
        _dump(tmp_path / f"nccl_trace_rank_{rank}", [("all_reduce", "completed"), ("all_reduce", "started")], range(4))
    report = analyze([tmp_path])
    assert _blamed(report) == [3]
    assert report.findings[0].category == "rank-absent"


def test_everybody_waiting_names_nobody(tmp_path: Path) -> None:
    """Equal entries on all ranks: the network or a GPU, no rank of the program."""
    for rank in range(4):
        _dump(tmp_path / f"nccl_trace_rank_{rank}", [("all_reduce", "completed"), ("all_reduce", "started")], range(4))
    report = analyze([tmp_path])
    assert report.verdict == "symptom_only"
    assert _blamed(report) == []


def test_two_ranks_that_differ_from_the_start_are_a_tie(tmp_path: Path) -> None:
    """Nothing that came before tells which of two operations is the odd one: both are named, neither is blamed."""
    _dump(tmp_path / "fr_rank_0", [("all_reduce", "started")], range(2))
    _dump(tmp_path / "fr_rank_1", [("broadcast", "started")], range(2))
    report = analyze([tmp_path])
    assert report.findings[0].category == "collective-mismatch"
    assert report.findings[0].culprit.ranks == []


def test_another_size_on_one_rank_is_found(tmp_path: Path) -> None:
    """Same operation, other dimensions: the minority is to blame."""
    for rank in range(3):
        _dump(tmp_path / f"fr_rank_{rank}", [("all_reduce", "started")], range(3), sizes=(8,) if rank == 2 else (4,))
    assert _blamed(analyze([tmp_path])) == [2]


def test_a_rank_held_up_in_its_own_stream_is_the_suspect(tmp_path: Path) -> None:
    """scheduled on one rank while the others run: its GPU is busy or stuck with something before."""
    for rank in range(3):
        _dump(tmp_path / f"fr_rank_{rank}", [("all_reduce", "scheduled" if rank == 1 else "started")], range(3))
    report = analyze([tmp_path])
    assert report.ranks.seen == [0, 1, 2]
    assert _blamed(report) == [1]


def test_a_ring_that_wrapped_is_no_missing_collective(tmp_path: Path) -> None:
    """Entries that a full ring lost are not compared."""
    for rank in range(2):
        _dump(tmp_path / f"fr_rank_{rank}", [("all_reduce", "completed")] * 5, range(2))
    raw = pickle.loads((tmp_path / "fr_rank_1").read_bytes())  # noqa: S301
    raw["entries"] = raw["entries"][3:]
    (tmp_path / "fr_rank_1").write_bytes(pickle.dumps(raw, protocol=2))
    assert analyze([tmp_path]).verdict == "no_failure"
