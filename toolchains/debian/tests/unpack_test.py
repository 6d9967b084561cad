# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The script that tidies an unpacked tree."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from toolchains.debian import lock

SCRIPT = pathlib.Path(lock.__file__).absolute().parent / "private" / "unpack.sh"


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    root = tmp_path / "tree"
    for name in ("usr/bin/tool", "usr/lib/a/liba.so.1", "usr/share/doc/a/read me", "etc/a.conf"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "lib64").mkdir()
    (root / "lib64/liba.so").symlink_to("/usr/lib/a/liba.so.1")
    (root / "usr/lib/a/libb.so").symlink_to(f"{root}/usr/lib/a/liba.so.1")
    (root / "usr/lib/a/liba.so").symlink_to("liba.so.1")
    (root / "top").symlink_to("/usr/lib/a")
    (root / "dangling").symlink_to("/usr/nowhere")
    return root


def tidy(root: pathlib.Path, keep: str = "", exclude: str = "") -> list[str]:
    subprocess.run(["sh", SCRIPT, keep, exclude], cwd=root, check=True)
    return sorted(
        os.path.relpath(os.path.join(base, name), root)
        for base, folders, names in os.walk(root)
        for name in names + [f for f in folders if os.path.islink(os.path.join(base, f))]
    )


def test_links_stay_inside_and_dangling_ones_go(tree: pathlib.Path) -> None:
    files = tidy(tree)
    assert "dangling" not in files
    assert os.readlink(tree / "lib64/liba.so") == "../usr/lib/a/liba.so.1"
    assert os.readlink(tree / "usr/lib/a/libb.so") == "../../../usr/lib/a/liba.so.1"
    assert os.readlink(tree / "usr/lib/a/liba.so") == "liba.so.1"
    assert os.readlink(tree / "top") == "usr/lib/a"
    assert (tree / "lib64/liba.so").read_text() == "usr/lib/a/liba.so.1"


def test_keep_and_exclude(tree: pathlib.Path) -> None:
    assert tidy(tree, keep="usr/*", exclude="usr/share/*|*.so") == [
        "usr/bin/tool",
        "usr/lib/a/liba.so.1",
    ]
    assert not (tree / "etc").exists()
    assert not (tree / "usr/share").exists()


def test_exclude_alone_and_names_with_blanks(tree: pathlib.Path) -> None:
    files = tidy(tree, exclude="usr/share/doc/*")
    assert "usr/share/doc/a/read me" not in files
    assert "etc/a.conf" in files


def test_links_to_what_was_excluded_go(tree: pathlib.Path) -> None:
    assert tidy(tree, keep="usr/lib/a/*|usr/bin/*", exclude="*/liba.so.1") == ["usr/bin/tool"]
