"""Where ranks that must agree differ, and whether this NCCL can run on this GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from printed import init, nccl
from support import of_kind, only, read_texts

if TYPE_CHECKING:
    from pathlib import Path


def host(name: str, rank: int, *, version: str = "2.28.9+cuda13.0", settings: str = "") -> str:
    return init(name, 600, rank, 2, version=version) + "".join(
        nccl(name, 600, f"{pair.split('=')[0]} set by environment to {pair.split('=')[1]}.")
        for pair in settings.split()
    )


def test_versions_that_differ_between_hosts(tmp_path: Path) -> None:
    """Two hosts, two NCCLs: both versions are named, with a line of each."""
    log = host("node01", 0) + host("node02", 1, version="2.26.2+cuda12.2")
    found = only(read_texts(tmp_path, {"job.log": log}), "versions.differ")
    assert found.fields["values"] == ("2.26.2", "2.28.9")
    assert {e.line for e in found.evidence if hasattr(e, "line")} == {1, 5}


def test_equal_versions_are_no_difference(tmp_path: Path) -> None:
    """The same NCCL everywhere."""
    assert of_kind(read_texts(tmp_path, {"job.log": host("node01", 0) + host("node02", 1)}), "versions.differ") == []


def test_two_versions_in_one_process_are_no_disagreement(tmp_path: Path) -> None:
    """A program that loads a second NCCL, or a rerun appended to the log, does not disagree with its peers."""
    log = host("node01", 0) + nccl("node01", 600, "NCCL version 2.26.2+cuda12.2") + host("node02", 1)
    assert of_kind(read_texts(tmp_path, {"job.log": log}), "versions.differ") == []


def test_a_setting_with_two_values(tmp_path: Path) -> None:
    """A variable that decides what ranks send each other has two values."""
    log = host("node01", 0, settings="NCCL_PROTO=LL") + host("node02", 1, settings="NCCL_PROTO=Simple")
    found = only(read_texts(tmp_path, {"job.log": log}), "settings.differ")
    assert (found.fields["name"], found.fields["values"]) == ("NCCL_PROTO", ("LL", "Simple"))
    assert found.fields["must_agree"] is True


def test_a_setting_on_one_host_only(tmp_path: Path) -> None:
    """Set here and not there is a difference too, where the variable must agree."""
    log = host("node01", 0, settings="NCCL_MAX_NCHANNELS=2") + host("node02", 1)
    assert only(read_texts(tmp_path, {"job.log": log}), "settings.differ").fields["values"] == ("2", "not set")


def test_settings_of_a_machine_may_differ(tmp_path: Path) -> None:
    """Interfaces and adapters are named differently on every machine."""
    log = host("node01", 0, settings="NCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA=mlx5_0 NCCL_DEBUG=INFO")
    log += host("node02", 1, settings="NCCL_SOCKET_IFNAME=ens3 NCCL_IB_HCA=mlx5_4 NCCL_DEBUG=WARN")
    assert of_kind(read_texts(tmp_path, {"job.log": log}), "settings.differ") == []


def test_equal_settings_are_no_difference(tmp_path: Path) -> None:
    """The same value on both hosts."""
    log = host("node01", 0, settings="NCCL_PROTO=LL") + host("node02", 1, settings="NCCL_PROTO=LL")
    assert of_kind(read_texts(tmp_path, {"job.log": log}), "settings.differ") == []


def using(name: str, pid: int, interface: str) -> str:
    return nccl(name, pid, f"Bootstrap: Using {interface}<0>")


def test_loopback_matters_across_hosts_only(tmp_path: Path) -> None:
    """`lo` is fine on one host and a fault across two."""
    one = init("node01", 600, 0, 2) + using("node01", 600, "lo:127.0.0.1") + init("node01", 601, 1, 2, bus="70")
    assert of_kind(read_texts(tmp_path / "one", {"job.log": one}), "network.loopback") == []
    two = init("node01", 600, 0, 2) + using("node01", 600, "lo:127.0.0.1") + init("node02", 600, 1, 2)
    found = only(read_texts(tmp_path / "two", {"job.log": two}), "network.loopback")
    assert (found.ranks, found.hosts) == ((0,), ("node01",))


@pytest.mark.parametrize(
    ("banner", "gpu", "verdict"),
    [
        ("2.21.5+cuda12.4", "sm_120", "jit"),
        ("2.18.3+cuda11.8", "sm_120", "jit"),
        ("2.28.9+cuda13.0", "sm_120", None),
        ("2.21.5+cuda12.4", "sm_90", None),
    ],
)  # fmt: skip
def test_machine_code_for_a_gpu_given_by_the_user(banner: str, gpu: str, verdict: str | None, tmp_path: Path) -> None:
    """--gpu says what the log does not: NCCL built with a CUDA older than 12.8 has no code for a 10.x or 12.x GPU."""
    seen = read_texts(tmp_path, {"job.log": init("node01", 600, 0, 1, version=banner)}, gpu=gpu)
    gaps = of_kind(seen, "arch.gap")
    if verdict is None:
        assert gaps == []
    else:
        assert [g.fields["gpu_arch"] for g in gaps] == [gpu]
        assert gaps[0].fields["verdict"] in ("jit", "none")


def test_no_gap_without_a_known_gpu(tmp_path: Path) -> None:
    """The log names no GPU and the user gave none: nothing is claimed of its code."""
    seen = read_texts(tmp_path, {"job.log": init("node01", 600, 0, 1, version="2.18.3+cuda11.8")})
    assert of_kind(seen, "arch.gap") == []
