"""The machine itself: NVML, whose every call may be refused, commands, sockets and files."""

from __future__ import annotations

import json
import os
import socket
import sys
from dataclasses import asdict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pynvml
import pytest

from ncclscope.preflight.gpus import GpuSnapshot, decode, snapshot
from ncclscope.preflight.node import Node, run_command

from .conftest import gpu

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class FakeNvml:
    """pynvml's constants and errors with a driver that refuses what it is not given."""

    def __init__(self, **answers: Any) -> None:
        self._answers = {"nvmlInit": lambda: None, **answers}

    def __getattr__(self, name: str) -> Any:
        if name in self._answers:
            return self._answers[name]
        if name.startswith("nvml"):
            return self._refuse
        return getattr(pynvml, name)

    @staticmethod
    def _refuse(*_: object) -> Any:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def raises(code: int) -> Any:
    def call(*_: object) -> Any:
        raise pynvml.NVMLError(code)

    return call


ONE_GPU = {
    "nvmlDeviceGetCount": lambda: 1,
    "nvmlDeviceGetHandleByIndex": lambda index: index,
    "nvmlDeviceGetUUID": lambda _: "GPU-1",
}


def test_a_driver_that_refuses_everything_still_lists_its_gpu() -> None:
    seen = snapshot(FakeNvml(**ONE_GPU))  # type: ignore[arg-type]
    assert [state.uuid for state in seen.gpus] == ["GPU-1"]
    assert seen.gpus[0].capability is None
    assert seen.gpus[0].links_up is None
    assert (seen.driver, seen.cuda, seen.problem) == (None, None, "")


def test_what_nvml_answers_is_taken_over() -> None:
    def fabric(_: object, info: Any) -> None:
        info._obj.state, info._obj.status = pynvml.NVML_GPU_FABRIC_STATE_COMPLETED, 0

    field = SimpleNamespace(nvmlReturn=pynvml.NVML_SUCCESS, value=SimpleNamespace(uiVal=1))
    nvml = FakeNvml(
        **ONE_GPU,
        nvmlSystemGetDriverVersion=lambda: b"580.65.06",  # bytes, as older bindings answer
        nvmlSystemGetCudaDriverVersion_v2=lambda: 13000,
        nvmlDeviceGetName=lambda _: "NVIDIA H200",
        nvmlDeviceGetPciInfo=lambda _: SimpleNamespace(busId="00000000:1B:00.0"),
        nvmlDeviceGetCudaComputeCapability=lambda _: (9, 0),
        nvmlDeviceGetMemoryInfo=lambda _: SimpleNamespace(total=100, used=1),
        nvmlDeviceGetComputeMode=lambda _: pynvml.NVML_COMPUTEMODE_PROHIBITED,
        nvmlDeviceGetMigMode=lambda _: [0, 0],
        nvmlDeviceGetRemappedRows=lambda _: (0, 2, 1, 0),
        nvmlDeviceGetTotalEccErrors=lambda *_: 5,
        nvmlDeviceGetNvLinkState=lambda _, link: int(link != 3) if link < 6 else FakeNvml._refuse(),
        nvmlDeviceGetGpuFabricInfo=fabric,
        nvmlDeviceGetFieldValues=lambda *_: [field],
    )
    seen = snapshot(nvml)  # type: ignore[arg-type]
    state = seen.gpus[0]
    assert (seen.driver, seen.cuda) == ("580.65.06", "13.0")
    assert state.label == "GPU 0 (NVIDIA H200, 0000:1b:00.0)"
    assert (state.sm, state.compute_prohibited, state.mig) == ("sm_90", True, False)
    assert (state.remap_pending, state.remap_failed, state.uncorrected_errors) == (True, False, 5)
    assert (state.links_up, state.links_down) == ((0, 1, 2, 4, 5), (3,))
    assert (state.fabric_state, state.recovery_action) == ("completed", 1)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "no_library"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "no_driver"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "version_mismatch"),
        (pynvml.NVML_ERROR_UNKNOWN, "other"),
    ],
)
def test_why_nvml_does_not_start_is_kept(code: int, problem: str) -> None:
    seen = snapshot(FakeNvml(nvmlInit=raises(code)))  # type: ignore[arg-type]
    assert (seen.gpus, seen.problem) == ((), problem)
    assert seen.message


def test_a_lost_gpu_does_not_hide_the_others() -> None:
    def handle(index: int) -> int:
        if index == 0:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    nvml = FakeNvml(**{**ONE_GPU, "nvmlDeviceGetCount": lambda: 2, "nvmlDeviceGetHandleByIndex": handle})
    seen = snapshot(nvml)  # type: ignore[arg-type]
    assert [state.index for state in seen.gpus] == [1]
    assert seen.problem == "other"
    assert "GPU 0: GPU is lost" in seen.message


def test_the_probes_json_is_read_back_the_same() -> None:
    seen = GpuSnapshot((gpu(0), gpu(1, capability=None, links_up=None)), "580.65.06", "13.0")
    assert decode(json.dumps(asdict(seen))) == seen


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"gpus": [{}]}', '{"gpus": 3}', "not json"])
def test_a_probe_that_broke_gives_its_last_words(text: str) -> None:
    seen = decode(text, "Traceback\nImportError: no pynvml\n")
    assert (seen.problem, seen.message) == ("other", "ImportError: no pynvml")


def test_the_probe_answers_on_this_machine_whatever_it_has() -> None:
    seen = Node().gpus()
    assert seen.gpus or seen.message


def test_a_command_that_hangs_is_given_up() -> None:
    code, output, reason = run_command(
        [sys.executable, "-c", "import time; time.sleep(600)"], 0.2, os.environ
    )
    assert code is None
    assert output == ""
    assert "within 0.2 s" in reason


def test_a_command_that_is_not_there_is_named() -> None:
    code, _, reason = run_command(["/nonexistent/probe"], 1, os.environ)
    assert code is None
    assert "/nonexistent/probe" in reason


@pytest.fixture
def listener() -> Iterator[int]:
    """A port of this host on which something listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_port_that_listens_is_open_and_one_that_does_not_is_refused(listener: int) -> None:
    assert Node().connect("127.0.0.1", listener, 5) == "open"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert Node().connect("127.0.0.1", port, 5) == "refused"


def test_an_address_that_is_none_gives_the_errors_text() -> None:
    assert "open" not in Node().connect("not an address", 1, 1)
    assert isinstance(Node().resolve("no..such..name"), str)
    assert isinstance(Node().resolve("x" * 300), str)


def test_numbers_resolve_without_a_resolver() -> None:
    assert Node().resolve("127.0.0.1") == ["127.0.0.1"]


def test_files_that_are_not_there_give_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path, {})
    assert node.read("/proc/x") is None
    assert node.names("/sys/x") == []
    assert node.disk("/dev/shm") is None
    assert node.link_target("/x") is None
    assert isinstance(node.kernel_log(), OSError)
    assert node.limit("RLIMIT_NO_SUCH_THING") is None
    assert node.limit("RLIMIT_NOFILE") is not None


def test_a_directory_in_place_of_a_file_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "proc" / "cmdline").mkdir(parents=True)
    assert Node(tmp_path, {}).read("/proc/cmdline") is None
