"""A scan's answers, and that it can be stopped, repeated and divided."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from corpora import contents, make_corpus
from support import case

from ncclscope.pipeline import analyze
from ncclscope.report import to_json
from ncclscope.scan.engines import LocalEngine, WorkerOptions
from ncclscope.scan.files import ScanError
from ncclscope.scan.jobs import Job, in_shard
from ncclscope.scan.options import ScanOptions
from ncclscope.scan.result import JobResult
from ncclscope.scan.run import Summary, scan
from ncclscope.scan.store import JobStore, merge
from ncclscope.scan.worker import Analyst

JOBS = 24


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("corpus") / "archive"
    make_corpus(out, jobs=JOBS, failing=0.5, lines=200)
    return out


@pytest.fixture(scope="module")
def stored(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store") / "all.db"
    run(corpus, store)
    return store


def run(path: Path, store: Path, *, jsonl: Path | None = None, **options: object) -> Summary:
    return scan([str(path)], store, lambda o: LocalEngine(o, 2), ScanOptions(**options), jsonl=jsonl)  # type: ignore[arg-type]


def test_each_job_gets_the_report_of_a_triage_of_its_files(corpus: Path, tmp_path: Path) -> None:
    """The lines of --jsonl hold, for every job, exactly what triage says of its files alone."""
    run(corpus, tmp_path / "s.db", jsonl=tmp_path / "s.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert sorted(line["job"] for line in lines) == [f"job-{i:06}" for i in range(JOBS)]
    for line in lines:
        files = sorted(str(path) for path in (corpus / line["job"]).iterdir())
        assert line["report"] == json.loads(to_json(analyze(files)))


def test_failing_jobs_are_found_and_healthy_ones_are_not(corpus: Path, stored: Path) -> None:
    """Verdicts agree with what the corpus was made of."""
    truth = {t["job"]: t["fails"] for t in json.loads((corpus / "truth.json").read_text())}
    with JobStore(stored) as store:
        verdicts = dict(store.db.execute("SELECT name, verdict FROM jobs"))
    assert {name: verdict == "cause_found" for name, verdict in verdicts.items()} == truth
    assert {v for name, v in verdicts.items() if not truth[name]} == {"no_failure"}


def test_only_what_changed_is_read_again(corpus: Path, stored: Path, tmp_path: Path) -> None:
    """A second scan reads nothing; after one file changed, its job alone."""
    archive, store = tmp_path / "archive", tmp_path / "s.db"
    shutil.copytree(corpus, archive)
    assert run(archive, store).read == JOBS
    assert run(archive, store).read == 0
    path = next((archive / "job-000003").glob("*.gz"))
    os.utime(path, (1, 1))
    assert run(archive, store).read == 1
    assert contents(store) == contents(stored)


def test_a_bad_file_is_recorded_and_the_rest_goes_on(corpus: Path, tmp_path: Path) -> None:
    """A truncated and an unreadable file cost nothing but themselves."""
    archive = tmp_path / "archive"
    shutil.copytree(corpus, archive)
    whole = next((archive / "job-000000").glob("*.gz"))
    whole.write_bytes(whole.read_bytes()[:300])
    (archive / "job-bad").mkdir()
    (archive / "job-bad" / "rank0.log").write_bytes(b"")
    summary = run(archive, tmp_path / "s.db")
    assert (summary.read, summary.unread >= 1) == (JOBS + 1, True)
    with JobStore(tmp_path / "s.db") as store:
        (note,) = store.db.execute(
            "SELECT note FROM inputs WHERE path LIKE 'job-000000/%' AND note IS NOT NULL"
        ).fetchone()
        (verdict,) = store.db.execute("SELECT verdict FROM jobs WHERE name = 'job-bad'").fetchone()
    assert "truncated gzip" in note
    assert verdict == "unreadable"


def _compressed(job: Path, size: int | None, data: bytes) -> None:
    (job / "rank0.log.gz").write_bytes(gzip.compress(data)[:size])


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda job, log: _compressed(job, 400, log), "rank0.log.gz: truncated gzip"),
        (lambda job, log: (job / "rank0.log.gz").write_bytes(gzip.compress(log) + b"other"), "come other bytes"),
        (lambda job, log: (job / "rank0.log").write_text(log.decode(), encoding="utf-16"), None),
        (lambda job, log: (job / "rank0.log").write_bytes(b"\0" * 100 + log), None),
        (lambda job, log: _compressed(job, None, log), None),
        (lambda job, log: _zip(job / "z.zip", {"a.log": log, "a.png": b"x"}), None),
        (lambda job, _: _zip(job / "z.zip", {"a.png": b"x"}), "passed over 1 file"),
    ],
)  # fmt: skip
def test_what_was_not_read_in_full_is_a_problem(
    tmp_path: Path, make: Callable[[Path, bytes], None], problem: str | None
) -> None:
    """Lost bytes are; another encoding, NUL bytes and files that are no logs are not, unless there is nothing else."""
    job = tmp_path / "archive" / "job"
    job.mkdir(parents=True)
    make(job, case("exit-code").paths[0].read_bytes())
    summary = run(tmp_path / "archive", tmp_path / "s.db")
    with JobStore(tmp_path / "s.db") as store:
        ((found,),) = store.db.execute("SELECT problem FROM jobs")
    assert summary.unread == (problem is not None)
    assert (found is None) if problem is None else (problem in found)


def _zip(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_a_damaged_store_is_named(corpus: Path, stored: Path, tmp_path: Path) -> None:
    """Pages or a report that make no sense: one line, and merge says which of its stores it is."""
    bad, torn = tmp_path / "bad.db", tmp_path / "torn.db"
    shutil.copy(stored, torn)
    with JobStore(torn) as kept:
        kept.db.execute("UPDATE jobs SET report = x'00'")
    with pytest.raises(ScanError, match=r"torn\.db: the store is damaged \(the report of job job-"):
        run(corpus, torn, jsonl=tmp_path / "x.jsonl")
    assert not list(tmp_path.glob("*x.jsonl*"))
    shutil.copy(stored, bad)
    with JobStore(bad) as kept:
        (page,) = kept.db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'jobs'").fetchone()
        (size,) = kept.db.execute("PRAGMA page_size").fetchone()
    data = bytearray(bad.read_bytes())
    data[(page - 1) * size] = 7  # no kind of page
    bad.write_bytes(data)
    with pytest.raises(ScanError, match=r"bad\.db: the store is damaged"):
        run(corpus, bad)
    with JobStore(tmp_path / "all.db", create=True) as into, pytest.raises(ScanError, match=r"bad\.db: the store is"):
        merge(into, [stored, bad])


def test_merging_keeps_how_files_were_grouped(corpus: Path, tmp_path: Path) -> None:
    """A scan of the merged store must repeat the pattern, and stores that were grouped differently are refused."""
    pattern = "(?P<job>job-[0-9]+)/"
    run(corpus, tmp_path / "a.db", pattern=pattern, limit=1)
    run(corpus, tmp_path / "b.db", limit=1)
    with JobStore(tmp_path / "all.db", create=True) as into:
        merge(into, [tmp_path / "a.db"])
    with pytest.raises(ScanError, match=r"was scanned with --job-pattern"):
        run(corpus, tmp_path / "all.db")
    with (
        JobStore(tmp_path / "both.db", create=True) as into,
        pytest.raises(ScanError, match=r"b\.db: .* with no --job-pattern, in a store before it with --job-pattern"),
    ):
        merge(into, [tmp_path / "a.db", tmp_path / "b.db"])


def test_shards_merged_are_the_whole(corpus: Path, stored: Path, tmp_path: Path) -> None:
    """Three shards, merged, say what one scan says; merging twice changes nothing."""
    parts = []
    for i in (1, 2, 3):
        parts.append(tmp_path / f"{i}.db")
        run(corpus, parts[-1], shard=(i, 3))
    with JobStore(tmp_path / "all.db", create=True) as into:
        assert merge(into, parts) == JOBS
        merge(into, parts[:2])
    assert contents(tmp_path / "all.db") == contents(stored)


def test_a_killed_scan_goes_on_where_it_stood(corpus: Path, stored: Path, tmp_path: Path) -> None:
    """SIGKILL at ten random moments; the scans after them leave the store of an undisturbed one, and whole JSON lines."""
    store, lines = tmp_path / "s.db", tmp_path / "s.jsonl"
    command = [
        sys.executable,
        "-m",
        "ncclscope",
        "scan",
        str(corpus),
        "--store",
        str(store),
        "--jsonl",
        str(lines),
        "-j",
        "2",
    ]
    chance = random.Random(5)  # noqa: S311
    for _ in range(10):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.random() * 1.5)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert contents(store) == contents(stored)
    names = [json.loads(line)["job"] for line in lines.read_text().splitlines()]
    assert sorted(names) == [f"job-{i:06}" for i in range(JOBS)]


class _Deadly(Analyst):
    """Ends its process when it reads one job, as the kernel does when memory is short."""

    def run(self, job: Job, progress: Callable[[str, int], None] | None = None) -> list[JobResult]:
        if job.name == "job-000005":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(job, progress)


class _DeadlyOptions(WorkerOptions, frozen=True):
    def analyst(self) -> Analyst:
        return _Deadly()


def test_a_job_that_kills_its_worker_is_recorded(corpus: Path, stored: Path, tmp_path: Path) -> None:
    """The job is named as the one; all others are done, those that the dead worker held too."""
    summary = scan([str(corpus)], tmp_path / "s.db", lambda _: LocalEngine(_DeadlyOptions(), 2), ScanOptions())
    assert (summary.read, summary.unread) == (JOBS, 1)
    with JobStore(tmp_path / "s.db") as store:
        (problem,) = store.db.execute("SELECT problem FROM jobs WHERE name = 'job-000005'").fetchone()
    assert "SIGKILL" in problem
    lost = [row for row in contents(tmp_path / "s.db")["jobs"] if "'job-000005'" not in row]
    assert lost == [row for row in contents(stored)["jobs"] if "'job-000005'" not in row]


def test_jobs_of_many_files_pass_each_other_in_the_pipe(tmp_path: Path) -> None:
    """Neither a job nor its results fit into the pipe, and both are on their way at once."""
    for number, rank in itertools.product(range(3), range(600)):
        log = tmp_path / "logs" / f"job-{number}" / f"{'n' * 200}.rank{rank}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("n:1:2 [0] NCCL INFO NCCL version 2.26.2+cuda12.2\n")
    command = [sys.executable, "-m", "ncclscope", "scan", str(tmp_path / "logs"), "--store", str(tmp_path / "s.db")]
    done = subprocess.run([*command, "--workers", "1"], check=True, timeout=120, capture_output=True, text=True)
    assert "3 jobs" in done.stdout


def test_a_name_that_is_no_text_is_scanned_with_the_rest(corpus: Path, tmp_path: Path) -> None:
    root = os.fsencode(tmp_path / "lo") + b"gs\xff"
    for name in (b"good", b"bad\xff"):
        shutil.copytree(corpus / "job-000000", os.fsdecode(root + b"/" + name))
    summary = run(Path(os.fsdecode(root)), tmp_path / "s.db")
    assert (summary.jobs, summary.unread) == (2, 0)
    with JobStore(tmp_path / "s.db") as store:
        assert sorted(name for (name,) in store.db.execute("SELECT name FROM jobs")) == ["bad\\udcff", "good"]


def test_a_dump_that_is_none_counts_as_unread(corpus: Path, tmp_path: Path) -> None:
    """A flight recorder that was cut off is named; the logs beside it are judged."""
    shutil.copytree(corpus / "job-000000", tmp_path / "logs" / "job")
    (tmp_path / "logs" / "job" / "nccl_trace_rank_0").write_bytes(b"\x80\x04\x95cut")
    assert run(tmp_path / "logs", tmp_path / "s.db").unread == 1
    with JobStore(tmp_path / "s.db") as store:
        ((verdict, problem),) = store.db.execute("SELECT verdict, problem FROM jobs")
    assert verdict != "unreadable"
    assert "nccl_trace_rank_0: not a readable flight-recorder dump" in problem


def test_an_archive_is_a_job_and_a_pattern_splits_it(corpus: Path, tmp_path: Path) -> None:
    """A .tar.gz of two jobs is one job, with a pattern two, each with its own finding; both are read once."""
    archive = tmp_path / "logs" / "day.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("job-000000", "job-000001"):
            tar.add(corpus / name, arcname=name)
    assert run(archive.parent, tmp_path / "one.db").read == 1
    for read in (2, 0):
        summary = run(archive, tmp_path / "two.db", pattern=r"/(job-\d+)/")
        assert (summary.jobs, summary.read) == (2, read)
    with JobStore(tmp_path / "two.db") as store:
        found = [name for (name,) in store.db.execute("SELECT name FROM jobs ORDER BY name")]
    assert found == ["day.tar.gz/job-000000", "day.tar.gz/job-000001"]


def test_commands_name_the_job_and_no_other(tmp_path: Path) -> None:
    """Of an archive that a pattern splits, a check that reads the job again gets its files and not the archive."""
    (log,) = case("exit-code").paths
    archive = tmp_path / "day.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("job-1", "job-2"):
            tar.add(log, arcname=f"{name}/a.log")
    run(archive, tmp_path / "s.db", jsonl=tmp_path / "s.jsonl", pattern=r"/(job-\d+)/")
    for line in map(json.loads, (tmp_path / "s.jsonl").read_text().splitlines()):
        commands = [check["command"] for check in line["report"]["findings"][0]["next_checks"]]
        assert f"ncclscope events {tmp_path}/{line['job']}/a.log" in commands


def _tar(path: Path, *members: str) -> None:
    (log,) = case("exit-code").paths
    with tarfile.open(path, "w") as tar:
        for member in members:
            tar.add(log, arcname=member)


def _names(store: Path) -> list[str]:
    with JobStore(store) as kept:
        return [name for (name,) in kept.db.execute("SELECT name FROM jobs ORDER BY name")]


def test_archives_and_directories_may_hold_jobs_of_one_name(tmp_path: Path) -> None:
    """Each is a job of its own, and a second scan reads nothing."""
    archive, store = tmp_path / "a", tmp_path / "s.db"
    (archive / "run-1").mkdir(parents=True)
    shutil.copy(case("exit-code").paths[0], archive / "run-1" / "x.log")
    _tar(archive / "a.tar", "run-1/a.log")
    _tar(archive / "b.tar", "run-1/b.log", "run-2/c.log", "notes.log")
    pattern = r"(?P<job>run-[0-9]+)/"
    run(archive, store, pattern=pattern)
    assert _names(store) == ["a.tar/run-1", "b.tar", "b.tar/run-1", "b.tar/run-2", "run-1"]
    assert run(archive, store, pattern=pattern).read == 0


def test_jobs_that_an_archive_no_longer_has_go(tmp_path: Path) -> None:
    """When it is read again and not before, whether or not a job of it is left, and also where a refresh reads it."""
    archive, store = tmp_path / "a", tmp_path / "s.db"
    archive.mkdir()
    pattern = r"(?P<job>run-[0-9]+)/"
    before: list[str] = []
    for number, (members, names) in enumerate((
        (("run-1/a.log", "run-2/a.log"), ["a.tar/run-1", "a.tar/run-2"]),
        (("run-2/a.log", "x/a.log"), ["a.tar", "a.tar/run-2"]),
        (("run-3/a.log", "run-3/b.log", "run-3/c.log"), ["a.tar/run-3"]),
    )):  # fmt: skip
        _tar(archive / "a.tar", *members)
        os.utime(archive / "a.tar", (number, number))
        run(archive, store, pattern=pattern, since=time.time() + 3600)
        assert _names(store) == before
        run(archive, store, pattern=pattern)
        assert _names(store) == names
        run(archive, store, pattern=pattern, refresh=True)
        assert _names(store) == names
        before = names
        shutil.copy(store, tmp_path / f"{number}.db")
    with JobStore(tmp_path / "all.db", create=True) as into:
        merge(into, [tmp_path / f"{number}.db" for number in range(3)])
    assert run(archive, tmp_path / "all.db", pattern=pattern).read == 0
    assert _names(tmp_path / "all.db") == ["a.tar/run-3"]


def _grown(archive: Path) -> None:
    """A directory whose first file stood alone, and the store's one job was the directory."""
    archive.mkdir()
    for name in ("slurm-1001.out", "slurm-1002.out"):
        shutil.copy(case("exit-code").paths[0], archive / name)


