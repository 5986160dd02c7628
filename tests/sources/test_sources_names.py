"""Order of names, rotation, and what is passed over."""

from __future__ import annotations

import pytest

from ncclscope.sources.names import is_skipped, natural, rotations


def test_numbers_sort_by_value_and_directories_stay_together() -> None:
    wanted = ["a/rank2.log", "a/rank10.log", "a/x/1", "a-b/rank1.log", "b9", "b10", "b" + "1" * 5000]
    assert sorted(sorted(wanted), key=natural) == wanted
    assert sorted(wanted, key=natural) == wanted


def _order(*names: str) -> list[str]:
    """The names of the group of `job.log`, oldest first."""
    found = rotations(names)
    return sorted(
        (name for name in names if found[name][0].endswith("job.log")), key=lambda name: found[name][1]
    )


def test_numbered_files_of_one_log_are_one_group_oldest_first() -> None:
    names = ["d/job.log", "d/job.log.1", "d/job.log.2.gz", "d/job.log.10.gz"]
    assert _order(*names) == ["d/job.log.10.gz", "d/job.log.2.gz", "d/job.log.1", "d/job.log"]


def test_dated_files_of_one_log_are_one_group_oldest_first() -> None:
    names = ["job.log-20260526.gz", "job.log", "job.log-20260525.gz"]
    assert _order(*names) == ["job.log-20260525.gz", "job.log-20260526.gz", "job.log"]


def test_kubelet_rotation_is_one_group() -> None:
    found = rotations(["p/0.log", "p/0.log.20260526-120000.gz", "p/1.log"])
    assert {name: place[0] for name, place in found.items()} == {
        "p/0.log": "p/0.log",
        "p/0.log.20260526-120000.gz": "p/0.log",
        "p/1.log": "p/1.log",
    }


@pytest.mark.parametrize(
    "names",
    [
        ["log.0", "log.1", "log.2"],  # ranks
        ["job.log.0", "job.log.1"],
        ["nccl.log.45", "nccl.log.46"],  # processes
        ["a/job.log", "b/job.log.2"],  # different directories
        ["job.log-20260525", "job.log-20260526"],  # two runs
        ["rank1.log", "rank2.log"],
    ],
)
def test_names_that_only_look_rotated_stay_groups_of_their_own(names: list[str]) -> None:
    assert rotations(names) == {name: (name, 0) for name in names}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("train.py", ".py"),
        ("x/model.PT", ".pt"),
        ("lib.so.12", ".so"),
        ("events.out.tfevents.17.host", "tfevents"),
        (".git/config", "hidden"),
        ("__MACOSX/job.log", "hidden"),
        ("job.log", None),
        ("error.json", None),
        ("pod.yaml", None),
        ("./job.log", None),
        ("fr_rank_0.pickle", None),
        ("slurm-1.out", None),
        ("fr_rank_0", None),
    ],
)
def test_only_obvious_non_logs_are_passed_over(name: str, reason: str | None) -> None:
    assert is_skipped(name) == reason
