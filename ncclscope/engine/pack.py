"""The rule pack: found, checked, prepared once, and loaded in milliseconds.

A prepared pack is JSON beside a digest of every rule file. It is used only when the digest fits the files at hand, so
it is never stale: a wheel carries one, a checkout keeps one in the user's cache directory.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ncclscope.engine.rule import Rule, RuleError, Signal, load_rule, parse_signal, rule_files
from ncclscope.errors import NcclscopeError

__all__ = ["Pack", "PackError", "load_pack", "prepare", "shipped_rules"]

PREPARED = "prepared.json"


class PackError(NcclscopeError):
    """Rules that cannot be used; the message lists every problem found, one a line."""


class _Prepared(msgspec.Struct):
    digest: str
    rules: list[Rule]


@dataclass(frozen=True, slots=True)
class Pack:
    """Rules ready to run, with their signals parsed; notes say what user rules changed."""

    rules: tuple[Rule, ...]
    signals: dict[str, dict[str, Signal]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def get(self, rule_id: str) -> Rule | None:
        """The rule with this id, name or former name."""
        wanted = rule_id.lower()
        for rule in self.rules:
            if wanted in (rule.id.lower(), rule.name.lower(), *(a.lower() for a in rule.aliases)):
                return rule
        return None


def shipped_rules() -> Path:
    """The directory of the rules that came with this installation."""
    package = Path(__file__).resolve().parent.parent
    packaged = package / "_rules"
    if packaged.is_dir():
        return packaged
    checkout = package.parent / "rules"
    if (package.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    raise PackError(f"no rules found: neither {packaged} nor {checkout} exists; reinstall ncclscope")


def load_pack(directory: Path | None = None) -> Pack:
    """The shipped rules (or those of `directory`), from the prepared form when it fits, else from YAML."""
    directory = directory or shipped_rules()
    files = rule_files(directory)
    texts = [path.read_bytes() for path in files]
    digest = _digest(directory, files, texts)
    for candidate in (directory / PREPARED, _cache_file(digest)):
        rules = _read_prepared(candidate, digest)
        if rules is not None:
            return _pack(rules)
    rules = _parse(directory, files, texts)
    _write_prepared(_cache_file(digest), _Prepared(digest, rules))
    return _pack(rules)


def prepare(directory: Path, target: Path) -> None:
    """Writes the prepared form of `directory`; used when a wheel is built."""
    files = rule_files(directory)
    texts = [path.read_bytes() for path in files]
    prepared = _Prepared(_digest(directory, files, texts), _parse(directory, files, texts))
    target.write_bytes(msgspec.json.encode(prepared))


def _pack(rules: Sequence[Rule]) -> Pack:
    signals = {r.id: {n: parse_signal(r.id, n, raw) for n, raw in r.signals.items()} for r in rules}
    return Pack(tuple(rules), signals)


def _parse(directory: Path, files: Sequence[Path], texts: Sequence[bytes]) -> list[Rule]:
    rules: list[Rule] = []
    problems: list[str] = []
    for path, text in zip(files, texts, strict=True):
        try:
            rule = load_rule(text.decode("utf-8"), path.relative_to(directory).as_posix())
        except (RuleError, UnicodeDecodeError) as error:
            problems.append(str(error))
            continue
        twin = next((r for r in rules if r.id == rule.id), None)
        if twin is not None:
            problems.append(f"{rule.path}:1: the id {rule.id} is taken by {twin.path}; ids are never reused")
        # Tests are read from the YAML when they are run; a prepared pack does without them.
        rules.append(msgspec.structs.replace(rule, tests=[]))
    if problems:
        raise PackError("\n".join(problems))
    return rules


def _digest(directory: Path, files: Sequence[Path], texts: Sequence[bytes]) -> str:
    from ncclscope import __version__

    state = hashlib.blake2b(digest_size=16)
    state.update(__version__.encode())
    state.update(_form().encode())
    for path, text in zip(files, texts, strict=True):
        state.update(path.relative_to(directory).as_posix().encode() + b"\0")
        state.update(len(text).to_bytes(8, "little") + text)
    return state.hexdigest()


def _form() -> str:
    """Changes with the shape of the prepared form, so that an older one is not misread."""
    return ",".join(f.name for f in msgspec.structs.fields(Rule))


def _cache_file(digest: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~").expanduser() / ".cache")
    return Path(base) / "ncclscope" / f"rules-{digest}.json"


def _read_prepared(path: Path, digest: str) -> list[Rule] | None:
    try:
        prepared = msgspec.json.decode(path.read_bytes(), type=_Prepared)
    except (OSError, msgspec.MsgspecError):
        return None
    return prepared.rules if prepared.digest == digest else None


def _write_prepared(path: Path, prepared: _Prepared) -> None:
    """Best effort: a read-only home only costs the next start its speed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(msgspec.json.encode(prepared))
        Path(file.name).replace(path)
        for old in sorted(path.parent.glob("rules-*.json"), key=lambda p: p.stat().st_mtime)[:-4]:
            old.unlink()
    except OSError:
        return
