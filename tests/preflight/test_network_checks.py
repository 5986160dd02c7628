"""Interfaces, the rendezvous address, InfiniBand and RoCE, PCIe."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ncclscope.preflight.checks import network, pcie, rdma

from .conftest import FakeNode, gpu

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("eth", "eth0", True),
        ("eth", "beth0", False),
        ("eth0", "eth01", True),  # a prefix
        ("=eth0", "eth01", False),
        ("=eth0", "eth0", True),
        ("^docker,lo", "docker0", False),
        ("^docker,lo", "eth0", True),
        ("^=eth0", "eth01", True),
        ("^=eth0", "eth0", False),
        ("ETH", "eth0", False),
        ("ib0,eth1", "eth1", True),
    ],
)
def test_names_match_as_nccl_matches_them(pattern: str, name: str, expected: bool) -> None:
    assert network.matches(pattern, name) is expected


def test_the_default_choice_leaves_out_loopback_and_docker(node: FakeNode) -> None:
    result = network.interface(node)
    assert result.status == "pass"
    assert result.detail.startswith("eth0 (10.0.0.7)")


def test_an_interface_with_ipv6_only_counts(node: FakeNode, put: Callable[..., None]) -> None:
    """A pod of a cluster without IPv4."""
    node.addresses = {"lo": "127.0.0.1"}
    put("/proc/net/if_inet6", "fd000000000000000000000000000007 02 40 00 80     eth0\nbroken line\n")
    assert network.interface(node).detail.startswith("eth0 (fd00::7)")


def test_infiniband_interfaces_come_first(node: FakeNode, put: Callable[..., None]) -> None:
    put("/sys/class/net/ib0/flags", "0x1003")
    put("/sys/class/net/ib0/ifindex", "9")
    node.addresses["ib0"] = "10.9.0.7"
    assert network.interface(node).detail.startswith("ib0")


def test_an_interface_that_is_down_is_not_taken(node: FakeNode, put: Callable[..., None]) -> None:
    put("/sys/class/net/eth0/flags", "0x1002")
    result = network.interface(node)
    assert result.status == "warn"
    assert "docker0" in result.detail


@pytest.mark.parametrize("value", ["eth1", "=eth", "^eth,lo,docker", "ens"])
def test_a_name_that_matches_nothing_fails(node: FakeNode, value: str) -> None:
    node.environ = {"NCCL_SOCKET_IFNAME": value}
    result = network.interface(node)
    assert (result.status, result.category) == ("fail", "network-interface")
    assert "eth0 10.0.0.7" in result.detail


def test_nccl_ignores_a_value_of_one_character(node: FakeNode) -> None:
    node.environ = {"NCCL_SOCKET_IFNAME": "x"}
    assert network.interface(node).status == "pass"


def test_a_name_from_nccls_settings_file_counts(node: FakeNode, put: Callable[..., None]) -> None:
    put("/etc/nccl.conf", "# site default\nNCCL_SOCKET_IFNAME=bond0\n")
    assert network.interface(node).status == "fail"


def test_gloo_takes_whole_names_only(node: FakeNode) -> None:
    node.environ = {"GLOO_SOCKET_IFNAME": "eth"}
    assert network.interface(node).status == "fail"
    node.environ = {"GLOO_SOCKET_IFNAME": "eth0"}
    assert network.interface(node).status == "pass"


def test_loopback_fails_in_a_job_of_several_hosts_only(node: FakeNode) -> None:
    node.environ = {"NCCL_SOCKET_IFNAME": "lo", "PET_NNODES": "2"}
    assert network.interface(node).status == "fail"
    node.environ = {"NCCL_SOCKET_IFNAME": "lo"}
    assert network.interface(node).status == "warn"


MASTER = {"MASTER_ADDR": "train-master-0", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    ("outcome", "status", "category"),
    [
        ("open", "pass", "firewall-port"),
        ("refused", "pass", "firewall-port"),
        ("timeout", "fail", "firewall-port"),
        ("unreachable", "fail", "network-interface"),
        ("[Errno 1] Operation not permitted", "fail", "firewall-port"),
    ],
)
def test_each_outcome_of_a_connection_is_told_apart(
    node: FakeNode, outcome: str, status: str, category: str
) -> None:
    node.environ, node.resolver = MASTER, {"train-master-0": ["10.0.0.9"]}
    node.ports = {("10.0.0.9", 29500): outcome}
    result = network.master(node)
    assert (result.status, result.category) == (status, category)


def test_one_address_of_two_that_answers_is_enough(node: FakeNode) -> None:
    node.environ, node.resolver = MASTER, {"train-master-0": ["fd00::9", "10.0.0.9"]}
    node.ports = {("fd00::9", 29500): "timeout", ("10.0.0.9", 29500): "open"}
    assert network.master(node).status == "pass"


def test_a_name_that_does_not_resolve_fails_as_dns(node: FakeNode) -> None:
    node.environ = MASTER
    result = network.master(node)
    assert (result.status, result.category) == ("fail", "dns")


def test_rank_0_itself_has_nothing_listening_and_passes(node: FakeNode) -> None:
    node.environ, node.resolver = MASTER, {"train-master-0": ["10.0.0.7"]}
    assert network.master(node).status == "pass"


def test_a_port_already_taken_on_rank_0_warns(node: FakeNode) -> None:
    node.environ, node.resolver = MASTER, {"train-master-0": ["10.0.0.7"]}
    node.ports = {("10.0.0.7", 29500): "open"}
    result = network.master(node)
    assert (result.status, result.category) == ("warn", "rendezvous")


@pytest.mark.parametrize("port", ["0", "70000", "http", "-1"])
def test_a_port_that_is_none_fails(node: FakeNode, port: str) -> None:
    node.environ, node.resolver = {**MASTER, "MASTER_PORT": port}, {"train-master-0": ["10.0.0.9"]}
    assert network.master(node).status == "fail"


def test_without_master_addr_nothing_is_tried(node: FakeNode) -> None:
    assert network.master(node).status == "not_checked"


def test_a_host_name_from_the_environment_cannot_smuggle_a_command(node: FakeNode) -> None:
    node.environ = {"MASTER_ADDR": "x; rm -rf /"}
    step = network.master(node).next_step
    assert step is not None
    assert step.command == "getent hosts xrm-rf"


def test_active_infiniband_ports_pass(node: FakeNode) -> None:
    result = rdma.infiniband(node)
    assert result.status == "pass"
    assert "2 active at 400 Gb/sec (4X NDR) (InfiniBand)" in result.detail


PORT = "/sys/class/infiniband/mlx5_1/ports/1"


@pytest.mark.parametrize(
    ("files", "environ", "status", "category"),
    [
        ({f"{PORT}/state": "1: DOWN"}, {}, "warn", "ib-link"),
        ({f"{PORT}/state": "1: DOWN"}, {"NCCL_IB_HCA": "=mlx5_1:1"}, "fail", "ib-link"),
        ({f"{PORT}/state": "1: DOWN"}, {"NCCL_IB_HCA": "mlx5_0"}, "pass", "ib-link"),
        ({f"{PORT}/state": "1: DOWN"}, {"NCCL_IB_HCA": "^mlx5_1"}, "pass", "ib-link"),
        ({f"{PORT}/lid": "0x0"}, {}, "fail", "ib-config"),
        ({f"{PORT}/rate": "200 Gb/sec (2X NDR)"}, {}, "warn", "ib-link"),
        ({f"{PORT}/link_layer": "Ethernet"}, {}, "warn", "ib-config"),
        ({}, {"NCCL_IB_HCA": "mlx4"}, "fail", "ib-config"),
        ({}, {"NCCL_IB_DISABLE": "1"}, "warn", "ib-config"),
        ({"/dev/infiniband": None}, {}, "warn", "ib-config"),  # often meant so
        ({"/dev/infiniband": None}, {"NCCL_IB_HCA": "mlx5"}, "fail", "ib-config"),
    ],
)
def test_ports_that_nccl_would_use_are_judged(
    node: FakeNode,
    put: Callable[..., None],
    files: dict[str, str | None],
    environ: dict[str, str],
    status: str,
    category: str,
) -> None:
    for path, content in files.items():
        put(path, content)
    node.environ = environ
    result = rdma.infiniband(node)
    assert (result.status, result.category) == (status, category)


def roce(put: Callable[..., None], gids: list[tuple[str, str]]) -> None:
    for device in ("mlx5_0", "mlx5_1"):
        base = f"/sys/class/infiniband/{device}/ports/1"
        put(f"{base}/link_layer", "Ethernet")
        for index, (gid, kind) in enumerate(gids):
            put(f"{base}/gids/{index}", gid)
            put(f"{base}/gid_attrs/types/{index}", kind)


ZERO = ":".join(["0000"] * 8)
IPV4 = "0000:0000:0000:0000:0000:ffff:0a00:0007"


@pytest.mark.parametrize(
    ("gids", "index", "status"),
    [
        ([("fe80::1", "IB/RoCE v1"), (IPV4, "RoCE v2")], None, "pass"),
        ([("fe80::1", "IB/RoCE v1"), (IPV4, "RoCE v2")], "1", "pass"),
        ([("fe80::1", "IB/RoCE v1"), (IPV4, "RoCE v2")], "0", "fail"),  # RoCE v1
        ([("fe80::1", "IB/RoCE v1"), (ZERO, "")], "1", "fail"),
        ([("fe80::1", "IB/RoCE v1"), (IPV4, "RoCE v2")], "7", "fail"),
        ([(ZERO, ""), (ZERO, "")], None, "fail"),  # another network namespace's addresses read as zero
    ],
)
def test_roce_needs_an_address_at_the_index_asked_for(
    node: FakeNode, put: Callable[..., None], gids: list[tuple[str, str]], index: str | None, status: str
) -> None:
    roce(put, gids)
    node.environ = {} if index is None else {"NCCL_IB_GID_INDEX": index}
    assert rdma.infiniband(node).status == status


def test_no_rdma_device_passes_unless_one_is_asked_for(bare: FakeNode) -> None:
    assert rdma.infiniband(bare).status == "pass"
    bare.environ = {"NCCL_IB_HCA": "mlx5"}
    assert rdma.infiniband(bare).status == "fail"


def config(acs_control: int | None, *, length: int = 4096) -> bytes:
    """A PCI configuration space: AER at 0x100, then, if asked for, access control services at 0x148."""
    space = bytearray(4096)
    following = 0x148 if acs_control is not None else 0
    space[0x100:0x104] = (0x0001 | 2 << 16 | following << 20).to_bytes(4, "little")
    if acs_control is not None:
        space[0x148:0x14C] = (0x000D | 1 << 16).to_bytes(4, "little")
        space[0x14E:0x150] = acs_control.to_bytes(2, "little")
    return bytes(space[:length])


@pytest.mark.parametrize(("control", "read"), [(None, None), (0, 0), (0x1D, 0x1D)])
def test_the_acs_register_is_found_behind_other_capabilities(control: int | None, read: int | None) -> None:
    assert pcie.acs_control(config(control)) == read


def test_a_configuration_space_cut_short_is_no_answer() -> None:
    with pytest.raises(ValueError, match="extended"):
        pcie.acs_control(config(0x1D, length=256))


def test_capabilities_that_point_at_themselves_end() -> None:
    space = bytearray(config(None))
    space[0x100:0x104] = (0x0001 | 1 << 16 | 0x100 << 20).to_bytes(4, "little")
    assert pcie.acs_control(bytes(space)) is None


BRIDGES = (
    "/sys/devices/pci0000:1a/0000:1a:01.0",
    "/sys/devices/pci0000:4b/0000:4b:01.0",
)


@pytest.mark.parametrize(
    ("spaces", "status"),
    [
        ((config(0), config(0)), "pass"),
        ((config(0), config(0x0C)), "warn"),  # request and completion redirect
        ((config(0), config(0x01)), "pass"),  # source validation alone sends nothing to the root
        ((config(0), config(0x1D, length=64)), "not_checked"),  # what a container without CAP_SYS_ADMIN reads
    ],
)
def test_bridges_that_redirect_warn(
    node: FakeNode, put: Callable[..., None], spaces: tuple[bytes, bytes], status: str
) -> None:
    node.environ = {"NCCL_IB_DISABLE": "1"}
    for bridge, space in zip(BRIDGES, spaces, strict=True):
        put(f"{bridge}/config", space)
    result = pcie.acs(node)
    assert (result.status, result.category) == (status, "p2p-acs-iommu")


def test_acs_of_a_lone_gpu_does_not_matter(node: FakeNode) -> None:
    node.environ = {"NCCL_IB_DISABLE": "1"}
    node.snapshot = replace(node.snapshot, gpus=(gpu(0),))
    assert pcie.acs(node).status == "pass"


@pytest.mark.parametrize(("kind", "status"), [("identity", "pass"), ("DMA-FQ", "warn")])
def test_a_translating_iommu_warns(node: FakeNode, put: Callable[..., None], kind: str, status: str) -> None:
    put("/sys/kernel/iommu_groups/1/type", kind)
    assert pcie.iommu(node).status == status


def test_no_iommu_passes(node: FakeNode, put: Callable[..., None]) -> None:
    put("/sys/kernel/iommu_groups", None)
    assert pcie.iommu(node).status == "pass"


@pytest.mark.parametrize(
    ("files", "environ", "status"),
    [
        ({}, {}, "pass"),  # nvidia_peermem is loaded
        ({"/proc/modules": "nvidia 1 0 - Live 0x0"}, {}, "pass"),  # dmabuf by the open module
        ({"/proc/modules": "nvidia 1 0 - Live 0x0"}, {"NCCL_DMABUF_ENABLE": "0"}, "warn"),
        (
            {"/proc/modules": "nvidia 1 0 - Live 0x0", "/proc/sys/kernel/osrelease": "5.4.0-150-generic"},
            {},
            "warn",
        ),
        (
            {
                "/proc/modules": "nvidia 1 0 - Live 0x0",
                "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  x",
            },
            {},
            "warn",
        ),
        (
            {"/proc/modules": "nvidia 1 0 - Live 0x0"},
            {"NCCL_DMABUF_ENABLE": "0", "NCCL_IB_DISABLE": "1"},
            "pass",
        ),
    ],
)
def test_gpudirect_needs_peermem_or_dmabuf(
    node: FakeNode, put: Callable[..., None], files: dict[str, str], environ: dict[str, str], status: str
) -> None:
    for path, content in files.items():
        put(path, content)
    node.environ = environ
    assert pcie.gpudirect(node).status == status
