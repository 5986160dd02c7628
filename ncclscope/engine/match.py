"""Selectors: which observations a signal names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ncclscope.engine.rule import Signal
from ncclscope.model import Value
from ncclscope.observation import Observation

# Fields by which observations are found faster than by kind: few have the first two, and the last finds what failed
# where a rule looks at every kind.
_INDEXED = ("cause", "suggests", "nature")

__all__ = ["ANY", "Index", "in_range", "keys_of", "select"]

# The key of a signal that no other key can stand for.
ANY = "*"


class Index:
    """Observations by kind, so that a rule looks only at its own."""

    def __init__(self, observations: Iterable[Observation]) -> None:
        self._by_kind: dict[str, list[Observation]] = defaultdict(list)
        self._by_field: dict[tuple[str, str], list[Observation]] = defaultdict(list)
        for observation in observations:
            self._by_kind[observation.kind].append(observation)
            for field in _INDEXED:
                value = observation.fields.get(field)
                if isinstance(value, str):
                    self._by_field[field, value].append(observation)

    def lacks(self, kinds: Sequence[str]) -> bool:
        """Whether none of these kinds was observed; not looked into where one has a `*`."""
        return all(kind not in self._by_kind and kind[-1] != "*" for kind in kinds)

    def keys(self) -> set[str]:
        """What was observed, as `keys_of` names it."""
        return {ANY, *self._by_kind, *(_key(field, value) for field, value in self._by_field)}

    def having(self, field: str, value: str) -> Sequence[Observation]:
        """Those with this value of an indexed field: a cause that the line names or suggests."""
        return self._by_field.get((field, value), ())

    def of(self, kind: str) -> Sequence[Observation]:
        """Those of `kind`; a trailing `*` matches any ending."""
        if not kind.endswith("*"):
            return self._by_kind.get(kind, ())
        prefix = kind[:-1]
        found = [o for name, some in self._by_kind.items() if name.startswith(prefix) for o in some]
        found.sort(key=lambda o: o.order)
        return found


def keys_of(signal: Signal) -> tuple[str, ...]:
    """Keys of which one at least is observed wherever the signal selects something."""
    indexed = _indexed(signal)
    if indexed is not None:
        return tuple(_key(indexed[0], value) for value in indexed[1])
    return (ANY,) if any(kind[-1] == "*" for kind in signal.kinds) else signal.kinds


def _key(field: str, value: str) -> str:
    return f"{field}={value}"


def _indexed(signal: Signal) -> tuple[str, tuple[str, ...]] | None:
    """The condition by which the index finds the signal's observations faster than by kind."""
    every_kind = any(kind[-1] == "*" for kind in signal.kinds)
    for field, modifier, values in signal.conditions:
        if modifier == "is" and field in _INDEXED and (field != "nature" or every_kind):
            return field, values
    return None


def select(signal: Signal, index: Index) -> list[Observation]:
    """The observations that satisfy the signal, in reading order."""
    if index.lacks(signal.kinds):  # what most rules find in most jobs, so it must cost nothing
        return []
    indexed = _indexed(signal)
    if indexed is not None:
        some = [o for value in indexed[1] for o in index.having(indexed[0], value) if _is_kind(o.kind, signal.kinds)]
    else:
        some = [o for kind in signal.kinds for o in index.of(kind)]
    if not some:
        return []
    found = [
        o
        for o in some
        if all(_holds(o, field, modifier, values) for field, modifier, values in signal.conditions)
    ]
    found.sort(key=lambda o: (o.source, o.order))
    return found


def _is_kind(kind: str, kinds: Sequence[str]) -> bool:
    return any(kind == k or (k.endswith("*") and kind.startswith(k[:-1])) for k in kinds)


def _value(observation: Observation, field: str) -> Value | None:
    if field == "rank":
        return observation.ranks or None
    if field == "host":
        return observation.hosts or None
    if field == "gpu":
        return observation.gpus or None
    return observation.fields.get(field)


def _holds(observation: Observation, field: str, modifier: str, values: tuple[str, ...]) -> bool:
    value = _value(observation, field)
    if modifier == "known":
        return (value is not None) == (values[0] == "true")
    if modifier == "not":
        return value is None or not any(_same(value, v) for v in values)
    if value is None:
        return False
    if modifier == "is":
        return any(_same(value, v) for v in values)
    if modifier == "re":
        return any(_compiled(v).search(_text(value)) for v in values)
    if modifier == "contains":
        return any(v in value if isinstance(value, tuple) else v in _text(value) for v in values)
    if isinstance(value, (str, tuple)):
        return False
    limit = float(values[0])
    return {"gt": value > limit, "gte": value >= limit, "lt": value < limit, "lte": value <= limit}[modifier]


def _same(value: Value, wanted: str) -> bool:
    if isinstance(value, bool):
        return ("true" if value else "false") == wanted
    if isinstance(value, tuple):
        return wanted in [str(v) for v in value]
    if isinstance(value, float):
        try:
            return value == float(wanted)
        except ValueError:
            return False
    return str(value) == wanted


def _text(value: Value) -> str:
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def in_range(version: str, spec: str) -> bool | None:
    """Whether `version` satisfies e.g. ">=2.26,<2.27.3"; None when it is not a version."""
    own = _numbers(version)
    if own is None:
        return None
    for part in spec.split(","):
        m = re.fullmatch(r"\s*(>=|<=|==|!=|<|>)\s*([\d.]+)\s*", part)
        limit = _numbers(m[2]) if m else None
        if m is None or limit is None:
            raise ValueError(f"not a version range: {part!r}; write for example '>=2.26,<2.26.5'")
        size = max(len(own), len(limit))
        a, b = own + (0,) * (size - len(own)), limit + (0,) * (size - len(limit))
        if not {">=": a >= b, "<=": a <= b, "==": a == b, "!=": a != b, "<": a < b, ">": a > b}[m[1]]:
            return False
    return True


def _numbers(text: str) -> tuple[int, ...] | None:
    m = re.match(r"v?(\d+(?:\.\d+)*)", text.strip())
    return tuple(int(n) for n in m[1].split(".")) if m else None
