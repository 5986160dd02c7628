"""NCCL and what lies between the GPUs: peer access, NVLink SHARP, fabric, kernels that do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.nccl_common import bus_address, unless_probe
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]


def _nvls(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    # Error 2, or one that was cut off, may be memory; any other refusal to bind comes from the fabric.
    return (
        {"suggests": "nvlink-fabric"} if m["code"] in ("2", None) else {"nature": "cause", "cause": "nvlink-fabric"}
    )


def _fabric(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    bus = bus_address(m["bus_id"])
    return {"bus_id": bus, "state": int(m["state"])} if bus else {"state": int(m["state"])}


def _nvml(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    error = m["error"].lower()
    if "version mismatch" in error:
        return {"nature": "cause", "cause": "driver-mismatch"}
    return {"suggests": "gpu-fell-off-bus"} if "lost" in error else {}


def _refused(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    return {"suggests": "nvlink-fabric"} if "permitted" in m["error"] or "supported" in m["error"] else {}


PATTERNS: tuple[Pattern, ...] = (
    # NVLS multicast support is not available on dev 0        a state, printed by every healthy run without
    # NVSwitch
    Pattern(
        "nccl.nvls",
        "NVLS multicast support",
        r"NVLS multicast support is (?P<state>not available|available) on dev (?P<cuda_dev>\d+)",
        since="2.17.1",
    ),
    # Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'the operation
    # cannot be ...'
    Pattern(
        "nccl.nvls_failed",
        "Failed to bind NVLink SHARP",
        r"Failed to bind NVLink SHARP \(NVLS\) Multicast memory of size (?P<bytes>\d+) ?:"
        r"(?: CUDA error (?P<code>\d+) '(?P<error>[^']*))?",
        nature="symptom",
        refine=unless_probe(_nvls),
        adds=("suggests",),
        since="2.27.3",
    ),
    # MNNVL (cliqueSize 4) is available but not working on this system. Check the IMEX channel configuration
    # ...
    # MNNVL (cliqueSize 4) is available but not supported on this system. Check the IMEX configuration.
    # 2.25, 2.26
    Pattern(
        "nccl.imex",
        "Check the IMEX",
        r"MNNVL \(cliqueSize (?P<clique_size>\d+)\) is available but not (?:working|supported) on this",
        nature="cause",
        cause="nvlink-fabric",
        refine=unless_probe(),
        since="2.25.1",
    ),
    # MNNVL is not supported on this system        asked for with NCCL_MNNVL_ENABLE=1
    Pattern(
        "nccl.imex",
        "MNNVL is not supported",
        r"MNNVL is not supported on this system",
        nature="symptom",
        fields={"suggests": "nvlink-fabric"},
        refine=unless_probe(),
        since="2.20.3",
        until="2.24.3",
    ),
    # MNNVL busId 0x70 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0 degradedBw not-supported
    Pattern(
        "nccl.fabric",
        "MNNVL busId ",
        r"MNNVL busId 0x(?P<bus_id>[0-9a-f]+) fabric UUID (?P<uuid>[0-9a-f]+\.[0-9a-f]+)"
        r" cliqueId 0x(?P<clique>[0-9a-f]+) state (?P<state>\d+)"
        r"(?: healthMask 0x(?P<health_mask>[0-9a-f]+))?",
        refine=_fabric,
        since="2.20.3",
    ),
    # GpuBuffer cuMemCreate failed: operation not permitted        an allocation with a fabric handle, MSCCL++
    Pattern(
        "nccl.cumem_failed",
        "cuMemCreate failed",
        r"cuMemCreate failed: (?P<error>[a-z][^\n]{0,120})",
        nature="symptom",
        refine=_refused,
        adds=("suggests",),
    ),
    # cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based implementation.
    # ...
    Pattern(
        "nccl.cumem_host_fallback",
        "cuMem host allocations",
        r"cuMem host allocations do not appear to be working; falling back",
        nature="noise",
        since="2.26.3",
    ),
    # NVML failure 'Driver/library version mismatch'
    # nvmlInit_v2() failed: Driver/library version mismatch
    *(
        Pattern(
            "nccl.nvml_failure",
            literal,
            regex,
            nature="symptom",
            refine=unless_probe(_nvml),
            adds=("suggests",),
            since=since,
        )
        for literal, regex, since in (
            ("NVML failure", r"NVML failure '(?P<error>[^'\n]+)", "2.3.5"),
            ("nvmlInit", r"(?P<call>nvmlInit\w*)\(\) failed: (?P<error>[^\n]+)", "2.3.5"),
            ("nvmlDevice", r"(?P<call>nvmlDevice\w+)\([^)\n]*\) failed: (?P<error>[^\n]+)", "2.3.5"),
        )
    ),
    # P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be the case given their
    # connectivity, ...
    Pattern(
        "nccl.p2p_failed",
        "P2P is disabled between NVLINK",
        r"P2P is disabled between NVLINK connected GPUs (?P<gpu>\d+) and (?P<peer_gpu>\d+)",
        nature="symptom",
        fields={"suggests": "nvlink-fabric"},
        refine=unless_probe(),
        since="2.12.7",
    ),
    # P2P is disabled between connected GPUs 1 and 0. You can repress this message with
    # NCCL_IGNORE_DISABLED_P2P=1.
    Pattern(
        "nccl.p2p_disabled",
        "P2P is disabled between connected",
        r"P2P is disabled between connected GPUs (?P<gpu>\d+) and (?P<peer_gpu>\d+)",
        since="2.12.7",
    ),
    # Could not enable P2P between dev 1(=2000) and dev 0(=1000)
    Pattern(
        "nccl.p2p_disabled",
        "Could not enable P2P",
        r"Could not enable P2P between dev (?P<gpu>\d+)\(=[0-9a-f]+\) and dev (?P<peer_gpu>\d+)",
        since="2.6.4",
    ),
    # failed to peer with device 1(=2000): 217 peer access is not supported between these two devices
    Pattern(
        "nccl.p2p_failed",
        "failed to peer with device",
        r"failed to peer with device (?P<peer_gpu>\d+)(?:\(=[0-9a-f]+\))?:"
        r" (?P<code>\d+) (?P<error>[a-z][^\n]*)",
        nature="symptom",
        fields={"suggests": "p2p-acs-iommu"},
        refine=unless_probe(),
        since="2.3.5",
    ),
    # failed to open CUDA IPC handle : 11 invalid argument
    Pattern(
        "nccl.p2p_failed",
        "failed to open CUDA IPC handle",
        r"failed to open CUDA IPC handle : (?P<code>\d+) (?P<error>[a-z][^\n]*)",
        nature="symptom",
        fields={"suggests": "p2p-acs-iommu"},
        refine=unless_probe(),
        since="2.3.5",
        until="2.7.8",
    ),
    # cudaIpcGetMemHandle failed : invalid argument
    Pattern(
        "nccl.p2p_failed",
        "cudaIpcGetMemHandle failed",
        r"cudaIpcGetMemHandle failed : (?P<error>[a-z][^\n]*)",
        nature="symptom",
        refine=unless_probe(),
        since="2.12.7",
    ),
    # cudaArch 1200 ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856        WARN, 2.26+
    # ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856                      INFO, 2.25.1
    # cudaArch 1200 dynamic smem 82240 exceeds device/fn maxSharedMem 79856            2.29.7+
    Pattern(
        "nccl.max_shared_mem",
        "exceeds device/fn maxSharedMem",
        r"(?:cudaArch (?P<cuda_arch>\d+) )?(?:ncclMaxSharedMem|dynamic smem) (?P<wanted>\d+)"
        r" exceeds device/fn maxSharedMem (?P<limit>\d+)",
        nature="symptom",
        fields={"suggests": "arch-mismatch"},
        since="2.25.1",
    ),
    # Skipping kernel 12 which requires driver 12080
    Pattern(
        "nccl.kernel_skipped",
        "which requires driver",
        r"Skipping kernel \d+ which requires driver (?P<driver_version>\d+)",
        since="2.28.7",
    ),
)
