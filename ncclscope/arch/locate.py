"""Finds the NCCL that PyTorch would load, without importing it: the rules of the dynamic loader, ld.so(8)."""

from __future__ import annotations

import importlib.util
import mmap
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ncclscope.arch.elf import Dynamic, dynamic
from ncclscope.arch.library import nccl_banner
from ncclscope.arch.model import LocatedLibrary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SONAME = "libnccl.so.2"
# Which of these depends on NCCL differs between PyTorch's builds; they load in this order.
_TORCH_LIBRARIES = ("libtorch_global_deps.so", "libtorch_cuda.so", "libtorch_python.so")
_DEFAULT_DIRS = (
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
_MAX_LINKS = 40
_MAX_INCLUDES = 64
_SKIPPED_TOP = ("proc", "sys", "dev")


def find_nccl(root: Path | None = None) -> list[LocatedLibrary]:
    """Files with NCCL, those that PyTorch would load first.

    Without `root`: as this process's environment and this Python's PyTorch have it. With `root`, an unpacked
    image: every PyTorch in it; variables that the image sets are not known there. Links are followed inside
    `root` only. A library that is there but not loaded has `loaded` False; with no PyTorch at all, what the
    loader finds first counts as loaded.
    """
    tree = Tree(root)
    environ = os.environ if root is None else {}
    torch_dirs = _torch_dirs() if root is None else tree.directories_with("libtorch_cuda.so")
    found: dict[Path, LocatedLibrary] = {}

    def add(path: Path, how: str, *, loaded: bool, static: bool = False) -> None:
        found.setdefault(path, LocatedLibrary(path, how, loaded, static))

    for path in _preloaded(environ, tree):
        add(path, "LD_PRELOAD", loaded=True)
    for folder in torch_dirs:
        answer = _of_torch(folder, tree, environ)
        if answer is not None:
            # A preloaded library is asked first.
            add(
                answer.path,
                answer.how,
                loaded=not any(f.how == "LD_PRELOAD" for f in found.values()),
                static=answer.static,
            )
    for path, how in _elsewhere(tree, environ):
        add(path, how, loaded=not found)
    return sorted(found.values(), key=lambda library: not library.loaded)


class Tree:
    """A file system below `root`, or the machine's own for None; paths are absolute as seen inside it."""

    def __init__(self, root: Path | None) -> None:
        self.root = root.resolve() if root is not None else None

    def real(self, path: str) -> Path | None:
        """Where `path` of the tree is for us, links followed as inside it; None if there is nothing."""
        if self.root is None:
            real = Path(path)
            return real.resolve() if real.exists() else None
        todo = [part for part in path.split("/") if part not in ("", ".")][::-1]
        at: list[str] = []
        links = 0
        while todo:
            part = todo.pop()
            if part == "..":
                # Above the top there is the top itself, as after chroot.
                del at[-1:]
                continue
            here = self.root.joinpath(*at, part)
            if here.is_symlink():
                links += 1
                if links > _MAX_LINKS:
                    return None
                target = str(here.readlink())
                if target.startswith("/"):
                    at = []
                todo.extend(p for p in reversed(target.split("/")) if p not in ("", "."))
            elif part not in (".", ""):
                at.append(part)
        real = self.root.joinpath(*at)
        return real if real.exists() else None

    def inside(self, real: Path) -> str:
        """The path inside the tree of a file of ours."""
        return str(real) if self.root is None else "/" + real.relative_to(self.root).as_posix()

    def files(self, folder: str, pattern: str) -> list[Path]:
        """Files of a directory of the tree that match, links followed inside it."""
        real = self.real(folder)
        if real is None or not real.is_dir():
            return []
        try:
            names = sorted(entry.name for entry in real.glob(pattern))
        except OSError:
            return []
        return [
            path
            for name in names
            if (path := self.real(f"{self.inside(real)}/{name}")) is not None and path.is_file()
        ]

    def walk(self) -> Iterator[tuple[str, list[str]]]:
        """Directories of an unpacked image and the names of the files in each, links not followed."""
        if self.root is None:
            return
        for folder, folders, names in os.walk(self.root):
            if Path(folder) == self.root:
                folders[:] = [name for name in folders if name not in _SKIPPED_TOP]
            folders.sort()
            yield self.inside(Path(folder)), names

    def directories_with(self, name: str) -> list[str]:
        return [folder for folder, names in self.walk() if name in names]


def _torch_dirs() -> list[str]:
    spec = importlib.util.find_spec("torch")
    places = (spec.submodule_search_locations or []) if spec else []
    return [str(Path(place) / "lib") for place in places]


def _preloaded(environ: Mapping[str, str], tree: Tree) -> Iterator[Path]:
    for name in environ.get("LD_PRELOAD", "").replace(":", " ").split():
        real = tree.real(name) if "/" in name else _first(tree, environ, name)
        if real is not None and ("libnccl" in real.name or nccl_banner(real) is not None):
            yield real


def _of_torch(folder: str, tree: Tree, environ: Mapping[str, str]) -> LocatedLibrary | None:
    """The NCCL of the PyTorch whose libraries are in `folder`."""
    for name in _TORCH_LIBRARIES:
        library = tree.real(f"{folder}/{name}")
        if library is None:
            continue
        needs = _dynamic_of(library)
        wanted = next((n for n in needs.needed if n.startswith("libnccl.so")), None)
        if wanted is None:
            if name == "libtorch_cuda.so" and nccl_banner(library) is not None:
                return LocatedLibrary(library, f"linked statically into PyTorch's {name}", static=True)
            continue
        origin = tree.inside(library.parent)
        for directory, how in _search_path(needs, origin, name, environ, tree):
            real = tree.real(f"{directory}/{wanted}")
            if real is not None and real.is_file():
                return LocatedLibrary(real, how)
        return None
    return None


def _search_path(
    needs: Dynamic, origin: str, name: str, environ: Mapping[str, str], tree: Tree
) -> Iterator[tuple[str, str]]:
    """Directories in the loader's order: RPATH (if no RUNPATH), LD_LIBRARY_PATH, RUNPATH, the system's."""
    if not needs.runpath:
        yield from ((_expand(d, origin), f"RPATH of {name}") for d in needs.rpath)
    yield from ((d, "LD_LIBRARY_PATH") for d in environ.get("LD_LIBRARY_PATH", "").split(":") if d)
    yield from ((_expand(d, origin), f"RUNPATH of {name}") for d in needs.runpath)
    yield from _system_dirs(tree)


def _expand(directory: str, origin: str) -> str:
    return directory.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)


