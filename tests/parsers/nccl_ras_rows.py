"""Lines of NCCL's RAS client and what they say: (body, kind, fields). Shapes from NCCL's user guide and source."""

from __future__ import annotations

from nccl_rows import Row

_WHO = "GPU 3 (NVML 7) managed by process 483075 on node 10.0.0.2"
_PROCESS = {"cuda_dev": 3, "nvml_dev": 7, "pid": 483075, "host": "10.0.0.2"}
_NOBODY = "[process information not found]"

CLIENT_ROWS: list[Row] = [
    ("NCCL version 2.28.9 compiled with CUDA 13.0", "nccl.version", {"version": "2.28.9", "cuda": "13.0", "echo": True}),
    ("No communicator data collected!", "ras.empty", {"what": "communicator", "nature": "info"}),
    *(
        (
            f"#1-0 (27a079b828ff1a75) {errors}",
            "ras.comm",
            {"group": "1", "index": "0", "comm": "27a079b828ff1a75", "errors": errors, "nature": "symptom"},
        )
        for errors in ("MISMATCH", "INCOMPLETE", "ERROR")
    ),
    ("  Missing communicator data from 1 rank", "ras.missing", {"count": 1, "what": "rank", "nature": "symptom"}),
    ("  Missing communicator data from 2 job processes", "ras.missing", {"count": 2, "what": "job process"}),
    (
        "  1 job process is considered dead (unreachable via the RAS network)",
        "ras.dead",
        {"count": 1, "nature": "symptom"},
    ),
    ("  2 job processes are considered dead (unreachable via the RAS network)", "ras.dead", {"count": 2}),
    (
        "[2025-12-19 13:07:07] PEER_DEAD: Process 483075 on node 10.0.0.2 managing GPU 1",
        "ras.dead",
        {"count": 1, "pid": 483075, "host": "10.0.0.2", "gpus": "1"},
    ),
    (
        "  Process 483075 on node 10.0.0.2 managing GPUs 0,1",
        "ras.process",
        {"pid": 483075, "host": "10.0.0.2", "gpus": "0,1", "nature": "info"},
    ),
    (
        " Warning: missing data from 1 process (received from 7, expected 8)",
        "ras.unanswered",
        {"count": 1, "got": 7, "expected": 8, "nature": "symptom"},
    ),
    ("  Encountered 2 communication timeouts while gathering communicator data", "ras.unanswered", {"count": 2}),
    (" Warning: encountered 1 communication timeout while gathering data", "ras.unanswered", {"count": 1}),
    (
        "  Communicator ranks have different ReduceScatter operation counts",
        "ras.differ",
        {"op": "ReduceScatter", "nature": "symptom"},
    ),
    ("  Communicator ranks have different status", "ras.differ", {"what": "status", "op": None}),
    ("  26 ranks have launched up to operation 6650", "ras.launched", {"size": 26, "launched": "6650", "nature": "info"}),
    ("  2 ranks have not launched any operations", "ras.launched", {"size": 2, "launched": "0", "nature": "symptom"}),
    (
        f"  Rank 5 has launched up to operation 6649 -- {_WHO}",
        "ras.launched",
        {"rank": 5, "launched": "6649", "nature": "info", **_PROCESS},
    ),
    (f"  Rank 5 has launched up to operation 6649 -- {_NOBODY}", "ras.launched", {"rank": 5, "pid": None}),
    (
        f"  Rank 5 has not launched any operations -- {_WHO}",
        "ras.launched",
        {"rank": 5, "launched": "0", "nature": "symptom", **_PROCESS},
    ),
    (f"  Rank 5 has not launched any operations -- {_NOBODY}", "ras.launched", {"rank": 5, "launched": "0"}),
    ("  26 ranks have status NOCOMM", "ras.state", {"size": 26, "state": "NOCOMM", "nature": "info"}),
    (f"  Rank 5 has status INIT -- {_WHO}", "ras.state", {"rank": 5, "state": "INIT", **_PROCESS}),
    (f"  Rank 5 has status INIT -- {_NOBODY}", "ras.state", {"rank": 5, "state": "INIT"}),
    ("  Rank 5 has status UNKNOWN", "ras.state", {"rank": 5, "state": "UNKNOWN"}),
    (
        "  Initialization error on 1 rank",
        "ras.errors",
        {"during": "Initialization", "count": 1, "nature": "symptom"},
    ),
    ("  Asynchronous errors on 3 ranks", "ras.errors", {"during": "Asynchronous", "count": 3}),
    (
        "  3 ranks reported Remote process error",
        "ras.error",
        {"size": 3, "error": "Remote process error", "nature": "consequence"},
    ),
    (
        f"  Rank 5 reported Unhandled CUDA error -- {_WHO}",
        "ras.error",
        {"rank": 5, "error": "Unhandled CUDA error", "nature": "symptom", **_PROCESS},
    ),
    (f"  Rank 5 reported System error -- {_NOBODY}", "ras.error", {"rank": 5, "error": "System error"}),
    (f"  Rank 5 -- {_WHO}", "ras.rank", {"rank": 5, "nature": "info", **_PROCESS}),
    (f"  Rank 5 -- {_NOBODY}", "ras.rank", {"rank": 5, "pid": None}),
    ("  The missing ranks: 21,22", "ras.rank_list", {"what": "missing", "ranks": (21, 22)}),
    ("  The unknown ranks: 3", "ras.rank_list", {"what": "unknown", "ranks": (3,)}),
]

