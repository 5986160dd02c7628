"""Reports of several lines: OOM, API mismatch, a GPU gone at probe, stuck tasks, sections of tools."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import events_of, kinds_of, the_event

from ncclscope.parsers import kernel

FIXTURES = Path(__file__).parent.parent / "fixtures" / "kernel"

API_NEW = """\
NVRM: API mismatch: the client 'python3' (pid 4411)
NVRM: has the version 580.82.07, but this kernel module has
NVRM: the version 580.65.06.  Please make sure that this
NVRM: kernel module and all NVIDIA driver components
NVRM: have the same version."""
API_OLD = """\
NVRM: API mismatch: the client has the version 535.183.01, but
NVRM: this kernel module has the version 535.161.08.  Please
NVRM: make sure that this kernel module and all NVIDIA driver
NVRM: components have the same version."""


def test_api_mismatch_names_client_kernel_and_process() -> None:
    event = the_event(kernel, "kernel.api_mismatch", API_NEW)
    assert event.get("client") == "580.82.07"
    assert event.get("kernel") == "580.65.06"
    assert (event.get("name"), event.get("pid")) == ("python3", 4411)
    assert event.get("cause") == "driver-mismatch"


def test_api_mismatch_of_older_drivers() -> None:
    event = the_event(kernel, "kernel.api_mismatch", API_OLD)
    assert (event.get("client"), event.get("kernel")) == ("535.183.01", "535.161.08")


def test_api_mismatch_in_one_line_and_cut() -> None:
    """A viewer may have joined the lines, a grep may have kept the first one only."""
    joined = the_event(kernel, "kernel.api_mismatch", API_NEW.replace("\n", " "))
    assert (joined.get("client"), joined.get("kernel")) == ("580.82.07", "580.65.06")
    cut = the_event(kernel, "kernel.api_mismatch", API_NEW.split("\n")[0])
    assert cut.get("cause") == "driver-mismatch"
    assert cut.get("client") is None


def test_two_api_mismatches_in_a_row_are_two() -> None:
    assert kinds_of(kernel, f"{API_NEW}\n{API_OLD}").count("kernel.api_mismatch") == 2


PROBE = """\
NVRM: The NVIDIA GPU 0000:b3:00.0
NVRM: (PCI ID: 10de:26b5) installed in this system has
NVRM: fallen off the bus and is not responding to commands."""


def test_gpu_gone_at_probe_is_one_event_with_its_address() -> None:
    event = the_event(kernel, "kernel.gpu_lost", PROBE)
    assert (event.get("gpu"), event.get("cause")) == ("0000:b3:00.0", "gpu-fell-off-bus")
    assert event.lines == 3


def test_gpu_gone_at_probe_from_the_last_line_alone() -> None:
    event = the_event(kernel, "kernel.gpu_lost", PROBE.split("\n")[2])
    assert event.get("gpu") is None
    assert event.get("cause") == "gpu-fell-off-bus"


def test_an_unsupported_gpu_is_not_lost() -> None:
    text = (
        PROBE.split("\n")[0] + " (PCI ID: 10de:2330)\nNVRM: installed in this system is not supported by the"
    )
    assert kinds_of(kernel, text) == []


def test_oom_report_of_a_cgroup() -> None:
    """Recorded: a rank grew past its container's limit (kernel 6.18)."""
    text = (FIXTURES / "oom_cgroup.dmesg").read_text()
    report = the_event(kernel, "kernel.oom_report", text)
    assert report.get("scope") == "memcg"
    assert report.get("cgroup") == "/job"
    assert report.get("limit_kb") == 6291456
    assert (report.get("pid"), report.get("name")) == (1891, "python")
    assert report.get("largest") == ("python:1891", "python:1890", "pt_elastic:1877")
    assert report.get("nature") == "info"
    kill = the_event(kernel, "kernel.oom_kill", text)
    assert (kill.get("pid"), kill.get("cause")) == (1891, "oom-cgroup")


def test_oom_report_of_the_host() -> None:
    text = """\
kworker/1:2 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
Mem-Info:
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),global_oom,task_memcg=/a,task=python,pid=7899
Out of memory: Killed process 7899 (python) total-vm:11964000kB, anon-rss:4288000kB, file-rss:3028kB"""
    report = the_event(kernel, "kernel.oom_report", text)
    assert (report.get("asker"), report.get("pid"), report.get("scope")) == ("kworker/1:2", 7899, "global")
    assert the_event(kernel, "kernel.oom_kill", text).get("cause") == "oom-host"


