"""Replaces what identifies a site or gives access to it by stable pseudonyms.

What is doubtful is replaced. Ranks, PCI addresses, versions, times, process ids, pointers (`0x...`) and
loopback addresses stay. A pseudonym has the shape of what it stands for, so that redacted logs can be read
again: host-1, 198.18.0.1 (RFC 2544), 2001:db8::1 (RFC 3849), 02:00:00:00:00:01, user-1, mail-1@example.com,
token-1, serial-1.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ncclscope.redact_patterns import BY_PLACE, BY_SHAPE, END, START, is_host, is_ipv4, is_name
from ncclscope.report import Report
from ncclscope.sources.names import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ncclscope.store import EventStore

__all__ = ["Redactor", "hosts_of"]

# Fields of events that hold the name of a machine.
_HOST_FIELDS = ("host", "node", "master_addr", "server")


def hosts_of(store: EventStore, hosts: Iterable[str]) -> list[str]:
    """Every name that the input shows to be a machine's or a pod's, in natural order; `hosts` are the job's."""
    names = set(hosts)
    for stream in store.streams:
        names |= {n for n in (stream.hints.host, stream.hints.pod) if n}
    for event in store.events():
        names |= {n for n in (event.env.host, event.env.pod) if n}
        names |= {v for f in _HOST_FIELDS if isinstance(v := event.get(f), str) and v}
    return sorted(names, key=lambda name: (natural(name), name))


@dataclass(slots=True)
class Redactor:
    """Holds the pseudonyms of one run: the same original gets the same one in every text and every file.

    hosts: names that the input shows to be hosts; they are replaced wherever they stand as a word. `learn`
    every text before the first `text`, or a name that a later text reveals is left in an earlier one.
    """

    hosts: Iterable[str] = ()
    _names: dict[tuple[str, str], str] = field(default_factory=dict)
    _count: Counter[str] = field(default_factory=Counter)
    _words: dict[str, str] = field(default_factory=dict)
    _domains: dict[str, int] = field(default_factory=dict)
    _known: re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        for host in self.hosts:
            if is_ipv4(host) or not is_host(host):
                continue
            self._remember("host", host)

    def learn(self, text: str) -> None:
        """Notes the hosts and users that `text` names in a place where nothing else stands."""
        for kind, _, _, value in self._found(text):
            if kind in ("host", "user"):
                self._remember(kind, value)

    def text(self, text: str) -> str:
        """`text` with pseudonyms."""
        out = []
        at = 0
        for kind, start, end, value in sorted(self._found(text), key=lambda f: f[1]):
            # A key of several lines keeps their number: what follows must stay where it was.
            out += [text[at:start], self._name(kind, value), "\n" * value.count("\n")]
            at = end
        return "".join([*out, text[at:]])

    def report(self, report: Report) -> Report:
        """The report with every text of the input redacted. Rules, classes and numbers are the same."""
        for text in _texts(msgspec.to_builtins(report)):
            self.learn(text)
        return msgspec.convert(self._all(msgspec.to_builtins(report)), Report)

    def host(self, name: str) -> str:
        """The pseudonym of something that is known to be a host's name."""
        return name if is_ipv4(name) or not is_host(name) else self._name("host", name)

    def plain(self, value: Any) -> Any:
        """Plain data (text, lists, dictionaries) with every text redacted; keys stay."""
        return self._all(value)

    def mapping(self) -> dict[str, str]:
        """Pseudonym to original, for the way back."""
        names = sorted(self._names.items(), key=lambda item: natural(item[1]))
        return {name: original for (_, original), name in names}

    def _all(self, value: Any, *, keys: bool = False) -> Any:
        """keys: the keys of this dictionary come from the input too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._all(v) for v in value]
        if isinstance(value, dict):
            return {
                self.text(k) if keys else k: v if k in _FIXED and not keys else self._all(v, keys=k == "values")
                for k, v in value.items()
            }
        return value

    def _remember(self, kind: str, value: str) -> None:
        short = value.partition(".")[0] if kind == "host" else value
        for word in {value, short}:
            if is_name(word) and word not in self._words:
                self._words[word] = kind
                self._known = None
        self._name(kind, value)

    def _found(self, text: str) -> list[tuple[str, int, int, str]]:
        """(kind, start, end, original) of what must go; no two overlap."""
        spans: list[tuple[str, int, int, str]] = []
        left = text
        for rule in (*BY_SHAPE, None, *BY_PLACE):
            if rule is None:
                new = [(self._words[m[0]], *m.span()) for m in self._of_known(left)]
            else:
                new = [(rule.kind, *m.span("x")) for m in rule.pattern.finditer(left) if rule.holds(m["x"])]
            for kind, start, end in new:
                if start < end and "\0" not in left[start:end]:
                    spans.append((kind, start, end, text[start:end]))
                    # No later rule looks at what is taken.
                    left = left[:start] + "\0" * (end - start) + left[end:]
        return spans

    def _of_known(self, text: str) -> Iterator[re.Match[str]]:
        if not self._words:
            return iter(())
        if self._known is None:
            names = sorted(self._words, key=len, reverse=True)
            self._known = re.compile(rf"{START}(?:{'|'.join(map(re.escape, names))}){END}")
        return self._known.finditer(text)

    def _name(self, kind: str, value: str) -> str:
        if kind == "host" and "." in value and is_host(value):
            short, _, domain = value.partition(".")
            number = self._domains.setdefault(domain, len(self._domains) + 1)
            full = f"{self._name('host', short)}.{'' if number == 1 else f'd{number}.'}example.org"
            return self._names.setdefault(("host", value), full)
        if kind in ("mac", "uuid", "ipv6"):
            key = (kind, value.lower().replace("_", "-") if kind == "uuid" else value.lower())
        else:
            key = (kind, value)
        name = self._names.get(key)
        if name is None:
            self._count[kind] += 1
            name = self._names[key] = _shaped(kind, value, self._count[kind])
        return name


# Words of our own, and times, in a report.
_FIXED = frozenset(
    [
        "rule",
        "role",
        "category",
        "confidence",
        "phase",
        "effect",
        "schema_version",
        "tool_version",
        "verdict",
        "refs",
        "result",
        "kind",
        "time",
        "zone",
        "state",
        "about",
    ]
)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _FIXED:
                yield from _texts(item)


def _shaped(kind: str, value: str, number: int) -> str:
    if kind == "ipv4":
        base = 0xA9FEC800 if value.startswith("169.254.") else 0xC6120000  # a link-local address stays one
        return str(ipaddress.IPv4Address(base + number))
    if kind == "ipv6":
        base6 = "fe80::ffff:0:0" if value.lower().startswith("fe80") else "2001:db8::"
        return str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(base6)) + number))
    if kind == "mac":
        pairs = max(6, (len(value) + 1) // 3)
        digits = f"02{number:0{2 * pairs - 2}x}"
        return ":".join(digits[i : i + 2] for i in range(0, 2 * pairs, 2))
    if kind == "uuid":
        return f"00000000-0000-4000-8000-{number:012x}".replace("-", "_" if "_" in value else "-")
    if kind == "email":
        return f"mail-{number}@example.com"
    return f"{kind}-{number}"
