"""CUDA errors that NCCL reports: `Cuda failure` in all its shapes, and what each error text stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ncclscope.parsers.nccl_common import at_info
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["CUDA_ERRORS", "PATTERNS", "CudaError"]


class CudaError(NamedTuple):
    """One CUDA error: its number, words of cudaGetErrorString, and what it says when NCCL meets it.

    cause: the class that the text names by itself. suggests: the class it may point to. sticky: raised by
    work that ran before on the GPU and returned by the next call, whichever that is.
    """

    code: int
    text: str
    cause: str = ""
    suggests: str = ""
    sticky: bool = False


# Source: CUDA runtime API, enum cudaError, and the strings of cudaGetErrorString / cuGetErrorString.
CUDA_ERRORS: tuple[CudaError, ...] = (
    CudaError(209, "no kernel image is available", cause="arch-mismatch"),
    CudaError(500, "named symbol not found", cause="arch-mismatch"),
    CudaError(200, "device kernel image is invalid", cause="arch-mismatch"),
    CudaError(98, "invalid device function", suggests="arch-mismatch"),
    CudaError(223, "PTX JIT compilation was disabled", suggests="arch-mismatch"),
    CudaError(221, "PTX JIT compiler library not found", suggests="driver-mismatch"),
    CudaError(222, "unsupported toolchain", cause="driver-mismatch"),
    CudaError(35, "CUDA driver version is insufficient", cause="driver-mismatch"),
    CudaError(36, "API call is not supported in the installed CUDA driver", cause="driver-mismatch"),
    CudaError(803, "unsupported display driver / cuda driver combination", cause="driver-mismatch"),
    CudaError(804, "forward compatibility was attempted on non supported HW", cause="driver-mismatch"),
    CudaError(100, "no CUDA-capable device is detected", cause="gpu-not-visible"),
    CudaError(101, "invalid device ordinal", suggests="invalid-usage"),
    CudaError(2, "out of memory", cause="oom-gpu"),
    CudaError(214, "uncorrectable ECC error encountered", cause="gpu-hardware-ecc"),
    CudaError(220, "uncorrectable NVLink error detected", cause="nvlink-fabric"),
    CudaError(802, "system not yet initialized", suggests="fabric-manager"),
    CudaError(217, "peer access is not supported between these two devices", suggests="p2p-acs-iommu"),
    CudaError(3, "initialization error", suggests="invalid-usage"),
    CudaError(710, "device-side assert triggered", suggests="device-assert", sticky=True),
    CudaError(700, "an illegal memory access was encountered", suggests="illegal-access-app", sticky=True),
    CudaError(715, "an illegal instruction was encountered", suggests="illegal-access-app", sticky=True),
    CudaError(716, "misaligned address", suggests="illegal-access-app", sticky=True),
    CudaError(717, "operation not supported on global/shared", suggests="illegal-access-app", sticky=True),
    CudaError(718, "invalid program counter", suggests="illegal-access-app", sticky=True),
    CudaError(714, "hardware stack error", suggests="illegal-access-app", sticky=True),
    CudaError(719, "unspecified launch failure", suggests="illegal-access-app", sticky=True),
    CudaError(702, "the launch timed out and was terminated", sticky=True),
    CudaError(721, "Invalid access of peer GPU memory over nvlink", suggests="nvlink-fabric", sticky=True),
    CudaError(709, "context is destroyed"),
    CudaError(4, "driver shutting down"),
    CudaError(46, "all CUDA-capable devices are busy or unavailable"),
    CudaError(1, "invalid argument"),
    CudaError(400, "invalid resource handle"),
    CudaError(801, "operation not supported"),
    CudaError(800, "operation not permitted"),
    CudaError(999, "unknown error"),
)

# Where a failing call stands says what it was for; each of these refuses for reasons of its own.
_PLACES: tuple[tuple[str, str], ...] = (
    ("nvls", "nvlink-fabric"),
    ("mnnvl", "nvlink-fabric"),
    ("multicast", "nvlink-fabric"),
    ("p2p", "p2p-acs-iommu"),
)
_REFUSALS = frozenset({1, 2, 217, 400, 401, 800, 801, 999})


def _find(code: int | None, text: str) -> CudaError | None:
    lowered = text.lower()
    if lowered:
        return next((e for e in CUDA_ERRORS if e.text.lower() in lowered), None)
    return next((e for e in CUDA_ERRORS if e.code == code), None)


def _cuda(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    groups = m.groupdict()
    code = int(groups["code"]) if groups.get("code") else None
    text = (groups.get("error") or "").strip()
    if code is None and not text:
        return None
    where = groups.get("where") or line.env.code
    fields: dict[str, Value] = {"where": where} if where else {}
    known = _find(code, text)
    if known is not None:
        fields["code"] = known.code
        if known.sticky:
            fields["sticky"] = True
        fields |= _meaning(known, where or "")
    if at_info(line):
        # At INFO NCCL ignores the error: it is clearing up, or it only asked.
        fields |= {"nature": "consequence" if fields.get("sticky") else "noise", "ignored": True}
        fields.pop("cause", None)
    return fields


def _meaning(error: CudaError, where: str) -> dict[str, Value]:
    if error.code in (4, 709):
        return {"nature": "consequence"}
    place = next((cause for part, cause in _PLACES if part in where), "")
    if place and error.code in _REFUSALS:
        return {"suggests": place}
    if error.cause == "arch-mismatch" and where.startswith(("transport/", "misc/")):
        # NCCL's kernels are loaded elsewhere; here a driver function is what was not found.
        return {"suggests": error.cause}
    if error.cause:
        return {"nature": "cause", "cause": error.cause}
    return {"suggests": error.suggests} if error.suggests else {}


_WHERE = r"(?:(?P<where>[\w./+-]+\.(?:cu|cc|cpp|h):\d+) )?"
_BODY = r"(?:(?P<code>\d+)\b ?)?(?:'(?P<error>[^']*)'?)?"

PATTERNS: tuple[Pattern, ...] = (
    # Cuda failure 'named symbol not found'        Cuda failure 1 'invalid argument'        driver API, 2.19+
    # Cuda failure common.cu:891 'CUDA driver version is insufficient for CUDA runtime version'    nccl-tests
    # Cuda failure enqueue.cc:222 'invalid device function'
    Pattern(
        "nccl.cuda_failure",
        "Cuda failure",
        r"Cuda failure (?:\d+: )?" + _WHERE + _BODY,
        nature="symptom",
        refine=_cuda,
        adds=("where", "sticky", "suggests", "ignored"),
    ),
    # gpu1: Test CUDA failure common.cu:941 'no CUDA-capable device is detected'        nccl-tests 2.13+
    Pattern(
        "nccl.cuda_failure",
        "CUDA failure",
        r"Test CUDA failure " + _WHERE + _BODY,
        nature="symptom",
        refine=_cuda,
        adds=("where", "sticky", "suggests", "ignored"),
    ),
)
