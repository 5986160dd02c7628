"""Tracebacks and fatal errors: what was raised, where in the user's code, and whether it is an echo."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from helpers import events_of

from ncclscope.parsers import torch
from ncclscope.parsers.torch_exceptions import judge
from ncclscope.parsers.torch_frames import is_library

if TYPE_CHECKING:
    from ncclscope.model import Event

C10D = "/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"


def raised(text: str, **env: object) -> list[Event]:
    """The py.exception events of `text`."""
    return [e for e in events_of(torch, dedent(text).strip("\n"), **env) if e.kind == "py.exception"]


def one(text: str, **env: object) -> Event:
    """The only one."""
    (event,) = raised(text, **env)
    return event


def test_a_users_exception_is_a_cause_at_the_users_line() -> None:
    """Library frames below and above do not matter; the event stands at the exception's line."""
    event = one(
        """
        Traceback (most recent call last):
          File "/app/train.py", line 93, in <module>
            main()
          File "/app/data.py", line 12, in load
            return torch.load(path)
                   ^^^^^^^^^^^^^^^^
          File "/venv/lib/python3.12/site-packages/torch/serialization.py", line 776, in __init__
            super().__init__(open(name, mode))
        FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/rank_1.pt'
        """,
        rank=1,
    )
    assert (event.get("type"), event.get("nature"), event.get("cause"), event.get("nature_of")) == (
        "FileNotFoundError",
        "cause",
        "user-exception",
        "own",
    )
    assert (event.get("user_file"), event.get("user_line"), event.get("user_func")) == (
        "/app/data.py",
        12,
        "load",
    )
    assert (event.get("frame_func"), event.get("depth"), event.get("chained")) == ("__init__", 3, False)
    assert (event.ref.line, event.lines, event.env.rank) == (9, 9, 1)
    assert event.text.startswith("FileNotFoundError")


def test_the_collective_that_a_rank_was_in_is_named() -> None:
    """The public function of torch.distributed, not the wrapper around it."""
    event = one(
        f"""
        Traceback (most recent call last):
          File "/app/train.py", line 116, in main
            dist.barrier()
          File "/venv/lib/python3.12/site-packages/torch/distributed/c10d_logger.py", line 83, in wrapper
            return func(*args, **kwargs)
          File "{C10D}", line 5356, in barrier
            work.wait()
        RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:18085.
        """
    )
    assert (event.get("collective"), event.get("nature_of"), event.get("nature")) == (
        "barrier",
        "echo",
        "consequence",
    )
    assert event.get("cause") is None


def test_a_data_loaders_worker_tells_the_root() -> None:
    """The parent re-raises with the worker's traceback as its message: one event, judged by the worker's."""
    event = one(
        """
        Traceback (most recent call last):
          File "/app/train.py", line 109, in <module>
            for b in loader: pass
          File "/venv/lib/python3.12/site-packages/torch/_utils.py", line 785, in reraise
            raise exception
        RuntimeError: Caught RuntimeError in DataLoader worker process 0.
        Original Traceback (most recent call last):
          File "/lib/python3.12/site-packages/torch/utils/data/_utils/worker.py", line 358, in _worker_loop
            data = fetcher.fetch(index)
          File "/app/data.py", line 31, in __getitem__
            return torch.ones(4, device=dev)
          File "/venv/lib/python3.12/site-packages/torch/cuda/__init__.py", line 466, in _lazy_init
            raise RuntimeError(
        RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with
        """
    )
    assert event.get("message") == "Caught RuntimeError in DataLoader worker process 0."
    assert (event.get("nature"), event.get("cause"), event.get("nature_of")) == (
        "cause",
        "invalid-usage",
        "cuda",
    )
    assert str(event.get("root_message")).startswith("Cannot re-initialize CUDA")
    assert (event.get("user_file"), event.get("user_line")) == ("/app/data.py", 31)


CHAIN = """
Traceback (most recent call last):
  File "/app/a.py", line 1, in first
    f()
{first}

{link}:

Traceback (most recent call last):
  File "/app/b.py", line 2, in second
    g()
{second}
"""
DURING = "During handling of the above exception, another exception occurred"
DIRECT = "The above exception was the direct cause of the following exception"


