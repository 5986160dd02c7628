"""`ncclscope scan` as a shell sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import case

from ncclscope.cli import main
from ncclscope.engine.pack import PackError


def test_broken_rules_end_a_scan_before_any_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else every job would be kept as unreadable, and not be read again once the rules are whole."""

    def broken(*_: Any, **__: Any) -> None:
        raise PackError("rules/x.yml:19: `blame`: expected text, got a list")

    monkeypatch.setattr("ncclscope.engine.pack.load_pack", broken)
    store = tmp_path / "all.db"
    with pytest.raises(SystemExit) as stop:
        main(["scan", "--store", str(store), str(case("sigkill").paths[0].parent)])
    assert stop.value.code == 2
    assert "rules/x.yml:19" in capsys.readouterr().err
    assert not store.exists()
