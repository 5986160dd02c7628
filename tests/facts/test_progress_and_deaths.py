"""Who fell behind, who died, and who only says so because another did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from printed import enqueued, init, nccl, table, timeout
from support import of_kind, only, read_texts

from ncclscope.facts.deaths import signal_name
from ncclscope.pipeline import analyze

if TYPE_CHECKING:
    from pathlib import Path


def diverged(tmp_path: Path, log: str) -> tuple[object, tuple[int, ...], bool]:
    found = only(read_texts(tmp_path, {"job.log": log}), "collective.diverged")
    return found.fields["how"], found.ranks, bool(found.fields["tie"])


def test_the_lowest_last_enqueued_is_behind(tmp_path: Path) -> None:
    """The rank that never issued what the others wait in prints no timeout of its own."""
    log = timeout(0, 17) + timeout(2, 17) + enqueued(0, 18, 16) + enqueued(1, 16, 16) + enqueued(2, 18, 16)
    assert diverged(tmp_path, log) == ("fewer", (1,), False)


def test_later_launches_are_not_progress(tmp_path: Path) -> None:
    """All wait in the same collective; how many more each had queued behind it says nothing."""
    log = timeout(0, 17) + timeout(1, 17) + enqueued(0, 20, 16) + enqueued(1, 18, 16)
    seen = read_texts(tmp_path, {"job.log": log})
    assert of_kind(seen, "collective.diverged") == []
    assert only(seen, "collective.equal").ranks == ()


def test_equal_numbers_name_nobody(tmp_path: Path) -> None:
    """Every rank waits in the same collective with the same numbers: no culprit is visible."""
    log = init("node01", 600, 0, 2) + init("node01", 601, 1, 2, bus="70")
    log += timeout(0, 17) + timeout(1, 17) + enqueued(0, 17, 16) + enqueued(1, 17, 16)
    seen = read_texts(tmp_path, {"job.log": log})
    assert of_kind(seen, "collective.diverged") == []
    assert only(seen, "collective.equal").ranks == ()


def test_the_minority_issued_another_operation(tmp_path: Path) -> None:
    """Same number, other operation: the fewer are to blame."""
    log = timeout(0, 11) + timeout(1, 11) + timeout(2, 11, "BROADCAST") + timeout(3, 11)
    assert diverged(tmp_path, log) == ("op", (2,), False)


def test_the_minority_issued_another_size(tmp_path: Path) -> None:
    """Same number and operation, other size."""
    log = timeout(0, 11) + timeout(1, 11, numel=99) + timeout(2, 11) + timeout(3, 11)
    assert diverged(tmp_path, log) == ("size", (1,), False)


def test_a_tie_of_two_names_nobody(tmp_path: Path) -> None:
    """One against one: which side is wrong cannot be seen, and the reason is given."""
    found = only(read_texts(tmp_path, {"job.log": timeout(0, 11) + timeout(1, 11, "BROADCAST")}), "collective.diverged")
    assert (found.ranks, found.fields["tie"]) == ((), True)
    assert found.fields["why"]


def test_sizes_that_may_differ_are_not_compared(tmp_path: Path) -> None:
    """Point-to-point and uneven operations have sizes of their own on every rank."""
    log = timeout(0, 11, "ALLTOALL_BASE") + timeout(1, 11, "ALLTOALL_BASE", numel=99)
    assert of_kind(read_texts(tmp_path, {"job.log": log}), "collective.diverged") == []


def test_the_rank_that_says_nothing_is_suspected(tmp_path: Path) -> None:
    """When every error is a timeout, the rank of the job that printed none is to blame."""
    log = "".join(init("node01", 600 + r, r, 4, bus=f"{6 + r}0") for r in range(4))
    log += "".join(timeout(r, 17) for r in (0, 1, 3))
    assert diverged(tmp_path, log) == ("silent", (2,), False)


def test_an_uncollected_rank_is_not_silent(tmp_path: Path) -> None:
    """A rank of which no line was given said nothing here, but not because it was silent."""
    log = "".join(init("node01", 600 + r, r, 4, bus=f"{6 + r}0") for r in range(3))
    log += "".join(timeout(r, 17) for r in range(3))
    assert of_kind(read_texts(tmp_path, {"job.log": log}), "collective.diverged") == []


def group(rank: int, tag: int, seq: int, last: int) -> str:
    """c10 2.4 and later: the tag names the process group and the rank inside it."""
    pg = f"[PG ID 2 PG GUID 7(tp_group) Rank {tag}]"
    return (
        f"[rank{rank}]:[E1130 19:42:11.671442636 ProcessGroupNCCL.cpp:689] {pg} Watchdog caught collective "
        f"operation timeout: "
        f"WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=20000) ran for 20083 "
        f"milliseconds "
        "before timing out.\n"
        f"[rank{rank}]:[E1130 19:42:11.671627905 ProcessGroupNCCL.cpp:2303] {pg}  failure detected by "
        f"watchdog at work "
        f"sequence id: {seq} PG status: last enqueued work: {last}, last completed work: {seq - 1}\n"
    )


def test_process_groups_are_compared_by_themselves(tmp_path: Path) -> None:
    """Number 40 of one group and number 17 of another are no divergence: each group counts its own."""
    log = timeout(0, 17) + timeout(1, 17) + group(2, 0, 40, 40) + group(3, 1, 40, 40)
    assert of_kind(read_texts(tmp_path, {"job.log": log}), "collective.diverged") == []


SIGNALS = {9: "SIGKILL", -9: "SIGKILL", 137: "SIGKILL", "9": "SIGKILL", "Killed": "SIGKILL", "SIGKILL": "SIGKILL"}
SIGNALS |= {-11: "SIGSEGV", 139: "SIGSEGV", "Segmentation fault": "SIGSEGV", 134: "SIGABRT"}
SIGNALS |= {"x": None, 1000: None, None: None}  # type: ignore[dict-item]


@pytest.mark.parametrize("value", SIGNALS, ids=str)
def test_signal_names(value: object) -> None:
    """A signal has one name, however a launcher writes it."""
    assert signal_name(value) == SIGNALS[value]  # type: ignore[index]


def test_the_launchers_sigterm_is_an_echo(tmp_path: Path) -> None:
    """Siblings that were told to end did not die by themselves; the one that was killed did."""
    died = only(read_texts(tmp_path, {"job.log": table((1, -9, 1079), (0, -15, 1078), (2, -15, 1080))}), "rank.died")
    assert (died.ranks, died.fields["how"]) == ((1,), "SIGKILL")


def test_only_sigterms_are_no_death(tmp_path: Path) -> None:
    """A whole job that was told to end: nobody died."""
    seen = read_texts(tmp_path, {"job.log": table((0, -15, 1078), (1, -15, 1079))})
    assert of_kind(seen, "rank.died") == []


def test_an_abort_after_the_own_watchdog_is_an_echo(tmp_path: Path) -> None:
    """A rank whose watchdog took it down died of the timeout: exit -6 is no cause."""
    log = timeout(0, 17) + table((0, -6, 1078))
    assert of_kind(read_texts(tmp_path / "a", {"job.log": log}), "rank.died") == []
    died = only(read_texts(tmp_path / "b", {"job.log": table((0, -6, 1078))}), "rank.died")
    assert (died.ranks, died.fields["how"]) == ((0,), "SIGABRT")


def test_one_death_told_three_times_is_one(tmp_path: Path) -> None:
    """The agent's line, the table and a shell's word are one death of one rank, with all lines as proof."""
    agent = (
        "E1130 19:41:18.046000 1069 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: -9) "
        "local_rank: 1 (pid: 1079) of binary: /opt/venv/bin/python\n"
    )
    died = only(read_texts(tmp_path, {"job.log": agent + table((1, -9, 1079), (0, -15, 1078))}), "rank.died")
    assert died.ranks == (1,)
    assert {e.line for e in died.evidence if hasattr(e, "line")} >= {1}
    assert len(died.evidence) >= 2


def test_a_quiet_exit_shows_in_what_the_peers_say(tmp_path: Path) -> None:
    """A rank that leaves with exit code 0 is in no table: its peers' closed connections and its silence tell."""
    log = "".join(init("node01", 600 + r, r, 3, bus=f"{6 + r}0") for r in range(3))
    for rank in (0, 2):
        log += nccl("node01", 600 + rank, "[Service thread] Connection closed by localRank 1")
        log += timeout(rank, 17)
    log += table((0, -6, 600), (2, -6, 602))
    died = only(read_texts(tmp_path, {"job.log": log}), "rank.died")
    assert (died.ranks, died.fields["how"]) == ((1,), "quiet")


