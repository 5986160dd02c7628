"""Who never issued which collective, and who issued another: by majority over the flight-recorder dumps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from ncclscope.facts.base import Basis
from ncclscope.parsers.flight_recorder import Dump, Entry
from ncclscope.report import AbsenceEvidence, LineEvidence

__all__ = ["add_flight_recorder_facts"]

# Sizes of these may differ between ranks by design: `nccl:gather`, not `nccl:all_gather`.
_UNEVEN = ("all_to_all", "alltoall", ":scatter", ":gather", "send", "recv", "coalesced")


def add_flight_recorder_facts(basis: Basis) -> bool:
    """collective.diverged or collective.equal for each process group with an unfinished collective; True when a rank is
    named."""
    dumps = {rank: (path, dump) for rank, path, dump in basis.store.dumps if rank is not None}
    found = False
    for group, members in _groups(dumps).items():
        if len(members) >= 2:
            found |= _judge(basis, group, members, dumps)
    return found


def _groups(dumps: Mapping[int, tuple[str, Dump]]) -> dict[tuple[str, str], set[int]]:
    """(name, description) of each process group and the ranks whose dump has entries of it or is a member."""
    groups: dict[tuple[str, str], set[int]] = defaultdict(set)
    for rank, (_, dump) in dumps.items():
        names = {e.group for e in dump.entries} | {n for n, (_, ranks) in dump.groups.items() if rank in ranks}
        for name in names:
            desc, ranks = dump.groups.get(name, ("", ()))
            # A name can be reused by groups of other members.
            key = (name, desc if not ranks else f"{desc} of {','.join(map(str, ranks[:4]))}")
            groups[key].add(rank)
    return groups


def _judge(
    basis: Basis, group: tuple[str, str], members: set[int], dumps: Mapping[int, tuple[str, Dump]]
) -> bool:
    by_rank = {
        rank: {e.seq: e for e in dumps[rank][1].entries if e.group == group[0] and not e.p2p} for rank in members
    }
    if not any(by_rank.values()):
        return False
    # The ring may have wrapped on some ranks: below the highest first number nothing can be compared.
    start = max((min(seqs) for seqs in by_rank.values() if seqs), default=0)
    last = {rank: max(seqs, default=0) for rank, seqs in by_rank.items()}
    top = max(last.values())
    for seq in range(start, top + 1):
        at = {rank: seqs[seq] for rank, seqs in by_rank.items() if seq in seqs}
        absent = sorted(rank for rank in members if last[rank] < seq)
        pending = {rank: e for rank, e in at.items() if e.state != "completed"}
        if not pending and not absent:
            continue
        odd = _minority(at, by_rank, seq)
        if odd is not None:
            _add(basis, dumps, group, seq, at, members, odd[0], odd[1], tie=odd[2])
            return True
        if absent and pending:
            _add(basis, dumps, group, seq, at, members, absent, "fewer", last=last)
            return True
        if pending:
            held = sorted(rank for rank, e in pending.items() if e.state == "scheduled")
            running = [rank for rank, e in pending.items() if e.state == "started"]
            if held and running and len(held) < len(at):
                _add(basis, dumps, group, seq, at, members, held, "held")
                return True
            if len(pending) == len(at):
                return _all_wait(basis, dumps, group, seq, at, members)
            return False
    return False


def _minority(
    at: Mapping[int, Entry], by_rank: Mapping[int, Mapping[int, Entry]], seq: int
) -> tuple[list[int], str, bool] | None:
    """(ranks that issued something else, op or size, whether nothing decides between two halves)."""
    uneven = any(word in e.op for e in at.values() for word in _UNEVEN)
    for how, value_of in (("op", lambda e: e.op), ("size", lambda e: (e.sizes, e.dtypes))):
        if how == "size" and uneven:
            continue
        values = {rank: value_of(e) for rank, e in at.items()}
        counts = Counter(values.values())
        if len(counts) < 2:
            continue
        common, most = counts.most_common(1)[0]
        rivals = [value for value, n in counts.items() if n == most]
        tie = False
        if len(rivals) > 1:
            # Half against half: what both sides had issued before tells which one is unusual.
            before = Counter(value_of(e) for seqs in by_rank.values() for s, e in seqs.items() if s < seq)
            ranked = sorted(rivals, key=lambda value: -before[value])
            common, tie = ranked[0], before[ranked[0]] == before[ranked[1]]
        return sorted(r for r, value in values.items() if value != common), how, tie
    return None


def _add(
    basis: Basis,
    dumps: Mapping[int, tuple[str, Dump]],
    group: tuple[str, str],
    seq: int,
    at: Mapping[int, Entry],
    members: set[int],
    behind: Sequence[int],
    how: str,
    *,
    last: Mapping[int, int] | None = None,
    tie: bool = False,
) -> None:
    ahead = sorted(members - set(behind))
    lines = [_line(dumps[r][0], at[r]) for r in [*behind[:2], *ahead[:2]] if r in at]
    if how == "fewer":
        for rank in behind[:2]:
            own = [e for e in dumps[rank][1].entries if e.group == group[0] and not e.p2p]
            if own:
                lines.insert(0, _line(dumps[rank][0], own[-1]))
    other = next((at[r] for r in ahead if r in at), None)
    mine = next((at[r] for r in behind if r in at), None)
    why = [f"read from the ring buffers of {len(members)} ranks, by majority"]
    if tie:
        why.append("as many ranks issued one as the other, and what they issued before does not decide it")
    if how == "fewer":
        frames = {e.frame for r in behind for e in dumps[r][1].entries[-1:] if e.frame}
        why += [f"the last operation that the rank issued came from {frame}" for frame in sorted(frames)[:2]]
    basis.add(
        "collective.diverged",
        {
            "how": how,
            "group": " ".join(filter(None, group)),
            "seq": seq,
            "op": mine.op if mine and how == "op" else other.op if other else None,
            "other_op": other.op if other and how == "op" else None,
            "numel": str(mine.sizes[0]) if mine and how == "size" else None,
            "other_numel": str(other.sizes[0]) if other and how == "size" else None,
            "behind": tuple(behind),
            "ahead": tuple(ahead),
            "last_enqueued": min(last[r] for r in behind) if last else None,
            "others_enqueued": max(last.values()) if last else None,
            "size": len(members),
            "tie": tie,
            "via": "flight_recorder",
        },
        [],
        ranks=() if tie else behind,
        lines=lines,
        absences=_missing(dumps, members),
        why=why,
    )


def _all_wait(
    basis: Basis,
    dumps: Mapping[int, tuple[str, Dump]],
    group: tuple[str, str],
    seq: int,
    at: Mapping[int, Entry],
    members: set[int],
) -> bool:
    """Everyone with a dump waits in the same operation. One member without a dump is the first to suspect, for a rank
    that died writes none; several missing dumps were more likely never collected. True when someone is named."""
    absent = _everyone(dumps, members) - set(dumps)
    entry = next(iter(at.values()))
    if len(absent) == 1 and len(members) > 1:
        _add(basis, dumps, group, seq, at, members | absent, sorted(absent), "silent")
        return True
    basis.add(
        "collective.equal",
        {"group": " ".join(filter(None, group)), "seq": seq, "op": entry.op, "size": len(at), "via": "flight_recorder"},
        [],
        lines=[_line(dumps[r][0], e) for r, e in sorted(at.items())[:4]],
        absences=_missing(dumps, members),
    )
    return False


def _everyone(dumps: Mapping[int, tuple[str, Dump]], members: set[int]) -> set[int]:
    """All members of the group that any dump's configuration lists."""
    lists = [ranks for _, dump in dumps.values() for _, ranks in dump.groups.values()]
    return {rank for ranks in lists if members <= set(ranks) for rank in ranks}


def _missing(dumps: Mapping[int, tuple[str, Dump]], members: set[int]) -> list[AbsenceEvidence]:
    """Members of the group without a dump: often the rank that died."""
    return [
        AbsenceEvidence(f"a flight-recorder dump of rank {r}", sorted(p for p, _ in dumps.values())[:8], "not_given")
        for r in sorted(_everyone(dumps, members) - set(dumps))[:4]
    ]


def _line(path: str, entry: Entry) -> LineEvidence:
    sizes = ", ".join(map(str, entry.sizes[0]))
    where = f" from {entry.frame}" if entry.frame else ""
    text = f"{entry.op} seq {entry.seq} {entry.state} input {sizes}{where}"
    return LineEvidence(source=path, line=entry.number, text=text)
