# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The frameworks of callers' arrays: a file here for each, named as its module is imported.

Such a file has a class Adapter, a GenericAdapter (generic.py). It is made once an array of the
framework is there, and so the framework itself: none is imported for this, and one that another
thread is importing, or that something else stands for, is asked nothing but the class of its
arrays. All other producers of DLPack are generic.
"""

from __future__ import annotations

import functools
import importlib
import sys
from types import ModuleType
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from aiter_attn._core.adapters.generic import GenericAdapter

__all__ = ["Array", "ArrayT", "adapter_of", "is_array_of", "serve"]


@runtime_checkable
class Array(Protocol):
    """Anything that exports DLPack: numpy, torch, jax, cupy and more."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...


ArrayT = TypeVar("ArrayT", bound=Array)

_GENERIC: Final = GenericAdapter()
# The class of each framework's arrays, in its module.
_CLASSES: Final = {"cupy": "ndarray", "jax": "Array", "numpy": "ndarray", "torch": "Tensor"}
# The answers so far.
_OF_TYPE: dict[type, GenericAdapter] = {}


def is_array_of(framework: str, array: Any) -> bool:
    """Whether the array is one of cupy, jax, numpy or torch; of a framework that is not imported
    there is none."""
    # torch.compile traces this: plain statements.
    kind = getattr(sys.modules.get(framework), _CLASSES[framework], None)
    return isinstance(kind, type) and isinstance(array, kind)


def adapter_of(name: str, array: Any) -> GenericAdapter:
    """Raises TypeError for what is no array; name is the argument's."""
    try:
        return _OF_TYPE[type(array)]
    except KeyError:
        found = _OF_TYPE[type(array)] = _find(name, array)
        return found


def serve(kind: type, adapter: GenericAdapter) -> None:
    """Arrays of a class of this package's own are served by its adapter."""
    _OF_TYPE[kind] = adapter


@functools.cache
def _adapter(framework: str, module: ModuleType) -> GenericAdapter:
    adapter = importlib.import_module(f"{__name__}.{framework}").Adapter
    made: GenericAdapter = adapter(module)
    return made


def _find(name: str, array: Any) -> GenericAdapter:
    if isinstance(array, type):
        raise TypeError(f"{name}: the class {array.__name__} is no array; pass an array of it")
    for framework in _CLASSES:
        if is_array_of(framework, array):
            return _adapter(framework, sys.modules[framework])
    if isinstance(array, Array):
        return _GENERIC
    raise TypeError(
        f"{name}: {type(array).__name__} is no array; allowed: numpy, torch, jax and cupy arrays, "
        "and any object that exports DLPack (__dlpack__, __dlpack_device__)"
    )
