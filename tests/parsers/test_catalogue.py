"""Every message that has a meaning, as its program prints it: recognised, with its fields, and with the class it names.

The tables beside this file hold one example line of each wording of NCCL, PyTorch and the launchers around it, and the
kernel with its tools. Columns: id, kind of the event ("-": nothing is recognised), its fields as JSON, the classes that
the line alone names ("-": none), a note, and the text ("\\n" between lines). A line names a class when in four of five
jobs that fail with it the cause is of that class; where two or three together make the four, each is right. An errno or
event that the example fills in decides nothing. The note tells why a line without an event needs none, or why a class
is not told.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import one_gate, shipped, write

from ncclscope.facts import FactOptions, build_facts
from ncclscope.index import PatternIndex
from ncclscope.knowledge.causes import CAUSES
from ncclscope.parsers import BLOCKS, PATTERNS
from ncclscope.pipeline import Read, judge, raw_patterns
from ncclscope.reader import read_input
from ncclscope.sources import discover
from ncclscope.store import EventStore

if TYPE_CHECKING:
    from ncclscope.report import Report

TABLES = Path(__file__).parent / "catalogue"
# The share of lines that name a cause for which a triage of the line alone must say it.
SHARE = 0.95


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    id: str
    kind: str
    fields: dict[str, Any]
    classes: frozenset[str]
    note: str
    text: str


def _rows(table: str) -> list[Row]:
    rows = []
    for line in (TABLES / table).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        ident, kind, fields, classes, note, text = line.split("\t")
        named = frozenset() if classes == "-" else frozenset(classes.split("|"))
        rows.append(Row(f"{table[:-4]}:{ident}", kind, json.loads(fields), named, note, text.replace("\\n", "\n")))
    return rows


ROWS = [row for table in sorted(p.name for p in TABLES.glob("*.tsv")) for row in _rows(table)]
CLASSED = [row for row in ROWS if row.classes]


@functools.lru_cache(maxsize=1)
def _index() -> PatternIndex:
    return PatternIndex([*PATTERNS, *raw_patterns(shipped())], BLOCKS, one_gate)


def _seen(row: Row, directory: Path) -> Read:
    (source,), _ = discover([str(path) for path in write(directory, {"job.log": row.text + "\n"})])
    store = EventStore()
    read_input(source, _index(), store, lambda warning: pytest.fail(warning))
    return Read(store, build_facts(store, FactOptions(), lambda warning: pytest.fail(warning)), (), ())


def _report(row: Row, directory: Path) -> Report:
    return judge(_seen(row, directory), shipped())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_line_is_recognised_with_its_fields(row: Row, tmp_path: Path) -> None:
    events = _seen(row, tmp_path).store.events()
    if row.kind == "-":
        assert not events
        assert row.note, "a line that is not recognised needs a reason"
        return
    told = [{name: value for name, value in e.fields.items() if name in row.fields} for e in events if e.kind == row.kind]
    assert row.fields in [json.loads(json.dumps(fields)) for fields in told]


def test_lines_that_name_a_cause_get_its_class(tmp_path: Path) -> None:
    """The few that do not are known, each with its reason; a reason that no longer holds has to go."""
    missed = set()
    for number, row in enumerate(CLASSED):
        findings = _report(row, tmp_path / str(number)).findings
        if not findings or findings[0].category not in row.classes:
            missed.add(row.id)
    assert missed == {row.id for row in CLASSED if row.note}
    assert len(missed) <= (1 - SHARE) * len(CLASSED)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.classes], ids=lambda row: row.id)
def test_a_line_that_names_no_cause_confirms_none(row: Row, tmp_path: Path) -> None:
    findings = _report(row, tmp_path).findings
    assert [f.rule for f in findings if f.role == "root_cause" and f.confidence == "confirmed"] == []


def test_tables_are_whole() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS) > 1900
    assert {name for row in ROWS for name in row.classes} <= set(CAUSES)
