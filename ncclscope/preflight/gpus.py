"""What the GPUs and the driver say of themselves, read once through NVML in a process of its own.

Run as `python -m ncclscope.preflight.gpus` it prints the snapshot as JSON. NVML answers 'not supported' for
any call on some GPU or other, so every value may be missing (None).
"""

from __future__ import annotations

import ctypes
import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Problem = Literal["", "no_library", "no_driver", "version_mismatch", "no_answer", "no_permission", "other"]
FabricState = Literal["not_supported", "not_started", "in_progress", "completed"]

_FABRIC_STATES: tuple[FabricState, ...] = ("not_supported", "not_started", "in_progress", "completed")


@dataclass(frozen=True, slots=True)
class GpuState:
    """One GPU. `pci` has four parts ('0000:00:07.0'); memory is in bytes; links are NVLink numbers."""

    index: int
    uuid: str
    name: str
    pci: str
    capability: tuple[int, int] | None = None
    memory_total: int | None = None
    memory_used: int | None = None
    compute_prohibited: bool | None = None
    mig: bool | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    retirement_pending: bool | None = None
    uncorrected_errors: int | None = None
    recovery_action: int | None = None
    fabric_state: FabricState | None = None
    fabric_status: int | None = None
    links_up: tuple[int, ...] | None = None
    links_down: tuple[int, ...] | None = None

    @property
    def label(self) -> str:
        return f"GPU {self.index} ({self.name}, {self.pci})"

    @property
    def sm(self) -> str | None:
        """Its architecture as a compiler names it, such as sm_90."""
        return None if self.capability is None else f"sm_{self.capability[0]}{self.capability[1]}"


@dataclass(frozen=True, slots=True)
class GpuSnapshot:
    """All GPUs that NVML (or nvidia-smi) shows.

    `cuda` is the newest CUDA that the driver supports ('13.0').
    """

    gpus: tuple[GpuState, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    source: str = "NVML"
    problem: Problem = ""
    message: str = ""


def unanswered(reason: str) -> GpuSnapshot:
    """The snapshot when the probe did not come back."""
    return GpuSnapshot(problem="no_answer", message=reason)


def decode(text: str, error_text: str = "") -> GpuSnapshot:
    """Reads what the probe printed; a probe that broke gives a snapshot with its last error line."""
    try:
        record = json.loads(text)
        gpus = tuple(_gpu_from(item) for item in record.pop("gpus"))
        return GpuSnapshot(gpus=gpus, **record)
    except (ValueError, KeyError, TypeError, AttributeError):
        lines = error_text.strip().splitlines()
        return GpuSnapshot(problem="other", message=lines[-1] if lines else "the GPU probe printed nothing")


def _gpu_from(record: dict[str, Any]) -> GpuState:
    lists = {key: tuple(value) for key, value in record.items() if isinstance(value, list)}
    return GpuState(**{**record, **lists})


def snapshot(nvml: ModuleType) -> GpuSnapshot:
    """Asks NVML, given as the pynvml module; never raises for what NVML answers."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return GpuSnapshot(problem=_problem(nvml, error), message=_text(error))
    driver = _ask(nvml, lambda: _string(nvml.nvmlSystemGetDriverVersion()))
    number = _ask(nvml, lambda: int(nvml.nvmlSystemGetCudaDriverVersion_v2()))
    cuda = None if not number else f"{number // 1000}.{number % 1000 // 10}"
    try:
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        return GpuSnapshot(driver=driver, cuda=cuda, problem=_problem(nvml, error), message=_text(error))
    answers = [_gpu(nvml, index) for index in range(count)]
    complaints = [answer for answer in answers if isinstance(answer, str)]
    found = tuple(answer for answer in answers if isinstance(answer, GpuState))
    return GpuSnapshot(found, driver, cuda, "NVML", "other" if complaints else "", "; ".join(complaints))


def _gpu(nvml: ModuleType, index: int) -> GpuState | str:
    """One GPU, or why it cannot be opened."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        uuid = _string(nvml.nvmlDeviceGetUUID(handle))
    except nvml.NVMLError as error:
        return f"GPU {index}: {_text(error)}"

    def ask(question: Callable[[], Any]) -> Any:
        return _ask(nvml, question)

    memory = ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    mode = ask(lambda: nvml.nvmlDeviceGetComputeMode(handle))
    mig = ask(lambda: nvml.nvmlDeviceGetMigMode(handle))
    rows = ask(lambda: nvml.nvmlDeviceGetRemappedRows(handle))
    retired = ask(lambda: nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle))
    fabric = ask(lambda: _fabric(nvml, handle))
    up, down = _links(nvml, handle)
    return GpuState(
        index=index,
        uuid=uuid,
        name=ask(lambda: _string(nvml.nvmlDeviceGetName(handle))) or "unknown GPU",
        pci=_pci(ask(lambda: _string(nvml.nvmlDeviceGetPciInfo(handle).busId)) or ""),
        capability=ask(lambda: tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle))),
        memory_total=None if memory is None else int(memory.total),
        memory_used=None if memory is None else int(memory.used),
        compute_prohibited=None if mode is None else mode == nvml.NVML_COMPUTEMODE_PROHIBITED,
        mig=None if mig is None else mig[0] == nvml.NVML_DEVICE_MIG_ENABLE,
        remap_pending=None if rows is None else bool(rows[2]),
        remap_failed=None if rows is None else bool(rows[3]),
        retirement_pending=None if retired is None else bool(retired),
        uncorrected_errors=ask(
            lambda: int(
                nvml.nvmlDeviceGetTotalEccErrors(
                    handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
                )
            )
        ),
        recovery_action=ask(lambda: _recovery_action(nvml, handle)),
        fabric_state=None if fabric is None else fabric[0],
        fabric_status=None if fabric is None else fabric[1],
        links_up=up,
        links_down=down,
    )


