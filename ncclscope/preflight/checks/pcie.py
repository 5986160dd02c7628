"""PCIe between GPUs and adapters: access control, IOMMU, GPUDirect RDMA."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.preflight.checks.gpu import no_gpu_reason
from ncclscope.preflight.checks.rdma import active_ports
from ncclscope.preflight.library import version_numbers
from ncclscope.preflight.model import CheckResult, Evidence, NextStep, Subject
from ncclscope.preflight.settings import integer, nccl_settings

if TYPE_CHECKING:
    from ncclscope.preflight.node import Node

ACS = Subject("pcie-acs", "PCIe access control (ACS)", "p2p-acs-iommu")
IOMMU = Subject("iommu", "IOMMU", "p2p-acs-iommu")
GPUDIRECT = Subject("gpudirect-rdma", "GPUDirect RDMA", "gdr-peermem")

# PCI Express base specification: extended capabilities start at 0x100; access control services have id
# 0x000d, its control register lies 6 bytes in. These bits send peer-to-peer requests or completions up to
# the root complex.
_EXTENDED_START = 0x100
_ACS_ID = 0x000D
_REDIRECTS = 0x04 | 0x08
_BRIDGE_CLASS = "0x0604"
_PCI = "/sys/bus/pci/devices"
_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def acs_control(config: bytes) -> int | None:
    """The ACS control register of a PCI configuration space.

    None if it has none. ValueError if it is cut short.
    """
    if len(config) <= _EXTENDED_START:
        raise ValueError("the extended configuration space was not given")
    offset = _EXTENDED_START
    seen: set[int] = set()
    while offset >= _EXTENDED_START and offset + 8 <= len(config) and offset not in seen:
        seen.add(offset)
        header = int.from_bytes(config[offset : offset + 4], "little")
        if header in {0, 0xFFFFFFFF}:
            return None
        if header & 0xFFFF == _ACS_ID:
            return int.from_bytes(config[offset + 6 : offset + 8], "little")
        offset = header >> 20
    return None


def _bridges_above(node: Node, address: str) -> list[str]:
    """PCI bridges between a device and the root, from the path that sysfs links to."""
    target = node.link_target(f"{_PCI}/{address}") or ""
    parts = [part for part in target.split("/") if _ADDRESS.fullmatch(part) and part != address]
    return [part for part in parts if (node.read(f"{_PCI}/{part}/class") or "").startswith(_BRIDGE_CLASS)]


def _peers(node: Node) -> list[str]:
    """PCI addresses of the GPUs here and of the RDMA adapters that NCCL would use."""
    addresses = [gpu.pci for gpu in node.gpus().gpus]
    for device in dict.fromkeys(port.device for port in active_ports(node)):
        target = node.link_target(f"/sys/class/infiniband/{device}/device") or ""
        name = target.rsplit("/", 1)[-1]
        if _ADDRESS.fullmatch(name):
            addresses.append(name)
    return addresses


def _virtual(node: Node) -> bool:
    return " hypervisor" in (node.read("/proc/cpuinfo") or "")


def acs(node: Node) -> CheckResult:
    """Whether a bridge above a GPU or adapter redirects peer-to-peer traffic to the root complex."""
    if not node.gpus().gpus:
        return ACS.not_checked(no_gpu_reason(node))
    peers = _peers(node)
    if len(peers) < 2:
        return ACS.passed("One GPU and no RDMA adapter: no peer-to-peer traffic to redirect.")
    bridges = sorted({bridge for address in peers for bridge in _bridges_above(node, address)})
    look = NextStep(
        "On the host, as root, look for 'ReqRedir+'.", "sudo lspci -vvv | grep -i acsctl", "read_only"
    )
    if not bridges:
        if _virtual(node):
            return ACS.not_checked(
                "a virtual machine: the bridges above the GPUs are the hypervisor's, not shown here"
            )
        return ACS.not_checked("sysfs shows no PCI bridge above the GPUs", look)
    redirecting: list[Evidence] = []
    unread = 0
    for bridge in bridges:
        try:
            control = acs_control(node.read_bytes(f"{_PCI}/{bridge}/config", 4096) or b"")
        except ValueError:
            unread += 1
            continue
        if control is not None and control & _REDIRECTS:
            redirecting.append(Evidence(f"{_PCI}/{bridge}/config", f"ACS control 0x{control:04x}"))
    if redirecting:
        return ACS.warned(
            f"{len(redirecting)} of {len(bridges)} PCI bridges redirect peer-to-peer traffic to the CPU: "
            "traffic between "
            "GPUs over PCIe, and GPUDirect RDMA, is slow or hangs. Turn ACS off in the BIOS, or with setpci "
            "on bare "
            "metal; virtual machines need it on.",
            look,
            *redirecting[:8],
        )
    if unread:
        return ACS.not_checked(
            f"{unread} of {len(bridges)} bridges' registers need CAP_SYS_ADMIN to read", look
        )
    return ACS.passed(f"None of the {len(bridges)} bridges above GPUs and adapters redirects.")


def iommu(node: Node) -> CheckResult:
    """Whether the GPUs are in an IOMMU group that translates addresses."""
    seen = node.gpus().gpus
    if not seen:
        return IOMMU.not_checked(no_gpu_reason(node))
    if not node.exists("/sys/kernel"):
        return IOMMU.not_checked("/sys is not readable here")
    words = (node.read("/proc/cmdline") or "").split()
    asked = [word for word in words if "iommu" in word]
    evidence = [Evidence("/proc/cmdline", " ".join(asked) or "no iommu option")]
    groups = node.names("/sys/kernel/iommu_groups")
    if not groups:
        return IOMMU.passed("Off.", *evidence)
    types: dict[str, str] = {}
    for gpu in seen:
        group = (node.link_target(f"{_PCI}/{gpu.pci}/iommu_group") or "").rsplit("/", 1)[-1]
        kind = node.read(f"/sys/kernel/iommu_groups/{group}/type") if group else None
        if kind:
            types[gpu.label] = kind
    evidence += [Evidence("iommu group type", f"{label}: {kind}") for label, kind in types.items()]
    if not types:
        if "iommu=pt" in asked:
            return IOMMU.passed("On, passthrough by the kernel's command line.", *evidence)
        return IOMMU.not_checked("an IOMMU is on, but sysfs does not tell the GPUs' groups", None, *evidence)
    translated = [label for label, kind in types.items() if kind != "identity"]
    if not translated:
        return IOMMU.passed("On, passthrough for the GPUs.", *evidence)
    if len(_peers(node)) < 2:
        return IOMMU.passed(
            "On and translating; with one GPU and no RDMA adapter it does not matter.", *evidence
        )
    return IOMMU.warned(
        f"On and translating for {', '.join(translated)}: peer-to-peer over PCIe and GPUDirect RDMA are "
        "slow, hang or "
        "fail. NVLink traffic is not touched. On bare metal boot with iommu=pt or switch it off.",
        NextStep("See the kernel's options.", "cat /proc/cmdline", "read_only"),
        *evidence,
    )


def gpudirect(node: Node) -> CheckResult:
    """Whether NCCL can register GPU memory with the RDMA adapters.

    Nvidia-peermem, or dmabuf with the open module.
    """
    if not active_ports(node):
        return GPUDIRECT.passed("No active InfiniBand or RoCE port that NCCL would use: not needed.")
    modules = node.read("/proc/modules")
    loaded = {line.split(" ", 1)[0] for line in (modules or "").splitlines()}
    peermem = next((name for name in ("nvidia_peermem", "nv_peer_mem") if name in loaded), None)
    if peermem:
        return GPUDIRECT.passed(f"{peermem} is loaded.", Evidence("/proc/modules", peermem))
    open_module = "Open Kernel Module" in (node.read("/proc/driver/nvidia/version") or "")
    kernel = version_numbers((node.read("/proc/sys/kernel/osrelease") or "").split("-")[0]) or ()
    nccl = node.library().nccl_version
    evidence = (
        Evidence("/proc/modules", "no nvidia_peermem"),
        Evidence(
            "/proc/driver/nvidia/version",
            "open kernel module" if open_module else "proprietary kernel module",
        ),
        Evidence("/proc/sys/kernel/osrelease", ".".join(map(str, kernel)) or "unknown"),
    )
    setting = nccl_settings(node).get("NCCL_DMABUF_ENABLE")
    missing: list[str] = []
    if setting is not None and integer(setting.value) == 0:
        missing.append("NCCL_DMABUF_ENABLE=0")
    if not open_module:
        missing.append("the NVIDIA kernel module is not the open one")
    # dma-buf support for RDMA came with Linux 5.12.
    if kernel and kernel < (5, 12):
        missing.append("the kernel is older than 5.12")
    if nccl is not None and nccl < (2, 13):
        missing.append("NCCL is older than 2.13")
    if not missing:
        return GPUDIRECT.passed(
            "dmabuf can be used (open kernel module); nvidia-peermem is not loaded.", *evidence
        )
    if modules is None:
        return GPUDIRECT.not_checked("/proc/modules cannot be read here", None, *evidence)
    return GPUDIRECT.warned(
        f"nvidia-peermem is not loaded and dmabuf cannot be used ({'; '.join(missing)}): NCCL copies through "
        "host "
        "memory, at a fraction of the bandwidth.",
        NextStep("On the host, load the module.", "sudo modprobe nvidia-peermem", "changes_environment"),
        *evidence,
    )
