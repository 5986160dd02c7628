"""Processes that ended: by a signal, a crash, or quietly; echoes of a launcher's clean-up left out."""

from __future__ import annotations

import signal as signals
from collections.abc import Iterable

from ncclscope.facts.base import Basis
from ncclscope.model import Event
from ncclscope.report import AbsenceEvidence

__all__ = ["add_death_facts", "signal_name"]

_EXITS = (
    "launch.failure_row",
    "launch.child_exit",
    "launch.process_failed",
    "launch.shell_signal",
    "mpi.rank_exit",
    "slurm.task_exit",
    "ds.child_exit",
    "ray.worker_died",
    "pl.child_exit",
    "torch.dataloader_worker_killed",
)
# Signals that launchers, schedulers and people send to clean up; a process that got one was stopped, it did not fail.
_SENT_TO_STOP = frozenset({"SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT"})
# Lines by which a rank says that NCCL's or c10's own watchdog is about to abort it.
_OWN_ABORT = (
    "torch.watchdog_timeout",
    "torch.taking_down",
    "torch.watchdog_exception",
    "torch.heartbeat_stuck",
    "torch.dump_signal",
)


def signal_name(value: object) -> str | None:
    """SIGKILL for 9, -9, 137, "9", "SIGKILL" or "Killed"; None for what is no signal."""
    words = {
        "Killed": "SIGKILL",
        "Segmentation fault": "SIGSEGV",
        "Aborted": "SIGABRT",
        "Bus error": "SIGBUS",
    }
    if isinstance(value, str):
        if value in words:
            return words[value]
        if value.startswith("SIG"):
            return value
        if not value.lstrip("-").isdigit():
            return None
        value = int(value)
    if not isinstance(value, int):
        return None
    number = -value if value < 0 else value - 128 if value > 128 else value
    try:
        return signals.Signals(number).name
    except ValueError:
        return None


def _how(event: Event) -> str | None:
    """The signal that ended the process, or None when it exited by itself."""
    named = event.get("signal")
    if named is not None:
        return signal_name(named)
    code = event.get("exit_code")
    if isinstance(code, int) and (code < 0 or 128 < code < 160):
        return signal_name(code)
    return None


def add_death_facts(basis: Basis) -> None:
    """rank.died for each process that a signal ended on its own account, and for ranks that left without a word."""
    aborting = {basis.who(e).rank for e in basis.events(*_OWN_ABORT)} - {None}
    excepted = {
        basis.who(e).rank for e in basis.events("py.exception") if e.get("nature_of") not in ("signal",)
    } - {None}
    for event in basis.events(*_EXITS):
        how = _how(event)
        if how is None or how in _SENT_TO_STOP:
            continue
        who = basis.who(event)
        if how == "SIGABRT" and (who.rank in aborting or _aborts_in_general(basis, who.rank)):
            continue
        basis.add(
            "rank.died",
            {"how": how, "signal": how, "exit_code": event.get("exit_code"), "shown_by": event.kind},
            [event],
            ranks=[] if who.rank is None else [who.rank],
            hosts=[] if who.host is None else [who.host],
        )
    _fatal_errors(basis)
    _quiet(basis, excepted | aborting)


def _aborts_in_general(basis: Basis, rank: int | None) -> bool:
    """Whether an abort of an unnamed rank is explained by watchdogs that took processes down."""
    return rank is None and bool(basis.events("torch.taking_down", "torch.watchdog_exception"))


def _fatal_errors(basis: Basis) -> None:
    """faulthandler and C++ terminate messages: the process says itself that it crashed."""
    for event in basis.events("py.fatal"):
        who = basis.who(event)
        how = signal_name(event.get("signal")) or "crash"
        if how == "SIGABRT" and basis.events("torch.taking_down", "torch.watchdog_exception"):
            continue
        basis.add(
            "rank.died",
            {"how": how, "signal": how, "shown_by": "py.fatal", "frame": event.get("frame_func")},
            [event],
            ranks=[] if who.rank is None else [who.rank],
        )


def _quiet(basis: Basis, spoke_of_failure: set[int | None]) -> None:
    """Ranks whose peers saw their connection close, that no launcher lists and that printed no error themselves."""
    closed = basis.events("nccl.peer_closed", "torch.gloo_closed")
    if not closed:
        return
    listed = {basis.who(e).rank for e in basis.events(*_EXITS, "py.fatal")} | set(
        _ranks_of(basis, ("torch.oom", "cuda.error"))
    )
    victims = {basis.who(e).rank for e in closed} | {
        basis.who(e).rank for e in basis.events("torch.watchdog_timeout")
    }
    world = basis.identity.world
    seen = basis.identity.seen_ranks(basis.events())
    everyone = set(range(world)) if world and world <= 65536 else _world_of_launcher(basis) or seen
    quiet = sorted(everyone - {r for r in spoke_of_failure | listed | victims if r is not None})
    if quiet and len(quiet) < max(2, len(everyone)) and len(quiet) <= max(1, len(everyone) // 2):
        sources = sorted({s.path for s in basis.store.streams if not s.hints.kernel})
        basis.add(
            "rank.died",
            {"how": "quiet", "shown_by": "peers"},
            closed[:3],
            ranks=quiet,
            absences=[AbsenceEvidence(f"an error of rank {r}", sources[:8], "not_found") for r in quiet[:4]],
        )


def _world_of_launcher(basis: Basis) -> set[int] | None:
    for event in basis.events("launch.rdzv_result"):
        size = event.get("world_size")
        if isinstance(size, int) and 0 < size <= 65536:
            return set(range(size))
    return None


def _ranks_of(basis: Basis, kinds: Iterable[str]) -> list[int]:
    return [r for e in basis.events(*kinds) if (r := basis.who(e).rank) is not None]
