"""In which phase of a run something happened: rendezvous, bootstrap, init, first collective, steady or teardown."""

from __future__ import annotations

from ncclscope.facts.base import Basis
from ncclscope.clocks import Answer
from ncclscope.observation import Observation, earlier
from ncclscope.report import Phase
from ncclscope.store import EventGroup

__all__ = ["PhaseFinder"]


class PhaseFinder:
    """Places an observation by what the same rank had reached before it."""

    def __init__(self, basis: Basis) -> None:
        def marks(*kinds: str) -> list[Observation]:
            return [basis.observation(EventGroup([e], count=1)) for e in basis.events(*kinds)]

        self._banner = marks("nccl.version", "nccl.config", "nccl.bootstrap_using")
        self._start = marks("nccl.init_start")
        self._complete = marks("nccl.init_complete")
        self._bootstrap = marks("nccl.bootstrap_timings")
        self._connected = marks("nccl.connected")
        self._end = [o for o in marks("nccl.comm_end") if o.fields.get("action") == "Destroy"]
        self._has_nccl = bool(self._banner or self._start or self._complete)

    def __call__(self, observation: Observation) -> Phase:
        seq = observation.fields.get("seq")
        if observation.kind.startswith("collective."):
            return "first_collective" if seq in (0, 1) else "steady"
        if observation.kind == "init.silent":
            return "init"
        if observation.kind == "comm.stuck":
            return "bootstrap" if observation.fields.get("shape") == "ranks_missing" else "init"
        if isinstance(seq, int) and seq > 1:
            return "steady"
        if not self._has_nccl:
            return "unknown"
        if self._before(self._end, observation):
            return "teardown"
        if self._before(self._connected, observation):
            return "steady"
        if self._before(self._complete, observation):
            return "first_collective"
        if self._before(self._bootstrap, observation):
            return "init"
        if self._before(self._start, observation):
            return "bootstrap"
        if self._before(self._banner, observation):
            return "init"
        return "rendezvous" if self._banner else "unknown"

    def _before(self, marks: list[Observation], observation: Observation) -> bool:
        """Whether the same rank (any rank where the observation names none) passed one of `marks` before."""
        for mark in marks:
            if observation.ranks and mark.ranks and not set(mark.ranks) & set(observation.ranks):
                continue
            answer = earlier(mark, observation)
            if answer is Answer.YES or (
                answer is Answer.UNKNOWN
                and mark.source == observation.source
                and mark.order < observation.order
            ):
                return True
        return False
