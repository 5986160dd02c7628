"""Jobs in object stores, on web servers and on Ray: the same answers as from a directory."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from corpora import contents, make_corpus

from ncclscope.engine.pack import load_pack
from ncclscope.scan.engines import AtHand, LocalEngine, WorkerOptions
from ncclscope.scan.files import File, Root, ScanError, root_of
from ncclscope.scan.jobs import Job
from ncclscope.scan.options import ScanOptions
from ncclscope.scan.ray_engine import RayEngine, batches
from ncclscope.scan.result import JobResult
from ncclscope.scan.run import scan
from ncclscope.scan.store import JobStore, merge


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("corpus") / "archive"
    make_corpus(out, jobs=10, failing=0.5, lines=100)
    return out


def local(path: str, store: Path) -> dict[str, list[str]]:
    scan([path], store, lambda o: LocalEngine(o, 2), ScanOptions())
    return contents(store)


@pytest.fixture
def bucket(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    pytest.importorskip("s3fs")
    server_module = pytest.importorskip("moto.server")
    import boto3

    for name, value in (
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    client = boto3.client("s3")
    client.create_bucket(Bucket="logs")
    for path in corpus.rglob("*.gz"):
        client.upload_file(str(path), "logs", f"2026/archive/{path.relative_to(corpus)}")
    yield "s3://logs/2026/archive"
    server.stop()


@pytest.mark.filterwarnings("ignore")
def test_a_bucket_says_what_the_directory_says(corpus: Path, bucket: str, tmp_path: Path) -> None:
    """A scan of an s3:// prefix equals the local one, and a second scan of it reads nothing."""
    assert local(bucket, tmp_path / "s3.db") == local(str(corpus), tmp_path / "local.db")
    again = scan([bucket], tmp_path / "s3.db", lambda o: LocalEngine(o, 1), ScanOptions())
    assert (again.jobs, again.read) == (10, 0)


@pytest.mark.filterwarnings("ignore")
def test_a_file_on_a_web_server_is_read(corpus: Path, tmp_path: Path) -> None:
    """http:// names a file."""
    pytest.importorskip("aiohttp")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(corpus))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = next((corpus / "job-000000").glob("*.gz"))
    url = f"http://127.0.0.1:{server.server_port}/job-000000/{path.name}"
    found = local(url, tmp_path / "http.db")
    server.shutdown()
    server.server_close()
    assert found["findings"] or "no_failure" in found["jobs"][0]
    assert path.name in found["inputs"][0]


def test_a_web_server_that_is_down_is_said_to_be(tmp_path: Path) -> None:
    """And not that nothing lies there, which is what one that is up says."""
    pytest.importorskip("aiohttp")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/none/a.log"
    with pytest.raises(ScanError, match="nothing lies under"):
        local(url, tmp_path / "s.db")
    server.shutdown()
    server.server_close()
    with pytest.raises(ScanError, match=r"/none/a\.log gave no answer"):
        local(url, tmp_path / "s.db")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_pipe_is_no_place(tmp_path: Path) -> None:
    """It is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ScanError, match="a pipe, socket or device"):
        root_of(str(tmp_path / "pipe"))
    with pytest.raises(ScanError, match="a pipe, socket or device"):
        root_of("/dev/null")


def test_a_place_in_several_spellings_is_read_once(corpus: Path, tmp_path: Path) -> None:
    """With a slash, a dot or an absolute path it is the same."""
    spellings = [str(corpus), f"{corpus}/", f"{corpus}/../{corpus.name}", f"{corpus}/./"]
    summary = scan(spellings, tmp_path / "s.db", lambda o: LocalEngine(o, 1), ScanOptions(limit=20))
    assert (summary.jobs, summary.read) == (10, 10)


def test_a_file_that_lies_under_two_places_is_refused(corpus: Path, tmp_path: Path) -> None:
    """In one scan or in two, whichever place is the outer one; places beside each other are welcome."""
    inner, other = (str(job) for job in sorted(corpus.glob("job-*"))[:2])
    store = tmp_path / "s.db"

    def read(*places: str) -> int:
        return scan(places, store, lambda o: LocalEngine(o, 1), ScanOptions()).read

    for places in ((str(corpus), inner), (inner, str(corpus))):
        with pytest.raises(ScanError, match="would count twice"):
            read(*places)
    assert read(inner, other) == 2
    with pytest.raises(ScanError, match=f"under {inner} too"):
        read(str(corpus))
    assert read(inner, other) == 0


def test_stores_that_hold_a_file_twice_are_not_merged(corpus: Path, tmp_path: Path) -> None:
    inner = next(corpus.glob("job-*"))
    stores = [tmp_path / "outer.db", tmp_path / "inner.db"]
    for store, place in zip(stores, (corpus, inner), strict=True):
        scan([str(place)], store, lambda o: LocalEngine(o, 1), ScanOptions())
    for order in (stores, stores[::-1]):
        with (
            JobStore(Path(":memory:"), create=True) as into,
            pytest.raises(ScanError, match=f"{inner.name}.* under {inner} and under {corpus}"),
        ):
            merge(into, order)


@pytest.mark.parametrize("name", ["jobs.db", "jobs"])
def test_what_a_scan_writes_is_no_log(name: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store, what SQLite keeps beside it, and the lines of JSON may lie among the jobs, and in one."""
    job = next(corpus.glob("job-*"))
    archive = tmp_path / "logs"
    shutil.copytree(job, archive / "run-1")
    monkeypatch.chdir(archive)
    for place, store in ((".", Path(name)), ("run-1", Path("run-1") / name)):
        for read in (1, 0):
            lines = store.with_name("lines.json")
            summary = scan([place], store, lambda o: LocalEngine(o, 1), ScanOptions(), jsonl=lines)
            assert (summary.jobs, summary.read, summary.unread) == (1, read, 0)
        store.rename(tmp_path / "away")
        lines.unlink()


