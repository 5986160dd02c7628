"""Which GPUs the machine code in a library covers, read without a GPU and without the CUDA toolkit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ncclscope.errors import NcclscopeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncclscope.knowledge.gpus import Arch, ComputeCapability

Verdict = Literal["native", "jit", "partial", "none", "unknown"]


class ArchError(NcclscopeError):
    """A file that cannot be read as a library with GPU code; `path` and `reason` say which and why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CodeObject:
    """One fat binary: the same source compiled for several architectures."""

    section: str
    offset: int
    sass: tuple[Arch, ...]
    ptx: tuple[Arch, ...]


@dataclass(frozen=True, slots=True)
class LibraryCode:
    """GPU code in one file. `sass` and `ptx` are unions; the counts say in how many code objects each stands."""

    path: Path
    nccl_version: str | None
    cuda_version: str | None
    code_objects: tuple[CodeObject, ...]
    sass: tuple[Arch, ...]
    ptx: tuple[Arch, ...]
    sass_counts: Mapping[Arch, int]
    ptx_counts: Mapping[Arch, int]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a library runs on a target. `ok` passes the gate; `summary`, `effect`, `fix` are plain sentences."""

    target: ComputeCapability
    verdict: Verdict
    ok: bool
    summary: str
    effect: str
    fix: str


@dataclass(frozen=True, slots=True)
class LocatedLibrary:
    """A library that holds NCCL and `how` the dynamic loader comes to it; `static` when it is linked into torch."""

    path: Path
    how: str
    static: bool = False


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of this machine. `pci` has four parts ('0000:00:07.0'); `capability` is None when not told."""

    index: int
    name: str
    uuid: str
    pci: str
    capability: ComputeCapability | None
    driver: str


class NoGpuInfoError(NcclscopeError):
    """Neither NVML nor nvidia-smi answered; the message says what each said."""


def read_library(path: Path) -> LibraryCode:
    """Reads the fat binaries of an ELF file by memory map. Raises ArchError when it is not readable as such."""
    raise NotImplementedError


def judge(library: LibraryCode, target: str, *, allow_jit: bool = False) -> Judgement:
    """Judges `library` for `target` ('sm_120'). Raises ValueError for a target that is no architecture."""
    raise NotImplementedError


def find_nccl(root: Path | None = None) -> list[LocatedLibrary]:
    """Libraries with NCCL as this Python's torch would load them, the loaded one first; never imports torch."""
    raise NotImplementedError


def gpus_here() -> list[Gpu]:
    """GPUs of this machine through NVML, else nvidia-smi; empty if there are none. Raises NoGpuInfoError."""
    raise NotImplementedError
