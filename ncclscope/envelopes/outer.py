"""Layers that collectors, container runtimes, system loggers and launchers put in front of whole lines."""

from __future__ import annotations

import re

from ncclscope.clocks import Stamp
from ncclscope.envelopes.draft import Draft, Known, iso_stamp, short_stamp
from ncclscope.envelopes.layer import DIGITS, LETTERS, UPPER, WORD, Layer, compiled

__all__ = ["CRI", "OUTER", "TIME"]

_M = re.Match[str]
_ISO = r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)"
_ZONE = r"(Z|[+-]\d\d:?\d\d)"
_APP = r"([^\s:\[]{1,64})(?:\[(\d{1,10})\])?: ?"


def _kubectl(d: Draft, m: _M, _: Known) -> None:
    d.pod, d.container = m[1], m[2]


def _cri(d: Draft, m: _M, _: Known) -> None:
    d.collect(iso_stamp(m[1], m[2], m[3], "collector"))
    d.stream = m[4]
    d.partial = m[5] == "P"


def _collector_time(d: Draft, m: _M, _: Known) -> None:
    d.collect(iso_stamp(m[1], m[2], m[3], "collector"))


_LABEL = r'([\w.]+)="((?:[^"\\]|\\.)*)"'


def _logcli(d: Draft, m: _M, _: Known) -> None:
    d.collect(iso_stamp(m[1], m[2], m[3], "collector"))
    labels = dict(compiled(_LABEL).findall(m[4]))
    d.pod = labels.get("pod") or d.pod
    d.container = labels.get("container") or d.container
    d.host = labels.get("node_name") or labels.get("host") or d.host


def _app(d: Draft, host: str, app: str, pid: str | None) -> None:
    d.host = host
    d.logger = app
    if pid and pid.isdigit():
        d.pid = int(pid)


def _syslog(d: Draft, m: _M, _: Known) -> None:
    d.collect(short_stamp(m[1], m[2], m[3], m[4], "collector"))
    _app(d, m[5], m[6], m[7])


def _journal_iso(d: Draft, m: _M, _: Known) -> None:
    d.collect(iso_stamp(m[1], m[2], m[3], "collector"))
    _app(d, m[4], m[5], m[6])


def _rfc5424(d: Draft, m: _M, _: Known) -> None:
    d.collect(iso_stamp(m[1], m[2], m[3], "collector"))
    _app(d, m[4], m[5], m[6][:10])


def _uptime(d: Draft, m: _M, _: Known) -> None:
    d.logger = "kernel"
    d.own = Stamp(int(m[1]) + int(m[2]) / 10 ** len(m[2]), clock="boot")
    if m[3] == "T":  # CONFIG_PRINTK_CALLER: the task that was running
        d.tid = int(m[4])


def _kmsg(d: Draft, m: _M, _: Known) -> None:
    d.logger = "kernel"
    d.level = _SEVERITY[int(m[1]) & 7]
    d.own = Stamp(int(m[2]) / 1e6, clock="boot")


_SEVERITY = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")


def _dmesg_wall(d: Draft, m: _M, _: Known) -> None:
    d.logger = "kernel"
    d.own = short_stamp(m[1], m[2], m[3], None, "process", m[4])


def _dmesg_iso(d: Draft, m: _M, _: Known) -> None:
    d.logger = "kernel"
    d.own = iso_stamp(m[1], m[2], m[3])


def _dmesg_decoded(d: Draft, m: _M, _: Known) -> None:
    d.level = m[2]
    if m[1] == "kern":
        d.logger = "kernel"


def _talos(d: Draft, m: _M, _: Known) -> None:
    d.host, d.logger, d.level = m[1], "kernel", m[2]
    d.own = iso_stamp(m[3], m[4], m[5])


def _mpi(d: Draft, m: _M, _: Known) -> None:
    d.task, d.stream = int(m[1]), m[2]


def _prrte(d: Draft, m: _M, _: Known) -> None:
    d.task, d.stream = int(m[1]), m[4]
    if m[2]:
        d.host, d.pid = m[2], int(m[3])


