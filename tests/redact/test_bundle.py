"""Bundles: what a ticket gets, and that it gives the same answer as the logs it was made of."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from support import CASES, case, options, shipped, write

from ncclscope.bundle import BundleError, answer, write_bundle
from ncclscope.cli import main
from ncclscope.pipeline import analyze
from ncclscope.report import LineEvidence
from ncclscope.sources import discover
from ncclscope.sources.archives import MANIFEST


def contents(path: Path) -> bytes:
    """Every member of an archive, one after the other."""
    with zipfile.ZipFile(path) as archive:
        return b"\n".join(archive.read(name) for name in archive.namelist())


@pytest.mark.parametrize("name", [c.name for c in CASES])
def test_bundle_gives_the_same_answer(name: str, tmp_path: Path) -> None:
    """Rules, classes, culprits and confidence of every labelled log survive, and nothing of its names does."""
    out = tmp_path / "bundle.zip"
    done = write_bundle(out, case(name).paths, pack=shipped(), options=options())
    assert done.same
    again = analyze([out], options=options(), pack=shipped())
    assert answer(again) == answer(done.report)
    held = contents(out)
    assert [o for o in done.names.values() if len(o) > 5 and o.encode() in held] == []


def long_log() -> str:
    """An exception at line 50,010 of 60,000 lines of progress, and secrets next to it."""
    lines = [f"2026-05-26 12:00:{n % 60:02d},123 INFO train: step {n}" for n in range(60_000)]
    lines[50_000:50_010] = [
        "2026-05-26 12:00:00,000 INFO train: user msmith on calypso-17 token hf_abcdefghijklmnopqrstuvwxyz012345",
        "[rank3]: Traceback (most recent call last):",
        '[rank3]:   File "/home/msmith/train.py", line 80, in <module>',
        "[rank3]:     main()",
        '[rank3]:   File "/home/msmith/train.py", line 31, in main',
        "[rank3]:     value = float(token)",
        "[rank3]: ValueError: could not convert string to float: 'nan_token'",
        "",
        "",
        "",
    ]
    return "\n".join(lines) + "\n"


def test_excerpts_keep_the_line_numbers_of_the_originals(tmp_path: Path) -> None:
    """Evidence in the bundle points at the line of the log it came from, though most lines are left out."""
    paths = write(tmp_path, {"logs/rank3.log": long_log()})
    out = tmp_path / "bundle.zip"
    done = write_bundle(out, paths, pack=shipped(), options=options())
    assert done.lines < 1000
    again = analyze([out], options=options(), pack=shipped())
    places = [(e.line, e.text) for e in again.findings[0].evidence if isinstance(e, LineEvidence)]
    assert places == [(50_007, "ValueError: could not convert string to float: 'nan_token'")]
    assert again.inputs[0].lines == 60_000
    held = contents(out)
    for secret in (b"msmith", b"calypso-17", b"hf_abcdef"):
        assert secret not in held


def test_last_write_of_a_file_is_kept(tmp_path: Path) -> None:
    """How long a hang had lasted is measured from the file's last write, so the bundle keeps it."""
    import os

    paths = write(tmp_path, {"job.log": "[rank0]: ValueError: x\n"})
    os.utime(paths[0], (1_780_000_000, 1_780_000_000))
    out = tmp_path / "bundle.zip"
    write_bundle(out, paths, pack=shipped(), options=options())
    assert [i.mtime for i in discover([str(out)])[0]] == [1_780_000_000]


def test_bundle_holds_the_reports(tmp_path: Path) -> None:
    """A person without the program reads report.html or report.md; a program report.json and the manifest."""
    out = tmp_path / "bundle.zip"
    write_bundle(out, case("sigkill").paths, pack=shipped(), options=options())
    with zipfile.ZipFile(out) as archive:
        assert {"report.html", "report.md", "report.json", MANIFEST} <= set(archive.namelist())
        assert json.loads(archive.read("report.json"))["verdict"] == "cause_found"
        manifest = json.loads(archive.read(MANIFEST))
    assert manifest["redacted"] is True
    assert manifest["same_answer"] is True


def test_same_input_makes_the_same_file(tmp_path: Path) -> None:
    """No time of writing and no order of chance is in it."""
    a, b = tmp_path / "a.zip", tmp_path / "b.zip"
    for out in (a, b):
        write_bundle(out, case("w8-raise-tee").paths, pack=shipped(), options=options())
    assert a.read_bytes() == b.read_bytes()


