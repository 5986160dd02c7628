"""Xid lines: the shapes that drivers print, and what the text behind the number says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.kernel_pcie import pci_address
from ncclscope.parsers.kernel_xid_body import DECODERS, Fields
from ncclscope.parsers.pattern import Pattern, compiled, parse_pid

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]


def _xid(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:  # noqa: ARG001
    from ncclscope.knowledge.xid import explain_xid

    number = int(m[3])
    gpu = pci_address(m[1])
    if gpu is None and m[1] != "...":
        return None
    fields: Fields = {"xid": number, "gpu": gpu} if gpu else {"xid": number}
    body = _process(m[4], fields)
    if m[2]:
        fields["mig"] = m[2].strip()
    previous = compiled(_PREVIOUS).search(body)
    if previous:
        fields["prev_xid"] = int(previous[1])
        body = body[: previous.start()]
    fields["body"] = body.strip()
    entry = explain_xid(number)
    if entry is not None:
        fields |= {
            "title": entry.title,
            "class": entry.group,
            "severity": entry.severity,
            "blame": entry.blame,
            "nature": entry.nature,
        }
        if entry.cause:
            fields["cause"] = entry.cause
        if entry.suggests:
            fields["suggests"] = entry.suggests
    decode = DECODERS.get(number)
    if decode is not None:
        decode(body, fields)
    if previous:
        fields["nature"] = "consequence"
        first = explain_xid(int(previous[1]))
        if first is not None and (cause := first.cause or first.suggests):
            fields["suggests"] = cause
    # One of the two at most: the line names a cause, or it points to one.
    fields.pop("suggests" if fields.get("nature") == "cause" else "cause", None)
    return fields


# R4xx prints pid only; 515 to 565 pid and name always, as `pid='<unknown>', name=<unknown>` when no
# channel is known;
# 570 and newer leave unknown ones out. A name can hold ":" or spaces.
_PROCESS = r"\s*,?\s*pid=(?P<pid>'?<[^>]*>'?|\d+)(?:, name=(?P<name>[^,]*))?(?:,|$)"
_PREVIOUS = r" ?caused by previous Xid (\d+)"
# Two reports can be glued when a writer lost its newline.
_GLUED = r"(?:\[ *\d+\.\d+\] ?)?NVRM: "


def _process(rest: str, fields: Fields) -> str:
    """Takes pid and name off the text behind the number; returns the body."""
    glued = compiled(_GLUED).search(rest)
    if glued:
        rest = rest[: glued.start()]
    m = compiled(_PROCESS).match(rest)
    if m is None:
        return rest.lstrip(", ")
    pid = parse_pid(m["pid"])
    if pid:  # pid=0 stands for "none" in old drivers
        fields["pid"] = pid
        # 119 names who asked the firmware (often nvidia-smi), and who touched a lost GPU is no
        # culprit either.
        fields["pid_role"] = "asker" if fields["xid"] in (79, 119, 120) else "owner"
    name = m["name"]
    if name and not name.startswith("<"):
        fields["name"] = name
    return rest[m.end() :].lstrip()


_ADDED: tuple[str, ...] = (
    "xid",
    "gpu",
    "pid",
    "pid_role",
    "name",
    "body",
    "mig",
    "prev_xid",
    "title",
    "class",
    "severity",
    "blame",
    "suggests",
    "exception",
    "reason",
    "gpc",
    "tpc",
    "sm",
    "engine",
    "client",
    "address",
    "fault_type",
    "access",
    "gpu_channel",
    "phys_addr",
    "partition",
    "subpartition",
    "unit",
    "repair",
    "containment",
    "place",
    "reset_needed",
    "drain_reset_needed",
    "memory",
    "link",
    "words",
    "findings",
    "peer_gpu",
    "fatal",
    "contained",
    "subcode",
    "action",
    "investigate",
    "origin",
    "effects_local",
    "effects_remote",
    "if_repeated",
    "look_at",
    "injected",
    "function",
    "waited_s",
    "gpu_index",
    "sequence",
    "recovery_before",
    "recovery_action",
    "recovery_code",
    "recovery_step",
)

PATTERNS: tuple[Pattern, ...] = (
    # NVRM: Xid (PCI:0000:00:07): 31, pid=653, name=python, channel 0x0000001e, intr 00000000. MMU
    # Fault: ...  (580)
    # NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
    # (515 to 565)
    # NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, name=python3, Contained: CE User Channel
    # (0x9). RST: No ...
    # NVRM: Xid (0000:03:00): 14, Channel 00000001  (very old)
    # NVRM: Xid (PCI:...): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (...)   as people shorten it
    Pattern(
        "kernel.xid",
        "Xid (",
        r"(?<![A-Za-z])Xid \((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?|\.{3})"
        r"((?: GPU-I:\d+)?(?: GPU-CI:\d+)?)\): (\d{1,4})\b([^\n]*)",
        nature="symptom",
        refine=_xid,
        adds=_ADDED,
    ),
)
