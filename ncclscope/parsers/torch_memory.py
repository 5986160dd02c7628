"""Memory that ran out in a PyTorch process: on the GPU, the host, in shared memory; data-loader workers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.lazy import lazy
from ncclscope.parsers.pattern import Pattern
from ncclscope.parsers.torch_tags import numbers, refine_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS", "oom_fields"]

_SIZE = r"[\d.]+ (?:[KMGT]?i?B|bytes)"
_NEW = lazy(rf"has a total capac[a-z]*ty of (?P<total>{_SIZE}) of which (?P<free>{_SIZE}) is free")
_OLD = lazy(
    rf"(?P<total>{_SIZE}) total capacity; (?P<allocated>{_SIZE}) already allocated; (?P<free>{_SIZE}) free; "
    rf"(?:{_SIZE} allowed; )?(?P<reserved>{_SIZE}) reserved in total"
)
_OTHERS = lazy(rf"Process (?P<pid>\d+) has (?P<size>{_SIZE}) memory in use")
_OURS = lazy(rf"this process has (?P<size>{_SIZE}) memory in use")
_ALLOCATED = lazy(rf"Of the allocated memory (?P<size>{_SIZE}) is allocated by PyTorch")
_RESERVED = lazy(rf"and (?P<size>{_SIZE}) is reserved by PyTorch but unallocated")
_DEVICE = lazy(r"\bGPU (?P<device>\d+)\b|Allocation on device (?P<device2>\d+)")

_SIGNALS = {"Killed": 9, "Bus error": 7, "Segmentation fault": 11, "Aborted": 6, "Terminated": 15}


# A program that logs the message as less than an error has caught it and goes on (a smaller batch, the next candidate).
_HANDLED = frozenset({"DEBUG", "INFO", "WARNING"})


def oom_fields(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    """The numbers of an out-of-memory message, as printed (`2.00 GiB`)."""
    if line.env.logger == "python" and line.env.level in _HANDLED:
        return None
    text = line.text[m.start() : m.start() + 4000]
    fields: dict[str, Value] = {"platform": "hip" if "HIP" in m[0] else "cuda"}
    found = _DEVICE.search(text)
    if found:
        fields["device"] = int(found["device"] or found["device2"])
    found = _NEW.search(text) or _OLD.search(text)
    if found:
        fields.update(found.groupdict())
    for name, pattern in (("this_process", _OURS), ("allocated", _ALLOCATED), ("reserved", _RESERVED)):
        found = pattern.search(text)
        if found:
            fields[name] = found["size"]
    others = _OTHERS.findall(text)
    if others:
        fields["other_processes"] = tuple(int(pid) for pid, _ in others)
        fields["other_memory"] = tuple(size for _, size in others)
    return fields


_OOM_ADDS = (
    *("platform", "device", "total", "free", "this_process", "allocated", "reserved"),
    *("other_processes", "other_memory"),
)


def _worker_signal(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    name = m["signal_name"].strip()
    fields: dict[str, Value] = {"signal_name": name}
    if name in _SIGNALS:
        fields["signal"] = _SIGNALS[name]
    if "insufficient shared memory" in line.text:
        fields["nature"], fields["cause"] = "cause", "shm-limit"
    elif name == "Killed":
        fields["suggests"] = "oom-host"
    elif name == "Bus error":
        fields["suggests"] = "shm-limit"
    return fields


def _shm(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    """No space, no memory or a truncation that the kernel refuses is the size; other errors are not."""
    error = m["error"]
    if re.match(r"No space left|Resource temporarily|Cannot allocate", error):
        return {"nature": "cause", "cause": "shm-limit"}
    if error.startswith("Too many open files"):
        return {"nature": "cause", "cause": "fd-limit"}
    return {}


PATTERNS: tuple[Pattern, ...] = (
    # torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of
    # 79.15 GiB of which 1.12 GiB is free. Process 41234 has 10.00 GiB memory in use. Including non-PyTorch
    # memory, this process has 78.02 GiB memory in use. Of the allocated memory 74.31 GiB is allocated by
    # PyTorch, and 2.40 GiB is reserved by PyTorch but unallocated. ...   (2.3 and later; `capacty` in 2.1
    # and 2.2; class torch.cuda.OutOfMemoryError up to 2.4) ... CUDA out of memory. Tried to allocate 20.00
    # MiB (GPU 0; 23.69 GiB total capacity; 21.92 GiB already allocated; 12.06 MiB free; 22.46 GiB reserved
    # in total by PyTorch) ...   (up to 2.0) RuntimeError: HIP out of memory. Tried to allocate ...   (ROCm)
    Pattern(
        "torch.oom",
        "out of memory. Tried to allocate",
        rf"(?:CUDA|HIP|XPU) out of memory\. Tried to allocate (?P<tried>{_SIZE})",
        nature="cause",
        cause="oom-gpu",
        refine=oom_fields,
        adds=_OOM_ADDS,
    ),
    # torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected because it would exceed
    # per_process_memory_fraction limit. Requested size: 2.00 GiB.   (2.14)
    Pattern(
        "torch.oom",
        "it would exceed per_process_memory_fraction limit",
        rf"it would exceed per_process_memory_fraction limit\. Requested size: (?P<tried>{_SIZE})",
        nature="cause",
        cause="oom-gpu",
        fields={"platform": "cuda", "limited_by_user": True},
    ),
    # torch.OutOfMemoryError: CUDA out of memory.   (cut off, or other words after it)
    Pattern(
        "torch.oom",
        "Error: CUDA out of memory",
        r"Error: CUDA out of memory(?!\. (?:Tried to allocate|Allocation was preemptively))",
        nature="cause",
        cause="oom-gpu",
        fields={"platform": "cuda"},
    ),
    # torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)
    # (cudaMallocAsync backend)
    Pattern(
        "torch.oom",
        "would exceed allowed memory. (out of memory)",
        r"Allocation on device (?P<device>\d+) would exceed allowed memory",
        nature="cause",
        cause="oom-gpu",
        fields={"platform": "cuda"},
    ),
    # RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate
    # memory: you tried to allocate 4000000000000000 bytes. Error code 12 (Cannot allocate memory)
    Pattern(
        "torch.cpu_alloc_failed",
        "DefaultCPUAllocator: ",
        r"DefaultCPUAllocator: (?:can't allocate memory: you tried to allocate (?P<bytes>\d+) bytes|not "
        r"enough memory)",
        nature="symptom",
        fields={"suggests": "oom-host"},
    ),
    # RuntimeError: Pin memory thread exited unexpectedly
    Pattern(
        "torch.pin_memory_died",
        "Pin memory thread exited unexpectedly",
        r"Pin memory thread exited unexpectedly",
        nature="symptom",
    ),
    # RuntimeError: DataLoader worker (pid 31337) is killed by signal: Killed.
    # RuntimeError: DataLoader worker (pid 41) is killed by signal: Bus error. It is possible that
    # dataloader's workers are out of shared memory. Please try to raise your shared memory limit.
    Pattern(
        "torch.dataloader_worker_killed",
        ") is killed by signal: ",
        r"DataLoader worker \(pid (?P<pid>\d+)\) is killed by signal: (?P<signal_name>[^.\n]{1,40})",
        nature="symptom",
        refine=_worker_signal,
        adds=("signal", "suggests", "cause"),
    ),
    # RuntimeError: DataLoader worker (pid(s) 20041) exited unexpectedly
    Pattern(
        "torch.dataloader_exited",
        "DataLoader worker (pid(s) ",
        r"DataLoader worker \(pid\(s\) (?P<pids>[\d, ]+)\) exited unexpectedly",
        nature="symptom",
        refine=lambda m, _: {"pids": numbers(m["pids"])},
    ),
    # ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory
    # (shm).
    Pattern(
        "torch.dataloader_bus",
        "Unexpected bus error encountered in worker",
        r"Unexpected bus error encountered in worker",
        nature="cause",
        cause="shm-limit",
    ),
    # ERROR: Unexpected segmentation fault encountered in worker.
    Pattern(
        "torch.dataloader_crashed",
        "encountered in worker",
        r"Unexpected (?P<what>segmentation fault|floating-point exception) encountered in worker",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
    # ValueError: Caught ValueError in DataLoader worker process 0.   (the original traceback follows)
    Pattern(
        "torch.dataloader_exception",
        "in DataLoader worker process",
        r"Caught (?P<type>\w+) in DataLoader worker process (?P<worker>\d+)",
        nature="symptom",
        refine=refine_with("worker"),
    ),
    # RuntimeError: DataLoader timed out after 3 seconds
    Pattern(
        "torch.dataloader_timeout",
        "DataLoader timed out after",
        r"DataLoader timed out after (?P<timeout_s>[\d.]+) seconds",
        nature="symptom",
        fields={"suggests": "storage-hang"},
    ),
    # AssertionError: can only test a child process   (forked iterators being cleaned up, in bulk)
    Pattern(
        "torch.dataloader_cleanup",
        "can only test a child process",
        r"can only test a child process",
        nature="noise",
    ),
    # RuntimeError: received 0 items of ancdata   (tensor sharing through file descriptors)
    Pattern(
        "torch.too_many_fds",
        "received 0 items of ancdata",
        r"received 0 items of ancdata",
        nature="cause",
        cause="fd-limit",
    ),
    # OSError: [Errno 24] Too many open files: '/proc/self/...'
    Pattern(
        "torch.too_many_fds",
        "Too many open files",
        r"\[Errno 24\] Too many open files|Too many open files\. Communication with the workers is no "
        r"longer possible",
        nature="cause",
        cause="fd-limit",
    ),
    # RuntimeError: unable to write to file </torch_1234_567_8>: No space left on device (28)
    # RuntimeError: unable to allocate shared memory(shm) for file </torch_2121_1_0>: Resource temporarily
    # unavailable (11)
    # RuntimeError: unable to mmap 512 bytes from file </torch_17_2>: Cannot allocate
    # memory (12)
    Pattern(
        "torch.shm_no_space",
        "/torch_",
        r"unable to (?:write to|allocate shared memory\(shm\) for|resize|open(?: shared memory object)?|"
        r"mmap \d+ bytes from)"
        r"(?: file)? <(?P<name>/torch_[^>\s]+)>(?: to the right size| in read-write mode)?: "
        r"(?P<error>[^(\n]{1,80}?) ?\((?P<errno>\d+)\)",
        nature="symptom",
        refine=_shm,
        adds=("cause",),
    ),
    # UserWarning: resource_tracker: There appear to be 20 leaked semaphore objects to clean up at shutdown
    Pattern(
        "py.leaked_objects",
        "resource_tracker: There appear to be ",
        r"resource_tracker: There appear to be (?P<count>\d+) leaked (?P<what>\w+) objects",
        nature="noise",
    ),
)
