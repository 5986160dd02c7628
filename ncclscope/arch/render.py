"""Output of `ncclscope arch`: text, JSON (described in docs/arch.md), annotations for GitHub."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ncclscope.knowledge.gpus import explain_sm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ncclscope.arch.model import Gpu, Judgement, LibraryCode, LocatedLibrary

Outcome = Literal["pass", "fail", "unknown"]
SCHEMA_VERSION = "1"
_WIDTH = 100
_COLOURS = {"PASS": "green", "FAIL": "red", "UNKNOWN": "yellow"}


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file: what is in it or why it could not be read. `how` is empty for a file that the user named."""

    path: str
    how: str
    static: bool
    library: LibraryCode | None
    error: str
    judgements: tuple[Judgement, ...]

    @property
    def outcome(self) -> Outcome:
        """fail when a target fails for certain; unknown when the file or a target could not be judged."""
        if any(not j.ok and j.verdict != "unknown" for j in self.judgements):
            return "fail"
        if self.library is None or any(j.verdict == "unknown" for j in self.judgements):
            return "unknown"
        return "pass"


@dataclass(frozen=True, slots=True)
class Report:
    """One run. `gpus` are this machine's if they were the targets; `hidden` libraries are not loaded."""

    files: tuple[FileReport, ...]
    gpus: tuple[Gpu, ...] = ()
    hidden: tuple[LocatedLibrary, ...] = ()

    @property
    def outcome(self) -> Outcome:
        outcomes = {file.outcome for file in self.files}
        return "fail" if "fail" in outcomes else "pass" if outcomes == {"pass"} else "unknown"


def clean(text: str) -> str:
    """`text` with control characters, as a file name may hold them, written out: '\\x1b'."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def to_json(report: Report) -> str:
    """The report as a JSON document of schema version 1; a value that is not known is absent."""
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "outcome": report.outcome,
        "libraries": [_file_json(file) for file in report.files],
    }
    if report.gpus:
        document["gpus"] = [
            {"index": g.index, "name": g.name, "uuid": g.uuid, "pci": g.pci, "driver": g.driver}
            | ({"target": g.capability.sm} if g.capability else {})
            for g in report.gpus
        ]
    if report.hidden:
        document["not_loaded"] = [{"path": str(h.path), "found_by": h.how} for h in report.hidden]
    return json.dumps(document, indent=2) + "\n"


def _file_json(file: FileReport) -> dict[str, Any]:
    row: dict[str, Any] = {"path": file.path, "outcome": file.outcome}
    if file.how:
        row |= {"found_by": file.how, "static": file.static}
    library = file.library
    if library is None:
        return row | {"error": file.error}
    if library.nccl_version:
        row["nccl_version"] = library.nccl_version
    if library.cuda_version:
        row["cuda_version"] = library.cuda_version
    return row | {
        "code_objects": len(library.code_objects),
        "sass": [{"arch": arch.sass, "code_objects": count} for arch, count in library.sass_counts.items()],
        "ptx": [{"arch": arch.ptx, "code_objects": count} for arch, count in library.ptx_counts.items()],
        "targets": [
            {
                "target": j.target.sm,
                "verdict": j.verdict,
                "ok": j.ok,
                "summary": j.summary,
                "needed": j.needed,
                "missing": j.missing,
            }
            | ({"effect": j.effect} if j.effect else {})
            | ({"fix": j.fix} if j.fix else {})
            for j in file.judgements
        ],
    }


def to_github(report: Report) -> str:
    """Workflow commands: an error for each failing target or unreadable file, a notice for each pass."""
    lines = []
    for file in report.files:
        if file.library is None:
            lines.append(_command("error", "GPU code cannot be read", f"{file.path}: {file.error}"))
        for j in file.judgements:
            title = f"{_title(file)}: {j.verdict} on {j.target.sm}"
            text = " ".join(part for part in (f"{file.path}: {j.summary}.", j.effect, j.fix) if part)
            lines.append(_command("notice" if j.ok else "error", title, text))
    return "".join(lines)


def _command(kind: str, title: str, text: str) -> str:
    def escape(value: str, extra: str = "") -> str:
        for char in "%\r\n" + extra:
            value = value.replace(char, f"%{ord(char):02X}")
        return clean(value)

    return f"::{kind} title={escape(title, ':,')}::{escape(text)}\n"


def to_text(report: Report, style: Callable[[str, str], str] = lambda text, _colour: text) -> str:
    """The report for people. `style(text, colour)` colours a word on a terminal."""
    blocks = ["\n".join(_file_text(file, report.gpus, style)) for file in report.files]
    if report.hidden:
        lines = [
            "Also found, but not what is loaded:",
            *(f"  {clean(str(h.path))}  ({h.how})" for h in report.hidden),
        ]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def _title(file: FileReport) -> str:
    name = file.path.rpartition("/")[2]
    if file.library is None or file.library.nccl_version is None:
        return name
    built = f", built with CUDA {file.library.cuda_version}" if file.library.cuda_version else ""
    return f"NCCL {file.library.nccl_version}{built}"


def _file_text(file: FileReport, gpus: Sequence[Gpu], style: Callable[[str, str], str]) -> Iterator[str]:
    yield style(clean(_title(file)), "bold")
    yield f"  file  {clean(file.path)}" + (f"  (found by: {file.how})" if file.how else "")
    library = file.library
    if library is None:
        yield f"  {style('UNKNOWN', _COLOURS['UNKNOWN'])}  cannot be judged: {clean(file.error)}"
        return
    yield from _coverage(library)
    for j in file.judgements:
        word = "PASS" if j.ok else "UNKNOWN" if j.verdict == "unknown" else "FAIL"
        here = [gpu.name for gpu in gpus if gpu.capability == j.target]
        row = explain_sm(j.target.sm)
        known = f"{len(here)} x {here[0]} here" if here else row.gpus if row else "not in the table of GPUs"
        yield ""
        yield f"  {style(word, _COLOURS[word])}  {j.target.sm} ({clean(known)}): {j.verdict}"
        yield from _wrapped("", j.summary[0].upper() + j.summary[1:] + ".")
        yield from _wrapped("What you would see: ", j.effect)
        yield from _wrapped("Fix: ", j.fix)


def _coverage(library: LibraryCode) -> Iterator[str]:
    """SASS and PTX; how many code objects each has only where that differs, since a union hides holes."""
    fullest = library.fullest

    def listed(counts: dict[str, int]) -> str:
        return "  ".join(
            name if count == fullest else f"{name} ({count}/{fullest})" for name, count in counts.items()
        )

    sass = {arch.sass: count for arch, count in library.sass_counts.items()}
    # The driver takes the PTX of linked code from what was linked, so that nothing is missing there.
    complete = library.linker_ptx
    ptx = {arch.ptx: fullest if arch in complete else count for arch, count in library.ptx_counts.items()}
    yield from _wrapped("", listed(sass) or "none", lead="  SASS  ")
    yield from _wrapped(
        "",
        listed(ptx) or "none: the driver cannot compile for GPUs that are not listed above",
        lead="  PTX   ",
    )
    if any(count != fullest for count in (*sass.values(), *ptx.values())):
        yield f"        (n/{fullest}: in n code objects, where the fullest architecture is in {fullest})"


def _wrapped(label: str, text: str, lead: str = "        ") -> list[str]:
    if not text:
        return []
    return textwrap.wrap(
        label + clean(text),
        _WIDTH,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )
