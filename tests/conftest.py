"""What all tests share: a cache of their own, and the shipped rules loaded once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ncclscope.engine.pack import Pack, load_pack

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Prepared rules go to a directory of the run, in subprocesses too, and never to the user's cache."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture(scope="session")
def pack(_own_cache: None) -> Pack:
    """The rules of this checkout."""
    return load_pack()
