"""In which phase of a run something happened: rendezvous, bootstrap, init, first collective, steady or teardown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from ncclscope.clocks import Answer
from ncclscope.facts.base import Basis
from ncclscope.observation import Observation, earlier
from ncclscope.report import LineEvidence, Phase
from ncclscope.store import EventGroup

__all__ = ["phases_of"]

# NCCL prints an empty line before each warning, and a few of its own lines are not parsed.
_PROGRESS_LINES = 4


def phases_of(basis: Basis) -> Callable[[Observation], Phase]:
    """Tells in which phase an observation falls. What that takes is gathered when first asked: most jobs are well, and
    nothing in them is ever placed."""
    finder: PhaseFinder | None = None

    def phase_of(observation: Observation) -> Phase:
        nonlocal finder
        if finder is None:
            finder = PhaseFinder(basis)
        return finder(observation)

    return phase_of


class PhaseFinder:
    """Places an observation by what the same rank had reached before it."""

    def __init__(self, basis: Basis) -> None:
        def marks(*kinds: str) -> list[Observation]:
            return [basis.observation(EventGroup([e], count=1)) for e in basis.events(*kinds)]

        self._banner = marks("nccl.version", "nccl.config", "nccl.bootstrap_using")
        self._verbose = bool(basis.events("nccl.config", "nccl.bootstrap_using", "nccl.driver"))
        self._start = marks("nccl.init_start")
        self._complete = marks("nccl.init_complete")
        self._bootstrap = marks("nccl.bootstrap_timings")
        self._connected = marks("nccl.connected")
        self._end = [o for o in marks("nccl.comm_end") if o.fields.get("action") == "Destroy"]
        # (first, last line) of what parsers understood, by file; a traceback's place is its last line
        self._lines: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for event in basis.events():
            at, more = event.ref.line, event.lines - 1
            span = (at - more, at) if event.kind == "py.exception" else (at, at + more)
            self._lines[event.ref.path].append(span)
        self._has_nccl = bool(self._banner or self._start or self._complete)
        self._deaths = [o for o in basis.facts if o.kind == "rank.died"]
        self._later = _attempts_past_first(basis)

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
        if observation.kind.startswith("kernel."):
            # Seconds since boot compare with nothing that NCCL prints; the death of the same rank does.
            observation = next((d for d in self._deaths if set(d.ranks) & set(observation.ranks)), observation)
        if self._before(self._end, observation):
            return "teardown"
        connected = self._before(self._connected, observation)
        if connected is not None:
            # Since 2.22 rings are connected inside the first collective; only what the program prints after it shows
            # that the collective came to its end.
            went_on = observation.attempt in self._later or self._printed_between(connected, observation)
            return "steady" if went_on else "first_collective"
        if self._before(self._complete, observation):
            return "steady" if observation.attempt in self._later else "first_collective"
        if self._before(self._bootstrap, observation):
            return "init"
        if self._before(self._start, observation):
            return "bootstrap"
        if self._before(self._banner, observation):
            # With NCCL_DEBUG=WARN the banner is all that NCCL prints: what came after it does not show.
            return "init" if self._verbose else "unknown"
        if self._precedes_init(observation):
            return "rendezvous"
        # Without NCCL's lines of this rank, what the others' watchdogs had reached still tells.
        return "steady" if observation.attempt in self._later else "unknown"

    def _precedes_init(self, observation: Observation) -> bool:
        """Whether the observation stands before NCCL's first lines of the same rank, or of the same file."""
        ranks = set(observation.ranks)
        return any(
            (ranks & set(mark.ranks) or mark.source == observation.source)
            and earlier(observation, mark) is Answer.YES
            for mark in self._banner
        )

    def _printed_between(self, mark: Observation, observation: Observation) -> bool:
        """Whether lines that no parser knows stand between the two: the program's own output."""
        if mark.source != observation.source:
            return True
        lines = [e.line for o in (mark, observation) for e in o.evidence[:1] if isinstance(e, LineEvidence)]
        if len(lines) < 2:
            return True
        # A message of several lines goes on after a traceback's last line: one that ends later has none before this.
        known = {
            line
            for first, last in self._lines[mark.source]
            if last <= lines[1]
            for line in range(max(first, lines[0] + 1), min(last + 1, lines[1]))
        }
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


def _attempts_past_first(basis: Basis) -> frozenset[int]:
    """Attempts in which a collective after the first one was issued, as watchdogs count them."""
    return frozenset(
        basis.attempts.of(event)
        for event in basis.events("torch.watchdog_timeout", "torch.watchdog_progress")
        if isinstance(seq := event.get("seq"), int) and seq > 1
    )
