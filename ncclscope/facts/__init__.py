"""Joins over ranks and hosts: from events to what rules look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ncclscope.facts.base import Basis, FactOptions
from ncclscope.facts.collectives import add_collective_facts
from ncclscope.facts.communicators import add_communicator_facts
from ncclscope.facts.deaths import add_death_facts
from ncclscope.facts.disagreements import add_disagreement_facts
from ncclscope.facts.ending import Ending, completed_after_all, find_ending, tells_failure
from ncclscope.facts.flight_recorder import add_flight_recorder_facts
from ncclscope.facts.hardware import add_hardware_facts
from ncclscope.facts.machine_code import add_machine_code_facts
from ncclscope.facts.named import add_named_facts
from ncclscope.facts.phases import phases_of
from ncclscope.facts.ras import add_ras_facts
from ncclscope.facts.stacks import add_stack_facts
from ncclscope.facts.tracebacks import add_traceback_facts
from ncclscope.observation import Observation
from ncclscope.report import UNSET, Finding, Job, Phase, Ranks, Timeline
from ncclscope.store import EventStore, StreamInfo

__all__ = ["FactOptions", "Facts", "build_facts"]


class Facts(msgspec.Struct, frozen=True):
    """Everything that rules, the verdict and the report need of the input. picture is made on demand: most reports do
    not show it."""

    observations: tuple[Observation, ...]
    ranks: Ranks
    given: frozenset[str]
    versions: dict[str, tuple[str, ...]]
    phase_of: Callable[[Observation], Phase]
    ending: Ending
    hosts: tuple[str, ...]
    recognised: bool
    streams: tuple[StreamInfo, ...]
    notes: tuple[str, ...]
    picture: Callable[[Sequence[Finding]], tuple[Job, Timeline]]
    placeholders: dict[str, str] = msgspec.field(default_factory=dict)


def build_facts(store: EventStore, options: FactOptions, warn: Callable[[str], None]) -> Facts:
    """Runs the correlators in a fixed order; one that fails becomes a warning and the others go on."""
    basis = Basis.of(store, options)
    observations = [basis.observation(group) for group in store.groups()]
    try:
        ending = find_ending(basis)
    except Exception as error:
        warn(f"how the input ends could not be told: {type(error).__name__}: {error}")
        ending = Ending("open", None, None)
    _shape(basis, ending)
    correlators: tuple[Callable[[], None], ...] = (
        lambda: add_communicator_facts(basis, ending),
        lambda: _collectives(basis),
        lambda: add_death_facts(basis),
        lambda: add_hardware_facts(basis),
        lambda: add_disagreement_facts(basis),
        lambda: add_machine_code_facts(basis),
        lambda: add_named_facts(basis),
        lambda: add_ras_facts(basis),
        lambda: add_traceback_facts(basis),
        lambda: add_stack_facts(basis),
    )
    for correlate in correlators:
        try:
            correlate()
        except Exception as error:  # a bug in one correlator must not cost the report
            warn(f"a correlator failed: {type(error).__name__}: {error}")
    observations += basis.facts
    if completed_after_all(basis):
        observations = [
            o
            for o in observations
            if not tells_failure(o.fields.get("nature")) and (not o.derived or o.kind.startswith("job."))
        ]
    versions = _versions(basis)
    return Facts(
        observations=tuple(observations),
        ranks=_ranks(basis),
        given=_given(basis),
        versions=versions,
        phase_of=phases_of(basis),
        ending=ending,
        hosts=tuple(basis.identity.hosts),
        recognised=bool(store.total or store.dumps or any(_of_a_launcher(s) for s in store.streams)),
        streams=tuple(store.streams),
        notes=_notes(basis),
        picture=lambda findings: _picture(basis, versions, findings),
    )


# Envelopes that only launchers of distributed jobs and their ranks write; plain times and loggers prove nothing.
_LAUNCHER_LAYERS = ("mpirun", "torchrun --tee", "[rankN]:", "(actor pid)", "NCCL", "c10", "torch logger", "DeepSpeed")


def _of_a_launcher(stream: StreamInfo) -> bool:
    return any(layer in stream.format for layer in _LAUNCHER_LAYERS)


def _collectives(basis: Basis) -> None:
    """Dumps decide where they name a rank; the watchdogs' lines where they do not."""
    if not add_flight_recorder_facts(basis):
        add_collective_facts(basis)


def _notes(basis: Basis) -> tuple[str, ...]:
    """What a reader must know of the input as a whole."""
    notes: list[str] = []
    if basis.attempts.count > 1:
        count = basis.attempts.count
        notes.append(f"the input holds {count} attempts of the job; what failed in the first comes first")
    if basis.attempts.several_jobs > 1:
        notes.append(
            f"the input seems to hold {basis.attempts.several_jobs} jobs, read here as one: triage each by itself, or "
            "let `ncclscope scan` take them apart"
        )
    return tuple(notes)


def _picture(
    basis: Basis, versions: dict[str, tuple[str, ...]], findings: Sequence[Finding]
) -> tuple[Job, Timeline]:
    from ncclscope.facts.job import describe_job
    from ncclscope.facts.timeline import build_timeline

    return describe_job(basis, versions), build_timeline(basis, findings)


def _shape(basis: Basis, ending: Ending) -> None:
    nodes = [n for e in basis.events("nccl.comm_info") if isinstance(n := e.get("nnodes"), int)]
    hosts = max([len(basis.identity.hosts), *nodes, 0])
    by = [ending.by] if ending.by else []
    basis.add("job.shape", {"hosts": hosts, "nranks": basis.identity.world}, [])
    progressing = ending.silent_s is not None and ending.silent_s < 20
    basis.add(
        "job.end",
        {
            "how": ending.how,
            "silent_s": ending.silent_s,
            "silent_min": None if ending.silent_s is None else int(ending.silent_s // 60),
            "progressing": progressing,
            "still": ending.still,
            "asked": basis.options.as_of is not None,
        },
        by,
    )


def _ranks(basis: Basis) -> Ranks:
    seen = sorted(basis.identity.seen_ranks | {r for r, _, _ in basis.store.dumps if r is not None})
    expected = basis.identity.world
    for event in basis.events("launch.rdzv_result"):
        size = event.get("world_size")
        if isinstance(size, int):
            expected = max(expected or 0, size)
    return Ranks(expected=expected if expected is not None else UNSET, seen=seen)


def _given(basis: Basis) -> frozenset[str]:
    given: set[str] = set()
    kinds = {e.kind.split(".")[0] for e in basis.events()}
    if any(s.hints.kernel for s in basis.store.streams) or "kernel" in kinds:
        given.add("kernel_log")
    if {"nccl", "torch", "py", "cuda"} & kinds:
        given.add("rank_log")
    if {"launch", "ray", "slurm", "mpi", "k8s", "ds"} & kinds:
        given.add("launcher_log")
    if basis.store.dumps:
        given.add("flight_recorder")
    seen = basis.identity.seen_ranks
    if basis.identity.world and len(seen) >= basis.identity.world:
        given.add("all_ranks")
    return frozenset(given)


def _versions(basis: Basis) -> dict[str, tuple[str, ...]]:
    def values(kind: str, name: str) -> tuple[str, ...]:
        return tuple(sorted({str(v) for e in basis.events(kind) if (v := e.get(name)) is not None}))

    return {
        "nccl": values("nccl.version", "version"),
        "nccl_cuda": values("nccl.version", "cuda"),
        "torch": values("torch.version", "version"),
        "driver": values("nccl.driver", "driver_version"),
    }
