"""One parser a source of messages: tables of patterns, no state, nothing registers itself."""

from ncclscope.parsers import kernel, launcher, nccl, stacks, torch
from ncclscope.parsers.pattern import Block, Pattern

__all__ = ["BLOCKS", "PATTERNS"]

PATTERNS: tuple[Pattern, ...] = (
    *nccl.PATTERNS,
    *torch.PATTERNS,
    *kernel.PATTERNS,
    *launcher.PATTERNS,
    *stacks.PATTERNS,
)
BLOCKS: tuple[Block, ...] = (*nccl.BLOCKS, *torch.BLOCKS, *kernel.BLOCKS, *launcher.BLOCKS, *stacks.BLOCKS)
