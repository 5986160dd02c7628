"""Labelled logs and short ways to run them; tests import it as `from support import CASES`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ncclscope.engine.pack import Pack, load_pack
from ncclscope.gate import Gate, Wanted, make_gate
from ncclscope.pipeline import Options, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ncclscope.observation import Observation
    from ncclscope.pipeline import Read
    from ncclscope.report import Report

FIXTURES = Path(__file__).parent / "fixtures"
_LABELS = ("expected.yaml", "NOTES.md")


@dataclass(frozen=True)
class LogCase:
    """A directory of fixtures/cases: its input files and what a triage of all of them has to say."""

    name: str
    paths: tuple[Path, ...]
    expected: Mapping[str, Any]

    @property
    def healthy(self) -> bool:
        return self.expected["verdict"] == "no_failure"


def _load(directory: Path) -> LogCase:
    files = sorted(p for p in directory.rglob("*") if p.is_file() and p.name not in _LABELS)
    expected = yaml.safe_load((directory / "expected.yaml").read_text(encoding="utf-8"))
    return LogCase(directory.name, tuple(files), expected)


CASES = tuple(_load(d) for d in sorted((FIXTURES / "cases").iterdir()) if d.is_dir())
HEALTHY = tuple(case for case in CASES if case.healthy)


def case(name: str) -> LogCase:
    """The labelled log of this name."""
    return next(c for c in CASES if c.name == name)


@functools.lru_cache(maxsize=4)
def _gate(wanted: tuple[Wanted, ...]) -> Gate:
    return make_gate(wanted)


@functools.lru_cache(maxsize=1)
def shipped() -> Pack:
    """The rules of this checkout, where a fixture would be printed with every failing example."""
    return load_pack()


def one_gate(wanted: Sequence[Wanted]) -> Gate:
    """The installation's own gate, built once for all tests that do not compare gates."""
    return _gate(tuple(wanted))


def options(**changes: Any) -> Options:
    """Options of a triage that share one gate."""
    return Options(**{"make_gate": one_gate, **changes})


def write(directory: Path, files: Mapping[str, str | bytes]) -> list[Path]:
    """Writes `files` below `directory` and returns their paths."""
    paths = []
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        paths.append(path)
    return paths


def read_texts(directory: Path, files: Mapping[str, str], **changes: Any) -> Read:
    """What is read and joined of `files`, before any rule."""
    return read(write(directory, files), options=options(**changes))


def of_kind(seen: Read, kind: str) -> list[Observation]:
    """The observations of one kind."""
    return [o for o in seen.facts.observations if o.kind == kind]


def only(seen: Read, kind: str) -> Observation:
    """The one observation of this kind."""
    found = of_kind(seen, kind)
    assert len(found) == 1, [o.kind for o in seen.facts.observations]
    return found[0]


def answer(report: Report) -> tuple[object, ...]:
    """What must not depend on how the lines were delivered: verdict, class and ranks of the first finding."""
    first = report.findings[0] if report.findings else None
    if first is None:
        return (report.verdict,)
    return report.verdict, first.role, first.category, tuple(first.culprit.ranks)
