"""What PyTorch's NCCL process group prints when a collective does not end: watchdog and heartbeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.pattern import Pattern
from ncclscope.parsers.torch_tags import ADDED, tag_of

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

_LAST = (
    r"[Ll]ast enqueued (?:NCCL )?work: (?P<seq_last_enqueued>-?\d+)"
    r"(?:, last started (?:NCCL )?work: (?P<seq_last_started>-?\d+))?"
    r", last completed (?:NCCL )?work: (?P<seq_last_completed>-?\d+)"
)
_WORK = (
    r"WorkNCCL\((?:SeqNum=(?P<seq>\d+), )?OpType=(?P<optype>\w+)"
    r"(?:, NumelIn=(?P<numel_in>\d+), NumelOut=(?P<numel_out>\d+)|, (?:TensorShape|Tensors?)"
    r"=(?P<shape>[^=]*?))?"
    r"(?:, Timeout\(ms\)=(?P<timeout_ms>\d+))?\)"
)


def _exception(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    """The inner error decides; a timeout or a remote error only echoes what happened elsewhere."""
    fields = tag_of(m, line)
    text = m["text"]
    echo = "operation timeout" in text or "remote process exited" in text or "ncclRemoteError" in text
    fields["nature"] = "consequence" if echo else "symptom"
    # A race between the watchdog's event query and graph capture, on CUDA and HIP.
    if "capturing" in text:
        fields["suggests"] = "torch-bug"
    if "INTERNAL ASSERT FAILED" in text:
        fields["message"] = text
    return fields


def _first(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    reason = {"no heartbeat": "heartbeat", "the dump signal": "store"}.get(m[1] or "", "collective")
    return {**tag_of(m, line), "reason": reason}


def _scope(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    fields = tag_of(m, line)
    from_rank = m.groupdict().get("from_rank")
    if from_rank is not None:
        fields["from_rank"] = int(from_rank)
        fields["scope"] = "global"
    else:
        fields["scope"] = "local"
    return fields


PATTERNS: tuple[Pattern, ...] = (
    # [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE,
    # NumelIn=9801523, NumelOut=9801523, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.
    # (2.1 to 2.14) ... WorkNCCL(OpType=ALLREDUCE, TensorShape=[1, 4], Timeout(ms)=1800000) ran for ...
    # (1.13; 2.0 with SeqNum)
    # ... WorkNCCL(SeqNum=3691402, OpType=REDUCE, Timeout(ms)=1800000) ran for ...
    # (2.0)
    # A terminal or a paste may have broken the line before WorkNCCL.
    Pattern(
        "torch.watchdog_timeout",
        "WorkNCCL(",
        rf"(?:Watchdog caught collective operation timeout: )?{_WORK} ran for (?P<elapsed_ms>\d+) milliseconds",
        nature="consequence",
        refine=tag_of,
        adds=ADDED,
        context=True,
        since="1.13",
    ),
    # [Rank 2] Work WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=10, NumelOut=10, Timeout(ms)=10000) timed
    # out in blocking wait (TORCH_NCCL_BLOCKING_WAIT=1).   (2.1 to 2.14; raised in the main thread)
    Pattern(
        "torch.watchdog_timeout",
        "timed out in blocking wait",
        rf"Work {_WORK} timed out in blocking wait",
        nature="consequence",
        fields={"blocking_wait": True},
        refine=tag_of,
        adds=ADDED,
    ),
    # RuntimeError: NCCL operation timed out   (2.14, nccl2 backend)
    Pattern(
        "torch.watchdog_timeout",
        "NCCL operation timed out",
        r"NCCL operation timed out",
        nature="consequence",
        refine=tag_of,
        adds=ADDED,
        since="2.14",
    ),
    # [PG ID 0 PG GUID 0(default_pg) Rank 1] Exception (either an error or timeout) detected by watchdog at
    # work: 808, last enqueued NCCL work: 811, last completed NCCL work: 807.   (2.3 to 2.5)
    # [PG 1 Rank 6] Timeout at NCCL work: 7753, last enqueued NCCL work: 7755, last completed NCCL work:
    # 7752.   (2.3)
    # Received a dump signal ... Last enqueued NCCL work: 18, last completed NCCL work:
    # 16.This is most   (2.4 and later)
    Pattern(
        "torch.watchdog_progress",
        "ast enqueued NCCL work: ",
        rf"(?:at (?:NCCL )?work: (?P<seq>\d+), )?{_LAST}",
        nature="symptom",
        refine=tag_of,
        adds=ADDED,
        since="2.3",
    ),
    # [PG ID 0 PG GUID 0(default_pg) Rank 2]  failure detected by watchdog at work sequence id: 808 PG
    # status: last enqueued work: 811, last completed work: 807   (2.6 and later; `last started work`
    # between them in some)
    Pattern(
        "torch.watchdog_progress",
        "failure detected by watchdog at work sequence id",
        rf"failure detected by watchdog at work sequence id: (?P<seq>\d+)\s+PG status: {_LAST}",
        nature="symptom",
        refine=tag_of,
        adds=ADDED,
        since="2.6",
    ),
    # Received a dump signal due to a collective timeout from  rank 2 and we will try our best to dump
    # (2.5 and later)
    # Received a dump signal due to a collective timeout from this local rank and we will
    # try our best   (2.5 and later)
    Pattern(
        "torch.dump_signal",
        "Received a dump signal due to a collective timeout",
        r"Received a dump signal due to a collective timeout from\s+(?:this local rank|(?:global )"
        r"?rank\s*(?P<from_rank>\d+))",
        nature="consequence",
        refine=_scope,
        adds=(*ADDED, "scope"),
        since="2.5",
    ),
    # Received a dump signal from this local rank and will start to dump the debug info.   (2.3, 2.4)
    Pattern(
        "torch.dump_signal",
        "Received a dump signal from this local rank",
        r"Received a dump signal from this local rank",
        nature="consequence",
        refine=_scope,
        adds=(*ADDED, "scope"),
        until="2.4",
    ),
    # Received a global dump signal from rank 7, and will start to dump the debug info.   (2.3, 2.4)
    Pattern(
        "torch.dump_signal",
        "Received a global dump signal from rank",
        r"Received a global dump signal from rank (?P<from_rank>\d+)",
        nature="consequence",
        refine=_scope,
        adds=(*ADDED, "scope"),
        until="2.4",
    ),
    # ProcessGroupNCCL's watchdog detected a dump signal from rank 7 and notified the current rank.   (2.3,
    # 2.4)
    # ProcessGroupNCCL's watchdog detected an exception from the local rank.
    Pattern(
        "torch.dump_signal",
        "ProcessGroupNCCL's watchdog detected a",
        r"ProcessGroupNCCL's watchdog detected (?:an exception from the local rank|a dump signal from rank "
        r"(?P<from_rank>\d+))",
        nature="consequence",
        refine=_scope,
        adds=(*ADDED, "scope"),
        until="2.4",
    ),
    # Observed flight recorder dump signal from another rank via TCPStore.   (2.6 and later)
    Pattern(
        "torch.dump_signal",
        "Observed flight recorder dump signal",
        r"Observed flight recorder dump signal from another rank via TCPStore",
        nature="consequence",
        fields={"scope": "global"},
        refine=tag_of,
        adds=ADDED,
        since="2.6",
    ),
    # Broadcasting flight recorder dump signal to other processes via TCPStore.   (2.6; worded more
    # generally since 2.7)
    Pattern(
        "torch.dump_signal",
        "via TCPStore",
        r"Broadcasting (?:flight recorder dump )?signal .{0,80}?to other (?:processes|ranks) via TCPStore|"
        r"Broadcasting flight recorder dump signal to other processes via TCPStore",
        nature="symptom",
        fields={"scope": "first"},
        refine=tag_of,
        adds=ADDED,
        since="2.6",
    ),
    # First PG on this rank to signal dumping.   (2.4 and later)
    # First PG on this rank that detected no heartbeat of its watchdog.
    # First PG on this rank detecting the dump signal through tcpstore.
    Pattern(
        "torch.first_pg_to_signal",
        "First PG on this rank",
        r"First PG on this rank (?:to signal dumping|(?:that )?detect(?:ing|ed) "
        r"(no heartbeat|the dump signal))",
        nature="symptom",
        refine=_first,
        adds=(*ADDED, "reason"),
        since="2.4",
    ),
    # First watchdog to set the dump signal.   (2.3)
    Pattern(
        "torch.first_pg_to_signal",
        "First watchdog to set the dump signal",
        r"First watchdog to set the dump signal",
        nature="symptom",
        fields={"reason": "collective"},
        refine=tag_of,
        adds=ADDED,
    ),
    # [PG ID 0 PG GUID 0(default_pg) Rank 4]  remote error detected from rank: 2   (2.7 and later, opt-in)
    Pattern(
        "torch.remote_error",
        "remote error detected from rank",
        r"remote error detected from rank: (?P<from_rank>-?\d+)",
        nature="consequence",
        refine=lambda m, line: {**tag_of(m, line), "from_rank": int(m["from_rank"])},
        adds=ADDED,
        since="2.7",
    ),
    # ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued
    # collectives.
    Pattern(
        "torch.heartbeat_stuck",
        "watchdog got stuck for",
        r"watchdog got stuck for (?P<stuck_s>\d+) seconds without making progress",
        nature="symptom",
        refine=lambda m, line: {**tag_of(m, line), "stuck_s": int(m["stuck_s"])},
        adds=ADDED,
        context=True,
        since="2.2",
    ),
    # Heartbeat monitor timed out! Process will be terminated after dumping debug info.
    # workMetaList_.size()=103   (2.3)
    Pattern(
        "torch.heartbeat_stuck",
        "Heartbeat monitor timed out",
        r"Heartbeat monitor timed out! Process will be terminated after dumping debug info"
        r"(?:\. workMetaList_\.size\(\)=(?P<pending_works>\d+))?",
        nature="symptom",
        refine=lambda m, line: {
            **tag_of(m, line),
            **({"pending_works": int(m["pending_works"])} if m["pending_works"] else {}),
        },
        adds=ADDED,
        until="2.4",
    ),
    # To avoid data inconsistency, we are taking the entire process down.   (1.13 to 2.14)
    Pattern(
        "torch.taking_down",
        "we are taking the entire process down",
        r"we are taking the entire process down",
        nature="consequence",
        refine=tag_of,
        adds=ADDED,
    ),
    # Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, ...
    # (1.13 to 2.14)
    Pattern(
        "torch.ops_failed",
        "Some NCCL operations have failed or timed out",
        r"Some NCCL operations have failed or timed out",
        nature="consequence",
        refine=tag_of,
        adds=ADDED,
    ),
    # Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.
    # (2.5 and later)
    Pattern(
        "torch.taking_down",
        "Terminating the process after attempting to dump",
        r"Terminating the process after attempting to dump debug info, due to (?P<reason>.{1,200}?)\.?\s*$",
        nature="consequence",
        refine=tag_of,
        adds=ADDED,
        since="2.5",
    ),
    # Aborting process on rank 2 due to timeout   (2.14, nccl2 backend)
    Pattern(
        "torch.taking_down",
        "Aborting process on rank",
        r"Aborting process on rank (?P<rank>\d+).{0,200}? due to (?P<reason>.{1,200})",
        nature="consequence",
        since="2.14",
    ),
    # ProcessGroupNCCL monitor thread is disabled, but would have terminated the process after attempting to
    # dump
    Pattern(
        "torch.monitor_disabled",
        "onitor thread is disabled, but would have",
        r"monitor thread is disabled, but would have",
        nature="symptom",
        refine=tag_of,
        adds=ADDED,
        since="2.5",
    ),
    # PGNCCL Monitor Thread is disabled, but would have killed this job   (2.2 to 2.4)
    Pattern(
        "torch.monitor_disabled",
        "Monitor Thread is disabled, but would have",
        r"Monitor Thread is disabled, but would have",
        nature="symptom",
        refine=tag_of,
        adds=ADDED,
        until="2.4",
    ),
    # Could not acquire GIL within 300 ms on exit, possible GIL induced hang   (2.2 and later)
    Pattern(
        "torch.gil_hang",
        "possible GIL induced hang",
        r"Could not acquire GIL within (?P<wait_ms>\d+) ms on exit, possible GIL induced hang",
        nature="symptom",
        refine=lambda m, line: {**tag_of(m, line), "wait_ms": int(m["wait_ms"])},
        adds=ADDED,
    ),
    # [PG 3 Rank 0] Process group watchdog thread terminated with exception: CUDA error: an illegal memory
    # access was encountered   (2.2 and later; `NCCL watchdog thread` up to 2.1)
    Pattern(
        "torch.watchdog_exception",
        "watchdog thread terminated with exception",
        r"watchdog thread terminated with exception: (?P<text>.{0,300})",
        nature="symptom",
        refine=_exception,
        adds=(*ADDED, "suggests", "message"),
    ),
    # Collective WorkNCCL(SeqNum=33, ...) raised the following async exception: NCCL error: remote process
    # exited or there was a network error, NCCL version 2.26.2
    Pattern(
        "torch.async_exception",
        "raised the following async exception",
        r"raised the following async exception: (?P<text>.{0,300})",
        nature="symptom",
        refine=_exception,
        adds=(*ADDED, "suggests", "message"),
    ),
    # [Rank 0] found async exception when checking for NCCL errors: NCCL error: ...   (up to 2.4)
    Pattern(
        "torch.async_exception",
        "found async exception when checking for NCCL errors",
        r"found async exception when checking for NCCL errors: (?P<text>.{0,300})",
        nature="symptom",
        refine=_exception,
        adds=(*ADDED, "suggests"),
    ),
    # Async error on rank 5: remote process exited or there was a network error   (2.14, nccl2 backend)
    Pattern(
        "torch.async_exception",
        "Async error on rank",
        r"Async error on rank (?P<rank>\d+)(?:: (?P<text>.{0,300}))?",
        nature="symptom",
        since="2.14",
    ),
    # RuntimeError: NCCL communicator was aborted on rank 3.  Original reason for failure was: [Rank 3]
    # Watchdog caught ...
    Pattern(
        "torch.comm_aborted",
        "NCCL communicator was aborted",
        r"NCCL communicator was aborted(?: on rank (?P<rank>\d+))?\.?\s*(?:Original reason for failure was: "
        r"(?P<text>.{0,300}))?",
        nature="consequence",
    ),
    # NCCL communicator encountered error set by ProcessGroupNCCL: [Rank 0] Watchdog caught ...   (2.1 to
    # 2.14)
    Pattern(
        "torch.comm_aborted",
        "NCCL communicator encountered error set by",
        r"NCCL communicator encountered error set by ProcessGroupNCCL: (?P<text>.{0,300})",
        nature="consequence",
    ),
    # RuntimeError: NCCL timeout when waiting for nonblocking call to become successful.   (2.4 and later)
    Pattern(
        "torch.nonblocking_timeout",
        "NCCL timeout ",
        r"NCCL timeout (?:when waiting for nonblocking call|in: |in communicator initialization)",
        nature="consequence",
    ),
    # timed out in communicator initialization
    Pattern(
        "torch.nonblocking_timeout",
        "timed out in communicator initialization",
        r"timed out in communicator initialization",
        nature="consequence",
    ),
)
