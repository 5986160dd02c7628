"""What Kubernetes, the kubelet and Kueue say in `kubectl describe`, `get`, events and status JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.launcher_exit import from_exit_code
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

_RESOURCES: dict[str, Value] = {"memory": "oom-host", "ephemeral-storage": "disk-full", "inodes": "disk-full"}
_CONDITIONS: dict[str, Value] = {"MemoryPressure": "oom-host", "DiskPressure": "disk-full"}


def _low_resource(m: re.Match[str], _line: Line) -> dict[str, Value]:
    cause = _RESOURCES.get(m["resource"])
    return {"nature": "cause", "cause": cause} if cause else {}


def _condition(m: re.Match[str], _line: Line) -> dict[str, Value]:
    cause = _CONDITIONS.get(m["condition"])
    return {"nature": "cause", "cause": cause} if cause else {}


def _volume(m: re.Match[str], _line: Line) -> dict[str, Value]:
    """A volume named for shared memory is most likely the one mounted at /dev/shm; its name proves
    nothing."""
    return {"suggests": "shm-limit" if "shm" in m["volume"].lower() else "disk-full"}


def _admission(m: re.Match[str], _line: Line) -> dict[str, Value]:
    gpu = ".com/" in (m["reason"] or "") and "memory" not in (m["reason"] or "")
    return {"suggests": "gpu-not-visible"} if gpu else {}


_CONTAINERS: tuple[Pattern, ...] = (
    # kubectl describe:       Reason:       OOMKilled
    # With several processes in a container the kernel can kill a child and the container live on.       (all)
    Pattern(
        "k8s.oom_killed",
        "OOMKilled",
        r"(?:\b[Rr]eason:\s+|\"reason\":\s*\"|\breason=\"?|\d+/\d+\s+(?:Init:)?)OOMKilled\b",
        nature="cause",
        cause="oom-cgroup",
    ),
    # System OOM encountered, victim process: python, pid: 31337              (event SystemOOM of a node; all)
    Pattern(
        "k8s.system_oom",
        "System OOM encountered",
        r"System OOM encountered, victim process: (?P<process>\S+), pid: (?P<pid>\d+)",
        nature="cause",
        cause="oom-host",
    ),
    # kubectl describe:       Exit Code:    137                                                          (all)
    Pattern(
        "k8s.container_exit",
        "Exit Code:",
        r"^\s*Exit Code:\s+(?P<exit_code>\d{1,3})\s*$",
        nature="symptom",
        refine=from_exit_code,
        adds=("signal", "suggests"),
    ),
    # {"terminated":{"exitCode":137,"reason":"OOMKilled",...}}      YAML: `exitCode: 137`                (all)
    Pattern(
        "k8s.container_exit",
        "exitCode",
        r"\bexitCode\"?:\s*(?P<exit_code>\d{1,3})\b",
        nature="symptom",
        refine=from_exit_code,
        adds=("signal", "suggests"),
    ),
    # Warning  BackOff  1s (x5 over 2m)  kubelet  Back-off restarting failed container trainer in pod x  (all)
    Pattern(
        "k8s.crash_loop",
        "Back-off restarting failed container",
        r"Back-off restarting failed container",
        nature="consequence",
    ),
    # trainer-0   0/1   CrashLoopBackOff   5 (2m ago)   12m                                              (all)
    Pattern(
        "k8s.crash_loop",
        "CrashLoopBackOff",
        r"(?:\d+/\d+\s+(?:Init:)?|[Rr]eason:\s+|\"reason\":\s*\")CrashLoopBackOff\b",
        nature="consequence",
    ),
    # Normal  Killing  2s  kubelet  Container trainer failed liveness probe, will be restarted           (all)
    Pattern(
        "k8s.liveness_failed",
        "failed liveness probe, will be restarted",
        r"Container (?P<container>\S+) failed liveness probe, will be restarted",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
)

_EVICTIONS: tuple[Pattern, ...] = (
    # Message: The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi.
    #     (all)
    Pattern(
        "k8s.evicted",
        "The node was low on resource",
        r"The node was low on resource: (?P<resource>[\w-]+)",
        nature="symptom",
        refine=_low_resource,
        adds=("cause",),
    ),
    # The node had condition: [DiskPressure].                                                            (all)
    Pattern(
        "k8s.evicted",
        "The node had condition:",
        r"The node had condition: \[(?P<condition>\w+)",
        nature="symptom",
        refine=_condition,
        adds=("cause",),
    ),
    # Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.                      (all)
    Pattern(
        "k8s.evicted",
        "Pod ephemeral local storage usage exceeds",
        r"Pod ephemeral local storage usage exceeds the total limit of containers (?P<limit>[\w.]+)",
        nature="cause",
        cause="disk-full",
    ),
    # Container trainer exceeded its local ephemeral storage limit "10Gi".                               (all)
    Pattern(
        "k8s.evicted",
        "exceeded its local ephemeral storage limit",
        r"Container (?P<container>\S+) exceeded its local ephemeral storage limit",
        nature="cause",
        cause="disk-full",
    ),
    # Usage of EmptyDir volume "shm" exceeds the limit "1Gi".                                            (all)
    Pattern(
        "k8s.evicted",
        "Usage of EmptyDir volume",
        r"Usage of EmptyDir volume \\?\"(?P<volume>[^\"\\]+)\\?\" exceeds the limit",
        nature="symptom",
        refine=_volume,
        adds=("suggests",),
    ),
    # Reason:       Evicted                                                                              (all)
    Pattern(
        "k8s.evicted",
        "Evicted",
        r"(?:\b[Rr]eason:\s+|\"reason\":\s*\"|\d+/\d+\s+)Evicted\b",
        nature="symptom",
    ),
)

_SCHEDULER: tuple[Pattern, ...] = (
    # Normal  Preempted  10s  default-scheduler  Preempted by pod 1234 on node gpu-03
    #     (to 1.26: `by ns/pod on node`)
    Pattern(
        "k8s.preempted",
        "Preempted by ",
        r"\bPreempted by (?:a )?(?:pod\b|[\w.-]+/[\w.-]+ on node )",
        nature="cause",
        cause="preempted",
    ),
    # reason: PreemptionByScheduler   (condition DisruptionTarget; also EvictionByEvictionAPI: drain; 1.25 on)
    *(
        Pattern("k8s.preempted", reason, rf"\b(?P<reason>{reason})\b", nature="cause", cause="preempted")
        for reason in ("PreemptionByScheduler", "EvictionByEvictionAPI")
    ),
    # Preempted to accommodate a workload (UID: 5c02, JobUID: 7d11) due to prioritization in the ClusterQueue
    #     (Kueue)
    Pattern(
        "k8s.preempted",
        "Preempted to accommodate a workload",
        r"Preempted to accommodate a workload \(UID: ",
        nature="cause",
        cause="preempted",
    ),
    # Pod was terminated in response to imminent node shutdown.                (spot reclaim, reboot; 1.21 on)
    Pattern(
        "k8s.preempted",
        "in response to imminent node shutdown",
        r"Pod was terminated in response to imminent node shutdown",
        nature="cause",
        cause="preempted",
    ),
    # Job was active longer than specified deadline      Pod was active on the node longer than the specified
    # deadline
    Pattern(
        "k8s.deadline",
        "specified deadline",
        r"was active (?:on the node )?longer than (?:the )?specified deadline",
        nature="cause",
        cause="preempted",
    ),
    # Warning  FailedScheduling  2m  default-scheduler  0/4 nodes are available: 4 Insufficient
    # nvidia.com/gpu.                                                                                    (all)
    # A pod that never starts is a peer that never arrives.
    Pattern(
        "k8s.failed_scheduling",
        "nodes are available:",
        r"\b0/(?P<nnodes>\d+) nodes are available: .{0,400}?Insufficient (?P<resource>[\w./-]+\w)",
        nature="symptom",
        fields={"suggests": "rendezvous"},
    ),
    # Failed to pull image "registry/trainer:1": ... not found                                           (all)
    Pattern(
        "k8s.image_pull_failed",
        "Failed to pull image",
        r"Failed to pull image \\?\"(?P<image>[^\"\\]+)",
        nature="symptom",
        fields={"suggests": "rendezvous"},
    ),
    # Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu,
    # which is unexpected                                                                                (all)
    Pattern(
        "k8s.admission_rejected",
        "Allocate failed due to",
        r"Allocate failed due to (?P<reason>.+?), which is unexpected",
        nature="symptom",
        refine=_admission,
        adds=("suggests",),
    ),
    # Warning  UnexpectedAdmissionError  5s  kubelet  Allocate failed ...
    #     (also the pod's status in `get pods`)
    Pattern(
        "k8s.admission_rejected",
        "UnexpectedAdmissionError",
        r"\bUnexpectedAdmissionError\b(?!.*Allocate failed due to)",
        nature="symptom",
    ),
)

_NODES: tuple[Pattern, ...] = tuple(
    # Warning  NodeNotReady  2m  node-controller  Node is not ready                                      (all)
    # Normal   TaintManagerEviction  1m  taint-eviction-controller  Marking for deletion Pod ml/trainer-2
    # reason: DeletionByTaintManager      reason: NodeLost
    Pattern(
        "k8s.node_lost",
        reason,
        rf"(?:\b(?:Normal|Warning)\s+|[Rr]eason:\s+|\"reason\":\s*\"|\breason=\"?|\d+/\d+\s+)(?P<reason>{reason})\b",
        nature="symptom",
        fields={"suggests": suggests},
    )
    for reason, suggests in (
        ("NodeNotReady", "rank-died"),
        ("NodeLost", "rank-died"),
        ("TaintManagerEviction", "rank-died"),
        ("DeletionByTaintManager", "rank-died"),
        # The node went down in an orderly way: somebody asked for it.
        ("NodeShutdown", "preempted"),
        ("TerminationByKubelet", "preempted"),
    )
)

PATTERNS: tuple[Pattern, ...] = _CONTAINERS + _EVICTIONS + _SCHEDULER + _NODES
