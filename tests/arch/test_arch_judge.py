"""Judging a library for a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from arch_files import ELF, container, elf, entry

from ncclscope.arch import judge, read_library

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Retag


@pytest.mark.parametrize(
    ("name", "target", "verdict"),
    [
        ("nccl-2.26.2.so", "sm_120", "jit"),
        ("nccl-2.26.2.so", "sm_100", "jit"),
        ("nccl-2.26.2.so", "sm_89", "native"),
        ("nccl-2.26.2.so", "sm_90", "native"),
        ("nccl-2.26.2.so", "sm_35", "none"),
        ("nccl-2.26.2.so", "sm_87", "unknown"),
        ("nccl-2.26.5.so", "sm_120", "native"),
        ("nccl-2.26.5.so", "sm_121", "native"),
        ("nccl-2.26.5.so", "sm_103", "native"),
        ("nccl-2.26.5.so", "sm_89", "native"),
        ("nccl-2.28.9.so", "sm_90", "native"),
        ("nccl-2.28.9.so", "12.0", "native"),
        ("nccl-2.28.9.so", "sm_70", "none"),
        ("partial.so", "sm_90", "partial"),
        ("partial.so", "sm_80", "native"),
        ("variants.o", "sm_90", "native"),
        ("nccl_static.a", "sm_90", "native"),
    ],
)
def test_verdicts(name: str, target: str, verdict: str) -> None:
    """Same major version, minor not above the GPU's: native. PTX alone: jit. Tegra: no promise."""
    judgement = judge(read_library(ELF / name), target)
    assert (judgement.verdict, judgement.ok) == (verdict, verdict == "native")


def test_extras_for_one_family_are_no_hole() -> None:
    """NCCL's extra kernels for sm_100f have no counterpart on other GPUs, and nothing is missing there."""
    judgement = judge(read_library(ELF / "nccl-2.28.9.so"), "sm_90")
    assert (judgement.needed, judgement.missing) == (3, 0)


def test_a_hole_is_counted() -> None:
    """A code object without the architecture fails the gate, although the union over all objects has it."""
    library = read_library(ELF / "partial.so")
    judgement = judge(library, "sm_90")
    assert 90 in {a.number for a in library.sass}
    assert (judgement.needed, judgement.missing, judgement.ok) == (3, 1, False)
    assert judgement.summary.startswith("1 of 3 code objects")


def test_code_for_one_gpu_runs_on_that_gpu_alone(tmp_path: Path) -> None:
    """sm_90a runs on 9.0; sm_100a does not run on 10.3, sm_100f does, and sm_120f on 12.1."""
    path = tmp_path / "a.so"

    def verdict(arch: int, flag: int, target: str) -> str:
        path.write_bytes(elf({".nv_fatbin": container(entry(2, arch, flag))}))
        return judge(read_library(path), target).verdict

    assert verdict(90, 0x100011, "sm_90") == "native"
    assert verdict(100, 0x100011, "sm_100") == "native"
    assert verdict(100, 0x100011, "sm_103") == "none"
    assert verdict(100, 0x200011, "sm_103") == "native"
    assert verdict(100, 0x200011, "sm_120") == "none"
    assert verdict(120, 0x200011, "sm_121") == "native"


def test_ptx_of_a_variant_is_no_general_fallback(tmp_path: Path) -> None:
    """compute_90a compiles for 9.0 alone, compute_100f within its major, plain PTX for anything later."""
    path = tmp_path / "p.so"

    def verdict(arch: int, flag: int, target: str) -> str:
        path.write_bytes(elf({".nv_fatbin": container(entry(1, arch, flag))}))
        return judge(read_library(path), target).verdict

    assert verdict(90, 0x100011, "sm_90") == "jit"
    assert verdict(90, 0x100011, "sm_100") == "none"
    assert verdict(100, 0x200011, "sm_103") == "jit"
    assert verdict(100, 0x200011, "sm_120") == "none"
    assert verdict(90, 0x11, "sm_120") == "jit"