@pytest.mark.parametrize(
    ("first", "link", "second", "cause"),
    [
        ("ValueError: bad sample", DIRECT, "RuntimeError: step failed", "user-exception"),
        (
            "ValueError: bad sample",
            DURING,
            "torch.distributed.DistNetworkError: Broken pipe",
            "user-exception",
        ),
        (
            "KeyError: 'cache'",
            DURING,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
            "oom-gpu",
        ),
        ("torch.OutOfMemoryError: CUDA out of memory.", DURING, "RuntimeError: training failed", "oom-gpu"),
        ("torch.distributed.DistNetworkError: Broken pipe", DURING, "RuntimeError: training failed", None),
    ],
)
def test_of_a_chain_the_first_exception_is_the_root(
    first: str, link: str, second: str, cause: str | None
) -> None:
    """One event, of the last type, judged by the first unless only the last names a fault of the machine."""
    event = one(CHAIN.format(first=first, link=link, second=second))
    assert event.get("chained") is True
    assert event.get("type") == second.split(":")[0]
    assert event.get("root_type") == first.split(":")[0]
    assert event.get("cause") == cause
    assert event.get("user_file") == "/app/a.py"


def test_a_spawned_process_has_its_own_event() -> None:
    """The parent of torch.multiprocessing.spawn echoes; the embedded traceback is the cause."""
    parent, child = raised(
        """
        Traceback (most recent call last):
          File "/app/main.py", line 40, in <module>
            mp.spawn(run, nprocs=2)
          File "/venv/lib/python3.12/site-packages/torch/multiprocessing/spawn.py", line 340, in spawn
            return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
        torch.multiprocessing.spawn.ProcessRaisedException: 

        -- Process 1 terminated with the following error:
        Traceback (most recent call last):
          File "/venv/lib/python3.12/site-packages/torch/multiprocessing/spawn.py", line 90, in _wrap
            fn(i, *args)
          File "/app/main.py", line 22, in run
            raise ValueError("bad batch")
        ValueError: bad batch
        """  # noqa: W291
    )
    assert (parent.get("nature"), parent.get("local_rank")) == ("consequence", None)
    assert (child.get("type"), child.get("cause"), child.get("local_rank")) == (
        "ValueError",
        "user-exception",
        1,
    )
    assert (child.get("embedded"), child.get("user_line")) == (True, 22)


def test_the_spawned_part_is_read_when_its_head_was_cut_off() -> None:
    """An excerpt that starts at torch.multiprocessing's own line."""
    event = one(
        """
        -- Process 3 terminated with the following error:
        Traceback (most recent call last):
          File "/app/main.py", line 22, in run
            raise ValueError("bad batch")
        ValueError: bad batch
        """
    )
    assert (event.get("local_rank"), event.get("cause")) == (3, "user-exception")


def test_a_ray_task_error_holds_the_remote_exception() -> None:
    """Ray prints the remote frames as the message of its own error."""
    outer, inner = raised(
        """
        Traceback (most recent call last):
          File "/app/actors.py", line 45, in <module>
            print(ray.get(refs))
        ray.exceptions.RayTaskError(KeyError): ray::Worker.fit() (pid=7003, ip=10.0.0.11)
                   ^^^^^^^^^^^^^^^^^
          File "/app/actors.py", line 31, in fit
            tokens["eos"]
        KeyError: 'eos'
        """
    )
    assert (outer.get("type"), outer.get("nature")) == (
        "ray.exceptions.RayTaskError(KeyError)",
        "consequence",
    )
    assert (inner.get("type"), inner.get("cause"), inner.get("user_line")) == (
        "KeyError",
        "user-exception",
        31,
    )


def test_a_ray_train_snippet_says_which_ranks_raised() -> None:
    """Only `[Rank N Error Snippet]:` knows the ranks."""
    events = raised(
        """
        ray.train.WorkerGroupError: Training failed due to worker errors:
        [Rank 0,3 Error Snippet]:
        Traceback (most recent call last):
          File "/app/train_ray.py", line 54, in train_func
            raise KeyError("lr_schedule")
        KeyError: 'lr_schedule'
        """
    )
    assert [(e.get("ranks"), e.get("cause")) for e in events] == [((0, 3), "user-exception")]


