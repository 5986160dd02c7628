"""Pieces that several PyTorch parsers share: the process-group tag, rank lists, and who is quoting whom."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ncclscope.model import Line, Value

__all__ = ["ADDED", "is_quote", "numbers", "ranks_of", "refine_with", "tag_of"]

# [PG 1 Rank 0] (2.3), [PG 0 (default_pg) Rank 3] (2.4), [PG ID 2 PG GUID 9 Rank 4] and
# [PG ID 0 PG GUID 0(default_pg) Rank 1] (2.5 and later)
_PG_TAG = lazy(
    r"\[PG (?:ID )?(?P<pg_id>\d+)(?: PG GUID (?P<pg_guid>[^\s()\]]+))? ?(?:\((?P<pg_desc>[^)]*)\))? ?"
    r"Rank (?P<rank>\d+)\]"
)
# [Rank 3] on lines about one piece of work, all versions
_RANK_TAG = lazy(r"\[Rank (?P<rank>\d+)\]")

# The same sentence comes again inside the exception that ends the watchdog, in what() and in later errors.
_QUOTES = (
    "terminated with exception:",
    "what():",
    "Original reason for failure was:",
    "error set by ProcessGroupNCCL",
)

# The fields that tag_of may add.
ADDED = ("rank", "rank_certain", "pg_rank", "pg_id", "pg_guid", "pg_desc", "quoted")


def is_quote(text: str, at: int) -> bool:
    """Whether what stands at `at` repeats an earlier line instead of reporting something new."""
    return any(0 <= text.find(mark) < at for mark in _QUOTES)


def tag_of(m: re.Match[str], line: Line) -> dict[str, Value]:
    """Which rank and process group a c10d line speaks of.

    `rank` is global when the envelope said it (`[rank3]:`) or the group is the default one; otherwise it is
    the rank inside the group, and rank_certain is False. pg_rank is always the rank inside the group.
    """
    fields: dict[str, Value] = {}
    tag = _PG_TAG.search(line.text)
    if tag is not None:
        fields["pg_id"] = int(tag["pg_id"])
        if tag["pg_guid"]:
            fields["pg_guid"] = tag["pg_guid"]
        if tag["pg_desc"]:
            fields["pg_desc"] = tag["pg_desc"]
    else:
        tag = _RANK_TAG.search(line.text)
    if tag is not None:
        fields["pg_rank"] = int(tag["rank"])
        fields["rank"] = int(tag["rank"])
        fields["rank_certain"] = fields.get("pg_desc") == "default_pg"
    if line.env.rank is not None:
        fields["rank"] = line.env.rank
        fields["rank_certain"] = True
    if is_quote(line.text, m.start()):
        fields["quoted"] = True
    return fields


def numbers(text: str) -> tuple[int, ...]:
    """The whole numbers in `0, 1, 3` or `2 5`."""
    return tuple(int(n) for n in re.findall(r"\d+", text)[:4096])


def ranks_of(name: str) -> Callable[[re.Match[str], Line], Mapping[str, Value]]:
    """A refine function that turns the group `name` into a tuple of numbers and adds the tag."""

    def refine(m: re.Match[str], line: Line) -> Mapping[str, Value]:
        return {**tag_of(m, line), name: numbers(m[name])}

    return refine


def refine_with(*whole: str) -> Callable[[re.Match[str], Line], Mapping[str, Value]]:
    """A refine function that makes the named groups whole numbers."""

    def refine(m: re.Match[str], _: Line) -> Mapping[str, Value]:
        return {name: int(m[name]) for name in whole if m[name] is not None}

    return refine
