"""Everything that PyTorch, CUDA, Python and the engines above them print, put together for the reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers import (
    torch_collectives,
    torch_cuda,
    torch_engines,
    torch_fatal,
    torch_memory,
    torch_notes,
    torch_recorder,
    torch_store,
    torch_traceback,
    torch_watchdog,
)

if TYPE_CHECKING:
    from ncclscope.parsers.pattern import Block, Pattern

__all__ = ["BLOCKS", "PATTERNS"]

PATTERNS: tuple[Pattern, ...] = (
    *torch_watchdog.PATTERNS,
    *torch_recorder.PATTERNS,
    *torch_collectives.PATTERNS,
    *torch_store.PATTERNS,
    *torch_cuda.PATTERNS,
    *torch_memory.PATTERNS,
    *torch_fatal.PATTERNS,
    *torch_engines.PATTERNS,
    *torch_notes.PATTERNS,
)
BLOCKS: tuple[Block, ...] = (*torch_traceback.BLOCKS, *torch_fatal.BLOCKS)
