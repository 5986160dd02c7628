"""A headless Chromium for pages on disk; without one the tests here are skipped and say why."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.append(str(Path(__file__).parent.parent / "reporters"))

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


def _chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next((found for name in names if (found := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The browser, one for all tests."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `pip install playwright`")
    path = _chromium()
    if path is None:
        pytest.skip("no Chromium on PATH: install it (Debian: `apt-get install chromium`) or set CHROMIUM")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield started
        started.close()
