# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn cache`: its commands, on files that the library reads, and its refusals."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import aiter_attn
import pytest
from aiter_attn import _C
from aiter_attn._cli import cache
from aiter_attn._cli.main import main

KNOWN = aiter_attn.kernels()[0]["key"]
OBJECT = _C.code_object(KNOWN)


def packed(key: str, data: bytes) -> bytes:
    digest = hashlib.sha256(data).digest()
    return b"ATTNOBJ1" + bytes.fromhex(key) + digest + len(data).to_bytes(8, "little") + data


def other(number: int) -> str:
    """A key that no kernel has."""
    return f"{number:064x}"


class Folder:
    """A cache by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path / "code-objects"

    def put(self, key: str, data: bytes, age: int = 0, suffix: str = ".object") -> Path:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self.path / (key + suffix)
        file.write_bytes(data)
        file.chmod(0o600)
        os.utime(file, (1_700_000_000 - age,) * 2)
        return file

    def names(self) -> list[str]:
        return sorted(file.name for file in self.path.iterdir())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("AITER_ATTN_CACHE_DIR", str(tmp_path / "cache"))
    return Folder(tmp_path / "cache")


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["cache", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


Run = Callable[..., tuple[int, str, str]]


def test_path_is_the_librarys(folder: Folder, told: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told("path") == (0, f"{folder.path}\n", "")
    monkeypatch.setenv("AITER_ATTN_CACHE_DIR", "cache")
    assert told("path")[2].startswith("cache: AITER_ATTN_CACHE_DIR is 'cache', but must be")
    for name in ("AITER_ATTN_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert "HOME is not set; name a folder in AITER_ATTN_CACHE_DIR" in told("path")[2]


def test_an_empty_cache_is_no_error(folder: Folder, told: Run) -> None:
    for command in (["ls"], ["verify"], ["gc", "--max-size", "0"], ["clean"]):
        assert told(*command)[0] == 0
    assert not folder.path.exists()


def test_ls(folder: Folder, told: Run) -> None:
    folder.put(KNOWN, packed(KNOWN, OBJECT), age=10)
    folder.put(other(1), packed(other(1), b"a norm"), age=20)
    folder.put(other(2), b"", suffix=".new")
    (folder.path / "notes").write_text("not ours")
    status, out, _ = told("ls")
    lines = out.splitlines()
    assert status == 0
    assert lines[0].startswith("0" * 16)
    assert lines[0].endswith("of no kernel that is built in")
    assert lines[1].startswith(KNOWN[:16])
    assert aiter_attn.kernels()[0]["name"] in lines[1]
    assert "(new)" in lines[2]
    assert lines[3] == f"{folder.path}: 2 objects, {len(OBJECT) + 80 + 86} bytes"
    listed = json.loads(told("ls", "--json")[1])
    assert [file["kind"] for file in listed["files"]] == ["object", "object", "new"]


BAD = {
    "empty": b"",
    "cut off": packed(KNOWN, OBJECT)[:-1],
    "longer": packed(KNOWN, OBJECT) + b"\0",
    "another key's": packed(other(1), OBJECT),
    "a flipped bit": packed(KNOWN, OBJECT)[:-1] + bytes([OBJECT[-1] ^ 1]),
    "other bytes, right by themselves": packed(KNOWN, b"other bytes"),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_verify_sets_aside_what_is_not_believed(folder: Folder, told: Run, data: bytes) -> None:
    folder.put(KNOWN, data)
    folder.put(other(2), packed(other(2), b"good"))
    status, out, _ = told("verify")
    assert status == 1
    assert f"set aside as {KNOWN}.refused" in out
    assert out.splitlines()[-1] == f"{folder.path}: 1 objects are right, 1 were not"
    assert folder.names() == sorted([f"{KNOWN}.refused", f"{other(2)}.object"])
    assert told("verify")[0] == 0


def test_verify_believes_no_link_and_no_file_of_others(folder: Folder, told: Run) -> None:
    elsewhere = folder.put(other(9), packed(KNOWN, OBJECT), suffix=".elsewhere")
    (folder.path / f"{KNOWN}.object").symlink_to(elsewhere)
    folder.put(other(2), packed(other(2), b"good")).chmod(0o666)
    os.mkfifo(folder.path / f"{other(3)}.object")
    status, out, _ = told("verify")
    assert status == 1
    assert "is a link" in out
    assert "others may write to it" in out
    assert "is no regular file" in out
    assert elsewhere.read_bytes() == packed(KNOWN, OBJECT)


def test_gc_removes_the_least_recently_used(folder: Folder, told: Run) -> None:
    for number in range(4):
        folder.put(other(number), packed(other(number), bytes(920)), age=100 - number)
    folder.put(other(7), bytes(5000), suffix=".refused")
    folder.put(other(8), b"", suffix=".new")
    folder.put(other(8), b"half", suffix=".new.0123456789abcdef")
    status, out, _ = told("gc", "--max-size", "2K")
    assert (status, out) == (0, f"{folder.path}: 3 files removed, 2000 bytes left\n")
    assert folder.names() == [f"{other(2)}.object", f"{other(3)}.object"]
    assert told("gc", "--max-size", "0")[0] == 0
    assert folder.names() == []


@pytest.mark.parametrize("size", ["", "-1", "2KB", "1.5M", "many", "M"])
def test_sizes_that_are_none(folder: Folder, told: Run, size: str) -> None:
    status, _, error = told("gc", f"--max-size={size}")
    assert status == 1
    assert f"--max-size {size}: allowed: a whole number of bytes" in error


def test_the_sizes() -> None:
    assert [cache.parse_size(s) for s in ("0", "7", "1K", "2G")] == [0, 7, 1024, 2 << 30]


def test_what_another_process_writes_stays(folder: Folder, told: Run) -> None:
    folder.put(KNOWN, packed(KNOWN, OBJECT))
    writing = folder.put(KNOWN, b"", suffix=".new")
    half = folder.put(KNOWN, b"half", suffix=".new.0123456789abcdef")
    with writing.open("rb") as file, half.open("rb") as half_file:
        fcntl.flock(file, fcntl.LOCK_EX)
        fcntl.flock(half_file, fcntl.LOCK_EX)
        assert told("gc", "--max-size", "0")[0] == 0
        stay = [f"{KNOWN}.new", f"{KNOWN}.new.0123456789abcdef", f"{KNOWN}.object"]
        assert folder.names() == stay
        status, _, error = told("clean")
        assert status == 1
        assert "3 files stay: other processes use them" in error
    assert told("clean")[0] == 0
    assert folder.names() == []


def test_clean_removes_the_objects_that_are_named(folder: Folder, told: Run) -> None:
    folder.put(KNOWN, packed(KNOWN, OBJECT))
    folder.put(other(1), packed(other(1), b"one"))
    status, _, error = told("clean", "123456789")
    assert status == 1
    assert "123456789: no such object in the cache; `aiter-attn cache ls` lists the 2" in error
    assert "no such object" in told("clean", KNOWN[:7])[2]  # too short
    assert told("clean", KNOWN[:8])[0] == 0
    assert folder.names() == [f"{other(1)}.object"]


def test_export_and_import(
    folder: Folder, told: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.put(KNOWN, packed(KNOWN, OBJECT))
    folder.put(other(1), packed(other(1), b"a norm"))
    exported, all_of_it = tmp_path / "known.tar", tmp_path / "all.tar"
    assert told("export", str(exported), KNOWN)[:2] == (0, f"{exported}: 1 objects\n")
    assert told("export", str(all_of_it))[0] == 0
    first = all_of_it.read_bytes()
    told("export", str(all_of_it))
    assert all_of_it.read_bytes() == first

    elsewhere = Folder(tmp_path / "elsewhere")
    monkeypatch.setenv("AITER_ATTN_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert told("import", str(exported)) == (0, f"{elsewhere.path}: 1 objects\n", "")
    assert elsewhere.path.stat().st_mode & 0o777 == 0o700
    assert elsewhere.names() == [f"{KNOWN}.object"]
    # Nothing proves the other one, and then nothing at all is taken.
    told("clean")
    status, _, error = told("import", str(all_of_it))
    assert status == 1
    assert f"{other(1)}: nothing proves its bytes" in error
    assert "add --trust if you trust who made the file" in error
    assert elsewhere.names() == []
    assert told("import", "--trust", str(all_of_it))[0] == 0
    assert elsewhere.names() == sorted([f"{KNOWN}.object", f"{other(1)}.object"])
    assert told("verify")[0] == 0


def test_what_is_not_believed_is_not_exported(folder: Folder, told: Run, tmp_path: Path) -> None:
    folder.put(KNOWN, packed(KNOWN, b"other bytes"))
    status, _, error = told("export", str(tmp_path / "out.tar"))
    assert status == 1
    assert "instead of" in error
    assert "`aiter-attn cache verify` sets it aside" in error
    assert not (tmp_path / "out.tar").exists()


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def link(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return info


GOOD = (tarfile.TarInfo(f"{KNOWN}.object"), packed(KNOWN, OBJECT))
IMPORTS = {
    "no tar file": (b"no tar file" * 100, "no whole tar file of `aiter-attn cache export`"),
    "a tar file cut off": (tar_of(GOOD)[:600], "no whole tar file"),
    "another name": (tar_of(GOOD, (tarfile.TarInfo("../x"), b"")), "'../x'; allowed: regular"),
    "a path": (tar_of((tarfile.TarInfo(f"/{KNOWN}.object"), GOOD[1])), "allowed: regular files"),
    "a link": (tar_of((link(f"{KNOWN}.object"), b"")), "allowed: regular files"),
    "a bad object": (tar_of((tarfile.TarInfo(f"{KNOWN}.object"), b"")), "is cut off, or no code"),
    "other bytes": (
        tar_of((tarfile.TarInfo(f"{KNOWN}.object"), packed(KNOWN, b"other"))), "instead of",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "message"), IMPORTS.values(), ids=IMPORTS.keys())
def test_bad_imports(folder: Folder, told: Run, tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "in.tar"
    file.write_bytes(data)
    for trust in ([], ["--trust"]):
        status, _, error = told("import", *trust, str(file))
        assert status == 1
        assert message in error
        assert "Traceback" not in error
    assert not folder.path.exists()


def test_a_file_that_is_not_there(folder: Folder, told: Run) -> None:
    status, _, error = told("import", "/nowhere/in.tar")
    assert status == 1
    assert "No such file or directory: '/nowhere/in.tar'" in error


def test_folders_of_others(folder: Folder, told: Run, tmp_path: Path) -> None:
    folder.put(KNOWN, packed(KNOWN, OBJECT))
    folder.path.chmod(0o777)
    for command in (["ls"], ["verify"], ["gc", "--max-size", "0"], ["clean"], ["export", "x"]):
        status, _, error = told(*command)
        assert status == 1
        assert "others may write to it; make it this user's alone: chmod 700" in error
    folder.path.chmod(0o700)
    folder.path.rename(tmp_path / "real")
    folder.path.symlink_to(tmp_path / "real")
    assert "is no folder; name another in AITER_ATTN_CACHE_DIR" in told("ls")[2]


def test_wrong_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        ([], "the following arguments are required: COMMAND"),
        (["list"], "invalid choice: 'list' (choose from"),
        (["gc"], "the following arguments are required: --max-size"),
        (["import"], "the following arguments are required: FILE"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["cache", *arguments])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
