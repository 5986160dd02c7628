"""Whether the NCCL in the log has code for the GPU in the log, by what is known of released builds."""

from __future__ import annotations

from ncclscope.facts.base import Basis
from ncclscope.knowledge.gpus import banner_fit, capability_of, parse_capability
from ncclscope.model import Event

__all__ = ["add_machine_code_facts", "gpu_archs"]


def gpu_archs(basis: Basis) -> dict[str, Event | None]:
    """Architectures ("sm_120") that the user or the input names, each with the line that does."""
    archs: dict[str, Event | None] = {}
    if basis.options.gpu and (given := parse_capability(basis.options.gpu)):
        archs[given.sm] = None
    for event in basis.events():
        sm, name = event.get("sm"), event.get("gpu_name")
        capability = None
        if isinstance(sm, str):
            capability = parse_capability(sm)
        elif isinstance(name, str):
            capability = capability_of(name)
        if capability is not None:
            archs.setdefault(capability.sm, event)
    return archs


def add_machine_code_facts(basis: Basis) -> None:
    """arch.gap for every pair of banner and GPU that does not fit."""
    archs = gpu_archs(basis)
    seen: set[tuple[object, ...]] = set()
    for banner in basis.events("nccl.version"):
        nccl, cuda = banner.get("version"), banner.get("cuda")
        if not isinstance(nccl, str) or not isinstance(cuda, str):
            continue
        for sm, event in archs.items():
            capability = parse_capability(sm)
            if capability is None or (nccl, cuda, sm) in seen:
                continue
            seen.add((nccl, cuda, sm))
            verdict = banner_fit(nccl, cuda, capability)
            if verdict in ("jit", "none"):
                name = event.get("gpu_name") if event else None
                basis.add(
                    "arch.gap",
                    {"nccl": nccl, "cuda": cuda, "gpu_arch": sm, "gpu_name": name, "verdict": verdict},
                    [banner, *([event] if event else [])],
                )
