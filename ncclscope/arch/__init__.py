"""Which GPUs the machine code in a library covers, read without a GPU and without the CUDA toolkit."""

from __future__ import annotations

from ncclscope.arch.devices import gpus_here
from ncclscope.arch.judge import judge
from ncclscope.arch.library import read_library
from ncclscope.arch.locate import find_nccl
from ncclscope.arch.model import (
    ArchError,
    CodeObject,
    Gpu,
    Judgement,
    LibraryCode,
    LocatedLibrary,
    NoGpuInfoError,
    Verdict,
)

__all__ = [
    "ArchError",
    "CodeObject",
    "Gpu",
    "Judgement",
    "LibraryCode",
    "LocatedLibrary",
    "NoGpuInfoError",
    "Verdict",
    "find_nccl",
    "gpus_here",
    "judge",
    "read_library",
]