def test_a_scan_never_writes_over_its_store(corpus: Path, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    for lines in (store, tmp_path / "s.db-wal"):
        with pytest.raises(ScanError, match="is the store"):
            scan([str(corpus)], store, lambda o: LocalEngine(o, 1), ScanOptions(), jsonl=lines)


def test_an_empty_path_is_no_place() -> None:
    """An unset variable must not become the whole file system."""
    with pytest.raises(ScanError, match="an empty PATH"):
        root_of("")


def test_a_place_that_gave_no_job_may_be_grouped_otherwise(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for pattern in (r"a(?P<job>\d+)", r"b(?P<job>\d+)"):
        scan([str(tmp_path / "logs")], tmp_path / "s.db", lambda o: LocalEngine(o, 1), ScanOptions(pattern=pattern))


class _Here:
    """An engine without processes, which sees what a test put in the place of the system."""

    def __init__(self, options: WorkerOptions) -> None:
        self._analyst = options.analyst()

    def run(self, jobs: Iterator[Job]) -> Iterator[list[JobResult] | int]:
        yield from map(self._analyst.run, jobs)

    def at_hand(self) -> list[AtHand]:
        return []

    def close(self) -> None:
        pass


def test_a_file_that_may_be_read_from_now_on_is_read(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size and time are the same; until then the job is not read again and again."""
    archive = tmp_path / "logs"
    shutil.copytree(next(corpus.glob("job-*")), archive / "run-1")
    open_ = Path.open

    def refuse(self: Path, *args: Any, **more: Any) -> Any:
        if self.is_relative_to(archive):
            raise PermissionError(13, "Permission denied")
        return open_(self, *args, **more)

    seen = []
    for closed in (True, True, False, False):
        monkeypatch.setattr(os, "access", lambda *_, closed=closed: not closed)
        monkeypatch.setattr(Path, "open", refuse if closed else open_)
        summary = scan([str(archive)], tmp_path / "s.db", _Here, ScanOptions())
        seen.append((summary.read, summary.unread))
    assert seen == [(1, 1), (0, 0), (1, 0), (0, 0)]


def test_links_to_directories_are_named(corpus: Path, tmp_path: Path) -> None:
    """They are not followed, and are no trouble; one that leads nowhere is."""
    archive = tmp_path / "a"
    archive.mkdir()
    (archive / "job").symlink_to(next(corpus.glob("job-*")))
    (archive / "file.gz").symlink_to(next(corpus.glob("job-*/*.gz")))
    (archive / "nowhere").symlink_to("none")
    summary = scan([str(archive)], tmp_path / "s.db", lambda o: LocalEngine(o, 1), ScanOptions())
    assert (summary.jobs, summary.problems, summary.links) == (1, 1, 1)
    with JobStore(tmp_path / "s.db") as store:
        reasons = dict(store.db.execute("SELECT path, reason FROM problems"))
    assert sorted(reasons) == ["job", "nowhere"]
    assert "not followed" in reasons["job"]


def test_an_unknown_scheme_says_what_is_known(tmp_path: Path) -> None:
    """The message names the schemes."""
    pytest.importorskip("fsspec")
    with pytest.raises(ScanError, match="s3"):
        local("nonsense://bucket/x", tmp_path / "s.db")


class _StandInRay:
    """Does what the engine asks of Ray in this process; the first tasks, as many as
    `losses`, lose their workers, and the first waits, as many as `silent`, end without an answer."""

    class WorkerCrashedError(Exception):
        pass

    def __init__(self, losses: int, silent: int = 0) -> None:
        lost = type("Lost", (Exception,), {})
        self.exceptions = SimpleNamespace(
            WorkerCrashedError=self.WorkerCrashedError, NodeDiedError=lost, OutOfMemoryError=lost, ObjectLostError=lost,
            RayTaskError=type("RayTaskError", (Exception,), {}),
        )  # fmt: skip
        self.losses = losses
        self.silent = silent
        self.closed = False

    def is_initialized(self) -> bool:
        return False

    def init(self, **_: object) -> None:
        pass

    def shutdown(self) -> None:
        self.closed = True

    def remote(self, **_: object) -> Any:
        return lambda function: SimpleNamespace(remote=lambda *args: functools.partial(function, *args))

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def wait(self, running: list[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        if self.silent:
            self.silent -= 1
            time.sleep(timeout / 10)
            return [], running
        return running[:num_returns], running[num_returns:]

    def get(self, reference: Any) -> Any:
        if self.losses:
            self.losses -= 1
            raise self.WorkerCrashedError
        return reference()


class _StumbleError(Exception):
    """As azure-core, gcsfs and aiohttp raise them: no OSError."""

    def __init__(self, status: int | None = None) -> None:
        super().__init__("Server disconnected\n<html>and its page</html>")
        self.status_code = status


@pytest.fixture
def memory(corpus: Path) -> Iterator[str]:
    """The corpus in fsspec's file system of this process, as a store whose every answer a test can choose."""
    system = pytest.importorskip("fsspec").filesystem("memory")
    for path in corpus.rglob("*.gz"):
        system.pipe(f"/logs/archive/{path.relative_to(corpus)}", path.read_bytes())
    yield "memory://logs/archive"
    system.rm("/logs", recursive=True)


def in_process(path: str, store: Path) -> Any:
    return scan([path], store, lambda o: RayEngine(o, ray=_StandInRay(losses=0)), ScanOptions())


def test_a_place_that_stops_answering_ends_the_scan_and_the_next_one_goes_on(
    corpus: Path, memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs cut short are not stored, one line says so, and after the next scan the store is that of a local one."""
    from fsspec.implementations.memory import MemoryFileSystem

    whole, left = MemoryFileSystem._open, [6]

    def cut(self: Any, path: str, *args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise _StumbleError
        return whole(self, path, *args, **options)

    store = tmp_path / "s.db"
    with monkeypatch.context() as patched:
        patched.setattr(MemoryFileSystem, "_open", cut)
        with pytest.raises(ScanError, match=r"Server disconnected: 3 jobs were not read.*start again to go on$"):
            in_process(memory, store)
    kept = contents(store)["jobs"]
    assert 0 < len(kept) < 10
    assert set(kept) <= set(local(str(corpus), tmp_path / "local.db")["jobs"])
    assert in_process(memory, store).read == 10 - len(kept)
    assert contents(store) == contents(tmp_path / "local.db")


def test_one_lost_job_is_told_when_all_others_are_read(
    memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A single gap does not end the scan, and does not end as if nothing were missing."""
    from fsspec.implementations.memory import MemoryFileSystem

    whole = MemoryFileSystem._open

    def cut(self: Any, path: str, *args: Any, **options: Any) -> Any:
        if "job-000003" in path:
            raise _StumbleError
        return whole(self, path, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(MemoryFileSystem, "_open", cut)
        with pytest.raises(ScanError, match="1 job was not read"):
            in_process(memory, tmp_path / "s.db")
    assert in_process(memory, tmp_path / "s.db").read == 1


def test_an_object_that_a_place_refuses_is_a_problem_of_its_job(
    memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again, the place would say the same: the job is stored with what is missing, however many there are."""
    from fsspec.implementations.memory import MemoryFileSystem

    def refuse(*_: Any, **__: Any) -> Any:
        raise _StumbleError(409)

    monkeypatch.setattr(MemoryFileSystem, "_open", refuse)
    summary = in_process(memory, tmp_path / "s.db")
    assert (summary.read, summary.unread) == (10, 10)
    assert "Server disconnected" in str(contents(tmp_path / "s.db")["inputs"])
    assert "html" not in str(contents(tmp_path / "s.db"))
    assert in_process(memory, tmp_path / "s.db").read == 0


def test_a_prefix_that_holds_nothing_is_an_error(memory: str, tmp_path: Path) -> None:
    """A misspelt one does not look like an archive without jobs."""
    with pytest.raises(ScanError, match="nothing lies under memory://logs/archvie"):
        in_process(memory.replace("archive", "archvie"), tmp_path / "s.db")


def test_an_error_of_a_library_while_listing_is_one_line(
    memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever class it has."""
    from fsspec.implementations.memory import MemoryFileSystem

    def refuse(*_: Any, **__: Any) -> Any:
        raise _StumbleError(403)

    monkeypatch.setattr(MemoryFileSystem, "find", refuse)
    with pytest.raises(ScanError, match=r"^cannot list memory://logs/archive: Server disconnected$"):
        in_process(memory, tmp_path / "s.db")


def test_jobs_of_a_lost_ray_worker_are_done_again(corpus: Path, tmp_path: Path) -> None:
    """Where Ray gives a task up, each of its jobs is done alone, and the store is that of a local scan."""
    ray = _StandInRay(losses=1)
    summary = scan([str(corpus)], tmp_path / "ray.db", lambda o: RayEngine(o, ray=ray), ScanOptions())
    assert (summary.read, summary.unread, ray.closed) == (10, 0, True)
    assert contents(tmp_path / "ray.db") == local(str(corpus), tmp_path / "local.db")


def test_the_rules_of_the_caller_reach_every_worker(corpus: Path, tmp_path: Path) -> None:
    """Ray's and local ones ask the same rules, though a user's directories and configuration are on one machine."""
    options = ScanOptions(pack=load_pack(disable=["NS8101"]))
    scan([str(corpus)], tmp_path / "ray.db", lambda o: RayEngine(o, ray=_StandInRay(losses=0)), options)
    scan([str(corpus)], tmp_path / "local.db", lambda o: LocalEngine(o, 2), options)
    found = contents(tmp_path / "ray.db")
    assert found == contents(tmp_path / "local.db")
    assert "NS8101" not in str(found)
    assert "NS8101" in str(local(str(corpus), tmp_path / "shipped.db"))


def test_a_large_job_on_ray_is_named_with_the_time_since_it_was_sent() -> None:
    """Of what was sent, no more than there are cores, and never one of several in a task; how much of it was read is
    not claimed."""
    jobs = [
        Job(Root("logs", "/logs"), name, (File(f"{name}.log", size, None, ""),))
        for name, size in (("large-1", 40 << 20), ("small-1", 1), ("small-2", 1), ("large-2", 40 << 20))
    ]
    engine = RayEngine(WorkerOptions(), ray=_StandInRay(losses=0, silent=2))
    answers = engine.run(iter(jobs))
    assert [next(answers), next(answers)] == [0, 0]  # a word for the meter while no task is done
    (named,) = engine.at_hand()
    assert (named.job.name, named.read) == ("large-1", None)
    assert 0.1 < named.seconds < 60
    answers.close()


def test_ray_tasks_hold_every_job_once() -> None:
    """Batches are never empty and leave nothing out."""
    jobs = [SimpleNamespace(size=size) for size in (1, 40 << 20, 1, 1, 50 << 20, *[1] * 70)]
    found = list(batches(iter(jobs)))  # type: ignore[arg-type]
    assert [job for batch in found for job in batch] == jobs
    assert all(found)


def test_a_ray_cluster_gives_the_same_store_with_a_node_killed(corpus: Path, tmp_path: Path) -> None:
    """Two nodes, one of them killed while the scan runs: the store is that of a local scan."""
    pytest.importorskip("ray")
    script = Path(__file__).with_name("ray_with_a_lost_node.py")
    command = [sys.executable, str(script), str(corpus), str(tmp_path / "ray.db")]
    done = subprocess.run(command, timeout=300, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "ray.db") == local(str(corpus), tmp_path / "local.db")
