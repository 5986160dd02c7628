"""What file and directory names say about the stream inside."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from ncclscope.lazy import lazy
from ncclscope.sources.names import without_rotation

__all__ = ["Hints", "hints_of"]


class Hints(msgspec.Struct, frozen=True):
    """What a name suggests; a hint, never a fact. None where the name says nothing or could be read two ways.

    kernel is True where the name looks like a kernel log (dmesg*, kern.log, messages, journal*, syslog).
    """

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pod: str | None = None
    attempt: int | None = None
    stream: str | None = None
    pid: int | None = None
    node_rank: int | None = None
    kernel: bool = False


_EDGE = r"(?=$|[._\-])"
_START = r"(?:^|[._\-])"
_TEXT = lazy(r"\.(?:log|txt|out|err|json)$", re.IGNORECASE)

# rank7.log, rank_7, global_rank3, job_rank7, nccl_trace_rank_3, fr_rank_0; rank0-7 is several
_RANK = lazy(
    r"(?:^|[._\-])(?:global_?)?rank[_\-.]?(\d{1,7})(?!\d|-\d{1,3}(?:$|[._]))" + _EDGE, re.IGNORECASE
)
# A number within a parallel group or a node, or a rank of that: tp_rank_3, node_rank1
_OTHER_RANK = lazy(
    r"(?:^|[._\-])(?:tp|pp|dp|ep|cp|sp|mp|pg|fsdp|ddp|data|tensor|pipeline|model|expert|context|parallel|group|"
    r"local|node|machine|role)[_\-]?(?:parallel[_\-]?)?$",
    re.IGNORECASE,
)
_LOCAL_RANK = lazy(_START + r"local[_\-]?rank[_\-]?(\d{1,4})" + _EDGE, re.IGNORECASE)
# node_rank1, node-rank-1
_NODE_RANK = lazy(_START + r"(?:node|machine)[_\-]?rank[_\-]?(\d{1,6})" + _EDGE, re.IGNORECASE)
# node0.log, node-3, node_12; node01 is a host's name
_NODE = lazy(r"^node[_\-]?(0|[1-9]\d{0,4})$", re.IGNORECASE)
# worker.r7.log, dgx-17.r3.log
_DOT_RANK = lazy(r"^(?P<rest>.+)\.r(?P<rank>\d{1,7})$", re.DOTALL)
# <logdir>/<run id>/attempt_0/3/stderr.log and error.json (torch.distributed.elastic, 1.9 to 2.14)
_ATTEMPT = lazy(_START + r"attempt[_\-]?(\d{1,4})" + _EDGE, re.IGNORECASE)
_STREAM = lazy(_START + r"(stdout|stderr)" + _EDGE, re.IGNORECASE)
_PID = lazy(_START + r"pid[_\-]?(\d{1,10})" + _EDGE, re.IGNORECASE)
# worker-0b3c...-01000000-4242.err (Ray session files)
_RAY = lazy(r"^worker-[0-9a-f]{6,}-[0-9a-f]{8}-(?P<pid>\d{1,10})\.(?P<stream>out|err)$")
# nccl.dgx-17.4242.log, nccl_debug.dgx-17.4242 (NCCL_DEBUG_FILE with %h and %p); after a dash only a long
# number is a pid
_NCCL_FILE = lazy(
    r"^nccl[a-z]*(?:[._\-](?:debug|info|logs?|trace|output|file))*[._\-](?P<host>[a-z0-9][a-z0-9.\-]*?)"
    r"(?:[._](?P<pid>\d{1,10})|-(?P<long>\d{4,10}))$",
    re.IGNORECASE,
)
# slurm-1234-dgx-17.out (--output=slurm-%j-%N.out); slurm-123_4.out is an array index and slurm-123-4.out may
# be a task, a step or a node: they say nothing
_SLURM = lazy(r"^(?:slurm|job)[-_.]\d+(?:[-_.]\d+)*[-_.](?P<host>[a-z][a-z0-9.\-]*)$", re.IGNORECASE)

_KERNEL = lazy(
    _START + r"(?:dmesg|kern(?:el)?|syslog)" + _EDGE + r"|^(?:messages|journal(?:ctl)?|dmesg)", re.IGNORECASE
)
_KERNEL_WORDS = lazy(
    r"(?:^|[._\-])(?:dmesg|kern(?:el)?|syslog|messages|journal(?:ctl)?|log)(?=$|[._\-])", re.IGNORECASE
)

_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"  # the letters of Kubernetes' generated names
_POD = lazy(
    r"^(?:"
    r"(?:[a-z0-9][a-z0-9.\-]*-)?(?:worker|master|launcher)-\d{1,5}(?:-\d{1,5})?"  # worker-3
    r"|[a-z0-9][a-z0-9.\-]*-node-\d{1,5}-\d{1,5}"  # job-node-0-3 (TrainJob, JobSet)
    rf")(?:-{_SAFE}{{5}})?$"
    rf"|^[a-z0-9][a-z0-9.\-]*-{_SAFE}{{8,10}}-{_SAFE}{{5}}$"  # vllm-7f9c8d6b5-x2k4p (Deployment)
    rf"|^[a-z0-9][a-z0-9.\-]*-\d{{1,5}}-(?=.*\d)(?=.*[a-z]){_SAFE}{{5}}$"  # train-0-x2k4p (Indexed Job)
)
# /var/log/pods/ns_train-worker-0_0f6c...-uid/pytorch/0.log
_POD_DIRECTORY = lazy(r"^[a-z0-9\-]+_(?P<pod>[a-z0-9][a-z0-9.\-]*)_(?:[0-9a-f\-]{36}|[0-9a-f]{32})$")
# /var/log/containers/train-worker-0_ns_pytorch-<64 hex digits>.log
_POD_FILE = lazy(r"^(?P<pod>[a-z0-9][a-z0-9.\-]*)_[a-z0-9\-]+_[a-z0-9.\-]+-[0-9a-f]{64}$")

# A host's name ends in a number (dgx-17, node01, ip-10-0-0-12), before its domain if any, or is an address.
_HOST = lazy(
    r"^[a-z][a-z0-9]*(?:-[a-z0-9]+)*\d(?:\.[a-z][a-z0-9\-]*)*$|^\d{1,3}(?:\.\d{1,3}){3}$", re.IGNORECASE
)
# Names of the same shape for other things.
_NO_HOST = lazy(
    r"^(?:job|run|exp|experiment|case|attempt|restart|log|logs|test|trial|incident|ticket|issue|slurm|session|"
    r"rank|r|v|step|epoch|day|week|part|batch|stage|phase|task|pid|gpu|device|local|worker|replica|shard|try|"
    r"retry|iter|train|training|sweep|config|seed|bug|dmesg|kern|kernel|messages|syslog|journal|output|out|err|"
    r"stdout|stderr)s?(?:[-_.]?\d+|-[a-z0-9]+-\d+)*$",
    re.IGNORECASE,
)
# Host names that need no kernel log or rank beside them to be told from a job's; gpu-3 and gpu0 are devices.
_HOST_WORD = lazy(
    r"^(?!gpu-?\d{1,2}$)(?:[a-z0-9]+-){0,2}[a-z0-9]*(?:dgx|hgx|gpu|node|host|nid|compute|hpc|ip)"
    r"(?:-(?:[a-z0-9]+-){0,4}\d+|\d{2,})(?:\.|$)|^\d+\.\d+\.\d+\.\d+$",
    re.IGNORECASE,
)


# Files of one tree share most parts of their paths, and a scan asks for thousands of files.
_same_parts = lru_cache(maxsize=512)


@_same_parts
def _number(pattern: re.Pattern[str], text: str) -> int | None:
    """The one number a pattern finds; None where it finds none, or several that differ."""
    numbers = {int(found[1]) for found in pattern.finditer(text)}
    return numbers.pop() if len(numbers) == 1 else None


@_same_parts
def _rank(text: str) -> int | None:
    numbers = set()
    for found in _RANK.finditer(text):
        start = found.start() + (found[0][0] in "._-")
        if not _OTHER_RANK.search(text[:start]):
            numbers.add(int(found[1]))
    return numbers.pop() if len(numbers) == 1 else None


@_same_parts
def _host(text: str, *, alone: bool) -> str | None:
    """The text as a host's name; `alone` if nothing else in the path says that it is one."""
    if not _HOST.match(text) or _POD.match(text) or _NODE.match(text):
        return None
    if alone:
        return text if _HOST_WORD.match(text) else None
    return text if _HOST_WORD.match(text) or not _NO_HOST.match(text) else None


