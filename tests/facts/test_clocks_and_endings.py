"""Times compare only where their clocks do; silence counts only where the end is known."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from printed import nccl, start, xid
from support import of_kind, only, options, read_texts, write

from ncclscope.clocks import Answer, Stamp, before, format_stamp, parse_iso, stamp_of
from ncclscope.pipeline import read

if TYPE_CHECKING:
    from pathlib import Path

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN


def at(text: str, **more: object) -> Stamp:
    stamp = parse_iso(text, **more)  # type: ignore[arg-type]
    assert stamp is not None
    return stamp


BOOT = Stamp(120.0, clock="boot")
C10 = stamp_of(None, 11, 30, "19:42:11", "671442636")

COMPARED = {
    "same clock": (at("2026-11-30T19:42:11"), at("2026-11-30T19:42:12"), True, YES),
    "the other way": (at("2026-11-30T19:42:12"), at("2026-11-30T19:42:11"), True, NO),
    "equal": (at("2026-11-30T19:42:11"), at("2026-11-30T19:42:11"), True, UNKNOWN),
    "one has none": (at("2026-11-30T19:42:11"), None, True, UNKNOWN),
    "zones shown": (at("2026-11-30T20:42:11+01:00"), at("2026-11-30T19:42:12Z"), True, YES),
    "zones shown, later": (at("2026-11-30T19:42:11-05:00"), at("2026-11-30T19:42:12Z"), True, NO),
    "one zone unknown": (at("2026-11-30T19:42:11"), at("2026-11-30T23:42:12Z"), True, UNKNOWN),
    "one year unknown": (C10, at("2026-11-30T19:42:12"), True, UNKNOWN),
    "both years unknown": (C10, stamp_of(None, 11, 30, "19:42:12"), True, YES),
    "boot and wall": (BOOT, at("2026-11-30T19:42:12"), True, UNKNOWN),
    "boot and boot": (BOOT, Stamp(121.0, clock="boot"), True, YES),
    "boot of another host": (BOOT, Stamp(121.0, clock="boot"), False, UNKNOWN),
    "hosts within the skew": (at("2026-11-30T19:42:11Z"), at("2026-11-30T19:42:15Z"), False, UNKNOWN),
    "hosts beyond the skew": (at("2026-11-30T19:42:11Z"), at("2026-11-30T19:42:17Z"), False, YES),
}


@pytest.mark.parametrize("name", COMPARED)
def test_before(name: str) -> None:
    """Yes and no only where both clocks allow it; anything else is unknown."""
    a, b, same_host, expected = COMPARED[name]
    assert before(a, b, same_host=same_host) is expected
    mirrored = {YES: NO, NO: YES, UNKNOWN: UNKNOWN}[expected]
    assert before(b, a, same_host=same_host) is mirrored


@pytest.mark.parametrize("text", ["2026-02-30T25:00:00", "2026-13-01T00:00:00", "0000-01-01T00:00:00", "no time"])
def test_no_time_is_made_up(text: str) -> None:
    """What is no valid time gives none."""
    assert parse_iso(text) is None or format_stamp(parse_iso(text)) is not None  # type: ignore[arg-type]
    if "13-01" in text or "25:00" in text or "0000" in text:
        assert parse_iso(text) is None


def test_a_time_is_shown_with_its_zone_or_unknown() -> None:
    """What the report prints is what the log showed: no zone is added, none taken away."""
    assert format_stamp(at("2026-11-30T19:53:21.671442")) == ("2026-11-30T19:53:21.671442", "unknown")
    assert format_stamp(at("2026-11-30 19:53:21,671-05:00")) == ("2026-11-30T19:53:21.671000", "-05:00")
    assert format_stamp(BOOT) is None
    assert C10 is not None
    assert format_stamp(C10) is None


def test_lines_without_a_year_take_that_of_the_others(tmp_path: Path) -> None:
    """c10 prints no year; where other lines of the input do, its times are shown with it."""
    c10 = (
        "[rank0]:[E1130 19:42:11.671442636 ProcessGroupNCCL.cpp:689] [Rank 0] Watchdog caught collective "
        "operation timeout: "
        "WorkNCCL(SeqNum=17, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=20000) ran for 20083 "
        "milliseconds before "
        "timing out.\n"
    )
    dated = read_texts(tmp_path / "a", {"job.log": "2026-11-30 19:41:08,973 INFO train: step 0\n" + c10})
    shown = only(dated, "torch.watchdog_timeout").evidence[0]
    assert shown.time == "2026-11-30T19:42:11.671443"  # type: ignore[union-attr]
    bare = read_texts(tmp_path / "b", {"job.log": c10})
    assert not isinstance(only(bare, "torch.watchdog_timeout").evidence[0].time, str)  # type: ignore[union-attr]


WAITING = (
    "2026-11-30 19:41:08,973 INFO train: rank 0/2 starting init_process_group\n"
    + nccl("node01", 653, "NCCL version 2.28.9+cuda13.0")
    + nccl("node01", 653, "Comm config Blocking set to 1")
    + start("node01", 653, 0, 2)
)
STOPPED = (
    "W1130 19:44:58.602000 640 torch/distributed/elastic/agent/server/api.py:739] Received 15 death signal, "
    "shutting down "
    "workers\n"
)


def test_silence_needs_an_end(tmp_path: Path) -> None:
    """A log that just stops may have been cut: a missing rank is then not checked, and no end is known."""
    seen = read_texts(tmp_path, {"job.log": WAITING})
    stuck = only(seen, "comm.stuck")
    assert stuck.fields["known_end"] is False
    assert [e.result for e in stuck.evidence if hasattr(e, "result")] == ["not_checked"]


def test_silence_before_a_signal_counts(tmp_path: Path) -> None:
    """A signal to the launcher minutes after the last line: the silence is measured, the missing rank not found."""
    seen = read_texts(tmp_path, {"job.log": WAITING + STOPPED})
    stuck = only(seen, "comm.stuck")
    assert stuck.fields["known_end"] is True
    assert stuck.fields["silent_s"] == pytest.approx(230, abs=1)
    assert (stuck.ranks, stuck.fields["missing"]) == ((1,), (1,))
    assert [e.result for e in stuck.evidence if hasattr(e, "result")] == ["not_found"]


def test_as_of_measures_a_job_that_still_hangs(tmp_path: Path) -> None:
    """With the time of looking given, an open log is silent for as long as that."""
    looked = parse_iso("2026-11-30T19:55:08.973Z")
    assert looked is not None
    seen = read_texts(tmp_path, {"job.log": WAITING}, as_of=looked.utc)
    assert seen.facts.ending.still
    assert seen.facts.ending.silent_s == pytest.approx(14 * 60, abs=1)
    assert only(seen, "comm.stuck").fields["known_end"] is True


def test_the_last_write_of_a_file_ends_it(tmp_path: Path) -> None:
    """A collector's zoned times against the file's last write: silent so far, without being told."""
    wrapped = "".join(f"2026-11-30T19:41:08.973Z stdout F {line}\n" for line in WAITING.splitlines())
    (path,) = write(tmp_path, {"job.log": wrapped})
    last = parse_iso("2026-11-30T19:51:08.973Z")
    assert last is not None
    assert last.utc is not None
    os.utime(path, (last.utc, last.utc))
    seen = read([path], options=options())
    assert seen.facts.ending.still
    assert seen.facts.ending.silent_s == pytest.approx(600, abs=1)


def test_a_file_written_before_its_last_line_tells_nothing(tmp_path: Path) -> None:
    """A clock that runs backwards measures no silence."""
    wrapped = "".join(f"2026-11-30T19:41:08.973Z stdout F {line}\n" for line in WAITING.splitlines())
    (path,) = write(tmp_path, {"job.log": wrapped})
    os.utime(path, (1e9, 1e9))
    seen = read([path], options=options())
    assert seen.facts.ending.how == "open"
    assert not seen.facts.ending.known


def test_kernel_times_since_boot_end_nothing(tmp_path: Path) -> None:
    """Seconds since boot are no time of day: a kernel log alone measures no silence."""
    seen = read_texts(
        tmp_path, {"job.log": WAITING, "dmesg.txt": xid("0000:00:06", 43, "pid=653, name=python")}, as_of=1e12
    )
    assert only(seen, "kernel.xid").time == Stamp(100.0, clock="boot")
    assert of_kind(seen, "job.end")
