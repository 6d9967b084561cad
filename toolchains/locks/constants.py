# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reads the constants of a .bzl file, so that Starlark and the locks share one definition."""

from __future__ import annotations

import ast
import pathlib
from typing import Any


def read(path: pathlib.Path) -> dict[str, Any]:
    """Returns name -> value of a file that assigns literals only, which Python reads alike."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
    }
