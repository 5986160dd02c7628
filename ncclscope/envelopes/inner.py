"""Layers that the rank itself prints: its number, and what its loggers put before a message."""

from __future__ import annotations

import re

from ncclscope.envelopes.draft import Draft, Known, iso_stamp, short_stamp
from ncclscope.envelopes.layer import DIGITS, LETTERS, UPPER, WORD, Layer

__all__ = ["INNER", "NCCL_PREFIX"]

_M = re.Match[str]
_DATE = r"(\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d)"
_GLOG = r"([DVIWECF])(\d{4}(?=\d{4} ))?(\d\d)(\d\d) (\d\d:\d\d:\d\d)\.(\d{6}) {1,8}(\d{1,20}) "
_LEVEL = r"(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)"


def _rank(d: Draft, m: _M, _: Known) -> None:
    d.rank = int(m[1])


def _c10(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "c10", m[1], m[6]
    if m[2]:
        d.own = short_stamp(m[2], m[3], m[4], m[5], "process")


def _torch(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "torch", m[1], m[8]
    d.own = short_stamp(m[3], m[4], m[5], m[6], "process", m[2])
    if len(m[7]) <= 10:  # 2.3 to 2.5 print a 15-digit thread id here
        d.pid = int(m[7])


def _glog(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "klog" if ".go:" in m[8] else "c10", m[1], m[8]
    d.own = short_stamp(m[3], m[4], m[5], m[6], "process", m[2])
    d.tid = int(m[7][:10])


def _torch_21(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "torch", m[4], m[3]
    d.own = iso_stamp(m[1], m[2], None)


def _basic(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "torch" if m[2].startswith("torch") else "python", m[1], m[2]


def _nccl(d: Draft, m: _M, known: Known) -> None:
    host = m[1]
    if known.hosts and host not in known.hosts:  # a print without a newline can stand right before the host
        host = max((h for h in known.hosts if host.endswith(h)), key=len, default=host)
    d.host, d.pid, d.tid = host, int(m[2]), int(m[3])
    if m[4] is not None:
        d.device = int(m[4])
    d.logger, d.level, d.code = "nccl", m[6], m[5]


def _nccl_bare(d: Draft, m: _M, _: Known) -> None:
    if m[1] is not None:
        d.device = int(m[1])
    d.logger, d.level, d.code = "nccl", m[3], m[2]


def _python(d: Draft, m: _M, _: Known) -> None:
    name = m[3] or m[6] or m[7]
    d.logger = "torch" if name and name.startswith("torch.") else "ray" if m[5] else "python"
    d.level, d.code = m[4], m[5] or name
    d.own = iso_stamp(m[1], m[2], None)


def _submitit(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "python", m[2], m[1]
    d.own = iso_stamp(m[3], m[4], None)


def _hugging_face(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "transformers", m[1], m[2]
    d.own = iso_stamp(m[3], m[4], None)


def _accelerate(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "python", m[5], m[6]
    d.own = short_stamp(m[1], m[2], m[4], None, "process", m[3])


def _deepspeed(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "deepspeed", m[3], m[4]
    d.own = iso_stamp(m[1], m[2], None)
    if m[5] and m[5] != "-1":
        d.rank = int(m[5])


def _ray_core(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.pid, d.tid, d.code = "ray", m[3], int(m[4]), int(m[5]), m[7]
    d.own = iso_stamp(m[1], m[2], None)
    d.actor = d.actor or m[6]


def _titan(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "torchtitan", m[5], m[4]
    d.own = iso_stamp(m[2], m[3], None)
    if m[1].startswith("rank"):
        d.rank = int(m[1][4:])


def _nemo(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "nemo", m[1], m[3]
    d.own = iso_stamp(m[2], None, None)


def _megatron(d: Draft, m: _M, _: Known) -> None:
    d.logger = "megatron"
    d.own = iso_stamp(m[1], m[2], None)


def _bracketed_time(d: Draft, m: _M, _: Known) -> None:
    d.own = iso_stamp(m[1], m[2], None)
    if m[3]:
        d.logger, d.actor = "sglang", d.actor or m[3].strip()


def _vllm(d: Draft, m: _M, _: Known) -> None:
    d.logger, d.level, d.code = "vllm", m[1], m[5]
    d.own = short_stamp(m[2], m[3], m[4], None, "process")


def _version(d: Draft, *_: object) -> None:
    d.logger, d.level = "nccl", "VERSION"


# node-01:13571:13582 [0] NCCL INFO text
# node-01:13571:13582 [0] misc/socket.cc:484 (ncclSocketPollConnect) NCCL WARN text   (2.30.7)
# node-01:11:42 [0] int nccl_ofi_foo(struct bar*, int):123 NCCL WARN text             (AWS plug-in)
# node-01:11:42 NCCL CALL ncclAllReduce(...)                                                    (TRACE builds)
NCCL_PREFIX = (
    r"([\w.-]{1,255}):(\d{1,10}):(\d{1,10}) (?:\[(-?\d{1,10})\] )?"
    r"(?:([^\[\]\n]{1,400}?:\d{1,7})(?: \([^()]{0,200}\))? )??"
    r"NCCL (INFO|WARN|TRACE|CALL|VERSION|ERROR|ABORT)(?: |$)"
)

INNER: tuple[Layer, ...] = (
    # [rank3]: text; one blank belongs to the prefix, the rest is the indentation of a traceback
    Layer("[rankN]:", ("[", "r"), r"\[rank(\d{1,7})\]: ?", _rank, inner=True),
    # Lightning: `[rank: 3] text`
    Layer("Lightning", ("[", "r"), r"\[rank: (\d{1,7})\] ?", _rank, inner=True),
    # c10 2.4+ `[E526 12:34:56.123456789 ProcessGroupNCCL.cpp:616] `, before `[E socket.cpp:1316] `
    Layer(
        "c10",
        ("[", "IWEF"),
        r"\[([IWEF])(?:(\d{1,2}?)(\d\d) (\d\d:\d\d:\d\d)\.(\d{6,9}))? "
        r"([\w./+-]{1,255}\.(?:cpp|hpp|h|cc|cu|cuh|c|mm):\d{1,7})\] ?",
        _c10,
        inner=True,
        last=True,
    ),
    # torch's Python logger: `W1130 19:37:58.813000 17721 torch/distributed/run.py:874] text`
    Layer(
        "torch logger",
        ("DVIWEC", DIGITS),
        _GLOG + r"(\S{0,255}\.py:\d{1,7})\] ?",
        _torch,
        inner=True,
        last=True,
    ),
    # glog builds of torch, klog: `I1124 12:34:56.123456 31337 ProcessGroupNCCL.cpp:835] text`
    Layer(
        "glog", ("IWEF", DIGITS), _GLOG + r"(\S{0,255}\.\w{1,4}:\d{1,7})\] ?", _glog, inner=True, last=True
    ),
    # NCCL's own prefix; host names start with a letter or digit
    Layer("NCCL", (WORD, ""), NCCL_PREFIX, _nccl, needs="NCCL ", inner=True, last=True),
    # excerpts without the host: `misc/shmutils.cc:88 NCCL WARN text`, `[0] NCCL INFO text`, `NCCL WARN text`
    Layer(
        "NCCL",
        ("[:" + WORD, ""),
        r"(?:(?:[\w.-]{0,64}:)?\d{0,10}:?\d{1,10} (?=\[))?(?:\[(-?\d{1,10})\] )?(?:([\w./+-]{1,200}:\d{1,7})"
        r"(?: \([^()]{0,200}\))? )?NCCL (INFO|WARN)(?: |$)",
        _nccl_bare,
        needs="NCCL ",
        inner=True,
        last=True,
    ),
    # NCCL version 2.27.3+cuda12.9
    Layer("NCCL", ("N", "C"), r"(?=NCCL version \d)", _version, inner=True, last=True),
    # torch 2.1, 2.2: `[2024-01-05 12:00:00,123] torch.distributed.run: [WARNING] text`
    Layer(
        "torch logger",
        ("[", DIGITS),
        r"\[" + _DATE + r",(\d{3})\] (torch[\w.]{0,200}): \[([A-Z]{4,8})\] ?",
        _torch_21,
        inner=True,
        last=True,
    ),
    # DeepSpeed: `[2026-05-26 12:34:56,123] [INFO] [logging.py:96:log_dist] [Rank 0] text`
    Layer(
        "DeepSpeed",
        ("[", DIGITS),
        r"\[" + _DATE + r",(\d{3})\] \[([A-Z]{4,8})\] \[([\w.]{1,200}:\d{1,7}):[\w<>]{1,200}\] ?"
        r"(?:\[Rank (-?\d{1,7})\] ?)?",
        _deepspeed,
        inner=True,
        last=True,
    ),
    # Ray core: `[2026-11-30 20:28:40,810 E 25337 25402] (raylet) core_worker.cc:2465: text`
    Layer(
        "Ray core",
        ("[", DIGITS),
        r"\["
        + _DATE
        + r",(\d{3}) ([A-Z]) (\d{1,10}) (\d{1,10})\] (?:\((\w{1,40})\) )?([\w./-]{1,200}:\d{1,7}): ?",
        _ray_core,
        inner=True,
        last=True,
    ),
    # Megatron-LM: ` [2026-05-26 12:34:56] iteration     5310/  100000 | ...`
    Layer(
        "Megatron",
        (" [", "[" + DIGITS),
        r" ?\[" + _DATE + r"(?:\.(\d{1,6}))?\] (?=iteration )",
        _megatron,
        inner=True,
    ),
    # SGLang: `[2026-11-30 12:00:00 DP0 TP3] text`; without tags the time of NCCL's WARN lines and of scripts
    Layer(
        "[time]",
        ("[", DIGITS),
        r"\[" + _DATE + r"(?:[.,](\d{1,9}))?((?: (?:ATTN_)?[A-Z]{2,3}\d{1,6}){0,6})\] ",
        _bracketed_time,
        inner=True,
    ),
    # TorchTitan: `[titan] 2026-05-26 12:34:56,123 - root - INFO - text`
    Layer(
        "TorchTitan",
        ("[", "tr"),
        r"\[(titan|rank\d{1,7}|trainer)\] " + _DATE + r",(\d{3}) - ([\w.]{1,200}) - ([A-Z]{4,8}) - ?",
        _titan,
        inner=True,
    ),
    # NeMo: `[NeMo W 2026-05-26 12:34:56 nemo_logging:361] text`
    Layer("NeMo", ("[", "N"), r"\[NeMo ([A-Z]) " + _DATE + r" ([\w.]{1,200}:\d{1,7})\] ?", _nemo, inner=True),
    # Hugging Face: `[INFO|trainer.py:2364] 2026-01-27 18:33:27,015 >> text`
    Layer(
        "Hugging Face",
        ("[", UPPER),
        r"\[([A-Z]{4,8})\|([\w.]{1,200}:\d{1,7})\] " + _DATE + r",(\d{3}) >> ?",
        _hugging_face,
        inner=True,
    ),
    # vLLM: `ERROR 11-30 12:00:00 [multiproc_executor.py:380] text`, older ones without the bracket
    Layer(
        "vLLM",
        ("IWED", "NARE"),
        r"(INFO|WARNING|ERROR|DEBUG) (\d\d)-(\d\d) (\d\d:\d\d:\d\d) \[?([\w./]{1,200}:\d{1,7})\] ?",
        _vllm,
        needs=":",
        inner=True,
    ),
    # logging.basicConfig: `ERROR:torch.distributed.elastic.multiprocessing.api:text`
    Layer(
        "basicConfig",
        ("DIWEC", "ENAR"),
        r"(DEBUG|INFO|WARNING|ERROR|CRITICAL):([\w.]{1,200}):",
        _basic,
        needs=":",
        inner=True,
    ),
    # accelerate's scripts: `05/26/2026 12:34:56 - INFO - __main__ - text`
    Layer(
        "accelerate",
        (DIGITS, DIGITS),
        r"(\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d) - ([A-Z]{4,8}) - ([\w.]{1,200}) - ?",
        _accelerate,
        needs=" - ",
        inner=True,
    ),
    # submitit: `submitit WARNING (2022-08-11 22:41:11,453) - text`
    Layer(
        "Python logging",
        (LETTERS, LETTERS),
        r"([a-z][\w.]{1,40}) " + _LEVEL + r" \(" + _DATE + r",(\d{3})\) - ?",
        _submitit,
        needs=" (",
        inner=True,
    ),
    # `2026-05-26 12:34:56,123 - trainer - ERROR - text`, `... INFO train: text`;
    # Ray's `...\tINFO worker.py:2029 -- text`
    Layer(
        "Python logging",
        (DIGITS, DIGITS),
        _DATE
        + r"(?:[,.](\d{1,9}))?[ \t|-]{1,4}(?:([\w.]{1,200})[ \t|-]{1,4})??\[?"
        + _LEVEL
        + r"\]?(?![\w])(?: {0,8}[|:-](?=\s))?[ \t]{0,8}"
        r"(?:([\w./]{1,200}:\d{1,7}) -- |([\w.]{1,200}) - |([\w.<>]{1,200}:[\w<>]{1,200}:\d{1,7}) - )?",
        _python,
        inner=True,
    ),
)
