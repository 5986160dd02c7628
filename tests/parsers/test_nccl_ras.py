"""What NCCL's RAS client prints of a running job, and RAS's own lines in a job's log."""

from __future__ import annotations

import pytest
from helpers import events_of, kinds_of, the_event
from nccl_ras_rows import CLIENT_ROWS, SILENT

from ncclscope.parsers import nccl

TABLE = """\
Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4       7-8        32        32   RUNNING  INCOMPLETE
    1         7         4         1         4        28      INIT      OK

Errors
======
"""


@pytest.mark.parametrize(("text", "kind", "fields"), CLIENT_ROWS)
def test_line_of_the_client_is_read_as_its_kind(text: str, kind: str, fields: dict[str, object]) -> None:
    event = the_event(nccl, kind, text)
    assert {name: event.get(name) for name in fields} == fields


@pytest.mark.parametrize(("text", "kind"), [row[:2] for row in CLIENT_ROWS])
def test_line_of_the_client_never_names_a_cause_and_is_one_event(text: str, kind: str) -> None:
    """Also cut anywhere: the report tells how ranks stand and never why."""
    assert [e.kind for e in events_of(nccl, text)] == [kind]
    for end in range(len(text)):
        for event in events_of(nccl, text[:end]):
            assert not event.get("cause")


@pytest.mark.parametrize("text", SILENT)
def test_neighbours_are_not_the_reports(text: str) -> None:
    assert not [kind for kind in kinds_of(nccl, text) if kind.startswith("ras.")]


def test_the_table_tells_size_state_and_errors_of_each_group() -> None:
    event = the_event(nccl, "ras.report", TABLE)
    assert event.get("sizes") == (32, 4)
    assert event.get("states") == ("RUNNING", "INIT")
    assert event.get("errors") == ("INCOMPLETE", "OK")


def test_a_table_that_is_cut_after_its_titles_has_no_groups() -> None:
    assert the_event(nccl, "ras.report", TABLE.split("\n")[0]).get("sizes") == ()


@pytest.mark.parametrize("filler", ["Rank 5 -- GPU 3 managed by process ", "#0-0 (a) ERROR ", " ranks reported A "])
def test_long_garbage_is_read_to_its_end(filler: str) -> None:
    events_of(nccl, (filler * (65536 // len(filler)))[:65536])
