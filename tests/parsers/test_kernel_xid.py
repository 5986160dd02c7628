"""Xid lines in the shapes of drivers from the oldest to the newest, and what their text says."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import events_of, the_event

from ncclscope.knowledge.xid import explain_xid
from ncclscope.parsers import kernel

UNKNOWN = "pid='<unknown>', name=<unknown>, "


def row(line: str, fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A line as drivers print it, and fields that its event must have with these values (None: absent)."""
    return line, fields


ROWS: list[tuple[str, dict[str, Any]]] = [
    # An address that somebody left out of a report.
    row(
        "NVRM: Xid (PCI:...): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (...)",
        {"xid": 145, "gpu": None, "suggests": "nvlink-fabric"},
    ),
    # Recorded on H200 with driver 580: page fault, misaligned access, assert.
    row(
        "NVRM: Xid (PCI:0000:00:07): 31, pid=653, name=python, channel 0x0000001e, intr 00000000. MMU"
        " Fault: ENGINE "
        "GRAPHICS GPC0 GPCCLIENT_T1_8 faulted @ 0x832e_67fca000. Fault is of type FAULT_PDE"
        " ACCESS_TYPE_VIRT_WRITE",
        {
            "xid": 31,
            "gpu": "0000:00:07.0",
            "pid": 653,
            "name": "python",
            "pid_role": "owner",
            "engine": "GRAPHICS",
            "gpc": 0,
            "client": "GPCCLIENT_T1_8",
            "fault_type": "FAULT_PDE",
            "access": "VIRT_WRITE",
            "address": "0x832e_67fca000",
            "nature": "symptom",
            "suggests": "illegal-access-app",
            "cause": None,
        },
    ),
    row(
        "NVRM: Xid (PCI:0000:00:07): 13, Graphics SM Warp Exception on (GPC 0, TPC 4, SM 0): Misaligned"
        " Address",
        {
            "xid": 13,
            "exception": "warp",
            "gpc": 0,
            "tpc": 4,
            "sm": 0,
            "reason": "Misaligned Address",
            "pid": None,
        },
    ),
    row(
        "NVRM: Xid (PCI:0000:02:00): 13, Graphics SM Warp Exception on (GPC 1, TPC 0): Out Of Range Address",
        {"xid": 13, "gpc": 1, "tpc": 0, "sm": None, "reason": "Out Of Range Address"},
    ),
    row(
        f"NVRM: Xid (PCI:0000:43:00): 13, {UNKNOWN}Graphics Exception: ESR 0x52e7b0=0x101000e 0x52e7b4=0x4",
        {"xid": 13, "pid": None, "name": None, "reason": None, "nature": "symptom"},
    ),
    row(
        "NVRM: Xid (PCI:0000:00:07): 43, pid=1719, name=python, channel 0x00000062",
        {"xid": 43, "pid": 1719, "gpu_channel": "00000062", "nature": "symptom", "cause": None},
    ),
    # Poison is a memory error, not an address of the program.
    row(
        "NVRM: Xid (PCI:0000:3b:00): 31, pid=1, name=python3, Ch 00000013, intr 00000000. MMU Fault:"
        " ENGINE CE3 "
        "HUBCLIENT_CE0 faulted @ 0x7f21_a4000000. Fault is of type FAULT_POISONED ACCESS_TYPE_PHYS_READ",
        {"engine": "CE3", "fault_type": "FAULT_POISONED", "suggests": "gpu-hardware-ecc"},
    ),
    # ECC: error, repair, containment.
    row(
        f"NVRM: Xid (PCI:0000:52:00): 48, {UNKNOWN}An uncorrectable double bit error (DBE) has been"
        f" detected on GPU in "
        "the framebuffer at physAddr 0x2a90c440 partition 16, subpartition 3.",
        {
            "xid": 48,
            "nature": "cause",
            "cause": "gpu-hardware-ecc",
            "suggests": None,
            "partition": 16,
            "subpartition": 3,
            "phys_addr": "0x2a90c440",
        },
    ),
    row(
        "NVRM: Xid (PCI:0000:06:00): 48, An uncorrectable double bit error (DBE) has been detected on GPU"
        " in the "
        "framebuffer at partition 4, subpartition 1",
        {"partition": 4, "phys_addr": None},
    ),
    row(
        f"NVRM: Xid (PCI:0000:52:00): 63, {UNKNOWN}Row Remapper: New row (0x000000002a90c440) marked for"
        f" remapping, "
        "reset gpu to activate.",
        {"xid": 63, "nature": "info", "cause": None, "unit": "row", "phys_addr": "0x000000002a90c440"},
    ),
    row(
        "NVRM: Xid (PCI:0000:06:00): 63, Dynamic Page Retirement: New retired page, reload the driver to"
        " activate. "
        "(0x0000000000123456)",
        {"xid": 63, "unit": "page", "nature": "info"},
    ),
    row(
        "NVRM: Xid (PCI:0000:52:00): 64, Row Remapper Error: (0x0000000018f31d80) - All reserved rows for"
        " bank are "
        "remapped",
        {"xid": 64, "cause": "gpu-hardware-ecc", "repair": "All reserved rows for bank are remapped"},
    ),
    row(
        "NVRM: Xid (PCI:0000:52:00): 64, Row Remapper: (0x0000000018f31d80) - Attempting to remap a row"
        " that is already "
        "pending remapping. Remapping will occur when the GPU is reset",
        {"xid": 64, "nature": "symptom", "cause": None, "suggests": "gpu-hardware-ecc"},
    ),
    row(
        "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, name=python3, Contained: CE User Channel "
        "(0x9). RST: No, "
        "D-RST: No",
        {
            "xid": 94,
            "mig": "GPU-I:05",
            "containment": "contained",
            "place": "CE User Channel",
            "reset_needed": False,
            "cause": "gpu-hardware-ecc",
        },
    ),
    row(
        "NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:01): 95, pid=7062, name=python3, Uncontained: LTC TAG "
        "(0x2, 0x1). "
        "RST: Yes, D-RST: No",
        {"mig": "GPU-I:05 GPU-CI:01", "containment": "uncontained", "reset_needed": True},
    ),
    row(
        "NVRM: Xid (PCI:0000:01:00): 94, Contained: FB DED (0x3, 0x1). physAddr: 0x18f31d80 RST: No,"
        " D-RST: Yes",
        {"phys_addr": "0x18f31d80", "drain_reset_needed": True},
    ),
    row(
        "NVRM: Xid (PCI:0000:55:00): 171, GDDR, Uncorrectable DRAM error in FBPA 3 subpartition 0 physAddr"
        " 0xe9b9107e0",
        {"xid": 171, "memory": "DRAM", "cause": "gpu-hardware-ecc"},
    ),
    # Lost from the bus: who touched it is no culprit; pid=0 of old drivers is nobody.
    row(
        "NVRM: Xid (PCI:0000:01:00): 79, pid=7120, name=browser, GPU has fallen off the bus.",
        {"xid": 79, "cause": "gpu-fell-off-bus", "pid": 7120, "pid_role": "asker"},
    ),
    row("NVRM: Xid (PCI:0000:06:00): 79, pid=0, GPU has fallen off the bus.", {"xid": 79, "pid": None}),
    row(
        "NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.",
        {"xid": 79, "body": "GPU has fallen off the bus."},
    ),
    # NVLink 1 to 4.
    row(
        f"NVRM: Xid (PCI:0003:00:00): 74, {UNKNOWN}NVLink: fatal error detected on link 14(0x0, 0x0,"
        f" 0x10000, 0x0, 0x0, "
        "0x0, 0x0)",
        {
            "gpu": "0003:00:00.0",
            "link": 14,
            "words": (0, 0, 0x10000, 0, 0, 0, 0),
            "cause": "nvlink-fabric",
            "findings": ("diagnose_if_repeated",),
        },
    ),
    row(
        "NVRM: Xid (PCI:0003:00:00): 74, NVLink: fatal error detected on link 2(0x0, 0x0, 0x0, 0x0,"
        " 0x100000, 0x0, 0x0)",
        {"findings": ("corrected",), "nature": "symptom", "cause": None},
    ),
    row(
        "NVRM: Xid (PCI:0000:5e:00): 74, NVLink: Failed to train link 3 to remote PCI:0000:86:00",
        {"link": 3, "peer_gpu": "0000:86:00.0", "cause": "nvlink-fabric"},
    ),
    row(
        "NVRM: Xid (PCI:0000:5e:00): 137, RLW_RXPIPE interrupt hit on link 11 on GPU0: PRIV Error",
        {"link": 11, "nature": "symptom", "suggests": "nvlink-fabric"},
    ),
    # NVLink 5: the word in the line decides, an injected event is a test.
    row(
        "NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000"
        " 0x00000000 "
        "0x00000000 0x00000000 0x00000000)",
        {
            "fatal": True,
            "link": 8,
            "subcode": 4,
            "action": "reset_gpu",
            "look_at": "link",
            "cause": "nvlink-fabric",
            "severity": "critical",
            "suggests": None,
        },
    ),
    row(
        "NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 03 (0x02100011 0x00000000"
        " 0x00000000)",
        {"subcode": 33, "look_at": "peer"},
    ),
    row(
        "NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 03 (0x00f00011 0x00000000"
        " 0x00000000)",
        {"subcode": 15, "look_at": "software"},
    ),
    row(
        "NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_DOWN Fatal XC0 i0 Link 03 (0x02800011 0x00000000"
        " 0x00000000)",
        {"subcode": 40, "look_at": "host"},
    ),
    row(
        "NVRM: Xid (PCI:0000:04:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 12 (0x040988e2 0x00000008"
        " 0x00000000)",
        {
            "fatal": False,
            "contained": True,
            "nature": "symptom",
            "cause": None,
            "suggests": "nvlink-fabric",
            "effects_local": ("app_killed_xid45", "contained_to_app"),
        },
    ),
    row(
        "NVRM: Xid (PCI:0000:04:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 00 (0x00000006 0x00000001"
        " 0x00000000)",
        {"action": "ignore", "if_repeated": "reset_gpu"},
    ),
    row(
        "NVRM: Xid (PCI:0000:04:00): 150, MSE_WATCHDOG Fatal XC0 i0 Link -1 (0x00000000 0x00000000)",
        {"link": None, "fatal": True, "cause": "nvlink-fabric"},
    ),
    row(
        "NVRM: Xid (PCI:0000:04:00): 144, SAW_MVB Fatal XC0 i1 Link 00 (0x00000001 0x00000002 0x00000000)",
        {"injected": True, "nature": "noise", "cause": None},
    ),
    row(
        "NVRM: Xid (PCI:0008:01:00): 155, NVLINK_SW_DEFINED_ERROR  Fatal   XC0 i0 Link 05 : Link Down"
        " While Active.",
        {"link": 5, "fatal": True, "cause": "nvlink-fabric"},
    ),
    # Firmware: the process named was only asking.
    row(
        "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for"
        " RPC response "
        "from GPU4 GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4).",
        {
            "waited_s": 6,
            "gpu_index": 4,
            "function": "GSP_RM_ALLOC",
            "pid_role": "asker",
            "cause": "gpu-hang",
            "sequence": None,
        },
    ),
    row(
        "NVRM: Xid (PCI:0000:9b:00): 119, Timeout after 45s of waiting for RPC response from GPU0 GSP!"
        " Expected function "
        "76 (GSP_RM_CONTROL) sequence 1234 (0x20800a4c 0x4).",
        {"waited_s": 45, "sequence": 1234},
    ),
    row(
        "NVRM: Xid (PCI:0000:9b:00): 119, Timeout waiting for RPC from GSP!",
        {"cause": "gpu-hang", "waited_s": None},
    ),
    row(
        "NVRM: Xid (PCI:0000:9b:00): 109, pid=4, name=python3, Ch 00000008, errorString CTX SWITCH"
        " TIMEOUT, Info 0x58005",
        {"gpu_channel": "00000008", "cause": "gpu-hang"},
    ),
    # Consequences and instructions.
    row(
        "NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149",
        {
            "prev_xid": 149,
            "nature": "consequence",
            "body": "Ch 00000001",
            "gpu_channel": "00000001",
            "pid": 1818990,
        },
    ),
    row(
        "NVRM: Xid (PCI:0000:dc:00): 48, Ch 00000009 caused by previous Xid 48",
        {"nature": "consequence", "cause": None},
    ),
    row(
        "NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset"
        " Required)",
        {
            "recovery_action": "GPU Reset Required",
            "recovery_code": 1,
            "recovery_step": "reset this GPU",
            "nature": "consequence",
            "cause": None,
        },
    ),
    row(
        "NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x9"
        " (New Word)",
        {"recovery_action": "New Word", "recovery_before": "GPU Reset Required", "recovery_step": None},
    ),
    # Shapes of old drivers, other prefixes, and a number that no list holds.
    row(
        "NVRM: Xid (0000:03:00): 14, Channel 00000001", {"xid": 14, "gpu": "0000:03:00.0", "nature": "noise"}
    ),
    row(
        "NVRM: Xid (PCI:0000:3B:00): 31, Ch 00000010, engmask 00000101, intr 10000000",
        {"gpu": "0000:3b:00.0"},
    ),
    row("[ 9.1] NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.", {"xid": 79}),
    row("Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.", {"xid": 79}),
    row("NVRM: Xid (PCI:0000:06:00): 963, something new", {"xid": 963, "class": None, "nature": "symptom"}),
    # A name may hold a colon or spaces; two reports may be glued.
    row(
        "NVRM: Xid (PCI:0000:06:00): 43, pid=9, name=ray::Train run, Ch 00000010", {"name": "ray::Train run"}
    ),
    row(
        "NVRM: Xid (PCI:0000:06:00): 43, pid=9, name=py, Ch 00000010NVRM: GPU 0000:06:00.0: GPU has fallen"
        " off the bus.",
        {"xid": 43, "body": "Ch 00000010"},
    ),
    # Cut in the middle.
    row(
        "NVRM: Xid (PCI:0000:00:07): 31, pid=653, name=python, channel 0x0000001e, intr 00000000. MMU Fau",
        {"xid": 31},
    ),
    row("NVRM: Xid (PCI:0000:00:07): 79", {"xid": 79, "body": "", "cause": "gpu-fell-off-bus"}),
    row(
        "NVRM: Xid (PCI:0000:00:07): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Lin",
        {"xid": 149, "nature": "symptom"},
    ),
]


