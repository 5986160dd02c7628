"""Stack frames: which of them is the user's own code."""

from __future__ import annotations

import msgspec

from ncclscope.lazy import lazy

__all__ = ["Frame", "collective_of", "is_library", "user_frame"]

_LIBRARY = lazy(
    r"(?:site|dist)-packages/|/lib(?:64)?/python\d|^<frozen |^<__array|/bin/[\w.-]+$|"
    r"(?:^|/)torch/(?:distributed|utils|nn|autograd|cuda|_\w+|optim|multiprocessing|onnx|fx|jit|ao|fsdp|"
    r"testing)/|"
    r"/pytorch/torch/|^python/ray/"
)
_C10D = lazy(
    r"(?:^|/)torch/distributed/(?:distributed_c10d|nn/functional|_functional_collectives)\.py$"
)
_PLUMBING = frozenset({"wrapper", "fn", "inner", "decorate_context", "forward", "backward", "apply"})


class Frame(msgspec.Struct, frozen=True):
    """One entry of a stack."""

    file: str
    line: int
    func: str


def is_library(path: str) -> bool:
    """Whether a frame's file belongs to Python, PyTorch or an installed package rather than to the user."""
    return _LIBRARY.search(path) is not None


def user_frame(frames: list[Frame]) -> Frame | None:
    """The innermost frame of the user's own code; `frames` outermost first."""
    for frame in reversed(frames):
        if not is_library(frame.file):
            return frame
    return None


def collective_of(frames: list[Frame]) -> str | None:
    """The torch.distributed function that the stack went through, `all_reduce` or `init_process_group`."""
    for frame in reversed(frames):
        if _C10D.search(frame.file) and not frame.func.startswith("_") and frame.func not in _PLUMBING:
            return frame.func
    return None
