"""What the project promises as a whole: one version, a public interface, and the speed that literals make possible."""

from __future__ import annotations

import re
from pathlib import Path

from support import shipped

import ncclscope
from ncclscope.gate import PlainGate
from ncclscope.index import PatternIndex
from ncclscope.parsers import BLOCKS, PATTERNS
from ncclscope.pipeline import raw_patterns

ROOT = Path(__file__).parent.parent

# What training programs print by the million; a literal that stands in such lines makes every log slow.
ORDINARY = """\
2026-01-05 10:00:41,100 INFO train: step 9 loss 2.3141 lr 1.000e-04 tokens/s 41234 mem 61.20GiB grad_norm 1.204
2026-01-05 10:00:41,300 WARNING data.loader: retrying shard read (2/5), no errors so far
[10:00:42.120] tokenizer: embedding 48213 attention took 12.4 ms on worker 17
Epoch 3:  47%|####7     | 4711/10000 [01:12<01:20, 65.10it/s, loss=2.314, grad_norm=1.204]
[2026-01-05 10:00:43] iteration     5310/  100000 | consumed samples:      5437440 | elapsed time per iteration (ms): 812.1 |
{'loss': 2.314, 'grad_norm': 1.2, 'learning_rate': 0.0001, 'epoch': 0.31}
[rank3]: saving checkpoint to /ckpt/step_9000 took 31.2 s, deleting /ckpt/step_7000
validation error 0.1214, best error so far 0.1201, timeout of the loader is 600 s, killed by early stopping: no
a01:11:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
a01:11:11 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1
"""


def test_there_is_one_version() -> None:
    """The package says what the metadata says."""
    declared = re.search(r'^version = "([^"]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert declared is not None
    assert ncclscope.__version__ == declared[1]


def test_the_public_names_are_there() -> None:
    """`from ncclscope import analyze` is the interface."""
    report = ncclscope.analyze([ROOT / "examples" / "silent-init"])
    assert isinstance(report, ncclscope.Report)
    assert isinstance(report.findings[0], ncclscope.Finding)
    assert report.findings[0].category == "arch-mismatch"


def test_no_literal_stands_in_ordinary_output() -> None:
    """Lines of a healthy run cost bytes and no objects."""
    index = PatternIndex([*PATTERNS, *raw_patterns(shipped())], BLOCKS, PlainGate)
    hits = {index.literals[number] for _, number in index.gate.hits(ORDINARY.encode())}
    assert hits == set()