def test_an_exception_group_gives_its_first_exception() -> None:
    """The group is a wrapper; its first member tells what happened."""
    group, member = raised(
        """
          + Exception Group Traceback (most recent call last):
          |   File "/app/main.py", line 3, in <module>
          |     raise ExceptionGroup("several", errors)
          | ExceptionGroup: several (2 sub-exceptions)
          +-+---------------- 1 ----------------
            | Traceback (most recent call last):
            |   File "/app/load.py", line 9, in load
            |     raise ValueError("bad shard")
            | ValueError: bad shard
            +---------------- 2 ----------------
            | Traceback (most recent call last):
            |   File "/app/load.py", line 9, in load
            |     raise ValueError("worse shard")
            | ValueError: worse shard
            +------------------------------------
        """
    )
    assert group.get("type") == "ExceptionGroup"
    assert (member.get("type"), member.get("message"), member.get("user_file")) == (
        "ValueError",
        "bad shard",
        "/app/load.py",
    )


def test_the_failure_tables_copy_is_marked() -> None:
    """torchrun indents the recorded traceback under `traceback :`; it repeats what the rank printed."""
    event = one(
        """
          exitcode  : 1 (pid: 22631)
          traceback : Traceback (most recent call last):
            File "/app/train.py", line 85, in main
              raise ValueError("expected 3 channels")
          ValueError: expected 3 channels

        ------------------------------------------------------------
        """.replace("\n        ", "\n")
    )
    assert (event.get("quoted"), event.get("type"), event.get("user_line")) == (True, "ValueError", 85)


def test_nccls_own_explanation_is_kept() -> None:
    """The line under `Last error:` says more than the exception."""
    event = one(
        f"""
        Traceback (most recent call last):
          File "{C10D}", line 3068, in all_reduce
            work = group.allreduce([tensor], opts)
        torch.distributed.DistBackendError: NCCL error in: /x/y.cpp:93, invalid usage, NCCL version 2.28.9
        ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
        Last error:
        Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60
        """
    )
    assert event.get("last_error") == "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60"
    assert (event.get("nature_of"), event.get("nature"), event.get("collective")) == (
        "nccl",
        "symptom",
        "all_reduce",
    )


def test_other_lines_between_the_frames_do_not_end_a_traceback() -> None:
    """Another thread's prints run through it."""
    event = one(
        """
        Traceback (most recent call last):
          File "/app/train.py", line 5, in <module>
        step 12 loss 0.31
        2026-11-30 19:41:24 INFO train: step 13
            main()
          File "/app/train.py", line 3, in main
            1 / 0
        ZeroDivisionError: division by zero
        """
    )
    assert (event.get("type"), event.get("depth"), event.get("user_line")) == ("ZeroDivisionError", 2, 3)


def test_a_traceback_that_was_cut_has_no_type() -> None:
    """The frames are still evidence; nothing is made up."""
    event = one('Traceback (most recent call last):\n  File "/app/train.py", line 5, in main\n    loss.backw')
    assert (event.get("type"), event.get("cause"), event.get("nature")) == (None, None, "symptom")
    assert event.get("user_line") == 5
    assert raised("Traceback (most recent call last):") == []


def test_two_tracebacks_in_a_row_are_two_events() -> None:
    """Two ranks without a prefix in one file."""
    text = 'Traceback (most recent call last):\n  File "/a.py", line {n}, in f\nValueError: {n}\n'
    assert [e.get("user_line") for e in raised(text.format(n=1) + text.format(n=2))] == [1, 2]


def test_an_exception_in_a_destructor_is_noise() -> None:
    """Python prints it and goes on."""
    event = one(
        """
        Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f8a2c0>
        Traceback (most recent call last):
          File "/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py", line 1500, in __del__
            self._shutdown_workers()
        AssertionError: can only test a child process
        """
    )
    assert (event.get("nature"), event.get("cause"), event.get("ignored")) == ("noise", None, True)


def test_a_thread_that_raises_is_named() -> None:
    """`Exception in thread` stands before the head."""
    event = one(
        """
        Exception in thread Thread-4 (_pin_memory_loop):
        Traceback (most recent call last):
          File "/usr/lib/python3.12/threading.py", line 1075, in _bootstrap_inner
            self.run()
        RuntimeError: Pin memory thread exited unexpectedly
        """
    )
    assert event.get("thread") == "Thread-4 (_pin_memory_loop)"


