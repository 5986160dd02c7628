"""Whole streams: what is learned, what is split, joined and cut, and that a wrapper changes nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ncclscope.envelopes import Unwrapper
from ncclscope.envelopes.unwrapper import CUT, MAX_BODY

from .helpers import said, unwrap_all

if TYPE_CHECKING:
    from collections.abc import Callable

# A job as its ranks print it: banner, NCCL, Python logging, a traceback, c10, a message over several lines.
JOB = [
    "W1130 20:38:24.637000 13284 torch/distributed/run.py:874] *****",
    "NCCL version 2.26.2+cuda12.4",
    "node-01:100:100 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>",
    "node-01:101:101 [1] NCCL INFO cudaDriverVersion 12040",
    "2026-11-30 20:38:25,576 INFO train: step 0 loss 2.31",
    "",
    "[2026-11-30 20:38:26] node-01:100:120 [0] misc/socket.cc:484 NCCL WARN Connection closed",
    "node-01:100:120 [0] NCCL INFO misc/socket.cc:47 -> 6",
    "[rank1]: Traceback (most recent call last):",
    '[rank1]:   File "/workspace/train.py", line 12, in <module>',
    "[rank1]:     main()",
    "[rank1]: ValueError: bad batch",
    "[rank0]:[E1130 20:38:27.820124353 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective",
    "Exception raised from run at /pytorch/torch/csrc/ProcessGroupNCCL.cpp:1 (most recent call first):",
    "frame #0: c10::Error::Error(c10::SourceLocation) + 0x96",
    "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog thread terminated",
    "Epoch 1:  10%|#         | 10/100 [00:01<00:09,  9.50it/s]",
    "{'loss': 0.5}",
    "[Rank 3] kept",
]


def _iso(second: int) -> str:
    return f"2026-11-30T20:38:{24 + second // 10:02d}.{second % 10}40000000Z"


WRAPPERS: dict[str, Callable[[int, str], str]] = {
    "kubectl": lambda i, line: f"[pod/job-0/trainer] {_iso(i)} {line}",
    "cri": lambda i, line: f"{_iso(i)} stdout F {line}",
    "docker json": lambda i, line: json.dumps({"log": line + "\n", "stream": "stderr", "time": _iso(i)}),
    "srun": lambda _, line: f"3: {line}",
    "mpirun": lambda _, line: f"[1,3]<stdout>:{line}",
    "crlf": lambda _, line: f"{line}\r",
    "tee": lambda _, line: f"[default3]:{line}",
    "pdsh": lambda _, line: f"node-07: {line}",
    "stern": lambda _, line: f"job-worker-2 pytorch {line}",
    "compose": lambda _, line: f"trainer-1  | {line}",
    "ray": lambda _, line: f"\x1b[36m(RayTrainWorker pid=12)\x1b[0m {line}",
    "srun in kubectl": lambda i, line: f"[pod/job-0/trainer] {_iso(i)} 3: {line}",
    "tee in mpirun": lambda _, line: f"[1,3]<stderr>:[default1]:{line}",
}
SAME = ("rank", "tid", "device", "logger", "level", "code")


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_changes_neither_the_bodies_nor_what_the_ranks_said(name: str) -> None:
    plain = unwrap_all(JOB)
    wrapped = unwrap_all([WRAPPERS[name](i, line) for i, line in enumerate(JOB)])
    assert [line.text for line in wrapped] == [line.text for line in plain]
    for inner, outer in zip(plain, wrapped, strict=True):
        assert [getattr(inner.env, f) for f in SAME] == [getattr(outer.env, f) for f in SAME]
        assert inner.ref == outer.ref


@pytest.mark.parametrize(
    ("name", "voice"),
    [
        ("kubectl", ("job-0", "trainer", None, None, None)),
        ("srun", (None, None, None, 3, None)),
        ("tee in mpirun", (None, None, None, 3, 1)),
        ("ray", (None, None, "RayTrainWorker pid=12", None, None)),
    ],
)
def test_a_wrapper_names_the_voice(name: str, voice: tuple[object, ...]) -> None:
    wrapped = unwrap_all([WRAPPERS[name](i, line) for i, line in enumerate(JOB)])
    assert {line.env.voice[:5] for line in wrapped} == {voice}


def test_learning_does_not_depend_on_how_the_sample_is_handed_over() -> None:
    raw = [WRAPPERS["srun in kubectl"](i, line).encode() for i, line in enumerate(JOB)]
    whole, pieces = Unwrapper("a"), Unwrapper("a")
    whole.learn(raw)
    for i in range(0, len(raw), 3):
        pieces.learn(raw[i : i + 3])
    assert whole.describe() == pieces.describe()
    assert [whole.unwrap(line, 1) for line in raw] == [pieces.unwrap(line, 1) for line in raw]


def test_a_banner_without_prefixes_does_not_hide_them() -> None:
    banner = [f"Loading module {n}" for n in range(80)]
    lines = [f"{n % 4}: step {n}" for n in range(60)]
    assert unwrap_all([*banner, *lines])[-1].env.task == 3


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: text",
        "3: foo",
        "[3] text",
        "[3]: text",
        "[3, 4] text",
        "RuntimeError: CUDA error: out of memory",
        "some-job-3 done",
        "trainer[3]: text",
        "Error: 3",
        "loss | 2.5",
        "12:34:56 text",
        "[PG ID 0 PG GUID 0(default_pg) Rank 3] text",
        "[Rank 3] text",
        "[c10d] text",
        "[0]:",
        "  what():  text",
        "frame #0: c10::Error::Error(c10::SourceLocation) + 0x96",
        "{'loss': 0.5}",
        "[{'loss': 0.5}]",
        '{"loss": 0.5}',
        "INFO NET/IB : No device found.",
        "foo.py:12: UserWarning: text",
        "(3 of 4) text",
        "Original Traceback (most recent call last):",
        "May be worth a look: text",
    ],
)
@pytest.mark.parametrize("learn", [False, True])
def test_a_single_line_that_looks_like_a_prefix_stays_whole(line: str, learn: bool) -> None:
    (found,) = unwrap_all([line], learn=learn)
    assert (found.text, said(found.env)) == (line, {})


@pytest.mark.parametrize("line", ["ValueError: text", "RuntimeError: text", "srun: error: text", "frame #0: x + 0x96"])
def test_repeated_messages_are_no_hosts(line: str) -> None:
    for found in unwrap_all([line] * 5):
        assert (found.text, said(found.env)) == (line, {})


def test_a_host_counts_only_in_a_form_that_was_seen() -> None:
    lines = [f"node-{n % 4:02d}: step {n}" for n in range(40)] + ["GPU-3: text", "node-63: text"]
    assert [line.env.host for line in unwrap_all(lines)[-2:]] == [None, "node-63"]


def test_a_host_is_learned_from_any_of_its_lines() -> None:
    """A tag that is no prefix hides the host in one line, which says nothing of the others."""
    tagged = "[step 5] node-00:631:631 [0] NCCL INFO x"
    lines = [tagged, *["step"] * 150, tagged.removeprefix("[step 5] "), *["step"] * 300]
    unwrapper = Unwrapper("in.log")
    unwrapper.learn([line.encode() for line in lines])
    (glued,) = unwrapper.unwrap(b"0.1node-00:632:901 [1] NCCL INFO y", 453)
    assert glued.env.host == "node-00"


def test_a_line_cut_at_its_end_hides_no_host() -> None:
    lines = [*["node-00:631:631 [0] NCCL INFO x"] * 200, "node-00:631:631 [0] NCCL IN"]
    unwrapper = Unwrapper("in.log")
    unwrapper.learn([line.encode() for line in lines])
    (glued,) = unwrapper.unwrap(b"0.1node-00:632:901 [1] NCCL INFO y", 453)
    assert glued.env.host == "node-00"


_PREFIX = b"node-01:100:100 [0] NCCL INFO "


@pytest.mark.parametrize(
    ("before", "line"),
    [
        (_PREFIX + b"x", _PREFIX + b"\rChannel 00/0 : 0[0] -> 1[1]"),
        (_PREFIX + b"x", _PREFIX + b"\x1b[0m\rChannel 00/0 : 0[0] -> 1[1]"),
        (_PREFIX + b"x", _PREFIX + b"2026-05-26T12:34:56.789Z Connected all rings"),
        (_PREFIX + b"x", _PREFIX + b"x " + _PREFIX + b"y"),
        (_PREFIX + b"x", _PREFIX + b"x\r"),
        (_PREFIX + b"x", _PREFIX + b'"message": "boom"'),
        (_PREFIX + b"x", _PREFIX + b'{"message": "boom"}'),
        (
            b"2026-05-26T12:34:56.123456789Z 0: " + _PREFIX + b"x",
            b"2026-05-26T12:34:56.123456+02:00 0: " + _PREFIX + b"x",
        ),
        (
            b'{"log":"' + _PREFIX + b"cut",
            b'{"log":"' + _PREFIX + b'x\\n","stream":"stderr","time":"2026-05-26T12:34:56.7Z"}',
        ),
    ],
)
def test_a_prefix_that_came_before_changes_nothing(before: bytes, line: bytes) -> None:
    """What stands behind it is taken apart as behind a new one."""
    known = Unwrapper("a.log")
    known.unwrap(before, 1)
    assert known.unwrap(line, 2) == Unwrapper("a.log").unwrap(line, 2)


def test_progress_bars_are_split_and_keep_the_outer_identity() -> None:
    bar = "[pod/a/b] \r  5%|# | 5/100\r 10%|# | 10/100 [00:01<00:09,  9.50it/s]"
    bar += "[rank1]: Traceback (most recent call last):\r"
    lines = unwrap_all([bar])
    assert [line.text for line in lines] == [
        "  5%|# | 5/100",
        " 10%|# | 10/100 [00:01<00:09,  9.50it/s]",
        "Traceback (most recent call last):",
    ]
    assert [(line.env.pod, line.env.rank) for line in lines] == [("a", None), ("a", None), ("a", 1)]


def test_lines_glued_together_are_cut_at_every_known_start() -> None:
    glued = (
        "step 5 loss 2.3162node-01:12:13 [0] NCCL INFO one node-01:12:14 [1] misc/shm.cc:8 NCCL WARN two"
        "[rank3]:[E526 12:34:56.123456789 ProcessGroupNCCL.cpp:616] three[rank3]: four"
    )
    lines = unwrap_all(["node-01:12:13 [0] NCCL INFO start", glued])[1:]
    assert [line.text.strip() for line in lines] == ["step 5 loss 2.3162", "one", "two", "three", "four"]
    assert [line.env.logger for line in lines] == [None, "nccl", "nccl", "c10", None]
    assert [line.env.host for line in lines] == [None, "node-01", "node-01", None, None]
    assert [line.env.rank for line in lines] == [None, None, None, 3, 3]


def test_a_warn_without_its_host_is_found_behind_other_text() -> None:
    head, warn = unwrap_all(["step 5 register_mr:544 NCCL WARN NET/OFI text"], learn=False)
    assert (head.text, warn.text, warn.env.level, warn.env.code) == (
        "step 5",
        "NET/OFI text",
        "WARN",
        "register_mr:544",
    )


def test_a_text_cut_by_its_own_tag_is_joined() -> None:
    line = "[1,1]<stderr>:Fatal Python error: [1,1]<stderr>:Segmentation fault"
    (found,) = unwrap_all([line])
    assert (found.text, found.env.task) == ("Fatal Python error: Segmentation fault", 1)
    unwrapper = Unwrapper("a")
    unwrapper.learn([line.encode()])
    assert unwrapper.splits_text


def test_several_tags_in_a_line_are_several_lines() -> None:
    line = "[1,2]<stdout>:rank 2 up[1,1]<stdout>:rank 1 up[1,0]<stdout>:[rank0]: x[1,2]<stdout>:"
    lines = unwrap_all([line])
    assert [(one.env.task, one.env.rank, one.text) for one in lines] == [
        (2, None, "rank 2 up"),
        (1, None, "rank 1 up"),
        (0, 0, "x"),
    ]


def test_tee_tags_in_mid_line_are_split() -> None:
    lines = unwrap_all(["[default0]:abc[default1]:[rank1]: x[default0]:def"])
    assert [(one.env.local_rank, one.env.rank, one.text) for one in lines] == [
        (0, None, "abcdef"),
        (1, 1, "x"),
    ]


def test_partial_cri_records_of_both_streams_are_joined() -> None:
    lines = [
        "2026-05-26T12:34:56.100000000Z stdout P NCCL WARN Call to conn",
        "2026-05-26T12:34:56.100000001Z stderr P [rank1]: Value",
        "2026-05-26T12:34:56.100000002Z stdout F ect failed",
        "2026-05-26T12:34:56.100000003Z stderr F Error: x",
        "2026-05-26T12:34:56.100000004Z stdout F after",
    ]
    found = unwrap_all(lines)
    assert [(line.text, line.ref.line) for line in found] == [
        ("Call to connect failed", 1),
        ("ValueError: x", 2),
        ("after", 5),
    ]
    assert [line.env.rank for line in found] == [None, 1, None]


def test_a_partial_record_at_the_end_is_not_lost() -> None:
    assert unwrap_all(["2026-05-26T12:34:56.1Z stdout P [rank1]: no end"])[0].text == "no end"


def test_partial_docker_records_are_joined() -> None:
    text = "x" * 16_380 + " named symbol not found"
    parts = [text[:16_384], text[16_384:] + "\n"]
    lines = [
        json.dumps({"log": p, "stream": "stderr", "time": "2026-05-26T12:34:56.1Z"}, separators=(",", ":"))
        for p in parts
    ]
    assert [line.text for line in unwrap_all(lines)] == [text]


@pytest.mark.parametrize(
    ("line", "splits"),
    [
        ('{"log":"plain [rank0]: text\\n","stream":"stderr","time":"2026-05-26T12:34:56.1Z"}', False),
        ('{"log":"\\u003cunknown\\u003e \\u0026 \\"q\\" \\u00e9\\n","stream":"stderr","time":"x"}', False),
        ('{"message":"misc\\/socket.cc:484 NCCL WARN"}', True),
        ('{"message":"can\\u0027t"}', True),
        ('{"__REALTIME_TIMESTAMP":"1790000000123456","MESSAGE":"text"}', True),
        ("2026-05-26T12:34:56.1Z stdout P text", True),
        ("2026-05-26T12:34:56.1Z stdout F text", False),
        ("[1,1]<stderr>:text", False),
        ("plain text", False),
    ],
)
def test_splits_text_says_when_a_byte_search_would_miss_text(line: str, splits: bool) -> None:
    unwrapper = Unwrapper("a")
    unwrapper.learn([line.encode()])
    assert unwrapper.splits_text is splits


def test_a_record_of_many_events_gives_all_of_them() -> None:
    events = {"events": [{"timestamp": 1779798896123, "message": "[rank0]: a"}, {"timestamp": 1, "message": "b"}]}
    assert [line.text for line in unwrap_all([json.dumps(events)])] == ["a", "b"]
    array = [{"textPayload": "c\nd"}, {"textPayload": "e"}]
    assert [line.text for line in unwrap_all([json.dumps(array)])] == ["c", "d", "e"]


def test_a_record_that_was_cut_still_gives_its_text() -> None:
    assert unwrap_all(['{"log":"[rank0]: some te'])[0].text == "some te"


def test_a_journal_export_gives_one_line_a_record() -> None:
    lines = [
        "__CURSOR=s=1",
        "__REALTIME_TIMESTAMP=1790000000123456",
        "MESSAGE=NVRM: Xid text",
        "_TRANSPORT=kernel",
        "_HOSTNAME=node-02",
        "",
        "__CURSOR=s=2",
        "MESSAGE",
        b"\x04\0\0\0\0\0\0\0last",
    ]
    first, last = unwrap_all(lines)
    assert (first.text, first.ref.line, said(first.env)) == (
        "NVRM: Xid text",
        3,
        {"host": "node-02", "logger": "kernel"},
    )
    assert last.text == "last"


def test_a_long_body_is_cut_and_says_so() -> None:
    (line,) = unwrap_all(["[rank0]: " + "x" * 200_000])
    assert len(line.text) == MAX_BODY
    assert line.env.layers[-1] == CUT


@pytest.mark.parametrize(
    ("lines", "chain"),
    [
        (["text"], "plain"),
        ([WRAPPERS["kubectl"](i, JOB[12]) for i in range(3)], "kubectl --prefix > time > [rankN]: > c10"),
        ([WRAPPERS["srun"](i, JOB[2]) for i in range(3)], "srun --label > NCCL"),
        ([WRAPPERS["docker json"](i, JOB[0]) for i in range(3)], "docker json > torch logger"),
    ],
)
def test_describe_names_the_layers_from_the_outside_in(lines: list[str], chain: str) -> None:
    unwrapper = Unwrapper("a")
    unwrapper.learn([line.encode() for line in lines])
    assert unwrapper.describe() == chain


def test_no_line_keeps_a_control_character() -> None:
    hostile = "[rank0]: a\x1b]0;title\x07b\x1b[31mred\u202e\x9b1m\x00\x08 \ttab"
    (line,) = unwrap_all([hostile])
    assert all(c.isprintable() or c == "\t" for c in line.text)
    escaped = json.dumps({"log": hostile + "\ud800\n", "stream": "stderr", "time": "x"})
    (line,) = unwrap_all([escaped])
    assert all(c.isprintable() or c == "\t" for c in line.text)


def test_learning_again_does_not_lose_a_text_that_goes_on() -> None:
    start = b"2026-05-26T12:34:56.1Z stdout P [rank1]: Value"
    end = b"2026-05-26T12:34:56.2Z stdout F Error: x"
    unwrapper = Unwrapper("a")
    unwrapper.learn([start])
    assert unwrapper.unwrap(start, 1) == []
    unwrapper.learn([end])
    assert [line.text for line in unwrapper.unwrap(end, 2)] == ["ValueError: x"]