def _prrte_time(d: Draft, m: _M, _: Known) -> None:
    d.collect(
        iso_stamp(m[5], m[6], m[7], "collector")
        if m[5]
        else short_stamp(m[1], m[2], m[3], None, "collector", m[4])
    )
    d.stream = m[8] or d.stream


def _ray(d: Draft, m: _M, _: Known) -> None:
    d.actor, d.pid = m[1], int(m[2])
    d.host = m[3] or d.host


def _ray_system(d: Draft, m: _M, _: Known) -> None:
    d.actor = m[1]
    d.host = m[2] or d.host


def _tee(d: Draft, m: _M, _: Known) -> None:
    d.local_rank = int(m[1])


def _task(d: Draft, m: _M, _: Known) -> None:
    d.task = int(m[1])


def _host(d: Draft, m: _M, _: Known) -> None:
    d.host = m[1]


def _pod(d: Draft, m: _M, _: Known) -> None:
    d.pod, d.container = m[1], m[2]


def _service(d: Draft, m: _M, _: Known) -> None:
    d.container = m[1]


def _tag(d: Draft, m: _M, _: Known) -> None:
    d.container, d.stream = m[1], m[2]


def _cloudwatch(d: Draft, m: _M, _: Known) -> bool | None:
    if d.collected is None:
        return False
    d.container = m[1]
    return None


def _nothing(d: Draft, m: _M, _: Known) -> None:
    """A tag that says nothing about who wrote the line."""


def _template(d: Draft, m: _M, _: Known) -> None:
    if (
        m[3] is None
    ):  # one number in a template may be either; with the role it is the default form of torchrun
        d.local_rank = int(m[2])
    else:
        d.rank, d.local_rank = int(m[2]), int(m[3])


# Words before a colon that no host is named.
_NO_HOST = r"(?i)(.*(error|exception|warning|interrupt|exit|iteration|fault|failed)|info|debug|xla|nvrm)$"


def _host_word(m: _M) -> str | None:
    word = m[1]
    named = any(c.isdigit() or c in ".-" for c in word) or word == "localhost"
    return word if named and not compiled(_NO_HOST).match(word) else None


def _first(m: _M) -> str | None:
    return m[1]


def _container_word(m: _M) -> str | None:
    """stern's second word, if the first can be a pod: those have a hash or an index behind a dash."""
    return m[2] if "-" in m[1] and any(c.isdigit() for c in m[1]) else None


_BRACKET_DIGIT = ("[", DIGITS + " ")
_DIGIT = (DIGITS, DIGITS)
_MONTH = r"([A-Z][a-z]{2}) ([ \d]?\d)"

# kubectl logs --prefix
_KUBECTL = Layer("kubectl --prefix", ("[", "p"), r"\[pod/([^/\]\s]{1,255})/([^\]\s]{1,255})\] ?", _kubectl)
# /var/log/pods: `2026-05-26T12:34:56.123456789Z stderr F text`; P when the runtime split a line
CRI = Layer(
    "CRI", _DIGIT, _ISO + r"\.(\d{1,9})" + _ZONE + r" (stdout|stderr) ([FP])(?::\S{0,64})?(?: |$)", _cri,
    needs=" std",
)
# kubectl logs --timestamps, docker logs -t, GitHub runners; every line has it where it is real
TIME = Layer(
    "time", _DIGIT, _ISO + r"(?:[.,](\d{1,9}))?" + _ZONE + r"?:?(?: |$)", _collector_time, learned=True
)