@pytest.mark.parametrize(
    ("head", "type_"),
    [
        ("Epoch 1:  10%|# | 10/100 [00:01<00:09,  9.50it/s]Traceback (most recent call last):", "ValueError"),
        ("ERROR: Scheduler hit an exception: Traceback (most recent call last):", "ValueError"),
        ("    Traceback (most recent call last):", "ValueError"),
    ],
)
def test_text_before_the_head_does_not_matter(head: str, type_: str) -> None:
    """Progress bars and loggers print it in mid-line, tables indent it."""
    pad = " " * (len(head) - len(head.lstrip()))
    event = one(f'{head}\n{pad}  File "/a.py", line 1, in f\n{pad}    g()\n{pad}ValueError: x')
    assert event.get("type") == type_


def test_a_panel_drawn_by_rich_is_read() -> None:
    """accelerate and others install rich's handler: boxes around the frames, the exception below."""
    event = one(
        """
        ╭───────────────────── Traceback (most recent call last) ──────────────────────╮
        │ /app/train.py:15 in main                                                     │
        │                                                                              │
        │   12 def main():                                                             │
        │ ❱ 15     1 / 0                                                               │
        ╰──────────────────────────────────────────────────────────────────────────────╯
        ZeroDivisionError: division by zero
        """
    )
    assert (event.get("type"), event.get("user_file"), event.get("user_line")) == (
        "ZeroDivisionError",
        "/app/train.py",
        15,
    )


def test_code_from_a_string_and_deep_recursion() -> None:
    """`<string>` is the user's code; repeated frames count."""
    event = one(
        """
        Traceback (most recent call last):
          File "<string>", line 1, in <module>
          File "<string>", line 1, in f
          [Previous line repeated 975 more times]
        RecursionError: maximum recursion depth exceeded
        """
    )
    assert (event.get("user_file"), event.get("depth")) == ("<string>", 977)


def test_a_syntax_error_has_a_frame_without_a_function() -> None:
    """The offending file is the last frame."""
    event = one(
        """
        Traceback (most recent call last):
          File "/app/train.py", line 1, in <module>
            import conf
          File "/app/conf.py", line 7
            lr = = 3
                 ^
        SyntaxError: invalid syntax
        """
    )
    assert (event.get("user_file"), event.get("user_line"), event.get("cause")) == (
        "/app/conf.py",
        7,
        "user-exception",
    )


def test_a_warning_is_no_end_of_a_traceback() -> None:
    """The warnings module prints `UserWarning: ...` at any time."""
    event = one(
        """
        Traceback (most recent call last):
          File "/app/train.py", line 1, in <module>
            f()
        UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects
        """
    )
    assert event.get("type") is None


@pytest.mark.parametrize(
    "line",
    [
        "Exception: plain",
        "KeyError: 'x'",
        "AssertionError",
        "__main__.Stop: enough",
        "zmq.error.Again: Resource temporarily unavailable",
        "socket.gaierror: [Errno -2] Name or service not known",
        "torch._dynamo.exc.Unsupported: call_function",
        "StopIteration",
    ],
)
def test_all_forms_of_an_exception_line_end_a_traceback(line: str) -> None:
    """Built-in names stand alone, all others after their module."""
    event = one(f'Traceback (most recent call last):\n  File "/a.py", line 1, in f\n    g()\n{line}')
    assert event.get("type") == line.split(":")[0]


def test_missing_modules_are_named() -> None:
    """The name that pip would need."""
    event = one(
        """
        Traceback (most recent call last):
          File "/app/train.py", line 5, in <module>
            import fused.kernels
        ModuleNotFoundError: No module named 'fused.kernels'
        """
    )
    assert (event.get("nature_of"), event.get("module_missing")) == ("import", "fused.kernels")


def test_every_cut_of_a_chain_is_read_without_failing() -> None:
    """A log can stop or start in any line."""
    lines = CHAIN.format(first="ValueError: a", link=DURING, second="RuntimeError: b").strip().split("\n")
    for start in range(len(lines)):
        for end in range(start, len(lines) + 1):
            events_of(torch, "\n".join(lines[start:end]))


