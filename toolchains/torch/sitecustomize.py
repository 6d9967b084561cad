# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Makes torch importable: run by Python as it starts, in tests that depend on @torch.

The tree's libraries are in folders that the dynamic loader does not look in. But a library that is
loaded already is found by its name: so each is loaded once those that it needs are.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys

_TREE = pathlib.Path(__file__).resolve().parent
_MODE = os.RTLD_LAZY | os.RTLD_GLOBAL


def _load(waiting: list[bytes]) -> None:
    """Loads what can be: torch needs not all that is here, nor is there what all of it needs."""
    # ctypes.CDLL wants every symbol at once, but some of these libraries have each other's, and one
    # does not say whose.
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype = ctypes.c_void_p
    while waiting:
        left = [library for library in waiting if not dlopen(library, _MODE)]
        if len(left) == len(waiting):
            return
        waiting = left


_load([os.fsencode(file) for file in sorted((_TREE / "usr/lib").rglob("lib*.so.*"))])
sys.path.append(str(_TREE / "usr/lib/python3/dist-packages"))
