# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""bazelw from an empty cache, with the locked packages in a local archive."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from toolchains.bazel.tests.checkout import ON_DEBIAN, Checkout, locked, make_archive

SETTING_UP = "setting up Bazel"

pytestmark = ON_DEBIAN


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return make_archive(tmp_path_factory.mktemp("archive"))


@pytest.fixture
def checkout(tmp_path: pathlib.Path, archive: pathlib.Path) -> Iterator[Checkout]:
    yield Checkout(tmp_path, archive)
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_set_up_once_then_silence(checkout: Checkout, tmp_path: pathlib.Path) -> None:
    told = checkout.works()
    assert SETTING_UP in told
    assert "is ready" in told
    assert checkout.works() == ""
    # Through a link, from another folder.
    link = tmp_path / "link"
    link.symlink_to(checkout.root / "bazelw")
    got = subprocess.run(
        [sys.executable, link, "--version"],
        env=checkout.environ(),
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert (got.stdout.strip(), got.stderr) == (f"bazel {checkout.version}", "")
    # No file of the checkout was touched, no byte code written.
    assert not list(checkout.root.rglob("__pycache__"))
    # A strict run takes what was made of the locked packages.
    assert checkout.run(AITER_ATTN_STRICT="1").stderr == ""
    # Every program and library uses the bundle's own loader and C library.
    (done,) = checkout.complete()
    client = (done.parent / "usr/bin/bazel").read_bytes()
    assert f"{done.parent}/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2".encode() in client
    # An incomplete set-up is made anew, from the packages kept.
    done.unlink()
    assert SETTING_UP in checkout.run(AITER_ATTN_DEBIAN_MIRROR="file:///nowhere").stderr
    assert checkout.works() == ""


def test_killed_half_way(checkout: Checkout) -> None:
    process = checkout.start()
    checkout.wait_until_unpacking(process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert checkout.left_behind() != []
    assert checkout.complete() == []
    assert SETTING_UP in checkout.works()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_half_way(checkout: Checkout, number: signal.Signals) -> None:
    process = checkout.start()
    checkout.wait_until_unpacking(process)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.splitlines()[-1] == "bazelw: interrupted; nothing half-made is left behind"
    assert checkout.left_behind() == []
    assert checkout.complete() == []


def test_two_at_once_make_one(checkout: Checkout) -> None:
    both = [checkout.start(), checkout.start()]
    said = [p.communicate(timeout=240) for p in both]
    assert [out.strip() for out, _ in said] == [f"bazel {checkout.version}"] * 2
    told = "".join(err for _, err in said)
    assert told.count("is ready") == 1, told
    assert told.count("waiting for another bazelw") == 1, told
    assert len(checkout.complete()) == 1


def test_wrong_digest(checkout: Checkout) -> None:
    package = locked()[0]
    checkout.damage_lock(package.sha256, "0" * 64)
    got = checkout.run()
    assert got.returncode == 1
    for part in (package.name, package.sha256, "not the locked " + "0" * 64):
        assert part in got.stderr
    assert checkout.complete() == []
    assert checkout.left_behind() == []


def test_vanished_package_where_strict(checkout: Checkout) -> None:
    package = locked()[0]
    checkout.damage_lock(package.path, package.path.replace("_amd64", "0_amd64"))
    checkout.damage_lock(package.sha256, "0" * 64)
    got = checkout.run(AITER_ATTN_STRICT="1")
    assert got.returncode == 1
    last = got.stderr.splitlines()[-1]
    for part in (package.name, "AITER_ATTN_STRICT=1 allows no others", "./bazelw --relock debian"):
        assert part in last


def test_corrupted_lock_entry(checkout: Checkout) -> None:
    package = locked()[0]
    checkout.damage_lock(package.sha256, package.sha256[:-1])
    got = checkout.run()
    assert got.returncode == 1
    (line,) = got.stderr.splitlines()
    for part in ("error:", "lock.json", package.name, "sha256", "./bazelw --relock debian"):
        assert part in line


def test_unreachable_archive(checkout: Checkout) -> None:
    got = checkout.run(AITER_ATTN_DEBIAN_MIRROR="http://127.0.0.1:9/debian")
    assert got.returncode == 1
    last = got.stderr.splitlines()[-1]
    for part in (
        "error:",
        "http://127.0.0.1:9/debian",
        "AITER_ATTN_DEBIAN_MIRROR",
        "set AITER_ATTN_MIRROR to a folder that ./bazelw --vendor DIR wrote",
    ):
        assert part in last


def test_version_that_the_lock_does_not_have(checkout: Checkout) -> None:
    (checkout.root / ".bazelversion").write_text("99.1.0\n")
    got = checkout.run()
    assert got.returncode == 1
    assert ".bazelversion asks for 99.1.0" in got.stderr


def test_no_dpkg(checkout: Checkout, tmp_path: pathlib.Path) -> None:
    got = checkout.run(PATH=str(tmp_path))
    assert got.returncode == 1
    (line,) = got.stderr.splitlines()
    assert "no dpkg-deb here" in line
    assert "bazelisk" in line


def test_bazelisk_gets_the_arguments(checkout: Checkout, tmp_path: pathlib.Path) -> None:
    bazelisk = tmp_path / "bin" / "bazelisk"
    bazelisk.parent.mkdir()
    bazelisk.write_text('#!/bin/sh\necho "bazelisk $*"\n')
    bazelisk.chmod(0o755)
    path = f"{bazelisk.parent}:{os.environ['PATH']}"
    assert checkout.run(BAZELW_MODE="auto", PATH=path).stdout == "bazelisk --version"
