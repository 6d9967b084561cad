# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Kernels that are not compiled by a build, and that its launch table knows by their specs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kernels.code_object import spec as specs
from kernels.launch_table.table import CodeObjects


def specified(kernels: Iterable[Mapping[str, Any]]) -> CodeObjects:
    """The records of kernels: the keys of their own compiles, and where a lock has the digest of
    the object that such a compile gives, that. Each has

    instance, arch  of it
    source, recipe  files, as describe.py takes them
    flags           of the compile that the recipe lacks
    proven          key and sha256 in the lock; empty: it has none
    """
    recipes: dict[str, specs.Recipe] = {}
    sources: dict[str, bytes] = {}
    records: dict[tuple[str, str], Mapping[str, Any]] = {}
    for kernel in kernels:
        recipe, source = kernel["recipe"], kernel["source"]
        if recipe not in recipes:
            recipes[recipe] = specs.Recipe.parse(Path(recipe).read_bytes())
        if source not in sources:
            sources[source] = Path(source).read_bytes()
        spec = recipes[recipe].spec(sources[source], kernel["arch"], kernel["flags"])
        key = spec.key()
        # Of another compiler, source, header or flag, the lock's digest is of another object.
        of, sha256 = kernel["proven"] or ("", "")
        known = {"sha256": sha256} if of == key else {}
        records[kernel["instance"], kernel["arch"]] = {"key": key, "spec": spec, **known}
    return records
