"""Messages of Slurm: srun, slurmstepd, sacct, scontrol; and of submitit, which runs under it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.lazy import lazy
from ncclscope.parsers.launcher_exit import (
    ENDED,
    exit_facts,
    expand_numbers,
    signal_facts,
    signal_number,
    with_ints,
    with_signal,
)
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

# The look-behind lets a host start only where a word does: else long garbage costs the square of its length.
_WHERE = r"(?<![\w.\-\[\],])(?P<host>[A-Za-z][\w.\-\[\],]*): tasks? (?P<tasks>[\d,\-]+): "


def _tasks(m: re.Match[str]) -> dict[str, Value]:
    """tasks, and task when it is one. They are Slurm task numbers: ranks only where each task is one rank."""
    tasks = expand_numbers(m["tasks"])
    return {"tasks": tasks, "task": tasks[0]} if len(tasks) == 1 else {"tasks": tasks}


def _ended(m: re.Match[str], _line: Line) -> dict[str, Value]:
    number = signal_number(m["signal"])
    return _tasks(m) | (signal_facts(number) if number is not None else {})


def _exited(m: re.Match[str], _line: Line) -> dict[str, Value]:
    return _tasks(m) | exit_facts(int(m["exit_code"]))


def _where(m: re.Match[str], _line: Line) -> dict[str, Value]:
    return _tasks(m)


_PREEMPTED: dict[str, Value] = {"nature": "cause", "cause": "preempted"}
_NODE_LOST: dict[str, Value] = {"nature": "symptom", "suggests": "rank-died"}


def _cancelled(m: re.Match[str], _line: Line) -> dict[str, Value]:
    """The reason decides. A step without one was ended by srun or scancel, mostly since another task had
    failed."""
    reason = m["reason"] or ""
    if reason in ("TIME LIMIT", "PREEMPTION", "JOB REQUEUE"):
        return _PREEMPTED
    if reason == "NODE FAILURE":
        return _NODE_LOST
    if reason == "TASK FAILURE":
        return {"nature": "consequence"}
    if m["scope"] == "STEP" and not reason:
        return {"nature": "consequence"}
    return {"nature": "symptom", "suggests": "preempted"}


_EXIT_PAIR = lazy(r"\b(\d+):(\d+)\b")


def _state(m: re.Match[str], line: Line) -> dict[str, Value] | None:
    """What an accounting state says, with the `code:signal` pair of the same line."""
    pairs = _EXIT_PAIR.findall(line.text[m.end("state") :])
    if not pairs and "JobState=" not in line.text:
        return None
    fields: dict[str, Value] = {}
    if pairs:
        # Elapsed times (12:34:56) look alike; the pair stands last.
        code, signal = (int(x) for x in pairs[-1])
        if code:
            fields["exit_code"] = code
        if signal and signal_number(str(signal)):
            fields["signal"] = signal
    state = m["state"]
    if state.startswith("OUT_OF_ME"):
        # Slurm writes its own code 125 into the signal's place for this state.
        fields.pop("signal", None)
        return fields | {"state": "OUT_OF_MEMORY", "nature": "cause", "cause": "oom-cgroup"}
    if state in ("TIMEOUT", "PREEMPTED"):
        return fields | _PREEMPTED
    if state == "NODE_FAIL":
        return fields | _NODE_LOST
    return fields | {"state": "CANCELLED", "nature": "symptom", "suggests": "preempted"}


_TASKS: tuple[Pattern, ...] = (
    # srun: error: node-03: task 3: Killed                                                               (all)
    # srun: error: node-[01-02]: tasks 0-7: Segmentation fault (core dumped)
    Pattern(
        "slurm.task_exit",
        ": task",
        _WHERE + rf"(?P<signal>{ENDED})(?: \(core dumped\))?\s*$",
        nature="symptom",
        refine=_ended,
        adds=("tasks", "task", "signal", "suggests"),
    ),
    # srun: error: node-[01-02]: tasks 0-7: Exited with exit code 1                                      (all)
    Pattern(
        "slurm.task_exit",
        "Exited with exit code",
        _WHERE + r"Exited with exit code (?P<exit_code>\d+)",
        nature="symptom",
        refine=_exited,
        adds=("tasks", "task", "signal", "suggests"),
    ),
    # srun: error: node-03: task 3: Out Of Memory                                                        (all)
    Pattern(
        "slurm.oom",
        "Out Of Memory",
        _WHERE + r"Out Of Memory",
        nature="cause",
        cause="oom-cgroup",
        refine=_where,
        adds=("tasks", "task"),
    ),
    # slurmstepd: error: Detected 1 oom_kill event in StepId=123456.0. Some of the step tasks have been OOM
    # Killed.                                                                                       (21.08 on)
    # slurmstepd: error: Detected 1 oom-kill event(s) in StepId=214.batch cgroup. Some of your processes ...
    #                                                                                                  (to 21)
    # It can have been a data-loading worker and not the rank itself.
    *(
        Pattern(
            "slurm.oom",
            literal,
            r"Detected (?P<count>\d+) oom[_-]kill event(?:s|\(s\))? in "
            r"(?:StepId=|step )(?P<job>\w+(?:\.\w+)?)",
            nature="cause",
            cause="oom-cgroup",
        )
        for literal in ("oom_kill event", "oom-kill event")
    ),
    # slurmstepd: error: StepId=123.0 exceeded memory limit (68719476 > 67108864), being killed          (all)
    Pattern(
        "slurm.oom",
        "exceeded memory limit",
        r"(?:StepId=|[Ss]tep |Job )?(?P<job>\d+(?:\.\w+)?) exceeded memory limit"
        r"(?: \((?P<used>\d+) > (?P<limit>\d+)\))?, being killed",
        nature="cause",
        cause="oom-cgroup",
    ),
    # slurmstepd: error: Exceeded step memory limit at some point.                                     (to 19)
    # Page cache counted too, so it need not have killed anything.
    Pattern(
        "slurm.memory_limit_reached",
        "memory limit at some point",
        r"Exceeded (?:step|job) memory limit at some point",
        nature="symptom",
        fields={"suggests": "oom-cgroup"},
    ),
)

_JOBS: tuple[Pattern, ...] = (
    # slurmstepd: error: *** STEP 123456.0 ON node-01 CANCELLED AT 2026-05-26T12:00:00 DUE TO TIME LIMIT ***
    #     (all)
    # Also JOB; DUE TO PREEMPTION, DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS, DUE TO JOB REQUEUE,
    # DUE to SIGNAL Terminated, DUE TO TASK FAILURE, or no reason. The host is the one that prints.
    Pattern(
        "slurm.cancelled",
        "CANCELLED AT",
        r"\*\*\* (?P<scope>JOB|STEP) (?P<job>[\w.+]+) ON (?P<host>\S+) CANCELLED AT (?P<time>[\w:.+-]+)"
        r"(?: DUE (?:TO|to) "
        r"(?P<reason>TIME LIMIT|PREEMPTION|NODE FAILURE|JOB REQUEUE|TASK FAILURE|SIGNAL [^*,]+?))?"
        r"(?:, SEE SLURMCTLD LOG FOR DETAILS)? ?\*\*\*",
        nature="symptom",
        refine=_cancelled,
        adds=("cause", "suggests"),
    ),
    # slurmstepd: error: *** REASON: admin drained node ***                                           (recent)
    Pattern("slurm.reason", "*** REASON: ", r"\*\*\* REASON: (?P<reason>.+?) \*\*\*", nature="consequence"),
    # slurmstepd: error: *** STEP 123456.0 ON node-01 FAILED (non-zero exit code or other failure mode) ***
    #     (all)
    Pattern(
        "slurm.step_failed",
        "FAILED (non-zero exit code or other failure mode)",
        r"\*\*\* (?P<scope>JOB|STEP) (?P<job>[\w.+]+) ON (?P<host>\S+) FAILED \(non-zero exit code",
        nature="consequence",
    ),
    # srun: Job step aborted: Waiting up to 32 seconds for job step to finish.                           (all)
    # Exits after this line are srun's own doing.
    Pattern(
        "slurm.step_aborted",
        "Job step aborted: Waiting up to",
        r"Job step aborted: Waiting up to (?P<limit_s>\d+) seconds",
        nature="consequence",
        refine=with_ints,
    ),
    # srun: Terminating StepId=123456.0      srun: Force Terminated StepId=123456.0                      (all)
    *(
        Pattern(
            "slurm.terminating",
            literal,
            rf"srun: {literal} (?:StepId=|job step |JobId=)(?P<job>[\w.]+)",
            nature="consequence",
        )
        for literal in ("Terminating", "Force Terminated")
    ),
    # srun: error: Node failure on node-07                                                               (all)
    Pattern(
        "slurm.node_failure",
        "Node failure on",
        r"Node failure on (?P<host>[\w.\-\[\],]+)\s*$",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
    # srun: First task exited 60s ago                                                                    (all)
    Pattern(
        "slurm.first_task_exited",
        "First task exited",
        r"srun: (?:error: )?First task exited(?: (?P<waited_s>\d+)s ago)?",
        nature="symptom",
        refine=with_ints,
    ),
    # srun: error: Task launch for StepId=123456.0 failed on node node-05: Communication connection failure
    #     (all)
    Pattern(
        "slurm.launch_failed",
        "Task launch for",
        r"Task launch for (?:StepId=)?(?P<job>[\w.]+) failed on node (?P<host>[^\s:]+): (?P<reason>.+)",
        nature="symptom",
        fields={"suggests": "rendezvous"},
    ),
    # srun: error: Timed out waiting for job step to complete                                            (all)
    *(
        Pattern(
            "slurm.timeout",
            literal,
            rf"(?:srun|sbatch|slurmstepd): error: .{{0,200}}?{literal}",
            nature="symptom",
        )
        for literal in (
            "Socket timed out on send/recv operation",
            "Timed out waiting for job step to complete",
        )
    ),
    # submitit WARNING (2022-08-11 22:41:11,453) - Caught signal SIGUSR2 on node-a: this job is preempted.
    #     (1.x)
    # submitit tells `timed-out` from `preempted` by the time that was left.
    Pattern(
        "slurm.submitit_signal",
        "this job is ",
        r"Caught signal (?P<signal>SIG\w+) on (?P<host>[\w.-]+): "
        r"this job is (?P<reason>preempted|timed-out)",
        nature="cause",
        cause="preempted",
        refine=with_signal,
    ),
)

_SACCT: tuple[Pattern, ...] = tuple(
    # sacct:    123456.0      train.sh    gpu   proj    64 OUT_OF_ME+    0:125   (cut with + unless -P or %20)
    #           123456|train|TIMEOUT|0:0
    Pattern(
        "slurm.job_state",
        literal,
        rf"^\s*(?P<job>\d+(?:_\d+)?(?:\.\w+)?\+?)[\s|].*?(?P<state>\b{expression})(?=[\s|]|$)",
        nature="symptom",
        refine=_state,
        adds=("exit_code", "signal", "cause", "suggests"),
    )
    for literal, expression in (
        ("OUT_OF_ME", r"OUT_OF_ME(?:MORY|\+)"),
        ("TIMEOUT", "TIMEOUT"),
        ("PREEMPTED", "PREEMPTED"),
        ("NODE_FAIL", "NODE_FAIL"),
        ("CANCELLED", r"CANCELLED(?:\+| by \d+)?"),
    )
)

_SCONTROL: tuple[Pattern, ...] = (
    # scontrol show job:    JobState=OUT_OF_MEMORY Reason=OutOfMemory Dependency=(null)
    Pattern(
        "slurm.job_state",
        "JobState=",
        r"JobState=(?P<state>OUT_OF_MEMORY|TIMEOUT|PREEMPTED|NODE_FAIL|CANCELLED)\b"
        r"(?: Reason=(?P<reason>\S+))?",
        nature="symptom",
        refine=_state,
        adds=("exit_code", "signal", "cause", "suggests"),
    ),
)

PATTERNS: tuple[Pattern, ...] = _TASKS + _JOBS + _SACCT + _SCONTROL
