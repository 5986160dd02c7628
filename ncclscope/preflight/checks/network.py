"""The network: the interface for NCCL's sockets and the rendezvous address."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncclscope.preflight.model import CheckResult, Evidence, NextStep, Subject
from ncclscope.preflight.settings import nccl_settings

if TYPE_CHECKING:
    from ncclscope.preflight.node import Node

INTERFACE = Subject("interface", "Network interface for NCCL", "network-interface")
MASTER = Subject("master", "MASTER_ADDR and MASTER_PORT", "firewall-port")

_CONNECT_SECONDS = 3.0
_INTERNAL = ("docker", "virbr", "br-", "cni", "veth", "flannel", "cali", "kube-")
_LIST = NextStep("List interfaces and addresses.", "ip -brief address", "read_only")


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface that is up and one of its addresses."""

    name: str
    address: str


def interfaces(node: Node) -> list[Interface]:
    """Interfaces that are up with an address, in the order in which getifaddrs lists them to NCCL.

    An interface is shown with its IPv4 address, else with its first IPv6 address.
    """
    found: list[tuple[int, Interface]] = []
    longer = node.ipv6()
    for name in node.names("/sys/class/net"):
        flags = node.read(f"/sys/class/net/{name}/flags") or "0x0"
        address = node.ipv4(name) or next(iter(longer.get(name, ())), None)
        if address is not None and int(flags, 16) & 1:
            found.append((int(node.read(f"/sys/class/net/{name}/ifindex") or 0), Interface(name, address)))
    return [interface for _, interface in sorted(found, key=lambda entry: (entry[0], entry[1].name))]


def matches(pattern: str, name: str) -> bool:
    """Whether NCCL_SOCKET_IFNAME or NCCL_IB_HCA lets `name` in.

    As NCCL parses it: '^' in front excludes, '=' then asks for whole names, otherwise each comma-separated
    item is a prefix. Case counts.
    """
    exclude = pattern.startswith("^")
    pattern = pattern.removeprefix("^")
    exact = pattern.startswith("=")
    items = [item for item in pattern.removeprefix("=").split(",") if item]
    hit = not items or any(name == item if exact else name.startswith(item) for item in items)
    return hit != exclude


def chosen(node: Node, found: list[Interface]) -> tuple[list[Interface], str]:
    """The interfaces NCCL would take, the first for bootstrap, and the reason."""
    setting = nccl_settings(node).get("NCCL_SOCKET_IFNAME")
    # NCCL ignores a value of one character.
    if setting is not None and len(setting.value) > 1:
        return [
            item for item in found if matches(setting.value, item.name)
        ], f"NCCL_SOCKET_IFNAME={setting.value}"
    for pattern, why in (
        ("ib", "InfiniBand interfaces come first"),
        ("^docker,lo,virbr", "the first that is neither docker, loopback nor virbr"),
        ("docker", "nothing but docker"),
        ("lo", "nothing but the loopback"),
        ("virbr", "nothing but virbr"),
    ):
        taken = [item for item in found if matches(pattern, item.name)]
        if taken:
            return taken, why
    return [], "no interface has an address"


def interface(node: Node) -> CheckResult:
    """The interface that NCCL would use; whether NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME fit."""
    names = node.names("/sys/class/net")
    if not names:
        return INTERFACE.not_checked("/sys/class/net is not there: interfaces cannot be listed")
    found = interfaces(node)
    taken, why = chosen(node, found)
    have = ", ".join(f"{item.name} {item.address}" for item in found) or "none with an address"
    evidence = (Evidence("interfaces", have), Evidence("choice", why))
    if not taken:
        return INTERFACE.failed(
            f"{why}: none matches. Here are: {have}. NCCL ends with 'no socket interface found'.",
            _LIST,
            *evidence,
        )
    gloo = node.environ.get("GLOO_SOCKET_IFNAME", "")
    missing = [name for name in gloo.split(",") if name and name not in names]
    if missing:
        return INTERFACE.failed(
            f"GLOO_SOCKET_IFNAME names {', '.join(missing)}, which is not here (Gloo takes whole names, no "
            "prefixes).",
            _LIST,
            *evidence,
        )
    first = taken[0]
    if first.name == "lo" and node.environ.get("NNODES", node.environ.get("PET_NNODES", "1")) != "1":
        return INTERFACE.failed(
            f"NCCL would use the loopback ({why}) in a job of several hosts.", _LIST, *evidence
        )
    if first.name == "lo" or first.name.startswith(_INTERNAL):
        return INTERFACE.warned(
            f"NCCL would use {first.name} ({first.address}): {why}. Other hosts cannot reach it; a job on "
            "one host can "
            "live with that. Otherwise set NCCL_SOCKET_IFNAME to the right one.",
            _LIST,
            *evidence,
        )
    others = [item.name for item in taken[1:]]
    more = f" Also matching, used for data over TCP: {', '.join(others)}." if others else ""
    return INTERFACE.passed(f"{first.name} ({first.address}): {why}.{more}", *evidence)


