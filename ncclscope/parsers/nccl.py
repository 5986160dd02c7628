"""Everything that NCCL prints and this tool understands, and what PyTorch repeats of it.

Message texts: NVIDIA/nccl, release tags 2.3.5 to 2.30.7, and runs of 2.18.3, 2.26.2, 2.28.9 and 2.32.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers import (
    nccl_cuda,
    nccl_gpu,
    nccl_ib,
    nccl_init,
    nccl_misc,
    nccl_net,
    nccl_peers,
    nccl_plugin,
    nccl_ras,
    nccl_shm,
    nccl_tests,
    nccl_warn,
    net_verbs,
)

if TYPE_CHECKING:
    from ncclscope.parsers.pattern import Block, Pattern

__all__ = ["BLOCKS", "PATTERNS"]

PATTERNS: tuple[Pattern, ...] = (
    *nccl_init.PATTERNS,
    *nccl_warn.PATTERNS,
    *nccl_cuda.PATTERNS,
    *nccl_peers.PATTERNS,
    *nccl_shm.PATTERNS,
    *nccl_net.PATTERNS,
    *nccl_ib.PATTERNS,
    *nccl_gpu.PATTERNS,
    *nccl_plugin.PATTERNS,
    *nccl_misc.PATTERNS,
    *nccl_ras.PATTERNS,
    *nccl_tests.PATTERNS,
    *net_verbs.PATTERNS,
)

BLOCKS: tuple[Block, ...] = (*nccl_warn.BLOCKS, *nccl_ras.BLOCKS)