def test_files_that_came_into_other_jobs_are_counted_once(tmp_path: Path) -> None:
    """A directory that grows is then grouped otherwise; the store is that of a scan that sees it so first."""
    archive, store, fresh = tmp_path / "flat", tmp_path / "s.db", tmp_path / "fresh.db"
    _grown(archive)
    (archive / "slurm-1002.out").rename(tmp_path / "later")
    run(archive, store)
    assert _names(store) == ["flat"]
    (tmp_path / "later").rename(archive / "slurm-1002.out")
    run(archive, store)
    run(archive, fresh)
    assert _names(store) == ["slurm-1001", "slurm-1002"]
    assert contents(store) == contents(fresh)
    # Another directory makes a job of each loose file.
    (archive / "run").mkdir()
    shutil.copy(case("exit-code").paths[0], archive / "run" / "a.log")
    (archive / "slurm-1002.out").unlink()
    run(archive, store)
    assert _names(store) == ["run", "slurm-1001", "slurm-1002"]


def test_a_job_leaves_only_when_all_its_files_are_in_stored_jobs(tmp_path: Path) -> None:
    """A scan that ends in between loses nothing, and the next one goes on; of other shards' jobs others take care."""
    archive = tmp_path / "flat"
    _grown(archive)
    for old in (tmp_path / "s.db", tmp_path / "shard.db"):
        with JobStore(old, create=True) as kept:
            row = {"root": str(archive), "fingerprint": "", "tool_version": "1", "verdict": "no_failure"}
            inputs = [(f"slurm-{i}.out", *[None] * 8) for i in (1000, 1001, 1002)]
            kept.put([JobResult(1, "flat", row, b"{}", {"inputs": inputs})])  # type: ignore[arg-type,dict-item]
    run(archive, tmp_path / "s.db", limit=1)
    assert _names(tmp_path / "s.db") == ["flat", "slurm-1001"]
    run(archive / "slurm-1001.out", tmp_path / "s.db")
    assert "flat" in _names(tmp_path / "s.db")
    run(archive, tmp_path / "s.db")
    assert _names(tmp_path / "s.db") == ["slurm-1001", "slurm-1002"]
    own = [i for i in (1, 2) if in_shard("slurm-1001", (i, 2))]
    run(archive, tmp_path / "shard.db", shard=(own[0], 2))
    assert "flat" not in _names(tmp_path / "shard.db")


