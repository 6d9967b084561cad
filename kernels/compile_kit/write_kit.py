# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes what a compile kit has beside the inputs of its compiles: its description, which
aiter/runtime/kit/kit.h describes, and the pack of its sources."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from absl import app, flags

from kernels.code_object.spec import Recipe
from kernels.compile_kit.by_digest import packer_lines

_VERSION = flags.DEFINE_string("version", None, "of the library that it is for", required=True)
_ARCHS = flags.DEFINE_multi_string("arch", [], "that it compiles for")
_RECIPES = flags.DEFINE_multi_string("recipe", [], "of its code objects, files")
_SOURCES = flags.DEFINE_multi_string("source", [], "of its code objects, files")
_PACKER = flags.DEFINE_string("packer", None, "the program: packer OUT LIST", required=True)
_DESCRIPTION = flags.DEFINE_string("description", None, "to be written", required=True)
_PACK = flags.DEFINE_string("pack", None, "of the sources, to be written", required=True)


def description(version: str, archs: Iterable[str], recipes: Sequence[Recipe]) -> str:
    """The file `kit`. Raises ValueError where the recipes are of several toolchains, or none."""
    toolchains = sorted({recipe.toolchain for recipe in recipes})
    if len(toolchains) != 1:
        raise ValueError(f"a kit is of one toolchain, and not of {len(toolchains)}: {toolchains}")
    lines = ["aiter-attn-compile-kit 1", f"version {version}", f"toolchain {toolchains[0]}"]
    lines += [f"arch {arch}" for arch in sorted(set(archs))]
    lines += [f"headers {headers}" for headers in sorted({recipe.headers for recipe in recipes})]
    return "\n".join([*lines, "end", ""])


def main(_arguments: Sequence[str]) -> int:
    recipes = [Recipe.parse(Path(path).read_bytes()) for path in _RECIPES.value]
    try:
        text = description(_VERSION.value, _ARCHS.value, recipes)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    Path(_DESCRIPTION.value).write_text(text, "ascii")
    listed = Path(_PACK.value).with_suffix(".list")
    listed.write_text(packer_lines(map(Path, _SOURCES.value)), "utf-8")
    return subprocess.run([_PACKER.value, _PACK.value, listed], check=False).returncode


if __name__ == "__main__":
    app.run(main)
