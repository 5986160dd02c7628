"""The rule pack: found, checked, prepared once, and loaded in milliseconds.

A prepared pack is JSON beside a digest of every rule file. It is used only when the digest fits the files at hand, so
it is never stale: a wheel carries one, a checkout keeps one in the user's cache directory.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

import msgspec

from ncclscope.engine.match import ANY, keys_of
from ncclscope.engine.rule import Rule, RuleError, Signal, line_of, load_rule, parse_signal, rule_files
from ncclscope.errors import NcclscopeError

__all__ = ["Pack", "PackError", "load_pack", "prepare", "shipped_rules"]

PREPARED = "prepared.json"


class PackError(NcclscopeError):
    """Rules that cannot be used; the message lists every problem found, one a line."""


class _Prepared(msgspec.Struct):
    digest: str
    rules: list[Rule]


class Pack(msgspec.Struct, frozen=True, dict=True):
    """Rules ready to run, with their signals parsed; notes say what user rules changed, own are those rules' ids.

    A shipped rule's path is relative to the rules' directory, an own one's is as the user named it.
    """

    rules: tuple[Rule, ...]
    signals: dict[str, dict[str, Signal]] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    own: frozenset[str] = frozenset()

    @cached_property
    def _by_key(self) -> dict[str, list[int]]:
        """Places in `rules` by what a rule can blame."""
        by_key: dict[str, list[int]] = defaultdict(list)
        for place, rule in enumerate(self.rules):
            blame = self.signals[rule.id].get(rule.blame)
            for key in keys_of(blame) if blame is not None else (ANY,):
                by_key[key].append(place)
        return dict(by_key)

    def about(self, keys: Iterable[str]) -> list[Rule]:
        """The rules that can find somebody to blame where these keys (see keys_of) were observed, in their order."""
        return [self.rules[place] for place in sorted({n for key in keys for n in self._by_key.get(key, ())})]

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


def load_pack(
    directory: Path | None = None,
    *,
    extra: Sequence[Path] = (),
    disable: Sequence[str] = (),
    disabled_by: str = "the caller",
) -> Pack:
    """The shipped rules (or those of `directory`) with the rules of `extra` added, from prepared forms where they fit.

    A rule of `extra` replaces the one with its id, a later directory an earlier one; `disable` takes rules out by id or
    name, and `disabled_by` is who asks for it. The pack's notes say what changed. Raises PackError with every problem.
    """
    if directory is None and not extra and not disable:
        return _shipped_pack()
    problems: list[str] = []
    base = directory or shipped_rules()
    rules = _collect(base, problems)
    shipped = {rule.id: rule for rule in rules}
    notes: list[str] = []
    for more in extra:
        if more.is_dir() and more.resolve() == base.resolve():
            continue
        own = [msgspec.structs.replace(r, path=str(more / r.path)) for r in _collect(more, problems)]
        rules, changes = _merge(rules, own, shipped, str(more))
        notes += changes
    pack = Pack(tuple(rules))
    gone: set[str] = set()
    for name in disable:
        rule = pack.get(name)
        if rule is None:
            problems.append(f"{disabled_by}: cannot disable {name!r}: no such rule; see `ncclscope rules list`")
        else:
            gone.add(rule.id)
            notes.append(f"rule {rule.id} is disabled by {disabled_by}")
    if problems:
        raise PackError("\n".join(problems))
    kept = [r for r in rules if r.id not in gone]
    return _pack(kept, notes, frozenset(r.id for r in kept if shipped.get(r.id) is not r))


@cache
def _shipped_pack() -> Pack:
    """Asked for by each part of a scan."""
    return load_pack(shipped_rules())


def _collect(directory: Path, problems: list[str]) -> list[Rule]:
    """The rules of one directory; what is wrong goes to `problems`."""
    if not directory.is_dir():
        problems.append(f"{directory}: not a directory; name the directory that holds the rule files")
        return []
    try:
        return _load(directory)
    except PackError as error:
        problems.append(str(error))
        return []


def _merge(
    rules: Sequence[Rule], own: Sequence[Rule], shipped: Mapping[str, Rule], where: str
) -> tuple[list[Rule], list[str]]:
    """Rules with those of a user's directory put in, and a note on each change."""
    place = {rule.id: i for i, rule in enumerate(rules)}
    merged = list(rules)
    notes: list[str] = []
    added: list[str] = []
    for rule in own:
        if rule.id in place:
            old = merged[place[rule.id]]
            instead = "the shipped one" if shipped.get(rule.id) is old else old.path
            notes.append(f"rule {rule.id} comes from {rule.path} instead of {instead}")
            merged[place[rule.id]] = rule
        else:
            merged.append(rule)
            added.append(rule.id)
    if added:
        notes.append(f"{where} adds {'rules' if len(added) > 1 else 'rule'} {', '.join(added)}")
    return merged, notes


