# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Says, before they are compiled, which kernels' proofs are of another compile: the program of
proofs.bzl.

A proof holds the key of a kernel's own compile. Where compiler, source, headers or flags are others
by now, so is the key, and nothing is known of what the kernel's group gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

from kernels.code_object.spec import Recipe

_KERNELS = flags.DEFINE_string("kernels", None, "JSON, see unproven()", required=True)
_OUT = flags.DEFINE_string("out", None, "JSON, the unproven kernels, by name", required=True)


def unproven(kernels: Iterable[Mapping[str, Any]]) -> list[str]:
    """Those whose proof is of another compile, sorted. Each has

    instance, arch  of it
    source, recipe  files, as describe.py takes them
    flags           of the compile that the recipe lacks
    key             of its proof
    """
    recipes: dict[str, Recipe] = {}
    found = []
    for kernel in kernels:
        path = kernel["recipe"]
        if path not in recipes:
            recipes[path] = Recipe.parse(Path(path).read_bytes())
        source = Path(kernel["source"]).read_bytes()
        spec = recipes[path].spec(source, kernel["arch"], kernel["flags"])
        if spec.key() != kernel["key"]:
            found.append(kernel["instance"])
    return sorted(found)


def line(found: Sequence[str], number: int, arch: str, out: str) -> str:
    """The message about them, of a number of proofs."""
    return (
        f"{arch}: {len(found)} of {number} proven kernels are compiled as unproven, with keys that "
        "name their groups: the proofs are of another compiler, source, header or flag. "
        f"{out} lists them; ./bazelw run //kernels/ck_fmha:prove_groups proves them anew"
    )


def main(_arguments: Sequence[str]) -> None:
    kernels = json.loads(Path(_KERNELS.value).read_text("ascii"))
    found = unproven(kernels)
    if found:
        print(line(found, len(kernels), kernels[0]["arch"], _OUT.value))
    Path(_OUT.value).write_text(json.dumps(found, indent=1) + "\n", "ascii")


if __name__ == "__main__":
    app.run(main)