def test_jobs_whose_files_are_gone_stay(corpus: Path, tmp_path: Path) -> None:
    """Archives are pruned; what was learned from them is kept."""
    archive, store = tmp_path / "archive", tmp_path / "s.db"
    shutil.copytree(corpus, archive)
    run(archive, store, limit=3)
    before = _names(store)
    shutil.rmtree(archive / before[0])
    run(archive, store, limit=2)
    assert _names(store) == before


def test_another_grouping_is_refused(corpus: Path, tmp_path: Path) -> None:
    """The same files under other names would be counted twice."""
    run(corpus, tmp_path / "s.db", limit=1)
    with pytest.raises(ScanError, match="no --job-pattern"):
        run(corpus, tmp_path / "s.db", pattern="job-(.*)/")


def test_limit_and_since_leave_jobs_out(corpus: Path, tmp_path: Path) -> None:
    """--limit takes the first jobs by name; --since those written after a moment."""
    assert run(corpus, tmp_path / "a.db", limit=3).read == 3
    assert run(corpus, tmp_path / "b.db", since=time.time() + 3600).read == 0
    assert run(corpus, tmp_path / "c.db", since=0.0).read == JOBS


@pytest.mark.parametrize("make", ["text", "other database"])
def test_a_file_that_is_no_store_is_left_alone(corpus: Path, tmp_path: Path, make: str) -> None:
    """What is no store is named as such and not touched."""
    path = tmp_path / "x.db"
    if make == "text":
        path.write_text("precious notes, long enough to be no header of a database at all\n" * 20)
    else:
        import sqlite3

        db = sqlite3.connect(path)
        db.execute("CREATE TABLE mine (a)")
        db.commit()
        db.close()
    before = path.read_bytes()
    with pytest.raises(ScanError, match=r"x\.db"):
        run(corpus, path)
    assert path.read_bytes() == before


