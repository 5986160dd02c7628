"""Text of a log comes out inert in every format: no markup, no link, no mention, no control character."""

from __future__ import annotations

import json
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reports import report_with
from strategies import HOSTILE

from ncclscope.report import to_json
from ncclscope.reporters import html, markdown, terminal
from ncclscope.reporters.safe import harmless

SNIPPETS = (
    "<script>alert(1)</script>",
    "</title></style><img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)>",
    "</pre></details></section>",
    "-->",
    "```",
    "````\n# heading",
    "`code`",
    "[link](https://example.org)",
    "![image](https://example.org/a.png)",
    "https://example.org/x",
    "www.example.org",
    "someone@example.org",
    "@octocat",
    "#1234",
    "GH-12",
    "owner/repo#3",
    "**bold** _it_ ~~no~~",
    "| cell | cell |",
    "$x^2$",
    ":smile:",
    "&lt;b&gt; &amp;",
    "\\",
    "1. one",
    "- [ ] task",
    "> quote",
    "===",
    *HOSTILE,
)
TEXTS = st.lists(
    st.one_of(st.sampled_from(SNIPPETS), st.text(max_size=12), st.sampled_from((" ", "\n", "x" * 3000))),
    min_size=1,
    max_size=6,
).map("".join)
NAMES = {"html", "head", "meta", "link", "title", "style", "script", "body", "a", "header", "main", "section", "footer"}
NAMES |= {
    "h1",
    "h2",
    "h3",
    "h4",
    "p",
    "dl",
    "dt",
    "dd",
    "ul",
    "ol",
    "li",
    "details",
    "summary",
    "figure",
    "figcaption",
    "pre",
}
NAMES |= {"code", "span", "mark", "i", "b", "em", "small", "strong", "div", "table", "thead", "tbody", "tr", "th", "td"}
NAMES |= {"svg", "g", "defs", "use", "rect", "circle", "path", "text"}


def steering(text: str) -> list[str]:
    """Characters that steer a terminal or reorder what a reader sees."""
    return [
        c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c != "\u200b"
    ]


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts = 0
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "link", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@settings(max_examples=60, deadline=None)
@given(TEXTS)
@example("<script>alert(1)</script>\x1b[31m\u202e")
def test_html_holds_log_text_as_text_only(text: str) -> None:
    """The elements and attributes of the page are the same for every text; nothing in it can run or load."""
    page = html.render(report_with(f"x{text}"))
    plain, hostile = _Elements(), _Elements()
    plain.feed(html.render(report_with("plain")))
    hostile.feed(page)
    hostile.close()
    assert len(hostile.names) == len(plain.names)
    assert hostile.names == plain.names
    assert hostile.open == []
    assert set(hostile.names) <= NAMES
    assert [name for name, _ in hostile.attributes] == [name for name, _ in plain.attributes]
    addresses = {value for name, value in hostile.attributes if name in ("href", "src", "action", "xlink:href")}
    assert all(value is not None and value.startswith(("#", "data:,")) for value in addresses)
    assert steering(page) == []


@settings(max_examples=60, deadline=None)
@given(TEXTS)
@example("`" * 50)
def test_markdown_holds_log_text_as_text_only(text: str) -> None:
    """A CommonMark parser finds the same structure for every text, and no link, image, emphasis or markup from it."""
    page = markdown.render(report_with(text))
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for token in parser.parse(page):
        if token.type == "html_block":
            assert token.content.strip().splitlines()[0] in ("<details>", "</details>"), token.content
        for child in token.children or ():
            assert child.type in (
                "text",
                "text_special",
                "code_inline",
                "softbreak",
                "strong_open",
                "strong_close",
                "html_inline",
            )
            if child.type == "html_inline":
                assert child.content in ("<sub>", "</sub>")
    assert steering(page) == []
    assert len(page.encode()) <= markdown.LIMIT


@pytest.mark.parametrize("text", [pytest.param(c * 100_000, id=f"100 kB of {c!r}") for c in "x<`_|漢"])
def test_lines_of_100_kb_cost_no_more_than_others(text: str) -> None:
    """A long line is cut in the middle, and the structure of the page is the same."""
    page = html.render(report_with(f"x{text}"))
    plain, hostile = _Elements(), _Elements()
    plain.feed(html.render(report_with("plain")))
    hostile.feed(page)
    same = hostile.names == plain.names
    assert same
    assert len(page.encode()) < 300_000
    assert len(markdown.render(report_with(text)).encode()) <= markdown.LIMIT
    assert len(terminal.render(report_with(text), to_terminal=False, width=80)) < 3_000_000


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(SNIPPETS), min_size=1, max_size=3).map(" ".join))
def test_markdown_renders_a_title_as_it_was_written(text: str) -> None:
    """What the reader sees is the text itself, with its control characters shown as escapes."""
    shown = " ".join(harmless(text).split())
    if len(shown) > 250:
        return
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    heading = parser.parse(markdown.render(report_with(shown)))[1]
    seen = "".join(child.content for child in heading.children or ())
    assert seen.replace("\u200b", "") == f"Root cause: {shown}".strip()


@pytest.mark.parametrize("snippet", ["@octocat", "#1234", "GH-12", "https://example.org/x", "www.example.org"])
def test_markdown_makes_no_references_of_plain_text(snippet: str) -> None:
    """Mentions, issue numbers and addresses, which GitHub makes links of, are broken up outside of code."""
    page = markdown.render(report_with(f"see {snippet} there"))
    outside = [part for i, part in enumerate(page.split("```")) if i % 2 == 0]
    lines = [line for part in outside for line in part.splitlines() if not line.startswith("`see")]
    assert not any(snippet in line for line in lines)


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.integers(20, 220))
def test_terminal_text_steers_nothing(text: str, width: int) -> None:
    """Without colours the text report holds no control character at all, at any width."""
    assert steering(terminal.render(report_with(text), to_terminal=False, width=width)) == []


@settings(max_examples=40, deadline=None)
@given(TEXTS)
def test_json_is_the_text_itself(text: str) -> None:
    """JSON escapes what it must and changes nothing."""
    assert json.loads(to_json(report_with(text)))["findings"][0]["title"] == text
