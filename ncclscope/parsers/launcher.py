"""Everything that launchers and schedulers say of the processes they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers import (
    launcher_frameworks,
    launcher_k8s,
    launcher_mpi,
    launcher_ray,
    launcher_slurm,
    launcher_table,
    launcher_torchrun,
)

if TYPE_CHECKING:
    from ncclscope.parsers.pattern import Block, Pattern

__all__ = ["BLOCKS", "PATTERNS"]

PATTERNS: tuple[Pattern, ...] = (
    *launcher_table.PATTERNS,
    *launcher_torchrun.PATTERNS,
    *launcher_ray.PATTERNS,
    *launcher_slurm.PATTERNS,
    *launcher_mpi.PATTERNS,
    *launcher_k8s.PATTERNS,
    *launcher_frameworks.PATTERNS,
)
BLOCKS: tuple[Block, ...] = (
    *launcher_table.BLOCKS,
    *launcher_torchrun.BLOCKS,
    *launcher_ray.BLOCKS,
    *launcher_mpi.BLOCKS,
)
