"""Python tracebacks, one event each: what was raised, where in the user's code, and what it echoes."""

from __future__ import annotations

import re

import msgspec

from ncclscope.lazy import lazy
from ncclscope.model import Event, Line, Value
from ncclscope.parsers.pattern import Block
from ncclscope.parsers.torch_exceptions import Judgement, judge, simple_name
from ncclscope.parsers.torch_frames import Frame, collective_of, user_frame
from ncclscope.parsers.torch_tags import numbers

__all__ = ["BLOCKS", "FIELDS"]

FIELDS = (
    *(
        "type",
        "message",
        "nature_of",
        "nature",
        "cause",
        "suggests",
        "root_type",
        "root_message",
        "last_error",
    ),
    *("frame_file", "frame_line", "frame_func", "user_file", "user_line", "user_func", "collective", "depth"),
    *("module_missing", "local_rank", "ranks", "thread", "chained", "embedded", "quoted", "ignored"),
)

_HEAD = lazy(r"Traceback \(most recent call last\)")
# File "/app/train.py", line 15, in main      (and, without the comma, faulthandler)
_FRAME = lazy(r'\s*File "(?P<file>[^"]{1,1000})", line (?P<line>\d+),? in (?P<func>.{1,200}?)\s*$')
# Module-level SyntaxError frames carry no function: File "/app/x.py", line 3
_BARE_FRAME = lazy(r'\s*File "(?P<file>[^"]{1,1000})", line (?P<line>\d+)\s*$')
# rich: /app/train.py:15 in main
_RICH_FRAME = lazy(r"(?P<file>/\S{1,500}\.py):(?P<line>\d+) in (?P<func>\S{1,200})\s*$")
# The name of a built-in exception, or of any class with its module before it.
_RAISED = lazy(
    r"(?P<type>(?:(?:[A-Za-z_]\w{0,100}|<locals>)\.){1,12}[A-Za-z_<]\w{0,100}>?|"
    r"(?:[A-Z]\w{0,80})?(?:Error|Exception|Interrupt|Exit|Iteration|Warning|ExceptionGroup))"
    r"(?:\((?P<of>[\w.]{1,100})\))?(?:: ?(?P<message>.*))?$",
    re.DOTALL,
)
_DURING = "During handling of the above exception, another exception occurred"
_DIRECT = "The above exception was the direct cause of the following exception"
_SPAWNED = lazy(r"-- Process (?P<n>\d+) terminated with the following error:")
_SNIPPET = lazy(r"\[Rank (?P<ranks>\d+(?:,\d+)*) Error Snippet\]:")
_GROUP_RULE = lazy(r"[\s|]*\+-[-+ ]*(?:\d+ -+|-+)\s*$")
_GROUP_EDGE = lazy(r"^\s*(?:\|\s?|\+\s(?=Exception Group))+")

# Lines of a program between the frames and the exception, before we give up.
_MAX_FOREIGN = 40
# Lines of a message after its first.
_MAX_MESSAGE = 60


class _Part(msgspec.Struct):
    """One `Traceback` with the exception that ends it."""

    # "first", "context" (during handling), "cause" (raise from) or "embedded" (the text of another process)
    link: str
    frames: list[Frame] = msgspec.field(default_factory=list)
    repeated: int = 0
    type: str | None = None
    of: str | None = None
    message: str = ""
    more: list[str] = msgspec.field(default_factory=list)
    line: Line | None = None
    local_rank: int | None = None
    ranks: tuple[int, ...] = ()

    def text(self) -> str:
        return "\n".join((self.message, *self.more))

    def judgement(self) -> Judgement | None:
        return judge(self.type, self.text()) if self.type is not None else None


