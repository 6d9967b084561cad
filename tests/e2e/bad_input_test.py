# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Wrong flags, files and locks: errors that name the value, what is allowed, the next step."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.e2e import clone


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clone.Clone]:
    made = clone.Clone(tmp_path_factory.mktemp("bad"), "input", clone.shared_disk_cache())
    yield made
    made.close()


@pytest.fixture
def edit(project: clone.Clone):
    """Replaces text of a file for one test."""
    saved: dict[str, str] = {}

    def replace(path: str, old: str, new: str) -> None:
        text = saved.setdefault(path, (project.root / path).read_text())
        assert old in text
        (project.root / path).write_text(text.replace(old, new, 1))

    yield replace
    for path, text in saved.items():
        (project.root / path).write_text(text)


def refused(result: subprocess.CompletedProcess, *words: str) -> None:
    assert result.returncode != 0
    for word in words:
        assert word in result.stdout, f"{word!r} is not in:\n{result.stdout[-3000:]}"
    assert not re.search(r'File ".*\.py", line', result.stdout), result.stdout[-3000:]


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--//kernels:archs=gfx9999", ("gfx9999", "gfx942", "gfx950")),
        ("--//kernels:archs=gfx942,gfx94", ("gfx94", "gfx942")),
        ("--//kernels:archs=", ("gfx942",)),
        ("--//kernels:variants=cor", ("cor", "core", "smoke")),
        ("--//kernels/ck_fmha:patches=more", ("more", "default", "none")),
        ("--//toolchains/python:abi=cp27", ("cp27", "cp311", "cp313", "cp314")),
        ("--//aiter:namespace=9lives", ("9lives", "identifier")),
    ],
)
def test_unknown_flag_values(project: clone.Clone, flag: str, words: tuple[str, ...]) -> None:
    refused(project.bazel("build", "--nobuild", flag, "//python:attn_wheel", expect=None), *words)


def test_unknown_key_in_a_variant_set(project: clone.Clone, edit) -> None:
    edit("kernels/variants/smoke.toml", "dtype", "dtipe")
    smoke = "--//kernels:variants=smoke"
    refused(
        project.bazel("build", "--nobuild", smoke, "//python:attn_wheel", expect=None),
        "smoke.toml",
        "dtipe",
        "dtype",
    )
    # It breaks its own set and no other.
    project.bazel("build", "--nobuild", "//kernels:launch_table")


def test_wrong_sha256_of_a_python_distribution(project: clone.Clone, edit) -> None:
    lock = json.loads((project.root / "toolchains/pypi/lock.json").read_text())
    digest = lock["distributions"]["pybind11"]["files"]["any"]["sha256"]
    edit("toolchains/pypi/lock.json", digest, "0" * 64)
    refused(
        project.bazel("build", "--nobuild", "//python:attn_wheel", expect=None),
        "pybind11",
        "0" * 64,
        "--relock pypi",
    )


def test_damaged_digest_in_the_debian_lock(project: clone.Clone, edit) -> None:
    lock = json.loads((project.root / "toolchains/debian/lock.json").read_text())
    entry = lock["groups"]["dlpack"]["packages"][0]
    edit("toolchains/debian/lock.json", entry["sha256"], "not-a-digest")
    refused(
        project.bazel("build", "--nobuild", "//python:attn_wheel", expect=None),
        entry["name"],
        "not-a-digest",
        "--relock debian",
    )


def test_unreachable_mirror(project: clone.Clone, edit) -> None:
    # Another digest, so that no repository cache answers for the mirror.
    lock = json.loads((project.root / "toolchains/debian/lock.json").read_text())
    entry = lock["groups"]["dlpack"]["packages"][0]
    edit("toolchains/debian/lock.json", entry["sha256"], "1" * 64)
    # One repository alone: a build asks for many at once, and any of them may be the first to fail.
    result = project.bazel(
        "fetch",
        "--repo=@dlpack",
        "--repo_env=AITER_ATTN_DEBIAN_MIRROR=http://127.0.0.1:9",
        "--repo_env=AITER_ATTN_STRICT=1",
        expect=None,
    )
    refused(result, entry["name"], "127.0.0.1:9")
