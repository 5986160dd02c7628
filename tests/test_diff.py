"""`ncclscope diff`: what differs between two runs, what matters of it, and what could not be compared."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ncclscope.cli import main
from ncclscope.diff import Comparison, Difference, compare
from ncclscope.pipeline import read

if TYPE_CHECKING:
    from collections.abc import Callable

DIFF = Path(__file__).parent / "fixtures" / "diff"
GOOD, BAD = DIFF / "good", DIFF / "bad"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command and gives its exit status, output and errors."""

    def invoke(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["diff", *map(str, arguments)])
        shown = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else 1 if code else 0), shown.out, shown.err

    return invoke


def comparison(good: str, bad: str, where: Path) -> Comparison:
    """Compares two logs given as text."""
    (where / "good.log").write_text(good)
    (where / "bad.log").write_text(bad)
    return compare(read([where / "good.log"]), read([where / "bad.log"]))


def named(result: Comparison, name: str) -> Difference:
    """The one difference of this name."""
    found = [d for d in result.differences if d.name == name]
    assert len(found) == 1, f"{name!r} is not among {[d.name for d in result.differences]}"
    return found[0]


def says(*bodies: str) -> str:
    """Lines of one process, as NCCL prints them."""
    return "".join(f"dgx-01:41:41 [0] NCCL INFO {body}\n" for body in bodies)


BANNER = "NCCL version 2.26.5+cuda12.8"
COMM = "comm 0x55d0 rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0"


def test_differences_come_by_weight() -> None:
    result = compare(read([GOOD]), read([BAD]))
    names = [d.name for d in result.differences]
    assert names == [
        "NCCL version",
        "CUDA that NCCL was built with",
        "network that NCCL uses",
        "network devices",
        "transport of network channels",
        "NCCL_ALGO",
        "init in all",
        "init: loading kernels",
        "hosts of the ranks",
    ]
    assert [d.matters for d in result.differences] == [True] * 8 + [False]


def test_both_sides_are_proven_by_file_and_line() -> None:
    version = named(compare(read([GOOD]), read([BAD])), "NCCL version")
    assert (version.good, version.bad) == (("2.26.5",), ("2.21.5",))
    assert version.good_at[0] == f"{GOOD}/node0.log:3"
    assert version.bad_at[0] == f"{BAD}/node0.log:3"


def test_a_run_differs_in_nothing_from_itself() -> None:
    result = compare(read([GOOD]), read([GOOD]))
    assert result.differences == ()
    assert "NCCL version" in result.same


def test_what_one_run_does_not_show_is_named_and_no_difference(tmp_path: Path) -> None:
    result = comparison(says(BANNER, "Using network IB"), says(BANNER), tmp_path)
    assert result.differences == ()
    reasons = {item.name: item.reason for item in result.not_compared}
    assert reasons["network that NCCL uses"].startswith("only the good run shows it")
    assert reasons["PyTorch version"].startswith("neither run shows it")


def test_a_variable_that_a_log_too_short_does_not_show_may_still_be_set(tmp_path: Path) -> None:
    setting = "NCCL_ALGO set by environment to Ring."
    short = comparison(says(BANNER, setting), says(BANNER), tmp_path)
    assert [i.name for i in short.not_compared if i.name == "NCCL_ALGO"] == ["NCCL_ALGO"]
    long = comparison(says(BANNER, setting), says(BANNER, COMM), tmp_path)
    assert named(long, "NCCL_ALGO").bad == ("not set",)


@pytest.mark.parametrize(
    ("name", "matters"),
    [("NCCL_ALGO", True), ("NCCL_IB_GID_INDEX", True), ("NCCL_DEBUG_SUBSYS", False), ("NCCL_DEBUG", False)],
)
def test_variables_that_only_change_what_is_printed_do_not_matter(name: str, matters: bool, tmp_path: Path) -> None:
    result = comparison(
        says(BANNER, f"{name} set by environment to 1."), says(BANNER, f"{name} set by environment to 2."), tmp_path
    )
    assert named(result, name).matters is matters
    assert result.matters is matters


def test_variables_that_ranks_must_agree_on_come_before_others(tmp_path: Path) -> None:
    result = comparison(
        says(BANNER, COMM),
        says(BANNER, COMM, "NCCL_IB_TIMEOUT set by environment to 22.", "NCCL_PROTO set by environment to LL."),
        tmp_path,
    )
    assert [d.name for d in result.differences] == ["NCCL_PROTO", "NCCL_IB_TIMEOUT"]