# What is raised, then nature_of, nature, cause and suggestion (`-` for none).
JUDGED = [
    ("ValueError: bad", "own cause user-exception -"),
    ("NotImplementedError", "own cause user-exception -"),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "oom cause oom-gpu -"),
    ("RuntimeError: CUDA error: out of memory", "oom cause oom-gpu -"),
    (
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "cuda symptom - illegal-access-app",
    ),
    ("RuntimeError: CUDA error: device-side assert triggered", "cuda cause device-assert -"),
    (
        "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device",
        "cuda cause arch-mismatch -",
    ),
    (
        "torch.distributed.DistBackendError: NCCL error in: x, remote process exited or there was",
        "nccl consequence - -",
    ),
    ("torch.distributed.DistNetworkError: Failed to recv, got 0 bytes.", "store consequence - -"),
    ("torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /x", "store consequence - -"),
    ("RuntimeError: Socket Timeout", "store consequence - -"),
    ("ConnectionResetError: [Errno 104] Connection reset by peer", "echo consequence - -"),
    ("BrokenPipeError: [Errno 32] Broken pipe", "echo consequence - -"),
    ("KeyboardInterrupt", "signal consequence - -"),
    ("SystemExit: 1", "signal consequence - -"),
    (
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 8 got signal: 15",
        "signal consequence - -",
    ),
    ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "echo consequence - -"),
    ("ray.exceptions.RayTaskError(KeyError): ray::f()", "echo consequence - -"),
    (
        "RuntimeError: DataLoader worker (pid 3) is killed by signal: Killed. ",
        "signal consequence - oom-host",
    ),
    ("OSError: [Errno 28] No space left on device", "limit cause disk-full -"),
    ("OSError: [Errno 122] Disk quota exceeded: '/home/x'", "limit cause disk-full -"),
    ("OSError: [Errno 28] No space left on device: '/dev/shm/pym-1'", "limit cause shm-limit -"),
    (
        "RuntimeError: unable to write to file </torch_1_2_3>: No space left on device (28)",
        "limit cause shm-limit -",
    ),
    ("OSError: [Errno 24] Too many open files", "limit cause fd-limit -"),
    ("OSError: [Errno 116] Stale file handle: '/nfs/a'", "limit cause storage-hang -"),
    ("RuntimeError: basic_ios::clear: iostream error", "limit symptom - disk-full"),
    ("socket.gaierror: [Errno -2] Name or service not known", "store cause dns -"),
    ("ImportError: /x.so: undefined symbol: _ZN3c10", "import cause version-mismatch -"),
    (
        "ImportError: libcudart.so.11.0: cannot open shared object file: No such file",
        "import symptom - version-mismatch",
    ),
    ("ModuleNotFoundError: No module named 'nan_loss'", "import cause user-exception -"),
    ("FloatingPointError: Minimum loss scale reached", "nan cause nan -"),
    ("RuntimeError: Loss is nan, stopping training", "nan cause nan -"),
    ("MemoryError", "oom symptom - oom-host"),
    ("RuntimeError: No backend type associated with device type cpu", "own cause invalid-usage -"),
    (
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is",
        "own cause collective-mismatch -",
    ),
    ("TimeoutError: lock not taken", "own symptom - -"),
    ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", "echo consequence - -"),
]


@pytest.mark.parametrize(("text", "expected"), JUDGED)
def test_judgement(text: str, expected: str) -> None:
    """Own errors are causes, echoes never are, and a possible meaning is only suggested."""
    exception_type, _, message = text.partition(": ")
    judged = judge(exception_type, message)
    assert (
        " ".join((judged.nature_of, judged.nature, judged.cause or "-", judged.suggests or "-")) == expected
    )


