"""What identifies a site or gives access to it, and how to tell it from what only looks like it."""

# ruff: noqa: E501 - a pattern stays on one line

from __future__ import annotations

import ipaddress
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BY_PLACE", "BY_SHAPE", "END", "START", "is_host", "is_ipv4", "is_name"]

START = r"(?<![A-Za-z0-9])"
END = r"(?![A-Za-z0-9])"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?"
_HOST = rf"{_NAME}(?:\.{_NAME}){{0,8}}"

# Names that identify nobody, and words that stand where a host or user name may stand.
_NO_HOST = frozenset(
    [
        "localhost",
        "localhost.localdomain",
        "ip6-localhost",
        "none",
        "null",
        "nil",
        "unknown",
        "any",
        "all",
        "self",
        "host",
        "hostname",
        "node",
        "nodes",
        "rank",
        "ranks",
        "worker",
        "workers",
        "master",
        "the",
        "a",
        "an",
        "this",
        "that",
        "server",
        "client",
        "true",
        "false",
        "env",
        "static",
        "etcd",
        "c10d",
        "tcp",
        "file",
        "with",
        "without",
        "and",
        "or",
        "of",
        "on",
        "in",
        "at",
        "by",
        "to",
        "for",
        "from",
        "is",
        "was",
        "not",
        "no",
        "has",
        "had",
        "failed",
        "name",
        "names",
        "which",
        "where",
        "exited",
        "exit",
        "error",
    ]
)
_NO_USER = frozenset(["root", "user", "users", "nobody", "none", "null", "unknown", "name"])
# Public pages that log lines point at.
_PUBLIC = frozenset(
    [
        "pytorch.org",
        "docs.pytorch.org",
        "dev-discuss.pytorch.org",
        "github.com",
        "docs.nvidia.com",
        "developer.nvidia.com",
        "forums.developer.nvidia.com",
        "nvidia.com",
        "www.nvidia.com",
        "python.org",
        "docs.python.org",
        "huggingface.co",
        "example.com",
        "example.org",
        "example.net",
        "nvidia.github.io",
        "docs.ray.io",
        "kubernetes.io",
        "pypi.org",
        "www.open-mpi.org",
        "slurm.schedmd.com",
        "errors.pydantic.dev",
        "arxiv.org",
        "docs.vllm.ai",
    ]
)
# Endings of names that are domains beyond doubt in a log; many country codes are also suffixes of files.
_TLD = [
    "com",
    "net",
    "org",
    "edu",
    "gov",
    "mil",
    "int",
    "io",
    "ai",
    "dev",
    "app",
    "cloud",
    "tech",
    "info",
    "biz",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "corp",
    "home",
    "private",
    "cluster",
    "svc",
    "compute",
    "company",
    "site",
    "online",
    "systems",
    "network",
    "de",
    "fr",
    "uk",
    "eu",
    "it",
    "es",
    "nl",
    "be",
    "ch",
    "at",
    "se",
    "no",
    "fi",
    "dk",
    "ie",
    "pt",
    "gr",
    "cz",
    "hu",
    "ro",
    "ru",
    "ua",
    "tr",
    "il",
    "in",
    "cn",
    "jp",
    "kr",
    "tw",
    "hk",
    "sg",
    "th",
    "vn",
    "au",
    "nz",
    "br",
    "mx",
    "ar",
    "cl",
    "za",
    "us",
    "ca",
]


@dataclass(frozen=True, slots=True)
class _Rule:
    """Finds one kind of thing: the group `x` of the pattern, where `holds` (of the text found) says yes."""

    kind: str
    pattern: re.Pattern[str]
    holds: Callable[[str], bool] = lambda _: True


def _rule(kind: str, pattern: str, holds: Callable[[str], bool] = lambda _: True, flags: int = 0) -> _Rule:
    return _Rule(kind, re.compile(pattern, flags), holds)


def is_ipv4(text: str) -> bool:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return not (address.is_loopback or int(address) in (0, 0xFFFFFFFF))


def _is_ipv6(text: str) -> bool:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return int(address) > 1  # neither :: nor ::1


def is_host(text: str) -> bool:
    return text.lower() not in _NO_HOST and re.fullmatch(r"[\d.]+", text) is None and text not in _PUBLIC


def _is_user(text: str) -> bool:
    return text.lower() not in _NO_USER and not text.isdigit()


def _is_domain(text: str) -> bool:
    labels = text.lower().split(".")
    # `torch.distributed.in` has no digits or dashes and few labels; country codes count for longer names only.
    sure = len(labels[-1]) > 2 or labels[-1] in ("io", "ai", "de", "uk", "eu", "ch", "fr")
    return text.lower() not in _PUBLIC and (sure or len(labels) > 2)


def _is_random(text: str) -> bool:
    """Whether a run of characters looks drawn at random, as keys, digests and ids are."""
    if len(text) < 20 or re.fullmatch(r"[A-Za-z_]\w*\+0x[0-9a-f]+", text):  # a symbol and its offset
        return False
    return any(_is_random_part(part) for part in re.split(r"[-_=]", text))


