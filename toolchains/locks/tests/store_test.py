# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The store of locked files, with servers on the loopback interface and local folders."""

from __future__ import annotations

import hashlib
import os
import pathlib
from collections.abc import Iterable

import pytest

from toolchains.locks import store
from toolchains.locks.errors import LocksError
from toolchains.locks.tests.servers import serve

# A port that nothing listens at.
UNREACHABLE = "http://127.0.0.1:9"


def digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


def locked(contents: bytes, *urls: str) -> store.File:
    return store.File(digest(contents), contents.decode(), lambda: urls)


class Scene:
    def __init__(self, root: pathlib.Path, **environ: str) -> None:
        self.environ = {"BAZELW_CACHE": str(root / "cache"), **environ}
        self.store = store.Store(self.environ)

    def fetch(self, *files: store.File) -> dict[str, store.Failure]:
        failed = self.store.fetch(files)
        # No part of a file is left behind, whatever happened.
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


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_in_trouble_has_not_answered(scene: Scene, status: int) -> None:
    with serve({"/a": b"one"}, status) as server:
        failed = scene.fetch(locked(b"one", f"{server.url}/a"))["one"]
        assert len(server.asked) == 2  # it is asked again
    assert not failed.answered
    assert str(status) in failed.reason


def test_a_server_out_of_reach_is_left_alone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def read(url: str, file: store.File, part: str) -> None:
        tried.append(url)
        raise store._Unreachable("timed out")

    monkeypatch.setattr(store, "_read", read)
    monkeypatch.setattr(store, "_AT_ONCE", 1)
    files = [locked(str(n).encode(), f"http://far.example/{n}") for n in range(20)]
    failed = scene.fetch(*files)
    assert len(failed) == 20
    assert not any(failure.answered for failure in failed.values())
    assert tried == ["http://far.example/0"] * 2


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
    assert store.identity({"b": "1" * 64, "a": "0" * 64}) == expected
    assert store.identity([("a", "0" * 64), ("b", "1" * 64)]) == expected
    assert store.identity({"a": "0" * 64}) != expected


def test_cache_folder() -> None:
    assert store.cache_folder({"BAZELW_CACHE": "/a/b/"}) == "/a/b"
    assert store.cache_folder({"XDG_CACHE_HOME": "/x"}) == "/x/bazelw"
    assert store.cache_folder({}) == os.path.expanduser("~/.cache/bazelw")
    for bad in ("/with blank/x", "/with:colon", "/with$dollar", "/new\nline"):
        with pytest.raises(LocksError, match="BAZELW_CACHE"):
            store.cache_folder({"BAZELW_CACHE": bad})


def test_a_cache_folder_that_cannot_be_written_to_names_the_variable(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocksError, match=r"cannot write to the cache folder.*BAZELW_CACHE"):
        Scene(tmp_path, BAZELW_CACHE=str(tmp_path / "file")).store.fetch([])
