"""Which host, process, rank, GPU and task are one thing, and which must not be joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from printed import complete, init, nccl, start, table, timeout, xid
from support import of_kind, only, read_texts

if TYPE_CHECKING:
    from pathlib import Path

ONE_HOST = init("node01", 653, 0, 2, bus="60") + init("node01", 654, 1, 2, bus="70")
# Two hosts of one kind: the same PCI addresses on both.
TWO_HOSTS = (
    init("node01", 653, 0, 4, bus="60") + init("node01", 654, 1, 4, bus="70")
    + init("node02", 653, 2, 4, bus="60") + init("node02", 654, 3, 4, bus="70")
)  # fmt: skip


def test_xid_joins_a_rank_by_bus_id(tmp_path: Path) -> None:
    """The kernel's PCI address is NCCL's busId: the rank on that GPU is meant."""
    lost = xid("0000:00:07", 79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")
    seen = read_texts(tmp_path, {"job.log": ONE_HOST, "dmesg.txt": lost})
    found = only(seen, "kernel.xid")
    assert (found.ranks, found.gpus, found.hosts) == ((1,), ("0000:00:07.0",), ("node01",))


def test_xid_joins_a_rank_by_pid(tmp_path: Path) -> None:
    """Without NCCL's busId, the pid that the launcher names tells the rank."""
    dead = table((1, -9, 1079), (0, -15, 1078))
    seen = read_texts(tmp_path, {"job.log": dead, "dmesg.txt": xid("0000:00:07", 13, "pid=1079, name=python, x")})
    assert only(seen, "kernel.xid").ranks == (1,)


def test_another_pid_namespace_excludes_nobody(tmp_path: Path) -> None:
    """In a container the kernel prints another pid than NCCL: the PCI address still names the rank."""
    fault = xid("0000:00:07", 31, "pid=2917653, name=python, channel 0x0000001e, MMU Fault")
    seen = read_texts(tmp_path, {"job.log": ONE_HOST, "dmesg.txt": fault})
    assert only(seen, "kernel.xid").ranks == (1,)


def test_a_pid_of_another_process_does_not_outweigh_the_address(tmp_path: Path) -> None:
    """Where address and pid name different ranks, the address wins: pids repeat across namespaces."""
    fault = xid("0000:00:07", 31, "pid=653, name=python, channel 0x0000001e, MMU Fault")
    seen = read_texts(tmp_path, {"job.log": ONE_HOST, "dmesg.txt": fault})
    assert only(seen, "kernel.xid").ranks == (1,)


def syslog(host: str, line: str) -> str:
    return f"Nov 30 19:42:01 {host} kernel: {line}"


def test_same_address_on_another_host_is_another_gpu(tmp_path: Path) -> None:
    """Hosts of one kind number their GPUs alike: the host of the kernel log decides."""
    lost = syslog("node02", xid("0000:00:07", 79, "GPU has fallen off the bus."))
    seen = read_texts(tmp_path, {"job.log": TWO_HOSTS, "kern.log": lost})
    found = only(seen, "kernel.xid")
    assert (found.ranks, found.hosts) == ((3,), ("node02",))


def test_a_host_without_ranks_names_no_rank(tmp_path: Path) -> None:
    """A kernel log of a machine that took no part blames nobody in the job."""
    lost = syslog("node77", xid("0000:00:07", 79, "GPU has fallen off the bus."))
    seen = read_texts(tmp_path, {"job.log": TWO_HOSTS, "kern.log": lost})
    assert only(seen, "kernel.xid").ranks == ()


def test_a_pod_and_its_node_have_two_names(tmp_path: Path) -> None:
    """In a pod NCCL prints the pod's name, the kernel the node's: with one host on each side they are one."""
    lost = syslog("gpu-node-77", xid("0000:00:07", 79, "GPU has fallen off the bus."))
    pod = ONE_HOST.replace("node01", "train-worker-0")
    seen = read_texts(tmp_path, {"job.log": pod, "kern.log": lost})
    assert only(seen, "kernel.xid").ranks == (1,)


