"""CUDA faults as PyTorch and its users print them: codes, asserts, unsupported GPUs, drivers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.lazy import lazy
from ncclscope.parsers.pattern import Pattern
from ncclscope.parsers.torch_cuda_errors import CUDAS_OWN, READ_ELSEWHERE, CudaError, by_code, by_name, by_text, verdict
from ncclscope.parsers.torch_tags import ADDED, refine_with, tag_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

_SHARED_MEMORY = lazy(r" in cu(?:Mem(?:Import|Export)|Multicast)")

_ERROR_FIELDS = (*ADDED, "code", "name", "text", "api", "cause", "suggests")


def _event(error: CudaError | None, m: re.Match[str], line: Line, api: str) -> Mapping[str, Value] | None:
    if error is None:
        return None
    fields = tag_of(m, line)
    # The watchdog's exception is the first report of an asynchronous fault; only what() repeats it.
    if "what():" not in line.text[: m.start()]:
        fields.pop("quoted", None)
    fields.update(code=error.code, name=error.name, text=error.text, api=api)
    fields.update(verdict(error, line.text[:2000]))
    return fields


def _by_text(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    # The NCCL watchdog reports under its own name; NCCL's `Cuda failure` lines are NCCL's.
    error = by_text(line.text[m.end() : m.end() + 200])
    api = "driver" if "driver" in m[0].lower() or "Triton" in m[0] else "runtime"
    fields = _event(error, m, line, api)
    # Handles of memory that leaves the process go through the fabric's own daemon.
    if fields is not None and _SHARED_MEMORY.search(m[0]):
        return {**fields, "nature": "symptom", "suggests": "nvlink-fabric"}
    return fields


def _by_number(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    if "NVLink SHARP" in line.text:  # NCCL's nccl.nvls_failed: the error is the fabric's, even where it says memory
        return None
    return _event(by_code(int(m["code"])), m, line, "runtime")


def _by_name(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    return _event(by_name(m["name"]), m, line, "driver" if m["name"].startswith("CUDA_") else "runtime")


def _anywhere(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    """None where another pattern or NCCL's reads the same line."""
    if line.env.logger == "nccl" or READ_ELSEWHERE.search(line.text):
        return None
    # Setup Custom allreduce failed with CUDART error: ... To silence this warning, specify ...   (SGLang goes on)
    if "To silence this warning" in line.text:
        return {"nature": "noise"}
    fields = _event(by_text(m["text"]), m, line, "runtime")
    return {name: value for name, value in fields.items() if name != "quoted"} if fields is not None else None


