"""Finding NCCL as the dynamic loader would, in trees made for the purpose."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from arch_files import ELF

from ncclscope.arch import find_nccl
from ncclscope.arch.locate import Tree

if TYPE_CHECKING:
    from pathlib import Path

SITE = "usr/lib/python3/site-packages"


def put(root: Path, where: str, fixture: str) -> Path:
    path = root / where
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ELF / fixture, path)
    return path


def image(root: Path, torch: str) -> Path:
    put(root, f"{SITE}/torch/lib/libtorch_cuda.so", torch)
    return put(root, f"{SITE}/nvidia/nccl/lib/libnccl.so.2", "nccl-2.28.9.so")


@pytest.mark.parametrize("tags", ["rpath", "runpath"])
def test_the_wheel_of_an_image_is_found_by_pytorchs_search_path(tmp_path: Path, tags: str) -> None:
    """RPATH and RUNPATH of libtorch_cuda lead to the wheel; a system's NCCL is listed, as not loaded."""
    wheel = image(tmp_path, f"torch-{tags}.so")
    system = put(tmp_path, "usr/lib/x86_64-linux-gnu/libnccl.so.2.26.2", "nccl-2.26.2.so")
    first, second = find_nccl(tmp_path)
    assert (first.path, first.how, first.loaded) == (wheel, f"{tags.upper()} of libtorch_cuda.so", True)
    assert (second.path, second.loaded) == (system, False)


def test_statically_linked_nccl_is_said_to_be_so(tmp_path: Path) -> None:
    """A libtorch_cuda with NCCL's banner and no need of libnccl is the NCCL that runs."""
    torch = put(tmp_path, f"{SITE}/torch/lib/libtorch_cuda.so", "torch-static.so")
    put(tmp_path, "usr/lib64/libnccl.so.2", "nccl-2.26.2.so")
    found = find_nccl(tmp_path)
    assert (found[0].path, found[0].static, found[0].loaded) == (torch, True, True)
    assert [f.loaded for f in found] == [True, False]


def test_without_a_search_path_the_system_decides(tmp_path: Path) -> None:
    """ld.so.conf, with its included files, comes before the default directories."""
    put(tmp_path, f"{SITE}/torch/lib/libtorch_cuda.so", "torch-runpath.so")
    put(tmp_path, "usr/lib64/libnccl.so.2", "nccl-2.26.2.so")
    local = put(tmp_path, "opt/nccl/lib/libnccl.so.2", "nccl-2.26.5.so")
    (tmp_path / "etc/ld.so.conf.d").mkdir(parents=True)
    (tmp_path / "etc/ld.so.conf").write_text("# first\ninclude /etc/ld.so.conf.d/*.conf\n")
    (tmp_path / "etc/ld.so.conf.d/nccl.conf").write_text("/opt/nccl/lib\n")
    found = find_nccl(tmp_path)
    assert (found[0].path, found[0].how) == (local, "the system's /etc/ld.so.conf")


def test_an_image_without_pytorch(tmp_path: Path) -> None:
    """The first NCCL is judged; an image without any gives an empty list."""
    assert find_nccl(tmp_path) == []
    path = put(tmp_path, "opt/conda/lib/libnccl.so.2.28.9", "nccl-2.28.9.so")
    assert [(f.path, f.loaded) for f in find_nccl(tmp_path)] == [(path, True)]


def test_links_are_followed_inside_the_image(tmp_path: Path) -> None:
    """An absolute link points into the image, as it would after chroot."""
    real = put(tmp_path / "image", "usr/local/nccl/libnccl.so.2.28.9", "nccl-2.28.9.so")
    lib = tmp_path / "image/usr/lib64"
    lib.mkdir()
    (lib / "libnccl.so.2").symlink_to("/usr/local/nccl/libnccl.so.2.28.9")
    assert {f.path for f in find_nccl(tmp_path / "image")} == {real}


def test_no_link_leads_out_of_the_image(tmp_path: Path) -> None:
    """Absolute links, '..' beyond the top and loops find nothing of the machine outside."""
    outside = put(tmp_path, "libnccl.so.2", "nccl-2.26.2.so")
    root = tmp_path / "image"
    (root / "usr/lib").mkdir(parents=True)
    (root / "usr/lib/libnccl.so.2").symlink_to(outside)
    (root / "usr/lib/libnccl.so.3").symlink_to("../../../../../../libnccl.so.2")
    (root / "usr/lib/libnccl.so.4").symlink_to("libnccl.so.4")
    assert find_nccl(root) == []
    tree = Tree(root)
    assert tree.real("/../../../etc/passwd") is None
    assert tree.real("/usr/lib/libnccl.so.4") is None


class Here:
    """A torch package on sys.path of this process."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, torch: str) -> None:
        self.site = root / "site"
        put(self.site, "torch/lib/libtorch_cuda.so", torch)
        (self.site / "torch/__init__.py").write_text("raise SystemExit('torch was imported')")
        self.wheel = put(self.site, "nvidia/nccl/lib/libnccl.so.2", "nccl-2.28.9.so")
        self.other = put(root, "other/libnccl.so.2", "nccl-2.26.2.so")
        monkeypatch.setattr(sys, "path", [str(self.site), *sys.path])
        for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "CONDA_PREFIX"):
            monkeypatch.delenv(name, raising=False)


def test_this_pythons_pytorch_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's place is enough; its code is not run."""
    here = Here(tmp_path, monkeypatch, "torch-rpath.so")
    assert find_nccl()[0].path == here.wheel
    assert "torch" not in sys.modules


@pytest.mark.parametrize(("tags", "wins"), [("rpath", "wheel"), ("runpath", "other")])
def test_ld_library_path_stands_between_rpath_and_runpath(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tags: str, wins: str
) -> None:
    """RPATH is searched before LD_LIBRARY_PATH, RUNPATH after it."""
    here = Here(tmp_path, monkeypatch, f"torch-{tags}.so")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(here.other.parent))
    found = find_nccl()
    assert found[0].path == getattr(here, wins)
    assert [f.loaded for f in found if f.path in (here.wheel, here.other)] == [True, False]


def test_a_preloaded_nccl_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LD_PRELOAD comes before everything; a preloaded library that is no NCCL is passed over."""
    here = Here(tmp_path, monkeypatch, "torch-rpath.so")
    monkeypatch.setenv("LD_PRELOAD", f"{ELF / 'no-gpu-code.so'}:{here.other}")
    found = find_nccl()
    assert (found[0].path, found[0].how, found[0].loaded) == (here.other, "LD_PRELOAD", True)
    assert [f.loaded for f in found if f.path == here.wheel] == [False]
