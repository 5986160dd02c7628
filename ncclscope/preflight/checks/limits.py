"""What the process and its container may use: shared memory, locked memory, open files, memory.

Thresholds here are this project's own, each with its reason; they are no limits that NCCL states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.preflight.checks.rdma import active_ports
from ncclscope.preflight.model import CheckResult, Evidence, NextStep, Subject
from ncclscope.preflight.settings import is_on, nccl_settings

if TYPE_CHECKING:
    from ncclscope.preflight.node import Node

# Shared memory is what is looked at here, not a place for files of ours.
_SHM_PATH = "/dev/shm"  # noqa: S108
SHM = Subject("shm", "Shared memory (/dev/shm)", "shm-limit")
MEMLOCK = Subject("memlock", "Locked memory", "memlock-limit")
FILES = Subject("open-files", "Open files", "fd-limit")
MEMORY = Subject("cgroup-memory", "Container memory", "oom-cgroup")

_MIB = 1 << 20
_GIB = 1 << 30
# NCCL's shared-memory transport maps about 10 MB a connection; with direct access it needs a few pages.
_SHM_FULL = 32 * _MIB
# The default of Docker and of Kubernetes. Enough for NCCL over NVLink, not for data loaders with workers.
_SHM_DEFAULT = 64 * _MIB
_SHM_COMFORT = 1 * _GIB
# InfiniBand pins every buffer that it sends from; the usual default of 64 KiB or 8 MiB fails at the first
# connection.
_MEMLOCK_LEAST = 64 * _MIB
_CAP_IPC_LOCK = 1 << 14
# Sockets to every peer, plug-ins and data loaders: 1024, the usual soft limit, is reached at some hundred
# ranks.
_FILES_COMFORT = 4096
_FILES_LEAST = 512
_MEMORY_PER_GPU = 4 * _GIB


def size(number: int) -> str:
    """Bytes in the unit a person would use."""
    for unit, factor in (("TiB", 1 << 40), ("GiB", _GIB), ("MiB", _MIB), ("KiB", 1 << 10)):
        if number >= factor:
            return f"{number / factor:.1f}".removesuffix(".0") + f" {unit}"
    return f"{number} bytes"


def shared_memory(node: Node) -> CheckResult:
    """Size and free space of /dev/shm against what NCCL and data loaders put there."""
    step = NextStep("See its size and what fills it.", "df -h /dev/shm; ls -l /dev/shm | head", "read_only")
    space = node.disk(_SHM_PATH)
    if space is None:
        return SHM.failed("There is no /dev/shm: NCCL's shared memory and data loaders fail.", step)
    total, free = space
    evidence = Evidence(_SHM_PATH, f"{size(total)}, {size(free)} free")
    fix = "Set --shm-size (Docker) or mount a memory-backed emptyDir at /dev/shm (Kubernetes)."
    several = len(node.gpus().gpus) > 1
    forced = is_on(nccl_settings(node), "NCCL_P2P_DISABLE")
    if several and (free < _SHM_FULL or (forced and total <= _SHM_DEFAULT)):
        why = " With NCCL_P2P_DISABLE=1 all traffic between the GPUs goes through it." if forced else ""
        return SHM.failed(f"Only {size(free)} of {size(total)} is free.{why} {fix}", step, evidence)
    if total < _SHM_COMFORT:
        return SHM.warned(
            f"{size(total)} is the container default. NCCL may get by with direct GPU access, but data "
            "loaders with "
            f"workers end in 'Bus error'. {fix}",
            step,
            evidence,
        )
    if free < total // 10:
        return SHM.warned(
            f"Nearly full: {size(free)} of {size(total)} free; look for left-over nccl-* files.",
            step,
            evidence,
        )
    return SHM.passed(f"{size(total)}, {size(free)} free.", evidence)


def memlock(node: Node) -> CheckResult:
    """Whether InfiniBand may pin its buffers. Without an active port it does not matter."""
    limits = node.limit("RLIMIT_MEMLOCK")
    if limits is None:
        return MEMLOCK.not_checked("this system has no such limit")
    soft = limits[0]
    evidence = Evidence("ulimit -l", "unlimited" if soft is None else size(soft))
    if soft is None:
        return MEMLOCK.passed("Unlimited.", evidence)
    if not active_ports(node):
        return MEMLOCK.passed(
            f"{size(soft)}; no active InfiniBand or RoCE port here, so it does not matter.", evidence
        )
    if _may_lock(node):
        return MEMLOCK.passed(
            f"{size(soft)}, but this process has CAP_IPC_LOCK, which lifts the limit.", evidence
        )
    if soft >= _MEMLOCK_LEAST:
        return MEMLOCK.warned(
            f"{size(soft)} of locked memory; InfiniBand wants it unlimited, large jobs will reach this.",
            NextStep("See the limit where the job runs.", "ulimit -l", "read_only"),
            evidence,
        )
    return MEMLOCK.failed(
        f"Only {size(soft)} may be locked: ibv_reg_mr or ibv_create_cq fails with 'Cannot allocate memory'. "
        "Use "
        "--ulimit memlock=-1 (Docker), the capability IPC_LOCK (Kubernetes) or LimitMEMLOCK=infinity "
        "(systemd, slurmd).",
        NextStep("See the limit where the job runs.", "ulimit -l", "read_only"),
        evidence,
    )


def _may_lock(node: Node) -> bool:
    for line in (node.read("/proc/self/status") or "").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) & _CAP_IPC_LOCK)
    return False


def open_files(node: Node) -> CheckResult:
    """The soft limit of open files, which sockets count against."""
    limits = node.limit("RLIMIT_NOFILE")
    if limits is None:
        return FILES.not_checked("this system has no such limit")
    soft, hard = limits
    evidence = Evidence("ulimit -n", "unlimited" if soft is None else str(soft))
    step = NextStep(
        "Raise it in the shell that starts the job.", 'ulimit -n "$(ulimit -Hn)"', "changes_environment"
    )
    if soft is None or soft >= _FILES_COMFORT:
        return FILES.passed("Unlimited." if soft is None else f"{soft}.", evidence)
    detail = f"The soft limit is {soft} (hard limit {'unlimited' if hard is None else hard})"
    if soft < _FILES_LEAST:
        return FILES.failed(
            f"{detail}: start-up of a few dozen ranks runs out of descriptors.", step, evidence
        )
    return FILES.warned(
        f"{detail}: large jobs and data loaders end in 'Too many open files'.", step, evidence
    )


def cgroup_memory(node: Node) -> CheckResult:
    """The memory limit of the container's cgroup and what is left of it."""
    found = _memory_limit(node)
    if found is None:
        return MEMORY.not_checked("no memory controller is visible under /sys/fs/cgroup")
    limit, used, source = found
    if limit is None:
        return MEMORY.passed("No limit.", Evidence(source, "max"))
    evidence = Evidence(source, size(limit) if used is None else f"{size(limit)}, {size(used)} in use")
    step = NextStep("See limit and use.", f"cat {source}", "read_only")
    count = max(1, len(node.gpus().gpus))
    shm = node.disk(_SHM_PATH)
    if used is not None and limit - used < _GIB:
        return MEMORY.failed(
            f"{size(max(0, limit - used))} is left of {size(limit)}: starting CUDA alone needs more per "
            "process.",
            step,
            evidence,
        )
    if limit < count * _MEMORY_PER_GPU:
        return MEMORY.warned(
            f"{size(limit)} for {count} GPU(s): each process with CUDA and PyTorch takes some 4 GiB before "
            "any data.",
            step,
            evidence,
        )
    if shm is not None and shm[0] > limit:
        return MEMORY.warned(
            f"{_SHM_PATH} may grow to {size(shm[0])} and counts against the limit of {size(limit)}.",
            step,
            evidence,
        )
    return MEMORY.passed(f"{size(limit)} for {count} GPU(s).", evidence)


