"""Frames of stack dumps: one shape for what py-spy, gdb, faulthandler and PyTorch print."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncclscope.lazy import lazy
from ncclscope.parsers.torch_frames import is_library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ncclscope.model import Line

__all__ = [
    "StackFrame",
    "fatal_signal_frame",
    "faulthandler_frame",
    "gdb_frame",
    "innermost_python",
    "innermost_user",
    "pyspy_frame",
]


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One frame. file is a source file, line its line (None: not known), lib a native frame's shared object.

    printed is the line of the dump that shows it.
    """

    func: str
    file: str | None
    line: int | None
    lib: str | None
    printed: Line

    @property
    def python(self) -> bool:
        """Whether it is a frame of Python code rather than of C or C++."""
        return self.file is not None and (self.file.endswith((".py", ".pyx")) or self.file.startswith("<"))

    @property
    def named(self) -> bool:
        """Whether the function is known; a stripped library shows addresses or `??`."""
        return not self.func.startswith(("0x", "??", "<unknown"))

    @property
    def user(self) -> bool:
        """Whether it is the user's own code."""
        return self.python and self.file is not None and not _is_installed(self.file)


# py-spy shortens paths to what follows an entry of sys.path, so an installed package shows as `torch/nn/...`.
_PACKAGES = frozenset(
    """torch torchvision torchaudio triton numpy pandas scipy PIL tqdm transformers accelerate datasets
    tokenizers safetensors huggingface_hub peft trl deepspeed lightning lightning_fabric
    pytorch_lightning lightning_utilities composer streaming ray vllm sglang xformers flash_attn apex
    transformer_engine megatron nemo fsspec s3fs boto3 botocore urllib3 requests aiohttp httpx wandb
    tensorboard mlflow hydra omegaconf fire click typer absl jax jaxlib flax zmq uvloop pydantic
    filelock einops bitsandbytes pyarrow h5py zarr webdataset""".split()
)
# Names of the standard library that are as often a user's own script.
_AMBIGUOUS = frozenset(
    {"test", "code", "profile", "trace", "token", "statistics", "sched", "cmd", "site", "this"}
)
_STDLIB = frozenset(sys.stdlib_module_names) - _AMBIGUOUS


def _is_installed(path: str) -> bool:
    if path.startswith("<") or is_library(path):
        return not path.startswith(("<string>", "<stdin>", "<ipython"))
    if path.startswith("/"):
        return False
    top = path.partition("/")[0].removesuffix(".py")
    return top in _PACKAGES or top in _STDLIB


def innermost_python(frames: Sequence[StackFrame]) -> StackFrame | None:
    """The first Python frame of `frames`, innermost first."""
    return next((f for f in frames if f.python), None)


def innermost_user(frames: Sequence[StackFrame]) -> StackFrame | None:
    """The first frame of the user's own code, innermost first."""
    return next((f for f in frames if f.user), None)


# evaluate (train.py:15)        c10d::TCPStore::doWait (libtorch_cpu.so)        0x7f5a8d22a1ca (libc.so.6)
_PYSPY = lazy(
    r"[ \t]{1,6}(?P<func>\S.{0,4000}?) \((?P<file>[^()]{1,500}?)(?::(?P<line>\d{1,7}))?\)\s*$"
)


def pyspy_frame(line: Line) -> StackFrame | None:
    """A frame as `py-spy dump` prints it, with or without --native."""
    m = _PYSPY.match(line.text)
    if m is None:
        return None
    number = int(m["line"]) if m["line"] else None
    source = number is not None or m["file"].endswith(".py") or m["file"].startswith("<")
    return StackFrame(m["func"], m["file"] if source else None, number, None if source else m["file"], line)


# #12 0x00007f401c11a567 in c10::cuda::device_synchronize() () from /opt/.../libc10_cuda.so
# #1  0x00007f3f9809bc92 in ncclProxyService (_args=0x4934dc00) at proxy.cc:1645
_GDB = lazy(r"\s*#\d{1,5}\s+(?:0x[0-9a-f]+ in )?(?P<rest>\S.*)$")
_GDB_LIB = lazy(r" from (\S+)\s*$")
_GDB_PLACE = lazy(r" at (\S+):(\d{1,7})\s*$")
# With Python's gdb support: f=Frame 0x7f.., for file /app/train.py, line 50, in main (x=1)
_GDB_PYTHON = lazy(r"[Ff]rame 0x[0-9a-f]+, for file (\S{1,500}), line (\d{1,7}), in ([^\s(]{1,200}) \(")


def gdb_frame(line: Line) -> StackFrame | None:
    """A frame of gdb's `bt`."""
    m = _GDB.match(line.text)
    if m is None:
        return None
    rest = m["rest"]
    inside = _GDB_PYTHON.search(rest)
    if inside is not None:
        return StackFrame(inside[3], inside[1], int(inside[2]), None, line)
    lib, place = _GDB_LIB.search(rest), _GDB_PLACE.search(rest)
    func = rest.partition(" (")[0].strip()
    return StackFrame(
        func,
        place[1] if place else None,
        int(place[2]) if place else None,
        lib[1] if lib else None,
        line,
    )


# File "/workspace/jobs/train.py", line 93 in main
_FAULTHANDLER = lazy(
    r'\s*File "(?P<file>[^"]{1,1000})", line (?P<line>\d+|\?\?\?) in (?P<func>.{1,200}?)\s*$'
)


def faulthandler_frame(line: Line) -> StackFrame | None:
    """A frame as Python's faulthandler prints it."""
    m = _FAULTHANDLER.match(line.text)
    if m is None:
        return None
    return StackFrame(m["func"], m["file"], int(m["line"]) if m["line"].isdigit() else None, None, line)


# frame #2: c10d::ProcessGroupNCCL::barrier(...) + 0x50 (0x7f308c6f3d10 in /opt/.../libtorch_cuda.so)
_C10 = lazy(
    r"\s*frame #\d{1,4}: (?P<func>\S.{0,4000}?) \+ 0x[0-9a-f]+ \(0x[0-9a-f]+ in (?P<lib>[^)]{1,500})\)\s*$"
)


def fatal_signal_frame(line: Line) -> StackFrame | None:
    """A frame of PyTorch's own C++ stacks."""
    m = _C10.match(line.text)
    return StackFrame(m["func"], None, None, m["lib"], line) if m else None
