"""Compressed, damaged and hostile data: what could be read comes out, a note tells the rest, none raises."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import tracemalloc
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ncclscope.sources import Input, discover
from ncclscope.sources.streams import BLOCK, Notes, Reader
from ncclscope.sources.text import text_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Lines that do not compress to nothing, more than one internal buffer of every format.
TEXT = b"".join(b"[rank%d] step %d loss %d\n" % (n % 8, n, n * n * 7919 % 100003) for n in range(20_000))


def zstd_frames(data: bytes) -> bytes:
    """Two frames around a skippable one, without content size, as a streaming writer makes them."""
    half = len(data) // 2
    frames = []
    for part in (data[:half], data[half:]):
        packer = zstandard.ZstdCompressor(write_checksum=True).compressobj()
        frames.append(packer.compress(part) + packer.flush())
    return frames[0] + b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"abcd" + frames[1]


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]),
    "bzip2": lambda data: bz2.compress(data[:1000]) + bz2.compress(data[1000:]),
    "xz": lambda data: lzma.compress(data[:1000]) + b"\0" * 8 + lzma.compress(data[1000:]),
    "zstd": zstd_frames,
}


def tar_of(files: dict[str, bytes], mode: str = "w", form: int = tarfile.PAX_FORMAT) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode, format=form) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.mtime = 1_780_000_000
            archive.addfile(member, io.BytesIO(data))
    return target.getvalue()


def zip_of(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target.getvalue()


class Unseekable(io.BytesIO):
    """Makes zipfile write a streamed zip, whose sizes stand after the data."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_args: int) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation


