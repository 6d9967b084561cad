# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Locked packages that are there, that an archive of past states has, and that are gone."""

from __future__ import annotations

import hashlib
import pathlib

import pytest

from toolchains.debian import fetch, lock, mirrors, relock
from toolchains.locks import store
from toolchains.locks.environment import STRICT, is_strict
from toolchains.locks.errors import LocksError
from toolchains.locks.tests.servers import serve

PATTERN = "http://past.example/debian/{time}/{path}"


def package(version: str, contents: bytes, name: str = "ab") -> lock.Package:
    path = f"pool/main/a/{name}_{version}_amd64.deb"
    digest = hashlib.sha256(contents).hexdigest()
    return lock.Package(name, version, path, digest, len(contents), "20260131T235959Z")


OLD, NEW = package("1", b"old"), package("2", b"new")
OTHER = package("1", b"other", "other")


class Scene:
    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.warnings: list[str] = []

    def fetch(self, url: str, *names: str, **environ: str) -> dict[str, str]:
        """Fetches from one archive. Returns name -> version of what was taken."""
        environ = {"BAZELW_CACHE": str(self.root), mirrors.VARIABLE: url, **environ}
        taken = fetch.fetch("one", names, environ, self.warnings.append)
        assert all(store.Store(environ).has(file) for file in taken.values())
        return {p.name: p.version for p in taken}


@pytest.fixture
def scene(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    groups = {"one": lock.Group("forky", (OLD, OTHER))}
    (tmp_path / "lock.json").write_text(lock.dump(groups))
    monkeypatch.setattr(lock, "LOCK", tmp_path / "lock.json")
    return Scene(tmp_path)


def resolved(monkeypatch: pytest.MonkeyPatch, *packages: lock.Package) -> None:
    group = lock.Group("forky", packages)
    monkeypatch.setattr(relock, "resolve_anew", lambda names: dict.fromkeys(names, group))


def pool(**contents: bytes) -> dict[str, bytes]:
    return {f"/pool/main/a/{name}_amd64.deb": body for name, body in contents.items()}


def test_what_is_locked_is_taken_silently(scene: Scene) -> None:
    with serve(pool(ab_1=b"old", other_1=b"other")) as server:
        assert scene.fetch(server.url) == {"ab": "1", "other": "1"}
    assert scene.warnings == []


def test_only_what_is_named_is_fetched(scene: Scene) -> None:
    with serve(pool(other_1=b"other")) as server:
        assert scene.fetch(server.url, "other") == {"other": "1"}
        assert server.asked == ["/pool/main/a/other_1_amd64.deb"]


def test_vanished_package_is_replaced_loudly(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    resolved(monkeypatch, NEW, OTHER)
    with serve(pool(ab_2=b"new", other_1=b"other")) as server:
        assert scene.fetch(server.url) == {"ab": "2", "other": "1"}
    (warning,) = scene.warnings
    for part in ("WARNING", "one: ab: 1 -> 2", "./bazelw --relock debian", "AITER_ATTN_STRICT=1"):
        assert part in warning


def test_vanished_package_is_an_error_where_strict(scene: Scene) -> None:
    with serve(pool(other_1=b"other")) as server, pytest.raises(LocksError) as e:
        scene.fetch(server.url, AITER_ATTN_STRICT="1")
    for part in ("ab 1", "404", "AITER_ATTN_STRICT=1 allows no others", "./bazelw --relock debian"):
        assert part in str(e.value)


def test_unknown_strictness_is_an_error(scene: Scene) -> None:
    with pytest.raises(LocksError, match=r"AITER_ATTN_STRICT is 'true'; it may be 1"):
        scene.fetch("http://127.0.0.1:9", AITER_ATTN_STRICT="true")
    assert [is_strict({STRICT: v}) for v in ("", "0", "1")] == [False, False, True]


def test_a_warning_that_nobody_takes_stays_out_of_the_output(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A repository rule reads what toolchains/locks/fetch.py prints."""
    resolved(monkeypatch, NEW, OTHER)
    with serve(pool(ab_2=b"new", other_1=b"other")) as server:
        fetch.fetch("one", environ={"BAZELW_CACHE": str(scene.root), mirrors.VARIABLE: server.url})
    printed = capsys.readouterr()
    assert (printed.out, "WARNING" in printed.err) == ("", True)


def test_an_archive_of_past_states_comes_before_others_versions(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved(monkeypatch, NEW, OTHER)
    past = {f"/20260201T235959Z/{OLD.path}": b"old"}
    with serve(pool(other_1=b"other") | past) as server:
        pattern = server.url + "/{time}/{path}"
        taken = scene.fetch(server.url, AITER_ATTN_DEBIAN_SNAPSHOT=pattern, AITER_ATTN_STRICT="1")
        assert taken == {"ab": "1", "other": "1"}
        # The archive itself is asked first; the picture of the index's own time may be too early.
        assert [p for p in server.asked if "ab_1" in p] == [
            f"/{OLD.path}",
            f"/20260131T235959Z/{OLD.path}",
            f"/20260201T235959Z/{OLD.path}",
        ]
    assert scene.warnings == []


def test_snapshot_pattern() -> None:
    assert list(fetch.snapshot_urls("", OLD)) == []
    assert list(fetch.snapshot_urls(PATTERN, OLD)) == [
        f"http://past.example/debian/20260131T235959Z/{OLD.path}",
        f"http://past.example/debian/20260201T235959Z/{OLD.path}",
    ]
    for bad in ("http://past.example", PATTERN + "/{day}", "http://past.example/{time"):
        with pytest.raises(LocksError, match=f"{fetch.SNAPSHOT} is"):
            list(fetch.snapshot_urls(bad, OLD))


def test_unreachable_archive_is_not_a_vanished_package(scene: Scene) -> None:
    with pytest.raises(LocksError, match=r"127\.0\.0\.1:9.*AITER_ATTN_DEBIAN_MIRROR.*--vendor"):
        scene.fetch("http://127.0.0.1:9")


def test_wrong_digest_in_the_lock_is_told_from_drift(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = package("1", b"what the index names")
    resolved(monkeypatch, served, OTHER)
    files = pool(ab_1=b"what the index names", other_1=b"other")
    with serve(files) as server, pytest.raises(LocksError) as e:
        scene.fetch(server.url)
    for part in (OLD.sha256, served.sha256, "the lock is corrupted"):
        assert part in str(e.value)


def test_archive_that_lacks_what_its_index_has(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved(monkeypatch, OLD, OTHER)
    with serve({}) as server, pytest.raises(LocksError, match="although the index has it"):
        scene.fetch(server.url)


def test_unknown_names_list_what_there_is(scene: Scene) -> None:
    with pytest.raises(LocksError, match=r"no package 'x'; it has ab, other"):
        scene.fetch("http://127.0.0.1:9", "x")
    with pytest.raises(LocksError, match=r"no group 'two'; there are one"):
        fetch.fetch("two")
