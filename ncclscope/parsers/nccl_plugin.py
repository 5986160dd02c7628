"""NCCL's plug-ins: which were found, which failed, and the lines of the libfabric plug-in (aws-ofi-nccl)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.lazy import lazy
from ncclscope.parsers.nccl_common import unless_probe
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

# What a `<KIND>/Plugin: ...` line says, in the order to try. The group `name` is a library or plug-in name.
_OUTCOMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("absent", lazy(r"(?:Could not find: ?|No plugin found \()(?P<name>[^\s,()]+?)[.)]*(?:\s|$)")),
    ("absent", lazy(r"No plugin found")),
    ("load_failed", lazy(r"[Pp]lugin load (?:\((?P<name>[^)]+)\) )?returned \d+ : (?P<reason>[^\n]+)")),
    (
        "symbol_missing",
        lazy(r"[Ff]ailed to find (?P<name>\w+)(?P<oldest> symbol \([^)]*\))?"),
    ),
    (
        "load_failed",  # the linker's words, after the plug-in's name from 2.28.3 on
        lazy(r"^(?:(?P<name>[^\s:]+): )?(?P<reason>[^\s:]+: (?:cannot open shared|undefined symbol|version `)[^\n]*)"),
    ),
    ("init_failed", lazy(r"Failed to initialize (?:plugin|any|NET plugin)? ?(?P<name>[\w.-]+)?")),
    ("load_failed", lazy(r"Failed to load external plugin (?P<name>[^\s,]+)")),
    (
        "loaded",
        lazy(r"(?:[Ll]oaded|Using|external) (?:\w+ )?plugin (?P<name>[^\n(]+?)(?= \(v\d|[,.]?\s*$)"),
    ),
    ("loaded", lazy(r"[Ll]oaded (?P<name>\S+)")),
    ("loaded", lazy(r"Using (?P<name>\S+) \(v\d+\)")),
)


def _plugin(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    text = m["text"].strip()
    for outcome, pattern in _OUTCOMES:
        found = pattern.search(text)
        if found is not None:
            groups = found.groupdict()
            fields: dict[str, Value] = {"outcome": outcome}
            fields |= {name: groups[name] for name in ("name", "reason") if groups.get(name)}
            return {**fields, **_plugin_meaning(outcome, groups)}
    return None


def _plugin_meaning(outcome: str, groups: Mapping[str, str | None]) -> dict[str, Value]:
    reason = groups.get("reason") or ""
    if outcome == "symbol_missing" and groups.get("oldest"):
        # The last name that NCCL tries: the plug-in offers none that this version reads.
        return {"nature": "symptom", "suggests": "net-plugin-abi"}
    if outcome != "load_failed" or not reason:
        return {"nature": "noise"} if outcome == "absent" else {}
    library = reason.split(":", 1)[0].strip()
    own = library == groups.get("name") if groups.get("name") else library.startswith("libnccl-")
    if "cannot open shared object file" in reason and own:
        return {"nature": "noise"}  # the plug-in itself is not installed, which is the usual case
    if "libfabric" in reason:
        return {"nature": "symptom", "suggests": "efa-plugin"}
    return {"nature": "symptom", "suggests": "net-plugin-abi"}


_KINDS = {"network": "NET", "env": "ENV", "profiler": "PROFILER", "tuner": "TUNER"}


def _unsupported(m: re.Match[str], _line: Line) -> Mapping[str, Value]:
    """A tuner or profiler is done without; a network is not."""
    kind = _KINDS[m["what"]]
    told: dict[str, Value] = {"suggests": "net-plugin-abi", "nature": "symptom"} if kind == "NET" else {}
    return {"plugin": kind, **told}


def _network_missing(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    name = m["network"]
    if re.search(r"ofi|libfabric", name, re.IGNORECASE):
        return {"suggests": "efa-plugin"}
    return {"suggests": "ib-config" if name == "IB" else "net-plugin-abi"}


# What a `NET/OFI ...` line says: (field values, pattern). Failures first.
_OFI_STATES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("plugin_version", lazy(r"(?:Using|Initializing) aws-ofi-nccl (?P<value>\S+)")),
    ("libfabric_version", lazy(r"Using [Ll]ibfabric version (?P<value>\S+)")),
    ("provider", lazy(r"Selected [Pp]rovider is (?P<value>[^\s,]+)")),
)
# Lines of the plug-in that look bad and decide nothing.
_OFI_QUIET = ("Could not find ncclGetVersion", "pciPath:", "Error opening file: /sys/", "No NIC info for dev")


def _ofi(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    for name, pattern in _OFI_STATES:
        found = pattern.search(m["text"])
        if found is not None:
            return {name: found["value"], "text": m["text"].strip()}
    return None


def _ofi_failed(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    text = m["text"].strip()
    if any(found.search(text) for _, found in _OFI_STATES) or text.startswith(
        ("Request ", "Unable to register")
    ):
        return None
    before = line.text[: m.start()]
    # WARN: Function: find_ofi_provider Line: 543: NET/OFI ...        the plug-in's own test programs
    warned = line.env.level == "WARN" or "NCCL WARN" in before or "WARN: Function: " in before
    if not warned and not text.startswith(_OFI_FAILED_AT_INFO):
        return None
    return {"nature": "noise"} if text.startswith(_OFI_QUIET) else {"suggests": "efa-plugin"}


_OFI_FAILED_AT_INFO = ("No eligible providers were found", "aws-ofi-nccl initialization failed")


PATTERNS: tuple[Pattern, ...] = (
    # NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.        2.22+
    # NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libfabric.so.1: cannot open shared object file:
    # ...
    # NET/Plugin: Failed to find ncclNetPlugin symbol (>= v5). ncclNetPlugin symbols v4 and lower are not
    # supported.
    # PROFILER/Plugin: libnccl-profiler.so: cannot open shared object file: No such file or directory     2.26.2
    # NET/Plugin: libnccl-net-aws.so: libfabric.so.1: cannot open shared object file: No such file ...    2.28.3
    # TUNER/Plugin: Using tuner plugin nccl_ofi_tuner         NET/Plugin: Loaded net plugin AWS Libfabric (v8)
    Pattern(
        "nccl.plugin",
        "/Plugin",
        r"\b(?P<plugin>NET|TUNER|PROFILER|ENV|GIN|RMA)/Plugin ?: (?P<text>[^\n]+)",
        refine=_plugin,
        adds=("outcome", "name", "reason", "suggests"),
        since="2.4.2",
    ),
    # External network plugin libnccl-net.so is unsupported
    Pattern(
        "nccl.plugin",
        " is unsupported",
        r"External (?P<what>network|env|profiler|tuner) plugin (?P<name>\S+) is unsupported",
        nature="noise",
        fields={"outcome": "unsupported"},
        refine=_unsupported,
        adds=("plugin", "suggests"),
        since="2.28.3",
    ),
    # Initialized NET plugin IB          Assigned NET plugin Socket to comm
    Pattern(
        "nccl.plugin",
        "Initialized NET plugin",
        r"Initialized (?P<plugin>NET) plugin (?P<name>\S+)",
        fields={"outcome": "initialized"},
        since="2.27.3",
    ),
    Pattern(
        "nccl.plugin",
        "Assigned NET plugin",
        r"Assigned (?P<plugin>NET) plugin (?P<name>.{1,80}?) to comm",
        fields={"outcome": "assigned"},
        since="2.27.3",
    ),
    # Failed to initialize NET plugin IB        harmless when another follows
    Pattern(
        "nccl.plugin",
        "Failed to initialize NET plugin",
        r"Failed to initialize (?P<plugin>NET) plugin (?P<name>\S+)",
        nature="noise",
        fields={"outcome": "init_failed"},
        since="2.27.3",
    ),
    # Failed to initialize any NET plugin
    Pattern(
        "nccl.network_not_found",
        "Failed to initialize any NET plugin",
        r"Failed to initialize any NET plugin",
        nature="symptom",
        refine=unless_probe(),
        since="2.27.3",
    ),
    # Error: network AWS Libfabric not found.        NCCL_NET names a network that no plug-in offers
    Pattern(
        "nccl.network_not_found",
        "Error: network ",
        r"Error: network (?P<network>\S.{0,80}?) not found",
        nature="symptom",
        refine=unless_probe(_network_missing),
        adds=("suggests",),
        since="2.10.3",
        until="2.26.6",
    ),
    # NET/OFI Initializing aws-ofi-nccl 1.13.2-aws       NET/OFI Using Libfabric version 1.22
    # NET/OFI Selected provider is efa, fabric is efa (found 4 nics)
    Pattern(
        "nccl.ofi",
        "NET/OFI",
        r"NET/OFI (?P<text>[^\n]+)",
        refine=_ofi,
        adds=("plugin_version", "libfabric_version", "provider"),
    ),
    # NET/OFI No eligible providers were found       NET/OFI Only EFA provider is supported
    # NET/OFI aws-ofi-nccl initialization failed     NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid
    # argument
    Pattern(
        "nccl.ofi_failed",
        "NET/OFI",
        r"NET/OFI (?P<text>[^\n]+)",
        nature="symptom",
        refine=_ofi_failed,
        adds=("suggests",),
    ),
    # NET/OFI Unable to register memory (type = 2) for device 0. RC: -22, Error: Invalid argument
    Pattern(
        "nccl.ofi_reg_mr",
        "NET/OFI Unable to register memory",
        r"NET/OFI Unable to register memory \(type = (?P<type>\d+)\) for device (?P<device>\d+)\."
        r" RC: (?P<errno>-?\d+), Error: (?P<errno_text>[^\n]*)",
        nature="symptom",
        fields={"suggests": "efa-plugin"},
    ),
    # Unable to write to EQ: Missing or unavailable event queue. err: Cannot allocate memory (-12) prov_errno:
    # libfabric's EFA provider itself, 1.9 to 1.19
    Pattern(
        "net.efa_queue",
        "Unable to write to EQ",
        r"Unable to write to EQ: [^\n]{0,120}? err: (?P<error>[A-Z][\w ]+) \((?P<errno>-?\d+)\)",
        nature="symptom",
        fields={"suggests": "efa-plugin"},
    ),
    # NET/OFI Request 0x7f456c222f60 completed with error. RC: 103. Error: 4126 (Unresponsive receiver
    # (reachable ...
    Pattern(
        "nccl.ofi_completion",
        "completed with error. RC",
        r"NET/OFI Request (?:\S+ )?completed with error\. RC: (?P<errno>\d+)\.?"
        r" Error: (?P<error>[^\n]{1,200})",
        nature="consequence",
        fields={"suggests": "efa-plugin"},
    ),
)
