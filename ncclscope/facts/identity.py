"""Which host, process, rank, CUDA device and PCI address are one thing.

NCCL's prefix has no rank: the Init lines join a process (host, pid) to a rank and a PCI address. c10 prints the global
rank, launchers print pids with ranks, file names hint. Where two sources disagree, the inner and more direct one wins.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from ncclscope.model import Event
from ncclscope.store import EventStore

__all__ = ["Identity", "Who"]

# Names that every host has for itself: torchrun's table says `localhost` where it was given no other name.
_NO_HOST = frozenset({"localhost", "127.0.0.1", "::1"})
# Lines in which a process tells of its own failure, with or without `[rankN]:` before them.
_OWN_WORDS = ("py.exception", "py.exception_line", "torch.", "cuda.")

# Events whose own `rank` field is a global rank by construction.
_GLOBAL_RANK_KINDS = frozenset(
    """launch.failure_row launch.child_exit launch.error_file ray.rank_map nccl.duplicate_gpu
    torch.wrapper_mismatch""".split()
)


class Who(msgspec.Struct, frozen=True):
    """Everything known of whom an event is about; None where the input does not show it."""

    rank: int | None = None
    host: str | None = None
    pid: int | None = None
    gpu: str | None = None


class Identity:
    """Answers `who(event)` after all events were read."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self.world: int | None = None
        self.rank_of_process: dict[tuple[str | None, int], int] = {}
        self.processes_of_rank: dict[int, list[tuple[str | None, int]]] = defaultdict(list)
        self.host_of_rank: dict[int, str] = {}
        self.gpu_of_rank: dict[int, str] = {}
        self.rank_of_task: dict[int, int] = {}
        self.tasks_are_ranks = True  # no task is known to be another rank or several
        self.rank_of_file: dict[str, int] = {}
        self.host_of_file: dict[str, str] = {}
        self._join_communicators()
        self._join_launchers()
        self._join_files()
        self._join_stacks()
        self._join_tasks()
        self.hosts = self._all_hosts()
        self.seen_ranks = self._seen()  # every rank that any input shows
        self._failed_alone = self._one_failure_of_file()
        self._rank_of_gpu = {
            (self.host_of_rank.get(rank), gpu): rank for rank, gpu in self.gpu_of_rank.items()
        }

    def _all_hosts(self) -> list[str]:
        hosts = {host for host, _ in self.rank_of_process if host} | set(self.host_of_rank.values())
        hosts |= {
            e.env.host
            for e in self._store.events("nccl.version", "nccl.config", "nccl.bootstrap_using")
            if e.env.host
        }
        return sorted(hosts)

    def _bind(self, host: str | None, pid: int, rank: int) -> None:
        self.rank_of_process.setdefault((host, pid), rank)
        if (host, pid) not in self.processes_of_rank[rank]:
            self.processes_of_rank[rank].append((host, pid))
        if host:
            self.host_of_rank.setdefault(rank, host)

    def _join_communicators(self) -> None:
        """Ranks of the largest communicator are the global ones."""
        inits = self._store.events("nccl.init_start", "nccl.init_complete", "nccl.comm_info", "nccl.comm_end")
        sizes = [n for e in inits if isinstance(n := e.get("nranks"), int) and not e.get("parent")]
        sizes = sizes or [n for e in inits if isinstance(n := e.get("nranks"), int)]
        self.world = max(sizes, default=None)
        for event in inits:
            rank, pid = event.get("rank"), event.env.pid
            if event.get("nranks") != self.world or not isinstance(rank, int) or pid is None:
                continue
            known = event.env.rank
            rank = known if known is not None else rank
            self._bind(event.env.host, pid, rank)
            bus_id = event.get("bus_id")
            if isinstance(bus_id, str):
                self.gpu_of_rank.setdefault(rank, bus_id)
        for event in self._store.events():
            env = event.env
            if env.rank is not None and env.pid is not None and env.logger == "nccl":
                self._bind(env.host, env.pid, env.rank)
            elif env.rank is not None and env.host is not None:
                self.host_of_rank.setdefault(env.rank, env.host)

    def _join_launchers(self) -> None:
        for event in self._store.events("ray.rank_map", "launch.failure_row", "launch.child_exit"):
            rank, pid = event.get("rank"), event.get("pid")
            host = event.get("host") or event.get("ip") or event.env.host
            host = None if host in _NO_HOST else host
            if isinstance(rank, int) and isinstance(pid, int):
                known = next(
                    (r for (h, p), r in self.rank_of_process.items() if p == pid and (not host or h == host)),
                    None,
                )
                if known is None:
                    self._bind(host if isinstance(host, str) else None, pid, rank)
                if event.kind == "launch.failure_row" and isinstance(host, str):
                    self.host_of_rank.setdefault(rank, host)

    def _join_files(self) -> None:
        """A file whose name says a rank, or in which one process alone speaks, is that rank's."""
        ranks_in: dict[str, Counter[int]] = defaultdict(Counter)
        hosts_in: dict[str, set[str]] = defaultdict(set)
        for event in self._store.events():
            rank = self._direct_rank(event)
            if rank is not None:
                ranks_in[event.ref.path][rank] += 1
            if event.env.host:
                hosts_in[event.ref.path].add(event.env.host)
        for stream in self._store.streams:
            seen = ranks_in[stream.path]
            hint = stream.hints.rank
            if hint is not None and (not seen or set(seen) == {hint}):
                self.rank_of_file[stream.path] = hint
            if len(hosts_in[stream.path]) == 1:
                self.host_of_file[stream.path] = next(iter(hosts_in[stream.path]))
            elif stream.hints.host and not hosts_in[stream.path]:
                self.host_of_file[stream.path] = stream.hints.host
        for path, rank in self.rank_of_file.items():
            host = self.host_of_file.get(path)
            if host:
                self.host_of_rank.setdefault(rank, host)

    def _join_stacks(self) -> None:
        """A stack dump in a file that names its rank tells the rank's process, unless several share the number."""
        ranks: dict[int, set[int]] = defaultdict(set)
        for event in self._store.events("py.stack"):
            rank, pid = self.rank_of_file.get(event.ref.path), event.get("pid")
            if rank is not None and isinstance(pid, int) and event.get("main"):
                ranks[pid].add(rank)
        for pid, of in ranks.items():
            rank = next(iter(of))
            if len(of) == 1 and not self.processes_of_rank.get(rank):
                self._bind(self.host_of_rank.get(rank), pid, rank)

    def _join_tasks(self) -> None:
        """srun and mpirun number tasks; a task is a rank only where nothing inside says otherwise."""
        inner: dict[int, set[int]] = defaultdict(set)
        tasks: set[int] = set()
        for event in self._store.events():
            task = event.env.task
            if task is None:
                continue
            tasks.add(task)
            rank = event.env.rank if event.env.rank is not None else self._process_rank(event)
            if rank is not None:
                inner[task].add(rank)
        several = any(len(ranks) > 1 for ranks in inner.values())
        self.tasks_are_ranks = all(ranks <= {task} for task, ranks in inner.items())
        if several or (self.world is not None and len(tasks) > self.world):
            return
        shifted = any(ranks != {task} for task, ranks in inner.items())
        for task in tasks:
            if inner[task]:
                self.rank_of_task[task] = next(iter(inner[task]))
            elif not shifted and (len(tasks) > 1 or self.world == 1):
                self.rank_of_task[task] = task

    def _one_failure_of_file(self) -> dict[str, tuple[int, int]]:
        """Files in which one process alone failed by itself and one traceback alone is nobody's: its rank, and the last
        line that is about this failure.

        PyTorch writes `[rankN]:` before a traceback only once the process group is there.
        """
        failed: dict[str, dict[int | None, int]] = defaultdict(dict)
        last = max((e.ref.line for e in self._store.events()), default=0)
        for event in self._store.events("launch.child_exit", "launch.process_failed"):
            code = event.get("exit_code")
            if event.kind == "launch.process_failed":
                rank, upto = (event.get("local_rank") if len(self.hosts) <= 1 else None), last  # the traceback follows
            elif isinstance(code, int) and code > 0:
                rank, upto = self._direct_rank(event), event.ref.line
                if rank is None and isinstance(pid := event.get("pid"), int):
                    rank = self._rank_of_pid(pid)
            else:
                continue
            failed[event.ref.path][rank if isinstance(rank, int) else None] = upto
        orphans: Counter[str] = Counter(
            e.ref.path
            for e in self._store.events("py.exception")
            if e.get("nature_of") not in ("echo", "signal") and self._direct_rank(e) is None and e.env.task is None
        )
        alone: dict[str, tuple[int, int]] = {}
        for path, ranks in failed.items():
            rank, order = next(iter(ranks.items()))
            if len(ranks) == 1 and rank is not None and orphans[path] == 1:
                alone[path] = rank, order
        return alone

    def _rank_of_pid(self, pid: int) -> int | None:
        same = {r for (_, p), r in self.rank_of_process.items() if p == pid}
        return same.pop() if len(same) == 1 else None

    def _process_rank(self, event: Event) -> int | None:
        pid = event.env.pid
        if pid is None:
            return None
        host = event.env.host
        known = self.rank_of_process.get((host, pid))
        if known is not None:
            return known
        same = {rank for (h, p), rank in self.rank_of_process.items() if p == pid and (not h or not host)}
        return same.pop() if len(same) == 1 else None

    def _direct_rank(self, event: Event) -> int | None:
        if event.env.rank is not None:
            return event.env.rank
        if event.kind in _GLOBAL_RANK_KINDS and isinstance(rank := event.get("rank"), int):
            return rank
        return self._process_rank(event)

    def who(self, event: Event) -> Who:
        """Whom the event is about: for a line of the kernel the GPU's user, else its writer."""
        if event.kind.startswith(("kernel.", "tool.")):
            return self._kernel_who(event)
        rank = self._direct_rank(event)
        named = event.get("task")  # a launcher that tells of a task may itself run as one of another launcher
        task = named if isinstance(named, int) else event.env.task
        if rank is None and isinstance(task, int):
            rank = self.rank_of_task.get(task)
            if rank is None and self.tasks_are_ranks and event.kind.startswith("mpi."):
                rank = task  # mpirun's own messages number MPI ranks
        if rank is None:
            rank = self.rank_of_file.get(event.ref.path)
        if rank is None and event.kind.startswith("torch."):
            tag = event.get(
                "rank"
            )  # rank inside the process group; equal to the global one for the default group
            group = str(event.get("pg_desc") or "default_pg")
            if (
                isinstance(tag, int)
                and group in ("default_pg", "undefined", "")
                and event.get("pg_id") in (None, 0, "0")
            ):
                rank = tag
        pid = (
            event.get("pid")
            if event.kind.startswith(("launch.", "ray.", "mpi.", "slurm.", "ds.", "py.stack"))
            else event.env.pid
        )
        if rank is None and isinstance(pid, int):
            rank = self._rank_of_pid(pid)
        if rank is None and event.kind == "launch.process_failed" and len(self.hosts) <= 1:
            local = event.get("local_rank")  # torch.multiprocessing.spawn numbers the processes of one host
            rank = local if isinstance(local, int) else None
        if rank is None and event.kind.startswith(_OWN_WORDS) and event.get("nature") in ("cause", "symptom"):
            alone = self._failed_alone.get(event.ref.path)
            if alone and event.ref.line <= alone[1]:
                rank = alone[0]
        host = event.env.host if event.env.logger in ("nccl", "kernel") or event.env.host else None
        named = event.get("host")
        if host is None and isinstance(named, str) and named not in _NO_HOST:
            host = named
        if host is None and rank is not None:
            host = self.host_of_rank.get(rank)
        host = host or self.host_of_file.get(event.ref.path)
        if not isinstance(pid, int) and rank is not None:
            mine = self.processes_of_rank.get(rank, [])
            pid = mine[-1][1] if len(mine) == 1 else None
        return Who(
            rank,
            host,
            pid if isinstance(pid, int) else None,
            self.gpu_of_rank.get(rank) if rank is not None else None,
        )

    def _kernel_who(self, event: Event) -> Who:
        """By PCI address through NCCL's busId, and by pid where no pid namespace lies between."""
        host = event.env.host or self.host_of_file.get(event.ref.path)
        if host is None and len(self.hosts) == 1:
            host = self.hosts[0]
        gpu, pid = event.get("gpu"), event.get("pid")
        rank: int | None = None
        if isinstance(gpu, str):
            rank = self._rank_of_gpu.get((host, gpu))
            if rank is None and (host is None or host not in self.hosts):
                same = [r for (_, g), r in self._rank_of_gpu.items() if g == gpu]
                rank = same[0] if len(same) == 1 and len(self.hosts) <= 1 else None
        if rank is None and isinstance(pid, int):
            rank = self.rank_of_process.get((host, pid))
            if rank is None and len(self.hosts) <= 1:
                same_pid = {r for (_, p), r in self.rank_of_process.items() if p == pid}
                rank = same_pid.pop() if len(same_pid) == 1 else None
        if gpu is None and rank is not None:
            gpu = self.gpu_of_rank.get(rank)
        return Who(rank, host, pid if isinstance(pid, int) else None, gpu if isinstance(gpu, str) else None)

    def _seen(self) -> frozenset[int]:
        ranks = set(self.processes_of_rank) | set(self.rank_of_file.values()) | set(self.rank_of_task.values())
        ranks |= {r for e in self._store.events() if (r := self._direct_rank(e)) is not None}
        return frozenset(r for r in ranks if r >= 0)
