"""NCCL's networks: what was chosen, what was missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]


def _devices(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    text = m["text"].strip()
    devices = tuple(re.findall(r"\[\d+\]([^\s\[\];<]+)", text))
    fields: dict[str, Value] = {"text": text}
    if devices:
        fields["devices"] = devices
    oob = re.search(r"OOB ([^\s:]+):", text)
    if oob:
        fields["oob_interface"] = oob[1]
    return fields


PATTERNS: tuple[Pattern, ...] = (
    # Using network Socket
    Pattern(
        "nccl.network",
        "Using network ",
        r"Using network (?P<network>\w*[A-Z]\w*(?: \w+)?)\s*$",
        since="2.6.4",
    ),
    # NET : Using interface eth0:10.0.0.11<0>        one line for each that the choice left, 2.3
    Pattern(
        "nccl.interface",
        "NET : Using interface ",
        r"NET : Using interface (?P<interface>[\w.@-]{1,32}):(?P<address>[0-9a-fA-F.:]+)",
        until="2.3.7",
    ),
    # NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.12<0>
    # NET/Socket : Using [0]eth0:10.0.0.11<0>
    *(
        Pattern(
            "nccl.net_devices",
            f"NET/{plugin} : Using",
            rf"NET/(?P<plugin>{plugin}) : Using ?(?P<text>.*)",
            refine=_devices,
            adds=("devices", "oob_interface"),
            since="2.4.2",
        )
        for plugin in ("IB", "Socket")
    ),
    # NET/IB : No device found.        every host without InfiniBand or RoCE prints it
    Pattern(
        "nccl.net_no_device",
        "NET/IB : No device found",
        r"NET/(?P<plugin>IB) : No device found",
        since="2.4.2",
    ),
)
