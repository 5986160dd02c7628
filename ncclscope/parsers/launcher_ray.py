"""Messages of Ray's driver, raylet and Ray Train's controller.

A rank is taken only from text that names it (`world_rank=`, `[Rank N Error Snippet]`): the pid in Ray's
prefix of a folded line is another process's.
"""

from __future__ import annotations

import re

from ncclscope.lazy import lazy
from ncclscope.model import Event, Line, Value
from ncclscope.parsers.launcher_exit import ExceptionTail, expand_numbers, signal_facts, with_ints
from ncclscope.parsers.launcher_exit import signal_number as number_of
from ncclscope.parsers.pattern import Block, Collector, Pattern

__all__ = ["BLOCKS", "PATTERNS"]

_DEATH: dict[str, Value] = {"nature": "symptom", "suggests": "rank-died"}
_EXIT_CODE = lazy(r"[Ee]xit code:? (-?\d+)")
_WHY_LENGTH = 300


def _reason(text: str) -> str:
    """Ray's sentence without the list of possibilities that follows it: they are guesses, not findings."""
    return re.split(r"\.? Some common causes|\. \(1\) ", text, maxsplit=1)[0].strip()[:_WHY_LENGTH]


def _worker_exit(m: re.Match[str], _line: Line) -> dict[str, Value]:
    """SYSTEM_ERROR is a crash or a kill, which look alike from the raylet; the intended exits are no
    failures."""
    fields: dict[str, Value] = {}
    if m["reason"]:
        fields["reason"] = _reason(m["reason"])
        if code := _EXIT_CODE.search(m["reason"]):
            fields["exit_code"] = int(code[1])
    kind = m["exit_type"] or ""
    if kind.startswith("INTENDED"):
        return fields | {"nature": "noise"}
    if kind == "NODE_OUT_OF_MEMORY":
        return fields | {"nature": "cause", "cause": "oom-host"}
    if kind == "USER_ERROR":
        return fields | {"nature": "consequence"}
    return fields | _DEATH


def _killed_counts(m: re.Match[str], _line: Line) -> dict[str, Value]:
    """The raylet's summary counts both kinds of death; either number can be 0, or lost where the line was broken."""
    if m["count"] is None:
        return {"nature": "symptom", "suggests": "oom-host"}
    if int(m["count"]):
        return {"nature": "cause", "cause": "oom-host"}
    return {"nature": "noise"}


def _process_group(_m: re.Match[str], line: Line) -> dict[str, Value] | None:
    """Ties the worker's pid to its rank, unless the line is a folded one: then the pid may be another
    worker's."""
    if line.env.repeated:
        return None
    pid = line.env.pid
    return {"pid": pid} if pid is not None else {}


def _health(_m: re.Match[str], line: Line) -> dict[str, Value] | None:
    """None where a longer message on the same line already says that the node died."""
    return None if "dead or unavailable" in line.text or "actor's node was" in line.text else {}


def _node_ended(m: re.Match[str], _line: Line) -> dict[str, Value]:
    if m["how"] == "preempted":
        return {"nature": "cause", "cause": "preempted"}
    return {"suggests": "preempted"} if "unexpected" not in m["how"] else {"suggests": "rank-died"}


def _caught(m: re.Match[str], _line: Line) -> dict[str, Value]:
    number = number_of(m["signal"])
    return signal_facts(number) if number is not None else {}


_RANKS: tuple[Pattern, ...] = (
    # - (ip=10.20.0.11, pid=26866) world_rank=0, local_rank=0, node_rank=0                  (Ray Train 2.7 on)
    Pattern(
        "ray.rank_map",
        "world_rank=",
        r"\((?:node_id=\w+, )?ip=(?P<ip>[^,\s()]+), pid=(?P<pid>\d+)\) world_rank=(?P<rank>\d+)"
        r"(?:, local_rank=(?P<local_rank>\d+))?(?:, node_rank=(?P<node_rank>\d+))?",
        refine=with_ints,
    ),
    # Setting up process group for: env:// [rank=0, world_size=4]                              (Ray Train 2.x)
    Pattern(
        "ray.process_group",
        "Setting up process group for:",
        r"Setting up process group for: \S+ \[rank=(?P<rank>\d+), world_size=(?P<world_size>\d+)\]",
        refine=_process_group,
        alone=True,
        adds=("pid",),
    ),
)

