"""Reads the logs of a failed distributed training job and names the root cause.

    from ncclscope import analyze

    report = analyze(["logs/", "dmesg.txt"])
    report.verdict              # cause_found, symptom_only, no_failure or unreadable
    report.findings[0].title    # the cause, best first; each finding holds its proof and the next checks

`analyze`, `Options` and the types of `ncclscope.report` are the public interface; the rest may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ncclscope.version import __version__

__all__ = ["Finding", "Options", "Report", "__version__", "analyze"]

if TYPE_CHECKING:
    from ncclscope.pipeline import Options, analyze
    from ncclscope.report import Finding, Report


def __getattr__(name: str) -> Any:
    """Imports the public names on first use: `ncclscope arch` needs none of them."""
    from importlib import import_module

    if name in ("Options", "analyze"):
        return getattr(import_module("ncclscope.pipeline"), name)
    if name in ("Finding", "Report"):
        return getattr(import_module("ncclscope.report"), name)
    raise AttributeError(f"module 'ncclscope' has no attribute {name!r}")
