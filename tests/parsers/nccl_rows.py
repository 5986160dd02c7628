"""Real lines of NCCL (addresses and names changed) and what they say: (body, kind, fields)."""



from __future__ import annotations

from typing import Any

Row = tuple[str, str, dict[str, Any]]

_COMM = {"rank": 1, "nranks": 2, "bus_id": "0000:1b:00.0"}

INFO_ROWS: list[Row] = [
    # nccl-tests
    (
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong",
        "nccl.tests_head",
        {},
    ),
    *(
        (
            f"        1024           256 {name}     sum      -1     8.41    0.12    0.12      0     8.32    0.12    0.12      0",
            "nccl.tests_row",
            {"size": 1024, "count": 256},
        )
        for name in (
            *("   float", "    half", "bfloat16", "  double", "    int8", "   uint8", "   int32", "  uint32", "   int64"),
            "  uint64",
        )
    ),
    ("    33554432       1048576     float                  221.4  151.55  284.16  1e-05", "nccl.tests_row", {"size": 33554432}),
    ("NET : Using interface lo:127.0.0.1<0>", "nccl.interface", {"interface": "lo", "address": "127.0.0.1"}),
    ("# Out of bounds values : 50 FAILED", "nccl.tests_wrong", {"count": 50, "nature": "symptom"}),
    ("# Avg bus bandwidth    : 0.0312 ", "nccl.tests_done", {"busbw": "0.0312"}),
    (
        "socketPollConnect: connect to 10.0.0.2<4000> returned No route to host, retrying (33/34) after sleep for 3300 msec",
        "nccl.connect_retry",
        {"attempt": 33, "late": True, "errno_name": "EHOSTUNREACH"},
    ),
    ("NCCL version 2.28.9+cuda13.0", "nccl.version", {"version": "2.28.9", "cuda": "13.0"}),
    (
        "unhandled system error, NCCL version 2.19.3",
        "nccl.version",
        {"version": "2.19.3", "cuda": None, "echo": True},
    ),
    ("cudaDriverVersion 12040", "nccl.driver", {"driver_version": 12040}),
    # 2.29+
    (
        (
            "[Rank 1] ncclCommInitRankConfig comm 0x5581 rank 1 nranks 2 cudaDev 0 nvmlDev 3 busId 1b000 "
            "commId 0x2fb902677fd5202e - Init START"
        ),
        "nccl.init_start",
        {
            **_COMM,
            "cuda_dev": 0,
            "nvml_dev": 3,
            "comm_id": "0x2fb902677fd5202e",
            "api": "ncclCommInitRankConfig",
        },
    ),
    # 2.24 - 2.28, no blank before the dash
    (
        (
            "ncclCommSplit comm 0x51 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 parent 0x41 splitCount 1 "
            "color 7 key -1- Init START"
        ),
        "nccl.init_start",
        {**_COMM, "parent": "0x41", "color": 7, "key": -1, "comm": "0x51"},
    ),
    # 2.21 - 2.22
    (
        (
            "ncclCommSplit comm 0x51 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 parent 0x41 color 7 key 1 "
            "commId 0x9 - Init COMPLETE"
        ),
        "nccl.init_complete",
        {**_COMM, "parent": "0x41", "comm_id": "0x9"},
    ),
    # 2.16 - 2.18
    (
        "comm 0x7f1c rank 1 nranks 2 cudaDev 0 busId 1b000 commId 0x77 - Init COMPLETE",
        "nccl.init_complete",
        {**_COMM, "comm_id": "0x77"},
    ),
    # 2.4
    (
        "comm 0x7f1c rank 29 nranks 32 cudaDev 5 nvmlDev 5 - Init COMPLETE",
        "nccl.init_complete",
        {"rank": 29, "nranks": 32, "nvml_dev": 5, "bus_id": None},
    ),
    # 2.3.7
    ("comm 0x7f1c rank 1 nranks 2 - COMPLETE", "nccl.init_complete", {"rank": 1, "nranks": 2}),
    # the head of the line is lost
    ("rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x7 - Init START", "nccl.init_start", _COMM),
    # 2.3.5 prints no more; later versions when cut
    ("comm 0x7f1c rank 1 nranks 2", "nccl.init_cut", {"rank": 1, "nranks": 2}),
    (
        "comm 0x55d0 rank 1 nRanks 8 nNodes 2 localRanks 4 localRank 1 MNNVL 0",
        "nccl.comm_info",
        {"rank": 1, "nranks": 8, "nnodes": 2, "local_ranks": 4, "local_rank": 1},
    ),
    *(
        (
            f"comm 0xdf20660 rank 1 nRanks 2 cudaDev 0 busId 1b000 - {action} {state}",
            "nccl.comm_end",
            {**_COMM, "action": action, "state": state},
        )
        for action in ("Abort", "Destroy", "Revoke")
        for state in ("START", "COMPLETE")
    ),
    ("Comm config Blocking set to 1", "nccl.config", {"name": "Blocking", "value": "1"}),
    ("Comm config CGA cluster size set to 4", "nccl.config", {"name": "CGA cluster size", "value": "4"}),
    (
        "Comm config minCTAs reset to NCCL_MIN_CTAS=4",
        "nccl.config",
        {"name": "minCTAs", "variable": "NCCL_MIN_CTAS", "value": "4"},
    ),
    (
        "Bootstrap: Using eth0:10.0.0.12<0>",
        "nccl.bootstrap_using",
        {"interface": "eth0", "address": "10.0.0.12"},
    ),
    (
        "Bootstrap : Using [0]ib0:fe80::1%ib0<0>",
        "nccl.bootstrap_using",
        {"interface": "ib0", "address": "fe80::1%ib0"},
    ),
    (
        "Bootstrap timings total 0.021 (create 0.000, send 0.001, recv 0.018, ring 0.001, delay 0.000)",
        "nccl.bootstrap_timings",
        {"total_s": 0.021, "recv_s": 0.018},
    ),
    (
        "Init timings - ncclCommInitRankConfig: rank 1 nranks 2 total 8.74 (kernels 8.54, alloc 0.01, bootstrap 0.02)",
        "nccl.init_timings",
        {"rank": 1, "nranks": 2, "total_s": 8.74, "kernels_s": 8.54, "bootstrap_s": 0.02},
    ),
    ("Init timings: rank 1 nranks 2 total 0.35", "nccl.init_timings", {"rank": 1, "total_s": 0.35}),
    ("NCCL_NVLS_ENABLE set by environment to 0.", "nccl.env", {"name": "NCCL_NVLS_ENABLE", "value": "0"}),
    (
        "NCCL_SOCKET_IFNAME set by environment to eth0",
        "nccl.env",
        {"name": "NCCL_SOCKET_IFNAME", "value": "eth0"},
    ),
    ("NCCL_SOCKET_IFNAME set to lo", "nccl.env", {"name": "NCCL_SOCKET_IFNAME", "value": "lo"}),
    ("NCCL_OOB_NET_IFNAME set to eth1", "nccl.env", {"name": "NCCL_OOB_NET_IFNAME", "value": "eth1"}),
    ("NCCL_IB_HCA set to mlx5_0,mlx5_1", "nccl.env", {"name": "NCCL_IB_HCA", "value": "mlx5_0,mlx5_1"}),
    ("NCCL_TUNER_PLUGIN set to libx.so", "nccl.env", {"name": "NCCL_TUNER_PLUGIN", "value": "libx.so"}),
    ("ncclGetUniqueId(0xa2b44d4993067288)", "nccl.unique_id", {}),
    ("Connected all rings, use ring PXN 0 GDR 1", "nccl.connected", {"what": "rings"}),
    ("init.cc:1345 -> 1", "nccl.trail", {"file": "init.cc", "code": 1, "nature": "consequence"}),
    (
        "misc/socket.cc:60 (socketProgressRaw) -> 6",
        "nccl.trail",
        {"file": "misc/socket.cc", "func": "socketProgressRaw", "code": 6},
    ),
    (
        "misc/shmutils.cc:72 -> 2 (No space left on device)",
        "nccl.trail",
        {"errno_text": "No space left on device", "code": 2},
    ),
    ("group.cc:70 -> 1 [Async thread]", "nccl.trail", {"thread": "Async thread", "code": 1}),
    ("enqueue.cu:198 -> 1", "nccl.trail", {"file": "enqueue.cu", "code": 1}),
    ("include/shm.h:48 -> 2", "nccl.trail", {"file": "include/shm.h", "code": 2}),
    *(
        (text, "nccl.error_class", {"name": name, "code": code})
        for text, name, code in (
            ("ncclUnhandledCudaError: Call to CUDA function failed.", "ncclUnhandledCudaError", 1),
            ("ncclSystemError: System call (e.g. socket, malloc) failed.", "ncclSystemError", 2),
            ("ncclInternalError: Internal check failed.", "ncclInternalError", 3),
            ("ncclInvalidArgument: Invalid value for an argument.", "ncclInvalidArgument", 4),
            ("ncclInvalidUsage: This usually reflects invalid usage of NCCL library.", "ncclInvalidUsage", 5),
            ("ncclRemoteError: A call failed possibly due to a network error", "ncclRemoteError", 6),
            (
                "NCCL error in: a.cpp:1, unhandled cuda error, NCCL version 2.14.3",
                "ncclUnhandledCudaError",
                1,
            ),
            ("NCCL Error 2: unhandled system error", "ncclSystemError", 2),
            ("Test NCCL failure common.cu:957 'internal error'", "ncclInternalError", 3),
            ("NCCL Error 4: invalid argument", "ncclInvalidArgument", 4),
            ("NCCL failure all_reduce.cu:95 'invalid usage'", "ncclInvalidUsage", 5),
            ("NCCL error: remote process exited or there was a network error", "ncclRemoteError", 6),
        )
    ),
    (
        "Test CUDA failure common.cu:941 'no CUDA-capable device is detected'",
        "nccl.cuda_failure",
        {"where": "common.cu:941", "code": 100},
    ),
    (
        (
            "socketPollConnect: connect to 10.0.0.2<4000> returned Connection refused, retrying (3/34) after sleep for "
            "300 msec"
        ),
        "nccl.connect_retry",
        {"address": "10.0.0.2", "port": 4000, "attempt": 3, "errno_name": "ECONNREFUSED", "nature": "info"},
    ),
    (
        "Call to connect returned Connection refused, retrying",
        "nccl.connect_retry",
        {"errno_name": "ECONNREFUSED"},
    ),
    (
        "[Service thread] Connection closed by localRank 1",
        "nccl.peer_closed",
        {"local_rank_peer": 1, "same_host": True, "nature": "consequence"},
    ),
    (
        "socketFinalizeAccept from 10.0.0.2<4000>: socket magic mismatch (peer 0x1 != expected 0x2), discarding",
        "nccl.wrong_magic",
        {"address": "10.0.0.2", "suggests": "rendezvous"},
    ),
    ("Using network AWS Libfabric", "nccl.network", {"network": "AWS Libfabric"}),
    (
        "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.11<0>",
        "nccl.net_devices",
        {"plugin": "IB", "devices": ("mlx5_0:1/IB", "mlx5_1:1/IB"), "oob_interface": "eth0"},
    ),
    (
        "NET/Socket : Using [0]eth0:10.0.0.11<0>",
        "nccl.net_devices",
        {"plugin": "Socket", "devices": ("eth0:10.0.0.11",)},
    ),
    ("NET/IB : No device found.", "nccl.net_no_device", {"plugin": "IB", "nature": "info"}),
    (
        "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
        "nccl.gdr",
        {"state": "enabled", "hca_name": "mlx5_0"},
    ),
    (
        "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (no module)",
        "nccl.gdr",
        {"state": "disabled", "plugin": "IB", "reason": "no module"},
    ),
    (
        "GPU Direct RDMA Enabled for GPU 5 / HCA 0 (distance 4 <= 4), read 1 mode Default",
        "nccl.gdr",
        {"state": "enabled", "gpu": "5", "hca": "0"},
    ),
    ("DMA-BUF is available on GPU device 3", "nccl.dmabuf", {"cuda_dev": 3}),
    (
        "NVLS multicast support is not available on dev 0",
        "nccl.nvls",
        {"state": "not available", "nature": "info"},
    ),
    (
        "MNNVL busId 0x1b000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0",
        "nccl.fabric",
        {"bus_id": "0000:1b:00.0", "state": 3},
    ),
    (
        "GpuBuffer cuMemCreate failed: operation not permitted",
        "nccl.cumem_failed",
        {"suggests": "nvlink-fabric"},
    ),
    (
        "cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based implementation.",
        "nccl.cumem_host_fallback",
        {"nature": "noise"},
    ),
    (
        "P2P is disabled between connected GPUs 1 and 0. You can",
        "nccl.p2p_disabled",
        {"gpu": "1", "peer_gpu": "0"},
    ),
    ("Could not enable P2P between dev 1(=2000) and dev 0(=1000)", "nccl.p2p_disabled", {"gpu": "1"}),
    ("Skipping kernel 12 which requires driver 12080", "nccl.kernel_skipped", {"driver_version": 12080}),
    (
        "NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin.",
        "nccl.plugin",
        {"plugin": "NET", "outcome": "absent", "name": "libnccl-net.so", "nature": "noise"},
    ),
    (
        (
            "NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libnccl-net.so: cannot open shared object file: No "
            "such file or directory"
        ),
        "nccl.plugin",
        {"outcome": "load_failed", "nature": "noise", "suggests": None},
    ),
    (
        (
            "NET/Plugin : Plugin load (libnccl-net.so) returned 2 : libfabric.so.1: cannot open shared object file: No "
            "such file or directory"
        ),
        "nccl.plugin",
        {"outcome": "load_failed", "nature": "symptom", "suggests": "efa-plugin"},
    ),
    (
        "NET/Plugin: Failed to find ncclNetPlugin symbol (>= v5). ncclNetPlugin symbols v4 and lower are not supported.",
        "nccl.plugin",
        {"outcome": "symbol_missing", "suggests": "net-plugin-abi"},
    ),
    (
        "NET/Plugin: Failed to find ncclNetPlugin_v8 symbol.",
        "nccl.plugin",
        {"outcome": "symbol_missing", "nature": "info", "suggests": None},
    ),
    (
        "NET/Plugin: Loaded net plugin AWS Libfabric (v8)",
        "nccl.plugin",
        {"outcome": "loaded", "name": "AWS Libfabric"},
    ),
    (
        "TUNER/Plugin: Using tuner plugin nccl_ofi_tuner",
        "nccl.plugin",
        {"outcome": "loaded", "name": "nccl_ofi_tuner"},
    ),
    (
        "TUNER/Plugin: libnccl-tuner.so: cannot open shared object file: No such file or directory",
        "nccl.plugin",
        {"plugin": "TUNER", "outcome": "load_failed", "nature": "noise"},
    ),
    (
        "NET/Plugin: libnccl-net-aws.so: libfabric.so.1: cannot open shared object file: No such file or directory",
        "nccl.plugin",
        {"name": "libnccl-net-aws.so", "outcome": "load_failed", "nature": "symptom", "suggests": "efa-plugin"},
    ),
    (
        "External network plugin libnccl-net.so is unsupported",
        "nccl.plugin",
        {"plugin": "NET", "outcome": "unsupported", "nature": "symptom", "suggests": "net-plugin-abi"},
    ),
    (
        "External tuner plugin libnccl-tuner.so is unsupported",
        "nccl.plugin",
        {"plugin": "TUNER", "outcome": "unsupported", "nature": "noise"},
    ),
    ("Initialized NET plugin IB", "nccl.plugin", {"outcome": "initialized", "name": "IB"}),
    ("Assigned NET plugin Socket to comm", "nccl.plugin", {"outcome": "assigned", "name": "Socket"}),
    ("Failed to initialize NET plugin IB", "nccl.plugin", {"outcome": "init_failed", "nature": "noise"}),
    ("NET/OFI Initializing aws-ofi-nccl 1.13.2-aws", "nccl.ofi", {"plugin_version": "1.13.2-aws"}),
    ("NET/OFI Using Libfabric version 1.22", "nccl.ofi", {"libfabric_version": "1.22"}),
    ("NET/OFI Selected provider is efa, fabric is efa (found 4 nics)", "nccl.ofi", {"provider": "efa"}),
    (
        "NET/OFI No eligible providers were found",
        "nccl.ofi_failed",
        {"suggests": "efa-plugin", "nature": "symptom"},
    ),
    (
        "Channel 00/0 : 1[0] -> 0[0] [send] via NET/IB/0/GDRDMA(PCI)",
        "nccl.channel_net",
        {"network": "IB", "gdrdma": True, "direction": "send"},
    ),
    (
        "Channel 00/0 : 0[0] -> 1[0] [receive] via NET/Socket/1",
        "nccl.channel_net",
        {"network": "Socket", "gdrdma": False},
    ),
    (
        "RAS declaring peer 10.0.0.2<38245> as DEAD; rasDeadPeersHash 0x1",
        "nccl.ras_peer_dead",
        {"peer_address": "10.0.0.2", "nature": "consequence"},
    ),
    (
        "RAS keep-alive timeout error (20s) on socket connection with 10.0.0.2<38245>",
        "nccl.ras_timeout",
        {"severity": "error", "peer_address": "10.0.0.2"},
    ),
    (
        "Topology detection : could not read /sys/devices/pci0000:00/x/max_link_speed, ignoring",
        "nccl.harmless",
        {"nature": "noise"},
    ),
    ("Affinity for GPU 0 is empty, ignoring. (GPU affinity =  ; CPU affinity = 0-63).", "nccl.harmless", {}),
    ("dlvsym failed on mlx5dv_reg_dmabuf_mr - /lib/libmlx5.so: undefined symbol", "nccl.harmless", {}),
    (
        "UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory : Please set max locked memory",
        "net.ucx_verb_failed",
        {"cause": "memlock-limit"},
    ),
    ("UCX  ERROR ibv_create_qp(x) failed: Invalid argument", "net.ucx_verb_failed", {"cause": None}),
    (
        "UCX  ERROR ibv_reg_mr(address=0x1, length=8) failed: Bad address",
        "net.ucx_verb_failed",
        {"cause": None, "suggests": "gdr-peermem"},
    ),
    (
        "ib_log.c:246  UCX  ERROR mlx5_0: ibv_create_cq() failed: Cannot allocate memory. Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)",
        "net.ucx_verb_failed",
        {"cause": "memlock-limit", "errno_name": "ENOMEM"},
    ),
    # other programs that use the verbs
    ("ibv_reg_mr(gpu) failed: Bad address", "net.verb_failed", {"suggests": "gdr-peermem", "errno_name": "EFAULT"}),
    ("ibv_reg_dmabuf_mr (retain) failed: Invalid argument", "net.verb_failed", {"suggests": "gdr-peermem", "cause": None}),
    ("ibv_reg_mr failed: Invalid argument", "net.verb_failed", {"suggests": None, "cause": None}),
    (
        "ibv_modify_qp failed (errno 19) (Ib failure: No such device)",
        "net.verb_failed",
        {"errno": 19, "suggests": "ib-config"},
    ),
    (
        "ibv_create_cq failed (errno 12) (Ib failure: Cannot allocate memory)",
        "net.verb_failed",
        {"cause": "memlock-limit", "nature": "cause"},
    ),
    ("Couldn't allocate MR", "net.region_refused", {"nature": "symptom", "suggests": None}),
    ("Couldn't register GPU MR", "net.region_refused", {"suggests": "gdr-peermem"}),
    ("allocated GPU buffer address at 0000010013000000 pointer=0x10013000000", "net.gpu_buffer", {"address": "0000010013000000"}),
]