def master(node: Node) -> CheckResult:
    """Whether MASTER_ADDR resolves and its port can be reached. Rank 0 listens only once the job runs."""
    host = node.environ.get("MASTER_ADDR", "")
    if not host:
        return MASTER.not_checked("MASTER_ADDR is not set here (the launcher sets it for the job itself)")
    answer = node.resolve(host)
    if isinstance(answer, str):
        return MASTER.failed(
            f"The name {host} does not resolve: {answer}. In Kubernetes a headless service answers once its "
            "pod is "
            "ready, unless publishNotReadyAddresses is set.",
            NextStep("Ask the resolver.", f"getent hosts {_shell_word(host)}", "read_only"),
            Evidence("MASTER_ADDR", host),
            category="dns",
        )
    evidence = Evidence("MASTER_ADDR", f"{host} is {', '.join(answer)}")
    port_text = node.environ.get("MASTER_PORT", "")
    if not port_text:
        return MASTER.passed(
            f"{host} resolves to {', '.join(answer)}. MASTER_PORT is not set: not tried.", evidence
        )
    if not port_text.isdigit() or not 0 < int(port_text) < 65536:
        return MASTER.failed(
            f"MASTER_PORT={port_text} is no port number.",
            NextStep("See where it is set.", "env | grep MASTER_", "read_only"),
            evidence,
            category="rendezvous",
        )
    port = int(port_text)
    if _is_here(node, answer):
        return _own_port(node, answer, port, evidence)
    outcomes = {address: node.connect(address, port, _CONNECT_SECONDS) for address in answer}
    tried = Evidence(
        f"TCP port {port}", ", ".join(f"{address}: {outcome}" for address, outcome in outcomes.items())
    )
    values = set(outcomes.values())
    if "open" in values:
        return MASTER.passed(f"{host}:{port} accepts connections.", evidence, tried)
    if "refused" in values:
        return MASTER.passed(
            f"{host} answers, and nothing listens on port {port} yet, as is usual before the job starts. A "
            "firewall "
            "that rejects would look the same.",
            evidence,
            tried,
        )
    try_it = NextStep(
        "Try it by hand.", f"timeout 5 bash -c '</dev/tcp/{answer[0]}/{port}' && echo open", "read_only"
    )
    if values == {"timeout"}:
        return MASTER.failed(
            f"No answer from {host}:{port} within {_CONNECT_SECONDS:g} s: packets are dropped on the way "
            "(firewall, "
            "security group, network policy) or the host is down.",
            try_it,
            evidence,
            tried,
        )
    if "unreachable" in values:
        return MASTER.failed(
            f"There is no route to {host} from here.",
            NextStep("See the route.", f"ip route get {answer[0]}", "read_only"),
            evidence,
            tried,
            category="network-interface",
        )
    return MASTER.failed(f"Connecting to {host}:{port} failed: {tried.value}.", try_it, evidence, tried)


def _is_here(node: Node, addresses: list[str]) -> bool:
    mine = node.local_addresses()
    return any(
        address in mine or ipaddress.ip_address(address.split("%")[0]).is_loopback for address in addresses
    )


def _own_port(node: Node, answer: list[str], port: int, evidence: Evidence) -> CheckResult:
    if node.connect(answer[0], port, _CONNECT_SECONDS) == "open":
        return MASTER.warned(
            f"This host is MASTER_ADDR, and something listens on port {port} already: the launcher of this "
            "very job, or "
            "another job, in which case rank 0 ends with 'Address already in use'.",
            NextStep("See who listens.", f"ss -ltnp 'sport = :{port}'", "read_only"),
            evidence,
            category="rendezvous",
        )
    return MASTER.passed(f"This host is MASTER_ADDR and port {port} is free.", evidence)


def _shell_word(text: str) -> str:
    """A host name fit for a command line: anything else than a name's characters is dropped."""
    return "".join(letter for letter in text if letter.isalnum() or letter in ".-_:")