OUTER: tuple[Layer, ...] = (
    _KUBECTL,
    # nine decimals and UTC: only container tools print times so, and no host or label set follows
    Layer(
        "time",
        _DIGIT,
        _ISO + r"\.(\d{9})(Z):?(?: (?!(?:stdout|stderr) [FP]|\{\w{1,100}=)|$)",
        _collector_time,
    ),
    CRI,
    # dmesg --time-format iso
    Layer("dmesg iso", _DIGIT, _ISO + r",(\d{6})([+-]\d\d:\d\d) ", _dmesg_iso, needs=",", last=True),
    # journalctl -o short-iso, rsyslog: `2026-05-26T12:34:56+0000 node-02 trainer[4242]: text`
    Layer(
        "journal iso", _DIGIT, _ISO + r"(?:[.,](\d{1,9}))?([+-]\d\d:?\d\d) (\S{1,255}) " + _APP, _journal_iso
    ),
    # logcli: `2026-05-26T12:34:56Z {container="pytorch", pod="trainer-worker-2"} text`
    Layer(
        "logcli",
        _DIGIT,
        _ISO + r"(?:\.(\d{1,9}))?" + _ZONE + r" (\{\w{1,100}=[^{}]{0,2000}\})(?:[ \t]+|$)",
        _logcli,
        needs=" {",
    ),
    # `May 26 12:34:56 node-02 kernel: text`
    Layer(
        "syslog",
        ("<" + UPPER, DIGITS + LETTERS),
        r"(?:<\d{1,3}>)?" + _MONTH + r" (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))? (\S{1,255}) " + _APP,
        _syslog,
    ),
    # `<134>1 2026-05-26T12:34:56.123Z node-02 trainer 4242 - - text`
    Layer(
        "RFC 5424",
        ("<", DIGITS),
        r"<\d{1,3}>1 " + _ISO + r"(?:\.(\d{1,9}))?" + _ZONE + r" (\S{1,255}) (\S{1,64}) (\S{1,128}) \S{1,64} "
        r"(?:-|(?:\[[^\]]{0,2000}\])+)(?: |$)",
        _rfc5424,
    ),
    # dmesg, /proc/kmsg: `[12345.678901] text`, `[   12.345678] [  T4242] text`
    Layer(
        "dmesg",
        ("[<", DIGITS + " "),
        r"(?:<\d{1,3}>)?\[ {0,9}(\d{1,10})\.(\d{6})\] ?(?:\[ {0,9}([TC])(\d{1,10})\] ?)?",
        _uptime,
        last=True,
    ),
    # dmesg -T: `[Tue May 26 12:34:56 2026] text`
    Layer(
        "dmesg -T",
        ("[", UPPER),
        r"\[[A-Z][a-z]{2} " + _MONTH + r" (\d\d:\d\d:\d\d) (\d{4})\] (?:\[ {0,9}[TC]\d{1,10}\] ?)?",
        _dmesg_wall,
        last=True,
    ),
    # dmesg -x: `kern  :err   : [12345.678901] text`
    Layer(
        "dmesg -x",
        ("kudasl", "esuyo"),
        r"(kern|user|daemon|auth|syslog|local\d) {0,8}:"
        r"(emerg|alert|crit|err|warn|notice|info|debug) {0,8}: ?",
        _dmesg_decoded,
    ),
    # /dev/kmsg: `3,1234,12345678901,-;text`
    Layer(
        "kmsg",
        (DIGITS, DIGITS + ","),
        r"(\d{1,4}),\d{1,18},(\d{1,18}),[-c][^;]{0,64};",
        _kmsg,
        needs=";",
        last=True,
    ),
    # Talos: `10.12.0.119: kern: warning: [2026-04-22T18:40:12.526436Z]: NVRM: text`
    Layer(
        "talos dmesg",
        (WORD, ""),
        r"([\w.-]{1,255}): kern: {1,8}(\w{1,10}): \[" + _ISO + r"(?:\.(\d{1,9}))?" + _ZONE + r"\]: ",
        _talos,
        needs=": kern: ",
        last=True,
    ),
    # Open MPI up to 4: `[1,3]<stderr>:text`
    Layer("mpirun", ("[", DIGITS), r"\[\d{1,10},(\d{1,7})\]<(stdout|stderr|stddiag)>:", _mpi),
    # Open MPI 5: `[prterun-node-01-31337@1,3][node-02:4242]<stderr>: text`
    Layer(
        "prrte",
        ("[", ""),
        r"\[[^\],\[\s]{1,255},(\d{1,7})\](?:\[([^:\]\s]{1,255}):(\d{1,10})\])?<(stdout|stderr|stddiag)>: ?",
        _prrte,
    ),
    # Open MPI 5 --output timestamp: `Tue May 26 12:34:56 2026<stdout>:text`
    Layer(
        "prrte time",
        ("[" + LETTERS + DIGITS, LETTERS + DIGITS),
        r"\[?(?:[A-Z][a-z]{2} "
        + _MONTH
        + r" (\d\d:\d\d:\d\d) (\d{4})|"
        + _ISO
        + r"(?:\.(\d{1,9}))?"
        + _ZONE
        + r"?)\]?(?:<(stdout|stderr)>: ?|(?=\[[^\],\[\s]{1,255},\d{1,7}\]))",
        _prrte_time,
    ),
    # Ray on the driver, vLLM's workers: `(RayTrainWorker pid=12, ip=10.0.0.2) text`
    Layer(
        "(actor pid)",
        ("(", ""),
        r"\(((?:[^\n]{1,200}? )??pid=(\d{1,10})(?:, ip=([\d.a-f:]{1,64}))?)\) ?",
        _ray,
        needs="pid=",
    ),
    Layer(
        "Ray",
        ("(", "rag"),
        r"\((raylet|gcs_server|autoscaler[^,)]{0,40})(?:, ip=([\d.a-f:]{1,64}))?\) ?",
        _ray_system,
    ),
    # torchrun --tee: `[default1]:text`
    Layer("torchrun --tee", ("[", "d"), r"\[default(\d{1,6})\]:", _tee),
    # From here on: learned.
    # torchrun --log-line-prefix-template: `[trainer3/1]:text`, `[trainer3|0]:text`, `[3]:text`
    Layer(
        "torchrun prefix template",
        ("[", LETTERS + "_"),
        r"\[(?!rank\d)([A-Za-z_]{1,64})(\d{1,6})(?:[_/| ](\d{1,6}))?\]:",
        _template,
        learned=True,
        word=_first,
    ),
    Layer("torchrun prefix template", ("[", DIGITS), r"\[(\d{1,6})\]:", _task, learned=True),
    # GNU parallel, milabench: `bench.node-03.nolog [stderr] text`
    Layer("tag [stream]", (WORD, ""), r"([\w.-]{1,255}) \[(stdout|stderr)\](?: |$)", _tag, needs=" [std", learned=True),
    # a collector's `[80746] [rank0]:`
    Layer("[pid]", ("[", DIGITS), r"\[\d{3,7}\] (?=\[rank|$)", _nothing, learned=True),
    # mpiexec -prepend-rank of MPICH: `[3] text`
    Layer("hydra", ("[", DIGITS), r"\[(\d{1,6})\](?: (?!NCCL )|$)", _task, learned=True),
    # srun --label: `  3: text`
    Layer("srun --label", (" " + DIGITS, ""), r" {0,7}(\d{1,6}):(?: |$)", _task, learned=True),
    # docker compose: `trainer-1  | text`
    Layer(
        "docker compose", (WORD, ""), r"([\w.-]{1,255}) {1,80}\|(?: |$)", _service, needs="|", learned=True, word=_first
    ),
    TIME,
    # CloudWatch: `2026-05-26T12:34:56.123000+00:00 algo-1/job/abc text`
    Layer("CloudWatch", (WORD, ""), r"([\w.-]{1,255}/[^\s:]{1,512})(?: |$)", _cloudwatch, needs="/", learned=True),
    # pdsh, clush, DeepSpeed on several nodes: `node-02: text`
    Layer("pdsh", (LETTERS, ""), r"([A-Za-z][\w.-]{0,254}):(?: |$)", _host, needs=":", learned=True, word=_host_word),
    # stern: `trainer-worker-2 pytorch text`
    Layer(
        "stern",
        (WORD, ""),
        r"([\w.-]{1,255}) ([\w.-]{1,63})(?: |$)",
        _pod,
        learned=True,
        word=_container_word,
    ),
)
