"""What NVML and NCCL's library say about the GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ncclscope.preflight.checks import gpu as checks
from ncclscope.preflight.gpus import GpuSnapshot
from ncclscope.preflight.library import Library

from .conftest import FakeNode, gpu, library

if TYPE_CHECKING:
    from collections.abc import Callable


def with_gpus(node: FakeNode, *states: object) -> FakeNode:
    node.snapshot = replace(node.snapshot, gpus=states)
    return node


def test_arch_passes_where_every_gpu_has_machine_code(node: FakeNode) -> None:
    result = checks.arch(node)
    assert result.status == "pass"
    assert result.detail == "NCCL 2.28.9: has machine code for sm_90."
    assert result.evidence[0].value == "NCCL 2.28.9 built with CUDA 12.9"


def test_arch_fails_where_the_driver_would_compile_ptx_at_start(node: FakeNode) -> None:
    """NCCL 2.26.2 has only PTX for sm_120: the silent hang inside init."""
    node.nccl = library("nccl-2.26.2.so")
    with_gpus(node, gpu(0, name="NVIDIA GeForce RTX 5090", capability=(12, 0)))
    result = checks.arch(node)
    assert (result.status, result.category) == ("fail", "arch-mismatch")
    assert "sm_120" in result.detail
    assert result.next_step is not None
    assert result.next_step.command.startswith("ncclscope arch --target auto /")


def test_arch_fails_if_only_one_of_two_kinds_of_gpu_is_covered(node: FakeNode) -> None:
    node.nccl = library("nccl-2.26.2.so")
    with_gpus(node, gpu(0), gpu(1, name="NVIDIA B200", capability=(10, 0)))
    assert checks.arch(node).status == "fail"


def test_arch_fails_on_a_hole_in_some_code_objects(node: FakeNode) -> None:
    node.nccl = library("partial.so")
    assert checks.arch(node).status == "fail"


@pytest.mark.parametrize(
    ("nccl", "snapshot", "reason"),
    [
        (Library(None, None, "no libnccl.so was found"), None, "no libnccl.so"),
        (None, GpuSnapshot(problem="no_driver", message="Driver Not Loaded"), "Driver Not Loaded"),
        (None, GpuSnapshot((gpu(0, capability=None),)), "compute capability"),
    ],
)
def test_arch_is_not_checked_without_library_gpu_or_capability(
    node: FakeNode, nccl: Library | None, snapshot: GpuSnapshot | None, reason: str
) -> None:
    node.nccl, node.snapshot = nccl or node.nccl, snapshot or node.snapshot
    result = checks.arch(node)
    assert result.status == "not_checked"
    assert reason in result.detail


def test_no_gpu_is_not_a_failure_but_says_what_is_missing(bare: FakeNode, node: FakeNode) -> None:
    assert checks.gpus(bare).status == "not_checked"
    assert "No NVIDIA driver" in checks.gpus(bare).detail
    node.snapshot = GpuSnapshot(problem="other", message="no devices")
    assert "driver runs on this host but shows no GPU" in checks.gpus(node).detail


def test_a_container_that_was_told_to_show_no_gpu_is_told_apart(bare: FakeNode) -> None:
    bare.environ = {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert "NVIDIA_VISIBLE_DEVICES='void'" in checks.gpus(bare).detail


@pytest.mark.parametrize(
    ("problem", "category"), [("version_mismatch", "driver-mismatch"), ("no_answer", "gpu-hang")]
)
def test_a_driver_that_refuses_or_hangs_fails(bare: FakeNode, problem: str, category: str) -> None:
    bare.snapshot = GpuSnapshot(problem=problem, message="as NVML says")  # type: ignore[arg-type]
    result = checks.gpus(bare)
    assert (result.status, result.category) == ("fail", category)


def test_a_gpu_that_cannot_be_opened_or_is_prohibited_fails(node: FakeNode) -> None:
    node.snapshot = replace(node.snapshot, problem="other", message="GPU 1: GPU is lost")
    assert "GPU is lost" in checks.gpus(node).detail
    assert checks.gpus(node).status == "fail"


def test_prohibited_compute_mode_fails_and_mig_warns(node: FakeNode) -> None:
    assert checks.gpus(with_gpus(node, gpu(0, compute_prohibited=True))).status == "fail"


def test_mig_warns(node: FakeNode) -> None:
    assert checks.gpus(with_gpus(node, gpu(0, mig=True))).status == "warn"


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"remap_pending": True}, "fail", "waits for a GPU reset"),
        ({"retirement_pending": True}, "fail", "waits for a GPU reset"),
        ({"remap_failed": True}, "fail", "spare rows are used up"),
        ({"recovery_action": 2}, "fail", "a reboot of the node"),
        ({"recovery_action": 99}, "fail", "a repair"),
        ({"uncorrected_errors": 3}, "warn", "3 uncorrected ECC"),
        ({}, "pass", "No pending repair"),
    ],
)
def test_health_names_the_gpu_and_the_repair(
    node: FakeNode, change: dict[str, object], status: str, says: str
) -> None:
    result = checks.health(with_gpus(node, gpu(0), gpu(1, **change)))
    assert result.status == status
    assert says in result.detail
    assert status == "pass" or "GPU 1 (NVIDIA H200, 0000:4c:00.0)" in result.detail


def test_health_is_not_checked_where_nvml_tells_nothing(node: FakeNode) -> None:
    unknown = dict.fromkeys(
        ("remap_pending", "remap_failed", "retirement_pending", "uncorrected_errors", "recovery_action")
    )
    assert checks.health(with_gpus(node, gpu(0, **unknown))).status == "not_checked"


def test_memory_held_before_the_job_warns(node: FakeNode) -> None:
    result = checks.idle(with_gpus(node, gpu(0, memory_used=70 << 30)))
    assert result.status == "warn"
    assert "50%" in result.detail
    assert checks.idle(FakeNode(node.root)).status == "pass"


@pytest.mark.parametrize(
    ("change", "status", "category"),
    [
        ({"fabric_state": "not_started"}, "fail", "fabric-manager"),
        ({"fabric_state": "in_progress"}, "fail", "fabric-manager"),
        ({"fabric_status": 999}, "fail", "nvlink-fabric"),
        ({}, "pass", "fabric-manager"),
    ],
)
def test_fabric_must_be_complete(
    node: FakeNode, change: dict[str, object], status: str, category: str
) -> None:
    result = checks.fabric(with_gpus(node, gpu(0), gpu(1, **change)))
    assert (result.status, result.category) == (status, category)


def test_fabric_of_gpus_that_do_not_tell_needs_the_manager_among_the_processes(
    node: FakeNode, put: Callable[..., None]
) -> None:
    """HGX A100: NVSwitches, but NVML has no fabric state."""
    with_gpus(node, gpu(0, fabric_state="not_supported", fabric_status=None))
    assert checks.fabric(node).status == "not_checked"
    put("/proc/4711/comm", "nv-fabricmanage\n")
    assert checks.fabric(node).status == "pass"


def test_no_nvswitch_needs_no_fabric_manager(node: FakeNode, put: Callable[..., None]) -> None:
    for number in range(4):
        put(f"/dev/nvidia-nvswitch{number}", None)
    assert checks.fabric(with_gpus(node, gpu(0, fabric_state=None))).status == "pass"


def test_nvlinks_down_are_named(node: FakeNode) -> None:
    result = checks.nvlink(with_gpus(node, gpu(0), gpu(1, links_up=tuple(range(17)), links_down=(17,))))
    assert result.status == "warn"
    assert "GPU 1 (NVIDIA H200, 0000:4c:00.0): NVLink 17 down" in result.detail


def test_a_gpu_without_any_link_beside_one_with_links_fails(node: FakeNode) -> None:
    result = checks.nvlink(with_gpus(node, gpu(0), gpu(1, links_up=(), links_down=tuple(range(18)))))
    assert result.status == "fail"


def test_cards_without_a_bridge_pass(node: FakeNode, put: Callable[..., None]) -> None:
    """PCIe cards list their links as down when no bridge is plugged in."""
    for number in range(4):
        put(f"/dev/nvidia-nvswitch{number}", None)
    card = gpu(0, links_up=(), links_down=tuple(range(12)), fabric_state="not_supported")
    assert checks.nvlink(with_gpus(node, card)).status == "pass"
