"""In which phase of a run something happened: rendezvous, bootstrap, init, first collective, steady or teardown."""

from __future__ import annotations

from collections import defaultdict

from ncclscope.clocks import Answer
from ncclscope.facts.base import Basis
from ncclscope.observation import Observation, earlier
from ncclscope.report import LineEvidence, Phase
from ncclscope.store import EventGroup

__all__ = ["PhaseFinder"]

# NCCL prints an empty line before each warning, and a few of its own lines are not parsed.
_PROGRESS_LINES = 4


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
        self._lines: dict[str, set[int]] = defaultdict(set)
        for event in basis.events():
            self._lines[event.ref.path].update(range(event.ref.line - event.lines + 1, event.ref.line + 1))
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
        connected = self._before(self._connected, observation)
        if connected is not None:
            # Since 2.22 rings are connected inside the first collective; only what the program prints after it shows
            # that the collective came to its end.
            return "steady" if self._printed_between(connected, observation) else "first_collective"
        if self._before(self._complete, observation):
            return "first_collective"
        if self._before(self._bootstrap, observation):
            return "init"
        if self._before(self._start, observation):
            return "bootstrap"
        if self._before(self._banner, observation):
            return "init"
        return "rendezvous" if self._banner else "unknown"

    def _printed_between(self, mark: Observation, observation: Observation) -> bool:
        """Whether lines that no parser knows stand between the two: the program's own output."""
        if mark.source != observation.source:
            return True
        lines = [e.line for o in (mark, observation) for e in o.evidence[:1] if isinstance(e, LineEvidence)]
        if len(lines) < 2:
            return True
        known = {line for line in self._lines[mark.source] if lines[0] < line < lines[1]}
        return lines[1] - lines[0] - 1 - len(known) > _PROGRESS_LINES

    def _before(self, marks: list[Observation], observation: Observation) -> Observation | None:
        """The last of `marks` that the same rank (any, where the observation names none) passed before."""
        for mark in reversed(marks):
            if observation.ranks and mark.ranks and not set(mark.ranks) & set(observation.ranks):
                continue
            answer = earlier(mark, observation)
            if answer is Answer.YES or (
                answer is Answer.UNKNOWN
                and mark.source == observation.source
                and mark.order < observation.order
            ):
                return mark
        return None
