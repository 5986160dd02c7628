"""The flight recorder's dumps and what a process group says of itself at start (INFO level)."""

from __future__ import annotations

from ncclscope.parsers.pattern import Pattern
from ncclscope.parsers.torch_tags import ADDED, refine_with, tag_of

__all__ = ["PATTERNS"]

PATTERNS: tuple[Pattern, ...] = (
    # ProcessGroupNCCL dumping nccl trace to /tmp/nccl_trace_rank_6   (2.2 and later)
    Pattern(
        "torch.fr_dump",
        "ProcessGroupNCCL dumping nccl trace to",
        r"ProcessGroupNCCL dumping nccl trace to (?P<path>\S+)",
        refine=tag_of,
        adds=ADDED,
    ),
    # Finished writing Flight Recorder debug info to /tmp/nccl_trace_rank_6   (2.7 and later; NCCLPG before)
    Pattern(
        "torch.fr_dump",
        "debug info to ",
        r"Finished writing (?:Flight Recorder|NCCLPG) debug info to (?P<path>\S+)",
        fields={"written": True},
        refine=tag_of,
        adds=ADDED,
    ),
    # Error opening file for writing Flight Recorder debug info: /mnt/dumps/trace_1   (all)
    Pattern(
        "torch.fr_dump_failed",
        "debug info",
        r"Error (?:opening file for writing|writing|flushing) (?:Flight Recorder |NCCLPG )?debug info(?: to "
        r"file)?: (?P<path>\S+)",
        nature="symptom",
        refine=tag_of,
        adds=ADDED,
    ),
    # Finished flight recorder successfully. Output can be analyzed using the fr_trace script.   (2.6 and
    # later)
    Pattern(
        "torch.fr_done",
        "Finished flight recorder successfully",
        r"Finished flight recorder successfully",
        nature="noise",
        refine=tag_of,
        adds=ADDED,
    ),
    # Flight Recorder trace successfully dumped   (2.9 and later)
    Pattern(
        "torch.fr_done",
        "Flight Recorder trace successfully dumped",
        r"Flight Recorder trace successfully dumped",
        nature="noise",
        refine=tag_of,
        adds=ADDED,
    ),
    # ProcessGroupNCCL preparing to dump debug info. Include stack trace: 1   (2.2 and later)
    Pattern(
        "torch.fr_preparing",
        "preparing to dump debug info",
        r"ProcessGroupNCCL preparing to dump debug info",
        nature="consequence",
        refine=tag_of,
        adds=ADDED,
    ),
    # Stack trace of the failed collective not found, potentially because FlightRecorder is disabled.   (2.6
    # and later)
    Pattern(
        "torch.fr_disabled",
        "Stack trace of the failed collective not found",
        r"Stack trace of the failed collective not found",
        nature="noise",
        refine=tag_of,
        adds=ADDED,
    ),
    # ProcessGroupNCCL initialization options: size: 8, global rank: 0, TIMEOUT(ms): 600000, ... PG Name: 0
    # (INFO level)
    Pattern(
        "torch.init_info",
        "ProcessGroupNCCL initialization options",
        r"ProcessGroupNCCL initialization options:\s*size: (?P<size>\d+), global rank: "
        r"(?P<global_rank>-?\d+), "
        r"TIMEOUT\(ms\): (?P<timeout_ms>\d+)(?:.{0,400}?PG Name: (?P<pg_name>[^\s,]+))?",
        refine=refine_with("global_rank"),
    ),
    # ProcessGroupNCCL environments: NCCL version: 2.26.2, TORCH_NCCL_ASYNC_ERROR_HANDLING: 3, ...   (2.2
    # and later)
    Pattern(
        "torch.init_info",
        "ProcessGroupNCCL environments",
        r"ProcessGroupNCCL environments:\s*NCCL version: (?P<nccl_version>[\d.]+)"
        r"(?:.{0,600}?TORCH_NCCL_BLOCKING_WAIT: (?P<blocking_wait>\w+))?",
    ),
    # HeartbeatMonitor environments: TORCH_NCCL_ENABLE_MONITORING (Whether to kill program when ...
    # detected): 1, ...
    Pattern(
        "torch.init_info",
        "HeartbeatMonitor environments",
        r"HeartbeatMonitor environments:.{0,200}?detected\): (?P<monitoring>\w+)",
        since="2.8",
    ),
    # ProcessGroupNCCL broadcast unique ID through store took 0.31 ms   (2.4 and later, INFO level)
    Pattern(
        "torch.unique_id_time",
        "through store took",
        r"ProcessGroupNCCL (?:broadcast unique ID|all-gather unique IDs) through store took "
        r"(?P<took_ms>[\d.]+) ms",
    ),
    # ProcessGroupNCCL created ncclComm_ 0x55d0a1b2c3d0 on CUDA device:  0   (2.4 and later, INFO level)
    Pattern(
        "torch.comm_created",
        "ProcessGroupNCCL created ncclComm_",
        r"ProcessGroupNCCL created ncclComm_ (?P<comm>\S+) on CUDA device:\s*(?P<device>\d+)",
        refine=tag_of,
        adds=ADDED,
    ),
    # Eagerly connecting nccl backend with device cuda:0   (2.3 and later, INFO level)
    Pattern(
        "torch.eager_init",
        "Eagerly connecting nccl backend",
        r"Eagerly connecting nccl backend with device cuda:(?P<device>\d+)",
        refine=tag_of,
        adds=ADDED,
    ),
    # Using non-blocking mode: 0   (2.6 and later, INFO level)
    Pattern(
        "torch.nonblocking_mode",
        "Using non-blocking mode",
        r"Using non-blocking mode: (?P<enabled>[01]|true|false)",
        refine=tag_of,
        adds=ADDED,
    ),
)
