"""NCCL's remaining failures: limits, names, algorithms, the proxy, RAS, and lines that only look bad."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.nccl_common import errno_of, unless_probe
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

# The system calls whose failure NCCL reports so; connect, posix_fallocate and shm_open are read more closely.
_CALLS = (
    r"open|close|read|write|fcntl|fstat|poll|pipe|eventfd|mkstemp|unlink|rename|ftruncate|fallocate|mmap|munmap"
    r"|socket|bind|listen|accept|getsockname|getsockopt|setsockopt|pthread_\w+|sched_\w+|shm_unlink|dlopen"
)


def _call(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    name = errno_of(m["errno_text"])
    if name in ("EMFILE", "ENFILE"):
        return {"errno_name": name, "nature": "cause", "cause": "fd-limit"}
    return {"errno_name": name} if name else {}


def _resolve(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    words = m["errno_text"]
    if words.startswith(
        ("Name or service not known", "Temporary failure in name resolution", "No address associated")
    ):
        return {"nature": "cause", "cause": "dns"}
    return {}


def _transport(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    return {"gdrdma": "/GDRDMA" in m[0]}


def _harmless(what: str, literal: str, regex: str) -> Pattern:
    return Pattern("nccl.harmless", literal, regex, nature="noise", fields={"what": what})


PATTERNS: tuple[Pattern, ...] = (
    # Error : no algorithm/protocol available for function AllGather with datatype ncclInt8. NCCL_ALGO was set
    # to Tree.
    #     NCCL_PROTO was set to LL.        No function and variables up to 2.23; "No algorithm" from 2.30
    *(
        Pattern(
            "nccl.no_algorithm",
            f"{no} algorithm/protocol available",
            rf"{no} algorithm/protocol available"
            r"(?: for function (?P<function>\w+) with datatype (?P<datatype>\w+)\.)?"
            r"(?: NCCL_ALGO was set to (?P<algo>[^.\n]+)\.)?(?: NCCL_PROTO was set to (?P<proto>[^.\n]+)\.)?",
            nature="symptom",
            fields={"suggests": "invalid-usage"},
            refine=unless_probe(),
            since="2.5.6",
        )
        for no in ("no", "No")
    ),
    # Unrecognized element token "Rign" when parsing "Rign"         NCCL_ALGO or NCCL_PROTO              (2.24 on)
    Pattern(
        "nccl.unknown_word",
        "Unrecognized element token",
        r"Unrecognized element token \"(?P<word>[^\"\n]{1,100})\" when parsing \"(?P<value>[^\"\n]{1,300})\"",
        nature="cause",
        cause="invalid-usage",
        refine=unless_probe(),
        since="2.24.3",
    ),
    # Channel 00/0 : 1[0] -> 0[0] [send] via NET/IB/0/GDRDMA(PCI)        also "Ring 00 : 7 -> 8 [send] via
    # NET/..."
    Pattern(
        "nccl.channel_net",
        " via NET/",
        r"(?P<direction>send|receive)\] via NET/(?P<network>[^/\n]+)/(?P<net_dev>\d+)\S*",
        refine=_transport,
        adds=("gdrdma",),
        since="2.3.5",
    ),
    # Net : error encountered when getting address info : Name or service not known
    Pattern(
        "nccl.resolve_failed",
        "when getting address info",
        r"error encountered when getting address info : (?P<errno_text>[A-Z][^\n]*)",
        nature="symptom",
        refine=unless_probe(_resolve),
        since="2.3.5",
    ),
    # Invalid NCCL_COMM_ID, please use format: <ipv4>:<port> or [<ipv6>]:<port> or <hostname>:<port>
    Pattern(
        "nccl.comm_id_invalid",
        "Invalid NCCL_COMM_ID",
        r"Invalid NCCL_COMM_ID, please use format",
        nature="cause",
        cause="invalid-usage",
        refine=unless_probe(),
        since="2.3.5",
    ),
    # ncclSocketInit: Socket creation failed : Too many open files         socketTryAccept: Accept failed: ...
    # [Service thread] Accept failed Too many open files                   UDS: Socket creation error : ...
    # (24)
    *(
        Pattern(
            "nccl.socket_failed",
            literal,
            regex + r" ?:? (?P<errno_text>[A-Z][a-zA-Z ]*[a-z])",
            nature="symptom",
            refine=unless_probe(_call),
            adds=("errno_name",),
        )
        for literal, regex in (
            ("Socket creation failed", r"(?P<what>Socket creation) failed"),
            ("Socket creation error", r"UDS: (?P<what>Socket creation) error"),
            ("Accept failed", r"(?:TryAccept:|\[Service thread\]) (?P<what>Accept) failed"),
        )
    ),
    # UDS: Sending data over socket /tmp/nccl-socket-1-... failed : Connection refused (111)
    #     the other process cannot be reached on this host: another network namespace, or gone
    Pattern(
        "nccl.uds_failed",
        "data over socket",
        r"UDS: (?P<direction>Sending|Receiving) data over socket(?: (?P<path>\S+))? failed"
        r"(?: : (?P<errno_text>[A-Z][^(\n]*[^( \n])(?: \((?P<errno>\d+)\))?)?",
        nature="symptom",
        refine=unless_probe(),
        since="2.17.1",
    ),
    # Call to open failed: No such file or directory          Call to pthread_create failed : ...
    Pattern(
        "nccl.call_failed",
        "Call to ",
        rf"Call to (?P<call>{_CALLS}) failed(?: :|:| with error) (?P<errno_text>[A-Z][^\n]*)",
        nature="symptom",
        refine=unless_probe(_call),
        adds=("errno_name",),
        since="2.3.5",
    ),
    # [Proxy Service 3] Failed to execute operation Connect from rank 3, retcode 2
    Pattern(
        "nccl.proxy_failed",
        "Failed to execute operation",
        r"\[Proxy Service (?P<rank>\d+)\] Failed to execute operation (?P<operation>\w+)"
        r" from rank (?P<peer_rank>\d+), retcode (?P<retcode>\d+)",
        nature="consequence",
        since="2.12.7",
    ),
    # [Service thread] Error encountered progressing operation=Connect, res=3, closing connection
    Pattern(
        "nccl.proxy_failed",
        "Error encountered progressing operation",
        r"Error encountered progressing operation=(?P<operation>\w+), res=(?P<retcode>\d+)",
        nature="consequence",
        since="2.17.1",
    ),
    # Socket recv failed while polling for opId=0x7fa130b32996
    Pattern(
        "nccl.proxy_failed",
        "while polling for opId",
        r"Socket recv failed while polling for opId=",
        nature="consequence",
        since="2.17.1",
    ),
    # [Service thread] Could not receive type from localRank 3, res=3, closed=0
    Pattern(
        "nccl.proxy_failed",
        "Could not receive type from localRank",
        r"Could not receive type from localRank (?P<local_rank_peer>\d+)(?:, res=(?P<retcode>\d+))?",
        nature="consequence",
        since="2.12.7",
    ),
    # RAS declaring peer 10.0.0.2<38245> as DEAD; rasDeadPeersHash 0x...
    Pattern(
        "nccl.ras_peer_dead",
        "RAS declaring peer",
        r"RAS declaring peer (?P<peer_address>[^\s<>]+)(?:<(?P<port>\d+)>)? as DEAD",
        nature="consequence",
        since="2.24.3",
    ),
    # RAS keep-alive timeout error (20s) on socket connection with 10.0.0.2<38245>
    Pattern(
        "nccl.ras_timeout",
        "RAS keep-alive timeout",
        r"RAS keep-alive timeout (?P<severity>warning|error) \((?P<timeout_s>\d+)s\)"
        r" on socket connection with (?P<peer_address>[^\s<>]+)",
        nature="consequence",
        since="2.24.3",
    ),
    # NET/IB : req 0/1 tag 7 peer 10.0.0.2<4000> collective mismatch error, local size 1024 remote size 512
    # Mismatched collective detected, please check your collective calls at and around rank 3.      2.4 - 2.7
    *(
        Pattern(
            "nccl.collective_mismatch",
            literal,
            regex,
            nature="cause",
            cause="collective-mismatch",
            refine=unless_probe(),
        )
        for literal, regex in (
            (
                "collective mismatch error",
                r"NET/IB : [^\n]{0,120}collective mismatch error,? local size (?P<got>\d+)",
            ),
            (
                "Mismatched collective detected",
                r"Mismatched collective detected[^\n]*around rank (?P<rank>\d+)",
            ),
        )
    ),
    # NET/IB : req 0/1 tag 7 peer 10.0.0.2<4000> posted incorrect receive info: size 512 addr 7f.. rkeys[0]=1
    Pattern(
        "nccl.collective_mismatch",
        "posted incorrect receive info",
        r"NET/IB : [^\n]{0,40}peer (?P<peer_address>[^\s<>]+)[^\n]{0,20}"
        r" posted incorrect receive info: size (?P<size>\d+)",
        nature="symptom",
        fields={"suggests": "collective-mismatch"},
        refine=unless_probe(),
        since="2.12.10",
    ),
    # communicator encountered a fatal error (detected in ncclIbTest)
    Pattern(
        "nccl.async_error",
        "communicator encountered a fatal error",
        r"communicator encountered a fatal error \(detected in (?P<function>\w+)",
        nature="consequence",
        since="2.23.4",
    ),
    # Could not open XML topology file /opt/topo.xml : No such file or directory        what NCCL_TOPO_FILE
    # names
    Pattern(
        "nccl.topo_file",
        "Could not open XML ",
        r"Could not open XML (?P<what>topology|graph) file (?P<path>\S+) : (?P<errno_text>[A-Z][^\n]*)",
        nature="symptom",
        refine=unless_probe(),
        since="2.6.4",
        until="2.26.6",
    ),
    # XML Topology has wrong version 2, 1 needed          XML Parse error : unterminated comment
    *(
        Pattern("nccl.topo_file", literal, regex, nature="symptom", refine=unless_probe(), since="2.6.4")
        for literal, regex in (
            (
                "has wrong version",
                r"XML (?P<what>Topology|Graph) has wrong version (?P<got>\d+), (?P<expected>\d+) needed",
            ),
            ("XML Parse", r"(?P<text>XML Parse(?: error)? : [^\n]+)"),
            ("XML Mismatch", r"(?P<text>XML Mismatch : [^\n]+)"),
        )
    ),
    # Socket progress: abort called          socketProgressOpt: ... 2.16 on, ncclOsSocketProgressOpt: ... 2.29 on
    Pattern(
        "nccl.socket_abort",
        ": abort called",
        r"(?:Socket progress|\b(?:ncclOsS|s)ocketProgressOpt): abort called",
        nature="consequence",
        since="2.12.7",
    ),
    # CommRevokeAsync START comm 0x7f3c rank 3 nRanks 8 nNodes 2 localRank 3 cudaDev 3
    # CommRevokeAsync END comm 0x7f3c result 0
    Pattern(
        "nccl.comm_revoke",
        "CommRevokeAsync ",
        r"CommRevokeAsync (?P<state>START|END) comm (?P<comm>0x[0-9a-f]+)"
        r"(?: rank (?P<rank>\d+) nRanks (?P<nranks>\d+))?(?:.{0,80}? cudaDev (?P<cuda_dev>\d+))?"
        r"(?: result (?P<retcode>\d+))?",
        nature="consequence",
        since="2.28.7",
    ),
    # gin/gin_host.cc:71 (ginProgressThread) [GIN Progress Thread] state unknown 4        also [RMA Proxy ...
    Pattern(
        "nccl.progress_state",
        " Progress Thread] state unknown",
        r"\[(?P<thread>GIN|RMA Proxy) Progress Thread\] state unknown (?P<state>-?\d+)",
        nature="symptom",
        since="2.28.7",
    ),
    # peer query failed between dev 3(=b1000) and dev 4(=c1000)        NCCL uses another way between the two
    Pattern(
        "nccl.peer_query_failed",
        "peer query failed between dev",
        r"peer query failed between dev (?P<cuda_dev>\d+)(?:\(=(?P<bus>\w+)\))?"
        r" and dev (?P<peer_dev>\d+)(?:\(=(?P<peer_bus>\w+)\))?",
        nature="symptom",
        since="2.3.5",
    ),
    # socketFinalizeAccept from 10.0.0.2<43211>: wrong socket type (peer 2 != expected 1 -- peer connected to wrong
    #     NCCL socket), discarding peer connection
    Pattern(
        "nccl.wrong_socket",
        "wrong socket type (peer",
        r"socketFinalizeAccept from (?P<peer_address>[^\s<>]{1,64})(?:<(?P<port>\d+)>)?: wrong socket type"
        r" \(peer (?P<got>\d+) != expected (?P<expected>\d+)",
        nature="symptom",
        since="2.30.7",
    ),
    # TOPO/NET : Tried merging multiple devices together and failed. vProps={ndevs=2, devs=[0 1 0 0]}. Set
    #     NCCL_NET_MERGE_LEVEL=LOC to disable NIC fusion.
    Pattern(
        "nccl.nic_merge_failed",
        "Tried merging multiple devices together and failed",
        r"Tried merging multiple devices together and failed(?:\. vProps=\{(?P<devices>[^}\n]{1,80})\})?",
        nature="symptom",
        since="2.26.2",
    ),
    # [Proxy Progress] Failed to create CUDA context on device 3 with error 2, disabling cuda context.
    #     WARN up to 2.17, without the error
    Pattern(
        "nccl.proxy_context",
        " CUDA context on device ",
        r"Failed to (?P<what>create|set) CUDA context on device (?P<cuda_dev>\d+) with error (?P<code>\d+)",
        nature="symptom",
        since="2.30.3",
    ),
    # Detected ranks 3 and 2 sharing GPU with bus B1000 on this node        NCCL was told to allow it
    Pattern(
        "nccl.gpu_shared",
        " sharing GPU with bus ",
        r"Detected ranks (?P<rank>\d+) and (?P<peer_rank>\d+) sharing GPU with bus (?P<bus>[0-9A-Fa-f]+)",
        fields={"suggests": "duplicate-gpu"},
        since="2.30.3",
    ),
    # NET/IB: Ip address '10.0.0' is invalid for family AF_INET, ignoring address        of NCCL_IB_ADDR_RANGE
    # NET/IB: Ip address mask '40' is invalid for family AF_INET, ignoring mask
    Pattern(
        "nccl.ib_addr_range",
        " is invalid for family ",
        r"NET/IB ?: Ip address (?P<what>mask )?'(?P<value>[^'\n]{0,64})' is invalid for family (?P<family>\w+)",
        nature="symptom",
        fields={"suggests": "ib-config"},
        since="2.24.3",
    ),
    # Net : Unsupported address family type
    Pattern(
        "nccl.address_family",
        "Unsupported address family type",
        r"Net : Unsupported address family type",
        nature="symptom",
        since="2.27.3",
    ),
    # socketFinalizeAccept: handshake receive from 10.0.0.2<43211> failed, discarding peer connection        2.30.7
    # socketFinalizeAccept: peer 10.0.0.2<43211> closed before magic handshake, discarding                    2.30.7
    # socketFinalizeAccept: didn't receive a valid magic from 10.0.0.2<43211>                                  2.27 on
    #     a stranger at the port, or a peer that tries again
    *(
        _harmless("connection dropped before its handshake", literal, "socketFinalizeAccept: " + regex)
        for literal, regex in (
            ("handshake receive from", r"handshake receive from \S{1,64} failed"),
            ("closed before magic handshake", r"peer \S{1,64} closed before magic handshake"),
            (" receive a valid magic from", r"didn't receive a valid magic from \S{1,64}"),
        )
    ),
    # rank 3 failed to NET register userbuff 0x7f3c buffSize 4194304 GDR flag 1        IPC, NVLS and COLLNET alike
    *(
        _harmless("buffer not registered", literal, r"rank \d+ (?:- \w+ )?failed to (?:\w+ )?register \w{4}buff ")
        for literal in (
            " failed to register userbuff",
            " failed to NET register",
            " failed to IPC register",
            " failed to NVLS register",
        )
    ),
    # NET/IB : There are mismatched physical devices between local (mlx5_0) and remote (mlx5_1). ...
    _harmless(
        "another rail", "mismatched physical devices between", r"There are mismatched physical devices between local"
    ),
    # Call to accept returned Resource temporarily unavailable, retrying      Call to ibv_reg_dmabuf_mr not supported
    # Call to ibv_query_ece skipped, internal_name doesn't exist
    _harmless("call tried again", "Call to ", r"Call to (?!connect\b)\w{2,40} returned [^,\n]{1,80}, retrying\s*$"),
    _harmless(
        "call not there",
        "Call to ",
        r"Call to \w{2,40} (?:not supported\s*$|skipped, internal_name doesn't exist)",
    ),
    # Warning: ENV NCCL_X is deprecated. It may be removed ...        Warning: ENV NCCL_X is unused. Setting it has ...
    _harmless("variable without use", "Warning: ENV ", r"Warning: ENV \w+ is (?:deprecated|unused)\."),
    # unlink shared memory /dev/shm/nccl-Ab12Cd failed, error: No such file or directory (2)
    _harmless("memory file already gone", "unlink shared memory", r"unlink shared memory \S+ failed, error: "),
    # KV Convert to int : could not find value of 'x' in dictionary, falling back to 0
    _harmless("word unknown in topology", "KV Convert to int", r"KV Convert to int : could not find value of"),
    # NCCL Inspector: dump location /x exists, but is not a directory        the profiler plug-in of 2.28.3 on
    _harmless(
        "inspector",
        "NCCL Inspector",
        r"NCCL Inspector(?: inspectorDumpThread)?: [^\n]{0,200}"
        r"(?:couldn't|can't|in tracker|failed to|is not a directory)",
    ),
    # Profiler init failed with error '2': unhandled system error. Continue without profiler.
    _harmless("no profiler", "Continue without profiler", r"Profiler init failed with error '\d+'"),
    # Unable to open /x/topo.xml, not dumping topology.
    _harmless("topology not dumped", ", not dumping topology", r"Unable to open \S+, not dumping topology"),
    # dlsym failed on gdr_get_info_v2, ignoring
    _harmless("older GDRCopy", "dlsym failed on", r"dlsym failed on \w+, ignoring"),
    # Topology detection : could not read /sys/devices/.../max_link_speed, ignoring
    _harmless(
        "topology file not readable", "opology detection", r"Topology detection ?: could not read \S+,"
    ),
    # ncclTopoGetCpuAffinity: Affinity for GPU 0 is empty, ignoring. (GPU affinity =  ; CPU affinity = 0-63).
    _harmless("no CPU affinity", "is empty, ignoring", r"Affinity for GPU \d+ is empty, ignoring"),
    # dlvsym failed on mlx5dv_reg_dmabuf_mr - /lib/.../libmlx5.so: undefined symbol: ... version MLX5_1.25
    _harmless("older libmlx5", "dlvsym failed on", r"dlvsym failed on (?:mlx5dv|ibv)_\w+"),
    # RMA/Socket : rma_socket requires GDRCopy; and GDR Copy is not available        WARN in 2.32
    _harmless("no GDRCopy", "requires GDRCopy", r"RMA/Socket : rma_socket requires GDRCopy"),
)