def _is_random_part(part: str) -> bool:
    digits = sum(c.isdigit() for c in part)
    if re.fullmatch(r"[0-9a-f]{16,}|[0-9A-F]{16,}", part):
        return 0 < digits < len(part)
    if len(part) < 10 or digits == len(part):
        return False
    words = sum(map(len, re.findall(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}", part)))  # of identifiers
    if digits < 2:
        return len(part) >= 30 and words < 0.5 * len(part)
    entropy = -sum(n / len(part) * math.log2(n / len(part)) for n in Counter(part).values())
    return words < 0.7 * len(part) and entropy > 2.8


_SECRET_WORD = r"(?:pass(?:word|wd|phrase)|secret|token|api[_-]?key|apikey|access[_-]?key|auth[_-]?key|credential|private[_-]?key|account[_-]?key)"  # noqa: S105 - a pattern
_KEYS = (
    r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{12,}"  # cloud access keys
    r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[\w-]{16,}"
    r"|hf_[A-Za-z0-9]{16,}|nvapi-[\w-]{16,}|sk-[\w-]{16,}|rk_live_\w{10,}|sk_live_\w{10,}"
    r"|xox[abposr]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}|npm_[A-Za-z0-9]{16,}|pypi-[\w-]{16,}|dop_v1_[0-9a-f]{16,}"
    r"|AIza[\w-]{20,}|ya29\.[\w.-]{10,}|eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?"
)

# In order: the first to find a stretch of text has it. Between these and the next come names that are known.
BY_SHAPE = (
    _rule("token", r"(?P<x>-----BEGIN [A-Z ]{0,30}(?:KEY|CERTIFICATE)[A-Z ]{0,10}-----.*?(?:-----END [A-Z ]{0,40}-----|\Z))", flags=re.DOTALL),
    _rule("token", rf"(?<![A-Za-z0-9_])(?P<x>{_KEYS})"),
    # https://user:secret@host
    _rule("token", r"://(?P<x>[^\s/@:]{1,200}:[^\s/@]{1,400})@"),
    _rule("token", r"[?&](?:sig|signature|key)=(?P<x>[^\s&\"']{4,})"),
    _rule("token", r"\b(?:Bearer|Basic)\s+(?P<x>[\w.~+/=-]{8,})"),
    # password=..., "api_key": "...", --token ..., WANDB_API_KEY=...
    _rule("token", rf"(?i){_SECRET_WORD}(?:s|[_-][\w-]{{0,20}})?[\"']?\s{{0,3}}(?:[=:]\s{{0,3}}|=>\s?)[\"']?(?P<x>[^\s\"',;&<>)\]}}]{{4,}})", lambda t: not t.isdigit() and t not in ("None", "null", "True", "False", "true", "false")),
    _rule("token", rf"(?i)--{_SECRET_WORD}\s+(?P<x>[^\s\"'-][^\s\"']{{3,}})"),
    _rule("token", r"\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\S{1,20}) (?P<x>[A-Za-z0-9+/=]{16,})"),
    _rule("email", rf"{START}(?P<x>[A-Za-z0-9][\w.+%-]{{0,63}}@{_NAME}(?:\.{_NAME})+)"),
    # pod0f6c1234_12ab_... in cgroup paths, GPU-0f6c1234-12ab-...
    _rule("uuid", r"(?<![0-9A-Fa-f])(?P<x>[0-9A-Fa-f]{8}[-_][0-9A-Fa-f]{4}[-_][0-9A-Fa-f]{4}[-_][0-9A-Fa-f]{4}[-_][0-9A-Fa-f]{12})(?![0-9A-Fa-f])"),
    _rule("serial", r"(?i)\b(?:serial(?:[ _-]?(?:number|no))?|s/n|(?:node|port|sys(?:tem)?[ _]image)[ _]?guid|asset[ _-]?tag)[\"']?\s{0,30}[:=#]?\s{0,10}[\"']?(?P<x>[A-Za-z0-9][A-Za-z0-9:_-]{4,})", lambda t: any(c.isdigit() for c in t)),
    # b8:ce:f6:03:00:a1, and the eight pairs of an InfiniBand address or the twenty of an IPoIB interface
    _rule("mac", r"(?<![0-9A-Fa-f:.-])(?P<x>(?:[0-9A-Fa-f]{2}:){5,19}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2})(?![0-9A-Fa-f:-])"),
    _rule("ipv6", r"(?<![0-9A-Za-z:.])(?P<x>[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,8}(?:\d{0,3}(?:\.\d{1,3}){3})?)(?![0-9A-Za-z:_])", _is_ipv6),
    # Four numbers after `version`, `v`, `==` or a letter are a version, as in cudnn 9.1.0.70 or libx.so.1.2.3.4.
    _rule("ipv4", r"(?<![0-9A-Za-z.])(?<!==)(?<![vV]ersion )(?<![vV]ersion: )(?<![vV]ersion=)(?P<x>\d{1,3}(?:\.\d{1,3}){3})(?![0-9]|\.\d)", is_ipv4),
    # ip-10-0-0-12 and the like
    _rule("host", rf"{START}(?P<x>ip(?:-\d{{1,3}}){{4}}(?:\.{_NAME}){{0,8}}){END}"),
    _rule("host", rf"{START}(?P<x>(?:{_NAME}\.){{1,8}}(?:{'|'.join(_TLD)}))(?![A-Za-z0-9_-]|\.[A-Za-z0-9])", _is_domain),
)  # fmt: skip

BY_PLACE = (
    # Homes, wherever they are mounted.
    _rule("user", r"/(?:home|Users|users|homes|scratch|u)/(?P<x>[A-Za-z0-9._-]{1,64})(?=[/\s:\"',;)\]}]|$)", _is_user),
    _rule("user", r"(?i)\b(?:user(?:name|id)?|login|logname|owner|slurm_job_user)[\"']?\s?[=:]\s?[\"']?(?P<x>[a-z][\w.-]{0,40})", _is_user),
    _rule("user", r"\b(?:submitted by|(?:for|by|as|of) user) [\"']?(?P<x>[A-Za-z][\w.-]{0,40})", _is_user),
    _rule("user", rf"{START}(?P<x>[a-z_][a-z0-9_.-]{{0,31}})@(?={_NAME})", _is_user),
    # node[001-016,020]: a list of hosts as Slurm writes it
    _rule("host", r"(?<![\w.-])(?P<x>[A-Za-z][\w-]{1,40}\[\d[\d,-]{0,400}\])(?!<)", lambda t: "-" in t or "," in t),
    # master_addr=..., hostname: ..., --rdzv-endpoint=...:29500, SLURMD_NODENAME=...
    _rule("host", rf"(?i)(?:master_addr|host(?:name)?|node_?name|nodelist|rdzv[_-]endpoint|endpoint|server|peer|address)[\"']?\s{{0,12}}[=:]\s{{0,3}}[\"']?\[?(?P<x>{_HOST})", lambda t: is_host(t) and (any(c.isdigit() or c in ".-" for c in t))),
    _rule("host", rf"\b(?:on|of|from|to) (?:host|node|server) [\"'\[]?(?P<x>{_HOST})", lambda t: is_host(t) and any(c.isdigit() for c in t)),
    _rule("host", rf"\b(?:MASTER_ADDR|HOSTNAME|HOST|SLURMD_NODENAME|NODE_NAME|POD_NAME)=(?P<x>{_HOST})", is_host),
    _rule("host", rf"(?:connect(?:ion)? to|from|resolve|resolution of|bound to|listening on) [\"'\[(]{{0,2}}(?P<x>{_HOST})(?=[\])\"']{{0,2}}[:,] ?\d{{2,5}}\b)", is_host),
    # NCCL's prefix: host:pid:tid [0]
    _rule("host", rf"(?<![\w.:/-])(?P<x>{_HOST}):\d{{1,10}}:\d{{1,10}} (?:\[[0-9a-f?]{{1,4}}\]|NCCL)", is_host),
    # May 26 12:34:56 gpu17 kernel: ...
    _rule("host", rf"\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)? (?P<x>{_HOST}) (?:kernel|systemd|[\w.-]{{1,40}}\[\d{{1,10}}\]):", is_host),
    # [pod/train-worker-0/pytorch]
    _rule("host", rf"\[pod/(?P<x>{_HOST})/"),
    _rule("host", rf"\b(?:srun|slurmstepd): error: (?P<x>{_HOST}): ", lambda t: is_host(t) and any(c.isdigit() for c in t)),
    _rule("host", r"\b(?:on|at) (?P<x>[a-z][a-z0-9]{1,20}(?:-[a-z0-9]{1,20}){0,4}-?\d{1,6})(?![\w=.-]*[\w=])", lambda t: re.match(r"(?:rank|gpu|cuda|device|step|stage|epoch|port|cpu|sm|line|attempt|dim|layer)s?-?\d", t) is None),
    # Names that only machines have: gpu-node-01, dgx17, nid001234, worker-3
    _rule("host", r"(?<![\w.-])(?P<x>(?:[a-z0-9]{1,20}-){0,4}[a-z]{0,12}(?:dgx|hgx|gpu-?node|node|nid|compute|hpc|worker|login)(?:-[a-z0-9]{1,12}){0,4}-?\d{1,6})(?![\w=-])", lambda t: not re.search(r"rank|^(?:node|worker)\d$", t)),
    # What is left and looks drawn at random: keys, digests, container ids.
    _rule("token", r"(?<![A-Za-z0-9_+])(?P<x>(?!0x[0-9a-f]{1,16}\b)[A-Za-z0-9_+-]{20,}={0,2})(?![A-Za-z0-9_])", _is_random),
    _rule("token", r"(?<![A-Za-z0-9_+/-])(?P<x>(?=[A-Za-z0-9+/]{0,200}\d)(?=[A-Za-z0-9+]{0,200}/)[A-Za-z0-9+/]{40,}={0,2})(?![A-Za-z0-9_/])", _is_random),
)  # fmt: skip


def is_name(text: str) -> bool:
    """Whether a text may be replaced wherever it stands as a word: not where it is an ordinary one."""
    return len(text) > 1 and text.lower() not in _NO_HOST | _NO_USER and not text.isdigit()