@_same_parts
def _pod(text: str) -> str | None:
    return text if _POD.match(text) else None


def hints_of(name: str) -> Hints:
    """The hints in a path as given: those of the file's own name, then of its directories, nearest first."""
    parts = [part for part in without_rotation(name).split("/") if part not in ("", ".", "..")]
    *directories, last = parts or [""]
    if ray := _RAY.match(last):
        return Hints(pid=int(ray["pid"]), stream="stdout" if ray["stream"] == "out" else "stderr")
    stem = _TEXT.sub("", last)
    kernel = bool(_KERNEL.search(last))
    own = stem
    rank = pid = None
    host = pod = None
    if found := _DOT_RANK.match(stem):
        rank, own = int(found["rank"]), found["rest"]
        host = _host(own, alone=False)
    else:
        rank = _rank(stem)
    if (
        rank is None
        and (found := _NCCL_FILE.match(stem))
        and re.search("[a-z]", found["host"], re.IGNORECASE)
    ):
        host, pid = found["host"], int(found["pid"] or found["long"])
    elif found := _SLURM.match(stem):
        host = _host(found["host"], alone=False)
    elif found := _POD_FILE.match(stem):
        pod = found["pod"]
    elif kernel:
        host = _host(_KERNEL_WORDS.sub("", own).strip("._-"), alone=False)
    host = host or _host(own, alone=True)
    pod = pod or _pod(own)

    local_rank = _number(_LOCAL_RANK, stem)
    node_rank = _number(_NODE_RANK, stem)
    if node_rank is None:
        node_rank = _number(_NODE, own)
    attempt = _number(_ATTEMPT, stem)
    stream = {found[1].lower() for found in _STREAM.finditer(stem)}
    for depth, part in enumerate(reversed(directories)):
        above = directories[-2 - depth] if depth + 2 <= len(directories) else ""
        if local_rank is None and part.isdecimal() and len(part) < 5 and _ATTEMPT.fullmatch(above):
            local_rank = int(part)  # torchrun's directory of one process
        rank = rank if rank is not None else _rank(part)
        local_rank = local_rank if local_rank is not None else _number(_LOCAL_RANK, part)
        attempt = attempt if attempt is not None else _number(_ATTEMPT, part)
        if node_rank is None:
            node_rank = _number(_NODE_RANK, part)
        if node_rank is None:
            node_rank = _number(_NODE, part)
        if found := _POD_DIRECTORY.match(part):
            pod = pod or found["pod"]
        pod = pod or _pod(part)
        # A kernel log's own directory is often named for its host, whatever the host's name is like.
        host = host or _host(part, alone=not (kernel and depth == 0))
    return Hints(
        rank=rank,
        local_rank=local_rank,
        host=host,
        pod=pod,
        attempt=attempt,
        stream=stream.pop() if len(stream) == 1 else ("stderr" if last.lower().endswith(".err") else None),
        pid=pid if pid is not None else _number(_PID, stem),
        node_rank=node_rank,
        kernel=kernel,
    )