def test_a_kernel_log_of_no_known_host_is_not_guessed(tmp_path: Path) -> None:
    """Two hosts have that address and the kernel log does not say whose it is."""
    lost = xid("0000:00:07", 79, "GPU has fallen off the bus.")
    seen = read_texts(tmp_path, {"job.log": TWO_HOSTS, "dmesg.txt": lost})
    assert only(seen, "kernel.xid").ranks == ()


def test_sub_communicators_do_not_renumber_ranks(tmp_path: Path) -> None:
    """Rank 0 of a group of two is global rank 2: the largest communicator numbers the ranks."""
    split = start("node02", 653, 0, 2, comm_id="0xaaaa", call="ncclCommSplit") + complete(
        "node02", 653, 0, 2, comm_id="0xaaaa", call="ncclCommSplit"
    )
    warn = nccl("node02", 653, "misc/socket.cc:50 Call to recv failed : Connection reset by peer", level="WARN")
    seen = read_texts(tmp_path, {"job.log": TWO_HOSTS + split + warn})
    assert {o.ranks for o in of_kind(seen, "nccl.init_complete")} == {(0,), (1,), (2,), (3,)}
    assert seen.facts.ranks.expected == 4
    warned = [o for o in seen.facts.observations if o.evidence and "Connection reset" in str(o.evidence[0])]
    assert warned
    assert {o.ranks for o in warned} == {(2,)}


def labelled(task: int, text: str) -> str:
    return "".join(f"{task}: {line}\n" for line in text.splitlines())


TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/workspace/train.py", line 80, in <module>\n    main()\n'
    "ValueError: bad sample 17\n"
)


def test_a_task_of_srun_is_a_rank_where_each_rank_is_a_task(tmp_path: Path) -> None:
    """srun --label with one task a rank: the label is the rank, also for lines that name none."""
    log = labelled(0, init("node01", 653, 0, 2)) + labelled(1, init("node01", 654, 1, 2, bus="70"))
    seen = read_texts(tmp_path, {"job.log": log + labelled(1, TRACEBACK)})
    assert only(seen, "py.exception").ranks == (1,)


def test_a_task_of_srun_is_no_rank_where_it_holds_a_node(tmp_path: Path) -> None:
    """One task a node with several ranks inside: task 1 is not rank 1."""
    log = labelled(0, init("node01", 653, 0, 4) + init("node01", 654, 1, 4, bus="70"))
    log += labelled(1, init("node02", 653, 2, 4) + init("node02", 654, 3, 4, bus="70"))
    seen = read_texts(tmp_path, {"job.log": log + labelled(1, TRACEBACK)})
    assert only(seen, "py.exception").ranks == ()


def test_tasks_that_start_elsewhere_follow_the_inner_rank(tmp_path: Path) -> None:
    """Where NCCL says that task 1 is rank 3, a line of task 1 without a rank is rank 3's."""
    log = labelled(0, init("node01", 653, 2, 4)) + labelled(1, init("node01", 654, 3, 4, bus="70"))
    seen = read_texts(tmp_path, {"job.log": log + labelled(1, TRACEBACK)})
    assert only(seen, "py.exception").ranks == (3,)


def test_a_cuda_device_is_never_a_rank(tmp_path: Path) -> None:
    """NCCL's `[1]` is a device of that process: without Init lines no rank is known."""
    warn = nccl(
        "node02", 653, "misc/socket.cc:50 Call to recv failed : Connection reset by peer", device=1, level="WARN"
    )
    seen = read_texts(tmp_path, {"job.log": warn})
    assert all(o.ranks == () for o in seen.facts.observations)
    assert seen.facts.ranks.seen == []


def test_rank_of_a_process_group_is_not_the_global_rank(tmp_path: Path) -> None:
    """`Rank 0` of a tensor-parallel group is rank 0 of that group; c10's own prefix says which it is globally."""
    line = (
        "[rank5]:[E1130 19:42:11.000000000 ProcessGroupNCCL.cpp:689] [PG ID 2 PG GUID 7(tp_group) Rank 1] "
        "Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=20000) ran "
        "for 20083 milliseconds before timing out.\n"
    )
    assert only(read_texts(tmp_path, {"job.log": line}), "torch.watchdog_timeout").ranks == (5,)
    bare = line.removeprefix("[rank5]:")
    assert only(read_texts(tmp_path / "bare", {"job.log": bare}), "torch.watchdog_timeout").ranks == ()


