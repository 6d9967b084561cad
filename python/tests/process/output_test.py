# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Where `python -m aiter_attn` writes, when that cannot be written, and text of no encoding."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiter_attn
import pytest
from aiter_attn._cli import files

KERNEL = aiter_attn.kernels()[0]
KEY = KERNEL["key"]
SHELL = f'exec "{sys.executable}" -m aiter_attn '


def shell(command: str, **environment: Any) -> subprocess.CompletedProcess[bytes]:
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path if path)
    return subprocess.run(
        ["/bin/sh", "-c", SHELL + command],
        capture_output=True,
        check=False,
        env={**os.environb, b"PYTHONPATH": os.fsencode(paths), **environment},
    )


COMMANDS = {
    "info": "info",
    "info --json": "info --json",
    "explain": "explain --dtype fp16 --head-size 64 --seqlen-q 40 --causal --arch gfx942",
    "extract": f"extract {KEY} -o -",
    "extract to a file": f"extract {KEY} -o /dev/null",  # a line, written when Python exits
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(
    ("where", "message"),
    [
        (">&-", "standard output is closed; redirect it, at least to /dev/null"),
        (">/dev/full", "No space left on device"),
    ],
    ids=["closed", "full"],
)
def test_standard_output_that_takes_nothing(command: str, where: str, message: str) -> None:
    done = shell(f"{command} {where}")
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"{command.split()[0]}: ")
    assert message in line


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    done = shell("info --json | head -c 10")
    assert done.stdout == b'{\n  "versi'
    assert done.stderr == b""


def test_extract_to_standard_output() -> None:
    done = shell(COMMANDS["extract"])
    assert done.returncode == 0
    assert len(done.stdout) == KERNEL["code_object_size"]


def test_no_file_name_is_refused(tmp_path: Path) -> None:
    done = shell(f"extract {KEY} -o ''")
    assert done.returncode == 2
    assert b"argument -o/--output: '' names no file; allowed: a file's name, or -" in done.stderr


def test_what_does_not_fit_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "object"
    path.write_bytes(b"old")
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)); "
    code = limit + "import sys; from aiter_attn._cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "extract", KEY, "-o", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(p) for p in sys.path)},
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("extract: ")
    assert "File too large" in done.stderr
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_written_through_a_link_and_keeps_its_mode(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    files.write_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(tmp_path.iterdir()) == [link, target]


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    files.write_whole(tmp_path / "new", b"1")
    (tmp_path / "usual").write_bytes(b"1")
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.write_whole(pipe, b"data")
        assert os.read(reader, 10) == b"data"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_name_of_no_encoding(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\xfe"
    done = shell(f'extract {KEY} -o "$NAME"', NAME=name)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\udcff\\udcfe: " in done.stdout
    assert os.stat(name).st_size == KERNEL["code_object_size"]


@pytest.mark.parametrize("command", [COMMANDS["info"], COMMANDS["info --json"]], ids=["", "json"])
def test_a_runtimes_path_of_no_encoding(command: str) -> None:
    done = shell(command, AITER_ATTN_HIP_LIBRARY=b"/nowhere/\xff\xfe.so")
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    if "json" in command:
        (text,) = (d["text"] for d in json.loads(text)["drivers"] if d["name"] == "ROCm")
    assert "/nowhere/\ufffd\ufffd.so" in text


def test_an_error_of_a_runtime_of_no_encoding() -> None:
    done = shell(
        "explain --dtype fp16 --head-size 64 --seqlen-q 40",
        AITER_ATTN_HIP_LIBRARY=b"/nowhere/\xff.so",
    )
    assert done.returncode == 1
    assert "/nowhere/\ufffd.so" in done.stderr.decode()
    assert b"Traceback" not in done.stderr
