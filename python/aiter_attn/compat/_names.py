# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Modules under the names of other packages'."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType

__all__ = ["install", "missing"]


def install(original: str, package: ModuleType, submodules: Iterable[ModuleType]) -> None:
    """Imports of `original` get the package, and of its submodules the submodules, from now on.

    Raises ImportError where the original is imported already: whoever has it would keep it.
    """
    modules = {original: package}
    for module in submodules:
        modules[original + module.__name__.removeprefix(package.__name__)] = module
    for name, module in modules.items():
        found = sys.modules.get(name)
        if found is not None and found is not module:
            raise ImportError(
                f"{name}: imported already, from {getattr(found, '__file__', 'no file')}; call "
                f"{package.__name__}.install() ahead of the first import of {original}",
                name=name,
            )
    sys.modules.update(modules)


def missing(original: str, name: str, there: Iterable[str]) -> AttributeError:
    """What a module's __getattr__ raises for what the original may have."""
    return AttributeError(
        f"{original}.{name}: not in aiter_attn's stand-in for {original}; it has "
        f"{', '.join(sorted(there))}",
        name=name,
    )
