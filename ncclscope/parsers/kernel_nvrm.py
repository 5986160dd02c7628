"""Lines of the NVIDIA driver that carry no Xid number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.model import Event
from ncclscope.parsers.kernel_pcie import pci_address
from ncclscope.parsers.pattern import Block, Pattern, compiled, parse_pid

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["BLOCKS", "PATTERNS"]


def normalised_gpu(m: re.Match[str], line: Line) -> Mapping[str, Value]:  # noqa: ARG001
    """The group `gpu` in the one spelling of PCI addresses."""
    address = pci_address(m["gpu"] or "")
    return {"gpu": address} if address else {}


_PCI = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"

PATTERNS: tuple[Pattern, ...] = (
    # NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.   (twin of Xid 79, printed even when the Xid
    # is suppressed)
    Pattern(
        "kernel.gpu_lost",
        "GPU has fallen off the bus",
        rf"GPU (?P<gpu>{_PCI}): GPU has fallen off the bus",
        nature="cause",
        cause="gpu-fell-off-bus",
        refine=normalised_gpu,
    ),
    # NVRM: nvCheckOkFailedNoLog: Check failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST]
    # (0x0000000F) returned ...
    # NVRM: _threadNodeCheckTimeout: API_GPU_ATTACHED_SANITY_CHECK failed!   (thousands of lines after a loss)
    Pattern(
        "kernel.gpu_lost_echo",
        "NV_ERR_GPU_IS_LOST",
        r"NVRM: .{0,200}\[?NV_ERR_GPU_IS_LOST",
        nature="consequence",
        fields={"suggests": "gpu-fell-off-bus"},
    ),
    Pattern(
        "kernel.gpu_lost_echo",
        "API_GPU_ATTACHED_SANITY_CHECK failed",
        r"API_GPU_ATTACHED_SANITY_CHECK failed",
        nature="consequence",
        fields={"suggests": "gpu-fell-off-bus"},
    ),
    # NVRM: krcRcAndNotifyAllChannels_IMPL: RC all channels for critical error 79.
    Pattern(
        "kernel.nvrm_all_channels",
        "RC all channels for critical error",
        r"RC all channels for critical error (?P<prev_xid>\d+)",
        nature="consequence",
    ),
    # NVRM: A GPU crash dump has been created. If possible, please run
    Pattern(
        "kernel.nvrm_crash_dump",
        "GPU crash dump has been created",
        r"A GPU crash dump has been created",
        nature="consequence",
    ),
    # NVRM: GPU at PCI:0000:9b:00: GPU-509665ad-b600-ac93-3616-d754b23d636d   (once per GPU, before
    # its first Xid)
    Pattern(
        "kernel.gpu_uuid",
        "NVRM: GPU at PCI:",
        rf"NVRM: GPU at PCI:(?P<gpu>{_PCI}): (?P<uuid>GPU-[0-9a-fA-F-]{{36}})",
        refine=normalised_gpu,
    ),
    # NVRM: nvAssertFailedNoLog: Assertion failed: Back to back GSP RPC timeout detected! GPU marked
    # for reset @ ...
    Pattern(
        "kernel.gsp_timeout",
        "Back to back GSP RPC timeout",
        r"Back to back GSP RPC timeout detected",
        nature="cause",
        cause="gpu-hang",
    ),
    # NVRM: _kgspClassifyGspTimeout: ================ GSP core unresponsive ===============   (590 and newer)
    Pattern(
        "kernel.gsp_unresponsive",
        "unresponsive",
        r"NVRM: .{0,120}(?P<what>GSP core unresponsive|GSP-RM unresponsive)",
        nature="cause",
        cause="gpu-hang",
    ),
    Pattern(
        "kernel.gsp_unresponsive",
        "GSP RM heartbeat timed out",
        r"(?P<what>GSP RM heartbeat timed out)",
        nature="cause",
        cause="gpu-hang",
    ),
    # NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00 (printing 1 of every 30).
    # The GPU likely ...
    Pattern(
        "kernel.gsp_rate_limit",
        "Rate limiting GSP RPC error prints",
        rf"Rate limiting GSP RPC error prints for GPU at PCI:(?P<gpu>{_PCI}) \(printing 1 of every "
        r"(?P<count>\d+)\)",
        nature="symptom",
        fields={"suggests": "gpu-hang"},
        refine=normalised_gpu,
    ),
    # NVRM: _kgspLogRpcSanityCheckFailure: GPU0 sanity check failed 0xf waiting for RPC response from
    # GSP. Expected ...
    Pattern(
        "kernel.gsp_sanity",
        "waiting for RPC response from GSP",
        r"GPU(?P<gpu_index>\d+) sanity check failed (?P<status>0x[0-9a-fA-F]+) waiting for RPC response"
        r" from GSP",
        nature="consequence",
        fields={"suggests": "gpu-fell-off-bus"},
    ),
    # NVRM: _issueRpcAndWait: rpcRecvPoll timedout for fn 76 sequence 3987!
    # NVRM: _issueRpcAndWait: rpcSendMessage failed with status 0x0000000f for fn 78 sequence 988140!
    # (0xf: GPU lost)
    Pattern(
        "kernel.gsp_rpc_failed",
        "_issueRpcAndWait: ",
        r"_issueRpcAndWait: (?P<what>rpcRecvPoll|rpcSendMessage) (?:timedout|failed with status "
        r"(?P<status>0x[0-9a-fA-F]+))",
        nature="symptom",
    ),
    # NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7
    Pattern(
        "kernel.gpu_locked",
        "RC watchdog: GPU is probably locked",
        r"RC watchdog: GPU is probably locked",
        nature="cause",
        cause="gpu-hang",
    ),
    # NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:894)
    Pattern(
        "kernel.rm_init_failed",
        "RmInitAdapter failed!",
        rf"GPU (?P<gpu>{_PCI}): RmInitAdapter failed! \((?P<init_status>[0-9a-fA-Fx:]+)\)",
        nature="symptom",
        fields={"suggests": "gpu-not-visible"},
        refine=normalised_gpu,
    ),
    # NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0   (second line of the one above)
    Pattern(
        "kernel.rm_init_failed",
        "rm_init_adapter failed",
        rf"GPU (?P<gpu>{_PCI}): rm_init_adapter failed",
        nature="consequence",
        refine=normalised_gpu,
    ),
    # NVRM: osInitNvMapping: *** Cannot attach gpu
    Pattern(
        "kernel.gpu_attach_failed",
        "Cannot attach gpu",
        r"osInitNvMapping: .{0,20}Cannot attach gpu",
        nature="symptom",
        fields={"suggests": "gpu-fell-off-bus"},
    ),
    # NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:
    Pattern(
        "kernel.bar_invalid",
        "assigned to your NVIDIA device is invalid",
        r"PCI I/O region assigned to your NVIDIA device is invalid",
        nature="symptom",
        fields={"suggests": "gpu-not-visible"},
    ),
    # NVRM: BAR1 is 0M @ 0x0 (PCI:0000:3b:00.0)
    Pattern(
        "kernel.bar_invalid",
        "NVRM: BAR",
        rf"NVRM: BAR(?P<bar>\d) is (?P<mib>\d+)M @ 0x[0-9a-fA-F]+ \(PCI:(?P<gpu>{_PCI})\)",
        nature="symptom",
        fields={"suggests": "gpu-not-visible"},
        refine=normalised_gpu,
    ),
    # NVRM: The NVIDIA probe routine failed for 1 device(s).
    Pattern(
        "kernel.nvrm_probe_failed",
        "The NVIDIA probe routine",
        r"The NVIDIA probe routine (?:failed|was not called) for (?P<count>\d+) device",
        nature="symptom",
        fields={"suggests": "gpu-not-visible"},
    ),
    # nvidia: probe of 0000:3b:00.0 failed with error -1
    # nvidia 0000:3b:00.0: probe with driver nvidia failed with error -1   (kernel 6.x)
    Pattern(
        "kernel.nvrm_probe_failed",
        "failed with error",
        rf"nvidia(?:: probe of (?P<gpu>{_PCI})| {_PCI}: probe with driver nvidia) failed with error "
        r"(?P<error>-?\d+)",
        nature="consequence",
        refine=normalised_gpu,
    ),
    # NVRM: No NVIDIA GPU found.
    # NVRM: None of the NVIDIA devices were initialized.
    Pattern(
        "kernel.no_gpu",
        "NVRM: No",
        r"NVRM: (?P<text>No NVIDIA GPU found|No NVIDIA devices probed|No NVIDIA PCI devices found"
        r"|None of the NVIDIA devices were initialized)",
        nature="cause",
        cause="gpu-not-visible",
    ),
    # NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build  (dvs-builder@U22)
    Pattern(
        "kernel.driver_loaded",
        "NVRM: loading NVIDIA UNIX",
        r"NVRM: loading NVIDIA UNIX (?P<flavour>Open )?.{0,40}?Kernel Module(?: for)? +\S+ +"
        r"(?P<version>\d+\.\d+(?:\.\d+)?)",
    ),
    # NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer3's postRxDetLinkMask failed!
    Pattern(
        "kernel.nvlink_discovery_failed",
        "NVRM: knvlink",
        r"NVRM: knvlink\w+: (?:Failed to update Rx Detect Link mask|Getting peer(?P<peer>\d+)"
        r"(?:'s)? postRxDetLinkMask failed)",
        nature="symptom",
        fields={"suggests": "nvlink-fabric"},
    ),
    # NVRM: Going over RM unhandled interrupt threshold for irq 212
    Pattern(
        "kernel.gpu_interrupts",
        "Going over RM unhandled interrupt threshold",
        r"Going over RM unhandled interrupt threshold for irq (?P<irq>\d+)",
        nature="symptom",
    ),
    # NVRM: Invalid argument in nv_p2p_get_pages,address or length are not aligned
    # address=0x7f0000001000, length=...
    Pattern(
        "kernel.p2p_pages",
        "nv_p2p_get_pages",
        r"Invalid argument in nv_p2p_get_pages",
        nature="symptom",
        fields={"suggests": "gdr-peermem"},
    ),
    # NVRM: nvAssertFailedNoLog: Assertion failed: 0 @ kernel_gsp.c:2210   (a self check; means little
    # by itself)
    Pattern(
        "kernel.nvrm_assert",
        "NVRM: nvAssert",
        r"NVRM: nvAssert\w*: Assertion failed: (?P<text>[^\n]+)",
        nature="consequence",
    ),
    # nvidia-modeset: ERROR: GPU:0: Failed to query display engine channel state: 0x0000c67e:0:0:0x0000000f
    Pattern(
        "kernel.nvidia_modeset",
        "nvidia-modeset: ",
        r"nvidia-modeset: (?:ERROR|WARNING): GPU:(?P<gpu_index>\d+)",
        nature="noise",
    ),
    # NVRM: GPU Board Serial Number: 1650124014249
    # NVRM: GPU 0000:01:00.0: GPU serial number is 1650124014249.   (for a hardware ticket)
    Pattern(
        "kernel.gpu_serial",
        "erial ",
        r"NVRM: (?:GPU Board Serial Number: *|GPU \S+: GPU serial number is )(?P<serial>\d+)",
    ),
    # nvidia-uvm: Loaded the UVM driver, major device number 511.
    Pattern("kernel.uvm_loaded", "Loaded the UVM driver", r"nvidia-uvm: Loaded the UVM driver"),
)


class _ApiMismatch:
    """The three lines of an API mismatch, which kernels print as one record or as three."""

    __slots__ = ("_first", "_seen", "_text")

    def __init__(self, line: Line) -> None:
        self._first = line
        self._text = line.text
        self._seen = 1

    def feed(self, line: Line) -> bool:
        if self._seen >= 4 or compiled(_API_REST).search(line.text) is None:
            return False
        self._text += " " + line.text
        self._seen += 1
        return True

    def close(self) -> list[Event]:
        fields: dict[str, Value] = {"nature": "cause", "cause": "driver-mismatch"}
        client = compiled(_API_CLIENT).search(self._text)
        module = compiled(_API_MODULE).search(self._text)
        process = compiled(_API_PROCESS).search(self._text)
        if client:
            fields["client"] = client[1]
        if module:
            fields["kernel"] = module[1]
        if process:
            fields["name"] = process[1]
            pid = parse_pid(process[2])
            if pid is not None:
                fields["pid"] = pid
        line = self._first
        return [Event("kernel.api_mismatch", fields, line.env, line.ref, line.text, lines=self._seen)]


_VERSION = r"(\d+(?:\.\d+)+)"
_API_REST = r"NVRM: +(?:has the version|this kernel module|the version|kernel module)|has the version \d"
_API_CLIENT = r"(?:client has|has) the version " + _VERSION
_API_MODULE = r"kernel module has\s*(?:NVRM: +)?the version " + _VERSION
_API_PROCESS = r"the client '([^']*)' \(pid (\d+)\)"


class _LostAtProbe:
    """The three lines about a GPU that was gone before the driver loaded; they carry no Xid number."""

    __slots__ = ("_first", "_gpu", "_lost", "_seen")

    def __init__(self, line: Line, gpu: str | None) -> None:
        self._first = line
        self._gpu = gpu
        self._lost = _LOST in line.text
        self._seen = 1

    def feed(self, line: Line) -> bool:
        if (
            self._lost
            or self._seen >= 4
            or not ("NVRM: " in line.text or _LOST in line.text or "PCI ID" in line.text)
        ):
            return False
        self._lost = _LOST in line.text
        self._seen += 1
        return True

    def close(self) -> list[Event]:
        if not self._lost:
            return []
        fields: dict[str, Value] = {"nature": "cause", "cause": "gpu-fell-off-bus", "at_probe": True}
        if self._gpu:
            fields["gpu"] = self._gpu
        line = self._first
        return [Event("kernel.gpu_lost", fields, line.env, line.ref, line.text, lines=self._seen)]


_LOST = "fallen off the bus and is not responding to commands"


def _lost_at_probe(m: re.Match[str], line: Line) -> _LostAtProbe:
    return _LostAtProbe(line, pci_address(m[1]) if m.lastindex else None)


BLOCKS: tuple[Block, ...] = (
    # NVRM: API mismatch: the client 'python3' (pid 4411)
    # NVRM: has the version 580.82.07, but this kernel module has
    # NVRM: the version 580.65.06.  Please make sure that this     (570 and newer)
    # NVRM: API mismatch: the client has the version 535.183.01, but
    # NVRM: this kernel module has the version 535.161.08.  Please   (older)
    Block(
        {"kernel.api_mismatch": ("client", "kernel", "name", "pid")},
        "API mismatch: the client",
        r"API mismatch: the client",
        lambda m, line: _ApiMismatch(line),  # noqa: ARG005
    ),
    # NVRM: The NVIDIA GPU 0000:b3:00.0
    # NVRM: (PCI ID: 10de:26b5) installed in this system has
    # NVRM: fallen off the bus and is not responding to commands.
    Block(
        {"kernel.gpu_lost": ("gpu", "at_probe")},
        "NVRM: The NVIDIA GPU ",
        rf"NVRM: The NVIDIA GPU ({_PCI})",
        _lost_at_probe,
    ),
    # The last of the three lines, alone in an excerpt.
    Block(
        {"kernel.gpu_lost": ("gpu", "at_probe")},
        "is not responding to commands",
        r"fallen off the bus and is not responding to commands",
        _lost_at_probe,
    ),
)
