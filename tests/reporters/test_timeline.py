"""The timeline of a report: what each lane shows, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import UNSET
from reports import large_report, report_of
from support import CASES, read_texts, shipped

from ncclscope.pipeline import judge
from ncclscope.report import Lane, Report, Timeline


def timeline(report: Report) -> Timeline:
    assert report.timeline is not UNSET
    return report.timeline


def lane(report: Report, rank: int) -> Lane:
    [found] = [one for one in timeline(report).lanes if one.rank == rank]
    return found


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_marks_stand_in_time_order_and_within_the_picture(name: str) -> None:
    """Dated marks rise, undated ones come last, spans follow each other, and nothing lies outside."""
    t = timeline(report_of(name))
    for one in t.lanes:
        times = [m.at for m in one.marks if m.at is not UNSET]
        assert times == sorted(times)
        assert [m.at is UNSET for m in one.marks] == sorted(m.at is UNSET for m in one.marks)
        assert all(0 <= at <= t.length_s + 0.001 for at in times)
        edges = [edge for s in one.spans for edge in (s.start, s.end)]
        assert edges == sorted(edges)
        assert len(one.marks) <= 16


def test_culprit_lane_holds_the_proof_and_the_silence_after_it() -> None:
    """Rank 777 raised, was then silent to the end, and its exception is the mark that stands out."""
    one = lane(large_report(1024), 777)
    assert [m.kind for m in one.marks if m.kind == "cause"] == ["cause"]
    assert "ValueError" in next(m.text for m in one.marks if m.kind == "cause")
    assert one.spans[-1].state == "silent"
    assert one.host == "dgx-098"


def test_waiting_is_drawn_from_the_watchdog_s_own_count() -> None:
    """A timeout after 600 s began 600 s before the line."""
    one = lane(large_report(1024), 3)
    [wait] = [s for s in one.spans if s.state == "waiting"]
    assert wait.end - wait.start == pytest.approx(600, abs=1)
    assert [m.kind for m in one.marks][:2] == ["init", "echo"]


def test_ranks_that_no_input_shows_have_a_lane_that_says_so(tmp_path: Path) -> None:
    """An absent rank is part of the picture."""
    start = "ncclCommInitRankConfig comm 0x1 rank {} nranks 4 cudaDev {} nvmlDev 0 busId 60000"
    start += " commId 0x65adb76f349e61cc - Init START"
    log = "\n".join(f"a01:92{r}:92{r} [{r}] NCCL INFO " + start.format(r, r) for r in (0, 1, 3))
    report = judge(read_texts(tmp_path, {"job.log": log + "\n"}), shipped(), picture=True)
    assert [(one.rank, one.seen) for one in timeline(report).lanes] == [(0, True), (1, True), (3, True), (2, False)]


def test_input_without_any_time_is_placed_by_order(tmp_path: Path) -> None:
    """No time is made up where none is printed, and the picture says so."""
    lines = ("Traceback (most recent call last):", '  File "/w/train.py", line 3, in <module>', "ValueError: no")
    log = "".join(f"[rank0]: {line}\n" for line in lines)
    report = judge(read_texts(tmp_path, {"job.log": log}), shipped(), picture=True)
    t = timeline(report)
    assert t.start is UNSET
    assert all(m.at is UNSET for one in t.lanes for m in one.marks)
    assert any("placed by order" in note for note in t.notes)


def test_kernel_lines_share_the_picture_with_the_ranks(tmp_path: Path) -> None:
    """An Xid in a host's log has a lane of its own beside the host's ranks, at its time."""
    head = "a01:923:923 [0] NCCL"
    comm = "comm 0x1 rank 0 nranks 1 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x65adb76f349e61cc"
    job = f"[2026-05-26 12:00:10] {head} INFO ncclCommInitRankConfig {comm} - Init COMPLETE\n"
    job += f"[2026-05-26 12:09:10] {head} WARN Cuda failure 'unspecified launch failure'\n"
    kernel = (
        "2026-05-26T12:05:00.000000 a01 kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=923, GPU has fallen off the bus.\n"
    )
    report = judge(read_texts(tmp_path, {"rank0.log": job, "a01-dmesg.log": kernel}), shipped(), picture=True)
    kernel_lanes = [one for one in timeline(report).lanes if one.about == "kernel"]
    assert [one.host for one in kernel_lanes] == ["a01"]
    assert [round(float(m.at or 0)) for m in kernel_lanes[0].marks if m.at is not UNSET][:1] == [290]


def test_picture_is_made_only_where_it_is_asked_for() -> None:
    """The published JSON stays as small as it was."""
    from support import case, options

    from ncclscope.pipeline import analyze

    report = analyze(case("sigkill").paths, options=options(), pack=shipped())
    assert report.timeline is UNSET
    assert report.job is UNSET
