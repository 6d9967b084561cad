# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The proof that inputs are locked notices others: bytes, names and templates."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.e2e import action_graph, origins

LOCKED = b"int locked;\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with templates and patches."""
    root = tmp_path / "checkout"
    files = {
        "toolchains/llvm/tool.sh": "#!/bin/sh\nexec @PROGRAMS@clang\n",
        "toolchains/python/python.sh.tpl": "#!/bin/sh\n",
        "kernels/ck_fmha/patches/01.patch": "--- a/include/p.hpp\n+++ b/include/p.hpp\n",
        "kernels/ck_fmha/patches/kind/02.patch": "--- a/include/q.hpp\n+++ b/include/q.hpp\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def archives(tmp_path: Path) -> dict[Path, str]:
    wheel, sdist = tmp_path / "one", tmp_path / "two"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("a.py", b"wheel")
    with tarfile.open(sdist, "w:gz") as made:
        member = tarfile.TarInfo("x/a.h")
        member.size = len(LOCKED)
        made.addfile(member, io.BytesIO(LOCKED))
    return {wheel: "a-1-py3-none-any.whl", sdist: "x-1.tar.gz"}


@pytest.mark.parametrize(
    ("path", "data", "explained"),
    [
        ("python/a.py", b"", True),
        ("python/untracked.py", b"", False),
        ("external/x/a.h", LOCKED, True),
        ("external/y/renamed.h", LOCKED, True),
        ("external/y/a.py", b"wheel", True),
        # One byte of a locked file is another.
        ("external/x/a.h", LOCKED.replace(b"locked", b"lockee"), False),
        ("external/m~llvm/bin/clang", b"#!/bin/sh\nexec usr/bin/clang\n", True),
        ("external/m~llvm/bin/clang", b"#!/bin/sh\nexec usr/bin/clang\nrm x\n", False),
        ("external/ck~composable_kernel/include/p.hpp", b"new", True),
        ("external/ck~composable_kernel/include/q.hpp", b"new", True),
        ("external/ck~composable_kernel/include/other.hpp", b"new", False),
        ("external/bazel_tools/host.h", b"#define HOST 1\n", False),
    ],
)
def test_an_input(
    tmp_path: Path,
    checkout: Path,
    archives: dict[Path, str],
    path: str,
    data: bytes,
    explained: bool,
) -> None:
    file = tmp_path / "folder" / path
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    left = origins.unexplained([path], tmp_path / "folder", checkout, {"python/a.py"}, archives)
    assert left == ([] if explained else [path])


def graph(source: str) -> dict:
    """A compile of `source` to a.o."""
    return {
        "pathFragments": [
            {"id": 1, "label": "bazel-out"},
            {"id": 2, "label": "a.o", "parentId": 1},
            {"id": 3, "label": source, "parentId": 1},
            {"id": 4, "label": "a.c"},
        ],
        "artifacts": [{"id": i, "pathFragmentId": i + 1} for i in (1, 2, 3)],
        "depSetOfFiles": [
            {"id": 1, "directArtifactIds": [2], "transitiveDepSetIds": [2]},
            {"id": 2, "directArtifactIds": [3]},
        ],
        "actions": [
            {
                "mnemonic": "CppCompile",
                "arguments": ["cc"],
                "inputDepSetIds": [1],
                "outputIds": [1],
                "environmentVariables": [{"key": "PWD", "value": "/proc/self/cwd"}],
            },
            {"mnemonic": "FileWrite", "outputIds": [2] if source == "a.h" else []},
        ],
    }


def test_leaves_of_an_action_graph() -> None:
    actions = action_graph.parse(graph("a.h"))
    assert actions[0].inputs == {"bazel-out/a.h", "a.c"}
    assert actions[0].environment == {"PWD": "/proc/self/cwd"}
    assert action_graph.leaves(actions) == {"a.c"}


def test_a_generated_input_that_no_action_makes() -> None:
    with pytest.raises(ValueError, match=r"bazel-out/stale\.h"):
        action_graph.leaves(action_graph.parse(graph("stale.h")))