def _load(directory: Path) -> list[Rule]:
    files, texts = _read(directory)
    digest = _digest(directory, files, texts)
    for candidate in (directory / PREPARED, _cache_file(digest)):
        rules = _read_prepared(candidate, digest)
        if rules is not None:
            return rules
    rules = _parse(directory, files, texts)
    _write_prepared(_cache_file(digest), _Prepared(digest, rules))
    return rules


def _read(directory: Path) -> tuple[list[Path], list[bytes]]:
    files = rule_files(directory)
    try:
        return files, [path.read_bytes() for path in files]
    except OSError as error:
        raise PackError(f"{error.filename}: cannot read the rule: {error.strerror}") from None


def prepare(directory: Path, target: Path) -> None:
    """Writes the prepared form of `directory`; used when a wheel is built."""
    files, texts = _read(directory)
    prepared = _Prepared(_digest(directory, files, texts), _parse(directory, files, texts))
    target.write_bytes(msgspec.json.encode(prepared))


def _pack(rules: Sequence[Rule], notes: Sequence[str], own: frozenset[str]) -> Pack:
    signals = {r.id: {n: parse_signal(r.id, n, raw) for n, raw in r.signals.items()} for r in rules}
    return Pack(tuple(rules), signals, tuple(notes), own)


def _parse(directory: Path, files: Sequence[Path], texts: Sequence[bytes]) -> list[Rule]:
    rules: list[Rule] = []
    problems: list[str] = []
    for path, text in zip(files, texts, strict=True):
        try:
            rule = load_rule(text.decode("utf-8"), path.relative_to(directory).as_posix())
        except RuleError as error:
            problems.append(f"{path}:{error.line}: {error.message}")
            continue
        except UnicodeDecodeError as error:
            line = text[: error.start].count(b"\n") + 1
            problems.append(f"{path}:{line}: not UTF-8; save the file as UTF-8")
            continue
        twin = next((r for r in rules if r.id == rule.id), None)
        if twin is not None:
            line = line_of(text.decode("utf-8"), "id")
            problems.append(f"{path}:{line}: the id {rule.id} is taken by {twin.path}; ids are never reused")
        # Tests are read from the YAML when they are run; a prepared pack does without them.
        rules.append(msgspec.structs.replace(rule, tests=[]))
    if problems:
        raise PackError("\n".join(problems))
    return rules


def _digest(directory: Path, files: Sequence[Path], texts: Sequence[bytes]) -> str:
    """Changes with every byte of the rules, the program's version and the prepared form. It tells stale from fresh and
    guards against nobody, so a checksum is enough: a cryptographic hash takes longer to import than to compute."""
    from ncclscope.version import __version__

    sums = [f"{__version__} {_form()}"]
    for path, text in zip(files, texts, strict=True):
        name = path.relative_to(directory).as_posix()
        sums.append(f"{name} {len(text)} {zlib.crc32(text):08x} {zlib.adler32(text):08x}")
    whole = "\n".join(sums).encode()
    return f"{zlib.crc32(whole):08x}{zlib.adler32(whole):08x}{len(whole):08x}"


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
    import tempfile

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(msgspec.json.encode(prepared))
        Path(file.name).replace(path)
        for old in sorted(path.parent.glob("rules-*.json"), key=lambda p: p.stat().st_mtime)[:-4]:
            old.unlink()
    except OSError:
        return
