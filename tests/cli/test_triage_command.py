"""`ncclscope` as a shell sees it: arguments, streams, exit status."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from support import case, write

from ncclscope import __version__

if TYPE_CHECKING:
    from pathlib import Path

SIGKILL = str(case("sigkill").paths[0])
EAGER = str(case("healthy-eager-all").paths[0])
HEALTHY = str(case("healthy-lazy").paths[0])
COMMAND = [sys.executable, "-m", "ncclscope"]
LIMIT = 60


def run(*args: str, stdin: Any = subprocess.DEVNULL, env: dict[str, str] | None = None, **more: Any) -> Any:
    """Runs the program to its end; standard input is closed unless a test gives one."""
    given = {"input": more.pop("input")} if "input" in more else {"stdin": stdin}
    return subprocess.run(
        [*COMMAND, *args],
        capture_output=True,
        timeout=LIMIT,
        check=False,
        env={**os.environ, **(env or {})},
        **given,
        **more,
    )


@pytest.mark.parametrize(
    ("args", "status"),
    [
        ([HEALTHY], 0),
        ([SIGKILL], 1),
        ([SIGKILL, "--exit-zero"], 0),
        (["triage", SIGKILL], 1),
        ([SIGKILL, "--no-such-option"], 2),
        ([SIGKILL, "--format", "yaml"], 2),
        ([SIGKILL, "--gpu", "toaster"], 2),
        ([SIGKILL, "--as-of", "yesterday"], 2),
        (["/no/such/file.log"], 3),
        (["/no/such/file.log", "--exit-zero"], 3),
        (["/no/such/file.log", HEALTHY], 3),
        (["/no/such/*.log", HEALTHY, "--exit-zero"], 3),
        (["events", "/no/such/file.log", HEALTHY], 3),
        (["why", "NS2101", "/no/such/file.log", HEALTHY], 3),
    ],
    ids=str,
)
def test_exit_status(args: list[str], status: int) -> None:
    """0 no failure, 1 a failure, 2 wrong usage, 3 nothing readable or no all-clear; --exit-zero changes the 1 alone."""
    done = run(*args)
    assert done.returncode == status, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    if status == 2:
        assert done.stderr.strip()
        assert done.stdout == b""


def test_text_is_the_default_and_names_cause_culprit_proof_and_command() -> None:
    """The first line is the answer; the place of the proof and a next command follow."""
    out = run(SIGKILL).stdout.decode()
    first = json.loads(run(SIGKILL, "--format", "json").stdout)["findings"][0]
    assert out.startswith(f"ROOT CAUSE: {first['title']}\n")
    assert "rank 1, host gpu-node-00" in out
    assert f"job.log:{first['evidence'][0]['line']}" in out
    assert first["evidence"][0]["text"] in out
    assert all(check["command"] in out for check in first["next_checks"])
    assert "\x1b" not in out


def test_json_goes_to_standard_output_alone() -> None:
    """Nothing else mixes with it."""
    done = run(SIGKILL, "--format", "json")
    assert json.loads(done.stdout)["verdict"] == "cause_found"
    assert done.stderr == b""


def test_a_pipe_is_read_without_arguments() -> None:
    """`kubectl logs ... | ncclscope`."""
    log = case("sigkill").paths[0].read_bytes()
    for args in ([], ["-"], ["triage", "-"]):
        done = run(*args, "--format", "json", input=log)
        report = json.loads(done.stdout)
        assert (done.returncode, report["inputs"][0]["path"]) == (1, "<stdin>")
        assert report["findings"][0]["culprit"]["ranks"] == [1]


def test_a_log_that_ends_inside_init_is_no_plain_all_clear() -> None:
    """A job that hangs prints nothing wrong: the report says how its silence is measured, and measures it when asked."""
    log = (
        b"2026-01-05 10:00:00,100 INFO train: starting\na01:631:631 [0] NCCL INFO NCCL version 2.26.2+cuda12.2\n"
        b"a01:631:631 [0] NCCL INFO Comm config Blocking set to 1\n"
    )
    done = run("--format", "json", input=log)
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"]) == (0, "no_failure")
    assert any("--as-of now" in text for text in report["unknowns"])
    assert run("--as-of", "2026-01-05T10:30:00", input=log).returncode == 1


def test_a_command_never_names_standard_input_as_a_file() -> None:
    """What was piped in cannot be read again: the command asks for the file that it was saved to."""
    log = (
        b'[rank0]: Traceback (most recent call last):\n[rank0]:   File "/app/train.py", line 3, in <module>\n'
        b"[rank0]:     main()\n[rank0]: ValueError: bad shape 3\n"
    )
    report = json.loads(run("--format", "json", input=log).stdout)
    check = report["findings"][0]["next_checks"][0]
    assert (check["command"], check["unfilled"]) == ("ncclscope events <log>", ["log"])


def test_standard_input_beside_files() -> None:
    """`dmesg | ncclscope job.log -` reads both as one job."""
    done = run(str(case("ima").paths[1]), "-", "--format", "json", input=case("ima").paths[0].read_bytes())
    paths = [i["path"] for i in json.loads(done.stdout)["inputs"]]
    assert "<stdin>" in paths
    assert len(paths) == 2


def test_an_open_standard_input_is_not_waited_for() -> None:
    """Under cron standard input is neither a terminal nor ever closed: named files are read all the same."""
    ours, theirs = os.pipe()
    try:
        assert run(SIGKILL, stdin=ours).returncode == 1
    finally:
        os.close(ours)
        os.close(theirs)


def test_no_input_at_all_is_said_to_be_none() -> None:
    """An empty pipe is no all-clear."""
    done = run(input=b"")
    assert done.returncode == 3
    assert b"empty" in done.stdout


def test_on_a_terminal_without_arguments_the_help_is_shown() -> None:
    """Nobody waits in front of a silent prompt."""
    ours, theirs = pty.openpty()
    try:
        done = run(stdin=theirs)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"Usage" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "empty"), (b"hello\nworld\n" * 50, "nothing of NCCL"), (b"\x00" * 4096, "nothing of NCCL")],
    ids=["empty", "unknown text", "zeros"],
)
def test_unreadable_is_never_an_all_clear(content: bytes, said: str, tmp_path: Path) -> None:
    """An empty file or text in which nothing of ours is recognised ends with 3 and says why."""
    (path,) = write(tmp_path, {"job.log": content})
    done = run(str(path), "--format", "json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"], report["findings"]) == (3, "unreadable", [])
    assert said in report["unknowns"][0]


def test_a_missing_file_is_named_and_the_others_are_read() -> None:
    """One wrong path does not cost the answer, and is an error beside it."""
    done = run("/no/such/rank7.log", SIGKILL, "--format", "json")
    assert done.stderr == b"ncclscope: /no/such/rank7.log: no such file or directory\n"
    report = json.loads(done.stdout)
    assert done.returncode == 1
    missing = next(i for i in report["inputs"] if i["path"] == "/no/such/rank7.log")
    assert (missing["format"], missing["note"]) == ("unreadable", "no such file or directory")
    assert "/no/such/rank7.log" in run("/no/such/rank7.log", SIGKILL).stdout.decode()


def test_a_truncated_archive_gives_what_it_holds(tmp_path: Path) -> None:
    """A download that broke off: what could be read is read, and the report says how far."""
    log = case("sigkill").paths[0].read_bytes() + os.urandom(30_000).hex().encode()
    whole = gzip.compress(log)
    (path,) = write(tmp_path, {"job.log.gz": whole[: len(whole) - 12_000]})
    report = json.loads(run(str(path), "--format", "json").stdout)
    assert report["findings"][0]["culprit"]["ranks"] == [1]
    assert "truncated gzip" in report["inputs"][0]["note"]


def test_a_report_file_is_written_as_a_whole(tmp_path: Path) -> None:
    """-o writes the report and nothing to standard output; no half file is left beside it."""
    out = tmp_path / "report.json"
    done = run(SIGKILL, "--format", "json", "-o", str(out))
    assert (done.returncode, done.stdout) == (1, b"")
    assert json.loads(out.read_text())["verdict"] == "cause_found"
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_a_report_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    """A wrong place is an error with its name, and an existing report stays as it was."""
    done = run(SIGKILL, "-o", str(tmp_path / "none" / "report.txt"))
    assert done.returncode == 2
    assert b"report.txt" in done.stderr
    (tmp_path / "taken").mkdir()
    done = run(SIGKILL, "-o", str(tmp_path / "taken"))
    assert done.returncode == 2
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_a_full_disk_is_an_error_with_a_name() -> None:
    """Output that cannot be written is not taken for a finished report."""
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [*COMMAND, SIGKILL],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=LIMIT,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == b"ncclscope: cannot write to standard output: No space left on device\n"


def test_any_encoding_of_standard_output_will_do() -> None:
    """A terminal that knows no more than ASCII gets escapes and not an error of Python's."""
    done = run(str(case("ray-segv").paths[0]), env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1
    assert done.stderr == b""
    assert done.stdout.isascii()


@pytest.mark.parametrize("args", [[EAGER], ["events", EAGER], ["fleet", "--sql"], ["rules", "list"], ["--help"]], ids=str)
def test_a_closed_pipe_ends_quietly(args: list[str]) -> None:
    """`ncclscope ... | head -1`: no complaint, and the status of other tools, which cannot be taken for a verdict."""
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [*COMMAND, *args], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, timeout=LIMIT, check=False
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, b"")


