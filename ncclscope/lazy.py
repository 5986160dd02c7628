"""Regular expressions that are compiled when they are first used: a run needs a few of many, and starts faster."""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["lazy"]


class _Lazy:
    """Stands for a compiled pattern; looks like one to whoever calls its methods."""

    def __init__(self, regex: str, flags: int) -> None:
        self._regex, self._flags = regex, flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(self._regex, self._flags)
        found = getattr(self._compiled, name)
        setattr(self, name, found)  # from now on no detour
        return found


def lazy(regex: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile(regex, flags)`, later."""
    return cast("re.Pattern[str]", _Lazy(regex, flags))
