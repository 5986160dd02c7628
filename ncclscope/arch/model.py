"""What the other parts of `arch` hand to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ncclscope.errors import NcclscopeError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ncclscope.knowledge.gpus import Arch, ComputeCapability

Verdict = Literal["native", "jit", "partial", "none", "unknown"]


class ArchError(NcclscopeError):
    """A file that cannot be read as a library with GPU code; `path` and `reason` say which and why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class NoGpuInfoError(NcclscopeError):
    """Neither NVML nor nvidia-smi answered; the message says what each said."""


@dataclass(frozen=True, slots=True)
class CodeObject:
    """One fat binary: the same source compiled for several architectures.

    `relocatable` marks input of the device linker. It does not run as it is, unless nothing in the file was
    linked; but the driver falls back on its PTX. `offset` counts bytes from the start of the file.
    """

    section: str
    offset: int
    relocatable: bool
    sass: frozenset[Arch]
    ptx: frozenset[Arch]


@dataclass(frozen=True, slots=True)
class LibraryCode:
    """GPU code in one file.

    `sass` and `ptx` are unions over all code objects, in ascending order; a union hides holes, so the counts
    say in how many code objects each architecture stands. `nccl_version` is None when no NCCL is in the
    file, `cuda_version` is the toolkit that NCCL was built with. `is_libnccl` is False for NCCL linked into
    PyTorch's library.
    """

    path: Path
    nccl_version: str | None
    cuda_version: str | None
    is_libnccl: bool
    code_objects: tuple[CodeObject, ...]
    sass: tuple[Arch, ...]
    ptx: tuple[Arch, ...]
    sass_counts: Mapping[Arch, int]
    ptx_counts: Mapping[Arch, int]

    @property
    def fullest(self) -> int:
        """Number of code objects of the architecture that has the most."""
        return max([*self.sass_counts.values(), *self.ptx_counts.values()], default=0)

    @property
    def linker_ptx(self) -> frozenset[Arch]:
        """PTX on which the driver falls back when linked code does not fit: what all relocatable code has.

        The result of a device link has machine code only: NCCL 2.26.2 has one such object, and 127
        relocatable ones with PTX.
        """
        ptx = [code.ptx for code in self.code_objects if code.relocatable]
        return frozenset.intersection(*ptx) if ptx else frozenset()


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a library runs on a target. `ok` passes the gate.

    `summary` (one line), `effect` (what the user would see at run time) and `fix` are plain sentences; the
    last two are empty when there is nothing to say. `missing` of `needed` code objects lack machine code for
    the target.
    """

    target: ComputeCapability
    verdict: Verdict
    ok: bool
    summary: str
    effect: str
    fix: str
    missing: int
    needed: int


@dataclass(frozen=True, slots=True)
class LocatedLibrary:
    """A file with NCCL and `how` the dynamic loader comes to it.

    `loaded` is False for one that is there but hidden by another; `static` when it is linked into
    libtorch_cuda.
    """

    path: Path
    how: str
    loaded: bool = True
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
