"""Communicators: size, ranks seen, started, completed, missing; and init that goes silent before its START line."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

import msgspec

from ncclscope.facts.base import Basis
from ncclscope.facts.ending import Ending, duration
from ncclscope.facts.machine_code import gpu_archs
from ncclscope.knowledge.gpus import banner_fit, parse_capability
from ncclscope.model import Event
from ncclscope.report import AbsenceEvidence

__all__ = ["Communicator", "add_communicator_facts", "communicators"]

# Compiling NCCL's PTX took minutes on every GPU it was measured on; a slow file system can hold imports for seconds.
_SILENT_INIT_S = 45.0


class Communicator(msgspec.Struct):
    """One communicator: events by the rank inside it."""

    key: tuple[object, ...]
    size: int
    started: dict[int, Event] = msgspec.field(default_factory=dict)
    completed: dict[int, Event] = msgspec.field(default_factory=dict)
    world: bool = False

    @property
    def seen(self) -> set[int]:
        return set(self.started) | set(self.completed)

    @property
    def missing(self) -> set[int]:
        return set(range(self.size)) - self.seen


def communicators(basis: Basis) -> list[Communicator]:
    """All communicators of the input, in order of their first line. Joined by commId; where a version prints none, by
    size and by how often a process has made one of that size before."""
    found: dict[tuple[object, ...], Communicator] = {}
    made: dict[tuple[object, ...], int] = defaultdict(int)
    key_of_comm: dict[tuple[object, ...], tuple[object, ...]] = {}
    for event in basis.events("nccl.init_start", "nccl.init_complete"):
        rank, size = event.get("rank"), event.get("nranks")
        if not isinstance(rank, int) or not isinstance(size, int) or not 0 <= rank < size:
            continue
        process = (event.env.host, event.env.pid, event.ref.path if event.env.pid is None else None)
        handle = (*process, event.get("comm"))
        comm_id = event.get("comm_id")
        key: tuple[object, ...] | None = None
        if comm_id is not None and not event.get("parent"):
            key = ("id", comm_id)
        elif handle in key_of_comm and event.kind == "nccl.init_complete":
            key = key_of_comm[handle]
        else:
            series = (process, size, event.get("color"), event.get("parent") is not None, event.kind)
            made[series] += 1
            key = ("nth", size, event.get("color"), event.get("parent") is not None, made[series])
        key_of_comm[handle] = key
        comm = found.setdefault(key, Communicator(key, size))
        target = comm.started if event.kind == "nccl.init_start" else comm.completed
        target.setdefault(rank, event)
    for comm in found.values():
        comm.world = comm.size == basis.identity.world
    return list(found.values())


def add_communicator_facts(basis: Basis, ending: Ending) -> None:
    """comm.stuck and init.silent."""
    comms = communicators(basis)
    _silent_before_start(basis, ending)
    for comm in comms:
        _stuck(basis, ending, comm)
    _unfinished(basis, ending, comms)


def _stuck(basis: Basis, ending: Ending, comm: Communicator) -> None:
    has_start_lines = bool(comm.started)
    unfinished = set(comm.started) - set(comm.completed)
    if not has_start_lines or not unfinished:
        return
    if len(comm.completed) == comm.size or (
        comm.completed and not comm.missing and comm.size > len(comm.completed)
    ):
        shape = "some_completed"
    elif comm.missing:
        shape = "ranks_missing"
    else:
        shape = "all_started"
    missing = sorted(comm.missing) if comm.size <= 65536 else []
    to_global = comm.world
    spoke = _spoke(basis, missing) if to_global else []
    deduplicated = any(s.deduplicated for s in basis.store.streams)
    if comm.completed and shape == "ranks_missing":
        return  # others completed: the communicator came up, and the missing ranks' lines were not collected
    timings = [
        e
        for e in basis.events("nccl.bootstrap_timings")
        if e.env.pid in {s.env.pid for s in comm.started.values()}
    ]
    result: Literal["not_checked", "not_found"] = "not_checked" if deduplicated or not ending.known else "not_found"
    files = sorted({e.ref.path for e in comm.started.values()})
    absences = [
        AbsenceEvidence(expected=f"Init START of rank {rank}", searched=files[:8], result=result)
        for rank in missing[:4]
    ]
    if shape == "all_started":
        absences = [AbsenceEvidence(expected="Init COMPLETE of any rank", searched=files[:8], result=result)]
    basis.add(
        "comm.stuck",
        {
            "comm": str(comm.key[1]) if comm.key[0] == "id" else None,
            "nranks": comm.size,
            "started": tuple(sorted(comm.started)),
            "completed": tuple(sorted(comm.completed)),
            "missing": tuple(missing),
            "shape": shape,
            "missing_spoke": bool(spoke),
            "bootstrap_done": bool(timings),
            "known_end": ending.known and not deduplicated,
            "silent_s": ending.silent_s,
            "world": comm.world,
        },
        [*comm.started.values()][:3] + ([ending.by] if ending.by else []),
        ranks=missing if to_global and shape == "ranks_missing" else (),
        at=next(iter(comm.started.values())),
        absences=absences,
    )


def _spoke(basis: Basis, ranks: list[int]) -> list[int]:
    """Those of `ranks` that printed anything at all."""
    seen = basis.identity.seen_ranks
    return [r for r in ranks if r in seen]


def _unfinished(basis: Basis, ending: Ending, comms: list[Communicator]) -> None:
    """The input ends in the middle of init: a job that hangs there, or a capture that was cut."""
    if ending.how != "open" or basis.events("nccl.tests_row"):
        return
    complete = {e.env.pid for c in comms for e in c.completed.values()}
    # A banner alone is how many excerpts of healthy runs end.
    begun = basis.events("nccl.unique_id", "nccl.init_start", "nccl.connected")
    waiting = [e for e in begun if e.env.pid is not None and e.env.pid not in complete]
    if waiting:
        last = waiting[-1]
        reached = {"nccl.init_start": "Init START", "nccl.connected": "its rings"}.get(last.kind, "its first call")
        basis.add("init.unfinished", {"reached": reached, "processes": len({e.env.pid for e in waiting})}, waiting[-3:])


def _silent_before_start(basis: Basis, ending: Ending) -> None:
    """Processes with a banner or the Blocking line and nothing of init after it."""
    begun: dict[tuple[str | None, int | None], list[Event]] = defaultdict(list)
    for event in basis.events("nccl.version", "nccl.config", "nccl.bootstrap_using", "nccl.driver"):
        if event.env.pid is not None:
            begun[event.env.host, event.env.pid].append(event)
    reached = {
        (e.env.host, e.env.pid)
        for e in basis.events("nccl.init_start", "nccl.init_complete", "nccl.comm_info", "nccl.comm_end")
    }
    silent = {process: events for process, events in begun.items() if process not in reached}
    if not silent or reached or not basis.events("nccl.config"):
        return
    trouble = basis.events("nccl.warn", "nccl.cuda_failure", "py.exception", "nccl.trail")
    trouble = [
        e
        for e in trouble
        if e.get("nature_of") not in ("store", "echo", "signal") or e.kind != "py.exception"
    ]
    trouble = [e for e in trouble if not (e.kind == "py.exception" and e.get("nature_of") == "signal")]
    if trouble or not ending.known or ending.silent_s is None or ending.silent_s < _SILENT_INIT_S:
        return
    version = next(iter(basis.events("nccl.version")), None)
    nccl = version.get("version") if version else None
    cuda = version.get("cuda") if version else None
    arch = basis.options.gpu or next(iter(sorted(gpu_archs(basis))), None)
    coverage = None
    capability = parse_capability(arch) if arch else None
    if isinstance(nccl, str) and isinstance(cuda, str) and capability:
        coverage = banner_fit(nccl, cuda, capability)
    events = [some[-1] for some in silent.values()]
    if version is not None:
        events.insert(0, version)
    files = sorted({e.ref.path for e in events})
    basis.add(
        "init.silent",
        {
            "silent_s": round(ending.silent_s),
            "silent_for": duration(ending.silent_s),
            "nccl": nccl,
            "cuda": cuda,
            "gpu_arch": arch,
            "coverage": coverage,
            "shape": "before_start",
            "still": ending.still,
            "so_far": "so far" if ending.still else None,
        },
        events[:5] + ([ending.by] if ending.by else []),
        ranks=[
            r
            for p in silent
            if p[1] is not None and (r := basis.identity.rank_of_process.get((p[0], p[1]))) is not None
        ],
        hosts=[host for host, _ in silent if host],
        pids=[pid for _, pid in silent if pid is not None],
        at=events[0],
        absences=[AbsenceEvidence("Init START of any rank", files[:8], "not_found")],
    )
