"""NCCL between processes: sockets, bootstrap, peers that closed, ranks that do not agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncclscope.parsers.nccl_common import bus_address, errno_of, unless_probe
from ncclscope.parsers.pattern import Pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

# `10.0.0.2<45090>`, `node1<45090>`, `fe80::1%eth0<45090>`; without the port where a message or a cut
#     left it out.
_PEER = r"(?P<peer_address>[^\s<>]+)?(?:<(?P<port>\d+)>)?"
_AT = r"(?P<address>[^\s<>]+?)(?:<(?P<port>\d+)>)?"


def _connect(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    name = errno_of(m["errno_text"])
    return {"errno_name": name} if name else {}


def _retry(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    """Past half of its tries NCCL has waited for most of its patience."""
    late = {"late": True} if 2 * int(m["attempt"]) >= int(m["limit"]) else {}
    return {**(_connect(m, line) or {}), **late}


def _duplicate(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    address = bus_address(m["bus_id"])
    return {"bus_id": address} if address else {}


def _nranks(m: re.Match[str], _line: Line) -> Mapping[str, Value] | None:
    # One number is what this rank was started with, the other what the newcomer says; which is wrong is
    #     not said.
    ours, theirs = int(m[1]), int(m[2])
    if ours == theirs:
        return {"same_nranks": True}
    return {"nranks_values": (ours, theirs), "nature": "cause", "cause": "rendezvous"}


def _connect_failed(literal: str, regex: str, since: str, until: str = "", **fields: Value) -> Pattern:
    return Pattern(
        "nccl.connect_failed",
        literal,
        regex,
        nature="symptom",
        fields=fields,
        refine=unless_probe(_connect),
        adds=("errno_name",),
        since=since,
        until=until,
    )


PATTERNS: tuple[Pattern, ...] = (
    # Net : Connect to 192.168.40.9<42364> failed : No route to host    2.10 - 2.15; "Connect to" alone
    #     up to 2.9
    # socketStartConnect: Connect to 10.0.0.2<4000> failed : Software caused connection abort    2.16 - 2.23
    _connect_failed(
        "Connect to ",
        r"Connect to " + _AT + r" failed : (?P<errno_text>[A-Z][^\n]*)",
        "2.4.2",
        "2.26.6",
    ),
    # ncclOsSocketStartConnect: connect to 10.0.0.2<4000> failed : No route to host     2.27+
    _connect_failed(
        "connect to ",
        r"[sS]ocket\w*[cC]onnect\w*: connect to " + _AT + r" failed : (?P<errno_text>[A-Z][^\n]*)",
        "2.27.3",
    ),
    # socketPollConnect: Connect to 10.0.0.2<4000> returned 113(No route to host) errno 115(Operation now
    #     in progress)
    _connect_failed(
        "Connect to ",
        r"Connect to " + _AT + r" returned (?P<errno>\d+)\((?P<errno_text>[^)]*)\)",
        "2.20.3",
        "2.23.4",
    ),
    # socketPollConnect: connect to 10.0.0.2<4000> returned Connection timed out, exceeded error retry
    #     count after
    #     35 attempts
    _connect_failed(
        "exceeded error retry count",
        r"connect (?:to " + _AT + r" )?returned (?P<errno_text>[A-Z][^,\n]*), exceeded error retry count"
        r"(?: after (?P<attempts>\d+)| \((?P<limit>\d+))?",
        "2.24.3",
        exhausted=True,
    ),
    # Call to connect failed : Connection timed out        the address is not said
    # Call to connect timeout : Connection refused        2.3: the tries ran out, with the last errno
    _connect_failed(
        "Call to connect ",
        r"Call to connect (?:failed|timeout) : (?P<errno_text>[A-Z][^\n]*)",
        "2.0.2",
        "2.3.7",
    ),
    # socketStartConnect: exceeded retries (20000)      socketPollConnect: exceeded timeouts (3)
    Pattern(
        "nccl.connect_failed",
        "Connect: exceeded ",
        r"socket(?:Start|Poll)Connect: exceeded (?P<limit_kind>retries|timeouts) \((?P<attempts>\d+)",
        nature="symptom",
        fields={"exhausted": True},
        since="2.16.2",
        until="2.23.4",
    ),
    # ncclOsSocketPollConnect to 10.0.0.2<4000> failed with error Connection timed out
    _connect_failed(
        "PollConnect",
        r"SocketPollConnect to " + _AT + r" failed with error (?P<errno_text>[A-Z][^\n]*)",
        "2.29.2",
    ),
    _connect_failed(
        "socketPollConnect",
        r"socketPollConnect(?: to " + _AT + r"| poll\(\)) failed with error (?P<errno_text>[A-Z][^\n]*)",
        "2.16.5",
        "2.28.9",
    ),
    # socketPollConnect: connect to 10.0.0.2<4000> returned Connection refused, retrying (3/34) after
    #     sleep for 300 msec
    Pattern(
        "nccl.connect_retry",
        ", retrying (",
        r"connect (?:to "
        + _AT
        + r" )?returned (?P<errno_text>[A-Z][^,\n]*), retrying \((?P<attempt>\d+)/(?P<limit>\d+)\)",
        refine=_retry,
        adds=("errno_name", "late"),
        since="2.24.3",
    ),
    # Call to connect returned Connection refused, retrying
    Pattern(
        "nccl.connect_retry",
        "Call to connect returned",
        r"Call to connect returned (?P<errno_text>[A-Z][^,\n]*), retrying",
        refine=_connect,
        adds=("errno_name",),
        since="2.4.2",
        until="2.23.4",
    ),
    # socketProgress: Connection closed by remote peer node2<45090>          2.16+; the name can be empty
    # Net : Connection closed by remote peer node2<45090>                    up to 2.15
    Pattern(
        "nccl.peer_closed",
        "Connection closed by remote peer",
        r"Connection closed by remote peer ?" + _PEER,
        nature="consequence",
        since="2.3.5",
    ),
    # [Service thread] Connection closed by localRank 1        also when a process ends in good order
    Pattern(
        "nccl.peer_closed",
        "Connection closed by localRank",
        r"Connection closed by localRank (?P<local_rank_peer>\d+)",
        nature="consequence",
        fields={"same_host": True},
        since="2.12.7",
    ),
    # socketProgressOpt: Call to recv from 10.0.0.2<4000> failed : Connection reset by peer
    # Net : Call to recv from 10.0.0.2<4000> failed : Connection reset by peer          2.10 - 2.15
    Pattern(
        "nccl.peer_closed",
        "Call to recv from",
        r"Call to recv from " + _PEER + r" failed : (?P<errno_text>[A-Z][^\n]*)",
        nature="consequence",
        refine=_connect,
        adds=("errno_name",),
        since="2.10.3",
    ),
    Pattern(
        "nccl.peer_closed",
        "Call to send to",
        r"Call to send to " + _PEER + r" failed : (?P<errno_text>[A-Z][^\n]*)",
        nature="consequence",
        refine=_connect,
        adds=("errno_name",),
        since="2.24.3",
    ),
    # ncclSocketInit: connecting to address  with family 1 is neither AF_INET(2) nor AF_INET6(10)
    # The bytes read as an address are something else: ranks at different steps, or a connection not ours.
    Pattern(
        "nccl.socket_family",
        "is neither AF_INET",
        r"connecting to address (?P<address>\S*) ?with family (?P<family>-?\d+) is neither AF_INET",
        nature="symptom",
        refine=unless_probe(),
        since="2.8.3",
    ),
    # Bootstrap : no socket interface found
    Pattern(
        "nccl.no_interface",
        "no socket interface found",
        r"Bootstrap : no socket interface found",
        nature="cause",
        cause="network-interface",
        refine=unless_probe(),
        since="2.4.8",
    ),
    # NET/Socket : no interface found        NET/IB : No IP interface found.
    # No usable listening interface found            up to 2.3.7; NET/Socket : before it from 2.4.2 on
    Pattern(
        "nccl.no_interface",
        "interface found",
        r"(?:(?P<plugin>NET/Socket|NET/IB) ?: (?:no|No IP)|No usable listening) interface found",
        nature="symptom",
        fields={"suggests": "network-interface"},
        refine=unless_probe(),
        since="2.3.5",
    ),
    # no device found matching NCCL_OOB_NET_IFNAME=eth9, verify NCCL_OOB_NET_IFNAME
    Pattern(
        "nccl.no_interface",
        "no device found ",
        r"no device found (?:matching|after excluding) (?:NCCL_OOB_NET_IFNAME=)?(?P<ifname>[^\s,]+),"
        r" (?:verify NCCL_OOB_NET_IFNAME|ignoring)",
        nature="symptom",
        fields={"suggests": "network-interface"},
        since="2.23.4",
    ),
    # Net : No interface found in the same subnet as remote address 10.0.0.2<4000>
    Pattern(
        "nccl.no_interface",
        "No interface found in the same subnet",
        r"No interface found in the same subnet as remote address " + _AT + r"(?:\s|$)",
        nature="symptom",
        fields={"suggests": "network-interface"},
        since="2.3.5",
        until="2.26.6",
    ),
    # Socket creation failed : Address family not supported by protocol      no interface, or IPv6 that is off
    Pattern(
        "nccl.no_interface",
        "ocket creation failed",
        r"Socket creation failed : (?P<errno_text>Address family not supported by protocol)",
        nature="symptom",
        fields={"suggests": "network-interface"},
        refine=unless_probe(),
        since="2.3.5",
    ),
    # Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60
    Pattern(
        "nccl.duplicate_gpu",
        "Duplicate GPU detected",
        r"Duplicate GPU detected : rank (?P<rank>\d+) and rank (?P<peer_rank>\d+)"
        r" both on CUDA device (?P<bus_id>[0-9a-f]+)",
        nature="cause",
        cause="duplicate-gpu",
        refine=unless_probe(_duplicate),
        since="2.5.6",
    ),
    # Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this
    #     configuration.
    # Multiple ranks detected using the same GPU on this node. Set NCCL_MULTI_RANK_GPU_ENABLE=1 ...
    # Multiple ranks detected using the same GPU on this node and NCCL_NVLS_ENABLE has been set to "1". ...
    #     2.30.3
    Pattern(
        "nccl.duplicate_gpu",
        "using the same GPU",
        r"Multiple [Rr]anks (?:are|detected) using the same GPU",
        nature="cause",
        cause="duplicate-gpu",
        refine=unless_probe(),
        since="2.30.3",
    ),
    # Bootstrap Root : mismatch in info from procs, nranks 3 vs 2, nroots 1 vs 1, iroot 0 vs 0
    Pattern(
        "nccl.bootstrap_mismatch",
        "Bootstrap Root : mismatch",
        r"Bootstrap Root : mismatch in info from procs, nranks (\d+) vs (\d+)",
        nature="symptom",
        refine=unless_probe(_nranks),
        adds=("nranks_values", "same_nranks"),
        since="2.23.4",
    ),
    # Bootstrap Root : mismatch in rank count from procs 3 : 2
    Pattern(
        "nccl.bootstrap_mismatch",
        "Bootstrap Root : mismatch",
        r"Bootstrap Root : mismatch in rank count from procs (\d+) : (\d+)",
        nature="symptom",
        refine=unless_probe(_nranks),
        adds=("nranks_values", "same_nranks"),
        since="2.3.5",
        until="2.22.3",
    ),
    # Bootstrap Root : rank 1 of 4 ranks has already checked in    two processes claim one rank, or two jobs
    Pattern(
        "nccl.bootstrap_duplicate",
        "has already checked in",
        r"Bootstrap Root : rank (?P<rank>\d+) of (?P<nranks>\d+) ranks has already checked in",
        nature="symptom",
        fields={"suggests": "rendezvous"},
        since="2.3.7",
    ),
    # Mismatched NCCL version detected : rank 0 version 22809 rank 1 version 22602
    Pattern(
        "nccl.version_mismatch",
        "Mismatched NCCL version",
        r"Mismatched NCCL version detected : rank (?P<rank>\d+) version (?P<local>\d+)"
        r" rank (?P<peer_rank>\d+) version (?P<remote>\d+)",
        nature="cause",
        cause="version-mismatch",
        refine=unless_probe(),
        since="2.23.4",
    ),
    # NCCL version mismatch with remote peer 192.0.2.2<45090> (local: 22809, remote 22602)          RAS thread
    Pattern(
        "nccl.version_mismatch",
        "NCCL version mismatch with remote peer",
        r"NCCL version mismatch with remote peer "
        + _AT
        + r" \(local: (?P<local>[\w.+-]+), remote (?P<remote>[\w.+-]+)\)",
        nature="cause",
        cause="version-mismatch",
        refine=unless_probe(),
        since="2.24.3",
    ),
    # socketFinalizeAccept: wrong magic 1234 != 5678        another job or program connected to this port
    # socketFinalizeAccept from 10.0.0.2<4000>: socket magic mismatch (peer 0x1 != expected 0x2), ...
    *(
        Pattern(
            "nccl.wrong_magic",
            literal,
            r"socketFinalizeAccept(?: from " + _AT + r")?: " + words,
            nature="symptom",
            fields={"suggests": "rendezvous"},
            since="2.16.2",
        )
        for literal, words in (("wrong magic", "wrong magic"), ("magic mismatch", "socket magic mismatch"))
    ),
    # No transport found for rank 0[1b000] -> rank 1[1c000]
    Pattern(
        "nccl.no_transport",
        "No transport found for rank",
        r"No transport found for rank (?P<rank>\d+)\[\w+\] -> rank (?P<peer_rank>\d+)\[",
        nature="symptom",
        since="2.5.6",
    ),
    # Message truncated : received 120 bytes instead of 104
    # Bootstrap messages of different sizes: ranks that differ in version, settings or step.
    Pattern(
        "nccl.msg_truncated",
        "Message truncated : received",
        r"Message truncated : received (?P<got>\d+)(?:,\d+)? bytes instead of (?P<expected>\d+)",
        nature="symptom",
        fields={"layer": "bootstrap"},
        since="2.3.5",
    ),
    # NET/Socket : peer 10.0.0.2<4000> message truncated : receiving 1024 bytes instead of 512. If you
    #     believe ...
    Pattern(
        "nccl.msg_truncated",
        "message truncated : receiving",
        r"NET/Socket : (?:peer "
        + _AT
        + r" )?message truncated : receiving (?P<got>\d+) bytes instead of (?P<expected>\d+)",
        nature="symptom",
        fields={"layer": "socket", "suggests": "collective-mismatch"},
        since="2.4.2",
    ),
)
