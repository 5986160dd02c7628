"""Charts as inline SVG: sizes in pixels of the viewBox, colours from the page's style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ncclscope.reporters.safe import harmless

__all__ = ["bars", "days_chart", "observed_expected"]

_WIDTH = 760
_ROW = 22
_LABEL = 210
_HEIGHT = 180


def _text(x: float, y: float, text: str, *, anchor: str = "start", css: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}">{escape(harmless(text))}</text>'


def _rect(x: float, y: float, width: float, height: float, css: str, title: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" class="{css}">'
        f"<title>{escape(harmless(title))}</title></rect>"
    )


def _svg(height: float, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def bars(label: str, values: Sequence[tuple[str, float, str]]) -> str:
    """Horizontal bars: (name, value, value as shown)."""
    most = max((value for _, value, _ in values), default=0) or 1
    room = _WIDTH - _LABEL - 90
    parts = []
    for row, (name, value, shown) in enumerate(values):
        y = row * _ROW
        width = room * value / most
        parts.append(_text(_LABEL - 8, y + 15, name, anchor="end"))
        parts.append(_rect(_LABEL, y + 4, width, _ROW - 8, "bar", f"{name}: {shown}"))
        parts.append(_text(_LABEL + width + 6, y + 15, shown, css="dim"))
    return _svg(max(1, len(values)) * _ROW, label, parts)


def days_chart(label: str, days: Sequence[tuple[str, int, Mapping[str, int]]], causes: Sequence[str]) -> str:
    """One column a day: (day, jobs, failed jobs by cause); the named causes have colours, the others share one."""
    most = max((jobs for _, jobs, _ in days), default=0) or 1
    step = (_WIDTH - 60) / max(len(days), 1)
    width = min(40.0, step * 0.8)
    parts = [_text(40, 12, str(most), anchor="end", css="dim"), _text(40, _HEIGHT + 10, "0", anchor="end", css="dim")]
    every = max(1, len(days) // 8)
    for column, (day, jobs, failed) in enumerate(days):
        x = 50 + column * step
        scale = _HEIGHT / most
        parts.append(_rect(x, 10 + _HEIGHT - jobs * scale, width, jobs * scale, "jobs", f"{day}: {jobs} jobs"))
        top = 10.0 + _HEIGHT
        order = {name: place for place, name in enumerate(causes)}
        for name, count in sorted(failed.items(), key=lambda item: order.get(item[0], len(order))):
            top -= count * scale
            place = order.get(name)
            css = "c0" if place is None else f"c{place + 1}"
            parts.append(_rect(x, top, width, count * scale, css, f"{day}: {name} {count}"))
        if column % every == 0:
            parts.append(_text(x, _HEIGHT + 26, day[5:], css="dim"))
    return _svg(_HEIGHT + 32, label, parts)


def observed_expected(label: str, rows: Sequence[tuple[str, int, float, bool]]) -> str:
    """Horizontal bars with a mark where chance would end: (name, observed, expected, whether it stands out)."""
    most = max((max(float(seen), expected) for _, seen, expected, _ in rows), default=0) or 1
    room = _WIDTH - _LABEL - 90
    parts = []
    for row, (name, seen, expected, out) in enumerate(rows):
        y = row * _ROW
        width = room * seen / most
        at = _LABEL + room * expected / most
        parts.append(_text(_LABEL - 8, y + 15, name, anchor="end"))
        parts.append(
            _rect(_LABEL, y + 4, width, _ROW - 8, "out" if out else "bar", f"{name}: {seen}, chance {expected:g}")
        )
        parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y + 2}" y2="{y + _ROW - 2}" class="mark"/>')
        parts.append(_text(_LABEL + width + 6, y + 15, str(seen), css="dim"))
    return _svg(max(1, len(rows)) * _ROW, label, parts)
