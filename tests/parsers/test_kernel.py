"""Kernel and tool lines besides Xid: what each says, and what lines beside them do not say."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import kinds_of, line_of, pattern_problems, the_event, unmatched_patterns
from test_kernel_xid import ROWS as XID_ROWS

from ncclscope.parsers import kernel
from ncclscope.parsers.pattern import match


def row(line: str, kind: str, verdict: str, **fields: Any) -> tuple[str, str, str, dict[str, Any]]:
    """verdict is the cause class that a line names, `?class` where it only points to one, else the nature."""
    return line, kind, verdict, fields


ROWS = [
    # NVSwitch and fabric manager
    row(
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error"
        " (First)",
        "kernel.sxid",
        "?nvlink-fabric",
        sxid=12028,
        switch="0000:05:00.0",
        instance=3,
        link=32,
        fatal=False,
    ),
    row(
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "kernel.sxid",
        "nvlink-fabric",
        sxid=20034,
        link=30,
        fatal=True,
        reach="port",
        text="LTSSM Fault Up",
    ),
    row(
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 11012, Correctable, Link 30 ingress ECC",
        "kernel.sxid",
        "info",
        sxid=11012,
        fatal=False,
    ),
    row(
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Severity 1 Engine instance 30 Sub-engine"
        " instance 00",
        "kernel.sxid_detail",
        "info",
        sxid=20034,
    ),
    row(
        "[Jul 23 2024 07:53:55] [ERROR] [tid 841] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch"
        " pci bus id "
        "00000000:86:00.0 physical id 3 port 33",
        "kernel.fabric_sxid",
        "nvlink-fabric",
        sxid=20034,
        switch="0000:86:00.0",
        link=33,
    ),
    row(
        "[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch non-fatal error 12028 on fid 0 on"
        " NVSwitch pci bus "
        "id 00000000:86:00.0 physical id 3 port 61",
        "kernel.fabric_sxid",
        "?nvlink-fabric",
        sxid=12028,
        fatal=False,
    ),
    row(
        "[Sep 17 2024 06:01:46] [ERROR] [tid 1230079] failed to find the GPU handle 5410063385821516767 in"
        " the multicast "
        "team request setup 6130285411925746235.",
        "kernel.fabric_multicast",
        "fabric-manager",
    ),
    row(
        "detected number of NVSwitches don't match with any supported system topology, aborting fabric"
        " manager",
        "kernel.fabric_topology",
        "fabric-manager",
    ),
    row(
        "fabric manager NVIDIA GPU driver interface version 550.127.05 don't match with driver version"
        " 550.120. Please "
        "update with matching NVIDIA driver package.",
        "kernel.fabric_version",
        "fabric-manager",
        manager="550.127.05",
        driver="550.120",
    ),
    row(
        "request to query NVSwitch device information from NVSwitch driver failed with error:WARNING"
        " Nothing to do "
        "[NV_WARN_NOTHING_TO_DO]",
        "kernel.fabric_nothing_to_do",
        "noise",
    ),
    row(
        "systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.",
        "kernel.fabric_service",
        "?fabric-manager",
        state="failed",
    ),
    row(
        "Job for nvidia-fabricmanager.service failed because the control process exited with error code.",
        "kernel.fabric_service",
        "?fabric-manager",
        state="failed",
    ),
    row(
        "[ERROR] [tid 39] No matching network interface found for any IP addresses in the node configuration file",
        "kernel.imex_failed",
        "nvlink-fabric",
    ),
    row(
        "[ERROR] [tid 39] Failed to allocate Imex session for node 3: NV_ERR_IN_USE",
        "kernel.imex_failed",
        "nvlink-fabric",
    ),
    row("ls: cannot access /mnt/dataset/: Stale file handle", "tool.stale_handle", "storage-hang", program="ls"),
    row(
        "Successfully configured all the available NVSwitches to route GPU NVLink traffic.",
        "kernel.fabric_configured",
        "info",
    ),
    row(
        "systemd[1]: Failed to start NVIDIA fabric manager service.",
        "kernel.fabric_service",
        "?fabric-manager",
    ),
    row(
        "systemd[1]: Started NVIDIA fabric manager service.", "kernel.fabric_service", "info", text="Started"
    ),
    row(
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further"
        " processing",
        "kernel.peermem_invalid_context",
        "consequence",
    ),
    row(
        "nvidia-peermem nv_mem_get_pages:471 ERROR error -22 while calling nvidia_p2p_get_pages()",
        "kernel.peermem_error",
        "?gdr-peermem",
        function="nv_mem_get_pages",
    ),
    row(
        "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err 0)",
        "kernel.peermem_symbol",
        "?gdr-peermem",
        module="nvidia_peermem",
    ),
    # the driver without a number
    row(
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        "kernel.gpu_lost",
        "gpu-fell-off-bus",
        gpu="0000:3b:00.0",
    ),
    row(
        "NVRM: nvCheckOkFailedNoLog: Check failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F)"
        " returned from "
        "pRmApi->Control(x) @ mem_desc.c:1234",
        "kernel.gpu_lost_echo",
        "?gpu-fell-off-bus",
    ),
    row(
        "NVRM: _threadNodeCheckTimeout: API_GPU_ATTACHED_SANITY_CHECK failed!",
        "kernel.gpu_lost_echo",
        "?gpu-fell-off-bus",
    ),
    row(
        "NVRM: krcRcAndNotifyAllChannels_IMPL: RC all channels for critical error 79.",
        "kernel.nvrm_all_channels",
        "consequence",
        prev_xid=79,
    ),
    row(
        "NVRM: A GPU crash dump has been created. If possible, please run",
        "kernel.nvrm_crash_dump",
        "consequence",
    ),
    row(
        "NVRM: GPU at PCI:0000:9b:00: GPU-509665ad-b600-ac93-3616-d754b23d636d",
        "kernel.gpu_uuid",
        "info",
        gpu="0000:9b:00.0",
        uuid="GPU-509665ad-b600-ac93-3616-d754b23d636d",
    ),
    row("NVRM: GPU Board Serial Number: 1650124014249", "kernel.gpu_serial", "info", serial="1650124014249"),
    row("NVRM: GPU 0000:01:00.0: GPU serial number is 0.", "kernel.gpu_serial", "info", serial="0"),
    row(
        "NVRM: _kgspClassifyGspTimeout: ================ GSP core unresponsive ===============",
        "kernel.gsp_unresponsive",
        "gpu-hang",
    ),
    row("NVRM: kgspHeartbeat: GSP RM heartbeat timed out", "kernel.gsp_unresponsive", "gpu-hang"),
    row(
        "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:9b:00 (printing 1 of every 30).  The"
        " GPU likely "
        "needs to be reset.",
        "kernel.gsp_rate_limit",
        "?gpu-hang",
        gpu="0000:9b:00.0",
        count=30,
    ),
    row(
        "NVRM: _kgspLogRpcSanityCheckFailure: GPU0 sanity check failed 0xf waiting for RPC response from"
        " GSP. Expected "
        "function 103 (GSP_RM_ALLOC) sequence 77 (0x2080 0x4).",
        "kernel.gsp_sanity",
        "?gpu-fell-off-bus",
    ),
    row(
        "NVRM: _issueRpcAndWait: rpcSendMessage failed with status 0x0000000f for fn 78 sequence 988140!",
        "kernel.gsp_rpc_failed",
        "symptom",
        what="rpcSendMessage",
    ),
    row(
        "NVRM: _issueRpcAndWait: rpcRecvPoll timedout for fn 76 sequence 3987!",
        "kernel.gsp_rpc_failed",
        "symptom",
        what="rpcRecvPoll",
    ),
    row(
        "NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7",
        "kernel.gpu_locked",
        "gpu-hang",
    ),
    row(
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:894)",
        "kernel.rm_init_failed",
        "?gpu-not-visible",
        gpu="0000:01:00.0",
        init_status="0x22:0x56:894",
    ),
    row(
        "NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0",
        "kernel.rm_init_failed",
        "consequence",
    ),
    row("NVRM: osInitNvMapping: *** Cannot attach gpu", "kernel.gpu_attach_failed", "?gpu-fell-off-bus"),
    row(
        "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
        "kernel.bar_invalid",
        "?gpu-not-visible",
    ),
    row(
        "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:3b:00.0)",
        "kernel.bar_invalid",
        "?gpu-not-visible",
        gpu="0000:3b:00.0",
    ),
    row(
        "NVRM: The NVIDIA probe routine failed for 1 device(s).",
        "kernel.nvrm_probe_failed",
        "?gpu-not-visible",
        count=1,
    ),
    row(
        "nvidia: probe of 0000:3b:00.0 failed with error -1",
        "kernel.nvrm_probe_failed",
        "consequence",
        gpu="0000:3b:00.0",
    ),
    row(
        "nvidia 0000:3b:00.0: probe with driver nvidia failed with error -1",
        "kernel.nvrm_probe_failed",
        "consequence",
    ),
    row("NVRM: No NVIDIA GPU found.", "kernel.no_gpu", "gpu-not-visible"),
    row("NVRM: None of the NVIDIA devices were initialized.", "kernel.no_gpu", "gpu-not-visible"),
    row(
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build  "
        "(dvs-builder@U22)",
        "kernel.driver_loaded",
        "info",
        version="570.158.01",
    ),
    row(
        "NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer3's postRxDetLinkMask failed!",
        "kernel.nvlink_discovery_failed",
        "?nvlink-fabric",
        peer=3,
    ),
    row(
        "NVRM: Going over RM unhandled interrupt threshold for irq 212",
        "kernel.gpu_interrupts",
        "symptom",
        irq="212",
    ),
    row(
        "NVRM: Invalid argument in nv_p2p_get_pages,address or length are not aligned address=0x7f00,"
        " length=0x1000",
        "kernel.p2p_pages",
        "?gdr-peermem",
    ),
    row(
        "NVRM: nvAssertFailedNoLog: Assertion failed: 0 @ kernel_gsp.c:2210",
        "kernel.nvrm_assert",
        "consequence",
    ),
    row(
        "nvidia-modeset: ERROR: GPU:0: Failed to query display engine channel state:"
        " 0x0000c67e:0:0:0x0000000f",
        "kernel.nvidia_modeset",
        "noise",
    ),
    row("nvidia-uvm: Loaded the UVM driver, major device number 511.", "kernel.uvm_loaded", "info"),
    # memory of the host, processes
    row(
        "Memory cgroup out of memory: Killed process 1891 (python) total-vm:322829464kB, anon-rss:4934512kB, "
        "file-rss:409572kB, shmem-rss:20736kB, UID:0 pgtables:12016kB oom_score_adj:0",
        "kernel.oom_kill",
        "oom-cgroup",
        pid=1891,
        name="python",
        scope="memcg",
        anon_kb=4934512,
        shmem_kb=20736,
        total_vm_kb=322829464,
    ),
    row(
        "Memory cgroup out of memory: Kill process 8231 (python) score 1974 or sacrifice child",
        "kernel.oom_kill",
        "oom-cgroup",
        pid=8231,
        anon_kb=None,
    ),
    row(
        "Out of memory: Killed process 15784 (python3) total-vm:11,964,000kB, anon-rss:4288000kB,"
        " file-rss:3028kB",
        "kernel.oom_kill",
        "oom-host",
        pid=15784,
        scope="global",
        total_vm_kb=11964000,
    ),
    row(
        "Killed process 8231 (python) total-vm:3281340kB, anon-rss:204800kB, file-rss:4kB",
        "kernel.oom_victim",
        "symptom",
        pid=8231,
        anon_kb=204800,
    ),
    row(
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask="
        "(null),cpuset=job,mems_allowed=0,oom_memcg=/job,task_memcg=/job/a,"
        "task=python,pid=1891,uid=0",
        "kernel.oom_constraint",
        "oom-cgroup",
        pid=1891,
        cgroup="/job",
        task_cgroup="/job/a",
    ),
    row(
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask="
        "(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg=/init.scope,"
        "task=python,pid=7899,uid=0",
        "kernel.oom_constraint",
        "oom-host",
        pid=7899,
        name="python",
    ),
    row("memory: usage 6291456kB, limit 6291456kB, failcnt 44", "kernel.oom_limit", "info", limit_kb=6291456),
    row(
        "oom_reaper: reaped process 4512 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
        "kernel.oom_reaped",
        "?oom-host",
        pid=4512,
    ),
    row(
        "train.service: A process of this unit has been killed by the OOM killer.",
        "kernel.oom_unit",
        "?oom-cgroup",
        unit="train.service",
    ),
    row(
        "Killed /user.slice/user-1000.slice/job.scope due to memory pressure for /user.slice being 80.1% >"
        " 60.0%",
        "kernel.oomd_kill",
        "oom-host",
    ),
    row(
        "python3: page allocation failure: order:5, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null)",
        "kernel.page_allocation",
        "symptom",
        name="python3",
    ),
    row(
        "cgroup: fork rejected by pids controller in /kubepods/pod1497cd14",
        "kernel.pids_limit",
        "symptom",
        cgroup="/kubepods/pod1497cd14",
    ),
    row("VFS: file-max limit 1000000 reached", "kernel.file_max", "fd-limit"),
    row(
        "pt_main_thread[2536443]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4"
        " in "
        "libnccl.so.2[7f7c7ac00000+d3d3000]",
        "kernel.segfault",
        "?rank-died",
        pid=2536443,
        name="pt_main_thread",
        library="libnccl.so.2",
    ),
    row(
        "python[77]: segfault at 0 ip 0000000000000000 sp 00007ffd error 14",
        "kernel.segfault",
        "?rank-died",
        pid=77,
        library=None,
    ),
    row(
        "traps: python3[48211] trap invalid opcode ip:7f1d3c2a4b10 sp:7ffd1e2f3a40 error:0 in "
        "libtorch_cpu.so[7f1d38000000+9c00000]",
        "kernel.traps",
        "?rank-died",
        pid=48211,
        trap="trap invalid opcode",
        library="libtorch_cpu.so",
    ),
    row(
        "traps: python3[48211] general protection fault ip:55d0 sp:7ffd error:0 in python3.10[55d0c0+1f0000]",
        "kernel.traps",
        "?rank-died",
        library="python3.10",
    ),
    row(
        'audit: type=1701 audit(1732992000.123:456): auid=1000 uid=1000 ses=3 pid=48211 comm="python3" '
        'exe="/usr/bin/python3.10" sig=6 res=1',
        "kernel.abnormal_end",
        "consequence",
        pid=48211,
        name="python3",
        signal=6,
    ),
    row(
        "Memory failure: 0x1b3f9c0: Sending SIGBUS to python3:48211 due to hardware memory corruption",
        "kernel.memory_failure",
        "rank-died",
        pid=48211,
    ),
    # PCIe and IOMMU
    row(
        "pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0",
        "kernel.aer",
        "symptom",
        pci="0000:00:03.0",
        severity="fatal",
    ),
    row(
        "nvidia 0000:07:00.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, "
        "(Requester ID)",
        "kernel.aer",
        "?gpu-fell-off-bus",
        pci="0000:07:00.0",
        severity="non-fatal",
        layer="Transaction Layer",
    ),
    row(
        "nvidia 0000:07:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)",
        "kernel.aer",
        "info",
        severity="corrected",
    ),
    row(
        "pcieport 0000:00:03.0:   device [8086:6f08] error status/mask=00004020/00000000",
        "kernel.aer_status",
        "info",
        vendor_device="8086:6f08",
    ),
    row(
        "pcieport 0000:00:03.0:    [14] CmpltTO                (First)",
        "kernel.aer_bit",
        "info",
        name="CmpltTO",
        pci="0000:00:03.0",
    ),
    row(
        "nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)",
        "kernel.aer_no_recovery",
        "?gpu-fell-off-bus",
    ),
    row(
        "pcieport 0000:00:03.0: AER: device recovery failed",
        "kernel.aer_recovery",
        "consequence",
        result="failed",
    ),
    row(
        "pcieport 0000:20:01.1: DPC: containment event, status:0x0009: unmasked uncorrectable error detected",
        "kernel.pcie_containment",
        "?gpu-fell-off-bus",
        pci="0000:20:01.1",
    ),
    row(
        "pcieport 0000:20:01.1: pciehp: Slot(17): Link Down",
        "kernel.pcie_link_down",
        "?gpu-fell-off-bus",
        slot="17",
    ),
    row(
        "pci 0000:3b:00.0: 63.012 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link at"
        " 0000:3a:00.0 "
        "(capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)",
        "kernel.pcie_bandwidth",
        "info",
        width="8",
        capable_width="16",
    ),
    row(
        "DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0x3c0000000000 [fault reason 0x06]"
        " PTE Read access "
        "is not set",
        "kernel.iommu_fault",
        "?p2p-acs-iommu",
        pci="0000:3b:00.0",
        address="3c0000000000",
    ),
    row("DMAR: DRHD: handling fault status reg 2", "kernel.iommu_status", "?p2p-acs-iommu"),
    row(
        "mlx5_core 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x002f address=0x24d08000"
        " flags=0x0000]",
        "kernel.iommu_fault",
        "?p2p-acs-iommu",
        pci="0000:41:00.0",
        driver="mlx5_core",
    ),
    row("AMD-Vi: Completion-Wait loop timed out", "kernel.iommu_timeout", "?gpu-fell-off-bus"),
    row(
        "arm-smmu-v3 arm-smmu-v3.10.auto: event 0x10 received:",
        "kernel.iommu_fault",
        "?p2p-acs-iommu",
        iommu="SMMU",
    ),
    row("iommu: Default domain type: Translated", "kernel.iommu_mode", "info", mode="Translated"),
    row(
        "pci 0000:00:1c.0: Intel PCH root port ACS workaround enabled",
        "kernel.acs",
        "info",
        pci="0000:00:1c.0",
    ),
    # adapters
    row(
        "mlx5_core 0000:53:00.0 enp83s0f0np0: Link down",
        "kernel.mlx5_link",
        "?ib-link",
        pci="0000:53:00.0",
        iface="enp83s0f0np0",
        state="down",
    ),
    row("mlx5_core 0000:53:00.0 enp83s0f0np0: Link up", "kernel.mlx5_link", "info", state="up"),
    row(
        "mlx5_core 0000:08:00.0 mlx5_0: Port: 1 Link DOWN",
        "kernel.ib_port",
        "?ib-link",
        ib_device="mlx5_0",
        port=1,
        state="down",
    ),
    row("mlx5_core 0000:08:00.0 mlx5_0: Port: 1 Link ACTIVE", "kernel.ib_port", "info", state="active"),
    row(
        "mlx5_core 0000:5c:00.0: mlx5_port_module_event:1131:(pid 0): Port module event[error]: module 0,"
        " Cable error, "
        "High Temperature",
        "kernel.mlx5_module",
        "ib-link",
        event="Cable error",
        detail="High Temperature",
    ),
    row(
        "mlx5_core 0000:5c:00.0: Port module event: module 1, Cable unplugged",
        "kernel.mlx5_module",
        "?ib-link",
        module="1",
    ),
    row("mlx5_core 0000:5c:00.0: Port module event: module 1, Cable plugged", "kernel.mlx5_module", "info"),
    row(
        "mlx5_core 0000:5c:00.0: temp_warn:186:(pid 0): High temperature on sensors with bit set 0 1",
        "kernel.mlx5_temperature",
        "?ib-link",
    ),
    row(
        "mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe"
        " slot (27W).",
        "kernel.mlx5_power",
        "noise",
        watts="27",
    ),
    row(
        "mlx5_core 0000:d2:00.0: poll_health:825:(pid 0): device's health compromised - reached miss count",
        "kernel.mlx5_health",
        "ib-link",
        pci="0000:d2:00.0",
    ),
    row(
        "mlx5_core 0000:73:00.0: print_health_info:423:(pid 0): Health issue observed, firmware internal"
        " error, "
        "severity(3) ERROR:",
        "kernel.mlx5_health",
        "?ib-link",
        severity="ERROR",
    ),
    row(
        "mlx5_core 0000:d2:00.0: print_health_info:432:(pid 0): synd 0x1: firmware internal error",
        "kernel.mlx5_health",
        "?ib-link",
        syndrome="0x1",
    ),
    row(
        "mlx5_core 0000:d2:00.0: poll_health:831:(pid 0): Fatal error 1 detected",
        "kernel.mlx5_fatal",
        "ib-link",
    ),
    row(
        "mlx5_core 0000:03:00.0: wait_func:1195:(pid 1967079): ENABLE_HCA(0x104) timeout. Will cause a"
        " leak of a command "
        "resource",
        "kernel.mlx5_command_timeout",
        "ib-link",
        command="ENABLE_HCA",
    ),
    row(
        "mlx5_core 0000:56:00.0: wait_func_handle_exec_timeout:1159:(pid 72061): cmd[0]: ACCESS_REG(0x805)"
        " No done "
        "completion",
        "kernel.mlx5_command_slow",
        "?ib-link",
        command="ACCESS_REG",
    ),
    row(
        "mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid 1441871): ACCESS_REG(0x805) op_mod(0x1) failed,"
        " status bad "
        "resource(0x5), syndrome (0x305684), err(-22)",
        "kernel.mlx5_command_failed",
        "noise",
        command="ACCESS_REG",
        reason="bad resource",
    ),
    row(
        "mlx5_core 0000:d2:00.0: mlx5_cmd_out_err:838:(pid 7): CREATE_QP(0x500) op_mod(0x0) failed, status"
        " limits "
        "exceeded(0x8), syndrome (0x65b5ef), err(-12)",
        "kernel.mlx5_command_failed",
        "?ib-link",
        command="CREATE_QP",
    ),
    row(
        "infiniband mlx5_0: mlx5_handle_error_cqe:333:(pid 0): WC error: 10, Message: remote access error",
        "kernel.ib_completion_error",
        "?ib-link",
        ib_device="mlx5_0",
        status=10,
    ),
    row("infiniband mlx5_0: dump_cqe:272:(pid 0): dump error cqe", "kernel.ib_completion_dump", "noise"),
    row(
        "mlx5_core 0000:65:00.0 ens1f0np0: TX timeout detected",
        "kernel.net_tx_timeout",
        "?ib-link",
        iface="ens1f0np0",
    ),
    row("NETDEV WATCHDOG: eth0 (mlx5_core): transmit queue 0 timed out", "kernel.net_tx_timeout", "?ib-link"),
    row(
        "mlx5_core 0000:65:00.0 eth0: NETDEV WATCHDOG: CPU: 5: transmit queue 0 timed out 5032 ms",
        "kernel.net_tx_timeout",
        "?ib-link",
        pci="0000:65:00.0",
    ),
    row("IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready", "kernel.link_ready", "info", iface="ib0"),
    row(
        "bond0: (slave enp83s0f0np0): link status definitely down, disabling slave",
        "kernel.bond_link",
        "?ib-link",
        iface="enp83s0f0np0",
    ),
    row(
        "bnxt_en 0000:19:00.0 ens1f0np0: NIC Link is Down",
        "kernel.link_down",
        "?ib-link",
        driver="bnxt_en",
        state="down",
    ),
    row("ice 0000:18:00.0 ens1f0: NIC Link is up 100 Gbps", "kernel.link_down", "info", state="up"),
    row(
        "infiniband rdmap16s27: The device didn't send any completion for admin cmd CREATE_QP(6) status 0 "
        "(ctx 0x0, sq "
        "producer: 12, sq consumer: 11, cq consumer: 11)",
        "kernel.efa_timeout",
        "efa-plugin",
        ib_device="rdmap16s27",
        command="CREATE_QP",
    ),
    row("efa 0000:00:06.0: Wait for completion (polling) timeout", "kernel.efa_timeout", "efa-plugin"),
    row("infiniband rdmap0s6: Admin queue is closed", "kernel.efa_closed", "?efa-plugin"),
    row(
        "infiniband rdmap0s6: Failed to process command REG_MR (opcode 7) comp_status 1 err -12",
        "kernel.efa_command",
        "?efa-plugin",
        command="REG_MR",
        error="-12",
    ),
    row("efa 0000:00:06.0: Reset indication didn't turn on", "kernel.efa_reset", "efa-plugin"),
    row("infiniband bnxt_re0: Failed to modify HW QP", "kernel.rdma_error", "?ib-link", ib_device="bnxt_re0"),
    row("nf_conntrack: nf_conntrack: table full, dropping packet", "kernel.conntrack_full", "?firewall-port"),
    row("neighbour: arp_cache: neighbor table overflow!", "kernel.neighbour_overflow", "?firewall-port"),
    row(
        "TCP: request_sock_TCP: Possible SYN flooding on port 29500. Sending cookies.  Check SNMP counters.",
        "kernel.syn_flood",
        "?rendezvous",
        port=29500,
    ),
    row("TCP: out of memory -- consider tuning tcp_mem", "kernel.tcp_memory", "symptom"),
    row("TCP: too many orphaned sockets", "kernel.tcp_orphans", "consequence"),
    # the host
    row(
        "dmesg: read kernel buffer failed: Operation not permitted",
        "kernel.log_unreadable",
        "info",
        reason="Operation not permitted",
    ),
    row(
        "Kernel panic - not syncing: Fatal machine check",
        "kernel.panic",
        "rank-died",
        text="Fatal machine check",
    ),
    row(
        "mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: cc00000000010090",
        "kernel.mce",
        "symptom",
        cpu="12",
    ),
    row("mce: Uncorrected hardware memory error in user-access at 1b3f9c0", "kernel.mce", "?rank-died"),
    row(
        "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x12a3f)",
        "kernel.edac",
        "info",
        error="CE",
        count=1,
    ),
    row(
        "EDAC MC1: 1 UE memory read error on CPU_SrcID#1_DIMM#3 (channel:0)",
        "kernel.edac",
        "symptom",
        error="UE",
    ),
    row(
        "{1}[Hardware Error]: event severity: recoverable",
        "kernel.firmware_error",
        "symptom",
        severity="recoverable",
    ),
    row("Uhhuh. NMI received for unknown reason 2c on CPU 14.", "kernel.nmi", "symptom"),
    row("watchdog: Watchdog detected hard LOCKUP on cpu 12", "kernel.hard_lockup", "symptom"),
    row("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "kernel.rcu_stall", "symptom"),
    row(
        "Future hung task reports are suppressed, see sysctl kernel.hung_task_warnings",
        "kernel.hung_task_muted",
        "info",
    ),
    row(
        "workqueue: ib_cache_event_task [ib_core] hogged CPU for >10000us 4 times, consider switching to"
        " WQ_UNBOUND",
        "kernel.workqueue",
        "noise",
    ),
    row(
        'audit: type=1400 audit(1732992000.123:457): apparmor="DENIED" operation="ptrace"',
        "kernel.access_denied",
        "symptom",
        operation="ptrace",
    ),
    row(
        "nfs: server 10.0.3.7 not responding, still trying",
        "kernel.nfs_stalled",
        "storage-hang",
        server="10.0.3.7",
        how="still trying",
    ),
    row("nfs: server 10.0.3.7 OK", "kernel.nfs_back", "info", server="10.0.3.7"),
    row("NFS: nfs4_reclaim_open_state: Lock reclaim failed!", "kernel.nfs_lock", "?storage-hang"),
    row(
        "LustreError: 167-0: scratch-OST0003-osc-ffff9a1b: This client was evicted by scratch-OST0003; in"
        " progress",
        "kernel.lustre_evicted",
        "storage-hang",
        server="scratch-OST0003",
    ),
    row(
        "Lustre: scratch-OST0003-osc-ffff9a1b: Connection to scratch-OST0003 (at 10.0.5.11@o2ib) was lost;"
        " in progress "
        "operations using this service will wait for recovery to complete",
        "kernel.lustre_lost",
        "storage-hang",
        address="10.0.5.11@o2ib",
    ),
    row(
        "Lustre: 2211:0:(client.c:2305:ptlrpc_expire_one_request()) @@@ Request sent has timed out for"
        " slow reply: [sent",
        "kernel.lustre_slow",
        "?storage-hang",
    ),
    row(
        "mmfs: [E] Lost membership in cluster gpfs01. Unmounting file systems.", "kernel.gpfs", "storage-hang"
    ),
    row("mmfs: [W] The disk is slow.", "kernel.gpfs", "info", level="W"),
    row(
        "nvme nvme0: I/O 123 QID 4 timeout, reset controller",
        "kernel.nvme_timeout",
        "?storage-hang",
        disk="nvme0",
    ),
    row(
        "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff",
        "kernel.nvme_down",
        "storage-hang",
        disk="nvme0",
    ),
    row(
        "I/O error, dev nvme0n1, sector 123456 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
        "kernel.disk_error",
        "storage-hang",
        disk="nvme0n1",
    ),
    row("blk_update_request: I/O error, dev sr0, sector 0", "kernel.disk_error", "noise", disk="sr0"),
    row(
        "Buffer I/O error on dev dm-0, logical block 1234567, lost async page write",
        "kernel.buffer_error",
        "?storage-hang",
        disk="dm-0",
    ),
    row("EXT4-fs (nvme0n1p2): Remounting filesystem read-only", "kernel.fs_readonly", "?storage-hang"),
    row(
        "XFS (dm-3): Filesystem has been shut down due to log error (0x2).",
        "kernel.fs_shutdown",
        "?storage-hang",
    ),
    row(
        "EXT4-fs (sda1): Delayed block allocation failed for inode 12 at logical offset 0 with max blocks"
        " 8 with error 28",
        "kernel.fs_full",
        "disk-full",
        disk="sda1",
    ),
    row(
        "mce: CPU5: Package temperature is above threshold, cpu clock is throttled (total events = 17)",
        "kernel.cpu_throttled",
        "symptom",
        cpu="5",
    ),
    row(
        "CPU5: Core temperature above threshold, cpu clock throttled (total events = 1)",
        "kernel.cpu_throttled",
        "symptom",
    ),
    row("CPU5: Package temperature/speed normal", "kernel.cpu_normal", "info"),
    row(
        "thermal thermal_zone0: acpitz: critical temperature reached, shutting down",
        "kernel.thermal_shutdown",
        "?gpu-thermal-power",
    ),
    # tools
    row(
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to"
        " recover this GPU",
        "tool.smi_no_handle",
        "gpu-fell-off-bus",
        gpu="0000:02:00.0",
    ),
    row(
        "Unable to determine the device handle for GPU0000:1B:00.0: Unknown Error",
        "tool.smi_no_handle",
        "gpu-fell-off-bus",
        gpu="0000:1b:00.0",
    ),
    row(
        "Unable to determine the device handle for GPU2: 0000:41:00.0: Unknown Error",
        "tool.smi_no_handle",
        "gpu-fell-off-bus",
        gpu="0000:41:00.0",
    ),
    row(
        "Unable to determine the device handle for GPU0000:1B:00.0: Not Found",
        "tool.smi_no_handle",
        "symptom",
        reason="Not Found",
    ),
    row("GPU is lost.  Reboot the system to recover this GPU", "tool.smi_gpu_lost", "gpu-fell-off-bus"),
    row(
        "Failed to initialize NVML: Driver/library version mismatch", "tool.nvml_mismatch", "driver-mismatch"
    ),
    row("        Pending                           : Yes", "tool.smi_remap_pending", "?gpu-hardware-ecc"),
    row("        SW Power Cap                      : Active", "tool.smi_power_cap", "info", state="Active"),
    row(
        "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown.",
        "tool.nvml_mismatch",
        "driver-mismatch",
    ),
    row("NVML library version: 535.183", "tool.nvml_version", "info", version="535.183"),
    row("Failed to initialize NVML: Unknown Error", "tool.nvml_failed", "?gpu-not-visible"),
    row(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the"
        " latest NVIDIA",
        "tool.smi_no_driver",
        "?gpu-not-visible",
    ),
    row("No devices were found", "tool.smi_no_devices", "?gpu-not-visible"),
    row(
        "|ERR!   ERR! ERR!    ERR! / ERR! |   3MiB / 81559MiB |    ERR!      Default |",
        "tool.smi_err",
        "?gpu-hang",
    ),
    row("        HW Thermal Slowdown               : Active", "tool.smi_slowdown", "gpu-thermal-power"),
    row("        SW Thermal Slowdown               : Active", "tool.smi_slowdown", "gpu-thermal-power"),
    row(
        "    HW Power Brake Slowdown: Active",
        "tool.smi_slowdown",
        "gpu-thermal-power",
        reason="HW Power Brake Slowdown",
    ),
    row("        Remapping Failure Occurred        : Yes", "tool.smi_remap_failed", "gpu-hardware-ecc"),
    row("            SRAM Threshold Exceeded       : Yes", "tool.smi_sram_threshold", "gpu-hardware-ecc"),
    row(
        "cat: /sys/kernel/mm/memory_peers/nv_mem_nc/version: No such file or directory",
        "tool.peermem_absent",
        "?gdr-peermem",
        path="/nv_mem_nc/version",
    ),
    row(
        "ls: cannot access '/sys/kernel/mm/memory_peers': No such file or directory",
        "tool.peermem_absent",
        "?gdr-peermem",
    ),
    row(
        "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument",
        "tool.peermem_load_failed",
        "?gdr-peermem",
        reason="Invalid argument",
    ),
    row("max locked memory           (kbytes, -l) 64", "tool.memlock", "?memlock-limit", limit_kb=64),
    row("max locked memory       (kbytes, -l) unlimited", "tool.memlock", "info", limit="unlimited"),
    row(
        "Max locked memory         8388608              8388608              bytes",
        "tool.memlock",
        "?memlock-limit",
        limit_kb=8192,
    ),
    row("open files                          (-n) 1024", "tool.open_files", "info", limit="1024"),
    row(
        "shm              64M   64M     0 100% /dev/shm",
        "tool.shm_size",
        "?shm-limit",
        shm_size="64M",
        percent=100,
    ),
    row("shm                    65536       0     65536   0% /dev/shm", "tool.shm_size", "?shm-limit"),
    row("tmpfs           126G  1.2G  125G   1% /dev/shm", "tool.shm_size", "info", percent=1),
    row("Unit nvidia-fabricmanager.service could not be found.", "tool.fabric_manager", "?fabric-manager"),
]


@pytest.mark.parametrize(("line", "kind", "verdict", "fields"), ROWS)
def test_a_line_says_what_it_says(line: str, kind: str, verdict: str, fields: dict[str, Any]) -> None:
    event = the_event(kernel, kind, line)
    assert {name: event.get(name) for name in fields} == fields
    if verdict.startswith("?"):
        assert event.get("suggests") == verdict[1:]
        assert event.get("nature") in ("symptom", "consequence")
        assert event.get("cause") is None
    elif verdict in ("symptom", "consequence", "noise", "info"):
        assert (event.get("nature"), event.get("cause"), event.get("suggests")) == (verdict, None, None)
    else:
        assert (event.get("nature"), event.get("cause")) == ("cause", verdict)


# Rows of a printed table, which mean nothing elsewhere.
ANCHORED = ("tool.smi_err", "tool.open_files")


@pytest.mark.parametrize(("line", "kind"), [(line, kind) for line, kind, *_ in ROWS if kind not in ANCHORED])
def test_a_line_keeps_its_meaning_behind_an_unknown_prefix(line: str, kind: str) -> None:
    assert kind in kinds_of(kernel, f"[12345.678901] {line}")


@pytest.mark.parametrize("line", sorted({line for line, *_ in ROWS}))
def test_a_line_cut_anywhere_is_read_without_error(line: str) -> None:
    for end in range(0, len(line), 7):
        kinds_of(kernel, line[:end])
        kinds_of(kernel, line[end:])


@pytest.mark.parametrize(
    "line",
    [
        "",
        "epoch 3 loss 0.31 process killed time 3.2s",
        "Killed process group 12 of the launcher",
        "handled: Out of memory in the test harness",
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "the server is not responding, retrying",
        "checkpoint: I/O error, device busy",
        "Link down for maintenance",
        "INFO: task queue blocked, waiting",
        "We found no devices; No devices were found matching cuda:9 in this list of four",
        "    HW Slowdown                       : Not Active",
        "    Remapping Failure Occurred        : No",
        "tmpfs  126G  1.2G  125G   1% /dev/shm/nccl-abc",
        "max locked memory is important for RDMA",
        "Failed to initialize NVML: retry 3",
        "GPU 0 has fallen behind the other ranks",
        "infiniband mlx5_0: registered",
        "ena 0000:00:05.0: Wait for completion (polling) timeout",
        "TCP: request_sock_TCP: Possible SYN flooding on port",
        "EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Quota mode: none.",
        "nvidia-nvlink: Nvlink Core is being initialized, major device number 510",
        "audit: type=1400 audit(1732992000.1:4): apparmor=\"ALLOWED\" operation=\"open\"",
        "pci 0000:3b:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)",
        "NVML library version mismatch found",
    ],
)  # fmt: skip
def test_neighbours_say_nothing(line: str) -> None:
    assert kinds_of(kernel, line) == []


def test_literals_and_expressions_keep_their_promises() -> None:
    assert pattern_problems(kernel) == []


def test_every_pattern_has_a_row() -> None:
    lines = [line_of(line) for line, *_ in (*ROWS, *XID_ROWS)]
    extra = [
        line_of(
            "NVRM: nvAssertFailedNoLog: Assertion failed: Back to back GSP RPC timeout detected! GPU marked"
        ),
        line_of(
            "python invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0"
        ),
    ]
    assert unmatched_patterns(kernel, [*lines, *extra]) == []


def test_no_pattern_is_quadratic() -> None:
    """A line can be 64 KiB of garbage; an expression that rereads it from every position would hang."""
    garbage = [
        "a",
        " ",
        "1",
        "-",
        "x: ",
        "0000:00:00.0 ",
        "NVRM: ",
        "A(0x",
        "infiniband bnxt_re0: ",
        "a.b-",
        "EDAC ",
    ]
    for item in garbage:
        text = (item * 65536)[:65536]
        for pattern in kernel.PATTERNS:
            match(pattern, line_of(f"{text}{pattern.literal}"))
