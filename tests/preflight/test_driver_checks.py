"""Driver library, kernel module and the CUDA of NCCL and PyTorch."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support import options, shipped, write

from ncclscope.pipeline import analyze
from ncclscope.preflight.checks import driver, kernel_log

from .conftest import FakeNode, library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder)\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Thu Oct 19 18:56:32 UTC 2023\n"


def libcuda(tree: Path, directory: str, version: str) -> None:
    folder = tree / directory
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"libcuda.so.{version}").touch()
    (folder / "libcuda.so.1").symlink_to(f"libcuda.so.{version}")


@pytest.mark.parametrize(
    ("line", "version"), [(OPEN, "580.65.06"), (CLOSED, "535.129.03"), (CLOSED, "550.54")]
)
def test_the_modules_version_is_read_from_both_kinds(
    node: FakeNode, put: Callable[..., None], line: str, version: str
) -> None:
    put("/proc/driver/nvidia/version", line.format(version))
    assert driver.module_version(node) == version


def test_equal_versions_pass(node: FakeNode) -> None:
    assert driver.versions(node).status == "pass"


def test_another_library_than_the_module_fails(node: FakeNode, put: Callable[..., None]) -> None:
    put("/proc/driver/nvidia/version", CLOSED.format("535.129.03"))
    result = driver.versions(node)
    assert (result.status, result.category) == ("fail", "driver-mismatch")
    assert "580.159.02" in result.detail
    assert "535.129.03" in result.detail


def test_forward_compatibility_passes_only_above_the_module(node: FakeNode, tree: Path) -> None:
    libcuda(tree, "usr/local/cuda-13.1/compat", "590.44.01")
    node.environ = {"LD_LIBRARY_PATH": "/usr/local/cuda-13.1/compat:/usr/lib"}
    assert driver.versions(node).status == "pass"
    libcuda(tree, "usr/local/cuda-12.2/compat", "535.104.05")
    node.environ = {"LD_LIBRARY_PATH": "/usr/local/cuda-12.2/compat"}
    result = driver.versions(node)
    assert result.status == "fail"
    assert "803" in result.detail


def test_a_compat_directory_in_the_loaders_configuration_counts(
    node: FakeNode, tree: Path, put: Callable[..., None]
) -> None:
    libcuda(tree, "usr/local/cuda/compat/lib.real", "535.104.05")
    put("/etc/ld.so.conf.d/00-cuda-compat.conf", "/usr/local/cuda/compat/lib.real\n")
    assert driver.versions(node).status == "fail"


def test_no_module_and_no_library_are_not_checked(bare: FakeNode, node: FakeNode, tree: Path) -> None:
    assert driver.versions(bare).status == "not_checked"
    for path in (tree / "usr/lib/x86_64-linux-gnu").iterdir():
        path.unlink()
    assert driver.versions(node).status == "not_checked"


@pytest.mark.parametrize(
    ("nccl", "supported", "status"),
    [
        ("nccl-2.28.9.so", "13.0", "pass"),  # backward compatible
        ("nccl-2.28.9.so", "12.2", "pass"),  # minor version compatibility
        ("nccl-2.28.9.so", "11.8", "fail"),
        ("nccl-2.26.2.so", "12.2", "pass"),
    ],
)
def test_the_driver_must_cover_nccls_cuda(
    node: FakeNode, put: Callable[..., None], nccl: str, supported: str, status: str
) -> None:
    put("/usr/local/lib/python3.12/dist-packages/torch/version.py", "cuda = None\n")
    node.nccl = library(nccl)
    node.snapshot = replace(node.snapshot, cuda=supported)
    assert driver.runtime(node).status == status


def test_pytorchs_cuda_counts_too(node: FakeNode) -> None:
    """The tree's PyTorch is built with CUDA 13.0."""
    node.snapshot = replace(node.snapshot, cuda="12.8", driver="570.86.15")
    result = driver.runtime(node)
    assert result.status == "fail"
    assert "PyTorch (CUDA 13.0)" in result.detail


