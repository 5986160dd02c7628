"""Asking the machine for its GPUs, with stand-ins for NVML and nvidia-smi."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pynvml
import pytest

from ncclscope.arch import Gpu, NoGpuInfoError, gpus_here
from ncclscope.knowledge.gpus import ComputeCapability

if TYPE_CHECKING:
    from pathlib import Path

H200 = Gpu(0, "NVIDIA H200", "GPU-5a1c", "0000:00:07.0", ComputeCapability(9, 0), "580.159.03")


def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program named nvidia-smi, alone on PATH."""
    path = tmp_path / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def no_nvml() -> None:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)


def test_nvml_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every field comes from NVML, and the PCI address in the kernel's form."""
    answers = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "580.159.03",
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda _: b"NVIDIA H200",
        "nvmlDeviceGetCudaComputeCapability": lambda _: (9, 0),
        "nvmlDeviceGetUUID": lambda _: "GPU-5a1c",
        "nvmlDeviceGetPciInfo": lambda _: SimpleNamespace(busId=b"00000000:00:07.0"),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)
    assert gpus_here() == [H200]


def test_nvidia_smi_is_the_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without NVML nvidia-smi gives the same; the name helps an old one that has no compute_cap."""
    monkeypatch.setattr(pynvml, "nvmlInit", no_nvml)
    smi(tmp_path, monkeypatch, "echo '0, NVIDIA H200, GPU-5a1c, 00000000:00:07.0, 9.0, 580.159.03'")
    assert gpus_here() == [H200]
    smi(tmp_path, monkeypatch, "echo '0, NVIDIA H200, GPU-5a1c, 00000000:00:07.0, [N/A], 580.159.03'")
    assert gpus_here() == [H200]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "echo 'NVIDIA-SMI has failed because it could not talk to the driver.'; exit 9",
            "could not talk to the driver",
        ),
        ("exit 3", "exit status 3"),
        ("echo 'No devices were found'", "No devices were found"),
    ],
)
def test_a_failing_nvidia_smi_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    """When neither answers, the error says what each said."""
    monkeypatch.setattr(pynvml, "nvmlInit", no_nvml)
    smi(tmp_path, monkeypatch, script)
    with pytest.raises(NoGpuInfoError, match=said):
        gpus_here()


def test_no_driver_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No NVML and no nvidia-smi: an error with what to do."""
    monkeypatch.setattr(pynvml, "nvmlInit", no_nvml)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoGpuInfoError, match=r"NVML Shared Library Not Found.*passed through"):
        gpus_here()
