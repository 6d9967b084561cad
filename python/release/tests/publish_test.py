# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Publishing to a folder and to a server: whole, resumable, verified, and by several at once."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from python.release import publish
from python.release.checkout import Commit
from python.release.documents import Release
from python.release.errors import ReleaseError
from python.release.folder import Folder
from python.release.targets import Target
from python.release.tests import builds, dav
from python.release.webdav import WebDav
from toolchains.remote.proxy import Answer, no_fault

LEASE = 0.5
_fork = multiprocessing.get_context("fork")


@dataclasses.dataclass
class Place:
    """A target, and the folder in which its files really lie."""

    make: Callable[[], Target]
    root: Path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dav.Server]:
    with dav.serve(tmp_path / "served") as server:
        yield server


@pytest.fixture(params=["folder", "webdav"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "folder":
        return Place(lambda: Folder(tmp_path / "folder"), tmp_path / "folder")
    server = request.getfixturevalue("server")
    # No process is killed there: a lock that a busy machine keeps for long is not to be taken over.
    return Place(lambda: WebDav(server.write_url), server.root / "attn")


def bring(release: Release, target: Target) -> publish.Report:
    return publish.publish(release, target, lambda text: None)


def index(root: Path) -> list[dict]:
    return json.loads((root / "index.json").read_text())["releases"]


def check_whole(root: Path, releases: int) -> None:
    """All that the index leads to is there, and is what its name says."""
    entries = index(root)
    assert len(entries) == releases
    for entry in entries:
        document = (root / "releases" / entry["key"] / "release.json").read_bytes()
        assert hashlib.sha256(document).hexdigest() == entry["key"]
        for file in json.loads(document)["files"]:
            data = (root / file["path"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == file["sha256"]
            place = f"files/{file['sha256']}/{file['name']}"
            if file["kind"] == "code_object":
                place = f"cas/{file['sha256']}"
            if file["kind"] == "te_prebuilt_digest":
                place = f"files/{data.decode().strip()}/{file['name']}"
            assert file["path"] == place
            assert len(data) == file["size"]


def nothing_is_left(root: Path) -> bool:
    """Whether there is no scratch file, and no lock that somebody could wait for."""
    names = [path.relative_to(root).as_posix() for path in root.rglob("*")]
    assert not [name for name in names if ".part-" in name]
    return not (root / "index.lock").is_dir()


def test_a_release_is_there_as_a_whole(place: Place, tmp_path: Path) -> None:
    release = builds.release(tmp_path / "build")
    report = bring(release, place.make())
    assert report.kept == 0
    assert report.written == len(release.files) + 2
    check_whole(place.root, 1)
    assert nothing_is_left(place.root)


def test_a_second_run_writes_nothing(place: Place, tmp_path: Path) -> None:
    release = builds.release(tmp_path / "build")
    bring(release, place.make())
    before = {p: p.stat().st_mtime_ns for p in place.root.rglob("*") if p.is_file()}
    report = bring(builds.release(tmp_path / "again"), place.make())
    assert (report.written, report.bytes_written) == (0, 0)
    after = {p: p.stat().st_mtime_ns for p in place.root.rglob("*") if p.is_file()}
    before.pop(place.root / "index.lock", None)
    after.pop(place.root / "index.lock", None)
    assert before == after


def test_what_was_damaged_since_is_written_anew(place: Place, tmp_path: Path) -> None:
    release = builds.release(tmp_path / "build")
    bring(release, place.make())
    (archive,) = (file for file in release.files if file.kind == "archive")
    (place.root / archive.path).write_bytes(b"cut")
    assert bring(release, place.make()).written == 1
    check_whole(place.root, 1)


def test_releases_share_what_is_equal_and_stand_beside_each_other(
    place: Place, tmp_path: Path
) -> None:
    bring(builds.release(tmp_path / "a"), place.make())
    later = Commit("decade" + "0" * 34, builds.COMMIT.time + 1)
    report = bring(builds.release(tmp_path / "b", later), place.make())
    assert report.kept >= len(builds.ABIS) + 3
    check_whole(place.root, 2)
    assert [entry["commit"] for entry in index(place.root)] == [builds.COMMIT.sha, later.sha]


def test_the_order_of_publishing_does_not_show(place: Place, tmp_path: Path) -> None:
    later = Commit("decade" + "0" * 34, builds.COMMIT.time + 1)
    one, two = builds.release(tmp_path / "a"), builds.release(tmp_path / "b", later)
    other = Folder(tmp_path / "other")
    for release in (one, two):
        bring(release, place.make())
    for release in (two, one):
        bring(release, other)
    assert (place.root / "index.json").read_bytes() == (other.root / "index.json").read_bytes()


def test_the_same_commit_with_other_bytes_is_refused(place: Place, tmp_path: Path) -> None:
    bring(builds.release(tmp_path / "a"), place.make())
    before = (place.root / "index.json").read_bytes()
    with pytest.raises(ReleaseError, match=r"with other bytes.*compare them"):
        bring(builds.release(tmp_path / "b", library=b"another"), place.make())
    assert (place.root / "index.json").read_bytes() == before


def test_another_builder_of_the_same_bytes_is_welcome(place: Place, tmp_path: Path) -> None:
    bring(builds.release(tmp_path / "a"), place.make())
    bring(builds.release(tmp_path / "b", builder="urn:y:builder"), place.make())
    check_whole(place.root, 2)


def test_modified_files_are_no_contradiction(place: Place, tmp_path: Path) -> None:
    bring(builds.release(tmp_path / "a"), place.make())
    dirty = dataclasses.replace(builds.COMMIT, modified=("README.md",))
    bring(builds.release(tmp_path / "b", dirty, library=b"another"), place.make())
    assert sorted(entry["modified"] for entry in index(place.root)) == [False, True]


@pytest.mark.parametrize(
    "text", [b"<html>Sign in</html>", b"[]", b'{"format": 9}', b'{"format": 1}']
)
def test_what_is_no_index_is_not_written_over(place: Place, tmp_path: Path, text: bytes) -> None:
    place.root.mkdir(exist_ok=True)
    (place.root / "index.json").write_bytes(text)
    with pytest.raises(ReleaseError, match=r"index\.json"):
        bring(builds.release(tmp_path / "build"), place.make())
    assert (place.root / "index.json").read_bytes() == text


def test_publishers_at_once_all_get_into_the_index(place: Place, tmp_path: Path) -> None:
    releases = [
        builds.release(
            tmp_path / f"build{number}", Commit(f"{number:040x}", builds.COMMIT.time + number)
        )
        for number in range(6)
    ]
    errors: list[BaseException] = []

    def run(release: Release) -> None:
        try:
            bring(release, place.make())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(release,)) for release in releases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    check_whole(place.root, 6)
    assert nothing_is_left(place.root)


def _run_and_kill(release: Release, server: dav.Server, request: int) -> int:
    """Publishes in a process that is killed at its n-th request. Returns its exit status."""
    done = 0
    process = _fork.Process(target=bring, args=(release, WebDav(server.write_url, LEASE)))

    def fault(method: str, path: str) -> None:
        nonlocal done
        done += 1
        # Before the request is acted upon: one more, and the file would be there.
        if done == request and process.pid:
            os.kill(process.pid, signal.SIGKILL)

    server.plan = fault
    process.start()
    process.join()
    server.plan = no_fault
    assert process.exitcode is not None
    return process.exitcode


def test_a_publisher_that_is_killed_anywhere_is_gone_on_from(
    server: dav.Server, tmp_path: Path
) -> None:
    release = builds.release(tmp_path / "build")
    root = server.root / "attn"
    killed = 0
    # Each kill is at a later request of a run that begins where the last one ended.
    for request in range(1, 240, 9):
        status = _run_and_kill(release, server, request)
        if (root / "index.json").exists():
            check_whole(root, 1)
        if status == 0:
            break
        killed += 1
    else:
        pytest.fail("it never came to its end")
    assert killed >= 5
    check_whole(root, 1)
    assert nothing_is_left(root)
    # Files that were there were not sent again, but for the one file at which each kill came.
    sent = [path for path in server.paths("PUT") if "/files/" in path]
    refused_first = [path for path in server.paths("MKCOL") if "/files/" in path]
    assert len(sent) <= len(release.files) + killed + len(refused_first)
    assert bring(release, WebDav(server.write_url, LEASE)).written == 0


def test_only_what_is_missing_is_sent(server: dav.Server, tmp_path: Path) -> None:
    release = builds.release(tmp_path / "build")
    bring(release, WebDav(server.write_url, LEASE))
    missing = release.files[0].path
    (server.root / "attn" / missing).unlink()
    server.requests.clear()
    bring(release, WebDav(server.write_url, LEASE))
    assert server.paths("PUT") == [f"/attn/{missing}", "/attn/index.lock/holder"]


def test_a_server_that_keeps_other_bytes_is_found_out(server: dav.Server, tmp_path: Path) -> None:
    def fault(method: str, path: str) -> Answer | None:
        keeps = method == "GET" and path.endswith(".whl")
        return Answer(200, b"other bytes") if keeps else None

    server.plan = fault
    with pytest.raises(ReleaseError, match=r"\.whl was written, and has the sha256"):
        bring(builds.release(tmp_path / "build"), WebDav(server.write_url, LEASE))
    assert not (server.root / "attn/index.json").exists()


@pytest.mark.parametrize(
    ("method", "name"),
    [("GET", "index.json"), ("PUT", "index.lock/"), ("GET", "index.lock/holder"), ("MOVE", "")],
)
def test_a_publisher_whose_lock_was_taken_over_begins_again(
    server: dav.Server, tmp_path: Path, method: str, name: str
) -> None:
    """It stalls before one of its requests; another one enters its own meanwhile."""
    one = builds.release(tmp_path / "a")
    two = builds.release(tmp_path / "b", Commit("decade" + "0" * 34, builds.COMMIT.time + 1))
    interrupted = False

    def fault(asked_method: str, path: str) -> None:
        nonlocal interrupted
        asked = f"{asked_method} {path}"
        if asked.startswith(f"{method} /attn/{name}") and not interrupted:
            interrupted = True
            bring(two, WebDav(server.write_url, 0.1))

    server.plan = fault
    bring(one, WebDav(server.write_url, 0.1))
    assert interrupted
    check_whole(server.root / "attn", 2)


def test_a_folder_waits_for_a_holder_and_then_says_who(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "folder", patience=0.1)
    with (
        folder.lock("index.lock"),
        pytest.raises(ReleaseError, match=r"index\.lock is held by another process"),
        folder.lock("index.lock"),
    ):
        pass
    with folder.lock("index.lock") as replace:
        assert replace("index.json", b"now")


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReleaseError, match=r"make the folder .*file/below"):
        Folder(tmp_path / "file/below")
    folder = Folder(tmp_path / "folder")
    (tmp_path / "folder/files").write_text("in the way")
    with pytest.raises(ReleaseError, match=r"cannot (read|make)"):
        bring(builds.release(tmp_path / "build"), folder)
    assert not (tmp_path / "folder/index.json").exists()
