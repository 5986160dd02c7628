"""Flight-recorder dumps: PyTorch's ring buffer of collectives, one file a rank, as pickle or JSON.

A dump from an unknown cluster is hostile until proven otherwise: the unpickler refuses every class and call, walks the
opcodes under a limit first, and each field is optional and checked. Formats: PyTorch 2.2 to 2.14 (version 1.x to 2.10).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NoReturn

import msgspec

__all__ = ["MAX_DUMP_BYTES", "Dump", "DumpError", "Entry", "looks_like_dump", "parse_dump"]

MAX_DUMP_BYTES = 256 * 1024 * 1024
_MAX_OPCODES = 20_000_000
_MAX_ENTRIES = 200_000
_MAX_TEXT = 400
# Opcodes that look up or call something; a dump needs none of them.
_CALLS = frozenset(
    """GLOBAL STACK_GLOBAL REDUCE BUILD INST OBJ NEWOBJ NEWOBJ_EX PERSID BINPERSID EXT1 EXT2 EXT4""".split()
)


class DumpError(ValueError):
    """Why a file is no flight-recorder dump that can be read."""


class Entry(msgspec.Struct, frozen=True):
    """One recorded operation. seq counts collectives of its process group from 1; sizes are the
    dimensions of the inputs and of the outputs; state is scheduled (waits in its
    stream), started (runs, that is waits for peers) or completed; frame is the innermost frame of the caller's code."""

    number: int
    group: str
    seq: int
    op: str
    sizes: tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]
    dtypes: tuple[str, ...]
    state: str
    p2p: bool
    frame: str | None
    created_ns: int | None


class Dump(msgspec.Struct, frozen=True):
    """One rank's ring buffer. groups: name -> (description, member ranks; empty where not recorded)."""

    version: str
    entries: tuple[Entry, ...]
    groups: dict[str, tuple[str, tuple[int, ...]]]
    library: str | None = None


def looks_like_dump(head: bytes, name: str) -> bool:
    """Whether the first bytes (and for JSON the name) are those of a dump."""
    if re.match(rb"\x80[\x02-\x05]", head):
        return True
    named = re.search(r"(fr|trace|flight)[\w.-]*rank", name, re.IGNORECASE) is not None
    return named and head.lstrip()[:1] in (b"{", b"[") and b'"entries"' in head


def parse_dump(data: bytes) -> Dump:
    """The dump in `data`; DumpError says why it is none."""
    if len(data) > MAX_DUMP_BYTES:
        raise DumpError(f"larger than {MAX_DUMP_BYTES >> 20} MiB")
    raw = _load(data)
    if isinstance(raw, list):  # the first recorders wrote the bare list of entries
        raw = {"entries": raw}
    if not isinstance(raw, dict) or not isinstance(raw.get("entries"), list):
        raise DumpError("no `entries`: not a flight-recorder dump")
    entries = [
        entry
        for number, item in enumerate(raw["entries"][:_MAX_ENTRIES], 1)
        if isinstance(item, dict) and (entry := _entry(number, item)) is not None
    ]
    library = raw.get("comm_lib_version") or raw.get("nccl_version")
    return Dump(
        version=str(raw.get("version", ""))[:20],
        entries=tuple(entries),
        groups=_groups(raw.get("pg_config")),
        library=library if isinstance(library, str) and library else None,
    )


def _load(data: bytes) -> Any:
    """Plain data from JSON or a pickle. The machinery is imported here: few inputs are dumps."""
    if data.lstrip()[:1] in (b"{", b"["):
        import json

        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DumpError(f"not readable as JSON: {error}") from None
    import io
    import pickle
    import pickletools

    class Refusing(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> NoReturn:
            raise DumpError(f"the pickle asks for {module}.{name}; a dump holds plain data only")

        def persistent_load(self, pid: Any) -> NoReturn:
            raise DumpError(f"the pickle refers to an outside object {pid!r}; a dump holds plain data only")

    try:
        for count, (opcode, _, _) in enumerate(pickletools.genops(data)):
            if count > _MAX_OPCODES:
                raise DumpError("more opcodes than any dump has")
            if opcode.name in _CALLS:
                raise DumpError(f"the pickle holds a {opcode.name}; a dump holds plain data only")
        return Refusing(io.BytesIO(data)).load()
    except DumpError:
        raise
    except Exception as error:  # whatever a broken pickle makes the machinery raise
        raise DumpError(f"not readable as a pickle: {type(error).__name__}: {error}") from None


def _entry(number: int, item: dict[str, Any]) -> Entry | None:
    group = item.get("process_group")
    name = str(group[0]) if isinstance(group, (list, tuple)) and group else str(item.get("pg_id", "0"))
    p2p = item.get("is_p2p") is True
    seq = item.get("p2p_seq_id" if p2p else "collective_seq_id", item.get("seq_id"))
    if not isinstance(seq, int):
        return None
    state = str(item.get("state", ""))
    if item.get("retired") is True and str(item.get("profiling_name", "")).startswith("gloo"):
        state = "completed"  # gloo entries stay `scheduled` for ever; only `retired` tells that they finished
    return Entry(
        number=number,
        group=name[:_MAX_TEXT],
        seq=seq,
        op=str(item.get("profiling_name", "?"))[:_MAX_TEXT],
        sizes=(_sizes(item.get("input_sizes")), _sizes(item.get("output_sizes"))),
        dtypes=tuple(str(t)[:20] for t in (*_list(item.get("input_dtypes")), *_list(item.get("output_dtypes")))),
        state=state[:20],
        p2p=p2p,
        frame=_frame(item.get("frames")),
        created_ns=item["time_created_ns"] if isinstance(item.get("time_created_ns"), int) else None,
    )


def _list(value: Any) -> Iterable[Any]:
    return value[:64] if isinstance(value, (list, tuple)) else ()


def _sizes(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(n) for n in _list(dims) if isinstance(n, int)) for dims in _list(value))


def _frame(frames: Any) -> str | None:
    """The first frame outside of PyTorch, innermost first."""
    for frame in _list(frames):
        if isinstance(frame, dict):
            file = str(frame.get("filename", ""))
            if "/torch/" not in file and not file.startswith("<"):
                return f"{file}:{frame.get('line', '?')} {frame.get('name', '?')}"[:_MAX_TEXT]
    return None


def _groups(config: Any) -> dict[str, tuple[str, tuple[int, ...]]]:
    groups: dict[str, tuple[str, tuple[int, ...]]] = {}
    if isinstance(config, dict):
        for name, value in list(config.items())[:10_000]:
            if isinstance(value, dict):
                groups[str(name)] = (str(value.get("desc", "")), _ranks(value.get("ranks")))
    return groups


def _ranks(value: Any) -> tuple[int, ...]:
    """`[0, 1]` as text (every version seen) or as a list."""
    if isinstance(value, str):
        if not re.fullmatch(r"\[[\d,\s]{0,400000}\]", value):
            return ()
        value = [int(n) for n in re.findall(r"\d+", value)]
    return tuple(n for n in value if isinstance(n, int)) if isinstance(value, (list, tuple)) else ()