def timings(total: float) -> str:
    return says(
        BANNER,
        f"Init timings - ncclCommInitRankConfig: rank 0 nranks 4 total {total:.2f} (kernels 0.10, alloc 0.10, "
        "bootstrap 0.20, allgathers 0.01, topo 0.15, graphs 0.01, connections 0.05, rest 0.02)",
    )


@pytest.mark.parametrize(
    ("good", "bad", "matters"),
    [
        (1.0, 2.9, True),
        (1.0, 1.9, None),  # less than twice
        (0.1, 0.9, None),  # less than a second
        (10.0, 12.0, None),  # a second more, not twice
        (9.0, 1.0, False),  # faster explains no failure
    ],
)
def test_times_count_from_twice_and_a_second_on(good: float, bad: float, matters: bool | None, tmp_path: Path) -> None:
    result = comparison(timings(good), timings(bad), tmp_path)
    found = [d.matters for d in result.differences if d.name == "init in all"]
    assert found == ([] if matters is None else [matters])


def test_addresses_of_hosts_are_no_difference_but_interfaces_are(tmp_path: Path) -> None:
    def log(interface: str, address: str) -> str:
        return says(
            BANNER, f"Bootstrap: Using {interface}:{address}<0>", f"NET/Socket : Using [0]{interface}:{address}<0>"
        )

    assert comparison(log("eth0", "10.0.0.4"), log("eth0", "10.0.0.9"), tmp_path).differences == ()
    other = comparison(log("eth0", "10.0.0.4"), log("lo", "127.0.0.1"), tmp_path)
    assert [d.name for d in other.differences] == ["network devices", "interface of the bootstrap"]


def test_a_version_on_some_ranks_only_is_shown_beside_the_others(tmp_path: Path) -> None:
    result = comparison(says(BANNER), says(BANNER, "NCCL version 2.21.5+cuda12.8"), tmp_path)
    version = named(result, "NCCL version")
    assert (version.good, version.bad) == (("2.26.5",), ("2.21.5", "2.26.5"))


def test_how_far_it_came_is_told_and_is_the_outcome_not_the_reason(tmp_path: Path) -> None:
    failure = "[2026-01-05 10:00:03] dgx-01:41:60 [0] enqueue.cc:42 NCCL WARN Cuda failure 'named symbol not found'\n"
    result = comparison(says(BANNER, "Connected all rings"), says(BANNER) + failure, tmp_path)
    assert named(result, "how far it came").bad == ("NCCL loaded; failed",)
    assert named(result, "first failure").bad == ("Cuda failure 'named symbol not found'",)
    assert not result.matters


def test_exit_status_says_whether_a_difference_matters(call: Callable[..., tuple[int, str, str]]) -> None:
    assert call(GOOD, BAD)[0] == 1
    assert call(GOOD, GOOD)[0] == 0


def test_text_names_what_matters_first_with_both_values(call: Callable[..., tuple[int, str, str]]) -> None:
    _, out, _ = call(GOOD, BAD)
    assert "8 differences that matter\n  version: NCCL version\n    good  2.26.5" in out
    assert "not compared:\n  PyTorch version: neither run shows it" in out


def test_json_holds_the_whole_comparison(call: Callable[..., tuple[int, str, str]]) -> None:
    _, out, _ = call(GOOD, BAD, "--format", "json")
    data = json.loads(out)
    assert data["matters"] is True
    assert data["differences"][0]["name"] == "NCCL version"
    assert data["differences"][0]["bad"] == ["2.21.5"]
    assert {"name", "reason"} == set(data["not_compared"][0])


def test_an_archive_is_as_good_as_its_directory(call: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    archive = tmp_path / "good.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(GOOD, "good")
    status, out, _ = call(archive, GOOD)
    assert status == 0
    assert "no differences that matter" in out


def test_output_goes_to_a_file(call: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    status, out, _ = call(GOOD, BAD, "-o", tmp_path / "diff.txt")
    assert (status, out) == (1, "")
    assert "NCCL version" in (tmp_path / "diff.txt").read_text()


@pytest.mark.parametrize("text", [None, "", "nothing of interest\n"])
def test_a_side_with_nothing_to_compare_is_wrong_usage(
    text: str | None, call: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    path = tmp_path / "job.log"
    if text is not None:
        path.write_text(text)
    status, _, err = call(GOOD, path)
    assert status == 2
    assert str(path) in err


def test_control_characters_of_a_log_do_not_reach_the_terminal(
    call: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    (tmp_path / "a.log").write_text(says(BANNER, "NCCL_NET set by environment to a\x9b2J."))
    (tmp_path / "b.log").write_text(says(BANNER, "NCCL_NET set by environment to b."))
    _, out, _ = call(tmp_path / "a.log", tmp_path / "b.log")
    assert "\x9b" not in out
    assert "NCCL_NET" in out
