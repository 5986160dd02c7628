"""The machine as the checks see it: the only place where preflight touches files, processes and sockets."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import ipaddress
import os
import resource
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from ncclscope.preflight import gpus as gpu_probe
from ncclscope.preflight import library as nccl_library

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ncclscope.preflight.gpus import GpuSnapshot
    from ncclscope.preflight.library import Library

T = TypeVar("T")

_READ_LIMIT = 4 << 20
_GPU_SECONDS = 12.0


class _Once(Generic[T]):
    """Runs a function at most once, for whichever thread asks first; the others wait for its answer."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._lock = threading.Lock()
        self._answers: list[T] = []

    def __call__(self) -> T:
        with self._lock:
            if not self._answers:
                self._answers.append(self._function())
            return self._answers[0]


class Node:
    """One host. Reads below `root` and `environ`, so that a check runs the same on a made-up tree.

    A method answers None, an empty list or a reason where the machine does not answer; none raises OSError.
    """

    def __init__(self, root: Path = Path("/"), environ: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.environ: Mapping[str, str] = dict(os.environ) if environ is None else environ
        self.gpus = _Once(self._gpus)
        self.library = _Once(self._library)

    def path(self, path: str) -> Path:
        """The place of an absolute path of the machine below `root`."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str | None:
        """Text of a file without the white space around it; None if it is not there or not readable."""
        data = self.read_bytes(path)
        return None if data is None else data.decode("utf-8", "replace").strip()

    def read_bytes(self, path: str, limit: int = _READ_LIMIT) -> bytes | None:
        """At most `limit` bytes of a file; None if it is not there or not readable."""
        try:
            with self.path(path).open("rb", buffering=0) as file:
                return file.read(limit)
        except OSError:
            return None

    def kernel_log(self, limit: int = 16 << 20) -> str | OSError:
        """The kernel's messages as /dev/kmsg gives them, one record a line, without waiting for new ones."""
        chunks: list[bytes] = []
        try:
            handle = os.open(self.path("/dev/kmsg"), os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            return error
        try:
            while sum(map(len, chunks)) < limit:
                try:
                    chunk = os.read(handle, 8192)
                except BlockingIOError:
                    break
                except OSError as error:
                    # EPIPE: the record was overwritten while it was read; the next read goes on after it.
                    if error.errno == errno.EPIPE:
                        continue
                    return error
                if not chunk:
                    break
                chunks.append(chunk)
        finally:
            os.close(handle)
        return b"".join(chunks).decode("utf-8", "replace")

    def names(self, path: str) -> list[str]:
        """Sorted names in a directory; empty if there is none."""
        try:
            return sorted(entry.name for entry in self.path(path).iterdir())
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        try:
            return self.path(path).exists()
        except OSError:
            return False

    def link_target(self, path: str) -> str | None:
        """What a symbolic link holds; None if the path is none."""
        try:
            return str(self.path(path).readlink())
        except OSError:
            return None

    def disk(self, path: str) -> tuple[int, int] | None:
        """Total and free bytes of the file system at `path`."""
        try:
            stat = os.statvfs(self.path(path))
        except OSError:
            return None
        return stat.f_frsize * stat.f_blocks, stat.f_frsize * stat.f_bavail

    def limit(self, name: str) -> tuple[int | None, int | None] | None:
        """Soft and hard resource limit such as 'RLIMIT_NOFILE'; None within means unlimited."""
        number = getattr(resource, name, None)
        if number is None:
            return None
        soft, hard = resource.getrlimit(number)
        return tuple(None if value == resource.RLIM_INFINITY else value for value in (soft, hard))  # type: ignore[return-value]

    def hostname(self) -> str:
        return socket.gethostname()

    def ipv4(self, interface: str) -> str | None:
        """The IPv4 address of an interface; None if it has none."""
        request = struct.pack("256s", interface.encode()[:15])
        siocgifaddr = 0x8915
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                return socket.inet_ntoa(fcntl.ioctl(sock.fileno(), siocgifaddr, request)[20:24])
        except OSError:
            return None

    def resolve(self, host: str) -> list[str] | str:
        """Addresses of a name in the resolver's order, or the resolver's error text."""
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            return str(error)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def connect(self, address: str, port: int, seconds: float) -> str:
        """Outcome of a TCP connection: 'open', 'refused', 'timeout', 'unreachable' or the error's text."""
        try:
            socket.create_connection((address, port), timeout=seconds).close()
        except ConnectionRefusedError:
            return "refused"
        except TimeoutError:
            return "timeout"
        except OSError as error:
            if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
                return "unreachable"
            return str(error)
        return "open"

    def ipv6(self) -> dict[str, list[str]]:
        """IPv6 addresses by interface."""
        found: dict[str, list[str]] = {}
        # "fd000000000000000000000000000007 02 40 00 80     eth0": address, index, prefix, scope, flags, name
        for line in (self.read("/proc/net/if_inet6") or "").splitlines():
            fields = line.split()
            if len(fields) == 6 and len(fields[0]) == 32:
                address = str(ipaddress.IPv6Address(int(fields[0], 16)))
                found.setdefault(fields[5], []).append(address)
        return found

    def local_addresses(self) -> set[str]:
        """Addresses of this host's interfaces."""
        names = self.names("/sys/class/net")
        addresses = {address for name in names if (address := self.ipv4(name)) is not None}
        return addresses.union(*self.ipv6().values())

    def python_paths(self) -> list[str]:
        """Directories where this Python looks for packages."""
        return [entry for entry in sys.path if entry]

    def _gpus(self) -> GpuSnapshot:
        # A child process: a driver that hangs would otherwise hang this process, and could not be killed.
        code, output, problem = run_command(
            [sys.executable, "-m", "ncclscope.preflight.gpus"], _GPU_SECONDS, self.environ
        )
        if code is None:
            return gpu_probe.unanswered(problem)
        return gpu_probe.decode(output, problem)

    def _library(self) -> Library:
        return nccl_library.load(None if self.root == Path("/") else self.root)


def run_command(
    command: list[str], seconds: float, environ: Mapping[str, str]
) -> tuple[int | None, str, str]:
    """Exit status, stdout and stderr of a command; status None and a reason when it did not end in time.

    A child stuck in the driver cannot be killed, so it is not waited for.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            start_new_session=True,
            text=True,
            errors="replace",
        )
    except OSError as error:
        return None, "", f"{command[0]} could not be started: {error.strerror}"
    try:
        output, problem = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _give_up(process)
        return None, "", f"the GPU driver did not answer within {seconds:g} s"
    return process.returncode, output, problem


def _give_up(process: subprocess.Popen[str]) -> None:
    """Kills a child, and waits for it only as long as one that can be killed needs."""
    process.kill()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1)
