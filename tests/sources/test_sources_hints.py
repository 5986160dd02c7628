"""What file names say, and what they must not be taken to say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncclscope.sources import Hints
from ncclscope.sources.hints import hints_of

SAYS = {
    "rank7.log": Hints(rank=7),
    "rank_7": Hints(rank=7),
    "logs/rank007.txt": Hints(rank=7),
    "job_rank7.log": Hints(rank=7),
    "global_rank3.log": Hints(rank=3),
    "rank3/output.log": Hints(rank=3),
    "rank3_pid4242.log": Hints(rank=3, pid=4242),
    "rank3-20260526.log": Hints(rank=3),
    "rank3_stderr.log": Hints(rank=3, stream="stderr"),
    "rank7.log.2.gz": Hints(rank=7),
    "fr_rank_0": Hints(rank=0),
    "nccl_trace_rank_3": Hints(rank=3),
    "comm_lib_trace_rank_0": Hints(rank=0),
    "worker.r7.log": Hints(rank=7),
    "dgx-17.r3.log": Hints(host="dgx-17", rank=3),
    "hpc-gpu-101.r7.log": Hints(host="hpc-gpu-101", rank=7),
    "train-7f9c-worker-1.r1.log": Hints(pod="train-7f9c-worker-1", rank=1),
    "worker-3.log": Hints(pod="worker-3"),
    "bert-job-worker-2.log": Hints(pod="bert-job-worker-2"),
    "bert-job-master-0": Hints(pod="bert-job-master-0"),
    "job-node-0-3-x2k4p.log": Hints(pod="job-node-0-3-x2k4p"),
    "vllm-7f9c8d6b5-x2k4p.log": Hints(pod="vllm-7f9c8d6b5-x2k4p"),
    "pods/ml_train-worker-0_0f6c2d1e-1111-2222-3333-444455556666/pytorch/0.log": Hints(pod="train-worker-0"),
    "containers/train-worker-0_ml_pytorch-" + "0a" * 32 + ".log": Hints(pod="train-worker-0"),
    "node01.log": Hints(host="node01"),
    "node01/rank3.log": Hints(host="node01", rank=3),
    "node0.log": Hints(node_rank=0),
    "node-12.log": Hints(node_rank=12),
    "node_rank1.log": Hints(node_rank=1),
    "local_rank2.log": Hints(local_rank=2),
    "run/attempt_0/3/stderr.log": Hints(attempt=0, local_rank=3, stream="stderr"),
    "logs/none_x1y2/attempt_1/0/stdout.log": Hints(attempt=1, local_rank=0, stream="stdout"),
    "run/attempt_2/7/error.json": Hints(attempt=2, local_rank=7),
    "nccl.dgx-17.4242.log": Hints(host="dgx-17", pid=4242),
    "nccl_debug.dgx-17.4242": Hints(host="dgx-17", pid=4242),
    "ncclDebug.gpu-node-00.31": Hints(host="gpu-node-00", pid=31),
    "nccl-dgx-17-4242.txt": Hints(host="dgx-17", pid=4242),
    "worker-0b3c4d5e6f-01000000-4242.err": Hints(pid=4242, stream="stderr"),
    "worker-0b3c4d5e6f-01000000-4242.out": Hints(pid=4242, stream="stdout"),
    "slurm-1234-dgx-17.out": Hints(host="dgx-17"),
    "dmesg.log": Hints(kernel=True),
    "dmesg.txt": Hints(kernel=True),
    "kern.log.1": Hints(kernel=True),
    "messages": Hints(kernel=True),
    "messages-20260526": Hints(kernel=True),
    "journal.txt": Hints(kernel=True),
    "journalctl-k.log": Hints(kernel=True),
    "dgx-17/dmesg.txt": Hints(host="dgx-17", kernel=True),
    "cluster-a-42/dmesg": Hints(host="cluster-a-42", kernel=True),
    "dmesg-dgx-17.log": Hints(host="dgx-17", kernel=True),
    "dgx-17.dmesg.txt": Hints(host="dgx-17", kernel=True),
    "node01_kern.log": Hints(host="node01", kernel=True),
    "gpunode12.log": Hints(host="gpunode12"),
    "gpu-node-00.cluster.example.log": Hints(host="gpu-node-00.cluster.example"),
    "10.0.0.12/rank1.log": Hints(host="10.0.0.12", rank=1),
    "ip-10-0-0-12.log": Hints(host="ip-10-0-0-12"),
    "a.tar.gz/node01/rank3.log": Hints(host="node01", rank=3),
}

SAYS_NOTHING = [
    "",
    "<stdin>",
    "job.log",
    "train.log.1",
    "slurm-123_4.out",
    "slurm-123-4.out",
    "slurm-123.out",
    "rank0-7.log",
    "ranks.log",
    "rank3_rank4.log",
    "tp_rank_3.log",
    "pipeline-parallel-rank-3.log",
    "frank3.log",
    "nccl.log",
    "log.0",
    "run-3/output.log",
    "prefill-2.log",
    "gpu-3.log",
    "resume-loads-all-ranks-on-gpu0/input.log",
    "cases/pub-131/input.log",
]


@pytest.mark.parametrize(("name", "hints"), SAYS.items(), ids=SAYS)
def test_a_name_gives_its_hints_and_no_others(name: str, hints: Hints) -> None:
    assert hints_of(name) == hints


@pytest.mark.parametrize("name", SAYS_NOTHING)
def test_an_ambiguous_name_gives_no_hint(name: str) -> None:
    assert hints_of(name) == Hints()


@pytest.mark.parametrize(
    "name", ["job-123/dmesg.log", "run3/dmesg.txt", "20260526/dmesg", "xid79-then-flood/dmesg.log"]
)
def test_a_kernel_log_in_a_job_s_directory_names_no_host(name: str) -> None:
    assert hints_of(name) == Hints(kernel=True)


def test_the_file_s_own_name_goes_before_its_directory_s() -> None:
    assert hints_of("rank0/fr_rank_3").rank == 3


@given(
    st.text(alphabet=st.characters(codec=None), max_size=60)
    | st.from_regex(r"[a-z0-9._/-]{0,60}", fullmatch=True)
)
def test_any_name_gives_hints_without_an_error(name: str) -> None:
    assert isinstance(hints_of(name), Hints)
