"""The table that the nccl-tests programs print: proof that collectives run, or that the first one does not."""

from __future__ import annotations

from ncclscope.parsers.pattern import Pattern

__all__ = ["PATTERNS"]

# The types that nccl-tests prints, with the blank before them that right-aligns the column.
_TYPES = (
    *(" float ", " half ", " bfloat16 ", " double ", " int8 "),
    *(" uint8 ", " int32 ", " uint32 ", " int64 ", " uint64 "),
)

PATTERNS: tuple[Pattern, ...] = (
    # #       size         count      type   redop    root     time   algbw   busbw #wrong     time ...     2.13+
    # #       size         count      type   redop     time   algbw   busbw  error     time   algbw ...     before
    Pattern("nccl.tests_head", "  algbw   busbw", r"#\s+size\s.*\btype\b.*\btime\s+algbw\s+busbw\s"),
    #         1024           256     float     sum      -1     8.41    0.12    0.12      0     8.32    0.12    0.12
    *(
        Pattern(
            "nccl.tests_row",
            name,
            r"(?:^|\s)(?P<size>\d+)\s+(?P<count>\d+)\s+\w+\s+(?:sum|prod|min|max|avg|mulsum|none|all|)\s+(?:-?\d+\s+)?"
            r"\d+\.?\d*\s+\d+\.\d+\s+\d+\.\d+\s",
        )
        for name in _TYPES
    ),
    # # Out of bounds values : 50 FAILED        the check of the results; `0 OK` otherwise
    Pattern(
        "nccl.tests_wrong",
        "# Out of bounds values",
        r"# Out of bounds values : (?P<count>\d+) FAILED",
        nature="symptom",
    ),
    # # Avg bus bandwidth    : 0.0312        the last line of a run
    Pattern("nccl.tests_done", "# Avg bus bandwidth", r"# Avg bus bandwidth\s+: (?P<busbw>[\d.]+)"),
)
