"""Redaction: nothing that identifies a site or gives access to it is left, and what a diagnosis needs stays."""

from __future__ import annotations

import base64
import random
import string
import uuid

import pytest
from support import CASES, case, options, shipped

from ncclscope.pipeline import judge, read
from ncclscope.redact import Redactor, hosts_of
from ncclscope.report import Report, to_json
from ncclscope.reporters import html, markdown, terminal
from ncclscope.store import EventStore

ALPHANUMERIC = string.ascii_letters + string.digits


def _word(rng: random.Random, size: int, letters: str = ALPHANUMERIC) -> str:
    return "".join(rng.choice(letters) for _ in range(size))


def _hex(rng: random.Random, size: int) -> str:
    return _word(rng, size, "0123456789abcdef")


# kind -> (makes one, lines it stands in as programs print it)
def _kinds(rng: random.Random) -> dict[str, tuple[list[str], str]]:
    def some(make: object, count: int = 14) -> list[str]:
        return [make() for _ in range(count)]  # type: ignore[operator]

    lower = string.ascii_lowercase
    return {
        "host": (
            some(lambda: f"{_word(rng, 5, lower)}-gpu-{rng.randrange(10, 999)}"),
            "[2026-05-26 12:00:10] {}:923:923 [0] NCCL INFO Bootstrap : Using eth0",
        ),
        "domain": (
            some(lambda: f"{_word(rng, 6, lower)}.{_word(rng, 5, lower)}.example-corp.com"),
            "could not resolve {}: try again",
        ),
        "ipv4": (
            some(lambda: f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"),
            "NET/Socket : connection to {}<45123> failed",
        ),
        "ipv6": (
            some(lambda: f"2a02:{_hex(rng, 4)}:{_hex(rng, 4)}:1::{_hex(rng, 3)}"),
            "socketStart: Connect to [{}]:29500 failed",
        ),
        "mac": (some(lambda: ":".join(_hex(rng, 2) for _ in range(6)) or ""), "eth0: link up, address {}"),
        "user": (some(lambda: f"{_word(rng, 7, lower)}"), 'File "/home/{}/project/train.py", line 80, in main'),
        "email": (
            some(lambda: f"{_word(rng, 6, lower)}.{_word(rng, 5, lower)}@{_word(rng, 6, lower)}.org"),
            "contact {} for access",
        ),
        "cloud key": (
            some(lambda: "AKIA" + _word(rng, 16, string.ascii_uppercase + string.digits)),
            "using credentials {} from env",
        ),
        "cloud secret": (
            some(lambda: base64.b64encode(rng.randbytes(30)).decode()),
            "AWS_SECRET_ACCESS_KEY={} python train.py",
        ),
        "hub token": (some(lambda: "hf_" + _word(rng, 34)), "huggingface_hub: logged in with {}"),
        "git token": (some(lambda: "ghp_" + _word(rng, 36)), "cloning https://{}@github.com/org/repo.git"),
        "tracker key": (some(lambda: _hex(rng, 40)), "wandb: Appending key {} to the netrc"),
        "web token": (
            some(lambda: f"eyJ{_word(rng, 20)}.eyJ{_word(rng, 30)}.{_word(rng, 43)}"),
            "Authorization: Bearer {}",
        ),
        "password": (
            some(lambda: _word(rng, 6, lower) + str(rng.randrange(10, 99)) + "!"),
            "connecting with password={} to the store",
        ),
        "uuid": (
            some(lambda: str(uuid.UUID(int=rng.getrandbits(128), version=4))),
            "GPU 0: NVIDIA H200 (UUID: GPU-{})",
        ),
        "serial": (some(lambda: "165" + _word(rng, 10, string.digits)), "NVRM: GPU serial number: {}"),
    }


def _planted() -> tuple[str, dict[str, list[str]]]:
    rng = random.Random(20260526)  # noqa: S311 - the same secrets in every run
    kinds = _kinds(rng)
    lines = [line.format(value) for values, line in kinds.values() for value in values]
    rng.shuffle(lines)
    return "\n".join(lines), {kind: values for kind, (values, _) in kinds.items()}


def redacted(report: Report) -> Report:
    return Redactor().report(report)


def test_no_planted_secret_is_left() -> None:
    """More than 200 values of 16 kinds, each in a line as programs print it: none of them is in the output."""
    text, kinds = _planted()
    assert sum(map(len, kinds.values())) >= 200
    assert len(kinds) >= 15
    redactor = Redactor()
    redactor.learn(text)
    out = redactor.text(text).encode()
    left = {kind: [v for v in values if v.encode() in out] for kind, values in kinds.items()}
    assert {kind: values for kind, values in left.items() if values} == {}


def test_line_by_line_is_as_safe_as_the_whole() -> None:
    """Texts are redacted one by one in a report; each is safe without its neighbours."""
    text, kinds = _planted()
    redactor = Redactor()
    out = "\n".join(redactor.text(line) for line in text.splitlines()).encode()
    assert [v for values in kinds.values() for v in values if v.encode() in out] == []


def test_map_leads_back() -> None:
    """Putting the originals back gives the text as it was."""
    text, _ = _planted()
    redactor = Redactor()
    redactor.learn(text)
    out = redactor.text(text)
    names = redactor.mapping()
    for name in sorted(names, key=len, reverse=True):
        out = out.replace(name, names[name])
    assert out == text


@pytest.mark.parametrize(
    "text",
    [
        "[rank3]:[E526 12:34:56.123456789 ProcessGroupNCCL.cpp:689] [Rank 3] Watchdog caught collective timeout",
        "NVRM: Xid (PCI:0000:1b:00): 79, pid=1234, GPU has fallen off the bus.",
        "comm 0x55d5c0a1b2c0 rank 7 nranks 8 cudaDev 7 nvmlDev 7 busId 1b000 commId 0x65adb76f349e61cc - Init COMPLETE",
        "NCCL version 2.28.9+cuda13.0, torch 2.11.0, driver 570.86.10, cudnn version 9.1.0.70",
        "frame #3: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<long>) + 0x1c7 (0x7f32a3529ecc)",
        "frame #4: <unknown function> + 0x129ecc in /usr/lib/x86_64-linux-gnu/libc.so.6",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED",
        "Bootstrap : Using lo:127.0.0.1<0>, listening on 0.0.0.0:29500 and [::1]:29500",
        "mem_cgroup_iter+0x137/0x250 krcRcAndNotifyAllChannels_IMPL __filemap_get_folio",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 NCCL_IB_TIMEOUT=22 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "2026-05-26T12:34:56.123456+00:00 step 100 loss 2.3456 tokens/s 12345.678 tokenizer: LlamaTokenizerFast",
        "https://docs.nvidia.com/deploy/xid-errors/index.html",
        "out of memory on rank3, on cuda-0 and on gpu1 at step 12",
        "GPU 0000:00:07.0: link 5, lane 3; mlx5_0 port 1 state ACTIVE",
    ],
)
def test_what_a_diagnosis_needs_stays(text: str) -> None:
    """Ranks, PCI addresses, versions, times, pointers, symbols, settings and public pages are left alone."""
    assert Redactor().text(text) == text


def test_same_original_gets_the_same_name_everywhere() -> None:
    """Across texts, files, and the short and the full name of one host."""
    redactor = Redactor(["gpu-node-01"])
    first = redactor.text("gpu-node-01:923:923 [0] NCCL INFO x")
    assert first.startswith("host-1:923")
    assert redactor.text("/logs/gpu-node-01.log") == "/logs/host-1.log"
    assert redactor.text("ssh gpu-node-01.cluster.internal") == "ssh host-1.example.org"


def test_names_that_one_place_reveals_are_replaced_in_all() -> None:
    """A user named by a home directory, and a host named by a prefix, go wherever they stand as a word."""
    redactor = Redactor()
    redactor.learn("/home/msmith/run.sh")
    redactor.learn("May 26 12:34:56 calypso kernel: NVRM: loading")
    assert redactor.text("job of msmith on calypso, msmiths stays") == "job of user-1 on host-1, msmiths stays"


def test_key_of_several_lines_goes_whole_and_keeps_its_lines() -> None:
    """A private key in a log is one token; the lines after it keep their numbers."""
    text = "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabcd\n-----END RSA PRIVATE KEY-----\nb"
    out = Redactor().text(text)
    assert "MIIE" not in out
    assert out.count("\n") == text.count("\n")
    assert out.splitlines()[5] == "b"


def test_names_that_only_look_like_numbers_are_ordered_like_all_others() -> None:
    names = ["node10", "node2", "²", "9" * 5000]
    assert hosts_of(EventStore(), names) == ["9" * 5000, "node2", "node10", "²"]


def test_link_local_addresses_stay_link_local() -> None:
    """An address on the wrong interface is a finding; which address it was is not."""
    assert Redactor().text("Using docker0:169.254.3.4<0>").startswith("Using docker0:169.254.")


def _answers(report: Report) -> list[object]:
    return [(f.rule, f.role, f.category, f.confidence, f.culprit.ranks, f.culprit.gpus) for f in report.findings]


@pytest.mark.parametrize("name", [c.name for c in CASES])
def test_labelled_logs_lose_their_names_and_keep_their_findings(name: str) -> None:
    """In no format is a host, address or path of the original left, and the findings are the same."""
    seen = read(case(name).paths, options=options(), pack=shipped())
    report = judge(seen, shipped(), picture=True)
    redactor = Redactor(hosts_of(seen.store, seen.facts.hosts))
    safe = redactor.report(report)
    assert _answers(safe) == _answers(report)
    outputs = [to_json(safe), html.render(safe), markdown.render(safe), terminal.render(safe, to_terminal=False)]
    # The shortest names are also ordinary words of messages; the tests above hold those.
    originals = [o for n, o in redactor.mapping().items() if len(o) > 5 and n != o]
    for out in outputs:
        assert [o for o in originals if o.encode() in out.encode()] == []
