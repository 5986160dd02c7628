"""What is known about GPU architectures and about the machine code in NCCL builds.

Imported by the triage path: nothing heavy is imported here and every question is answered from small tables.
 Sources: NVIDIA's CUDA C++ programming guide (compute capabilities; which code runs where), the release
notes of the PTX ISA (first toolkit of each target) and of CUDA 13.0 (targets dropped). What NCCL wheels hold
was measured with `ncclscope arch`; docs/arch-measurements.md has the table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from ncclscope.knowledge.nccl_wheels import COVERAGE, WHEELS

if TYPE_CHECKING:
    from collections.abc import Iterable

Fit = Literal["native", "jit", "none", "unknown"]


class ComputeCapability(NamedTuple):
    """Compute capability of a GPU, such as 9.0; `str()` gives '9.0', `.sm` gives 'sm_90'."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @property
    def sm(self) -> str:
        return f"sm_{self.major}{self.minor}"


class Arch(NamedTuple):
    """What code was made for: number as in sm_90, variant '', 'a' (this GPU only) or 'f' (its family)."""

    number: int
    variant: str = ""

    @property
    def sass(self) -> str:
        return f"sm_{self.number}{self.variant}"

    @property
    def ptx(self) -> str:
        return f"compute_{self.number}{self.variant}"


class Architecture(NamedTuple):
    """One row of the table. CUDA versions are (major, minor); `last_cuda` is None while current toolkits
    build for it.

    `tegra` marks systems on chip, between which and other GPUs NVIDIA promises no binary compatibility.
    """

    capability: ComputeCapability
    generation: str
    gpus: str
    first_cuda: tuple[int, int]
    last_cuda: tuple[int, int] | None = None
    tegra: bool = False

    def text(self) -> str:
        """Three lines for people: what the GPU is, which toolkits build for it, what else runs on it."""
        major, minor = self.capability
        last = f" up to {_dotted(self.last_cuda)}" if self.last_cuda else ""
        older = [
            a.capability.sm for a in ARCHITECTURES if _same_binary(a, self) and a.capability.minor < minor
        ]
        also = f", and that of {', '.join(older)}" if older else ""
        return (
            f"{self.capability.sm} is compute capability {self.capability}, {self.generation}: {self.gpus}.\n"
            f"Machine code (SASS) for it is built by CUDA {_dotted(self.first_cuda)} or later{last}.\n"
            f"It runs code of {self.capability.sm}{also}; 'a' variants run on their exact GPU only."
            f" The driver can compile PTX of compute_{major}{minor} or lower at start, in up to minutes."
        )


def _row(
    sm: int,
    generation: str,
    gpus: str,
    first: tuple[int, int],
    last: tuple[int, int] | None = None,
    *,
    tegra: bool = False,
) -> Architecture:
    return Architecture(ComputeCapability(*divmod(sm, 10)), generation, gpus, first, last, tegra)


ARCHITECTURES: tuple[Architecture, ...] = (
    _row(50, "Maxwell", "GeForce GTX 750, Tesla M10", (6, 0), (12, 9)),
    _row(52, "Maxwell", "GeForce GTX 900 series, Tesla M4, M40, M60", (6, 5), (12, 9)),
    _row(53, "Maxwell", "Jetson TX1, Jetson Nano", (7, 0), (12, 9), tegra=True),
    _row(60, "Pascal", "Tesla P100", (8, 0), (12, 9)),
    _row(61, "Pascal", "GeForce GTX 10 series, Tesla P4, P40", (8, 0), (12, 9)),
    _row(62, "Pascal", "Jetson TX2", (8, 0), (12, 9), tegra=True),
    _row(70, "Volta", "V100, TITAN V", (9, 0), (12, 9)),
    _row(72, "Volta", "Jetson Xavier", (9, 1), (12, 9), tegra=True),
    _row(75, "Turing", "T4, GeForce RTX 20 series, GTX 16 series, Quadro RTX", (10, 0)),
    _row(80, "Ampere", "A100, A800, A30", (11, 0)),
    _row(86, "Ampere", "A10, A16, A40, RTX A6000, GeForce RTX 30 series", (11, 1)),
    _row(87, "Ampere", "Jetson Orin", (11, 4), tegra=True),
    _row(88, "Ampere", "no product named by NVIDIA", (13, 0)),
    _row(89, "Ada Lovelace", "L4, L40, L40S, L20, RTX 6000 Ada, GeForce RTX 40 series", (11, 8)),
    _row(90, "Hopper", "H100, H200, H800, H20, GH200", (11, 8)),
    _row(100, "Blackwell", "B200, B100, GB200", (12, 8)),
    _row(101, "Blackwell", "Jetson Thor, before CUDA 13 named it sm_110", (12, 8), (12, 9), tegra=True),
    _row(103, "Blackwell Ultra", "B300, GB300", (12, 9)),
    _row(107, "Rubin", "Rubin data-centre GPUs", (13, 4)),
    _row(110, "Blackwell", "Jetson Thor, DRIVE Thor", (13, 0), tegra=True),
    _row(120, "Blackwell", "GeForce RTX 50 series, RTX PRO 6000 Blackwell", (12, 8)),
    _row(121, "Blackwell", "GB10 (DGX Spark)", (12, 9)),
)
_BY_CAPABILITY = {row.capability: row for row in ARCHITECTURES}

