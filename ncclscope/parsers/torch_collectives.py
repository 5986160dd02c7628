"""Ranks that disagree, and API calls that a rank got wrong: c10d checks, desync reports, DDP, FSDP, gloo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.pattern import Pattern
from ncclscope.parsers.torch_tags import ADDED, numbers, ranks_of, refine_with, tag_of

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

_FINGERPRINT = (
    r"CollectiveFingerPrint\(SequenceNumber=(?P<{0}seq>\d+), ?OpType=(?P<{0}optype>\w+)"
    r"(?:, TensorShape=\[(?P<{0}shape>[\d, ]*)\])?"
)


def _not_joined(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    return {
        **tag_of(m, line),
        "missing": numbers(m["missing"]),
        "seq": int(m["seq"]),
        "finished": int(m["finished"]),
    }


def _ddp_unused(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    return {"parameters": m["parameters"].strip()[:200]}


def _peers(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    return {"connected": int(m["connected"])}


def _usage(literal: str, regex: str) -> Pattern:
    """A check of arguments that only the rank in the wrong fails."""
    return Pattern("torch.usage_error", literal, regex, nature="cause", cause="invalid-usage")


PATTERNS: tuple[Pattern, ...] = (
    # RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective:
    # CollectiveFingerPrint(SequenceNumber=1, OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float, ...),
    # but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=1, OpType=_ALLGATHER_BASE,
    # TensorShape=[4], ...).Collectives differ in the following aspects:   Op type: ALLREDUCEvs
    # _ALLGATHER_BASE   (needs TORCH_DISTRIBUTED_DEBUG=DETAIL)
    Pattern(
        "torch.wrapper_mismatch",
        "Detected mismatch between collectives on ranks",
        r"Detected mismatch between collectives on ranks\. Rank (?P<rank>\d+) is running collective: "
        + _FINGERPRINT.format("")
        + r"(?:.{0,2000}?but Rank (?P<other_rank>\d+) is running (?:collective: )?"
        + _FINGERPRINT.format("other_")
        + r"(?:.{0,2000}?aspects:\s*(?P<aspects>.{1,200}))?)?",
        nature="cause",
        cause="collective-mismatch",
        refine=refine_with("other_rank", "other_seq"),
    ),
    # - To our best knowledge, ranks [2, 5] are the lagging ranks that caused this timeout. They never
    # joined any collectives   (1.11 and later, TORCH_NCCL_DESYNC_DEBUG=1)
    Pattern(
        "torch.desync",
        "are the lagging ranks that caused this timeout",
        r"ranks \[(?P<missing>[\d, ]+)\] are the lagging ranks that caused this timeout",
        nature="symptom",
        fields={"text": "never joined any collectives", "suggests": "rank-absent"},
        refine=ranks_of("missing"),
        adds=ADDED,
    ),
    # [2] finished collective #16, but didn't join collective #17 (count from 1)   (1.11 and later)
    Pattern(
        "torch.desync",
        "but didn't join collective #",
        r"\[(?P<missing>[\d, ]+)\] finished collective #(?P<finished>\d+), but didn't join collective "
        r"#(?P<seq>\d+)",
        nature="symptom",
        fields={"text": "did not join", "suggests": "collective-mismatch"},
        refine=_not_joined,
        adds=ADDED,
    ),
    # [0, 1, 3] joined but didn't finish collective #17 (count from 1)   (1.11 and later)
    Pattern(
        "torch.desync",
        "joined but didn't finish collective #",
        r"\[(?P<waiting>[\d, ]+)\] joined but didn't finish collective #(?P<seq>\d+)",
        nature="consequence",
        fields={"text": "joined but did not finish"},
        refine=ranks_of("waiting"),
        adds=ADDED,
    ),
    # - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:   (1.11 and
    # later)
    Pattern(
        "torch.desync",
        "mismatched ranks that caused the desync",
        r"mismatched ranks that caused the desync are:",
        nature="symptom",
        fields={"text": "ranks follow"},
        refine=tag_of,
        adds=ADDED,
    ),
    # Failed to retrieve TORCH_NCCL_DESYNC_DEBUG report.  Please file an issue. Error: Broken pipe   (2.1 to
    # 2.14)
    Pattern(
        "torch.desync_failed",
        "NCCL_DESYNC_DEBUG report",
        r"Failed to re(?:t)?rieve (?:TORCH_)?NCCL_DESYNC_DEBUG report",
        nature="consequence",
        refine=tag_of,
        adds=ADDED,
    ),
    # [Rank 0]: Rank 1 failed to pass monitoredBarrier in 3000 ms   (1.13 to 2.14; `Ranks 1, 3` with
    # wait_all_ranks; without the bracket in 1.8)
    Pattern(
        "torch.monitored_barrier",
        "failed to pass monitoredBarrier in",
        r"(?:\[Rank (?P<rank>\d+)\]: )?\bRanks? (?P<missing>\d[\d, ]*) failed to pass monitoredBarrier in "
        r"(?P<timeout_ms>\d+) ms",
        nature="symptom",
        fields={"suggests": "rank-absent"},
        refine=lambda m, _: {"missing": numbers(m["missing"])},
    ),
    # Rank 2 successfully reached monitoredBarrier, but received errors while waiting for send/recv from
    # rank 0. ...
    Pattern(
        "torch.monitored_barrier_ok",
        "successfully reached monitoredBarrier",
        r"Rank (?P<rank>\d+) successfully reached monitoredBarrier, but received errors",
        nature="consequence",
    ),
    # torch.distributed.DistBackendError: NCCL error in:
    # ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, remote process exited or there was a network
    # error, NCCL version 2.18.6   (2.0 and later; RuntimeError in 1.13)
    Pattern(
        "torch.nccl_error",
        "NCCL error in: ",
        r"NCCL error in: \S+?:\d+, (?P<error>.{1,200}?), NCCL version (?P<nccl_version>\d+\.\d+(?:\.\d+)?)",
        nature="symptom",
        refine=lambda m, _: {"nature": "consequence"} if m["error"].startswith("remote process") else {},
    ),
    # RuntimeError: NCCL Error 1: unhandled cuda error   (torch.cuda.nccl, all)
    Pattern(
        "torch.nccl_error",
        "NCCL Error ",
        r"NCCL Error (?P<code>\d{1,2}): (?P<error>.{1,100})",
        nature="symptom",
    ),
    # ncclUnhandledCudaError: Call to CUDA function failed.   (the explanation under an NCCL error, 1.13 to
    # 2.14)
    # ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device
    # error. ncclInternalError: Internal check failed.   ncclInvalidUsage: This usually reflects invalid
    # usage of NCCL library.
    # ncclInvalidArgument: Invalid value for an argument.
    # ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
    *(
        Pattern(
            "torch.nccl_explained",
            f"{name}: {words}",
            rf"(?P<result>{name}): {words}",
            nature="consequence" if name == "ncclRemoteError" else "symptom",
        )
        for name, words in (
            ("ncclUnhandledCudaError", "Call to CUDA function failed"),
            ("ncclSystemError", "System call"),
            ("ncclInternalError", "Internal check failed"),
            ("ncclInvalidUsage", "This usually reflects invalid usage"),
            ("ncclInvalidArgument", "Invalid value for an argument"),
            ("ncclRemoteError", "A call failed possibly due to a network error"),
        )
    ),
    # RuntimeError: No backend type associated with device type cpu   (2.0 and later; a CPU tensor on NCCL)
    _usage(
        "No backend type associated with device type",
        r"No backend type associated with device type (?P<what>\w+)",
    ),
    # ValueError: Tensors must be CUDA and dense   (1.13 to 2.1)
    _usage("Tensors must be CUDA and dense", r"Tensors must be CUDA and dense"),
    # RuntimeError: Only CUDA dense tensor is supported for NCCL collective operations   (1.0 to 1.4)
    _usage("Only CUDA dense tensor is supported", r"Only CUDA dense tensor is supported for NCCL"),
    # RuntimeError: Distributed package doesn't have NCCL built in   (a build without NCCL: CPU wheels, Windows; all)
    _usage("package doesn't have NCCL", r"Distributed package doesn't have NCCL built in"),
    # ValueError: Default process group has not been initialized, please make sure to call
    # init_process_group.   (all)
    _usage(
        "Default process group has not been initialized", r"Default process group has not been initialized"
    ),
    # ValueError: Tensor found on device cuda:1 but backend constrained to cuda:0   (2.3 and later)
    _usage(
        "but backend constrained to ",
        r"Tensor found on device (?P<got>\S+) but backend constrained to (?P<want>\S+)",
    ),
    # Attempt to perform collective on tensor not on device passed to init_process_group   (2.3 and later)
    _usage(
        "Attempt to perform collective on tensor not on",
        r"Attempt to perform collective on tensor not on device",
    ),
    # RuntimeError: Failed to infer a GPU device id to perform barrier.   (2.6 and later)
    _usage(
        "Failed to infer a GPU device id to perform", r"Failed to infer a GPU device id to perform barrier"
    ),
    # ValueError: output tensor size must be equal to world_size times input tensor size   (1.13 to 2.14)
    _usage(
        "tensor size must be equal to world_size times",
        r"output tensor size must be equal to world_size times input",
    ),
    # input tensor must be the same type as the output tensor ... size as output size times world size
    # (1.13 to 2.14)
    _usage(
        "input tensor must be the same ",
        r"input tensor must be the same (?:type as the output tensor|size as output size)",
    ),
    # output tensor must have the same type as input tensor   (1.13 to 2.14)
    _usage(
        "must have the same type as input tensor", r"output tensor must have the same type as input tensor"
    ),
    # RuntimeError: Split sizes doesn't match total dim 0 size   (all_to_all_single; 2.1 to 2.14)
    _usage("Split sizes doesn't match total dim 0 size", r"Split sizes doesn't match total dim 0 size"),
    # RuntimeError: Number of tensor splits not equal to group size
    _usage(
        "Number of tensor splits not equal to group size", r"Number of tensor splits not equal to group size"
    ),
    # RuntimeError: Tensor's dim 0 does not divide equally across group size
    _usage("does not divide equally across group size", r"dim 0 does not divide equally across group size"),
    # RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.
    # ...   (all)
    Pattern(
        "torch.ddp_unfinished",
        "Expected to have finished reduction in the prior",
        r"Expected to have finished reduction in the prior iteration",
        nature="symptom",
        fields={"suggests": "user-exception"},
    ),
    # Parameter indices which did not receive grad for rank 1: 2 3   (1.9 to 2.14)
    Pattern(
        "torch.ddp_unused",
        "which did not receive grad for rank",
        r"Parameter(?: indice)?s which did not receive grad for rank (?P<rank>\d+): (?P<parameters>.+)",
        nature="symptom",
        fields={"suggests": "user-exception"},
        refine=_ddp_unused,
    ),
    # RuntimeError: [1]: params[0] in this process with sizes [5, 4] appears not to match sizes of the same
    # param in process 0.   (1.10 to 2.14; only the rank that differs from rank 0 prints it)
    Pattern(
        "torch.ddp_shape_mismatch",
        "appears not to match ",
        r"\[(?P<rank>\d+)\]: params\[(?P<parameter>\d+)\] in this process with (?:sizes|strides) "
        r"\[(?P<sizes>[^\]]*)\] "
        r"appears not to match (?P<what>sizes|strides) of the same param in process 0",
        nature="cause",
        cause="collective-mismatch",
    ),
    # RuntimeError: DDP expects same model across all ranks, but Rank 0 has 2 params, while rank 1 has
    # inconsistent 4 params.   (1.10 to 2.14)
    Pattern(
        "torch.ddp_param_count",
        "DDP expects same model across all ranks",
        r"DDP expects same model across all ranks, but Rank (?P<rank>\d+) has (?P<have>\d+) params, while "
        r"rank "
        r"(?P<other_rank>\d+) has inconsistent (?P<other>\d+) params",
        nature="cause",
        cause="collective-mismatch",
        refine=refine_with("have", "other_rank", "other"),
    ),
    # Parameter at index 3 with name layer.weight has been marked as ready twice.   (all)
    Pattern(
        "torch.ddp_ready_twice",
        "has been marked as ready twice",
        r"Parameter at index (?P<index>\d+)(?: with name (?P<name>\S+))? has been marked as ready twice",
        nature="symptom",
        fields={"suggests": "user-exception"},
        refine=refine_with("index"),
    ),
    # RuntimeError: Expected to mark a variable ready only once. This error is caused by ...   (all)
    Pattern(
        "torch.ddp_ready_twice",
        "Expected to mark a variable ready only once",
        r"Expected to mark a variable ready only once",
        nature="symptom",
        fields={"suggests": "user-exception"},
    ),
    # RuntimeError: Forward order differs across ranks: rank 0 is all-gathering 1 parameters while rank 1 is
    # ...   (2.0 on)
    Pattern(
        "torch.fsdp_order",
        "Forward order differs across ranks",
        r"Forward order differs across ranks:?\s*(?P<detail>.{0,200})",
        nature="cause",
        cause="collective-mismatch",
    ),
    # UserWarning: Forward order differs from that of the first iteration on rank 3. Collectives are
    # unchecked ...
    Pattern(
        "torch.fsdp_order_changed",
        "Forward order differs from that of the first",
        r"Forward order differs from that of the first iteration on rank (?P<rank>\d+)",
        nature="symptom",
        fields={"suggests": "collective-mismatch"},
    ),
    # AssertionError: FSDP expects uniform original parameter dtype but got {torch.float32, torch.bfloat16}
    # (2.4 on)
    Pattern(
        "torch.fsdp_dtype",
        "expects uniform ",
        r"FSDP (?:reduce-scatter )?expects uniform (?P<what>[\w ]{1,60}?) dtype but got (?P<dtypes>.{1,200})",
        nature="symptom",
        fields={"suggests": "user-exception"},
    ),
    # [1] RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer
    # [127.0.0.1]:18085. This is typically caused by a remote worker crashing. ...
    Pattern(
        "torch.gloo_closed",
        "Connection closed by peer [",
        r"Connection closed by peer \[(?P<host>[^\]]{1,100})\]:(?P<port>\d+)",
        nature="consequence",
    ),
    # ... Read error [127.0.0.1]:22672: Connection reset by peer. This is typically caused by a remote
    # worker hanging ...
    Pattern(
        "torch.gloo_closed",
        "Read error [",
        r"Read error \[(?P<host>[^\]]{1,100})\]:(?P<port>\d+): (?P<error>[A-Za-z ]{1,60})",
        nature="consequence",
    ),
    # ... [.../gloo/transport/tcp/unbound_buffer.cc:129] Timed out waiting 1800000ms for send operation to
    # complete
    Pattern(
        "torch.gloo_timeout",
        "Timed out waiting ",
        r"Timed out waiting (?P<timeout_ms>\d+)ms for (?P<direction>send|recv) operation to complete",
        nature="consequence",
        context=True,
    ),
    # what():  [enforce fail at .../gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 8 vs 4.
    # Received data size doesn't match expected size. Is there a distributed collective mismatch in your code?
    Pattern(
        "torch.gloo_size_mismatch",
        "op.preamble.length ",
        r"op\.preamble\.length <= op\.nbytes\. (?P<got>\d+) vs (?P<expected>\d+)",
        nature="cause",
        cause="collective-mismatch",
    ),
    # RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no
    # error   (2.0 on)
    Pattern(
        "torch.gloo_connect_failed",
        "loo connectFullMesh failed",
        r"[Gg]loo connectFullMesh failed (?:with )?(?P<error>.{1,200})",
        nature="symptom",
        fields={"suggests": "network-interface"},
    ),
    # RuntimeError: ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected (4), got (3))
    # (all)
    Pattern(
        "torch.gloo_invalid",
        "ProcessGroupGloo::",
        r"ProcessGroupGloo::(?P<optype>\w+): (?P<reason>.{1,200})",
        nature="cause",
        cause="invalid-usage",
    ),
    # [Gloo] Rank 0 is connected to 7 peer ranks. Expected number of connected peer ranks is : 7   (2.5 and
    # later)
    Pattern(
        "torch.gloo_peers",
        "Expected number of connected peer ranks is",
        r"\[Gloo\] Rank (?P<rank>\d+) is connected to (?P<connected>\d+) peer ranks\. Expected number of "
        r"connected peer "
        r"ranks is : (?P<expected>\d+)",
        refine=_peers,
    ),
    # Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback.
    # (fine on one host)
    Pattern(
        "torch.gloo_loopback",
        "Unable to resolve hostname to a (local) address",
        r"Unable to resolve hostname to a \(local\) address\. Using the loopback",
    ),
)