@pytest.mark.parametrize(("line", "fields"), ROWS)
def test_a_line_gives_its_fields(line: str, fields: dict[str, Any]) -> None:
    event = the_event(kernel, "kernel.xid", line)
    assert {name: event.get(name) for name in fields} == fields


@pytest.mark.parametrize("number", range(1, 177))
def test_every_number_carries_what_the_table_says(number: int) -> None:
    """Without a text the event's class, blame, nature and cause are those of the number."""
    event = the_event(kernel, "kernel.xid", f"NVRM: Xid (PCI:0000:1b:00): {number}, ")
    entry = explain_xid(number)
    assert entry is not None
    assert event.get("class") == entry.group
    assert event.get("blame") == entry.blame
    assert event.get("severity") == entry.severity
    assert event.get("nature") == entry.nature
    assert event.get("cause") == entry.cause


@pytest.mark.parametrize(
    "line",
    [
        "",
        "NVRM: Xid (",
        "NVRM: Xid (PCI:0000:00:07):",
        "NVRM: Xid (PCI:0000:00:07): none",
        "NVRM: Xid (PCI:zz): 79, GPU has fallen off the bus.",
        "step 3: handled Xid 79 in the test table",
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error",
    ],
)
def test_neighbours_are_no_xid(line: str) -> None:
    assert not [event for event in events_of(kernel, line) if event.kind == "kernel.xid"]


def test_a_burst_folds_by_number_and_gpu() -> None:
    """Lines of one crash share xid and gpu whatever their text says, so that they can be counted as one"
    " finding."""
    text = "\n".join(
        [
            (
                "NVRM: Xid (PCI:0000:00:07): 13, Graphics SM Warp Exception on (GPC 0, TPC 4, SM 0):"
                " Misaligned Address"
            ),
            "NVRM: Xid (PCI:0000:00:07): 13, Graphics Exception: ESR 0x509730=0x501000f 0x509734=0x0",
            "NVRM: Xid (PCI:0000:00:07): 13, pid=1279, name=python, Graphics Exception: channel 0x00000057",
        ]
    )
    events = events_of(kernel, text)
    assert [(e.get("xid"), e.get("gpu")) for e in events] == [(13, "0000:00:07.0")] * 3