def write(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def content(item: Input) -> bytes:
    parts = list(item.blocks())
    assert all(0 < len(part) <= BLOCK for part in parts)
    return b"".join(parts)


def pieces(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    at = 0
    for cut in sorted(cut % (len(data) + 1) for cut in cuts):
        yield data[at:cut]
        at = cut
    yield data[at:]


@pytest.mark.parametrize("kind", PACKERS)
def test_every_member_of_a_compressed_file_is_read_whatever_its_name(kind: str, tmp_path: Path) -> None:
    [item], problems = discover([write(tmp_path, "job.log", PACKERS[kind](TEXT))])
    assert content(item) == TEXT
    assert (item.notes, problems) == ([], [])


@pytest.mark.parametrize("kind", PACKERS)
def test_a_truncated_file_gives_its_beginning_and_a_note(kind: str, tmp_path: Path) -> None:
    packed = PACKERS[kind](TEXT)
    [item], problems = discover([write(tmp_path, "job.log", packed[: len(packed) * 9 // 10])])
    read = content(item)
    assert read == TEXT[: len(read)]
    assert len(read) >= (1000 if kind == "bzip2" else len(TEXT) // 2)
    assert problems == []
    assert [note.split(":")[0] for note in item.notes] == [f"truncated {kind}"]


def test_a_gzip_file_with_a_wrong_checksum_loses_nothing(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[-8] ^= 1
    [item], _ = discover([write(tmp_path, "job.log.gz", bytes(packed))])
    assert content(item) == TEXT
    assert item.notes == [f"damaged gzip (its checksum does not fit): read {len(TEXT) / 1024:.1f} KiB of it"]


def test_a_small_gzip_file_damaged_near_its_end_keeps_its_beginning(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT[:100_000])
    [item], _ = discover([write(tmp_path, "job.log.gz", packed[:-3000] + b"\xff" * 3000)])
    assert len(content(item)) > 50_000
    assert item.notes[0].startswith("damaged gzip (")


def test_zero_padding_after_gzip_is_silent_and_other_bytes_are_noted(tmp_path: Path) -> None:
    packed = gzip.compress(b"line\n")
    [padded], _ = discover([write(tmp_path, "padded.gz", packed + b"\0" * 700)])
    [trailed], _ = discover([write(tmp_path, "trailed.gz", packed + b"garbage after it")])
    assert (content(padded), padded.notes) == (b"line\n", [])
    assert content(trailed) == b"line\n"
    assert trailed.notes == ["gzip: after 5 bytes of content come other bytes, which were left out"]


def test_gzip_headers_with_every_field_are_read() -> None:
    deflate = zlib.compressobj(wbits=-15)
    body = deflate.compress(TEXT) + deflate.flush()
    head = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\0abc" + b"job.log\0" + b"a comment\0" + b"hc"
    tail = zlib.crc32(TEXT).to_bytes(4, "little") + len(TEXT).to_bytes(4, "little")
    notes: Notes = []
    assert b"".join(text_blocks(iter([head + body + tail]), notes)) == TEXT
    assert notes == []


def test_gzip_is_read_without_isal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    notes: Notes = []
    assert b"".join(text_blocks(iter([PACKERS["gzip"](TEXT)]), notes)) == TEXT
    assert TEXT.startswith(b"".join(text_blocks(iter([gzip.compress(TEXT)[:-50]]), notes)))
    assert notes[0].startswith("truncated gzip: read ")


def test_a_gzip_of_a_gzip_is_undone_twice() -> None:
    assert b"".join(text_blocks(iter([gzip.compress(gzip.compress(TEXT))]), [])) == TEXT


@pytest.mark.parametrize(
    ("mark", "encoding", "title"),
    [
        (b"\xff\xfe", "utf-16-le", "UTF-16"),
        (b"\xfe\xff", "utf-16-be", "UTF-16"),
        (b"\xff\xfe\0\0", "utf-32-le", "UTF-32"),
        (b"\0\0\xfe\xff", "utf-32-be", "UTF-32"),
    ],
)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    cuts=st.lists(st.integers(0, 400)),
)
def test_wide_text_with_a_mark_becomes_utf_8_wherever_it_is_split(
    mark: bytes, encoding: str, title: str, text: str, cuts: list[int]
) -> None:
    notes: Notes = []
    got = b"".join(text_blocks(pieces(mark + text.encode(encoding), cuts), notes))
    assert got == text.encode()
    assert notes == [title]


def test_half_a_character_at_the_end_of_utf_16_is_replaced() -> None:
    assert b"".join(text_blocks(iter(["\ufeffab".encode("utf-16-le") + b"x"]), [])) == "ab\ufffd".encode()


def test_a_utf_8_mark_comes_off_and_other_bytes_stay_as_they_are() -> None:
    assert b"".join(text_blocks(iter([b"\xef\xbb\xbfa\xff\r\n"]), [])) == b"a\xff\r\n"
    assert b"".join(text_blocks(iter([b"\xff\xffa"]), [])) == b"\xff\xffa"


def test_nul_bytes_are_kept() -> None:
    assert b"".join(text_blocks(iter([b"a\0", b"\0b"]), [])) == b"a\0\0b"


ARCHIVES: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "tar": tar_of,
    "tar gnu": lambda files: tar_of(files, form=tarfile.GNU_FORMAT),
    "tar ustar": lambda files: tar_of(files, form=tarfile.USTAR_FORMAT),
    "tar.gz": lambda files: tar_of(files, "w:gz"),
    "tar.bz2": lambda files: tar_of(files, "w:bz2"),
    "tar.xz": lambda files: tar_of(files, "w:xz"),
    "tar.zst": lambda files: zstandard.compress(tar_of(files)),
    "zip": zip_of,
    "zip stored": lambda files: zip_of(files, zipfile.ZIP_STORED),
    "zip bzip2": lambda files: zip_of(files, zipfile.ZIP_BZIP2),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_is_one_input_for_each_file_in_it(kind: str, tmp_path: Path) -> None:
    files = {
        "logs/rank2.log": TEXT,
        "logs/rank10.log": TEXT[::-1],
        "logs/" + "long/" * 18 + "name.log": b"last\n",
    }
    path = write(tmp_path, "logs.bin", ARCHIVES[kind](files))
    items, problems = discover([path])
    assert {item.name: content(item) for item in items} == {
        f"{path}/{name}": data for name, data in files.items()
    }
    assert [item.notes for item in items] == [[], [], []]
    assert problems == []
    assert {item.hints.rank for item in items} == {2, 10, None}
    if kind.startswith("tar"):
        assert {item.mtime for item in items} == {1_780_000_000.0}
        assert {item.size for item in items} == {len(TEXT), 5}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_name_that_a_report_prints_can_be_given_back(kind: str, tmp_path: Path) -> None:
    """`ncclscope events logs.tgz/dir/rank2.log` works as printed, and so does a folder in the archive."""
    path = write(tmp_path, "logs", ARCHIVES[kind]({"a/rank1.log": TEXT, "a/rank2.log": b"2\n", "b.log": b"b\n"}))
    one, problems = discover([f"{path}/a/rank2.log"])
    assert ([(i.name, content(i)) for i in one], problems) == ([(f"{path}/a/rank2.log", b"2\n")], [])
    folder, _ = discover([f"{path}/a", f"{path}/a/rank2.log"])
    assert [i.name for i in folder] == [f"{path}/a/rank1.log", f"{path}/a/rank2.log"]
    none, (problem,) = discover([f"{path}/a/rank3.log"])
    assert (none, problem.reason) == ([], f"{path} holds no such file")
    assert [i.name for i in discover([path, f"{path}/b.log"])[0]] == [i.name for i in discover([path])[0]]


@pytest.mark.parametrize("kind", ARCHIVES)
def test_members_can_be_read_in_any_order_and_again(kind: str, tmp_path: Path) -> None:
    files = {f"rank{n}.log": TEXT[n * 1000 : n * 90_000] for n in range(1, 6)}
    items, _ = discover([write(tmp_path, "logs", ARCHIVES[kind](files))])
    for item in [*reversed(items), *items]:
        assert content(item) == files[item.name.rpartition("/")[2]]
    together = [item.blocks() for item in items]
    first = {item.name: next(blocks) for item, blocks in zip(items, together, strict=True)}
    for item, blocks in zip(items, together, strict=True):
        assert first[item.name] + b"".join(blocks) == files[item.name.rpartition("/")[2]]


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
def test_a_compressed_file_in_an_archive_is_decompressed(kind: str, tmp_path: Path) -> None:
    packed = {f"job.{name}": pack(TEXT) for name, pack in PACKERS.items()}
    items, _ = discover([write(tmp_path, "logs", ARCHIVES[kind](packed))])
    assert [content(item) == TEXT for item in items] == [True] * 4


@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.zst", "zip"])
def test_a_truncated_archive_gives_what_could_be_read_and_says_so(kind: str, tmp_path: Path) -> None:
    # Four texts of which none compresses by another.
    texts = [
        b"".join(b"%d\n" % (n * n * prime % 1_000_003) for n in range(60_000))
        for prime in (7919, 6007, 5003, 17)
    ]
    files = {f"rank{n}.log": text for n, text in enumerate(texts)}
    packed = ARCHIVES[kind](files)
    path = write(tmp_path, "logs", packed[: len(packed) * 6 // 10])
    items, problems = discover([path])
    read = {item.name.rpartition("/")[2]: content(item) for item in items}
    assert [read["rank0.log"], read["rank1.log"]] == texts[:2]
    assert texts[2].startswith(read["rank2.log"])
    assert 0 < len(read["rank2.log"]) < len(texts[2])
    assert items[-1].notes[0].startswith("truncated ")
    assert [problem.path for problem in problems if "truncated" in problem.reason]
    assert "rank3.log" not in read


def test_a_streamed_zip_that_lost_its_directory_is_searched(tmp_path: Path) -> None:
    target = Unseekable()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rank0.log", TEXT)
        archive.writestr("rank1.log", TEXT)
    items, problems = discover([write(tmp_path, "logs.zip", target.getvalue()[:-80])])
    assert [content(item) for item in items] == [TEXT, TEXT]
    assert "its directory is lost" in problems[0].reason


def test_an_encrypted_zip_member_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    packed = bytearray(zip_of({"a.log": b"secret", "b.log": b"open"}))
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    path = write(tmp_path, "logs.zip", bytes(packed))
    items, [problem] = discover([path])
    assert [content(item) for item in items] == [b"open"]
    assert (problem.path, problem.reason) == (f"{path}/a.log", "encrypted zip member; unpack it first")


def test_hostile_member_names_are_kept_as_text_and_nothing_is_written(tmp_path: Path) -> None:
    names = ["../../evil.log", "/etc/passwd.log", "a\x1b[31m\nb.log"]
    path = write(tmp_path, "logs.tar", tar_of(dict.fromkeys(names, b"text")))
    items, _ = discover([path])
    assert sorted(content(item) for item in items) == [b"text"] * 3
    wanted = [f"{path}/../../evil.log", f"{path}/a\x1b[31m\nb.log", f"{path}/etc/passwd.log"]
    assert sorted(item.name for item in items) == wanted
    assert [entry.name for entry in tmp_path.iterdir()] == ["logs.tar"]


def test_links_and_devices_in_a_tar_are_left_out(tmp_path: Path) -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
            member = tarfile.TarInfo(f"entry{kind!r}")
            member.type = kind
            member.linkname = "/etc/passwd"
            archive.addfile(member)
        member = tarfile.TarInfo("job.log")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"text\n"))
    [item], _ = discover([write(tmp_path, "logs.tar", target.getvalue())])
    assert (item.name.rpartition("/")[2], content(item)) == ("job.log", b"text\n")


def test_a_name_appended_again_counts_once_with_its_last_content(tmp_path: Path) -> None:
    both = tar_of({"job.log": b"old"})[:1024] + tar_of({"job.log": b"new and longer"})
    [item], _ = discover([write(tmp_path, "logs.tar", both)])
    assert content(item) == b"new and longer"


def test_rotated_files_in_a_compressed_tar_come_oldest_first(tmp_path: Path) -> None:
    files = {
        "b.log": b"b",
        "job.log": b"3",
        "a.log": b"a",
        "job.log.1": b"2",
        "job.log.2.gz": gzip.compress(b"1"),
    }
    items, _ = discover([write(tmp_path, "logs.tgz", tar_of(files, "w:gz"))])
    assert b"".join(content(item) for item in items) == b"b123a"
    assert len({item.group for item in items}) == 3


def test_archives_in_a_stream_are_read_as_one_or_named_as_left_out() -> None:
    notes: Notes = []
    packed = tar_of({"a.log": b"one\n", "b.log": b"two\n"}, "w:gz")
    assert b"".join(text_blocks(iter([packed]), notes)) == b"one\ntwo\n"
    assert notes == ["a tar archive in a stream: its files were read as one"]
    notes = []
    assert list(text_blocks(iter([zip_of({"a": b"x"})]), notes)) == []
    assert notes == ["a zip archive in a stream was left out; unpack it and name its files"]


@pytest.mark.parametrize(
    ("pack", "size"),
    [
        (gzip.compress, 200_000_000),
        (bz2.compress, 60_000_000),
        (lambda data: lzma.compress(data, preset=0), 60_000_000),
        (zstandard.compress, 60_000_000),
    ],
    ids=["gzip", "bzip2", "xz", "zstd"],
)
def test_memory_does_not_grow_with_what_comes_out(
    pack: Callable[[bytes], bytes], size: int, tmp_path: Path
) -> None:
    """Zeros, a few kilobytes packed: each call of a decoder must be bounded."""
    path = write(tmp_path, "zeros", pack(bytes(size)))
    tracemalloc.start()
    try:
        [item], _ = discover([path])
        assert sum(map(len, item.blocks())) == size
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_tar_header_that_claims_a_huge_extension_is_not_held_in_memory(tmp_path: Path) -> None:
    member = tarfile.TarInfo("././@LongLink")
    member.type = tarfile.GNUTYPE_LONGNAME
    member.size = 100_000_000
    path = tmp_path / "bomb.tar.gz"
    with gzip.open(path, "wb") as target:
        target.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(100):
            target.write(b"a" * 1_000_000)
    tracemalloc.start()
    try:
        _, problems = discover([str(path)])
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert "extended header" in problems[0].reason


SMALL = TEXT[:3000]
SAMPLES = {name: pack(SMALL) for name, pack in PACKERS.items()} | {
    name: pack({"rank0.log": SMALL, "x.log.gz": gzip.compress(SMALL)}) for name, pack in ARCHIVES.items()
}
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("name", SAMPLES)
@FEW
@given(data=st.data())
def test_any_truncation_gives_a_beginning_and_never_raises(
    name: str, data: st.DataObject, tmp_path: Path
) -> None:
    sample = SAMPLES[name]
    end = data.draw(st.integers(0, len(sample) - 1))
    items, _ = discover([write(tmp_path, "sample", sample[:end])])
    for item in items:
        read = content(item)
        # Of fewer bytes the format cannot be told, and they come as they are.
        if len(read) >= 10 and (name in PACKERS or item.name.endswith(("rank0.log", "x.log.gz"))):
            assert SMALL.startswith(read)


@pytest.mark.parametrize("name", SAMPLES)
@FEW
@given(changes=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=8))
def test_any_damage_never_raises(name: str, changes: list[tuple[int, int]], tmp_path: Path) -> None:
    sample = bytearray(SAMPLES[name])
    for at, value in changes:
        sample[at % len(sample)] = value
    items, _ = discover([write(tmp_path, "sample", bytes(sample))])
    for item in items:
        content(item)


@pytest.mark.parametrize("kind", PACKERS)
@FEW
@given(cuts=st.lists(st.integers(0, 1 << 20), max_size=12))
def test_where_the_bytes_are_split_changes_nothing(kind: str, cuts: list[int]) -> None:
    notes: Notes = []
    assert b"".join(text_blocks(pieces(SAMPLES[kind], cuts), notes)) == SMALL
    assert notes == []


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000)), st.data())
def test_the_reader_hands_out_every_byte_once(data: bytes, cuts: list[int], draw: st.DataObject) -> None:
    reader = Reader(pieces(data, cuts))
    got = b""
    while True:
        ahead = reader.peek(draw.draw(st.integers(0, 50)))
        assert data[len(got) :].startswith(ahead)
        part = reader.take(draw.draw(st.integers(1, 300)))
        if not part:
            break
        got += part
        assert reader.position == len(got)
        kept = draw.draw(st.integers(0, len(part)))
        reader.back(got[len(got) - kept :])
        got += reader.take(kept)[kept:]
    assert got == data
