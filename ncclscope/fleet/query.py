"""From the tables of a store to the answer."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from ncclscope.fleet.chance import hypergeometric_tail, poisson_binomial_tail, stand_out, trend
from ncclscope.fleet.clusters import find_clusters
from ncclscope.fleet.model import Cause, Day, FleetReport, Gpu, Node, Version, XidCount
from ncclscope.reporters import words

__all__ = ["fleet_report"]

# A node must have failed this often before it is asked about: two failures in a row happen to many.
_LEAST = 3
# Jobs of a size that so many have are compared with one another alone: fewer would tell little, and with a much higher
# number sizes that do not fail alike would be thrown together.
_COMMON = 30
# Of the nodes and GPUs that are named, at most this share by chance.
_RATE = 0.01
_MOST_NODES = 50

_FAILED = "verdict IN ('cause_found', 'symptom_only')"
_CAUSE = "coalesce(category, 'symptom ' || rule)"


def fleet_report(db: sqlite3.Connection) -> FleetReport:
    """Asks a store everything that the reports show."""
    failed = dict(db.execute(f"SELECT id, {_CAUSE} FROM jobs WHERE {_FAILED}"))  # noqa: S608 - constants
    total, unreadable, hours = db.execute(
        f"SELECT count(*), sum(verdict = 'unreadable'), sum(CASE WHEN {_FAILED} THEN wall_s * ranks END) FROM jobs"  # noqa: S608
    ).fetchone()
    lines = db.execute(
        "SELECT name, coalesce(source, ''), coalesce(u.line, 0), u.count, text"
        " FROM unexplained u JOIN jobs ON jobs.id = u.job"
    )
    clusters, notes = find_clusters(lines)
    days = _days(db)
    nodes, gpus = _who_comes_back(db, failed)
    return FleetReport(
        jobs=total,
        failed=len(failed),
        unreadable=unreadable or 0,
        rank_hours=_hours(hours),
        causes=_causes(db),
        days=days,
        nodes=nodes[:_MOST_NODES],
        gpus=gpus[:_MOST_NODES],
        xids=_xids(db),
        versions=_versions(db, failed),
        clusters=clusters,
        trend=trend([d.failed for d in days], [d.jobs for d in days]),
        notes=notes,
        more_nodes=sum(node.stands_out for node in nodes[_MOST_NODES:]),
        more_gpus=sum(gpu.stands_out for gpu in gpus[_MOST_NODES:]),
    )


def _hours(seconds: float | None) -> float:
    return round((seconds or 0.0) / 3600, 2)


def _causes(db: sqlite3.Connection) -> list[Cause]:
    rows = db.execute(
        f"SELECT {_CAUSE} AS cause, count(*), sum(wall_s * ranks), count(wall_s * ranks), max(verdict = 'cause_found'),"  # noqa: S608
        f" min(name) FROM jobs WHERE {_FAILED} GROUP BY cause ORDER BY 2 DESC, cause"
    )
    return [
        Cause(name, jobs, _hours(lost), timed, bool(sure), example) for name, jobs, lost, timed, sure, example in rows
    ]


def _days(db: sqlite3.Connection) -> list[Day]:
    causes: dict[str, dict[str, int]] = defaultdict(dict)
    for day, cause, count in db.execute(
        f"SELECT day, {_CAUSE} AS cause, count(*) FROM jobs WHERE {_FAILED} AND day IS NOT NULL"  # noqa: S608
        " GROUP BY day, cause ORDER BY day, 3 DESC"
    ):
        causes[day][cause] = count
    rows = db.execute(
        f"SELECT day, count(*), sum({_FAILED}), sum(CASE WHEN {_FAILED} THEN wall_s * ranks END)"  # noqa: S608
        " FROM jobs WHERE day IS NOT NULL GROUP BY day ORDER BY day"
    )
    return [Day(day, jobs, bad, _hours(lost), causes.get(day, {})) for day, jobs, bad, lost in rows]


def _who_comes_back(db: sqlite3.Connection, failed: dict[int, str]) -> tuple[list[Node], list[Gpu]]:
    jobs_of: dict[str, set[int]] = defaultdict(set)
    hosts_of: Counter[int] = Counter()
    for job, host in db.execute("SELECT job, host FROM hosts"):
        jobs_of[host].add(job)
        hosts_of[job] += 1
    blamed: dict[str, set[int]] = defaultdict(set)
    gpu_blamed: dict[tuple[str, str], set[int]] = defaultdict(set)
    marks: dict[tuple[str, str], tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    # Only the first finding: consequences blame who was hit.
    for job, host, gpu, uuid, serial in db.execute(
        "SELECT job, host, gpu, uuid, serial FROM culprits WHERE finding = 0 AND host IS NOT NULL"
    ):
        if job not in failed:
            continue
        blamed[host].add(job)
        if job not in jobs_of[host]:
            jobs_of[host].add(job)
            hosts_of[job] += 1
        if gpu is not None:
            gpu_blamed[host, gpu].add(job)
            uuids, serials = marks[host, gpu]
            uuids |= {uuid} - {None}
            serials |= {serial} - {None}
    band_of = _bands(hosts_of)
    nodes = _nodes(jobs_of, hosts_of, band_of, blamed, failed)
    return nodes, _gpus(jobs_of, hosts_of, band_of, gpu_blamed, marks, failed)


def _bands(hosts_of: Mapping[int, int]) -> dict[int, int]:
    """Which jobs are compared with one another: those of one size, and of sizes that few jobs have those between two
    powers of two. A job of many hosts fails more often though each host is sound, and that is nobody's fault."""
    jobs = Counter(hosts_of.values())
    return {job: size if jobs[size] >= _COMMON else -size.bit_length() for job, size in hosts_of.items()}