def test_oom_report_of_old_kernels_counts_the_kill_once() -> None:
    text = """\
python invoked oom-killer: gfp_mask=0x14000c0(GFP_KERNEL), nodemask=(null), order=0, oom_score_adj=0
Task in /slurm/uid_1/job_7/step_0 killed as a result of limit of /slurm/uid_1/job_7
memory: usage 4194304kB, limit 4194304kB, failcnt 12
Memory cgroup out of memory: Kill process 8231 (python) score 1974 or sacrifice child
Killed process 8231 (python) total-vm:3281340kB, anon-rss:204800kB, file-rss:4kB"""
    report = the_event(kernel, "kernel.oom_report", text)
    assert report.get("cgroup") == "/slurm/uid_1/job_7"
    assert the_event(kernel, "kernel.oom_kill", text).get("pid") == 8231


def test_oom_report_cut_before_the_victim_names_none() -> None:
    text = "python invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER), order=0, oom_score_adj=0\nMem-Info:"
    report = the_event(kernel, "kernel.oom_report", text)
    assert report.get("pid") is None
    assert report.get("cause") is None


@pytest.mark.parametrize(
    ("frame", "waits_in", "suggests"),
    [
        (" nfs_wait_bit_killable+0x20/0xa0 [nfs]", "nfs", "storage-hang"),
        (" ptlrpc_queue_wait+0x82/0x230 [ptlrpc]", "lustre", "storage-hang"),
        (" os_acquire_rwlock_write+0x35/0x50 [nvidia]", "nvidia", "gpu-hang"),
        (" mlx5_cmd_exec+0x11/0x20 [mlx5_core]", "rdma", "ib-link"),
        (" ? nfs_wait_bit_killable+0x20/0xa0 [nfs]", None, None),
        (" do_syscall_64+0x5b/0xc0", None, None),
    ],
)
def test_a_hung_task_says_where_it_waits(frame: str, waits_in: str | None, suggests: str | None) -> None:
    text = f"""\
INFO: task python3:48211 blocked for more than 122 seconds.
      Tainted: G           OE      5.15.0-105-generic #115-Ubuntu
"echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.
task:python3         state:D stack:    0 pid:48211 ppid:     1 flags:0x00000004
Call Trace:
 <TASK>
 __schedule+0x24e/0x590
{frame}
 </TASK>
step 12 loss 0.1"""
    event = the_event(kernel, "kernel.hung_task", text)
    assert (event.get("name"), event.get("pid"), event.get("stuck_s")) == ("python3", 48211, 122)
    assert (event.get("waits_in"), event.get("suggests")) == (waits_in, suggests)
    assert event.get("nature") == "symptom"


def test_a_soft_lockup_in_the_adapter_driver() -> None:
    text = (
        "watchdog: BUG: soft lockup - CPU#18 stuck for 27s! [python3:2254956]\n"
        " mlx5e_poll_ico_cq+0x1d2/0x4f0 [mlx5_core]"
    )
    event = the_event(kernel, "kernel.soft_lockup", text)
    assert (event.get("pid"), event.get("waits_in")) == (2254956, "rdma")


SMI = """\
==============NVSMI LOG==============

Attached GPUs                             : 2
GPU 00000000:1B:00.0
    Product Name                          : NVIDIA H200
    Fabric
        State                             : Completed
        Status                            : Success
    GPU Recovery Action                   : None
    Clocks Event Reasons
        Idle                              : Not Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
        SW Thermal Slowdown               : Not Active
    ECC Errors
        Volatile
            SRAM Correctable              : 0
            DRAM Uncorrectable            : 0
        Aggregate
            DRAM Uncorrectable            : 7
    Remapped Rows
        Correctable Error                 : 0
        Pending                           : No
        Remapping Failure Occurred        : No
"""


def test_a_healthy_gpu_of_nvidia_smi_q_is_information() -> None:
    """Aggregate counts are history: only volatile ones belong to this boot."""
    event = the_event(kernel, "tool.smi_gpu", SMI)
    assert event.get("gpu") == "0000:1b:00.0"
    assert event.get("nature") == "info"
    assert event.get("uncorrectable_volatile") is None


