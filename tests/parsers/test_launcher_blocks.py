"""Groups of lines: torchrun's table, rendezvous results, Ray's reports, the blocks of mpirun and Hydra."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers import events_of, events_of_lines, line_of, the_event

from ncclscope.model import Envelope, Event, Line, SourceRef
from ncclscope.parsers import launcher
from ncclscope.parsers.pattern import match

FIXTURES = Path(__file__).parents[1] / "fixtures" / "launcher"
_WRAPPERS = re.compile(r"\x1b\[[0-9;]*m|^\([\w.]+ pid=\d+\) |^\[\d+,\d+\]<std\w+>:")

TABLE = """\
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-30_20:32:10
  host      : node-01
  rank      : 5 (local_rank: 1)
  exitcode  : -15 (pid: 5888)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 5888
[2]:
  time      : 2026-11-30_20:32:09
  host      : node-01
  rank      : 6 (local_rank: 2)
  exitcode  : 1 (pid: 5889)
  error_file: /tmp/te/attempt_0/2/error.json
  traceback : Traceback (most recent call last):
    File "/job/train.py", line 79, in main
      step()
  KeyError: 'eos'

  During handling of the above exception, another exception occurred:

  Traceback (most recent call last):
    File "/job/train.py", line 81, in main
      raise data.LoaderError("bad shard") from None
  data.LoaderError: bad shard: rank: 9 (local_rank: 9)

------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-30_20:32:08
  host      : node-01
  rank      : 4 (local_rank: 0)
  exitcode  : -9 (pid: 5887)  (SIGKILL)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 5887
============================================================"""

TABLE_1_9 = """\
***************************************
         train.py FAILED
=======================================
Root Cause:
[0]:
  time: 2021-07-01_12:00:00
  rank: 0 (local_rank: 0)
  exitcode: 1 (pid: 1234)
  error_file: <N/A>
  msg: "Process failed with exitcode 1"
=======================================
Other Failures:
[1]:
  time: 2021-07-01_12:00:01
  rank: 1 (local_rank: 1)
  exitcode: 1 (pid: 1235)
  error_file: <N/A>
  msg: "RuntimeError: bad shape"
***************************************"""


def fixture_events(name: str) -> list[Event]:
    """Events of a recorded file whose wrappers (colours, Ray's brackets, mpirun's tags) were taken off."""
    text = (FIXTURES / name).read_text(encoding="utf-8")
    lines = []
    for number, body in enumerate(text.split("\n"), 1):
        bare = _WRAPPERS.sub("", body)
        lines.append(line_of(_WRAPPERS.sub("", bare), number))
    return events_of_lines(launcher, lines)


def rows_of(text: str) -> list[Event]:
    return [event for event in events_of(launcher, text) if event.kind == "launch.failure_row"]


def test_table_gives_one_row_for_each_failed_worker() -> None:
    """Ranks are the global ones, the first observed failure is marked, each row quotes its exit code."""
    rows = rows_of(TABLE)
    assert [
        (r.get("rank"), r.get("local_rank"), r.get("exit_code"), r.get("pid"), r.get("first")) for r in rows
    ] == [
        (5, 1, -15, 5888, False),
        (6, 2, 1, 5889, False),
        (4, 0, -9, 5887, True),
    ]
    assert [r.get("signal") for r in rows] == [15, None, 9]
    assert [r.get("nature") for r in rows] == ["consequence", "consequence", "symptom"]
    assert {r.get("host") for r in rows} == {"node-01"}
    assert rows[2].get("time") == "2026-11-30_20:32:08"
    assert rows[2].text.strip().startswith("exitcode  : -9")
    assert rows[2].ref.line == TABLE.split("\n").index(rows[2].text) + 1


def test_row_takes_the_last_exception_of_a_chain() -> None:
    """The exception that ended the worker is the last one; rows in a traceback's text are no table rows."""
    row = rows_of(TABLE)[1]
    assert (row.get("type"), row.get("message")) == ("LoaderError", "bad shard: rank: 9 (local_rank: 9)")
    assert row.get("error_file") == "/tmp/te/attempt_0/2/error.json"
    assert row.get("rank") == 6


def test_rows_without_a_traceback_have_no_message() -> None:
    """`Signal 15 (SIGTERM) received` and the hint at @record are no messages of the program."""
    assert all(row.get("message") is None for row in (rows_of(TABLE)[0], rows_of(TABLE)[2]))
    hint = TABLE.replace(
        "Signal 9 (SIGKILL) received by PID 5887", "To enable traceback see: https://pytorch.org/x"
    )
    assert rows_of(hint)[2].get("message") is None


