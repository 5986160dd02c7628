"""The report as one HTML page that needs nothing else: style and charts are inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ncclscope.fleet.charts import bars, days_chart, observed_expected
from ncclscope.fleet.model import FleetReport
from ncclscope.fleet.text import chances, more, trend_words
from ncclscope.reporters.safe import harmless
from ncclscope.version import __version__

__all__ = ["render_page"]

_COLOURS = 7
_ROWS = 15
_STYLE = """
:root{--ink:#1b1f24;--dim:#68707a;--line:#d8dde3;--paper:#fff;--bar:#4c78a8;--out:#c1272d;--jobs:#e6eaef}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ed;--dim:#9aa4af;--line:#39414a;--paper:#14181d;--bar:#6f9fd0;
--out:#ff6b6b;--jobs:#262d35}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:2rem auto;
padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2.2rem}table{border-collapse:collapse;width:100%;
font-size:.9rem}th,td{text-align:left;padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line);
vertical-align:top;overflow-wrap:anywhere}th{color:var(--dim);font-weight:500}td.n{text-align:right;
font-variant-numeric:tabular-nums;white-space:nowrap}code{font-size:.85em;overflow-wrap:anywhere}.big{font-size:1.1rem}
.dim{color:var(--dim);fill:var(--dim)}svg{width:100%;height:auto;font:12px system-ui,sans-serif;fill:var(--ink)}
svg .bar{fill:var(--bar)}svg .out{fill:var(--out)}svg .jobs{fill:var(--jobs)}svg .mark{stroke:var(--ink);stroke-width:2}
.c0{fill:#9aa4af;background:#9aa4af}.c1{fill:#c1272d;background:#c1272d}.c2{fill:#e08214;background:#e08214}
.c3{fill:#4c78a8;background:#4c78a8}.c4{fill:#3a9a5c;background:#3a9a5c}.c5{fill:#8e5ea2;background:#8e5ea2}
.c6{fill:#2aa5a0;background:#2aa5a0}.c7{fill:#b5892e;background:#b5892e}.key{display:inline-block;width:.8em;height:.8em;
margin:0 .3em 0 1em}
"""


def render_page(report: FleetReport, title: str) -> str:
    """HTML with every text of a log escaped; the policy in its head forbids scripts and anything from elsewhere."""
    top = [c.name for c in report.causes[:_COLOURS]]
    named = [n for n in report.nodes if n.stands_out]
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name=viewport content="width=device-width,initial-scale=1">',
        f"<title>{_e(title)}</title><style>{_STYLE}</style></head><body><h1>{_e(title)}</h1>",
        _first_line(report),
        _section(
            "Causes by count", bars("failed jobs by cause", [(c.name, c.jobs, str(c.jobs)) for c in report.causes[:20]])
        ),
        _section(
            "Causes by lost time",
            bars(
                "rank-hours by cause",
                [
                    (c.name, c.rank_hours, f"{c.rank_hours:,.1f} h")
                    for c in sorted(report.causes, key=lambda c: -c.rank_hours)[:20]
                ],
            )
            + "<p class=dim>Wall time of the failed jobs times their ranks: no less than what the failures cost. Jobs"
            " whose logs show no times count as 0.</p>",
        ),
        _section(
            f"Per day{trend_words(report.trend)}",
            days_chart("jobs and failures per day", [(d.day, d.jobs, d.causes) for d in report.days], top)
            + "<p>"
            + "".join(f"<span class='key c{i + 1}'></span>{_e(name)}" for i, name in enumerate(top))
            + "<span class='key c0'></span>other</p>",
        ),
        _section("Nodes that come back", _nodes(report, bool(named))),
        _section("GPUs that are blamed", _gpus(report)),
        _section(
            "Xids by GPU",
            _table(
                ["Xid", "jobs", "lines", "node", "GPU", "serial", "UUID"],
                [
                    [x.xid, x.jobs, x.lines, x.host or "", x.gpu or "", ", ".join(x.serials), ", ".join(x.uuids)]
                    for x in report.xids
                ],
            ),
        ),
        _section(
            "Versions against causes",
            _table(
                ["what", "version", "jobs", "failed", "causes"],
                [[v.what, v.version, v.jobs, v.failed, _counts(v.causes)] for v in report.versions],
            ),
        ),
        _section(
            "Lines that no finding rests on",
            _table(
                ["jobs", "lines", "shape", "example"],
                [[c.jobs, c.lines, c.template, f"{c.job}: {c.source}:{c.line}: {c.text}"] for c in report.clusters],
            ),
        ),
        "".join(f"<p class=dim>{_e(note)}</p>" for note in report.notes),
        f"<p class=dim>ncclscope {_e(__version__)}</p></body></html>\n",
    ]
    return "".join(parts)


def _first_line(report: FleetReport) -> str:
    return (
        f"<p class=big>{report.jobs} jobs, <b>{report.failed}</b> failed, {report.unreadable} could not be read,"
        f" {report.rank_hours:,.1f} rank-hours in failed jobs.</p>"
    )


def _nodes(report: FleetReport, any_named: bool) -> str:
    shown = report.nodes[:_ROWS]
    words = (
        "The red nodes failed more often than chance gives in jobs of their sizes."
        if any_named
        else "No node failed more often than chance would give in jobs of its sizes."
    )
    chart = observed_expected("failed jobs by node", [(n.host, n.failed, n.expected, n.stands_out) for n in shown])
    rows = [
        [
            n.host,
            n.failed,
            n.jobs,
            f"{n.expected:.1f}",
            n.blamed,
            chances(n.p),
            _counts(n.causes),
            ", ".join(n.together[:4]),
        ]
        for n in shown
    ]
    heads = ["node", "failed", "of jobs", "by chance", "blamed", "p", "causes", "always together with"]
    rest = sum(n.stands_out for n in report.nodes[_ROWS:]) + report.more_nodes
    return f"<p>{words} The mark is what chance gives.</p>{chart}{_table(heads, rows)}{_more(rest)}"


def _gpus(report: FleetReport) -> str:
    rest = sum(g.stands_out for g in report.gpus[_ROWS:]) + report.more_gpus
    table = _table(
        ["node", "GPU", "blamed", "of jobs", "p", "stands out", "serial", "UUID", "causes"],
        [
            [g.host, g.gpu, g.blamed, g.jobs, chances(g.p), "yes" if g.stands_out else "no", ", ".join(g.serials),
             ", ".join(g.uuids), _counts(g.causes)]
            for g in report.gpus[:_ROWS]
        ],
    )  # fmt: skip
    return table + _more(rest)


def _more(count: int) -> str:
    return "".join(f"<p class=dim>{_e(line.strip())}</p>" for line in more(count))


def _e(text: str) -> str:
    return escape(harmless(text))


def _section(title: str, body: str) -> str:
    return f"<h2>{_e(title)}</h2>{body}"


def _counts(causes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in causes.items())


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return "<p class=dim>none</p>"
    head = "".join(f"<th>{_e(h)}</th>" for h in heads)
    body = "".join(
        "<tr>"
        + "".join(f"<td class=n>{cell}</td>" if isinstance(cell, int) else f"<td>{_e(str(cell))}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
