"""Which host, process, rank, CUDA device and PCI address are one thing.

NCCL's prefix has no rank: the Init lines join a process (host, pid) to a rank and a PCI address. c10 prints the global
rank, launchers print pids with ranks, file names hint. Where two sources disagree, the inner and more direct one wins.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from ncclscope.model import Envelope, Event
from ncclscope.store import EventStore

__all__ = ["Identity", "Who", "told_ranks"]

# Names that every host has for itself: torchrun's table says `localhost` where it was given no other name.
_NO_HOST = frozenset({"localhost", "127.0.0.1", "::1"})
# Lines in which a process tells of its own failure, with or without `[rankN]:` before them.
_OWN_WORDS = ("py.exception", "py.exception_line", "torch.", "cuda.")

# Events whose own `rank` field is a global rank by construction.
_GLOBAL_RANK_KINDS = frozenset(
    """launch.failure_row launch.child_exit launch.error_file ray.rank_map nccl.duplicate_gpu
    torch.wrapper_mismatch""".split()
)

# Prefixes that number tasks, and whose numbers these are.
_NUMBERED_BY = {
    "mpirun": "mpi",
    "prrte": "mpi",
    "hydra": "mpi",
    "srun --label": "slurm",
    "torchrun prefix template": "torchrun",
}
# Loggers that print their own process's pid; another pid is that of the launcher's prefix.
_PRINT_PID = frozenset({"nccl", "torch", "c10", "ray"})

# Whose number it is, and the number: task 1 of srun is not task 1 of an mpirun that runs inside task 0.
Task = tuple[str, int]

# Events in which a launcher passes on what other processes printed, and says whose it was.
_TELL_RANKS = frozenset({"ray.rank_error", "py.exception"})

# Fields by which an event may name somebody else than its line's writer.
_NAME_OTHERS = frozenset({"host", "task"})


def told_ranks(event: Event) -> tuple[int, ...]:
    """The ranks whose failure a launcher passes on in `event`: `[Rank 0,1 Error Snippet]:`."""
    told = event.get("ranks") if event.kind in _TELL_RANKS else None
    return tuple(r for r in told if isinstance(r, int)) if isinstance(told, tuple) else ()


def _by_envelope(event: Event) -> bool:
    """Whether the file and the envelope of NCCL's line alone tell who wrote it."""
    return event.kind.startswith("nccl.") and event.kind not in _GLOBAL_RANK_KINDS


def _speakers(store: EventStore) -> list[Event]:
    """All events but those of NCCL whose file and envelope another one has: whoever wrote one wrote the other. A
    process prints some thirty, and lines with one prefix share its envelope."""
    seen: set[tuple[int, str]] = set()
    speakers: list[Event] = []
    for event in store.events():
        if _by_envelope(event):
            key = (id(event.env), event.ref.path)
            if key in seen:
                continue
            seen.add(key)
        speakers.append(event)
    return speakers


def _label(event: Event) -> Task | None:
    """The innermost task whose label stands before the line."""
    env = event.env
    if env.task is None:
        return None
    inside = [_NUMBERED_BY[name] for name in env.layers if name in _NUMBERED_BY]
    if env.local_rank is not None:  # torchrun's template says that one, not the task
        inside = [launcher for launcher in inside if launcher != "torchrun"]
    return inside[-1] if inside else "", env.task


