"""The driver: its library against the kernel module, and both against the CUDA of NCCL and PyTorch.

Source of the numbers: NVIDIA, CUDA Compatibility (minor version compatibility) and the CUDA release notes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncclscope.preflight.library import version_numbers
from ncclscope.preflight.model import CheckResult, Evidence, NextStep, Subject
from ncclscope.preflight.settings import find_torch

if TYPE_CHECKING:
    from ncclscope.preflight.node import Node

VERSIONS = Subject("driver-versions", "Driver library and kernel module", "driver-mismatch")
RUNTIME = Subject("driver-runtime", "Driver and CUDA runtime", "driver-mismatch")

# First driver on which every minor release of a CUDA major runs (Linux).
_FIRST_DRIVER = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580, 65, 6)}
_LIBRARY_PLACES = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
)
# "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 ..." and, for the open module,
# "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.02  Release Build ..."
_MODULE_LINE = re.compile(r"NVRM version:.*?\s(\d{3}(?:\.\d+){1,2})\s")
_MODULE = "/proc/driver/nvidia/version"


@dataclass(frozen=True, slots=True)
class DriverLibrary:
    """libcuda as the loader finds it, version from its name.

    `compat`: of the forward-compatibility package.
    """

    path: str
    version: str
    compat: bool


def module_version(node: Node) -> str | None:
    """Version of the kernel module that runs; None if it is not loaded."""
    match = _MODULE_LINE.search((node.read(_MODULE) or "") + " ")
    return match.group(1) if match else None


def driver_library(node: Node) -> DriverLibrary | None:
    """The libcuda that a program would load: LD_LIBRARY_PATH, then the loader's own directories."""
    for directory in (*_search_path(node), *_LIBRARY_PLACES):
        target = node.link_target(f"{directory}/libcuda.so.1")
        candidates = [(target or "").rsplit("/", 1)[-1], *node.names(directory)]
        for name in candidates:
            match = re.fullmatch(r"libcuda\.so\.(\d{3}(?:\.\d+)+)", name)
            if match:
                return DriverLibrary(f"{directory}/{name}", match.group(1), "compat" in directory)
    return None


def _search_path(node: Node) -> list[str]:
    listed = [part for part in node.environ.get("LD_LIBRARY_PATH", "").split(":") if part.startswith("/")]
    for name in (
        "/etc/ld.so.conf",
        *(f"/etc/ld.so.conf.d/{entry}" for entry in node.names("/etc/ld.so.conf.d")),
    ):
        listed += [
            line.strip() for line in (node.read(name) or "").splitlines() if line.strip().startswith("/")
        ]
    return listed


def versions(node: Node) -> CheckResult:
    """Whether libcuda and the kernel module are of one version, or validly apart (forward compatibility)."""
    module = module_version(node)
    library = driver_library(node)
    if module is None:
        return VERSIONS.not_checked(f"{_MODULE} is not there: no NVIDIA kernel module runs on this host")
    if library is None:
        return VERSIONS.not_checked("no libcuda.so.1 was found: the container has no driver library")
    evidence = (Evidence(_MODULE, module), Evidence(library.path, library.version))
    if library.version == module:
        return VERSIONS.passed(f"Both are {module}.", *evidence)
    if library.compat and _above(library.version, module):
        return VERSIONS.passed(
            f"Forward compatibility: libcuda {library.version} over kernel module {module}. Data-centre GPUs "
            "only.",
            *evidence,
        )
    if library.compat:
        return VERSIONS.failed(
            f"The forward-compatibility libcuda {library.version} is older than the kernel module {module}: "
            "CUDA fails "
            "with error 803. Take its directory off LD_LIBRARY_PATH and /etc/ld.so.conf.d.",
            NextStep(
                "See who puts it on the path.",
                "grep -r compat /etc/ld.so.conf.d; env | grep LD_LIB",
                "read_only",
            ),
            *evidence,
        )
    return VERSIONS.failed(
        f"libcuda is {library.version} and the kernel module is {module}: CUDA and NVML refuse to start "
        "(error 803 or 'Driver/library version mismatch').",
        NextStep(
            "Compare with the host's own libraries.",
            f"cat {_MODULE}; ldconfig -p | grep libcuda",
            "read_only",
        ),
        *evidence,
    )


def _above(first: str, second: str) -> bool:
    return (version_numbers(first) or ()) > (version_numbers(second) or ())


def runtime(node: Node) -> CheckResult:
    """Whether the driver can run the CUDA that NCCL and PyTorch were built with."""
    library = node.library()
    torch = find_torch(node)
    wanted: list[tuple[str, str]] = []
    if library.code is not None and library.code.cuda_version:
        wanted.append(("NCCL", library.code.cuda_version))
    if torch is not None and torch.cuda:
        wanted.append(("PyTorch", torch.cuda))
    if not wanted:
        return RUNTIME.not_checked("neither NCCL's nor PyTorch's CUDA version is known here")
    seen = node.gpus()
    driver = seen.driver or module_version(node)
    if seen.cuda is None and driver is None:
        return RUNTIME.not_checked("no driver is here to compare with")
    evidence = [Evidence(name, f"CUDA {cuda}") for name, cuda in wanted]
    evidence.append(Evidence("driver", f"{driver or '?'}, supports CUDA {seen.cuda or '?'}"))
    bad: list[str] = []
    minor: list[str] = []
    for name, cuda in wanted:
        answer = _fits(cuda, seen.cuda, driver)
        if answer == "no":
            bad.append(f"{name} (CUDA {cuda})")
        elif answer == "minor":
            minor.append(f"{name} (CUDA {cuda})")
    has = f"CUDA {seen.cuda}" if seen.cuda else f"driver {driver}"
    if bad:
        return RUNTIME.failed(
            f"The driver ({has}) is too old for {' and '.join(bad)}: CUDA fails with error 35, driver "
            "version is "
            "insufficient. Update the driver, use a build for an older CUDA, or (data-centre GPUs) install "
            "cuda-compat.",
            NextStep("See what the driver supports.", "nvidia-smi | grep -i 'cuda version'", "read_only"),
            *evidence,
        )
    if minor:
        return RUNTIME.passed(
            f"Minor version compatibility: {' and '.join(minor)} on {has}. It runs, but the driver cannot "
            "compile the "
            "newer PTX, so only machine code made for the GPU itself works.",
            *evidence,
        )
    return RUNTIME.passed(
        f"{has} covers {' and '.join(f'{name} (CUDA {cuda})' for name, cuda in wanted)}.", *evidence
    )


def _fits(built: str, supported: str | None, driver: str | None) -> str:
    """'yes', 'minor' (same major, driver older than the runtime) or 'no'."""
    need = version_numbers(built) or ()
    have = version_numbers(supported)
    if have is not None:
        if have[:2] >= need[:2]:
            return "yes"
        return "minor" if have[0] == need[0] and need[0] >= 11 else "no"
    first = _FIRST_DRIVER.get(need[0])
    if first is None or driver is None:
        return "yes"
    return "yes" if (version_numbers(driver) or ()) >= first else "no"
