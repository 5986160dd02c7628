"""What NCCL's RAS client says of a running job (`ncclras`, or any client of port 28028), and RAS's own lines in a log.

People paste the report when a job hangs. It stands in groups: a communicator, what differs, how many ranks are in each
state, and the ranks one by one where they are few. Every line is an event of its own, and facts/ras.py puts them
together; a line about ranks carries whatever it says of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ncclscope.model import Event, Line, Value
from ncclscope.parsers.pattern import Block, Collector, Pattern

__all__ = ["BLOCKS", "PATTERNS"]

_SINCE = "2.24.3"
_STATES = "NOCOMM|UNKNOWN|INIT|RUNNING|FINALIZE|ABORT"

# Who the line is about: "GPU 0 (NVML 3) managed by process 483072 on node 172.16.64.210", or that nobody knows.
_WHO = (
    r"(?:GPU (?P<cuda_dev>\w{1,12})(?: \(NVML (?P<nvml_dev>\d+)\))? managed by process (?P<pid>\d+)"
    r" on node (?P<host>[\w.:%-]{1,64})|\[process information not found)"
)
_MANAGED = " managed by process "
_NOT_FOUND = "process information not found"


def _rank_lines(kind: str, middle: str, **more: object) -> tuple[Pattern, ...]:
    """One rank of a group, with its process where RAS knows it."""
    regex = rf"\bRank (?P<rank>\d+) {middle}-- {_WHO}"
    return tuple(
        Pattern(kind, literal, regex, since=_SINCE, **more)  # type: ignore[arg-type]
        for literal in (_MANAGED, _NOT_FOUND)
    )


def _list(m: re.Match[str], _line: Line) -> Mapping[str, Value]:
    return {"ranks": tuple(int(number) for number in re.findall(r"\d+", m["listed"]))}


def _reported(m: re.Match[str], _line: Line) -> Mapping[str, Value]:
    return {"nature": "consequence"} if m["error"].startswith("Remote process error") else {}


_ROW = re.compile(
    r"^\s*(?P<group>\d+)\s+(?P<comms>\d+)\s+(?P<nodes>\d+)\s+\d+(?:-\d+)?\s+(?P<size>\d+)\s+\d+\s+"
    rf"(?P<state>{_STATES})\s+(?P<errors>[A-Z|,+]+)\s*$"
)


class _Table:
    """The summary: one row for each group of like communicators, after two lines of titles."""

    def __init__(self, opener: Line) -> None:
        self._opener = opener
        self._rows: list[re.Match[str]] = []
        self._titles = 1

    def feed(self, line: Line) -> bool:
        row = _ROW.match(line.text)
        if row is None:
            self._titles -= 1
            return self._titles >= 0 and not self._rows and "in group" in line.text
        self._rows.append(row)
        return True

    def close(self) -> list[Event]:
        opener = self._opener
        fields: dict[str, Value] = {
            "nature": "info",
            "groups": tuple(int(row["group"]) for row in self._rows),
            "sizes": tuple(int(row["size"]) for row in self._rows),
            "states": tuple(row["state"] for row in self._rows),
            "errors": tuple(row["errors"] for row in self._rows),
        }
        return [Event("ras.report", fields, opener.env, opener.ref, opener.text, 2 + len(self._rows))]


def _open_table(_m: re.Match[str], line: Line) -> Collector:
    return _Table(line)


BLOCKS: tuple[Block, ...] = (
    # Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #     #  in group  per comm  per node  per comm  in group
    #     0         1         4       7-8        32        32   RUNNING  INCOMPLETE
    Block(
        {"ras.report": ("groups", "sizes", "states", "errors")},
        "Ranks     Ranks     Ranks",
        r"Group\s+Comms\s+Nodes\s+Ranks\s+Ranks\s+Ranks\s+Status\s+Errors",
        _open_table,
    ),
)

# RAS's own lines in the log of a job, at INFO level of its subsystem. They tell of its sockets between processes and
# seldom of the job.
_PEER = r"(?P<peer_address>[^\s<>]{1,64})"

_LOG: tuple[Pattern, ...] = (
    # RAS init timeout error (60s) on incoming socket connection from 10.0.0.2<43211>
    # RAS collective RAS_COLL_COMMS:7 timeout warning (5s) -- 2 responses missing
    # RAS send stuck timeout error (20s) on socket connection with 10.0.0.2<43211>
    *(
        Pattern(
            "nccl.ras_timeout",
            f" timeout {severity} (",
            r"RAS (?P<what>init|connect|peer connect|send stuck|termination stuck|collective) (?:\S{1,80} )?"
            rf"timeout (?P<severity>{severity}) \((?P<timeout_s>\d+)s\)"
            rf"(?: on (?:incoming )?socket connection (?:with|from) {_PEER})?"
            r"(?: -- (?:giving up on )?(?P<count>\d+) (?:missing responses|responses missing))?",
            nature="symptom",
            since=_SINCE,
        )
        for severity in ("error", "warning")
    ),
    # RAS connect retry timeout (5s) on socket connection with 10.0.0.2<43211>
    Pattern(
        "nccl.ras_timeout",
        "RAS connect retry timeout",
        rf"RAS (?P<what>connect retry) timeout \((?P<timeout_s>\d+)s\) on socket connection with {_PEER}",
        nature="symptom",
        since=_SINCE,
    ),
    # RAS handling deadPeer (addr 10.0.0.2<38245>)        RAS dead peer 2: 10.0.0.2<38245>
    # RAS connection from peer 10.0.0.2<43211> that is considered dead!        RAS already knew it was dead
    *(
        Pattern("nccl.ras_peer_dead", literal, regex, nature="consequence", since=_SINCE)
        for literal, regex in (
            ("RAS handling deadPeer", rf"RAS handling deadPeer \(addr {_PEER}"),
            ("RAS dead peer ", rf"RAS dead peer \d+: {_PEER}"),
            (" that is considered dead", rf"RAS connection from peer {_PEER}\S* that is considered dead"),
            ("RAS already knew it was dead", r"RAS already knew it was dead"),
        )
    ),
    # RAS current socket connection with 10.0.0.2<38245> closed by peer on receive; terminating it
    #     also when a healthy job ends
    Pattern(
        "nccl.ras_link",
        " closed by peer on ",
        rf"RAS (?:\w+ )?socket connection with {_PEER}\S* closed by peer on (?P<during>receive|send)",
        nature="consequence",
        since=_SINCE,
    ),
    # RAS trying to reconnect with 10.0.0.2<38245> (experiencingDelays 1, startRetryTime 5.00s)
    Pattern(
        "nccl.ras_link",
        "RAS trying to reconnect with",
        rf"RAS trying to reconnect with {_PEER}",
        nature="symptom",
        since=_SINCE,
    ),
    # RAS unexpected error from rasMsgRecv; terminating the socket connection with 10.0.0.2<38245>
    # Unexpected error from ncclSocketReady; terminating ...        without RAS in some releases
    Pattern(
        "nccl.ras_link",
        "; terminating the socket connection with",
        rf"nexpected error from (?P<function>\w+); terminating the socket connection with {_PEER}",
        nature="symptom",
        since=_SINCE,
    ),
    # RAS continuing in spite of an unexpected error from poll: Bad address
    Pattern(
        "nccl.ras_link",
        "ontinuing in spite of a",
        r"RAS continuing in spite of an unexpected error from (?P<function>poll): (?P<errno_text>\w[^\n]*)",
        nature="symptom",
        since=_SINCE,
    ),
    # RAS link 1: could not add a fallback connection with 10.0.0.2<38245> -- internal error?
    Pattern(
        "nccl.ras_internal",
        "-- internal error?",
        r"RAS (?P<text>[^\n]{1,400}?) -- internal error\?",
        nature="noise",
        since=_SINCE,
    ),
    # RAS encountered duplicate data for rank 3 -- possible hash collision (0x1, 0x2, 0x3)        commHash before 2.26
    Pattern(
        "nccl.ras_internal",
        " collision (0x",
        r"RAS (?P<text>encountered [^\n]{1,200}?) -- possible (?:commHash|hash) collision",
        nature="noise",
        since=_SINCE,
    ),
    # RAS post-merge discrepancy: found value 3        RAS failed to find a matching client!
    *(
        Pattern("nccl.ras_internal", literal, rf"RAS (?P<text>{regex})", nature="noise", since=_SINCE)
        for literal, regex in (
            ("RAS post-merge discrepancy", r"post-merge discrepancy: found value -?\d+"),
            ("RAS failed to find a matching client", "failed to find a matching client"),
        )
    ),
    # Continuing in spite of a RAS initialization error        the job runs on without RAS
    # RAS socket closed by the client on receive; terminating it        who asked RAS went away
    # RAS unexpected error from recv; terminating the client socket     RAS excessively long input line; ...
    *(
        Pattern("nccl.harmless", literal, regex, nature="noise", fields={"what": what}, since=_SINCE)
        for what, literal, regex in (
            ("no RAS", "ontinuing in spite of a", r"Continuing in spite of a RAS initialization error"),
            ("RAS client", "RAS socket closed by the client", r"RAS socket closed by the client on (?:receive|send)"),
            ("RAS client", "; terminating the client socket", r"RAS [\w ]{1,60}; terminating the client socket"),
        )
    ),
)

_CLIENT: tuple[Pattern, ...] = (
    # NCCL version 2.28.9 compiled with CUDA 13.0        the report's first line; the log's banner says +cuda13.0
    Pattern(
        "nccl.version",
        " compiled with CUDA ",
        r"NCCL version (?P<version>\d+\.\d+\.\d+)(?:\+cuda[\d.]+)? compiled with CUDA (?P<cuda>\d+\.\d+)",
        fields={"echo": True},
        since=_SINCE,
    ),
    # No communicator data collected!        No connection data collected!
    Pattern("ras.empty", " data collected!", r"No (?P<what>communicator|connection) data collected!", since=_SINCE),
    # #0-0 (27a079b828ff1a75) MISMATCH        #0-0 (cf264af53edbe986) INCOMPLETE        #1-0 (9e17999afaa87dbb) ERROR
    *(
        Pattern(
            "ras.comm",
            f") {errors}",
            rf"#(?P<group>\d+)-(?P<index>\d+) \((?P<comm>[0-9a-f]{{4,16}})\) (?P<errors>{errors})\s*$",
            nature="symptom",
            also="#",
            since=_SINCE,
        )
        for errors in ("MISMATCH", "INCOMPLETE", "ERROR")
    ),
    # Missing communicator data from 1 rank        Missing communicator data from 2 job processes
    Pattern(
        "ras.missing",
        "Missing communicator data from",
        r"Missing communicator data from (?P<count>\d+) (?P<what>rank|job process)",
        nature="symptom",
        since=_SINCE,
    ),
    # 1 job process is considered dead (unreachable via the RAS network)        2 job processes are ...
    Pattern(
        "ras.dead",
        "(unreachable via the RAS network)",
        r"(?P<count>\d+) job process[\w ]{0,20} considered dead \(unreachable",
        nature="symptom",
        since=_SINCE,
    ),
    # [2025-12-19 13:07:07] PEER_DEAD: Process 1524345 on node 172.16.64.245 managing GPU 1        ncclras -m, 2.29 on
    Pattern(
        "ras.dead",
        "PEER_DEAD: Process",
        r"PEER_DEAD: Process (?P<pid>\d+) on node (?P<host>\S{1,64}) managing GPUs? (?P<gpus>[\d,]+)",
        nature="symptom",
        fields={"count": 1},
        since="2.29.2",
    ),
    # Process 3487984 on node 172.16.64.213 managing GPU 5        ... managing GPUs 0,1 (NVML 4,5)
    Pattern(
        "ras.process",
        " managing GPU",
        r"^\s*Process (?P<pid>\d+) on node (?P<host>\S{1,64}) managing GPUs? (?P<gpus>\d+(?:, ?\d+)*)",
        since=_SINCE,
    ),
    # Warning: missing data from 1 process (received from 7, expected 8)
    Pattern(
        "ras.unanswered",
        "(received from ",
        r"missing data from (?P<count>\d+) process(?:es)? \(received from (?P<got>\d+), expected (?P<expected>\d+)\)",
        nature="symptom",
        since=_SINCE,
    ),
    # Encountered 2 communication timeouts while gathering communicator data
    # Warning: encountered 1 communication timeout while gathering data
    Pattern(
        "ras.unanswered",
        " communication timeout",
        r"[Ee]ncountered (?P<count>\d+) communication timeout\w* while gathering (?:communicator )?data",
        nature="symptom",
        since=_SINCE,
    ),
    # Communicator ranks have different AllReduce operation counts        "collective" before 2.26
    # Communicator ranks have different status
    Pattern(
        "ras.differ",
        "Communicator ranks have different",
        r"Communicator ranks have different (?:(?P<op>\w{1,40}) operation counts|(?P<what>status))",
        nature="symptom",
        since=_SINCE,
    ),
    # 26 ranks have launched up to operation 6650
    Pattern(
        "ras.launched",
        " ranks have launched up to operation ",
        r"\b(?P<size>\d+) ranks have launched up to operation (?P<launched>\d+)",
        since=_SINCE,
    ),
    # 2 ranks have not launched any operations
    Pattern(
        "ras.launched",
        " ranks have not launched any operations",
        r"\b(?P<size>\d+) ranks have not launched any operations",
        nature="symptom",
        fields={"launched": "0"},
        since="2.26.2",
    ),
    # Rank 3 has launched up to operation 6649 -- GPU 3 managed by process 483075 on node 172.16.64.210
    # Rank 3 has launched up to operation 6649 -- [process information not found]
    *_rank_lines("ras.launched", r"has launched up to operation (?P<launched>\d+) "),
    # Rank 3 has not launched any operations -- GPU 3 (NVML 7) managed by process 483075 on node 172.16.64.210
    *_rank_lines(
        "ras.launched", "has not launched any operations ", nature="symptom", fields={"launched": "0"}
    ),
    # 26 ranks have status NOCOMM        "UNKNOWN" before 2.26
    Pattern(
        "ras.state",
        " ranks have status ",
        rf"\b(?P<size>\d+) ranks have status (?P<state>{_STATES})\b",
        since=_SINCE,
    ),
    # Rank 3 has status INIT -- GPU 3 managed by process 483075 on node 172.16.64.210
    *_rank_lines("ras.state", rf"has status (?P<state>{_STATES}) "),
    # Rank 3 has status UNKNOWN        before 2.26
    Pattern(
        "ras.state",
        " has status ",
        rf"^\s*Rank (?P<rank>\d+) has status (?P<state>{_STATES})\s*$",
        since=_SINCE,
        until="2.25.1",
    ),
    # Initialization error on 1 rank        Asynchronous errors on 3 ranks
    *(
        Pattern(
            "ras.errors",
            f"{when} error",
            rf"(?P<during>{when}) error[\w ]{{0,40}} on (?P<count>\d+) rank",
            nature="symptom",
            since=_SINCE,
        )
        for when in ("Initialization", "Asynchronous")
    ),
    # 3 ranks reported Remote process error
    Pattern(
        "ras.error",
        " ranks reported ",
        r"\b(?P<size>\d+) ranks reported (?P<error>[A-Za-z][A-Za-z ]{2,40}?)\s*$",
        nature="symptom",
        refine=_reported,
        since=_SINCE,
    ),
    # Rank 2 reported Unhandled CUDA error -- GPU 2 managed by process 483074 on node 172.16.64.210
    *_rank_lines(
        "ras.error", r"reported (?P<error>[A-Za-z][A-Za-z ]{2,40}?) ", nature="symptom", refine=_reported
    ),
    # Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210        of the group that the line above names
    *_rank_lines("ras.rank", ""),
    # The missing ranks: 21,22        The unknown ranks: 3,4        before 2.26
    *(
        Pattern(
            "ras.rank_list",
            f"The {what} rank",
            rf"The (?P<what>{what}) ranks?: (?P<listed>\d[\d, ]*)",
            refine=_list,
            adds=("ranks",),
            since=_SINCE,
            until="2.25.1",
        )
        for what in ("missing", "unknown")
    ),
)

PATTERNS: tuple[Pattern, ...] = (*_CLIENT, *_LOG)
