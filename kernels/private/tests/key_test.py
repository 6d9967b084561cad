# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The key changes with each of its ingredients, and with nothing else."""

import itertools
import subprocess
import sys

from kernels.private import header_digest, key

INGREDIENTS = {
    "source": b"source",
    "headers": "0" * 64,
    "toolchain": "1" * 64,
    "arch": "gfx942",
    "flags": ["-O3", "-DX=1"],
}


def test_form():
    value = key.code_object_key(**INGREDIENTS)
    assert len(value) == 64
    assert set(value) <= set("0123456789abcdef")


def test_pinned():
    """A key is forever: a change of its form must come with a new KEY_FORMAT."""
    assert key.KEY_FORMAT == 1
    assert key.code_object_key(**INGREDIENTS) == (
        "c7658226ea5b48e620d89184fdae16d67e5836befee55d1d9c7eb8fe6a2cb259"
    )


def test_every_ingredient_matters(monkeypatch):
    changed = {
        "source": b"source\n",
        "headers": "2" * 64,
        "toolchain": "3" * 64,
        "arch": "gfx950",
        "flags": ["-O3", "-DX=2"],
    }
    keys = [key.code_object_key(**INGREDIENTS)]
    keys += [key.code_object_key(**{**INGREDIENTS, name: changed[name]}) for name in changed]
    keys.append(key.code_object_key(**{**INGREDIENTS, "flags": ["-DX=1", "-O3"]}))
    keys.append(key.code_object_key(**{**INGREDIENTS, "flags": ["-O3 -DX=1"]}))
    monkeypatch.setattr(key, "KEY_FORMAT", 2)
    keys.append(key.code_object_key(**INGREDIENTS))
    for one, other in itertools.combinations(keys, 2):
        assert one != other


def test_nothing_else_matters():
    assert key.code_object_key(**INGREDIENTS) == key.code_object_key(**INGREDIENTS)


def test_header_digest_is_of_names_and_contents():
    digest = header_digest.header_tree_digest
    tree = {"a.h": b"1", "b/c.h": b"2"}
    assert digest(tree) == digest(dict(reversed(tree.items())))
    different = [
        digest(tree),
        digest({"a.h": b"1"}),
        digest({"a.h": b"1", "b/c.h": b"3"}),
        digest({"a.h": b"1", "b/d.h": b"2"}),
        digest({"a.h": b"2", "b/c.h": b"1"}),
        digest({}),
    ]
    assert len(set(different)) == len(different)


def test_command_lines_do_not_see_where_the_files_lie(tmp_path):
    keys = []
    for place in ("here", "there"):
        folder = tmp_path / place
        folder.mkdir()
        (folder / "x.h").write_text("header")
        (folder / "x.cpp").write_text("source")
        files = folder / "files"
        files.write_text(f"include/x.h={folder}/x.h\n")
        run = [sys.executable, header_digest.__file__, "--out", str(folder / "digest")]
        subprocess.run([*run, f"@{files}"], check=True)
        run = [sys.executable, key.__file__, "--source", str(folder / "x.cpp")]
        run += ["--headers", str(folder / "digest"), "--toolchain", "t", "--arch", "gfx942"]
        subprocess.run([*run, "--out", str(folder / "key"), "--", "-O3", "--x"], check=True)
        keys.append((folder / "key").read_text())
    assert keys[0] == keys[1]
    expected = key.code_object_key(
        source=b"source",
        headers=header_digest.header_tree_digest({"include/x.h": b"header"}),
        toolchain="t",
        arch="gfx942",
        flags=["-O3", "--x"],
    )
    assert keys[0] == expected + "\n"
