"""`ncclscope explain`: a rule, a cause class, an Xid or a GPU architecture in words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from ncclscope.cli.common import chosen_pack, die, write_out

__all__ = ["explain"]


def explain(
    words: Annotated[
        list[str], typer.Argument(metavar="ID|xid N|sxid N|CLASS|sm_N", help="What to explain.")
    ],
    output: Annotated[Path | None, typer.Option("-o", "--output")] = None,
) -> None:
    """Explain a rule (NS2101), an Xid (xid 79), a cause class (rank-absent) or an architecture (sm_120)."""
    text = _explain(" ".join(words).strip())
    if text is None:
        die(
            f"nothing known as {' '.join(words)!r}; write a rule id such as NS2101, 'xid 79', a cause class such as "
            "rank-absent, or an architecture such as sm_120"
        )
    write_out(text, output)


def _explain(what: str) -> str | None:
    m = re.fullmatch(r"(s?)xid[\s:]*(\d+)", what, re.IGNORECASE)
    if m:
        return _sxid_text(int(m[2])) if m[1] else _xid_text(int(m[2]))
    if re.fullmatch(r"(sm_|compute_)?\d{2,3}[af]?|\d{1,2}\.\d", what):
        from ncclscope.knowledge.gpus import explain_sm

        row = explain_sm(what)
        return None if row is None else f"{row.text()}\n"
    from ncclscope.knowledge.causes import CAUSES

    if what in CAUSES:
        return _class_text(what)
    return _rule_text(what)


def _xid_text(number: int) -> str | None:
    from ncclscope.knowledge.xid import explain_xid

    entry = explain_xid(number)
    if entry is None:
        return None
    names = ", ".join(filter(None, (entry.mnemonic, *entry.other_names)))
    lines = [f"Xid {number}: {entry.title}" + (f" ({names})" if names else ""), f"  {entry.meaning}", ""]
    lines.append(f"Class: {entry.group}, {entry.severity}; look at: {', '.join(entry.blame) or 'not documented'}")
    if entry.cause:
        lines.append(f"Names the cause class {entry.cause} by itself.")
    elif entry.suggests:
        lines.append(f"Suggests {entry.suggests}; proves nothing by itself.")
    elif entry.nature == "consequence":
        lines.append("Follows another fault: look for what came before it.")
    lines.append(f"Action: {entry.action} (from {entry.action_source})")
    lines += [f"Vendors disagree: {text}" for text in entry.disagreements]
    lines += [f"Comes with: {text}" for text in entry.companions]
    lines += [f"Note: {text}" for text in entry.notes]
    if entry.since:
        lines.append(f"Driver: {entry.since}")
    lines += ["Next check:", f"    {entry.next_check}"]
    return "\n".join(lines) + "\n"


def _sxid_text(number: int) -> str | None:
    from ncclscope.knowledge.xid import explain_sxid

    entry = explain_sxid(number)
    if entry is None:
        return None
    return (
        f"SXid {number}: {entry.title}\n  {entry.meaning}\n\nUnit: {entry.unit}; reaches: {entry.reach}\n"
        f"Action: {entry.action} (from {entry.action_source})\nNext check:\n    {entry.next_check}\n"
    )


def _class_text(name: str) -> str:
    from ncclscope.engine.pack import load_pack
    from ncclscope.knowledge.causes import CAUSES

    cause = CAUSES[name]
    rules = [r for r in load_pack().rules if r.category == name]
    lines = [f"{name} ({cause.group})", f"  {cause.meaning}"]
    if cause.border:
        lines.append(f"  Border: {cause.border}")
    lines += ["", "Rules:", *(f"  {r.id}  {r.name}: {r.summary}" for r in rules)]
    return "\n".join(lines) + "\n"


def _rule_text(what: str) -> str | None:
    rule = chosen_pack(None).get(what)
    if rule is None:
        return None
    lines = [
        f"{rule.id} {rule.name} ({rule.category or 'symptom'}, since {rule.since})",
        "",
        f"Seen: {rule.summary}",
        f"Means: {rule.cause}",
        f"Is not proof of: {rule.not_proof_of}",
    ]
    if rule.fix:
        lines.append(f"Fix: {rule.fix}")
    lines.append("Next checks:")
    for check in rule.next:
        lines += [f"  - {check.do} ({check.where}, {check.effect.replace('_', ' ')})", f"      {check.run}"]
    lines += [f"Source: {ref.title} <{ref.url}>" for ref in rule.refs]
    return "\n".join(lines) + "\n"
