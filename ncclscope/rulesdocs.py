"""The rules as Markdown: one page a rule and an index by category, always with the same headings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.engine.fold import flat
from ncclscope.knowledge.causes import CAUSES
from ncclscope.pipeline import judge
from ncclscope.selftest import CaseError, read_case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from ncclscope.engine.pack import Pack
    from ncclscope.engine.rule import Adjust, Rule
    from ncclscope.report import Finding

__all__ = ["pages"]

INDEX = "README.md"

_EFFECTS = {
    "read_only": "reads only",
    "reruns_job": "runs the job again",
    "changes_environment": "changes the environment",
    "disruptive": "disruptive",
}
_EXAMPLE_LINES = 40


def pages(rules: Sequence[Rule], pack: Pack, fixtures: Callable[[Rule], Path | None]) -> dict[str, str]:
    """Text by file name. rules: all of the pack, with their tests; fixtures: where a rule's cases find theirs.

    The example of each page is run: it shows what the rule says of it now.
    """
    ordered = sorted(rules, key=lambda r: r.id)
    texts = {INDEX: _index(ordered)}
    for rule in ordered:
        texts[f"{rule.id}.md"] = _page(rule, ordered, pack, fixtures(rule))
    return texts


def _index(rules: Sequence[Rule]) -> str:
    groups = [(name, [r for r in rules if r.role == "root" and r.category == name]) for name in CAUSES]
    covered = [(name, some) for name, some in groups if some]
    symptoms = [r for r in rules if r.role == "symptom"]
    causes = sum(len(some) for _, some in covered)
    counted = (
        f"Causes: {_many(causes, 'rule')} in {_many(len(covered), 'category', 'categories')}. "
        f"Symptoms, which only say that something failed: {_many(len(symptoms), 'rule')}."
    )
    out = [
        "<!-- Written by `ncclscope rules docs` from the rule files; change those. -->",
        "# Rules",
        counted,
        "\n".join(f"- [{name}](#{name}) ({len(some)})" for name, some in covered)
        + ("\n- [symptoms](#symptoms)" if symptoms else ""),
    ]
    for name, some in covered:
        known = CAUSES[name]
        border = f"\n\nBorder: {_md(known.border)}." if known.border else ""
        out += [f"## {name}", f"{_sentence(known.meaning)}{border}", _table(some)]
    if symptoms:
        out += ["## symptoms", "What failed, without why: folded under a cause where one is found.", _table(symptoms)]
    return "\n\n".join(out) + "\n"


def _table(rules: Sequence[Rule]) -> str:
    rows = [f"| [{r.id}]({r.id}.md) | {r.name} | {_cell(_holes(r.title))} |" for r in rules]
    return "\n".join(["| Rule | Name | Says |", "| --- | --- | --- |", *rows])


def _page(rule: Rule, rules: Sequence[Rule], pack: Pack, fixtures: Path | None) -> str:
    kind = f"[{rule.category}]({INDEX}#{rule.category})" if rule.role == "root" else f"[symptom]({INDEX}#symptoms)"
    status = "" if rule.status == "stable" else f" · {rule.status}"
    out = [
        "<!-- Written by `ncclscope rules docs` from the rule file; change that. -->",
        f"# {rule.id} {rule.name}",
        f"**{_md(_holes(rule.title))}**",
        f"{kind}{status}",
        "## What was seen",
        _sentence(rule.summary),
        "## What it means",
        _sentence(rule.cause),
        _confidence(rule),
        "## What it does not prove",
        _sentence(_holes(rule.not_proof_of) or "nothing beyond what is said above"),
        "## Example",
        *_example(rule, pack, fixtures),
        "## What to check next",
        *(_next(rule)),
    ]
    if rule.fix:
        out += ["## What puts it right", _sentence(_holes(rule.fix))]
    out += ["## Related rules", _related(rule, rules), "## Since", f"{rule.since}"]
    if rule.aliases:
        out.append(f"Former names: {', '.join(rule.aliases)}.")
    sources = "\n".join(f"- [{_md(ref.title)}]({ref.url})" for ref in rule.refs)
    out += ["## Sources", sources or "The lines themselves."]
    return "\n\n".join(part for part in out if part) + "\n"


def _confidence(rule: Rule) -> str:
    spec = rule.confidence
    most = f", never more than {spec.at_most}" if spec.at_most != "confirmed" else ""
    lines = [f"Confidence: {spec.base}{most}{'.' if not (spec.higher or spec.lower) else ':'}"]

    def steps(word: str, adjusts: Sequence[Adjust]) -> Iterator[str]:
        return (f"- {word} where {_md(_holes(a.why))}" for a in adjusts)

    rows = [*steps("more", spec.higher), *steps("less", spec.lower)]
    return "\n".join([*lines, *(["", *rows] if rows else [])])


def _example(rule: Rule, pack: Pack, fixtures: Path | None) -> Iterator[str]:
    """The first case in which the rule fires, and what it says of it."""
    case = next((c for c in rule.tests if not c.expect.silent), None)
    if case is None:
        yield "None."
        return
    yield f"{_sentence(case.name)}"
    for file, text in case.given.items():
        lines = text.rstrip("\n").split("\n")
        more = len(lines) - _EXAMPLE_LINES
        shown = "\n".join(lines[:_EXAMPLE_LINES]) + (f"\n... {_many(more, 'line')} more" if more > 0 else "")
        yield f"`{file}`:"
        yield _fence(shown, "text")
    if case.fixture:
        yield f"The lines are in `tests/fixtures/{case.fixture}`."
    try:
        given = read_case(case, pack, fixtures)
    except CaseError:
        return
    said = next((f for f in flat(judge(given.seen, pack).findings) if f.rule == rule.id), None)
    if said is not None:
        # Where the case was read from is different each time.
        title = said.title.replace(f"{given.base}/", "")
        yield f"The report: {_md(title)} ({said.confidence}){_blame(said)}."


def _blame(finding: Finding) -> str:
    who = finding.culprit
    named = [
        f"{what} {', '.join(map(str, values))}"
        for what, values in (("rank", who.ranks), ("host", who.hosts), ("GPU", who.gpus))
        if values
    ]
    return f"; culprit: {_md('; '.join(named))}" if named else ""


def _next(rule: Rule) -> Iterator[str]:
    for i, spec in enumerate(rule.next, 1):
        where = _md(_holes(spec.where))
        yield f"{i}. {_md(_holes(spec.do))} ({where}; {_EFFECTS[spec.effect]}):"
        yield "\n".join(f"   {line}" for line in _fence(_filled(spec.run), "sh").split("\n"))


def _related(rule: Rule, rules: Sequence[Rule]) -> str:
    ids = {r.id for r in rules}
    named = [o for o in rule.explains if o in CAUSES or o in ids]
    over = [r for r in rules if r is not rule and r.category and {rule.id, rule.category} & set(r.explains)]
    same = [r for r in rules if r is not rule and rule.category and r.category == rule.category]
    groups = [
        ("Accounts for", [f"[{o}]({o}.md)" if o in ids else f"[{o}]({INDEX}#{o})" for o in named]),
        (
            "May itself be accounted for by a cause of",
            [f"[{c}]({INDEX}#{c})" for c in CAUSES if any(r.category == c for r in over)],
        ),
        ("Same category", [f"[{r.id} {r.name}]({r.id}.md)" for r in same]),
    ]
    lines = [f"- {what}: {', '.join(some)}" for what, some in groups if some]
    if "symptoms" in rule.explains:
        lines.insert(0, f"- Accounts for every [symptom]({INDEX}#symptoms)")
    return "\n".join(lines) or "None."


# {name}, {signal.field}, {name|default} and {name?text {}} of a rule's texts.
_HOLE = re.compile(r"\{([a-z_0-9.]+)(?:\?([^{}]*(?:\{\}[^{}]*)?)|\|[^{}]*)?\}")


def _filled(text: str) -> str:
    """The text with <name> for what each finding fills in."""

    def put(m: re.Match[str]) -> str:
        shown = f"<{m[1].rpartition('.')[2]}>"
        return m[2].replace("{}", shown) if m[2] is not None else shown

    return _HOLE.sub(put, text).strip()


def _holes(text: str) -> str:
    """The text on one line, with its holes shown."""
    return " ".join(_filled(text).split())


def _md(text: str) -> str:
    """Plain text as Markdown shows it unchanged; what stands in backticks is code already."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:
        return _escape(text).replace("`", "\\`")
    return "`".join(part if i % 2 else _escape(part) for i, part in enumerate(parts))


def _escape(text: str) -> str:
    text = re.sub(r"([\\*\[\]])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    # An underscore inside a word is only an underscore.
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)


def _cell(text: str) -> str:
    return _md(text).replace("|", "\\|")


def _sentence(text: str) -> str:
    """Text as a sentence of its own."""
    text = " ".join(text.split())
    end = "" if text.endswith((".", "?", "!")) else "."
    return _md(text[:1].upper() + text[1:] + end)


def _fence(text: str, language: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _many(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