def _memory_limit(node: Node) -> tuple[int | None, int | None, str] | None:
    """Limit (None.

    None), use and the file read, for cgroup v2 then v1, at this process's own cgroup first.
    """
    own = ""
    for line in (node.read("/proc/self/cgroup") or "").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" or "memory" in controllers.split(","):
            own = path.rstrip("/")
    for base in (f"/sys/fs/cgroup{own}", "/sys/fs/cgroup"):
        text = node.read(f"{base}/memory.max")
        if text is not None:
            return _number(text), _used(node, f"{base}/memory.current", base), f"{base}/memory.max"
    for base in (f"/sys/fs/cgroup/memory{own}", "/sys/fs/cgroup/memory"):
        text = node.read(f"{base}/memory.limit_in_bytes")
        if text is not None:
            limit = _number(text)
            # Version 1 writes 'no limit' as the largest multiple of the page size.
            unlimited = limit is None or limit >= 1 << 62
            used = _used(node, f"{base}/memory.usage_in_bytes", base)
            return None if unlimited else limit, used, f"{base}/memory.limit_in_bytes"
    return None


def _used(node: Node, path: str, base: str) -> int | None:
    """Memory in use without the file cache that the kernel gives back when it is asked to."""
    used = _number(node.read(path))
    if used is None:
        return None
    for line in (node.read(f"{base}/memory.stat") or "").splitlines():
        name, _, value = line.partition(" ")
        if name in {"inactive_file", "total_inactive_file"}:
            used -= _number(value) or 0
            break
    return max(0, used)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
