"""What a Python exception's type and message say: the program's own error, or an echo of a failure elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ncclscope.model import Value
from ncclscope.parsers.torch_cuda_errors import by_text, verdict

__all__ = ["Judgement", "judge", "simple_name"]


@dataclass(frozen=True, slots=True)
class Judgement:
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
    """ChildFailedError ProcessRaisedException ProcessExitedException CalledProcessError RayTaskError RayActorError
    ActorDiedError ActorUnavailableError WorkerCrashedError TrainingFailedError WorkerGroupError ControllerError
    UserExceptionWithTraceback StartTraceback StartTracebackWithWorkerRank EngineDeadError AsyncEngineDeadError
    MQEngineDeadError RendezvousConnectionError RendezvousClosedError RendezvousTimeoutError RendezvousGracefulExitError
    ConnectionResetError ConnectionRefusedError ConnectionAbortedError BrokenPipeError BrokenProcessPool
    RemoteTraceback CancelledError""".split()
)
_SIGNAL_TYPES = frozenset("SignalException KeyboardInterrupt SystemExit GeneratorExit SIGTERMException".split())

# (message expression, judgement), first match wins; each stands for a message of a producer named beside it.
_MESSAGES: tuple[tuple[re.Pattern[str], Judgement], ...] = tuple(
    (re.compile(expression), judgement)
    for expression, judgement in (
        # PyTorch allocator, CUDA and ROCm
        (r"(?:CUDA|HIP|XPU) out of memory|would exceed allowed memory", Judgement("oom", "cause", "oom-gpu")),
        # torch.cuda
        (r"Cannot re-initialize CUDA in forked subprocess", Judgement("cuda", "cause", "invalid-usage")),
        (r"driver on your system is too old", Judgement("cuda", "cause", "driver-mismatch")),
        (
            r"Found no NVIDIA driver|No CUDA GPUs are available|only supported with GPUs, no GPUs found",
            Judgement("cuda", "cause", "gpu-not-visible"),
        ),
        (r"CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)", Judgement("cuda", "symptom", suggests="oom-gpu")),
        (r"CUBLAS_STATUS_|CUDNN_STATUS_", Judgement("cuda", "symptom")),
        # c10d, DDP, gloo: a disagreement between ranks, named by the rank that checks
        (
            r"Detected mismatch between collectives on ranks|op\.preamble\.length <= op\.nbytes|"
            r"DDP expects same model across all ranks|in this process with (?:sizes|strides) .* appears not to match|"
            r"Forward order differs across ranks",
            Judgement("own", "cause", "collective-mismatch"),
        ),
        (r"NCCL communicator was aborted|communicator encountered error set by", Judgement("nccl", "consequence")),
        # c10d store and sockets
        (r"server socket has failed to listen.*(?:EADDRINUSE|errno: 98)", Judgement("store", "cause", "rendezvous")),
        (r"server socket has failed to listen", Judgement("store", "symptom", suggests="rendezvous")),
        (r"waiting for clients\. \d+/\d+", Judgement("store", "symptom", suggests="rendezvous")),
        (r"Ping failed, invalid", Judgement("store", "cause", "rendezvous")),
        (r"client socket has (?:timed out|failed to connect)", Judgement("store", "symptom", suggests="rendezvous")),
        (
            r"store->get\(|^Socket Timeout|^wait timeout after|in store based barrier|ailed to recv, got 0 bytes|"
            r"^(?:Broken pipe|Connection reset by peer|Connection refused)\s*$",
            _STORE,
        ),
        # gloo
        (
            r"Connection closed by peer \[|Read error \[|gloo.*Timed out waiting \d+ms|Timed out waiting \d+ms for (?:send|recv)|"
            r"failed to pass monitoredBarrier|successfully reached monitoredBarrier",
            _ECHO,
        ),
        (r"[Gg]loo connectFullMesh failed", Judgement("store", "symptom", suggests="network-interface")),
        # c10d argument checks: only the rank that is wrong raises them
        (
            r"No backend type associated with device type|Tensors must be CUDA and dense|must be contiguous|"
            r"Default process group has not been initialized|environment variable \w+ expected, but not set|"
            r"tensor (?:size )?must (?:be (?:the same|equal)|have the same)|Split sizes doesn't match total dim 0|"
            r"Number of tensor splits not equal|does not divide equally across group size|"
            r"Attempt to perform collective on tensor not on device|but backend constrained to|"
            r"^ProcessGroup\w+::\w+: invalid|Failed to infer a GPU device id|[Ii]nvalid device ordinal",
            Judgement("own", "cause", "invalid-usage"),
        ),
        # NCCL through c10d, its own bindings and CuPy
        (r"ncclRemoteError|remote process exited or there was a network error", Judgement("nccl", "consequence")),
        (r"NCCL [Ee]rror|ncclUniqueId|\bnccl(?:UnhandledCuda|System|Internal|InvalidUsage)", Judgement("nccl", "symptom")),
        # DataLoader
        (r"insufficient shared memory|out of shared memory", Judgement("limit", "cause", "shm-limit")),
        (r"is killed by signal: Bus error", Judgement("signal", "consequence", suggests="shm-limit")),
        (r"is killed by signal: Killed", Judgement("signal", "consequence", suggests="oom-host")),
        (r"is killed by signal|DataLoader worker \(pid\(s\)", _SIGNAL),
        (r"DataLoader timed out after", Judgement("own", "symptom", suggests="storage-hang")),
        (r"received 0 items of ancdata|Too many open files", Judgement("limit", "cause", "fd-limit")),
        # shared memory of PyTorch and of multiprocessing; other files with the same errno fill a disk
        (
            r"(?:</torch_|/dev/shm|shm_open).*(?:No space left|Resource temporarily|Cannot allocate)|"
            r"(?:No space left|Cannot allocate).*(?:/dev/shm|/torch_|/psm_)",
            Judgement("limit", "cause", "shm-limit"),
        ),
        (r"No space left on device|Disk quota exceeded", Judgement("limit", "cause", "disk-full")),
        # torch.save on a full disk prints no ENOSPC
        (
            r"basic_ios::clear: iostream error|unexpected pos \d+ vs|PytorchStreamWriter failed",
            Judgement("limit", "symptom", suggests="disk-full"),
        ),
        (
            r"\[Errno (?:5|107|116)\] |Stale file handle|Transport endpoint is not connected",
            Judgement("limit", "cause", "storage-hang"),
        ),
        # host memory
        (
            r"can't allocate memory: you tried to allocate|std::bad_alloc|\[Errno 12\] Cannot allocate memory",
            Judgement("oom", "symptom", suggests="oom-host"),
        ),
        # names
        (
            r"Name or service not known|Temporary failure in name resolution|nodename nor servname|"
            r"No address associated with hostname",
            Judgement("store", "cause", "dns"),
        ),
        # dynamic linker: two builds that do not fit
        (
            r"undefined symbol|version `?\w+_[\d.]+'? not found|symbol lookup error",
            Judgement("import", "cause", "version-mismatch"),
        ),
        (r"cannot open shared object file", Judgement("import", "symptom", suggests="version-mismatch")),
        # NaN: Megatron, autograd's anomaly mode, torch.multinomial, trainers' own guards
        (
            r"found (?:NaN|Inf) in |returned nan values in its|probability tensor contains either `inf`, `nan`|"
            r"(?i:\b(?:loss|grad\w*|norm|logits?|output)\b.{0,40}\b(?:nan|non-?finite)\b|"
            r"\b(?:nan|non-?finite)\b.{0,30}\b(?:loss|grad\w*|logits?)\b)",
            Judgement("nan", "cause", "nan"),
        ),
        # serving engines: the parent speaks of a child
        (
            r"EngineCore encountered an issue|Engine core initialization failed|WorkerProc initialization failed|"
            r"RPC call to \S+ timed out|scheduler (?:died during initialization|is dead)|died unexpectedly",
            _ECHO,
        ),
        # ray.train
        (r"The actor died|The worker died|Worker exit type:", _ECHO),
    )
)

_CUDA = re.compile(r"(?:CUDA|HIP) (?:driver )?error(?: \([^)]*\))?: |Triton Error \[CUDA\]: ")


def simple_name(exception_type: str) -> str:
    """`OutOfMemoryError` of `torch.cuda.OutOfMemoryError`, `RayTaskError` of `ray.exceptions.RayTaskError(KeyError)`."""
    return exception_type.split("(", 1)[0].rsplit(".", 1)[-1]


def judge(exception_type: str, message: str) -> Judgement:
    """What an exception is for the process that raised it; `message` may span lines."""
    name = simple_name(exception_type)
    message = message[:4000]
    if name in _SIGNAL_TYPES:
        return _SIGNAL
    if name in _ECHO_TYPES:
        return _ECHO
    if exception_type.startswith("ray.exceptions."):
        return _ECHO
    cuda = _CUDA.search(message)
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
    for expression, judgement in _MESSAGES:
        if expression.search(message):
            if judgement.nature_of == "nan" and name in ("KeyError", "ImportError", "ModuleNotFoundError"):
                continue
            return judgement
    return _by_type(name, message)


def _by_type(name: str, message: str) -> Judgement:
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