def test_file_names_are_hints_that_lines_overrule(tmp_path: Path) -> None:
    """rank7.log is rank 7's where its lines say nothing, and not where they say otherwise."""
    hinted = read_texts(tmp_path / "a", {"rank7.log": TRACEBACK})
    assert only(hinted, "py.exception").ranks == (7,)
    overruled = read_texts(tmp_path / "b", {"rank7.log": timeout(2, 5) + TRACEBACK})
    assert only(overruled, "py.exception").ranks == ()
    assert only(overruled, "torch.watchdog_timeout").ranks == (2,)


def test_pids_join_only_inside_one_host(tmp_path: Path) -> None:
    """Containers all start at pid 1: the same pid on two hosts is two ranks."""
    warn = nccl("node02", 654, "misc/socket.cc:50 Call to recv failed : Connection reset by peer", level="WARN")
    seen = read_texts(tmp_path, {"job.log": TWO_HOSTS + warn})
    warned = [o for o in seen.facts.observations if o.evidence and "Connection reset" in str(o.evidence[0])]
    assert {(o.ranks, o.hosts) for o in warned} == {((3,), ("node02",))}


KILLED = "mpirun noticed that process rank 1 with PID 7 on node a01 exited on signal 9 (Killed).\n"


def tagged(task: int, text: str) -> str:
    return "".join(f"[1,{task}]<stderr>:{line}\n" for line in text.splitlines())


@pytest.mark.parametrize("tag", [True, False], ids=["tagged", "untagged"])
def test_a_launcher_inside_a_task_names_its_own_tasks(tmp_path: Path, tag: bool) -> None:
    """mpirun under srun --label: the label is the task of mpirun itself, and its message is about rank 1."""
    spoken = {rank: f"[rank{rank}]: RuntimeError: Connection reset by peer\n" for rank in (0, 2)}
    inside = "".join(tagged(rank, text) if tag else text for rank, text in spoken.items())
    seen = read_texts(tmp_path, {"job.log": labelled(0, inside + KILLED)})
    assert only(seen, "mpi.rank_exit").ranks == (1,)


def test_the_task_that_a_launcher_runs_in_is_no_rank(tmp_path: Path) -> None:
    """Under srun, task 0 is mpirun with all its ranks: what mpirun says of no rank and what kills it is not rank 0's."""
    inside = "".join(tagged(rank, f"[rank{rank}]: RuntimeError: Connection reset by peer\n") for rank in (0, 1))
    ended = "Primary job  terminated normally, but 1 process returned\na non-zero exit code.\n"
    log = labelled(0, inside + ended) + "srun: error: node-03: task 0: Killed\n"
    seen = read_texts(tmp_path, {"job.log": log})
    assert only(seen, "mpi.primary_job").ranks == ()
    assert (only(seen, "rank.died").ranks, only(seen, "rank.died").hosts) == ((), ("node-03",))


def agent(local_rank: int, pid: int, code: int) -> str:
    return (
        "E0526 12:34:56.789000 570 torch/distributed/elastic/multiprocessing/api.py:1028] failed (exitcode: "
        f"{code}) local_rank: {local_rank} (pid: {pid}) of binary: /opt/venv/bin/python\n"
    )


def test_a_task_that_runs_torchrun_is_no_rank(tmp_path: Path) -> None:
    """Local rank 1 of task 1 is not rank 1: torchrun started several processes in the task."""
    seen = read_texts(tmp_path, {"job.log": labelled(0, agent(0, 99, -15)) + labelled(1, agent(1, 632, -9))})
    assert only(seen, "rank.died").ranks == ()
    sent = "W0526 12:34:56.789000 570 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 633 closing "
    beside = labelled(0, agent(0, 99, -15)) + labelled(1, agent(0, 632, -9) + sent + "signal SIGTERM\n")
    assert only(read_texts(tmp_path / "beside", {"job.log": beside}), "rank.died").ranks == ()


