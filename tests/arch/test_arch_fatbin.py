"""The reader of fat binaries, on bytes made by hand."""

from __future__ import annotations

import pytest
from arch_files import container, entry

from ncclscope.arch.fatbin import BadFatbinError, containers
from ncclscope.knowledge.gpus import Arch


def test_kinds_and_variants_are_told_apart() -> None:
    """PTX is kind 1, machine code kind 2, anything else is left out; flags carry the 'a' and 'f' variants."""
    data = container(
        entry(2, 90), entry(2, 90, 0x100011), entry(2, 100, 0x1202011), entry(1, 90, 0x108011), entry(8, 90)
    )
    [found] = containers(data, 0, len(data))
    assert found.sass == {Arch(90), Arch(90, "a"), Arch(100, "f")}
    assert found.ptx == {Arch(90, "a")}


def test_padding_and_several_containers() -> None:
    """Zero bytes between and after fat binaries are padding; each is found at its offset."""
    one, two = container(entry(2, 80, payload=b"x" * 24)), container(entry(1, 90, header=112))
    data = b"head" + one + bytes(40) + two + bytes(100)
    found = list(containers(data, 4, len(data)))
    assert [f.offset for f in found] == [4, 4 + len(one) + 40]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x01" * 16, "should start with 0xba55ed50"),
        (b"\x50\xed", "2 stray bytes"),
        (container(entry(2, 90))[:-8], "a fat binary of 80 bytes where 72 are left"),
        (container(entry(2, 90, payload=b"abcd")[:-4]), "an entry of 68 bytes where 64 are left"),
        (container(entry(2, 90, header=16)), "an entry of 16 bytes"),
        (container(b"\0" * 20), "cut short"),
        (container(*[entry(2, 90)] * 1001), "far too many"),
        (bytes(3 << 20) + container(entry(2, 90)), "the first MiB is zero"),
        (container()[:8] + b"\xff" * 8, "bytes where 16 are left"),
    ],
)
def test_damage_is_an_error_and_not_less_code(data: bytes, reason: str) -> None:
    """Bytes that do not fit raise an error that says what was expected."""
    with pytest.raises(BadFatbinError, match=reason):
        list(containers(data, 0, len(data)))
