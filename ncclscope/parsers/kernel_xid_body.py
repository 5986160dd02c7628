"""What the text behind an Xid number says, for the numbers whose text has a form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.model import Value
from ncclscope.parsers.kernel_pcie import pci_address
from ncclscope.parsers.pattern import compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["DECODERS", "RECOVERY_STEPS", "Fields"]

# The event's fields so far; a decoder adds what it reads and may correct nature, cause and suggests.
Fields = dict[str, Value]

_WARP = r"SM (Warp|Global) Exception on \(GPC (\d+), TPC (\d+)(?:, SM (\d+))?\): ([^\n]+)"


def _graphics(body: str, fields: Fields) -> None:
    m = compiled(_WARP).search(body)
    if m is None:
        return
    fields |= {"exception": m[1].lower(), "gpc": int(m[2]), "tpc": int(m[3]), "reason": m[5].strip()}
    if m[4]:
        fields["sm"] = int(m[4])


_FAULT = (
    r"ENGINE (?P<engine>\S+) (?:GPC(?P<gpc>\d+) )?(?P<client>\S+) faulted @ (?P<address>0x[0-9a-fA-F_]+)"
    r"(?:\. Fault is of type (?P<fault>FAULT_\w+)(?: ACCESS_TYPE_(?P<access>\w+))?)?"
)


def _page_fault(body: str, fields: Fields) -> None:
    m = compiled(_FAULT).search(body)
    if m is None:
        return
    fields |= {"engine": m["engine"], "client": m["client"], "address": m["address"]}
    if m["gpc"]:
        fields["gpc"] = int(m["gpc"])
    if m["fault"]:
        fields["fault_type"] = m["fault"]
        # Poison is data from an uncorrectable memory error, not an address of the program.
        if m["fault"] == "FAULT_POISONED":
            fields["suggests"] = "gpu-hardware-ecc"
    if m["access"]:
        fields["access"] = m["access"]


_CHANNEL = r"\b(?:Ch|channel) (?:0x)?([0-9a-fA-F]{8})\b"


def _channel(body: str, fields: Fields) -> None:
    m = compiled(_CHANNEL).search(body)
    if m:
        fields["gpu_channel"] = m[1].lower()


_DOUBLE_BIT = r"(?:physAddr (0x[0-9a-fA-F]+) )?partition (\d+), subpartition (\d+)"


def _double_bit(body: str, fields: Fields) -> None:
    m = compiled(_DOUBLE_BIT).search(body)
    if m:
        fields |= {"partition": int(m[2]), "subpartition": int(m[3])}
        if m[1]:
            fields["phys_addr"] = m[1].lower()
    # One line per channel that the error took down follows the report itself.
    elif compiled(_CHANNEL).match(body):
        _channel(body, fields)


_REPAIR = (
    r"(?P<unit>Row|Bank) Remapper(?: Error)?: (?:New \w+ )?(?:\((?P<address>0x[0-9a-fA-F]+)\))?(?: -"
    r" )?(?P<text>.*)"
    r"|Dynamic Page Retirement: (?P<page>.+)|DRAM Retirement failed due to (?P<dram>.+)"
)


def _repair(body: str, fields: Fields) -> None:
    m = compiled(_REPAIR).search(body)
    if m is None:
        return
    fields["unit"] = m["unit"].lower() if m["unit"] else ("page" if m["page"] else "row")
    fields["repair"] = (m["text"] or m["page"] or m["dram"] or "").strip()
    if m["address"]:
        fields["phys_addr"] = m["address"].lower()
    # Harmless: the row already waits for the next reset.
    if "already pending" in body:
        fields |= {"nature": "symptom", "suggests": "gpu-hardware-ecc"}


_CONTAINMENT = (
    r"(?P<kind>Contained|Uncontained): (?P<place>[A-Za-z][A-Za-z0-9 ]*?)(?: \([^)]*\))?\."
    r"(?: physAddr: (?P<address>0x[0-9a-fA-F]+))?(?: RST: (?P<rst>Yes|No), D-RST: (?P<drst>Yes|No))?"
)


def _containment(body: str, fields: Fields) -> None:
    m = compiled(_CONTAINMENT).search(body)
    if m is None:
        return
    fields |= {"containment": m["kind"].lower(), "place": m["place"]}
    if m["address"]:
        fields["phys_addr"] = m["address"].lower()
    if m["rst"]:
        fields |= {"reset_needed": m["rst"] == "Yes", "drain_reset_needed": m["drst"] == "Yes"}


_MEMORY = r"Uncorrectable (DRAM|SRAM) error"


def _memory(body: str, fields: Fields) -> None:
    m = compiled(_MEMORY).search(body)
    if m:
        fields["memory"] = m[1]


_LINK = r"\blinks? (?P<link>\d+|0x[0-9a-fA-F]+) ?\((?P<words>0x[0-9a-fA-F, x]+)\)"
_LINK_ONLY = r"\blink (\d+)"
_REMOTE = r"to remote PCI:([0-9a-fA-F:.]+)"


def _nvlink(body: str, fields: Fields) -> None:
    from ncclscope.knowledge.xid import xid74_findings

    m = compiled(_LINK).search(body)
    link = m["link"] if m else None
    if m:
        words = _words(m["words"].replace(",", " "))
        fields["words"] = words
        if fields["xid"] == 74:
            findings = xid74_findings(words)
            if findings:
                fields["findings"] = findings
            # All bits set say that something else broke the link, or that a counter passed a
            # limit without loss.
            if findings == ("corrected",):
                fields |= {"nature": "symptom", "suggests": "nvlink-fabric"}
    else:
        only = compiled(_LINK_ONLY).search(body)
        link = only[1] if only else None
    if link is not None:
        fields["link"] = int(link, 0)
    remote = compiled(_REMOTE).search(body)
    if remote:
        peer = pci_address(remote[1])
        if peer:
            fields["peer_gpu"] = peer


_NVLINK5 = (
    r"(?P<unit>[A-Z][A-Za-z0-9_/]*)\s+(?P<severity>Fatal|Nonfatal)\s+XC(?P<xc>\d)\s+i(?P<injected>\d)\s+"
    r"Link\s+(?P<link>-?\d+)(?:\s+\((?P<words>0x[0-9a-fA-F]+(?: 0x[0-9a-fA-F]+)*)\))?"
)


def _nvlink5(body: str, fields: Fields) -> None:
    from ncclscope.knowledge.xid import nvlink5_rule

    m = compiled(_NVLINK5).search(body)
    if m is None:
        return
    fatal = m["severity"] == "Fatal"
    fields |= {"unit": m["unit"], "fatal": fatal, "contained": m["xc"] == "1"}
    fields["severity"] = "critical" if fatal else "warning"
    if m["link"] != "-1":
        fields["link"] = int(m["link"])
    words = _words(m["words"] or "")
    number = fields["xid"]
    rule = nvlink5_rule(number, m["unit"], words) if isinstance(number, int) else None
    if words:
        fields |= {"words": words, "subcode": words[0] >> 20 & 0x3F}
    if rule is not None:
        fields |= {
            "action": rule.immediate,
            "investigate": rule.investigate,
            "origin": rule.origin,
            "effects_local": rule.local,
            "effects_remote": rule.remote,
        }
        if rule.if_repeated:
            fields["if_repeated"] = rule.if_repeated
        if rule.investigate == "investigate_peer_device":
            fields["look_at"] = "peer"
        elif "link_si" in rule.investigate and "sw_user" not in rule.investigate:
            fields["look_at"] = "link"
        elif "host" in rule.investigate:
            fields["look_at"] = "host"
        elif "sw" in rule.investigate:
            fields["look_at"] = "software"
    if m["injected"] == "1":
        fields |= {"nature": "noise", "injected": True}
    elif fatal:
        fields |= {"nature": "cause", "cause": "nvlink-fabric"}
    elif number == 155:
        fields["nature"] = "symptom"


_RPC = (
    r"Timeout (?:after (?P<seconds>\d+)s of )?waiting for RPC (?:response )?from (?:GPU(?P<index>\d+) )?GSP"
    r"(?:! Expected function (?P<function>\d+) \((?P<name>[^)]*)\)(?: sequence (?P<sequence>\d+))?)?"
)


def _rpc(body: str, fields: Fields) -> None:
    m = compiled(_RPC).search(body)
    if m is None:
        return
    if m["name"]:
        fields["function"] = m["name"]
    for group, name in (("seconds", "waited_s"), ("index", "gpu_index"), ("sequence", "sequence")):
        if m[group]:
            fields[name] = int(m[group])


_RECOVERY = r"from 0x[0-9a-fA-F]+ \((?P<old>[^)]*)\) to (?P<code>0x[0-9a-fA-F]+) \((?P<new>[^)]*)\)"
# What the driver's words ask for; the texts are those of drivers 565 to 595.
RECOVERY_STEPS: Mapping[str, str] = {
    "None": "nothing",
    "GPU Reset Required": "reset this GPU",
    "Node Reboot Required": "reboot the node",
    "Drain P2P": "end the programs that use peer-to-peer on this GPU: its NVLink side is not trusted",
    "Drain and Reset": "let the jobs on it end, then reset it",
    "Recover IMEX Domain": "recover the multi-node NVLink memory service",
}


def _recovery(body: str, fields: Fields) -> None:
    m = compiled(_RECOVERY).search(body)
    if m is None:
        return
    fields |= {"recovery_before": m["old"], "recovery_action": m["new"], "recovery_code": int(m["code"], 16)}
    step = RECOVERY_STEPS.get(m["new"])
    if step:
        fields["recovery_step"] = step


def _words(text: str) -> tuple[int, ...]:
    return tuple(int(word, 16) for word in text.split())


DECODERS: Mapping[int, Callable[[str, Fields], None]] = {
    13: _graphics,
    31: _page_fault,
    43: _channel,
    45: _channel,
    48: _double_bit,
    63: _repair,
    64: _repair,
    74: _nvlink,
    94: _containment,
    95: _containment,
    108: _page_fault,
    109: _channel,
    119: _rpc,
    136: _nvlink,
    137: _nvlink,
    **dict.fromkeys(range(144, 151), _nvlink5),
    154: _recovery,
    155: _nvlink5,
    171: _memory,
    172: _memory,
}
