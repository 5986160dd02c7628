"""The Xid and SXid tables: complete, consistent, and decoding register words as NVIDIA's tables do."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from ncclscope.knowledge.xid import explain_sxid, explain_xid, nvlink5_rule, xid74_findings

ALL = range(1, 177)

# The class that a number alone names. Everything else is a symptom, a consequence, noise or information.
CAUSES = {
    "gpu-fell-off-bus": {79},
    "gpu-hardware-ecc": {48, 64, 94, 95, 140, 171, 172},
    "nvlink-fabric": {74, 136, 155},
    "gpu-hang": {46, 62, 109, 110, 119, 120, 158, 169, 175},
}


@pytest.mark.parametrize("number", ALL)
def test_every_number_has_a_complete_entry(number: int) -> None:
    entry = explain_xid(number)
    assert entry is not None
    assert entry.number == number
    assert entry.mnemonic
    assert entry.title
    assert entry.meaning.endswith(".")
    assert entry.group in {
        "application", "driver", "hardware", "thermal", "bus", "nvlink", "memory", "firmware", "info"
    }  # fmt: skip
    assert entry.severity in {"info", "warning", "error", "critical"}
    assert entry.blame
    assert set(entry.blame) <= {"program", "driver", "hardware", "PCIe", "fabric"}
    assert entry.action
    assert entry.action_source
    assert shlex.split(entry.next_check, comments=True)


@pytest.mark.parametrize("number", ALL)
def test_only_numbers_that_name_a_cause_alone_carry_one(number: int) -> None:
    entry = explain_xid(number)
    assert entry is not None
    expected = next((cause for cause, numbers in CAUSES.items() if number in numbers), None)
    assert entry.cause == expected
    assert (entry.nature == "cause") == (expected is not None)


@pytest.mark.parametrize(
    ("number", "nature", "suggests"),
    [
        (13, "symptom", "illegal-access-app"),
        (31, "symptom", "illegal-access-app"),
        (43, "symptom", None),
        (45, "consequence", None),
        (154, "consequence", None),
        (63, "info", None),
        (92, "symptom", "gpu-hardware-ecc"),
        (137, "symptom", "nvlink-fabric"),
        (149, "symptom", "nvlink-fabric"),
        (14, "noise", None),
        (87, "noise", None),
    ],
)
def test_numbers_that_only_point_somewhere(number: int, nature: str, suggests: str | None) -> None:
    entry = explain_xid(number)
    assert entry is not None
    assert (entry.nature, entry.suggests) == (nature, suggests)


def test_numbers_of_no_list_have_no_entry() -> None:
    assert explain_xid(0) is None
    assert explain_xid(177) is None


def test_differing_vendor_lists_are_both_named() -> None:
    entry = explain_xid(44)
    assert entry is not None
    assert "IGNORE" in entry.action_source
    assert any("DeepSeek" in text for text in entry.disagreements)
    assert any("gpud" in text for text in entry.disagreements)


def test_names_of_other_driver_branches_are_kept() -> None:
    entry = explain_xid(144)
    assert entry is not None
    assert entry.mnemonic == "NVLINK_SAW_ERROR"
    assert any("KEY_ROTATION" in name for name in entry.other_names)


def test_a_number_that_current_gpus_do_not_print_says_so() -> None:
    entry = explain_xid(1)
    assert entry is not None
    assert not entry.used


@pytest.mark.parametrize(
    ("number", "reach"),
    [
        (20034, "port"),
        (12028, "none"),
        (11012, "none"),
        (23001, "fabric"),
        (22003, "fabric"),
        (20999, "unlisted"),
    ],
)
def test_sxid_reach(number: int, reach: str) -> None:
    entry = explain_sxid(number)
    assert entry is not None
    assert entry.reach == reach
    assert entry.title
    assert entry.action


def test_sxid_outside_every_range_is_unknown() -> None:
    assert explain_sxid(9) is None
    assert explain_sxid(13000) is None


@pytest.mark.parametrize(
    ("xid", "unit", "words", "immediate", "investigate"),
    [
        # 570 numbers the units as v1 does, 575 and newer as v2.
        (149, "NETIR_LINK_EVT", (0x004505C6, 0), "reset_gpu", "investigate_link_si"),
        (149, "NETIR_LINK_DOWN", (0x02100011, 0), "reset_gpu", "investigate_peer_device"),
        (144, "SAW_MVB", (0x00000001, 0x8), "ignore", "contact_support"),
        (144, "SAW_MVB", (0x00000001, 0x2), "reset_gpu", "contact_support"),
        (145, "RLW_SRC_TRACK", (0x040988E2, 0x8), "xid_154_eval", "ignore"),
        (146, "TLW_RX/TLW_RX_PIPE0", (0x0000000A, 0x4), "reset_gpu", "contact_support"),
        (149, "NETIR_BER_EVENT", (0x00000013, 0x0), "ignore", "investigate_link_si_and_cables"),
    ],
)
def test_nvlink5_words_find_the_rule_of_nvidias_table(
    xid: int, unit: str, words: tuple[int, ...], immediate: str, investigate: str
) -> None:
    rule = nvlink5_rule(xid, unit, words)
    assert rule is not None
    assert (rule.immediate, rule.investigate) == (immediate, investigate)


def test_nvlink5_words_that_fit_no_rule_give_none() -> None:
    assert nvlink5_rule(144, "SAW_MVB", ()) is None
    assert nvlink5_rule(144, "SAW_MVB", (0x3F, 0x1)) is None
    assert nvlink5_rule(143, "SAW_MVB", (0x1, 0x1)) is None


@pytest.mark.parametrize(
    ("words", "findings"),
    [
        ((0, 0, 0x10000, 0, 0, 0, 0), ("diagnose_if_repeated",)),
        ((0x2, 0, 0, 0, 0, 0, 0), ("secondary",)),
        ((0x10, 0, 0x1, 0, 0, 0, 0), ("ecc_parity",)),
        ((0x200000, 0, 0, 0, 0, 0, 0), ("marginal_signal",)),
        ((0, 0, 0, 0, 0x100000, 0, 0), ("corrected",)),
        ((0x1, 0xFFFFFFFF, 0, 0, 0, 0, 0), ()),
        ((), ()),
    ],
)
def test_xid74_register_words(words: tuple[int, ...], findings: tuple[str, ...]) -> None:
    assert xid74_findings(words) == findings


def test_importing_the_tables_reads_no_file() -> None:
    """Start-up must not pay for tables that most runs do not need."""
    code = (
        "from ncclscope.knowledge import xid\n"
        "assert xid._load.cache_info().currsize == 0\n"
        "xid.explain_xid(79)\n"
        "assert xid._load.cache_info().currsize == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
