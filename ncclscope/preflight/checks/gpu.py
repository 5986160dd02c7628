"""GPUs: seen at all, covered by NCCL's code, healthy, idle, and joined by NVLink."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.arch import judge
from ncclscope.preflight.model import CheckResult, Evidence, NextStep, Subject

if TYPE_CHECKING:
    from ncclscope.preflight.node import Node

GPUS = Subject("gpus", "GPUs", "gpu-not-visible")
ARCH = Subject("arch", "NCCL's machine code for these GPUs", "arch-mismatch")
HEALTH = Subject("gpu-health", "GPU memory and recovery", "gpu-hardware-ecc")
IDLE = Subject("gpu-idle", "GPU memory in use", "oom-gpu")
FABRIC = Subject("fabric", "Fabric manager and NVSwitch fabric", "fabric-manager")
NVLINK = Subject("nvlink", "NVLink", "nvlink-fabric")

# NVML's nvmlDeviceGpuRecoveryAction_t (driver 570 and later).
_RECOVERY = {
    1: "a GPU reset",
    2: "a reboot of the node",
    3: "draining peer-to-peer traffic",
    4: "draining the node and a GPU reset",
}
_IDLE_SHARE = 0.05
_LOOK = NextStep("See what the driver shows on this node.", "nvidia-smi", "read_only")


def no_gpu_reason(node: Node) -> str:
    """Why there is no GPU to look at, for checks that need one."""
    seen = node.gpus()
    return f"no GPU is visible here ({seen.message})" if seen.message else "no GPU is visible here"


def gpus(node: Node) -> CheckResult:
    """Whether the driver answers and shows a GPU that may be used."""
    seen = node.gpus()
    evidence = Evidence(seen.source, seen.message or f"{len(seen.gpus)} GPU(s)")
    if seen.problem == "version_mismatch":
        return GPUS.failed(
            "The driver's user-space library and its kernel module are of different versions, so no program "
            "can use "
            "the GPUs. This follows an update of the driver without a reload of the module.",
            NextStep(
                "Compare the module that runs with the library.",
                "cat /proc/driver/nvidia/version",
                "read_only",
            ),
            evidence,
            category="driver-mismatch",
        )
    if seen.problem == "no_answer":
        return GPUS.failed(
            f"{seen.message}. A job would hang in the same place.",
            NextStep("Look for the driver's last words.", "dmesg -T | grep -E 'NVRM|Xid'", "read_only"),
            evidence,
            category="gpu-hang",
        )
    if not seen.gpus:
        return _none_visible(node, evidence)
    if seen.problem:
        return GPUS.failed(f"NVML cannot open every GPU: {seen.message}", _LOOK, evidence)
    prohibited = [gpu.label for gpu in seen.gpus if gpu.compute_prohibited]
    if prohibited:
        return GPUS.failed(
            f"Compute mode is Prohibited on {', '.join(prohibited)}: CUDA cannot open it.",
            NextStep(
                "See the compute mode.", "nvidia-smi --query-gpu=index,compute_mode --format=csv", "read_only"
            ),
            evidence,
        )
    sliced = [gpu.label for gpu in seen.gpus if gpu.mig]
    if sliced:
        return GPUS.warned(
            f"MIG is on for {', '.join(sliced)}: slices have no peer-to-peer access or NVLink, and NCCL "
            "refuses two "
            "ranks on slices of one GPU as a duplicate GPU.",
            NextStep("See the slices.", "nvidia-smi -L", "read_only"),
            evidence,
        )
    names = ", ".join(dict.fromkeys(gpu.name for gpu in seen.gpus))
    return GPUS.passed(f"{len(seen.gpus)} visible: {names}; driver {seen.driver or 'unknown'}.", evidence)


def _none_visible(node: Node, evidence: Evidence) -> CheckResult:
    handed_out = node.environ.get("NVIDIA_VISIBLE_DEVICES")
    if handed_out in {"void", "none", ""}:
        return GPUS.not_checked(
            f"NVIDIA_VISIBLE_DEVICES={handed_out!r}: the container runtime was told to show no GPU here. An "
            "init "
            "container sees a GPU only if its own resources ask for one.",
            NextStep("See what was handed out.", "env | grep NVIDIA_", "read_only"),
            evidence,
        )
    if node.exists("/proc/driver/nvidia/version"):
        return GPUS.not_checked(
            "The NVIDIA driver runs on this host but shows no GPU to this process "
            f"({evidence.value}): none was asked for, or the device nodes are not in the container.",
            NextStep("See which device nodes are here.", "ls -l /dev/nvidia*", "read_only"),
            evidence,
        )
    return GPUS.not_checked(
        f"No NVIDIA driver here ({evidence.value}).",
        NextStep("See whether the kernel module is loaded.", "cat /proc/driver/nvidia/version", "read_only"),
        evidence,
    )


def arch(node: Node) -> CheckResult:
    """Whether NCCL's library has SASS for every GPU here, judged as `ncclscope arch --target auto` does."""
    library = node.library()
    if library.code is None:
        return ARCH.not_checked(
            library.reason, NextStep("Name the library yourself.", "ncclscope arch --help", "read_only")
        )
    code = library.code
    where = Evidence(
        str(code.path), f"NCCL {code.nccl_version or '?'} built with CUDA {code.cuda_version or '?'}"
    )
    check = NextStep("See what the library covers.", f"ncclscope arch --target auto {code.path}", "read_only")
    seen = node.gpus()
    if not seen.gpus:
        return ARCH.not_checked(no_gpu_reason(node), None, where)
    targets = sorted({gpu.sm for gpu in seen.gpus if gpu.sm is not None})
    if not targets:
        return ARCH.not_checked("NVML does not tell the GPUs' compute capability", None, where)
    judgements = [judge(code, target) for target in targets]
    name = f"NCCL {code.nccl_version or 'of unknown version'}"
    unknown = [judgement.summary for judgement in judgements if judgement.verdict == "unknown"]
    if unknown:
        return ARCH.not_checked(f"{name}: {'; '.join(unknown)}", check, where)
    bad = [judgement for judgement in judgements if not judgement.ok]
    if bad:
        text = _sentences(*(part for j in bad for part in (j.summary, j.effect, j.fix)))
        return ARCH.failed(f"{name}: {text}", check, where)
    return ARCH.passed(f"{name}: {_sentences(*(judgement.summary for judgement in judgements))}", where)


