"""NCCL over InfiniBand and RoCE: completions, device events, verbs calls, GPUDirect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.nccl_common import errno_of, unless_probe
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS", "WC_STATUS"]

# enum ibv_wc_status of libibverbs.
WC_STATUS: dict[int, str] = {
    1: "LOC_LEN_ERR",
    2: "LOC_QP_OP_ERR",
    4: "LOC_PROT_ERR",
    5: "WR_FLUSH_ERR",
    8: "LOC_ACCESS_ERR",
    9: "REM_INV_REQ_ERR",
    10: "REM_ACCESS_ERR",
    11: "REM_OP_ERR",
    12: "RETRY_EXC_ERR",
    13: "RNR_RETRY_EXC_ERR",
    21: "GENERAL_ERR",
}

_PEER = r"(?:from peer (?P<peer_address>[^\s<>]+)(?:<(?P<port>\d+)>)? )?"
_TAIL = (
    r"(?:[^\n]*?\((?P<direction>Send|Recv)\))?(?:[^\n]*?localGid (?P<local_gid>[0-9a-fA-F:.]+))?"
    r"(?:[^\n]*?remoteGids? ?(?P<remote_gid>[0-9a-fA-F:.]+))?(?:[^\n]*? hca (?P<hca>[\w-]+))?"
)


def _completion(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    status = int(m["status"])
    fields: dict[str, Value] = {}
    if status in WC_STATUS:
        fields["status_name"] = WC_STATUS[status]
    if status in (5, 12, 13):
        # The peer did not answer: a dead process, a link, a switch. This rank is the one that noticed.
        fields["nature"] = "consequence"
        if status == 12:
            fields["suggests"] = "ib-link"
    elif status in (4, 8, 10):
        fields["suggests"] = "gdr-peermem"
    return fields


# Words of ibv_event_type_str() -> what they say of the host that prints them. Others stay symptoms.
_EVENTS: tuple[tuple[str, str], ...] = (
    ("port error", "ib-link"),
    ("local catastrophic error", "ib-link"),
    ("device fatal", "ib-link"),
)
_QUIET_EVENTS = (
    "port active",
    "client reregistration",
    "LID change",
    "P_Key change",
    "SM change",
    "GID table change",
    "last WQE",
)


def _event(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    event = m["event"].strip()
    fields: dict[str, Value] = {"event": event}
    for words, cause in _EVENTS:
        if event.startswith(words):
            return {**fields, "nature": "cause", "cause": cause}
    if event.startswith(_QUIET_EVENTS):
        fields["nature"] = "info"
    return fields


def _errno(m: re.Match[str], _line: Line) -> dict[str, Value]:
    name = errno_of(m["errno_text"])
    return {"errno_name": name} if name else {}


def _memory_call(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    fields = _errno(m, line)
    name = fields.get("errno_name")
    if name == "ENOMEM":
        fields |= {"nature": "cause", "cause": "memlock-limit"}
    elif name == "EFAULT" or (name == "EOPNOTSUPP" and "dmabuf" in m["call"]):
        fields["suggests"] = "gdr-peermem"
    return fields


def _modify_qp(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    fields = _errno(m, line)
    if m[3]:
        fields["errno"] = int(m[3])
    # The step to RTR is where the address of the peer comes in: GID index, subnet, rail.
    if fields.get("errno_name") in ("ETIMEDOUT", "EINVAL", "ENETUNREACH", "EHOSTUNREACH", "ENODEV"):
        fields["suggests"] = "ib-config"
    return fields


def _other_verb(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    call = m["call"]
    if call.startswith(("ibv_reg_", "ibv_create_", "ibv_modify_qp", "mlx5dv_reg_")):
        return None
    if call == "ibv_get_async_event":
        return {"nature": "consequence"}
    return _errno(m, line)


def _gdr(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    return {"state": m["state"].lower()}


_DEVICE = r"(?P<device_name>[\w-]+):(?P<ib_port>\d+)"
_FAILED = r" failed(?: with error (?P<errno_text>[A-Z][^,\n]*?)(?: errno (?P<errno>\d+))?)?(?:\s*$|,)"

PATTERNS: tuple[Pattern, ...] = (
    # NET/IB: Got completion from peer 10.0.0.2<4000> with status=12 opcode=1 len=0 vendor err 129 (Send)
    #     localGid ::ffff:10.1.1.1 remoteGids::ffff:10.1.1.2 hca mlx5_0        2.22 - 2.28.3; NET/IBP in HPC-X
    Pattern(
        "nccl.ib_completion",
        "Got completion",
        r"Got completion " + _PEER + r"with (?:status=|error )(?P<status>\d+),? opcode[= ](?P<opcode>\d+)"
        r"(?:,? len[= ]-?\d+)?(?:,? vendor err (?P<vendor_err>\d+))?" + _TAIL,
        nature="symptom",
        refine=unless_probe(_completion),
        adds=("status_name", "suggests"),
        since="2.3.5",
        until="2.28.3",
    ),
    # NET/IB: Got completion from peer 10.0.0.2<4000> with status=IBV_WC_RETRY_EXC_ERR(12)
    # opcode=IBV_WC_SEND(0)
    #     reqSize=0 vendor_err=129 req_type=Send ... hca mlx5_0        2.28.7+
    Pattern(
        "nccl.ib_completion",
        "Got completion",
        r"Got completion " + _PEER + r"with status=\w+\((?P<status>\d+)\) opcode=\w*\((?P<opcode>-?\d+)\)"
        r"(?: reqSize=\d+)?(?: vendor_err=(?P<vendor_err>\d+))?(?: req_type=(?P<direction>\w+))?"
        r"(?:[^\n]*? hca (?P<hca>[\w-]+))?",
        nature="symptom",
        refine=unless_probe(_completion),
        adds=("status_name", "suggests"),
        since="2.28.7",
    ),
    # NET/IB : mlx5_32:1 Got async error event: port error        2.23+
    # NET/IB : mlx5_0:1 Got async event : port error              2.20 - 2.22
    # NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)
    Pattern(
        "nccl.ib_async_event",
        "async e",
        r"NET/IB\w* : " + _DEVICE + r" Got (?:non-fatal )?async (?:error )?event ?: (?P<event>[^(\n]+)",
        nature="symptom",
        refine=unless_probe(_event),
        since="2.20.3",
    ),
    # NET/IB : Got async event : local catastrophic error         up to 2.19
    Pattern(
        "nccl.ib_async_event",
        "Got async event",
        r"NET/IB\w* : Got async event : (?P<event>[^(\n]+)",
        nature="symptom",
        refine=unless_probe(_event),
        until="2.19.4",
    ),
    # NET/IB : mlx5_0:1 async fatal event: local catastrophic error        ... event on QP (0x7f) qpn=12 ...:
    # <event>
    Pattern(
        "nccl.ib_async_event",
        "async fatal event",
        r"NET/IB\w* : "
        + _DEVICE
        + r" async fatal event(?: on (?P<object>CQ|QP|SRQ)[^\n]*?)?: (?P<event>[A-Za-z][^(\n]+)",
        nature="symptom",
        fields={"fatal": True},
        refine=unless_probe(_event),
        since="2.23.4",
    ),
    # NET/IB : mlx5_0:1 GID table changed
    Pattern(
        "nccl.ib_async_event",
        "GID table changed",
        r"NET/IB\w* : " + _DEVICE + r" (?P<event>GID table changed)",
        nature="info",
        since="2.28.3",
    ),
    # Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT, next state
    # RTR,
    #     local GID index 3, local GID ::ffff:10.1.1.1, remote GID ::ffff:10.1.1.2        2.24+
    # Call to ibv_modify_qp failed with error Invalid argument errno 22                   2.19 - 2.23; no
    # errno before
    Pattern(
        "nccl.ib_modify_qp",
        "Call to ibv_modify_qp failed",
        r"Call to ibv_modify_qp failed with (?:error )?(?:(?P<errno>\d+) )?"
        r"(?P<errno_text>[A-Z][a-zA-Z ]*?[a-z])(?: errno (\d+)|(?=,|$| with))(?:, on dev (?P<hca>[^\s,]+))?"
        r"(?:[^\n]*? next state (?P<next_state>\w+))?(?:[^\n]*? local GID index (?P<gid_index>\d+))?"
        r"(?:[^\n]*? local GID (?P<local_gid>[0-9a-fA-F:.]+))?"
        r"(?:[^\n]*? remote GID (?P<remote_gid>[0-9a-fA-F:.]+))?"
        r"(?:[^\n]*?, retrying (?P<attempt>\d+)/(?P<limit>\d+))?",
        nature="symptom",
        refine=unless_probe(_modify_qp),
        adds=("errno_name", "suggests"),
        since="2.3.5",
    ),
    # Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory errno 12
    # Call to ibv_reg_mr failed                                                   a bare form of old versions
    Pattern(
        "nccl.ib_reg_mr",
        "Call to ibv_reg_",
        r"Call to (?P<call>ibv_reg_\w+)" + _FAILED,
        nature="symptom",
        refine=unless_probe(_memory_call),
        adds=("errno_name", "suggests"),
        since="2.3.5",
    ),
    Pattern(
        "nccl.ib_reg_mr",
        "Call to mlx5dv_reg_",
        r"Call to (?P<call>mlx5dv_reg_\w+)" + _FAILED,
        nature="symptom",
        refine=unless_probe(_memory_call),
        adds=("errno_name", "suggests"),
        since="2.19.1",
    ),
    # Call to ibv_create_cq failed with error Cannot allocate memory errno 12
    Pattern(
        "nccl.ib_create",
        "Call to ibv_create_",
        r"Call to (?P<call>ibv_create_\w+)" + _FAILED,
        nature="symptom",
        refine=unless_probe(_memory_call),
        adds=("errno_name", "suggests"),
        since="2.3.5",
    ),
    # Call to ibv_get_async_event failed        Call to ibv_open_device failed        every other verb
    Pattern(
        "nccl.ib_verb_failed",
        "Call to ibv_",
        r"Call to (?P<call>ibv_\w+)" + _FAILED,
        nature="symptom",
        refine=unless_probe(_other_verb),
        adds=("errno_name",),
        since="2.3.5",
    ),
    # ibv_post_send() failed with error Cannot allocate memory, Bad WR 0x..., First WR 0x...
    Pattern(
        "nccl.ib_verb_failed",
        "ibv_post_",
        r"(?P<call>ibv_post_(?:send|recv))\(\) failed with error (?P<errno_text>[A-Z][^,\n]*)",
        nature="symptom",
        refine=unless_probe(_errno),
        adds=("errno_name",),
        since="2.3.5",
    ),
    # NET/IB : Attempted to connect incompatible devices: [0]mlx5_0:1/IB and [0]mlx5_1:1/RoCE. Try selecting
    # NICs ...
    # NET/IB : Remote RoCE device is incompatible with the local [0]mlx5_0:1/IB. Try selecting NICs of only
    # one ...
    Pattern(
        "nccl.ib_link_layer",
        "Try selecting NICs of only one link type",
        r"NET/IB : (?P<text>(?:Attempted to|Remote) [^\n]*?)\. Try selecting NICs of only one link type",
        nature="cause",
        cause="ib-config",
        refine=unless_probe(),
        since="2.26.2",
    ),
    # NET/IB : Unable to open device mlx5_0
    Pattern(
        "nccl.ib_device",
        "NET/IB : Unable to ",
        r"NET/IB : Unable to (?P<action>open|query) (?P<what>device|port|port_num) (?P<device_name>\S+)",
        nature="symptom",
        refine=unless_probe(),
        since="2.3.5",
    ),
    # NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'
    # NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (no module)        2.5 - 2.12
    # GPU Direct RDMA Enabled for GPU 5 / HCA 0 (distance 4 <= 4), read 1 mode Default
    Pattern(
        "nccl.gdr",
        "GPU Direct RDMA ",
        r"(?:NET/(?P<plugin>\w+) : )?GPU Direct RDMA (?P<state>Enabled|Disabled)"
        r"(?: for (?:GPU (?P<gpu>[0-9a-f]+)(?:\[\w+\])? / )?"
        r"(?:HCA (?P<hca>\w+)(?: '(?P<hca_name>[^']*)')?)?)?"
        r"(?:[^(\n]{0,100}\((?P<reason>no module[^)]*|distance [^)]*)\))?",
        refine=_gdr,
        since="2.3.5",
    ),
    # DMA-BUF is available on GPU device 0
    Pattern(
        "nccl.dmabuf",
        "DMA-BUF is available",
        r"DMA-BUF is available on GPU device (?P<cuda_dev>\d+)",
        since="2.13.4",
    ),
)