@pytest.mark.parametrize(
    ("old", "new", "verdict", "field", "value"),
    [
        ("HW Thermal Slowdown           : Not", "HW Thermal Slowdown           :",
         "gpu-thermal-power", "slowdowns", ("hw_thermal",)),
        ("Pending                           : No", "Pending                           : Yes",
         "?gpu-hardware-ecc", "remap_pending", True),
        ("Occurred        : No", "Occurred        : Yes", "gpu-hardware-ecc", "remap_failed", True),
        ("DRAM Uncorrectable            : 0", "DRAM Uncorrectable            : 2",
         "?gpu-hardware-ecc", "uncorrectable_volatile", 2),
        ("State                             : Completed", "State                             : In Progress",
         "fabric-manager", "fabric_state", "In Progress"),
        ("Status                            : Success",
         "Status                            : Insufficient Resources",
         "nvlink-fabric", "fabric_status", "Insufficient Resources"),
        ("GPU Recovery Action                   : None", "GPU Recovery Action                   : Reset",
         "info", "recovery_action", "Reset"),
    ],
)  # fmt: skip
def test_what_is_wrong_on_a_gpu_of_nvidia_smi_q(
    old: str, new: str, verdict: str, field: str, value: object
) -> None:
    assert old in SMI
    event = the_event(kernel, "tool.smi_gpu", SMI.replace(old, new))
    assert event.get(field) == value
    found = event.get("cause") or (
        f"?{event.get('suggests')}" if event.get("suggests") else event.get("nature")
    )
    assert found == verdict


def test_each_gpu_of_nvidia_smi_q_is_its_own() -> None:
    second = SMI[SMI.index("GPU 00000000") :].replace("1B", "3D").replace(": No\n", ": Yes\n")
    events = [event for event in events_of(kernel, SMI + second) if event.kind == "tool.smi_gpu"]
    assert [(e.get("gpu"), e.get("remap_failed")) for e in events] == [
        ("0000:1b:00.0", False),
        ("0000:3d:00.0", True),
    ]


def test_fabric_section_alone() -> None:
    event = the_event(
        kernel, "tool.smi_gpu", "    Fabric\n        State   : In Progress\n        Status  : N/A"
    )
    assert (event.get("cause"), event.get("gpu")) == ("fabric-manager", None)


IBSTAT = """\
CA 'mlx5_0'
	CA type: MT4129
	Number of ports: 1
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 400
		Link layer: InfiniBand
CA 'mlx5_1'
	CA type: MT4129
	Number of ports: 1
	Port 1:
		State: Down
		Physical state: Disabled
		Rate: 10
		Link layer: InfiniBand
"""
DEVINFO = """\
hca_id:	mlx5_3
	transport:			InfiniBand (0)
	phys_port_cnt:			1
		port:	1
			state:			PORT_DOWN (1)
			max_mtu:		4096 (5)
			link_layer:		Ethernet
"""
IBSTATUS = """\
Infiniband device 'mlx5_2' port 1 status:
	default gid:	 fe80:0000:0000:0000:0000:0000:0000:0001
	state:		 1: DOWN
	phys state:	 3: Disabled
	rate:		 10 Gb/sec (1X SDR)
	link_layer:	 InfiniBand
"""


@pytest.mark.parametrize(
    ("text", "adapter", "layer"),
    [(IBSTAT, "mlx5_1", "InfiniBand"), (DEVINFO, "mlx5_3", "Ethernet"), (IBSTATUS, "mlx5_2", "InfiniBand")],
)
def test_only_ports_that_are_down_are_reported(text: str, adapter: str, layer: str) -> None:
    event = the_event(kernel, "tool.ib_port", text)
    assert (event.get("ib_device"), event.get("state")) == (adapter, "down")
    assert event.get("link_layer") == layer
    assert event.get("suggests") == "ib-link"


@pytest.mark.parametrize(
    ("active", "state", "suggests"),
    [
        ("failed (Result: exit-code) since Tue 2026-02-17 10:02:11 UTC; 1h ago", "failed", "fabric-manager"),
        ("inactive (dead)", "inactive", "fabric-manager"),
        ("active (running) since Tue 2026-02-17 10:02:11 UTC; 1h ago", "active", None),
    ],
)
def test_fabric_manager_status(active: str, state: str, suggests: str | None) -> None:
    text = f"""\
\u25cf nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: enabled)
     Active: {active}
   Main PID: 4711 (nv-fabricmanager)"""
    event = the_event(kernel, "tool.fabric_manager", text)
    assert (event.get("state"), event.get("suggests")) == (state, suggests)


def test_every_block_cut_at_any_line_closes_without_error() -> None:
    for text in (API_NEW, PROBE, SMI, IBSTAT, DEVINFO, IBSTATUS, (FIXTURES / "oom_cgroup.dmesg").read_text()):
        lines = text.split("\n")
        for end in range(len(lines)):
            events_of(kernel, "\n".join(lines[:end]))
