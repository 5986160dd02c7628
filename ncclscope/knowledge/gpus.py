"""What is known about GPU architectures and about the machine code in NCCL builds.

Imported by the triage path: nothing heavy is imported here and every question is answered from small tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

Fit = Literal["native", "jit", "none"]


class ComputeCapability(NamedTuple):
    """Compute capability of a GPU, such as 9.0; `str()` gives '9.0', `.sm` gives 'sm_90'."""

    major: int
    minor: int

    @property
    def sm(self) -> str:
        return f"sm_{self.major}{self.minor}"


class Arch(NamedTuple):
    """Architecture for which code was made: number as in sm_90 and variant '', 'a' (this GPU only) or 'f' (family)."""

    number: int
    variant: str = ""


def parse_capability(text: str) -> ComputeCapability | None:
    """Reads 'sm_120', 'sm120', 'compute_120', '12.0' or '120'; None if it is none of these."""
    raise NotImplementedError


def capability_of(gpu_name: str) -> ComputeCapability | None:
    """Compute capability of the GPU that a log, nvidia-smi or NVML calls `gpu_name`; None if not in the table."""
    raise NotImplementedError


def fit(sass: Iterable[Arch], ptx: Iterable[Arch], gpu: ComputeCapability) -> Fit:
    """How code for these architectures runs on `gpu`: as it is, compiled by the driver at start, or not at all."""
    raise NotImplementedError


def default_coverage(nccl_version: str, cuda_built: str) -> tuple[tuple[Arch, ...], tuple[Arch, ...]] | None:
    """SASS and PTX measured in NVIDIA's wheel of this NCCL and CUDA ('2.26.2', '12.2'); None if not measured."""
    raise NotImplementedError


def banner_fit(nccl_version: str, cuda_built: str, gpu: ComputeCapability) -> Literal["native", "jit", "none", "unknown"]:
    """Judges a log banner `NCCL version 2.26.2+cuda12.2` against a GPU.

    'none' only when the very build was measured; a build that is not in the table is 'unknown'.
    """
    raise NotImplementedError