def test_linked_code_falls_back_on_the_ptx_it_was_linked_from(retag: Retag) -> None:
    """Without machine code NCCL 2.26.2 is compiled from PTX; without that too, it has nothing."""
    jit = judge(read_library(retag("nccl-2.26.2.so", {(2, 90): 99})), "sm_90")
    assert (jit.verdict, jit.ok) == ("jit", False)
    assert judge(read_library(retag("nccl-2.26.2.so", {(2, 90): 99, (1, 90): 99})), "sm_90").verdict == "none"
    # One of the two relocatable objects without PTX leaves nothing to link.
    half = retag("nccl-2.26.2.so", {(2, 90): 99, (1, 90): 99}, {0, 2})
    assert judge(read_library(half), "sm_90").verdict == "none"


def test_jit_passes_only_when_allowed_and_says_what_it_looks_like() -> None:
    """The gate fails by default, because the job would stand silent for minutes."""
    library = read_library(ELF / "nccl-2.26.2.so")
    judgement = judge(library, "sm_120")
    assert not judgement.ok
    assert "compute_90 PTX" in judgement.summary
    assert "quiet" in judgement.effect
    assert "228 s" in judgement.effect
    assert judge(library, "sm_120", allow_jit=True).ok
    assert not judge(library, "sm_35", allow_jit=True).ok


def test_effect_of_missing_code_depends_on_the_version(tmp_path: Path) -> None:
    """Up to 2.26 init fails; from 2.27.7 init succeeds and the first collective fails."""
    path = tmp_path / "n.so"

    def effect(version: bytes) -> str:
        banner = b"\0NCCL version " + version + b"+cuda12.9\0"
        path.write_bytes(elf({".rodata": banner, ".nv_fatbin": container(entry(2, 80))}))
        return judge(read_library(path), "sm_90").effect

    assert "init goes on, and the first collective fails" in effect(b"2.16.5")
    assert effect(b"2.26.2").startswith("Init fails on every rank before 'Init START'")
    assert "or init succeeds" in effect(b"2.27.5")
    assert effect(b"2.28.9").startswith("Init succeeds")


def test_fix_names_a_wheel_that_has_the_code(retag: Retag) -> None:
    """The advice is the first measured wheel of the same CUDA major version that is not older."""
    old = judge(read_library(ELF / "nccl-2.26.2.so"), "sm_120").fix
    assert "pip install --no-deps nvidia-nccl-cu12==2.26.2.post1" in old
    assert "CUDA 12.8 or later" in old
    other_build = judge(read_library(retag("nccl-2.26.2.so", {(2, 90): 99})), "sm_90").fix
    assert "pip install --no-deps --force-reinstall nvidia-nccl-cu12==2.26.2" in other_build


def test_fix_for_a_gpu_that_newer_toolkits_dropped(tmp_path: Path) -> None:
    """For a V100 and an NCCL of CUDA 13 the whole stack must be older, and the wheel is one of CUDA 12."""
    path = tmp_path / "n.so"
    code = container(entry(2, 75), entry(2, 90))
    path.write_bytes(elf({".rodata": b"NCCL version 2.28.9+cuda13.0\0", ".nv_fatbin": code}))
    fix = judge(read_library(path), "sm_70").fix
    assert "nvidia-nccl-cu12==2.28.9" in fix
    assert "CUDA 12.9 or older" in fix


def test_fix_for_nccl_inside_pytorch_is_another_pytorch() -> None:
    """A wheel of NCCL changes nothing there."""
    fix = judge(read_library(ELF / "torch-static.so"), "sm_70").fix
    assert fix == "Use a PyTorch for sm_70, made with CUDA 9.0 or later."


def test_pytorchs_kernels_for_newer_gpus_are_no_hole(tmp_path: Path) -> None:
    """libtorch_cuda has kernels that older GPUs lack by design; in NCCL itself the same would be a hole."""
    code = container(entry(2, 75), entry(2, 90)) + container(entry(2, 90))
    path = tmp_path / "t.so"
    banner = b"NCCL version 2.28.9+cuda12.9\0"
    path.write_bytes(elf({".rodata": banner, ".dynstr": b"\0libc10.so\0", ".nv_fatbin": code}))
    assert judge(read_library(path), "sm_75").verdict == "native"
    path.write_bytes(elf({".rodata": banner, ".dynstr": b"\0libm.so\0", ".nv_fatbin": code}))
    assert judge(read_library(path), "sm_75").verdict == "partial"


def test_a_target_that_is_none_is_a_value_error() -> None:
    """Text that names no architecture is refused."""
    with pytest.raises(ValueError, match="'hopper' is no GPU architecture"):
        judge(read_library(ELF / "variants.o"), "hopper")