_DEATHS: tuple[Pattern, ...] = (
    # A worker died or was killed while executing a task by an unexpected system error. ... Worker IP address:
    # 10.20.0.11 Worker port: 32889 Worker PID: 7604 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker
    # unexpectedly exits with a connection error code 2. End of file. Some common causes include: ...    (2.x)
    Pattern(
        "ray.worker_died",
        "Worker exit detail:",
        r"(?:Worker IP address: (?P<ip>\S+) )?(?:Worker port: \d+ )?(?:Worker PID: (?P<pid>\d+) )?"
        r"(?:Worker exit type: (?P<exit_type>\w+) )?Worker exit detail: (?P<reason>.*)",
        nature="symptom",
        refine=_worker_exit,
        adds=("reason", "exit_code", "cause", "suggests"),
    ),
    # The worker died unexpectedly while executing this task. Check python-core-worker-*.log files ...
    #     (1.x, 2.x)
    Pattern(
        "ray.worker_died",
        "The worker died unexpectedly while executing this task",
        r"The worker died unexpectedly while executing this task",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
    # ray.exceptions.RayTaskError(KeyError): ray::RolloutWorker.fit() (pid=7003, ip=10.20.0.11, actor_id=..)
    #     (1.x, 2.x)
    Pattern(
        "ray.task_error",
        "RayTaskError",
        r"RayTaskError(?:\((?P<type>\w+)\))?: (?:\x1b\[\d+m)?ray::(?P<task>[\w.<>-]+)\(\)(?:\x1b\[\d+m)? "
        r"\(pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\d.a-f:]+))?",
        nature="consequence",
    ),
    # The actor died because of an error raised in its creation task, ray::Worker.__init__() (pid=12,
    # ip=10.0.0.2, ..)
    Pattern(
        "ray.actor_init_failed",
        "error raised in its creation task",
        r"The actor died because of an error raised in its creation task,?"
        r"(?: (?:\x1b\[\d+m)?ray::(?P<task>[\w.<>-]+)\(\)(?:\x1b\[\d+m)? \(pid=(?P<pid>\d+)"
        r"(?:, ip=(?P<ip>[\d.a-f:]+))?)?",
        nature="consequence",
    ),
    # *** SIGSEGV received at time=1796070531 on cpu 0 ***                          (Ray's and absl's handler)
    Pattern(
        "ray.signal_caught",
        "received at time=",
        r"\*\*\* (?P<signal>SIG\w+) received at time=(?P<time>\d+)",
        nature="symptom",
        refine=_caught,
        adds=("suggests",),
    ),
    # The task's local raylet died. Check raylet.out for more information.                               (2.x)
    Pattern(
        "ray.node_died",
        "local raylet died",
        r"The task's local raylet died",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
    # The node with node id: 4f1e and address: 10.0.0.2 and node name: 10.0.0.2 has been marked dead because
    # the detector has missed too many heartbeats from it.                                          (1.x, 2.x)
    Pattern(
        "ray.node_died",
        "has been marked dead because",
        r"The node with node id: (?P<node>\w+) and address: (?P<ip>[^\s,]+).{0,200}? has been marked dead",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
    # health check failed due to missing too many heartbeats                                             (2.x)
    Pattern(
        "ray.node_died",
        "health check failed due to missing too many heartbeats",
        r"health check failed due to missing too many heartbeats",
        nature="symptom",
        fields={"suggests": "rank-died"},
        refine=_health,
    ),
    # Task failed because the node it was running on is dead or unavailable. Node IP: 10.0.0.2, node ID: 4f1e.
    #     (2.x)
    Pattern(
        "ray.node_died",
        "the node it was running on is dead or unavailable",
        r"the node it was running on is dead or unavailable\.?"
        r"(?: Node IP: (?P<ip>[^\s,]+), node ID: (?P<node>\w+))?",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
    # the actor's node was terminated unexpectedly: health check failed due to missing too many heartbeats
    #     (2.x)
    Pattern(
        "ray.node_died",
        "the actor's node was",
        r"the actor's node was (?P<how>terminated(?: unexpectedly| expectedly)?|preempted)",
        nature="symptom",
        refine=_node_ended,
        adds=("cause", "suggests"),
    ),
)

_MEMORY: tuple[Pattern, ...] = (
    # ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.         (2.2 on)
    Pattern(
        "ray.oom_kill",
        "due to the node running low on memory",
        r"(?:(?:[Tt]ask|[Aa]ctor) was|(?P<count>\d+) worker\(s\) were) killed due to the node running low on",
        nature="cause",
        cause="oom-host",
    ),
    # 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons
    # at node (ID: abc, IP: 10.0.0.2) over the last time period.                                      (2.2 on)
    Pattern(
        "ray.oom_kill",
        "killed due to memory pressure (OOM)",
        r"(?:(?P<count>\d+) Workers \(tasks / )?actors\) killed due to memory pressure \(OOM\)"
        r"(?:, \d+ Workers crashed due to other reasons at node \(ID: \w+, IP: (?P<ip>[^\s)]+)\))?",
        nature="symptom",
        refine=_killed_counts,
        adds=("cause", "suggests"),
    ),
)

_NOISE: tuple[Pattern, ...] = tuple(
    # Graceful shutdown of backend failed. This is expected if one of the workers has crashed.
    #     (Ray Train 2.x)
    # ... was killed by `ray.kill`                                        (an actor that its owner ended; 2.x)
    # core_worker.cc:2465: Actor with class name: 'PreemptionWatcher' ... has constructor arguments in the
    # object store                                                    (level E, in healthy runs; 2.4x to 2.5x)
    # Failed to send resource request for train-44. If this only happens transiently ...       (Ray Train 2.x)
    Pattern(kind, literal, regex, nature="noise")
    for kind, literal, regex in (
        (
            "ray.backend_shutdown",
            "Graceful shutdown of backend failed",
            r"Graceful shutdown of backend failed",
        ),
        ("ray.actor_killed", "ray.kill", r"killed by `?ray\.kill"),
        (
            "ray.actor_restart_note",
            "has constructor arguments in the object store",
            r"has constructor arguments in the object store and max_restarts",
        ),
        ("ray.resource_request", "Failed to send resource request", r"Failed to send resource request for "),
    )
)

PATTERNS: tuple[Pattern, ...] = _RANKS + _DEATHS + _MEMORY + _NOISE

_FIELD = lazy(r"^\s*(?P<name>class_name|actor_id|pid|ip|node_ip)(?:: |=)'?(?P<value>[^\s,']+)'?,?\s*$")
_OTHER_FIELD = lazy(r"^\s*(?:name|namespace|repr): ")
_WORLD_RANK = lazy(r"DistributedContext\(world_rank=(\d+)")
_SNIPPET = lazy(r"\[Rank (?P<ranks>\d+(?:, ?\d+)*) Error Snippet\]:")
_DETAIL = lazy(r"Worker exit detail: (.*)")
_SNIPPET_LINES = 120
_FIELD_LINES = 10


class _Died(Collector):
    """The indented fields under "The actor died unexpectedly", down to the sentence that gives the reason."""

    def __init__(self, opener: Line) -> None:
        self._opener = opener
        self._fields: dict[str, Value] = dict(_DEATH)
        self._fed = 0

    def feed(self, line: Line) -> bool:
        self._fed += 1
        if m := _FIELD.match(line.text):
            name = {"class_name": "actor", "node_ip": "ip"}.get(m["name"], m["name"])
            self._fields[name] = int(m["value"]) if name == "pid" and m["value"].isdigit() else m["value"]
            return self._fed < _FIELD_LINES
        if _OTHER_FIELD.match(line.text):
            return self._fed < _FIELD_LINES
        if line.text.startswith("The actor is dead because"):
            detail = _DETAIL.search(line.text)
            self._fields["reason"] = _reason(detail[1] if detail else line.text)
            if "ray.kill" in line.text:
                self._fields |= {"nature": "noise"}
                del self._fields["suggests"]
        return False

    def close(self) -> list[Event]:
        opener = self._opener
        return [Event("ray.actor_died", self._fields, opener.env, opener.ref, opener.text, 1 + self._fed)]


class _Snippet(Collector):
    """What Ray Train's controller tells of the ranks that failed: a traceback, or the death of the worker."""

    def __init__(self, ranks: tuple[int, ...], opener: Line) -> None:
        self._opener = opener
        self._fields: dict[str, Value] = {"nature": "symptom", "ranks": ranks}
        self._tail = ExceptionTail()
        self._text: str | None = None
        self._fed = 0

    def feed(self, line: Line) -> bool:
        text = line.text
        if _SNIPPET.search(text) or text.startswith("ray.train.") or not text.strip():
            return False
        self._fed += 1
        if self._text is None:
            self._text = text.strip()
        self._tail.feed(text)
        if m := _FIELD.match(text):
            if m["name"] == "pid" and m["value"].isdigit():
                self._fields["pid"] = int(m["value"])
            elif m["name"] in ("ip", "node_ip"):
                self._fields["ip"] = m["value"]
        elif m := _WORLD_RANK.search(text):
            self._fields["rank"] = int(m[1])
        elif m := _DETAIL.search(text):
            self._fields |= {"reason": _reason(m[1]), "suggests": "rank-died"}
            return False
        return self._fed < _SNIPPET_LINES and not self._tail.complete

    def close(self) -> list[Event]:
        opener = self._opener
        fields = {**self._fields, **self._tail.fields()}
        if self._text is not None:
            fields["text"] = self._text
        return [Event("ray.rank_error", fields, opener.env, opener.ref, opener.text, 1 + self._fed)]


_ON_NODE = lazy(r"Memory on the node \(IP: (?P<ip>[^,\s]+)")
_KILLED = lazy(
    r"\((?:actor ID|task ID|job ID)[^)]{0,400}?\bpid=(?P<pid>\d+), memory used=(?P<used>[\d.]+ ?[KMGT]?B)"
)
_TOTAL = lazy(r"was (?P<total>[\d.]+ ?\w?B / [\d.]+ ?\w?B) \([\d.]+\)")
_USER = lazy(r"^\s*(?P<top_pid>\d+)\s+(?P<top_gb>\d+(?:\.\d+)?)\s+(?P<top_command>\S.*?)\s*$")
_USER_HEAD = lazy(r"^\s*PID\s+MEM\(GB\)\s+COMMAND|Top 10 memory users")


class _MemoryReport(Collector):
    """Who used the memory: the victim stands in the sentence, the culprit on top of the table after it."""

    def __init__(self, opener: Line) -> None:
        self._opener = opener
        self._fields: dict[str, Value] = {"nature": "cause", "cause": "oom-host"}
        for expression in (_ON_NODE, _KILLED, _TOTAL):
            if m := expression.search(opener.text):
                self._fields |= {k: int(v) if k == "pid" else v for k, v in m.groupdict().items()}
        self._fed = 0

    def feed(self, line: Line) -> bool:
        if m := _USER.match(line.text):
            self._fed += 1
            self._fields |= {
                "top_pid": int(m["top_pid"]),
                "top_gb": float(m["top_gb"]),
                "top_command": m["top_command"],
            }
            return False
        return _USER_HEAD.search(line.text) is not None

    def close(self) -> list[Event]:
        opener = self._opener
        return [Event("ray.oom_kill", self._fields, opener.env, opener.ref, opener.text, 1 + self._fed)]


BLOCKS: tuple[Block, ...] = (
    # [Rank 1 Error Snippet]:      [Rank 0,1,2,3 Error Snippet]:                                (Ray Train V2)
    # The one line of Ray that names the failed ranks.
    Block(
        {"ray.rank_error": ("ranks", "rank", "pid", "ip", "text", "type", "message", "reason", "suggests")},
        "Error Snippet]:",
        _SNIPPET.pattern,
        lambda m, line: _Snippet(expand_numbers(m["ranks"]), line),
    ),
    # ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
    #     (2.10 on; RayActorError)
    #         class_name: RolloutWorker
    #         pid: 7604
    # The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit
    # detail: ...
    Block(
        {"ray.actor_died": ("actor", "actor_id", "pid", "ip", "reason", "suggests")},
        "The actor died unexpectedly before finishing this task",
        r"The actor died unexpectedly before finishing this task",
        lambda _m, line: _Died(line),
    ),
    # Memory on the node (IP: 10.0.0.2, ID: 0c51) where the task (actor ID: 5b10, name=W.__init__,
    # pid=3987214, memory used=56.41GB) was running was 246.38GB / 251.54GB (0.979486), which exceeds the
    # memory usage threshold of 0.95. ... Top 10 memory users:
    # PID     MEM(GB) COMMAND
    # 3987214 56.41   ray::WorkerDict.actor_rollout_generate_sequences                                (2.2 on)
    Block(
        {"ray.oom_kill": ("pid", "ip", "used", "total", "top_pid", "top_gb", "top_command", "cause")},
        "exceeds the memory usage threshold",
        r"which exceeds the memory usage threshold",
        lambda _m, line: _MemoryReport(line),
    ),
)
