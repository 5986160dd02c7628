"""Lines as NCCL 2.28, PyTorch 2.11, torchrun and the kernel print them, with the values a test needs."""

from __future__ import annotations

__all__ = ["complete", "enqueued", "init", "nccl", "start", "table", "timeout", "xid"]


def nccl(host: str, pid: int, text: str, *, device: int = 0, level: str = "INFO") -> str:
    return f"{host}:{pid}:{pid} [{device}] NCCL {level} {text}\n"


def _comm(host: str, pid: int, rank: int, size: int, bus: str, comm_id: str, what: str, call: str) -> str:
    text = (
        f"{call} comm 0x{pid:x}{rank:02x} rank {rank} nranks {size} cudaDev {rank % 8} nvmlDev {rank % 8} "
        f"busId {bus} commId {comm_id} - Init {what}"
    )
    return nccl(host, pid, text, device=rank % 8)


def start(
    host: str, pid: int, rank: int, size: int, *, bus: str = "60", comm_id: str = "0xff66764d194f455c",
    call: str = "ncclCommInitRankConfig",
) -> str:  # fmt: skip
    return _comm(host, pid, rank, size, bus, comm_id, "START", call)


def complete(
    host: str, pid: int, rank: int, size: int, *, bus: str = "60", comm_id: str = "0xff66764d194f455c",
    call: str = "ncclCommInitRankConfig",
) -> str:  # fmt: skip
    return _comm(host, pid, rank, size, bus, comm_id, "COMPLETE", call)


def init(host: str, pid: int, rank: int, size: int, *, bus: str = "60", version: str = "2.28.9+cuda13.0") -> str:
    """A process from its banner to the end of init."""
    return (
        nccl(host, pid, f"NCCL version {version}")
        + nccl(host, pid, "Comm config Blocking set to 1")
        + start(host, pid, rank, size, bus=bus)
        + complete(host, pid, rank, size, bus=bus)
    )


def xid(bus: str, number: int, text: str, at: float = 100.0) -> str:
    return f"[{at:12.6f}] NVRM: Xid (PCI:{bus}): {number}, {text}\n"


def timeout(
    rank: int, seq: int, op: str = "ALLREDUCE", *, numel: int = 1024, at: str = "19:42:11.671442636", pg: str = ""
) -> str:
    return (
        f"[rank{rank}]:[E1130 {at} ProcessGroupNCCL.cpp:689] {pg}[Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=20000) ran for "
        "20083 milliseconds before timing out.\n"
    )


def enqueued(rank: int, last: int, done: int, *, at: str = "19:42:12.407651835") -> str:
    return (
        f"[rank{rank}]:[E1130 {at} ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
        f"Received a dump "
        f"signal due to a collective timeout from  rank 0 and we will try our best to dump the debug info. "
        f"Last enqueued "
        f"NCCL work: {last}, last completed NCCL work: {done}.\n"
    )


def table(*rows: tuple[int, int, int], host: str = "node01") -> str:
    """torchrun's failure table; a row is (rank, exit code, pid), the first one its root cause."""
    line = "=" * 60 + "\n"
    out = f"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n{line}/workspace/train.py FAILED\n"
    out += "-" * 60 + "\nFailures:\n"
    blocks = [
        f"[{i}]:\n  time      : 2026-11-30_19:41:18\n  host      : {host}\n  rank      : {rank} "
        f"(local_rank: {rank})\n"
        f"  exitcode  : {code} (pid: {pid})\n  error_file: <N/A>\n  traceback : Signal {-code} received by "
        f"PID {pid}\n"
        for i, (rank, code, pid) in enumerate(rows)
    ]
    return out + "".join(blocks[1:]) + "-" * 60 + f"\nRoot Cause (first observed failure):\n{blocks[0]}{line}"