def _parts(hosts_of: Mapping[int, int], band_of: Mapping[int, int], blamed: Iterable[set[int]]) -> dict[int, float]:
    """How likely a host of a job is blamed for its failure by chance: jobs of a band have somebody blamed alike often,
    and each host of a job is as likely to be the one."""
    total = Counter(band_of.values())
    blames = Counter(band_of[job] for jobs in blamed for job in jobs)
    return {job: min(1.0, blames[band] / total[band] / hosts_of[job]) for job, band in band_of.items()}


def _nodes(
    jobs_of: dict[str, set[int]],
    hosts_of: Counter[int],
    band_of: dict[int, int],
    blamed: dict[str, set[int]],
    failed: dict[int, str],
) -> list[Node]:
    total = Counter(band_of.values())
    bad = Counter(band for job, band in band_of.items() if job in failed)
    part = _parts(hosts_of, band_of, blamed.values())
    # Which hosts are asked depends on how many jobs they had, never on how those ended.
    asked = sorted(host for host, jobs in jobs_of.items() if len(jobs) >= _LEAST)
    p_of: dict[str, float] = {}
    for host in asked:
        jobs = jobs_of[host]
        lost = sum(job in failed for job in jobs)
        draws = [(n, bad[band], total[band]) for band, n in sorted(Counter(band_of[job] for job in jobs).items())]
        by_part = hypergeometric_tail(lost, draws) if lost >= _LEAST else 1.0
        named = len(blamed.get(host, ()))
        by_blame = poisson_binomial_tail(named, [part[job] for job in jobs]) if named >= _LEAST else 1.0
        p_of[host] = min(1.0, 2 * min(by_part, by_blame))  # two questions were asked
    out = dict(zip(asked, stand_out(list(p_of.values()), _RATE), strict=True))
    alike: dict[frozenset[int], list[str]] = defaultdict(list)
    for host in asked:
        alike[frozenset(jobs_of[host])].append(host)
    nodes = [
        Node(
            host=host,
            jobs=len(jobs),
            failed=lost,
            expected=round(sum(bad[band_of[job]] / total[band_of[job]] for job in jobs), 2),
            blamed=len(blamed.get(host, ())),
            p=p_of.get(host, 1.0),
            stands_out=out.get(host, False),
            causes=_counted(failed[job] for job in jobs if job in failed),
            together=[h for h in alike.get(frozenset(jobs), []) if h != host],
        )
        for host, jobs in jobs_of.items()
        if (lost := sum(job in failed for job in jobs))
    ]
    nodes.sort(key=lambda n: (not n.stands_out, n.p, -n.blamed, -n.failed, n.host))
    return nodes


