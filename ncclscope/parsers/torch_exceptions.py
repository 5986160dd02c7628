"""What an exception's type and message say: the program's own error, or an echo of a failure elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ncclscope.lazy import lazy
from ncclscope.parsers.torch_cuda_errors import by_text, verdict

if TYPE_CHECKING:
    from ncclscope.model import Value

__all__ = ["Judgement", "judge", "simple_name"]


class Judgement(msgspec.Struct, frozen=True):
    """nature_of: own, import, cuda, oom, nccl, store, signal, nan, limit or echo; the rest as in Pattern."""

    nature_of: str
    nature: str
    cause: str | None = None
    suggests: str | None = None

    def fields(self) -> dict[str, Value]:
        fields: dict[str, Value] = {"nature_of": self.nature_of, "nature": self.nature}
        if self.cause:
            fields["cause"] = self.cause
        if self.suggests:
            fields["suggests"] = self.suggests
        return fields


_OWN = Judgement("own", "cause", "user-exception")
_ECHO = Judgement("echo", "consequence")
_STORE = Judgement("store", "consequence")
_SIGNAL = Judgement("signal", "consequence")

# Exceptions that a parent, a launcher or a peer raises because another process failed.
_ECHO_TYPES = frozenset(
    {
        "ChildFailedError",  # torchrun
        *("RendezvousConnectionError", "RendezvousClosedError", "RendezvousTimeoutError"),
        "RendezvousGracefulExitError",
        *("ProcessRaisedException", "ProcessExitedException"),  # torch.multiprocessing
        *("BrokenProcessPool", "RemoteTraceback", "CancelledError"),  # Python
        *("ConnectionResetError", "ConnectionRefusedError", "ConnectionAbortedError", "BrokenPipeError"),
        *("RayTaskError", "RayActorError", "ActorDiedError", "ActorUnavailableError", "WorkerCrashedError"),
        *("TrainingFailedError", "WorkerGroupError", "ControllerError", "UserExceptionWithTraceback"),
        *("StartTraceback", "StartTracebackWithWorkerRank"),
        *("EngineDeadError", "AsyncEngineDeadError", "MQEngineDeadError"),  # vLLM
    }
)
_SIGNAL_TYPES = frozenset(
    {"SignalException", "KeyboardInterrupt", "SystemExit", "GeneratorExit", "SIGTERMException"}
)

# What messages say, the first match wins; every alternative is a text of the producer named in the comment.
_MESSAGES: tuple[tuple[Judgement, tuple[str, ...]], ...] = (
    # PyTorch's allocators
    (
        Judgement("oom", "cause", "oom-gpu"),
        (r"(?:CUDA|HIP|XPU) out of memory", r"would exceed allowed memory"),
    ),
    # torch.cuda
    (Judgement("cuda", "cause", "invalid-usage"), (r"Cannot re-initialize CUDA in forked subprocess",)),
    (Judgement("cuda", "cause", "driver-mismatch"), (r"driver on your system is too old",)),
    (
        Judgement("cuda", "cause", "gpu-not-visible"),
        (
            r"Found no NVIDIA driver",
            r"No CUDA GPUs are available",
            r"only supported with GPUs, no GPUs found",
        ),
    ),
    (Judgement("cuda", "symptom", suggests="oom-gpu"), (r"CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)",)),
    (Judgement("cuda", "symptom"), (r"CUBLAS_STATUS_", r"CUDNN_STATUS_")),
    # before 1.5, where the old number says nothing: cuda runtime error (60) : peer mapping resources exhausted at ...
    (
        Judgement("cuda", "symptom", suggests="p2p-acs-iommu"),
        (r"^cuda runtime error \(\d+\) : peer (?:mapping|access) ",),
    ),
    # c10d, DDP, FSDP, gloo: a disagreement between ranks, named by the rank that checks
    (
        Judgement("own", "cause", "collective-mismatch"),
        (
            r"Detected mismatch between collectives on ranks",
            r"op\.preamble\.length <= op\.nbytes",
            r"DDP expects same model across all ranks",
            r"in this process with (?:sizes|strides) .{1,200} appears not to match",
            r"Forward order differs across ranks",
        ),
    ),
    (
        Judgement("nccl", "consequence"),
        (
            r"NCCL communicator was aborted",
            r"communicator encountered error set by",
            r"Watchdog caught collective operation timeout",
            r"timed out in blocking wait",
        ),
    ),
    # c10d store and sockets
    (
        Judgement("store", "cause", "rendezvous"),
        (r"server socket has failed to listen.{0,400}(?:EADDRINUSE|errno: 98)", r"Ping failed, invalid"),
    ),
    (
        Judgement("store", "symptom", suggests="rendezvous"),
        (
            r"server socket has failed to listen",
            r"waiting for clients\. \d+/\d+",
            r"client socket has (?:timed out|failed to connect)",
        ),
    ),
    # the store's client up to 1.10, in the words of strerror alone
    (
        Judgement("store", "symptom", suggests="rendezvous"),
        (r"^Connection timed out\s*$", r"^connect\(\) timed out\. Original timeout was \d+ ms"),
    ),
    (
        Judgement("store", "consequence"),
        (
            r"store->get\(",
            r"^Socket Timeout",
            r"^wait timeout after",
            r"in store based barrier",
            r"ailed to recv, got 0 bytes",
            r"^(?:Broken pipe|Connection reset by peer|Connection refused)\s*$",
        ),
    ),
    # gloo
    (
        Judgement("echo", "consequence"),
        (
            r"Connection closed by peer \[",
            r"Read error \[",
            r"Timed out waiting \d+ms for (?:send|recv)",
            r"failed to pass monitoredBarrier",
            r"successfully reached monitoredBarrier",
            r"DeepEP error: timeout",
        ),
    ),
    (Judgement("store", "symptom", suggests="network-interface"), (r"[Gg]loo connectFullMesh failed",)),
    # gloo: `ifa != nullptr. Unable to find address for: eth7`, for the name in GLOO_SOCKET_IFNAME
    (Judgement("store", "cause", "network-interface"), (r"Unable to find (?:address|interface) for: ",)),
    # c10d argument checks: only the rank that is wrong raises them
    (
        Judgement("own", "cause", "invalid-usage"),
        (
            r"No backend type associated with device type",
            r"Tensors must be CUDA and dense",
            r"Only CUDA dense tensor is supported for NCCL",
            r"Distributed package doesn't have NCCL built in",
            r"Default process group has not been initialized",
            r"environment variable \w+ expected, but not set",
            r"tensor (?:size )?must (?:be (?:the same|equal)|have the same)",
            r"Split sizes doesn't match total dim 0",
            r"Number of tensor splits not equal",
            r"does not divide equally across group size",
            r"Attempt to perform collective on tensor not on device",
            r"but backend constrained to",
            r"^ProcessGroup\w+::\w+: invalid",
            r"Failed to infer a GPU device id",
            r"[Ii]nvalid device ordinal",
        ),
    ),
    # NCCL through c10d, torch.cuda.nccl and CuPy
    (
        Judgement("nccl", "consequence"),
        (r"ncclRemoteError", r"remote process exited or there was"),
    ),
    (
        Judgement("nccl", "symptom"),
        (r"NCCL [Ee]rror", r"ncclUniqueId", r"\bnccl(?:UnhandledCuda|System|Internal|InvalidUsage)"),
    ),
    # DataLoader
    (
        Judgement("limit", "cause", "shm-limit"),
        (r"insufficient shared memory", r"out of shared memory"),
    ),
    (Judgement("signal", "consequence", suggests="shm-limit"), (r"is killed by signal: Bus error",)),
    (Judgement("signal", "consequence", suggests="oom-host"), (r"is killed by signal: Killed",)),
    (Judgement("signal", "consequence"), (r"is killed by signal", r"DataLoader worker \(pid\(s\)")),
    (Judgement("own", "symptom", suggests="storage-hang"), (r"DataLoader timed out after",)),
    (
        Judgement("limit", "cause", "fd-limit"),
        (r"received 0 items of ancdata", r"Too many open files"),
    ),
    # up to 1.7 without an errno: unable to open shared memory object </torch_1_2> in read-write mode
    (
        Judgement("limit", "symptom", suggests="fd-limit"),
        (r"unable to open shared memory object </torch_[^>]{1,80}> in read-write mode\s*$",),
    ),
    # shared memory of PyTorch and of multiprocessing; with other files the same errno is a full disk
    (
        Judgement("limit", "cause", "shm-limit"),
        (
            r"(?:</torch_|/dev/shm|shm_open).{0,300}(?:No space left|Resource temporarily|Cannot allocate)",
            r"(?:No space left|Cannot allocate).{0,300}(?:/dev/shm|/torch_|/psm_)",
        ),
    ),
    (Judgement("limit", "cause", "disk-full"), (r"No space left on device", r"Disk quota exceeded")),
    # torch.save on a full disk prints no ENOSPC
    (
        Judgement("limit", "symptom", suggests="disk-full"),
        (r"basic_ios::clear: iostream error", r"unexpected pos \d+ vs", r"PytorchStreamWriter failed"),
    ),
    # Linux: EIO, ENOTCONN of FUSE mounts, ESTALE of NFS
    (
        Judgement("limit", "cause", "storage-hang"),
        (
            r"\[Errno (?:5|107|116)\] ",
            r"Stale file handle",
            r"Transport endpoint is not connected",
            # torch.save and torch.load: write(): fd 29 failed with Input/output error
            r"(?:read|write)\(\): fd \d+ failed with Input/output error",
        ),
    ),
    # host memory: PyTorch, C++, Linux
    (
        Judgement("oom", "symptom", suggests="oom-host"),
        (
            r"can't allocate memory: you tried to allocate",
            r"std::bad_alloc",
            r"\[Errno 12\] Cannot allocate memory",
        ),
    ),
    # the resolver
    (
        Judgement("store", "cause", "dns"),
        (
            r"Name or service not known",
            r"Temporary failure in name resolution",
            r"nodename nor servname",
            r"No address associated with hostname",
        ),
    ),
    # the dynamic linker: two builds that do not fit
    (
        Judgement("import", "cause", "version-mismatch"),
        (r"undefined symbol", r"version `?\w+_[\d.]+'? not found", r"symbol lookup error"),
    ),
    (Judgement("import", "symptom", suggests="version-mismatch"), (r"cannot open shared object file",)),
    # serving engines and Ray: the parent speaks of a child
    (
        Judgement("echo", "consequence"),
        (
            r"EngineCore encountered an issue",
            r"Engine core initialization failed",
            r"WorkerProc initialization failed",
            r"RPC call to \S+ timed out",
            r"scheduler (?:died during initialization|is dead)",
            r"Worker proc \S+ died unexpectedly",
            r"^The (?:actor|worker) died",
            r"Worker exit type:",
        ),
    ),
    # PyTorch's own assumptions; whatever broke them came before
    (Judgement("own", "symptom", suggests="torch-bug"), (r"INTERNAL ASSERT FAILED at",)),
)
# Megatron, autograd's anomaly mode, torch.multinomial, and trainers' own guards.
_NAN = lazy(
    r"found (?:NaN|Inf) in |returned nan values in its|probability tensor contains either `inf`, `nan`|"
    r"(?i:\b(?:loss|grad\w*|norm|logits?)\b.{0,40}\b(?:nan|non-?finite)\b(?!-)|"
    r"\b(?:nan|non-?finite)\b.{0,30}\b(?:loss|grad\w*|logits?)\b)"
)

# Command '['/opt/venv/bin/python3.12', '-u', 'train.py']' returned non-zero exit status 1.
_WORKERS_COMMAND = lazy(
    r"^Command \W{0,4}(?:\S{0,300}/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|srun|mpirun|ray)\b|\.py\b"
)
# cupy_backends.cuda.api.driver.CUDADriverError: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure     (CuPy 14)
_CUPY = lazy(r"(?:CUDA_ERROR_[A-Z_]+|cudaError\w+): ")
_CUPY_TYPES = frozenset({"CUDADriverError", "CUDARuntimeError"})
_CUDA = lazy(r"(?:CUDA|HIP) (?:driver )?error(?: \([^)]*\))?: |Triton Error \[CUDA\]: ")


def simple_name(exception_type: str) -> str:
    """The class alone: `OutOfMemoryError` of `torch.cuda.OutOfMemoryError`, `E` of `module.E(KeyError)`."""
    return exception_type.split("(", 1)[0].rsplit(".", 1)[-1]


def judge(exception_type: str, message: str) -> Judgement:
    """What an exception is for the process that raised it; `message` may span lines."""
    name = simple_name(exception_type)
    message = message[:4000]
    if name in _SIGNAL_TYPES:
        return _SIGNAL
    if name in _ECHO_TYPES:
        return _ECHO
    if name == "CalledProcessError":  # a launcher's of its workers is an echo, a program's of another tool its own
        return _ECHO if _WORKERS_COMMAND.search(message) else _OWN
    if exception_type.startswith("ray.exceptions."):
        return _ECHO
    cuda = _CUDA.search(message) or (_CUPY.match(message) if name in _CUPY_TYPES else None)
    if cuda is not None:
        error = by_text(message[cuda.end() : cuda.end() + 200])
        if error is not None:
            said = verdict(error)
            cause, suggests = said.get("cause"), said.get("suggests")
            return Judgement(
                "oom" if error.code == 2 else "cuda",
                str(said["nature"]),
                str(cause) if cause else None,
                str(suggests) if suggests else None,
            )
    for judgement, expressions in _MESSAGES:
        if any(re.search(expression, message) for expression in expressions):
            return judgement
    if name not in ("KeyError", "ImportError", "ModuleNotFoundError") and _NAN.search(message):
        return Judgement("nan", "cause", "nan")
    return _by_type(name)


def _by_type(name: str) -> Judgement:
    if name == "OutOfMemoryError":
        return Judgement("oom", "cause", "oom-gpu")
    if name == "AcceleratorError":
        return Judgement("cuda", "symptom")
    if name == "DistBackendError":
        return Judgement("nccl", "consequence")
    if name in ("DistNetworkError", "DistStoreError"):
        return _STORE
    if name == "NcclError":
        return Judgement("nccl", "symptom")
    if name == "gaierror":
        return Judgement("store", "cause", "dns")
    if name in ("ModuleNotFoundError", "ImportError"):
        return Judgement("import", "cause", "user-exception")
    if name == "FloatingPointError":
        return Judgement("nan", "cause", "nan")
    if name == "MemoryError":
        return Judgement("oom", "symptom", suggests="oom-host")
    # Somebody waited for something else; what is not said.
    if name in ("TimeoutError", "Empty"):
        return Judgement("own", "symptom")
    return _OWN
