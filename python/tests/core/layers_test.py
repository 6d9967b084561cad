# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Imports between the package's files: each layer knows those below it, and there is no circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import aiter_attn
import pytest

ROOT = Path(aiter_attn.__file__).parent
_CORE = ["aiter_attn._C", "aiter_attn._core*"]
_PUBLIC = ["aiter_attn", *_CORE]
# The first line that matches a module holds for it. Statements inside of functions count, too.
LAYERS: dict[str, list[str]] = {
    "aiter_attn._missing": [],
    # The core knows arrays and no front.
    "aiter_attn._core*": _CORE,
    # Fronts know the core, and not each other.
    "aiter_attn.torch*": [*_CORE, "aiter_attn.torch*"],
    "aiter_attn.jax*": [*_CORE, "aiter_attn.jax*"],
    # Public functions know the core, and one file the fronts.
    "aiter_attn._functions.fronts": [*_CORE, "aiter_attn.torch", "aiter_attn.jax._eager"],
    "aiter_attn._functions*": [*_CORE, "aiter_attn._functions*"],
    "aiter_attn": ["aiter_attn._missing", "aiter_attn._functions*", *_CORE],
    # All others are users of it.
    "aiter_attn._cli*": [*_PUBLIC, "aiter_attn._cli*", "aiter_attn.jax", "aiter_attn.torch"],
    "aiter_attn.__main__": ["aiter_attn._cli.main"],
    "aiter_attn.compat*": [*_PUBLIC, "aiter_attn.compat*", "aiter_attn.jax"],
    "aiter_attn.flax": [*_PUBLIC, "aiter_attn.jax"],
    "aiter_attn.transformers*": [*_PUBLIC, "aiter_attn.transformers*"],
}


def name_of(path: Path) -> str:
    parts = ("aiter_attn", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}


def imported(text: str, files: Mapping[str, str]) -> Iterator[str]:
    """The package's modules that a file names; a package is imported with each of its modules, and
    is not named by that."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = (*files, "aiter_attn._C")
            names = [name if name in modules else str(node.module) for name in whole]
        else:
            continue
        yield from (name for name in names if name.partition(".")[0] == "aiter_attn")


def violations(files: Mapping[str, str]) -> list[str]:
    """The violations, one line each; none where the layers hold."""
    direct = {name: sorted(set(imported(text, files))) for name, text in files.items()}
    found = []
    used = set()
    for name in sorted(files):
        layer = next((pattern for pattern in LAYERS if fnmatchcase(name, pattern)), None)
        if layer is None:
            found.append(f"{name} is in no layer: add it to LAYERS")
            continue
        used.add(layer)
        for below in direct[name]:
            if not any(fnmatchcase(below, pattern) for pattern in LAYERS[layer]):
                found.append(f"{name} -> {below}: {layer} may not import it")
    found += [f"LAYERS: no module is in {layer}" for layer in LAYERS if layer not in used]
    return [*found, *circles(direct)]


def circles(direct: Mapping[str, list[str]]) -> Iterator[str]:
    done: set[str] = set()

    def walk(name: str, way: list[str]) -> Iterator[str]:
        if name in way:
            yield "a circle: " + " -> ".join([*way[way.index(name) :], name])
        elif name not in done:
            for below in direct.get(name, []):
                yield from walk(below, [*way, name])
            done.add(name)

    for name in sorted(direct):
        yield from walk(name, [])


def test_the_layers_hold() -> None:
    assert violations(FILES) == []


def test_all_parts_are_looked_at() -> None:
    assert {
        "aiter_attn",
        "aiter_attn._core.adapters.torch",
        "aiter_attn._functions.fronts",
        "aiter_attn.compat.flash_attn._passes",
        "aiter_attn.jax._eager",
        "aiter_attn.torch._mha",
    } <= FILES.keys()


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("aiter_attn._core.call", "from aiter_attn._functions import fronts"),
        ("aiter_attn._core.call", "from aiter_attn import torch"),
        ("aiter_attn._core.norms", "def f(): import aiter_attn.jax"),
        ("aiter_attn._core.problems", "import aiter_attn"),
        ("aiter_attn._core.adapters.jax", "from aiter_attn.jax._eager import at_once"),
        ("aiter_attn._functions.norms", "from aiter_attn.torch import rms_norm"),
        ("aiter_attn.jax._eager", "import aiter_attn"),
        ("aiter_attn.jax._norms", "from aiter_attn._functions.norms import rms_norm_fwd"),
        ("aiter_attn.torch._norms", "from aiter_attn import jax"),
        ("aiter_attn.torch._mha", "from aiter_attn import mha_fwd"),
        ("aiter_attn.transformers._masks", "from aiter_attn._functions import attention"),
    ],
)
def test_a_wrong_import_is_found(name: str, statement: str) -> None:
    wrong = {**FILES, name: f"{FILES[name]}\n{statement}\n"}
    assert any(line.startswith(f"{name} -> ") for line in violations(wrong))


def test_a_circle_is_found() -> None:
    back = FILES["aiter_attn._core.options"] + "\ndef f(): from aiter_attn._core import call\n"
    found = violations({**FILES, "aiter_attn._core.options": back})
    assert found and all(line.startswith("a circle: ") for line in found)
    assert any("aiter_attn._core.call" in line for line in found)


def test_a_module_in_no_layer_is_found() -> None:
    assert violations({**FILES, "aiter_attn.other": ""}) == [
        "aiter_attn.other is in no layer: add it to LAYERS"
    ]
