"""`ncclscope events` and `ncclscope why`: what was understood, and why a rule holds or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ncclscope.observation import Observation

from ncclscope.cli.common import RULES, Format, chosen_pack, complain, die, pick_stdin, write_out

__all__ = ["events", "why"]

Paths = Annotated[
    list[str] | None,
    typer.Argument(help="Files, directories or archives; '-' is standard input.", show_default=False),
]


def events(
    paths: Paths = None,
    kind: Annotated[
        str | None, typer.Option(help="Only kinds that start with this, such as nccl. or torch.watchdog.")
    ] = None,
    rank: Annotated[int | None, typer.Option(help="Only what is known to be of this global rank.")] = None,
    tail: Annotated[int | None, typer.Option(min=1, help="Only the last N.")] = None,
    rules: Annotated[list[Path] | None, RULES] = None,
    format: Annotated[Format, typer.Option("--format")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("-o", "--output")] = None,
) -> None:
    """What the parsers understood: every event with its place and fields, and every derived fact.

    Exit status: 0 done, 2 wrong usage, 3 a path that was named could not be read.
    """
    import msgspec

    from ncclscope.pipeline import read
    from ncclscope.reporters.safe import harmless

    names, stdin = pick_stdin(list(paths or []))
    seen = read(names, stdin=stdin, pack=chosen_pack(rules))
    unread = complain(seen.missing)
    chosen = [
        o
        for o in (seen.facts.observations if seen.facts.recognised else ())
        if (kind is None or o.kind.startswith(kind)) and (rank is None or rank in o.ranks)
    ]
    chosen.sort(key=lambda o: (o.derived, o.source, o.order))
    if tail is not None:
        chosen = chosen[-tail:]
    if format is Format.JSON:
        rows = [
            {
                "place": _place(o),
                "kind": o.kind,
                "ranks": list(o.ranks),
                "hosts": list(o.hosts),
                "count": o.count,
                "fields": dict(o.fields),
            }
            for o in chosen
        ]
        write_out(msgspec.json.format(msgspec.json.encode(rows)).decode() + "\n", output)
        raise typer.Exit(unread)
    text = "".join(harmless(_row(o)) + "\n" for o in chosen)
    for problem in seen.problems:
        text += harmless(f"unreadable: {problem.path}: {problem.reason}") + "\n"
    none = (
        "no event of this kind and rank"
        if seen.facts.recognised
        else "no event: nothing of NCCL, PyTorch, a launcher or the kernel was recognised"
    )
    write_out(text or f"{none}\n", output)
    raise typer.Exit(unread)


def _place(o: Observation) -> str:
    from ncclscope.report import LineEvidence

    return next((f"{e.source}:{e.line}" for e in o.evidence if isinstance(e, LineEvidence)), "derived")


def _row(o: Observation) -> str:
    who = f" rank {','.join(map(str, o.ranks))}" if o.ranks else ""
    times = f" x{o.count}" if o.count > 1 else ""
    fields = " ".join(
        f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}"
        for name, value in o.fields.items()
        if name != "nature"
    )
    return f"{_place(o)} {o.kind}{times}{who} {fields}"


def why(
    rule_id: Annotated[str, typer.Argument(metavar="ID")],
    paths: Paths = None,
    rules: Annotated[list[Path] | None, RULES] = None,
) -> None:
    """Why a rule holds on this input or does not, condition by condition.

    Exit status: 0 done, 2 wrong usage, 3 a path that was named could not be read.
    """
    from ncclscope.engine.diagnose import Surroundings, diagnose, trace
    from ncclscope.engine.match import Index
    from ncclscope.pipeline import read

    pack = chosen_pack(rules)
    rule = pack.get(rule_id)
    if rule is None:
        die(f"no rule {rule_id!r}; `ncclscope rules list` names them all")
    names, stdin = pick_stdin(list(paths or []))
    seen = read(names, stdin=stdin, pack=pack)
    unread = complain(seen.missing)
    index = Index(seen.facts.observations)
    around = Surroundings(seen.facts.given, seen.facts.versions, seen.facts.phase_of, seen.facts.placeholders)
    signals = pack.signals[rule.id]
    candidate = diagnose(rule, signals, index, around)
    outcome = f"holds, {candidate.confidence}: {candidate.title}" if candidate else "does not hold"
    rows = trace(rule, signals, index, around)
    write_out(
        f"{rule.id} {rule.name} {outcome}\n" + "".join(f"  {answer:<8} {what}\n" for what, answer in rows),
        None,
    )
    raise typer.Exit(unread)
