"""Finding inputs: what is listed, in what order, and how trouble is told."""

from __future__ import annotations

import gzip
import io
import os
import socket
import threading
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ncclscope.sources import SourceProblem, discover

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(*names: str) -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}\n")


def names(*paths: str) -> list[str]:
    return [item.name for item in discover(paths)[0]]


def test_the_order_is_natural_and_independent_of_the_arguments() -> None:
    put("logs/rank10.log", "logs/rank2.log", "a.log", "logs/job.log", "logs/job.log.1", "logs/job.log.2")
    wanted = [
        "a.log",
        "logs/job.log.2",
        "logs/job.log.1",
        "logs/job.log",
        "logs/rank2.log",
        "logs/rank10.log",
    ]
    for given in permutations(wanted):
        assert names(*given) == wanted
    assert names("a.log", "logs") == names("logs", "a.log") == wanted


def test_size_time_hints_and_group_come_with_each_file() -> None:
    put("node01/rank3.log.1")
    os.utime("node01/rank3.log.1", (1, 1_780_000_000.5))
    [item], _ = discover(["node01"])
    assert (item.size, item.mtime) == (27, 1_780_000_000.5)
    assert (item.hints.host, item.hints.rank, item.group) == ("node01", 3, "node01/rank3.log")


def test_a_file_given_twice_comes_once() -> None:
    put("logs/a.log")
    Path("link.log").symlink_to("logs/a.log")
    os.link("logs/a.log", "logs/hard.log")
    assert names("logs", "logs/a.log", "link.log", "./logs/a.log") == ["./logs/a.log"]


def test_names_stay_as_the_user_gave_them() -> None:
    put("logs/x/a.log")
    absolute = str(Path("logs").absolute())
    assert names("logs") == ["logs/x/a.log"]
    assert names("./logs/") == ["./logs/x/a.log"]
    assert names(absolute) == [f"{absolute}/x/a.log"]


def test_a_directory_passes_over_what_is_no_log_and_counts_it() -> None:
    put("d/a.log", "d/.hidden", "d/.git/config", "d/train.py", "d/util.py", "d/ckpt/model.pt", "d/error.json")
    items, problems = discover(["d"])
    assert [item.name for item in items] == ["d/a.log", "d/error.json"]
    reason = "passed over 5 files that are no logs (1 .pt, 2 .py, 2 hidden)"
    assert problems == [SourceProblem("d", reason, skipped=True)]


def test_a_file_named_outright_is_read_whatever_it_is_called() -> None:
    put(".hidden", "train.py")
    assert names(".hidden", "train.py") == [".hidden", "train.py"]


def test_links_to_files_are_followed_and_circles_of_directories_are_not() -> None:
    put("real/0.log")
    Path("pods").mkdir()
    Path("pods/0.log").symlink_to("../real/0.log")
    Path("pods/again").symlink_to(".")
    assert names("pods") == ["pods/0.log"]


def test_a_pattern_that_the_shell_left_alone_is_expanded() -> None:
    put("rank0.log", "rank1.log", "x/deep/rank2.log", "rank[7].log")
    assert names("rank?.log") == ["rank0.log", "rank1.log"]
    assert names("**/rank2.log") == ["x/deep/rank2.log"]
    assert names("rank[7].log") == ["rank[7].log"]


def test_what_cannot_be_read_is_named_and_the_rest_goes_on() -> None:
    put("a.log")
    Path("dangling.log").symlink_to("gone.log")
    Path("empty").mkdir()
    items, problems = discover(["missing.log", "a.log", "dangling.log", "*.txt", "empty", "a.log/x", "nul\0"])
    assert [item.name for item in items] == ["a.log"]
    assert {problem.path: problem.reason for problem in problems} == {
        "missing.log": "no such file or directory",
        "dangling.log": "links to a file that does not exist",
        "*.txt": "no file matches this pattern",
        "empty": "holds no files to read",
        "a.log/x": "a.log holds no such file",
        "nul\0": "is not a path",
    }