def _sentences(*parts: str) -> str:
    return " ".join(f"{part.rstrip('.')}." for part in parts if part)


def health(node: Node) -> CheckResult:
    """Pending repairs: row remaps, page retirements, ECC errors since the last reset, a recovery action."""
    seen = node.gpus()
    if not seen.gpus:
        return HEALTH.not_checked(no_gpu_reason(node))
    if seen.source != "NVML":
        return HEALTH.not_checked("only NVML tells, and it did not answer; nvidia-smi listed the GPUs")
    bad: list[str] = []
    worn: list[str] = []
    known = False
    for gpu in seen.gpus:
        answers = (
            gpu.remap_pending,
            gpu.remap_failed,
            gpu.retirement_pending,
            gpu.uncorrected_errors,
            gpu.recovery_action,
        )
        known = known or any(answer is not None for answer in answers)
        if gpu.recovery_action:
            bad.append(f"{gpu.label}: the driver asks for {_RECOVERY.get(gpu.recovery_action, 'a repair')}")
        if gpu.remap_failed:
            bad.append(f"{gpu.label}: a row remap failed, the spare rows are used up")
        if gpu.remap_pending or gpu.retirement_pending:
            bad.append(f"{gpu.label}: a memory repair waits for a GPU reset")
        if gpu.uncorrected_errors:
            worn.append(
                f"{gpu.label}: {gpu.uncorrected_errors} uncorrected ECC error(s) since the last reset"
            )
    details = NextStep(
        "See the repair state.", "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT", "read_only"
    )
    evidence = [Evidence("NVML", line) for line in bad + worn]
    if bad:
        return HEALTH.failed(
            "; ".join(bad + worn) + ". Drain the node and reset the GPU before a job.", details, *evidence
        )
    if worn:
        return HEALTH.warned(
            "; ".join(worn) + ". The next access to the same place kills the process.", details, *evidence
        )
    if not known:
        return HEALTH.not_checked("these GPUs report neither ECC nor row remaps to NVML")
    return HEALTH.passed("No pending repair and no uncorrected memory error.")


def idle(node: Node) -> CheckResult:
    """Whether something else already holds the GPUs' memory."""
    seen = node.gpus()
    if not seen.gpus:
        return IDLE.not_checked(no_gpu_reason(node))
    measured = [
        (gpu, gpu.memory_used / gpu.memory_total) for gpu in seen.gpus if gpu.memory_used and gpu.memory_total
    ]
    if not measured:
        return IDLE.not_checked("NVML does not tell how much GPU memory is in use")
    busy = [f"{gpu.label}: {share:.0%}" for gpu, share in measured if share > _IDLE_SHARE]
    if not busy:
        return IDLE.passed("GPU memory is free.")
    return IDLE.warned(
        f"Memory is in use before the job starts: {', '.join(busy)}. Another job or a left-over process "
        "holds it.",
        NextStep(
            "See which processes hold it (from the host: a container hides them).",
            "nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv",
            "read_only",
        ),
        *(Evidence("NVML", line) for line in busy),
    )