def test_table_of_1_9() -> None:
    """The older heads and rows mean the same; there is no host, and msg takes the traceback's place."""
    rows = rows_of(TABLE_1_9)
    assert [(r.get("rank"), r.get("exit_code"), r.get("first"), r.get("message")) for r in rows] == [
        (0, 1, True, None),
        (1, 1, False, "RuntimeError: bad shape"),
    ]


def test_table_without_other_failures() -> None:
    """`<NO_OTHER_FAILURES>` is no row."""
    start, end = TABLE.index("[1]:"), TABLE.index("Root Cause")
    text = TABLE[:start] + "  <NO_OTHER_FAILURES>\n------------\n" + TABLE[end:]
    assert [row.get("rank") for row in rows_of(text)] == [4]


@pytest.mark.parametrize("end", range(0, len(TABLE), 37))
def test_cut_table_gives_the_rows_it_still_holds(end: int) -> None:
    """A table cut anywhere gives a prefix of the rows, with the fields that were seen."""
    whole = rows_of(TABLE)
    seen = rows_of(TABLE[:end])
    assert len(seen) <= len(whole)
    for cut, row in list(zip(seen, whole, strict=False))[:-1]:
        assert cut.fields == row.fields


def test_rows_below_a_head_that_was_cut_off_keep_their_rank() -> None:
    """An excerpt of a table's end names the rank, its exit code and its signal."""
    text = """\
  host      : node-01
  rank      : 5 (local_rank: 1)
  exitcode  : -11 (pid: 3304209)
  error_file: <N/A>
  traceback : Signal 11 (SIGSEGV) received by PID 3304209
============================================================
"""
    (row,) = rows_of(text)
    assert (row.fields["rank"], row.fields["exit_code"], row.fields["signal"]) == (5, -11, 11)


def test_table_that_lost_its_indentation() -> None:
    """Collectors strip leading blanks; the rows and the exception are still found."""
    flat = "\n".join(line.strip() for line in TABLE.split("\n"))
    rows = rows_of(flat)
    assert [row.get("rank") for row in rows] == [5, 6, 4]
    assert rows[1].get("message") == "bad shard: rank: 9 (local_rank: 9)"


def test_lines_of_workers_between_rows_do_not_end_the_table() -> None:
    """Progress printed by a dying worker into the same stream is passed over."""
    noisy = TABLE.replace("  host      : node-01\n", "  host      : node-01\nstep 5 loss 2.1\n\n")
    assert [row.get("rank") for row in rows_of(noisy)] == [5, 6, 4]


def test_two_tables_of_two_nodes_in_one_stream() -> None:
    """Every node prints its own table with its own first failure."""
    other = TABLE.replace("node-01", "node-02").replace("rank      : 4", "rank      : 8")
    firsts = [row for row in rows_of(TABLE + "\n" + other) if row.get("first")]
    assert [(row.get("host"), row.get("rank")) for row in firsts] == [("node-01", 4), ("node-02", 8)]


def test_recorded_table_of_the_node_that_failed_first() -> None:
    """A recorded two-node run: rank 3 raised, its sibling raised for it and was then reaped."""
    rows = [event for event in fixture_events("torchrun-node1.log") if event.kind == "launch.failure_row"]
    assert [(r.get("rank"), r.get("type"), r.get("exit_code"), r.get("first")) for r in rows] == [
        (2, "RuntimeError", -15, False),
        (3, "ValueError", 1, True),
    ]
    assert all(row.get("nature") == "consequence" for row in rows)


def test_error_file_takes_attempt_and_local_rank_from_its_path() -> None:
    """The directory of an error file is the local rank, which the JSON does not hold."""
    text = '{"message": {"message": "KeyError: 1", "extraInfo": {"py_callstack": '
    text += '"Traceback (most recent call last):\\n'
    text += '  File \\"t.py\\", line 1, in f\\nKeyError: 1\\n", "timestamp": "1796070431"}}}'
    pattern = next(p for p in launcher.PATTERNS if p.kind == "launch.error_file")
    event = match(pattern, Line(text, Envelope(), SourceRef("logs/none_x/attempt_1/3/error.json", 1)))
    assert event is not None
    assert (event.get("type"), event.get("attempt"), event.get("local_rank")) == ("KeyError", 1, 3)
    assert event.get("rank") is None


def test_cut_error_file_is_no_event() -> None:
    """An error file that ends inside the traceback says nothing reliable."""
    text = '{"message": {"message": "x", "extraInfo": {"py_callstack": "Traceback (most recent'
    assert [e.kind for e in events_of(launcher, text)] == []