def test_interrupt_ends_with_130() -> None:
    """Ctrl-C while it reads: no traceback, no report, and the status that shells expect."""
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [*COMMAND, "-"], stdin=ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        os.write(theirs, b"[rank0]: hello\n")
        _wait_for_read(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    finally:
        os.close(ours)
        os.close(theirs)
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in err


def _wait_for_read(process: subprocess.Popen[bytes]) -> None:
    """Until the program waits in a read of its standard input; signals during start-up are Python's own business."""
    from pathlib import Path

    until = time.monotonic() + LIMIT
    while time.monotonic() < until and process.poll() is None:
        if "pipe" in Path(f"/proc/{process.pid}/wchan").read_text():
            return
        time.sleep(0.02)


def test_colours_only_on_a_terminal_that_wants_them() -> None:
    """Colours on a terminal; none with NO_COLOR; the words are the same."""
    coloured, plain = on_terminal(SIGKILL), on_terminal(SIGKILL, env={"NO_COLOR": "1"})
    assert "\x1b[" in coloured
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_a_narrow_terminal_is_respected() -> None:
    """At 40 columns text is folded to 40; only paths and commands, which are copied, may be longer."""
    out = on_terminal(HEALTHY, env={"NO_COLOR": "1", "COLUMNS": "40"}, columns=40)
    assert max(len(line) for line in out.splitlines()) <= 40
    out = on_terminal(SIGKILL, env={"NO_COLOR": "1", "COLUMNS": "40"}, columns=40)
    wide = [line for line in out.splitlines() if len(line) > 40]
    assert all(re.match(r" +(/|\S+:\d+|[a-z]+ )", line) for line in wide), wide


def on_terminal(*args: str, env: dict[str, str] | None = None, columns: int = 120) -> str:
    """What the program prints to a terminal of that width."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [*COMMAND, *args], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL,
        env={**plain, "TERM": "xterm-256color", **(env or {})},
    )  # fmt: skip
    os.close(theirs)
    out = b""
    try:
        while data := os.read(ours, 65536):
            out += data
    except OSError:  # the other end was closed
        pass
    process.wait(timeout=LIMIT)
    os.close(ours)
    return out.decode().replace("\r\n", "\n")


def test_version() -> None:
    """One line with the version."""
    done = run("--version")
    assert (done.returncode, done.stdout.decode()) == (0, f"ncclscope {__version__}\n")


def test_help_names_every_command() -> None:
    """The commands and how to pipe a log in."""
    from ncclscope.cli.app import COMMANDS

    out = run("--help").stdout.decode()
    assert all(name in out for name in COMMANDS)


def test_an_unknown_option_is_named() -> None:
    """The message says which word was not understood."""
    done = run(SIGKILL, "--exitzero")
    assert done.returncode == 2
    assert b"--exitzero" in done.stderr


HOSTILE = ["a\nb.log", "\x1b[2Jx.log", "it's.log", "-r.log", "…\u202e.log", "a b;c.log", b"bad\xff.log"]


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_hostile_file_names(name: str | bytes, tmp_path: Path) -> None:
    """Any name that a file system allows is read, named, and shown harmlessly."""
    raw = name if isinstance(name, bytes) else name.encode()
    (tmp_path / os.fsdecode(raw)).write_bytes(case("sigkill").paths[0].read_bytes())
    text = run(".", cwd=tmp_path)
    assert text.returncode == 1, text.stderr
    out = text.stdout.decode()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", out)
    given = run("--format", "json", "--", os.fsdecode(raw), cwd=tmp_path)
    report = json.loads(given.stdout)
    assert report["findings"][0]["culprit"]["ranks"] == [1]
    shown = name if isinstance(name, str) else "bad\\udcff.log"
    assert report["inputs"][0]["path"] == shown


def test_several_jobs_are_noted() -> None:
    """Two jobs in one input are said to be two, with the command that takes them apart."""
    other = case("healthy-226").paths[0]
    report = json.loads(run(HEALTHY, str(other), "--format", "json").stdout)
    assert any("jobs" in note and "scan" in note for note in report["warnings"])


def test_a_log_without_an_end_can_be_measured() -> None:
    """--as-of: a job that hangs in init now is looked at, and the report says for how long."""
    (path,) = case("absent-comm-lazy-long").paths
    done = run(str(path), "--as-of", "2026-11-30T20:30:00", "--format", "json")
    assert json.loads(done.stdout)["findings"][0]["category"] == "rank-absent"


def test_gpu_given_by_the_user(tmp_path: Path) -> None:
    """--gpu takes an architecture or a product's name, and says what the log alone does not show."""
    log = (
        "node01:600:600 [0] NCCL INFO NCCL version 2.18.3+cuda11.8\n"
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/workspace/train.py", line 80, in <module>\n[rank0]:     main()\n'
        "[rank0]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
    )
    (path,) = write(tmp_path, {"job.log": log})
    without = json.loads(run(str(path), "--format", "json").stdout)
    assert "arch-mismatch" not in [f.get("category") for f in without["findings"]]
    for gpu in ("sm_120", "RTX 5090"):
        report = json.loads(run(str(path), "--gpu", gpu, "--format", "json").stdout)
        assert "arch-mismatch" in [f.get("category") for f in report["findings"]], gpu