# Model names as NVML, nvidia-smi and PyTorch print them: 'NVIDIA H100 80GB HBM3', 'Tesla V100-SXM2-32GB',
# 'NVIDIA A10G'.
_MODELS: dict[str, int] = {
    model: sm
    for sm, models in {
        50: "M10",
        52: "M4 M40 M60",
        60: "P100",
        61: "P4 P6 P40",
        62: "TX2",
        70: "V100 GV100",
        72: "XAVIER",
        75: "T4 T400 T600 T1000",
        80: "A100 A800 A30",
        86: "A2 A10 A16 A40 A2000 A3000 A4000 A4500 A5000 A5500 A6000",
        87: "ORIN",
        89: "L2 L4 L20 L40",
        90: "H100 H200 H800 H20 GH200",
        100: "B100 B200 GB200",
        103: "B300 GB300",
        110: "THOR",
        107: "RUBIN",
        121: "GB10",
    }.items()
    for model in models.split()
}
# 'NVIDIA GeForce RTX 5090', 'GeForce GTX 1080 Ti': the number's series. RTX 2050 is an Ampere chip.
_GEFORCE = {"50": 120, "40": 89, "30": 86, "20": 75, "16": 75, "10": 61, "9": 52}
# Patterns are compiled when first used (`re` keeps them), so that importing costs nothing.
_GEFORCE_NUMBER = r"(50|40|30|20|16|10|9)([5-9]0)(?:TI|S|D)?"


def capability_of(gpu_name: str) -> ComputeCapability | None:
    """Compute capability of a GPU by the name that NVML, nvidia-smi or a log gives it; None if not known."""
    words = re.findall(r"[A-Z0-9]+", gpu_name.upper())
    sm = _sm_of(words)
    return ComputeCapability(*divmod(sm, 10)) if sm else None


def _sm_of(words: list[str]) -> int | None:
    # Names that share their number with other generations: 'RTX 6000 Ada Generation', 'RTX PRO 6000
    # Blackwell', 'Quadro RTX 6000'.
    if "ADA" in words:
        return 89
    if "RTX" in words and ("BLACKWELL" in words or "PRO" in words):
        return 120
    if "RTX" in words and "QUADRO" in words:
        return 75
    for word in words:
        # 'A10G', 'L40S', 'A100X': one letter after a model number is a variant of the same chip.
        sm = _MODELS.get(word) or (word[-2:-1].isdigit() and _MODELS.get(word[:-1]))
        if sm:
            return sm
    if "TITAN" in words:
        return 70 if "V" in words else 75 if "RTX" in words else 61 if "XP" in words else None
    if "RTX" in words or "GTX" in words:
        for word in words:
            if word == "2050":
                return 86
            if word in ("750", "745"):
                return 50
            if match := re.fullmatch(_GEFORCE_NUMBER, word):
                return _GEFORCE[match[1]]
    return None


_SM = r"(?:sm_?|compute_?)?(\d{2,3})([af]?)|(\d{1,2})\.(\d)([af]?)"


def parse_capability(text: str) -> ComputeCapability | None:
    """Reads 'sm_120', 'sm120', 'compute_120', '12.0' or '120', also with a variant; None for other text."""
    match = re.fullmatch(_SM, text.strip(), re.IGNORECASE)
    if match is None:
        return None
    capability = (
        ComputeCapability(*divmod(int(match[1]), 10))
        if match[1]
        else ComputeCapability(int(match[3]), int(match[4]))
    )
    return capability if capability.major else None


def explain_sm(text: str) -> Architecture | None:
    """The table's row for 'sm_120', in any form that parse_capability reads; None if it is not there."""
    capability = parse_capability(text)
    return _BY_CAPABILITY.get(capability) if capability else None


