"""Several texts in one physical line: writes without a newline, and writers that ran into one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ncclscope.envelopes.inner import NCCL_PREFIX
from ncclscope.envelopes.layer import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["may_be_glued", "may_be_tagged", "split_tags", "starts"]

_TAGS = (
    # [1,1]<stderr>:   [prterun-node-01-31337@1,3][node-02:4242]<stderr>:
    r"\[[^\],\[\s]{1,255},\d{1,7}\](?:\[[^:\]\s]{1,255}:\d{1,10}\])?<(?:stdout|stderr|stddiag)>: ?",
    r"\[default\d{1,6}\]:",
)

_START = (
    r"\[rank\d{1,7}\]:"
    r"|\[[IWEF](?:\d{3,4} \d\d:\d\d:\d\d\.\d{6,9})? [\w./+-]{1,255}\.(?:cpp|hpp|h|cc|cu|cuh):\d{1,7}\] "
    r"|(?<![\w])[DVIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} {1,8}\d{1,20} torch/\S{1,255}:\d{1,7}\] "
    r"|(?<=[\])|%])Traceback \(most recent call last\):"
    r"|(?<=[\s\])|%])[\w./+-]{1,200}:\d{1,7}(?: \([^()]{0,200}\))? NCCL (?:WARN|INFO) "
    r"|(?:\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?\] )?(?<![\w.-])" + NCCL_PREFIX
)


def may_be_tagged(text: str) -> bool:
    """Whether a launcher's tag can stand in `text`; cheap, asked of every line."""
    return "]<std" in text or "[default" in text


class Tagged(msgspec.Struct, frozen=True):
    """A text taken apart at its tags.

    head: what stands before the first. parts: one text a tag, in order, its fragments joined. cut: whether a
    text had its own tag in the middle.
    """

    head: str
    parts: list[str]
    cut: bool


def split_tags(text: str) -> Iterator[Tagged]:
    """`text` taken apart by each kind of launcher tag that stands in it, the outer kind first.

    Writes of several processes can share a physical line, and one process's line can be cut by its own tag:
    `[1,1]<stderr>:Fatal Python error: [1,1]<stderr>:Segmentation fault` is one text.
    """
    for source in _TAGS:
        tags = list(compiled(source).finditer(text))
        if not tags:
            continue
        fragments: dict[str, list[str]] = {}
        ends = [tag.start() for tag in tags[1:]] + [len(text)]
        for tag, end in zip(tags, ends, strict=True):
            fragments.setdefault(tag[0], [])
            if tag.end() < end:
                fragments[tag[0]].append(text[tag.end() : end])
        # The newline of a line is often a write, and so a tag, of its own.
        parts = [tag + "".join(some) for tag, some in fragments.items() if some]
        cut = any(len(some) > 1 for some in fragments.values())
        yield Tagged(text[: tags[0].start()], parts or [tags[0][0]], cut)


def may_be_glued(body: str) -> bool:
    """Whether a line of a known producer can begin in the middle of `body`; cheap, asked of every line."""
    return "NCCL " in body or "[rank" in body or "pp:" in body or " torch/" in body or "Traceback (" in body


def starts(body: str, hosts: frozenset[str]) -> list[int]:
    """Where lines of known producers begin in the middle of `body`."""
    found: list[int] = []
    rank_end = -1
    for m in compiled(_START).finditer(body, 1):
        at = m.start()
        if m[1] is not None and hosts and m[1] not in hosts:
            # `loss 2.3162node-01:13571:13582 [0] NCCL INFO`: only a known host tells where the number ends
            host = max((h for h in hosts if m[1].endswith(h)), key=len, default=None)
            if host is not None:
                at = m.end(1) - len(host)
        if rank_end < 0 or body[rank_end:at].strip():  # `[rank1]:[E526 ...` is one prefix
            found.append(at)
        rank_end = m.end() if m[0].startswith("[rank") else -1
    return found