def _init_warning(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    error = by_code(int(m["code"]))
    return _event(error, m, line, "runtime")


def _note(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    error = by_name(m["name"])
    return {"code": error.code} if error is not None else {}


def _blas(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    status = m["blas_status"]
    if status.endswith(("ALLOC_FAILED", "NOT_INITIALIZED")):
        return {"suggests": "oom-gpu"}
    if status.endswith("ARCH_MISMATCH"):
        return {"nature": "cause", "cause": "arch-mismatch"}
    return {}


def _supported(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    return {"supported": tuple(m["supported"].split())}


def _assert(m: re.Match[str], _: Line) -> Mapping[str, Value] | None:
    """None for the check of collectives' inputs, which has its own kind."""
    return None if "isnan" in m["condition"] else {}


_ASSERT = (
    r"(?P<file>[^\s:]+\.(?:cuh?|h|hip|py)):(?P<line>\d+): (?P<kernel>.{1,300}?): "
    r"block: \[(?P<block>\d+,\d+,\d+)\], thread: \[(?P<thread>\d+,\d+,\d+)\] "
)


PATTERNS: tuple[Pattern, ...] = (
    # torch.AcceleratorError: CUDA error: an illegal memory access was encountered   (class RuntimeError up
    # to 2.7)
    # RuntimeError: CUDA error (/tmp/x.cu:12): invalid argument
    # CUDA error in cuMemImportFromShareableHandle: invalid resource handle
    Pattern(
        "cuda.error",
        "CUDA error",
        r"\bCUDA error(?: \([^)]{1,200}\)| in \w{1,80})?: ",
        nature="symptom",
        refine=_by_text,
        adds=_ERROR_FIELDS,
    ),
    # RuntimeError: CUDA driver error: unknown error   (torch 2.1 and later, driver API calls)
    Pattern(
        "cuda.error",
        "CUDA driver error: ",
        r"CUDA driver error: ",
        nature="symptom",
        refine=_by_text,
        adds=_ERROR_FIELDS,
    ),
    # HIP error: operation not permitted on an event last recorded in a capturing stream   (ROCm builds)
    Pattern(
        "cuda.error",
        "HIP error: ",
        r"\bHIP error: ",
        nature="symptom",
        refine=_by_text,
        adds=_ERROR_FIELDS,
    ),
    # RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered
    Pattern(
        "cuda.error",
        "Triton Error [CUDA]: ",
        r"Triton Error \[CUDA\]: ",
        nature="symptom",
        refine=_by_text,
        adds=_ERROR_FIELDS,
    ),
    # CUDA error 700: an illegal memory access was encountered     CUDA error
    # code=700(cudaErrorIllegalAddress)
    Pattern(
        "cuda.error",
        "CUDA error",
        r"\bCUDA error(?: code)? ?=? ?\(?(?P<code>\d{1,3})\b(?!\.\d)",
        nature="symptom",
        refine=_by_number,
        adds=_ERROR_FIELDS,
    ),
    # CUDA failure 700: an illegal memory access was encountered ; GPU=0 ; hostname=node-a   (ONNX Runtime)
    Pattern(
        "cuda.error",
        "CUDA failure ",
        r"\bCUDA failure (?P<code>\d{1,3})\b",
        nature="symptom",
        refine=_by_number,
        adds=_ERROR_FIELDS,
    ),
    # RuntimeError: cuda runtime error (59) : device-side assert triggered at .../THCReduceAll.cuh:327
    # (before 1.5; old numbers, so the text decides)
    Pattern(
        "cuda.error",
        "cuda runtime error",
        r"cuda runtime error \(\d+\) : ",
        nature="symptom",
        refine=_by_text,
        adds=_ERROR_FIELDS,
    ),
    # cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorIllegalAddress: an illegal memory access was
    # encountered
    # XGBoostError: ... cudaErrorMemoryAllocation: out of memory      for the `Search for` note
    # see below
    Pattern(
        "cuda.error",
        "cudaError",
        r"(?<!Search for `)\b(?P<name>cudaError[A-Z]\w+)(?=: |\)| - )",
        nature="symptom",
        refine=_by_name,
        adds=_ERROR_FIELDS,
    ),
    # Failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized
    Pattern(
        "cuda.error",
        "CUDA_ERROR_",
        r"\b(?P<name>CUDA_ERROR_[A-Z_]+)\b",
        nature="symptom",
        refine=_by_name,
        adds=_ERROR_FIELDS,
    ),
    # UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda
    # functions before calling NumCudaDevices() that might have already set an error? Error 802: system not
    # yet initialized (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)
    Pattern(
        "cuda.error",
        "Unexpected error from cudaGetDeviceCount",
        r"Unexpected error from cudaGetDeviceCount\(\).{0,300}?Error (?P<code>\d+): ",
        nature="symptom",
        fields={"at_init": True},
        refine=_init_warning,
        adds=_ERROR_FIELDS,
    ),
    #   what():  Error (gpu_burn-drv.cpp:298): system not yet initialized
    # [TensorRT-LLM][ERROR] Encountered an error: peer access is not supported between these two devices in ...
    # Any program may print what cudaGetErrorString returned; these texts are CUDA's alone.
    *(
        Pattern(
            "cuda.error",
            text,
            rf"(?<![\w'])(?P<text>{re.escape(text)})",
            nature="symptom",
            refine=_anywhere,
            adds=_ERROR_FIELDS,
        )
        for text in CUDAS_OWN
    ),
    # Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/... for more information.   (2.9
    # and later)
    Pattern(
        "cuda.error_name",
        "Search for `cudaError",
        r"Search for `(?P<name>cudaError\w+)' in ",
        nature="info",
        refine=_note,
        adds=("code",),
        since="2.9",
    ),
    # /pytorch/aten/src/ATen/native/cuda/Indexing.cu:1284: indexSelectLargeIndex: block: [177,0,0], thread:
    # [96,0,0] Assertion `srcIndex < srcSelectDimSize` failed.   (all; one line a thread)
    Pattern(
        "cuda.assert_line",
        " Assertion `",
        _ASSERT + r"Assertion `(?P<condition>.{1,300}?)` failed",
        nature="cause",
        cause="device-assert",
        refine=_assert,
    ),
    # /pytorch/torch/csrc/distributed/c10d/NanCheck.cu:116: checkForNaN: block: [0,0,0], thread: [21,0,0]
    # Assertion `!isnan(val)` failed.   (TORCH_NCCL_NAN_CHECK=1, 2.4 and later; the rank that prints it made
    # the NaN)
    Pattern(
        "torch.nan_check",
        " Assertion `!isnan(",
        _ASSERT + r"Assertion `(?P<condition>!isnan\(.{0,200}?\))` failed",
        nature="cause",
        cause="nan",
        since="2.4",
    ),
    # RuntimeError: Function 'LogBackward0' returned nan values in its 0th output.   (autograd's anomaly mode)
    Pattern(
        "torch.nan_check",
        "returned nan values in its",
        r"Function '(?P<function>\w+)' returned nan values in its (?P<output>\d+)th output",
        nature="cause",
        cause="nan",
    ),
    # GPU device may be out of range, do you have enough GPUs?   (2.8 and later, under `invalid device
    # ordinal`)
    Pattern(
        "cuda.out_of_range_hint",
        "GPU device may be out of range",
        r"GPU device may be out of range, do you have enough GPUs",
        nature="symptom",
        fields={"suggests": "invalid-usage"},
        since="2.8",
    ),
    # NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch
    # installation.
    Pattern(
        "cuda.arch_warning",
        "is not compatible with the current PyTorch installation",
        r"(?P<gpu_name>[^:\n]{1,80}?) with CUDA capability (?P<sm>sm_\w+) is not compatible with the "
        r"current PyTorch",
        nature="cause",
        cause="arch-mismatch",
        refine=lambda m, _: {"gpu_name": m["gpu_name"].strip()},
        since="1.9",
    ),
    # The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.
    Pattern(
        "cuda.arch_supported",
        "PyTorch install supports CUDA capabilities",
        r"PyTorch install supports CUDA capabilities (?P<supported>(?:\w+ ?)+)",
        refine=_supported,
    ),
    # PyTorch no longer supports this GPU because it is too old.   (up to 2.8)
    Pattern(
        "cuda.gpu_too_old",
        "no longer supports this GPU because it is too old",
        r"no longer supports this GPU because it is too old",
        nature="cause",
        cause="arch-mismatch",
    ),
    # Found GPU0 NVIDIA GB10 which is of compute capability (CC) 12.1.   (2.9 and later; `cuda capability`
    # before)
    Pattern(
        "cuda.gpu_unsupported",
        " which is of ",
        r"Found GPU(?P<device>\d+) (?P<gpu_name>.{1,80}?) which is of (?:compute|cuda) capability (?:\(CC\) "
        r")?(?P<capability>\d+\.\d+)",
        nature="symptom",
        fields={"suggests": "arch-mismatch"},
    ),
    # RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your
    # GPU driver
    Pattern(
        "cuda.driver_too_old",
        "The NVIDIA driver on your system is too old",
        r"The NVIDIA driver on your system is too old(?: \(found version (?P<cuda_version>\d+)\))?",
        nature="cause",
        cause="driver-mismatch",
        refine=refine_with("cuda_version"),
    ),
    # RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and
    # installed a driver
    Pattern(
        "cuda.no_driver",
        "Found no NVIDIA driver on your system",
        r"Found no NVIDIA driver on your system",
        nature="cause",
        cause="gpu-not-visible",
    ),
    # RuntimeError: No CUDA GPUs are available
    Pattern(
        "cuda.no_gpu",
        "No CUDA GPUs are available",
        r"No CUDA GPUs are available",
        nature="cause",
        cause="gpu-not-visible",
    ),
    # ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!   (1.13 to 2.14)
    Pattern(
        "cuda.no_gpu",
        "ProcessGroupNCCL is only supported with GPUs",
        r"ProcessGroupNCCL is only supported with GPUs, no GPUs found",
        nature="cause",
        cause="gpu-not-visible",
    ),
    # AssertionError: Torch not compiled with CUDA enabled
    Pattern(
        "cuda.not_compiled",
        "Torch not compiled with CUDA enabled",
        r"Torch not compiled with CUDA enabled",
        nature="symptom",
        fields={"suggests": "version-mismatch"},
    ),
    # RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you
    # must use ...
    Pattern(
        "cuda.fork",
        "Cannot re-initialize CUDA in forked subprocess",
        r"Cannot re-initialize CUDA in forked subprocess",
        nature="cause",
        cause="invalid-usage",
    ),
    # UserWarning: CUDA initialization: Found no NVIDIA driver on your system. (Triggered internally at ...)
    Pattern(
        "cuda.init_warning",
        "CUDA initialization: ",
        r"CUDA initialization: (?P<reason>.{1,200}?)(?: \(Triggered internally at|$|\. )",
        nature="symptom",
    ),
    # RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`
    Pattern(
        "cuda.blas_error",
        "CUBLAS_STATUS_",
        r"(?P<blas_status>CUBLAS_STATUS_(?!SUCCESS)\w+)(?: when calling `(?P<call>[^`]{1,200})`)?",
        nature="symptom",
        refine=_blas,
        adds=("suggests", "cause"),
    ),
    # RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED
    Pattern(
        "cuda.dnn_error",
        "CUDNN_STATUS_",
        r"cuDNN error: (?P<dnn_status>CUDNN_STATUS_(?!SUCCESS)\w+)",
        nature="symptom",
    ),
    # The CUDA driver logged these messages, which may provide useful details:   (2.14, CUDA 12.9 and later)
    Pattern(
        "cuda.driver_log",
        "The CUDA driver logged these messages",
        r"The CUDA driver logged these messages",
    ),
    # terminate called after throwing an instance of 'c10::DistBackendError'   (libstdc++; abort follows)
    Pattern(
        "torch.terminate",
        "terminate called ",
        r"terminate called (?:after throwing an instance of '(?P<type>[^']{1,200})'|without an active "
        r"exception|recursively)",
        nature="symptom",
    ),
)
