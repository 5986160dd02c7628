"""PCIe and IOMMU lines of the kernel log, and the one spelling of PCI addresses."""

from __future__ import annotations

import re

__all__ = ["pci_address"]

_ADDRESS = re.compile(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?")


def pci_address(text: str) -> str | None:
    """`0000:1b:00.0` for any spelling of a PCI address (`1B:00.0`, `0000:1b:00`, `00000000:1B:00.0`),"
    " else None."""
    m = _ADDRESS.fullmatch(text.strip())
    if m is None:
        return None
    domain, bus, device, function = m.groups()
    return f"{int(domain or '0', 16):04x}:{bus}:{device}.{function or '0'}".lower()
