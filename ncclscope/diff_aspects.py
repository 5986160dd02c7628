"""What two runs are compared by: each aspect turns one run into values with the lines that show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncclscope.facts.disagreements import must_agree
from ncclscope.report import LineEvidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ncclscope.model import Event
    from ncclscope.pipeline import Read

__all__ = [
    "ASPECTS",
    "TIMINGS",
    "TOPICS",
    "Aspect",
    "Values",
    "environment",
    "first_failure",
    "progress",
    "rank_hosts",
    "settings_shown",
    "weight_of_variable",
]

# In the order in which differences are told: what most often explains a run that fails comes first.
TOPICS = ("version", "network", "environment", "topology", "timing", "placement", "outcome")

# A value and the places, as file:line, that show it.
Values = dict[str, list[str]]

_MAX_PLACES = 2
_MAX_TEXT = 160
# What only changes where and how much NCCL prints, or is new in every run.
_PRINTING = frozenset(
    """NCCL_DEBUG NCCL_DEBUG_SUBSYS NCCL_DEBUG_FILE NCCL_DEBUG_TIMESTAMP_FORMAT NCCL_COMM_ID NCCL_HOSTID
    NCCL_TOPO_DUMP_FILE NCCL_GRAPH_DUMP_FILE NCCL_RAS_ADDR NCCL_WARN_ENABLE_DEBUG_INFO""".split()
)


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing that is compared. wants: what to do so that a log shows it, for a side that does not."""

    topic: str
    name: str
    values: Callable[[Read], Values]
    matters: bool = True
    why: str = ""
    wants: str = "NCCL_DEBUG=INFO prints it"


def _put(values: Values, value: str | None, event: Event) -> None:
    if value:
        places = values.setdefault(value, [])
        if len(places) < _MAX_PLACES and str(event.ref) not in places:
            places.append(str(event.ref))


def _field(kind: str, name: str, show: Callable[[object], str] = str) -> Callable[[Read], Values]:
    """Every value that a field takes."""

    def values(run: Read) -> Values:
        found: Values = {}
        for event in run.store.events(kind):
            value = event.get(name)
            if value is not None:
                _put(found, show(value), event)
        return found

    return values


def _cuda_version(value: object) -> str:
    return f"CUDA {value // 1000}.{value % 1000 // 10}" if isinstance(value, int) else str(value)


def _interface(device: str) -> str:
    """`eth0:192.0.2.2` without the address, which differs between any two hosts; `mlx5_0:1/RoCE` as it is."""
    return device if "/" in device else device.partition(":")[0]


def _devices(run: Read) -> Values:
    found: Values = {}
    for event in run.store.events("nccl.net_devices"):
        devices = event.get("devices")
        if isinstance(devices, tuple):
            _put(found, f"{event.get('plugin')}: {', '.join(_interface(str(d)) for d in devices)}", event)
    return found


def _plugins(run: Read) -> Values:
    """Plug-ins that were found, and external ones that failed; what is merely absent says nothing."""
    found: Values = {}
    for event in run.store.events("nccl.plugin"):
        outcome = event.get("outcome")
        if outcome in ("absent", None):
            continue
        words = [str(w) for w in (event.get("plugin"), event.get("name"), str(outcome).replace("_", " ")) if w]
        _put(found, " ".join(words), event)
    for event in run.store.events("nccl.ofi"):
        version = event.get("plugin_version")
        if version:
            _put(found, f"aws-ofi-nccl {version}", event)
    return found


def _gdr(run: Read) -> Values:
    found: Values = {}
    for event in run.store.events("nccl.gdr"):
        _put(found, str(event.get("state") or ""), event)
    for event in run.store.events("nccl.channel_net"):
        network = event.get("network")
        if network != "Socket" and event.get("gdrdma") is not None:
            _put(found, "channels use GDRDMA" if event.get("gdrdma") else "channels do not use GDRDMA", event)
    return found


def _channels(run: Read) -> Values:
    return _field("nccl.channel_net", "network", lambda v: f"NET/{v}")(run)


def _connected(run: Read) -> Values:
    return _field("nccl.connected", "what")(run)


def _world(run: Read) -> Values:
    found: Values = {}
    for event in run.store.events("nccl.init_start", "nccl.init_complete", "nccl.comm_info"):
        if event.get("nranks") == run.facts.ranks.expected:
            _put(found, str(event.get("nranks")), event)
    for event in run.store.events("launch.rdzv_result"):
        size = event.get("world_size")
        if size and not found:
            _put(found, str(size), event)
    return found


def _communicators(run: Read) -> Values:
    return _field("nccl.init_start", "nranks", lambda v: f"of {v} ranks")(run)


def _gpus(run: Read) -> Values:
    found: Values = {}
    for event in run.store.events():
        name = event.get("gpu_name")
        if isinstance(name, str):
            _put(found, name, event)
    return found


def _bus_ids(run: Read) -> Values:
    found: Values = {}
    for event in run.store.events("nccl.init_start", "nccl.init_complete"):
        if event.get("nranks") == run.facts.ranks.expected:
            _put(found, f"rank {event.get('rank')}: {event.get('bus_id')}", event)
    return found


