"""How the input is handed over changes nothing in the report, and no input is too bad for one."""

from __future__ import annotations

import random
import re
import unicodedata
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import HOSTILE, chunks, log_bytes, log_lines
from support import CASES, LogCase, case, options, shipped

import ncclscope.pipeline as pipeline
from ncclscope.gate import AhoCorasickGate, HyperscanGate, PlainGate
from ncclscope.pipeline import analyze
from ncclscope.report import to_json
from ncclscope.reporters.terminal import render
from ncclscope.sources import discover

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ncclscope.report import Report
    from ncclscope.sources import Input, SourceProblem

# Logs of every kind: one stream and several, with kernel logs, dumps, tracebacks across lines and glued tags.
ONE = (
    "sigkill", "mpi-sigkill", "ray-segv", "tr-exit0-decoy", "noarch-226-eager", "coll-mismatch-detail",
)  # fmt: skip
SEVERAL = ("raise-bare", "ima", "cgroup-oom", "skip-collective", "w8-raise-tee", "mixed-nccl", "healthy-218-2node")
SMALL = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FUZZ = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def report_of(paths: object, **changes: object) -> str:
    return to_json(analyze(list(paths), options=options(**changes), pack=shipped()))  # type: ignore[call-overload]


def own_failures(report: Report) -> list[str]:
    """Warnings that a parser, a correlator or a rule of ours raised, as against notes on the input."""
    return [w for w in report.warnings if re.search(r"\b(parser|correlator|rule NS\d+) failed|could not be told", w)]


@SMALL
@given(data=st.data())
def test_order_of_input_files(data: st.DataObject) -> None:
    """Files named in another order give the same report, to the byte."""
    chosen = case(data.draw(st.sampled_from(SEVERAL)))
    order = data.draw(st.permutations(chosen.paths))
    assert report_of(order) == report_of(chosen.paths)


@pytest.mark.parametrize("repeated", [2, 3])
def test_a_file_named_twice_is_read_once(repeated: int) -> None:
    """A path given again, as it is or by another spelling, changes nothing."""
    chosen = case("raise-bare")
    plain = report_of(chosen.paths)
    assert report_of([*chosen.paths, *list(chosen.paths[:1]) * (repeated - 1)]) == plain
    other = chosen.paths[0].parent / ".." / chosen.name / chosen.paths[0].name
    again = analyze([*chosen.paths, other], options=options(), pack=shipped())
    assert len(again.inputs) == len(chosen.paths)


def cut(sizes: list[int]) -> Callable[..., tuple[list[Input], list[SourceProblem]]]:
    """`discover`, with every stream handed on in pieces of these sizes."""

    def found(paths: list[str], *, stdin: object = None) -> tuple[list[Input], list[SourceProblem]]:
        inputs, problems = discover(paths, stdin=None)
        del stdin
        for item in inputs:
            whole = b"".join(item.open([]))
            item.open = lambda notes, whole=whole: iter(chunks(whole, sizes))  # noqa: ARG005
        return inputs, problems

    return found


@SMALL
@given(
    name=st.sampled_from(ONE + SEVERAL),
    sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=6),
    gated=st.booleans(),
)
def test_splitting_of_a_stream(name: str, sizes: list[int], gated: bool) -> None:
    """Wherever a pipe cuts the stream, inside lines and characters too, the report is the same."""
    chosen = case(name)
    plain = report_of(chosen.paths)
    with patch.object(pipeline, "discover", cut(sizes)):
        assert report_of(chosen.paths, gated=gated) == plain


@pytest.mark.parametrize("name", ["sigkill", "preempt"])
def test_splitting_beyond_the_sample(name: str, tmp_path: Path) -> None:
    """Also where the failure stands far behind what the envelope was learned from, and silence before it counts."""
    noise = b"".join(b"2026-11-30 19:41:%02d,000 INFO train: step %d loss 0.5\n" % (i % 60, i) for i in range(14000))
    log = case(name).paths[0].read_bytes()
    end = log.index(b"Received 15 death signal") if name == "preempt" else 12000
    end = log.rindex(b"\n", 0, end) + 1
    path = tmp_path / "job.log"
    path.write_bytes(log[:end] + noise + b"a line of the program without a date\n" * 20 + log[end:])
    plain = report_of([path])
    for sizes in ([4096], [600_000, 13], [700_001, 1, 13]):
        with patch.object(pipeline, "discover", cut(sizes)):
            assert report_of([path]) == plain


