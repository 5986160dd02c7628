"""Frameworks above PyTorch: vLLM and SGLang engines, Megatron's NaN checks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.parsers.pattern import Pattern
from ncclscope.parsers.torch_exceptions import judge
from ncclscope.parsers.torch_tags import refine_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

# Loss scaling is at its end below this: no gradient of half precision becomes larger by dividing further.
_LEAST_SCALE = 1e-3


def _worker(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    """VllmWorker-3 is the worker of rank 3; an exit code of None was not known."""
    fields: dict[str, Value] = {}
    found = re.search(r"-(\d+)$", m["worker"])
    if found:
        fields["rank"] = int(found[1])
    return fields


def _worker_exception(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    """The class of the exception is not printed, so its message only suggests."""
    if not m["message"]:
        return {}
    judgement = judge("Exception", m["message"])
    suggests = judgement.cause or judgement.suggests
    return {"nature_of": judgement.nature_of, **({"suggests": suggests} if suggests else {})}


def _scheduler(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    tag = re.search(r"\bTP(\d+)\b", line.text[: m.start()])
    return {"rank": int(tag[1])} if tag else {}


def _unexpected(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    """NaN and Inf name themselves; a spike or a differing rerun may be the GPU or the data."""
    fields: dict[str, Value] = {"iteration": int(m["iteration"])}
    if m["result"].lower().lstrip("-") in ("nan", "inf") or re.search(r"NaN|Inf", m["message"]):
        fields.update(nature="cause", cause="nan")
    else:
        fields["suggests"] = "nan"
    return fields


def _where(_: re.Match[str], line: Line) -> Mapping[str, Value]:
    found = re.search(r"Rank (\d+), node (\S+), device (\d+), iteration #?(\d+)", line.text)
    if found is None:
        return {}
    return {"rank": int(found[1]), "node": found[2], "device": int(found[3]), "iteration": int(found[4])}


def _apex(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    try:
        scale = float(m["scale"])
    except ValueError:
        return {}
    return {"nature": "symptom", "suggests": "nan"} if scale < _LEAST_SCALE else {}


PATTERNS: tuple[Pattern, ...] = (
    # vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above)
    # for the root cause.
    Pattern(
        "vllm.engine_dead",
        "EngineCore encountered an issue",
        r"EngineCore encountered an issue\. See stack trace",
        nature="consequence",
    ),
    # (EngineCore pid=4242) ERROR 11-30 12:00:00 [core.py:1586] EngineCore encountered a fatal error.   (V1)
    Pattern(
        "vllm.engine_fatal",
        "EngineCore encountered a fatal error",
        r"EngineCore encountered a fatal error",
        nature="consequence",
    ),
    # (EngineCore pid=4242) ERROR 11-30 12:00:00 [core.py:700] EngineCore failed to start.   (V1)
    Pattern(
        "vllm.engine_fatal",
        "EngineCore failed to start",
        r"EngineCore failed to start",
        nature="consequence",
        fields={"at_start": True},
    ),
    # RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s):
    # {'EngineCore_DP0': 1}
    Pattern(
        "vllm.core_init_failed",
        "Engine core initialization failed",
        r"Engine core initialization failed\.(?: See root cause above\.(?: Failed core proc\(s\): "
        r"(?P<processes>\{.{0,200}?\}))?)?",
        nature="consequence",
    ),
    # Worker proc VllmWorker-3 died unexpectedly (exit code: -9), shutting down executor.   (V1; the code is
    # recent)
    Pattern(
        "vllm.worker_died",
        "died unexpectedly",
        r"Worker proc (?P<worker>\S+) died unexpectedly(?: \(exit code: (?:(?P<exit_code>-?\d+)|None)\))?",
        nature="symptom",
        fields={"suggests": "rank-died"},
        refine=_worker,
        adds=("rank",),
    ),
    # Exception: WorkerProc initialization failed due to an exception in a background process. See stack
    # trace for root cause.
    Pattern(
        "vllm.worker_init_failed",
        "WorkerProc initialization failed",
        r"WorkerProc initialization failed due to an exception in a background process",
        nature="consequence",
    ),
    # WorkerProc hit an exception.   (V1; the worker's own traceback follows)
    Pattern(
        "vllm.worker_exception",
        "WorkerProc hit an exception",
        r"WorkerProc hit an exception",
        nature="symptom",
    ),
    # Exception in worker VllmWorkerProcess while processing method initialize_cache: The model's max seq
    # len ...   (V0)
    Pattern(
        "vllm.worker_exception",
        "while processing method",
        r"Exception in worker (?P<worker>\S+) while processing method (?P<method>\w+)"
        r"(?:: (?P<message>.{1,300}?))?(?:, Traceback|\.$|$)",
        nature="symptom",
        refine=_worker_exception,
        adds=("nature_of", "suggests"),
    ),
    # TimeoutError: RPC call to execute_model timed out.   (V1)
    Pattern(
        "vllm.rpc_timeout",
        "RPC call to ",
        r"RPC call to (?P<method>\w+) timed out",
        nature="consequence",
    ),
    # No available shared memory broadcast block found in 60 seconds. This typically happens when ...   (V1)
    # No available block found in 60 second.   (older)
    Pattern(
        "vllm.broadcast_wait",
        "block found in ",
        r"No available (?:shared memory broadcast )?block found in (?P<waited_s>\d+) second",
        nature="symptom",
        refine=refine_with("waited_s"),
    ),
    # [2026-11-30 12:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):   (TPn is the
    # rank)
    Pattern(
        "sglang.exception",
        " hit an exception: ",
        r"(?P<who>Scheduler|TokenizerManager|DetokenizerManager|DataParallelController|TpModelWorker\w*) "
        r"hit an exception:",
        nature="symptom",
        refine=_scheduler,
        adds=("rank",),
    ),
    # Received sigquit from a child process. It usually means the child failed.   (all)
    Pattern(
        "sglang.sigquit",
        "Received sigquit from a child process",
        r"Received sigquit from a child process\. It usually means the child failed",
        nature="consequence",
    ),
    # SIGQUIT received. signum=None, frame=None. It usually means one child failed.   (older)
    Pattern(
        "sglang.sigquit",
        "It usually means one child failed",
        r"SIGQUIT received\. .{0,100}?It usually means one child failed",
        nature="consequence",
    ),
    # Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)   (all; the name before it is
    # recent)
    Pattern(
        "sglang.watchdog",
        "atchdog timeout (self.watchdog_timeout=",
        r"(?:(?P<who>\w+) )?[Ww]atchdog timeout \(self\.watchdog_timeout=(?P<timeout_s>[\d.]+)",
        nature="consequence",
        context=True,
    ),
    # Subprocess scheduler_3 (pid=4242) crashed with exit code -9. Triggering SIGQUIT for cleanup...
    Pattern(
        "sglang.subprocess_crashed",
        "crashed with exit code",
        r"Subprocess (?P<name>\S+) \(pid=(?P<pid>\d+)\) crashed with exit code (?P<exit_code>-?\d+)",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
    # RuntimeError: Rank 2 scheduler died during initialization (exit code: -9). If exit code ...
    Pattern(
        "sglang.scheduler_died",
        "scheduler died during initialization",
        r"Rank (?P<rank>\d+) scheduler died during initialization(?: \(exit code: (?P<exit_code>-?\d+)\))?",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
    # Rank 0 scheduler is dead. Please check if there are relevant logs.   (older)
    Pattern(
        "sglang.scheduler_died",
        " scheduler is dead",
        r"Rank (?P<rank>\d+) scheduler is dead",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
    # Rank 17, node gpu-02, device 1, iteration 5310: Unexpected result nan (message='found NaN in local
    # forward loss calculation')   (Megatron-Core 0.10 and later)
    Pattern(
        "torch.megatron_nan",
        ": Unexpected result ",
        r"Rank (?P<rank>\d+), node (?P<node>\S+), device (?P<device>\d+), iteration #?(?P<iteration>\d+): "
        r"Unexpected result "
        r"(?P<result>\S+) \(message='(?P<message>[^']{0,200})'\)",
        nature="symptom",
        refine=_unexpected,
        adds=("cause", "suggests"),
    ),
    # Unexpected result nan on rank 3 at iteration #3 invocation #2 (message='found NaN in local grad norm
    # for bucket #0 in backward pass before data-parallel communication collective')   (Megatron-Core,
    # logger form)
    Pattern(
        "torch.megatron_nan",
        "Unexpected result ",
        r"Unexpected result (?P<result>nan|-?inf) on rank (?P<rank>\d+) at iteration #(?P<iteration>\d+)"
        r"(?: invocation #\d+)?(?: \(message='(?P<message>[^']{0,200})'\))?",
        nature="cause",
        cause="nan",
        refine=refine_with("iteration"),
    ),
    # found NaN in local grad norm for bucket #3 in backward pass before data-parallel communication
    # collective   (all)
    # found Inf in bucket #3 ...   found unexpected large grads in bucket #3 ...
    Pattern(
        "torch.megatron_nan_grad",
        "in backward pass before data-parallel",
        r"found (?P<result>NaN|Inf|unexpected large grads) in (?:local grad norm for )?bucket "
        r"#(?P<bucket>\d+)",
        nature="cause",
        cause="nan",
        refine=refine_with("bucket"),
    ),
    # AssertionError: Rank 3: found NaN in local grad norm in backwards pass. Device: 3, node: gpu-02   (before
    # Megatron-Core 0.7)
    Pattern(
        "torch.megatron_nan_grad",
        "found NaN in local grad norm in backward",
        r"Rank (?P<rank>\d+): found (?P<result>NaN) in local grad norm in backwards? pass",
        nature="cause",
        cause="nan",
    ),
    # iteration     5426/  250000 | consumed samples: 43408 | ... | loss scale: 1.0 | grad norm: nan | ...   (all;
    # a step that is skipped for loss scaling prints no norm)
    *(
        Pattern(
            "torch.megatron_nan_log",
            words,
            r"iteration\s+(?P<iteration>\d+)/.{1,2000}\| (?P<what>grad norm|lm loss): (?P<result>nan|NAN|inf|INF) \|",
            nature="symptom",
            fields={"suggests": "nan"},
            refine=refine_with("iteration"),
        )
        for words in ("| grad norm: nan |", "| grad norm: inf |", "| lm loss: NAN |", "| lm loss: INF |")
    ),
    # DeepEP dispatch NVL receiver timeout, channel: 8, RDMA: 1, nvl: 5, src RDMA: 1, src nvl: 1, start: 0, end: 0
    # DeepEP timeout check failed: rank = 3, thread = 1, value = 1024)
    # RuntimeError: DeepEP error: timeout (dispatch CPU)   (a kernel waited for what another rank sends)
    Pattern(
        "torch.deepep_timeout",
        "DeepEP ",
        r"\bDeepEP (?:[\w():-]+ ){0,8}timeout\b(?: check failed: rank = (?P<rank>\d+))?",
        nature="symptom",
    ),
    # Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0   (Apex; everyday life until the
    # scale has nothing left to give)
    Pattern(
        "torch.apex_overflow",
        "Gradient overflow.  Skipping step",
        r"Gradient overflow\.  Skipping step, loss scaler \d+ reducing loss scale to (?P<scale>\d[\d.e+-]*)",
        nature="noise",
        refine=_apex,
        adds=("suggests",),
    ),
    # Rank 17, node gpu-02, device 1, iteration #5310: Possible persistent error!   (0.10 and later)
    # Rank 17, node gpu-02, device 1, iteration #5310: Correct result (but possible Application error)
    # ... First rerun: unexpected result is reproducible within the tolerance (nan = nan). ...
    *(
        Pattern(
            "torch.megatron_verdict",
            words,
            re.escape(words),
            nature="symptom",
            fields={"verdict": verdict},
            refine=_where,
            adds=("rank", "node", "device", "iteration"),
        )
        for words, verdict in (
            ("Possible transient error!", "transient"),
            ("Possible persistent error!", "persistent"),
            ("orrect result (but possible Application error", "application"),
            ("unexpected result is reproducible within the tolerance", "reproducible"),
        )
    ),
)