def test_size_limit_is_kept_or_refused(tmp_path: Path) -> None:
    """Never a file over the limit: less of the logs, or an error that says what to do, and no file."""
    out = tmp_path / "bundle.zip"
    done = write_bundle(out, case("w8-raise-tee").paths, pack=shipped(), options=options(), limit=20_000)
    assert out.stat().st_size <= 20_000
    assert done.size == out.stat().st_size
    small = tmp_path / "small.zip"
    with pytest.raises(BundleError, match="raise --max-size"):
        write_bundle(small, case("w8-raise-tee").paths, pack=shipped(), options=options(), limit=2_000)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bundle.zip"]


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (b"", "no manifest"),
        (b"{}", "no manifest"),
        (b'{"format":"x","version":99,"tool_version":"9","redacted":true,"streams":[]}', "version 99"),
    ],
)
def test_broken_manifest_is_named(manifest: bytes, words: str, tmp_path: Path) -> None:
    """A damaged bundle is an unreadable input with a reason, never a crash or an all-clear."""
    out = tmp_path / "bundle.zip"
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(MANIFEST, manifest)
    report = analyze([out], options=options(), pack=shipped())
    assert report.verdict == "unreadable"
    assert any(words in str(i.note) for i in report.inputs)


@pytest.mark.parametrize("runs", ["[[5,2],[3,1]]", "[[0,1]]", "[[1,-1]]", "[[1,4000000000]]", "[[1,1],[1,1]]"])
def test_line_numbers_that_make_no_sense_are_refused(runs: str, tmp_path: Path) -> None:
    """A hostile manifest cannot make the reader produce lines without end."""
    hints = "{}"
    stream = f'{{"path":"a.log","member":"a","hints":{hints},"group":"a","lines":10,"runs":{runs}}}'
    text = f'{{"format":"x","version":1,"tool_version":"9","redacted":true,"streams":[{stream}]}}'
    out = tmp_path / "bundle.zip"
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(MANIFEST, text)
        archive.writestr("a", "x\n")
    inputs, problems = discover([str(out)])
    assert inputs == []
    assert "make no sense" in problems[0].reason


def run(*args: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["bundle", *args])
    return int(stop.value.code or 0)


def test_command_writes_and_says_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0, the size, how much of the logs is in it and that it is redacted."""
    out, back = tmp_path / "bundle.zip", tmp_path / "map.json"
    assert run(str(out), *map(str, case("sigkill").paths), "--redact-map", str(back)) == 0
    said = capsys.readouterr().out
    assert "ROOT CAUSE: Rank 1 died of SIGKILL" in said
    assert "redacted" in said
    assert json.loads(back.read_text())["host-1"] == "gpu-node-00"


def test_unredacted_bundle_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--no-redact keeps every name, and the output warns of it."""
    out = tmp_path / "bundle.zip"
    assert run(str(out), *map(str, case("sigkill").paths), "--no-redact") == 0
    assert "NOT redacted" in capsys.readouterr().out
    assert b"gpu-node-00" in contents(out)


@pytest.mark.parametrize("args", [["nope"], ["empty.log"], ["nope", "empty.log"], ["empty"]], ids=str)
def test_nothing_to_pack_is_an_error(
    args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong path does not become a bundle that holds nothing."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"empty.log": ""})
    (tmp_path / "empty").mkdir()
    assert run("b.zip", *args) == 2
    assert "nothing to pack" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.zip"))


def test_a_missing_path_beside_others_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bundle is written; the status says that it is not all that was asked for."""
    out = tmp_path / "bundle.zip"
    assert run(str(out), "/no/such/rank7.log", *map(str, case("sigkill").paths)) == 1
    assert "/no/such/rank7.log: no such file" in capsys.readouterr().err
    assert out.is_file()


@pytest.mark.parametrize(
    "args",
    [
        ("job.log", "other.log"),
        ("exists.zip", "job.log"),
        ("a.zip", "-"),
        ("a.zip", "job.log", "--max-size", "big"),
        ("no/a.zip", "job.log"),
    ],
)
def test_wrong_usage_writes_nothing(args: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forgotten OUT.zip never overwrites a log; an existing file never goes."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"job.log": "x\n", "other.log": "y\n", "exists.zip": "z"})
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    assert run(*args) == 2
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
