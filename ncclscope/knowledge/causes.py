"""The closed vocabulary of root-cause classes: one id, what it means, and where its border runs."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CAUSES", "CauseClass", "consequences_of"]


class CauseClass(NamedTuple):
    """A class of causes. group is a coarser family for summaries; border says which neighbour takes what is close."""

    group: str
    meaning: str
    border: str = ""


CAUSES: dict[str, CauseClass] = {
    "arch-mismatch": CauseClass(
        "versions",
        "a library (NCCL, PyTorch, an extension) holds no machine code that this GPU can run",
        "not driver-mismatch: the driver accepts the runtime, the kernel image is what is missing",
    ),
    "version-mismatch": CauseClass(
        "versions",
        (
            "two parts that must agree are of different versions: NCCL between ranks, NCCL against PyTorch, a symbol "
            "that is not there"
        ),
        "a setting that differs is config-mismatch",
    ),
    "driver-mismatch": CauseClass(
        "versions",
        "the driver is too old for the CUDA runtime, or user-space and kernel driver differ",
    ),
    "gpu-not-visible": CauseClass(
        "setup",
        "the process sees no GPU: device plugin, CUDA_VISIBLE_DEVICES, container runtime",
        "a driver that says why is driver-mismatch; a GPU that vanished at run time is gpu-fell-off-bus",
    ),
    "rendezvous": CauseClass(
        "bootstrap",
        (
            "processes did not find each other: a peer was not started, wrong address, port taken, world sizes that "
            "differ, two jobs on one port"
        ),
        (
            "a name that does not resolve is dns; a blocked path is firewall-port; a rank that joined the store but "
            "never the communicator is rank-absent"
        ),
    ),
    "dns": CauseClass("bootstrap", "a host name does not resolve, or resolves to the wrong address"),
    "firewall-port": CauseClass(
        "bootstrap",
        (
            "hosts and names are right but packets do not get through: firewall, security group, network policy, "
            "service mesh"
        ),
    ),
    "network-interface": CauseClass(
        "network",
        "NCCL or Gloo chose an interface that cannot reach the peers, or the named one does not exist",
    ),
    "ib-config": CauseClass(
        "network",
        "InfiniBand or RoCE is configured wrongly: GID index, traffic class, absent device asked for, partition key",
    ),
    "ib-link": CauseClass(
        "network",
        "an InfiniBand or RoCE port, cable, switch or adapter failed or flapped",
    ),
    "gdr-peermem": CauseClass(
        "network",
        "GPUDirect RDMA is not in use or fails: nvidia-peermem, dmabuf, BAR size",
    ),
    "efa-plugin": CauseClass("network", "AWS EFA, libfabric or aws-ofi-nccl is absent or unusable"),
    "net-plugin-abi": CauseClass(
        "network",
        "a NCCL net, tuner or profiler plug-in does not fit this NCCL or its own libraries",
    ),
    "p2p-acs-iommu": CauseClass(
        "topology",
        "direct GPU to GPU or GPU to NIC traffic is broken by PCIe ACS, the IOMMU or the platform",
    ),
    "nvlink-fabric": CauseClass(
        "topology",
        "NVLink, NVSwitch, NVLS or IMEX failed",
        "fabric manager not running or restarted alone is fabric-manager",
    ),
    "fabric-manager": CauseClass(
        "topology",
        "nvidia-fabricmanager is not running, of another version, or was restarted under live GPUs",
    ),
    "shm-limit": CauseClass("limits", "shared memory ran out: /dev/shm size, IPC namespace"),
    "memlock-limit": CauseClass("limits", "locked memory is limited (ulimit -l, IPC_LOCK)"),
    "fd-limit": CauseClass("limits", "too many open files or sockets for the limit"),
    "disk-full": CauseClass("storage", "a file system is full or over quota"),
    "storage-hang": CauseClass("storage", "a file system stalled or failed an operation"),
    "duplicate-gpu": CauseClass("setup", "two ranks use one GPU"),
    "config-mismatch": CauseClass(
        "setup",
        "ranks run with different NCCL or launcher settings that must agree",
        "different versions are version-mismatch; different world sizes at rendezvous are rendezvous",
    ),
    "invalid-usage": CauseClass(
        "program",
        "an API was used wrongly: bad device ordinal, CPU tensor to NCCL, CUDA in a forked child",
    ),
    "collective-mismatch": CauseClass(
        "program",
        "ranks issued different collectives, different sizes, or different numbers of them",
    ),
    "straggler-timeout": CauseClass(
        "program",
        "a rank was alive and right but later than the time limit: checkpoint, data preparation, compilation",
    ),
    "rank-absent": CauseClass(
        "program",
        (
            "a rank never reached the communicator's init or its first collective, while others wait in it; why is "
            "not in the logs"
        ),
    ),
    "rank-died": CauseClass(
        "program",
        (
            "a process ended and took the others with it: killed by a signal, segfault, quiet exit; no better class "
            "explains the death"
        ),
    ),
    "user-exception": CauseClass(
        "program",
        "a Python exception in the user's code or configuration, not raised by CUDA or NCCL",
    ),
    "device-assert": CauseClass("program", "a device-side assert in a kernel: index out of range, bad label"),
    "illegal-access-app": CauseClass(
        "program",
        "a kernel of the program made an illegal, misaligned or out-of-range access or trapped",
    ),
    "nan": CauseClass("program", "NaN or Inf in the values"),
    "oom-gpu": CauseClass("memory", "GPU memory ran out"),
    "oom-host": CauseClass("memory", "host memory ran out: global OOM killer, Ray memory monitor"),
    "oom-cgroup": CauseClass("memory", "a container, cgroup or Slurm step reached its memory limit"),
    "gpu-hardware-ecc": CauseClass(
        "hardware",
        "uncorrectable ECC, row remapping, contained or uncontained memory error",
    ),
    "gpu-fell-off-bus": CauseClass("hardware", "the GPU is no longer reachable over PCIe"),
    "gpu-hang": CauseClass(
        "hardware",
        "GPU firmware or engine stopped answering: GSP timeout, context-switch timeout, heartbeat lost",
    ),
    "gpu-thermal-power": CauseClass("hardware", "thermal or power limits slowed or stopped the GPU"),
    "nccl-bug": CauseClass(
        "upstream",
        "a known defect of a NCCL version; the diagnosis names the fixed version",
    ),
    "torch-bug": CauseClass(
        "upstream",
        "a known defect of a PyTorch version; the diagnosis names the fixed version",
    ),
    "preempted": CauseClass(
        "scheduling",
        "the scheduler or the user ended the job: preemption, time limit, cancel, node drain",
    ),
    "other": CauseClass("other", "a cause that none of these covers"),
}

# What a failed or stopped rank looks like from elsewhere, whatever stopped it.
_ECHOES = frozenset({"rank-died", "rank-absent", "collective-mismatch", "straggler-timeout", "preempted"})

# Which classes are consequences of which, beyond the echoes that every other class accounts for. Rules add only what
# holds for them alone.
_CONSEQUENCES: dict[str, frozenset[str]] = {
    # among the echoes themselves
    "rank-died": frozenset({"rank-absent", "collective-mismatch", "straggler-timeout", "preempted"}),
    "collective-mismatch": frozenset({"rank-died", "rank-absent", "straggler-timeout", "preempted"}),
    "straggler-timeout": frozenset({"rank-absent", "preempted"}),
    "rank-absent": frozenset({"preempted"}),
    # versions
    "arch-mismatch": frozenset({"illegal-access-app", "user-exception", "version-mismatch"}),
    "version-mismatch": frozenset({"rendezvous", "config-mismatch", "user-exception", "gpu-not-visible"}),
    "driver-mismatch": frozenset({"gpu-not-visible", "rendezvous", "user-exception"}),
    # setup and bootstrap
    "gpu-not-visible": frozenset({"rendezvous", "user-exception"}),
    "duplicate-gpu": frozenset({"invalid-usage", "user-exception"}),
    "config-mismatch": frozenset({"invalid-usage"}),
    "invalid-usage": frozenset({"user-exception"}),
    "rendezvous": frozenset({"user-exception", "config-mismatch"}),
    "dns": frozenset({"rendezvous", "firewall-port", "user-exception"}),
    "firewall-port": frozenset({"rendezvous"}),
    # network and topology
    "network-interface": frozenset({"rendezvous", "firewall-port"}),
    "ib-config": frozenset({"ib-link"}),
    "ib-link": frozenset({"ib-config"}),
    "gdr-peermem": frozenset({"ib-link"}),
    "efa-plugin": frozenset({"net-plugin-abi"}),
    "net-plugin-abi": frozenset({"version-mismatch", "invalid-usage"}),
    "nvlink-fabric": frozenset({"gpu-hardware-ecc", "illegal-access-app", "p2p-acs-iommu"}),
    "fabric-manager": frozenset({"nvlink-fabric", "gpu-not-visible", "user-exception"}),
    # limits, storage and memory
    "shm-limit": frozenset({"disk-full", "oom-host", "user-exception"}),
    "memlock-limit": frozenset({"gdr-peermem", "ib-config"}),
    "fd-limit": frozenset({"shm-limit", "rendezvous", "user-exception"}),
    "disk-full": frozenset({"user-exception"}),
    "storage-hang": frozenset({"disk-full", "user-exception"}),
    "oom-gpu": frozenset({"user-exception"}),
    "oom-host": frozenset({"oom-cgroup", "ib-link", "user-exception"}),
    "oom-cgroup": frozenset({"oom-host", "ib-link", "shm-limit"}),
    # program
    "device-assert": frozenset({"illegal-access-app", "user-exception"}),
    "illegal-access-app": frozenset({"gpu-hang", "user-exception"}),
    "nan": frozenset({"illegal-access-app", "device-assert", "user-exception"}),
    # hardware
    "gpu-fell-off-bus": frozenset(
        {"gpu-hang", "nvlink-fabric", "gpu-hardware-ecc", "gpu-not-visible", "illegal-access-app"}
    ),
    "gpu-hardware-ecc": frozenset({"illegal-access-app", "gpu-hang", "nvlink-fabric", "device-assert"}),
    "gpu-hang": frozenset({"illegal-access-app"}),
    "gpu-thermal-power": frozenset({"gpu-fell-off-bus"}),
    # upstream
    "torch-bug": frozenset({"user-exception"}),
}


def consequences_of(category: str) -> frozenset[str]:
    """The classes whose findings a cause of `category` accounts for; always its own."""
    echoes = frozenset() if category in _ECHOES else _ECHOES
    return echoes | _CONSEQUENCES.get(category, frozenset()) | {category}
