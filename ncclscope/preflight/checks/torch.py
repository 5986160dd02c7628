"""PyTorch's settings for NCCL: time limits, error handling, blocking or non-blocking communicators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.preflight.model import CheckResult, Evidence, NextStep, Subject
from ncclscope.preflight.settings import OLD_TORCH_NAMES, Torch, find_torch, flag

if TYPE_CHECKING:
    from ncclscope.preflight.node import Node

SETTINGS = Subject("torch-settings", "PyTorch's NCCL settings", "config-mismatch")
NONBLOCKING = Subject("nonblocking-init", "Blocking or non-blocking init", "torch-bug")

_SHOW = NextStep("See what is set.", "env | grep -E '^(TORCH_|NCCL_|CUDA_LAUNCH)' | sort", "read_only")
_BLOCKING = NextStep(
    "Set it for the job. Costs the overlap of init with the model's set-up, a few seconds.",
    "export TORCH_NCCL_USE_COMM_NONBLOCKING=0",
    "changes_environment",
)
_RENAMED = (2, 2)
# PyTorch's default is 600 s before 2.5 and 480 s since; an hour is longer than anyone watches a silent job.
_HEARTBEAT_LONG = 3600


def settings(node: Node) -> CheckResult:
    """Settings that let a hang go on for ever, hide its cause, or have no effect under this PyTorch."""
    environ = node.environ
    torch = find_torch(node)
    problems = _renamed(node, torch)
    if _value(node, "ASYNC_ERROR_HANDLING") == "0" and _value(node, "BLOCKING_WAIT") != "1":
        problems.append("TORCH_NCCL_ASYNC_ERROR_HANDLING=0: a collective that times out hangs for ever")
    if environ.get("TORCH_NCCL_ENABLE_MONITORING") == "0":
        problems.append(
            "TORCH_NCCL_ENABLE_MONITORING=0: a rank whose watchdog is stuck hangs instead of ending"
        )
    if _value(node, "BLOCKING_WAIT") == "1":
        problems.append("TORCH_NCCL_BLOCKING_WAIT=1 makes every wait() block the CPU, which slows training")
    heartbeat = environ.get("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "")
    if heartbeat.isdigit() and int(heartbeat) > _HEARTBEAT_LONG:
        problems.append(
            f"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC={heartbeat}: a stuck rank is noticed only after that"
        )
    dumps = environ.get("TORCH_NCCL_DUMP_ON_TIMEOUT") == "1"
    buffer = environ.get("TORCH_FR_BUFFER_SIZE", environ.get("TORCH_NCCL_TRACE_BUFFER_SIZE"))
    if dumps and buffer == "0":
        problems.append("TORCH_NCCL_DUMP_ON_TIMEOUT=1 with a flight-recorder buffer of 0 writes empty dumps")
    if environ.get("CUDA_LAUNCH_BLOCKING", "0") not in {"", "0"}:
        problems.append(
            "CUDA_LAUNCH_BLOCKING=1 serialises kernel launches: slow, and with several communicators a GPU "
            "it can "
            "turn a wrong order of collectives into a deadlock"
        )
    evidence = [Evidence("PyTorch", "not found" if torch is None else f"{torch.version} ({torch.path})")]
    if problems:
        return SETTINGS.warned("; ".join(problems) + ".", _SHOW, *evidence)
    if torch is None:
        return SETTINGS.passed("Nothing doubtful; which PyTorch will run is not known here.", *evidence)
    return SETTINGS.passed(f"Nothing doubtful for PyTorch {torch.version}.", *evidence)


def _value(node: Node, name: str) -> str | None:
    """A setting under its new name, else its old one, as PyTorch looks it up."""
    return node.environ.get(f"TORCH_NCCL_{name}", node.environ.get(f"NCCL_{name}"))


def _renamed(node: Node, torch: Torch | None) -> list[str]:
    """Names under the prefix that this PyTorch does not use."""
    old = sorted(name for name in OLD_TORCH_NAMES if name in node.environ)
    if torch is not None and torch.numbers and torch.numbers < _RENAMED:
        new = sorted(f"TORCH_{name}" for name in OLD_TORCH_NAMES if f"TORCH_{name}" in node.environ)
        return [f"{name}: PyTorch {torch.version} reads {name.removeprefix('TORCH_')} only" for name in new]
    if torch is None:
        return []
    return [f"{name} is the name from before PyTorch 2.2; use TORCH_{name}" for name in old]


def nonblocking(node: Node) -> CheckResult:
    """Whether communicators will be made in non-blocking mode, by setting or by this PyTorch's default.

    PyTorch 2.6.0 to 2.7.0 choose it by themselves when init_process_group gets a device_id; 2.7.1 stopped
    because NCCL 2.26 hangs at random in it (pytorch/pytorch#153960, #154055).
    """
    torch = find_torch(node)
    value = node.environ.get("TORCH_NCCL_USE_COMM_NONBLOCKING", node.environ.get("NCCL_USE_COMM_NONBLOCKING"))
    evidence = [
        Evidence("TORCH_NCCL_USE_COMM_NONBLOCKING", "not set" if value is None else value),
        Evidence("PyTorch", "not found" if torch is None else torch.version),
    ]
    nccl = node.library().nccl_version
    hangs = nccl is not None and nccl[:2] == (2, 26)
    wanted = None if value is None else flag(value)
    if wanted:
        more = " This is NCCL 2.26, which hangs at random in that mode." if hangs else ""
        return NONBLOCKING.warned(
            "TORCH_NCCL_USE_COMM_NONBLOCKING=1: init returns before the communicator is ready, so a failure "
            "shows at the "
            f"first collective or only after TORCH_NCCL_NONBLOCKING_TIMEOUT (30 minutes).{more}",
            _BLOCKING,
            *evidence,
        )
    if value is not None and wanted is None:
        return NONBLOCKING.warned(
            f"TORCH_NCCL_USE_COMM_NONBLOCKING={value} is neither 0 nor 1: PyTorch ignores it or takes it as "
            "off, by version.",
            _BLOCKING,
            *evidence,
        )
    if wanted is False:
        return NONBLOCKING.passed("Set to 0.", *evidence)
    if torch is None:
        return NONBLOCKING.not_checked(
            "not set, and which PyTorch will run is not known here", None, *evidence
        )
    if (2, 6) <= torch.numbers < (2, 7, 1):
        more = " With this NCCL (2.26) that hangs at random." if hangs else ""
        return NONBLOCKING.warned(
            f"PyTorch {torch.version} makes communicators in non-blocking mode by itself when "
            "init_process_group is given "
            f"a device_id.{more} Set TORCH_NCCL_USE_COMM_NONBLOCKING=0.",
            _BLOCKING,
            *evidence,
        )
    return NONBLOCKING.passed(f"PyTorch {torch.version} uses blocking mode unless told otherwise.", *evidence)
