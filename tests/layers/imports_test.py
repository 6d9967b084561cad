# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Every import from a folder of the checkout finds its module and its name."""

import json
import os
from pathlib import Path

import pytest

from tests.layers import imports

FILES = json.loads(Path(os.environ["SOURCES"]).read_text(encoding="utf-8"))


def test_imports_find_what_they_name():
    assert imports.missing(FILES) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from toolchains.locks import store, nothing", "nothing in toolchains.locks"),
        ("from toolchains.locks.store import nothing", "nothing in toolchains.locks.store"),
        ("def late():\n    from toolchains.nowhere import x", "x in toolchains.nowhere"),
    ],
)
def test_a_missing_name_is_found(text: str, name: str):
    path = "tests/e2e/clone.py"
    found = imports.missing({**FILES, path: f"{FILES[path]}\n{text}\n"})
    assert found == [f"{path}: no {name}"]
