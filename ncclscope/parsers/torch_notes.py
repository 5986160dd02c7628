"""Lines that explain or only look bad: versions, missing clean-up, guessed devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.pattern import Pattern
from ncclscope.parsers.torch_exceptions import judge
from ncclscope.parsers.torch_tags import ADDED, tag_of

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]


def _exception_line(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    """Only a hint: without its traceback nobody knows that the line ended a process."""
    judgement = judge(m["type"], m["message"])
    fields: dict[str, Value] = {"nature_of": judgement.nature_of, "message": m["message"][:300]}
    fields["nature"] = "consequence" if judgement.nature == "consequence" else "symptom"
    suggests = judgement.cause or judgement.suggests
    if suggests:
        fields["suggests"] = suggests
    return fields


PATTERNS: tuple[Pattern, ...] = (
    # ValueError: The model's max seq len (131072) is larger than ...   (the end of a traceback, also when
    # pasted alone; where the traceback was read, py.exception stands at the same line)
    Pattern(
        "py.exception_line",
        "Error: ",
        r"^(?:\S{1,40} )?(?P<type>(?:[A-Za-z_]\w{0,80}\.){0,10}[A-Z]\w{0,80}Error(?:\(\w{1,80}\))?): "
        r"(?P<message>\S.*)",
        nature="symptom",
        refine=_exception_line,
        adds=("nature_of", "suggests"),
    ),
    # 2026-01-05 06:01:12.977 [177/train/578 (pid 2893)] OSError: [Errno 28] No space left on device   (behind a prefix
    # that nobody knows only the operating system's errors are looked for)
    Pattern(
        "py.exception_line",
        "Error: [Errno ",
        r"^\S+ \S.{0,300}? (?P<type>[A-Z]\w{1,80}Error): (?P<message>\[Errno \d+\] \S.*)",
        nature="symptom",
        refine=_exception_line,
        adds=("nature_of", "suggests"),
    ),
    # An attempt has been made to start a new process before the   (several indented lines under `RuntimeError: `;
    # multiprocessing with spawn and a script without its __main__ guard)
    Pattern(
        "py.exception_line",
        "An attempt has been made to start a new process before the",
        r"^\s*(?P<message>An attempt has been made to start a new process before the)",
        nature="symptom",
        fields={"type": "RuntimeError", "nature_of": "own", "suggests": "user-exception"},
    ),
    # KeyboardInterrupt   (Ctrl-C, or a launcher's SIGINT)
    Pattern(
        "py.keyboard_interrupt",
        "KeyboardInterrupt",
        r"^KeyboardInterrupt(?::|\s*$)",
        nature="consequence",
    ),
    # PyTorch version: 2.9.1+cu128   (torch.utils.collect_env, vLLM)
    Pattern(
        "torch.version",
        "PyTorch version: ",
        r"PyTorch version: (?P<version>\d+\.\d+\S*)",
    ),
    # torch version .................... 2.1.2+cu121   (ds_report)
    Pattern(
        "torch.version",
        "torch version ....",
        r"torch version \.{4,} (?P<version>\d+\.\d+\S*)",
    ),
    # CUDA used to build PyTorch: 12.8   (torch.utils.collect_env)
    Pattern(
        "torch.cuda_version",
        "CUDA used to build PyTorch: ",
        r"CUDA used to build PyTorch: (?P<version>\d+\.\d+)",
    ),
    # Warning: WARNING: destroy_process_group() was not called before program exit, which can leak
    # resources. ...   (2.5 on)
    Pattern(
        "torch.not_destroyed",
        "destroy_process_group() was not called before",
        r"destroy_process_group\(\) was not called before program exit",
        nature="noise",
        refine=tag_of,
        adds=ADDED,
    ),
    # Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL. ...   (2.4)
    Pattern(
        "torch.not_destroyed",
        "process group has NOT been destroyed before",
        r"process group has NOT been destroyed before we destruct ProcessGroupNCCL",
        nature="noise",
        refine=tag_of,
        adds=ADDED,
    ),
    # WARNING: NCCL communicator hasn't been destroyed. This may cause memory leaks.   (2.5 and later)
    Pattern(
        "torch.comm_not_destroyed",
        "NCCL communicator hasn't been destroyed",
        r"NCCL communicator hasn't been destroyed",
        nature="noise",
    ),
    # using GPU 3 to perform barrier as devices used by this process are currently unknown. This can ...
    # (1.13 to 2.6)
    Pattern(
        "torch.device_guessed",
        "devices used by this process are currently unknown",
        r"using GPU (?P<device>\d+) to perform barrier as devices used by this process are currently unknown",
        nature="noise",
        refine=tag_of,
        adds=ADDED,
    ),
    # using GPU 0 as device used by this process is currently unknown. ... You can pecify device_id   (2.7,
    # 2.8)
    Pattern(
        "torch.device_guessed",
        "device used by this process is currently unknown",
        r"using GPU (?P<device>\d+) as device used by this process is currently unknown",
        nature="noise",
        refine=tag_of,
        adds=ADDED,
    ),
    # Guessing device ID based on global rank. This can cause a hang if rank to GPU mapping is
    # heterogeneous.   (2.9 on)
    Pattern(
        "torch.device_guessed",
        "Guessing device ID based on global rank",
        r"Guessing device ID based on global rank",
        nature="noise",
        refine=tag_of,
        adds=ADDED,
    ),
    # UserWarning: No device id is provided via `init_process_group` or `barrier `. Using the current device
    # (2.8)
    Pattern(
        "torch.device_guessed",
        "No device id is provided via",
        r"No device id is provided via `init_process_group` or `barrier ?`",
        nature="noise",
    ),
    # UserWarning: barrier(): using the device under current context. You can specify `device_id`   (2.9 and
    # later)
    Pattern(
        "torch.device_guessed",
        "using the device under current context",
        r"barrier\(\): using the device under current context",
        nature="noise",
    ),
    # ProcessGroupNCCL::groupEnd() called in nonblocking communicator mode without involved communicators
    # (2.1)
    Pattern(
        "torch.nonblocking_group",
        "called in nonblocking communicator mode",
        r"groupEnd\(\) called in nonblocking communicator mode without involved communicators",
        nature="noise",
    ),
    # [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2,   (a line that a terminal, a paste or
    # the end of an excerpt broke inside WorkNCCL; the whole line is torch.watchdog_timeout)
    Pattern(
        "torch.watchdog_cut",
        "collective operation timeout: WorkNCCL(",
        r"collective operation timeout: WorkNCCL\((?:SeqNum=(?P<seq>\d+))?(?![^\n]{0,2000}\) ran for)",
        nature="consequence",
        refine=tag_of,
        adds=ADDED,
    ),
    # Stack trace of the failed collective:    (2.6 and later; `#N func from file:line` follow)
    Pattern(
        "torch.collective_stack",
        "Stack trace of the failed collective:",
        r"Stack trace of the failed collective:",
        nature="symptom",
        refine=tag_of,
        adds=ADDED,
    ),
    # Exception raised from checkTimeout at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:609 (most
    # recent call first):
    Pattern(
        "torch.raised_from",
        "(most recent call first):",
        r"Exception raised from (?P<function>\S+) at (?P<file>\S+?):(?P<line>\d+) \(most recent call "
        r"first\):",
    ),
)