def _ask(nvml: ModuleType, question: Callable[[], Any]) -> Any:
    """The answer, or None where this driver, GPU or version of the Python binding has none."""
    try:
        return question()
    except (nvml.NVMLError, AttributeError, TypeError, ValueError):
        return None


def _fabric(nvml: ModuleType, handle: Any) -> tuple[FabricState, int] | None:
    info = nvml.c_nvmlGpuFabricInfo_t()
    nvml.nvmlDeviceGetGpuFabricInfo(handle, ctypes.byref(info))
    if not 0 <= info.state < len(_FABRIC_STATES):
        return None
    return _FABRIC_STATES[info.state], int(info.status)


def _recovery_action(nvml: ModuleType, handle: Any) -> int | None:
    value = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])[0]
    return int(value.value.uiVal) if value.nvmlReturn == nvml.NVML_SUCCESS else None


def _links(nvml: ModuleType, handle: Any) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    up: list[int] = []
    down: list[int] = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            state = nvml.nvmlDeviceGetNvLinkState(handle, link)
        except nvml.NVMLError:
            continue  # this GPU has fewer links, or none at all
        (up if state else down).append(link)
    return (tuple(up), tuple(down)) if up or down else (None, None)


def _pci(address: str) -> str:
    """'00000000:1B:00.0' as the kernel writes it: '0000:1b:00.0'."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain[-4:]}:{rest}" if rest else address


def _string(value: Any) -> str:
    # nvidia-ml-py before 12.535.77 returned bytes.
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _problem(nvml: ModuleType, error: Any) -> Problem:
    known: dict[int, Problem] = {
        nvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no_library",
        nvml.NVML_ERROR_DRIVER_NOT_LOADED: "no_driver",
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "version_mismatch",
        nvml.NVML_ERROR_NO_PERMISSION: "no_permission",
    }
    return known.get(error.value, "other")


def probe() -> GpuSnapshot:
    """NVML, and nvidia-smi where NVML cannot be had."""
    import pynvml

    answer = snapshot(pynvml)
    if answer.gpus or answer.problem not in {"no_library", "other"}:
        return answer
    from ncclscope.arch import NoGpuInfoError, gpus_here

    try:
        listed = gpus_here()
    except NoGpuInfoError as error:
        return GpuSnapshot(problem=answer.problem, message=answer.message or str(error))
    gpus = tuple(
        GpuState(
            gpu.index,
            gpu.uuid,
            gpu.name,
            gpu.pci,
            None if gpu.capability is None else (gpu.capability.major, gpu.capability.minor),
        )
        for gpu in listed
    )
    if not gpus:
        return answer
    return GpuSnapshot(gpus, listed[0].driver, None, "nvidia-smi")


if __name__ == "__main__":
    json.dump(asdict(probe()), sys.stdout)