class _Traceback:
    """Collects a traceback with everything chained to it or quoted in its message."""

    def __init__(self, opener: Line, *, started: bool, quoted: bool = False, ignored: bool = False) -> None:
        self._opener = opener
        self._quoted = quoted
        self._ignored = ignored
        self._thread: str | None = None
        self._base = len(opener.text) - len(opener.text.lstrip()) if started else 0
        self._parts: list[_Part] = []
        self._link: str | None = None if started else "first"
        self._local_rank: int | None = None
        self._ranks: tuple[int, ...] = ()
        self._state = "frames" if started else "between"
        self._foreign = 0
        self._lines = 1
        self._group = "Exception Group Traceback" in opener.text
        if started:
            self._parts.append(_Part("first"))

    def named(
        self, thread: str | None = None, local_rank: int | None = None, ranks: tuple[int, ...] = ()
    ) -> _Traceback:
        """The same, knowing which thread, spawned process or ranks raised."""
        self._thread = thread
        self._local_rank = local_rank
        self._ranks = ranks
        return self

    def feed(self, line: Line) -> bool:
        text = self._bare(line.text)
        if self._state == "frames":
            keep = self._in_frames(text, line)
        elif self._state == "message":
            keep = self._in_message(text, line)
        else:
            keep = self._between(text)
        if keep:
            self._lines += 1
        return keep

    def _bare(self, text: str) -> str:
        """Without the indentation of the opener (a failure table) and the edges of groups and panels."""
        text = text.rstrip()
        if self._group or text.lstrip().startswith(("| ", "+ Exception Group")):
            text = _GROUP_EDGE.sub("", text)
        elif text.startswith("\u2502"):
            text = text.strip("\u2502 ")
        if self._base and not text[: self._base].strip():
            text = text[self._base :]
        return text

    def _in_frames(self, text: str, line: Line) -> bool:
        part = self._parts[-1]
        if _HEAD.search(text):
            if not part.frames and part.type is None and self._foreign == 0 and len(self._parts) == 1:
                # Rich and some loggers print the head twice.
                return self._lines == 1
            return False
        frame = _FRAME.match(text) or _BARE_FRAME.match(text) or _RICH_FRAME.search(text)
        if frame is not None:
            groups = frame.groupdict()
            part.frames.append(Frame(groups["file"], int(groups["line"]), groups.get("func") or ""))
            self._foreign = 0
            return True
        repeat = re.match(r"\s*\[Previous line repeated (\d+) more times?\]", text)
        if repeat:
            part.repeated += int(repeat[1])
            return True
        if not text.strip() or text[:1] in " \t~^\u2570\u256d\u2500" or _GROUP_RULE.match(text):
            return True
        raised = _RAISED.match(text)
        if raised is not None and _plausible(raised) and (part.frames or self._foreign == 0):
            part.type = raised["type"] + (f"({raised['of']})" if raised["of"] else "")
            part.of = raised["of"]
            part.message = (raised["message"] or "").strip()
            part.line = line
            self._state = "message"
            return True
        self._foreign += 1
        return self._foreign <= _MAX_FOREIGN

    def _in_message(self, text: str, line: Line) -> bool:
        part = self._parts[-1]
        if not text.strip():
            self._state = "between"
            return True
        if self._marker(text):
            return True
        head = _HEAD.search(text)
        if head is not None:
            # A message that quotes another process's traceback: DataLoader's `Original Traceback`, an
            # exception group, torch.multiprocessing. A bare head right after an exception is somebody else's.
            if not (text.startswith("Original ") or self._group or _SPAWNED.search(part.message)):
                return False
            self._begin("embedded")
            return True
        if _FRAME.match(text):  # Ray prints the remote frames as the message
            self._begin("embedded")
            return self._in_frames(text, line)
        if len(part.more) >= _MAX_MESSAGE:
            return False
        part.more.append(text[:1000])
        return True

    def _between(self, text: str) -> bool:
        if not text.strip() or _GROUP_RULE.match(text):
            return True
        if self._marker(text):
            return True
        if _HEAD.search(text):
            if self._link is None and not text.startswith("Original ") and not self._group:
                return False
            self._begin(self._link or "embedded")
            return True
        # NCCL's explanation stands under the exception, with an empty line in some versions.
        if (
            self._parts
            and self._parts[-1].type
            and re.match(r"(?:nccl\w+Error|Last error):|Cuda failure", text)
        ):
            self._parts[-1].more.append(text[:1000])
            self._state = "message"
            return True
        return False

    def _marker(self, text: str) -> bool:
        """Whether `text` announces the next traceback."""
        if text.startswith(_DURING):
            self._link = "context"
        elif text.startswith(_DIRECT):
            self._link = "cause"
        elif spawned := _SPAWNED.search(text):
            self._link = "embedded"
            self._local_rank = int(spawned["n"])
        elif snippet := _SNIPPET.search(text):
            self._link = "embedded"
            self._ranks = numbers(snippet["ranks"])
        elif _GROUP_RULE.match(text) and self._group:
            self._link = "embedded"
        else:
            return False
        self._state = "between"
        return True

    def _begin(self, link: str) -> None:
        self._parts.append(_Part(link, local_rank=self._local_rank, ranks=self._ranks))
        self._link = self._local_rank = None
        self._ranks = ()
        self._foreign = 0
        self._state = "frames"

    def close(self) -> list[Event]:
        chains: list[list[_Part]] = []
        for part in self._parts:
            if (part.link == "embedded" and part.frames) or not chains:
                chains.append([part])
            elif part.frames or part.type:
                chains[-1].append(part)
        if not chains:
            return []
        if not any(part.frames or part.type for chain in chains for part in chain):
            return []
        outer = chains[0]
        inner = next((chain for chain in chains[1:] if chain[-1].type), None)
        if inner is None:
            return [self._event(outer)]
        if outer[-1].type is not None and re.match(
            r"Caught \S+ in (?:DataLoader|replica|pin memory)", outer[-1].message
        ):
            return [self._event(outer, inner)]
        return [self._event(outer), self._event(inner, embedded=True)]

    def _event(self, chain: list[_Part], quoted: list[_Part] | None = None, embedded: bool = False) -> Event:
        """The event of a chain; `quoted` is the traceback of a worker process that its message repeats."""
        last, first = chain[-1], (quoted or chain)[0]
        origin = (quoted or chain)[-1] if first.type is None else first
        fields: dict[str, Value] = {"depth": len(last.frames) + last.repeated, "chained": len(chain) > 1}
        if last.type is not None:
            fields["type"] = last.type
            fields["message"] = last.message[:300]
        if origin is not last and origin.type is not None:
            fields["root_type"] = origin.type
            fields["root_message"] = origin.message[:300]
        fields.update(_judged(last, origin))
        place = origin if origin.frames else last
        if place.frames:
            inmost = place.frames[-1]
            fields.update(frame_file=inmost.file, frame_line=inmost.line, frame_func=inmost.func)
            user = user_frame(place.frames) or user_frame(last.frames)
            if user is not None:
                fields.update(user_file=user.file, user_line=user.line, user_func=user.func)
        collective = collective_of(last.frames)
        if collective is not None:
            fields["collective"] = collective
        missing = re.search(r"No module named '([\w.]+)'", f"{origin.message} {last.message}")
        if missing:
            fields["module_missing"] = missing[1]
        said = _last_error(last)
        if said:
            fields["last_error"] = said[:300]
        if chain[0].local_rank is not None:
            fields["local_rank"] = chain[0].local_rank
        if chain[0].ranks:
            fields["ranks"] = chain[0].ranks
        if self._thread:
            fields["thread"] = self._thread
        if self._quoted:
            fields["quoted"] = True
        if embedded:
            fields["embedded"] = True
        if self._ignored:
            fields["ignored"] = True
            fields["nature"] = "noise"
            fields.pop("cause", None)
        line = last.line or self._opener
        return Event("py.exception", fields, line.env, line.ref, line.text, lines=self._lines)