def test_a_quiet_exit_of_most_ranks_is_not_claimed(tmp_path: Path) -> None:
    """One rank's log out of eight: seven others that 'said nothing' were simply not collected."""
    log = init("node01", 600, 0, 8) + nccl("node01", 600, "[Service thread] Connection closed by localRank 1")
    assert of_kind(read_texts(tmp_path, {"rank0.log": log + timeout(0, 17)}), "rank.died") == []


RESTART = (
    "W1130 19:41:30.000000 1069 torch/distributed/elastic/agent/server/api.py:900] [default] Worker group "
    "FAILED. 3/3 attempts "
    "left; will restart worker group\n"
)


def test_attempts_of_an_elastic_job(tmp_path: Path) -> None:
    """What failed before the agent restarted the workers belongs to attempt 0, what came after to attempt 1."""
    log = table((1, -9, 1079), (0, -15, 1078)) + RESTART + timeout(0, 3) + table((0, -6, 2078))
    seen = read_texts(tmp_path, {"job.log": log})
    assert only(seen, "rank.died").attempt == 0
    assert only(seen, "torch.watchdog_timeout").attempt == 1
    assert any("2 attempts" in note for note in seen.facts.notes)


def test_an_appended_rerun_is_a_second_attempt(tmp_path: Path) -> None:
    """The same ranks start init anew with other pids in the same file."""
    log = "".join(init("node01", 600 + r, r, 2, bus=f"{6 + r}0") for r in range(2)) + table((1, -9, 601), (0, -15, 600))
    log += "".join(init("node01", 900 + r, r, 2, bus=f"{6 + r}0") for r in range(2)) + timeout(0, 3)
    seen = read_texts(tmp_path, {"job.log": log})
    assert only(seen, "rank.died").attempt == 0
    assert only(seen, "torch.watchdog_timeout").attempt == 1


