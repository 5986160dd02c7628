"""Which triage rules name, at run time, what a check found before the job."""

from __future__ import annotations

_XID = {
    "gpu-hardware-ecc": ("NS3201", "NS3204"),
    "gpu-fell-off-bus": ("NS3211", "NS3212"),
    "gpu-hang": ("NS3221", "NS3222", "NS3223"),
    "nvlink-fabric": ("NS6101", "NS6104"),
    "gpu-thermal-power": ("NS3232",),
}

# Checks of settings that no rule looks for have no line here: nothing in a log leads back to them.
TRIAGE_RULES: dict[tuple[str, str], tuple[str, ...]] = {
    ("gpus", "gpu-not-visible"): ("NS1201", "NS1202"),
    ("gpus", "driver-mismatch"): ("NS1311",),
    ("gpus", "gpu-hang"): _XID["gpu-hang"],
    ("arch", "arch-mismatch"): ("NS2102", "NS2101", "NS3243", "NS8405"),
    ("driver-versions", "driver-mismatch"): ("NS1311",),
    ("driver-runtime", "driver-mismatch"): ("NS1310",),
    ("gpu-health", "gpu-hardware-ecc"): ("NS3201", "NS3203"),
    ("gpu-idle", "oom-gpu"): ("NS3101",),
    **{("xid", category): rules for category, rules in _XID.items()},
    ("fabric", "fabric-manager"): ("NS6112", "NS6111"),
    ("fabric", "nvlink-fabric"): ("NS6106",),
    ("nvlink", "nvlink-fabric"): ("NS6101", "NS6123"),
    ("pcie-acs", "p2p-acs-iommu"): ("NS6122",),
    ("iommu", "p2p-acs-iommu"): ("NS6121",),
    ("infiniband", "ib-link"): ("NS5201", "NS5204"),
    ("infiniband", "ib-config"): ("NS5213", "NS5214"),
    ("gpudirect-rdma", "gdr-peermem"): ("NS5301",),
    ("interface", "network-interface"): ("NS5102", "NS5103", "NS5101", "NS5107"),
    ("master", "dns"): ("NS5122", "NS5121"),
    ("master", "firewall-port"): ("NS5112",),
    ("master", "network-interface"): ("NS5101",),
    ("master", "rendezvous"): ("NS1101", "NS1105"),
    ("shm", "shm-limit"): ("NS7101", "NS7102"),
    ("memlock", "memlock-limit"): ("NS7111",),
    ("open-files", "fd-limit"): ("NS7121",),
    ("cgroup-memory", "oom-cgroup"): ("NS7301", "NS7303"),
    ("visible-devices", "gpu-not-visible"): ("NS1201", "NS1202"),
    ("visible-devices", "duplicate-gpu"): ("NS1210",),
}
"""By check and cause class, the likeliest rule first. Each id is one that `ncclscope explain` knows."""
