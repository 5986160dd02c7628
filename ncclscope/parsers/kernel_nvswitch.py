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
    elif fields.get("nature") != "info":
        fields["suggests"] = "nvlink-fabric"
    return fields


def _switch(m: re.Match[str], line: Line) -> Mapping[str, Value]:  # noqa: ARG001
    switch = pci_address(m["switch"] or "")
    fields: dict[str, Value] = {"switch": switch} if switch else {}
    if m["link"]:
        fields["link"] = int(m["link"])
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
    # [Jul 23 2024 07:53:55] [ERROR] [tid 841] detected NVSwitch fatal error 20034 on fid 0 on
    # NVSwitch pci bus id
    # 00000000:86:00.0 physical id 3 port 33   (fabric manager's own log)
    Pattern(
        "kernel.fabric_sxid",
        "detected NVSwitch fatal error",
        r"detected NVSwitch fatal error (?P<sxid>\d+)(?: on fid \d+ on NVSwitch pci bus id "
        r"(?P<switch>[0-9a-fA-F:.]+) "
        r"physical id \d+ port (?P<link>\d+))?",
        nature="cause",
        cause="nvlink-fabric",
        fields={"fatal": True},
        refine=_switch,
    ),
    Pattern(
        "kernel.fabric_sxid",
        "detected NVSwitch non-fatal error",
        r"detected NVSwitch non-fatal error (?P<sxid>\d+)(?: on fid \d+ on NVSwitch pci bus id "
        r"(?P<switch>[0-9a-fA-F:.]+) physical id \d+ port (?P<link>\d+))?",
        nature="symptom",
        fields={"fatal": False, "suggests": "nvlink-fabric"},
        refine=_switch,
    ),
    # [Sep 17 2024 06:01:46] [ERROR] [tid 1230079] failed to find the GPU handle 5410063385821516767
    # in the multicast
    # team request setup 6130285411925746235.   (manager restarted under running jobs, or a GPU reset
    # without it)
    Pattern(
        "kernel.fabric_multicast",
        "failed to find the GPU handle",
        r"failed to find the GPU handle \d+ in the multicast team",
        nature="cause",
        cause="fabric-manager",
    ),
    # detected number of NVSwitches don't match with any supported system topology, aborting fabric manager
    Pattern(
        "kernel.fabric_topology",
        "match with any supported system topology",
        r"detected number of NVSwitches don't match with any supported system topology",
        nature="cause",
        cause="fabric-manager",
    ),
    # nv-fabricmanager[104230]: fabric manager NVIDIA GPU driver interface version 550.127.05 don't
    # match with driver
    # version 550.120. Please update with matching NVIDIA driver package.
    Pattern(
        "kernel.fabric_version",
        "GPU driver interface version",
        r"fabric manager NVIDIA GPU driver interface version (?P<manager>[\d.]+\d) (?:don't|don.t|doesn't)"
        r" match with "
        r"driver version (?P<driver>[\d.]+\d)",
        nature="cause",
        cause="fabric-manager",
    ),
    # request to query NVSwitch device information from NVSwitch driver failed with error:WARNING
    # Nothing to do
    # [NV_WARN_NOTHING_TO_DO]   (no NVSwitch before NVLink 5, or NVLink 5 without the subnet manager:
    # says nothing)
    Pattern(
        "kernel.fabric_nothing_to_do",
        "NV_WARN_NOTHING_TO_DO",
        r"NV_WARN_NOTHING_TO_DO",
        nature="noise",
    ),
    # systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.
    # systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE
    # Machines without NVSwitch print it too, so it only points to the cause.
    Pattern(
        "kernel.fabric_service",
        "nvidia-fabricmanager.service: ",
        r"nvidia-fabricmanager\.service: (?P<text>Failed with result|(?:Main|Control) process exited)",
        nature="symptom",
        fields={"suggests": "fabric-manager", "state": "failed"},
    ),
    # Job for nvidia-fabricmanager.service failed because the control process exited with error code.
    # (systemctl to the person who asked for the start)
    Pattern(
        "kernel.fabric_service",
        "Job for nvidia-fabricmanager.service ",
        r"Job for nvidia-fabricmanager\.service (?P<text>failed) because",
        nature="symptom",
        fields={"suggests": "fabric-manager", "state": "failed"},
    ),
    # nv-fabricmanager[1120]: Successfully configured all the available NVSwitches to route GPU NVLink traffic.
    Pattern(
        "kernel.fabric_configured",
        "Successfully configured all the available NVSwitches",
        r"Successfully configured all the available NVSwitches",
    ),
    # systemd[1]: Failed to start NVIDIA fabric manager service.
    Pattern(
        "kernel.fabric_service",
        "NVIDIA fabric manager service",
        r"Failed to start (?:nvidia-fabricmanager\.service - )?NVIDIA fabric manager service",
        nature="symptom",
        fields={"suggests": "fabric-manager", "state": "failed"},
    ),
    # systemd[1]: Stopping NVIDIA fabric manager service...
    # systemd[1]: Started NVIDIA fabric manager service.   (a restart under live GPUs breaks their
    # fabric state)
    Pattern(
        "kernel.fabric_service",
        "NVIDIA fabric manager service",
        r"(?P<text>Stopping|Stopped|Starting|Started) (?:nvidia-fabricmanager\.service - )?NVIDIA fabric"
        r" manager service",
    ),
    # [Mar 21 2025 20:45:38] [ERROR] [tid 39] No matching network interface found for any IP addresses in the node
    # configuration file ...        nvidia-imex's own log, 570
    Pattern(
        "kernel.imex_failed",
        "No matching network interface found for any IP addresses",
        r"No matching network interface found for any IP addresses in the node configuration",
        nature="cause",
        cause="nvlink-fabric",
        fields={"reason": "no address of its node list is one of this host"},
    ),
    # Failed to allocate Imex session ... NV_ERR_IN_USE        a second daemon beside one of the host
    Pattern(
        "kernel.imex_failed",
        "Failed to allocate Imex session",
        r"Failed to allocate Imex session(?P<text>[^\n]{0,200})",
        nature="cause",
        cause="nvlink-fabric",
        fields={"reason": "another IMEX daemon holds the session"},
    ),
    # nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing
    Pattern(
        "kernel.peermem_invalid_context",
        "detected invalid context, skipping",
        r"nvidia-peermem \w+:\d+ ERROR detected invalid context",
        nature="consequence",
    ),
    # nvidia-peermem nv_mem_get_pages:471 ERROR error -22 while calling nvidia_p2p_get_pages()
    Pattern(
        "kernel.peermem_error",
        "nvidia-peermem nv",
        r"nvidia-peermem (?P<function>\w+):\d+ ERROR (?!detected invalid context)(?P<text>[^\n]+)",
        nature="symptom",
        fields={"suggests": "gdr-peermem"},
    ),
    # nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err 0)
    # nv_peer_mem: disagrees about version of symbol ib_register_peer_memory_client
    Pattern(
        "kernel.peermem_symbol",
        "ib_register_peer_memory_client",
        r"(?P<module>nvidia_peermem|nv_peer_mem): (?:disagrees about version of symbol|Unknown symbol) "
        r"(?P<symbol>\w+)",
        nature="symptom",
        fields={"suggests": "gdr-peermem"},
    ),
)
