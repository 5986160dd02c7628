"""The host in the kernel log: processors, memory modules, stuck tasks, storage, heat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.model import Event
from ncclscope.parsers.pattern import Block, Pattern, compiled

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["BLOCKS", "PATTERNS"]

_STORAGE: Mapping[str, Value] = {"suggests": "storage-hang"}


def _removable(m: re.Match[str], line: Line) -> Mapping[str, Value]:  # noqa: ARG001
    """Errors of empty CD drives, floppies and loop devices say nothing about a job's files."""
    if m["disk"].startswith(("sr", "fd", "loop")):
        return {"nature": "noise"}
    return {"nature": "cause", "cause": "storage-hang"}


def _gpfs(m: re.Match[str], line: Line) -> Mapping[str, Value]:  # noqa: ARG001
    lost = "Lost membership" in m["text"] or "unmount" in m["text"].lower()
    if m["level"] in ("E", "X"):
        return {"nature": "cause", "cause": "storage-hang"} if lost else {"nature": "symptom", **_STORAGE}
    return {}


PATTERNS: tuple[Pattern, ...] = (
    # dmesg: read kernel buffer failed: Operation not permitted   (a container; no proof of a clean log)
    Pattern(
        "kernel.log_unreadable",
        "read kernel buffer failed",
        r"dmesg: read kernel buffer failed: (?P<reason>[^\n]+)",
    ),
    # Kernel panic - not syncing: Fatal machine check
    Pattern(
        "kernel.panic",
        "Kernel panic - not syncing",
        r"Kernel panic - not syncing: (?P<text>[^\n]+)",
        nature="cause",
        cause="rank-died",
        fields={"suggests": "rank-died"},
    ),
    # mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: cc00000000010090
    # mce: [Hardware Error]: Machine check events logged
    Pattern(
        "kernel.mce",
        "mce: [Hardware Error]",
        r"mce: \[Hardware Error\]: (?:Machine check events logged|CPU (?P<cpu>\d+): Machine Check)",
        nature="symptom",
    ),
    # mce: Uncorrected hardware memory error in user-access at 1b3f9c0
    Pattern(
        "kernel.mce",
        "Uncorrected hardware memory error",
        r"mce: Uncorrected hardware memory error in user-access at (?P<address>[0-9a-f]+)",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
    # EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x12a3f ...)
    Pattern(
        "kernel.edac",
        "EDAC MC",
        r"EDAC MC\d+: (?P<count>\d+) (?P<error>CE|UE) .{0,80}? on (?P<label>\S+)",
        refine=lambda m, line: {"nature": "symptom" if m["error"] == "UE" else "info"},  # noqa: ARG005
    ),
    # {1}[Hardware Error]: event severity: recoverable
    Pattern(
        "kernel.firmware_error",
        "}[Hardware Error]",
        r"\{\d+\}\[Hardware Error\]: +(?:event severity: (?P<severity>\w+)|.{0,60}section_type: "
        r"(?P<section>[^\n]+))",
        nature="symptom",
    ),
    # Uhhuh. NMI received for unknown reason 2c on CPU 14.   (often a PCIe error raised by the board)
    Pattern(
        "kernel.nmi",
        "Uhhuh. NMI received for unknown reason",
        r"NMI received for unknown reason (?P<reason>[0-9a-f]+) on CPU",
        nature="symptom",
    ),
    # watchdog: Watchdog detected hard LOCKUP on cpu 12
    Pattern(
        "kernel.hard_lockup",
        "Watchdog detected hard LOCKUP",
        r"Watchdog detected hard LOCKUP on cpu ?(?P<cpu>\d+)",
        nature="symptom",
    ),
    # rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
    Pattern(
        "kernel.rcu_stall",
        "rcu: INFO: ",
        r"rcu: INFO: \w+ (?:self-detected stall|detected (?:expedited )?stalls)",
        nature="symptom",
    ),
    # Future hung task reports are suppressed, see sysctl kernel.hung_task_warnings   (later silence
    # means nothing)
    Pattern(
        "kernel.hung_task_muted",
        "Future hung task reports are suppressed",
        r"Future hung task reports are suppressed",
    ),
    # workqueue: ib_cache_event_task [ib_core] hogged CPU for >10000us 4 times, consider switching to
    # WQ_UNBOUND
    Pattern("kernel.workqueue", "hogged CPU for", r"workqueue: \S+.{0,40} hogged CPU for", nature="noise"),
    # audit: type=1400 audit(1732992000.123:457): apparmor="DENIED" operation="ptrace"
    # profile="docker-default" ...
    # audit: type=1400 audit(1732992000.123:458): avc:  denied  { read } for pid=48211 comm="python" ...
    Pattern(
        "kernel.access_denied",
        "type=1400 audit(",
        r"type=1400 audit\([\d.:]+\): (?:apparmor=\"DENIED\" operation=\"(?P<operation>[^\"]+)\"|avc:"
        r" +denied)",
        nature="symptom",
    ),
    # nfs: server 10.0.3.7 not responding, still trying
    Pattern(
        "kernel.nfs_stalled",
        " not responding, ",
        r"nfs: server (?P<server>\S+) not responding, (?P<how>still trying|timed out)",
        nature="cause",
        cause="storage-hang",
    ),
    # nfs: server 10.0.3.7 OK   (end of the outage)
    Pattern("kernel.nfs_back", "nfs: server ", r"nfs: server (?P<server>\S+) OK"),
    # NFS: nfs4_reclaim_open_state: Lock reclaim failed!
    Pattern(
        "kernel.nfs_lock",
        "nfs4_reclaim_open_state",
        r"nfs4_reclaim_open_state: Lock reclaim failed",
        nature="symptom",
        fields=_STORAGE,
    ),
    # LustreError: 167-0: scratch-OST0003-osc-ffff9a1b2c3d4000: This client was evicted by
    # scratch-OST0003; in progress ...
    Pattern(
        "kernel.lustre_evicted",
        "This client was evicted by",
        r"(?P<target>\S{1,128}): This client was evicted by (?P<server>[^;\s]+)",
        nature="cause",
        cause="storage-hang",
    ),
    # Lustre: scratch-OST0003-osc-ffff9a1b2c3d4000: Connection to scratch-OST0003 (at 10.0.5.11@o2ib)
    # was lost; in ...
    Pattern(
        "kernel.lustre_lost",
        " was lost; in progress operations",
        r"Connection to (?P<server>\S+) \(at (?P<address>[^)]+)\) was lost; in progress operations",
        nature="cause",
        cause="storage-hang",
    ),
    # Lustre: 2211:0:(client.c:2305:ptlrpc_expire_one_request()) @@@ Request sent has timed out for
    # slow reply: [sent ...
    Pattern(
        "kernel.lustre_slow",
        "ptlrpc_expire_one_request",
        r"@@@ Request sent has (?P<how>timed out for (?:slow reply|sent delay)|failed due to network error)",
        nature="symptom",
        fields=_STORAGE,
    ),
    # mmfs: [E] Lost membership in cluster gpfs01. Unmounting file systems.
    Pattern(
        "kernel.gpfs",
        "mmfs: [",
        r"mmfs: \[(?P<level>[EWXI])\] (?P<text>[^\n]+)",
        refine=_gpfs,
        adds=("suggests",),
    ),
    # nvme nvme0: I/O 123 QID 4 timeout, reset controller
    # nvme nvme0: I/O tag 12 (100c) opcode 0x2 (I/O Cmd) QID 4 timeout, aborting
    Pattern(
        "kernel.nvme_timeout",
        "nvme nvme",
        r"nvme (?P<disk>nvme\d+): I/O .{0,60}?QID \d+ timeout, (?P<action>\w+)",
        nature="symptom",
        fields=_STORAGE,
    ),
    # nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff
    Pattern(
        "kernel.nvme_down",
        "nvme nvme",
        r"nvme (?P<disk>nvme\d+): (?:controller is down; will reset|Disabling device after reset failure"
        r"|Device not ready; aborting reset)",
        nature="cause",
        cause="storage-hang",
    ),
    # I/O error, dev nvme0n1, sector 123456 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2
    # blk_update_request: critical medium error, dev sda, sector 4711
    Pattern(
        "kernel.disk_error",
        " error, dev ",
        r"(?:I/O|critical (?:medium|target|nexus)) error, dev (?P<disk>[\w-]+), sector",
        nature="symptom",
        refine=_removable,
    ),
    # Buffer I/O error on dev dm-0, logical block 1234567, lost async page write
    Pattern(
        "kernel.buffer_error",
        "Buffer I/O error on dev",
        r"Buffer I/O error on dev (?P<disk>[^,]+), logical block",
        nature="symptom",
        fields=_STORAGE,
    ),
    # EXT4-fs (nvme0n1p2): Remounting filesystem read-only
    Pattern(
        "kernel.fs_readonly",
        "emounting filesystem read-only",
        r"EXT4-fs (?:error )?\((?:device )?(?P<disk>[^)]+)\): .{0,80}?[Rr]emounting filesystem read-only",
        nature="symptom",
        fields=_STORAGE,
    ),
    # XFS (nvme0n1p2): log I/O error -5
    # XFS (dm-3): Filesystem has been shut down due to log error (0x2).
    Pattern(
        "kernel.fs_shutdown",
        "XFS (",
        r"XFS \((?P<disk>[^)]+)\): .{0,80}?(?:[Ff]ilesystem has been shut down|Corruption of in-memory"
        r" data|log I/O error)",
        nature="symptom",
        fields=_STORAGE,
    ),
    # EXT4-fs (sda1): Delayed block allocation failed for inode 12 at logical offset 0 with max blocks
    # 8 with error 28
    Pattern(
        "kernel.fs_full",
        "Delayed block allocation failed",
        r"EXT4-fs \((?P<disk>[^)]+)\): Delayed block allocation failed .{0,100}with error 28",
        nature="cause",
        cause="disk-full",
    ),
    # mce: CPU5: Package temperature is above threshold, cpu clock is throttled (total events = 17)
    Pattern(
        "kernel.cpu_throttled",
        "temperature is above threshold",
        r"CPU(?P<cpu>\d+): (?P<part>Core|Package) temperature is above threshold, cpu clock is throttled",
        nature="symptom",
    ),
    Pattern(
        "kernel.cpu_throttled",
        "temperature above threshold",
        r"CPU(?P<cpu>\d+): (?P<part>Core|Package) temperature above threshold, cpu clock throttled",
        nature="symptom",
    ),
    # thermal thermal_zone0: acpitz: critical temperature reached, shutting down
    Pattern(
        "kernel.thermal_shutdown",
        "critical temperature reached",
        r"thermal (?P<zone>thermal_zone\d+): .{0,60}critical temperature reached",
        nature="symptom",
        fields={"suggests": "gpu-thermal-power"},
    ),
    # CPU5: Package temperature/speed normal   (end of an episode)
    Pattern(
        "kernel.cpu_normal",
        "temperature/speed normal",
        r"CPU(?P<cpu>\d+): (?:Core|Package) temperature/speed normal",
    ),
)

# Where a stuck task waits, by the first frame of its stack that tells; frames with "?" are guesses of the
# unwinder.
_WAITS: tuple[tuple[str, str], ...] = (
    ("nfs", r"\b(?:nfs\d?_|rpc_wait|__rpc_)"),
    ("lustre", r"\b(?:ll_|ptlrpc|osc_|cl_io_|ldlm_|lov_)|\[lustre\]|\[ptlrpc\]"),
    ("gpfs", r"\[mmfs\w*\]|\bcxi\w+\+"),
    ("nvidia", r"\[nvidia(?:_\w+)?\]|\b(?:os_acquire_|rm_|uvm_|nvidia_)\w*\+"),
    ("rdma", r"\[(?:mlx5_\w+|ib_\w+|rdma_\w+)\]|\b(?:mlx5|ib_uverbs)\w*\+"),
    ("block", r"\b(?:blk_|nvme_|xfs_|ext4_|jbd2_|io_schedule|submit_bio)\w*\+"),
)
_STACK_LINE = (
    r"^\s*(?:\[<[0-9a-f]+>\]\s*)?(?:\? )?[\w.]+\+0x[0-9a-f]+/0x[0-9a-f]+|Call Trace:|</?(?:TASK|IRQ|NMI)>"
    r"|\b(?:R[A-Z0-9]{2}|CR\d|FS|CS):"
    r"|state:[A-Z]|hung_task_timeout_secs|[Tt]ainted|Workqueue:|Hardware name:|Modules linked in|Code:|Comm:"
)
_SUGGESTS = {
    "nfs": "storage-hang",
    "lustre": "storage-hang",
    "gpfs": "storage-hang",
    "block": "storage-hang",
    "nvidia": "gpu-hang",
    "rdma": "ib-link",
}


class _StuckTask:
    """A hung task or a soft lockup with the stack below it, which tells what it waits for."""

    __slots__ = ("_fields", "_first", "_kind", "_seen")

    def __init__(self, line: Line, kind: str, fields: dict[str, Value]) -> None:
        self._first = line
        self._kind = kind
        self._fields: dict[str, Value] = {"nature": "symptom", **fields}
        self._seen = 1

    def feed(self, line: Line) -> bool:
        text = line.text
        if (
            "blocked for more than" in text
            or "BUG: soft lockup" in text
            or not compiled(_STACK_LINE).search(text)
        ):
            return False
        self._seen += 1
        if "waits_in" not in self._fields and "? " not in text:
            where = next((name for name, frames in _WAITS if compiled(frames).search(text)), None)
            if where:
                self._fields["waits_in"] = where
                self._fields["suggests"] = _SUGGESTS[where]
        return True

    def close(self) -> list[Event]:
        line = self._first
        return [Event(self._kind, self._fields, line.env, line.ref, line.text, lines=self._seen)]


def _stuck(kind: str, m: re.Match[str], line: Line) -> _StuckTask:
    return _StuckTask(line, kind, {"name": m["name"], "pid": int(m["pid"]), "stuck_s": int(m["seconds"])})


_STUCK_FIELDS = ("name", "pid", "stuck_s", "waits_in", "suggests")
BLOCKS: tuple[Block, ...] = (
    # INFO: task python3:48211 blocked for more than 122 seconds.
    Block(
        {"kernel.hung_task": _STUCK_FIELDS},
        " blocked for more than ",
        r"INFO: task (?P<name>.{1,40}?):(?P<pid>\d+) (?:<[^>]+> )?blocked for more than (?P<seconds>\d+)"
        r" seconds",
        lambda m, line: _stuck("kernel.hung_task", m, line),
    ),
    # watchdog: BUG: soft lockup - CPU#18 stuck for 27s! [python3:2254956]
    Block(
        {"kernel.soft_lockup": _STUCK_FIELDS},
        "BUG: soft lockup - CPU#",
        r"BUG: soft lockup - CPU#\d+ stuck for (?P<seconds>\d+)s! \[(?P<name>.{1,40}?):(?P<pid>\d+)\]",
        lambda m, line: _stuck("kernel.soft_lockup", m, line),
    ),
)
