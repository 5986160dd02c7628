"""NCCL's start-up: banner, driver, settings, bootstrap, communicators and their end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.lazy import lazy
from ncclscope.parsers.nccl_common import bus_address
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

# What follows the fields of a line that is not cut: its end, or the words of another message with the
#     same start.
_WHOLE = lazy(
    r"(?: parent 0x[0-9a-f]+)?(?: \w+Count \d+)?(?: color -?\d+ key -?\d+)?(?: commId 0x[0-9a-f]+)?"
    r" ?- (?:Init|Abort|Destroy|Revoke|COMPLETE)"
)

_COMM = (
    r"(?:\[Rank \d+\] )?(?:(?P<api>ncclComm\w+) )?(?:comm (?P<comm>0x[0-9a-f]+) )?"
    r"rank (?P<rank>\d+) n[rR]anks (?P<nranks>\d+)"
    r"(?: cudaDev (?P<cuda_dev>-?\d+))?(?: nvmlDev (?P<nvml_dev>-?\d+))?(?: busId (?P<bus_id>[0-9a-f]+))?"
    r"(?: parent (?P<parent>0x[0-9a-f]+))?(?: (?:split|child)Count \d+)?"
    r"(?: color (?P<color>-?\d+) key (?P<key>-?\d+))?"
    r"(?: commId (?P<comm_id>0x[0-9a-f]+))?"
)


def _comm_fields(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    fields: dict[str, Value] = {}
    bus = bus_address(m["bus_id"]) if m["bus_id"] else None
    if bus:
        fields["bus_id"] = bus
    for name in ("color", "key"):
        if m[name]:
            fields[name] = int(m[name])
    return fields


def _cut_fields(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    if _WHOLE.match(line.text, m.end()):
        return None
    bus = bus_address(m["bus_id"]) if m["bus_id"] else None
    return {"bus_id": bus} if bus else {}


def _seconds(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    # The last group is `kernels 0.15, alloc 0.11, ...`: which steps are named differs between versions.
    steps = {
        f"{name}_s": float(value) for name, value in re.findall(r"(\w+) (\d+\.\d+)", m[m.re.groups] or "")
    }
    return {"total_s": float(m["total_s"]), **steps}


def _env_value(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    # Numbers are printed with a full stop after them (`set by environment to 1.`), words without.
    value = m["value"].strip()
    return {"value": value[:-1] if value.endswith(".") else value}


def _set_to(variable: str) -> Pattern:
    return Pattern(
        "nccl.env",
        f"{variable} set to",
        rf"\b(?P<name>{variable}) set to (?P<value>.*)",
        refine=_env_value,
    )


_STEPS = tuple(
    f"{step}_s"
    for step in ("kernels", "alloc", "bootstrap", "allgathers", "topo", "graphs", "connections", "rest")
)

PATTERNS: tuple[Pattern, ...] = (
    # NCCL version 2.21.5+cuda12.4        rank 0 (every process since 2.22); suffixes as in 2.28.9rc1+cuda13.0
    Pattern(
        "nccl.version",
        "NCCL version",
        r"NCCL version (?P<version>\d+\.\d+(?:\.\d+)?[\w.-]*)(?:\+cuda(?P<cuda>\d+\.\d+))",
        since="2.3.5",
    ),
    # ... unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5        PyTorch
    Pattern(
        "nccl.version",
        "NCCL version",
        r"(?:error|usage|argument|, )[^\n]{0,80}NCCL version (?P<version>\d+\.\d+\.\d+)(?![\w.]*\+cuda)",
        fields={"echo": True},
    ),
    # cudaDriverVersion 12040
    Pattern("nccl.driver", "cudaDriverVersion", r"cudaDriverVersion (?P<driver_version>\d+)", since="2.13.4"),
    # ncclCommInitRank comm 0x5581 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x2fb9 - Init START
    # [Rank 1] ncclCommInitRankConfig comm ... - Init START        2.29+
    # ncclCommSplit comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 parent 0x2 splitCount 1
    #     color 0 key 0- Init START        no blank before the dash, 2.23+; childCount 2.29+
    Pattern(
        "nccl.init_start",
        "- Init START",
        _COMM + r" ?- Init START",
        refine=_comm_fields,
        since="2.18.3",
    ),
    # comm 0x7f1c rank 0 nranks 8 cudaDev 0 busId 1b000 - Init COMPLETE    2.5 - 2.15
    # comm 0x7f1c rank 0 nranks 8 cudaDev 0 nvmlDev 0 - Init COMPLETE      2.4
    Pattern(
        "nccl.init_complete",
        "- Init COMPLETE",
        _COMM + r" ?- Init COMPLETE",
        refine=_comm_fields,
        since="2.4.2",
    ),
    # comm 0x7f1c rank 0 nranks 8 - COMPLETE      2.3.7
    Pattern(
        "nccl.init_complete",
        " - COMPLETE",
        _COMM + r" - COMPLETE",
        refine=_comm_fields,
        since="2.3.7",
        until="2.3.7",
    ),
    # ncclCommInitRankConfig comm 0xdf20660 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 70 commId 0x2f
    # START or COMPLETE with its end cut off: the rank did get there. 2.3.5 prints no more than comm,
    #     rank and nranks.
    Pattern(
        "nccl.init_cut",
        " nranks ",
        r"(?:(?P<api>ncclComm\w+) )?comm (?P<comm>0x[0-9a-f]+) rank (?P<rank>\d+)"
        r" nranks (?P<nranks>\d+)(?!\S)"
        r"(?: cudaDev (?P<cuda_dev>-?\d+)(?= ))?(?: nvmlDev (?P<nvml_dev>-?\d+)(?= ))?"
        r"(?: busId (?P<bus_id>[0-9a-f]+)(?= ))?",
        refine=_cut_fields,
    ),
    # comm 0x55d0c1a2f0e0 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0
    Pattern(
        "nccl.comm_info",
        " localRanks ",
        r"(?:comm (?P<comm>0x[0-9a-f]+) )?rank (?P<rank>\d+) nRanks (?P<nranks>\d+) nNodes (?P<nnodes>\d+)"
        r" localRanks (?P<local_ranks>\d+) localRank (?P<local_rank>\d+)",
        since="2.20.3",
    ),
    # comm 0xdf20660 rank 1 nRanks 2 cudaDev 0 busId 60 - Abort START
    # comm 0x55d0 rank 0 nranks 2 cudaDev 0 busId 1b000 - Destroy COMPLETE
    *(
        Pattern(
            "nccl.comm_end",
            f"- {action} {state}",
            _COMM + rf" ?- {action} {state}",
            fields={"action": action, "state": state},
            refine=_comm_fields,
        )
        for action in ("Abort", "Destroy", "Revoke")
        for state in ("START", "COMPLETE")
    ),
    # Comm config Blocking set to 1
    Pattern(
        "nccl.config",
        "Comm config",
        r"Comm config (?P<name>[A-Za-z][\w ]*?) set to (?P<value>\S+)",
        since="2.17.1",
    ),
    # Comm config minCTAs reset to NCCL_MIN_CTAS=4
    Pattern(
        "nccl.config",
        "Comm config",
        r"Comm config (?P<name>[A-Za-z]\w*) reset to (?:(?P<variable>NCCL_\w+)=)?(?P<value>\S+)",
        since="2.28.7",
    ),
    # Bootstrap: Using eth0:10.0.0.12<0>          "Bootstrap : Using" up to 2.23, `[0]eth0` up to 2.8
    Pattern(
        "nccl.bootstrap_using",
        "Bootstrap: Using",
        r"Bootstrap: Using (?:\[\d+\])?(?P<interface>[^\s:<]+):(?P<address>[^\s<]+)<\d+>",
        since="2.24.3",
    ),
    Pattern(
        "nccl.bootstrap_using",
        "Bootstrap : Using",
        r"Bootstrap : Using (?:\[\d+\])?(?P<interface>[^\s:<]+):(?P<address>[^\s<]+)<\d+>",
        since="2.4.8",
        until="2.23.4",
    ),
    # Bootstrap timings total 0.021 (create 0.000, send 0.001, recv 0.018, ring 0.001, delay 0.000)
    Pattern(
        "nccl.bootstrap_timings",
        "Bootstrap timings total",
        r"Bootstrap timings total (?P<total_s>\d+\.\d+)(?: \(([^)]*))?",
        refine=_seconds,
        adds=("create_s", "send_s", "recv_s", "ring_s", "delay_s"),
        since="2.23.4",
    ),
    # Init timings - ncclCommInitRankConfig: rank 1 nranks 2 total 0.35 (kernels 0.15, alloc 0.11,
    #     bootstrap 0.02, ...)
    # Init timings: rank 1 nranks 2 total 0.35 (kernels 0.15, bootstrap 0.02, ...)      2.22.3
    Pattern(
        "nccl.init_timings",
        "Init timings",
        r"Init timings(?: - (?P<api>\w+))?: rank (?P<rank>\d+) nranks (?P<nranks>\d+)"
        r" total (?P<total_s>\d+\.\d+)(?: \(([^)]*))?",
        refine=_seconds,
        adds=_STEPS,
        since="2.22.3",
    ),
    # NCCL_NVLS_ENABLE set by environment to 0.           NCCL_SOCKET_IFNAME set by environment to eth0
    Pattern(
        "nccl.env",
        "set by environment to",
        r"\b(?P<name>[A-Z][A-Z0-9_]{3,}) set by environment to (?P<value>.*)",
        refine=_env_value,
        since="2.3.5",
    ),
    # NCCL_SOCKET_IFNAME set to lo
    _set_to("NCCL_SOCKET_IFNAME"),
    _set_to("NCCL_OOB_NET_IFNAME"),
    _set_to("NCCL_IB_HCA"),
    _set_to("NCCL_TUNER_PLUGIN"),
    # ncclGetUniqueId(0x7fe45ffdabfc)                     NCCL_DEBUG=TRACE, subsystem CALL, 2.13 and later
    Pattern("nccl.unique_id", "ncclGetUniqueId(", r"\bncclGetUniqueId\(0x[0-9a-f]+\)", since="2.13.4"),
    # Connected all rings, use ring PXN 0 GDR 1           "Connected all rings" before 2.24
    Pattern("nccl.connected", "Connected all", r"Connected all (?P<what>rings|trees)", since="2.5.6"),
)
