"""InfiniBand and RoCE ports, from sysfs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncclscope.preflight.model import CheckResult, Evidence, NextStep, Subject
from ncclscope.preflight.settings import integer, is_on, nccl_settings

if TYPE_CHECKING:
    from ncclscope.preflight.node import Node

INFINIBAND = Subject("infiniband", "InfiniBand and RoCE ports", "ib-link")

_DEVICES = "/dev/infiniband"


@dataclass(frozen=True, slots=True)
class Port:
    """One port of an RDMA device as sysfs shows it."""

    device: str
    number: str
    state: str
    link_layer: str
    rate: str
    lid: str
    gids: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return f"{self.device}:{self.number}"

    @property
    def active(self) -> bool:
        return self.state.endswith("ACTIVE") and "INACTIVE" not in self.state


def rdma_ports(node: Node) -> list[Port]:
    """All ports of InfiniBand and RoCE devices; AWS EFA, which NCCL drives through a plug-in, is left out."""
    base = "/sys/class/infiniband"
    ports: list[Port] = []
    for device in node.names(base):
        if device.startswith("efa"):
            continue
        for number in node.names(f"{base}/{device}/ports"):
            place = f"{base}/{device}/ports/{number}"
            gids = tuple(
                (
                    node.read(f"{place}/gids/{index}") or "",
                    node.read(f"{place}/gid_attrs/types/{index}") or "",
                )
                for index in sorted(
                    node.names(f"{place}/gids"), key=lambda name: int(name) if name.isdigit() else 0
                )
            )
            ports.append(
                Port(
                    device,
                    number,
                    # "4: ACTIVE"
                    (node.read(f"{place}/state") or "").upper(),
                    node.read(f"{place}/link_layer") or "",
                    node.read(f"{place}/rate") or "",
                    node.read(f"{place}/lid") or "",
                    gids,
                )
            )
    return ports


def wanted_ports(node: Node) -> list[Port]:
    """The ports that NCCL_IB_HCA lets in; all of them without it."""
    setting = nccl_settings(node).get("NCCL_IB_HCA")
    ports = rdma_ports(node)
    if setting is None or not setting.value:
        return ports
    return [port for port in ports if _hca_lets_in(setting.value, port)]


def _hca_lets_in(pattern: str, port: Port) -> bool:
    exclude = pattern.startswith("^")
    pattern = pattern.removeprefix("^")
    exact = pattern.startswith("=")
    for item in pattern.removeprefix("=").split(","):
        device, _, number = item.partition(":")
        named = port.device == device if exact else bool(device) and port.device.startswith(device)
        if named and number in {"", port.number}:
            return not exclude
    return exclude


def active_ports(node: Node) -> list[Port]:
    """The active ports that NCCL would use; none with NCCL_IB_DISABLE=1 or without their device files."""
    if is_on(nccl_settings(node), "NCCL_IB_DISABLE") or not node.names(_DEVICES):
        return []
    return [port for port in wanted_ports(node) if port.active]


def infiniband(node: Node) -> CheckResult:
    """State, rate and addresses of the ports that NCCL would use."""
    ports = rdma_ports(node)
    settings = nccl_settings(node)
    hca = settings.get("NCCL_IB_HCA")
    look = NextStep("See the ports.", "ibstat || rdma link show", "read_only")
    if not ports:
        if hca is not None and hca.value:
            return INFINIBAND.failed(
                f"NCCL_IB_HCA={hca.value} asks for RDMA devices, and none is here: NCCL falls back to TCP "
                "sockets.",
                NextStep("See what sysfs has.", "ls /sys/class/infiniband", "read_only"),
                category="ib-config",
            )
        return INFINIBAND.passed("No InfiniBand or RoCE device here; NCCL uses TCP between hosts.")
    evidence = [Evidence(port.name, f"{port.state}, {port.rate}, {port.link_layer}") for port in ports]
    if is_on(settings, "NCCL_IB_DISABLE"):
        return INFINIBAND.warned(
            f"{len(ports)} RDMA port(s) are here, but NCCL_IB_DISABLE=1 makes NCCL use TCP, many times "
            "slower.",
            NextStep("See where it is set.", "env | grep NCCL_IB", "read_only"),
            *evidence,
            category="ib-config",
        )
    wanted = wanted_ports(node)
    if not wanted:
        return INFINIBAND.failed(
            f"NCCL_IB_HCA={hca.value if hca else ''} lets in none of "
            f"{', '.join(port.name for port in ports)}: NCCL "
            "falls back to TCP sockets.",
            look,
            *evidence,
            category="ib-config",
        )
    named = hca is not None and bool(hca.value)
    if not node.names(_DEVICES):
        # Often meant so, for jobs on one host; not when a device is asked for by name.
        say = INFINIBAND.failed if named else INFINIBAND.warned
        return say(
            f"RDMA devices are on the host, but {_DEVICES} is not in this container: NCCL falls back to TCP "
            "between "
            "hosts. Ask for the RDMA device plug-in's resource, or pass --device=/dev/infiniband.",
            NextStep("See what is here.", f"ls -l {_DEVICES}", "read_only"),
            *evidence,
            category="ib-config",
        )
    return _port_states(node, wanted, look, evidence, named=named)


def _port_states(
    node: Node, wanted: list[Port], look: NextStep, evidence: list[Evidence], *, named: bool
) -> CheckResult:
    active = [port for port in wanted if port.active]
    down = [port.name for port in wanted if not port.active]
    if not active:
        say = INFINIBAND.failed if named else INFINIBAND.warned
        return say(f"No port is active: {', '.join(down)}. NCCL falls back to TCP.", look, *evidence)
    unaddressed = [problem for port in active if (problem := _address_problem(node, port))]
    if unaddressed:
        return INFINIBAND.failed(
            f"{'; '.join(unaddressed)}.",
            NextStep("See each port's GIDs.", "show_gids || rdma link show", "read_only"),
            *evidence,
            category="ib-config",
        )
    rates = {port.rate for port in active}
    layers = {port.link_layer for port in active}
    if down and named:
        return INFINIBAND.failed(
            f"NCCL_IB_HCA names ports that are down: {', '.join(down)}.", look, *evidence
        )
    if len(layers) > 1:
        return INFINIBAND.warned(
            "InfiniBand and Ethernet ports are mixed: name those of one kind in NCCL_IB_HCA.",
            look,
            *evidence,
            category="ib-config",
        )
    if len(rates) > 1:
        return INFINIBAND.warned(
            f"Ports run at different rates ({', '.join(sorted(rates))}): the slowest sets the pace. Name the "
            "fast ones in "
            "NCCL_IB_HCA, or look at the slow one's cable.",
            look,
            *evidence,
        )
    if down:
        return INFINIBAND.warned(
            f"Down: {', '.join(down)}. NCCL leaves them out, so this host has less bandwidth than its like.",
            look,
            *evidence,
        )
    return INFINIBAND.passed(f"{len(active)} active at {', '.join(rates)} ({', '.join(layers)}).", *evidence)


def _address_problem(node: Node, port: Port) -> str | None:
    if port.link_layer == "InfiniBand":
        return (
            f"{port.name} is active but has no LID: no subnet manager answers"
            if port.lid in {"0x0", "0"}
            else None
        )
    if port.link_layer != "Ethernet" or not port.gids:
        return None
    index_setting = nccl_settings(node).get("NCCL_IB_GID_INDEX")
    index = integer(index_setting.value) if index_setting is not None else -1
    if index >= 0:
        if index >= len(port.gids) or _is_zero(port.gids[index][0]):
            return f"NCCL_IB_GID_INDEX={index} has no address on {port.name}"
        if port.gids[index][1] and "v2" not in port.gids[index][1]:
            return f"NCCL_IB_GID_INDEX={index} on {port.name} is {port.gids[index][1]}, not RoCE v2"
        return None
    if all(_is_zero(gid) for gid, _ in port.gids):
        return (
            f"{port.name} has no GID in this network namespace: RoCE needs the interface's address in "
            "the "
            "container"
        )
    return None


def _is_zero(gid: str) -> bool:
    return not gid.replace(":", "").strip("0")
