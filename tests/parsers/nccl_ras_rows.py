"""Lines of NCCL's RAS client and what they say: (body, kind, fields). Shapes from NCCL's user guide and source."""

from __future__ import annotations

from nccl_rows import Row

_WHO = "GPU 3 (NVML 7) managed by process 483075 on node 10.0.0.2"
_PROCESS = {"cuda_dev": 3, "nvml_dev": 7, "pid": 483075, "host": "10.0.0.2"}
_NOBODY = "[process information not found]"

CLIENT_ROWS: list[Row] = [
    ("NCCL version 2.28.9 compiled with CUDA 13.0", "nccl.version", {"version": "2.28.9", "cuda": "13.0", "echo": True}),
    ("No communicator data collected!", "ras.empty", {"what": "communicator", "nature": "info"}),
    *(
        (
            f"#1-0 (27a079b828ff1a75) {errors}",
            "ras.comm",
            {"group": "1", "index": "0", "comm": "27a079b828ff1a75", "errors": errors, "nature": "symptom"},
        )
        for errors in ("MISMATCH", "INCOMPLETE", "ERROR")
    ),
    ("  Missing communicator data from 1 rank", "ras.missing", {"count": 1, "what": "rank", "nature": "symptom"}),
    ("  Missing communicator data from 2 job processes", "ras.missing", {"count": 2, "what": "job process"}),
    (
        "  1 job process is considered dead (unreachable via the RAS network)",
        "ras.dead",
        {"count": 1, "nature": "symptom"},
    ),
    ("  2 job processes are considered dead (unreachable via the RAS network)", "ras.dead", {"count": 2}),
    (
        "[2025-12-19 13:07:07] PEER_DEAD: Process 483075 on node 10.0.0.2 managing GPU 1",
        "ras.dead",
        {"count": 1, "pid": 483075, "host": "10.0.0.2", "gpus": "1"},
    ),
    (
        "  Process 483075 on node 10.0.0.2 managing GPUs 0,1",
        "ras.process",
        {"pid": 483075, "host": "10.0.0.2", "gpus": "0,1", "nature": "info"},
    ),
    (
        " Warning: missing data from 1 process (received from 7, expected 8)",
        "ras.unanswered",
        {"count": 1, "got": 7, "expected": 8, "nature": "symptom"},
    ),
    ("  Encountered 2 communication timeouts while gathering communicator data", "ras.unanswered", {"count": 2}),
    (" Warning: encountered 1 communication timeout while gathering data", "ras.unanswered", {"count": 1}),
    (
        "  Communicator ranks have different ReduceScatter operation counts",
        "ras.differ",
        {"op": "ReduceScatter", "nature": "symptom"},
    ),
    ("  Communicator ranks have different status", "ras.differ", {"what": "status", "op": None}),
    ("  26 ranks have launched up to operation 6650", "ras.launched", {"size": 26, "launched": "6650", "nature": "info"}),
    ("  2 ranks have not launched any operations", "ras.launched", {"size": 2, "launched": "0", "nature": "symptom"}),
    (
        f"  Rank 5 has launched up to operation 6649 -- {_WHO}",
        "ras.launched",
        {"rank": 5, "launched": "6649", "nature": "info", **_PROCESS},
    ),
    (f"  Rank 5 has launched up to operation 6649 -- {_NOBODY}", "ras.launched", {"rank": 5, "pid": None}),
    (
        f"  Rank 5 has not launched any operations -- {_WHO}",
        "ras.launched",
        {"rank": 5, "launched": "0", "nature": "symptom", **_PROCESS},
    ),
    (f"  Rank 5 has not launched any operations -- {_NOBODY}", "ras.launched", {"rank": 5, "launched": "0"}),
    ("  26 ranks have status NOCOMM", "ras.state", {"size": 26, "state": "NOCOMM", "nature": "info"}),
    (f"  Rank 5 has status INIT -- {_WHO}", "ras.state", {"rank": 5, "state": "INIT", **_PROCESS}),
    (f"  Rank 5 has status INIT -- {_NOBODY}", "ras.state", {"rank": 5, "state": "INIT"}),
    ("  Rank 5 has status UNKNOWN", "ras.state", {"rank": 5, "state": "UNKNOWN"}),
    (
        "  Initialization error on 1 rank",
        "ras.errors",
        {"during": "Initialization", "count": 1, "nature": "symptom"},
    ),
    ("  Asynchronous errors on 3 ranks", "ras.errors", {"during": "Asynchronous", "count": 3}),
    (
        "  3 ranks reported Remote process error",
        "ras.error",
        {"size": 3, "error": "Remote process error", "nature": "consequence"},
    ),
    (
        f"  Rank 5 reported Unhandled CUDA error -- {_WHO}",
        "ras.error",
        {"rank": 5, "error": "Unhandled CUDA error", "nature": "symptom", **_PROCESS},
    ),
    (f"  Rank 5 reported System error -- {_NOBODY}", "ras.error", {"rank": 5, "error": "System error"}),
    (f"  Rank 5 -- {_WHO}", "ras.rank", {"rank": 5, "nature": "info", **_PROCESS}),
    (f"  Rank 5 -- {_NOBODY}", "ras.rank", {"rank": 5, "pid": None}),
    ("  The missing ranks: 21,22", "ras.rank_list", {"what": "missing", "ranks": (21, 22)}),
    ("  The unknown ranks: 3", "ras.rank_list", {"what": "unknown", "ranks": (3,)}),
]

# Neighbours: healthy lines of the same report, and other programs' words.
SILENT = [
    "Gathering data about the NCCL communicators (timeout 5s)...",
    " Collected data about 8 unidirectional connections",
    "(pid 12) ERROR something failed",
    "pod a-1 has status Running",
    "3 ranks reported to the coordinator in 2 s",
    "(received from 10.0.0.2, expected a reply)",
    "Rank 3 -- done",
    "Process 12 on node a managing nothing",
]
