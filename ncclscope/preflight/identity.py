"""Whether two containers of a pod see the same GPUs, driver and library: --write and --verify."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncclscope.errors import NcclscopeError
from ncclscope.preflight.model import CheckResult, Evidence, NextStep, Subject

if TYPE_CHECKING:
    from pathlib import Path

    from ncclscope.preflight.node import Node

SAME = Subject("same-node", "Same GPUs, driver and library", "gpu-not-visible")

_SCHEMA = "1"
_CHUNK = 1 << 20
_LOOK = NextStep("List the GPUs of this container.", "nvidia-smi -L", "read_only")


class IdentityError(NcclscopeError):
    """A file of --write or --verify that cannot be written or read; the message names it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What must be the same: GPUs (UUID to name), driver, host and its boot, NCCL's file and its SHA-256."""

    gpus: dict[str, str]
    driver: str | None
    host: str
    boot_id: str | None
    library: str | None
    library_sha256: str | None


def of(node: Node) -> Identity:
    """The identity of this node now. Hashes the library: about a second for 400 MB."""
    seen = node.gpus()
    located = node.library().located
    path = None if located is None else located.path
    return Identity(
        gpus={gpu.uuid: gpu.name for gpu in seen.gpus},
        driver=seen.driver,
        host=node.hostname(),
        boot_id=node.read("/proc/sys/kernel/random/boot_id"),
        library=None if path is None else str(path),
        library_sha256=None if path is None else _digest(path),
    )


def _digest(path: Path) -> str | None:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError:
        return None
    return digest.hexdigest()


def write(identity: Identity, path: Path) -> None:
    """Writes the identity as JSON, whole or not at all. Raises IdentityError."""
    record = {
        "schema_version": _SCHEMA,
        "gpus": [{"uuid": uuid, "name": name} for uuid, name in identity.gpus.items()],
        "driver": identity.driver,
        "host": identity.host,
        "boot_id": identity.boot_id,
        "library": {"path": identity.library, "sha256": identity.library_sha256},
    }
    if path.exists() and not path.is_file():
        raise IdentityError(f"{path}: is no regular file; name a file to write")
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise IdentityError(f"{path}: cannot be written: {error.strerror}") from error


def read(path: Path) -> Identity:
    """Reads what `write` wrote. Raises IdentityError when it is missing, broken or of another schema."""
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise IdentityError(
            f"{path}: cannot be read: {error.strerror}; preflight --write makes it"
        ) from error
    except ValueError as error:
        raise IdentityError(f"{path}: is no JSON ({error}); preflight --write makes it") from error
    try:
        if record["schema_version"] != _SCHEMA:
            raise IdentityError(
                f"{path}: has schema version {record['schema_version']!r}, this ncclscope reads '1'"
            )
        return Identity(
            gpus={str(gpu["uuid"]): str(gpu["name"]) for gpu in record["gpus"]},
            driver=record["driver"],
            host=str(record["host"]),
            boot_id=record["boot_id"],
            library=record["library"]["path"],
            library_sha256=record["library"]["sha256"],
        )
    except (KeyError, TypeError) as error:
        raise IdentityError(f"{path}: is not a file of preflight --write (misses {error})") from error


def compare(written: Identity, now: Identity) -> CheckResult:
    """Fails and names what differs. A library or driver that either side does not know is not compared."""
    gone = [f"{name} {uuid}" for uuid, name in written.gpus.items() if uuid not in now.gpus]
    new = [f"{name} {uuid}" for uuid, name in now.gpus.items() if uuid not in written.gpus]
    differences: list[str] = []
    if gone:
        differences.append(f"checked but not here: {', '.join(gone)}")
    if new:
        differences.append(f"here but not checked: {', '.join(new)}")
    category = "gpu-not-visible"
    if None not in (written.boot_id, now.boot_id) and written.boot_id != now.boot_id:
        differences.append(f"another boot or another host: {written.host} then, {now.host} now")
    if None not in (written.driver, now.driver) and written.driver != now.driver:
        differences.append(f"driver {written.driver} then, {now.driver} now")
    known = None not in (written.library_sha256, now.library_sha256)
    if known and written.library_sha256 != now.library_sha256:
        if not differences:
            category = "version-mismatch"
        differences.append(
            f"another NCCL: {written.library} ({_short(written)}) was checked, {now.library} ({_short(now)}) "
            "is here"
        )
    if differences:
        return SAME.failed(
            "; ".join(differences) + ". The check does not hold for this container.",
            _LOOK,
            *(Evidence("difference", line) for line in differences),
            category=category,
        )
    library = "the same NCCL file" if known else "NCCL's file not compared"
    return SAME.passed(f"The same {len(now.gpus)} GPU(s), {library}.", Evidence("GPUs", ", ".join(now.gpus)))


def _short(identity: Identity) -> str:
    return (identity.library_sha256 or "")[:12]
