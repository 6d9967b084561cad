# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""--vendor: a folder of all locked files, and its index of them."""

from __future__ import annotations

import hashlib
import json
import pathlib

import pytest

from toolchains.bazel import vendor
from toolchains.debian import lock, mirrors
from toolchains.locks import constants, store
from toolchains.locks.errors import LocksError
from toolchains.locks.tests.servers import files_up_to, serve
from toolchains.npm import fetch as npm
from toolchains.pypi import index
from toolchains.pypi import relock as pypi_relock

DEB, SDIST, TGZ = b"a deb", b"an sdist", b"a tgz"
PATH = "pool/main/a/ab_1_amd64.deb"
SERVED = {
    f"/debian/{PATH}": DEB,
    "/simple/some-name/": b'<a href="../../f/some_name-1.tar.gz">x</a>',
    "/f/some_name-1.tar.gz": SDIST,
    "/npm/@a/b/-/b-2.tgz": TGZ,
}


def digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


@pytest.fixture
def locks(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    deb = lock.Package("ab", "1", PATH, digest(DEB), len(DEB), "20260131T235959Z")
    files = {
        (lock, "LOCK"): lock.dump({"one": lock.Group("sid", (deb,))}),
        (pypi_relock, "LOCK"): json.dumps(
            {
                "distributions": {
                    "some-name": {
                        "version": "1",
                        "files": {
                            "sdist": {"filename": "some_name-1.tar.gz", "sha256": digest(SDIST)}
                        },
                    }
                }
            }
        ),
        (npm, "LOCK"): json.dumps({"packages": {"@a/b": {"version": "2", "sha256": digest(TGZ)}}}),
    }
    for (module, name), text in files.items():
        path = tmp_path / f"{module.__name__}.json"
        path.write_text(text)
        monkeypatch.setattr(module, name, path)
    return tmp_path


def environ(root: pathlib.Path, url: str) -> dict[str, str]:
    return {
        "BAZELW_CACHE": str(root / "cache"),
        mirrors.VARIABLE: f"{url}/debian",
        index.VARIABLE: f"{url}/simple",
        npm.VARIABLE: f"{url}/npm",
    }


def test_every_locked_file_is_there_and_described(locks: pathlib.Path) -> None:
    folder = locks / "vendored"
    with serve(SERVED) as server:
        got = vendor.vendor(folder, environ(locks, server.url), lambda text: None)
        # Once more changes nothing, and asks for nothing.
        asked = len(server.asked)
        assert vendor.vendor(folder, environ(locks, server.url), lambda text: None) == got
        assert len(server.asked) == asked
    assert got == (3, len(DEB + SDIST + TGZ))
    contents = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != vendor.INDEX}
    assert contents == {digest(c): c for c in (DEB, SDIST, TGZ)}
    assert json.loads((folder / vendor.INDEX).read_text())["files"] == {
        digest(DEB): {
            "file": "ab_1_amd64.deb",
            "source": "Debian sid",
            "time": "20260131T235959Z",
        },
        digest(SDIST): {"file": "some_name-1.tar.gz", "source": "PyPI some-name"},
        digest(TGZ): {"file": "@a/b 2", "source": "npm"},
    }


def test_local_versions_are_left_out(locks: pathlib.Path) -> None:
    lock_file = locks / f"{pypi_relock.__name__}.json"
    text = json.loads(lock_file.read_text())
    entry = {"filename": "other-1+cpu.tar.gz", "sha256": "0" * 64}
    text["distributions"]["other"] = {"version": "1+cpu", "files": {"sdist": entry}}
    lock_file.write_text(json.dumps(text))
    with serve(SERVED) as server:
        count, _ = vendor.vendor(locks / "v", environ(locks, server.url), lambda text: None)
    assert count == 3


def test_the_folder_serves_everything_alone(locks: pathlib.Path) -> None:
    folder = locks / "vendored"
    with serve(SERVED) as server:
        vendor.vendor(folder, environ(locks, server.url), lambda text: None)
    dead = environ(locks / "elsewhere", "http://127.0.0.1:9") | {store.MIRROR: str(folder)}
    assert store.Store(dead).fetch(vendor.locked(dead)) == {}


def test_a_file_that_is_gone_is_an_error_and_no_index_is_written(locks: pathlib.Path) -> None:
    served = {path: body for path, body in SERVED.items() if not path.startswith("/debian")}
    with serve(served) as server, pytest.raises(LocksError, match=r"ab 1.*404.*--relock"):
        vendor.vendor(locks / "vendored", environ(locks, server.url), lambda text: None)
    assert not (locks / "vendored").exists()


def test_nothing_half_written_stays(locks: pathlib.Path) -> None:
    with serve(SERVED) as server:
        ready = environ(locks, server.url)
        store.Store(ready).fetch(vendor.locked(ready))
        with files_up_to(len(DEB) - 1), pytest.raises(LocksError, match=r"cannot write .*vendored"):
            vendor.vendor(locks / "vendored", ready, lambda text: None)
    assert list((locks / "vendored").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(locks: pathlib.Path) -> None:
    (locks / "file").touch()
    folder = locks / "file/vendored"
    with serve(SERVED) as server, pytest.raises(LocksError, match=f"cannot make the .* {folder}"):
        vendor.vendor(folder, environ(locks, server.url), lambda text: None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a lock"),
        ("[]", "not a lock"),
        ('{"packages": {"@a/b": 1}}', "not a lock"),
        ('{"packages": {"@a/b": {"version": "2"}}}', "@a/b: sha256 is None, it must match"),
        ('{"packages": {"@a/b": {"version": "../2", "sha256": "0"}}}', "version is '../2'"),
    ],
)
def test_a_damaged_lock_of_npm_is_one_error(locks: pathlib.Path, text: str, message: str) -> None:
    npm.LOCK.write_text(text)
    with pytest.raises(LocksError, match=f"{npm.LOCK}.*{message}.*restore the file"):
        npm.fetch("@a/b", environ(locks, "http://127.0.0.1:9"))


def test_constants_of_a_bzl_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a.bzl"
    file.write_text('"""Doc."""\n\nA = "22"\nB = {"x": ["y"]}\n')
    assert constants.read(file) == {"A": "22", "B": {"x": ["y"]}}
    file.write_text("A = f(1)\n")
    with pytest.raises(ValueError, match="malformed node"):
        constants.read(file)
