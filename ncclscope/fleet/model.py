"""The answer of `ncclscope fleet`; its JSON form is an interface. Fields may be added, none changes."""

from __future__ import annotations

import msgspec

__all__ = ["Cause", "Cluster", "Day", "FleetReport", "Gpu", "Node", "Version", "XidCount"]


class Cause(msgspec.Struct, frozen=True):
    """A cause class (or, where only a symptom is known, its rule). rank_hours: wall time of its failed jobs times their
    ranks, an upper bound of what they cost; timed: of how many jobs that is known. example: the name of a job."""

    name: str
    jobs: int
    rank_hours: float
    timed: int
    explained: bool
    example: str


class Day(msgspec.Struct, frozen=True):
    """Jobs whose last line was written on that day. causes: failed jobs by cause."""

    day: str
    jobs: int
    failed: int
    rank_hours: float
    causes: dict[str, int]


class Node(msgspec.Struct, frozen=True):
    """A host. jobs, failed: in which it took part; expected: how many of them would fail if they failed as often as all
    jobs of their sizes; blamed: jobs whose first finding names it. p: of the more unlikely of the two counts;
    stands_out: after correction for the number of nodes. together: other nodes that took part in exactly the same jobs,
    which nothing here tells apart."""

    host: str
    jobs: int
    failed: int
    expected: float
    blamed: int
    p: float
    stands_out: bool
    causes: dict[str, int]
    together: list[str] = []


class Gpu(msgspec.Struct, frozen=True):
    """A GPU that findings blame, by host and PCI address. jobs: in which its host took part."""

    host: str
    gpu: str
    jobs: int
    blamed: int
    p: float
    stands_out: bool
    causes: dict[str, int]
    uuids: list[str] = []
    serials: list[str] = []


class XidCount(msgspec.Struct, frozen=True):
    """An Xid of one GPU in the kernel logs that were given; lines: how often it was printed, jobs: in how many."""

    host: str | None
    gpu: str | None
    xid: int
    lines: int
    jobs: int
    uuids: list[str] = []
    serials: list[str] = []


class Version(msgspec.Struct, frozen=True):
    """what: nccl, nccl_cuda, torch or cuda driver API (not the kernel driver)."""

    what: str
    version: str
    jobs: int
    failed: int
    causes: dict[str, int]


class Cluster(msgspec.Struct, frozen=True):
    """Lines of one shape that no finding rests on, with `<*>` where they differ. jobs: in how many; job, source, line,
    text: of an example."""

    template: str
    lines: int
    jobs: int
    job: str
    source: str
    line: int
    text: str


class FleetReport(msgspec.Struct, frozen=True):
    """Everything. failed: jobs with a cause or a symptom; trend: of the share of failed jobs over days (z, p).
    more_nodes, more_gpus: that stand out beside those listed."""

    jobs: int
    failed: int
    unreadable: int
    rank_hours: float
    causes: list[Cause]
    days: list[Day]
    nodes: list[Node]
    gpus: list[Gpu]
    xids: list[XidCount]
    versions: list[Version]
    clusters: list[Cluster]
    trend: tuple[float, float] | None = None
    notes: list[str] = []
    more_nodes: int = 0
    more_gpus: int = 0
    schema_version: str = "1"