RENDEZVOUS = """\
[default] Rendezvous complete for workers. Result:
  restart_count=1
  master_addr=node-00
  master_port=29500
  group_rank=1
  group_world_size=2
  local_ranks=[0, 1]
  role_ranks=[2, 3]
  global_ranks=[2, 3]
  role_world_sizes=[4, 4]
  global_world_sizes=[4, 4]
  event_log_handler=null"""


def test_rendezvous_result_maps_a_node_to_its_ranks() -> None:
    """World size, address and this node's global ranks come as values."""
    event = the_event(launcher, "launch.rdzv_result", RENDEZVOUS)
    assert event.get("ranks") == (2, 3)
    assert (event.get("world_size"), event.get("nnodes"), event.get("group_rank")) == (4, 2, 1)
    assert (event.get("master_addr"), event.get("master_port"), event.get("restart_count")) == (
        "node-00",
        29500,
        1,
    )


def test_rendezvous_result_cut_or_mixed_with_other_lines() -> None:
    """What was read is told; lines of others do not break it."""
    mixed = RENDEZVOUS.replace("  group_rank=1\n", "  group_rank=1\nloading shard 3\n\n")
    assert the_event(launcher, "launch.rdzv_result", mixed).get("ranks") == (2, 3)
    cut = the_event(launcher, "launch.rdzv_result", RENDEZVOUS[:120])
    assert cut.get("master_addr") == "node-00"
    assert cut.get("ranks") is None


def test_recorded_ray_train_run_names_the_dead_rank() -> None:
    """The snippet's rank, the rank map and the dead worker's pid agree; each repetition says the same."""
    events = fixture_events("ray-train-segv.log")
    errors = [e for e in events if e.kind == "ray.rank_error"]
    assert {e.get("ranks") for e in errors} == {(1,)}
    assert {e.get("pid") for e in errors} == {25621}
    assert {e.get("nature") for e in errors} == {"symptom"}
    ranks = {e.get("pid"): e.get("rank") for e in events if e.kind == "ray.rank_map"}
    assert ranks == {25590: 0, 25621: 1}
    assert all(e.get("cause") is None for e in events)


def test_snippet_of_several_ranks_with_a_traceback() -> None:
    """All ranks of the head are kept; type and message are the exception's."""
    text = "[Rank 0,1,2,3 Error Snippet]:\nTraceback (most recent call last):\n"
    text += '  File "/job/t.py", line 5, in f\n    raise KeyError("x")\nKeyError: \'x\'\nnext line'
    event = the_event(launcher, "ray.rank_error", text)
    assert event.get("ranks") == (0, 1, 2, 3)
    assert (event.get("type"), event.get("message")) == ("KeyError", "'x'")
    assert event.lines == 5


def test_snippet_folded_away_still_names_its_ranks() -> None:
    """Deduplication can remove everything below the head."""
    events = events_of(launcher, "[Rank 2 Error Snippet]:\nray.train.WorkerGroupError: Training failed")
    assert [(e.kind, e.get("ranks"), e.get("text")) for e in events] == [("ray.rank_error", (2,), None)]


ACTOR = """\
ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
\tclass_name: RolloutWorker
\tactor_id: e13d551d
\tpid: 7604
\tname: rollout_3
\tnamespace: a8ca7df6
\tip: 10.20.0.11
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: \
Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the \
OOM killer"""


def test_dead_actor_has_pid_and_address_but_no_rank() -> None:
    """pid and ip identify the worker; the possibilities that Ray lists are not taken for findings."""
    event = the_event(launcher, "ray.actor_died", ACTOR)
    assert (event.get("actor"), event.get("pid"), event.get("ip")) == ("RolloutWorker", 7604, "10.20.0.11")
    assert event.get("reason") == "Worker unexpectedly exits with a connection error code 2. End of file"
    assert event.get("rank") is None
    assert event.get("cause") is None


def test_actor_ended_by_its_owner_is_noise() -> None:
    """`ray.kill` is somebody's decision, not a death."""
    text = (
        ACTOR[: ACTOR.index("The actor is dead")] + "The actor is dead because it was killed by `ray.kill`."
    )
    event = the_event(launcher, "ray.actor_died", text)
    assert (event.get("nature"), event.get("suggests")) == ("noise", None)


def test_process_group_line_ties_pid_to_rank_unless_it_was_folded() -> None:
    """A folded line carries the pid of whichever process came last."""
    text = "Setting up process group for: env:// [rank=0, world_size=4]"
    assert the_event(launcher, "ray.process_group", text, pid=12).get("pid") == 12
    assert events_of(launcher, text, pid=12, repeated=3) == []


