"""How the input ends: completed, stopped by a signal, failed, or open; and how long it had been silent before."""

from __future__ import annotations

import msgspec

from ncclscope.clocks import Stamp
from ncclscope.facts.base import Basis
from ncclscope.model import Event
from ncclscope.store import StreamInfo

__all__ = ["Ending", "completed_after_all", "duration", "find_ending", "tells_failure"]

# Shorter silences are ordinary: imports, data loading, a first compilation.
MIN_SILENCE_S = 20.0

# After these NCCL goes on: it has a network without a plug-in and ways without peer access, and RAS only watches.
_GOES_ON = frozenset(
    """nccl.trail nccl.warn nccl.plugin nccl.ras_link nccl.peer_query_failed nccl.nic_merge_failed nccl.ib_addr_range
    nccl.wrong_socket nccl.comm_revoke""".split()
)


class Ending(msgspec.Struct, frozen=True):
    """how: completed, signalled, failed or open. silent_s: seconds without a line before that end, None when no clock
    tells. by: the event that ended it. still: the job was looked at while it hung."""

    how: str
    silent_s: float | None
    by: Event | None
    still: bool = False

    @property
    def known(self) -> bool:
        """Whether silence before this end counts as silence, and is not just where a capture was cut."""
        return self.how != "open" or (self.silent_s is not None and self.silent_s >= MIN_SILENCE_S)


def tells_failure(nature: object) -> bool:
    """Whether a line of this nature tells of something that went wrong."""
    return nature in ("cause", "consequence", "symptom")


def completed_after_all(basis: Basis) -> bool:
    """Whether every rank took its communicator down in order after the last error line: the program went on after it.

    A launcher or a kernel that speaks of a failure is never outlived.
    """
    world = basis.identity.world
    ends = [e for e in basis.events("nccl.comm_end") if e.get("nranks") == world]
    orderly = [e for e in ends if e.get("action") == "Destroy" and e.get("state") == "COMPLETE"]
    if not world or len(orderly) < len(ends) or {basis.who(e).rank for e in orderly} != set(range(world)):
        return False
    first: dict[str, int] = {}
    for event in orderly:
        first.setdefault(event.ref.path, event.ref.line)
    return all(
        event.kind.startswith(("py.", "torch.", "cuda.", "nccl."))
        and event.ref.line < first.get(event.ref.path, 0)
        and event.kind not in ("py.fatal", "py.keyboard_interrupt")
        for event in basis.events()
        if tells_failure(event.get("nature"))
    )


def find_ending(basis: Basis) -> Ending:
    """Looks at signals to the launcher first, then failures, then completion, then at the files' last write."""
    signalled = basis.events(
        "launch.received_signal", "slurm.cancelled", "slurm.terminating", "py.keyboard_interrupt"
    )
    if signalled:
        first = signalled[0]
        gap = first.get("gap_s")
        return Ending("signalled", float(gap) if isinstance(gap, (int, float)) else None, first)
    failing = [
        e
        for e in basis.events()
        if tells_failure(e.get("nature"))
        and e.kind not in _GOES_ON
        and not e.kind.startswith("ras.")
    ]
    if failing:
        gap = failing[0].get("gap_s")
        return Ending("failed", float(gap) if isinstance(gap, (int, float)) else None, failing[0])
    ended = basis.events("nccl.comm_end", "torch.not_destroyed", "launch.run_ended", "nccl.tests_done")
    if ended:
        return Ending("completed", None, ended[-1])
    silence = _still_silent(basis)
    return Ending("open", silence, None, still=silence is not None)


def _still_silent(basis: Basis) -> float | None:
    """Seconds from the last dated line to the last write of its file or --as-of; None where no clock tells."""
    best: float | None = None
    for stream in basis.store.streams:
        if stream.hints.kernel or stream.last_time is None:
            continue
        silent = _silence_of(stream, stream.last_time, basis.options.as_of)
        if silent is not None and silent >= 0 and (best is None or silent < best):
            best = silent
    return best


def _silence_of(stream: StreamInfo, last: Stamp, as_of: float | None) -> float | None:
    end = as_of if as_of is not None else stream.mtime
    if end is None or last.clock == "boot":
        return None
    if last.utc is not None:
        return end - last.utc
    if not last.year_known:
        return None
    # Local time of an unknown zone: the write follows the last line within less than a quarter hour in the usual case,
    # so the part beyond whole quarter hours is no measure of silence. Only an explicit --as-of says more.
    if as_of is None:
        return None
    return as_of - last.seconds


def duration(seconds: float) -> str:
    """A length of time as people say it: 228 s, 14 min, 3 h 20 min."""
    whole = round(seconds)
    if whole < 600:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
