"""Attempts of one job: elastic restarts and reruns appended to one log, told apart; and several jobs in one input."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from ncclscope.facts.identity import Identity
from ncclscope.model import Event
from ncclscope.store import EventStore

__all__ = ["Attempts"]

# What a process prints of NCCL before anything else.
_EARLY = ("nccl.version", "nccl.bootstrap_using", "nccl.driver", "nccl.init_start", "nccl.init_complete")


class Attempts:
    """Which attempt an event belongs to, from 0; what failed in attempt 0 is no echo of attempt 1."""

    def __init__(self, store: EventStore, identity: Identity) -> None:
        self._starts: dict[str, list[int]] = defaultdict(list)  # lines at which a new attempt begins
        self._named = {s.path: s.hints.attempt for s in store.streams if s.hints.attempt is not None}
        for event in store.events("launch.restart"):
            self._starts[event.ref.path].append(event.ref.line + 1)
        for path, orders in self._new_processes(store, identity).items():
            if not self._starts.get(path):
                self._starts[path] = orders
        for orders in self._starts.values():
            orders.sort()
        self.several_jobs = self._disjoint_worlds(store)

    @property
    def count(self) -> int:
        """How many attempts the input shows."""
        return 1 + max([*map(len, self._starts.values()), *self._named.values(), 0])

    def of(self, event: Event) -> int:
        """The attempt of `event`: from torchrun's directory name, else by its place among the restarts of its file."""
        named = self._named.get(event.ref.path)
        if named is not None:
            return named
        return bisect_right(self._starts.get(event.ref.path, []), event.ref.line)

    def _new_processes(self, store: EventStore, identity: Identity) -> dict[str, list[int]]:
        """A rank that starts init anew with another pid in the same file: the log goes on with a rerun."""
        first_of_pid: dict[tuple[str, int | None], int] = {}
        for event in store.events(*_EARLY):
            first_of_pid.setdefault((event.ref.path, event.env.pid), event.ref.line)
        pids: dict[tuple[str, int], list[int]] = defaultdict(list)
        for event in store.events("nccl.init_start", "nccl.init_complete"):
            rank = event.get("rank")
            if event.get("nranks") == identity.world and isinstance(rank, int) and event.env.pid is not None:
                known = pids[event.ref.path, rank]
                if event.env.pid not in known:
                    known.append(event.env.pid)
        starts: dict[str, list[int]] = defaultdict(list)
        for (path, _), own in pids.items():
            for generation, pid in enumerate(own[1:]):
                order = first_of_pid[path, pid]
                if generation < len(starts[path]):
                    starts[path][generation] = min(starts[path][generation], order)
                else:
                    starts[path].append(order)
        return starts

    def _disjoint_worlds(self, store: EventStore) -> int:
        """How many jobs the input seems to hold: communicators whose rank 0 is in files with none in common."""
        files_of_comm: dict[object, set[str]] = defaultdict(set)
        for event in store.events("nccl.init_start", "nccl.init_complete"):
            if event.get("rank") == 0 and event.get("comm_id") is not None and not event.get("parent"):
                files_of_comm[event.get("comm_id")].add(event.ref.path)
        of_file: dict[frozenset[str], int] = defaultdict(int)
        for files in files_of_comm.values():
            of_file[frozenset(files)] += 1
        return len(of_file)
