# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes a recipe: the program of the rule code_object_recipe. The compiler's flags come behind
`--`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from kernels.code_object.spec import Recipe

_HEADERS = flags.DEFINE_string("headers", None, "the header tree's digest file", required=True)
_TOOLCHAIN = flags.DEFINE_string("toolchain", None, "the toolchain's identity", required=True)
_OUT = flags.DEFINE_string("out", None, "the recipe's file", required=True)


def main(arguments: Sequence[str]) -> None:
    headers = Path(_HEADERS.value).read_text("ascii").strip()
    recipe = Recipe(tuple(arguments[1:]), headers, _TOOLCHAIN.value)
    Path(_OUT.value).write_bytes(recipe.serialised())


if __name__ == "__main__":
    app.run(main)