def _gpus(
    jobs_of: dict[str, set[int]],
    hosts_of: Counter[int],
    band_of: dict[int, int],
    blamed: dict[tuple[str, str], set[int]],
    marks: dict[tuple[str, str], tuple[set[str], set[str]]],
    failed: dict[int, str],
) -> list[Gpu]:
    # How many GPUs a host has is not known, so each gets its host's whole part: the p shown is too large.
    part = _parts(hosts_of, band_of, blamed.values())
    keys = sorted(blamed)
    p_values = []
    for host, gpu in keys:
        named = len(blamed[host, gpu])
        chances = [part[job] for job in jobs_of[host]]
        p_values.append(poisson_binomial_tail(named, chances) if named >= _LEAST else 1.0)
    # Every GPU of every host could have been blamed; those that were not have p = 1.
    unseen = [1.0] * max(0, sum(len(jobs) >= _LEAST for jobs in jobs_of.values()) - len(keys))
    out = stand_out(p_values + unseen, _RATE)
    gpus = [
        Gpu(
            host=host,
            gpu=gpu,
            jobs=len(jobs_of[host]),
            blamed=len(blamed[host, gpu]),
            p=p,
            stands_out=named,
            causes=_counted(failed[job] for job in blamed[host, gpu]),
            uuids=sorted(marks[host, gpu][0]),
            serials=sorted(marks[host, gpu][1]),
        )
        for (host, gpu), p, named in zip(keys, p_values, out, strict=False)
    ]
    gpus.sort(key=lambda g: (not g.stands_out, g.p, -g.blamed, g.host, g.gpu))
    return gpus


def _counted(causes: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(causes).items(), key=lambda item: (-item[1], item[0])))


def _xids(db: sqlite3.Connection) -> list[XidCount]:
    found: dict[tuple[str | None, str | None, int], list[tuple[int, int, str | None, str | None]]] = defaultdict(list)
    for job, host, gpu, uuid, serial, xid, count in db.execute(
        "SELECT job, host, gpu, uuid, serial, xid, count FROM xids"
    ):
        found[host, gpu, xid].append((job, count, uuid, serial))
    xids = [
        XidCount(
            host,
            gpu,
            xid,
            lines=sum(count for _, count, _, _ in rows),
            jobs=len({job for job, _, _, _ in rows}),
            uuids=sorted({uuid for _, _, uuid, _ in rows if uuid}),
            serials=sorted({serial for _, _, _, serial in rows if serial}),
        )
        for (host, gpu, xid), rows in found.items()
    ]
    xids.sort(key=lambda x: (-x.jobs, -x.lines, x.host or "", x.gpu or "", x.xid))
    return xids[:200]


def _versions(db: sqlite3.Connection, failed: dict[int, str]) -> list[Version]:
    jobs: dict[tuple[str, str], list[int]] = defaultdict(list)
    for job, what, version in db.execute("SELECT job, what, version FROM versions"):
        # What NCCL prints as cudaDriverVersion; the kernel driver's own number is another one.
        jobs["cuda driver API" if what == "driver" else what, words.version(what, version)].append(job)
    versions = [
        Version(what, version, len(ids), sum(i in failed for i in ids), _counted(failed[i] for i in ids if i in failed))
        for (what, version), ids in jobs.items()
    ]
    versions.sort(key=lambda v: (v.what, -v.jobs, v.version))
    return versions
