"""Kernel lines about memory that ran out and processes that the kernel ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.model import Event
from ncclscope.parsers.pattern import Block, Pattern, compiled

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["BLOCKS", "PATTERNS"]


def _sizes(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    """Sizes in KiB behind `Killed process`; some kernels group digits with commas."""
    fields: dict[str, Value] = {}
    for name, text in compiled(_SIZE).findall(line.text, m.end()):
        fields[f"{name.replace('-rss', '')}_kb"] = int(text.replace(",", ""))
    if "total-vm_kb" in fields:
        fields["total_vm_kb"] = fields.pop("total-vm_kb")
    return fields


_SIZE = r"(total-vm|anon-rss|file-rss|shmem-rss):([\d,]+)kB"
_SIZE_NAMES = ("total_vm_kb", "anon_kb", "file_kb", "shmem_kb")


PATTERNS: tuple[Pattern, ...] = (
    # Memory cgroup out of memory: Killed process 1891 (python) total-vm:322829464kB,
    # anon-rss:4934512kB, ...  (6.18)
    # Memory cgroup out of memory: Kill process 8231 (python) score 1974 or sacrifice child   (before 5.0)
    Pattern(
        "kernel.oom_kill",
        "Memory cgroup out of memory: Kill",
        r"Memory cgroup out of memory: Kill(?:ed)? process (?P<pid>\d+)(?:,? UID"
        r" \d+,?)? ?\((?P<name>[^)]*)\)",
        nature="cause",
        cause="oom-cgroup",
        fields={"scope": "memcg"},
        refine=_sizes,
        adds=_SIZE_NAMES,
    ),
    # Out of memory: Killed process 15784 (python3) total-vm:11964000kB, anon-rss:4288000kB,
    # file-rss:3028kB, ...
    # Out of memory: Kill process 1234 (python) score 905 or sacrifice child   (before 5.0)
    Pattern(
        "kernel.oom_kill",
        "Out of memory: Kill",
        r"Out of memory: Kill(?:ed)? process (?P<pid>\d+)(?:,? UID \d+,?)? ?\((?P<name>[^)]*)\)",
        nature="cause",
        cause="oom-host",
        fields={"scope": "global"},
        refine=_sizes,
        adds=_SIZE_NAMES,
    ),
    # Killed process 8231 (python) total-vm:3281340kB, anon-rss:204800kB, file-rss:4kB   (before 5.0,
    # second line)
    Pattern(
        "kernel.oom_victim",
        "Killed process ",
        r"(?<!memory: )Killed process (?P<pid>\d+)(?:,? UID \d+,?)? ?\((?P<name>[^)]*)\),? (?=total-vm:)",
        nature="symptom",
        refine=_sizes,
        adds=_SIZE_NAMES,
    ),
    # oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job,mems_allowed=0,oom_memcg=/job,
    Pattern(
        "kernel.oom_constraint",
        "oom-kill:constraint=CONSTRAINT_MEMCG",
        r"oom-kill:constraint=CONSTRAINT_MEMCG,.*?oom_memcg=(?P<cgroup>[^,]*),task_memcg="
        r"(?P<task_cgroup>[^,]*),"
        r"task=(?P<name>[^,]*),pid=(?P<pid>\d+)",
        nature="cause",
        cause="oom-cgroup",
        fields={"scope": "memcg"},
    ),
    # oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,
    Pattern(
        "kernel.oom_constraint",
        "global_oom,task_memcg=",
        r"oom-kill:constraint=(?P<constraint>CONSTRAINT_\w+),.*?global_oom,task_memcg=(?P<task_cgroup>[^,]*),"
        r"task=(?P<name>[^,]*),pid=(?P<pid>\d+)",
        nature="cause",
        cause="oom-host",
        fields={"scope": "global"},
    ),
    # python invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0
    # Names who asked for memory last, not who is ended.
    Pattern(
        "kernel.oom_invoked",
        "invoked oom-killer: gfp_mask=",
        r"(?P<name>\S{1,32}) invoked oom-killer: gfp_mask=",
        nature="symptom",
        fields={"suggests": "oom-host"},  # whose limit it was is in the lines that follow
    ),
    # memory: usage 6291456kB, limit 6291456kB, failcnt 44
    Pattern(
        "kernel.oom_limit",
        "kB, failcnt ",
        r"(?<!\S)memory: usage (?P<usage_kb>\d+)kB, limit (?P<limit_kb>\d+)kB, failcnt (?P<failures>\d+)",
        refine=lambda m, line: {n: int(m[n]) for n in ("usage_kb", "limit_kb", "failures")},  # noqa: ARG005
    ),
    # oom_reaper: reaped process 4512 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB
    Pattern(
        "kernel.oom_reaped",
        "oom_reaper: reaped process",
        r"oom_reaper: reaped process (?P<pid>\d+) \((?P<name>[^)]*)\)",
        nature="consequence",
        fields={"suggests": "oom-host"},
    ),
    # train.service: A process of this unit has been killed by the OOM killer.   (systemd, which does
    # not say whose limit)
    Pattern(
        "kernel.oom_unit",
        "has been killed by the OOM killer",
        r"(?P<unit>\S{1,128}): A process of this unit has been killed by the OOM killer",
        nature="symptom",
        fields={"suggests": "oom-cgroup"},
    ),
    # systemd-oomd[812]: Killed /user.slice/user-1000.slice/job.scope due to memory pressure for
    # /user.slice being ...
    Pattern(
        "kernel.oomd_kill",
        "due to memory ",
        r"Killed (?P<cgroup>/\S+) due to memory (?:pressure|used)",
        nature="cause",
        cause="oom-host",
        fields={"scope": "global"},
    ),
    # python3: page allocation failure: order:5, mode:0x40cc0(GFP_KERNEL|__GFP_COMP),
    # nodemask=(null),cpuset=/,...
    Pattern(
        "kernel.page_allocation",
        "page allocation failure: order:",
        r"(?P<name>\S{1,32}): page allocation failure: order:(?P<order>\d+)",
        nature="symptom",
    ),
    # cgroup: fork rejected by pids controller in /kubepods/pod1497cd14
    Pattern(
        "kernel.pids_limit",
        "fork rejected by pids controller",
        r"cgroup: fork rejected by pids controller in (?P<cgroup>\S+)",
        nature="symptom",
    ),
    # VFS: file-max limit 1000000 reached
    Pattern(
        "kernel.file_max",
        "VFS: file-max limit",
        r"VFS: file-max limit (?P<limit>\d+) reached",
        nature="cause",
        cause="fd-limit",
    ),
    # pt_main_thread[2536443]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in
    # libnccl.so.2[7f7c7ac00000+d3d3000]
    Pattern(
        "kernel.segfault",
        "]: segfault at ",
        r"(?P<name>[^\s\[\]][^\[\]]{0,31})\[(?P<pid>\d+)\]: segfault at (?P<address>[0-9a-f]+) ip"
        r" [0-9a-f]+ sp [0-9a-f]+"
        r" error [0-9a-f]+(?: in (?P<library>[^\[\s]+)\[)?",
        nature="symptom",
        fields={"suggests": "rank-died", "signal": 11},
        refine=lambda m, line: {"name": m["name"].rpartition(" ")[2]},  # noqa: ARG005
    ),
    # traps: python3[48211] trap invalid opcode ip:7f1d3c2a4b10 sp:7ffd1e2f3a40 error:0 in
    # libtorch_cpu.so[7f1d38000000+..]
    # traps: python3[48211] general protection fault ip:55d0 sp:7ffd error:0 in python3.10[55d0c0+1f0000]
    Pattern(
        "kernel.traps",
        "traps: ",
        r"traps: (?P<name>[^\[]{1,32})\[(?P<pid>\d+)\] (?P<trap>general protection(?: fault)?|trap [a-z"
        r" ]+?) ip:[0-9a-f]+ "
        r"sp:[0-9a-f]+ error:[0-9a-f]+(?: in (?P<library>[^\[\s]+)\[)?",
        nature="symptom",
        fields={"suggests": "rank-died"},
    ),
    # audit: type=1701 audit(1732992000.123:456): auid=1000 uid=1000 gid=1000 ses=3 pid=48211
    # comm="python3" exe=... sig=6
    Pattern(
        "kernel.abnormal_end",
        "type=1701 audit(",
        r"type=1701 audit\([\d.:]+\): .*?\bpid=(?P<pid>\d+) comm=\"?(?P<name>[^\" ]+)"
        r".*? sig=(?P<signal>\d+)",
        nature="consequence",
    ),
    # Memory failure: 0x1b3f9c0: Sending SIGBUS to python3:48211 due to hardware memory corruption
    Pattern(
        "kernel.memory_failure",
        "due to hardware memory corruption",
        r"Memory failure: 0x[0-9a-f]+: (?:Killing|Sending SIGBUS to) (?P<name>[^:]+):(?P<pid>\d+) due to"
        r" hardware memory",
        nature="cause",
        cause="rank-died",
        fields={"component": "host memory"},
    ),
)


class _OomReport:
    """One OOM report, from who asked to who was ended: limits and the largest processes stand between the"
    " two."""

    __slots__ = ("_fields", "_first", "_seen", "_tasks")

    def __init__(self, line: Line, asker: str) -> None:
        self._first = line
        self._fields: dict[str, Value] = {"nature": "info", "asker": asker}
        self._tasks: list[tuple[int, str]] = []
        self._seen = 1

    def feed(self, line: Line) -> bool:
        text = line.text
        if "pid" in self._fields or "invoked oom-killer" in text or "NVRM:" in text:
            return False
        self._seen += 1
        task = compiled(_TASK).search(text)
        if task:
            self._tasks.append((int(task["rss"]), f"{task['name']}:{task['pid']}"))
            return True
        limit = compiled(_LIMIT).search(text)
        if limit and "limit_kb" not in self._fields:
            self._fields |= {"usage_kb": int(limit[1]), "limit_kb": int(limit[2])}
        cgroup = compiled(_CGROUP).search(text)
        if cgroup and "cgroup" not in self._fields:
            self._fields["cgroup"] = cgroup[1] or cgroup[2] or cgroup[3]
        victim = compiled(_VICTIM).search(text)
        if victim:
            memcg = "Memory cgroup" in text or "cgroup" in self._fields
            self._fields |= {
                "pid": int(victim[1]),
                "name": victim[2],
                "scope": "memcg" if memcg else "global",
            }
        return True

    def close(self) -> list[Event]:
        largest = [name for _, name in sorted(self._tasks, reverse=True)[:_LARGEST]]
        if largest:
            self._fields["largest"] = tuple(largest)
        line = self._first
        return [Event("kernel.oom_report", self._fields, line.env, line.ref, line.text, lines=self._seen)]


_LARGEST = 5
_TASK = r"\[ *(?P<pid>\d+)\] +\d+ +\d+ +\d+ +(?P<rss>\d+) .{0,120}?(?P<name>\S{1,32})$"
_LIMIT = r"(?<!\S)memory: usage (\d+)kB, limit (\d+)kB"
_CGROUP = (
    r"oom_memcg=([^,]+)|Task in \S+ killed as a result of limit of (\S+)|Memory cgroup stats for (/\S*):"
)
_VICTIM = r"Kill(?:ed)? process (\d+)(?:,? UID \d+,?)? ?\(([^)]*)\)"

BLOCKS: tuple[Block, ...] = (
    Block(
        {"kernel.oom_report": ("asker", "usage_kb", "limit_kb", "cgroup", "pid", "name", "scope", "largest")},
        "invoked oom-killer: gfp_mask=",
        r"(?P<name>\S{1,32}) invoked oom-killer: gfp_mask=",
        lambda m, line: _OomReport(line, m["name"]),
    ),
)