@pytest.mark.parametrize("chosen", CASES, ids=lambda c: c.name)
def test_the_gate_only_saves_time(chosen: LogCase) -> None:
    """Every line looked at, the fast engine, and the plain search: one report."""
    plain = report_of(chosen.paths)
    assert report_of(chosen.paths, gated=False) == plain
    assert report_of(chosen.paths, make_gate=PlainGate) == plain


@FUZZ
@given(data=log_bytes())
def test_the_gate_on_any_bytes(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Also on text that nobody printed."""
    path = tmp_path_factory.mktemp("gate") / "x.log"
    path.write_bytes(data)
    assert report_of([path], gated=False) == report_of([path])


WANTED = (
    *((text, "") for text in ("NCCL WARN", "NCCL", "Xid", "rank", "ran", "aaaa", "exitcode", "Error", "\\x1b", "a.b*")),
    ("NCCL", "rank"), ("rank", "NCCL"), ("aaaa", "a"), ("Error", "\\"),
)  # fmt: skip


@FUZZ
@given(block=st.lists(log_lines(), max_size=12), data=st.binary(max_size=200))
@pytest.mark.parametrize("engine", [HyperscanGate, AhoCorasickGate])
def test_gates_find_the_same(engine: type[HyperscanGate | AhoCorasickGate], block: list[str], data: bytes) -> None:
    """The fast engines report exactly the lines of the plain search, and each occurrence of what stands alone."""
    try:
        fast = engine(WANTED)
    except ImportError:
        pytest.skip("not for this platform")
    text = "\n".join(block).encode("utf-8", "replace") + data
    found, plain = fast.hits(text), PlainGate(WANTED).hits(text)
    alone = {number for number, (_, also) in enumerate(WANTED) if not also}
    assert {hit for hit in found if hit[1] in alone} == {hit for hit in plain if hit[1] in alone}
    assert {(text.count(b"\n", 0, at), n) for at, n in found} == {(text.count(b"\n", 0, at), n) for at, n in plain}
    assert found == sorted(found, key=lambda hit: hit[0])


@settings(FUZZ, max_examples=250)
@given(
    data=log_bytes(), name=st.sampled_from(["x.log", "rank3.log", "dmesg.txt", "fr_rank_0", "x.gz", "x.tar", "e.json"])
)
def test_no_bytes_crash_it(data: bytes, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Any bytes under any name give a report that can be printed, and no part of ours fails on them."""
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(data)
    report = analyze([path], options=options(), pack=shipped())
    assert report.verdict in ("cause_found", "symptom_only", "no_failure", "unreadable")
    assert own_failures(report) == []
    to_json(report)
    render(report, to_terminal=True, width=40)


@settings(FUZZ, max_examples=60)
@given(
    names=st.lists(st.sampled_from([c.name for c in CASES if len(c.paths) == 1]), min_size=2, max_size=4),
    seed=st.integers(0, 2**32),
)
def test_mixed_logs_do_not_crash_it(names: list[str], seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Lines of several real logs thrown together, out of order, are still read to the end."""
    lines = [line for name in names for line in case(name).paths[0].read_bytes().split(b"\n")[-60:] if line]
    random.Random(seed).shuffle(lines)  # noqa: S311
    path = tmp_path_factory.mktemp("mix") / "all.log"
    path.write_bytes(b"\n".join(lines))
    report = analyze([path], options=options(), pack=shipped())
    assert own_failures(report) == []
    assert report.inputs[0].lines == len(lines)


OURS = re.compile(r"\x1b\[[0-9;]*m")


def steering(text: str) -> list[str]:
    """Characters that could steer a terminal or reorder text, our own colours aside."""
    return [c for c in OURS.sub("", text) if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")]


@FUZZ
@given(
    hostile=st.sampled_from(HOSTILE)
    | st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Co"]), min_size=1, max_size=3),
    at=st.integers(0, 100),
    width=st.sampled_from([20, 40, 80, 200]),
)
def test_log_text_cannot_steer_the_terminal(
    hostile: str, at: int, width: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever stands in an exception's message, a host or a path, only our own colours reach the terminal."""
    message = ("could not read the shard of the day" * 4)[:at] + hostile + " after all"
    text = (
        f'[rank1]: Traceback (most recent call last):\n[rank1]:   File "/w/{hostile}.py", line 8, in <module>\n'
        f"[rank1]:     main()\n[rank1]: ValueError: {message}\n"
    )
    path = tmp_path_factory.mktemp("hostile") / "job.log"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    report = analyze([path], options=options(), pack=shipped())
    for to_terminal in (True, False):
        assert steering(render(report, to_terminal=to_terminal, width=width)) == []
