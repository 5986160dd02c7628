"""Messages of torchrun's agent and rendezvous, and of torch.multiprocessing.spawn."""

from __future__ import annotations

import re

from ncclscope.lazy import lazy
from ncclscope.model import Event, Line, Value
from ncclscope.parsers.launcher_exit import (
    expand_numbers,
    from_exit_code,
    from_signal,
    with_ints,
    with_signal,
)
from ncclscope.parsers.pattern import Block, Collector, Pattern

__all__ = ["BLOCKS", "PATTERNS"]


def _restart(m: re.Match[str], _line: Line) -> dict[str, Value]:
    """The number of the attempt that follows: the agent counts what was left before it."""
    left, most = int(m["attempts_left"]), int(m["attempts_max"])
    return {"attempts_left": left, "attempts_max": most, "attempt": most - left + 1}


def _group_finished(m: re.Match[str], _line: Line) -> dict[str, Value]:
    ok = m["state"] == "SUCCEEDED"
    return {"ok": ok, "nature": "info" if ok else "consequence"}


_WORKERS: tuple[Pattern, ...] = (
    # failed (exitcode: -9) local_rank: 1 (pid: 17746) of binary: /venv/bin/python3              (1.9 to 2.14)
    # Printed after the SIGTERM lines although it happened before them.
    Pattern(
        "launch.child_exit",
        "failed (exitcode:",
        r"failed \(exitcode: (?P<exit_code>-?\d+)\) local_rank: (?P<local_rank>\d+) \(pid: (?P<pid>\d+)\)",
        nature="symptom",
        refine=from_exit_code,
        adds=("signal", "suggests"),
    ),
    # torch.distributed.elastic.multiprocessing.errors.ChildFailedError:                        (1.10 to 2.14)
    Pattern(
        "launch.child_failed",
        "ChildFailedError",
        r"multiprocessing\.errors\.ChildFailedError\b",
        nature="consequence",
    ),
    # Sending process 17726 closing signal SIGTERM                                               (1.9 to 2.14)
    Pattern(
        "launch.sigterm_sent",
        "closing signal SIG",
        r"Sending process (?P<pid>\d+) closing signal (?P<signal>SIG\w+)",
        nature="consequence",
        refine=with_signal,
    ),
    # Closing process 4242 via signal SIGTERM                             (function entry points, 1.9 to 2.14)
    Pattern(
        "launch.sigterm_sent",
        "via signal SIG",
        r"Closing process (?P<pid>\d+) via signal (?P<signal>SIG\w+)",
        nature="consequence",
        refine=with_signal,
    ),
    # Unable to shutdown process 17726 via SIGTERM, forcefully exiting via SIGKILL               (1.9 to 2.14)
    # Older releases print the names with `Signals.`. The worker sat in native code or in the driver.
    Pattern(
        "launch.force_kill",
        "Unable to shutdown process",
        r"Unable to shutdown process (?P<pid>\d+) via (?:Signals\.)?SIG\w+, forcefully exiting via "
        r"(?P<signal>(?:Signals\.)?SIG\w+)",
        nature="symptom",
        refine=with_signal,
    ),
    # [default] Worker pid=17726 stuck in uninterruptible sleep (D-state) for 120.0s (>= 120.0s); marking ...
    #                                                                                                   (2.14)
    Pattern(
        "launch.stuck_in_kernel",
        "uninterruptible sleep (D-state)",
        r"Worker pid=(?P<pid>\d+) (?:stuck in|entered) uninterruptible sleep \(D-state\)",
        nature="symptom",
        fields={"suggests": "storage-hang"},
    ),
    # Process 17726 did not exit after SIGKILL within 30s; abandoning and continuing teardown. Worker may be
    # in uninterruptible kernel sleep                                                                   (2.14)
    Pattern(
        "launch.stuck_in_kernel",
        "abandoning and continuing teardown",
        r"Process (?P<pid>\d+) did not exit after (?P<signal>SIG\w+) within",
        nature="symptom",
        fields={"suggests": "storage-hang"},
        refine=with_signal,
    ),
    # Received 15 death signal, shutting down workers
    #     (2.x; `Received Signals.SIGTERM death signal` up to 2.1)
    # The launcher was told to stop. Who asked, and whether the job had failed before, the line does not say.
    Pattern(
        "launch.received_signal",
        "death signal, shutting down workers",
        r"Received (?P<signal>(?:Signals\.)?(?:SIG\w+|\d+)) death signal, shutting down workers",
        nature="symptom",
        refine=with_signal,
        context=True,
    ),
    # torch.distributed.elastic.multiprocessing.api.SignalException: Process 20100 got signal: 15
    #     (1.9 to 2.14)
    Pattern(
        "launch.received_signal",
        "SignalException",
        r"SignalException: Process (?P<pid>\d+) got signal: (?P<signal>\d+)",
        nature="symptom",
    ),
    # [default] Worker group FAILED. 2/3 attempts left; will restart worker group                (1.9 to 2.14)
    Pattern(
        "launch.restart",
        "attempts left;",
        r"Worker group (?P<state>\w+)\.\s+(?P<attempts_left>\d+)/(?P<attempts_max>\d+) attempts left;"
        r"\s+will restart",
        nature="symptom",
        refine=_restart,
        adds=("attempt",),
    ),
    # [default] Detected 1 new nodes from group_rank=0; will restart worker group                (1.9 to 2.14)
    Pattern(
        "launch.membership",
        "will restart worker group",
        r"Detected (?P<count>\d+) new nodes from group_rank=(?P<group_rank>\d+); will restart",
        nature="noise",
        refine=with_ints,
    ),
    # Local worker group finished (SUCCEEDED). Waiting 300 seconds for other agents to finish    (1.9 to 2.14)
    Pattern(
        "launch.run_ended",
        "ocal worker group finished",
        r"[Ll]ocal worker group finished \((?:WorkerState\.)?(?P<state>\w+)\)",
        refine=_group_finished,
        adds=("ok",),
    ),
    # [default] worker group successfully finished. Waiting 300 seconds for other agents to finish.
    #     (1.9 to 2.14)
    Pattern(
        "launch.run_ended",
        "worker group successfully finished",
        r"worker group successfully finished",
        fields={"ok": True, "state": "SUCCEEDED"},
    ),
    # local_rank 0 FAILED with no error file. Decorate your entrypoint fn with @record for traceback info.
    #     (1.9 on)
    Pattern(
        "launch.no_error_file",
        "FAILED with no error file",
        r"local_rank (?P<local_rank>\d+) FAILED with no error file",
        nature="noise",
    ),
    # no error file defined for parent, to copy child error file (/tmp/x/attempt_0/1/error.json)
    #     (2.1 to 2.14)
    Pattern(
        "launch.error_file_path",
        "to copy child error file",
        r"to copy child error file \((?P<path>[^)]+)\)",
        nature="noise",
    ),
    # Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid ...
    #     (1.9 to 2.14)
    Pattern(
        "launch.torchrun_start",
        "Setting OMP_NUM_THREADS environment variable for each",
        r"Setting OMP_NUM_THREADS environment variable for each process to be",
        nature="noise",
    ),
)

