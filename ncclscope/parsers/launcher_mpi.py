"""Messages of mpirun, mpiexec and prterun: Open MPI 1 to 5, MPICH and Intel MPI (Hydra)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.lazy import lazy
from ncclscope.model import Event, Line, Value
from ncclscope.parsers.launcher_exit import exit_facts, from_signal, signal_facts
from ncclscope.parsers.pattern import Block, Collector, Pattern

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BLOCKS", "PATTERNS"]


PATTERNS: tuple[Pattern, ...] = (
    # mpirun noticed that process rank 3 with PID 31337 on node node-02 exited on signal 9 (Killed).
    #     (Open MPI 1-5)
    # The last block that mpirun prints, and the one to trust. Open MPI 5 prints PID 0 for one it forgot.
    Pattern(
        "mpi.rank_exit",
        "noticed that process rank",
        r"(?:mpirun|mpiexec|prterun|prun|orterun) noticed that process rank (?P<task>\d+) "
        r"with PID (?:0|(?P<pid>\d+)) on node (?P<host>\S+) exited on signal (?P<signal>\d+)",
        nature="symptom",
        refine=from_signal,
        adds=("suggests",),
    ),
    # Primary job  terminated normally, but 1 process returned a non-zero exit code.            (Open MPI 1-5)
    # Always there when a process fails; "normally" says nothing.
    Pattern(
        "mpi.primary_job",
        "Primary job",
        r"Primary job +terminated normally, but",
        nature="noise",
    ),
    # [node-0:24684] Signal: Segmentation fault (11)                          (Open MPI's own handler, 1 to 5)
    Pattern(
        "mpi.crash",
        "Signal: ",
        r"(?:^|\[(?P<host>[\w.-]+):(?P<pid>\d+)\] )Signal: [A-Z][\w ]+ \((?P<signal>\d+)\)\s*$",
        nature="symptom",
        refine=from_signal,
        adds=("suggests",),
    ),
    # [node-0:288505:0:296459] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x48)
    # UCX's handler, which also takes over the process's other faults.                            (UCX 1.6 to 1.18)
    Pattern(
        "mpi.crash",
        "Caught signal ",
        r"(?:\[(?P<host>[\w.-]+):(?P<pid>\d+):\d+:\d+\] )?Caught signal (?P<signal>\d+) \([A-Z][\w ]+: [a-z]",
        nature="symptom",
        refine=from_signal,
        adds=("suggests",),
    ),
)

_LOOK_AHEAD = 8


class _Following(Collector):
    """Looks for named groups in the few lines after an opener and makes one event of them."""

    def __init__(
        self,
        opener: Line,
        fields: dict[str, Value],
        wanted: tuple[re.Pattern[str], ...],
        finish: Callable[[dict[str, str], dict[str, Value]], Event | None],
    ) -> None:
        self._opener = opener
        self._fields = fields
        self._wanted = wanted
        self._finish = finish
        self._found: dict[str, str] = {}
        self._left = _LOOK_AHEAD

    def feed(self, line: Line) -> bool:
        self._left -= 1
        self.look(line.text)
        return self._left > 0 and not self.complete

    def look(self, text: str) -> None:
        for wanted in self._wanted:
            m = wanted.search(text)
            if m:
                self._found |= {k: v for k, v in m.groupdict().items() if v is not None}

    @property
    def complete(self) -> bool:
        return all(any(name in self._found for name in wanted.groupindex) for wanted in self._wanted)

    def close(self) -> list[Event]:
        event = self._finish(self._found, dict(self._fields))
        return [event] if event else []


def _event(kind: str, line: Line, fields: dict[str, Value]) -> Event:
    return Event(kind, {"nature": "symptom", **fields}, line.env, line.ref, line.text)


_EXIT_CODE = lazy(r"Exit code:\s+(?P<exit_code>\d+)")
_ERROR_CODE = lazy(r"(?:with errorcode |Errorcode: +)(?P<code>-?\d+)")
_REMOTE = lazy(r"Remote daemon: .* on node (?P<host>[\w.-]+)")


def _process_name(m: re.Match[str], line: Line) -> Collector | None:
    def finish(found: dict[str, str], fields: dict[str, Value]) -> Event | None:
        # Without a code the opener is some other list of process names.
        if "exit_code" not in found:
            return None
        return _event("mpi.rank_exit", line, fields | exit_facts(int(found["exit_code"])))

    collector = _Following(line, {"task": int(m["task"])}, (_EXIT_CODE,), finish)
    collector.look(line.text)
    return collector


def _abort(m: re.Match[str], line: Line) -> Collector:
    def finish(found: dict[str, str], fields: dict[str, Value]) -> Event:
        return _event("mpi.abort", line, fields | ({"code": int(found["code"])} if found else {}))

    collector = _Following(line, {"task": int(m["task"])}, (_ERROR_CODE,), finish)
    collector.look(line.text)
    return collector


def _daemon_lost(_m: re.Match[str], line: Line) -> Collector:
    def finish(found: dict[str, str], fields: dict[str, Value]) -> Event:
        return _event("mpi.daemon_lost", line, {"suggests": "rank-died", **fields, **found})

    return _Following(line, {}, (_REMOTE,), finish)


_HYDRA_WHO = lazy(r"=\s+(?:RANK (?P<task>\d+) )?PID (?P<pid>\d+) RUNNING AT (?P<host>\S+)")
_HYDRA_CODE = lazy(r"=\s+EXIT CODE: (?P<exit_code>\d+)|=\s+KILLED BY SIGNAL: (?P<killed>\d+)")
_HYDRA_SIGNAL = lazy(r"EXIT STRING: .*\(signal (?P<signal>\d+)\)")


def _bad_termination(_m: re.Match[str], line: Line) -> Collector:
    def finish(found: dict[str, str], fields: dict[str, Value]) -> Event:
        fields |= {name: int(found[name]) for name in ("task", "pid") if name in found}
        if "host" in found:
            fields["host"] = found["host"]
        signal = found.get("signal") or found.get("killed")
        # EXIT CODE repeats the raw wait status: for a death by signal it is the signal's number.
        if signal:
            fields |= signal_facts(int(signal))
        elif "exit_code" in found:
            fields |= exit_facts(int(found["exit_code"]))
        return _event("mpi.rank_exit", line, fields)

    return _Following(line, {}, (_HYDRA_WHO, _HYDRA_CODE, _HYDRA_SIGNAL), finish)


_RANK_EXIT = ("task", "pid", "host", "exit_code", "signal", "suggests")

BLOCKS: tuple[Block, ...] = (
    # The first process to do so was:
    #   Process name: [[12345,1],3]
    #   Exit code:    1                                                                         (Open MPI 1-4)
    #   Process name: [prterun-node-01-31337@1,3]Exit code:    1                                  (Open MPI 5)
    Block(
        {"mpi.rank_exit": _RANK_EXIT},
        "Process name: [",
        r"Process name: \[(?:\[\d+,\d+\]|[^\],]+),\s*(?P<task>\d+)\]",
        _process_name,
    ),
    # MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD
    # with errorcode 1.                                         (Open MPI 1-4; 5: `Proc: ...`, `Errorcode: 1`)
    Block(
        {"mpi.abort": ("task", "code")},
        "MPI_ABORT was invoked on rank",
        r"MPI_ABORT was invoked on rank (?P<task>\d+)",
        _abort,
    ),
    # PRTE has lost communication with a remote daemon.
    #   HNP daemon   : [prterun-head-1@0,0] on node head
    #   Remote daemon: [prterun-head-1@0,1] on node node-02                                     (Open MPI 3-5)
    Block(
        {"mpi.daemon_lost": ("host", "suggests")},
        "has lost communication with a remote daemon",
        r"(?:ORTE|PRTE) has lost communication with a remote daemon",
        _daemon_lost,
    ),
    # =   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
    # =   PID 31337 RUNNING AT node-02                          (Intel MPI: `=   RANK 3 PID 31337 RUNNING AT`)
    # =   EXIT CODE: 9                                         (Intel MPI: `=   KILLED BY SIGNAL: 9 (Killed)`)
    # YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)                              (MPICH)
    Block(
        {"mpi.rank_exit": _RANK_EXIT},
        "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        r"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        _bad_termination,
    ),
)
