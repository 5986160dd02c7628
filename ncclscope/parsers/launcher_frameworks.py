"""Exits as told by shells, pdsh, DeepSpeed, Lightning and accelerate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.launcher_exit import (
    ENDED,
    from_exit_code,
    signal_facts,
    signal_number,
    with_ints,
    with_signal,
)
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]


def _shell(m: re.Match[str], _line: Line) -> dict[str, Value]:
    number = signal_number(m["signal"])
    return signal_facts(number) if number is not None else {}


def _bare(m: re.Match[str], line: Line) -> dict[str, Value] | None:
    """A shell writes the word alone; behind a logger's prefix it is somebody else's word."""
    return None if line.env.logger else _shell(m, line)


def _script(m: re.Match[str], line: Line) -> dict[str, Value]:
    return _shell(m, line) | with_ints(m, line)


def _remote(m: re.Match[str], line: Line) -> dict[str, Value]:
    """255 is ssh's own: the connection failed or broke. Other codes are the remote launcher's."""
    fields = from_exit_code(m, line)
    return fields | {"nature": "symptom"} if m["exit_code"] == "255" else fields


def _always_consequence(m: re.Match[str], line: Line) -> dict[str, Value]:
    """The printer repeats its child's status, and the child is itself a launcher."""
    fields = from_exit_code(m, line) if m["exit_code"] else with_signal(m, line)
    fields.pop("suggests", None)
    return fields | {"nature": "consequence"}


_SHELLS: tuple[Pattern, ...] = (
    # run.sh: line 12: 31337 Killed                  python train.py                                    (bash)
    # bash: line 1:  31337 Segmentation fault      (core dumped) python train.py
    Pattern(
        "launch.shell_signal",
        ": line ",
        rf": line (?P<line>\d+):\s+(?P<pid>\d+) (?P<signal>{ENDED})\b",
        nature="symptom",
        refine=_script,
        adds=("signal", "suggests"),
    ),
    # Killed           Segmentation fault (core dumped)                                 (dash, bash -c, alone)
    *(
        Pattern(
            "launch.shell_signal",
            word,
            rf"^(?:bash: |sh: )?(?P<signal>{word})(?: \(core dumped\))?\s*$",
            nature="symptom",
            refine=_bare,
            adds=("signal", "suggests"),
        )
        for word in ENDED.split("|")[:7]
    ),
    # zsh: segmentation fault (core dumped)  python train.py                                             (zsh)
    Pattern(
        "launch.shell_signal",
        "zsh: ",
        r"^zsh: (?P<signal>killed|terminated|abort|segmentation fault|bus error)\b",
        nature="symptom",
        refine=_shell,
        adds=("signal", "suggests"),
    ),
    # pdsh@head: node-02: ssh exited with exit code 1                                                    (all)
    Pattern(
        "launch.remote_exit",
        "exited with exit code",
        r"pdsh@[^:]+: (?P<host>[^:]+): (?:ssh|rcmd|exec|mcmd) exited with exit code (?P<exit_code>\d+)",
        nature="symptom",
        refine=_remote,
        adds=("signal", "suggests"),
    ),
)

_DEEPSPEED: tuple[Pattern, ...] = (
    # Killing subprocess 4242                                                  (launch.py, all; dead ones too)
    Pattern("ds.kill", "Killing subprocess", r"^Killing subprocess (?P<pid>\d+)\s*$", nature="consequence"),
    Pattern(
        "ds.kill",
        "sigkill_handler] Killing",
        r"sigkill_handler\] Killing subprocess (?P<pid>\d+)",
        nature="consequence",
    ),
    # ['/venv/bin/python', '-u', 'train.py', '--local_rank=3'] exits with return code = -9    (launch.py, all)
    # The command is the one that was started last, not the one that failed: its --local_rank names nobody.
    Pattern(
        "ds.child_exit",
        "exits with return code =",
        r"exits with return code = (?P<exit_code>-?\d+)",
        nature="symptom",
        refine=from_exit_code,
        adds=("signal", "suggests"),
    ),
    # Process 4242 exits successfully.                                                        (launch.py, all)
    Pattern("ds.exit_ok", "exits successfully", r"Process (?P<pid>\d+) exits successfully"),
    # [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4294967296, reducing to 2147483648
    #     (0.9 on)
    Pattern(
        "ds.overflow",
        "OVERFLOW! Rank",
        r"OVERFLOW! Rank (?P<rank>\d+) Skipping step\.",
        nature="noise",
    ),
    # Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.     (all)
    Pattern(
        "ds.loss_scale_minimum",
        "Current loss scale already at minimum",
        r"Current loss scale already at minimum - cannot decrease scale anymore",
        nature="cause",
        cause="nan",
    ),
)

_LIGHTNING: tuple[Pattern, ...] = (
    # Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8                                           (1.5 on)
    Pattern(
        "pl.init",
        "Initializing distributed: GLOBAL_RANK:",
        r"Initializing distributed: GLOBAL_RANK: (?P<rank>\d+), MEMBER: \d+/(?P<world_size>\d+)",
    ),
    # All distributed processes registered. Starting with 8 processes                                 (1.5 on)
    Pattern(
        "pl.all_registered",
        "All distributed processes registered",
        r"All distributed processes registered\. Starting with (?P<world_size>\d+) processes",
    ),
    # [rank: 0] Child process with PID 31337 terminated with code -9. Forcefully terminating all other
    # processes to avoid zombies                                          (2.0 on; the rank is the printer's)
    Pattern(
        "pl.child_exit",
        "Child process with PID",
        r"Child process with PID (?P<pid>\d+) terminated with code (?P<exit_code>-?\d+)\. Forcefully",
        nature="symptom",
        refine=from_exit_code,
        adds=("signal", "suggests"),
    ),
    # [rank: 3] Received SIGTERM: 15                                                                  (1.6 on)
    # Lightning's own launcher or the scheduler; the line does not say which.
    Pattern(
        "pl.received_signal",
        "Received SIG",
        r"(?:\[rank: (?P<rank>\d+)\] )?Received SIG\w+: (?P<signal>\d+)\s*$",
        nature="symptom",
    ),
)

_ACCELERATE: tuple[Pattern, ...] = (
    # subprocess.CalledProcessError: Command '['/venv/bin/python', 'train.py']' returned non-zero exit status
    # 1.                                                                                                 (all)
    # subprocess.CalledProcessError: Command '[...]' died with <Signals.SIGKILL: 9>.
    Pattern(
        "acc.child_exit",
        "CalledProcessError: Command",
        r"subprocess\.CalledProcessError: Command .{1,4000}?' "
        r"(?:returned non-zero exit status (?P<exit_code>\d+)|died with <Signals\.(?P<signal>SIG\w+): \d+>)",
        nature="consequence",
        refine=_always_consequence,
        adds=("signal",),
    ),
    # accelerate.utils.operations.DistributedOperationException: Cannot apply desired operation due to shape
    # mismatches.                                                      (0.20 on, with ACCELERATE_DEBUG_MODE=1)
    Pattern(
        "acc.shape_mismatch",
        "Cannot apply desired operation due to shape mismatches",
        r"Cannot apply desired operation due to shape mismatches",
        nature="cause",
        cause="collective-mismatch",
    ),
)

PATTERNS: tuple[Pattern, ...] = _SHELLS + _DEEPSPEED + _LIGHTNING + _ACCELERATE
