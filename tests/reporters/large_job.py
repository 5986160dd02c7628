"""Writes the logs of a large job that failed: one file a host, as `kubectl logs` of a node's pods would merge them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_large_job"]

GPUS = 8


def write_large_job(directory: Path, ranks: int, *, culprit: int = 777) -> list[Path]:
    """Files of a job of `ranks` in which rank `culprit` raised an exception and all others ran into the timeout."""
    culprit %= ranks
    paths = []
    for node in range((ranks + GPUS - 1) // GPUS):
        host = f"dgx-{node + 1:03d}"
        here = range(node * GPUS, min((node + 1) * GPUS, ranks))
        lines = [line for rank in here for line in _start(host, rank, ranks)]
        lines += [
            f"[rank{r}]: 2026-05-26 12:01:{s:02d},{r % 1000:03d} INFO train: step {s}"
            for s in range(5, 35)
            for r in here
        ]
        if culprit in here:
            lines += _raises(culprit)
        lines += [line for rank in here if rank != culprit for line in _times_out(rank)]
        path = directory / f"{host}.log"
        path.write_text("\n".join(lines) + "\n")
        paths.append(path)
    return paths


def _start(host: str, rank: int, ranks: int) -> list[str]:
    local = rank % GPUS
    pid = 1000 + local
    comm = f"comm 0x{0x5500_0000_0000 + rank * 64:x} rank {rank} nranks {ranks} cudaDev {local} nvmlDev {local}"
    comm += f" busId {0x1B000 + local * 0x1000:x}"
    head = f"[2026-05-26 12:00:{10 + rank % 7:02d}] {host}:{pid}:{pid} [{local}]"
    lines = [
        f"{head} NCCL INFO NCCL version 2.28.9+cuda13.0" if local == 0 else "",
        f"{head} NCCL INFO ncclCommInitRankConfig {comm} commId 0x65adb76f349e61cc - Init START",
        f"{head} NCCL INFO ncclCommInitRankConfig {comm} commId 0x65adb76f349e61cc - Init COMPLETE",
    ]
    return [line for line in lines if line]


def _raises(rank: int) -> list[str]:
    tag = f"[rank{rank}]:"
    return [
        f"{tag} 2026-05-26 12:01:35,120 INFO train: loading shard 17",
        f"{tag} Traceback (most recent call last):",
        f'{tag}   File "/workspace/train.py", line 80, in <module>',
        f"{tag}     main()",
        f'{tag}   File "/workspace/train.py", line 31, in main',
        f"{tag}     value = float(token)",
        f"{tag} ValueError: could not convert string to float: 'nan_token'",
    ]


def _times_out(rank: int) -> list[str]:
    head = f"[rank{rank}]:[E526 12:11:35.{rank % 1000:03d}307 ProcessGroupNCCL.cpp"
    work = "WorkNCCL(SeqNum=35, OpType=ALLREDUCE, NumelIn=4195328, NumelOut=4195328, Timeout(ms)=600000)"
    caught = f"Watchdog caught collective operation timeout: {work} ran for 600014 milliseconds before timing out."
    status = "PG status: last enqueued work: 35, last completed work: 34"
    detected = f"failure detected by watchdog at work sequence id: 35 {status}"
    down = "To avoid data inconsistency, we are taking the entire process down."
    return [
        f"{head}:689] [Rank {rank}] {caught}",
        f"{head}:2303] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  {detected}",
        f"{head}:757] [Rank {rank}] {down}",
    ]
