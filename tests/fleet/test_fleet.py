"""What `fleet` says of stores that were made by hand, and in which forms."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ncclscope.fleet.model import FleetReport
from ncclscope.fleet.page import render_page
from ncclscope.fleet.query import fleet_report
from ncclscope.fleet.text import render
from ncclscope.scan.files import ScanError
from ncclscope.scan.result import JobResult
from ncclscope.scan.store import JobStore, merge

NASTY = "<script>alert(1)</script>\x1b[31m"


def job(
    number: int, hosts: list[str], cause: str | None, *, blamed: str | None = None, gpu: str | None = None, day: int = 1,
    lines: tuple[str, ...] = (),
) -> JobResult:  # fmt: skip
    row = {
        "root": "/data", "fingerprint": str(number), "tool_version": "1", "verdict": "cause_found" if cause else "no_failure",
        "category": cause, "rule": "NS0000" if cause else None, "ranks": 8, "wall_s": 3600.0, "day": f"2026-05-{day:02}",
    }  # fmt: skip
    culprits = [(0, 1, blamed, gpu, None, "1650000000001" if gpu else None, None)] if blamed else []
    rows = {
        "hosts": [(h,) for h in hosts],
        "culprits": culprits,
        "versions": [("driver", "12040"), ("nccl", "2.28.9")],
        "unexplained": [("nccl.warn", "a.log", i, 1, text) for i, text in enumerate(lines)],
        "xids": [(blamed, gpu, None, "1650000000001", 79, 2)] if gpu else [],
    }
    return JobResult(number, f"job-{number:06}", row, b"{}", rows)  # type: ignore[arg-type]


def report(tmp_path: Path, jobs: list[JobResult], name: str = "s.db") -> FleetReport:
    with JobStore(tmp_path / name, create=True) as store:
        store.put(jobs)
        return fleet_report(store.db)


def report_in_memory(jobs: list[JobResult]) -> FleetReport:
    with JobStore(Path(":memory:"), create=True) as store:
        store.put(jobs)
        return fleet_report(store.db)


def random_jobs(seed: int, bad: str | None = None) -> list[JobResult]:
    """Jobs of one to eight hosts out of 60, a quarter failing; `bad` takes part in a third of the failures."""
    chance = random.Random(seed)  # noqa: S311
    jobs = []
    for number in range(400):
        hosts = [f"node{i:02}" for i in chance.sample(range(60), chance.choice([1, 2, 4, 8]))]
        fails = chance.random() < 0.25
        if fails and bad and chance.random() < 0.33:
            hosts[-1] = bad
        guilty = bad if bad in hosts else chance.choice(hosts)
        blamed = guilty if fails and chance.random() < 0.5 else None
        jobs.append(job(number, hosts, "gpu-hang" if fails else None, blamed=blamed))
    return jobs


def test_a_node_of_a_third_of_the_failures_is_first() -> None:
    """In ten corpora it leads, and is said to stand out."""
    for seed in range(10):
        nodes = report_in_memory(random_jobs(seed, "node99")).nodes
        assert (nodes[0].host, nodes[0].stands_out) == ("node99", True)


def test_chance_names_hardly_any_node() -> None:
    """Failures that fall by chance name a node in at most 5 of 100 corpora."""
    reports = [report_in_memory(random_jobs(seed)) for seed in range(100)]
    assert sum(any(node.stands_out for node in found.nodes) for found in reports) <= 5


MIXES = [  # sizes, nodes, jobs, hazard
    ([1, 64], 100, 300, 0.005),
    ([1, 2, 4, 8, 16], 64, 600, 0.01),
    ([1, 1, 1, 8], 32, 600, 0.02),
    (list(range(1, 25)), 48, 300, 0.01),
]


def hazardous_jobs(
    seed: int, mix: tuple[list[int], int, int, float], *, names: bool, bad: str | None = None
) -> list[JobResult]:
    """Every node brings down each of its jobs equally often, so large jobs fail more. `bad` does so in one of three."""
    sizes, nodes, count, hazard = mix
    chance = random.Random(seed)  # noqa: S311
    jobs = []
    for number in range(count):
        hosts = [f"node{i:02}" for i in chance.sample(range(nodes), chance.choice(sizes))]
        down = [host for host in hosts if chance.random() < (0.33 if host == bad else hazard)]
        jobs.append(job(number, hosts, "gpu-hang" if down else None, blamed=down[0] if down and names else None))
    return jobs


@pytest.mark.parametrize("names", [True, False], ids=["blamed", "nobody blamed"])
@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: f"sizes {mix[0][0]} to {mix[0][-1]}")
def test_chance_names_hardly_any_node_where_large_jobs_fail_more(
    mix: tuple[list[int], int, int, float], names: bool
) -> None:
    """A node that only took part in larger jobs than others is not named for it: in at most 1 of 20 corpora."""
    reports = [report_in_memory(hazardous_jobs(seed, mix, names=names)) for seed in range(20)]
    assert sum(any(node.stands_out for node in found.nodes) for found in reports) <= 1


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: f"sizes {mix[0][0]} to {mix[0][-1]}")
def test_a_bad_node_is_first_where_large_jobs_fail_more(mix: tuple[list[int], int, int, float]) -> None:
    """In ten corpora it leads, and is said to stand out."""
    for seed in range(10):
        node = report_in_memory(hazardous_jobs(seed, mix, names=True, bad="node07")).nodes[0]
        assert (node.host, node.stands_out) == ("node07", True)


def test_a_bad_node_that_only_had_large_jobs_is_found_without_blame() -> None:
    """Beside other jobs of that size; those of one host, which never fail, are no excuse for the others."""
    jobs = [job(i, [f"n{i % 90}"], None) for i in range(900)]
    chance = random.Random(1)  # noqa: S311
    for i in range(40):
        others = [f"n{k:02}" for k in chance.sample(range(90), 15)]
        jobs.append(job(1000 + i, [*others, "bad"], "gpu-hang" if i % 2 else None))
    for i in range(160):
        hosts = [f"n{k:02}" for k in chance.sample(range(90), 16)]
        jobs.append(job(2000 + i, hosts, None if i % 12 else "gpu-hang"))
    nodes = report_in_memory(jobs).nodes
    assert [node.host for node in nodes if node.stands_out] == ["bad"]
    assert nodes[0].expected == pytest.approx(40 * 34 / 200)


def test_who_finds_no_room_is_counted() -> None:
    """Of 70 bad nodes with a bad GPU each, every form says how many it does not show."""
    jobs = [job(i, [f"n{i % 1000}"], None) for i in range(6000)]
    jobs += [
        job(10000 + 5 * i + k, [f"bad{i}"], "gpu-hang", blamed=f"bad{i}", gpu="0000:1b:00.0")
        for i in range(70)
        for k in range(5)
    ]
    found = report_in_memory(jobs)
    assert (len(found.nodes), found.more_nodes, len(found.gpus), found.more_gpus) == (50, 20, 50, 20)
    assert render(found).count("  and 58 more that stand out\n") == 2
    assert render_page(found, "x").count("and 55 more that stand out") == 2


EXAMPLES = re.findall(
    r'^    sqlite3 jobs\.db "(.+)"$', (Path(__file__).parents[2] / "docs/scan.md").read_text(), re.MULTILINE
)


def test_the_examples_of_the_manual_say_what_they_promise() -> None:
    """No host without a name, no job twice, and nobody for what only followed."""
    jobs = [job(i, ["node0042", "n1"], "gpu-hang", blamed="node0042", gpu="0000:1b:00.0") for i in range(2)]
    jobs += [job(2, ["n1"], "gpu-hang"), job(3, ["n1", "node0042"], "oom", blamed="n1"), job(4, ["n1"], None)]
    for result in jobs:
        result.job["title"] = f"what job {result.id} died of"
    jobs[0].rows["culprits"].append((0, 2, "node0042", "0000:2b:00.0", None, None, None))
    jobs[2].rows["culprits"].append((0, None, None, None, None, None, 4711))
    jobs[3].rows["culprits"].append((1, 1, "node0042", None, None, None, None))
    with JobStore(Path(":memory:"), create=True) as store:
        store.put(jobs)
        causes, hosts, of_one = (store.db.execute(example).fetchall() for example in EXAMPLES)
    assert causes == [("gpu-hang", 3), ("oom", 1)]
    assert hosts == [("node0042", 2), ("n1", 1)]
    assert sorted(of_one) == [(f"job-{i:06}", f"what job {i} died of") for i in range(2)]


def test_two_failures_name_nobody(tmp_path: Path) -> None:
    """However unlikely, two are a coincidence."""
    jobs = [job(i, [f"n{i}"], None) for i in range(1000)]
    jobs += [job(2000 + i, ["bad"], "gpu-hang", blamed="bad") for i in range(2)]
    assert not any(node.stands_out for node in report(tmp_path, jobs).nodes)


def test_nodes_always_together_are_said_to_be(tmp_path: Path) -> None:
    """Two hosts that share all jobs cannot be told apart, and each is listed with the other."""
    jobs = [job(i, [f"n{i}", f"m{i}"], None) for i in range(200)] + [job(500 + i, ["a", "b"], "gpu-hang") for i in range(8)]
    nodes = {node.host: node for node in report(tmp_path, jobs).nodes}
    assert nodes["a"].stands_out
    assert (nodes["a"].together, nodes["b"].together) == (["b"], ["a"])


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    jobs = [job(i, ["n1", "n2"], None, day=1 + i % 5) for i in range(50)]
    jobs += [
        job(100 + i, ["n1", "bad"], "gpu-hang", blamed="bad", gpu="0000:1b:00.0", day=1 + i % 5,
            lines=(f"Call to frob took {i} ms on rank {i}", NASTY))
        for i in range(8)
    ]  # fmt: skip
    report(tmp_path, jobs)
    return tmp_path / "s.db"


def test_causes_days_gpus_and_versions_are_counted(whole: Path) -> None:
    """Each by its jobs; rank-hours are hours times ranks."""
    with JobStore(whole) as store:
        found = fleet_report(store.db)
    assert [(c.name, c.jobs, c.rank_hours) for c in found.causes] == [("gpu-hang", 8, 64.0)]
    assert sum(d.jobs for d in found.days) == 58
    assert sum(d.failed for d in found.days) == 8
    assert [(g.host, g.gpu, g.blamed, g.stands_out, g.serials) for g in found.gpus] == [
        ("bad", "0000:1b:00.0", 8, True, ["1650000000001"])
    ]
    assert [(x.gpu, x.xid, x.jobs, x.lines) for x in found.xids] == [("0000:1b:00.0", 79, 8, 16)]
    versions = [(v.what, v.version, v.jobs, v.failed) for v in found.versions]
    assert versions == [("cuda driver API", "12.4", 58, 8), ("nccl", "2.28.9", 58, 8)]
    assert re.search(r"^ +cuda driver API +12\.4 ", render(found), re.MULTILINE)


def test_unexplained_lines_of_one_shape_are_one_cluster(whole: Path) -> None:
    """Numbers do not make a shape; the cluster has an example with its place."""
    with JobStore(whole) as store:
        clusters = fleet_report(store.db).clusters
    (frob,) = [c for c in clusters if "frob" in c.template]
    assert (frob.jobs, frob.lines, frob.job, frob.source) == (8, 8, "job-000100", "a.log")
    assert frob.text.startswith("Call to frob took")


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "action")]


def test_the_page_stands_alone_and_runs_nothing(whole: Path) -> None:
    """No link, no script, charts inside; text of logs is inert."""
    with JobStore(whole) as store:
        page = render_page(fleet_report(store.db), NASTY)
    parser = _Links()
    parser.feed(page)
    assert "script" not in parser.tags
    assert parser.links == []
    assert "svg" in parser.tags
    assert not re.search(r"url\(|@import", page)
    assert "\x1b" not in page
    assert "bad" in page


def test_text_is_safe_for_a_terminal(whole: Path) -> None:
    """Control characters of log lines are shown, not obeyed."""
    with JobStore(whole) as store:
        text = render(fleet_report(store.db))
    assert "\x1b" not in text
    assert "\\x1b" in text


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ncclscope", "fleet", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_command_prints_text_json_html_and_sql(whole: Path, tmp_path: Path) -> None:
    """Each form by its option; merge makes a store that says the same, and so do two stores at once."""
    assert "bad" in run(whole).stdout
    first = json.loads(run(whole, "--format", "json").stdout)
    assert first["jobs"] == 58
    assert run(whole, "--format", "html").stdout.startswith("<!doctype html>")
    assert "CREATE TABLE IF NOT EXISTS jobs" in run("--sql").stdout
    merged = tmp_path / "m.db"
    assert run("merge", whole, "-o", merged).returncode == 0
    assert json.loads(run(merged, "--format", "json").stdout) == first
    assert json.loads(run(whole, merged, "--format", "json").stdout) == first


def test_a_store_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    """It is not made, and the message says what makes one."""
    result = run(tmp_path / "no.db")
    assert (result.returncode, "ncclscope scan" in result.stderr) == (2, True)
    assert not (tmp_path / "no.db").exists()


def test_a_merged_store_is_whole_or_not_there(whole: Path, tmp_path: Path) -> None:
    """One that fails leaves nothing, and a file that is there already is not touched."""
    (tmp_path / "bad.db").write_text("no store")
    before = sorted(tmp_path.iterdir())
    failed = run("merge", whole, tmp_path / "bad.db", "-o", tmp_path / "all.db")
    assert (failed.returncode, "bad.db" in failed.stderr) == (2, True)
    refused = run("merge", whole, "-o", tmp_path / "bad.db")
    assert (refused.returncode, "is there already" in refused.stderr) == (2, True)
    nowhere = run("merge", whole, "-o", tmp_path / "none" / "all.db")
    assert (nowhere.returncode, "no directory" in nowhere.stderr) == (2, True)
    assert (tmp_path / "bad.db").read_text() == "no store"
    assert sorted(tmp_path.iterdir()) == before


_NOBODY = 65534


@contextlib.contextmanager
def unwritable(directory: Path) -> Iterator[None]:
    """Nothing can be made in the directory nor written to its files, also by root, whom modes do not bind: it takes
    another user's rights for as long."""
    root = os.geteuid() == 0
    for path in directory.iterdir():
        path.chmod(0o444)
    directory.chmod(0o555)
    if root:
        os.seteuid(_NOBODY)
    try:
        if not os.access(directory, os.R_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            pytest.skip("temporary files lie where another user cannot read them")
        with pytest.raises(OSError, match="denied"):
            (directory / "x").touch()
        yield
    finally:
        if root:
            os.seteuid(0)
        directory.chmod(0o755)


@pytest.fixture
def shelf() -> Iterator[Path]:
    """A directory that everybody can look into, as pytest's own are not."""
    path = Path(tempfile.mkdtemp(prefix="ncclscope-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_a_store_where_nothing_can_be_written_says_the_same(shelf: Path) -> None:
    """It is read and merged as it is, and left alone."""
    jobs = random_jobs(5, "node99")
    first = report(shelf, jobs)
    with unwritable(shelf):
        with JobStore(shelf / "s.db") as store:
            found = fleet_report(store.db)
        with JobStore(Path(":memory:"), create=True) as into:
            assert merge(into, [shelf / "s.db"]) == len(jobs)
            merged = fleet_report(into.db)
        with pytest.raises(ScanError, match=r"cannot use the store: Permission denied"):
            JobStore(shelf / "s.db", create=True)
    assert found == merged == first
    assert [path.name for path in shelf.iterdir()] == ["s.db"]


def _with_log(shelf: Path) -> None:
    """Leaves a store as a killed scan does, with results in the log alone."""
    with JobStore(shelf / "s.db", create=True) as store:
        store.put(random_jobs(5))
        kept = sqlite3.connect(shelf / "s.db")
        kept.execute("SELECT count(*) FROM jobs").fetchone()
        for name in ("s.db", "s.db-wal", "s.db-shm"):
            shutil.copy(shelf / name, shelf / f"killed-{name}")
        kept.close()


def test_a_log_beside_a_store_is_read_or_its_loss_is_said(shelf: Path) -> None:
    """Results that are in the log alone are never left out in silence."""
    _with_log(shelf)
    with unwritable(shelf), JobStore(shelf / "killed-s.db") as store:
        assert store.db.execute("SELECT count(*) FROM jobs").fetchone() == (400,)
    (shelf / "killed-s.db-shm").unlink()
    with unwritable(shelf), pytest.raises(ScanError, match=r"killed-s\.db-wal .*: copy both to a directory"):
        JobStore(shelf / "killed-s.db")
