"""Shared memory, locked memory, open files, the container's memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ncclscope.preflight.checks import limits

from .conftest import GIB, FakeNode, gpu

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 1 << 20


@pytest.mark.parametrize(
    ("total", "free", "environ", "status"),
    [
        (512 * GIB, 500 * GIB, {}, "pass"),
        (64 * MIB, 64 * MIB, {}, "warn"),  # the default of containers
        (64 * MIB, 64 * MIB, {"NCCL_P2P_DISABLE": "1"}, "fail"),
        (64 * MIB, 8 * MIB, {}, "fail"),
        (16 * GIB, 1 * GIB, {}, "warn"),  # left-over segments
    ],
)
def test_shared_memory(node: FakeNode, total: int, free: int, environ: dict[str, str], status: str) -> None:
    node.space["/dev/shm"], node.environ = (total, free), environ
    result = limits.shared_memory(node)
    assert (result.status, result.category) == (status, "shm-limit")


def test_a_lone_gpu_needs_no_shared_memory_for_nccl(node: FakeNode) -> None:
    node.snapshot = replace(node.snapshot, gpus=(gpu(0),))
    node.space["/dev/shm"] = (64 * MIB, 8 * MIB)
    assert limits.shared_memory(node).status == "warn"


def test_no_shared_memory_at_all_fails(bare: FakeNode) -> None:
    assert limits.shared_memory(bare).status == "fail"


@pytest.mark.parametrize(
    ("soft", "capabilities", "status"),
    [
        (None, "0", "pass"),
        (8 * MIB, "0", "fail"),
        (8 * MIB, "4000", "pass"),  # CAP_IPC_LOCK
        (1 * GIB, "0", "warn"),
    ],
)
def test_locked_memory(
    node: FakeNode, put: Callable[..., None], soft: int | None, capabilities: str, status: str
) -> None:
    put("/proc/self/status", f"Name:\tpython3\nCapEff:\t{capabilities:0>16}\n")
    node.limits["RLIMIT_MEMLOCK"] = (soft, soft)
    assert limits.memlock(node).status == status


def test_locked_memory_does_not_matter_without_rdma(bare: FakeNode) -> None:
    bare.limits["RLIMIT_MEMLOCK"] = (64 << 10, 64 << 10)
    assert limits.memlock(bare).status == "pass"


@pytest.mark.parametrize(
    ("soft", "status"), [(1 << 20, "pass"), (None, "pass"), (1024, "warn"), (256, "fail")]
)
def test_open_files(node: FakeNode, soft: int | None, status: str) -> None:
    node.limits["RLIMIT_NOFILE"] = (soft, None)
    assert limits.open_files(node).status == status


def test_memory_of_a_container_that_is_nearly_used_up_fails(node: FakeNode, put: Callable[..., None]) -> None:
    put("/sys/fs/cgroup/memory.max", str(64 * GIB))
    put("/sys/fs/cgroup/memory.current", str(64 * GIB - 1000))
    put("/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 0\n")
    assert limits.cgroup_memory(node).status == "fail"


def test_file_cache_does_not_count_as_used(node: FakeNode, put: Callable[..., None]) -> None:
    put("/sys/fs/cgroup/memory.max", str(600 * GIB))
    put("/sys/fs/cgroup/memory.current", str(599 * GIB + GIB // 2))
    put("/sys/fs/cgroup/memory.stat", f"anon 1\ninactive_file {500 * GIB}\n")
    assert limits.cgroup_memory(node).status == "pass"


def test_shared_memory_larger_than_the_limit_warns(node: FakeNode, put: Callable[..., None]) -> None:
    put("/sys/fs/cgroup/memory.max", str(256 * GIB))
    assert limits.cgroup_memory(node).status == "warn"


def test_a_limit_of_the_process_own_cgroup_is_found(node: FakeNode, put: Callable[..., None]) -> None:
    """On a host without a cgroup namespace, as under Slurm."""
    put("/sys/fs/cgroup/memory.max", None)
    put("/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_7/step_0\n")
    put("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/memory.max", str(4 * GIB))
    result = limits.cgroup_memory(node)
    assert result.status == "warn"
    assert "job_7" in result.evidence[0].source


@pytest.mark.parametrize(("limit", "status"), [(9223372036854771712, "pass"), (2 * GIB, "warn")])
def test_version_1_of_cgroups(node: FakeNode, put: Callable[..., None], limit: int, status: str) -> None:
    put("/sys/fs/cgroup/memory.max", None)
    put("/proc/self/cgroup", "9:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n")
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", str(limit))
    assert limits.cgroup_memory(node).status == status


def test_no_memory_controller_is_not_checked(bare: FakeNode) -> None:
    assert limits.cgroup_memory(bare).status == "not_checked"
