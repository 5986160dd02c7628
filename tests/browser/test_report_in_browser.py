"""The HTML report in a real browser: the culprit stands out, time runs to the right, the keyboard reaches everything,
and the page asks nothing of anyone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from reports import large_report, report_of, report_with

from ncclscope.reporters import html

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ncclscope.report import Report


@dataclass
class Opened:
    """A page and what it did: requests, console lines and errors."""

    page: Any
    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def opened(report: Report, **options: Any) -> Opened:
        path = tmp_path / "report.html"
        path.write_text(html.render(report), encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        seen = Opened(context.new_page())
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("console", lambda message: seen.console.append(message.text))
        seen.page.on("pageerror", lambda error: seen.console.append(str(error)))
        seen.page.goto(path.as_uri())
        return seen

    yield opened
    for context in contexts:
        context.close()


CASES = {
    "2 ranks": (lambda: report_of("sigkill"), ["rank 1"]),
    "8 ranks": (lambda: report_of("w8-raise-tee"), ["rank 7"]),
    "16 ranks": (lambda: large_report(16), ["rank 9"]),
    "1,024 ranks": (lambda: large_report(1024), ["rank 777"]),
}
each_case = pytest.mark.parametrize("name", list(CASES))


@each_case
def test_culprit_is_marked_and_visible(name: str, show: Callable[..., Opened]) -> None:
    """Its row is in the open part of the picture, says so in words, and is drawn differently."""
    make, culprits = CASES[name]
    page = show(make()).page
    rows = page.locator(".row.culprit")
    assert [text.split(" culprit")[0] for text in rows.locator(".label").all_inner_texts()] == culprits
    assert rows.first.is_visible()
    assert "culprit" in (rows.locator("svg").first.get_attribute("aria-label") or "")
    other = page.locator(".row:not(.culprit):not(.scale)").first
    colour = "e => getComputedStyle(e).backgroundColor"
    assert rows.first.evaluate(colour) != other.evaluate(colour)


@each_case
def test_marks_stand_in_time_order(name: str, show: Callable[..., Opened]) -> None:
    """In every row a later mark is never further left, as the browser draws it; and every mark is inside the row."""
    page = show(CASES[name][0]()).page
    rows = page.evaluate(
        """() => [...document.querySelectorAll('.row svg[tabindex]')].filter(r => r.checkVisibility()).map(r => {
          const box = r.getBoundingClientRect();
          return [...r.querySelectorAll('use[data-at]')].map(m => {
            const b = m.getBoundingClientRect();
            return [parseFloat(m.dataset.at), (b.left + b.right) / 2 - box.left, box.width];
          });
        })"""
    )
    assert sum(map(len, rows)) >= 2
    for marks in rows:
        assert [m[0] for m in marks] == sorted(m[0] for m in marks)
        places = [round(m[1]) for m in marks]
        assert places == sorted(places)
        assert all(0 <= m[1] <= m[2] for m in marks)


@each_case
def test_page_asks_nothing_of_anyone(name: str, show: Callable[..., Opened]) -> None:
    """The one request is for the file itself, and the console is clean, after everything was opened and focused."""
    seen = show(CASES[name][0]())
    seen.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    for _ in range(20):
        seen.page.keyboard.press("Tab")
    seen.page.mouse.move(600, 400)
    assert [url for url in seen.requests if not url.startswith("data:")] == [seen.page.url]
    assert seen.console == []


@each_case
def test_keyboard_reaches_each_finding(name: str, show: Callable[..., Opened]) -> None:
    """Tab comes to the summary of every finding, and Enter opens and closes it."""
    page = show(CASES[name][0]()).page
    wanted = page.locator(".finding > summary").count()
    reached = set()
    for _ in range(400):
        page.keyboard.press("Tab")
        at = page.evaluate(
            "[...document.querySelectorAll('.finding > summary')].indexOf(document.activeElement)",
        )
        if at >= 0:
            reached.add(at)
            before = page.locator(".finding").nth(at).evaluate("d => d.open")
            page.keyboard.press("Enter")
            assert page.locator(".finding").nth(at).evaluate("d => d.open") != before
            page.keyboard.press("Enter")
        if len(reached) == wanted:
            break
    assert len(reached) == wanted >= 1


def test_focus_on_a_row_shows_its_lines_and_arrows_walk_them(show: Callable[..., Opened]) -> None:
    """A row names itself and lists its lines; the arrow keys go from mark to mark and from row to row."""
    page = show(report_of("sigkill")).page
    page.locator(".row.culprit svg").focus()
    line = page.locator("#line")
    assert line.inner_text().startswith("rank 1, culprit")
    assert "exitcode: -9" in line.inner_text()
    page.keyboard.press("ArrowRight")
    first = line.inner_text()
    page.keyboard.press("ArrowRight")
    assert line.inner_text() != first
    assert page.locator("use.on").count() == 1
    page.keyboard.press("ArrowUp")
    assert "culprit" not in line.inner_text().splitlines()[0]


def test_pointing_at_a_mark_shows_its_line(show: Callable[..., Opened]) -> None:
    """Place and text of the line, as the log has it."""
    page = show(report_of("sigkill")).page
    page.locator(".row.culprit use.cause").first.hover(force=True)
    assert "job.log:" in page.locator("#line").inner_text()


def test_groups_of_a_large_job_open(show: Callable[..., Opened]) -> None:
    """1,016 ranks stand in one closed row; opened, it shows its hosts, and a host its ranks."""
    page = show(large_report(1024)).page
    assert page.locator(".row svg[tabindex]:visible").count() < 20
    page.locator(".alike > summary").click()
    assert page.locator(".alike > .host > summary:visible").count() == 127
    page.locator(".alike > .host > summary").first.click()
    assert page.locator(".alike .row:visible").count() == 8


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(scheme: str, show: Callable[..., Opened]) -> None:
    """Text against its ground has the contrast of WCAG AA (4.5) for the title, labels and log lines."""
    page = show(report_of("sigkill"), color_scheme=scheme).page
    ratios = page.evaluate(
        """() => {
          const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
          const ground = (e) => { for (; e; e = e.parentElement) {
            const c = rgb(getComputedStyle(e).backgroundColor);
            if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
          const linear = (v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
          const light = (c) => c.slice(0, 3).map((v) => linear(v / 255))
            .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
          return ['h1', '.verdict', 'dt', 'dd', '.row .label', '.culprit .label', 'small', 'figure mark', 'figure span',
            'footer', 'code']
            .flatMap((s) => [...document.querySelectorAll(s)].slice(0, 3).map((e) => {
              const [a, b] = [light(rgb(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
              return [s, (a + .05) / (b + .05)]; }));
        }"""
    )
    assert [pair for pair in ratios if pair[1] < 4.5] == []


def test_narrow_window_needs_no_sideways_scrolling(show: Callable[..., Opened]) -> None:
    """On a phone the page fits; only log lines and tables scroll within themselves."""
    page = show(report_of("w8-raise-tee"), viewport={"width": 390, "height": 800}).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_printing_opens_every_finding(show: Callable[..., Opened], tmp_path: Path) -> None:
    """Paper has no mouse: what is folded on the screen is open on it."""
    seen = show(report_of("w8-raise-tee"))
    seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert seen.page.locator(".finding:not([open])").count() == 0
    seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(seen.page.pdf(path=str(tmp_path / "report.pdf"))) > 1000
    assert seen.console == []


def test_hostile_text_does_not_run(show: Callable[..., Opened]) -> None:
    """Log lines that try to run code, load or leave the page do nothing."""
    run = "document.title='owned'"
    text = f"</script><script>{run}</script><img src=https://example.org/x onerror={run}>"
    seen = show(report_with(text))
    assert "owned" not in seen.page.title() or "<script>" in seen.page.title()
    assert [url for url in seen.requests if not url.startswith(("data:", "file:"))] == []
    assert seen.page.locator("img").count() == 0
    assert seen.console == []


def test_page_works_without_scripts(show: Callable[..., Opened]) -> None:
    """With scripts off, groups still open and marks still carry their lines as titles."""
    page = show(report_of("sigkill"), java_script_enabled=False).page
    assert page.locator(".row.culprit use.cause title").count() >= 1
    assert page.locator(".finding[open]").count() == 1
