"""The HTML page without a browser: self-contained, small, and with a policy that fits what is in it."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from msgspec.structs import replace
from reports import large_report, report_of, report_with

from ncclscope.report import Lane, Mark, Span, Timeline
from ncclscope.reporters import html
from ncclscope.reporters.html_axis import Axis, duration


def test_policy_allows_the_page_its_own_style_and_script_and_nothing_else() -> None:
    """The hashes in the policy are those of the one style and the one script; no attribute holds either."""
    page = html.render(report_of("sigkill"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src &#x27;none&#x27;;")
    for tag in ("style", "script"):
        [source] = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() in policy[1]
    assert not re.search(r"<[^>]* (?:style|on\w+)=", page)


def test_page_names_nothing_outside_itself() -> None:
    """No element loads anything: every reference is to the page, or empty data."""
    page = html.render(report_of("ima"))
    assert set(re.findall(r'(?:href|src)="([^"#]*)', page)) <= {"data:,", ""}
    assert "@import" not in page
    assert "url(" not in page


@pytest.mark.parametrize("ranks", [1024, 4096])
def test_page_stays_under_1_mb(ranks: int) -> None:
    """A ticket takes the file whatever the size of the job, and the culprit is drawn."""
    page = html.render(large_report(ranks))
    assert len(page.encode()) < 1_000_000
    assert re.search(r'class="row culprit"><span class="label">rank 777<em>', page)


def test_pictures_of_hostile_size_are_bounded() -> None:
    """Marks with long texts in thousands of lanes cannot make the page large."""
    report = report_with("w" * 160)
    assert report.timeline
    lanes = report.timeline.lanes * 3000
    page = html.render(replace(report, timeline=replace(report.timeline, lanes=lanes)))
    assert len(page.encode()) < 1_000_000


def test_ranks_that_went_the_same_way_share_a_row() -> None:
    """1,016 ranks on 127 hosts that only noticed the failure stand in one row that opens."""
    page = html.render(large_report(1024))
    assert page.count('<details class="alike">') == 1
    assert "127 hosts alike" in page


def _timeline(*times: float) -> Timeline:
    marks = [Mark("echo", "a.log", i, "x", at=t) for i, t in enumerate(times, 1)]
    return Timeline(
        "2026-05-26T23:59:50.000000", "unknown", max(times), [Lane(rank=0, marks=marks, spans=[Span("running", 0, 5)])]
    )


def test_axis_keeps_the_order_and_shortens_what_is_empty() -> None:
    """Three days of silence do not squeeze the last seconds into one pixel, and say how long they were."""
    times = [0, 10, 20, 3 * 86400, 3 * 86400 + 5, 3 * 86400 + 9]
    axis = Axis(_timeline(*times))
    places = [axis.x(t) for t in times]
    assert places == sorted(places)
    assert places[5] - places[3] > 5
    assert [round(b.seconds) for b in axis.breaks] == [3 * 86400 - 20]
    assert all(1 <= x <= 99 for x in places)


def test_clock_goes_past_midnight() -> None:
    """Times on the axis are times of day, the next day marked."""
    axis = Axis(_timeline(0, 5, 30))
    assert axis.clock(0) == "23:59:50"
    assert axis.clock(20) == "00:00:10 (+1 d)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "0.25 s"), (86.4, "86.4 s"), (134, "2 min 14 s"), (18_720, "5 h 12 min"), (273_600, "3 d 4 h")],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    """Two units at most."""
    assert duration(seconds) == text


def test_lines_around_the_evidence_are_shown_with_their_numbers() -> None:
    """The proof stands in its context, marked."""
    page = html.render(report_of("sigkill"))
    assert re.search(r"<span><i>150</i>.*</span>\n<mark><i>151</i>.*failed \(exitcode: -9\)", page)
