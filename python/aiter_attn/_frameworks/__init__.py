# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Whose arrays the caller's are: a file here for each framework, named as its module is imported.

Such a file has a class Adapter, a Framework (generic.py) whose array_type names the class of the
framework's arrays. It is found by its name, once the framework itself has been imported: an array's
own is there already, and no other is imported. All other producers of DLPack are generic.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from aiter_attn._frameworks.generic import Framework

__all__ = ["Array", "ArrayT", "framework_of"]


@runtime_checkable
class Array(Protocol):
    """Anything that exports DLPack: numpy, torch, jax, cupy and more."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...


ArrayT = TypeVar("ArrayT", bound=Array)

_GENERIC: Final = Framework()
# The answers so far.
_OF_TYPE: dict[type, Framework] = {}


def framework_of(name: str, array: Any) -> Framework:
    """Raises TypeError for what is no array; name is the argument's."""
    try:
        return _OF_TYPE[type(array)]
    except KeyError:
        found = _OF_TYPE[type(array)] = _find(name, array)
        return found


@functools.cache
def _adapter(module: ModuleType) -> Framework:
    adapter = importlib.import_module(f"{__name__}.{module.__name__}").Adapter
    made: Framework = adapter(module)
    return made


def _find(name: str, array: Any) -> Framework:
    if isinstance(array, type):
        raise TypeError(f"{name}: the class {array.__name__} is no array; pass an array of it")
    for file in pkgutil.iter_modules(__path__):
        if module := sys.modules.get(file.name):
            framework = _adapter(module)
            kind = getattr(module, framework.array_type, None)
            if isinstance(kind, type) and isinstance(array, kind):
                return framework
    if isinstance(array, Array):
        return _GENERIC
    raise TypeError(
        f"{name}: {type(array).__name__} is no array; allowed: numpy, torch, jax and cupy arrays, "
        "and whatever exports DLPack (__dlpack__, __dlpack_device__)"
    )
