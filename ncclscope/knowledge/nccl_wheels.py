"""Machine code in NVIDIA's NCCL wheels, as measured."""

from __future__ import annotations

COVERAGE: dict[tuple[str, str], tuple[tuple[int, ...], tuple[int, ...]]] = {}
WHEELS: dict[str, tuple[tuple[str, str], ...]] = {}
