"""`ncclscope rules`: list, show, test, lint, docs, schema, new."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ncclscope.cli.common import RULES, Format, chosen_pack, die, write_out

if TYPE_CHECKING:
    from ncclscope.engine.pack import Pack
    from ncclscope.engine.rule import Rule
    from ncclscope.selftest import ReadCase

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="The rules: list, show, test, check, describe, start a new one.")

Check = Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 when a file is not up to date.")]
Directories = Annotated[list[Path] | None, RULES]


@app.command("list")
def list_rules(
    rules: Directories = None,
    format: Annotated[Format, typer.Option("--format")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("-o", "--output")] = None,
) -> None:
    """Every rule: id, category, name."""
    import msgspec

    pack = chosen_pack(rules)
    if format is Format.JSON:
        rows = [
            {"id": r.id, "name": r.name, "role": r.role, "category": r.category, "title": r.title} for r in pack.rules
        ]
        write_out(msgspec.json.format(msgspec.json.encode(rows)).decode() + "\n", output)
        return
    width = max(len(r.category or "symptom") for r in pack.rules)
    notes = "".join(f"{note}\n" for note in pack.notes)
    rows_text = "".join(f"{r.id}  {r.category or 'symptom':<{width}}  {r.name}\n" for r in pack.rules)
    write_out(rows_text + notes, output)


@app.command()
def show(rule_id: Annotated[str, typer.Argument(metavar="ID")], rules: Directories = None) -> None:
    """One rule file as it is."""
    pack = chosen_pack(rules)
    write_out(_file(_named(pack, rule_id), pack).read_text(encoding="utf-8"), None)


def _named(pack: Pack, rule_id: str) -> Rule:
    rule = pack.get(rule_id)
    if rule is None:
        die(f"no rule {rule_id!r}; `ncclscope rules list` names them all")
    return rule


def _file(rule: Rule, pack: Pack) -> Path:
    from ncclscope.engine.pack import shipped_rules

    return Path(rule.path) if rule.id in pack.own else shipped_rules() / rule.path


def _with_tests(rules: list[Rule], pack: Pack) -> list[Rule]:
    """The rules as their files have them: a pack leaves the tests out."""
    from ncclscope.engine.rule import load_rule

    return [load_rule(_file(r, pack).read_text(encoding="utf-8"), r.path) for r in rules]


def _fixtures(rule: Rule, pack: Pack) -> Path | None:
    """`tests/fixtures` beside the directory of rules, where a case may name one."""
    above = _file(rule, pack).absolute().parents
    return next((p / "tests" / "fixtures" for p in above if (p / "tests" / "fixtures").is_dir()), None)


@app.command("test")
def run_tests(
    rule_ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", show_default=False)] = None,
    rules: Directories = None,
    mutate: Annotated[
        bool,
        typer.Option(
            "--mutate",
            help="Also weaken each rule in one place at a time; cases that do not notice fail the run.",
        ),
    ] = False,
    alternatives: Annotated[
        bool, typer.Option("--alternatives", help="With --mutate: also drop each kind and value of a list.")
    ] = False,
) -> None:
    """Run the positive and negative cases that rules carry: of ID..., else of --rules DIR, else of all."""
    from ncclscope.selftest import run_rule

    pack = chosen_pack(rules)
    chosen = [_named(pack, i) for i in rule_ids or ()]
    if not chosen:
        chosen = [r for r in pack.rules if not rules or not pack.own or r.id in pack.own]
    failed = passed = tried = survived = 0
    for rule in _with_tests(chosen, pack):
        results = run_rule(rule, pack, _fixtures(rule, pack))
        for result in results:
            if result.problems:
                typer.echo(f"FAIL {rule.id}: {result.case.name}")
            for problem in result.problems:
                typer.echo(f"     {problem}")
        wrong = sum(bool(r.problems) for r in results)
        failed += wrong
        passed += len(results) - wrong
        if mutate and wrong:
            typer.echo(f"SKIP {rule.id} {rule.name}: not mutated while its own cases fail")
        elif mutate:
            count, left = _mutate(rule, [r.given for r in results if r.given is not None], pack, alternatives)
            tried += count
            survived += left
    typer.echo(f"{passed} passed, {failed} failed" + (f"; {tried} mutants, {survived} survived" if mutate else ""))
    raise typer.Exit(1 if failed or survived else 0)


def _mutate(rule: Rule, cases: list[ReadCase], pack: Pack, alternatives: bool) -> tuple[int, int]:
    """Prints every mutant that no case notices; returns how many were tried and how many are left."""
    from ncclscope.mutate import survivors

    count, left = survivors(rule, cases, pack, alternatives=alternatives)
    if left:
        typer.echo(f"SURVIVED {rule.id} {rule.name}: no case notices {len(left)} of {count} mutants")
    for mutant in left:
        typer.echo(f"     without {mutant.what}\n       {mutant.remedy}; or drop it from the rule")
    return count, len(left)


@app.command("lint")
def lint_rules(rules: Directories = None) -> None:
    """Check every rule, or those of --rules DIR: errors make it unfit to ship, issues make it poor."""
    from ncclscope.engine.lint import lint
    from ncclscope.engine.pack import shipped_rules
    from ncclscope.kinds import kinds

    base = shipped_rules()
    own = [d for d in rules or () if d.resolve() != base.resolve()]
    errors: list[str] = []
    checked = _read_all(own or [base], errors)
    among = [*_read_all([base], []), *checked] if own else checked
    problems = lint(checked, kinds(), among)
    errors += [p.at(Path()) for p in problems if p.level == "error"]
    issues = [p.at(Path()) for p in problems if p.level == "issue"]
    for level, texts in (("error", errors), ("issue", issues)):
        for text in texts:
            typer.echo(f"{level} {text}")
    typer.echo(f"{len(checked)} rules, {len(errors)} errors, {len(issues)} issues")
    raise typer.Exit(1 if errors else 0)


def _read_all(directories: list[Path], errors: list[str]) -> list[Rule]:
    """Every rule that can be read, with its tests; of one id the last. What cannot goes to `errors`."""
    from ncclscope.engine.rule import RuleError, load_rule, rule_files

    found: dict[str, Rule] = {}
    for directory in directories:
        if not directory.is_dir():
            die(f"{directory}: not a directory; name the directory that holds the rule files")
        here = Path.cwd()
        for file in rule_files(directory):
            path = file.relative_to(here) if file.is_relative_to(here) else file
            try:
                rule = load_rule(file.read_bytes().decode("utf-8"), str(path))
            except RuleError as error:
                errors.append(str(error))
            except (OSError, UnicodeDecodeError) as error:
                errors.append(f"{path}:1: cannot be read as UTF-8 text: {error}")
            else:
                twin = found.get(rule.id)
                if twin is not None and Path(twin.path).is_relative_to(directory):
                    errors.append(f"{path}:1: the id {rule.id} is taken by {twin.path}; ids are never reused")
                found[rule.id] = rule
    return list(found.values())


@app.command()
def docs(
    check: Check = False,
    out: Annotated[Path, typer.Option("--out", help="Where the pages go.")] = Path("docs/rules"),
    rules: Directories = None,
) -> None:
    """Write one page a rule and an index by category, from the rule files."""
    from ncclscope.rulesdocs import pages

    pack = chosen_pack(rules)
    texts = pages(_with_tests(list(pack.rules), pack), pack, lambda rule: _fixtures(rule, pack))
    _bring(texts, out, check, "ncclscope rules docs", [p.name for p in out.glob("*.md")])


@app.command()
def schema(
    check: Check = False,
    out: Annotated[
        Path, typer.Option("--out", help="Where the rules' schema goes; the report's goes beside it.")
    ] = Path("schema/rule.schema.json"),
) -> None:
    """Write the JSON Schemas: of rule files (for editors) and of the report."""
    import json

    from ncclscope.report import json_schema
    from ncclscope.rulesschema import rule_schema

    files = {out.name: rule_schema(), "report.schema.json": json_schema()}
    texts = {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in files.items()}
    _bring(texts, out.parent, check, "ncclscope rules schema", [])


def _bring(texts: dict[str, str], out: Path, check: bool, command: str, present: list[str]) -> None:
    """Makes the files of `out` what `texts` says, or only tells what is not; `present` may hold stale ones."""
    problems: list[str] = []
    stale = sorted(set(present) - set(texts))
    for name, text in texts.items():
        path = out / name
        if not path.is_file():
            problems.append(f"{path} is missing")
        elif path.read_text(encoding="utf-8") != text:
            problems.append(f"{path} differs")
    problems += [f"{out / name} is stale: no rule makes it" for name in stale]
    if check:
        for problem in problems:
            typer.echo(problem)
        if problems:
            typer.echo(f"`{command}` brings them up to date")
        raise typer.Exit(1 if problems else 0)
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_out(text, out / name)
    for name in stale:
        (out / name).unlink()
    typer.echo(f"{out}: {len(texts)} files, {len(problems)} changed")


_SKELETON = """schema: 1
id: {id}
name: {name}
title: "TODO: what happened, on rank {{ranks|?}}"
role: root
category: other
since: "{version}"
summary: "TODO: what was seen."
cause: "TODO: what it most likely means."
not_proof_of: "TODO: what it must not be read as"
signals:
  seen: {{line: 'TODO: the stable part of the line', has: "TODO: the stable part of the line"}}
when:
  all: [seen]
blame: seen
confidence: {{base: likely}}
explains: [symptoms]
next:
  - do: "TODO: the cheapest check that confirms it"
    run: "TODO: dmesg -T | tail -n 50"
    where: "host {{host}}"
    effect: read_only
fix: "TODO: what puts it right."
refs:
  - {{title: "TODO: where this is known from", url: "TODO: https://example.org/"}}
tests:
  - name: a real excerpt in which it must fire
    given:
      job.log: |
        TODO: paste the lines here
    expect: {{confidence: likely, first: true}}
  - name: the nearest neighbour, which must stay silent
    given:
      job.log: |
        TODO: paste a line that a colleague would object with
    expect: {{silent: true}}
  - name: a healthy line of the same program
    given:
      job.log: |
        TODO: paste a healthy line
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

    from ncclscope.engine.pack import load_pack
    from ncclscope.version import __version__

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
    typer.echo(
        f"wrote {path}: fill it in, then `ncclscope rules test {rule_id} --rules {directory}`"
        f" and `ncclscope rules lint --rules {directory}`"
    )
