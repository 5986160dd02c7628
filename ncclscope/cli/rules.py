"""`ncclscope rules`: list, show, test, lint, new."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ncclscope.cli.common import Format, die, write_out

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
    fixtures = root.parent / "tests" / "fixtures"
    for result in run_rules(rules, pack, fixtures):
        if result.problems:
            failed += 1
            typer.echo(f"FAIL {result.rule}: {result.case}")
            for problem in result.problems:
                typer.echo(f"     {problem}")
        else:
            passed += 1
    typer.echo(f"{passed} passed, {failed} failed")
    raise typer.Exit(1 if failed else 0)
