# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The program of the repository rules: its output, and its failures."""

from __future__ import annotations

import hashlib
import json
import pathlib
import sys
from collections.abc import Callable

import pytest

from toolchains.locks import fetch
from toolchains.locks.tests.servers import files_up_to, serve
from toolchains.npm import fetch as npm

BODY = b"x" * 300_000
DIGEST = hashlib.sha256(BODY).hexdigest()
Run = Callable[..., None]


@pytest.fixture
def run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the program, with a lock of one npm package, which `url` serves."""
    entry = {"version": "1", "sha256": DIGEST}
    (tmp_path / "lock.json").write_text(json.dumps({"packages": {"a": entry}}))
    monkeypatch.setattr(npm, "LOCK", tmp_path / "lock.json")
    monkeypatch.setenv("BAZELW_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AITER_ATTN_MIRROR", raising=False)

    def run(url: str, *arguments: object) -> None:
        monkeypatch.setenv(npm.VARIABLE, url)
        monkeypatch.setattr(sys, "argv", ["fetch.py", *map(str, arguments)])
        fetch.main()

    return run


def message(e: pytest.ExceptionInfo[SystemExit]) -> str:
    """Returns the text on stderr: one line, with exit status 1."""
    assert isinstance(e.value.code, str)
    assert "\n" not in e.value.code
    return e.value.code


def test_files_are_placed_and_listed(
    run: Run, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve({"/a/-/a-1.tgz": BODY}) as server:
        run(server.url, npm.__name__, tmp_path / "out", "a")
    file = tmp_path / "out" / f"{DIGEST}.tgz"
    assert json.loads(capsys.readouterr().out) == [
        {"name": "a", "sha256": DIGEST, "file": str(file)}
    ]
    assert file.read_bytes() == BODY


def test_a_full_disk_is_one_line_and_leaves_nothing(run: Run, tmp_path: pathlib.Path) -> None:
    with serve({"/a/-/a-1.tgz": BODY}) as server:
        with files_up_to(100_000), pytest.raises(SystemExit) as e:
            run(server.url, npm.__name__, tmp_path / "out", "a")
        assert f"cannot write {tmp_path}/cache/files/{DIGEST}: " in message(e)
        run(server.url, npm.__name__, tmp_path / "out", "a")
    (tmp_path / "out" / f"{DIGEST}.tgz").unlink()
    with files_up_to(100_000), pytest.raises(SystemExit) as e:
        run("http://127.0.0.1:9", npm.__name__, tmp_path / "out", "a")
    assert f"cannot write {tmp_path}/out/{DIGEST}.tgz: " in message(e)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_line(run: Run, tmp_path: pathlib.Path) -> None:
    with serve({"/a/-/a-1.tgz": BODY}) as server:
        with pytest.raises(SystemExit) as e:
            run(server.url, npm.__name__, tmp_path / ("n" * 300), "a")
        for part in ("File name too long", "n" * 300, "a folder with a shorter path"):
            assert part in message(e)
        with pytest.raises(SystemExit) as e:
            run(server.url, npm.__name__, tmp_path / "lock.json" / "out", "a")
        assert f"'{tmp_path}/lock.json/out'; check that path" in message(e)


def test_a_lock_that_is_not_there_is_one_line(run: Run, tmp_path: pathlib.Path) -> None:
    npm.LOCK.unlink()
    with pytest.raises(SystemExit) as e:
        run("http://127.0.0.1:9", npm.__name__, tmp_path / "out", "a")
    assert f"No such file or directory: '{npm.LOCK}'" in message(e)


def test_what_no_server_gives_is_one_line(run: Run, tmp_path: pathlib.Path) -> None:
    with serve({}, 403) as server, pytest.raises(SystemExit) as e:
        run(server.url, npm.__name__, tmp_path / "out", "a")
    for part in ("cannot fetch a 1", "HTTP 403", "access is refused", npm.VARIABLE):
        assert part in message(e)