def test_a_store_of_before_there_was_a_mark_of_rules_goes_on(corpus: Path, stored: Path, tmp_path: Path) -> None:
    """It gets the column, its jobs count as judged by other rules, and it can be merged as it is."""
    old, store = tmp_path / "old.db", tmp_path / "s.db"
    shutil.copy(stored, old)
    with JobStore(old) as kept:
        kept.db.execute("ALTER TABLE jobs DROP COLUMN rules")
    shutil.copy(old, store)
    summary = run(corpus, store)
    assert (summary.read, summary.other_rules) == (0, JOBS)
    run(corpus, store, refresh=True)
    assert contents(store) == contents(stored)
    with JobStore(tmp_path / "all.db", create=True) as into:
        assert merge(into, [old]) == JOBS


class _Interrupted(LocalEngine):
    """Ctrl-C after three jobs."""

    def run(self, jobs: Iterator[Job]) -> Iterator[list[JobResult] | int]:
        done = 0
        for answer in super().run(jobs):
            yield answer
            done += isinstance(answer, list)
            if done == 3:
                raise KeyboardInterrupt


def test_a_refresh_that_was_stopped_is_finished_by_the_next_scan(corpus: Path, stored: Path, tmp_path: Path) -> None:
    """Its jobs keep their answers, are read again by whichever scan comes next, and once only."""
    store = tmp_path / "s.db"
    shutil.copy(stored, store)
    answers = JobStore(stored).db.execute("SELECT name, verdict, rule, report FROM jobs ORDER BY name").fetchall()
    with pytest.raises(KeyboardInterrupt):
        scan([str(corpus)], store, lambda o: _Interrupted(o, 2), ScanOptions(refresh=True))
    assert JobStore(store).db.execute("SELECT name, verdict, rule, report FROM jobs ORDER BY name").fetchall() == answers
    assert run(corpus, store).read == JOBS - 3
    assert contents(store) == contents(stored)
    assert run(corpus, store).read == 0


