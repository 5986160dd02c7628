"""What the kernel log and the tools that people attach with it say about a node.

Kernel, journal and syslog prefixes are off already. Anything a container cannot see is absent without a
trace, so no line here is ever proof of a healthy node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers import (
    kernel_host,
    kernel_memory,
    kernel_net,
    kernel_nvrm,
    kernel_nvswitch,
    kernel_pcie,
    kernel_tools,
    kernel_xid,
)

if TYPE_CHECKING:
    from ncclscope.parsers.pattern import Block, Pattern

__all__ = ["BLOCKS", "PATTERNS"]

PATTERNS: tuple[Pattern, ...] = (
    *kernel_xid.PATTERNS,
    *kernel_nvrm.PATTERNS,
    *kernel_nvswitch.PATTERNS,
    *kernel_memory.PATTERNS,
    *kernel_pcie.PATTERNS,
    *kernel_net.PATTERNS,
    *kernel_host.PATTERNS,
    *kernel_tools.PATTERNS,
)
BLOCKS: tuple[Block, ...] = (
    *kernel_nvrm.BLOCKS,
    *kernel_memory.BLOCKS,
    *kernel_host.BLOCKS,
    *kernel_tools.BLOCKS,
)
