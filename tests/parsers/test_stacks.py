"""Stack dumps: which thread, where it stands, and in whose code.

The dumps under fixtures/stacks are of two ranks on H200 (py-spy 0.4.3, cuda-gdb 13, PyTorch 2.11,
NCCL 2.28.9).
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from helpers import events_of, line_of, pattern_problems, unmatched_patterns

from ncclscope.parsers import stacks, torch
from ncclscope.parsers.stacks_frames import gdb_frame, pyspy_frame
from ncclscope.pipeline import read

if TYPE_CHECKING:
    from ncclscope.model import Event

FIXTURES = Path(__file__).parent.parent / "fixtures" / "stacks"

PROC_ROWS = [
    "[<0>] rpc_wait_bit_killable+0x24/0xb0 [sunrpc]",
    "[<ffffffffc0a3b6d4>] cl_sync_io_wait+0x154/0x3f0 [obdclass]",
    "[<0>] ptlrpc_set_wait+0x5d8/0x6e0 [ptlrpc]",
    "[<0>] request_wait_answer+0x12d/0x220 [fuse]",
    "[<0>] ceph_mdsc_wait_request+0x5d/0x1b0 [ceph]",
    "[<0>] folio_wait_bit_common+0x13d/0x350",
    "[<0>] wait_on_page_bit+0x11d/0x150",
    "[<0>] jbd2_log_wait_commit+0xcc/0x120 [jbd2]",
]


def main_of(path: Path) -> Event:
    """The one main thread in a dump, as the whole reader sees it."""
    found = [e for e in read([path]).store.events("py.stack") if e.get("main")]
    assert len(found) == 1, f"{len(found)} main threads in {path}"
    return found[0]


@pytest.mark.parametrize(
    ("dump", "where", "user", "native"),
    [
        ("idget/stack_rank0.txt", "user", ("evaluate", "train.py", 15), "clock_nanosleep"),
        ("idget/stack_rank1.txt", "store_wait", ("warm", "train.py", 10), "poll"),
        ("bootstrap/stack_rank0.txt", "nccl_init", ("warm", "train.py", 10), "accept"),
        ("skip/stack_rank0.txt", "cuda_sync", ("main", "train.py", 51), "cuCtxSynchronize_v2"),
        ("item/stack_rank0.txt", "cuda_sync", ("main", "train.py", 55), "cuLaunchKernel"),
        ("item/stack_rank1.txt", "filesystem", ("save_checkpoint", "train.py", 12), "open64"),
        ("barrier/stack_rank0.txt", "collective", ("main", "train.py", 60), "cuStreamSynchronize"),
        ("barrier/stack_rank1.txt", "dataloader", ("main", "train.py", 59), "poll"),
        ("wait/stack_rank1.txt", "ptx_compile", ("load_kernels", "train.py", 35), "__cuda_CallJitEntryPoint"),
        ("compile-plain/stack_rank0.txt", "collective", ("main", "train.py", 70), None),
        ("compile-plain/stack_rank1.txt", "compile", ("main", "train.py", 69), None),
        ("gdb-skip-rank0.txt", "cuda_sync", None, "cuCtxSynchronize_v2"),
        ("gdb-wait-rank1.txt", "ptx_compile", None, "__cuda_CallJitEntryPoint"),
        ("faulthandler.txt", "user", ("evaluate", "/workspace/train.py", 4), None),
    ],
)
def test_a_real_dump_tells_where_the_main_thread_stands(
    dump: str, where: str, user: tuple[str, str, int] | None, native: str | None
) -> None:
    event = main_of(FIXTURES / dump)
    assert event.get("where") == where
    got = (event.get("user_func"), event.get("user_file"), event.get("user_line"))
    assert got == (user or (None, None, None))
    assert event.get("native_func") == native


def test_the_line_shown_is_the_user_frame() -> None:
    event = main_of(FIXTURES / "item/stack_rank1.txt")
    assert event.text.strip() == "save_checkpoint (train.py:12)"
    assert event.ref.line == 6


def test_the_main_thread_of_pyspy_and_gdb_names_the_process() -> None:
    assert main_of(FIXTURES / "skip/stack_rank0.txt").get("pid") == 876
    assert main_of(FIXTURES / "gdb-skip-rank0.txt").get("pid") == 876


def test_nccls_own_threads_are_not_taken_for_waiting_ranks() -> None:
    events = read([FIXTURES / "gdb-skip-rank0.txt"]).store.events("py.stack")
    by_thread = {(e.get("thread"), e.get("where")) for e in events}
    assert ("pt_nccl_watchdg", "watchdog") in by_thread
    assert sum(e.get("where") == "proxy_thread" for e in events) == 3
    assert all(not e.get("main") for e in events if e.get("where") in ("proxy_thread", "watchdog"))


def test_a_library_waiting_for_the_unique_id_is_in_init_as_well() -> None:
    assert main_of(FIXTURES / "idget/stack_rank1.txt").get("during") == "nccl_init"
    assert main_of(FIXTURES / "skip/stack_rank0.txt").get("during") is None


def test_the_collective_is_named() -> None:
    assert main_of(FIXTURES / "barrier/stack_rank0.txt").get("collective") == "barrier"


def dump_of(*frames: str, head: str = 'Thread 9 (active): "MainThread"') -> Event:
    events = events_of(stacks, "\n".join([head, *(f"    {f}" for f in frames)]))
    assert len(events) == 1
    return events[0]


@pytest.mark.parametrize(
    ("frames", "where"),
    [
        (
            [
                "__nvJITLinkComplete (libnvJitLink.so.12)",
                "ncclInitKernelsForDevice (enqueue.cc:58)",
                "main (t.py:3)",
            ],
            "ptx_compile",
        ),
        (["0x7f (libcuda.so.1)", "cuLibraryLoadData (libcuda.so.1)", "main (t.py:3)"], "cuda_module_load"),
        (
            [
                "_create_c10d_store (torch/distributed/rendezvous.py:189)",
                "init_process_group (torch/distributed/distributed_c10d.py:1710)",
            ],
            "store_wait",
        ),
        (["_store_based_barrier (torch/distributed/distributed_c10d.py:861)", "main (t.py:3)"], "store_wait"),
        (
            ["_new_process_group_helper (torch/distributed/distributed_c10d.py:2014)", "main (t.py:3)"],
            "nccl_init",
        ),
        (["fsync (libc.so.6)", "save (t.py:3)"], "filesystem"),
        (["read (libc.so.6)", "load (t.py:3)"], "filesystem"),
        (["read (libc.so.6)", "_recv (multiprocessing/connection.py:395)", "main (t.py:3)"], "user"),
        (["save (torch/serialization.py:850)", "main (t.py:3)"], "filesystem"),
        (
            ["__internal_syscall_cancel (libc.so.6)", "__GI___libc_pread64 (libc.so.6)", "main (t.py:3)"],
            "filesystem",
        ),
        (
            [
                "get_data (<frozen importlib._bootstrap_external>:1073)",
                "_find_and_load (<frozen importlib._bootstrap>:1176)",
                "main (t.py:3)",
            ],
            "import",
        ),
        (
            [
                "step (t.py:9)",
                "<module> (t.py:3)",
                "_call_with_frames_removed (<frozen importlib._bootstrap>:241)",
            ],
            "user",
        ),
        (
            [
                "pthread_cond_timedwait (libc.so.6)",
                "take_gil (python3.12)",
                "PyEval_RestoreThread (python3.12)",
                "main (t.py:3)",
            ],
            "gil_wait",
        ),
        (["_worker_loop (torch/utils/data/_utils/worker.py:288)", "<module> (t.py:3)"], "worker"),
        (
            ["_invoke_run (torch/distributed/elastic/agent/server/api.py:906)", "<module> (torchrun:8)"],
            "launcher",
        ),
        # A compiled model runs through Dynamo's frames without compiling.
        (
            ["forward (model.py:7)", "compile_wrapper (torch/_dynamo/eval_frame.py:1024)", "main (t.py:3)"],
            "user",
        ),
        # The user's own function of a known name is the user's.
        (["barrier (t.py:7)", "main (t.py:3)"], "user"),
        (["synchronize (mylib/timers.py:7)", "main (t.py:3)"], "user"),
        (["_engine_run_backward (torch/autograd/graph.py:829)", "backward (torch/_tensor.py:648)"], "other"),
    ],
)
def test_signatures_and_their_nearest_neighbours(frames: list[str], where: str) -> None:
    assert dump_of(*frames).get("where") == where


@pytest.mark.parametrize(
    ("head", "state", "main"),
    [
        ('Thread 9 (active+gil): "MainThread"', "gil", True),
        ('Thread 0x7F9E3A3FF740 (idle): "MainThread"', "idle", True),
        ("Thread 9 (idle)", "idle", False),
        ('Thread 9 (idle): "Thread-1 (busy)"', "idle", False),
    ],
)
def test_heads_of_pyspy(head: str, state: str, main: bool) -> None:
    event = dump_of("wait (threading.py:3)", "run (t.py:1)", head=head)
    assert (event.get("state"), event.get("main")) == (state, main)


def test_a_number_that_is_no_process_is_not_taken_for_one() -> None:
    assert dump_of("f (t.py:1)", head='Thread 0x7F9E3A3FF740 (idle): "MainThread"').get("pid") is None


def test_locals_and_arguments_are_no_frames() -> None:
    text = (
        'Thread 9 (idle): "MainThread"\n    evaluate (t.py:4)\n        Arguments:\n'
        "            x: f (u.py:3)\n"
        "        Locals:\n            y: 3\n    <module> (t.py:7)\nstep 7 done (fast:3)"
    )
    event = events_of(stacks, text)[0]
    assert event.get("depth") == 2
    assert event.get("user_func") == "evaluate"


def test_pytorchs_dump_of_all_threads() -> None:
    text = (
        "SIGABRT(6), PID: 4711, Thread 4711: \n"
        "frame #0: c10::FatalSignalHandler::stacktraceSignalHandler(bool) + 0x88 (0x7f20a8 in /t/libc10.so)\n"
        "frame #1: <unknown function> + 0x42520 (0x7f21 in /lib/x86_64-linux-gnu/libc.so.6)\n"
        "frame #2: c10d::TCPStore::doWait(c10::ArrayRef<std::string>) + 0x1f (0x7f22 in /t/libtorch_cpu.so)\n"
    )
    event = events_of(stacks, text)[0]
    assert (event.get("pid"), event.get("main"), event.get("where")) == (4711, True, "store_wait")


@pytest.mark.parametrize("text", PROC_ROWS)
def test_a_kernel_stack_waiting_for_a_file_system(text: str) -> None:
    event = events_of(stacks, text)[0]
    assert event.get("where") == "filesystem"
    assert event.get("native_func") == text.split("] ")[1].split("+")[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Thread 3 (idle) finished its work",
        'worker Thread 9 (idle): "MainThread" restarted',
        "[New Thread 0x7f3ff59d5700 (LWP 2856)]",
        "[Switching to thread 3 (Thread 0x7f3ff59d5700 (LWP 2856))]",
        "Exception raised from query at /pytorch/c10/cuda/CUDAEvent.h:111 (most recent call first):",
        "rpc_wait_bit_killable+0x24/0xb0",
        'Thread 9 (idle): "MainThread"',  # a head without frames says nothing
        'Thread 9 (idle): "MainTh',
    ],
)
def test_what_is_no_stack(text: str) -> None:
    assert events_of(stacks, text) == []


def test_a_dump_cut_anywhere_never_raises() -> None:
    text = (FIXTURES / "barrier/stack_rank1.txt").read_text()[:900]
    for end in range(0, len(text), 7):
        events_of(stacks, text[:end])


def test_frames_of_gdb() -> None:
    frame = gdb_frame(
        line_of("#1  0x00007f3f9809bc92 in ncclProxyService (_args=0x4934dc00) at proxy.cc:1645")
    )
    assert frame is not None
    assert (frame.func, frame.file, frame.line, frame.python) == ("ncclProxyService", "proxy.cc", 1645, False)
    inside = gdb_frame(
        line_of(
            "#6 _PyEval_EvalFrameDefault (f=Frame 0x7f00, for file /app/train.py, line 50, in main (x=1))"
        )
    )
    assert inside is not None
    assert (inside.func, inside.file, inside.line, inside.user) == ("main", "/app/train.py", 50, True)


def test_a_long_line_of_a_dump_is_read_quickly_enough_to_finish() -> None:
    for text in ("    " + "(" * 60000, "    " + "a (" * 20000, "    " + " " * 60000 + "x"):
        assert pyspy_frame(line_of(text)) is None


def test_patterns_keep_their_promises() -> None:
    assert pattern_problems(stacks) == []  # type: ignore[arg-type]
    assert unmatched_patterns(stacks, [line_of(row) for row in PROC_ROWS]) == []  # type: ignore[arg-type]


def test_a_crash_is_still_one_event_of_its_own() -> None:
    both = SimpleNamespace(PATTERNS=torch.PATTERNS, BLOCKS=torch.BLOCKS)
    text = "Fatal Python error: Segmentation fault\n\n" + (FIXTURES / "faulthandler.txt").read_text()
    assert [e.kind for e in events_of(both, text)] == ["py.fatal"]
