"""In which phase something struck, and where the other kind of init would have shown it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from printed import complete, nccl, start, timeout
from support import of_kind, read_texts

if TYPE_CHECKING:
    from pathlib import Path

H = "node01"
BANNER = nccl(H, 600, "NCCL version 2.28.9+cuda13.0") + nccl(H, 600, "Comm config Blocking set to 1")
START = start(H, 600, 0, 2)
TIMINGS = nccl(
    H, 600, "Bootstrap timings total 0.000764 (create 0.000044, send 0.000129, recv 0.0, ring 0.0, delay 0.0)"
)
COMPLETE = complete(H, 600, 0, 2)
RINGS = nccl(H, 600, "Connected all rings, use ring PXN 0 GDR 1")
STEPS = "".join(f"2026-11-30 19:41:1{i},214 INFO train: step {i} loss 0.0570\n" for i in range(8))
FAULT = nccl(H, 600, "enqueue.cc:1556 Cuda failure 'named symbol not found'", level="WARN")
DESTROY = nccl(H, 600, "comm 0x25800 rank 0 nranks 2 cudaDev 0 busId 60 - Destroy COMPLETE")

ORDERS = {
    "before the banner": (FAULT + BANNER + START, "rendezvous"),
    "after the banner": (BANNER + FAULT, "init"),
    "after START": (BANNER + START + FAULT, "bootstrap"),
    "after the ring of addresses": (BANNER + START + TIMINGS + FAULT, "init"),
    "after COMPLETE": (BANNER + START + TIMINGS + COMPLETE + FAULT, "first_collective"),
    "while rings connect": (BANNER + START + TIMINGS + COMPLETE + RINGS + FAULT, "first_collective"),
    "after steps": (BANNER + START + TIMINGS + COMPLETE + RINGS + STEPS + FAULT, "steady"),
    "after destroy": (BANNER + START + TIMINGS + COMPLETE + RINGS + STEPS + DESTROY + FAULT, "teardown"),
}


@pytest.mark.parametrize("name", ORDERS)
def test_phase_by_what_the_rank_had_reached(name: str, tmp_path: Path) -> None:
    """The same fault, at each place of one rank's log."""
    log, phase = ORDERS[name]
    seen = read_texts(tmp_path, {"job.log": log})
    fault = next(o for o in seen.facts.observations if o.kind == "nccl.cuda_failure")
    assert seen.facts.phase_of(fault) == phase


def test_the_first_numbers_are_the_first_collective(tmp_path: Path) -> None:
    """A timeout of number 1 is the first collective, of number 17 steady training."""
    for seq, phase in ((1, "first_collective"), (17, "steady")):
        seen = read_texts(tmp_path / str(seq), {"job.log": timeout(0, seq) + timeout(1, seq)})
        equal = of_kind(seen, "collective.equal")[0]
        assert seen.facts.phase_of(equal) == phase


def test_another_ranks_progress_is_this_ranks_too(tmp_path: Path) -> None:
    """A rank without output of its own fails while the others wait in number 17: that is no first collective."""
    raised = (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/workspace/train.py", line 80, in <module>\n[rank1]:     main()\n[rank1]: '
        "ValueError: bad sample\n"
    )
    seen = read_texts(tmp_path, {"job.log": BANNER + START + COMPLETE + RINGS + raised + timeout(0, 17)})
    assert seen.facts.phase_of(of_kind(seen, "py.exception")[0]) == "steady"


def test_no_phase_is_guessed_without_init_lines(tmp_path: Path) -> None:
    """With NCCL_DEBUG=WARN the banner is all that stands there: what came after it is not known to be init."""
    raised = 'Traceback (most recent call last):\n  File "/workspace/train.py", line 80, in <module>\n    main()\n'
    raised += "ValueError: x\n"
    seen = read_texts(tmp_path / "a", {"job.log": "NCCL version 2.28.9+cuda13.0\n" + STEPS + raised})
    assert seen.facts.phase_of(of_kind(seen, "py.exception")[0]) == "unknown"
    seen = read_texts(tmp_path / "b", {"job.log": raised})
    assert seen.facts.phase_of(of_kind(seen, "py.exception")[0]) == "unknown"
