"""The generated pages: headings, examples that were run, links, and that their text is stable."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sample import RULE, other_rule, write_rule

from ncclscope.engine.pack import Pack, load_pack
from ncclscope.engine.rule import load_rule, rule_files
from ncclscope.rulesdocs import pages

if TYPE_CHECKING:
    from pathlib import Path

HEADINGS = [
    "What was seen",
    "What it means",
    "What it does not prove",
    "Example",
    "What to check next",
    "What puts it right",
    "Related rules",
    "Since",
    "Sources",
]


def made(directory: Path, pack: Pack | None = None) -> dict[str, str]:
    rules = [load_rule(p.read_text(encoding="utf-8"), p.name) for p in rule_files(directory)]
    return pages(rules, pack or load_pack(directory), lambda _: None)


def test_a_page_has_always_the_same_headings(tmp_path: Path) -> None:
    """In this order, once each."""
    write_rule(tmp_path)
    page = made(tmp_path)["NS9901.md"]
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == HEADINGS
    assert page.startswith("<!-- Written by")
    assert "# NS9901 valve-stuck\n" in page


def test_the_example_is_the_first_case_that_fires_and_what_the_rule_says_of_it(tmp_path: Path) -> None:
    """The sentence in the page comes from a run, so a page cannot promise what the rule does not say."""
    write_rule(tmp_path)
    page = made(tmp_path)["NS9901.md"]
    assert "```text\n[rank1]: valve a7 is stuck\n[rank1]: pressure rises to 9\n```" in page
    assert "The report: Valve a7 is stuck on rank 1 (possible); culprit: rank 1." in page


def test_holes_are_shown_as_names(tmp_path: Path) -> None:
    """A command of the rule stands with <name> where each finding puts its value."""
    write_rule(tmp_path)
    page = made(tmp_path)["NS9901.md"]
    assert "cat /proc/valve/<valve>" in page
    assert "**Valve &lt;valve&gt; is stuck on rank &lt;ranks&gt;**" in page


def test_markdown_in_a_rule_text_is_shown_as_it_is(tmp_path: Path) -> None:
    """Angle brackets, stars, pipes and dunder names do not become markup; code in backticks stays code."""
    write_rule(tmp_path, RULE.replace("cause: Rust.", "cause: 'a * b < c of __init__, see `x_*_y` or f_g'"))
    write_rule(tmp_path, other_rule("NS9902", "pipe", RULE.replace("is stuck on", "is | on")), "NS9902-pipe.yml")
    texts = made(tmp_path)
    assert "A \\* b &lt; c of \\_\\_init\\_\\_, see `x_*_y` or f_g." in texts["NS9901.md"]
    assert "is \\| on" in texts["README.md"]


def test_related_rules_go_both_ways(tmp_path: Path) -> None:
    """What a rule accounts for, which categories account for it, and its neighbours."""
    write_rule(tmp_path, RULE.replace("explains: [symptoms]", "explains: [symptoms, nan]"))
    write_rule(
        tmp_path, other_rule("NS9902", "not-a-number", RULE.replace("category: other", "category: nan")), "b.yml"
    )
    write_rule(tmp_path, other_rule("NS9903", "not-finite", RULE.replace("category: other", "category: nan")), "c.yml")
    texts = made(tmp_path)
    assert "- Accounts for: [nan](README.md#nan)" in texts["NS9901.md"]
    assert "- May itself be accounted for by a cause of: [other](README.md#other)" in texts["NS9902.md"]
    assert "- Same category: [NS9903 not-finite](NS9903.md)" in texts["NS9902.md"]


def test_the_index_has_each_rule_once_under_its_category(tmp_path: Path) -> None:
    """Causes by category, symptoms last."""
    write_rule(tmp_path)
    symptom = other_rule(
        "NS9902", "noise", RULE.replace("role: root", "role: symptom").replace("category: other\n", "")
    )
    write_rule(tmp_path, symptom, "NS9902-noise.yml")
    index = made(tmp_path)["README.md"]
    assert index.index("## other") < index.index("[NS9901](NS9901.md)") < index.index("## symptoms")
    assert index.index("## symptoms") < index.index("[NS9902](NS9902.md)")
    assert "Causes: 1 rule in 1 category." in index


def test_an_example_that_holds_a_fence_does_not_end_its_own(tmp_path: Path) -> None:
    """The fence is longer than any run of backticks in the lines."""
    expected = "    expect: {confidence: possible"
    text = RULE.replace(expected, f"        ```\n{expected}")
    write_rule(tmp_path, text)
    assert "````text\n" in made(tmp_path)["NS9901.md"]


def test_pages_are_the_same_twice(tmp_path: Path) -> None:
    """No times, no temporary paths, no order of a set."""
    write_rule(tmp_path, RULE.replace("Valve {valve} is", "Valve {valve} in {source} is"))
    pack = load_pack(tmp_path)
    assert made(tmp_path, pack) == made(tmp_path, pack)
