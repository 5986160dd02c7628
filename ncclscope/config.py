"""The user's own rules: which directories add or replace rules, and which rules are switched off.

`ncclscope.toml` in the current directory, or else `~/.config/ncclscope/config.toml`:

    rules = ["my-rules"]      # directories of rule files, relative to this file
    disable = ["NS4101"]      # ids or names of rules that are not asked
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncclscope.engine.pack import Pack, PackError, load_pack

__all__ = ["Config", "read_config", "user_pack"]

_KEYS = ("rules", "disable")


@dataclass(frozen=True, slots=True)
class Config:
    """path: the file that was read, empty when there is none."""

    path: str = ""
    rules: tuple[Path, ...] = ()
    disable: tuple[str, ...] = ()


def user_pack(directories: Sequence[Path] = ()) -> Pack:
    """The shipped rules with those of the configuration file and then of `directories`, less the disabled ones.

    Raises PackError with every problem of the file and the rules, each with its file, its line and the remedy.
    """
    config = read_config()
    extra = [*config.rules, *directories]
    pack = load_pack(extra=extra, disable=config.disable, disabled_by=config.path)
    if extra:
        _check(pack)
    return pack


def _check(pack: Pack) -> None:
    """User rules are looked through for what would only fail once they are asked."""
    from ncclscope.engine.lint import unusable
    from ncclscope.kinds import kinds

    own = [rule for rule in pack.rules if rule.id in pack.own]
    known = kinds()
    problems = [problem.at(Path()) for rule in own for problem in unusable(rule, known)]
    if problems:
        raise PackError("\n".join(problems))


def read_config() -> Config:
    """The first configuration file there is; PackError says what is wrong with it."""
    for path in _places():
        try:
            text = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise PackError(f"{path}: cannot read the configuration: {error.strerror}") from None
        return _parse(text, path)
    return Config()


def _places() -> list[Path]:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 - no home is no error
    return [Path("ncclscope.toml"), Path(home) / "ncclscope" / "config.toml"]


def _parse(text: bytes, path: Path) -> Config:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        data: dict[str, Any] = tomllib.loads(text.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PackError(f"{path}: not valid TOML: {error}") from None
    problems = [f"{path}: unknown key `{key}`; known: {', '.join(_KEYS)}" for key in data if key not in _KEYS]
    for key in _KEYS:
        value = data.get(key, [])
        if not (isinstance(value, list) and all(isinstance(v, str) for v in value)):
            example = '["my-rules"]' if key == "rules" else '["NS4101"]'
            problems.append(f"{path}: `{key}` is a list of texts, such as {key} = {example}")
    if problems:
        raise PackError("\n".join(problems))
    directories = tuple(path.parent / Path(d).expanduser() for d in data.get("rules", []))
    return Config(str(path), directories, tuple(data.get("disable", [])))
