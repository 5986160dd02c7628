"""NCCL's and PyTorch's settings as the job would see them, and what is known of their names."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ncclscope.preflight.library import version_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ncclscope.preflight.node import Node

Kind = Literal["int", "text", "plugin"]
Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable with its value and where it was set: 'environment' or the path of a NCCL settings file."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class KnownVariable:
    """A variable that NCCL reads.

    First and last release (last None: still read) and how its value is read.
    """

    name: str
    first: Version | None
    last: Version | None
    kind: Kind


# What PyTorch's NCCL process group and its flight recorder read (releases 2.1 to 2.12). Sources: PyTorch's
# page of NCCL variables and the names in ProcessGroupNCCL.
TORCH_VARIABLES = frozenset(
    f"TORCH_{name}"
    for name in (
        "NCCL_ABORT_IN_DESTROY_PG",
        "NCCL_ASYNC_ERROR_HANDLING",
        "NCCL_AVOID_RECORD_STREAMS",
        "NCCL_BCAST_UNIQUEID",
        "NCCL_BLOCKING_WAIT",
        "NCCL_COORD_CHECK_MILSEC",
        "NCCL_CUDA_EVENT_CACHE",
        "NCCL_DEBUG_INFO_PIPE_FILE",
        "NCCL_DEBUG_INFO_TEMP_FILE",
        "NCCL_DESYNC_DEBUG",
        "NCCL_DUMP_ON_TIMEOUT",
        "NCCL_ENABLE_MONITORING",
        "NCCL_ENABLE_TIMING",
        "NCCL_EXTRA_DUMP_ON_EXEC",
        "NCCL_HEARTBEAT_TIMEOUT_SEC",
        "NCCL_HIGH_PRIORITY",
        "NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN",
        "NCCL_NAN_CHECK",
        "NCCL_NONBLOCKING_TIMEOUT",
        "NCCL_PROPAGATE_ERROR",
        "NCCL_RANKS_PER_ROOT",
        "NCCL_RETHROW_CUDA_ERRORS",
        "NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING",
        "NCCL_TRACE_BUFFER_SIZE",
        "NCCL_TRACE_CPP_STACK",
        "NCCL_USE_COMM_NONBLOCKING",
        "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
        "NCCL_WAIT_TIMEOUT_DUMP_MILSEC",
        "FR_BUFFER_SIZE",
        "FR_CPP_STACK",
        "FR_DUMP_DYNAMIC_FILE_NAME",
        "FR_DUMP_TEMP_FILE",
        "CPP_LOG_LEVEL",
        "DISTRIBUTED_DEBUG",
        "SHOW_CPP_STACKTRACES",
        "USE_CUDA_DSA",
    )
)

# Names under PyTorch's old prefix. 2.2 added TORCH_ to them; the old ones still work but print a warning.
OLD_TORCH_NAMES = frozenset(
    f"NCCL_{name}"
    for name in (
        "ASYNC_ERROR_HANDLING",
        "AVOID_RECORD_STREAMS",
        "BLOCKING_WAIT",
        "DESYNC_DEBUG",
        "ENABLE_TIMING",
        "HIGH_PRIORITY",
        "USE_COMM_NONBLOCKING",
    )
)

# Set by images, build systems and tests; NCCL does not read them and nobody expects it to.
_BYSTANDERS = re.compile(
    r"NCCL_(ROOT|ROOT_DIR|HOME|DIR|PATH|LIB|LIBRARY|LIBRARIES|LIB_DIR|INCLUDE|INCLUDE_DIR|INCLUDE_DIRS|VERSION|VER|"
    r"INSTALL_PATH|BUILD_DIR|TESTS?_.*|.*_PACKAGE.*|LIBPATH|SO_PATH)$"
)


@lru_cache(maxsize=1)
def known_variables() -> dict[str, KnownVariable]:
    """The table of NCCL's own variables by name."""
    table: dict[str, KnownVariable] = {}
    text = (Path(__file__).parent / "known_variables.tsv").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, first, last, kind = line.split("\t")
        if kind not in ("int", "text", "plugin"):
            raise ValueError(f"known_variables.tsv: {name} has the unknown kind {kind!r}")
        table[name] = KnownVariable(name, version_numbers(first), version_numbers(last), kind)  # type: ignore[arg-type]
    return table


