"""One Xid again and again in one place: what several programs hit on the same unit is no fault of a program."""

from __future__ import annotations

from collections import defaultdict

from ncclscope.facts.base import Basis
from ncclscope.model import Event

__all__ = ["add_hardware_facts"]

# Xids that are the program's fault unless the place repeats: 13 counts by processor, 31 by GPU.
_PROGRAM_XIDS = (13, 31)


def add_hardware_facts(basis: Basis) -> None:
    """xid.repeat: the same Xid of a program, from several processes, in one unit of one GPU."""
    pids: dict[tuple[object, ...], set[int]] = defaultdict(set)
    lines: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    units: dict[object, set[tuple[object, ...]]] = defaultdict(set)
    for event in basis.events("kernel.xid"):
        xid, gpu, pid = event.get("xid"), event.get("gpu"), event.get("pid")
        if xid not in _PROGRAM_XIDS or gpu is None:
            continue
        unit: tuple[object, ...] = (xid, basis.who(event).host, gpu)
        if xid == 13:
            if event.get("gpc") is None:
                continue
            unit += (event.get("gpc"), event.get("tpc"))
        units[xid].add(unit)
        lines[unit].append(event)
        if isinstance(pid, int):
            pids[unit].add(pid)
    for unit, processes in pids.items():
        if len(processes) > 1 and len(units[unit[0]]) == 1:
            first = lines[unit][0]
            host = basis.who(first).host
            basis.add(
                "xid.repeat",
                {
                    "xid": first.get("xid"),
                    "gpu": first.get("gpu"),
                    "processes": len(processes),
                    "gpc": first.get("gpc"),
                    "tpc": first.get("tpc"),
                },
                lines[unit][:6],
                hosts=[host] if host else [],
                gpus=[str(first.get("gpu"))],
            )
