"""The job in a few facts for reports: hosts, versions, communicators, and settings that differ."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ncclscope.facts.communicators import communicators
from ncclscope.facts.disagreements import must_agree
from ncclscope.report import CommunicatorInfo, Job, SettingInfo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ncclscope.facts.base import Basis

__all__ = ["describe_job"]

_MAX_COMMUNICATORS = 200
_MAX_SETTINGS = 100


def describe_job(basis: Basis, versions: Mapping[str, Sequence[str]]) -> Job:
    """What the reports tell of the job beside its failure."""
    return Job(
        hosts=list(basis.identity.hosts),
        versions={name: list(values) for name, values in versions.items() if values},
        communicators=[
            CommunicatorInfo(
                name=str(comm.key[1]) if comm.key[0] == "id" else f"#{number}",
                size=comm.size,
                world=comm.world,
                started=sorted(comm.started),
                completed=sorted(comm.completed),
                missing=sorted(comm.missing) if comm.size <= 65536 else [],
            )
            for number, comm in enumerate(communicators(basis)[:_MAX_COMMUNICATORS], 1)
        ],
        settings=_settings(basis)[:_MAX_SETTINGS],
    )


def _settings(basis: Basis) -> list[SettingInfo]:
    found: dict[str, dict[str, set[tuple[int, str]]]] = defaultdict(lambda: defaultdict(set))
    for event in basis.events("nccl.env"):
        name, value = event.get("name"), str(event.get("value")).rstrip(".")
        who = basis.who(event)
        if isinstance(name, str):
            found[name][value].add(
                (who.rank, f"rank {who.rank}") if who.rank is not None else (-1, who.host or event.ref.path)
            )
    return [
        SettingInfo(
            name,
            {value: [text for _, text in sorted(speakers)] for value, speakers in sorted(values.items())},
            must_agree(name),
        )
        for name, values in sorted(found.items())
        if len(values) > 1
    ]