def has_nvswitch(node: Node) -> bool:
    """Whether this host shows NVSwitches."""
    nodes = any(re.fullmatch(r"nvidia-nvswitch\d+", name) for name in node.names("/dev"))
    return nodes or bool(node.names("/proc/driver/nvidia-nvswitch/devices"))


def _fabric_manager_runs(node: Node) -> bool:
    # The kernel keeps 15 characters of a name: nv-fabricmanager.
    return any(
        (node.read(f"/proc/{name}/comm") or "").startswith("nv-fabricmanage")
        for name in node.names("/proc")
        if name.isdigit()
    )


def fabric(node: Node) -> CheckResult:
    """Whether NVSwitch systems are ready; until then CUDA fails with 802, system not yet initialized."""
    seen = node.gpus()
    if not seen.gpus:
        return FABRIC.not_checked(no_gpu_reason(node))
    status = NextStep("See the service on the host.", "systemctl status nvidia-fabricmanager", "read_only")
    states = [
        Evidence("NVML fabric state", f"{gpu.label}: {gpu.fabric_state}")
        for gpu in seen.gpus
        if gpu.fabric_state
    ]
    waiting = [gpu for gpu in seen.gpus if gpu.fabric_state in {"not_started", "in_progress"}]
    if waiting:
        names = ", ".join(f"{gpu.label} ({gpu.fabric_state})" for gpu in waiting)
        return FABRIC.failed(
            f"The fabric is not ready on {names}. CUDA would fail with error 802, system not yet "
            "initialized.",
            status,
            *states,
        )
    broken = [gpu for gpu in seen.gpus if gpu.fabric_state == "completed" and gpu.fabric_status]
    if broken:
        names = ", ".join(f"{gpu.label} (NVML status {gpu.fabric_status})" for gpu in broken)
        return FABRIC.failed(
            f"Fabric set-up ended with an error on {names}.",
            NextStep("See the fabric state.", "nvidia-smi -q | grep -A 4 Fabric", "read_only"),
            *states,
            category="nvlink-fabric",
        )
    if any(gpu.fabric_state == "completed" for gpu in seen.gpus):
        return FABRIC.passed("Fabric set-up is complete.", *states)
    if not has_nvswitch(node):
        return FABRIC.passed("No NVSwitch here: no fabric manager is needed.", *states)
    if _fabric_manager_runs(node):
        return FABRIC.passed(
            "nv-fabricmanager runs; these GPUs report no fabric state of their own.", *states
        )
    return FABRIC.not_checked(
        "NVSwitches are here, but these GPUs report no fabric state and nv-fabricmanager is not among the "
        "processes "
        "of this pid namespace",
        status,
        *states,
    )


def nvlink(node: Node) -> CheckResult:
    """Whether a GPU has fewer NVLinks up than its like, or none where NVSwitches are."""
    seen = node.gpus()
    if not seen.gpus:
        return NVLINK.not_checked(no_gpu_reason(node))
    told = [gpu for gpu in seen.gpus if gpu.links_up is not None and gpu.links_down is not None]
    if not told:
        if seen.source == "NVML" and not has_nvswitch(node):
            return NVLINK.passed("These GPUs have no NVLink.")
        return NVLINK.not_checked("NVML does not tell the state of the NVLinks")
    best = {gpu.name: 0 for gpu in told}
    for gpu in told:
        best[gpu.name] = max(best[gpu.name], len(gpu.links_up or ()))
    switched = has_nvswitch(node) or any(gpu.fabric_state == "completed" for gpu in told)
    evidence: list[Evidence] = []
    dead: list[str] = []
    short: list[str] = []
    for gpu in told:
        up, down = gpu.links_up or (), gpu.links_down or ()
        evidence.append(Evidence("NVML NVLink", f"{gpu.label}: {len(up)} up, {len(down)} down"))
        if not up and (switched or best[gpu.name]):
            dead.append(f"{gpu.label}: no NVLink is up")
        elif len(up) < best[gpu.name] or (switched and down):
            short.append(f"{gpu.label}: NVLink {', '.join(map(str, down)) or '?'} down")
    look = NextStep("See each link's state.", "nvidia-smi nvlink --status", "read_only")
    if dead:
        return NVLINK.failed("; ".join(dead + short) + ".", look, *evidence)
    if short:
        return NVLINK.warned(
            "; ".join(short) + ". NCCL runs slower over what is left, or fails to set up NVLS.",
            look,
            *evidence,
        )
    if not any(best.values()):
        return NVLINK.passed("No NVLink is connected; the GPUs talk over PCIe.", *evidence)
    return NVLINK.passed(
        f"{', '.join(f'{count} NVLinks up per {name}' for name, count in best.items())}.", *evidence
    )
