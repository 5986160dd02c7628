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
    "launch.exit_row",
    "launch.child_exit",
    "launch.process_failed",
    "launch.shell_signal",
    "mpi.rank_exit",
    "mpi.crash",
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
    echoing = {basis.who(e).rank for e in basis.events("py.exception") if e.get("nature") == "consequence"} - {None}
    excepted = {
        basis.who(e).rank for e in basis.events("py.exception") if e.get("nature_of") not in ("signal",)
    } - {None}
    deaths: dict[tuple[int | None, str], list[Event]] = {}
    stopped = _stopped_by_others(basis)
    for event in basis.events(*_EXITS):
        how = _how(event)
        if how is None or (how in _SENT_TO_STOP and event.get("pid") not in stopped):
            continue
        rank = basis.who(event).rank
        # An abort that only a crash handler tells of has its reason in what was printed before it.
        if how == "SIGABRT" and event.kind == "mpi.crash":
            continue
        if how == "SIGABRT" and (rank in aborting | echoing or _aborts_in_general(basis, rank)):
            continue
        deaths.setdefault((rank, how), []).append(event)
    for event in basis.events("py.fatal"):  # faulthandler: the process says itself that it crashed
        how = signal_name(event.get("signal")) or "crash"
        if how == "SIGABRT" and basis.events("torch.taking_down", "torch.watchdog_exception"):
            continue
        deaths.setdefault((basis.who(event).rank, how), []).insert(0, event)
    for (rank, how), events in _merged(deaths).items():
        exit_code = next((e.get("exit_code") for e in events if e.get("exit_code") is not None), None)
        frame = next((e.get("user_func") or e.get("frame_func") for e in events if e.kind == "py.fatal"), None)
        host = next((h for e in events if (h := basis.who(e).host)), None)
        basis.add(
            "rank.died",
            {"how": how, "signal": how, "exit_code": exit_code, "shown_by": events[0].kind, "frame": frame},
            events,
            ranks=[] if rank is None else [rank],
            hosts=[] if host is None else [host],
        )
    if not _exited(basis):
        _quiet(basis, excepted | aborting)


def _stopped_by_others(basis: Basis) -> set[int]:
    """The one process, if it is one, that a signal to stop ended although its launcher, which names all that it stops
    and was not told to stop itself, did not send it."""
    if basis.events("launch.received_signal", "slurm.cancelled", "slurm.terminating", "py.keyboard_interrupt"):
        return set()
    sent = {e.get("pid") for e in basis.events("launch.sigterm_sent")}
    if not sent:
        return set()
    ended = {
        pid
        for e in basis.events("launch.child_exit")
        if _how(e) in _SENT_TO_STOP and isinstance(pid := e.get("pid"), int) and pid not in sent
    }
    failed = [e for e in basis.events("launch.child_exit") if e.get("pid") not in ended]
    return ended if len(ended) == 1 and not failed else set()


# What ranks print themselves; a launcher's table alone does not say what they printed.
_RANKS_WORDS = ("nccl.", "torch.", "py.", "cuda.")


def _exited(basis: Basis) -> bool:
    """rank.died for the one process that a launcher saw exit with a code of its own and that printed no error, though
    its output is there to read; True when there is one."""
    failures = {
        (basis.who(e).rank, code): e
        for e in basis.events("launch.child_exit", "launch.process_failed")
        if isinstance(code := e.get("exit_code"), int) and 0 < code < 126
    }
    if len(failures) != 1:
        return False
    ((rank, code), event) = next(iter(failures.items()))
    if rank is None:
        return False
    spoken = [e for e in basis.events() if e.kind.startswith(_RANKS_WORDS)]
    own = [e for e in spoken if basis.who(e).rank == rank]
    # Code 1 is what every exception ends with: only a rank whose own lines are there can be said to have been silent.
    if not (own if code == 1 else spoken or event.kind == "launch.process_failed"):
        return False
    if any(e.get("cause") or e.kind in _OWN_ABORT for e in basis.events()):
        return False
    failing = ("cause", "symptom")
    if any(e.kind == "py.exception" for e in own) or any(
        e.get("nature") in failing
        for e in spoken
        if (who := basis.who(e).rank) == rank or (who is None and e.ref.path == event.ref.path)
    ):
        return False
    sources = sorted({s.path for s in basis.store.streams if not s.hints.kernel})
    basis.add(
        "rank.died",
        {"how": "exit", "exit_code": code, "shown_by": event.kind},
        [event],
        ranks=[rank],
        absences=[AbsenceEvidence(f"an error of rank {rank}", sources[:8], "not_found")],
    )
    return True


def _merged(deaths: dict[tuple[int | None, str], list[Event]]) -> dict[tuple[int | None, str], list[Event]]:
    """A death without a rank is the one of the same signal with a rank, where exactly one rank died of it."""
    out = dict(deaths)
    for (rank, how), events in deaths.items():
        if rank is None:
            named = [key for key in deaths if key[1] == how and key[0] is not None]
            if len(named) == 1:
                out[named[0]] = sorted([*out[named[0]], *events], key=lambda e: e.order)
                del out[rank, how]
    return out


def _aborts_in_general(basis: Basis, rank: int | None) -> bool:
    """Whether an abort of an unnamed rank is explained by watchdogs that took processes down."""
    return rank is None and bool(basis.events("torch.taking_down", "torch.watchdog_exception"))


def _quiet(basis: Basis, spoke_of_failure: set[int | None]) -> None:
    """Ranks whose peers saw their connection close, that no launcher lists and that printed no error themselves."""
    closed = basis.events("nccl.peer_closed", "torch.gloo_closed") or _ended_before(basis)
    if not closed:
        return
    listed = {basis.who(e).rank for e in basis.events(*_EXITS, "py.fatal")} | set(
        _ranks_of(basis, ("torch.oom", "cuda.error"))
    )
    victims = {basis.who(e).rank for e in closed} | {
        basis.who(e).rank for e in basis.events("torch.watchdog_timeout")
    }
    world = basis.identity.world
    seen = basis.identity.seen_ranks
    everyone = set(range(world)) if world and world <= 65536 else _world_of_launcher(basis)
    # Ranks are counted from 0: a hole below the highest one seen is a rank as well.
    everyone = everyone or set(range(max(seen, default=-1) + 1))
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


def _ended_before(basis: Basis) -> list[Event]:
    """A launcher's report of ranks that timed out, when it had no other process left to stop: those ended with 0."""
    failed = basis.events("launch.child_exit")
    nodes = [n for e in basis.events("nccl.comm_info") if isinstance(n := e.get("nnodes"), int)]
    if not failed or basis.events("launch.sigterm_sent") or max(nodes, default=0) != 1:
        return []
    waited = {basis.who(e).rank for e in basis.events("torch.watchdog_timeout")}
    return failed if all(basis.who(e).rank in waited for e in failed) else []


def _world_of_launcher(basis: Basis) -> set[int] | None:
    for event in basis.events("launch.rdzv_result"):
        size = event.get("world_size")
        if isinstance(size, int) and 0 < size <= 65536:
            return set(range(size))
    return None


def _ranks_of(basis: Basis, kinds: Iterable[str]) -> list[int]:
    return [r for e in basis.events(*kinds) if (r := basis.who(e).rank) is not None]
