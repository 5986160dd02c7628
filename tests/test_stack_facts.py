"""Who stands elsewhere than the others: facts from the stack dumps of several ranks together."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncclscope.observation import Observation
from ncclscope.pipeline import read

FIXTURES = Path(__file__).parent / "fixtures" / "stacks"

REDUCE = ("all_reduce (torch/distributed/distributed_c10d.py:3068)", "step (train.py:10)", "<module> (train.py:71)")
BARRIER = ("barrier (torch/distributed/distributed_c10d.py:5030)", "finish (train.py:60)", "<module> (train.py:71)")
SYNC = ("synchronize (torch/cuda/__init__.py:1162)", "step (train.py:11)", "<module> (train.py:71)")
STORE = ("c10d::TCPStore::doWait (libtorch_cpu.so)", "main (train.py:10)", "<module> (train.py:71)")
EVALUATE = ("evaluate (train.py:15)", "main (train.py:46)", "<module> (train.py:71)")
FORWARD = ("forward (model.py:30)", "main (train.py:44)", "<module> (train.py:71)")
SAVE = ("fsync (libc.so.6)", "save (train.py:12)", "<module> (train.py:71)")
WORKER = ("_worker_loop (torch/utils/data/_utils/worker.py:288)", "<module> (train.py:71)")


def dump(pid: int, *frames: str) -> str:
    return "\n".join([f'Thread {pid} (idle): "MainThread"', *(f"    {f}" for f in frames)]) + "\n"


def facts(where: Path, *stacks: tuple[str, ...], kind: str = "stack.odd", **files: str) -> list[Observation]:
    """Facts of one dump a rank, each in a file that names the rank."""
    for rank, frames in enumerate(stacks):
        (where / f"stack_rank{rank}.txt").write_text(dump(100 + rank, *frames))
    for name, text in files.items():
        (where / name).write_text(text)
    return [o for o in read([where]).facts.observations if o.kind == kind]


@pytest.mark.parametrize(
    ("scene", "rank", "where", "others", "shape"),
    [
        ("idget", 0, "user", "store_wait", "not_at_init"),
        ("bootstrap", 1, "user", "nccl_init", "not_at_init"),
        ("skip", 1, "user", "cuda_sync", "busy"),
        ("item", 1, "filesystem", "cuda_sync", "file_system"),
        ("barrier", 1, "dataloader", "collective", "busy"),
        ("wait", 1, "ptx_compile", "cuda_sync", "ptx"),
        ("compile-plain", 1, "compile", "collective", "busy"),
    ],
)
def test_the_rank_that_held_a_real_job_up_is_the_odd_one(
    scene: str, rank: int, where: str, others: str, shape: str
) -> None:
    found = [o for o in read([FIXTURES / scene]).facts.observations if o.kind == "stack.odd"]
    assert [(o.ranks, o.fields["where"], o.fields["others"], o.fields["shape"]) for o in found] == [
        ((rank,), where, others, shape)
    ]


@pytest.mark.parametrize(
    ("stacks", "ranks"),
    [
        ([REDUCE, EVALUATE], [(1,)]),
        ([REDUCE, REDUCE, EVALUATE, EVALUATE], [(2, 3)]),
        ([REDUCE, REDUCE, BARRIER], [(2,)]),
        ([STORE, REDUCE, REDUCE], [(0,)]),
        ([SAVE, SAVE, REDUCE], [(2,)]),
        ([REDUCE, REDUCE, EVALUATE, SAVE], [(3,), (2,)]),
        ([REDUCE, BARRIER], []),  # two that wait differently: neither is the majority
        ([REDUCE, REDUCE, BARRIER, BARRIER], []),
        ([REDUCE, SYNC, SYNC], []),  # the wait for the GPU is the wait for a collective
        ([REDUCE, REDUCE], []),
        ([EVALUATE, FORWARD], []),  # any running job
        ([REDUCE, EVALUATE, FORWARD], []),  # one came early, the others are on their way
        ([REDUCE], []),
        ([REDUCE, WORKER], []),  # a worker process is no rank
    ],
)
def test_whom_the_dumps_point_at(stacks: list[tuple[str, ...]], ranks: list[tuple[int, ...]], tmp_path: Path) -> None:
    assert [o.ranks for o in facts(tmp_path, *stacks)] == ranks


def test_a_dump_is_joined_to_its_rank_by_the_process(tmp_path: Path) -> None:
    init = (
        "a01:{p}:{p} [{r}] NCCL INFO ncclCommInitRankConfig comm 0x{r} rank {r} nranks 2 cudaDev {r} nvmlDev {r} "
        "busId {r}1000 commId 0xa - Init COMPLETE\n"
    )
    text = init.format(p=41, r=0) + init.format(p=42, r=1) + dump(42, *REDUCE) + dump(41, *EVALUATE)
    found = facts(tmp_path, **{"job.log": text})
    assert [(o.ranks, o.pids, o.hosts) for o in found] == [((0,), (41,), ("a01",))]


def test_the_last_dump_of_a_rank_counts(tmp_path: Path) -> None:
    facts(tmp_path, REDUCE, EVALUATE)
    with (tmp_path / "stack_rank1.txt").open("a") as file:
        file.write("\n" + dump(101, *REDUCE))
    assert [o for o in read([tmp_path]).facts.observations if o.kind == "stack.odd"] == []


def test_the_stack_of_a_crash_is_no_place_to_stand(tmp_path: Path) -> None:
    crash = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f4e83fd1b80 (most recent call first):\n"
        '  File "/app/train.py", line 93 in main\n  File "/app/train.py", line 125 in <module>\n'
    )
    assert facts(tmp_path, REDUCE, **{"job_rank1.log": crash}) == []


def test_ranks_without_a_dump_are_named_where_few_are_missing(tmp_path: Path) -> None:
    result = "a01:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks {n} nNodes 1 localRanks {n} localRank 0 MNNVL 0\n"
    found = facts(tmp_path, STORE, STORE, kind="stack.missing", **{"job.log": result.format(n=3)})
    assert [o.ranks for o in found] == [(2,)]
    assert facts(tmp_path, STORE, STORE, kind="stack.missing", **{"job.log": result.format(n=64)}) == []
    assert facts(tmp_path, REDUCE, REDUCE, kind="stack.missing", **{"job.log": result.format(n=3)}) == []
