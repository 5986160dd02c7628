"""Who did not take part: progress by rank and process group, and whom it points at.

The rank that prints a timeout waited. The one to blame never issued the collective (lowest last-enqueued), issued
another (minority at the same SeqNum), or printed nothing at all. Equal numbers on every rank name nobody.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

import msgspec

from ncclscope.facts.base import Basis
from ncclscope.model import Event

__all__ = ["GroupProgress", "add_collective_facts", "progress_by_group"]

_DEFAULT = "default"


class GroupProgress(msgspec.Struct):
    """What the watchdogs of one process group say, by global rank; the first timeout of a rank counts."""

    name: str
    timeouts: dict[int, Event] = msgspec.field(default_factory=dict)
    enqueued: dict[int, tuple[int, Event]] = msgspec.field(default_factory=dict)
    completed: dict[int, tuple[int, Event]] = msgspec.field(default_factory=dict)


def progress_by_group(basis: Basis) -> list[GroupProgress]:
    """One entry for each process group that a watchdog line names."""
    groups: dict[str, GroupProgress] = {}
    for event in basis.events("torch.watchdog_timeout", "torch.watchdog_progress"):
        rank = basis.who(event).rank
        if rank is None:
            continue
        name = _group(event)
        group = groups.setdefault(name, GroupProgress(name))
        if event.kind == "torch.watchdog_timeout":
            group.timeouts.setdefault(rank, event)
        for field_name, target in (
            ("seq_last_enqueued", group.enqueued),
            ("seq_last_completed", group.completed),
        ):
            seq = event.get(field_name)
            if isinstance(seq, int):
                target.setdefault(rank, (seq, event))
    return _merge_untagged(groups)


def _group(event: Event) -> str:
    desc, guid = event.get("pg_desc"), event.get("pg_guid")
    if desc in (None, "", "undefined", "default_pg") and guid in (None, "0"):
        return _DEFAULT
    return str(desc if desc not in (None, "", "undefined") else f"group {guid}")


def _merge_untagged(groups: dict[str, GroupProgress]) -> list[GroupProgress]:
    """WorkNCCL lines carry only [Rank N]; when one tagged group exists, they speak of that one."""
    tagged = [g for name, g in groups.items() if name != _DEFAULT]
    default = groups.get(_DEFAULT)
    if default is not None and len(tagged) == 1 and not default.enqueued and default.timeouts:
        for rank, event in default.timeouts.items():
            tagged[0].timeouts.setdefault(rank, event)
        return tagged
    return list(groups.values())


def add_collective_facts(basis: Basis) -> None:
    """collective.diverged and collective.equal."""
    for group in progress_by_group(basis):
        if not group.timeouts and len({seq for seq, _ in group.enqueued.values()}) < 2:
            continue
        if _other_operation(basis, group) or _other_size(basis, group) or _fewer(basis, group):
            continue
        _nobody(basis, group)


def _values(group: GroupProgress, name: str) -> dict[int, object]:
    return {rank: value for rank, e in group.timeouts.items() if (value := e.get(name)) is not None}


def _same_seq(group: GroupProgress) -> dict[int, dict[int, Event]]:
    by_seq: dict[int, dict[int, Event]] = defaultdict(dict)
    for rank, event in group.timeouts.items():
        seq = event.get("seq")
        if isinstance(seq, int):
            by_seq[seq][rank] = event
    return by_seq


def _minority(values: Mapping[int, object]) -> tuple[list[int], object, object, bool] | None:
    """(ranks of the minority, its value, the majority's, whether it is a tie); None when all agree."""
    counts = Counter(values.values())
    if len(counts) < 2:
        return None
    (common, most), *others = counts.most_common()
    odd = [rank for rank, value in values.items() if value != common]
    tie = others[0][1] == most
    return sorted(odd), values[odd[0]], common, tie


def _other_operation(basis: Basis, group: GroupProgress) -> bool:
    for seq, by_rank in _same_seq(group).items():
        found = _minority({r: e.get("optype") for r, e in by_rank.items()})
        if found is not None:
            _disagree(basis, group, seq, by_rank, found, "op")
            return True
    return False


def _other_size(basis: Basis, group: GroupProgress) -> bool:
    for seq, by_rank in _same_seq(group).items():
        sizes = {
            r: (e.get("numel_in"), e.get("numel_out"))
            for r, e in by_rank.items()
            if e.get("numel_in") is not None
        }
        ops = {e.get("optype") for e in by_rank.values()}
        if ops & {
            "SEND",
            "RECV",
            "GATHER",
            "SCATTER",
            "ALLTOALL_BASE",
            "ALLTOALL",
            "COALESCED",
        }:
            continue  # sizes may differ between ranks by design
        found = _minority(sizes)
        if found is not None:
            _disagree(basis, group, seq, by_rank, found, "size")
            return True
    return False


def _disagree(
    basis: Basis,
    group: GroupProgress,
    seq: int,
    by_rank: Mapping[int, Event],
    found: tuple[list[int], object, object, bool],
    how: str,
) -> None:
    odd, value, common, tie = found
    events = [by_rank[r] for r in odd[:2]] + [e for r, e in by_rank.items() if r not in odd][:2]
    name = "op" if how == "op" else "numel"
    why = (
        ["as many ranks issued one as the other: which side is wrong is not visible from the logs"]
        if tie
        else []
    )
    basis.add(
        "collective.diverged",
        {
            "how": how,
            "group": group.name,
            "seq": seq,
            name: _shown(value),
            f"other_{name}": _shown(common),
            "size": len(by_rank),
            "tie": tie,
            "behind": tuple(odd),
        },
        events,
        ranks=() if tie else odd,
        why=why,
    )


def _shown(value: object) -> str:
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _fewer(basis: Basis, group: GroupProgress) -> bool:
    """A rank whose last enqueued collective is behind the others': it never issued the next one."""
    if len(group.enqueued) < 2:
        return False
    top = max(seq for seq, _ in group.enqueued.values())
    behind = {rank: (seq, e) for rank, (seq, e) in group.enqueued.items() if seq < top}
    # Ranks that wait at the timed-out collective may have queued different numbers of later ones (asynchronous
    # launches); only a rank that never reached what the others wait for is behind.
    waited = [s for e in group.timeouts.values() if isinstance(s := e.get("seq"), int)]
    if waited:
        behind = {rank: item for rank, item in behind.items() if item[0] < min(waited)}
    if not behind or len(behind) == len(group.enqueued):
        return False
    lowest = min(seq for seq, _ in behind.values())
    worst = sorted(rank for rank, (seq, _) in behind.items() if seq == lowest)
    events = [behind[r][1] for r in worst[:2]] + [
        e for r, (_, e) in group.enqueued.items() if r not in behind
    ][:2]
    events += list(group.timeouts.values())[:1]
    basis.add(
        "collective.diverged",
        {
            "how": "fewer",
            "group": group.name,
            "seq": min(waited) if waited else top,
            "behind": tuple(worst),
            "ahead": tuple(sorted(r for r in group.enqueued if r not in behind)),
            "last_enqueued": lowest,
            "others_enqueued": top,
            "size": len(group.enqueued),
            "op": next((str(e.get("optype")) for e in group.timeouts.values() if e.get("optype")), None),
            "tie": False,
        },
        events,
        ranks=worst,
    )
    return True


# Operations that no rank can finish before every rank took part.
_TOGETHER = ("ALLREDUCE", "_ALLGATHER_BASE", "ALLGATHER", "BARRIER", "ALLREDUCE_COALESCED")


def _finished_on_some(basis: Basis, group: GroupProgress) -> bool:
    """A collective that some ranks finished, while others wait in theirs of that number: it was not the same one."""
    waits = {r: s for r, e in group.timeouts.items() if isinstance(s := e.get("seq"), int)}
    lowest = min(waits.values(), default=0)
    behind = sorted(r for r, seq in waits.items() if seq == lowest and r in group.completed)
    ahead = sorted(r for r, seq in waits.items() if seq > lowest and group.completed.get(r, (0, None))[0] >= lowest)
    op = group.timeouts[behind[0]].get("optype") if behind else None
    if not ahead or op not in _TOGETHER:
        return False
    basis.add(
        "collective.diverged",
        {
            "how": "apart",
            "group": group.name,
            "seq": lowest,
            "op": str(op),
            "behind": tuple(behind),
            "ahead": tuple(ahead),
            "size": len(waits),
            "tie": True,
        },
        [group.timeouts[r] for r in (*behind[:2], *ahead[:2])],
    )
    return True


def _nobody(basis: Basis, group: GroupProgress) -> None:
    """Everyone who spoke waits in the same place: blame a rank that said nothing, or say that nothing is visible."""
    waiting = set(group.timeouts) | set(group.enqueued)
    world = basis.identity.world
    seen = basis.identity.seen_ranks
    everyone = set(range(world)) if world and world <= 65536 else seen
    deduplicated = any(s.deduplicated for s in basis.store.streams)
    quiet = sorted((everyone & seen) - waiting)
    first = next(iter(group.timeouts.values()), None)
    if _finished_on_some(basis, group):
        return
    fields = {
        "group": group.name,
        "seq": first.get("seq") if first else None,
        "op": first.get("optype") if first else None,
        "size": len(waiting),
    }
    events = list(group.timeouts.values())[:3] or [e for _, e in group.enqueued.values()][:3]
    if quiet and group.name == _DEFAULT and not deduplicated and len(quiet) < len(everyone):
        basis.add(
            "collective.diverged",
            {
                **fields,
                "how": "silent",
                "behind": tuple(quiet),
                "ahead": tuple(sorted(waiting)),
                "tie": False,
            },
            events,
            ranks=quiet,
        )
    elif len(waiting) > 1 and (world is None or not everyone - waiting):
        basis.add("collective.equal", fields, events)
