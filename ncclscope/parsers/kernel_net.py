"""Network adapters in the kernel log: mlx5, InfiniBand core, EFA, others, and limits of the host's IP"
" stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.kernel_pcie import PCI, pci_of
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]


def _link(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    """State in lower case; only a link that goes down is a symptom, its return is the end of a flap."""
    state = m["state"].lower()
    down = state == "down"
    fields: dict[str, Value] = {**pci_of(m, line), "state": state, "nature": "symptom" if down else "info"}
    if down:
        fields["suggests"] = "ib-link"
    return fields


def _module_event(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    fields: dict[str, Value] = dict(pci_of(m, line))
    if m["event"] == "Cable error":
        fields |= {"nature": "cause", "cause": "ib-link"}
    elif m["event"] == "Cable unplugged":
        fields |= {"nature": "symptom", "suggests": "ib-link"}
    return fields


def _command(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    # Monitoring that reads counters of a restricted port prints ACCESS_REG failures by the thousand.
    fields: dict[str, Value] = (
        {"nature": "noise"} if m["command"] == "ACCESS_REG" else {"suggests": "ib-link"}
    )
    return {**pci_of(m, line), **fields}


_MLX5 = rf"mlx5_core (?P<pci>{PCI})"
_EFA = rf"(?:efa (?P<pci>{PCI})|infiniband (?P<ib_device>(?:rdmap|efa_)\S*)): "
_COMMAND = r"(?<![A-Z0-9_])(?P<command>[A-Z0-9_]{2,40})\(0x[0-9a-fA-F]+\)"
_IB_LINK: Mapping[str, Value] = {"suggests": "ib-link"}
_EFA_HINT: Mapping[str, Value] = {"suggests": "efa-plugin"}

PATTERNS: tuple[Pattern, ...] = (
    # mlx5_core 0000:53:00.0 enp83s0f0np0: Link down   (also printed at boot for ports that nobody uses)
    Pattern(
        "kernel.mlx5_link",
        ": Link ",
        rf"{_MLX5} (?P<iface>\S+): Link (?P<state>down|up)\b",
        nature="symptom",
        refine=_link,
        adds=("suggests",),
    ),
    # mlx5_core 0000:08:00.0 mlx5_0: Port: 1 Link DOWN
    Pattern(
        "kernel.ib_port",
        ": Port: ",
        rf"(?P<driver>[\w.-]{{1,32}}) (?P<pci>{PCI}) (?P<ib_device>\S+): Port: (?P<port>\d+) Link "
        r"(?P<state>DOWN|INIT|ARMED|ACTIVE_DEFER|ACTIVE|NOP)",
        nature="symptom",
        refine=_link,
        adds=("suggests",),
    ),
    # mlx5_core 0000:5c:00.0: mlx5_port_module_event:1131:(pid 0): Port module event[error]: module 0,
    # Cable error,
    # High Temperature
    # mlx5_core 0000:5c:00.0: Port module event: module 0, Cable plugged
    Pattern(
        "kernel.mlx5_module",
        "Port module event",
        rf"{_MLX5}: (?:\w+:\d+:\(pid \d+\): )?Port module event(?:\[error\])?: module (?P<module>\d+), "
        r"(?P<event>Cable (?:plugged|unplugged|error))(?:, (?P<detail>[^\n]+))?",
        refine=_module_event,
        adds=("suggests",),
    ),
    # mlx5_core 0000:5c:00.0: temp_warn:186:(pid 0): High temperature on sensors with bit set 0 1
    Pattern(
        "kernel.mlx5_temperature",
        "High temperature on sensors with bit set",
        rf"{_MLX5}: .{{0,60}}High temperature on sensors",
        nature="symptom",
        fields=_IB_LINK,
        refine=pci_of,
    ),
    # mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the
    # PCIe slot (27W).
    Pattern(
        "kernel.mlx5_power",
        "Detected insufficient power on the PCIe slot",
        rf"{_MLX5}: .{{0,60}}Detected insufficient power on the PCIe slot \((?P<watts>\d+)W\)",
        nature="noise",
        refine=pci_of,
    ),
    # mlx5_core 0000:d2:00.0: poll_health:825:(pid 0): device's health compromised - reached miss count
    Pattern(
        "kernel.mlx5_health",
        "s health compromised",
        rf"{_MLX5}: .{{0,60}}(?P<text>device's health compromised)",
        nature="cause",
        cause="ib-link",
        refine=pci_of,
    ),
    # mlx5_core 0000:73:00.0: print_health_info:423:(pid 0): Health issue observed, firmware internal
    # error, severity(3)
    # ERROR:
    Pattern(
        "kernel.mlx5_health",
        "Health issue observed",
        rf"{_MLX5}: .{{0,60}}Health issue observed, (?P<text>[^,]+), severity\((?P<level>\d+)\) "
        r"(?P<severity>\w+)",
        nature="symptom",
        fields=_IB_LINK,
        refine=pci_of,
    ),
    # mlx5_core 0000:d2:00.0: print_health_info:432:(pid 0): synd 0x1: firmware internal error
    Pattern(
        "kernel.mlx5_health",
        ": synd 0x",
        rf"{_MLX5}: .{{0,60}}synd (?P<syndrome>0x[0-9a-fA-F]+): (?P<text>[^\n]+)",
        nature="symptom",
        fields=_IB_LINK,
        refine=pci_of,
    ),
    # mlx5_core 0000:d2:00.0: poll_health:831:(pid 0): Fatal error 1 detected
    Pattern(
        "kernel.mlx5_fatal",
        "mlx5_core ",
        rf"{_MLX5}: .{{0,60}}(?P<text>Fatal error \d+ detected|handling bad device here|device is unhealthy"
        r"|FW is unable to respond to initialization segment reads)",
        nature="cause",
        cause="ib-link",
        refine=pci_of,
    ),
    # mlx5_core 0000:03:00.0: wait_func:1195:(pid 1967079): ENABLE_HCA(0x104) timeout. Will cause a
    # leak of a command
    # resource
    Pattern(
        "kernel.mlx5_command_timeout",
        "Will cause a leak of a command resource",
        rf"{_MLX5}: .{{0,80}}{_COMMAND}(?: Async,)? timeout\. Will cause a leak",
        nature="cause",
        cause="ib-link",
        refine=pci_of,
    ),
    # mlx5_core 0000:56:00.0: wait_func_handle_exec_timeout:1159:(pid 72061): cmd[0]:
    # ACCESS_REG(0x805) No done completion
    Pattern(
        "kernel.mlx5_command_slow",
        ") No done completion",
        rf"{_MLX5}: .{{0,80}}{_COMMAND} No done completion",
        nature="symptom",
        fields=_IB_LINK,
        refine=pci_of,
    ),
    # mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid 1441871): ACCESS_REG(0x805) op_mod(0x1)
    # failed, status bad
    # resource(0x5), syndrome (0x305684), err(-22)
    Pattern(
        "kernel.mlx5_command_failed",
        ") failed, status ",
        rf"{_MLX5}: mlx5_cmd_\w+:\d+:\(pid (?P<pid>\d+)\): {_COMMAND} op_mod\(0x[0-9a-fA-F]+\) failed,"
        r" status "
        r"(?P<reason>[^(]+)\(",
        nature="symptom",
        refine=_command,
        adds=("suggests",),
    ),
    # infiniband mlx5_0: mlx5_handle_error_cqe:333:(pid 0): WC error: 10, Message: remote access error
    # A queue pair of the kernel (storage, IPoIB); NCCL's are user-space ones and do not show here.
    Pattern(
        "kernel.ib_completion_error",
        "WC error: ",
        r"infiniband (?P<ib_device>\S+): \w+:\d+:\(pid \d+\): WC error: (?P<status>\d+), [Mm]essage: "
        r"(?P<text>[^\n]+)",
        nature="symptom",
        fields=_IB_LINK,
    ),
    # mlx5_core 0000:65:00.0 ens1f0np0: TX timeout detected
    Pattern(
        "kernel.net_tx_timeout",
        "TX timeout",
        rf"(?P<driver>mlx5_core|bnxt_en) (?P<pci>{PCI}) (?P<iface>\S+): TX timeout (?:detected|on queue)",
        nature="symptom",
        fields=_IB_LINK,
        refine=pci_of,
    ),
    # NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 0 timed out   (before 6.8)
    Pattern(
        "kernel.net_tx_timeout",
        "NETDEV WATCHDOG: ",
        r"NETDEV WATCHDOG: (?P<iface>\S+) \((?P<driver>[^)]+)\): transmit queue \d+ timed out",
        nature="symptom",
        fields=_IB_LINK,
    ),
    # mlx5_core 0000:65:00.0 eth0: NETDEV WATCHDOG: CPU: 5: transmit queue 0 timed out 5032 ms   (6.8
    # and newer)
    Pattern(
        "kernel.net_tx_timeout",
        "NETDEV WATCHDOG: CPU:",
        rf"(?P<driver>[\w.-]{{1,32}}) (?P<pci>{PCI}) (?P<iface>\S+): NETDEV WATCHDOG: CPU: \d+:"
        r" transmit queue",
        nature="symptom",
        fields=_IB_LINK,
        refine=pci_of,
    ),
    # IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready
    Pattern(
        "kernel.link_ready",
        "link becomes ready",
        r"ADDRCONF\(NETDEV_CHANGE\): (?P<iface>\S+): link becomes ready",
    ),
    # bond0: (slave enp83s0f0np0): link status definitely down, disabling slave
    Pattern(
        "kernel.bond_link",
        "link status definitely down",
        r"(?P<bond>[\w.-]{1,32}): \(slave (?P<iface>\S+)\): link status definitely down",
        nature="symptom",
        fields=_IB_LINK,
    ),
    # bnxt_en 0000:19:00.0 ens1f0np0: NIC Link is Down
    # ice 0000:18:00.0 ens1f0: NIC Link is Down
    Pattern(
        "kernel.link_down",
        "NIC Link is ",
        rf"(?P<driver>\w{{1,32}}) (?P<pci>{PCI}) (?P<iface>\S+): NIC Link is (?P<state>Down|Up|up)",
        nature="symptom",
        refine=_link,
        adds=("suggests",),
    ),
    # infiniband rdmap16s27: The device didn't send any completion for admin cmd CREATE_QP(6) status 0
    # (ctx 0x..., ...)
    # efa 0000:00:06.0: Wait for completion (polling) timeout   (the ENA driver prints the same words:
    # see the prefix)
    Pattern(
        "kernel.efa_timeout",
        "send any completion for admin cmd",
        _EFA + r"The device didn't send any completion for admin cmd (?P<command>\w+)",
        nature="cause",
        cause="efa-plugin",
        refine=pci_of,
    ),
    Pattern(
        "kernel.efa_timeout",
        "Wait for completion (polling) timeout",
        _EFA + r"Wait for completion \(polling\) timeout",
        nature="cause",
        cause="efa-plugin",
        refine=pci_of,
    ),
    # infiniband rdmap0s6: Admin queue is closed
    Pattern(
        "kernel.efa_closed",
        "Admin queue is closed",
        _EFA + r"Admin queue is closed",
        nature="consequence",
        fields=_EFA_HINT,
        refine=pci_of,
    ),
    # infiniband rdmap0s6: Failed to process command CREATE_QP (opcode 6) comp_status 1 err -22
    # (REG_MR -12: limits)
    Pattern(
        "kernel.efa_command",
        " command ",
        _EFA + r"Failed to (?:process|submit) command (?P<command>\w+) \(opcode \d+\)(?: comp_status \d+)?"
        r" err (?P<error>-?\d+)",
        nature="symptom",
        fields=_EFA_HINT,
        refine=pci_of,
    ),
    # efa 0000:00:06.0: Reset indication didn't turn on
    Pattern(
        "kernel.efa_reset",
        "Reset indication didn",
        _EFA + r"Reset indication didn't turn (?:on|off)",
        nature="cause",
        cause="efa-plugin",
        refine=pci_of,
    ),
    # infiniband bnxt_re0: Failed to modify HW QP
    # infiniband irdma0: CQP timeout, requesting reset
    Pattern(
        "kernel.rdma_error",
        "infiniband ",
        r"infiniband (?P<ib_device>(?:bnxt_re|irdma|rocep|iwp)\S{0,16}): "
        r"(?P<text>[^\n]{0,120}?(?:[Ff]ail|timed out|timeout|reset)[^\n]{0,120})",
        nature="symptom",
        fields=_IB_LINK,
    ),
    # nf_conntrack: nf_conntrack: table full, dropping packet
    Pattern(
        "kernel.conntrack_full",
        "table full, dropping packet",
        r"nf_conntrack: (?:nf_conntrack: )?table full, dropping packet",
        nature="symptom",
        fields={"suggests": "firewall-port"},
    ),
    # neighbour: arp_cache: neighbor table overflow!
    Pattern(
        "kernel.neighbour_overflow",
        "neighbor table overflow",
        r"neighbour: (?P<table>\S+): neighbor table overflow",
        nature="symptom",
        fields={"suggests": "firewall-port"},
    ),
    # TCP: request_sock_TCP: Possible SYN flooding on port 29500. Sending cookies.  Check SNMP counters.
    # newer kernels print the address too: port 0.0.0.0:29500
    Pattern(
        "kernel.syn_flood",
        "Possible SYN flooding on port",
        r"Possible SYN flooding on port (?:\S+:)?(?P<port>\d+)\.",
        nature="symptom",
        fields={"suggests": "rendezvous"},
    ),
    # TCP: out of memory -- consider tuning tcp_mem
    Pattern(
        "kernel.tcp_memory",
        "consider tuning tcp_mem",
        r"TCP: out of memory -- consider tuning tcp_mem",
        nature="symptom",
    ),
    # TCP: too many orphaned sockets
    Pattern(
        "kernel.tcp_orphans",
        "TCP: too many orphaned sockets",
        r"TCP: too many orphaned sockets",
        nature="consequence",
    ),
    # infiniband mlx5_0: dump_cqe:272:(pid 0): dump error cqe   (head of a hex dump)
    Pattern(
        "kernel.ib_completion_dump",
        ": dump error cqe",
        r"infiniband (?P<ib_device>\S+): dump_cqe:\d+:",
        nature="noise",
    ),
)
