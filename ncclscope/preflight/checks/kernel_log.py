"""Recent Xids in the kernel's message buffer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncclscope.preflight.model import CheckResult, Evidence, NextStep, Subject

if TYPE_CHECKING:
    from ncclscope.preflight.node import Node

XID = Subject("xid", "Hardware Xids in the kernel log", "gpu-hardware-ecc")

_RECENT_SECONDS = 24 * 3600

# Numbers that speak of the GPU or its links, by what NVIDIA's catalogue asks for: a reset, reboot or
# replacement makes the node unfit, the others are worth a look. Xids of programs (13, 31, 43, 45, ...) say
# nothing of the node.
_UNFIT = {
    **dict.fromkeys((48, 57, 64, 95, 140, 157, 168, 171, 172), "gpu-hardware-ecc"),
    **dict.fromkeys((79, 167, 173), "gpu-fell-off-bus"),
    **dict.fromkeys((46, 62, 110, 119, 120, 143, 158, 169, 175), "gpu-hang"),
    **dict.fromkeys((136, 155, 166, 170), "nvlink-fabric"),
    54: "gpu-thermal-power",
}
_WORTH_A_LOOK = {
    **dict.fromkeys((63, 92, 94, 156, 160, 161), "gpu-hardware-ecc"),
    **dict.fromkeys((74, 137, 144, 145, 146, 147, 148, 149, 150), "nvlink-fabric"),
    109: "gpu-hang",
}

# One record of /dev/kmsg, kernel 5.15, driver 535:
# "4,1234,98765432,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off..."
_RECORD = re.compile(r"^\d+,\d+,(\d+),[^;]*;NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+), ?(.*)$", re.MULTILINE)
# Driver 570:
# "NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
_RECOVERY = re.compile(r"recovery action changed from .* to 0x\w+ \((.*)\)")


@dataclass(frozen=True, slots=True)
class _Event:
    seconds: float
    address: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"Xid {self.number} on {self.address}: {self.text}"


def xid(node: Node) -> CheckResult:
    """Hardware Xids of the last day. A recovery action that went back to None clears a GPU.

    Those of GPUs that are not visible here, another container's for instance, only warn.
    """
    log = node.kernel_log()
    read = NextStep("Read the Xids on the host.", "dmesg -T | grep -E 'NVRM: Xid'", "read_only")
    if isinstance(log, OSError):
        return XID.not_checked(
            f"/dev/kmsg cannot be read here ({log.strerror}); a container rarely may", read
        )
    uptime = (node.read("/proc/uptime") or "").split()
    now = float(uptime[0]) if uptime else None
    standing: dict[str, list[_Event]] = {}
    for match in _RECORD.finditer(log):
        event = _Event(
            int(match.group(1)) / 1e6, match.group(2).lower(), int(match.group(3)), match.group(4).strip()
        )
        if now is not None and now - event.seconds > _RECENT_SECONDS:
            continue
        recovery = _RECOVERY.search(event.text) if event.number == 154 else None
        if recovery and recovery.group(1).lower() == "none":
            standing.pop(event.address, None)
        elif recovery or event.number in _UNFIT or event.number in _WORTH_A_LOOK:
            standing.setdefault(event.address, []).append(event)
    events = [event for group in standing.values() for event in group]
    if not events:
        return XID.passed("The kernel log holds no Xid of the hardware from the last day.")
    here = [gpu.pci for gpu in node.gpus().gpus]
    worst = max(events, key=lambda event: (_unfit(event, here), event.seconds))
    unfit = _unfit(worst, here)
    category = _UNFIT.get(worst.number) or _WORTH_A_LOOK.get(worst.number) or XID.category
    shown = "; ".join(dict.fromkeys(map(str, (worst, *events[-2:]))))
    say = XID.failed if unfit else XID.warned
    advice = "Drain the node and reset the GPU." if unfit else "Look whether it repeats."
    explain = NextStep("See what the Xid means.", f"ncclscope explain xid {worst.number}", "read_only")
    return say(
        f"{len(events)} in the last day: {shown}. {advice}",
        explain,
        *(Evidence("/dev/kmsg", str(event)) for event in events[-8:]),
        category=category,
    )


def _unfit(event: _Event, here: list[str]) -> bool:
    """Whether an event makes one of these GPUs unfit; with no GPU visible any GPU's does."""
    mine = not here or any(address.startswith(event.address) for address in here)
    return mine and (event.number in _UNFIT or event.number == 154)