ASPECTS: tuple[Aspect, ...] = (
    Aspect("version", "NCCL version", _field("nccl.version", "version"), wants="NCCL_DEBUG=VERSION prints it"),
    Aspect(
        "version",
        "CUDA that NCCL was built with",
        _field("nccl.version", "cuda"),
        why="decides for which GPUs NCCL holds machine code",
        wants="NCCL_DEBUG=VERSION prints it",
    ),
    Aspect("version", "CUDA version of the driver", _field("nccl.driver", "driver_version", _cuda_version)),
    Aspect(
        "version",
        "PyTorch version",
        _field("torch.version", "version"),
        wants="print(torch.__version__) in the program",
    ),
    Aspect(
        "version", "libfabric version", _field("nccl.ofi", "libfabric_version"), wants="only aws-ofi-nccl prints it"
    ),
    Aspect(
        "network",
        "network that NCCL uses",
        _field("nccl.network", "network"),
        why="Socket in place of InfiniBand or EFA is slower by an order of magnitude, or does not connect",
    ),
    Aspect("network", "network plug-ins", _plugins),
    Aspect("network", "network devices", _devices, why="another interface or adapter carries the traffic"),
    Aspect("network", "interface of the bootstrap", _field("nccl.bootstrap_using", "interface")),
    Aspect("network", "interface beside InfiniBand", _field("nccl.net_devices", "oob_interface")),
    Aspect(
        "network",
        "GPUDirect RDMA",
        _gdr,
        why="without it every message takes a detour through host memory",
        wants="NCCL_DEBUG=INFO prints it where an adapter can do it",
    ),
    Aspect("network", "transport of network channels", _channels, wants="NCCL_DEBUG=INFO prints it with several hosts"),
    Aspect("network", "NVLink SHARP", _field("nccl.nvls", "state"), wants="NCCL_DEBUG_SUBSYS=NVLS prints it"),
    Aspect("network", "algorithms connected", _connected, matters=False),
    Aspect("topology", "ranks", _world),
    Aspect("topology", "hosts of a communicator", _field("nccl.comm_info", "nnodes")),
    Aspect("topology", "ranks on a host", _field("nccl.comm_info", "local_ranks")),
    Aspect("topology", "communicators", _communicators, matters=False),
    Aspect("topology", "GPU model", _gpus, wants="the program or nvidia-smi has to print it"),
    Aspect("topology", "GPU of each rank", _bus_ids, matters=False),
)

# Parts of init whose seconds are compared: kind, field, name.
TIMINGS: tuple[tuple[str, str, str], ...] = (
    ("nccl.init_timings", "total_s", "init in all"),
    ("nccl.init_timings", "kernels_s", "init: loading kernels"),
    ("nccl.init_timings", "bootstrap_s", "init: bootstrap"),
    ("nccl.init_timings", "topo_s", "init: topology"),
    ("nccl.init_timings", "connections_s", "init: connections"),
    ("nccl.bootstrap_timings", "total_s", "bootstrap in all"),
)


def environment(run: Read) -> dict[str, Values]:
    """Values of each NCCL variable that NCCL says it read."""
    found: dict[str, Values] = {}
    for event in run.store.events("nccl.env"):
        name, value = event.get("name"), event.get("value")
        if isinstance(name, str):
            _put(found.setdefault(name, {}), str(value).rstrip(".") or "(empty)", event)
    return found


def settings_shown(run: Read) -> bool:
    """Whether the log goes far enough for a variable that is not there to be a variable that was not set."""
    return bool(run.store.events("nccl.env", "nccl.init_complete", "nccl.comm_info"))


def weight_of_variable(name: str) -> tuple[bool, int]:
    """Whether another value of a variable matters, and its place among the variables (0 first)."""
    if name in _PRINTING:
        return False, 2
    return True, 0 if must_agree(name) else 1


def rank_hosts(run: Read) -> dict[int, tuple[str, str]]:
    """The host of each rank, with a line that shows it."""
    hosts: dict[int, tuple[str, str]] = {}
    for seen in run.facts.observations:
        if len(seen.ranks) == 1 and len(seen.hosts) == 1:
            lines = [e for e in seen.evidence if isinstance(e, LineEvidence)]
            place = f"{lines[0].source}:{lines[0].line}" if lines else seen.source
            hosts.setdefault(seen.ranks[0], (seen.hosts[0], place))
    return hosts


_STAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("rendezvous done", ("launch.rdzv_result",)),
    ("NCCL loaded", ("nccl.version",)),
    ("init started", ("nccl.init_start",)),
    ("init complete", ("nccl.init_complete",)),
    ("channels connected", ("nccl.connected",)),
)


def progress(run: Read) -> Values:
    """How far the run came, and how its log ends."""
    stages = list(_reached(run))
    reached, last = stages[-1] if stages else ("nothing of NCCL", None)
    ends = {"completed": "completed", "signalled": "stopped by a signal", "failed": "failed", "open": "ends open"}
    words = f"{reached}; {ends.get(run.facts.ending.how, run.facts.ending.how)}"
    by = run.facts.ending.by
    return {words: [str(e.ref) for e in (last, by) if e is not None][:_MAX_PLACES]}


def first_failure(run: Read) -> Values:
    """The first line that names a cause or a symptom, in reading order."""
    for event in run.store.events():
        if event.get("nature") in ("cause", "symptom") and event.kind != "nccl.trail":
            return {event.text.strip()[:_MAX_TEXT]: [str(event.ref)]}
    return {"none": []}


def _reached(run: Read) -> Iterator[tuple[str, Event]]:
    for words, kinds in _STAGES:
        events = run.store.events(*kinds)
        if events:
            yield words, events[-1]
    seqs = [
        (s, e) for e in run.store.events("torch.watchdog_progress") if isinstance(s := e.get("seq_last_completed"), int)
    ]
    if seqs:
        seq, event = max(seqs, key=lambda item: item[0])
        yield f"collective {seq} completed", event