_RENDEZVOUS: tuple[Pattern, ...] = (
    # torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError                            (1.9 to 2.14)
    # Fewer nodes than --nnodes joined before the join timeout.
    Pattern(
        "launch.rdzv_timeout",
        "RendezvousTimeoutError",
        r"rendezvous\.api\.RendezvousTimeoutError\b",
        nature="cause",
        cause="rendezvous",
    ),
    # ...rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed. See inner
    # exception for details.                                                                     (1.9 to 2.14)
    Pattern(
        "launch.rdzv_connection",
        "RendezvousConnectionError: ",
        r"RendezvousConnectionError: (?P<text>.+)",
        nature="symptom",
    ),
    # torch.distributed.elastic.rendezvous.api.RendezvousClosedError                             (1.9 to 2.14)
    Pattern(
        "launch.rdzv_closed",
        "RendezvousClosedError",
        r"rendezvous\.api\.RendezvousClosedError\b",
        nature="consequence",
    ),
    # torch.distributed.elastic.rendezvous.api.RendezvousGracefulExitError: The node '...'            (2.1 on)
    Pattern(
        "launch.rdzv_closed",
        "RendezvousGracefulExitError",
        r"rendezvous\.api\.RendezvousGracefulExitError\b",
        nature="consequence",
    ),
    # The node 'host-b_1234_0' has failed to send a keep-alive heartbeat to the rendezvous 'none' due to an
    # error of type RendezvousConnectionError.          (1.9 to 2.14; at the end `has failed to shutdown the`)
    Pattern(
        "launch.rdzv_heartbeat",
        "due to an error of type",
        r"The node '(?P<node>[^']+)' has failed to "
        r"(?:send a keep-alive heartbeat to|shutdown) the rendezvous "
        r"'(?P<run_id>[^']+)' due to an error of type (?P<type>\w+)",
        nature="consequence",
    ),
)

