"""What is known about Xid and SXid numbers: meaning, who to blame, whose action, where vendors disagree.

The tables are data files beside this module, read when the first number is asked for; importing costs
nothing. Sources: NVIDIA's Xid catalogue and driver headers (515 to 595) for numbers, names and actions;
NVIDIA's Fabric Manager guide for SXids; public reports for companions and disagreements. Meanings are in
our words.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "NvlinkRule",
    "SxidEntry",
    "XidEntry",
    "explain_sxid",
    "explain_xid",
    "nvlink5_rule",
    "xid74_findings",
]


class XidEntry(msgspec.Struct, frozen=True):
    """One Xid number.

    group is "application", "driver", "hardware", "thermal", "bus", "nvlink", "memory", "firmware" or
    "info"; severity "info", "warning", "error" or "critical"; blame lists "program", "driver", "hardware",
    "PCIe" or "fabric", the likeliest first. nature and cause are those of events
    (`ncclscope.parsers.pattern.Pattern`): cause is set only where the number alone names a cause class,
    suggests where it merely points to one. action is what to do and action_source whose list says so;
    disagreements say where lists or practice differ. next_check is a read-only command. since is the first
    driver version whose header is known to hold the number ("" when unknown).
    """

    number: int
    mnemonic: str
    title: str
    meaning: str
    group: str
    severity: str
    blame: tuple[str, ...]
    nature: str
    action: str
    action_source: str
    next_check: str
    cause: str | None = None
    suggests: str | None = None
    disagreements: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()
    since: str = ""
    used: bool = True  # False: no current GPU prints it


class SxidEntry(msgspec.Struct, frozen=True):
    """One number of the NVSwitch driver.

    reach is how far the error goes by NVIDIA's lists: "none" (not fatal), "port" (what crosses that port
    stops), "fabric" (the whole machine stops) or "unlisted" (trust the line's own word).
    """

    number: int
    title: str
    meaning: str
    unit: str
    reach: str
    action: str
    action_source: str
    next_check: str


class NvlinkRule(msgspec.Struct, frozen=True):
    """What NVIDIA's table of NVLink 5 events says about one event's register words.

    immediate and investigate are action ids such as "reset_gpu", "ignore" or "investigate_peer_device";
    local and remote name effects on this GPU and on its link partners.
    """

    unit: str
    subcode: int
    immediate: str
    investigate: str
    severity: str
    origin: str
    local: tuple[str, ...]
    remote: tuple[str, ...]
    if_repeated: str | None


def explain_xid(number: int) -> XidEntry | None:
    """The entry of an Xid number, None for numbers that no list holds."""
    raw = _xids().get(number)
    if raw is None:
        return None
    return XidEntry(
        number=number,
        mnemonic=raw["mnemonic"],
        title=raw["title"],
        meaning=raw["meaning"],
        group=raw["class"],
        severity=raw["severity"],
        blame=tuple(raw["blame"]),
        nature=raw["nature"],
        action=raw["action"],
        action_source=raw["action_source"],
        next_check=raw["next_check"],
        cause=raw.get("cause"),
        suggests=raw.get("suggests"),
        disagreements=tuple(raw.get("disagreements", ())),
        companions=tuple(raw.get("companions", ())),
        notes=tuple(raw.get("notes", ())),
        other_names=tuple(raw.get("other_names", ())),
        since=raw.get("since", ""),
        used=not raw.get("unused", False),
    )


def explain_sxid(number: int) -> SxidEntry | None:
    """The entry of an SXid number; a number that is not listed gets the meaning of its range, None"
    " outside all."""
    data = _load("xid_sxid.json")
    area = next((a for a in data["ranges"] if a["from"] <= number <= a["to"]), None)
    if area is None:
        return None
    raw = {
        "title": f"{area['unit']} event",
        "reach": "unlisted",
        **area,
        **data["numbers"].get(str(number), {}),
    }
    return SxidEntry(
        number=number,
        title=raw["title"],
        meaning=raw["meaning"],
        unit=raw["unit"],
        reach=raw["reach"],
        action=data["actions"][raw["reach"]],
        action_source=data["action_source"],
        next_check=data["next_check"],
    )


def nvlink5_rule(xid: int, unit: str, words: tuple[int, ...]) -> NvlinkRule | None:
    """The rule of NVIDIA's table that fits an NVLink 5 event (Xid 144 to 150), None when none does.

    words are the hexadecimal words of the line. Drivers before 575 number the units in another way than
    later ones; both are tried, and the unit that the line names decides, because a value can fit in both.
    """
    if not words:
        return None
    info, status = words[0], words[1] if len(words) > 1 else 0
    best: tuple[int, dict[str, Any]] | None = None
    for rule in _nvlink_rules():
        if rule["xid"] != xid or not _unit_fits(rule, info):
            continue
        exact = rule["status_bits"] == status
        if not exact and not rule["status_bits"] & status:
            continue
        rank = 2 * (unit in rule["unit"].split("/") or unit == rule["unit"]) + exact
        if best is None or rank > best[0]:
            best = rank, rule
    if best is None or best[0] < 1:
        return None
    rule = best[1]
    return NvlinkRule(
        unit=rule["unit"],
        subcode=info >> 20 & 0x3F,
        immediate=rule["immediate"],
        investigate=rule["investigate"],
        severity=rule["severity"],
        origin=rule["origin"],
        local=tuple(rule["local"]),
        remote=tuple(rule["remote"]),
        if_repeated=rule["if_repeated"],
    )


def xid74_findings(words: tuple[int, ...]) -> tuple[str, ...]:
    """What the seven register words of an Xid 74 line say, each finding once, in the order of the words.

    "ecc_parity" (hardware when the same link repeats), "secondary" (another Xid or SXid is the cause),
    "marginal_signal" (reseat, check the connector), "possible_hardware", "report_if_repeated",
    "diagnose_if_repeated", "unexpected" and "corrected" (a threshold was passed, no data lost).
    """
    found: list[str] = []
    for index, finding, bits in _XID74_BITS:
        word = words[index] if index < len(words) else 0
        if finding not in found and any(word >> bit & 1 for bit in bits):
            found.append(finding)
    return tuple(found)


# NVIDIA's debug guide for Xid 74 names bits of the words 1, 3, 4 and 5 (from 1); the others carry no meaning.
_XID74_BITS: tuple[tuple[int, str, tuple[int, ...]], ...] = (
    (0, "secondary", (1, 20)),
    (0, "ecc_parity", (4, 5)),
    (0, "possible_hardware", (8, 9, 12, 16, 17, 24, 28)),
    (0, "marginal_signal", (21, 22)),
    (0, "report_if_repeated", (27, 29)),
    (2, "ecc_parity", (0, 1, 2, 6)),
    (2, "unexpected", (13,)),
    (2, "diagnose_if_repeated", (16, 19)),
    (2, "report_if_repeated", (17, 18)),
    (3, "secondary", (16, 17, 18)),
    (4, "ecc_parity", (18, 19, 21, 22, 24, 25, 27, 28)),
    (4, "corrected", (20, 23, 26, 29)),
)


def _unit_fits(rule: Mapping[str, Any], info: int) -> bool:
    return any(info & int(rule[f"{v}_mask"], 16) == int(rule[f"{v}_value"], 16) for v in ("v1", "v2"))


@lru_cache(maxsize=1)
def _xids() -> dict[int, dict[str, Any]]:
    return {raw["xid"]: raw for raw in _load("xid_entries.json")}


@lru_cache(maxsize=1)
def _nvlink_rules() -> list[dict[str, Any]]:
    data = _load("xid_nvlink5.json")
    rules = [dict(zip(data["columns"], row, strict=True)) for row in data["rules"]]
    for rule in rules:
        rule["status_bits"] = int(rule["status"], 16)
    return rules


@lru_cache(maxsize=4)
def _load(name: str) -> Any:
    # Not importlib.resources: its import costs more than reading the file.
    from pathlib import Path

    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
