"""Where a thread stands: known signatures of stacks, native and Python, as one word."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ncclscope.lazy import lazy
from ncclscope.parsers.stacks_frames import StackFrame, innermost_python, innermost_user
from ncclscope.parsers.torch_frames import Frame, collective_of

__all__ = ["WAITING", "collective_in", "during", "where_of"]

# Classes in which a rank waits for other ranks, or for the GPU work that waits for them.
WAITING = ("collective", "cuda_sync", "nccl_init", "store_wait")

Frames = Sequence[StackFrame]


def _native(frames: Frames, pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(f.func) for f in frames if not f.python)


def _lib(frames: Frames, pattern: re.Pattern[str]) -> bool:
    return any(f.lib is not None and pattern.search(f.lib) for f in frames)


def _python(frames: Frames, file: re.Pattern[str], func: re.Pattern[str] | None = None) -> bool:
    return any(
        f.file is not None and f.python and file.search(f.file) and (func is None or func.search(f.func))
        for f in frames
    )


def _top(frames: Frames) -> StackFrame | None:
    """The innermost Python frame, where nothing native is shown inside it."""
    first = frames[0] if frames else None
    return first if first is not None and first.python else None


# Threads that NCCL, c10d and autograd keep beside the program; they wait all the time.
_PROXY = lazy(
    r"^ncclProxy(?:Service|Progress)|^ncclProxyServiceUDS|^rasThreadMain|^ncclIbAsyncThreadMain|^persistentSocketThread"
)
_WATCHDOG = lazy(
    r"ProcessGroupNCCL::(?:Watchdog|HeartbeatMonitor|ncclCommWatchdog|heartbeatMonitor|watchdogHandler|ncclHeartbeat)"
)


def _proxy(frames: Frames) -> bool:
    return _native(frames, _PROXY)


def _watchdog(frames: Frames) -> bool:
    return _native(frames, _WATCHDOG)


# Processes that are no rank: DataLoader and compile workers, the launcher's agent.
_WORKER = lazy(
    r"torch/utils/data/_utils/worker\.py$|torch/_inductor/compile_worker/|multiprocessing/(?:resource_tracker|forkserver)\.py$"
)
_AGENT = lazy(
    r"torch/distributed/(?:elastic/agent|launcher/api)|torch/distributed/run\.py$|deepspeed/launcher/"
)


def _worker(frames: Frames) -> bool:
    return _python(frames, _WORKER)


def _launcher(frames: Frames) -> bool:
    return _python(frames, _AGENT)


# libnvidia-ptxjitcompiler.so.580.159.04 with __cuda_CallJitEntryPoint; inside a program: __nvJITLink...
_JIT_LIB = lazy(r"libnvidia-ptxjitcompiler|libnvJitLink|libnvptxcompiler|libnvidia-nvvm")
_JIT = lazy(r"^__cuda_CallJitEntryPoint|nvPTXCompiler|nvJ[Ii][Tt]Link|^cuLinkComplete|^cuLinkAddData")


def _ptx(frames: Frames) -> bool:
    return _lib(frames, _JIT_LIB) or _native(frames, _JIT)


# c10d::TCPStore::doWait, c10d::PrefixStore::get, c10d::FileStore::wait
_STORE = lazy(
    r"c10d::(?:\w*Store|detail::TCPClient)::(?:do)?(?:[Ww]ait|[Gg]et|waitForWorkers|[Cc]heck|multiGet)"
)
_STORE_PY = lazy(r"torch/distributed/(?:rendezvous|elastic/utils/store|elastic/rendezvous/\w+)\.py$")
_C10D_PY = lazy(r"torch/distributed/distributed_c10d\.py$")
_STORE_FUNC = lazy(r"^_?store_based_barrier$")


def _store(frames: Frames) -> bool:
    if _native(frames, _STORE):
        return True
    top = _top(frames)
    return top is not None and (_python([top], _STORE_PY) or _python([top], _C10D_PY, _STORE_FUNC))


# ncclCommInitRankConfig, bootstrapInit, c10d::NCCLComm::create
_NCCL_INIT = lazy(
    r"^ncclCommInit|^ncclCommSplit|^bootstrap(?:Init|Split|Create)|^initTransportsRank|c10d::NCCLComm::(?:create|split)|"
    r"ProcessGroupNCCL::(?:initNCCLComm|getNCCLComm|eagerConnectSingleDevice)|^ncclInitKernelsForDevice"
)
_INIT_PY = lazy(
    r"^(?:init_process_group|_new_process_group_helper|new_group|_new_group_with_tag|split_group)$"
)


def _nccl_init(frames: Frames) -> bool:
    if _native(frames, _NCCL_INIT):
        return True
    # A wrapper of c10d_logger stands outside, so the innermost Python frame decides.
    top = _top(frames)
    return top is not None and _python([top], _C10D_PY, _INIT_PY)


_WORK = lazy(
    r"c10d::ProcessGroup\w*::(?:barrier|collective|pointToPoint|allreduce|allgather|reduce_scatter|alltoall|broadcast|"
    r"reduce|gather|scatter|send|recv|\w+_impl|_\w+_base)|c10d::(?:ProcessGroup\w+::)?Work\w*::(?:wait|synchronize)|"
    r"^nccl(?:AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv|GroupEnd)|c10d::ProcessGroupGloo|^gloo::|"
    r"c10d::Reducer::"
)
_SYNC_MODULES = lazy(r"torch/distributed/utils\.py$")
_SYNC_FUNC = lazy(
    r"^(?:_sync_module_states|_sync_params_and_buffers|_verify_param_shape_across_processes)$"
)


def _collective(frames: Frames) -> bool:
    if _native(frames, _WORK):
        return True
    inner = innermost_python(frames)
    if inner is None:
        return False
    return _python([inner], _C10D_PY) or _python([inner], _SYNC_MODULES, _SYNC_FUNC)


# Only frames of compilation itself: a compiled model also runs through torch/_dynamo/eval_frame.py.
_COMPILE = lazy(
    r"torch/_dynamo/(?:convert_frame|output_graph|symbolic_convert|bytecode_transformation)\.py$|"
    r"torch/_inductor/(?:compile_fx|graph|scheduler|select_algorithm|async_compile|autotune_process|cpp_builder)\.py$|"
    r"(?:^|/)triton/(?:compiler|backends)/"
)
_NOT_RUN = lazy(r"^(?!run$|.*\.run$)")


def _compile(frames: Frames) -> bool:
    return _python(frames, _COMPILE, _NOT_RUN)


_MODULE_LOAD = lazy(
    r"^cu(?:Module|Library)(?:Load|Get)|^cudaLibraryLoad|^__cudaRegisterFatBinary|^cudaFuncGetAttributes"
)


def _module_load(frames: Frames) -> bool:
    return _native(frames, _MODULE_LOAD)


# A launch also waits, when the queue is full or a lazily loaded kernel needs the GPU to be idle.
_CUDA = lazy(
    r"^cu(?:da)?(?:Stream|Device|Event|Ctx)(?:Synchronize|WaitEvent|Query)|^cu(?:da)?(?:Memcpy|Memset|LaunchKernel|Free|Malloc|"
    r"MemAlloc|MemFree)|^c10::cuda::(?:device_synchronize|CUDAStream::synchronize)"
)
_CUDA_PY = lazy(r"torch/cuda/(?:__init__|streams)\.py$")
_SYNC = lazy(r"(?:^|\.)(?:synchronize|wait|wait_stream|wait_event|query)$")


def _cuda_sync(frames: Frames) -> bool:
    top = _top(frames)
    return _native(frames, _CUDA) or (top is not None and _python([top], _CUDA_PY, _SYNC))


_LOADER = lazy(r"torch/utils/data/dataloader\.py$")
_LOADER_GET = lazy(r"(?:^|\.)_(?:try_get_data|get_data|next_data)$")
_QUEUE = lazy(r"multiprocessing/queues\.py$")
_GET = lazy(r"(?:^|\.)get$")


def _dataloader(frames: Frames) -> bool:
    return _python(frames, _LOADER, _LOADER_GET) or _python(frames[:8], _QUEUE, _GET)


_GIL = lazy(
    r"^take_gil|^PyEval_(?:RestoreThread|AcquireThread|AcquireLock)|^PyGILState_Ensure|^_PyThreadState_Attach"
)


def _gil(frames: Frames) -> bool:
    return _native(frames[:6], _GIL)


_IMPORTLIB = lazy(r"^<frozen importlib\._bootstrap")


def _import(frames: Frames) -> bool:
    """Inside an import statement, and not in what an imported module runs for its whole life."""
    for frame in frames:
        if frame.file is not None and _IMPORTLIB.search(frame.file):
            return True
        if frame.user and frame.func != "<module>":
            return False
    return False


_FILE_CALL = lazy(
    r"^(?:__GI_)?(?:__)?(?:libc_)?(?:open(?:at)?(?:64)?|creat|f(?:data)?sync|sync_file_range|(?:l|f|new)?stat(?:x|at)?(?:64)?|fstatat(?:64)?|statx|"
    r"getdents(?:64)?|readdir(?:64)?|flock|lockf|unlink(?:at)?|rename(?:at2?)?|mkdir(?:at)?|rmdir|f?truncate(?:64)?|"
    r"statfs(?:64)?|access|faccessat2?|readlink(?:at)?|close|p(?:read|write)v?2?(?:64)?)(?:_nocancel)?$"
)
_READ_CALL = lazy(r"^(?:__GI_)?(?:__)?(?:libc_)?(?:read|write|readv|writev)(?:_nocancel)?$")
# What glibc 2.41 puts around every system call that can be cancelled.
_SYSCALL = lazy(r"syscall(?:_cancel)?(?:_arch)?$")
# These read from pipes and sockets.
_PIPES = lazy(
    r"(?:^|/)(?:multiprocessing/|subprocess\.py|socket\.py|ssl\.py|selectors\.py|http/|urllib3/|torch/_inductor/)"
)
_FILE_PY = lazy(
    r"(?:^|/)(?:torch/serialization\.py|torch/distributed/checkpoint/filesystem\.py|shutil\.py|pathlib\.py|genericpath\.py|"
    r"zipfile\.py|glob\.py|tempfile\.py|safetensors/torch\.py|fsspec/implementations/local\.py)$"
)


def _filesystem(frames: Frames) -> bool:
    first = next((f for f in frames if f.named and not _SYSCALL.search(f.func)), None)
    if first is None:
        return False
    if first.python:
        return _python([first], _FILE_PY)
    if _FILE_CALL.match(first.func):
        return True
    inner = innermost_python(frames)
    return bool(_READ_CALL.match(first.func)) and not (inner is not None and _python([inner], _PIPES))


# In this order: what stands inside says more than what it was called from.
_CLASSES: tuple[tuple[str, Callable[[Frames], bool]], ...] = (
    ("proxy_thread", _proxy),
    ("watchdog", _watchdog),
    ("worker", _worker),
    ("launcher", _launcher),
    ("ptx_compile", _ptx),
    ("store_wait", _store),
    ("nccl_init", _nccl_init),
    ("collective", _collective),
    ("compile", _compile),
    ("cuda_module_load", _module_load),
    ("cuda_sync", _cuda_sync),
    ("dataloader", _dataloader),
    ("gil_wait", _gil),
    ("import", _import),
    ("filesystem", _filesystem),
)


def where_of(frames: Frames) -> str:
    """The class of a stack, innermost frame first; "user" for the user's other code, "other" for the rest."""
    for name, test in _CLASSES:
        if test(frames):
            return name
    return "user" if innermost_user(frames) is not None else "other"


def during(frames: Frames) -> str | None:
    """What was under way outside the innermost call: "nccl_init" or None."""
    if _native(frames, _NCCL_INIT) or _python(frames, _C10D_PY, _INIT_PY):
        return "nccl_init"
    return None


def collective_in(frames: Frames) -> str | None:
    """The torch.distributed function on the stack, `all_reduce`."""
    outermost_first = [
        Frame(f.file, f.line or 0, f.func) for f in reversed(frames) if f.python and f.file is not None
    ]
    return collective_of(outermost_first)
