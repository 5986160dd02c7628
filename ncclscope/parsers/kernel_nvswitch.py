"""NVSwitch errors (SXid), fabric manager and nvidia-peermem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.kernel_pcie import pci_address
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]


def _sxid(m: re.Match[str], line: Line) -> Mapping[str, Value]:  # noqa: ARG001
    from ncclscope.knowledge.xid import explain_sxid

    severity = m["severity"]
    fatal = severity == "Fatal"
    fields: dict[str, Value] = {"fatal": fatal}
    switch = pci_address(m["switch"])
    if switch:
        fields["switch"] = switch
    for name in ("instance", "link"):
        if m[name]:
            fields[name] = int(m[name])
    entry = explain_sxid(int(m["sxid"]))
    if entry is not None:
        fields |= {"title": entry.title, "reach": entry.reach}
    if severity == "Correctable" or (not fatal and entry is not None and entry.reach == "none"):
        # 12028 is on the non-fatal list and still stalls the traffic of a GPU.
        fields["nature"] = "symptom" if m["sxid"] in _STALLS else "info"
    if fatal:
        fields |= {"nature": "cause", "cause": "nvlink-fabric"}
    else:
        fields["suggests"] = "nvlink-fabric"
    return fields


_STALLS = frozenset({"11004", "12028", "19084", "20012"})
_PCI = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"

PATTERNS: tuple[Pattern, ...] = (
    # nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV
    # error (First)
    # nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up   (NVSwitch, 450 to 580)
    Pattern(
        "kernel.sxid",
        "SXid (",
        rf"(?:nvswitch(?P<instance>\d+): )?SXid \((?:PCI:)?(?P<switch>{_PCI})\): (?P<sxid>\d{{5}}), "
        r"(?P<severity>Fatal|Non-fatal|Correctable), (?:Link (?P<link>\d+) )?(?P<text>[^\n]*)",
        nature="symptom",
        refine=_sxid,
        adds=("fatal", "title", "reach", "suggests"),
    ),
    # nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Severity 1 Engine instance 30 Sub-engine instance 00
    # The detail lines of the report above; they are no reports of their own.
    Pattern(
        "kernel.sxid_detail",
        "SXid (",
        rf"SXid \((?:PCI:)?{_PCI}\): (?P<sxid>\d{{5}}), (?:Data \{{|Severity \d+ Engine instance)",
    ),
)
