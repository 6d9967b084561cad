# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The imports of the Python package keep to its floors, and a wrong one is found."""

import json
import os
from pathlib import Path

import pytest

from tests.layers.floors import FLOORS, PACKAGE, package, violations

FILES = package(json.loads(Path(os.environ["SOURCES"]).read_text(encoding="utf-8")))


def test_the_floors_hold():
    assert violations(FILES) == []


def test_no_floor_is_above_itself():
    below = {floor: set(others) for floor, others in FLOORS.items()}
    for _ in below:
        for others in below.values():
            others.update(*(below.get(other, set()) for other in list(others)))
    assert not [floor for floor, others in below.items() if floor in others]


@pytest.mark.parametrize(
    ("path", "line", "other"),
    [
        ("_core/options.py", "from aiter_attn.torch import _mha", "torch"),
        ("_core/call.py", "from aiter_attn._functions.fronts import front", "_functions"),
        ("_core/adapters/generic.py", "from ...jax import _ffi", "jax"),
        ("_core/arrays.py", "import aiter_attn", "__init__"),
        ("torch/_norms.py", "from aiter_attn import jax", "jax"),
        ("torch/__init__.py", "def late():\n    from aiter_attn import rms_norm", "__init__"),
        ("jax/_calls.py", "import aiter_attn.torch._operators", "torch"),
        ("jax/_eager.py", "from .._functions import attention", "_functions"),
        ("_functions/norms.py", "from aiter_attn.torch import rms_norm", "torch"),
        ("_functions/packed.py", "from aiter_attn.compat import flash_attn", "compat"),
        ("__init__.py", "from . import _cli", "_cli"),
        ("transformers/_masks.py", "from aiter_attn._functions import kvcache", "_functions"),
    ],
)
def test_a_wrong_import_is_found(path: str, line: str, other: str):
    path = PACKAGE + path
    wrong = {**FILES, path: FILES[path] + f"\n{line}\n"}
    assert any(
        found.startswith(f"{path} -> ") and found.endswith(f"may not import {other}")
        for found in violations(wrong)
    )


def test_a_circle_of_files_is_found():
    path = PACKAGE + "_core/options.py"
    back = FILES[path] + "\ndef f():\n    from aiter_attn._core import call\n"
    found = violations({**FILES, path: back})
    assert found and all(line.startswith("a circle: ") for line in found)
    assert any(f"{PACKAGE}_core/call.py" in line for line in found)


def test_a_file_on_no_floor_is_found():
    assert violations({**FILES, PACKAGE + "_new/rules.py": ""}) == [
        "python/aiter_attn/_new/rules.py is on no floor: add it to FLOORS in tests/layers/floors.py"
    ]
