"""PCIe and IOMMU lines of the kernel log, and the one spelling of PCI addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.pattern import Pattern, compiled

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS", "PCI", "pci_address", "pci_of"]

_ADDRESS = r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.([0-7]))?"


def pci_address(text: str) -> str | None:
    """`0000:1b:00.0` for any spelling of a PCI address (`1B:00.0`, `0000:1b:00`, `00000000:1B:00.0`),"
    " else None."""
    m = compiled(_ADDRESS).fullmatch(text.strip())
    if m is None:
        return None
    domain, bus, device, function = m.groups()
    return f"{int(domain or '0', 16):04x}:{bus}:{device}.{function or '0'}".lower()


# A full PCI address as kernel lines print it.
PCI = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_DRIVER = r"(?<![\w.-])(?P<driver>[\w.-]{1,32}) "


def pci_of(m: re.Match[str], line: Line) -> Mapping[str, Value]:  # noqa: ARG001
    """The group `pci` in the one spelling of PCI addresses."""
    address = pci_address(m["pci"] or "")
    return {"pci": address} if address else {}


def _aer(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    severity = m["severity"].lower()
    fields: dict[str, Value] = dict(pci_of(m, line))
    if severity.startswith("corr"):
        fields["severity"] = "corrected"
        # Corrected errors cost bandwidth at most; they are a lead when the same device then fails.
        fields["nature"] = "info"
    else:
        fields["severity"] = "non-fatal" if "non-fatal" in severity else "fatal"
        if m["driver"] == "nvidia":
            fields["suggests"] = "gpu-fell-off-bus"
    return fields


_SEVERITY = r"(?P<severity>Correct(?:ed|able)|Uncorrect(?:ed|able) \((?:Non-Fatal|Fatal)\))"

PATTERNS: tuple[Pattern, ...] = (
    # pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0   (to 6.5)
    # pcieport 0000:00:03.0: AER: Correctable error message received from 0000:07:00.0   (newer)
    Pattern(
        "kernel.aer",
        ": AER: ",
        rf"{_DRIVER}(?P<pci>{PCI}): AER: (?:Multiple )?{_SEVERITY} error (?:message )?received(?::"
        r"| from)? ?"
        r"(?P<source>[0-9a-fA-F:.]+|id=[0-9a-f]+)?",
        nature="symptom",
        refine=_aer,
        adds=("suggests",),
    ),
    # nvidia 0000:07:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)
    Pattern(
        "kernel.aer",
        "PCIe Bus Error: severity=",
        rf"{_DRIVER}(?P<pci>{PCI}): (?:AER: )?PCIe Bus Error: severity={_SEVERITY}, type=(?P<layer>[^,]+)",
        nature="symptom",
        refine=_aer,
        adds=("suggests",),
    ),
    # pcieport 0000:00:03.0:   device [8086:6f08] error status/mask=00004020/00000000
    Pattern(
        "kernel.aer_status",
        "error status/mask=",
        rf"(?P<pci>{PCI}):\s+device \[(?P<vendor_device>[0-9a-f]{{4}}:[0-9a-f]{{4}})\] error status/mask="
        r"(?P<register>[0-9a-f]{8})/[0-9a-f]{8}",
        refine=pci_of,
    ),
    # nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)
    # The NVIDIA driver has no AER recovery: an uncorrectable PCIe error on a GPU means that it is lost.
    Pattern(
        "kernel.aer_no_recovery",
        "(no error_detected callback)",
        rf"{_DRIVER}(?P<pci>{PCI}): AER: can't recover \(no error_detected callback\)",
        nature="consequence",
        refine=lambda m, line: {
            **pci_of(m, line),
            **({"suggests": "gpu-fell-off-bus"} if m["driver"] == "nvidia" else {}),
        },
        adds=("suggests",),
    ),
    # pcieport 0000:00:03.0: AER: device recovery failed
    Pattern(
        "kernel.aer_recovery",
        "AER: device recovery",
        rf"(?P<pci>{PCI}): AER: device recovery (?P<result>failed|successful)",
        nature="consequence",
        refine=pci_of,
    ),
    # pcieport 0000:20:01.1: DPC: containment event, status:0x1f01 source:0x0000
    # pcieport 0000:20:01.1: DPC: containment event, status:0x0009: unmasked uncorrectable error
    # detected   (newer)
    Pattern(
        "kernel.pcie_containment",
        "DPC: containment event",
        rf"(?P<pci>{PCI}): DPC: containment event, status:(?P<register>0x[0-9a-f]+)",
        nature="symptom",
        fields={"suggests": "gpu-fell-off-bus"},
        refine=pci_of,
    ),
    # pcieport 0000:20:01.1: pciehp: Slot(17): Link Down
    Pattern(
        "kernel.pcie_link_down",
        "pciehp: Slot(",
        rf"(?P<pci>{PCI}): pciehp: Slot\((?P<slot>[^)]+)\): (?P<state>Link Down|Card not present)",
        nature="symptom",
        fields={"suggests": "gpu-fell-off-bus"},
        refine=pci_of,
    ),
    # pci 0000:3b:00.0: 63.012 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at
    # 0000:3a:00.0 (capable
    # of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)   (GPUs lower the speed when idle: judge the width)
    Pattern(
        "kernel.pcie_bandwidth",
        "available PCIe bandwidth, limited by",
        rf"(?P<pci>{PCI}): (?P<gbps>[\d.]+) Gb/s available PCIe bandwidth, limited by (?P<speed>[\d.]+)"
        r" GT/s PCIe "
        r"x(?P<width>\d+) link at (?P<at>[0-9a-fA-F:.]+)(?: \(capable of (?P<capable_gbps>[\d.]+) Gb/s"
        r" with [\d.]+ GT/s "
        r"PCIe x(?P<capable_width>\d+))?",
        nature="info",
        refine=pci_of,
    ),
    # DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0x3c0000000000 [fault reason 0x06]
    # PTE Read access is
    # not set   (Intel; an address inside a GPU's window means peer-to-peer through the IOMMU)
    Pattern(
        "kernel.iommu_fault",
        "DMAR: [",
        r"DMAR: \[(?:DMA )?(?P<operation>Read|Write)[^\]]{0,20}\] Request device"
        r" \[(?P<pci>[0-9a-fA-F:.]+)\].{0,40}?"
        r"fault addr (?:0x)?(?P<address>[0-9a-fA-F]+)",
        nature="symptom",
        fields={"suggests": "p2p-acs-iommu", "iommu": "DMAR"},
        refine=pci_of,
    ),
    # mlx5_core 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x002f address=0x24d08000
    # flags=0x0000]
    Pattern(
        "kernel.iommu_fault",
        "AMD-Vi: Event logged [IO_PAGE_FAULT",
        rf"(?:(?P<driver>[\w.-]{{1,32}}) (?P<pci>{PCI}): )?AMD-Vi: Event logged \[IO_PAGE_FAULT "
        r"(?:device=(?P<source>[0-9a-fA-F:.]+) )?domain=0x[0-9a-fA-F]+ address=(?P<address>0x[0-9a-fA-F]+)",
        nature="symptom",
        fields={"suggests": "p2p-acs-iommu", "iommu": "AMD-Vi"},
        refine=pci_of,
    ),
    # AMD-Vi: Completion-Wait loop timed out
    Pattern(
        "kernel.iommu_timeout",
        "AMD-Vi: Completion-Wait loop timed out",
        r"AMD-Vi: Completion-Wait loop timed out",
        nature="consequence",
        fields={"suggests": "gpu-fell-off-bus"},
    ),
    # arm-smmu-v3 arm-smmu-v3.10.auto: event 0x10 received:   (Grace)
    Pattern(
        "kernel.iommu_fault",
        "arm-smmu",
        r"arm-smmu\S* \S+: (?:event 0x(?P<event>[0-9a-fA-F]+) received|Unhandled context fault)",
        nature="symptom",
        fields={"suggests": "p2p-acs-iommu", "iommu": "SMMU"},
    ),
    # iommu: Default domain type: Translated
    Pattern(
        "kernel.iommu_mode",
        "iommu: Default domain type:",
        r"iommu: Default domain type: (?P<mode>Translated|Passthrough)",
    ),
    # pci 0000:00:1c.0: Intel PCH root port ACS workaround enabled
    Pattern("kernel.acs", " ACS ", rf"pci (?P<pci>{PCI}): (?P<text>[^\n]*\bACS\b[^\n]*)", refine=pci_of),
    # pcieport 0000:00:03.0:    [14] CmpltTO                (First)
    # RxErr, BadTLP, BadDLLP, Rollover, Timeout: link quality; SDES: surprise down; CmpltTO: device silent
    Pattern(
        "kernel.aer_bit",
        "(First)",
        rf"(?P<pci>{PCI}): +\[ ?(?P<bit>\d+)\] (?P<name>[A-Za-z]+) +\(First\)",
        refine=pci_of,
    ),
    # DMAR: DRHD: handling fault status reg 2   (header of the fault below it)
    Pattern(
        "kernel.iommu_status",
        "DMAR: DRHD: handling fault status",
        r"DMAR: DRHD: handling fault status reg",
        nature="symptom",
        fields={"suggests": "p2p-acs-iommu"},
    ),
)
