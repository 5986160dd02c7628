"""analyze(): wires the stages together and owns their options."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from ncclscope.engine.diagnose import Candidate, Surroundings, diagnose, input_word
from ncclscope.engine.fold import fold
from ncclscope.engine.match import Index
from ncclscope.engine.pack import Pack, load_pack
from ncclscope.facts import FactOptions, Facts, build_facts
from ncclscope.gate import Gate, Wanted, make_gate
from ncclscope.index import PatternIndex
from ncclscope.parsers import BLOCKS, PATTERNS
from ncclscope.parsers.pattern import Pattern
from ncclscope.reader import read_input
from ncclscope.report import SCHEMA_VERSION, UNSET, Finding, InputInfo, Ranks, Report
from ncclscope.sources import SourceProblem, discover, missing
from ncclscope.sources.names import natural
from ncclscope.store import EventStore
from ncclscope.verdict import conclude
from ncclscope.version import __version__

__all__ = ["Options", "Read", "analyze", "judge", "raw_patterns", "read", "with_commands"]

# Inputs that a command names one by one.
_MOST_NAMED = 8


class Options(msgspec.Struct, frozen=True):
    """gpu: the GPU's architecture where the input does not show it ("sm_120"). as_of: seconds since 1970 at which a job
    that still hangs was looked at; without it the last write of a file counts. progress: called with bytes read so far.
    gated: False reads every line (slow; the answer is the same)."""

    gpu: str | None = None
    as_of: float | None = None
    gated: bool = True
    make_gate: Callable[[Sequence[Wanted]], Gate] = make_gate
    progress: Callable[[str, int], None] | None = None


class Read(msgspec.Struct, frozen=True):
    """What the inputs hold, before any rule is asked. missing: those of the problems that are a path as it was asked
    for, of which nothing could be read."""

    store: EventStore
    facts: Facts
    problems: tuple[SourceProblem, ...]
    warnings: tuple[str, ...]
    missing: tuple[SourceProblem, ...] = ()


def analyze(
    paths: Sequence[str | Path],
    *,
    stdin: BinaryIO | None = None,
    options: Options | None = None,
    pack: Pack | None = None,
) -> Report:
    """Triages all of `paths` together as one job and returns the report.

    Files, directories, globs and archives are read as streams. Nothing is raised for bad input: unreadable files are
    named in the report. Raises PackError when the rules themselves are broken.
    """
    options = options or Options()
    pack = pack or load_pack()
    return judge(read(paths, stdin=stdin, options=options, pack=pack), pack)


def read(
    paths: Sequence[str | Path],
    *,
    stdin: BinaryIO | None = None,
    options: Options | None = None,
    pack: Pack | None = None,
) -> Read:
    """Reads and joins the inputs without asking any rule."""
    options = options or Options()
    patterns = [*PATTERNS, *(raw_patterns(pack) if pack else [])]
    index = PatternIndex(patterns, BLOCKS, options.make_gate)
    names = [str(path) for path in paths]
    inputs, problems = discover(names, stdin=stdin)
    store = EventStore()
    warnings: list[str] = []
    for source in inputs:
        try:
            read_input(source, index, store, warnings.append, gated=options.gated, progress=options.progress)
        except OSError as error:
            problems.append(SourceProblem(source.name, error.strerror or str(error)))
    facts = build_facts(store, FactOptions(gpu=options.gpu, as_of=options.as_of), warnings.append)
    lost = missing(names, inputs, problems)
    gone = {problem.path for problem in lost}
    facts = with_commands(facts, [name for name in names if name not in gone])
    return Read(store, facts, tuple(problems), tuple(warnings), lost)


def with_commands(facts: Facts, paths: Sequence[str]) -> Facts:
    """The facts for rules whose commands read `paths` again: in {inputs} as they were given, many of them as a pattern
    that finds the same. Where neither can be written the command asks for the log."""
    names = sorted(dict.fromkeys(paths), key=natural)
    if len(names) > _MOST_NAMED:
        start = _common(names)
        end = _common([name[len(start) :][::-1] for name in names])[::-1]
        pattern = f"{glob.escape(start)}*{glob.escape(end)}"
        found = glob.glob(pattern)  # noqa: PTH207 - Path.glob loses the name as given
        names = [pattern] if set(found) == set(names) else []
    words = [input_word(name) for name in names]
    return msgspec.structs.replace(facts, placeholders={"inputs": " ".join(words) if all(words) else ""})


def _common(names: list[str]) -> str:
    """How all of the names begin."""
    first, last = min(names), max(names)
    return first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def judge(seen: Read, pack: Pack, *, picture: bool = False) -> Report:
    """Asks every rule and writes the report. picture: with the timeline and the facts of the job."""
    index = Index(seen.facts.observations)
    around = Surroundings(seen.facts.given, seen.facts.versions, seen.facts.phase_of, seen.facts.placeholders)
    candidates: list[Candidate] = []
    warnings = list(seen.warnings)
    for rule in pack.about(index.keys()):
        try:
            candidate = diagnose(rule, pack.signals[rule.id], index, around)
        except Exception as error:  # a bug in one rule must not cost the report
            warnings.append(f"rule {rule.id} failed: {type(error).__name__}: {error}")
            continue
        if candidate is not None:
            candidates.append(candidate)
    warnings += [*pack.notes, *seen.facts.notes]
    inputs = [
        InputInfo(
            path=s.path,
            bytes=s.bytes,
            lines=s.lines,
            events=s.events,
            format=s.format,
            note="; ".join(s.notes) or UNSET,
        )
        for s in seen.store.streams
    ]
    inputs += [InputInfo(p.path, 0, 0, 0, "unreadable", note=p.reason) for p in seen.problems]
    verdict, findings, unknowns, collect = conclude(fold(candidates), seen.facts)
    job, timeline = seen.facts.picture(findings) if picture else (UNSET, UNSET)
    return Report(
        schema_version=SCHEMA_VERSION,
        verdict=verdict,
        findings=findings,
        unknowns=unknowns,
        collect=collect,
        ranks=_with_first(seen.facts.ranks, findings),
        inputs=inputs,
        warnings=warnings,
        tool_version=__version__,
        job=job,
        timeline=timeline,
    )


def _with_first(ranks: Ranks, findings: Sequence[Finding]) -> Ranks:
    """The ranks with the first to fail, where the first finding blames one rank alone."""
    if findings and findings[0].role == "root_cause" and len(findings[0].culprit.ranks) == 1:
        return Ranks(ranks.expected, ranks.seen, findings[0].culprit.ranks[0])
    return ranks


def raw_patterns(pack: Pack) -> list[Pattern]:
    """Patterns that rules bring themselves; those of a user's own rules run under a time limit."""
    return [
        Pattern(signal.kinds[-1], signal.has or "", signal.line, guarded=rule_id in pack.own)
        for rule_id, signals in pack.signals.items()
        for signal in signals.values()
        if signal.line is not None
    ]