@pytest.mark.parametrize("tag", ["[default{}]:", "[trainer{}]:"])
def test_a_task_with_tagged_processes_is_no_rank(tmp_path: Path, tag: str) -> None:
    """torchrun's own tags, which number the processes of a node, stand inside the labels of srun."""
    refused = "RuntimeError: Connection reset by peer\n"
    lines = "".join(labelled(task, tag.format(local) + refused) for task in (0, 1) for local in (0, 1))
    seen = read_texts(tmp_path, {"job.log": lines + labelled(1, TRACEBACK)})
    assert only(seen, "py.exception").ranks == ()


def test_a_task_that_runs_torchrun_with_one_process_is_a_rank(tmp_path: Path) -> None:
    seen = read_texts(tmp_path, {"job.log": labelled(0, agent(0, 99, -15)) + labelled(1, agent(0, 632, -9))})
    assert only(seen, "rank.died").ranks == (1,)


def test_the_table_of_a_task_tells_the_rank_of_its_processes(tmp_path: Path) -> None:
    """torchrun's line names a local rank and a pid, its table below the global rank of that pid."""
    log = labelled(0, agent(0, 632, -15)) + labelled(1, agent(1, 632, -9) + table((3, -9, 632), host="node02"))
    seen = read_texts(tmp_path, {"job.log": log})
    assert (only(seen, "rank.died").ranks, only(seen, "rank.died").hosts) == ((3,), ("node02",))


RAY_RANKS = (
    "(TrainController pid=20) - (ip=10.20.0.11, pid=31) world_rank=0, local_rank=0, node_rank=0\n"
    "(TrainController pid=20) - (ip=10.20.0.11, pid=32) world_rank=1, local_rank=1, node_rank=0\n"
)


def said_by(who: str, text: str, after: str = "") -> str:
    return "".join(f"({who}) {line}{after}\n" for line in text.splitlines())


def test_a_line_that_ray_shows_once_for_several_is_no_ranks(tmp_path: Path) -> None:
    """Ray's pid before `[repeated 2x across cluster]` is that of one of those that printed the line."""
    folded = said_by("RayTrainWorker pid=32", TRACEBACK, " [repeated 2x across cluster]")
    found = only(read_texts(tmp_path, {"driver.log": RAY_RANKS + folded}), "py.exception")
    assert (found.ranks, found.pids) == ((), ())
    own = said_by("RayTrainWorker pid=32", TRACEBACK)
    found = only(read_texts(tmp_path / "own", {"driver.log": RAY_RANKS + own}), "py.exception")
    assert (found.ranks, found.pids) == ((1,), (32,))


@pytest.mark.parametrize(("head", "ranks", "pids"), [("0,1", (0, 1), (31, 32)), ("1", (1,), (32,))])
def test_the_ranks_of_a_snippet_raised_it_and_not_its_printer(
    tmp_path: Path, head: str, ranks: tuple[int, ...], pids: tuple[int, ...]
) -> None:
    """Ray Train's controller passes on its workers' tracebacks and says whose they were."""
    log = RAY_RANKS + said_by("TrainController pid=20", f"[Rank {head} Error Snippet]:\n{TRACEBACK}")
    found = only(read_texts(tmp_path, {"driver.log": log}), "py.exception")
    assert (found.ranks, found.hosts, found.pids) == (ranks, ("10.20.0.11",), pids)


def test_a_line_that_names_a_rank_says_nothing_of_others_with_its_prefix(tmp_path: Path) -> None:
    """`Duplicate GPU detected : rank 1 and rank 0` is rank 1's, whoever prints it."""
    told = nccl("node01", 653, "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60")
    seen = read_texts(tmp_path, {"job.log": ONE_HOST + told + nccl("node01", 653, "Connected all rings")})
    assert only(seen, "nccl.duplicate_gpu").ranks == (1,)
    assert only(seen, "nccl.connected").ranks == (0,)
