"""Ranks that another rank's line names: the one awaited, the one that differs, those that share a GPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ncclscope.facts.base import Basis
from ncclscope.facts.tracebacks import odd_ones
from ncclscope.model import Event

__all__ = ["add_named_facts"]

_MAX_WORLD = 65536


def add_named_facts(basis: Basis) -> None:
    """rank.awaited, collective.refused and gpu.shared."""
    _unique_id(basis)
    _counted(basis, "clients", "torch.waiting_clients", "want")
    _counted(basis, "store_barrier", "torch.store_barrier_timeout", "world_size")
    _missing(basis)
    _refused(basis)
    _shared(basis)


def _awaited(basis: Basis, via: str, events: list[Event], ranks: Iterable[int], **fields: int | str | None) -> None:
    waiting = sorted({r for e in events if (r := basis.who(e).rank) is not None})
    ranks = sorted(set(ranks))
    spoke = basis.identity.seen_ranks
    basis.add(
        "rank.awaited",
        {
            "via": via,
            "waiting": tuple(waiting) or None,
            "awaited": tuple(ranks) or None,
            "spoke": bool(ranks) and set(ranks) <= spoke,
            **fields,
        },
        events[:3],
        ranks=ranks,
    )


def _unique_id(basis: Basis) -> None:
    """Who has to publish NCCL's unique id is named in brackets, by its rank inside the group."""
    by_peer: dict[int, list[Event]] = defaultdict(list)
    for event in basis.events("torch.unique_id_wait"):
        peer = event.get("peer_rank")
        if isinstance(peer, int):
            by_peer[peer].append(event)
    for peer, events in by_peer.items():
        # A printer whose global rank is another number than the bracket's waits in a smaller group.
        whole = all(e.env.rank in (None, e.get("pg_rank")) for e in events)
        _awaited(basis, "unique_id", events, [peer] if whole else [], peer=peer)


def _counted(basis: Basis, via: str, kind: str, size: str) -> None:
    """The store only counts who came; the ranks follow where those that speak are as many."""
    events = basis.events(kind)
    if not events:
        return
    counted = [e for e in events if isinstance(e.get("have"), int)]
    last = counted[-1] if counted else events[-1]
    have, want = last.get("have"), last.get(size)
    if not isinstance(have, int) or not isinstance(want, int) or not have < want <= _MAX_WORLD:
        return
    waiting = {basis.who(e).rank for e in events}
    missing = _who_is_missing(basis, via, have, want, waiting)
    _awaited(basis, via, events, missing, have=have, want=want)


def _who_is_missing(basis: Basis, via: str, have: int, want: int, waiting: set[int | None]) -> set[int]:
    everyone, seen = set(range(want)), basis.identity.seen_ranks
    if via == "clients":
        # The store runs in rank 0 and counts itself first; nobody else prints this. Where another rank does, or the job
        # is larger than what is waited for, the numbers are those of a smaller group.
        world = max([basis.identity.world or 0, *(r + 1 for r in seen)])
        if not waiting <= {0, None} or world > want:
            return set()
        if have == 1:
            return everyone - {0}
        seen |= {0}
    if len(seen) == have:
        return everyone - seen
    if have == len(waiting) and None not in waiting:
        return everyone - {r for r in waiting if r is not None}  # whoever came is who waits
    return set()


def _missing(basis: Basis) -> None:
    for kind, via in (("torch.monitored_barrier", "monitored_barrier"), ("torch.desync", "desync")):
        # The printer lists whom it waited for, so those whom every line names are the answer.
        named = [
            (e, missing)
            for e in basis.events(kind)
            if isinstance(missing := e.get("missing"), tuple) and missing and e.get("waiting") is None
        ]
        if not named:
            continue
        everywhere = set.intersection(*({int(r) for r in missing} for _, missing in named))
        ranks = everywhere or {int(r) for r in named[0][1]}
        first = named[0][0]
        seq = first.get("seq")
        _awaited(
            basis,
            via,
            [e for e, _ in named],
            ranks,
            seq=seq if isinstance(seq, int) else None,
            what="never_joined" if first.get("suggests") == "rank-absent" else "behind",
        )


def _refused(basis: Basis) -> None:
    """PyTorch's checks print both sides; all lines together show which side has fewer ranks."""
    sides: dict[int, tuple[str, str]] = {}
    events: list[Event] = []
    seq: object = None
    for event in basis.events("torch.wrapper_mismatch", "torch.ddp_param_count"):
        if events and (event.kind, event.get("seq")) != (events[0].kind, seq):
            continue
        events.append(event)
        seq = event.get("seq")
        for prefix in ("", "other_"):
            rank = event.get(f"{prefix}rank")
            if isinstance(rank, int):
                sides.setdefault(rank, _side(event, prefix))
    if not events:
        events = basis.events("torch.ddp_shape_mismatch")
        sides = _shapes(basis, events)
    found = odd_ones(sides)
    if found is None:
        return
    odd, _, _, tie = found
    mine, theirs = sides[odd[0]], sides[next(rank for rank in sorted(sides) if rank not in odd)]
    same = mine[0] == theirs[0]
    why = ["as many ranks are on one side as on the other; the side of the lowest rank is taken as right"]
    basis.add(
        "collective.refused",
        {
            "seq": seq if isinstance(seq, int) else None,
            "op": mine[0],
            "other_op": theirs[0],
            "mine": f"{mine[0]}{mine[1]}" if same else mine[0],
            "theirs": f"{theirs[0]}{theirs[1]}" if same else theirs[0],
            "tie": tie,
        },
        events[:4],
        ranks=odd,
        why=why if tie else (),
    )


def _side(event: Event, prefix: str) -> tuple[str, str]:
    """What one rank brought: the operation, and its shape in words."""
    if event.kind == "torch.ddp_param_count":
        return f"{event.get('other' if prefix else 'have')} parameters", ""
    return str(event.get(f"{prefix}optype")), f" of shape [{event.get(f'{prefix}shape')}]"


def _shapes(basis: Basis, events: list[Event]) -> dict[int, tuple[str, str]]:
    """Only ranks whose model differs from that of rank 0 print it; the silent ones have its model."""
    sides = {
        rank: (f"parameter {e.get('parameter')}", f" of size [{e.get('sizes')}]")
        for e in events
        if isinstance(rank := e.get("rank"), int)
    }
    if not sides:
        return {}
    parameter = next(iter(sides.values()))[0]
    silent = {0, *basis.identity.seen_ranks} - set(sides)
    return sides | dict.fromkeys(silent, (parameter, " of another size"))


def _shared(basis: Basis) -> None:
    by_gpu: dict[object, list[Event]] = defaultdict(list)
    for event in basis.events("nccl.duplicate_gpu"):
        if event.get("cause"):
            by_gpu[event.get("bus_id")].append(event)
    for bus_id, events in by_gpu.items():
        ranks = {r for e in events for name in ("rank", "peer_rank") if isinstance(r := e.get(name), int)} or {
            r for e in events if (r := basis.who(e).rank) is not None
        }
        basis.add("gpu.shared", {"bus_id": str(bus_id) if bus_id else None}, events, ranks=ranks)
