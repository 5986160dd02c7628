"""The c10d store and rendezvous seen from a rank: waiting for keys, connecting, listening, names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ncclscope.parsers.pattern import Pattern
from ncclscope.parsers.torch_tags import ADDED, refine_with, tag_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ncclscope.model import Line, Value

__all__ = ["PATTERNS"]

_UNIQUE_ID = "ving ncclUniqueId"  # retrieving; retreiving up to 1.13
_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


def _unique_id(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    """The number in the bracket is the rank inside the group, like the peer's."""
    fields = tag_of(m, line)
    fields["pg_rank"] = int(m["pg_rank"])
    if line.env.rank is None:
        fields["rank"] = int(m["pg_rank"])
        fields["rank_certain"] = False
    return fields


def _key_wait(m: re.Match[str], line: Line) -> Mapping[str, Value] | None:
    """None where the same line says more, under its own kind."""
    if _UNIQUE_ID in line.text or "store based barrier" in line.text:
        return None
    return tag_of(m, line)


def _client_timeout(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    fields = tag_of(m, line)
    fields["timeout_ms"] = int(m["timeout"]) * _MS[m["unit"] or "s"]
    # socket.cpp and TCPStore.cpp log each try; only the exception says that the process gave up.
    fields["final"] = bool(re.search(r"Error: The client socket has timed out", line.text))
    return fields


def _barrier(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    """A store that counted more processes than the group has is shared by two launches."""
    fields: dict[str, Value] = {"have": int(m["have"])}
    if int(m["have"]) > int(m["world_size"]):
        fields.update(nature="cause", cause="rendezvous", over=True)
    return fields


def _barrier_wait(m: re.Match[str], line: Line) -> Mapping[str, Value]:
    fields: dict[str, Value] = {"waited_s": int(m["waited_s"])} if m["waited_s"] else {}
    return {**fields, **_barrier(m, line)} if m["have"] and m["world_size"] else fields


def _listen(_: re.Match[str], line: Line) -> Mapping[str, Value]:
    """EADDRINUSE as an exception is the end; after a log line a second agent may go on as a client."""
    fields: dict[str, Value] = {}
    in_use = "EADDRINUSE" in line.text or "errno: 98" in line.text
    if in_use:
        fields["errno"] = 98
    found = re.search(r"(?:port: |\[::\]:|0\.0\.0\.0:)(\d+)", line.text)
    if found:
        fields["port"] = int(found[1])
    raised = re.search(r"Error: The server socket", line.text)
    if in_use and raised:
        fields["nature"] = "cause"
        fields["cause"] = "rendezvous"
    else:
        fields["suggests"] = "rendezvous"
    return fields


def _lookup(m: re.Match[str], _: Line) -> Mapping[str, Value]:
    return {"gai": int(m["gai"])}


PATTERNS: tuple[Pattern, ...] = (
    # torch.distributed.DistBackendError: [3] is setting up NCCL communicator and retrieving ncclUniqueId
    # from [0] via c10d key-value store by key '0', but store->get('0') got error: wait timeout after
    # 600000ms, keys: /default_pg/0//cuda//0. This may indicate a possible application crash on rank 0 or a
    # network set up issue.   (1.13 to 2.14) ... retrieving ncclUniqueIds from roots via TCPStore by key
    # '0', but got error: ...   (2.8 and later, scalable init)
    Pattern(
        "torch.unique_id_wait",
        _UNIQUE_ID,
        r"\[(?P<pg_rank>\d+)\] is setting up NCCL communicators? and retr(?:ie|ei)ving ncclUniqueIds? from "
        r"(?:\[(?P<peer_rank>\d+)\] via c10d key-value store|roots via TCPStore) by key '(?P<key>[^']*)'"
        r"(?:, but (?:store->get\('[^']*'\) )?got error: (?P<error>.{1,200}?)(?:\. This may indicate|\s*$))?",
        nature="consequence",
        refine=_unique_id,
        adds=ADDED,
        context=True,
        since="1.13",
    ),
    # torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cuda//0   (2.6 and
    # later)
    Pattern(
        "torch.store_timeout",
        "wait timeout after ",
        r"wait timeout after (?P<timeout_ms>\d+)ms(?:, keys: (?P<key>\S[^\n]{0,200}))?",
        nature="consequence",
        refine=_key_wait,
        adds=ADDED,
        since="2.6",
    ),
    # RuntimeError: Socket Timeout   torch.distributed.DistStoreError: Socket Timeout   (up to 2.3)
    Pattern(
        "torch.store_timeout",
        "Error: Socket Timeout",
        r"Error: Socket Timeout",
        nature="consequence",
        refine=_key_wait,
        adds=ADDED,
        until="2.5",
    ),
    # [c10d] waitForInput: socket SocketImpl(fd=13, addr=[::ffff:127.0.0.1]:43380, remote=[...]:29512) timed
    # out after 1000ms
    Pattern(
        "torch.store_timeout",
        "waitForInput: ",
        r"waitForInput: (?:poll for socket (?P<socket>.{1,200}?) returned 0|.{1,200}? timed out after "
        r"(?P<timeout_ms>\d+)ms)",
        nature="consequence",
        refine=tag_of,
        adds=ADDED,
        since="2.6",
    ),
    # torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to
    # connect to (10.0.0.1, 29500).   (1.13 to 2.14; seconds with `s` and `10.0.0.1:29500` in older ones)
    Pattern(
        "torch.store_connect_failed",
        "The client socket has timed out after",
        r"The client socket has timed out after (?P<timeout>\d+)\s?(?P<unit>ms|s|m|h)? while trying to "
        r"connect to "
        r"\(?\[?(?P<host>[^\s,()\[\]]{1,255}?)\]?(?:, |:)(?P<port>\d+)(?=[\s).]|$)",
        nature="symptom",
        fields={"errno_text": "timed out"},
        refine=_client_timeout,
        adds=(*ADDED, "timeout_ms", "final"),
    ),
    # RuntimeError: connect() timed out. Original timeout was 60000 ms.   (1.8 to 1.12, the address is not said)
    Pattern(
        "torch.store_connect_failed",
        "connect() timed out. Original timeout was ",
        r"connect\(\) timed out\. Original timeout was (?P<timeout_ms>\d+) ms",
        nature="symptom",
        fields={"errno_text": "timed out", "final": True},
    ),
    # [c10d] The client socket has failed to connect to [node-a.internal]:29500 (errno: 111 - Connection
    # refused).
    Pattern(
        "torch.store_connect_failed",
        "The client socket has failed to connect to ",
        r"The client socket has failed to connect to \[?(?P<host>[^\]\s]{1,255}?)\]?:(?P<port>\d+) "
        r"\(errno: (?P<errno>\d+) - (?P<errno_text>[^)]+)\)",
        nature="symptom",
        refine=tag_of,
        adds=ADDED,
    ),
    # [c10d] The client socket has failed to connect to any network address of (node-a, 29500).
    Pattern(
        "torch.store_connect_failed",
        "to connect to any network address of",
        r"failed to connect to any network address of \((?P<host>[^,()]{1,255}), (?P<port>\d+)\)",
        nature="symptom",
        fields={"errno_text": "no address worked"},
        refine=tag_of,
        adds=ADDED,
    ),
    # [c10d] TCP client failed to connect/validate to host 127.0.0.1:29511 - retrying (try=0, timeout=3000ms,
    # delay=3175ms): The client socket has timed out ...   (2.6 and later)
    Pattern(
        "torch.store_retry",
        "TCP client failed to connect/validate to host",
        r"TCP client failed to connect/validate to host (?P<host>\S+):(?P<port>\d+) - (?P<state>retrying|"
        r"timed out) "
        r"\(try=(?P<attempt>\d+), timeout=(?P<timeout_ms>\d+)ms(?:, delay=(?P<delay_ms>\d+)ms)?\)",
        nature="symptom",
        refine=refine_with("delay_ms"),
        since="2.6",
    ),
    # torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.
    # (2.4 on)
    Pattern(
        "torch.waiting_clients",
        "waiting for clients. ",
        r"Timed out after (?P<timeout_s>\d+) seconds waiting for clients\. (?P<have>\d+)/(?P<want>\d+) "
        r"clients joined",
        nature="symptom",
        fields={"suggests": "rendezvous"},
        refine=refine_with("timeout_s", "have", "want"),
        since="2.4",
    ),
    # Timed out initializing process group in store based barrier on rank 4, for key:
    # store_based_barrier_key:1 (world_size=8, num_workers_joined=7, timeout=0:30:00 ...)   (2.2 and later;
    # worker_count before)
    Pattern(
        "torch.store_barrier_timeout",
        "initializing process group in store based barrier",
        r"Timed out initializing process group in store based barrier on rank:? (?P<rank>\d+), for key: "
        r"(?P<key>\S+) "
        r"\(world_size=(?P<world_size>\d+), (?:num_workers_joined|worker_count)=(?P<have>\d+)",
        nature="consequence",
        refine=_barrier,
        adds=("over", "cause"),
    ),
    # Waiting in store based barrier to initialize process group for 10 seconds rank: 0, key:
    # store_based_barrier_key:1 (world_size=2, num_workers_joined=1, timeout=0:30:00)
    # ... process group for rank: 0, key: store_based_barrier_key:1 (world_size=4, worker_count=8, ...   (1.9 to 2.0)
    Pattern(
        "torch.store_barrier_wait",
        "Waiting in store based barrier",
        r"Waiting in store based barrier to initialize process group (?:for (?P<waited_s>\d+) seconds )"
        r"?(?:for )?"
        r"(?:rank: (?P<rank>\d+), key: (?P<key>\S+) )?"
        r"(?:\(world_size=(?P<world_size>\d+), (?:num_workers_joined|worker_count)=(?P<have>\d+))?",
        nature="symptom",
        refine=_barrier_wait,
        adds=("over", "cause"),
    ),
    # torch.distributed.DistNetworkError: The server socket has failed to listen on any local network
    # address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use
    # (2.4 and later) RuntimeError: The server socket has failed to listen on any local network address. The
    # server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use). ...   (before)
    Pattern(
        "torch.store_listen_failed",
        "The server socket has failed to listen on any",
        r"The server socket has failed to listen on any local network address(?:\. port: (?P<port>\d+), "
        r"useIpv6: \w+, "
        r"code: -?\d+, name: (?P<errno_name>\w+), message: (?P<errno_text>.{1,100}))?",
        nature="symptom",
        refine=_listen,
        adds=("errno", "port", "cause", "suggests"),
    ),
    # [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
    # (1.13 to 2.14)
    Pattern(
        "torch.store_bind_failed",
        "The server socket has failed to ",
        r"The server socket has failed to (?:bind to|listen on) \S*?:?(?P<port>\d+) "
        r"\(errno: (?P<errno>\d+) - (?P<errno_text>[^)]+)\)",
        nature="symptom",
        fields={"suggests": "rendezvous"},
    ),
    # [c10d] The IPv6 network addresses of (node-a.invalid, 29511) cannot be retrieved (gai error: -2 - Name
    # or service not known).   (1.13 to 2.14; one IPv6 line before a connection is harmless)
    Pattern(
        "torch.name_resolution",
        "network addresses of (",
        r"The (?:(?P<family>IPv[46]) )?network addresses of \((?P<host>[^,()]{1,255}), (?P<port>\d+)\) "
        r"cannot be retrieved "
        r"\(gai error: (?P<gai>-?\d+) - (?P<error>[^)]+)\)",
        nature="symptom",
        fields={"suggests": "dns"},
        refine=_lookup,
    ),
    # socket.gaierror: [Errno -2] Name or service not known   (Python; also `[Errno -3] Temporary failure in
    # name ...`)
    Pattern(
        "torch.name_resolution",
        "gaierror: [Errno ",
        r"gaierror: \[Errno (?P<gai>-\d+)\] (?P<error>[A-Z][\w ]{1,80})",
        nature="symptom",
        fields={"suggests": "dns"},
        refine=_lookup,
    ),
    # [c10d] The hostname of the client socket cannot be retrieved. err=-3   (1.13 to 2.14; reverse lookup,
    # cosmetic)
    Pattern(
        "torch.reverse_lookup",
        "hostname of the client socket cannot be retrieved",
        r"The hostname of the client socket cannot be retrieved\. err=(?P<gai>-?\d+)",
        nature="noise",
        refine=_lookup,
    ),
    # [c10d] sendBytes failed on SocketImpl(fd=67, addr=[node-b]:36214, remote=[node-a]:43145): Broken pipe
    # (2.4 on)
    # [c10d] recvValue failed on SocketImpl(fd=6, addr=[::ffff:10.0.0.2]:37468, remote=[...]:6006):
    # failed to recv, got 0 bytes
    Pattern(
        "torch.store_closed",
        " failed on SocketImpl(",
        r"(?P<call>sendBytes|recvValue(?:WithTimeout)?|recvVector|recvBytes\w*) failed on SocketImpl\([^)"
        r"]{0,300}?"
        r"(?:remote=\[(?P<host>[^\]]{1,255})\]:(?P<port>\d+))?\): (?P<error>.{1,120})",
        nature="consequence",
        refine=tag_of,
        adds=ADDED,
        since="2.4",
    ),
    # torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the
    # remote server shutdown or crash?   (lower case up to 2.7)
    Pattern(
        "torch.store_closed",
        "ailed to recv, got 0 bytes",
        r"(?:^|Error: |error: )[Ff]ailed to recv, got 0 bytes",
        nature="consequence",
        fields={"error": "failed to recv, got 0 bytes"},
        refine=tag_of,
        adds=ADDED,
    ),
    # torch.distributed.DistNetworkError: Broken pipe   DistBackendError: ... Connection reset by peer
    # (2.1 and later)
    Pattern(
        "torch.store_closed",
        "torch.distributed.Dist",
        r"torch\.distributed\.Dist\w+Error: (?P<error>Broken pipe|Connection reset by peer|Connection "
        r"refused|Connection was likely closed)",
        nature="consequence",
        refine=tag_of,
        adds=ADDED,
    ),
    # Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early),
    # with error: Broken pipe   (2.5 to 2.12; about once a second)
    Pattern(
        "torch.store_closed",
        "maybe TCPStore server has shut down too early",
        r"maybe TCPStore server has shut down too early\), with error: (?P<error>.{1,120})",
        nature="consequence",
        fields={"call": "watchdog poll"},
        refine=tag_of,
        adds=ADDED,
    ),
    # TCPStore check for dump key "exception_dump" failed (store unavailable, not absent key).   (2.14)
    Pattern(
        "torch.store_closed",
        "failed (store unavailable, not absent key)",
        r"TCPStore check for dump key .{1,80}? failed \(store unavailable, not absent key\)",
        nature="consequence",
        fields={"call": "watchdog poll"},
        refine=tag_of,
        adds=ADDED,
        since="2.14",
    ),
    # Failed to set dump signal in tcpstore. Error: Broken pipe   (2.3 and later)
    # Failed to get exception dump flag from the global store.   Failed to get timeout rank ID from TCPStore.
    *(
        Pattern(
            "torch.store_closed",
            words,
            rf"Failed to (?P<call>{words})(?:.{{0,40}}?Error: (?P<error>.{{1,120}}))?",
            nature="consequence",
            refine=tag_of,
            adds=ADDED,
        )
        for words in (
            "set dump signal in tcpstore",
            "get exception dump flag from the global store",
            "get timeout rank ID from",
        )
    ),
    # RuntimeError: Ping failed, invalid value returned from server. Expected: 1234, Got: 0   (2.4 and later)
    Pattern(
        "torch.store_not_a_store",
        "Ping failed, invalid ",
        r"Ping failed, invalid (?:nonce|value) returned",
        nature="cause",
        cause="rendezvous",
        since="2.4",
    ),
    # ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK
    # expected, but not set   (all)
    Pattern(
        "torch.env_missing",
        "Error initializing torch.distributed using",
        r"Error initializing torch\.distributed using (?P<scheme>\S+) rendezvous: environment variable "
        r"(?P<variable>\w+) "
        r"expected, but not set",
        nature="cause",
        cause="invalid-usage",
    ),
)
