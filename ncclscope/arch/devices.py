"""The GPUs of this machine, by NVML or else by nvidia-smi; neither CUDA nor PyTorch is touched."""

from __future__ import annotations

import subprocess

import pynvml

from ncclscope.arch.model import Gpu, NoGpuInfoError
from ncclscope.knowledge.gpus import ComputeCapability, capability_of, parse_capability

_QUERY = "index,name,uuid,pci.bus_id,compute_cap,driver_version"
_SMI_SECONDS = 30


def gpus_here() -> list[Gpu]:
    """GPUs of this machine in NVML's order (that of the PCI bus); empty if the driver answers that there are
    none.

    Raises NoGpuInfoError when neither NVML nor nvidia-smi answers: no driver, or a container without the GPU
    devices.
    """
    try:
        return _by_nvml()
    except pynvml.NVMLError as error:
        nvml = str(error)
    try:
        return _by_smi()
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise NoGpuInfoError(
            f"no GPU can be asked here: NVML says '{nvml}', nvidia-smi: {error}. Run it where the driver is,"
            " in a container with the GPUs passed through (docker run --gpus all, or nvidia.com/gpu of a Pod)"
        ) from None


def _by_nvml() -> list[Gpu]:
    pynvml.nvmlInit()
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        found = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            name = _text(pynvml.nvmlDeviceGetName(handle))
            try:
                capability: ComputeCapability | None = ComputeCapability(
                    *pynvml.nvmlDeviceGetCudaComputeCapability(handle)
                )
            except pynvml.NVMLError:
                capability = capability_of(name)
            uuid = _text(pynvml.nvmlDeviceGetUUID(handle))
            pci = _pci(_text(pynvml.nvmlDeviceGetPciInfo(handle).busId))
            found.append(Gpu(index, name, uuid, pci, capability, driver))
        return found
    finally:
        pynvml.nvmlShutdown()


def _by_smi() -> list[Gpu]:
    command = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_SECONDS, check=False)
    if done.returncode:
        raise ValueError(
            (done.stdout + done.stderr).strip().partition("\n")[0] or f"exit status {done.returncode}"
        )
    return [parse_smi_line(line) for line in done.stdout.splitlines() if line.strip()]


def parse_smi_line(line: str) -> Gpu:
    """Reads a line of `nvidia-smi --query-gpu=index,name,uuid,pci.bus_id,compute_cap,driver_version
    --format=csv,noheader`.

    Raises ValueError for any other text.
    """
    # 0, NVIDIA H200, GPU-5a1c..., 00000000:00:07.0, 9.0, 580.159.03   (driver 580)
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != 6 or not fields[0].isdigit():
        raise ValueError(f"nvidia-smi printed {line.strip()[:200]!r}, not six values")
    index, name, uuid, pci, capability, driver = fields
    return Gpu(int(index), name, uuid, _pci(pci), parse_capability(capability) or capability_of(name), driver)


def _pci(bus_id: str) -> str:
    """'00000000:00:07.0' of NVML as '0000:00:07.0', the form of the kernel and of NCCL."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
