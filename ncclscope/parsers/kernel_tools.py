"""Output of tools that people attach to a report: nvidia-smi, ulimit, df, systemctl, sysfs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers import kernel_tools_blocks
from ncclscope.parsers.kernel_nvrm import normalised_gpu
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["BLOCKS", "PATTERNS"]

BLOCKS = kernel_tools_blocks.BLOCKS

# Below this much locked memory RDMA registrations of training jobs fail; distributions default to 64 KiB
# or 8 MiB.
_MEMLOCK_ENOUGH_KB = 1024 * 1024


def _handle(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    reason = m["reason"]
    gone = "Unknown Error" in reason or "lost" in reason
    # "Not Found" and "Insufficient Permissions" are answers of a driver that still sees the GPU.
    verdict: dict[str, Value] = {"nature": "cause", "cause": "gpu-fell-off-bus"} if gone else {}
    return {**normalised_gpu(m, line), **verdict}


def _memlock(m: re.Match[str], line: Line) -> Mapping[str, Value]:  # noqa: ARG001
    text = m["limit"]
    if text == "unlimited":
        return {"limit": text}
    limit_kb = int(text) // (1024 if m["unit"] == "bytes" else 1)
    small: dict[str, Value] = {"nature": "symptom", "suggests": "memlock-limit"}
    return {"limit_kb": limit_kb, **(small if limit_kb < _MEMLOCK_ENOUGH_KB else {})}


def _shm(m: re.Match[str], line: Line) -> Mapping[str, Value]:  # noqa: ARG001
    percent = int(m["percent"])
    full_or_default = percent >= 95 or m["shm_size"] in ("64M", "65536")
    hint: dict[str, Value] = {"nature": "symptom", "suggests": "shm-limit"} if full_or_default else {}
    return {"percent": percent, **hint}


PATTERNS: tuple[Pattern, ...] = (
    # Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to
    # recover this GPU
    # Unable to determine the device handle for GPU0000:1B:00.0: Unknown Error   (525 and newer)
    # Unable to determine the device handle for GPU2: 0000:41:00.0: Unknown Error   (570 and newer)
    Pattern(
        "tool.smi_no_handle",
        "Unable to determine the device handle for",
        r"Unable to determine the device handle for (?:gpu|GPU) ?(?:\d{1,2}:"
        r" ?)?(?P<gpu>[0-9a-fA-F:.]{7,18}): "
        r"(?P<reason>[^\n]+)",
        nature="symptom",
        refine=_handle,
    ),
    # GPU is lost.  Reboot the system to recover this GPU   (nvidia-smi, NVML error 15)
    Pattern(
        "tool.smi_gpu_lost",
        "GPU is lost",
        r"(?<!: )GPU is lost\. +Reboot the system",
        nature="cause",
        cause="gpu-fell-off-bus",
    ),
    # ls: cannot access /mnt/dataset/: Stale file handle        coreutils and shells; `Stale NFS file handle` before
    # glibc 2.15
    Pattern(
        "tool.stale_handle",
        " file handle",
        r"\b(?P<program>ls|cd|cat|df|du|stat|cp|mv|rm|mkdir|touch|find|bash|sh|rsync|tail|head): "
        r"(?P<text>[^\n]{1,300}): Stale (?:NFS )?file handle\s*$",
        nature="cause",
        cause="storage-hang",
    ),
    # Failed to initialize NVML: Driver/library version mismatch
    Pattern(
        "tool.nvml_mismatch",
        "Driver/library version mismatch",
        r"Failed to initialize NVML: Driver/library version mismatch",
        nature="cause",
        cause="driver-mismatch",
    ),
    # nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown
    Pattern(
        "tool.nvml_mismatch",
        "driver/library version mismatch",
        r"nvml error: driver/library version mismatch",
        nature="cause",
        cause="driver-mismatch",
    ),
    # NVML library version: 535.183   (line below the one above, 535 and newer)
    Pattern(
        "tool.nvml_version",
        "NVML library version: ",
        r"NVML library version: (?P<version>\d+\.\d+(?:\.\d+)?)",
    ),
    # Failed to initialize NVML: Unknown Error   (in a container whose device access was taken away)
    # Failed to initialize NVML: Insufficient Permissions
    Pattern(
        "tool.nvml_failed",
        "Failed to initialize NVML: ",
        r"Failed to initialize NVML: (?P<reason>Unknown Error|Insufficient Permissions|GPU access"
        r" blocked[^\n]*)",
        nature="symptom",
        fields={"suggests": "gpu-not-visible"},
    ),
    # NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the
    # latest ...
    Pattern(
        "tool.smi_no_driver",
        "NVIDIA-SMI has failed because",
        r"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
        nature="symptom",
        fields={"suggests": "gpu-not-visible"},
    ),
    # No devices were found
    Pattern(
        "tool.smi_no_devices",
        "No devices were found",
        r"\bNo devices were found\s*$",
        nature="symptom",
        fields={"suggests": "gpu-not-visible"},
    ),
    # |ERR!   ERR! ERR!    ERR! / ERR! |   3MiB / 81559MiB |    ERR!      Default |   (row of the
    # nvidia-smi table)
    Pattern(
        "tool.smi_err",
        "ERR!",
        r"^\|[^|]{0,60}\bERR!",
        nature="symptom",
        fields={"suggests": "gpu-hang"},
    ),
    # HW Slowdown                       : Active
    #     HW Thermal Slowdown           : Active
    #     HW Power Brake Slowdown       : Active
    # SW Thermal Slowdown               : Active    (nvidia-smi -q, 'Clocks Event Reasons')
    Pattern(
        "tool.smi_slowdown",
        "Slowdown",
        r"(?P<reason>HW Slowdown|HW Thermal Slowdown|HW Power Brake Slowdown|SW Thermal Slowdown) *:"
        r" Active\b",
        nature="cause",
        cause="gpu-thermal-power",
    ),
    # SW Power Cap                      : Active    (in the same section; the set limit of power at work, no fault)
    Pattern(
        "tool.smi_power_cap",
        "SW Power Cap",
        r"SW Power Cap *: (?P<state>Active|Not Active)\b",
    ),
    # Remapped Rows
    #     Pending                           : Yes    (nvidia-smi -q: rows that wait for a reset)
    Pattern(
        "tool.smi_remap_pending",
        "Pending  ",
        r"(?:^|\s)Pending {8,}: Yes\s*$",
        nature="symptom",
        fields={"suggests": "gpu-hardware-ecc"},
    ),
    # Remapping Failure Occurred        : Yes
    Pattern(
        "tool.smi_remap_failed",
        "Remapping Failure Occurred",
        r"Remapping Failure Occurred *: Yes",
        nature="cause",
        cause="gpu-hardware-ecc",
    ),
    # SRAM Threshold Exceeded           : Yes
    Pattern(
        "tool.smi_sram_threshold",
        "SRAM Threshold Exceeded",
        r"SRAM Threshold Exceeded *: Yes",
        nature="cause",
        cause="gpu-hardware-ecc",
    ),
    # cat: /sys/kernel/mm/memory_peers/nv_mem_nc/version: No such file or directory
    # ls: cannot access '/sys/kernel/mm/memory_peers': No such file or directory
    Pattern(
        "tool.peermem_absent",
        "memory_peers",
        r"/sys/kernel/mm/memory_peers(?P<path>[^\s:']*)'?: No such file or directory",
        nature="symptom",
        fields={"suggests": "gdr-peermem"},
    ),
    # modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument
    Pattern(
        "tool.peermem_load_failed",
        "could not insert",
        r"modprobe: ERROR: could not insert '?(?P<module>nvidia_peermem|nvidia-peermem|nv_peer_mem)'?: "
        r"(?P<reason>[^\n]+)",
        nature="symptom",
        fields={"suggests": "gdr-peermem"},
    ),
    # max locked memory           (kbytes, -l) 64
    # max locked memory       (kbytes, -l) unlimited   (ulimit -a)
    Pattern(
        "tool.memlock",
        "max locked memory",
        r"max locked memory +\((?P<unit>kbytes), -l\) +(?P<limit>\d+|unlimited)",
        refine=_memlock,
        adds=("limit_kb", "suggests"),
    ),
    # Max locked memory         65536                65536                bytes   (/proc/PID/limits,
    # soft limit first)
    Pattern(
        "tool.memlock",
        "Max locked memory",
        r"Max locked memory +(?P<limit>\d+|unlimited) +(?:\d+|unlimited) +(?P<unit>bytes)",
        refine=_memlock,
        adds=("limit_kb", "suggests"),
    ),
    # open files                          (-n) 1024
    Pattern(
        "tool.open_files",
        "open files",
        r"^\s*open files +\(-n\) +(?P<limit>\d+|unlimited)",
    ),
    # shm              64M   64M     0 100% /dev/shm   (df -h)
    # tmpfs           126G  1.2G  125G   1% /dev/shm
    Pattern(
        "tool.shm_size",
        "% /dev/shm",
        r"(?P<filesystem>\S{1,64}) +(?P<shm_size>[\d.]{1,12}[KMGT]?) +(?P<used>[\d.]+[KMGT]?) +"
        r"(?P<free>[\d.]+[KMGT]?) +"
        r"(?P<percent>\d+)% "
        r"/dev/shm(?!/)",
        refine=_shm,
        adds=("suggests",),
    ),
    # Unit nvidia-fabricmanager.service could not be found.
    Pattern(
        "tool.fabric_manager",
        "nvidia-fabricmanager.service could not be found",
        r"Unit nvidia-fabricmanager\.service could not be found",
        nature="symptom",
        fields={"suggests": "fabric-manager", "state": "absent"},
    ),
)
