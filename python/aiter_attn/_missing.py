# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Why the extension module is not there: asked only once its import has failed."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["why"]


def why(folders: Iterable[str]) -> str:
    """The reason, and the next step. folders: __path__ of the package."""
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    there = [Path(folder) for folder in folders]
    inside = [folder for folder in there if not folder.is_dir()]
    if inside:
        return (
            f"aiter_attn: is imported from inside of an archive ({inside[0]}), which an extension "
            "module cannot be: install the wheel with pip, or unpack the archive"
        )
    built = sorted(file.name for folder in there for file in folder.glob("_C.*.so"))
    version = ".".join(map(str, sys.version_info[:2]))
    if "t" in sys.abiflags:
        return (
            f"aiter_attn: {sys.executable} is Python {version}{sys.abiflags}, a free-threaded "
            "build, and the extension module needs the global interpreter lock; allowed: ordinary "
            f"builds of Python 3.10 or newer; install one, such as {version}, and with its own pip "
            "the wheel"
        )
    if built:
        return (
            f"aiter_attn: this installation is for another Python: it has {', '.join(built)}, and "
            f"{sys.executable} (Python {version}) loads _C{suffix}; install the wheel of this "
            "Python, with its own pip"
        )
    return (
        f"aiter_attn: {', '.join(map(str, there))} holds the sources without the extension module "
        f"(_C{suffix}); build the wheel (//python:attn_wheel) and install that"
    )