_ENOSPC = {"nature": "cause", "cause": "shm-limit", "errno_name": "ENOSPC"}

WARN_ROWS: list[Row] = [
    ("Error encountered somewhere new", "nccl.warn", {"text": "Error encountered somewhere new"}),
    (
        "Cuda failure 'named symbol not found'",
        "nccl.cuda_failure",
        {"error": "named symbol not found", "code": 500, "cause": "arch-mismatch"},
    ),
    (
        "Cuda failure 'no kernel image is available for execution on the device'",
        "nccl.cuda_failure",
        {"cause": "arch-mismatch"},
    ),
    (
        "Cuda failure 'the provided PTX was compiled with an unsupported toolchain.'",
        "nccl.cuda_failure",
        {"cause": "driver-mismatch"},
    ),
    ("Cuda failure 'out of memory'", "nccl.cuda_failure", {"cause": "oom-gpu"}),
    (
        "Cuda failure 1 'invalid argument'",
        "nccl.cuda_failure",
        {"code": 1, "cause": None, "nature": "symptom"},
    ),
    ("Cuda failure 700", "nccl.cuda_failure", {"code": 700, "sticky": True, "cause": None}),
    (
        "Cuda failure 'an illegal memory access was encountered'",
        "nccl.cuda_failure",
        {"sticky": True, "nature": "symptom", "cause": None},
    ),
    (
        "Cuda failure common.cu:891 'CUDA driver version is insufficient for CUDA runtime version'",
        "nccl.cuda_failure",
        {"where": "common.cu:891", "cause": "driver-mismatch"},
    ),
    (
        "Net : Connect to 192.168.40.9<42364> failed : No route to host",
        "nccl.connect_failed",
        {"address": "192.168.40.9", "port": 42364, "errno_name": "EHOSTUNREACH", "cause": None},
    ),
    (
        "ncclOsSocketStartConnect: connect to 10.0.0.2<4000> failed : Network is unreachable",
        "nccl.connect_failed",
        {"errno_name": "ENETUNREACH"},
    ),
    (
        "socketPollConnect: Connect to 10.0.0.2<4000> returned 113(No route to host) errno 115(Operation now in progress)",
        "nccl.connect_failed",
        {"errno": 113, "errno_name": "EHOSTUNREACH"},
    ),
    (
        (
            "socketPollConnect: connect to 10.0.0.2<4000> returned Connection timed out, exceeded error retry count after "
            "35 attempts"
        ),
        "nccl.connect_failed",
        {"errno_name": "ETIMEDOUT", "exhausted": True, "attempts": "35"},
    ),
    # 2.0 to 2.3
    (
        "Call to connect failed : Connection timed out",
        "nccl.connect_failed",
        {"errno_name": "ETIMEDOUT", "address": None},
    ),
    (
        "Call to connect timeout : Connection refused",
        "nccl.connect_failed",
        {"errno_name": "ECONNREFUSED", "nature": "symptom"},
    ),
    ("Socket creation failed : Address family not supported by protocol", "nccl.no_interface", {"suggests": "network-interface"}),
    ("Call to ibv_modify_qp failed with error No such device", "nccl.ib_modify_qp", {"errno_name": "ENODEV", "suggests": "ib-config"}),
    (
        "Call to ibv_reg_dmabuf_mr failed with error Operation not supported",
        "nccl.ib_reg_mr",
        {"errno_name": "EOPNOTSUPP", "suggests": "gdr-peermem"},
    ),
    (
        "Call to ibv_reg_mr failed with error Operation not supported",
        "nccl.ib_reg_mr",
        {"errno_name": "EOPNOTSUPP", "suggests": None},
    ),
    (
        "Cuda failure 'API call is not supported in the installed CUDA driver'",
        "nccl.cuda_failure",
        {"code": 36, "nature": "cause", "cause": "driver-mismatch"},
    ),
    # the rest of the line stood on the next one
    (
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152:",
        "nccl.nvls_failed",
        {"bytes": 2097152, "code": None, "suggests": "nvlink-fabric"},
    ),
    (
        "Unable to write to EQ: Missing or unavailable event queue. err: Cannot allocate memory (-12) prov_errno:",
        "net.efa_queue",
        {"errno": -12, "suggests": "efa-plugin"},
    ),
    (
        "RuntimeError: ncclCommInitRank failed: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "nccl.error_class",
        {"name": "ncclUnhandledCudaError"},
    ),
    ("socketStartConnect: exceeded retries (20000)", "nccl.connect_failed", {"attempts": "20000"}),
    (
        "ncclOsSocketPollConnect to 10.0.0.2<4000> failed with error Connection timed out",
        "nccl.connect_failed",
        {"errno_name": "ETIMEDOUT"},
    ),
    (
        "socketPollConnect poll() failed with error Bad address",
        "nccl.connect_failed",
        {"errno_name": "EFAULT"},
    ),
    (
        "socketProgress: Connection closed by remote peer node2<45090>",
        "nccl.peer_closed",
        {"peer_address": "node2", "port": 45090, "nature": "consequence"},
    ),
    ("Net : Connection closed by remote peer", "nccl.peer_closed", {"peer_address": None}),
    (
        "socketProgressOpt: Call to recv from 10.0.0.2<4000> failed : Connection reset by peer",
        "nccl.peer_closed",
        {"errno_name": "ECONNRESET", "nature": "consequence"},
    ),
    (
        "ncclOsSocketProgressOpt: Call to send to 10.0.0.2<4000> failed : Broken pipe",
        "nccl.peer_closed",
        {"errno_name": "EPIPE"},
    ),
    (
        "ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)",
        "nccl.socket_family",
        {"family": "59936", "cause": None},
    ),
    ("Bootstrap : no socket interface found", "nccl.no_interface", {"cause": "network-interface"}),
    ("NET/Socket : no interface found", "nccl.no_interface", {"suggests": "network-interface"}),
    (
        "no device found matching NCCL_OOB_NET_IFNAME=eth9, verify NCCL_OOB_NET_IFNAME",
        "nccl.no_interface",
        {"ifname": "eth9"},
    ),
    (
        "Net : No interface found in the same subnet as remote address 10.0.0.2<4000>",
        "nccl.no_interface",
        {"address": "10.0.0.2"},
    ),
    (
        "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000",
        "nccl.duplicate_gpu",
        {"rank": 1, "peer_rank": 0, "bus_id": "0000:1b:00.0", "cause": "duplicate-gpu"},
    ),
    (
        "Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration.",
        "nccl.duplicate_gpu",
        {"cause": "duplicate-gpu"},
    ),
    (
        "Bootstrap Root : mismatch in info from procs, nranks 3 vs 2, nroots 1 vs 1, iroot 0 vs 0",
        "nccl.bootstrap_mismatch",
        {"nranks_values": (3, 2), "cause": "rendezvous"},
    ),
    (
        "Bootstrap Root : mismatch in info from procs, nranks 2 vs 2, nroots 1 vs 2, iroot 0 vs 0",
        "nccl.bootstrap_mismatch",
        {"same_nranks": True, "cause": None},
    ),
    (
        "Bootstrap Root : mismatch in rank count from procs 3 : 2",
        "nccl.bootstrap_mismatch",
        {"nranks_values": (3, 2)},
    ),
    (
        "Bootstrap Root : rank 1 of 4 ranks has already checked in",
        "nccl.bootstrap_duplicate",
        {"rank": 1, "nranks": 4, "cause": None},
    ),
    (
        "Mismatched NCCL version detected : rank 0 version 22809 rank 1 version 22602",
        "nccl.version_mismatch",
        {"local": "22809", "remote": "22602", "peer_rank": 1, "cause": "version-mismatch"},
    ),
    (
        "NCCL version mismatch with remote peer 192.0.2.2<45090> (local: 22809, remote 22602)",
        "nccl.version_mismatch",
        {"local": "22809", "remote": "22602", "address": "192.0.2.2"},
    ),
    ("socketFinalizeAccept: wrong magic 12 != 34", "nccl.wrong_magic", {"suggests": "rendezvous"}),
    (
        "No transport found for rank 0[1b000] -> rank 1[1c000]",
        "nccl.no_transport",
        {"rank": 0, "peer_rank": 1},
    ),
    (
        "Message truncated : received 120 bytes instead of 104",
        "nccl.msg_truncated",
        {"got": 120, "expected": 104, "cause": None},
    ),
    (
        "NET/Socket : peer 10.0.0.2<4000> message truncated : receiving 1024 bytes instead of 512. If you believe",
        "nccl.msg_truncated",
        {"got": 1024, "expected": 512, "address": "10.0.0.2"},
    ),
    (
        "Error: failed to extend /dev/shm/nccl-pbfZBL to 9637892 bytes, error: No space left on device (28)",
        "nccl.shm_extend_failed",
        {**_ENOSPC, "path": "/dev/shm/nccl-pbfZBL", "bytes": 9637892, "errno": 28},
    ),
    (
        "Error: failed to extend /dev/shm/nccl-pbfZBL to 9637892 bytes",
        "nccl.shm_extend_failed",
        {"cause": None, "suggests": "shm-limit"},
    ),
    (
        (
            "Error while creating shared memory segment /dev/shm/nccl-pbfZBL (size 9637888), error: No space left on "
            "device (28)"
        ),
        "nccl.shm_create_failed",
        _ENOSPC,
    ),
    (
        "Error while creating shared memory segment /dev/shm/nccl-x (size 96), error: No such file or directory (2)",
        "nccl.shm_create_failed",
        {"cause": None, "errno_name": "ENOENT", "suggests": None},
    ),
    (
        "Error while attaching to shared memory segment /dev/shm/nccl-x (size 96), error: No such file or directory (2)",
        "nccl.shm_attach_failed",
        {"cause": None, "errno_name": "ENOENT", "errno": 2},
    ),
    (
        "Error: failed to create shared memory file /dev/shm/nccl-XXXXXX, error No space left on device (28)",
        "nccl.shm_create_failed",
        _ENOSPC,
    ),
    ("Call to posix_fallocate failed : No space left on device", "nccl.shm_extend_failed", _ENOSPC),
    ("Call to shm_open failed : Too many open files", "nccl.shm_create_failed", {"cause": "fd-limit"}),
    ("shm_open failed to open /nccl-1 : Permission denied", "nccl.shm_create_failed", {"cause": None}),
    (
        "Unable to allocate shared memory (8392704 bytes) : No space left on device",
        "nccl.shm_create_failed",
        _ENOSPC,
    ),
    (
        (
            "NET/IB: Got completion from peer 10.0.0.2<4000> with status=12 opcode=1 len=0 vendor err 129 (Send) localGid "
            "::ffff:10.1.1.1 remoteGids::ffff:10.1.1.2 hca mlx5_0"
        ),
        "nccl.ib_completion",
        {
            "status": 12,
            "vendor_err": 129,
            "peer_address": "10.0.0.2",
            "nature": "consequence",
            "local_gid": "::ffff:10.1.1.1",
            "remote_gid": "::ffff:10.1.1.2",
            "hca": "mlx5_0",
        },
    ),
    (
        "NET/IB : Got completion with error 4, opcode 1, len 0, vendor err 81",
        "nccl.ib_completion",
        {"status": 4, "status_name": "LOC_PROT_ERR", "nature": "symptom", "suggests": "gdr-peermem"},
    ),
    (
        (
            "NET/IB: Got completion from peer 10.0.0.2<4000> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) "
            "vendor_err=129 localGid x hca mlx5_1"
        ),
        "nccl.ib_completion",
        {"status": 12, "vendor_err": 129, "hca": "mlx5_1", "status_name": "RETRY_EXC_ERR"},
    ),
    (
        "NET/IB : mlx5_32:1 Got async error event: port error",
        "nccl.ib_async_event",
        {"device_name": "mlx5_32", "event": "port error", "cause": "ib-link"},
    ),
    (
        "NET/IB : mlx5_32:1 Got async error event: port active",
        "nccl.ib_async_event",
        {"event": "port active", "cause": None, "nature": "info"},
    ),
    ("NET/IB : Got async event : local catastrophic error", "nccl.ib_async_event", {"cause": "ib-link"}),
    (
        "NET/IB : mlx5_0:1 async fatal event on QP (0x7f) qpn=12 handle=1: QP access violation error",
        "nccl.ib_async_event",
        {"fatal": True, "object": "QP", "event": "QP access violation error", "cause": None},
    ),
    ("NET/IB : mlx5_0:1 GID table changed", "nccl.ib_async_event", {"nature": "info"}),
    (
        (
            "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT, next state RTR, "
            "local GID index 3, local GID ::ffff:10.1.1.1, remote GID ::ffff:10.1.1.2"
        ),
        "nccl.ib_modify_qp",
        {
            "errno": 110,
            "errno_text": "Connection timed out",
            "next_state": "RTR",
            "gid_index": "3",
            "suggests": "ib-config",
        },
    ),
    (
        "Call to ibv_modify_qp failed with error Invalid argument errno 22",
        "nccl.ib_modify_qp",
        {"errno": 22, "errno_name": "EINVAL"},
    ),
    (
        "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory errno 12",
        "nccl.ib_reg_mr",
        {"errno": 12, "cause": "memlock-limit"},
    ),
    (
        "Call to ibv_reg_mr failed with error Bad address",
        "nccl.ib_reg_mr",
        {"cause": None, "suggests": "gdr-peermem"},
    ),
    ("Call to mlx5dv_reg_dmabuf_mr failed with error Bad address errno 14", "nccl.ib_reg_mr", {"errno": 14}),
    (
        "Call to ibv_create_cq failed with error Cannot allocate memory errno 12",
        "nccl.ib_create",
        {"cause": "memlock-limit"},
    ),
    ("Call to ibv_get_async_event failed", "nccl.ib_verb_failed", {"nature": "consequence"}),
    (
        "ibv_post_send() failed with error Cannot allocate memory, Bad WR 0x1, First WR 0x2",
        "nccl.ib_verb_failed",
        {"errno_name": "ENOMEM", "cause": None},
    ),
    (
        (
            "NET/IB : Remote RoCE device is incompatible with the local [0]mlx5_0:1/IB. Try selecting NICs of only one link "
            "type using NCCL_IB_HCA"
        ),
        "nccl.ib_link_layer",
        {"cause": "ib-config"},
    ),
    ("NET/IB : Unable to open device mlx5_0", "nccl.ib_device", {"device_name": "mlx5_0", "action": "open"}),
    (
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'the operation cannot'",
        "nccl.nvls_failed",
        {"code": 401, "cause": "nvlink-fabric"},
    ),
    (
        "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 2 'out of memory'",
        "nccl.nvls_failed",
        {"code": 2, "cause": None},
    ),
    (
        "MNNVL (cliqueSize 4) is available but not working on this system. Check the IMEX configuration",
        "nccl.imex",
        {"cause": "nvlink-fabric"},
    ),
    ("MNNVL is not supported on this system", "nccl.imex", {"cause": None}),
    (
        "nvmlInit_v2() failed: Driver/library version mismatch",
        "nccl.nvml_failure",
        {"cause": "driver-mismatch"},
    ),
    ("NVML failure 'GPU is lost'", "nccl.nvml_failure", {"cause": None, "suggests": "gpu-fell-off-bus"}),
    (
        "nvmlDeviceGetHandleByPciBusId() failed: Not Found",
        "nccl.nvml_failure",
        {"cause": None, "suggests": None},
    ),
    (
        "P2P is disabled between NVLINK connected GPUs 0 and 1. This",
        "nccl.p2p_failed",
        {"suggests": "nvlink-fabric"},
    ),
    (
        "failed to peer with device 1(=2000): 217 peer access is not supported between these two devices",
        "nccl.p2p_failed",
        {"code": 217, "suggests": "p2p-acs-iommu"},
    ),
    ("failed to open CUDA IPC handle : 11 invalid argument", "nccl.p2p_failed", {"code": 11}),
    ("cudaIpcGetMemHandle failed : invalid argument", "nccl.p2p_failed", {"error": "invalid argument"}),
    (
        "cudaArch 1200 ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856",
        "nccl.max_shared_mem",
        {"cuda_arch": "1200", "wanted": "82240", "limit": "79856", "cause": None},
    ),
    ("Failed to initialize any NET plugin", "nccl.network_not_found", {"cause": None}),
    ("Error: network AWS Libfabric not found.", "nccl.network_not_found", {"suggests": "efa-plugin"}),
    (
        "NET/OFI aws-ofi-nccl initialization failed",
        "nccl.ofi_failed",
        {"suggests": "efa-plugin", "cause": None},
    ),
    ("NET/OFI Could not find ncclGetVersion symbol", "nccl.ofi_failed", {"nature": "noise"}),
    (
        "NET/OFI Unable to register memory (type = 2) for device 0. RC: -22, Error: Invalid argument",
        "nccl.ofi_reg_mr",
        {"errno": -22, "device": 0},
    ),
    (
        "NET/OFI Request 0x7f45 completed with error. RC: 103. Error: 4126 (Unresponsive receiver (reachable by EFA",
        "nccl.ofi_completion",
        {"errno": 103, "nature": "consequence"},
    ),
    (
        (
            "Error : no algorithm/protocol available for function AllGather with datatype ncclInt8. NCCL_ALGO was set to "
            "Tree. NCCL_PROTO was set to LL."
        ),
        "nccl.no_algorithm",
        {"function": "AllGather", "algo": "Tree", "proto": "LL", "cause": None},
    ),
    (
        'Unrecognized element token "Rign" when parsing "Rign"',
        "nccl.unknown_word",
        {"word": "Rign", "value": "Rign", "cause": "invalid-usage"},
    ),
    (
        "No algorithm/protocol available for function AllGather with datatype ncclInt8.",
        "nccl.no_algorithm",
        {},
    ),
    (
        "Net : error encountered when getting address info : Name or service not known",
        "nccl.resolve_failed",
        {"cause": "dns"},
    ),
    (
        "Invalid NCCL_COMM_ID, please use format: <ipv4>:<port> or [<ipv6>]:<port> or <hostname>:<port>",
        "nccl.comm_id_invalid",
        {"cause": "invalid-usage"},
    ),
    (
        "ncclSocketInit: Socket creation failed : Too many open files",
        "nccl.socket_failed",
        {"cause": "fd-limit"},
    ),
    ("UDS: Socket creation error : Permission denied (13)", "nccl.socket_failed", {"cause": None}),
    ("socketTryAccept: Accept failed: Too many open files", "nccl.socket_failed", {"cause": "fd-limit"}),
    (
        "UDS: Sending data over socket /tmp/nccl-socket-0-1 failed : Connection refused (111)",
        "nccl.uds_failed",
        {"errno": 111, "direction": "Sending"},
    ),
    ("Call to open failed: No such file or directory", "nccl.call_failed", {"call": "open", "cause": None}),
    ("Call to socket failed : Too many open files", "nccl.call_failed", {"cause": "fd-limit"}),
    (
        "[Proxy Service 3] Failed to execute operation Connect from rank 5, retcode 2",
        "nccl.proxy_failed",
        {"operation": "Connect", "peer_rank": 5, "retcode": 2, "rank": 3, "nature": "consequence"},
    ),
    (
        "[Service thread] Error encountered progressing operation=Connect, res=3, closing connection",
        "nccl.proxy_failed",
        {"retcode": 3},
    ),
    (
        "Socket recv failed while polling for opId=0x7fa130b32996",
        "nccl.proxy_failed",
        {"nature": "consequence"},
    ),
    (
        "[Service thread] Could not receive type from localRank 3, res=3, closed=0",
        "nccl.proxy_failed",
        {"local_rank_peer": 3},
    ),
    (
        "NET/IB : req 0/1 tag 7 peer 10.0.0.2<4000> collective mismatch error, local size 1024 remote size 512",
        "nccl.collective_mismatch",
        {"cause": "collective-mismatch", "got": 1024},
    ),
    (
        "Mismatched collective detected, please check your collective calls at and around rank 3. You can use",
        "nccl.collective_mismatch",
        {"rank": 3},
    ),
    (
        "NET/IB : req 0/1 tag 7 peer 10.0.0.2<4000> posted incorrect receive info: size 512 addr 7f rkeys[0]=1",
        "nccl.collective_mismatch",
        {"size": 512, "cause": None},
    ),
    (
        "communicator encountered a fatal error (detected in ncclIbTest)",
        "nccl.async_error",
        {"function": "ncclIbTest"},
    ),
    (
        "Could not open XML topology file /opt/topo.xml : No such file or directory",
        "nccl.topo_file",
        {"path": "/opt/topo.xml"},
    ),
    ("XML Topology has wrong version 2, 1 needed", "nccl.topo_file", {"got": 2, "expected": 1}),
    (
        "XML Parse error : unterminated comment",
        "nccl.topo_file",
        {"text": "XML Parse error : unterminated comment"},
    ),
    ("XML Mismatch : a / b", "nccl.topo_file", {}),
    (
        "RMA/Socket : rma_socket requires GDRCopy; and GDR Copy is not available",
        "nccl.harmless",
        {"nature": "noise"},
    ),
]
