"""What rules look at: parsed events and derived facts in one shape, with everything known of who they are about."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ncclscope.clocks import Answer, Stamp, before
from ncclscope.model import Value
from ncclscope.report import AbsenceEvidence, LineEvidence

__all__ = ["Observation", "earlier", "identity"]


class Observation(msgspec.Struct, frozen=True):
    """An event or a fact. ranks, hosts, gpus and pids are empty where the input does not show them.

    time is of the first occurrence; (source, order) its place in reading order; derived marks a fact that our own
    reasoning made, as against a line that a program printed. attempt counts restarts of the job from 0.
    """

    kind: str
    fields: Mapping[str, Value]
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    evidence: tuple[LineEvidence | AbsenceEvidence, ...] = ()
    time: Stamp | None = None
    source: str = ""
    order: int = 0
    count: int = 1
    derived: bool = False
    attempt: int = 0


def earlier(a: Observation, b: Observation) -> Answer:
    """Whether `a` came before `b`: by clock where both show one, else by line order inside one process's stream."""
    if a.attempt != b.attempt:
        return Answer.YES if a.attempt < b.attempt else Answer.NO
    same_host = bool(set(a.hosts) & set(b.hosts)) or (a.source == b.source and not (a.hosts and b.hosts))
    by_clock = before(a.time, b.time, same_host=same_host)
    if by_clock is not Answer.UNKNOWN:
        return by_clock
    if a.source == b.source and (a.ranks == b.ranks or not a.ranks or not b.ranks):
        if a.order == b.order:
            return Answer.UNKNOWN
        return Answer.YES if a.order < b.order else Answer.NO
    return Answer.UNKNOWN


def identity(observation: Observation, key: str) -> frozenset[Value]:
    """The values of a join key: rank, host, gpu, pid, source, or a field's name. Empty: not known."""
    if key == "rank":
        return frozenset(observation.ranks)
    if key == "host":
        return frozenset(observation.hosts)
    if key == "gpu":
        return frozenset(observation.gpus)
    if key == "pid":
        return frozenset(observation.pids)
    if key == "source":
        return frozenset((observation.source,)) if observation.source else frozenset()
    value = observation.fields.get(key)
    return frozenset() if value is None else frozenset((value,))