def test_without_nvml_the_module_decides(bare: FakeNode, node: FakeNode, put: Callable[..., None]) -> None:
    node.snapshot = bare.snapshot
    assert driver.runtime(node).status == "pass"
    put("/proc/driver/nvidia/version", CLOSED.format("535.129.03"))
    assert driver.runtime(node).status == "fail"
    assert driver.runtime(bare).status == "not_checked"


def xid(seconds: float, number: int, text: str, address: str = "0000:1b:00") -> str:
    return f"4,99,{int(seconds * 1e6)},-;NVRM: Xid (PCI:{address}): {number}, {text}\n"


NOW = 864000.12


@pytest.mark.parametrize(
    ("number", "text", "status", "category"),
    [
        (79, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "fail", "gpu-fell-off-bus"),
        (48, "pid=1, name=python, DBE (double bit error) ECC Error", "fail", "gpu-hardware-ecc"),
        (119, "pid=1, name=python, Timeout after 6s of waiting for RPC response", "fail", "gpu-hang"),
        (74, "pid='<unknown>', name=<unknown>, NVLink: fatal error detected", "warn", "nvlink-fabric"),
        (
            154,
            "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            "fail",
            "gpu-hardware-ecc",
        ),
        (31, "pid=1, name=python, Ch 00000008, MMU Fault", "pass", "gpu-hardware-ecc"),
        (43, "pid=1, name=python, Ch 00000008", "pass", "gpu-hardware-ecc"),
    ],
)
def test_xids_of_the_hardware_count_and_those_of_programs_do_not(
    node: FakeNode, put: Callable[..., None], number: int, text: str, status: str, category: str
) -> None:
    put("/dev/kmsg", xid(NOW - 60, number, text))
    result = kernel_log.xid(node)
    assert (result.status, result.category) == (status, category)


def test_an_xid_that_fails_a_node_has_the_cause_class_and_rule_that_triage_gives_it(
    node: FakeNode, put: Callable[..., None], tmp_path: Path
) -> None:
    failing = 0
    for number in range(1, 180):
        put("/dev/kmsg", xid(NOW - 60, number, "pid='<unknown>', name=<unknown>, detail"))
        result = kernel_log.xid(node)
        if result.status != "fail":
            continue
        failing += 1
        line = f"[864000.12] NVRM: Xid (PCI:0000:1b:00): {number}, pid='<unknown>', name=<unknown>, detail\n"
        paths = write(tmp_path, {f"{number}.log": line})
        first = analyze(paths, options=options(), pack=shipped()).findings[0]
        assert (first.category, first.rule in result.rules) == (result.category, True), number
    assert failing > 20


def test_an_xid_older_than_a_day_does_not_count(node: FakeNode, put: Callable[..., None]) -> None:
    put("/dev/kmsg", xid(NOW - 90000, 79, "GPU has fallen off the bus."))
    assert kernel_log.xid(node).status == "pass"


def test_a_recovery_action_back_to_none_clears_that_gpu_alone(
    node: FakeNode, put: Callable[..., None]
) -> None:
    reset = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
    log = xid(NOW - 60, 95, "Uncontained") + xid(NOW - 30, 154, reset)
    put("/dev/kmsg", log)
    assert kernel_log.xid(node).status == "pass"
    put("/dev/kmsg", log + xid(NOW - 10, 95, "Uncontained", "0000:4c:00"))
    result = kernel_log.xid(node)
    assert result.status == "fail"
    assert "0000:4c:00" in result.detail


def test_an_xid_of_a_gpu_that_is_not_here_only_warns(node: FakeNode, put: Callable[..., None]) -> None:
    put("/dev/kmsg", xid(NOW - 60, 79, "GPU has fallen off the bus.", "0000:db:00"))
    assert kernel_log.xid(node).status == "warn"


def test_a_kernel_log_that_may_not_be_read_is_not_checked(bare: FakeNode) -> None:
    assert kernel_log.xid(bare).status == "not_checked"
