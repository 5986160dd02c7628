"""Ranks whose tracebacks stand in different collectives although all of them only waited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ncclscope.facts.base import Basis
from ncclscope.lazy import lazy
from ncclscope.model import Event

__all__ = ["add_traceback_facts", "odd_ones"]

# Only a wait that ran out says where a rank stood by itself; a connection that closed throws ranks out of
# whatever comes after the failure.
# Gloo: `Timed out waiting 15000ms for send operation to complete`; c10d: `wait timeout after 20000ms`
_RAN_OUT = lazy(r"Timed out waiting \d+ms|wait timeout after \d+ms|Socket Timeout|operation timeout")
# Set-up and tear-down, where ranks arrive at their own time.
_NOT_COMPARED = frozenset({"init_process_group", "destroy_process_group", "new_group", "rendezvous"})


def odd_ones(values: Mapping[int, object]) -> tuple[list[int], object, object, bool] | None:
    """(ranks that differ, a value of theirs, the most common value, whether that is a tie); None when all agree.

    On a tie the side of the lowest rank counts as the common one: PyTorch's own checks compare with rank 0.
    """
    counts = Counter(values.values())
    if len(counts) < 2:
        return None
    most = max(counts.values())
    leading = [value for value, count in counts.items() if count == most]
    common = next(values[rank] for rank in sorted(values) if values[rank] in leading)
    odd = sorted(rank for rank, value in values.items() if value != common)
    return odd, values[odd[0]], common, len(leading) > 1


def add_traceback_facts(basis: Basis) -> None:
    """collective.frames: waits that ran out in different collectives."""
    standing: dict[int, Event] = {}
    for event in basis.events("py.exception"):
        rank = basis.who(event).rank
        collective = event.get("collective")
        if rank is None or not isinstance(collective, str) or collective in _NOT_COMPARED:
            continue
        if _RAN_OUT.search(str(event.get("message") or "")):
            standing.setdefault(rank, event)
    found = odd_ones({rank: event.get("collective") for rank, event in standing.items()})
    if found is None:
        return
    odd, op, other_op, tie = found
    first = standing[odd[0]]
    others = [event for rank, event in standing.items() if rank not in odd]
    why = ["as many ranks stand in one as in the other; the side of the lowest rank is taken as right"]
    basis.add(
        "collective.frames",
        {
            "op": str(op),
            "other_op": str(other_op),
            "user_file": first.get("user_file"),
            "user_line": first.get("user_line"),
            "tie": tie,
        },
        [standing[rank] for rank in odd[:2]] + others[:2],
        ranks=odd,
        at=first,
        why=why if tie else (),
    )
