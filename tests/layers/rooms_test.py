# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""No circle of packages, and no package that everything sees without a reason."""

import json
import os
from pathlib import Path

import pytest

from tests.layers import rooms

SOURCES = json.loads(Path(os.environ["SOURCES"]).read_text(encoding="utf-8"))
FILES = rooms.read_by_packages(SOURCES)


def test_no_circle():
    assert rooms.circles(rooms.needs(FILES)) == []


def test_public_packages():
    assert rooms.public_packages(FILES) == sorted(rooms.PUBLIC)


@pytest.mark.parametrize(
    ("path", "text", "circle"),
    [
        # By a dependency, by a label in Starlark, by a load, by an import.
        (
            "kernels/launch_table/BUILD.bazel",
            'py_library(name = "x", deps = ["//kernels/resources:report"])',
            ("kernels/launch_table", "kernels/resources"),
        ),
        (
            "kernels/qola/qola.bzl",
            'POOL = Label("//kernels/ck_fmha:generate.py")',
            ("kernels/qola", "kernels/ck_fmha"),
        ),
        (
            "toolchains/locks/fetch.bzl",
            'load("//toolchains/debian:debian.bzl", "debian_tree")',
            ("toolchains/locks", "toolchains/debian"),
        ),
        (
            "toolchains/locks/store.py",
            "def late():\n    from toolchains.pypi import fetch\n",
            ("toolchains/locks", "toolchains/pypi"),
        ),
        (
            "toolchains/debian/lock.py",
            "import toolchains.llvm.tree",
            ("toolchains/debian", "toolchains/llvm"),
        ),
        # Of the folders of a folder.
        (
            "aiter/runtime/store/BUILD.bazel",
            'cc_library(name = "x", deps = ["//aiter/runtime/rtc:compiler"])',
            ("aiter/runtime/store", "aiter/runtime/rtc"),
        ),
        # Above those that are one room to others.
        (
            "kernels/archs/archs.py",
            "from python.release import versions",
            ("kernels", "python"),
        ),
        (
            "kernels/norm/BUILD.bazel",
            'cc_library(name = "x", deps = ["//aiter/attention:problem"])',
            ("kernels", "aiter"),
        ),
    ],
)
def test_a_circle_is_found(path: str, text: str, circle: tuple[str, str]):
    added = {"toolchains/llvm/tree.py": "", "python/release/versions.py": ""}
    wrong = {**FILES, **added, path: FILES.get(path, "") + "\n" + text + "\n"}
    found = rooms.circles(rooms.needs(wrong))
    here, there = circle
    assert any(line.startswith(f"{here} -> {there}: {path} needs //") for line in found)


@pytest.mark.parametrize(
    "text",
    [
        'py_test(name = "x", deps = ["//kernels/resources:report"])',
        'py_library(name = "x", testonly = True, deps = ["//kernels/resources:report"])',
        'py_library(name = "x", visibility = ["//kernels/resources:__pkg__"])',
        'package_group(name = "x", packages = ["//kernels/resources"])',
    ],
)
def test_tests_and_visibility_need_nothing(text: str):
    path = "kernels/launch_table/BUILD.bazel"
    assert rooms.circles(rooms.needs({**FILES, path: FILES[path] + "\n" + text + "\n"})) == []


def test_a_package_that_everything_sees_is_found():
    path = "kernels/launch_table/BUILD.bazel"
    text = 'package(default_visibility = ["//visibility:public"])\n'
    assert "kernels/launch_table" in rooms.public_packages({**FILES, path: text})
