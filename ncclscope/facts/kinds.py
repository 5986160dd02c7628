"""The dictionary of facts: what each derived observation means and the fields it always or sometimes has.

A fact is what no single line says. Rules select facts as they select events; lint checks the names against this table.
"""

from __future__ import annotations

__all__ = ["FACTS"]

FACTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "job.shape": ("how large the job is", ("hosts", "nranks")),
    "job.end": (
        "how the input ends: completed, signalled, failed or open; silent_s is the silence before that end",
        ("how", "silent_s", "silent_min", "progressing", "still", "asked"),
    ),
    "init.silent": (
        "processes printed their NCCL banner and nothing more of init, to a known end",
        ("silent_s", "silent_for", "nccl", "cuda", "coverage", "gpu_arch", "shape", "still", "so_far"),
    ),
    "init.unfinished": (
        "the input ends before some process finished init, with no failure and no known end: a hang or a cut capture",
        ("reached", "processes"),
    ),
    "comm.stuck": (
        "a communicator that did not complete: shape is ranks_missing, all_started or some_completed",
        (
            "comm",
            "nranks",
            "started",
            "missing",
            "completed",
            "shape",
            "missing_spoke",
            "bootstrap_done",
            "known_end",
            "silent_s",
            "world",
        ),
    ),
    "collective.diverged": (
        "ranks disagree about a collective: how is op, size, fewer, silent, held or apart (finished on some ranks)",
        (
            "how",
            "group",
            "seq",
            "op",
            "other_op",
            "numel",
            "other_numel",
            "behind",
            "ahead",
            "last_enqueued",
            "others_enqueued",
            "size",
            "tie",
            "via",
        ),
    ),
    "collective.equal": (
        "every rank waits in the same collective; no culprit is visible",
        ("group", "seq", "op", "size", "via"),
    ),
    "rank.died": (
        "a process ended by a signal, a crash or quietly: how is a signal name, quiet or exit",
        ("how", "signal", "exit_code", "shown_by", "frame"),
    ),
    "arch.gap": (
        "the NCCL in the log has no native code for the GPU in the log: verdict jit or none",
        ("nccl", "cuda", "gpu_arch", "gpu_name", "verdict"),
    ),
    "versions.differ": ("ranks run different versions of one thing", ("what", "values")),
    "settings.differ": (
        "ranks run with different values of one NCCL variable",
        ("name", "values", "must_agree"),
    ),
    "rank.awaited": (
        (
            "ranks that others waited for in vain, by name: via is unique_id, clients, store_barrier, "
            "monitored_barrier or desync"
        ),
        ("via", "waiting", "awaited", "spoke", "peer", "have", "want", "seq", "what"),
    ),
    "collective.refused": (
        "PyTorch compared collectives before it issued them: what the fewer ranks brought against the others",
        ("seq", "op", "other_op", "mine", "theirs", "tie"),
    ),
    "collective.frames": (
        "waits that ran out in different collectives, by the tracebacks of the ranks",
        ("op", "other_op", "user_file", "user_line", "tie"),
    ),
    "stack.odd": (
        (
            "main threads that stand elsewhere than most: where is the class of a stack, others the others'; shape is "
            "busy, not_at_init, file_system, ptx, other_wait or empty"
        ),
        (
            *("where", "others", "collective", "other_collective", "during", "native_func"),
            *("user_func", "user_file", "user_line", "shape", "alone", "size"),
        ),
    ),
    "stack.missing": (
        "every rank with a stack dump waits in the store or in init, and few ranks have none",
        ("where", "missing", "waiting", "size"),
    ),
    "ras.behind": (
        (
            "ranks of a communicator that launched less than the others, by NCCL's RAS report: shape is behind, never "
            "(nothing launched), op (they launched another operation) or init (the communicator is being made); whole "
            "says that its ranks are the job's, unchanged that an earlier report has the same numbers"
        ),
        (
            *("shape", "comm", "op", "other_op", "launched", "others_launched", "size", "behind", "unchanged"),
            "whole",
        ),
    ),
    "ras.gone": (
        "processes that NCCL's RAS report could not reach: how is dead (given up by RAS) or missing (no answer yet)",
        ("how", "processes", "missing"),
    ),
    "gpu.shared": ("two or more ranks on one GPU, as NCCL's check says", ("bus_id",)),
    "network.loopback": ("several hosts and an interface that cannot leave one of them", ("interface",)),
    "xid.repeat": (
        "one Xid of a program from several processes, always in the same unit of one GPU",
        ("xid", "gpu", "processes", "gpc", "tpc"),
    ),
}
