"""Which files become one job."""

from __future__ import annotations

import re

import pytest

from ncclscope.scan.files import File, Root
from ncclscope.scan.jobs import group, in_shard

ROOT = Root("archive", "/data/archive")
PODS = ("train-worker-0", "train-worker-1", "eval-worker-0")
SESSIONS = ("session_2026-05-26_12-34-56_123456_789", "session_2026-05-27_12-34-56_123456_789")


def jobs(paths: str, pattern: str | None = None) -> dict[str, list[str]]:
    files = [File(path, 1, None, "") for path in paths.split()]
    return {
        job.name: [file.path for file in job.files]
        for job in group(ROOT, files, re.compile(pattern) if pattern else None)
    }


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        # a directory each, with parts below it
        ("job-1/rank0.log job-1/rank1.log job-2/rank0.log", "job-1 job-2"),
        ("job-1/node0/rank0.log job-1/node1/rank8.log job-1/logs/dmesg.log job-2/a.log", "job-1 job-2"),
        ("a/run1/attempt_0/0/stderr.log a/run1/attempt_1/7/stderr.log a/run2/attempt_0/0/stderr.log", "a/run1 a/run2"),
        ("1001/rank0.log 1002/rank0.log", "1001 1002"),
        # one job alone, its files at the top
        ("rank0.log rank1.log dmesg.log", "archive"),
        ("node0/a.log node1/a.log", "archive"),
        # archives
        ("a.tar.gz b.zip c/d.tar", "a.tar.gz b.zip c/d.tar"),
        # Slurm: plain, arrays, by host, submitit, and one job's files with nothing else beside them
        ("slurm-1001.out slurm-1002.out", "slurm-1001 slurm-1002"),
        ("slurm-1001_1.out slurm-1001_2.out", "slurm-1001_1 slurm-1001_2"),
        ("slurm-1001-dgx-17.out slurm-1001-dgx-18.out slurm-1002-dgx-17.out", "slurm-1001 slurm-1002"),
        ("pretrain-1001.out pretrain-1001.err pretrain-1002.out", "pretrain-1001 pretrain-1002"),
        ("pretrain.o1001 pretrain.e1001 pretrain.o1002", "pretrain.1001 pretrain.1002"),
        ("run7/slurm-1001.out run7/dmesg.log", "run7"),
        # Kubernetes: pods of one job, the kubelet's directories
        ("train-worker-0.log train-worker-1.log eval-worker-0.log", "eval train"),
        (
            " ".join(f"ml_{pod}_{i}123456789abcdef0123456789abcdef/pytorch/0.log" for i, pod in enumerate(PODS)),
            "eval train",
        ),
        # Ray: a session is a job
        (
            f"{SESSIONS[0]}/logs/worker-0a1b2c3d-01000000-42.err {SESSIONS[0]}/logs/raylet.out {SESSIONS[1]}/logs/raylet.out",
            " ".join(SESSIONS),
        ),
        # notes beside jobs are none
        ("job-1/a.log truth.jsonl README.md", "job-1"),
    ],
)
def test_names_and_places_make_jobs(paths: str, names: str) -> None:
    """Files are grouped by directory, archive and the usual names of Slurm, Kubernetes and Ray."""
    assert " ".join(sorted(jobs(paths))) == names


def test_a_pattern_names_jobs() -> None:
    """The group `job` counts, and what the pattern does not match is grouped as without it."""
    found = jobs("x/run-1-a.log x/run-1-b.log x/run-2-a.log y/c.log", r"(?P<job>run-\d+)-")
    assert found == {
        "run-1": ["x/run-1-a.log", "x/run-1-b.log"],
        "run-2": ["x/run-2-a.log"],
        "y": ["y/c.log"],
    }


def test_every_job_is_of_exactly_one_shard() -> None:
    """Shards share out all jobs, about evenly."""
    names = [f"job-{i}" for i in range(1000)]
    parts = [[name for name in names if in_shard(name, (i, 4))] for i in range(1, 5)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert all(150 < len(part) < 350 for part in parts)


def test_a_fingerprint_follows_the_files() -> None:
    """Another size, another time, another file: another fingerprint; another order: the same."""
    a, b = File("j/a.log", 1, 1.0, "1"), File("j/b.log", 1, 1.0, "1")
    marks = {
        group(ROOT, files)[0].fingerprint
        for files in ([a], [a, b], [File("j/a.log", 2, 1.0, "1")], [File("j/a.log", 1, 1.0, "2")])
    }
    assert len(marks) == 4
    assert group(ROOT, [a, b])[0].fingerprint == group(ROOT, [b, a])[0].fingerprint
