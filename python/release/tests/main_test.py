# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The program //:release, started as Bazel starts it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from python.release import main
from python.release.tests import builds, dav

LOCKS = {
    "debian": {
        "groups": {"llvm": {"packages": [{"name": "clang-22", "version": "1", "sha256": "a" * 64}]}}
    },
    "npm": {"packages": {}},
    "pypi": {
        "distributions": {"flash-attn": {"version": "2", "files": {"sdist": {"sha256": "d" * 64}}}}
    },
}


@pytest.fixture
def runfiles(tmp_path: Path) -> Path:
    """Files that the program finds in the folder that Bazel starts it in."""
    root = tmp_path / "runfiles"
    builds.build(root)
    for source, lock in LOCKS.items():
        folder = root / "toolchains" / source
        folder.mkdir(parents=True)
        (folder / "lock.json").write_text(json.dumps(lock))
    (root / "toolchains/sbom").mkdir()
    for name in ("contents.toml", "copyrights.json"):
        shutil.copy(f"toolchains/sbom/{name}", root / "toolchains/sbom")
    return root


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    builds.commit(tmp_path / "checkout", "feat: a", a="1")
    return tmp_path / "checkout"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dav.Server]:
    with dav.serve(tmp_path / "served") as server:
        yield server


def run(
    runfiles: Path, checkout: Path, *arguments: str, **environ: str
) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [sys.executable, main.__file__, "--artefacts=artefacts.json", *arguments],
        cwd=runfiles,
        env={
            "BUILD_WORKING_DIRECTORY": str(checkout.parent),
            "BUILD_WORKSPACE_DIRECTORY": str(checkout),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "HOME": str(checkout.parent),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": ":".join(os.path.abspath(path) for path in sys.path if path),
            **environ,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "s3cret" not in done.stdout + done.stderr
    return done


def test_it_publishes_and_says_where(runfiles: Path, checkout: Path) -> None:
    done = run(runfiles, checkout, "--to=out", "--builder=https://ci.example/x")
    assert done.returncode == 0, done.stderr
    out = checkout.parent / "out"
    (entry,) = json.loads((out / "index.json").read_text())["releases"]
    assert f"releases/{entry['key']}/release.json" in done.stdout.splitlines()[-1]
    document = json.loads((out / f"releases/{entry['key']}/release.json").read_text())
    (statement,) = (f for f in document["files"] if f["kind"] == "provenance")
    text = (out / statement["path"]).read_text()
    assert "https://ci.example/x" in text
    assert "d" * 64 in text, "what the locks name"
    again = run(runfiles, checkout, "--to=out", "--builder=https://ci.example/x")
    assert again.stdout.startswith("release: 0 files written")


def test_a_dirty_checkout(runfiles: Path, checkout: Path) -> None:
    (checkout / "a").write_text("2")
    done = run(runfiles, checkout, "--to=out")
    assert done.returncode == 1
    assert done.stderr.startswith("release: error: 1 files differ from commit")
    assert not (checkout.parent / "out").exists()
    assert run(runfiles, checkout, "--to=out", "--dirty").returncode == 0


def test_a_url_that_no_other_user_sees(runfiles: Path, checkout: Path, server: dav.Server) -> None:
    refused = run(runfiles, checkout, AITER_ATTN_RELEASE_TO=server.read_url)
    assert refused.returncode == 1
    assert "HTTP 401" in refused.stderr
    done = run(runfiles, checkout, AITER_ATTN_RELEASE_TO=server.write_url)
    assert done.returncode == 0, done.stderr
    assert (server.root / "attn/index.json").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("where to?", "--to=FOLDER|URL", "AITER_ATTN_RELEASE_TO")),
        (("--to=s3://user:s3cret@x/y",), ("'s3'", "folder", "https")),
        (("--to=out", "--source=https://user:s3cret@x/y"), ("--source", "credentials")),
        (("--to=out", "--builder=me"), ("--builder=me", "URI")),
        (("--to=out", "more"), ("'more'", "only options")),
        (("--too=out",), ("too",)),
    ],
)
def test_wrong_arguments(
    runfiles: Path, checkout: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    done = run(runfiles, checkout, *arguments)
    assert done.returncode != 0
    for word in words:
        assert word in done.stderr + done.stdout
    assert not (checkout.parent / "out").exists()


def test_a_missing_wheel(runfiles: Path, checkout: Path) -> None:
    (runfiles / builds.wheel_name("cp313")).unlink()
    done = run(runfiles, checkout, "--to=out")
    assert done.returncode == 1
    assert "cp313" in done.stderr
    assert not (checkout.parent / "out").exists()
