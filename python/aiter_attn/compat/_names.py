# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Modules under the names of other packages'."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn

__all__ = ["install", "missing"]

_ANY = metadata.DistributionFinder.Context()


def install(
    original: str,
    package: ModuleType,
    submodules: Mapping[str, ModuleType],
    version: str | None = None,
) -> None:
    """Imports of `original` get the package, and of its submodules the submodules, from now on.

    Args:
        submodules: by their names in the original, such as "layers.rotary".
        version: what importlib.metadata says of the original; None: nothing.

    Raises ImportError where the original is imported already: whoever has it would keep it.
    """
    modules = {original: package}
    modules |= {f"{original}.{name}": module for name, module in submodules.items()}
    for name, module in modules.items():
        found = sys.modules.get(name)
        if found is not None and found is not module:
            raise ImportError(
                f"{name}: imported already, from {getattr(found, '__file__', 'no file')}; call "
                f"{package.__name__}.install() ahead of the first import of {original}",
                name=name,
            )
    sys.modules.update(modules)
    if not any(isinstance(f, _Finder) and f.original == original for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder(original, tuple(submodules), version))


class _Finder(metadata.DistributionFinder, MetaPathFinder):
    """Of an installed stand-in: submodules that are not there, by their names; its metadata."""

    def __init__(self, original: str, there: tuple[str, ...], version: str | None) -> None:
        self.original, self._there, self._version = original, there, version

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith(self.original + "."):
            package, _, name = fullname.rpartition(".")
            raise ModuleNotFoundError(_not_there(package, name, self._there), name=fullname)
        return None

    def find_distributions(
        self, context: metadata.DistributionFinder.Context = _ANY
    ) -> Iterable[metadata.Distribution]:
        asked = context.name
        if self._version is not None and (
            asked is None or asked.lower().replace("-", "_") == self.original
        ):
            yield _Distribution(self.original, self._version)


class _Distribution(metadata.Distribution):
    """Name and version of an original, of no file."""

    def __init__(self, name: str, version: str) -> None:
        self._files = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "top_level.txt": f"{name}\n",
        }

    def read_text(self, filename: str) -> str | None:
        return self._files.get(filename)

    def locate_file(self, path: object) -> NoReturn:
        raise FileNotFoundError(f"{path}: aiter_attn's stand-in has no files")


def missing(original: str, name: str, there: Iterable[str]) -> AttributeError:
    """The error of a module's __getattr__ for a name that the original may have."""
    return AttributeError(_not_there(original, name, there), name=name)


def _not_there(original: str, name: str, there: Iterable[str]) -> str:
    return (
        f"{original}.{name}: not in aiter_attn's stand-in for {original.partition('.')[0]}; it has "
        f"{', '.join(sorted(there))}"
    )
