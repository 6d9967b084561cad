# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Says, before they are compiled, which kernels a lock knows by another compile: the program of
proofs.bzl.

A proof holds the key of a kernel's own compile. Where compiler, source, headers or flags are others
by now, so is the key, and nothing is known of what the kernel's group gives. Options of code
generation that were chosen for a kernel have the key of its own compile without options: where that
is another by now, others may be better.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

from kernels.code_object.spec import Recipe

_KERNELS = flags.DEFINE_string("kernels", None, "JSON, see unproven()", required=True)
_OF = flags.DEFINE_enum("of", None, ["groups", "options"], "what the lock is of", required=True)
_OUT = flags.DEFINE_string("out", None, "JSON, those kernels, by name", required=True)

_GROUPS = (
    "{arch}: {found} of {number} proven kernels are compiled as unproven, with keys that name "
    "their groups: the proofs are of another compiler, source, header or flag. {out} lists them; "
    "./bazelw run //kernels/ck_fmha:prove_groups proves them anew"
)
_OPTIONS = (
    "{arch}: {found} of {number} kernels with options of their own have those of another compiler, "
    "source, header or flag: others may be better. {out} lists them; "
    "./bazelw run //kernels:choose_options chooses anew"
)
_LINES = {"groups": _GROUPS, "options": _OPTIONS}


def of_another_compile(kernels: Iterable[Mapping[str, Any]]) -> list[str]:
    """Those whose key in the lock is of another compile, sorted. Each has

    instance, arch  of it
    source, recipe  files, as describe.py takes them
    flags           of the compile that the recipe lacks
    key             in the lock
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


def main(_arguments: Sequence[str]) -> None:
    kernels = json.loads(Path(_KERNELS.value).read_text("ascii"))
    found = of_another_compile(kernels)
    if found:
        arch, number = kernels[0]["arch"], len(kernels)
        print(_LINES[_OF.value].format(arch=arch, found=len(found), number=number, out=_OUT.value))
    Path(_OUT.value).write_text(json.dumps(found, indent=1) + "\n", "ascii")


if __name__ == "__main__":
    app.run(main)
