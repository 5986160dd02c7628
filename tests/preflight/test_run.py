"""All checks together, the report, and what two containers must have in common."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support import shipped

from ncclscope.preflight import identity
from ncclscope.preflight.checks import CHECKS, Check
from ncclscope.preflight.identity import IdentityError
from ncclscope.preflight.manifests import MANIFESTS
from ncclscope.preflight.model import CheckResult, NextStep, Report
from ncclscope.preflight.report import as_json, as_text
from ncclscope.preflight.rules import TRIAGE_RULES
from ncclscope.preflight.run import run

from .conftest import FIXTURES, FakeNode, gpu, library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ncclscope.preflight.node import Node

# The fixed vocabulary of cause classes that triage uses.
CATEGORIES = {
    "arch-mismatch",
    "version-mismatch",
    "driver-mismatch",
    "gpu-not-visible",
    "rendezvous",
    "dns",
    "firewall-port",
    "network-interface",
    "ib-config",
    "ib-link",
    "gdr-peermem",
    "p2p-acs-iommu",
    "nvlink-fabric",
    "fabric-manager",
    "shm-limit",
    "memlock-limit",
    "fd-limit",
    "duplicate-gpu",
    "config-mismatch",
    "torch-bug",
    "oom-gpu",
    "oom-cgroup",
    "gpu-hardware-ecc",
    "gpu-fell-off-bus",
    "gpu-hang",
    "gpu-thermal-power",
    "other",
}


def test_a_healthy_host_passes_every_check_but_the_unreadable_registers(node: FakeNode) -> None:
    report = run(node)
    assert {r.id: r.status for r in report.results if r.status != "pass"} == {
        "pcie-acs": "not_checked",
        "master": "not_checked",
    }
    assert report.verdict() == "pass"
    assert report.verdict("warn") == "pass"
    assert (report.host, report.driver, len(report.gpus)) == ("gpu-node-01", "580.159.02", 2)


def test_a_machine_with_nothing_on_it_is_unknown_and_nothing_breaks(bare: FakeNode) -> None:
    report = run(bare, skip=["shm", "interface"])
    assert report.verdict() == "unknown"
    assert not [r for r in report.results if r.detail.startswith("the check broke")]


def test_an_unreadable_library_is_unknown(node: FakeNode) -> None:
    node.nccl = replace(node.nccl, code=None, reason="/x/libnccl.so.2: is no ELF file")
    assert run(node).verdict() == "unknown"


def test_a_failure_outranks_what_could_not_be_told(bare: FakeNode) -> None:
    assert run(bare).verdict() == "fail"


def test_every_check_names_a_cause_class(node: FakeNode, bare: FakeNode) -> None:
    results = [*run(node).results, *run(bare).results]
    assert {result.category for result in results} <= CATEGORIES
    assert {result.id for result in results} == set(CHECKS)


def test_a_check_that_breaks_or_hangs_costs_no_other_its_answer(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = threading.Event()

    def breaks(_: Node) -> CheckResult:
        raise RuntimeError("boom")

    def hangs(_: Node) -> CheckResult:
        hold.wait()
        raise AssertionError

    subject = CHECKS["shm"].subject
    monkeypatch.setitem(CHECKS, "shm", Check(subject, breaks))
    monkeypatch.setitem(CHECKS, "iommu", Check(CHECKS["iommu"].subject, hangs))
    try:
        report = run(node, seconds=3)
    finally:
        hold.set()
    by_id = {result.id: result for result in report.results}
    assert by_id["shm"].detail == "the check broke: RuntimeError: boom"
    assert by_id["iommu"].detail == "no answer within 3 s"
    assert by_id["arch"].status == "pass"


def test_only_and_skip_choose_and_a_skipped_check_is_reported(node: FakeNode) -> None:
    assert [r.id for r in run(node, only=["shm", "arch"]).results] == ["arch", "shm"]
    skipped = next(r for r in run(node, skip=["arch"]).results if r.id == "arch")
    assert (skipped.status, skipped.detail) == ("not_checked", "skipped as asked")
    assert run(node, skip=["arch"]).verdict() == "pass"
    with pytest.raises(ValueError, match="no check is called archs"):
        run(node, only=["archs"])


def test_the_checks_read_and_change_nothing(node: FakeNode, tree: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in tree.rglob("*")}
    run(node)
    assert {p: p.stat().st_mtime_ns for p in tree.rglob("*")} == before


STEP = NextStep("Look.", "ls /", "read_only")


def sample(*statuses: str) -> Report:
    return Report(
        "host-1",
        ("GPU 0",),
        None,
        tuple(
            CheckResult(f"c{n}", f"Check {n}", status, "other", f"detail {n}", (), STEP)  # type: ignore[arg-type]
            for n, status in enumerate(statuses)
        ),
    )


def test_failures_stand_first_then_warnings_then_the_rest() -> None:
    text = as_text(sample("pass", "warn", "not_checked", "fail"))
    places = [text.index(f"detail {n}") for n in (3, 1, 0, 2)]
    assert places == sorted(places)
    assert text.startswith("This node fails: 1 failed, 1 warned, 1 passed, 1 not checked.")
    assert text.count("$ ls /") == 2
    assert "\x1b" not in text


def test_fail_on_warn_makes_a_warning_a_failure() -> None:
    assert sample("warn").verdict("fail") == "pass"
    assert sample("warn").verdict("warn") == "fail"
    assert json.loads(as_json(sample("warn"), "warn"))["verdict"] == "fail"


def test_text_from_the_machine_cannot_drive_the_terminal() -> None:
    bad = CheckResult("c", "Check", "fail", "other", "eth0\x1b[2J\nand\r more", (), STEP)
    text = as_text(Report("h\x1b]0;x\x07", (), None, (bad,)))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text
    assert "\x07" not in text


def test_the_json_holds_what_the_text_says(node: FakeNode) -> None:
    node.environ = {"NCCL_SOCKET_IFNAME": "bond0"}
    record = json.loads(as_json(run(node)))
    assert record["verdict"] == "fail"
    assert sum(record["counts"].values()) == len(record["checks"]) == len(CHECKS)
    broken = next(check for check in record["checks"] if check["id"] == "interface")
    assert broken["status"] == "fail"
    assert broken["category"] == "network-interface"
    assert shipped().get(broken["rules"][0]) is not None
    assert f"[interface, network-interface, {broken['rules'][0]}" in as_text(run(node))
    assert broken["next_step"] == {
        "do": "List interfaces and addresses.",
        "command": "ip -brief address",
        "effect": "read_only",
    }


@pytest.mark.parametrize(("check", "category"), sorted(TRIAGE_RULES))
def test_a_check_points_at_rules_of_its_own_cause_class(check: str, category: str) -> None:
    assert check in CHECKS
    for name in TRIAGE_RULES[check, category]:
        rule = shipped().get(name)
        assert rule is not None, name
        assert rule.category == category, name


def test_the_same_container_verifies(node: FakeNode, tmp_path: Path) -> None:
    path = tmp_path / "node.json"
    identity.write(identity.of(node), path)
    assert identity.compare(identity.read(path), identity.of(node)).status == "pass"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("node")] == ["node.json"]


def test_other_gpus_are_named_by_uuid(node: FakeNode) -> None:
    written = identity.of(node)
    other = FakeNode(node.root)
    other.snapshot = replace(node.snapshot, gpus=(gpu(0), gpu(5)))
    result = identity.compare(written, identity.of(other))
    assert (result.status, result.category) == ("fail", "gpu-not-visible")
    assert f"checked but not here: NVIDIA H200 {gpu(1).uuid}" in result.detail
    assert f"here but not checked: NVIDIA H200 {gpu(5).uuid}" in result.detail


def test_the_order_of_the_gpus_does_not_matter(node: FakeNode) -> None:
    other = FakeNode(node.root)
    other.snapshot = replace(node.snapshot, gpus=(gpu(1), gpu(0)))
    assert identity.compare(identity.of(node), identity.of(other)).status == "pass"


def test_another_library_driver_or_boot_is_named(node: FakeNode, put: Callable[..., None]) -> None:
    written = identity.of(node)
    other = FakeNode(node.root)
    other.nccl = library("nccl-2.26.2.so")
    result = identity.compare(written, identity.of(other))
    assert (result.status, result.category) == ("fail", "version-mismatch")
    assert str(FIXTURES / "elf" / "nccl-2.26.2.so") in result.detail
    third = FakeNode(node.root)
    third.snapshot = replace(node.snapshot, driver="570.86.15")
    put("/proc/sys/kernel/random/boot_id", "another")
    detail = identity.compare(written, identity.of(third)).detail
    assert "driver 580.159.02 then, 570.86.15 now" in detail
    assert "another boot or another host" in detail


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read"),
        ("{", "is no JSON"),
        ("[]", "is not a file of preflight --write"),
        ('{"schema_version": "9"}', "schema version '9'"),
        ('{"schema_version": "1", "gpus": []}', "misses"),
    ],
)
def test_a_file_that_is_none_is_named(tmp_path: Path, content: str | None, says: str) -> None:
    path = tmp_path / "node.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(IdentityError, match=says) as error:
        identity.read(path)
    assert str(path) in str(error.value)


def test_a_place_that_cannot_be_written_is_named(node: FakeNode, tmp_path: Path) -> None:
    with pytest.raises(IdentityError, match="cannot be written"):
        identity.write(identity.of(node), tmp_path / "no" / "node.json")


def test_the_documentation_names_every_check_and_manifest() -> None:
    text = (FIXTURES.parent.parent / "docs" / "preflight.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `")}
    assert rows == {*CHECKS, *MANIFESTS}
