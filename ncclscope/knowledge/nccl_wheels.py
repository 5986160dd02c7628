"""Machine code in NVIDIA's NCCL wheels for x86-64, as `ncclscope arch` read it.

docs/arch-measurements.md has the counts. Variants ('sm_100f') are left out: NCCL has them only beside general
code, for GPUs that the general code covers too.
"""

from __future__ import annotations

Coverage = tuple[tuple[int, ...], tuple[int, ...]]

# SASS and PTX, and the builds that have them: NCCL version and the CUDA it was built with, as in its banner.
_BUILDS: dict[Coverage, str] = {
    ((50, 60, 61, 70, 80, 90), (90,)): (
        "2.16.2+cuda12.0 2.16.5+cuda12.0 2.17.1+cuda12.1 2.18.1+cuda12.1 2.18.3+cuda12.1 "
        "2.19.3+cuda12.3 2.20.5+cuda12.4 2.21.5+cuda12.4 2.22.3+cuda12.5 2.23.4+cuda12.6 "
        "2.24.3+cuda12.2 2.25.1+cuda12.2 2.26.2+cuda12.2"
    ),
    ((50, 60, 61, 70, 80, 90, 100, 120), (120,)): (
        "2.25.1+cuda12.8 2.26.2+cuda12.8 2.26.5+cuda12.9 2.27.3+cuda12.9 2.27.5+cuda12.9 "
        "2.27.6+cuda12.9 2.27.7+cuda12.9"
    ),
    ((75, 80, 90, 100, 110, 120), (120,)): (
        "2.27.7+cuda13.0 2.28.3+cuda13.0 2.28.7+cuda13.0 2.28.9+cuda13.0 2.29.2+cuda13.1 "
        "2.29.3+cuda13.1 2.29.7+cuda13.2 2.30.3+cuda13.2 2.30.4+cuda13.2 2.30.7+cuda13.3 "
        "2.31.2+cuda13.3"
    ),
    ((60, 61, 70, 80, 90, 100, 120), (120,)): (
        "2.28.3+cuda12.9 2.28.7+cuda12.9 2.28.9+cuda12.9 2.29.2+cuda12.9 2.29.3+cuda12.9 "
        "2.29.7+cuda12.9 2.30.3+cuda12.9 2.30.4+cuda12.9 2.30.7+cuda12.9 2.31.2+cuda12.9 "
        "2.32.3+cuda12.9"
    ),
    ((75, 80, 90, 100, 107, 110, 120), (120,)): ("2.32.3+cuda13.4"),
}
COVERAGE: dict[tuple[str, str], Coverage] = {
    (version, cuda): coverage
    for coverage, builds in _BUILDS.items()
    for version, _, cuda in (build.partition("+cuda") for build in builds.split())
}

# Versions of each package on the Python package index, oldest first, and the CUDA that each was built with.
WHEELS: dict[str, tuple[tuple[str, str], ...]] = {
    "nvidia-nccl-cu12": (
        ("2.16.2", "12.0"),
        ("2.16.5", "12.0"),
        ("2.17.1", "12.1"),
        ("2.18.1", "12.1"),
        ("2.18.3", "12.1"),
        ("2.19.3", "12.3"),
        ("2.20.5", "12.4"),
        ("2.21.5", "12.4"),
        ("2.22.3", "12.5"),
        ("2.23.4", "12.6"),
        ("2.24.3", "12.2"),
        ("2.25.1", "12.2"),
        ("2.25.1.post1", "12.8"),
        ("2.26.2", "12.2"),
        ("2.26.2.post1", "12.8"),
        ("2.26.5", "12.9"),
        ("2.27.3", "12.9"),
        ("2.27.5", "12.9"),
        ("2.27.6", "12.9"),
        ("2.27.7", "12.9"),
        ("2.28.3", "12.9"),
        ("2.28.7", "12.9"),
        ("2.28.9", "12.9"),
        ("2.29.2", "12.9"),
        ("2.29.3", "12.9"),
        ("2.29.7", "12.9"),
        ("2.30.3", "12.9"),
        ("2.30.4", "12.9"),
        ("2.30.7", "12.9"),
        ("2.31.2", "12.9"),
        ("2.32.3", "12.9"),
    ),
    "nvidia-nccl-cu13": (
        ("2.27.7", "13.0"),
        ("2.28.3", "13.0"),
        ("2.28.7", "13.0"),
        ("2.28.9", "13.0"),
        ("2.29.2", "13.1"),
        ("2.29.3", "13.1"),
        ("2.29.7", "13.2"),
        ("2.30.3", "13.2"),
        ("2.30.4", "13.2"),
        ("2.30.7", "13.3"),
        ("2.31.2", "13.3"),
        ("2.32.3", "13.4"),
    ),
}