def test_memory_report_tells_victim_and_biggest_user() -> None:
    """Ray kills the newest task; the culprit is on top of the table."""
    report = [e for e in fixture_events("ray-memory-monitor.log") if e.get("top_pid")]
    assert len(report) == 1
    event = report[0]
    assert (event.get("pid"), event.get("used"), event.get("ip")) == (3987214, "56.41GB", "10.20.49.31")
    assert (event.get("top_pid"), event.get("top_gb")) == (3987214, 56.41)
    assert event.get("cause") == "oom-host"


def test_memory_report_without_its_table() -> None:
    """The sentence alone is enough for the cause."""
    text = (
        "... (0.979486), which exceeds the memory usage threshold of 0.95. Ray killed this worker\nnext line"
    )
    event = the_event(launcher, "ray.oom_kill", text)
    assert (event.get("cause"), event.get("top_pid")) == ("oom-host", None)


def test_recorded_mpirun_blames_the_killed_rank_only() -> None:
    """`Primary job terminated normally` is noise; the last block names task 1 and signal 9, and no pid."""
    events = fixture_events("mpirun-sigkill.log")
    exits = [e for e in events if e.kind == "mpi.rank_exit"]
    assert [(e.get("task"), e.get("signal"), e.get("pid"), e.get("host")) for e in exits] == [
        (1, 9, None, "node-0")
    ]
    assert [e.get("nature") for e in events if e.kind == "mpi.primary_job"] == ["noise"]
    assert all(e.get("rank") is None for e in events)


@pytest.mark.parametrize(
    ("text", "task", "code"),
    [
        ("  Process name: [[12345,1],3]\n  Exit code:    1\n----", 3, 1),
        ("   Process name: [prterun-node-01-31337@1,2]Exit code:    17", 2, 17),
        ("   Process name: [prterun-node-01-31337@1,2]\n   Exit code:    139", 2, 139),
    ],
)
def test_first_process_that_exited(text: str, task: int, code: int) -> None:
    """Open MPI 4 and 5 name the process and, there or one line later, its code."""
    event = the_event(launcher, "mpi.rank_exit", text)
    assert (event.get("task"), event.get("exit_code")) == (task, code)


def test_process_name_without_a_code_is_no_exit() -> None:
    """Other lists of process names look alike."""
    assert events_of(launcher, "  Process name: [[12345,1],3]\nsomething\nelse") == []


@pytest.mark.parametrize(
    "text",
    [
        "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 5.",
        "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD with errorcode 5.",
        "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\n  Proc: [[1,1],2]\n  Errorcode: 5",
    ],
)
def test_abort(text: str) -> None:
    """The three wordings give task and code; the one who calls it has found something wrong."""
    event = the_event(launcher, "mpi.abort", text)
    assert (event.get("task"), event.get("code"), event.get("nature")) == (2, 5, "symptom")


@pytest.mark.parametrize("name", ["ORTE", "PRTE"])
def test_lost_daemon_names_its_host(name: str) -> None:
    """The remote daemon's node is the one that went away, not the head."""
    text = f"{name} has lost communication with a remote daemon.\n\n  HNP daemon   : [[1,0],0] on node head\n"
    text += "  Remote daemon: [[1,0],1] on node node-02\n"
    event = the_event(launcher, "mpi.daemon_lost", text)
    assert (event.get("host"), event.get("nature")) == ("node-02", "symptom")


def test_mpich_bad_termination_by_signal() -> None:
    """EXIT CODE 9 with the string `Killed (signal 9)` is a death by signal 9."""
    text = "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 31337 RUNNING AT node-02\n"
    text += "=   EXIT CODE: 9\n=   CLEANING UP REMAINING PROCESSES\n=======\n"
    text += "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"
    event = the_event(launcher, "mpi.rank_exit", text)
    assert (event.get("pid"), event.get("host"), event.get("signal")) == (31337, "node-02", 9)
    assert event.get("suggests") == "rank-died"


def test_intel_mpi_bad_termination() -> None:
    """Intel MPI prints the rank; it is the task number here."""
    text = (
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 3 PID 31337 RUNNING AT node-02\n"
    )
    text += "=   KILLED BY SIGNAL: 11 (Segmentation fault)"
    event = the_event(launcher, "mpi.rank_exit", text)
    assert (event.get("task"), event.get("signal"), event.get("pid")) == (3, 11, 31337)


def test_mpich_exit_code_only() -> None:
    """An ordinary exit code is an echo of what the process printed."""
    text = (
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 5 RUNNING AT n\n=   EXIT CODE: 1\n"
    )
    event = the_event(launcher, "mpi.rank_exit", text)
    assert (event.get("exit_code"), event.get("nature")) == (1, "consequence")
