"""Everything that PyTorch, CUDA and Python print, put together for the reader."""

from __future__ import annotations

from ncclscope.parsers import torch_cuda, torch_memory, torch_store, torch_traceback, torch_watchdog
from ncclscope.parsers.pattern import Block, Pattern

__all__ = ["BLOCKS", "PATTERNS"]

PATTERNS: tuple[Pattern, ...] = (
    *torch_watchdog.PATTERNS,
    *torch_store.PATTERNS,
    *torch_cuda.PATTERNS,
    *torch_memory.PATTERNS,
)
BLOCKS: tuple[Block, ...] = (*torch_traceback.BLOCKS,)
