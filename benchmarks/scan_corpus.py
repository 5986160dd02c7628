"""Makes an archive of job logs for the benchmarks and tests of `scan`, from the labelled logs in tests/fixtures/cases.

    python benchmarks/scan_corpus.py OUT [--mb 256] [--failing 0.05] [--seed 1] [--plain] [--lines 12000]
                                     [--bad-node NAME] [--bad-share 0.33]
    python benchmarks/scan_corpus.py OUT --dense RANKS [--plain]

Each job is a directory job-NNNNNN with the lines of a template and, after the communicators were made, the noise of a
long run. Hosts get new names. truth.json in OUT names each job's template and hosts. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

CASES = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "cases"
HEALTHY = ("healthy-eager-all", "healthy-226", "healthy-218-2node", "w8-healthy")
FAILING = ("device-assert", "oom-gpu", "shm-dataloader", "raise-bare", "coll-mismatch-detail", "ima", "world-mismatch")
_HOST = re.compile(r"\b(?:gpu-node|hpc-gpu|train-7f9c-worker|dgx)-\d+")
_WORDS = "shard loader prefetch tokenizer attention optimizer scheduler checkpoint gradient microbatch warmup".split()


def noise(random_: random.Random, count: int) -> Iterator[str]:
    """What a training script prints while nothing happens."""
    for step in range(count):
        kind = random_.random()
        clock = f"{step // 3600 % 24:02}:{step // 60 % 60:02}:{step % 60:02}"
        word = random_.choice(_WORDS)
        if kind < 0.55:
            loss, rate = random_.random() * 3, random_.randrange(9000, 99000)
            yield f"2026-11-29 {clock},123 INFO train: step {step} loss {loss:.4f} tokens/s {rate} grad_norm {loss / 2:.3f}"
        elif kind < 0.8:
            done = random_.randrange(100)
            yield f"Epoch {step // 500}:  {done:2d}%|{'#' * (done // 10):<10}| {step}/10000 [{clock}<{clock}, {loss_of(done)}]"
        elif kind < 0.95:
            yield f"[{clock}.{step % 1000:03}] {word}: {random_.choice(_WORDS)} {step} took {kind * 900:.1f} ms on worker {step % 64}"
        else:
            yield f"WARNING {word}.{random_.choice(_WORDS)}: retrying {word} read ({step % 4}/5), no errors so far"


def loss_of(done: int) -> str:
    """The end of a progress bar."""
    return f"{done / 11:.2f}it/s, loss={done / 100:.3f}"


def _open(path: Path, *, plain: bool) -> BinaryIO:
    if plain:
        return path.open("wb")
    return cast(BinaryIO, gzip.GzipFile(f"{path}.gz", "wb", compresslevel=6, mtime=0))


def _put(path: Path, lines: Iterable[str], *, plain: bool) -> int:
    size = 0
    with _open(path, plain=plain) as file:
        for line in lines:
            size += file.write(f"{line}\n".encode())
    return size


def make_corpus(
    out: Path,
    *,
    jobs: int | None = None,
    mb: int = 256,
    failing: float = 0.05,
    seed: int = 1,
    plain: bool = False,
    lines: int = 12000,
    bad_node: str | None = None,
    bad_share: float = 0.33,
) -> list[dict[str, Any]]:
    """Writes `jobs` jobs, or as many as `mb` MiB of text take, into the new directory `out`; returns what is true."""
    random_ = random.Random(seed)  # noqa: S311 - the same corpus every time is the point
    out.mkdir(parents=True)
    truth: list[dict[str, Any]] = []
    size = 0
    while len(truth) < jobs if jobs is not None else size < mb << 20:
        fails = random_.random() < failing
        template = random_.choice(FAILING if fails else HEALTHY)
        guilty = bad_node if fails and bad_node and random_.random() < bad_share else None
        size += _job(out / f"job-{len(truth):06}", template, random_, lines, guilty, truth, plain=plain)
    (out / "truth.json").write_text(json.dumps(truth, indent=0))
    return truth


def _job(
    place: Path,
    template: str,
    random_: random.Random,
    lines: int,
    guilty: str | None,
    truth: list[dict[str, Any]],
    *,
    plain: bool,
) -> int:
    place.mkdir()
    names: dict[str, str] = {}

    def rename(m: re.Match[str]) -> str:
        return names.setdefault(m[0], guilty if guilty and not names else f"node{random_.randrange(4000):04d}")

    size = 0
    for source in sorted((CASES / template).iterdir()):
        if source.suffix != ".log":
            continue
        text = _HOST.sub(rename, source.read_text(errors="replace")).removesuffix("\n").split("\n")
        begun = [i for i, line in enumerate(text) if "Init COMPLETE" in line or "Connected all" in line]
        at = begun[-1] + 1 if begun and not source.name.startswith("dmesg") else len(text)
        some = noise(random_, random_.randrange(lines // 2, lines * 3 // 2 + 1)) if at < len(text) else ()
        size += _put(place / source.name, [*text[:at], *some, *text[at:]], plain=plain)
    truth.append(
        {"job": place.name, "template": template, "fails": template in FAILING, "hosts": sorted(names.values())}
    )
    return size


def make_dense(out: Path, ranks: int, *, plain: bool = False) -> int:
    """One job in which every line is NCCL's, with all subsystems on; returns the bytes of text."""
    text = (CASES / "healthy-eager-all" / "job.log").read_text(errors="replace").splitlines()
    own = [line for line in text if "NCCL INFO" in line and "[0] NCCL" in line]
    place = out / "job-000000"
    place.mkdir(parents=True)
    size = 0
    for rank in range(ranks):
        host = f"node{rank // 8:04d}"
        renamed = (_HOST.sub(host, line).replace("nranks 2", f"nranks {ranks}") for line in own)
        mine = (re.sub(r"\brank 0\b", f"rank {rank}", line) for line in renamed)
        size += _put(place / f"rank{rank}.log", mine, plain=plain)
    return size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=int, default=256)
    parser.add_argument("--failing", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--lines", type=int, default=12000)
    parser.add_argument("--bad-node")
    parser.add_argument("--bad-share", type=float, default=0.33)
    parser.add_argument("--dense", type=int)
    a = parser.parse_args()
    if a.dense:
        print(f"1 job, {a.dense} ranks, {make_dense(a.out, a.dense, plain=a.plain) >> 20} MiB of text")
        return
    truth = make_corpus(
        a.out, mb=a.mb, failing=a.failing, seed=a.seed, plain=a.plain, lines=a.lines, bad_node=a.bad_node,
        bad_share=a.bad_share,
    )  # fmt: skip
    print(f"{len(truth)} jobs, {sum(t['fails'] for t in truth)} of them failing")


if __name__ == "__main__":
    main()
