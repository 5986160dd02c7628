"""The benchmarks' corpus generator, for tests."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from pathlib import Path
from types import ModuleType


def _load() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "scan_corpus.py"
    spec = importlib.util.spec_from_file_location("scan_corpus", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scan_corpus"] = module
    spec.loader.exec_module(module)
    return module


make_corpus = _load().make_corpus

_TABLES = ("jobs", "findings", "culprits", "evidence", "inputs", "hosts", "versions", "xids", "unexplained")
# What may differ between a directory and a bucket with the same files.
_OF_PLACE = frozenset({"id", "job", "root", "fingerprint", "mtime"})


def contents(store: Path) -> dict[str, list[str]]:
    """Everything that a store says, apart from where its files lie and from the reports' own paths."""
    db = sqlite3.connect(store)
    names = dict(db.execute("SELECT id, name FROM jobs"))
    found = {}
    for table in _TABLES:
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        kept = [i for i, name in enumerate(columns) if name not in _OF_PLACE and name != "report"]
        rows = db.execute(f"SELECT * FROM {table}")  # noqa: S608
        found[table] = sorted(repr([names[row[0]], *(row[i] for i in kept)]) for row in rows)
    db.close()
    return found
