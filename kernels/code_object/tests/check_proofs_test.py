# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The check of proofs before anything is compiled."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernels.code_object import check_proofs
from kernels.code_object.spec import Recipe

FLAGS = ["-mllvm", "-x"]


@pytest.fixture
def kernel(tmp_path: Path) -> dict[str, Any]:
    """A kernel whose proof holds."""
    recipe = Recipe(("-O3",), "0" * 64, "1" * 64)
    (tmp_path / "a.cpp").write_text("source")
    (tmp_path / "a.recipe").write_bytes(recipe.serialised())
    return {
        "instance": "a",
        "arch": "gfx942",
        "source": str(tmp_path / "a.cpp"),
        "recipe": str(tmp_path / "a.recipe"),
        "flags": FLAGS,
        "key": recipe.spec(b"source", "gfx942", FLAGS).key(),
    }


def run(kernels: list[dict[str, Any]], folder: Path, of: str = "groups") -> tuple[list[str], str]:
    """Those of another compile, by the program, and what it says."""
    (folder / "kernels.json").write_text(json.dumps(kernels))
    options = [f"--kernels={folder}/kernels.json", f"--out={folder}/out.json", f"--of={of}"]
    command = [sys.executable, check_proofs.__file__, *options]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads((folder / "out.json").read_text()), said


def test_nothing_is_said_of_proofs_that_hold(kernel: dict[str, Any], tmp_path: Path):
    assert run([kernel], tmp_path) == ([], "")


@pytest.mark.parametrize("field", ["source", "headers", "toolchain", "flags"])
def test_another_compile_is_said_in_one_line(kernel: dict[str, Any], tmp_path: Path, field: str):
    other = kernel | {"instance": "b", "recipe": str(tmp_path / "b.recipe")}
    recipe = Recipe.parse(Path(kernel["recipe"]).read_bytes())
    changed = {
        "headers": Recipe(recipe.flags, "2" * 64, recipe.toolchain),
        "toolchain": Recipe(recipe.flags, recipe.headers, "2" * 64),
        "flags": Recipe(("-O2",), recipe.headers, recipe.toolchain),
    }
    Path(other["recipe"]).write_bytes(changed.get(field, recipe).serialised())
    if field == "source":
        other["source"] = str(tmp_path / "b.cpp")
        Path(other["source"]).write_text("source // touched")
    found, said = run([kernel, other, other | {"instance": "c"}], tmp_path)
    assert found == ["b", "c"]
    assert said.startswith("gfx942: 2 of 3 proven kernels are compiled as unproven, with keys that")
    assert said.count("\n") == 1
    assert "prove_groups" in said


def test_options_of_another_compile_are_said_in_one_line(kernel: dict[str, Any], tmp_path: Path):
    assert run([kernel], tmp_path, "options") == ([], "")
    stale = kernel | {"instance": "b", "key": "0" * 64}
    found, said = run([kernel, stale], tmp_path, "options")
    assert found == ["b"]
    assert said.startswith("gfx942: 1 of 2 kernels with options of their own have those of another")
    assert said.count("\n") == 1
    assert "./bazelw run //kernels:choose_options" in said
