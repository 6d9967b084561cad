# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The store of locked files, with servers on the loopback interface and local folders."""

from __future__ import annotations

import hashlib
import os
import pathlib
import time
from collections.abc import Iterable

import pytest

from toolchains.locks import store
from toolchains.locks.environment import cache_folder
from toolchains.locks.errors import LocksError
from toolchains.locks.identity import identity
from toolchains.locks.tests.servers import files_up_to, serve

# A port that nothing listens at.
UNREACHABLE = "http://127.0.0.1:9"


def digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


def locked(contents: bytes, *urls: str) -> store.File:
    return store.File(digest(contents), contents.decode(), lambda: urls)


class Scene:
    def __init__(self, root: pathlib.Path, **environ: str) -> None:
        self.root = root
        self.environ = {"BAZELW_CACHE": str(root / "cache"), **environ}
        self.store = store.Store(self.environ)

    def fetch(self, *files: store.File) -> dict[str, store.Failure]:
        failed = self.store.fetch(files)
        # No part of a file is left behind, after any failure.
        assert all(len(p.name) == 64 for p in self.store.folder.iterdir())
        return {file.name: failure for file, failure in failed.items()}


@pytest.fixture
def scene(tmp_path: pathlib.Path) -> Scene:
    return Scene(tmp_path)


def test_files_are_named_by_digest_and_fetched_once(scene: Scene) -> None:
    with serve({"/a": b"one", "/b": b"two"}) as server:
        files = [locked(b"one", f"{server.url}/a"), locked(b"two", f"{server.url}/b")]
        assert scene.fetch(*files) == {}
        assert scene.fetch(*files) == {}
        assert sorted(server.asked) == ["/a", "/b"]
    assert {p.name: p.read_bytes() for p in scene.store.folder.iterdir()} == {
        digest(b"one"): b"one",
        digest(b"two"): b"two",
    }


def test_a_file_there_is_used_without_asking_where_it_might_be(scene: Scene) -> None:
    def nowhere() -> Iterable[str]:
        raise AssertionError("a mirror was looked for")

    with serve({"/a": b"one"}) as server:
        scene.fetch(locked(b"one", f"{server.url}/a"))
    assert scene.fetch(store.File(digest(b"one"), "one", nowhere)) == {}


def test_a_damaged_file_is_fetched_again(scene: Scene) -> None:
    with serve({"/a": b"one"}) as server:
        file = locked(b"one", f"{server.url}/a")
        scene.fetch(file)
        place = scene.store.path(file)
        place.chmod(0o644)
        place.write_bytes(b"damaged")
        assert scene.fetch(file) == {}
        assert place.read_bytes() == b"one"


def test_what_a_killed_fetch_left_is_removed_but_not_what_is_being_fetched(scene: Scene) -> None:
    scene.store.fetch([])
    old, new = scene.store.folder / ".part-old", scene.store.folder / ".part-new"
    for part in (old, new):
        part.touch()
    os.utime(old, (0, 0))
    scene.store.fetch([])
    assert list(scene.store.folder.iterdir()) == [new]


def test_a_clock_that_is_ahead_makes_no_fetch_stale(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.store.fetch([])
    new = scene.store.folder / ".part-new"
    new.touch()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3000 * 86400)
    scene.store.fetch([])
    assert list(scene.store.folder.iterdir()) == [new]


def test_wrong_contents_never_enter(scene: Scene) -> None:
    with serve({"/good": b"good", "/bad": b"served"}) as server:
        good, bad = locked(b"good", f"{server.url}/good"), locked(b"bad", f"{server.url}/bad")
        failed = scene.fetch(good, bad)
    assert failed["bad"].answered
    for part in ("/bad", digest(b"served"), digest(b"bad")):
        assert part in failed["bad"].reason
    assert [p.name for p in scene.store.folder.iterdir()] == [good.sha256]


def test_a_connection_that_breaks_off_is_tried_again(scene: Scene) -> None:
    with serve({"/a": b"one"}) as server:
        server.broken = 1
        assert scene.fetch(locked(b"one", f"{server.url}/a")) == {}
        assert server.asked == ["/a", "/a"]
        server.broken = 2
        failed = scene.fetch(locked(b"two", f"{server.url}/a"))["two"]
    assert "broke off" in failed.reason
    assert not failed.answered


def test_the_next_place_serves_what_the_first_lacks(scene: Scene) -> None:
    with serve({}) as empty, serve({"/a": b"one"}) as server:
        places = [f"{UNREACHABLE}/a", f"{empty.url}/a", "file:///nowhere/a", f"{server.url}/a"]
        assert scene.fetch(locked(b"one", *places)) == {}


def test_every_place_s_answer_is_told(scene: Scene) -> None:
    with serve({}) as empty:
        failed = scene.fetch(locked(b"one", f"{UNREACHABLE}/a", f"{empty.url}/a"))["one"]
    assert failed.answered
    assert f"{UNREACHABLE}/a: " in failed.reason
    assert f"{empty.url}/a: HTTP 404" in failed.reason


