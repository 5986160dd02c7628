"""Judges the GPU code of a library for one GPU, and says what a user would see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.arch.model import CodeObject, Judgement, LibraryCode, Verdict
from ncclscope.knowledge.gpus import (
    Arch,
    ComputeCapability,
    explain_sm,
    first_cuda_for,
    fit,
    parse_capability,
    ptx_fits,
    sass_fit,
    version_key,
    wheel_for,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def judge(library: LibraryCode, target: str, *, allow_jit: bool = False) -> Judgement:
    """Judges `library` for the GPU architecture `target` ('sm_120' or '12.0').

    native: every code object has machine code that runs there. jit: some have only PTX, which the driver
    compiles at start; passes with `allow_jit` alone. partial: some code objects have nothing for it. none:
    no code object has. unknown: NVIDIA promises nothing about the code there is (Tegra against other GPUs).
    Raises ValueError for a target that is no architecture.
    """
    gpu = parse_capability(target)
    if gpu is None:
        raise ValueError(f"{target!r} is no GPU architecture: write it like sm_90 or 9.0")
    needed = _needed(library, gpu)
    linker_ptx = library.linker_ptx
    fits = [fit(code.sass, code.ptx or linker_ptx, gpu) for code in needed]
    lacking, compiled, unsure = (fits.count(kind) for kind in ("none", "jit", "unknown"))
    verdict: Verdict
    if lacking == len(fits):
        verdict = "none"
    elif lacking:
        verdict = "partial"
    elif unsure:
        verdict = "unknown"
    elif compiled:
        verdict = "jit"
    else:
        verdict = "native"
    missing = len(fits) - fits.count("native")
    ok = verdict == "native" or (verdict == "jit" and allow_jit)
    return Judgement(
        target=gpu,
        verdict=verdict,
        ok=ok,
        summary=_summary(library, gpu, verdict, missing, len(fits)),
        effect=_effect(library, verdict),
        fix="" if verdict == "native" else _fix(library, gpu),
        missing=missing,
        needed=len(fits),
    )


def _needed(library: LibraryCode, gpu: ComputeCapability) -> Sequence[CodeObject]:
    """The code objects that a program on `gpu` needs.

    What the device linker consumed does not run any more. Code objects with 'a' or 'f' variants alone are
    extras for those GPUs beside general ones: NCCL from 2.27 has some for sm_100f. PyTorch's library also
    has kernels for newer GPUs only.
    """
    linked = [code for code in library.code_objects if not code.relocatable] or list(library.code_objects)
    general = [code for code in linked if any(not arch.variant for arch in (*code.sass, *code.ptx))]
    if not library.is_libnccl:
        general = [c for c in general if min(c.sass | c.ptx).number <= gpu.major * 10 + gpu.minor] or general
    return general or linked


def _summary(
    library: LibraryCode, gpu: ComputeCapability, verdict: Verdict, missing: int, needed: int
) -> str:
    if verdict == "native":
        best = max(
            (arch for arch in library.sass if sass_fit(arch, gpu) == "native"),
            key=lambda arch: (not arch.variant, arch.number),
        )
        if best.number == gpu.major * 10 + gpu.minor:
            return f"has machine code for {gpu.sm}"
        return f"machine code of {best.sass} runs on {gpu.sm}"
    if verdict == "jit":
        ptx = [arch.ptx for arch in library.ptx if ptx_fits(arch, gpu)][-1]
        part = "" if missing == needed else f" in {missing} of {needed} code objects"
        return f"no machine code for {gpu.sm}{part}: the driver must compile {ptx} PTX when the job starts"
    if verdict == "partial":
        return f"{missing} of {needed} code objects lack machine code for {gpu.sm}, some of them PTX too"
    have = _names(library.sass)
    if verdict == "unknown":
        return f"NVIDIA does not promise that code for {have} runs on {gpu.sm} (between Tegra and other GPUs)"
    return f"no code for {gpu.sm}: machine code is for {have}" + (
        f", and {_ptx_names(library.ptx)} PTX cannot be compiled for it"
        if library.ptx
        else ", and there is no PTX"
    )


def _effect(library: LibraryCode, verdict: Verdict) -> str:
    if verdict in ("native", "unknown"):
        return ""
    if verdict == "jit":
        made = (
            f" older than CUDA {library.cuda_version}, which made the PTX,"
            if library.cuda_version
            else " too old for the PTX"
        )
        if library.nccl_version is None:
            return (
                "The program stops, up to minutes, when it first uses this library. It fails with a driver"
                f"{made} or with CUDA_DISABLE_PTX_JIT=1."
            )
        return (
            "Every rank goes quiet after the NCCL version banner while the driver compiles, and looks hung."
            " Measured: NCCL 2.26.2 on an H200 printed nothing for 228 s and had not finished."
            " It fails instead with a driver"
            f"{made} or with CUDA_DISABLE_PTX_JIT=1."
        )
    if library.nccl_version is None:
        return (
            "Kernels fail at their first launch: 'no kernel image is available' or 'named symbol not found'."
        )
    if verdict == "partial":
        return (
            "Some collectives work and others fail with \"Cuda failure 'named symbol not found'\","
            " in init or at their first launch."
        )
    error = "\"Cuda failure 'named symbol not found'\" and 'unhandled cuda error'"
    version = version_key(library.nccl_version)[:3]
    # Where NCCL meets a kernel without code, by version, as read in its sources and seen with 2.26.2 and
    # 2.28.9.
    if version < (2, 17):
        return f"One warning {error} when NCCL loads; init goes on, and the first collective fails."
    if version < (2, 27, 3):
        return f"Init fails on every rank before 'Init START', after dozens of warnings: {error}."
    if version < (2, 27, 7):
        return f"Init fails before 'Init START', or init succeeds and the first collective fails: {error}."
    return f"Init succeeds ('Init COMPLETE' on every rank) and the first collective fails: {error}."


def _fix(library: LibraryCode, gpu: ComputeCapability) -> str:
    first = first_cuda_for(gpu)
    needs = f"CUDA {first[0]}.{first[1]} or later" if first else "a CUDA that knows this GPU"
    built = version_key(library.cuda_version) if library.cuda_version else None
    row = explain_sm(gpu.sm)
    if row and row.last_cuda and built and built > row.last_cuda:
        last = f"{row.last_cuda[0]}.{row.last_cuda[1]}"
        needs = f"CUDA {last} or older, since later ones dropped {gpu.sm}"
    wheel = _wheel(library, gpu) if library.is_libnccl else None
    if wheel is None:
        what = "PyTorch" if library.nccl_version and not library.is_libnccl else "build"
        return f"Use a {what} for {gpu.sm}, made with {needs}."
    package, version = wheel
    if version == library.nccl_version and built and package.endswith(f"cu{built[0]}"):
        # The same version by another builder. pip would find nothing to do.
        command = f"pip install --no-deps --force-reinstall {package}=={version}"
        return f"NVIDIA's wheel of this version has the code, and this file is another build: {command}"
    command = f"pip install --no-deps {package}=={version}"
    return f"Use an NCCL with code for {gpu.sm}: {command} (or a PyTorch that brings one, built with {needs})"


def _wheel(library: LibraryCode, gpu: ComputeCapability) -> tuple[str, str] | None:
    major = int(library.cuda_version.partition(".")[0]) if library.cuda_version else 12
    # A program of CUDA 12 can use what is made for CUDA 13 only when it is rebuilt, so its own major version
    # comes first.
    found = (wheel_for(gpu, cuda, library.nccl_version) for cuda in dict.fromkeys((major, 13, 12)))
    return next((wheel for wheel in found if wheel), None)


def _names(archs: Iterable[Arch]) -> str:
    return ", ".join(arch.sass for arch in archs) or "no GPU"


def _ptx_names(archs: Iterable[Arch]) -> str:
    return ", ".join(arch.ptx for arch in archs)
