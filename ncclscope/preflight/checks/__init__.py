"""The checks. Each is a function of a Node that answers with one CheckResult and changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ncclscope.preflight.checks import driver, gpu, kernel_log, limits, network, pcie, rdma, torch, variables

if TYPE_CHECKING:
    from collections.abc import Callable

    from ncclscope.preflight.model import CheckResult, Subject
    from ncclscope.preflight.node import Node


@dataclass(frozen=True, slots=True)
class Check:
    """A check and what it is about."""

    subject: Subject
    function: Callable[[Node], CheckResult]


CHECKS: dict[str, Check] = {
    subject.id: Check(subject, function)
    for subject, function in (
        (gpu.GPUS, gpu.gpus),
        (gpu.ARCH, gpu.arch),
        (driver.VERSIONS, driver.versions),
        (driver.RUNTIME, driver.runtime),
        (gpu.HEALTH, gpu.health),
        (gpu.IDLE, gpu.idle),
        (kernel_log.XID, kernel_log.xid),
        (gpu.FABRIC, gpu.fabric),
        (gpu.NVLINK, gpu.nvlink),
        (pcie.ACS, pcie.acs),
        (pcie.IOMMU, pcie.iommu),
        (rdma.INFINIBAND, rdma.infiniband),
        (pcie.GPUDIRECT, pcie.gpudirect),
        (network.INTERFACE, network.interface),
        (network.MASTER, network.master),
        (limits.SHM, limits.shared_memory),
        (limits.MEMLOCK, limits.memlock),
        (limits.FILES, limits.open_files),
        (limits.MEMORY, limits.cgroup_memory),
        (variables.VISIBLE, variables.visible_devices),
        (variables.NAMES, variables.names),
        (variables.VALUES, variables.values),
        (variables.READABLE, variables.readable_failures),
        (torch.SETTINGS, torch.settings),
        (torch.NONBLOCKING, torch.nonblocking),
    )
}
"""All checks by id, in the order of the report."""

DECISIVE = frozenset({gpu.GPUS.id, gpu.ARCH.id})
"""Checks without whose answer nothing can be said of the node: not checked there is 'could not tell'."""