class _OnSmallDisk(JobStore):
    def _open(self, *, create: bool) -> None:
        super()._open(create=create)
        self.db.execute("PRAGMA max_page_count = 30")


def test_a_full_disk_ends_a_scan_with_a_word(
    corpus: Path, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the store; the same scan with more room goes on and leaves the store of an undisturbed one."""
    with monkeypatch.context() as patched:
        patched.setattr("ncclscope.scan.run.JobStore", _OnSmallDisk)
        with pytest.raises(ScanError, match=r"s\.db: no space left"):
            run(corpus, tmp_path / "s.db")
    run(corpus, tmp_path / "s.db")
    assert contents(tmp_path / "s.db") == contents(stored)


@pytest.mark.parametrize(("place", "reason"), [("none/s.db", "No such file or directory"), (".", "Is a directory")])
def test_a_store_that_cannot_be_made_says_why(corpus: Path, tmp_path: Path, place: str, reason: str) -> None:
    """The system's own words, with the name."""
    with pytest.raises(ScanError, match=f"{tmp_path / place}: cannot use the store: {reason}"):
        run(corpus, tmp_path / place)


@pytest.fixture(autouse=True)
def _no_processes_left() -> Iterator[None]:
    """No worker outlives its scan."""
    yield
    import multiprocessing

    assert not multiprocessing.active_children()