_AT = "10.0.0.2<43211>"
_FROM = {"peer_address": "10.0.0.2"}


def _harmless(*texts: str) -> list[Row]:
    return [(text, "nccl.harmless", {"nature": "noise"}) for text in texts]


# Lines at INFO level of a job's log that tell of trouble or look as if they did.
LOG_ROWS: list[Row] = [
    (
        f"RAS init timeout error (60s) on incoming socket connection from {_AT}",
        "nccl.ras_timeout",
        {"what": "init", "severity": "error", "timeout_s": "60", "nature": "symptom", **_FROM},
    ),
    (
        f"RAS init timeout error (60s) on socket connection with {_AT} (experiencingDelays 1, startRetryTime 0.25s, socket status 12)",
        "nccl.ras_timeout",
        {"what": "init", **_FROM},
    ),
    *(
        (
            f"RAS {what} timeout error (20s) on socket connection with {_AT}",
            "nccl.ras_timeout",
            {"what": what, "severity": "error", **_FROM},
        )
        for what in ("send stuck", "termination stuck")
    ),
    (
        f"RAS peer connect timeout warning (5s) on socket connection from {_AT}",
        "nccl.ras_timeout",
        {"what": "peer connect", "severity": "warning", **_FROM},
    ),
    (f"RAS connect timeout warning (5s) on socket connection with {_AT}", "nccl.ras_timeout", {"what": "connect", **_FROM}),
    (f"RAS connect retry timeout (5s) on socket connection with {_AT}", "nccl.ras_timeout", {"what": "connect retry", **_FROM}),
    (
        "RAS collective RAS_COLL_COMMS:7 timeout error (10s) -- giving up on 2 missing responses",
        "nccl.ras_timeout",
        {"what": "collective", "severity": "error", "count": 2},
    ),
    (
        "RAS collective RAS_COLL_CONNS:7 timeout warning (5s) -- 2 responses missing",
        "nccl.ras_timeout",
        {"what": "collective", "severity": "warning", "count": 2},
    ),
    (f"RAS handling deadPeer (addr {_AT})", "nccl.ras_peer_dead", {"nature": "consequence", **_FROM}),
    (f"RAS dead peer 2: {_AT}", "nccl.ras_peer_dead", _FROM),
    (f"RAS connection from peer {_AT} that is considered dead!", "nccl.ras_peer_dead", _FROM),
    ("RAS already knew it was dead", "nccl.ras_peer_dead", {"nature": "consequence"}),
    (
        f"RAS current socket connection with {_AT} closed by peer on receive; terminating it",
        "nccl.ras_link",
        {"during": "receive", "nature": "consequence", **_FROM},
    ),
    (f"RAS socket connection with {_AT} closed by peer on send; terminating it", "nccl.ras_link", {"during": "send", **_FROM}),
    (
        f"RAS trying to reconnect with {_AT} (experiencingDelays 1, startRetryTime 0.25s)",
        "nccl.ras_link",
        {"nature": "symptom", **_FROM},
    ),
    *(
        (
            f"{head}nexpected error from {function}; terminating the socket connection with {_AT}",
            "nccl.ras_link",
            {"function": function, "nature": "symptom", **_FROM},
        )
        for head, function in (("RAS u", "rasMsgRecv"), ("RAS u", "rasConnSendMsg"), ("U", "ncclSocketReady"))
    ),
    (
        "RAS continuing in spite of an unexpected error from poll: Bad address",
        "nccl.ras_link",
        {"function": "poll", "errno_text": "Bad address", "nature": "symptom"},
    ),
    (
        f"RAS link 1: could not add a fallback connection with {_AT} -- internal error?",
        "nccl.ras_internal",
        {"nature": "noise", "text": f"link 1: could not add a fallback connection with {_AT}"},
    ),
    *(
        (
            f"RAS encountered duplicate data for rank 3 -- possible {name} collision (0xb1000)",
            "nccl.ras_internal",
            {"text": "encountered duplicate data for rank 3", "nature": "noise"},
        )
        for name in ("hash", "commHash")
    ),
    ("RAS post-merge discrepancy: found value 2", "nccl.ras_internal", {"nature": "noise"}),
    ("RAS failed to find a matching client!", "nccl.ras_internal", {"nature": "noise"}),
    *(
        (f"{head}: abort called", "nccl.socket_abort", {"nature": "consequence"})
        for head in ("Socket progress", "socketProgressOpt", "ncclOsSocketProgressOpt")
    ),
    (
        "CommRevokeAsync START comm 0x7f3c2c001000 rank 3 nRanks 8 nNodes 2 localRank 3 cudaDev 3",
        "nccl.comm_revoke",
        {"state": "START", "rank": 3, "nranks": 8, "cuda_dev": 3, "nature": "consequence"},
    ),
    ("CommRevokeAsync END comm 0x7f3c2c001000 result 2", "nccl.comm_revoke", {"state": "END", "retcode": 2}),
    *(
        (f"{place} [{thread} Progress Thread] state unknown 4", "nccl.progress_state", {"thread": thread, "nature": "symptom"})
        for place, thread in (("gin/gin_host.cc:71 (ginProgressThread)", "GIN"), ("rma/rma_proxy.cc:367 ->", "RMA Proxy"))
    ),
    *(
        (f"{place} -> 2 [{thread} Progress Thread]", "nccl.trail", {"code": 2, "nature": "consequence"})
        for place, thread in (("gin/gin_host.cc:57 (ginProgressThread)", "GIN"), ("rma/rma_proxy.cc:350", "RMA Proxy"))
    ),
    (
        "peer query failed between dev 3(=b1000) and dev 4(=c1000)",
        "nccl.peer_query_failed",
        {"cuda_dev": 3, "bus": "b1000", "peer_dev": "4", "nature": "symptom"},
    ),
    ("peer query failed between dev 3 and dev 4", "nccl.peer_query_failed", {"cuda_dev": 3}),
    (
        f"socketFinalizeAccept from {_AT}: wrong socket type (peer 2 != expected 1 -- peer connected to wrong NCCL socket), discarding peer connection",
        "nccl.wrong_socket",
        {"got": 2, "expected": 1, "port": 43211, "nature": "symptom", **_FROM},
    ),
    (
        "TOPO/NET : Tried merging multiple devices together and failed. vProps={ndevs=2, devs=[0 1 0 0]}. Set NCCL_NET_MERGE_LEVEL=LOC to disable NIC fusion.",
        "nccl.nic_merge_failed",
        {"devices": "ndevs=2, devs=[0 1 0 0]", "nature": "symptom"},
    ),
    *(
        (f"[Proxy Progress] Failed to {what} CUDA context on device 3 with error 2{tail}", "nccl.proxy_context", {"what": what, "cuda_dev": 3, "code": 2})
        for what, tail in (("create", ", disabling cuda context."), ("set", "."))
    ),
    (
        "Detected ranks 8 and 2 sharing GPU with bus B1000 on this node",
        "nccl.gpu_shared",
        {"rank": 8, "peer_rank": 2, "nature": "info", "suggests": "duplicate-gpu"},
    ),
    (
        "NET/IB: Ip address '10.0.0' is invalid for family AF_INET, ignoring address",
        "nccl.ib_addr_range",
        {"value": "10.0.0", "family": "AF_INET", "suggests": "ib-config", "nature": "symptom"},
    ),
    (
        "NET/IB: Ip address mask '40' is invalid for family AF_INET, ignoring mask",
        "nccl.ib_addr_range",
        {"what": "mask ", "value": "40"},
    ),
    ("Net : Unsupported address family type", "nccl.address_family", {"nature": "symptom"}),
    *_harmless(
        "Continuing in spite of a RAS initialization error",
        "RAS socket closed by the client on receive; terminating it",
        "RAS unexpected error from recv; terminating the client socket",
        "RAS excessively long input line; terminating the client socket",
        f"socketFinalizeAccept: handshake receive from {_AT} failed, discarding peer connection",
        f"socketFinalizeAccept: peer {_AT} closed before magic handshake, discarding",
        f"socketFinalizeAccept: didn't receive a valid magic from {_AT}",
        "rank 3 failed to NET register userbuff 0x7f3c2c001000 buffSize 4194304 GDR flag 1",
        "rank 3 failed to IPC register userbuff 0x7f3c2c001000 buffSize 4194304 nPeers 1 isLegacyIpc 0 type P2P",
        "rank 3 failed to NVLS register sendbuff 0x7f3c2c001000 sendbuffSize 4194304 recvbuff 0x7f3c recvbuffSize 4194304",
        "rank 3 - COLLNET failed to register userbuff 0x7f3c2c001000, buffSize 4194304, type recv, GDR 1",
        "NET/IB : There are mismatched physical devices between local (mlx5_0) and remote (mlx5_1). To disable this warning, set NCCL_IB_WARN_RAIL_LOCAL=0",
        "Call to accept returned Resource temporarily unavailable, retrying",
        "Call to ibv_query_ece not supported",
        "Call to ibv_query_ece skipped, internal_name doesn't exist",
        "Warning: ENV NCCL_X is deprecated. It may be removed or become unused in future versions.",
        "Warning: ENV NCCL_X is unused. Setting it has no effect.",
        "unlink shared memory /dev/shm/nccl-Ab12Cd failed, error: No such file or directory (2)",
        "KV Convert to int : could not find value of 'x' in dictionary, falling back to 0",
        "NCCL Inspector: dump location /tmp/x exists, but is not a directory",
        "NCCL Inspector inspectorDumpThread: couldn't create dump thread!",
        "NCCL Inspector: comm 0xb1000 already in tracker",
        "Profiler init failed with error '2': unhandled system error. Continue without profiler.",
        "Unable to open /tmp/topo.xml, not dumping topology.",
        "dlsym failed on gdr_runtime_get_version, ignoring",
    ),
]

# Neighbours: healthy lines of the same report, and other programs' words.
SILENT = [
    "Gathering data about the NCCL communicators (timeout 5s)...",
    " Collected data about 8 unidirectional connections",
    "(pid 12) ERROR something failed",
    "pod a-1 has status Running",
    "3 ranks reported to the coordinator in 2 s",
    "(received from 10.0.0.2, expected a reply)",
    "Rank 3 -- done",
    "Process 12 on node a managing nothing",
]