def _same_binary(code: Architecture, gpu: Architecture) -> bool:
    """Whether NVIDIA promises that machine code for `code` runs on `gpu`, if its minor is not above."""
    return code.capability == gpu.capability or (
        code.capability.major == gpu.capability.major and not code.tegra and not gpu.tegra
    )


def is_tegra(capability: ComputeCapability) -> bool:
    row = _BY_CAPABILITY.get(capability)
    return row is not None and row.tegra


def sass_fit(arch: Arch, gpu: ComputeCapability) -> Literal["native", "none", "unknown"]:
    """Whether machine code for `arch` runs on `gpu`.

    Same major version and a minor not above the GPU's; an 'a' variant on its exact GPU only. Between Tegra
    and other GPUs of one major version NVIDIA promises nothing, so the answer is 'unknown'.
    """
    code = ComputeCapability(*divmod(arch.number, 10))
    if code == gpu:
        return "native"
    if code.major != gpu.major or code.minor > gpu.minor or arch.variant == "a":
        return "none"
    return "unknown" if is_tegra(code) or is_tegra(gpu) else "native"


def ptx_fits(arch: Arch, gpu: ComputeCapability) -> bool:
    """Whether the driver can compile this PTX for `gpu`: none above it, 'a' for itself, 'f' of its major."""
    code = ComputeCapability(*divmod(arch.number, 10))
    if arch.variant == "a":
        return code == gpu
    return code <= gpu and (arch.variant != "f" or code.major == gpu.major)


def fit(sass: Iterable[Arch], ptx: Iterable[Arch], gpu: ComputeCapability) -> Fit:
    """How code for these architectures runs on `gpu`: as it is, after the driver compiles it, or not."""
    answers = {sass_fit(arch, gpu) for arch in sass}
    if "native" in answers:
        return "native"
    if any(ptx_fits(arch, gpu) for arch in ptx):
        return "jit"
    return "unknown" if "unknown" in answers else "none"


def first_cuda_for(gpu: ComputeCapability) -> tuple[int, int] | None:
    """First CUDA toolkit whose machine code can run on `gpu`; None for a GPU that is not in the table."""
    row = _BY_CAPABILITY.get(gpu)
    if row is None:
        return None
    return min(a.first_cuda for a in ARCHITECTURES if _same_binary(a, row) and a.capability <= gpu)


def default_coverage(nccl_version: str, cuda_built: str) -> tuple[tuple[Arch, ...], tuple[Arch, ...]] | None:
    """SASS and PTX measured in NVIDIA's wheel of NCCL '2.26.2' made by CUDA '12.2'; None if not measured."""
    key = COVERAGE.get((nccl_version, cuda_built))
    if key is None:
        return None
    sass, ptx = key
    return tuple(Arch(n) for n in sass), tuple(Arch(n) for n in ptx)


def banner_fit(nccl_version: str, cuda_built: str, gpu: ComputeCapability) -> Fit:
    """Judges a log banner `NCCL version 2.26.2+cuda12.2` against a GPU.

    A build that was measured is answered from its coverage. Of any other, only one thing is certain: a
    toolkit older than the GPU cannot have built machine code for it, so that at best the driver compiles
    NCCL's PTX ('jit'). The rest is 'unknown'. A library of one's own build can carry the same banner, so
    even 'none' needs the file itself (`ncclscope arch`) as proof.
    """
    coverage = default_coverage(nccl_version, cuda_built)
    if coverage is not None:
        return fit(*coverage, gpu)
    first = first_cuda_for(gpu)
    match = re.match(r"(\d+)\.(\d+)", cuda_built)
    if first is None or match is None:
        return "unknown"
    return "jit" if (int(match[1]), int(match[2])) < first else "unknown"


def wheel_for(gpu: ComputeCapability, cuda_major: int, at_least: str | None) -> tuple[str, str] | None:
    """Package and version of a measured NVIDIA wheel with machine code for `gpu`, for programs of CUDA
    `cuda_major`.

    The first one not older than `at_least`, else the newest; None when no measured wheel has it.
    """
    package = f"nvidia-nccl-cu{cuda_major}"
    fitting = [
        version
        for version, cuda in WHEELS.get(package, ())
        if (coverage := default_coverage(version.partition(".post")[0], cuda))
        and fit(*coverage, gpu) == "native"
    ]
    if not fitting:
        return None
    later = [
        version for version in fitting if at_least is None or version_key(version) >= version_key(at_least)
    ]
    return package, (later[0] if later else fitting[-1])


def version_key(version: str) -> tuple[int, ...]:
    """Numbers of a version for comparison: '2.26.2' gives (2, 26, 2)."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0]))


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