def nccl_settings(node: Node) -> dict[str, Setting]:
    """NCCL_* as NCCL reads them: environment, then ~/.nccl.conf (or NCCL_CONF_FILE), then /etc/nccl.conf."""
    found = {
        name: Setting(name, value, "environment")
        for name, value in node.environ.items()
        if name.startswith("NCCL_")
    }
    personal = node.environ.get("NCCL_CONF_FILE") or f"{node.environ.get('HOME', '/root')}/.nccl.conf"
    for path in (personal, "/etc/nccl.conf"):
        for name, value in _lines_of(node.read(path) or ""):
            found.setdefault(name, Setting(name, value, path))
    return found


def _lines_of(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not name.lstrip().startswith("#"):
            yield name.strip(), value.strip()


def is_bystander(name: str) -> bool:
    """Whether an NCCL_ name is one that images and builds set for themselves."""
    return _BYSTANDERS.fullmatch(name) is not None


def nearest(name: str, known: frozenset[str]) -> str | None:
    """The known name that a typing error most likely meant."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.86)
    return close[0] if close else None


def flag(value: str) -> bool | None:
    """How PyTorch reads a switch: '1' on, '0' off, anything else is no answer."""
    return {"1": True, "0": False}.get(value.strip())


def integer(value: str) -> int:
    """What C's strtoll reads, which is how NCCL takes integers: text without leading digits is 0."""
    match = re.match(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|\d+)", value)
    if match is None:
        return 0
    digits = match.group(2)
    base = 16 if digits[:2].lower() == "0x" else 8 if digits.startswith("0") and digits.isdigit() else 10
    if base == 8:
        digits = re.match(r"[0-7]*", digits).group() or "0"  # type: ignore[union-attr]
    number = int(digits, base)
    return -number if match.group(1) == "-" else number


def is_on(settings: Mapping[str, Setting], name: str) -> bool:
    """Whether NCCL reads 1 for a switch."""
    return name in settings and integer(settings[name].value) == 1


@dataclass(frozen=True, slots=True)
class Torch:
    """The PyTorch that is installed, read from its files: its version and the CUDA it was built with."""

    version: str
    cuda: str | None
    path: str

    @property
    def numbers(self) -> Version:
        return version_numbers(self.version) or ()


# torch/version.py: "cuda = '11.8'" (2.0),
# "cuda: Optional[str] = '12.8'" (2.6), "cuda: str | None = '13.0'" (2.9)
_CUDA_LINE = re.compile(r"^cuda(?:\s*:[^=]+)?\s*=\s*['\"]([\d.]+)['\"]", re.MULTILINE)
_PYTHON_HOMES = ("/usr/lib", "/usr/local/lib", "/opt/conda/lib", "/opt/venv/lib", "/venv/lib")


def find_torch(node: Node) -> Torch | None:
    """PyTorch by its dist-info directory: this Python's, else that of the usual places; never imports it."""
    for directory in _package_directories(node):
        for name in node.names(directory):
            match = re.fullmatch(r"torch-(\d[^-]*)\.dist-info", name)
            if match is not None:
                cuda = _CUDA_LINE.search(node.read(f"{directory}/torch/version.py") or "")
                return Torch(match.group(1), None if cuda is None else cuda.group(1), f"{directory}/{name}")
    return None


def _package_directories(node: Node) -> Iterator[str]:
    yield from node.python_paths()
    homes = [
        f"{node.environ[name]}/lib" for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if node.environ.get(name)
    ]
    for home in (*homes, *_PYTHON_HOMES):
        for python in node.names(home):
            if python.startswith("python3"):
                yield f"{home}/{python}/site-packages"
                yield f"{home}/{python}/dist-packages"