def _plausible(raised: re.Match[str]) -> bool:
    """Dotted words also start ordinary lines (`train.step 3`, `10.0.0.1: up`); an exception is a class."""
    name = simple_name(raised["type"])
    if name.endswith("Warning"):  # printed by the warnings module far more often than raised
        return False
    if "." not in raised["type"]:
        return True
    return name[:1].isupper() or name in ("gaierror", "herror", "timeout", "error")


def _judged(last: _Part, origin: _Part) -> dict[str, Value]:
    """The judgement of the first exception, unless only the last one names a fault of its own."""
    final, root = last.judgement(), origin.judgement()
    if root is None or final is None:
        chosen = root or final
        return chosen.fields() if chosen is not None else {"nature": "symptom"}
    if origin is last:
        return final.fields()
    # A fallback that raised first (a missing key, an optional import) is not why the last one failed.
    if root.nature_of in ("own", "import") and final.nature_of in ("oom", "cuda", "nan", "limit"):
        return final.fields()
    return root.fields()


def _last_error(part: _Part) -> str | None:
    """NCCL's own explanation: the line after `Last error:`."""
    lines = [part.message, *part.more]
    for number, text in enumerate(lines):
        found = re.match(r"Last error:\s*(.*)", text)
        if found:
            return found[1] or (lines[number + 1] if number + 1 < len(lines) else None)
    return None


def _open(_: re.Match[str], line: Line) -> _Traceback | None:
    return _Traceback(line, started=True, quoted=bool(re.match(r"\s*traceback\s*: ", line.text)))


BLOCKS: tuple[Block, ...] = (
    # [rank1]: Traceback (most recent call last):     + Exception Group Traceback (most recent call last):
    Block(
        {"py.exception": FIELDS},
        "Traceback (most recent call last)",
        r"Traceback \(most recent call last\)",
        _open,
    ),
    # Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f...>   (a destructor;
    # harmless)
    Block(
        {"py.exception": FIELDS},
        "Exception ignored in",
        r"Exception ignored in(?: atexit callback| sys\.unraisablehook)?: ",
        lambda _, line: _Traceback(line, started=False, ignored=True),
    ),
    # --- Logging error ---   (a handler that failed to print; harmless)
    Block(
        {"py.exception": FIELDS},
        "--- Logging error ---",
        r"--- Logging error ---",
        lambda _, line: _Traceback(line, started=False, ignored=True),
    ),
    # Exception in thread Thread-4 (_pin_memory_loop):
    Block(
        {"py.exception": FIELDS},
        "Exception in thread ",
        r"Exception in thread (?P<thread>[^:]{1,100}):",
        lambda m, line: _Traceback(line, started=False).named(thread=m["thread"]),
    ),
    # -- Process 1 terminated with the following error:   (torch.multiprocessing.spawn, when its own head
    # was cut off)
    Block(
        {"py.exception": FIELDS},
        "terminated with the following error:",
        r"-- Process (?P<n>\d+) terminated with the following error:",
        lambda m, line: _Traceback(line, started=False).named(local_rank=int(m["n"])),
    ),
    # [Rank 0,1 Error Snippet]:   (Ray Train V2; the only line that says which ranks raised)
    Block(
        {"py.exception": FIELDS},
        "Error Snippet]:",
        _SNIPPET.pattern,
        lambda m, line: _Traceback(line, started=False).named(ranks=numbers(m["ranks"])),
    ),
)
