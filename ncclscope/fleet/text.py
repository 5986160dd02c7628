"""The report for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ncclscope.fleet.model import FleetReport
from ncclscope.reporters.safe import harmless

__all__ = ["chances", "more", "render", "trend_words"]

_FEW = 12


def render(report: FleetReport) -> str:
    """Plain text, a heading and a table a question."""
    share = _percent(report.failed, report.jobs)
    first = f"{report.jobs} jobs: {report.failed} failed ({share}), {report.unreadable} could not be read"
    out = [f"{first}; {report.rank_hours:.1f} rank-hours in failed jobs"]
    out += _table(
        "Causes",
        ["jobs", "rank-hours", "cause", "example"],
        [[c.jobs, f"{c.rank_hours:.1f}", c.name, c.example] for c in report.causes[:_FEW]],
    )
    named = [n for n in report.nodes if n.stands_out]
    out += _table(
        "Nodes that come back more often than chance gives",
        ["failed", "of jobs", "expected", "blamed", "p", "node", "causes"],
        [
            [
                n.failed,
                n.jobs,
                f"{n.expected:.1f}",
                n.blamed,
                chances(n.p),
                n.host + _with(n.together),
                _counts(n.causes),
            ]
            for n in named[:_FEW]
        ],
        "none: no node failed more often than chance would give in jobs of these sizes",
    )
    out += more(len(named[_FEW:]) + report.more_nodes)
    gpus = [g for g in report.gpus if g.stands_out]
    out += _table(
        "GPUs that come back more often than chance gives",
        ["blamed", "p", "node", "GPU", "serial, UUID", "causes"],
        [
            [g.blamed, chances(g.p), g.host, g.gpu, ", ".join([*g.serials, *g.uuids]) or "-", _counts(g.causes)]
            for g in gpus[:_FEW]
        ],
        "none",
    )
    out += more(len(gpus[_FEW:]) + report.more_gpus)
    out += _table(
        "Xids by GPU",
        ["jobs", "lines", "Xid", "node", "GPU", "serial, UUID"],
        [
            [x.jobs, x.lines, x.xid, x.host or "-", x.gpu or "-", ", ".join([*x.serials, *x.uuids]) or "-"]
            for x in report.xids[:_FEW]
        ],
        "none in the kernel logs that were given",
    )
    out += _table(
        f"Per day{trend_words(report.trend)}",
        ["day", "jobs", "failed", "rank-hours", "causes"],
        [[d.day, d.jobs, d.failed, f"{d.rank_hours:.1f}", _counts(d.causes)] for d in report.days[-14:]],
    )
    out += _table(
        "Versions",
        ["what", "version", "jobs", "failed", "causes"],
        [[v.what, v.version, v.jobs, v.failed, _counts(v.causes)] for v in report.versions[: 2 * _FEW]],
    )
    out += _table(
        "Lines that no finding rests on",
        ["jobs", "lines", "shape", "example"],
        [[c.jobs, c.lines, c.template[:100], f"{c.job}: {c.source}:{c.line}"] for c in report.clusters[:_FEW]],
        "none",
    )
    out += [f"note: {note}" for note in report.notes]
    return "\n".join(out) + "\n"


def chances(p: float) -> str:
    """A probability for people."""
    return f"{p:.2f}" if p >= 0.01 else f"{p:.0e}"


def trend_words(trend: tuple[float, float] | None) -> str:
    """What the trend says, to follow a heading."""
    if trend is None:
        return ""
    z, p = trend
    if p > 0.05:
        return f": no trend in the share that fails (p {chances(p)})"
    return f": the share that fails {'rises' if z > 0 else 'falls'} (p {chances(p)})"


def more(count: int) -> list[str]:
    """The line below a table that could not show all who stand out."""
    return [f"  and {count} more that stand out"] if count else []


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _with(others: Sequence[str]) -> str:
    return f" (and {', '.join(others[:3])}: same jobs)" if others else ""


def _counts(causes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in list(causes.items())[:3]) or "-"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], empty: str = "none") -> list[str]:
    if not rows:
        return ["", f"{title}: {empty}"]
    cells = [list(heads), *([harmless(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    numeric = [all(isinstance(row[i], int) or str(row[i])[:1].isdigit() for row in rows) for i in range(len(heads))]
    lines = ["", title]
    for row in cells:
        shown = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  " + "  ".join(shown).rstrip())
    return lines
