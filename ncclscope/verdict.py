"""From folded findings to the answer: verdict, what is not known, and what to fetch to know it."""

from __future__ import annotations

from collections.abc import Sequence

from ncclscope.facts import Facts
from ncclscope.report import CONFIDENCE, Collect, Finding, Verdict

__all__ = ["conclude"]

# Classes that a kernel log of the culprit's host could confirm or replace.
_KERNEL_DECIDES = frozenset(
    """rank-died illegal-access-app rank-absent gpu-hang gpu-fell-off-bus gpu-hardware-ecc oom-host oom-cgroup
    nvlink-fabric ib-link""".split()
)


def conclude(
    findings: Sequence[Finding], facts: Facts
) -> tuple[Verdict, list[Finding], list[str], list[Collect]]:
    """Verdict, the findings that stand, unknowns and what to collect."""
    if not facts.recognised:
        return "unreadable", [], [_unreadable(facts)], []
    kept = list(findings)
    roots = [f for f in kept if f.role == "root_cause"]
    sure = [f for f in roots if CONFIDENCE.index(f.confidence) >= CONFIDENCE.index("possible")]
    if not kept:
        return "no_failure", [], _if_it_hangs(facts), []
    verdict: Verdict = "cause_found" if sure and kept[0] in sure else "symptom_only"
    unknowns, collect = _open_questions(kept[0], facts)
    return verdict, kept, unknowns, collect


def _unreadable(facts: Facts) -> str:
    if not facts.streams:
        return "no input could be read"
    if all(s.bytes == 0 for s in facts.streams):
        return "the input is empty: an empty log is no all-clear"
    return "nothing of NCCL, PyTorch, a launcher or the kernel was recognised: this is no all-clear"


def _if_it_hangs(facts: Facts) -> list[str]:
    """A job that hangs prints nothing wrong: without its end or the time it was looked at, silence cannot be seen."""
    if "rank_log" not in facts.given or facts.ending.how != "open" or facts.ending.still:
        return []
    return ["the input does not show how the job ended: if it hangs, --as-of now measures its silence"]


def _open_questions(first: Finding, facts: Facts) -> tuple[list[str], list[Collect]]:
    unknowns: list[str] = []
    collect: list[Collect] = []
    expected = facts.ranks.expected
    if isinstance(expected, int) and len(facts.ranks.seen) < expected:
        unknowns.append(
            f"{len(facts.ranks.seen)} of {expected} ranks were seen in the input: what the others printed is not known"
        )
    if "kernel_log" not in facts.given and (first.category in _KERNEL_DECIDES or first.role == "symptom"):
        hosts = first.culprit.hosts or list(facts.hosts)
        of = f" of {', '.join(hosts[:4])}" if hosts else ""
        unknowns.append(f"no kernel log{of} was given: an OOM kill or an Xid cannot be ruled out")
        collect.append(
            Collect(
                f"the kernel log{of or ' of the host'}",
                "dmesg -T | grep -E 'NVRM|Xid|oom-kill|Out of memory|Killed process'",
            )
        )
    if "flight_recorder" not in facts.given and first.category in (
        "collective-mismatch",
        "straggler-timeout",
    ):
        unknowns.append(
            "no flight-recorder dump was given: which collective each rank had last issued is known from log lines only"
        )
        collect.append(
            Collect(
                "flight-recorder dumps of all ranks",
                "ls -l /tmp/nccl_trace_rank_* ~/.cache/torch/comm_lib_trace_rank_*",
            )
        )
    if "rank_log" in facts.given and not any(facts.versions.get("nccl", ())) and first.role == "symptom":
        unknowns.append("NCCL's own lines were not given")
        collect.append(
            Collect(
                "NCCL's own lines in the next run", "export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,ENV"
            )
        )
    return unknowns, collect
