"""What every correlator works with: the events, whom they are about, and how an event becomes proof."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ncclscope.clocks import Stamp, format_stamp, parse_iso, without_year
from ncclscope.facts.attempts import Attempts
from ncclscope.facts.identity import Identity, Who, told_ranks
from ncclscope.facts.kinds import FACTS
from ncclscope.model import Event, Value
from ncclscope.observation import Observation
from ncclscope.report import UNSET, AbsenceEvidence, LineEvidence
from ncclscope.store import EventGroup, EventStore

__all__ = ["Basis", "FactOptions"]

# Lines that are printed later about something whose time they tell.
_TELLS_TIME = frozenset({"launch.failure_row"})
_MAX_TEXT = 400
_MAX_FACT_EVIDENCE = 6


class FactOptions(msgspec.Struct, frozen=True):
    """gpu: architecture given by the user ("sm_120"); as_of: when a hanging job was looked at, seconds since 1970."""

    gpu: str | None = None
    as_of: float | None = None


class Basis(msgspec.Struct):
    """The read input with its joins; correlators ask it and add observations."""

    store: EventStore
    identity: Identity
    options: FactOptions
    year: int | None
    attempts: Attempts
    facts: list[Observation] = msgspec.field(default_factory=list)

    @classmethod
    def of(cls, store: EventStore, options: FactOptions) -> Basis:
        identity = Identity(store)
        return cls(store, identity, options, _common_year(store), Attempts(store, identity))

    def events(self, *kinds: str) -> list[Event]:
        return self.store.events(*kinds)

    def who(self, event: Event) -> Who:
        return self.identity.who(event)

    def time(self, event: Event) -> Stamp | None:
        """The event's time, with the year that other lines of the input show where its own text has none."""
        stamp = event.env.time
        if event.kind in _TELLS_TIME and isinstance(told := event.get("time"), str):
            stamp = parse_iso(told) or stamp
        if stamp is not None and self.year is not None:
            return stamp.with_year(self.year)
        return stamp

    def line(self, event: Event, count: int = 1) -> LineEvidence:
        """The event's line as proof."""
        shown = None
        stamp = self.time(event)
        if stamp is not None:
            shown = format_stamp(stamp)
        return LineEvidence(
            source=event.ref.path,
            line=event.ref.line,
            text=event.text.strip()[:_MAX_TEXT],
            count=count,
            time=shown[0] if shown else UNSET,
            zone=shown[1] if shown else UNSET,
        )

    def observation(self, group: EventGroup) -> Observation:
        """A group of like events as rules see it."""
        event = group.first[0]
        who = self.who(event)
        told = told_ranks(event) if who.rank is None else ()
        if told:
            hosts, pids = self._of_ranks(told)
        else:
            hosts = () if who.host is None else (who.host,)
            pids = () if who.pid is None else (who.pid,)
        return Observation(
            kind=event.kind,
            fields=event.fields,
            ranks=told if who.rank is None else (who.rank,),
            hosts=hosts,
            gpus=() if who.gpu is None else (who.gpu,),
            pids=pids,
            evidence=(self.line(event, group.count),),
            time=self.time(event),
            source=event.ref.path,
            order=event.ref.line,
            count=group.count,
            attempt=self.attempts.of(event),
        )

    def add(
        self,
        kind: str,
        fields: Mapping[str, Value | None],
        events: Sequence[Event],
        *,
        ranks: Iterable[int] = (),
        at: Event | None = None,
        absences: Sequence[AbsenceEvidence] = (),
        hosts: Iterable[str] = (),
        gpus: Iterable[str] = (),
        pids: Iterable[int] = (),
        lines: Sequence[LineEvidence] = (),
        why: Sequence[str] = (),
    ) -> None:
        """Adds a fact about `ranks`, resting on `events`; `at` is the event whose place and time it takes."""
        if kind not in FACTS:
            raise ValueError(f"undeclared fact {kind}")
        ranks = tuple(sorted(set(ranks)))
        at = at or (events[0] if events else None)
        known = {name: value for name, value in fields.items() if value is not None}
        if why:
            known["why"] = tuple(why)
        of_ranks = self._of_ranks(ranks)
        lines = [*lines, *(self.line(e) for e in events[:_MAX_FACT_EVIDENCE])]
        self.facts.append(
            Observation(
                kind=kind,
                fields=known,
                ranks=ranks,
                hosts=tuple(sorted({*hosts, *of_ranks[0]})),
                gpus=tuple(sorted({*gpus, *(g for r in ranks if (g := self.identity.gpu_of_rank.get(r)))})),
                pids=tuple(sorted({*pids, *of_ranks[1]})),
                evidence=(*lines, *absences),
                time=self.time(at) if at else None,
                source=at.ref.path if at else lines[0].source if lines else "",
                order=at.ref.line if at else 0,
                derived=True,
                attempt=self.attempts.of(at) if at else 0,
            )
        )

    def _of_ranks(self, ranks: Iterable[int]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Hosts and last processes of `ranks`."""
        known = self.identity
        hosts = {host for r in ranks if (host := known.host_of_rank.get(r))}
        pids = {pid for r in ranks for _, pid in known.processes_of_rank.get(r, [])[-1:]}
        return tuple(sorted(hosts)), tuple(sorted(pids))

    def seconds(self, event: Event) -> float | None:
        """A number for "how long between" inside one clock: the printed wall time without its year."""
        stamp = event.env.time
        if stamp is None or stamp.clock == "boot":
            return None
        return without_year(stamp).seconds


def _common_year(store: EventStore) -> int | None:
    import time

    years = {
        time.gmtime(stamp.seconds).tm_year
        for stream in store.streams
        for stamp in (stream.first_time, stream.last_time)
        if stamp is not None and stamp.year_known and stamp.clock != "boot"
    }
    if not years:
        years = {
            time.gmtime(e.env.time.seconds).tm_year
            for e in store.events()
            if e.env.time is not None and e.env.time.year_known and e.env.time.clock != "boot"
        }
    return years.pop() if len(years) == 1 else None