def _own_pid(event: Event) -> int | None:
    """The pid of the process that wrote the line, not of the one of several for which Ray shows a line once."""
    env = event.env
    return None if env.repeated and env.actor is not None and env.logger not in _PRINT_PID else env.pid


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
        self.rank_of_task: dict[Task, int] = {}
        self._rank_of_child: dict[tuple[Task | None, int], int] = {}
        self._other_numbers: set[str] = set()  # launchers whose tasks are known to be other ranks, or several each
        self.rank_of_file: dict[str, int] = {}
        self.host_of_file: dict[str, str] = {}
        # By an envelope's id and the file; the envelope is held, so that its id stays its own.
        self._writers: dict[tuple[int, str], tuple[Envelope, Who]] = {}
        self._speakers = _speakers(store)
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
        for event in self._speakers:
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
        ranks_in: dict[str, set[int]] = defaultdict(set)
        hosts_in: dict[str, set[str]] = defaultdict(set)
        for event in self._speakers:
            rank = self._direct_rank(event)
            if rank is not None:
                ranks_in[event.ref.path].add(rank)
            if event.env.host:
                hosts_in[event.ref.path].add(event.env.host)
        for stream in self._store.streams:
            seen = ranks_in[stream.path]
            hint = stream.hints.rank
            if hint is not None and (not seen or seen == {hint}):
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
        inner: dict[Task, set[int]] = defaultdict(set)
        crowded = self._crowded()
        for event in self._speakers:
            task = _label(event)
            if task is None:
                continue
            ranks = inner[task]
            # What runs inside another launcher's task numbers its own: the outer task holds all of it.
            crowded.update({_NUMBERED_BY.get(name, task[0]) for name in event.env.layers} - {task[0]})
            if event.env.local_rank:
                crowded.add(task[0])
            rank = event.env.rank if event.env.rank is not None else self._process_rank(event)
            if rank is None and event.kind == "launch.failure_row":
                rank = named if isinstance(named := event.get("rank"), int) else None
            if rank is not None:
                ranks.add(rank)
        self._other_numbers = crowded | {task[0] for task, ranks in inner.items() if not ranks <= {task[1]}}
        for launcher in {task[0] for task in inner} - crowded:
            own = {task: ranks for task, ranks in inner.items() if task[0] == launcher}
            if any(len(ranks) > 1 for ranks in own.values()) or (self.world is not None and len(own) > self.world):
                continue
            for task, ranks in own.items():
                if ranks:
                    self.rank_of_task[task] = next(iter(ranks))
                elif launcher not in self._other_numbers and (len(own) > 1 or self.world == 1):
                    self.rank_of_task[task] = task[1]

    def _crowded(self) -> set[str]:
        """Launchers whose tasks are torchrun's agents with several processes each."""
        crowded: set[str] = set()
        children: dict[Task, set[int]] = defaultdict(set)
        for event in self._store.events(
            "launch.failure_row", "launch.child_exit", "launch.sigterm_sent", "launch.process_failed"
        ):
            task = _label(event)
            local, pid, rank = event.get("local_rank"), event.get("pid"), event.get("rank")
            if isinstance(rank, int) and isinstance(pid, int):
                self._rank_of_child[task, pid] = rank
            if isinstance(local, int) and local > 0:
                crowded.add(task[0] if task else "mpi")
            if task and isinstance(pid, int):
                children[task].add(pid)
        return crowded | {task[0] for task, pids in children.items() if len(pids) > 1}

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
        pid = _own_pid(event)
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
        if event.kind in _TELL_RANKS and (told := told_ranks(event)):
            return told[0] if len(told) == 1 else None
        return self._process_rank(event)

    def who(self, event: Event) -> Who:
        """Whom the event is about: for a line of the kernel the GPU's user, else its writer."""
        if event.kind.startswith(("kernel.", "tool.")):
            return self._kernel_who(event)
        if not _by_envelope(event) or not _NAME_OTHERS.isdisjoint(event.fields):
            return self._writer(event)
        # Most events are NCCL's, and all lines with one prefix share its envelope: their writer is looked up once.
        key = (id(event.env), event.ref.path)
        known = self._writers.get(key)
        if known is None:
            known = self._writers[key] = event.env, self._writer(event)
        return known[1]

    def _writer(self, event: Event) -> Who:
        rank = self._direct_rank(event)
        told = told_ranks(event)
        if rank is None and told:
            return Who()  # several at once, and the printer is none of them
        if rank is None:
            rank = self._task_rank(event)
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
            else None
            if told
            else _own_pid(event)
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

    def _task_rank(self, event: Event) -> int | None:
        """The rank of the task that a launcher names or whose label stands before the line."""
        label = _label(event)
        pid = event.get("pid")
        if label and event.kind.startswith("launch.") and isinstance(pid, int) and (label, pid) in self._rank_of_child:
            return self._rank_of_child[label, pid]
        named, launcher = event.get("task"), event.kind.partition(".")[0]
        # A launcher that tells of its tasks may itself run in a task of another one.
        task = (launcher, named) if isinstance(named, int) else label
        if task is None:
            return None
        rank = self.rank_of_task.get(task)
        if rank is None and task[0] == launcher == "mpi" and "mpi" not in self._other_numbers:
            rank = task[1]  # mpirun's own messages number MPI ranks
        return rank

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
        ranks |= {r for e in self._speakers if (r := self._direct_rank(e)) is not None}
        ranks |= {r for e in self._store.events(*_TELL_RANKS) for r in told_ranks(e)}
        return frozenset(r for r in ranks if r >= 0)
