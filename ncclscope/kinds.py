"""The dictionary of everything that a rule can select: event kinds of the parsers and derived facts, with fields."""

from __future__ import annotations

import re
from collections import defaultdict

from ncclscope.facts.kinds import FACTS
from ncclscope.parsers import BLOCKS, PATTERNS

__all__ = ["kinds"]


def kinds() -> dict[str, frozenset[str]]:
    """Field names by kind: named groups of a pattern, its constants, and what its code adds."""
    fields: dict[str, set[str]] = defaultdict(set)
    for pattern in PATTERNS:
        fields[pattern.kind] |= set(re.compile(pattern.regex).groupindex) | set(pattern.fields) | set(pattern.adds)
    for block in BLOCKS:
        for kind, names in block.kinds.items():
            fields[kind] |= set(names)
    for kind, (_, names) in FACTS.items():
        fields[kind] |= {*names, "why"}
    return {kind: frozenset(names) for kind, names in sorted(fields.items())}