def test_directories_of_torchrun_number_the_attempts(tmp_path: Path) -> None:
    """--log-dir names the attempt, whatever order the files are read in."""
    files = {
        "none_abc/attempt_0/1/stderr.log": "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/workspace/train.py", line 80, in <module>\n[rank1]:     main()\n'
        "[rank1]: ValueError: bad sample\n",
        "none_abc/attempt_1/0/stderr.log": timeout(0, 3),
    }
    seen = read_texts(tmp_path, files)
    assert only(seen, "py.exception").attempt == 0
    assert only(seen, "torch.watchdog_timeout").attempt == 1


def test_one_run_is_one_attempt(tmp_path: Path) -> None:
    """Several communicators of the same processes are no restart."""
    log = "".join(init("node01", 600 + r, r, 2, bus=f"{6 + r}0") for r in range(2)) * 2 + timeout(0, 3)
    seen = read_texts(tmp_path, {"job.log": log})
    assert {o.attempt for o in seen.facts.observations} == {0}
    assert seen.facts.notes == ()


def test_several_jobs_are_said_to_be_several(tmp_path: Path) -> None:
    """Two files, each with a world of its own: the report says so and names the way out."""
    one = init("node01", 600, 0, 2) + init("node01", 601, 1, 2, bus="70")
    other = one.replace("node01", "node09").replace("0xff66764d194f455c", "0x1111")
    seen = read_texts(tmp_path, {"a.log": one, "b.log": other})
    assert any("2 jobs" in note and "scan" in note for note in seen.facts.notes)


def test_a_traceback_of_the_first_attempt_outranks_a_fault_of_the_second(tmp_path: Path) -> None:
    """A block of lines is read to its end before it is understood; what counts is where it stands."""
    start = "a01:{0}:{0} [0] NCCL INFO ncclCommInitRankConfig comm 0x1 rank 0 nranks 1 cudaDev 0 busId 10000 commId 0x{0} - "
    path = tmp_path / "job.log"
    path.write_text(
        start.format(11) + "Init COMPLETE\n"
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/app/train.py", line 12, in step\n'
        '[rank0]:     raise ValueError("bad batch")\n'
        "[rank0]: ValueError: bad batch\n" + start.format(12) + "Init COMPLETE\n"
        "[rank0]: RuntimeError: CUDA error: an illegal memory access was encountered\n",
        encoding="utf-8",
    )
    report = analyze([path])
    assert report.findings[0].category == "user-exception"
    assert any("2 attempts" in text for text in report.warnings)
