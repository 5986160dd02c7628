"""`ncclscope rules`: list, show, test, lint, new."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncclscope.cli.common import Format, die, write_out

if TYPE_CHECKING:
    from ncclscope.engine.pack import Pack
    from ncclscope.engine.rule import Rule

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="The rules: list, show, test, lint, start a new one.")


@app.command("list")
def list_rules(
    format: Annotated[Format, typer.Option("--format")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("-o", "--output")] = None,
) -> None:
    """Every rule: id, category, name."""
    import msgspec

    from ncclscope.engine.pack import load_pack

    pack = load_pack()
    if format is Format.JSON:
        rows = [
            {"id": r.id, "name": r.name, "role": r.role, "category": r.category, "title": r.title}
            for r in pack.rules
        ]
        write_out(msgspec.json.format(msgspec.json.encode(rows)).decode() + "\n", output)
        return
    width = max(len(r.category or "symptom") for r in pack.rules)
    write_out("".join(f"{r.id}  {r.category or 'symptom':<{width}}  {r.name}\n" for r in pack.rules), output)


@app.command()
def show(rule_id: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """One rule file as it is."""
    from ncclscope.engine.pack import load_pack, shipped_rules

    rule = load_pack().get(rule_id)
    if rule is None:
        die(f"no rule {rule_id!r}; `ncclscope rules list` names them all")
    write_out((shipped_rules() / rule.path).read_text(encoding="utf-8"), None)


@app.command()
def test(
    rule_ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", show_default=False)] = None,
    directory: Annotated[
        Path | None, typer.Option("--rules", help="Test the rules of this directory.")
    ] = None,
    mutate: Annotated[
        bool,
        typer.Option(
            "--mutate",
            help="Also weaken each rule in one place at a time; cases that do not notice fail the run.",
        ),
    ] = False,
) -> None:
    """Run the positive and negative cases that rules carry."""
    from ncclscope.engine.pack import PackError, load_pack, shipped_rules
    from ncclscope.engine.rule import load_rule, rule_files
    from ncclscope.selftest import run_rules

    root = directory or shipped_rules()
    try:
        pack = load_pack(root)
        rules = [
            load_rule(p.read_text(encoding="utf-8"), p.relative_to(root).as_posix()) for p in rule_files(root)
        ]
    except PackError as error:
        die(str(error))
    if rule_ids:
        wanted = {r.id for i in rule_ids if (r := pack.get(i))}
        missing = [i for i in rule_ids if pack.get(i) is None]
        if missing:
            die(f"no rule {missing[0]!r}; `ncclscope rules list` names them all")
        rules = [r for r in rules if r.id in wanted]
    failed = passed = 0
    failing: set[str] = set()
    fixtures = root.parent / "tests" / "fixtures"
    for result in run_rules(rules, pack, fixtures):
        if result.problems:
            failed += 1
            failing.add(result.rule)
            typer.echo(f"FAIL {result.rule}: {result.case}")
            for problem in result.problems:
                typer.echo(f"     {problem}")
        else:
            passed += 1
    typer.echo(f"{passed} passed, {failed} failed")
    survived = _mutate(rules, failing, pack, fixtures) if mutate else 0
    raise typer.Exit(1 if failed or survived else 0)


def _mutate(rules: list[Rule], failing: set[str], pack: Pack, fixtures: Path) -> int:
    """Prints every mutant that no case notices; returns how many."""
    from ncclscope.mutate import survivors

    tried = survived = 0
    for rule in rules:
        if rule.id in failing:
            typer.echo(f"SKIP {rule.id} {rule.name}: not mutated while its own cases fail")
            continue
        count, mutants = survivors(rule, pack, fixtures)
        tried += count
        survived += len(mutants)
        if mutants:
            typer.echo(f"SURVIVED {rule.id} {rule.name}: no case notices {len(mutants)} of {count} mutants")
        for mutant in mutants:
            typer.echo(f"     without {mutant.what}\n       {mutant.remedy}; or drop it from the rule")
    typer.echo(f"{tried} mutants, {survived} survived")
    return survived


@app.command("lint")
def lint_rules(
    directory: Annotated[Path | None, typer.Option("--rules", help="Check the rules of this directory.")] = None,
) -> None:
    """Check every rule: errors make it unusable, issues make it poor."""
    from ncclscope.engine.lint import lint
    from ncclscope.engine.pack import shipped_rules
    from ncclscope.engine.rule import RuleError, load_rule, rule_files
    from ncclscope.kinds import kinds

    root = directory or shipped_rules()
    rules, errors = [], 0
    for path in rule_files(root):
        try:
            rules.append(load_rule(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()))
        except RuleError as error:
            errors += 1
            typer.echo(f"error {error}")
    problems = lint(rules, kinds())
    for problem in problems:
        typer.echo(f"{problem.level} {problem.rule}: {problem.text}")
    errors += sum(p.level == "error" for p in problems)
    issues = sum(p.level == "issue" for p in problems)
    typer.echo(f"{len(rules)} rules, {errors} errors, {issues} issues")
    raise typer.Exit(1 if errors else 0)


_SKELETON = """schema: 1
id: {id}
name: {name}
title: "What happened, on rank {{ranks|?}}"
role: root
category: other
since: "{version}"
summary: What was seen.
cause: What it most likely means.
not_proof_of: what it must not be read as
signals:
  seen: {{line: 'the stable part of the line', has: "the stable part of the line"}}
when:
  all: [seen]
blame: seen
confidence: {{base: likely}}
explains: [symptoms]
next:
  - do: "The cheapest check that confirms it"
    run: "dmesg -T | tail -n 50"
    where: "host {{host}}"
    effect: read_only
fix: "What puts it right."
refs:
  - {{title: "Where this is known from", url: "https://example.org/"}}
tests:
  - name: a real excerpt in which it must fire
    given:
      job.log: |
        paste the lines here
    expect: {{confidence: likely, first: true}}
  - name: the nearest neighbour, which must stay silent
    given:
      job.log: |
        paste a line that a colleague would object with
    expect: {{silent: true}}
  - name: a healthy line of the same program
    given:
      job.log: |
        paste a healthy line
    expect: {{silent: true}}
"""


@app.command()
def new(
    rule_id: Annotated[str, typer.Argument(metavar="ID", help="NS and four digits, not used before.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="A slug such as stuck-proxy.")],
    directory: Annotated[Path, typer.Option("--in", help="Where to write it.")] = Path("rules"),
) -> None:
    """Write a skeleton with tests that fail until the rule is filled in."""
    import re

    from ncclscope import __version__
    from ncclscope.engine.pack import load_pack

    if not re.fullmatch(r"NS\d{4}", rule_id):
        die(f"{rule_id!r}: an id is NS and four digits, for example NS2111")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        die(f"{name!r}: a name is a slug such as stuck-proxy")
    taken = load_pack().get(rule_id) or load_pack().get(name)
    if taken is not None:
        die(f"{rule_id} {name}: taken by {taken.path}; ids and names are never reused")
    path = directory / f"{rule_id}-{name}.yml"
    if path.exists():
        die(f"{path} exists")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_SKELETON.format(id=rule_id, name=name, version=__version__), encoding="utf-8")
    typer.echo(f"wrote {path}: fill it in, then `ncclscope rules test {rule_id} --rules {directory}` and `ncclscope rules lint`")
