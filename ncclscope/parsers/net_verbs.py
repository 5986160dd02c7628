"""Verbs calls that fail in programs beside NCCL: UCX, perftest, MSCCL++ and others that move GPU memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.nccl_common import errno_of
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

_ADDRESS_ERRNOS = ("ETIMEDOUT", "EINVAL", "ENETUNREACH", "EHOSTUNREACH", "ENODEV")


def _verb(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    """ENOMEM is the limit of locked memory first; EFAULT is GPU memory that the adapter may not reach."""
    call = m["call"]
    name = errno_of(m["errno_text"].strip())
    fields: dict[str, Value] = {"errno_name": name} if name else {}
    if name == "ENOMEM":
        fields |= {"nature": "cause", "cause": "memlock-limit"}
    elif name == "EFAULT" or (name in ("EOPNOTSUPP", "EINVAL") and "dmabuf" in call):
        fields["suggests"] = "gdr-peermem"
    elif call == "ibv_modify_qp" and name in _ADDRESS_ERRNOS:
        fields["suggests"] = "ib-config"
    return fields


def _own_words(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    """None where UCX or NCCL says it, which have kinds of their own."""
    before = line.text[: m.start()]
    return None if "UCX" in before or "Call to " in before else _verb(m, line)


PATTERNS: tuple[Pattern, ...] = (
    # UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory        1.12
    # UCX  ERROR mlx5_0: ibv_create_cq() failed: Cannot allocate memory. Please set max locked memory
    # (ulimit -l) to 'unlimited' (current: 64 kbytes)                          1.13
    *(
        Pattern(
            "net.ucx_verb_failed",
            f"{call}(",
            rf"UCX +(?:ERROR|DIAG|WARN) +(?:[\w.-]+: )?(?P<call>{call})\([^\n]{{0,200}}?\) failed:"
            r" (?P<errno_text>[A-Z][^:.\n]*)",
            nature="symptom",
            refine=_verb,
            adds=("errno_name", "suggests", "cause"),
        )
        for call in ("ibv_create_cq", "ibv_create_qp", "ibv_reg_mr")
    ),
    # ibv_reg_dmabuf_mr (retain) failed: Invalid argument        ibv_reg_mr(gpu) failed: Bad address
    Pattern(
        "net.verb_failed",
        "ibv_reg_",
        r"\b(?P<call>ibv_reg_(?:dmabuf_)?mr) ?(?:\([^)\n]{0,80}\) )?failed: (?P<errno_text>[A-Z][^:.,\n]*)",
        nature="symptom",
        refine=_own_words,
        adds=("errno_name", "suggests", "cause"),
    ),
    # ibv_modify_qp failed (errno 19) (Ib failure: No such device)        MSCCL++
    Pattern(
        "net.verb_failed",
        " (Ib failure: ",
        r"\b(?P<call>ibv_\w+) failed \(errno (?P<errno>\d+)\) \(Ib failure: (?P<errno_text>[A-Z][^)\n]*)\)",
        nature="symptom",
        refine=_verb,
        adds=("errno_name", "suggests", "cause"),
    ),
    # allocated GPU buffer address at 0000010013000000 pointer=0x10013000000        perftest with --use_cuda
    Pattern(
        "net.gpu_buffer",
        "allocated GPU buffer address at",
        r"allocated GPU buffer address at (?P<address>[0-9a-f]+)",
    ),
    # Couldn't allocate MR        perftest; of host memory too
    Pattern("net.region_refused", "allocate MR", r"\bCouldn't allocate MR\b", nature="symptom"),
    # Couldn't register GPU MR        programs made after NVIDIA's example of GPUDirect RDMA
    Pattern(
        "net.region_refused",
        "register GPU MR",
        r"\bCouldn't register GPU MR\b",
        nature="symptom",
        fields={"suggests": "gdr-peermem"},
    ),
)