def _system_dirs(tree: Tree) -> Iterator[tuple[str, str]]:
    yield from ((d, "the system's /etc/ld.so.conf") for d in _ld_so_conf(tree, "/etc/ld.so.conf", set()))
    yield from ((d, "the system's library directories") for d in _DEFAULT_DIRS)


def _ld_so_conf(tree: Tree, path: str, seen: set[str]) -> Iterator[str]:
    """Directories of ld.so.conf, from which the loader's cache is made; its `include` lines are followed."""
    real = tree.real(path)
    if real is None or path in seen or len(seen) > _MAX_INCLUDES:
        return
    seen.add(path)
    try:
        lines = real.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for raw in lines:
        line = raw.partition("#")[0].strip()
        if line.startswith("include "):
            pattern = line.removeprefix("include ").strip()
            folder, _, name = (pattern if pattern.startswith("/") else f"/etc/{pattern}").rpartition("/")
            for file in tree.files(folder, name):
                yield from _ld_so_conf(tree, tree.inside(file), seen)
        elif line.startswith("/"):
            yield line


def _first(tree: Tree, environ: Mapping[str, str], name: str) -> Path | None:
    """A library named without a directory, as LD_PRELOAD may name it."""
    for directory, _how in _search_path(Dynamic((), (), ()), "", "", environ, tree):
        real = tree.real(f"{directory}/{name}")
        if real is not None and real.is_file():
            return real
    return None


def _elsewhere(tree: Tree, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """NCCL libraries that PyTorch does not ask for: used by programs without it, or hidden by its own."""
    places: Iterable[tuple[str, str]]
    if tree.root is None:
        wheels = [(f"{folder}/nvidia/nccl/lib", "the nvidia-nccl wheel") for folder in sys.path if folder]
        conda = (
            [(f"{environ['CONDA_PREFIX']}/lib", "the conda environment")]
            if environ.get("CONDA_PREFIX")
            else []
        )
        # A wheel's library is not on the loader's path, but Python packages load it from there by its path.
        listed = [(d, "LD_LIBRARY_PATH") for d in environ.get("LD_LIBRARY_PATH", "").split(":") if d]
        places = [*listed, *wheels, *conda, *_system_dirs(tree)]
    else:
        system = dict(_system_dirs(tree))
        places = [
            (
                folder,
                "the nvidia-nccl wheel"
                if folder.endswith("nvidia/nccl/lib")
                else system.get(folder, "a file in the image"),
            )
            for folder, names in tree.walk()
            if any(name.startswith("libnccl.so") for name in names)
        ]
    for folder, how in places:
        for path in tree.files(folder, "libnccl.so*"):
            yield path, how


def _dynamic_of(path: Path) -> Dynamic:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return dynamic(data)
    except (OSError, ValueError):
        return Dynamic((), (), ())