def test_a_file_without_permission_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as root, whom no permission stops, so the refusal is made here."""
    put("d/a.log", "d/secret.log")
    real = Path.open

    def refuse(path: Path, *args: str, **kwargs: object) -> object:
        if path.name == "secret.log":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    items, problems = discover(["d"])
    assert [item.name for item in items] == ["d/a.log"]
    assert problems == [SourceProblem("d/secret.log", "permission denied")]


def test_a_directory_without_permission_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    put("d/a.log", "d/closed/b.log")
    real = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    items, problems = discover(["d"])
    assert [item.name for item in items] == ["d/a.log"]
    assert problems == [SourceProblem("d/closed", "permission denied")]


def test_a_file_that_vanishes_before_it_is_read_leaves_a_note() -> None:
    put("a.log")
    [item], _ = discover(["a.log"])
    Path("a.log").unlink()
    assert list(item.blocks()) == []
    assert item.notes == ["reading stopped: no such file or directory"]


def test_devices_and_sockets_are_refused_by_name_and_passed_over_in_directories() -> None:
    Path("d").mkdir()
    put("d/a.log")
    os.mkfifo("d/pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("d/sock")
        items, problems = discover(["/dev/null", "d/sock"])
        assert items == []
        assert [problem.reason for problem in problems] == [
            "is a character device; save its text to a file first",
            "is a socket; name a log file",
        ]
        assert names("d") == ["d/a.log"]


def test_a_named_fifo_is_read_once_it_is_written() -> None:
    os.mkfifo("pipe")
    [item], problems = discover(["pipe"])
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(gzip.compress(b"text\n")))
    writer.start()
    assert b"".join(item.blocks()) == b"text\n"
    writer.join()
    assert (item.size, item.mtime, problems) == (None, None, [])


def test_an_empty_file_is_an_input_without_bytes() -> None:
    Path("a.log").touch()
    [item], problems = discover(["a.log"])
    assert (list(item.blocks()), item.notes, problems) == ([], [], [])


def test_standard_input_is_read_only_where_it_is_asked_for() -> None:
    assert discover([], stdin=io.BytesIO(b"x")) == ([], [])
    assert discover([]) == ([], [])
    assert discover(["-"]) == ([], [SourceProblem("-", "standard input is not available")])
    [item], _ = discover(["-", "-"], stdin=io.BytesIO(b"text\n"))
    assert (item.name, item.size, item.mtime, item.group) == ("<stdin>", None, None, "<stdin>")
    assert b"".join(item.blocks()) == b"text\n"


@pytest.fixture
def pipe() -> Iterator[tuple[int, io.FileIO]]:
    read, write = os.pipe()
    with os.fdopen(read, "rb", buffering=0) as reader:
        yield write, reader  # type: ignore[misc]


def test_a_slow_pipe_gives_each_piece_as_it_comes(pipe: tuple[int, io.FileIO]) -> None:
    """Were more awaited than there is, this would hang: the writer waits for the first piece to be read."""
    write, reader = pipe
    [item], _ = discover(["-"], stdin=reader)  # type: ignore[arg-type]
    blocks = item.blocks()
    os.write(write, b"first line\n")
    assert next(blocks) == b"first line\n"
    os.write(write, b"second")
    assert next(blocks) == b"second"
    os.close(write)
    assert list(blocks) == []


def test_a_pipe_that_someone_made_non_blocking_is_waited_for(pipe: tuple[int, io.FileIO]) -> None:
    write, reader = pipe
    os.set_blocking(reader.fileno(), False)
    timer = threading.Timer(0.05, lambda: (os.write(write, b"text\n"), os.close(write)))
    timer.start()
    [item], _ = discover(["-"], stdin=reader)  # type: ignore[arg-type]
    assert b"".join(item.blocks()) == b"text\n"
    timer.join()


def test_an_interrupt_passes_through() -> None:
    class Interrupted(io.BytesIO):
        def fileno(self) -> int:
            raise io.UnsupportedOperation

        def read(self, _size: int | None = -1, /) -> bytes:
            raise KeyboardInterrupt

    [item], _ = discover(["-"], stdin=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        list(item.blocks())


def test_torchrun_s_log_directory_is_read_with_its_hints() -> None:
    put(
        *(
            f"logs/none_a1b2/attempt_0/{rank}/{name}"
            for rank in (0, 10, 2)
            for name in ("stderr.log", "error.json")
        )
    )
    items, problems = discover(["logs"])
    assert [(item.hints.attempt, item.hints.local_rank, item.hints.stream) for item in items] == [
        (0, rank, stream) for rank in (0, 2, 10) for stream in (None, "stderr")
    ]
    assert problems == []
