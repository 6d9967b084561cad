# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Locked files of distributions, from an index on the loopback interface."""

from __future__ import annotations

import hashlib
import json
import pathlib

import pytest

from toolchains.locks import store
from toolchains.locks.errors import LocksError
from toolchains.locks.tests.servers import serve
from toolchains.pypi import fetch, index, relock

NAME = "some_name-1+cpu.tar.gz"
BODY = b"contents"
PAGE = b'<a href="../../f/some_name-1%2Bcpu.tar.gz?x=1&amp;y=2#sha256=00">x</a>'
SERVED = {"/simple/some-name/": PAGE, "/f/some_name-1%2Bcpu.tar.gz?x=1&y=2": BODY}


@pytest.fixture
def lock(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    path = tmp_path / "lock.json"
    entry = {"filename": NAME, "sha256": hashlib.sha256(BODY).hexdigest()}
    distributions = {"some-name": {"version": "1", "files": {"sdist": entry}}}
    path.write_text(json.dumps({"distributions": distributions}))
    monkeypatch.setattr(relock, "LOCK", path)
    return path


def run(lock: pathlib.Path, url: str, name: str = "some-name", kind: str = "sdist") -> bytes:
    environ = {"BAZELW_CACHE": str(lock.parent / "cache"), index.VARIABLE: f"{url}/simple"}
    return store.Store(environ).path(fetch.fetch(name, kind, environ)).read_bytes()


def test_the_file_is_found_on_the_page_once(lock: pathlib.Path) -> None:
    with serve(SERVED) as server:
        assert run(lock, server.url) == BODY
    # Without a network the files fetched before are there.
    assert run(lock, "http://127.0.0.1:9") == BODY


def test_a_local_version_may_be_in_a_place_that_pip_adds(
    lock: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lock.parent / NAME).write_bytes(BODY)
    output = f"global.find-links='{lock.parent}'\nglobal.index-url='http://127.0.0.1:9/simple'"
    monkeypatch.setattr(index, "_python", lambda *arguments: output)
    environ = {"BAZELW_CACHE": str(lock.parent / "cache")}
    file = fetch.fetch("some-name", "sdist", environ)
    assert store.Store(environ).path(file).read_bytes() == BODY


@pytest.mark.parametrize(
    ("served", "parts"),
    [
        (SERVED | {"/simple/some-name/": b"none"}, ["does not list the locked file", NAME]),
        (SERVED | dict.fromkeys(list(SERVED)[1:], b"other"), ["its sha256 is", "not the locked"]),
        ({}, ["/simple/some-name/", "404"]),
    ],
)
def test_a_file_that_cannot_be_had(
    lock: pathlib.Path, served: dict[str, bytes], parts: list[str]
) -> None:
    with serve(served) as server, pytest.raises(LocksError) as e:
        run(lock, server.url)
    for part in [*parts, index.VARIABLE, "--relock pypi"]:
        assert part in str(e.value)


def test_what_the_lock_does_not_have(lock: pathlib.Path) -> None:
    with pytest.raises(LocksError, match=r"no distribution 'x'; there are some-name.*--relock"):
        run(lock, "", "x")
    with pytest.raises(LocksError, match=r"no file of kind 'any'; there are \['sdist'\].*--relock"):
        run(lock, "", kind="any")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"sha256": "', '"sha256": "x', "sha256 is 'x"),
        (NAME, "../" + NAME, "filename is '../"),
        ("distributions", "distribution", "not a lock"),
        ("{", "", "not a lock"),
    ],
)
def test_damaged_lock(lock: pathlib.Path, old: str, new: str, message: str) -> None:
    lock.write_text(lock.read_text().replace(old, new, 1))
    with pytest.raises(LocksError, match=message) as e:
        run(lock, "")
    assert "--relock pypi" in str(e.value)
