"""Dumps are read as plain data, whatever is in them."""

from __future__ import annotations

import contextlib
import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncclscope.parsers.flight_recorder import DumpError, looks_like_dump, parse_dump

DUMPS = Path(__file__).parent.parent / "fixtures" / "flight_recorder"


def test_a_real_dump_has_its_entries_groups_and_version() -> None:
    """What PyTorch 2.11 wrote is understood field by field."""
    dump = parse_dump((DUMPS / "other-operation" / "fr_rank_1").read_bytes())
    last = next(e for e in dump.entries if e.seq == 11)
    assert dump.version == "2.10"
    assert dump.groups["0"] == ("default_pg", (0, 1))
    assert (last.op, last.seq, last.p2p) == ("nccl:_all_gather_base", 11, False)
    assert last.state == "completed"
    assert dump.entries[-1].state == "scheduled"
    assert last.frame is not None
    assert "train.py" in last.frame


def test_json_and_pickle_of_one_dump_say_the_same() -> None:
    """The JSON form (lists for tuples) gives the same entries."""
    raw = (DUMPS / "fewer" / "fr_rank_0").read_bytes()
    as_json = json.dumps(pickle.loads(raw)).encode()  # noqa: S301
    assert looks_like_dump(as_json[:4096], "fr_rank_0.json")
    assert [(e.op, e.seq, e.state) for e in parse_dump(as_json).entries] == [
        (e.op, e.seq, e.state) for e in parse_dump(raw).entries
    ]


class _Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return (print, ("never",))


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_pickle_that_calls_something_is_refused(protocol: int, capsys: pytest.CaptureFixture[str]) -> None:
    """No class and no function of a dump is ever looked up, in any protocol."""
    with pytest.raises(DumpError):
        parse_dump(pickle.dumps({"entries": [_Evil()]}, protocol=protocol))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80\x02", b"\x80\x02}", b"{}", b"[1, 2", b'{"entries": 3}', pickle.dumps(7), b"\x80\x02" + b"\xff" * 100],
)
def test_what_is_no_dump_says_so(data: bytes) -> None:
    """A cut, foreign or empty file is a DumpError with a reason, or has no entries; nothing else is raised."""
    with pytest.raises(DumpError, match=r"\w"):
        parse_dump(data)


def test_fields_of_the_wrong_type_are_left_out() -> None:
    """Every field is optional; a broken entry does not take the others with it."""
    raw = {
        "version": 3,
        "entries": [
            None,
            {"collective_seq_id": "x"},
            {"collective_seq_id": 4, "process_group": 7, "input_sizes": [["a", 2]], "frames": [1, {"filename": 5}]},
        ],
        "pg_config": {"0": {"ranks": "[0, 1]; import os"}, "1": 5},
    }
    dump = parse_dump(pickle.dumps(raw, protocol=2))
    assert [(e.seq, e.sizes) for e in dump.entries] == [(4, (((2,),), ()))]
    assert dump.groups["0"][1] == ()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_mutated_dumps_raise_nothing_but_dump_errors(data: st.DataObject) -> None:
    """Damage anywhere in a real dump ends in entries or in a DumpError."""
    raw = bytearray((DUMPS / "fewer" / "fr_rank_1").read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    with contextlib.suppress(DumpError):
        parse_dump(bytes(raw))
