"""Every kind of prefix: the body that is left, and what the prefix says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ncclscope.clocks import format_stamp
from ncclscope.envelopes.inner import INNER
from ncclscope.envelopes.outer import OUTER

from .helpers import said, unwrap_all

if TYPE_CHECKING:
    from ncclscope.envelopes.layer import Layer

C10 = {"logger": "c10", "level": "E"}

# (name, line, body, fields): prefixes that count on sight.
SURE: list[tuple[str, str, str, dict[str, Any]]] = [
    (
        "c10 2.4+",
        "[rank3]:[E526 12:34:56.123456789 ProcessGroupNCCL.cpp:616] [Rank 3] text",
        "[Rank 3] text",
        {"rank": 3, "code": "ProcessGroupNCCL.cpp:616", **C10},
    ),
    (
        "c10 2.2",
        "[rank1]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 1] text",
        "[PG 0 Rank 1] text",
        {"rank": 1, "code": "ProcessGroupNCCL.cpp:1316", **C10},
    ),
    (
        "c10 2.1",
        "[E ProcessGroupNCCL.cpp:828] [Rank 3] text",
        "[Rank 3] text",
        {"code": "ProcessGroupNCCL.cpp:828", **C10},
    ),
    (
        "c10 with an empty message",
        "[rank3]:[E526 12:34:56.123456789 ProcessGroupNCCL.cpp:616] ",
        "",
        {"rank": 3, "code": "ProcessGroupNCCL.cpp:616", **C10},
    ),
    (
        "glog",
        "I1124 12:34:56.123456 31337 ProcessGroupNCCL.cpp:835] [Rank 0] text",
        "[Rank 0] text",
        {"logger": "c10", "level": "I", "code": "ProcessGroupNCCL.cpp:835", "tid": 31337},
    ),
    (
        "glog with year",
        "I20261124 12:34:56.123456 31337 ProcessGroupNCCL.cpp:835] text",
        "text",
        {"logger": "c10", "level": "I", "code": "ProcessGroupNCCL.cpp:835", "tid": 31337},
    ),
    (
        "TORCH_WARN",
        "[W1130 19:41:40.957084841 Utils.hpp:137] Warning: X is deprecated (function operator())",
        "Warning: X is deprecated (function operator())",
        {"logger": "c10", "level": "W", "code": "Utils.hpp:137"},
    ),
    ("rank", "[rank1]: ValueError: bad batch at step 3", "ValueError: bad batch at step 3", {"rank": 1}),
    ("rank, indented", '[rank1]:   File "train.py", line 3', '  File "train.py", line 3', {"rank": 1}),
    (
        "torch logger 2.3+",
        "W1130 19:37:58.813000 17721 torch/distributed/elastic/multiprocessing/api.py:1028] text",
        "text",
        {
            "logger": "torch",
            "level": "W",
            "code": "torch/distributed/elastic/multiprocessing/api.py:1028",
            "pid": 17721,
        },
    ),
    (
        "torch logger with a thread id",
        "[rank0]:E1130 19:37:58.813000 139912345678901 torch/_dynamo/utils.py:10] text",
        "text",
        {"logger": "torch", "level": "E", "code": "torch/_dynamo/utils.py:10", "rank": 0},
    ),
    (
        "torch logger 2.1",
        "[2024-01-05 12:00:00,123] torch.distributed.elastic.multiprocessing.api: [ERROR] text",
        "text",
        {"logger": "torch", "level": "ERROR", "code": "torch.distributed.elastic.multiprocessing.api"},
    ),
    (
        "basicConfig",
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0",
        "failed (exitcode: -9) local_rank: 0",
        {"logger": "torch", "level": "ERROR", "code": "torch.distributed.elastic.multiprocessing.api"},
    ),
    (
        "torchrun --tee",
        "[default1]:[rank9]: Traceback (most recent call last):",
        "Traceback (most recent call last):",
        {"rank": 9, "local_rank": 1},
    ),
    (
        "NCCL INFO",
        "node-01:13571:13582 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0",
        "Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0",
        {"host": "node-01", "pid": 13571, "tid": 13582, "device": 0, "logger": "nccl", "level": "INFO"},
    ),
    (
        "NCCL WARN 2.25",
        "node-01:1:2 [-1] misc/socket.cc:484 NCCL WARN text",
        "text",
        {
            "host": "node-01",
            "pid": 1,
            "tid": 2,
            "device": -1,
            "logger": "nccl",
            "level": "WARN",
            "code": "misc/socket.cc:484",
        },
    ),
    (
        "NCCL WARN 2.30.7",
        "[2026-05-26 12:34:56] node-01:1:2 [7] misc/socket.cc:484 (socketPoll) NCCL WARN text",
        "text",
        {
            "host": "node-01",
            "pid": 1,
            "tid": 2,
            "device": 7,
            "logger": "nccl",
            "level": "WARN",
            "code": "misc/socket.cc:484",
        },
    ),
    (
        "NCCL WARN of the AWS plug-in",
        "node1:11:42 [0] int nccl_ofi_foo(struct bar*, int):123 NCCL WARN NET/OFI text",
        "NET/OFI text",
        {
            "host": "node1",
            "pid": 11,
            "tid": 42,
            "device": 0,
            "logger": "nccl",
            "level": "WARN",
            "code": "int nccl_ofi_foo(struct bar*, int):123",
        },
    ),
    (
        "NCCL CALL",
        "node1:11:42 NCCL CALL ncclAllReduce(1,2)",
        "ncclAllReduce(1,2)",
        {"host": "node1", "pid": 11, "tid": 42, "logger": "nccl", "level": "CALL"},
    ),
    (
        "NCCL version",
        "NCCL version 2.21.5+cuda12.4",
        "NCCL version 2.21.5+cuda12.4",
        {"logger": "nccl", "level": "VERSION"},
    ),
    (
        "NCCL without host",
        "misc/shmutils.cc:88 NCCL WARN Error text",
        "Error text",
        {"logger": "nccl", "level": "WARN", "code": "misc/shmutils.cc:88"},
    ),
    ("NCCL, only the level", "NCCL WARN text", "text", {"logger": "nccl", "level": "WARN"}),
    (
        "NCCL without the host's name",
        "13571:13582 [3] NCCL INFO text",
        "text",
        {"device": 3, "logger": "nccl", "level": "INFO"},
    ),
    (
        "Python logging",
        "2026-05-26 12:34:56,123 - trainer - ERROR - text",
        "text",
        {"logger": "python", "level": "ERROR", "code": "trainer"},
    ),
    (
        "Python logging, level first",
        "2026-05-26 12:34:56,123 INFO train: step 5",
        "train: step 5",
        {"logger": "python", "level": "INFO"},
    ),
    (
        "Hugging Face",
        "[INFO|trainer.py:2364] 2026-01-27 18:33:27,015 >> text",
        "text",
        {"logger": "transformers", "level": "INFO", "code": "trainer.py:2364"},
    ),
    (
        "accelerate",
        "05/26/2026 12:34:56 - INFO - __main__ - Distributed environment: MULTI_GPU  Backend: nccl",
        "Distributed environment: MULTI_GPU  Backend: nccl",
        {"logger": "python", "level": "INFO", "code": "__main__"},
    ),
    (
        "DeepSpeed",
        "[2026-05-26 12:34:56,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10",
        "step=10",
        {"logger": "deepspeed", "level": "INFO", "code": "logging.py:96", "rank": 0},
    ),
    (
        "Megatron",
        " [2026-05-26 12:34:56] iteration     5310/  100000 | consumed samples: 5 |",
        "iteration     5310/  100000 | consumed samples: 5 |",
        {"logger": "megatron"},
    ),
    ("Lightning", "[rank: 3] Received SIGTERM: 15", "Received SIGTERM: 15", {"rank": 3}),
    (
        "vLLM",
        "(Worker_TP3 pid=4242) ERROR 11-30 12:00:00 [multiproc_executor.py:380] text",
        "text",
        {
            "actor": "Worker_TP3 pid=4242",
            "pid": 4242,
            "logger": "vllm",
            "level": "ERROR",
            "code": "multiproc_executor.py:380",
        },
    ),
    (
        "vLLM, older",
        "(VllmWorker rank=1 pid=4242) ERROR 05-26 12:00:00 [multiproc_executor.py:470] text",
        "text",
        {
            "actor": "VllmWorker rank=1 pid=4242",
            "pid": 4242,
            "logger": "vllm",
            "level": "ERROR",
            "code": "multiproc_executor.py:470",
        },
    ),
    (
        "SGLang",
        "[2026-11-30 12:00:00 DP0 TP3] Scheduler hit an exception: text",
        "Scheduler hit an exception: text",
        {"logger": "sglang", "actor": "DP0 TP3"},
    ),
    (
        "TorchTitan",
        "[titan] 2026-05-26 12:34:56,123 - root - INFO - step: 10",
        "step: 10",
        {"logger": "torchtitan", "level": "INFO", "code": "root"},
    ),
    (
        "NeMo",
        "[NeMo W 2026-05-26 12:34:56 nemo_logging:361] text",
        "text",
        {"logger": "nemo", "level": "W", "code": "nemo_logging:361"},
    ),
    (
        "submitit",
        "submitit WARNING (2022-08-11 22:41:11,453) - text",
        "text",
        {"logger": "python", "level": "WARNING", "code": "submitit"},
    ),
    (
        "Ray worker",
        "\x1b[36m(RayTrainWorker pid=12, ip=10.0.0.2)\x1b[0m [rank3]: text",
        "text",
        {"actor": "RayTrainWorker pid=12, ip=10.0.0.2", "pid": 12, "host": "10.0.0.2", "rank": 3},
    ),
    (
        "Ray worker with a repr",
        "(Trainable(lr=0.1) pid=7) text",
        "text",
        {"actor": "Trainable(lr=0.1) pid=7", "pid": 7},
    ),
    (
        "Ray system process",
        "(raylet, ip=10.0.0.2) 2 Workers killed",
        "2 Workers killed",
        {"actor": "raylet", "host": "10.0.0.2"},
    ),
    (
        "Ray, repeated",
        (
            "(RayTrainWorker pid=14, ip=10.0.0.3) text\x1b[32m [repeated 7x across cluster]\x1b[0m "
            "(Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable.)"
        ),
        "text",
        {"actor": "RayTrainWorker pid=14, ip=10.0.0.3", "pid": 14, "host": "10.0.0.3", "repeated": 7},
    ),
    (
        "Ray core",
        "[2026-11-30 20:28:40,810 E 25337 25402] (raylet) core_worker.cc:2465: text",
        "text",
        {
            "logger": "ray",
            "level": "E",
            "pid": 25337,
            "tid": 25402,
            "code": "core_worker.cc:2465",
            "actor": "raylet",
        },
    ),
    (
        "Ray's Python logger",
        "2026-11-30 20:28:07,417\tINFO worker.py:2029 -- text",
        "text",
        {"logger": "ray", "level": "INFO", "code": "worker.py:2029"},
    ),
    ("Open MPI 4", "[1,3]<stdout>:  text", "  text", {"task": 3, "stream": "stdout"}),
    (
        "PRRTE",
        "[prterun-node-01-31337@1,3][node-02:4242]<stderr>: text",
        "text",
        {"task": 3, "host": "node-02", "pid": 4242, "stream": "stderr"},
    ),
    ("PRRTE time", "Tue May 26 12:34:56 2026<stdout>:text", "text", {"stream": "stdout"}),
    (
        "CRI",
        "2026-05-26T12:34:56.123456789Z stderr F [rank3]: Traceback (most recent call last):",
        "Traceback (most recent call last):",
        {"rank": 3, "stream": "stderr"},
    ),
    ("CRI, empty line", "2026-05-26T12:34:56.123456789+02:00 stdout F ", "", {"stream": "stdout"}),
    ("docker -t", "2026-05-26T12:34:56.123456789Z [rank3]: text", "text", {"rank": 3}),
    (
        "kubectl --prefix",
        "[pod/trainer-worker-2/pytorch] [rank16]: text",
        "text",
        {"pod": "trainer-worker-2", "container": "pytorch", "rank": 16},
    ),
    (
        "docker json",
        '{"log":"[rank3]: text\\n","stream":"stderr","time":"2026-05-26T12:34:56.123456789Z"}',
        "text",
        {"rank": 3, "stream": "stderr"},
    ),
    (
        "fluent-bit",
        (
            '{"date":1790000000.123,"log":"[rank3]: text","stream":"stderr",'
            '"kubernetes":{"pod_name":"trainer-worker-2","host":"node-02"}}'
        ),
        "text",
        {"rank": 3, "stream": "stderr", "pod": "trainer-worker-2", "host": "node-02"},
    ),
    (
        "fluent-bit without a parser",
        '{"date":1790000000.123,"log":"2026-05-26T12:34:56.123456789Z stderr F [rank3]: text"}',
        "text",
        {"rank": 3, "stream": "stderr"},
    ),
    (
        "GCP",
        (
            '{"textPayload":"[rank3]: text","timestamp":"2026-05-26T12:34:56.123Z","severity":"ERROR",'
            '"resource":{"labels":{"pod_name":"trainer-worker-2"}}}'
        ),
        "text",
        {"rank": 3, "pod": "trainer-worker-2"},
    ),
    (
        "GCP with a structured payload",
        '{"jsonPayload":{"message":"[rank3]: text"},"timestamp":"2026-05-26T12:34:56.123Z"}',
        "text",
        {"rank": 3},
    ),
    (
        "GCP printed over several lines",
        '    "textPayload": "[rank3]: say \\"text\\"",',
        'say "text"',
        {"rank": 3},
    ),
    (
        "logcli",
        '2026-05-26T12:34:56Z {container="pytorch", pod="trainer-worker-2"} [rank16]: text',
        "text",
        {"rank": 16, "pod": "trainer-worker-2", "container": "pytorch"},
    ),
    (
        "logcli -o jsonl",
        '{"labels":{"pod":"trainer-worker-2"},"line":"[rank16]: text","timestamp":"2026-05-26T12:34:56Z"}',
        "text",
        {"rank": 16, "pod": "trainer-worker-2"},
    ),
    (
        "stern -o json",
        '{"message":"[rank16]: text","nodeName":"node-02","podName":"w-2","containerName":"pytorch"}',
        "text",
        {"rank": 16, "pod": "w-2", "container": "pytorch", "host": "node-02"},
    ),
    (
        "syslog",
        "May 26 12:34:56 node-02 kernel: NVRM: Xid (PCI:0000:1d:00): 79, text",
        "NVRM: Xid (PCI:0000:1d:00): 79, text",
        {"host": "node-02", "logger": "kernel"},
    ),
    (
        "syslog with the kernel's own time",
        "<4>May  6 12:34:56 node-02 kernel: [12345.678901] NVRM: text",
        "NVRM: text",
        {"host": "node-02", "logger": "kernel"},
    ),
    (
        "journal iso",
        "2026-05-26T12:34:56+0000 node-02 trainer[4242]: text",
        "text",
        {"host": "node-02", "logger": "trainer", "pid": 4242},
    ),
    (
        "journald json",
        '{"__REALTIME_TIMESTAMP":"1790000000123456","_HOSTNAME":"node-02","_PID":"4242","MESSAGE":"text"}',
        "text",
        {"host": "node-02", "pid": 4242},
    ),
    (
        "journald json, bytes",
        (
            '{"__REALTIME_TIMESTAMP":"1790000000123456","_TRANSPORT":"kernel","PRIORITY":"3",'
            '"MESSAGE":[27,91,51,50,109,116,101,120,116]}'
        ),
        "text",
        {"logger": "kernel", "level": "err"},
    ),
    (
        "RFC 5424",
        '<134>1 2026-05-26T12:34:56.123Z node-02 trainer 4242 - [x@1 a="b"] text',
        "text",
        {"host": "node-02", "logger": "trainer", "pid": 4242},
    ),
    ("dmesg", "[12345.678901] NVRM: text", "NVRM: text", {"logger": "kernel"}),
    (
        "dmesg with the caller",
        "[   12.345678] [  T4242] NVRM: text",
        "NVRM: text",
        {"logger": "kernel", "tid": 4242},
    ),
    ("dmesg -T", "[Tue May 26 12:34:56 2026] NVRM: text", "NVRM: text", {"logger": "kernel"}),
    ("dmesg iso", "2026-05-26T12:34:56,123456+00:00 NVRM: text", "NVRM: text", {"logger": "kernel"}),
    (
        "dmesg -x",
        "kern  :err   : [12345.678901] NVRM: text",
        "NVRM: text",
        {"logger": "kernel", "level": "err"},
    ),
    ("kmsg", "3,1234,12345678901,-;NVRM: text", "NVRM: text", {"logger": "kernel", "level": "err"}),
    (
        "Talos",
        "10.12.0.119: kern: warning: [2026-04-22T18:40:12.526436Z]: NVRM: text",
        "NVRM: text",
        {"host": "10.12.0.119", "logger": "kernel", "level": "warning"},
    ),
    ("colours", "\x1b[36mtext\x1b[0m\x00\x07", "text", {}),
]

# Prefixes that common text can look like: they count where every line of a short input carries them.
LEARNED: list[tuple[str, str, str, dict[str, Any]]] = [
    ("torchrun template", "[trainer3/1]:text", "text", {"rank": 3, "local_rank": 1}),
    ("torchrun template, bar", "[trainer3|0]:text", "text", {"rank": 3, "local_rank": 0}),
    ("torchrun template, other role", "[trainer3]:text", "text", {"local_rank": 3}),
    ("torchrun template, bare number", "[3]:text", "text", {"task": 3}),
    ("hydra", "[3] text", "text", {"task": 3}),
    ("srun --label", "  3:   text", "  text", {"task": 3}),
    (
        "pdsh",
        "node-02: [2026-05-26 12:34:56,123] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4242",
        "Killing subprocess 4242",
        {"host": "node-02", "logger": "deepspeed", "level": "INFO", "code": "launch.py:319"},
    ),
    (
        "tag",
        "bench.node-03.nolog [stderr] text",
        "text",
        {"container": "bench.node-03.nolog", "stream": "stderr"},
    ),
    (
        "stern",
        "trainer-worker-2 pytorch some text",
        "some text",
        {"pod": "trainer-worker-2", "container": "pytorch"},
    ),
    ("docker compose", "trainer-1  | text", "text", {"container": "trainer-1"}),
    ("plain time", "2026-05-26T12:34:56.123Z text", "text", {}),
    (
        "CloudWatch",
        "2026-05-26T12:34:56.123000+00:00 algo-1/job/abc text",
        "text",
        {"container": "algo-1/job/abc"},
    ),
]


@pytest.mark.parametrize(("line", "body", "fields"), [c[1:] for c in SURE], ids=[c[0] for c in SURE])
def test_an_unmistakable_prefix_comes_off_on_sight(line: str, body: str, fields: dict[str, Any]) -> None:
    (found,) = unwrap_all([line], learn=False)
    assert (found.text, said(found.env)) == (body, fields)


@pytest.mark.parametrize(("line", "body", "fields"), [c[1:] for c in LEARNED], ids=[c[0] for c in LEARNED])
def test_an_ambiguous_prefix_comes_off_when_all_lines_carry_it(
    line: str, body: str, fields: dict[str, Any]
) -> None:
    for found in unwrap_all([line, line, line]):
        assert (found.text, said(found.env)) == (body, fields)


@pytest.mark.parametrize("line", [c[1] for c in LEARNED], ids=[c[0] for c in LEARNED])
def test_an_ambiguous_prefix_stays_where_only_one_line_of_many_has_it(line: str) -> None:
    others = [f"loss is falling nicely, epoch {n}" for n in range(30)]
    assert unwrap_all([*others, line])[-1].text.endswith(line.rpartition("] ")[2])
    if "[INFO]" not in line:
        assert unwrap_all([*others, line])[-1].text == line


NESTED: list[tuple[str, str, dict[str, Any]]] = [
    (
        (
            "2026-05-26T12:34:56.123456789Z stdout F (RayTrainWorker pid=12, ip=10.0.0.2) "
            "[rank3]:[E526 12:34:56.123456789 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught"
        ),
        "[Rank 3] Watchdog caught",
        {
            "stream": "stdout",
            "actor": "RayTrainWorker pid=12, ip=10.0.0.2",
            "host": "10.0.0.2",
            "pid": 12,
            "rank": 3,
            "code": "ProcessGroupNCCL.cpp:616",
            **C10,
        },
    ),
    (
        "node-02: [default1]:[rank9]: Traceback (most recent call last):",
        "Traceback (most recent call last):",
        {"host": "node-02", "local_rank": 1, "rank": 9},
    ),
    (
        "3: node-01:13571:13582 [0] NCCL INFO comm 0x55d0 rank 3 nranks 8",
        "comm 0x55d0 rank 3 nranks 8",
        {
            "task": 3,
            "host": "node-01",
            "pid": 13571,
            "tid": 13582,
            "device": 0,
            "logger": "nccl",
            "level": "INFO",
        },
    ),
    (
        "[pod/trainer-worker-2/pytorch] 2026-05-26T12:34:56.1Z [rank16]:[W526 12:34:56.100000000 a.h:1] x",
        "x",
        {
            "pod": "trainer-worker-2",
            "container": "pytorch",
            "rank": 16,
            "logger": "c10",
            "level": "W",
            "code": "a.h:1",
        },
    ),
    (
        (
            '{"log":"W1130 19:37:58.813000 17721 torch/distributed/run.py:874] text\\n","stream":"stderr",'
            '"time":"2026-11-30T19:37:58.9Z"}'
        ),
        "text",
        {
            "stream": "stderr",
            "logger": "torch",
            "level": "W",
            "code": "torch/distributed/run.py:874",
            "pid": 17721,
        },
    ),
    (
        "[1,3]<stderr>:[2026-05-26 12:34:56,123] [INFO] [launch.py:319:main] Killing subprocess 4242",
        "Killing subprocess 4242",
        {"task": 3, "stream": "stderr", "logger": "deepspeed", "level": "INFO", "code": "launch.py:319"},
    ),
    (
        "[80746] [rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] text",
        "text",
        {"rank": 0, "code": "ProcessGroupNCCL.cpp:607", **C10},
    ),
    (
        "bench.node-03.nolog [stderr] [rank3]:[E909 09:55:46.996672294 ProcessGroupNCCL.cpp:1709] text",
        "text",
        {
            "container": "bench.node-03.nolog",
            "stream": "stderr",
            "rank": 3,
            "code": "ProcessGroupNCCL.cpp:1709",
            **C10,
        },
    ),
]


@pytest.mark.parametrize(("line", "body", "fields"), NESTED)
@pytest.mark.parametrize("learn", [False, True])
def test_nested_prefixes_come_off_from_the_outside_in(
    line: str, body: str, fields: dict[str, Any], learn: bool
) -> None:
    (found,) = unwrap_all([line], learn=learn)
    assert (found.text, said(found.env)) == (body, fields)


TIMES = [
    ("[Tue May 26 12:34:56 2026] NVRM: x", "process", "2026-05-26T12:34:56.000000", "unknown"),
    ("2026-05-26T12:34:56,123456+02:00 NVRM: x", "process", "2026-05-26T12:34:56.123456", "+02:00"),
    (
        "[2026-05-26 12:34:56] n:1:2 [0] a.cc:1 NCCL WARN x",
        "process",
        "2026-05-26T12:34:56.000000",
        "unknown",
    ),
    ("05/26/2026 12:34:56 - INFO - a - x", "process", "2026-05-26T12:34:56.000000", "unknown"),
    ("[pod/a/b] 2026-05-26T12:34:56.5Z [rank0]: x", "collector", "2026-05-26T12:34:56.500000", "+00:00"),
    (
        '{"message":"x","ingestionTime":1,"timestamp":1779798896123}',
        "collector",
        "2026-05-26T12:34:56.123000",
        "+00:00",
    ),
    ("2026-05-26 12:34:56.25 the program's own", "process", "2026-05-26T12:34:56.250000", "unknown"),
]


@pytest.mark.parametrize(("line", "clock", "text", "zone"), TIMES)
def test_the_time_says_who_printed_it(line: str, clock: str, text: str, zone: str) -> None:
    stamp = unwrap_all([line])[0].env.time
    assert stamp is not None
    assert (stamp.clock, format_stamp(stamp)) == (clock, (text, zone))


def test_a_collectors_time_gives_a_process_time_its_year_and_zone() -> None:
    line = "2026-05-26T10:34:57.5Z stdout F [rank3]:[E526 12:34:56.100000000 ProcessGroupNCCL.cpp:616] x"
    env = unwrap_all([line])[0].env
    assert env.time is not None
    assert format_stamp(env.time) == ("2026-05-26T12:34:56.100000", "+02:00")
    assert env.collected is not None
    assert env.collected.clock == "collector"


def test_the_zone_of_a_late_line_is_that_of_the_stream() -> None:
    """A line that sat in a buffer for a quarter of an hour must not look like one from another zone."""
    good = "2026-05-26T10:34:56.5Z stdout F 2026-05-26 12:34:56,100 INFO train: x"
    late = "2026-05-26T10:49:56.5Z stdout F 2026-05-26 12:34:56,200 INFO train: y"
    stamps = [line.env.time for line in unwrap_all([good] * 5 + [late])]
    assert {stamp.zone for stamp in stamps if stamp} == {120}


def test_new_years_eve_does_not_shift_a_year() -> None:
    line = "2027-01-01T00:00:00.2Z stdout F [rank3]:[E1231 23:59:59.900000000 ProcessGroupNCCL.cpp:616] x"
    stamp = unwrap_all([line])[0].env.time
    assert stamp is not None
    assert format_stamp(stamp) == ("2026-12-31T23:59:59.900000", "+00:00")


def test_seconds_since_boot_are_used_only_where_no_other_time_stands() -> None:
    alone = unwrap_all(["[12345.678901] NVRM: x"])[0].env.time
    both = unwrap_all(["May 26 12:34:56 node-02 kernel: [12345.678901] NVRM: x"])[0].env.time
    assert alone is not None
    assert (alone.clock, alone.seconds) == ("boot", 12345.678901)
    assert both is not None
    assert both.clock == "collector"


def test_month_and_day_of_c10_are_read_from_the_right() -> None:
    """E111 is 11 January, E1101 is 1 November."""
    january, november = (
        unwrap_all([f"[E{date} 00:00:00.000000000 a.cpp:1] x"])[0].env.time for date in ("111", "1101")
    )
    assert january is not None
    assert november is not None
    assert [(november.seconds - january.seconds) / 86400] == [295.0]


@pytest.mark.parametrize("layer", [layer for layer in (*OUTER, *INNER) if layer.needs], ids=lambda layer: layer.name)
def test_what_a_layer_needs_stands_in_every_text_that_carries_it(layer: Layer) -> None:
    texts = [line for _, line, *_ in (*SURE, *LEARNED)]
    carry = [text for text in texts if any(layer.match(text, at) for at in range(len(text)))]
    assert carry
    assert [text for text in carry if layer.needs not in text] == []
