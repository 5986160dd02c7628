"""The table of GPUs and the measured NCCL builds."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ncclscope.knowledge.gpus import (
    ARCHITECTURES,
    Arch,
    ComputeCapability,
    banner_fit,
    capability_of,
    default_coverage,
    explain_sm,
    first_cuda_for,
    fit,
    parse_capability,
    wheel_for,
)
from ncclscope.knowledge.nccl_wheels import WHEELS


@pytest.mark.parametrize(
    ("name", "sm"),
    [
        ("NVIDIA H100 80GB HBM3", "sm_90"),
        ("NVIDIA H200", "sm_90"),
        ("NVIDIA GH200 480GB", "sm_90"),
        ("NVIDIA A100-SXM4-80GB", "sm_80"),
        ("GRID A100D-40C", "sm_80"),
        ("NVIDIA A10G", "sm_86"),
        ("NVIDIA RTX A6000", "sm_86"),
        ("NVIDIA L40S", "sm_89"),
        ("NVIDIA RTX 6000 Ada Generation", "sm_89"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm_120"),
        ("Quadro RTX 6000", "sm_75"),
        ("Tesla V100-SXM2-32GB", "sm_70"),
        ("Tesla T4", "sm_75"),
        ("NVIDIA B200", "sm_100"),
        ("NVIDIA GB200", "sm_100"),
        ("NVIDIA B300 SXM6 AC", "sm_103"),
        ("NVIDIA GB10", "sm_121"),
        ("NVIDIA GeForce RTX 5090", "sm_120"),
        ("NVIDIA GeForce RTX 5070 Ti", "sm_120"),
        ("NVIDIA GeForce RTX 4090 D", "sm_89"),
        ("NVIDIA GeForce RTX 3070 Laptop GPU", "sm_86"),
        ("NVIDIA GeForce RTX 2050", "sm_86"),
        ("GeForce RTX 2080 SUPER", "sm_75"),
        ("GeForce GTX 1080 Ti", "sm_61"),
        ("NVIDIA GeForce GTX 1660 Ti", "sm_75"),
        ("TITAN V", "sm_70"),
    ],
)
def test_names_that_nvml_and_logs_print(name: str, sm: str) -> None:
    """Names that differ by one word, such as the three RTX 6000, are told apart."""
    capability = capability_of(name)
    assert capability is not None
    assert capability.sm == sm
    assert explain_sm(sm) is not None


@pytest.mark.parametrize(
    "name", ["", "AMD Instinct MI300X", "NVIDIA Graphics Device", "RTX", "8000", "NVIDIA X1000"]
)
def test_unknown_names_are_not_guessed(name: str) -> None:
    """A name that is not in the table gives None."""
    assert capability_of(name) is None


def test_architectures_are_read_in_every_usual_form() -> None:
    """sm_120, compute_120, 12.0 and 120 are the same; other text is None."""
    forms = ["sm_120", "SM_120", "sm120", "compute_120", "12.0", "120", " sm_120a ", "12.0a"]
    assert {parse_capability(form) for form in forms} == {ComputeCapability(12, 0)}
    assert [parse_capability(t) for t in ("", "sm_", "hopper", "9", "sm_1200", "0.0", "9.0.1")] == [None] * 7


def test_explain_says_toolkits_and_what_else_runs() -> None:
    """The first toolkit, the last one where it was dropped, and older code that runs."""
    blackwell = explain_sm("sm_120")
    assert blackwell is not None
    assert "CUDA 12.8 or later." in blackwell.text()
    volta = explain_sm("7.0")
    assert volta is not None
    assert "CUDA 9.0 or later up to 12.9" in volta.text()
    ada = explain_sm("sm_89")
    assert ada is not None
    assert "sm_80, sm_86" in ada.text()
    assert "sm_87" not in ada.text()
    assert explain_sm("sm_999") is None


def test_the_table_is_in_order_and_without_doubles() -> None:
    """Rows ascend, and no toolkit range is empty."""
    capabilities = [row.capability for row in ARCHITECTURES]
    assert capabilities == sorted(set(capabilities))
    assert all(row.last_cuda is None or row.first_cuda < row.last_cuda for row in ARCHITECTURES)


def test_first_cuda_counts_older_code_of_the_same_major() -> None:
    """An RTX 4090 runs code for sm_80, so CUDA 11.0 is enough; a B300 runs that of a B200."""
    assert first_cuda_for(ComputeCapability(8, 9)) == (11, 0)
    assert first_cuda_for(ComputeCapability(10, 3)) == (12, 8)
    assert first_cuda_for(ComputeCapability(8, 7)) == (11, 4)
    assert first_cuda_for(ComputeCapability(99, 0)) is None


def test_fit_prefers_native_then_jit() -> None:
    """Code that runs as it is wins over PTX, and PTX over no promise."""
    ada = ComputeCapability(8, 9)
    assert fit([Arch(80)], [Arch(80)], ada) == "native"
    assert fit([Arch(90)], [Arch(80)], ada) == "jit"
    assert fit([Arch(90)], [Arch(90)], ada) == "none"
    assert fit([Arch(87)], [], ada) == "unknown"
    assert fit([Arch(87)], [Arch(80)], ada) == "jit"


@pytest.mark.parametrize(
    ("nccl", "cuda", "gpu", "answer"),
    [
        ("2.26.2", "12.2", "NVIDIA GeForce RTX 5090", "jit"),
        ("2.26.2", "12.2", "NVIDIA B200", "jit"),
        ("2.26.2", "12.2", "NVIDIA L40S", "native"),
        ("2.26.2", "12.8", "NVIDIA GeForce RTX 5090", "native"),
        ("2.26.5", "12.9", "NVIDIA B300 SXM6 AC", "native"),
        ("2.28.9", "13.0", "Tesla V100-SXM2-32GB", "none"),
        # Not measured: an old toolkit cannot have built for a newer GPU; nothing else is certain.
        ("2.21.5", "12.1", "NVIDIA GeForce RTX 5090", "jit"),
        ("2.99.1", "13.9", "NVIDIA H100 80GB HBM3", "unknown"),
        ("2.99.1", "13.9", "Tesla V100-SXM2-32GB", "unknown"),
        ("2.99.1", "odd", "NVIDIA H100 80GB HBM3", "unknown"),
    ],
)
def test_a_banner_is_judged_by_what_was_measured(nccl: str, cuda: str, gpu: str, answer: str) -> None:
    """'none' is said of measured builds only."""
    capability = capability_of(gpu)
    assert capability is not None
    assert banner_fit(nccl, cuda, capability) == answer


def test_coverage_of_two_known_wheels() -> None:
    """2.26.2 was built with CUDA 12.2, before Blackwell; 2.26.5 with 12.9."""
    assert default_coverage("2.26.2", "12.2") == (tuple(map(Arch, (50, 60, 61, 70, 80, 90))), (Arch(90),))
    assert default_coverage("2.26.5", "12.9") == (
        tuple(map(Arch, (50, 60, 61, 70, 80, 90, 100, 120))),
        (Arch(120),),
    )
    assert default_coverage("2.26.2", "11.0") is None


def test_every_wheel_has_a_measured_coverage() -> None:
    """The two tables agree, so that advice never names a wheel whose code is not known."""
    for wheels in WHEELS.values():
        for version, cuda in wheels:
            assert default_coverage(version.partition(".post")[0], cuda) is not None, (version, cuda)


def test_advice_stays_with_the_version_where_it_can() -> None:
    """The first wheel not older than the one in use; the newest with the code when it was dropped."""
    assert wheel_for(ComputeCapability(12, 0), 12, "2.26.2") == ("nvidia-nccl-cu12", "2.26.2.post1")
    assert wheel_for(ComputeCapability(5, 0), 12, "2.28.9") == ("nvidia-nccl-cu12", "2.27.7")
    assert wheel_for(ComputeCapability(7, 0), 13, "2.28.9") is None
    assert wheel_for(ComputeCapability(3, 5), 12, None) is None


def test_the_table_loads_without_heavy_modules() -> None:
    """A reader of logs asks this table, so it must not pull in the ELF reader or NVML."""
    heavy = "{'elftools', 'pynvml', 'typer', 'dataclasses'}"
    script = f"import sys, ncclscope.knowledge.gpus; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