@pytest.mark.parametrize(
    ("path", "library"),
    [
        ("/app/train.py", False),
        ("<string>", False),
        ("/workspace/torch/train.py", False),
        ("/opt/megatron-lm/megatron/training/training.py", False),
        ("/venv/lib/python3.12/site-packages/transformers/trainer.py", True),
        ("/usr/lib/python3.12/threading.py", True),
        ("/usr/lib/python3/dist-packages/yaml/__init__.py", True),
        ("<frozen importlib._bootstrap>", True),
        ("/pytorch/torch/distributed/distributed_c10d.py", True),
        ("/venv/bin/torchrun", True),
    ],
)
def test_which_frames_are_the_users(path: str, library: bool) -> None:
    """Installed packages, Python and PyTorch are not; everything else is."""
    assert is_library(path) is library


def test_faulthandler_names_the_signal_and_the_users_frame() -> None:
    """Frames stand innermost first, and only those of the current thread count."""
    (event,) = events_of(
        torch,
        dedent(
            """\
            Fatal Python error: Segmentation fault

            Thread 0x00007f47d91776c0 (most recent call first):
              File "/app/other.py", line 1 in wait

            Current thread 0x00007f4b20b8a140 (most recent call first):
              File "/usr/lib/python3.12/ctypes/__init__.py", line 525 in string_at
              File "/app/train.py", line 82 in step
              File "/app/train.py", line 90 in <module>

            Extension modules: numpy._core._multiarray_umath (total: 1)
            step 3 loss 0.1"""
        ),
    )
    assert (event.kind, event.get("error"), event.get("signal")) == ("py.fatal", "Segmentation fault", 11)
    assert (event.get("nature"), event.get("cause")) == ("cause", "rank-died")
    assert (event.get("frame_func"), event.get("user_file"), event.get("user_line")) == (
        "string_at",
        "/app/train.py",
        82,
    )


@pytest.mark.parametrize(
    ("error", "signal", "nature", "cause", "suggests"),
    [
        ("Bus error", 7, "symptom", None, "shm-limit"),
        ("Aborted", 6, "consequence", None, None),
        ("Illegal instruction", 4, "cause", "rank-died", None),
        ("init_import_site: Failed to import the site module", None, "symptom", None, None),
    ],
)
def test_other_fatal_errors(
    error: str, signal: int | None, nature: str, cause: str | None, suggests: str | None
) -> None:
    """An abort has its reason above it, a bus error is mostly shared memory."""
    (event,) = events_of(torch, f"Fatal Python error: {error}")
    assert (event.get("signal"), event.get("nature"), event.get("cause"), event.get("suggests")) == (
        signal,
        nature,
        cause,
        suggests,
    )


def test_a_launchers_tag_may_split_the_fatal_line() -> None:
    """mpirun puts its tag between the two halves; unwrapped they are two lines."""
    (event,) = [
        e for e in events_of(torch, "Fatal Python error: \nSegmentation fault\n") if e.kind == "py.fatal"
    ]
    assert (event.get("error"), event.get("signal")) == ("Segmentation fault", 11)


@pytest.mark.parametrize(
    ("type_", "message", "nature_of"),
    [
        ("subprocess.CalledProcessError", "Command '['tar', 'xf', '/data/3.tar']' returned non-zero exit status 2.", "own"),
        (
            "subprocess.CalledProcessError",
            "Command '['/opt/venv/bin/python3.12', '-u', 'train.py']' returned non-zero exit status 1.",
            "echo",
        ),
        ("cupy_backends.cuda.api.driver.CUDADriverError", "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", "cuda"),
        ("RuntimeError", "ifa != nullptr. Unable to find address for: eth7", "store"),
        ("RuntimeError", "validation failed: loss: nan-safe check is off", "own"),
        ("RuntimeError", "loss is nan at step 5", "nan"),
    ],
)
def test_whose_error_an_exception_tells_of(type_: str, message: str, nature_of: str) -> None:
    """A launcher's child is an echo and a program's tool is not; CuPy prints CUDA's errors under its own types."""
    assert judge(type_, message).nature_of == nature_of


def test_a_class_made_in_a_function_is_an_exception() -> None:
    """Python names it with <locals> between the function and the class."""
    event = one(
        """
        Traceback (most recent call last):
          File "/app/train.py", line 93, in step
            raise DataError("index of shard 7 is unreadable") from e
        step.<locals>.DataError: index of shard 7 is unreadable
        """
    )
    assert (event.get("type"), event.get("cause")) == ("step.<locals>.DataError", "user-exception")