_SPAWN: tuple[Pattern, ...] = (
    # -- Process 1 terminated with the following error:                    (1.x, 2.x; its traceback follows)
    Pattern(
        "launch.process_failed",
        "terminated with the following error:",
        r"-- Process (?P<local_rank>\d+) terminated with the following error:",
        nature="symptom",
    ),
    # torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGSEGV  (1.x, 2.x)
    Pattern(
        "launch.process_failed",
        "terminated with signal",
        r"ProcessExitedException: process (?P<local_rank>\d+) terminated with signal (?P<signal>SIG\w+)",
        nature="symptom",
        refine=from_signal,
        adds=("suggests",),
    ),
    # torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with exit code 1     (1.x, 2.x)
    Pattern(
        "launch.process_failed",
        "terminated with exit code",
        r"ProcessExitedException: process (?P<local_rank>\d+) terminated with exit code (?P<exit_code>-?\d+)",
        nature="symptom",
        refine=from_exit_code,
        adds=("signal", "suggests"),
    ),
)

PATTERNS: tuple[Pattern, ...] = _WORKERS + _RENDEZVOUS + _SPAWN

_ASSIGNMENT = lazy(r"^\s*(?P<name>[a-z_]+)=(?P<value>.*?)\s*$")
_RESULT_LINES = 30


class _Result(Collector):
    """The `name=value` lines under "Rendezvous complete"; lines of other writers between them are passed
    over."""

    def __init__(self, opener: Line) -> None:
        self._opener = opener
        self._values: dict[str, str] = {}
        self._fed = 0

    def feed(self, line: Line) -> bool:
        self._fed += 1
        m = _ASSIGNMENT.match(line.text)
        if m:
            self._values.setdefault(m["name"], m["value"])
        # Nothing after this one is wanted, and a block under way makes the reader look at every line.
        return self._fed < _RESULT_LINES and "global_world_sizes" not in self._values

    def close(self) -> list[Event]:
        fields: dict[str, Value] = {"nature": "info"}
        for name, renamed in (
            ("restart_count", "restart_count"),
            ("master_port", "master_port"),
            ("group_rank", "group_rank"),
            ("group_world_size", "nnodes"),
        ):
            text = self._values.get(name, "")
            if text.isdigit():
                fields[renamed] = int(text)
        if address := self._values.get("master_addr"):
            fields["master_addr"] = address
        if ranks := expand_numbers(self._values.get("global_ranks", "").strip("[]")):
            fields["ranks"] = ranks
        if sizes := expand_numbers(self._values.get("global_world_sizes", "").strip("[]")):
            fields["world_size"] = sizes[0]
        opener = self._opener
        lines = 1 + self._fed
        return [Event("launch.rdzv_result", fields, opener.env, opener.ref, opener.text, lines)]


# [default] Rendezvous complete for workers. Result:
#   restart_count=0
#   master_addr=node-0
#   ...
#   global_ranks=[8, 9, 10, 11, 12, 13, 14, 15]
#     (1.9 to 2.14, INFO; each line with the logger's prefix or not)
BLOCKS: tuple[Block, ...] = (
    Block(
        {
            "launch.rdzv_result": (
                "restart_count",
                "master_addr",
                "master_port",
                "group_rank",
                "nnodes",
                "ranks",
                "world_size",
            )
        },
        "Rendezvous complete for workers",
        r"Rendezvous complete for workers\. Result:",
        lambda _m, line: _Result(line),
    ),
)
