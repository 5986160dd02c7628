"""NCCL's variables: unknown names, values that break things, and whether a failure will be readable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.preflight.checks.gpu import no_gpu_reason
from ncclscope.preflight.model import CheckResult, Evidence, NextStep, Subject
from ncclscope.preflight.settings import (
    OLD_TORCH_NAMES,
    TORCH_VARIABLES,
    Setting,
    integer,
    is_bystander,
    is_on,
    known_variables,
    nccl_settings,
    nearest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncclscope.preflight.node import Node

NAMES = Subject("nccl-names", "Names of NCCL and PyTorch variables", "config-mismatch")
VALUES = Subject("nccl-values", "Values of NCCL's variables", "config-mismatch")
READABLE = Subject("readable-failures", "Readable failures", "other")
VISIBLE = Subject("visible-devices", "CUDA_VISIBLE_DEVICES", "gpu-not-visible")

_SHOW = NextStep("See what is set.", "env | grep -E '^(TORCH_)?(NCCL|FR)_' | sort", "read_only")

# Names that tutorials spread and nothing reads, with what does the job.
_FOLKLORE = {
    "NCCL_TIMEOUT": "the time limit is init_process_group(timeout=...)",
    "NCCL_TIMEOUT_MS": "the time limit is init_process_group(timeout=...)",
    "NCCL_DETERMINISTIC": "fix NCCL_ALGO, NCCL_PROTO and the number of channels instead",
    "NCCL_MASTER_ADDR": "PyTorch reads MASTER_ADDR",
}


def names(node: Node) -> CheckResult:
    """Misspelt names, names of other NCCL versions, and names that nothing reads."""
    settings = nccl_settings(node)
    table = known_variables()
    version = node.library().nccl_version
    ours = frozenset(table) | OLD_TORCH_NAMES
    problems: list[str] = []
    for name, setting in sorted(settings.items()):
        if name in OLD_TORCH_NAMES or is_bystander(name):
            continue
        known = table.get(name)
        if name in _FOLKLORE:
            problems.append(f"{name}: nothing reads it; {_FOLKLORE[name]}")
        elif known is None:
            problems.append(_unknown(name, nearest(name, ours), setting))
        elif version and known.first and version < known.first:
            problems.append(
                f"{name}: NCCL reads it from {_dotted(known.first)} on, here is {_dotted(version)}"
            )
        elif version and known.last and version > known.last:
            problems.append(
                f"{name}: NCCL reads it up to {_dotted(known.last)} only, here is {_dotted(version)}"
            )
    problems += [
        _unknown(name, nearest(name, TORCH_VARIABLES), Setting(name, "", "environment"))
        for name in sorted(node.environ)
        if name.startswith("TORCH_NCCL_") and name not in TORCH_VARIABLES
    ]
    count = len(settings) + sum(name.startswith("TORCH_NCCL_") for name in node.environ)
    if problems:
        return NAMES.warned(
            "; ".join(problems) + ".", _SHOW, *(Evidence("environment", line) for line in problems)
        )
    return NAMES.passed(f"{count} set, all known." if count else "None set.")


def _unknown(name: str, suggestion: str | None, setting: Setting) -> str:
    hint = f"did you mean {suggestion}?" if suggestion else "not in the table of releases up to 2.30.7"
    place = "" if setting.origin == "environment" else f" (in {setting.origin})"
    return f"{name}{place}: unknown, so without effect; {hint}"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


_NUMBERS_ALLOWED = {
    "NCCL_IB_TIMEOUT": (1, 31, "an exponent: 4.096 us * 2^n"),
    "NCCL_IB_RETRY_CNT": (0, 7, "the adapter counts up to 7"),
    "NCCL_IB_TC": (-1, 255, "a traffic class is one byte"),
    "NCCL_IB_SL": (-1, 15, "service levels are 0 to 15"),
}
_FILES_NAMED = ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_TUNER_CONFIG_FILE", "NCCL_CONF_FILE")
_FAMILIES = {"AF_INET", "AF_INET6"}


def values(node: Node) -> CheckResult:
    """Values that NCCL reads otherwise than meant, or that break or slow every job."""
    settings = nccl_settings(node)
    bad = _contradictions(settings, node)
    doubtful = _misread(settings) + _left_over(settings)
    lines = bad + doubtful
    evidence = tuple(
        Evidence(item.origin, f"{item.name}={item.value}")
        for item in settings.values()
        if any(item.name in x for x in lines)
    )
    if bad:
        return VALUES.failed("; ".join(lines) + ".", _SHOW, *evidence)
    if doubtful:
        return VALUES.warned("; ".join(doubtful) + ".", _SHOW, *evidence)
    return VALUES.passed("Nothing doubtful." if settings else "None set.")


def _contradictions(settings: Mapping[str, Setting], node: Node) -> list[str]:
    """Settings with which NCCL cannot start, or finds no way between two GPUs."""
    found: list[str] = []
    for name in _FILES_NAMED:
        setting = settings.get(name)
        if setting is not None and setting.value.startswith("/") and not node.exists(setting.value):
            found.append(f"{name} names {setting.value}, which is not here")
    plugin = settings.get("NCCL_NET_PLUGIN")
    if plugin is not None and plugin.value.startswith("/") and not node.exists(plugin.value):
        found.append(f"NCCL_NET_PLUGIN names {plugin.value}, which is not here")
    if all(
        is_on(settings, name) for name in ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NET_DISABLE_INTRA")
    ):
        found.append(
            "NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET_DISABLE_INTRA leave no way between the GPUs of "
            "a host"
        )
    family = settings.get("NCCL_SOCKET_FAMILY")
    if family is not None and family.value not in _FAMILIES:
        found.append(f"NCCL_SOCKET_FAMILY={family.value} is neither AF_INET nor AF_INET6")
    return found


def _misread(settings: Mapping[str, Setting]) -> list[str]:
    """Values that NCCL reads as another value than the one meant."""
    found: list[str] = []
    table = known_variables()
    for name, setting in sorted(settings.items()):
        known = table.get(name)
        text = setting.value.strip()
        if known is None or known.kind != "int" or not text:
            continue
        if not text.lstrip("+-")[:1].isdigit():
            found.append(f"{name}={text} is no number: NCCL reads 0")
            continue
        low, high, why = _NUMBERS_ALLOWED.get(name, (None, None, ""))
        if low is not None and high is not None and not low <= integer(text) <= high:
            found.append(f"{name}={text} is outside {low} to {high} ({why})")
    return found


def _left_over(settings: Mapping[str, Setting]) -> list[str]:
    """Work-arounds that cost much or fail elsewhere, and are easily forgotten in an image."""
    switches = {
        "NCCL_P2P_DISABLE": "takes NVLink and PCIe peer access away, most of a host's bandwidth",
        "NCCL_SHM_DISABLE": "leaves GPUs without peer access to talk over the network",
        "NCCL_IGNORE_DISABLED_P2P": "hides a driver or fabric-manager problem",
        "NCCL_GDR_FLUSH_DISABLE": "can corrupt received data where the flush is needed",
        "NCCL_CHECK_POINTERS": "checks every buffer of every call and is slow",
    }
    found = [f"{name}=1 {cost}" for name, cost in switches.items() if is_on(settings, name)]
    texts = {
        "NCCL_COMM_ID": "fixes one address for all communicators: two jobs with it disturb each other, and "
        "PyTorch "
        "passes its own id",
        "NCCL_HOSTID": "replaces the host's identity: the same value on two hosts makes NCCL use shared "
        "memory across them",
        "NCCL_ALGO": "must be the same on all ranks, and since 2.24 a collective that it leaves nothing for "
        "fails",
        "NCCL_PROTO": "must be the same on all ranks; LL128 on links that do not keep order corrupts data",
    }
    found += [f"{name}={settings[name].value} {cost}" for name, cost in texts.items() if name in settings]
    if "NCCL_COMM_BLOCKING" in settings and integer(settings["NCCL_COMM_BLOCKING"].value) == 0:
        found.append(
            "NCCL_COMM_BLOCKING=0 makes a program that expects blocking calls use communicators too early"
        )
    return found


_LEVELS = {"VERSION", "WARN", "INFO", "ABORT", "TRACE"}
_SUBSYSTEMS = {
    "INIT",
    "COLL",
    "P2P",
    "SHM",
    "NET",
    "GRAPH",
    "TUNING",
    "ENV",
    "ALLOC",
    "CALL",
    "PROXY",
    "NVLS",
    "BOOTSTRAP",
    "REG",
    "PROFILE",
    "RAS",
    "ALL",
}
_EXPORT = NextStep(
    "Set it for the job; it costs some hundred lines a rank at start.",
    "export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,NET,ENV PYTHONUNBUFFERED=1",
    "changes_environment",
)


def readable_failures(node: Node) -> CheckResult:
    """Whether NCCL would say why it failed, in a log that keeps its last lines."""
    settings = nccl_settings(node)
    level = settings["NCCL_DEBUG"].value.upper() if "NCCL_DEBUG" in settings else ""
    evidence = Evidence("NCCL_DEBUG", level or "not set")
    problems: list[str] = []
    if not level:
        problems.append("NCCL_DEBUG is not set: NCCL would fail without a word")
    elif level not in _LEVELS:
        problems.append(f"NCCL_DEBUG={level} is no level (WARN, INFO, TRACE): NCCL stays silent")
    elif level == "VERSION":
        problems.append("NCCL_DEBUG=VERSION prints no failure")
    chosen = settings["NCCL_DEBUG_SUBSYS"].value.upper() if "NCCL_DEBUG_SUBSYS" in settings else ""
    if chosen:
        parts = {part.strip() for part in chosen.removeprefix("^").split(",")}
        unknown = sorted(parts - _SUBSYSTEMS - {""})
        if unknown:
            problems.append(f"NCCL_DEBUG_SUBSYS: {', '.join(unknown)} is no subsystem")
        if chosen.startswith("^") == bool(parts & {"INIT", "ALL"}):
            problems.append("NCCL_DEBUG_SUBSYS leaves INIT out, whose lines tell version, ranks and GPUs")
    file = settings["NCCL_DEBUG_FILE"].value if "NCCL_DEBUG_FILE" in settings else ""
    if file and "%p" not in file:
        problems.append(
            "NCCL_DEBUG_FILE has no %p (and %h on a shared file system): ranks overwrite each other's log"
        )
    if level in {"INFO", "TRACE", "WARN"} and not file and not node.environ.get("PYTHONUNBUFFERED"):
        problems.append(
            "PYTHONUNBUFFERED is not set: output of a killed rank that is piped loses its last lines"
        )
    if problems:
        return READABLE.warned("; ".join(problems) + ".", _EXPORT, evidence)
    return READABLE.passed(f"NCCL_DEBUG={level}.", evidence)


def visible_devices(node: Node) -> CheckResult:
    """CUDA_VISIBLE_DEVICES against the GPUs here: CUDA drops the first unknown entry and all after it."""
    value = node.environ.get("CUDA_VISIBLE_DEVICES")
    seen = node.gpus()
    if value is None:
        count = len(seen.gpus)
        if not count:
            return VISIBLE.not_checked(no_gpu_reason(node))
        return _enough(node, count, f"Not set: all {count} GPU(s) are visible to CUDA.")
    evidence = Evidence("CUDA_VISIBLE_DEVICES", value)
    show = NextStep("List the GPUs by index and UUID.", "nvidia-smi -L", "read_only")
    entries = [entry.strip() for entry in value.split(",")]
    if value.strip() in {"", "-1", "NoDevFiles"}:
        return VISIBLE.failed(f"CUDA_VISIBLE_DEVICES={value!r} hides every GPU.", show, evidence)
    if not seen.gpus:
        return VISIBLE.not_checked(no_gpu_reason(node), None, evidence)
    resolved: list[str] = []
    for entry in entries:
        uuid = _device(node, entry)
        if uuid is None:
            return VISIBLE.failed(
                f"{entry!r} in CUDA_VISIBLE_DEVICES={value} names no GPU here: CUDA ignores it and all after "
                "it.",
                show,
                evidence,
            )
        if uuid in resolved:
            return VISIBLE.failed(
                f"CUDA_VISIBLE_DEVICES={value} names a GPU twice: CUDA then shows none.", show, evidence
            )
        resolved.append(uuid)
    return _enough(
        node, len(resolved), f"{len(resolved)} of {len(seen.gpus)} GPU(s) visible to CUDA.", evidence
    )


def _device(node: Node, entry: str) -> str | None:
    gpus = node.gpus().gpus
    if entry.isdigit():
        return gpus[int(entry)].uuid if int(entry) < len(gpus) else None
    if entry.startswith("MIG-"):
        return entry
    # CUDA takes any prefix of a UUID that names one GPU only.
    found = [gpu.uuid for gpu in gpus if gpu.uuid.startswith(entry)]
    return found[0] if len(found) == 1 else None


def _enough(node: Node, count: int, text: str, *evidence: Evidence) -> CheckResult:
    local = node.environ.get("LOCAL_WORLD_SIZE") or node.environ.get("PET_NPROC_PER_NODE", "")
    if local.isdigit() and int(local) > count:
        return VISIBLE.failed(
            f"{local} ranks are to start on this host and {count} GPU(s) are visible to CUDA.",
            NextStep("Count the GPUs.", "nvidia-smi -L | wc -l", "read_only"),
            *evidence,
            category="duplicate-gpu",
        )
    return VISIBLE.passed(text, *evidence)
