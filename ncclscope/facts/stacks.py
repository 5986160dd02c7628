"""Who stands elsewhere: the main threads of the ranks, as stack dumps show them, against each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncclscope.parsers.stacks_where import WAITING

if TYPE_CHECKING:
    from ncclscope.facts.base import Basis
    from ncclscope.model import Event

__all__ = ["add_stack_facts"]

# Processes and threads that are no rank of the job.
_NO_RANK = frozenset({"proxy_thread", "watchdog", "worker", "launcher"})
# Code in which every rank of a running job spends its time: two samples of it say nothing.
_ORDINARY = frozenset({"user", "other"})
# Waits that end when every rank has come.
_INIT = frozenset({"store_wait", "nccl_init"})
# What a rank does that has a cause of its own.
_OWN_SHAPE = {"filesystem": "file_system", "ptx_compile": "ptx", "cuda_module_load": "ptx"}
# One against so many is no matter of chance.
_MANY = 3


@dataclass(frozen=True, slots=True)
class _Stand:
    """Where one rank (or a process whose rank is not known) stands."""

    rank: int | None
    event: Event

    @property
    def where(self) -> str:
        return str(self.event.get("where"))

    @property
    def waits(self) -> bool:
        return self.where in WAITING

    @property
    def place(self) -> tuple[object, ...]:
        """The collective and the user's line, for ranks that all wait."""
        names = ("collective", "user_file", "user_line")
        return tuple(self.event.get(name) for name in names)


def add_stack_facts(basis: Basis) -> None:
    """stack.odd and stack.missing."""
    stands = _stands(basis)
    if len(stands) < 2:
        return
    waiting = [s for s in stands if s.waits]
    busy = [s for s in stands if not s.waits]
    if waiting and busy:
        _waiting_and_busy(basis, waiting, busy)
    elif waiting:
        _other_place(basis, waiting)
        _missing(basis, waiting)
    else:
        _other_work(basis, busy)


def _stands(basis: Basis) -> list[_Stand]:
    """The last dump of each main thread; those of a process that was crashing when it was written are left out."""
    crashes = [
        (e.ref.path, e.ref.line, e.ref.line + e.lines) for e in basis.events("py.fatal") if e.get("nature") == "cause"
    ]
    last: dict[tuple[object, ...], _Stand] = {}
    for event in basis.events("py.stack"):
        if not event.get("main") or event.get("where") in _NO_RANK:
            continue
        path, line = event.ref.path, event.ref.line
        if any(path == p and start <= line < end for p, start, end in crashes):
            continue
        who = basis.who(event)
        key = ("rank", who.rank) if who.rank is not None else (event.ref.path, who.host, event.get("pid"))
        # A kernel stack says where in the kernel, a dump of the process why: the dump is kept where both exist.
        if event.get("via") == "proc" and key in last:
            continue
        last[key] = _Stand(who.rank, event)
    return list(last.values())


def _waiting_and_busy(basis: Basis, waiting: list[_Stand], busy: list[_Stand]) -> None:
    """Some wait for others: those who do not wait are whom they wait for, unless the many are busy with one thing."""
    if len(busy) <= len(waiting):
        _odd(basis, busy, waiting)
        return
    work, count = Counter(s.where for s in busy).most_common(1)[0]
    if work not in _ORDINARY and count == len(busy) and len(busy) >= 2:
        _odd(basis, waiting, busy)


def _other_place(basis: Basis, waiting: list[_Stand]) -> None:
    """All wait, but not in the same: another class of wait, another collective or another line of the program."""
    kind, most = Counter(s.where for s in waiting).most_common(1)[0]
    some = [s for s in waiting if s.where == kind]
    others = [s for s in waiting if s.where != kind]
    # A wait for the GPU is a wait for a collective that the stack does not show.
    told = [s for s in others if {kind, s.where} != {"collective", "cuda_sync"}]
    if told and len(some) >= 2 and 2 * most > len(waiting):
        _odd(basis, told, some)
        return
    if kind != "collective":
        return
    place, count = Counter(s.place for s in some).most_common(1)[0]
    odd = [s for s in some if s.place != place]
    if odd and count >= 2 and 2 * count > len(some):
        _odd(basis, odd, [s for s in some if s.place == place])


def _other_work(basis: Basis, busy: list[_Stand]) -> None:
    """Nobody waits: most do one known thing (compile, load data, read a file) and few another."""
    kind, most = Counter(s.where for s in busy).most_common(1)[0]
    odd = [s for s in busy if s.where != kind]
    if odd and kind not in _ORDINARY and most >= 2 and 2 * most > len(busy):
        _odd(basis, odd, [s for s in busy if s.where == kind])


def _odd(basis: Basis, odd: list[_Stand], others: list[_Stand]) -> None:
    """One fact for each class in which odd ranks stand."""
    common = Counter(s.where for s in others).most_common(1)[0][0]
    op = Counter(s.event.get("collective") for s in others).most_common(1)[0][0]
    for where in sorted({s.where for s in odd}):
        some = [s for s in odd if s.where == where]
        first = some[0].event
        fields = {name: first.get(name) for name in ("collective", "during", "native_func")}
        for name in ("user_func", "user_file", "user_line"):
            fields[name] = first.get(name)
        basis.add(
            "stack.odd",
            {
                **fields,
                "where": where,
                "others": common,
                "other_collective": op,
                "shape": _shape(where, common),
                "alone": len(odd) == 1 and len(others) >= _MANY,
                "size": len(odd) + len(others),
            },
            [*(s.event for s in some[:3]), *(s.event for s in others[:2])],
            ranks=[s.rank for s in some if s.rank is not None],
            hosts=[h for s in some if (h := basis.who(s.event).host)],
        )


def _shape(where: str, others: str) -> str:
    """What kind of oddness it is; "" where the others do not wait for anybody."""
    if where in WAITING:
        return "other_wait"
    if others not in WAITING:
        return ""
    if where in _OWN_SHAPE:
        return _OWN_SHAPE[where]
    return "not_at_init" if others in _INIT else "busy"


def _missing(basis: Basis, waiting: list[_Stand]) -> None:
    """Everyone who was looked at waits for all ranks to come to init, and some ranks were not looked at."""
    kinds = {s.where for s in waiting}
    have = {s.rank for s in waiting if s.rank is not None}
    world = basis.identity.world or _world_of_launcher(basis)
    if len(kinds) != 1 or not kinds <= _INIT or world is None or world > 65536 or len(have) < len(waiting):
        return
    missing = sorted(set(range(world)) - have)
    # With most ranks unseen nothing points at any of them.
    if missing and len(missing) <= len(have):
        basis.add(
            "stack.missing",
            {"where": kinds.pop(), "missing": tuple(missing), "waiting": tuple(sorted(have)), "size": world},
            [s.event for s in waiting[:4]],
            ranks=missing,
        )


def _world_of_launcher(basis: Basis) -> int | None:
    sizes = [n for e in basis.events("launch.rdzv_result") if isinstance(n := e.get("world_size"), int)]
    return max(sizes, default=None)
