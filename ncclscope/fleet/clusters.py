"""Lines that no finding rests on, put together by shape: where the next rule comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ncclscope.fleet.model import Cluster

__all__ = ["MISSING", "Lines", "find_clusters"]

# (job's name, source, line, how often, text)
Lines = Iterable[tuple[str, str, int, int, str]]

MISSING = "unexplained lines are grouped by their words alone; better: pip install 'ncclscope[clusters]'"

# What differs between two lines of one shape. Order matters: longer forms first.
_MASKS = (
    (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "UUID"),
    (r"\b(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9]\b", "PCI"),
    (r"\b\d{1,3}(?:\.\d{1,3}){3}(?:[:<]\d+>?)?", "ADDRESS"),
    (r"(?:/[\w.+-]+){2,}", "PATH"),
    (r"\b0x[0-9a-fA-F]+\b", "HEX"),
    (r"(?<![A-Za-z0-9_.])\d+(?:\.\d+)?", "N"),
)
_MOST = 50


def find_clusters(lines: Lines) -> tuple[list[Cluster], list[str]]:
    """The clusters, the most jobs first, and a note where the library for them is missing."""
    try:
        from drain3 import TemplateMiner
        from drain3.masking import MaskingInstruction
        from drain3.template_miner_config import TemplateMinerConfig
    except ImportError:
        miner = None
    else:
        config = TemplateMinerConfig()
        config.masking_instructions = [MaskingInstruction(pattern, name) for pattern, name in _MASKS]
        config.drain_sim_th = 0.5
        config.drain_max_clusters = 10_000
        config.profiling_enabled = False
        miner = TemplateMiner(config=config)
    found: dict[object, _Found] = {}
    for job, source, line, count, text in sorted(lines):
        if not text:
            continue
        key: object = _masked(text)
        if miner is not None:
            result = miner.add_log_message(text)
            key = result["cluster_id"]
        entry = found.get(key)
        if entry is None:
            entry = found[key] = _Found((job, source, line, text))
        entry.lines += count
        entry.jobs.add(job)
    templates = {} if miner is None else {c.cluster_id: c.get_template() for c in miner.drain.clusters}
    clusters = [
        Cluster(str(templates.get(key, key)), entry.lines, len(entry.jobs), *entry.example)
        for key, entry in found.items()
    ]
    clusters.sort(key=lambda c: (-c.jobs, -c.lines, c.template))
    return clusters[:_MOST], [MISSING] if miner is None and clusters else []


class _Found:
    def __init__(self, example: tuple[str, str, int, str]) -> None:
        self.example = example
        self.lines = 0
        self.jobs: set[str] = set()


def _masked(text: str) -> str:
    for pattern, name in _MASKS:
        text = re.sub(pattern, f"<{name}>", text)
    return text