@pytest.mark.parametrize(
    ("status", "answered", "asked", "reason"),
    [
        (404, True, 1, "HTTP 404 "),
        (410, True, 1, "HTTP 410 "),
        (400, False, 1, "HTTP 400 "),
        (401, False, 1, "access is refused; credentials stand in the URL"),
        (403, False, 1, "access is refused; credentials stand in the URL"),
        (407, False, 1, "the proxy refuses access; its credentials stand in http_proxy"),
        (429, False, 2, "try again later"),
        (500, False, 2, "try again later"),
        (503, False, 2, "try again later"),
    ],
)
def test_what_a_server_lacks_is_told_from_what_it_does_not_give(
    scene: Scene, status: int, answered: bool, asked: int, reason: str
) -> None:
    with serve({"/a": b"one"}, status) as bad, serve({"/a": b"one"}) as good:
        one = locked(b"one", f"{bad.url}/a")
        failed = scene.fetch(one)["one"]
        assert len(bad.asked) == asked
        # The next place serves it.
        assert Scene(scene.root / "2").fetch(locked(b"one", f"{bad.url}/a", f"{good.url}/a")) == {}
    assert failed.answered == answered
    assert f"{bad.url}/a: HTTP {status} " in failed.reason
    assert reason in failed.reason


def test_a_server_in_trouble_is_left_alone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_AT_ONCE", 1)
    with serve({}, 503) as server:
        files = [locked(str(n).encode(), f"{server.url}/{n}") for n in range(20)]
        failed = scene.fetch(*files)
        assert server.asked == ["/0", "/0"]
    assert len(failed) == 20
    assert not any(failure.answered for failure in failed.values())


def test_a_file_that_may_not_be_read_is_not_lacking(scene: Scene, tmp_path: pathlib.Path) -> None:
    (tmp_path / "folder").mkdir()
    failed = scene.fetch(locked(b"one", f"file://{tmp_path}/folder"))["one"]
    assert not failed.answered
    assert "cannot be read" in failed.reason


def test_a_full_disk_is_no_fault_of_the_server_and_leaves_nothing(scene: Scene) -> None:
    body = b"x" * 300_000
    with serve({"/a": body, "/b": b"small"}) as server:
        small, large = locked(b"small", f"{server.url}/b"), locked(body, f"{server.url}/a")
        with files_up_to(100_000):
            with pytest.raises(LocksError) as e:
                scene.store.fetch([large])
            assert list(scene.store.folder.iterdir()) == []
            assert scene.fetch(small) == {}
    for part in (f"cannot write {scene.store.path(large)}", "File too large", "BAZELW_CACHE"):
        assert part in str(e.value)


def test_a_copy_that_does_not_fit_leaves_the_old_one(scene: Scene) -> None:
    body = b"x" * 300_000
    target = scene.root / "placed"
    target.write_bytes(b"old")
    with serve({"/a": body}) as server:
        file = locked(body, f"{server.url}/a")
        scene.fetch(file)
    with files_up_to(100_000), pytest.raises(LocksError, match=f"cannot write {target}"):
        scene.store.place(file, target)
    assert target.read_bytes() == b"old"
    assert sorted(p.name for p in scene.root.iterdir()) == ["cache", "placed"]


def test_that_no_mirror_is_known_is_the_reason(scene: Scene) -> None:
    def unknown() -> Iterable[str]:
        raise LocksError("set SOME_VARIABLE")

    failed = scene.fetch(store.File(digest(b"one"), "one", unknown))
    assert failed["one"] == store.Failure("set SOME_VARIABLE", False)


def test_the_mirror_of_a_vendored_folder_comes_first(tmp_path: pathlib.Path) -> None:
    vendored = tmp_path / "with blank"
    vendored.mkdir()
    (vendored / digest(b"one")).write_bytes(b"one")
    with serve({"/a": b"one", "/b": b"two"}) as server:
        scene = Scene(tmp_path, AITER_ATTN_MIRROR=str(vendored))
        one, two = locked(b"one", f"{server.url}/a"), locked(b"two", f"{server.url}/b")
        assert scene.fetch(one, two) == {}
        assert server.asked == ["/b"]
    with serve({f"/v/{digest(b'one')}": b"one"}) as server:
        scene = Scene(tmp_path / "other", AITER_ATTN_MIRROR=f"{server.url}/v/")
        assert scene.fetch(locked(b"one")) == {}


def test_a_relative_mirror_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(LocksError, match="AITER_ATTN_MIRROR is 'vendored'; it may be a URL or an"):
        Scene(tmp_path, AITER_ATTN_MIRROR="vendored")


def test_a_placed_file_has_the_contents(scene: Scene, tmp_path: pathlib.Path) -> None:
    with serve({"/a": b"one"}) as server:
        file = locked(b"one", f"{server.url}/a")
        scene.fetch(file)
    scene.store.place(file, tmp_path / "placed")
    assert (tmp_path / "placed").read_bytes() == b"one"


def test_identity_does_not_depend_on_order() -> None:
    lines = f"a {'0' * 64}\nb {'1' * 64}\n"
    expected = digest(lines.encode())
    assert identity({"b": "1" * 64, "a": "0" * 64}) == expected
    assert identity([("a", "0" * 64), ("b", "1" * 64)]) == expected
    assert identity({"a": "0" * 64}) != expected


def test_cache_folder() -> None:
    assert cache_folder({"BAZELW_CACHE": "/a/b/"}) == "/a/b"
    assert cache_folder({"XDG_CACHE_HOME": "/x"}) == "/x/bazelw"
    assert cache_folder({}) == os.path.expanduser("~/.cache/bazelw")
    for bad in ("/with blank/x", "/with:colon", "/with$dollar", "/new\nline"):
        with pytest.raises(LocksError, match="BAZELW_CACHE"):
            cache_folder({"BAZELW_CACHE": bad})


def test_a_cache_folder_that_cannot_be_written_to_names_the_variable(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / ("n" * 300)):
        with pytest.raises(LocksError, match=r"cannot write to the cache folder.*BAZELW_CACHE"):
            Scene(tmp_path, BAZELW_CACHE=str(folder)).store.fetch([])
