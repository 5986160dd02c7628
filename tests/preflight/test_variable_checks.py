"""NCCL's and PyTorch's variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ncclscope.preflight.checks import torch, variables
from ncclscope.preflight.settings import find_torch, integer, known_variables

from .conftest import FakeNode, library

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("NCCL_SOCKET_IFACE", "did you mean NCCL_SOCKET_IFNAME?"),
        ("NCCL_IB_GID_INDX", "did you mean NCCL_IB_GID_INDEX?"),
        ("NCCL_DEBUG_SUBSYSTEM", "did you mean NCCL_DEBUG_SUBSYS?"),
        ("TORCH_NCCL_ASYNC_ERROR_HANDELING", "did you mean TORCH_NCCL_ASYNC_ERROR_HANDLING?"),
        ("NCCL_TIMEOUT", "init_process_group(timeout=...)"),
        ("NCCL_FROBNICATE", "not in the table"),
    ],
)
def test_a_name_that_nothing_reads_is_named_with_the_nearest(node: FakeNode, name: str, says: str) -> None:
    node.environ = {name: "1"}
    result = variables.names(node)
    assert result.status == "warn"
    assert name in result.detail
    assert says in result.detail


@pytest.mark.parametrize(
    "name", ["NCCL_VERSION", "NCCL_HOME", "NCCL_SOCKET_IFNAME", "NCCL_ASYNC_ERROR_HANDLING"]
)
def test_names_that_are_read_or_that_images_set_pass(node: FakeNode, name: str) -> None:
    node.environ = {name: "1"}
    assert variables.names(node).status == "pass"


@pytest.mark.parametrize(
    ("nccl", "name", "status"),
    [
        ("nccl-2.26.2.so", "NCCL_RAS_ENABLE", "pass"),
        ("nccl-2.26.2.so", "NCCL_SYM_CTAS", "warn"),  # from 2.27.3 on
        ("nccl-2.28.9.so", "NCCL_SYM_CTAS", "pass"),
        ("nccl-2.28.9.so", "NCCL_TREE_THRESHOLD", "warn"),  # up to 2.4.8
    ],
)
def test_a_name_of_another_nccl_version_has_no_effect(
    node: FakeNode, nccl: str, name: str, status: str
) -> None:
    node.environ, node.nccl = {name: "1"}, library(nccl)
    assert variables.names(node).status == status


def test_a_misspelt_name_in_a_settings_file_is_found_with_its_place(
    node: FakeNode, put: Callable[..., None]
) -> None:
    put("/root/.nccl.conf", "NCCL_DEBUGG=INFO\n")
    assert "(in /root/.nccl.conf)" in variables.names(node).detail


@pytest.mark.parametrize(
    ("environ", "status", "says"),
    [
        ({"NCCL_IB_DISABLE": "true"}, "warn", "NCCL reads 0"),
        ({"NCCL_IB_TIMEOUT": "40"}, "warn", "outside 1 to 31"),
        ({"NCCL_IB_TIMEOUT": "22"}, "pass", ""),
        ({"NCCL_BUFFSIZE": "0x400000"}, "pass", ""),
        ({"NCCL_CROSS_NIC": ""}, "pass", ""),
        ({"NCCL_P2P_DISABLE": "1"}, "warn", "bandwidth"),
        ({"NCCL_P2P_DISABLE": "0"}, "pass", ""),
        ({"NCCL_TOPO_FILE": "/opt/topo.xml"}, "fail", "not here"),
        ({"NCCL_NET_PLUGIN": "/opt/lib/libnccl-net.so"}, "fail", "not here"),
        ({"NCCL_NET_PLUGIN": "none"}, "pass", ""),
        ({"NCCL_SOCKET_FAMILY": "IPv4"}, "fail", "neither AF_INET"),
        (
            {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NET_DISABLE_INTRA": "1"},
            "fail",
            "no way between the GPUs",
        ),
        ({"NCCL_COMM_BLOCKING": "0"}, "warn", "too early"),
        ({"NCCL_ALGO": "Ring"}, "warn", "same on all ranks"),
    ],
)
def test_values(node: FakeNode, environ: dict[str, str], status: str, says: str) -> None:
    node.environ = environ
    result = variables.values(node)
    assert result.status == status
    assert says in result.detail


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), (" 12abc", 12), ("0x10", 16), ("010", 8), ("true", 0), ("-2", -2), ("", 0), ("08", 0)],
)
def test_integers_are_read_as_strtoll_does(text: str, number: int) -> None:
    assert integer(text) == number


GOOD = {"NCCL_DEBUG": "INFO", "PYTHONUNBUFFERED": "1"}


@pytest.mark.parametrize(
    ("environ", "status", "says"),
    [
        (GOOD, "pass", ""),
        ({}, "warn", "NCCL_DEBUG is not set"),
        ({**GOOD, "NCCL_DEBUG": "DEBUG"}, "warn", "is no level"),
        ({**GOOD, "NCCL_DEBUG": "VERSION"}, "warn", "prints no failure"),
        ({**GOOD, "NCCL_DEBUG": "warn"}, "pass", ""),
        ({**GOOD, "NCCL_DEBUG_SUBSYS": "COLL"}, "warn", "leaves INIT out"),
        ({**GOOD, "NCCL_DEBUG_SUBSYS": "^INIT"}, "warn", "leaves INIT out"),
        ({**GOOD, "NCCL_DEBUG_SUBSYS": "^COLL"}, "pass", ""),
        ({**GOOD, "NCCL_DEBUG_SUBSYS": "INIT,NETWORK"}, "warn", "NETWORK is no subsystem"),
        ({**GOOD, "NCCL_DEBUG_FILE": "/logs/nccl.log"}, "warn", "overwrite"),
        ({**GOOD, "NCCL_DEBUG_FILE": "/logs/nccl.%h.%p"}, "pass", ""),
        ({"NCCL_DEBUG": "INFO"}, "warn", "PYTHONUNBUFFERED"),
    ],
)
def test_readable_failures(node: FakeNode, environ: dict[str, str], status: str, says: str) -> None:
    node.environ = environ
    result = variables.readable_failures(node)
    assert result.status == status
    assert says in result.detail


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (None, "pass"),
        ("0,1", "pass"),
        ("GPU-00000000,GPU-00000001", "pass"),  # a prefix of a UUID is enough
        ("GPU-0000000", "fail"),  # two GPUs have it
        ("0,2", "fail"),
        ("0,0", "fail"),
        ("", "fail"),
        ("-1", "fail"),
        ("GPU-99", "fail"),
    ],
)
def test_visible_devices(node: FakeNode, value: str | None, status: str) -> None:
    node.environ = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert variables.visible_devices(node).status == status


def test_more_local_ranks_than_gpus_fails(node: FakeNode) -> None:
    node.environ = {"LOCAL_WORLD_SIZE": "8"}
    result = variables.visible_devices(node)
    assert (result.status, result.category) == ("fail", "duplicate-gpu")


def test_the_table_of_variables_is_whole() -> None:
    """Each has a kind; first is not after last."""
    table = known_variables()
    assert len(table) > 290
    assert table["NCCL_SOCKET_IFNAME"].kind == "text"
    assert all(v.first is None or v.last is None or v.first <= v.last for v in table.values())


PACKAGES = "/usr/local/lib/python3.12/dist-packages"


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("cuda: str | None = '13.0'\n", "13.0"),
        ("cuda: Optional[str] = '12.8'\n", "12.8"),
        ("cuda = '11.8'\n", "11.8"),
        ("cuda = None\n", None),
    ],
)
def test_pytorch_is_found_without_importing_it(
    node: FakeNode, put: Callable[..., None], text: str, cuda: str | None
) -> None:
    put(f"{PACKAGES}/torch/version.py", text)
    found = find_torch(node)
    assert found is not None
    assert (found.version, found.cuda, found.numbers) == ("2.9.1+cu130", cuda, (2, 9, 1))


def install_torch(put: Callable[..., None], version: str) -> None:
    put(f"{PACKAGES}/torch-2.9.1+cu130.dist-info", None)
    put(f"{PACKAGES}/torch-{version}.dist-info/METADATA", "")


@pytest.mark.parametrize(
    ("version", "value", "status"),
    [
        ("2.5.1", None, "pass"),
        ("2.6.0+cu124", None, "warn"),
        ("2.7.0", None, "warn"),
        ("2.7.1", None, "pass"),
        ("2.7.0", "0", "pass"),
        ("2.9.1", "1", "warn"),
        ("2.9.1", "true", "warn"),
    ],
)
def test_nonblocking_init_by_pytorchs_version(
    node: FakeNode, put: Callable[..., None], version: str, value: str | None, status: str
) -> None:
    install_torch(put, version)
    node.environ = {} if value is None else {"TORCH_NCCL_USE_COMM_NONBLOCKING": value}
    assert torch.nonblocking(node).status == status


def test_nonblocking_with_nccl_2_26_is_said_to_hang(node: FakeNode, put: Callable[..., None]) -> None:
    install_torch(put, "2.7.0")
    node.nccl = library("nccl-2.26.2.so")
    assert "hangs at random" in torch.nonblocking(node).detail


def test_nonblocking_is_not_checked_where_no_pytorch_is(bare: FakeNode) -> None:
    assert torch.nonblocking(bare).status == "not_checked"


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}, "hangs for ever"),
        ({"NCCL_ASYNC_ERROR_HANDLING": "0"}, "hangs for ever"),
        ({"NCCL_BLOCKING_WAIT": "1"}, "use TORCH_NCCL_BLOCKING_WAIT"),
        ({"TORCH_NCCL_ENABLE_MONITORING": "0"}, "hangs instead of ending"),
        ({"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "86400"}, "86400"),
        ({"TORCH_NCCL_DUMP_ON_TIMEOUT": "1", "TORCH_FR_BUFFER_SIZE": "0"}, "empty dumps"),
        ({"CUDA_LAUNCH_BLOCKING": "1"}, "serialises"),
    ],
)
def test_settings_that_hide_a_hang_warn(node: FakeNode, environ: dict[str, str], says: str) -> None:
    node.environ = environ
    result = torch.settings(node)
    assert result.status == "warn"
    assert says in result.detail


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"},
        {"CUDA_LAUNCH_BLOCKING": "0"},
        {"TORCH_NCCL_DUMP_ON_TIMEOUT": "1"},
    ],
)
def test_usual_settings_pass(node: FakeNode, environ: dict[str, str]) -> None:
    node.environ = environ
    assert torch.settings(node).status == "pass"


def test_new_names_under_an_old_pytorch_have_no_effect(node: FakeNode, put: Callable[..., None]) -> None:
    install_torch(put, "2.1.2")
    node.environ = {"TORCH_NCCL_BLOCKING_WAIT": "1"}
    assert "reads NCCL_BLOCKING_WAIT only" in torch.settings(node).detail
