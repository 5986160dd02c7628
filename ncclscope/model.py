"""The types that cross stages: where a line came from, what its wrappers said, and what a parser understood."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ncclscope.clocks import Stamp

__all__ = ["Envelope", "Event", "Line", "SourceRef", "Value", "Voice"]

Value = str | int | float | bool | tuple[str, ...] | tuple[int, ...]

# Who speaks in a merged stream: lines of different voices can interleave, lines of one voice keep their order.
Voice = tuple[str | int | None, ...]


class SourceRef(msgspec.Struct, frozen=True, order=True):
    """A place in an input: the path as the user gave it (archive members as `a.tar/b.log`) and the line from 1."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Envelope(msgspec.Struct, frozen=True):
    """What the prefixes of one line said, from the outside in; every field may be unknown and none is guessed.

    rank is global (`[rank3]:`), local_rank the launcher's per-node number (`[default3]:`), task the number that srun or
    mpirun printed (a rank only where each task is one rank), device the CUDA ordinal in NCCL's prefix, never a rank.
    logger is who formatted the line: "nccl", "c10", "torch", "python", "kernel", "vllm", "sglang" or None; level its
    severity word as printed ("INFO", "WARN", "E", ...) and code the `file:line` it printed.
    """

    host: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    task: int | None = None
    pid: int | None = None
    tid: int | None = None
    device: int | None = None
    pod: str | None = None
    container: str | None = None
    actor: str | None = None  # Ray's `(RayTrainWorker pid=12, ip=10.0.0.2)` or vLLM's `(Worker_TP3 pid=7)`
    stream: str | None = None  # "stdout" or "stderr"
    time: Stamp | None = None
    collected: Stamp | None = None  # the collector's own time, when it and the process both printed one
    logger: str | None = None
    level: str | None = None
    code: str | None = None
    repeated: int = 0  # Ray's `[repeated 7x across cluster]`
    layers: tuple[str, ...] = ()

    @property
    def voice(self) -> Voice:
        """The process that wrote the line, as far as the wrappers outside its logger tell."""
        return (self.pod, self.container, self.actor, self.task, self.local_rank, self.rank)


class Line(msgspec.Struct, frozen=True):
    """One logical line after its envelopes came off."""

    text: str
    env: Envelope
    ref: SourceRef


class Event(msgspec.Struct, frozen=True):
    """What a parser understood in a line or a bounded group of lines.

    kind is a dotted name ("nccl.init_start"); fields are flat. ref and text are the first line's, or for a traceback
    the line that holds the exception; lines says how many the event stands for.
    """

    kind: str
    fields: Mapping[str, Value]
    env: Envelope
    ref: SourceRef
    text: str
    lines: int = 1
    order: int = 0  # position in reading order, set by the store

    def get(self, name: str) -> Value | None:
        return self.fields.get(name)
