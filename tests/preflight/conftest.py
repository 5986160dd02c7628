"""A made-up machine: a copy of a file tree, and answers for what no tree can hold."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ncclscope.arch import LocatedLibrary, read_library
from ncclscope.preflight.gpus import GpuSnapshot, GpuState
from ncclscope.preflight.library import Library
from ncclscope.preflight.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FIXTURES = Path(__file__).parent.parent / "fixtures"
GIB = 1 << 30


def gpu(index: int, **changes: object) -> GpuState:
    """A healthy H200 of the fixture tree."""
    state = GpuState(
        index=index,
        uuid=f"GPU-0000000{index}-1111-2222-3333-444444444444",
        name="NVIDIA H200",
        pci=("0000:1b:00.0", "0000:4c:00.0")[index % 2],
        capability=(9, 0),
        memory_total=140 * GIB,
        memory_used=GIB // 2,
        compute_prohibited=False,
        mig=False,
        remap_pending=False,
        remap_failed=False,
        retirement_pending=None,
        uncorrected_errors=0,
        recovery_action=0,
        fabric_state="completed",
        fabric_status=0,
        links_up=tuple(range(18)),
        links_down=(),
    )
    return replace(state, **changes)  # type: ignore[arg-type]


def library(name: str = "nccl-2.28.9.so") -> Library:
    """One of the small libraries with real fat binaries."""
    path = FIXTURES / "elf" / name
    return Library(LocatedLibrary(path, "test"), read_library(path))


class FakeNode(Node):
    """A node whose files are below a root and whose other answers are given."""

    def __init__(self, root: Path, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(root, environ or {})
        self.snapshot = GpuSnapshot((gpu(0), gpu(1)), "580.159.02", "13.0")
        self.nccl = library()
        self.space: dict[str, tuple[int, int]] = {"/dev/shm": (512 * GIB, 500 * GIB)}
        self.limits: dict[str, tuple[int | None, int | None]] = {
            "RLIMIT_MEMLOCK": (None, None),
            "RLIMIT_NOFILE": (65536, 1048576),
        }
        self.addresses = {"lo": "127.0.0.1", "eth0": "10.0.0.7", "docker0": "172.17.0.1"}
        self.resolver: dict[str, list[str]] = {}
        self.ports: dict[tuple[str, int], str] = {}

    def _gpus(self) -> GpuSnapshot:
        return self.snapshot

    def _library(self) -> Library:
        return self.nccl

    def disk(self, path: str) -> tuple[int, int] | None:
        return self.space.get(path)

    def limit(self, name: str) -> tuple[int | None, int | None] | None:
        return self.limits.get(name)

    def hostname(self) -> str:
        return "gpu-node-01"

    def ipv4(self, interface: str) -> str | None:
        return self.addresses.get(interface)

    def resolve(self, host: str) -> list[str] | str:
        return self.resolver.get(host, "[Errno -2] Name or service not known")

    def connect(self, address: str, port: int, seconds: float) -> str:  # noqa: ARG002
        return self.ports.get((address, port), "refused")

    def python_paths(self) -> list[str]:
        return []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the healthy host's files that a test may change."""
    root = tmp_path / "root"
    shutil.copytree(FIXTURES / "preflight" / "hgx-h200", root, symlinks=True)
    (root / "README.md").unlink()
    return root


@pytest.fixture
def put(tree: Path) -> Callable[[str, str | bytes | None], None]:
    """Writes a file of the tree, or removes it (None)."""

    def write(path: str, content: str | bytes | None) -> None:
        target = tree / path.lstrip("/")
        if content is None:
            shutil.rmtree(target) if target.is_dir() else target.unlink()
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


@pytest.fixture
def node(tree: Path) -> FakeNode:
    """The healthy host, with settings that leave a readable failure."""
    environ = {"NCCL_DEBUG": "INFO", "PYTHONUNBUFFERED": "1", "HOME": "/root"}
    return FakeNode(tree, environ)


@pytest.fixture
def bare(tmp_path: Path) -> FakeNode:
    """A machine with nothing on it: no GPU, no driver, no sysfs."""
    root = tmp_path / "bare"
    root.mkdir()
    empty = FakeNode(root)
    empty.snapshot = GpuSnapshot(problem="no_library", message="NVML Shared Library Not Found")
    empty.nccl = Library(None, None, "no libnccl.so was found")
    empty.space, empty.addresses = {}, {}
    return empty
