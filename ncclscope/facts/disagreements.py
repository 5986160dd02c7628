"""Where ranks that must agree differ: versions, and settings that NCCL needs to be equal everywhere."""

from __future__ import annotations

from collections import defaultdict

from ncclscope.facts.base import Basis
from ncclscope.model import Event

__all__ = ["add_disagreement_facts", "must_agree"]

# Variables that describe the one machine or process: different values on ranks are the point of them.
_PER_HOST = frozenset(
    """NCCL_SOCKET_IFNAME NCCL_IB_HCA NCCL_TOPO_FILE NCCL_HOSTID NCCL_DEBUG_FILE NCCL_DEBUG NCCL_DEBUG_SUBSYS
    NCCL_COMM_ID NCCL_TOPO_DUMP_FILE NCCL_GRAPH_DUMP_FILE NCCL_IGNORE_CPU_AFFINITY NCCL_CONF_FILE
    NCCL_NET_PLUGIN NCCL_OOB_NET_IFNAME NCCL_RAS_ADDR""".split()
)
# Variables that decide what ranks send each other; NCCL does not compare them and hangs or truncates when they differ.
_MUST_AGREE = frozenset(
    """NCCL_ALGO NCCL_PROTO NCCL_MIN_NCHANNELS NCCL_MAX_NCHANNELS NCCL_NCHANNELS_PER_NET_PEER NCCL_MIN_CTAS
    NCCL_MAX_CTAS NCCL_BUFFSIZE NCCL_LL_BUFFSIZE NCCL_LL128_BUFFSIZE NCCL_P2P_DISABLE NCCL_SHM_DISABLE NCCL_NET
    NCCL_IB_DISABLE NCCL_NVLS_ENABLE NCCL_COLLNET_ENABLE NCCL_CROSS_NIC NCCL_P2P_NET_CHUNKSIZE NCCL_CHUNK_SIZE
    NCCL_NTHREADS NCCL_LL_THRESHOLD NCCL_TREE_THRESHOLD NCCL_THREAD_THRESHOLDS NCCL_CUMEM_ENABLE
    NCCL_MNNVL_ENABLE NCCL_PXN_DISABLE NCCL_NSOCKS_PERTHREAD NCCL_SOCKET_NTHREADS NCCL_NET_GDR_LEVEL NCCL_RINGS
    NCCL_GRAPH_FILE""".split()
)


def must_agree(name: str) -> bool:
    """Whether ranks hang or exchange garbage when this variable differs between them."""
    return name in _MUST_AGREE


def add_disagreement_facts(basis: Basis) -> None:
    """versions.differ, settings.differ and network.loopback."""
    _versions(basis)
    _settings(basis)
    _loopback(basis)


def _speaker(basis: Basis, event: Event) -> tuple[str | None, int | None]:
    who = basis.who(event)
    return (who.host or event.env.pod or event.ref.path, who.rank if who.rank is not None else event.env.pid)


def _versions(basis: Basis) -> None:
    by_value: dict[str, list[Event]] = defaultdict(list)
    for event in basis.events("nccl.version"):
        version = event.get("version")
        if isinstance(version, str):
            by_value[version].append(event)
    speakers = {value: {_speaker(basis, e) for e in some} for value, some in by_value.items()}
    # A process that loads two NCCLs, or an appended rerun, is no disagreement between ranks.
    if len(by_value) < 2 or any(a & b for a in speakers.values() for b in speakers.values() if a is not b):
        return
    if len({host for some in speakers.values() for host, _ in some}) < 2:
        return
    events = [some[0] for some in by_value.values()]
    few = min(by_value.values(), key=len)
    basis.add(
        "versions.differ",
        {"what": "NCCL", "values": tuple(sorted(by_value))},
        events,
        hosts={h for e in few if (h := basis.who(e).host)},
    )


def _settings(basis: Basis) -> None:
    by_name: dict[str, dict[tuple[str | None, int | None], Event]] = defaultdict(dict)
    for event in basis.events("nccl.env"):
        name = event.get("name")
        if isinstance(name, str) and name not in _PER_HOST:
            by_name[name].setdefault(_speaker(basis, event), event)
    # Settings are printed at INFO, as these are; a banner alone also comes from a host that prints no settings.
    everyone = {_speaker(basis, e) for e in basis.events("nccl.init_start", "nccl.bootstrap_using")}
    for name, by_speaker in sorted(by_name.items()):
        values: dict[str, list[Event]] = defaultdict(list)
        for event in by_speaker.values():
            values[str(event.get("value")).rstrip(".")].append(event)
        hosts_with = {host for host, _ in by_speaker}
        hosts_without = {host for host, _ in everyone} - hosts_with
        one_sided = bool(hosts_without) and name in _MUST_AGREE
        if len(values) < 2 and not one_sided:
            continue
        shown = [*sorted(values), *(["not set"] if one_sided else [])]
        if len(shown) < 2:
            continue
        events = [some[0] for some in values.values()]
        basis.add(
            "settings.differ",
            {"name": name, "values": tuple(shown), "must_agree": name in _MUST_AGREE},
            events,
            hosts={h for e in events if (h := basis.who(e).host)},
        )


def _loopback(basis: Basis) -> None:
    """An interface that cannot leave the host, where the communicator spans several."""
    if len(basis.identity.hosts) < 2 and not any(
        isinstance(n := e.get("nnodes"), int) and n > 1 for e in basis.events("nccl.comm_info")
    ):
        return
    for event in basis.events("nccl.bootstrap_using"):
        interface, address = str(event.get("interface") or ""), str(event.get("address") or "")
        if interface == "lo" or address.startswith("127."):
            who = basis.who(event)
            basis.add(
                "network.loopback",
                {"interface": interface or address},
                [event],
                ranks=[] if who.rank is None else [who.rank],
                hosts=[who.host] if who.host else [],
            )
            return
