# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fronts: modules whose functions serve a framework's arrays, as operators that it differentiates,
traces and compiles.

A front's functions have the names and the arguments of the package's. It is imported with the first
of its arrays, so that importing aiter_attn imports no framework. A function that it lacks is the
package's own, by the core.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from aiter_attn._core.adapters import is_array_of

__all__ = ["by_front"]

_Function = Callable[..., Any]
# Classes of arrays that have no front, wherever the arrays are.
_WITHOUT_FRONT: set[type] = set()


def by_front(function: _Function) -> _Function:
    """The function, or that of the first argument's front."""
    name = function.__name__
    first = next(iter(inspect.signature(function).parameters))

    @functools.cache
    def of_jax() -> _Function:
        from aiter_attn.jax import _eager

        return _eager.at_once(function)

    @functools.wraps(function)
    def call(*arguments: Any, **more: Any) -> Any:
        # torch.compile traces this: plain statements, and an import that it can follow.
        array = arguments[0] if arguments else more.get(first)
        # is_array_of("torch", array) without its calls, which a small call's time shows.
        tensor = getattr(sys.modules.get("torch"), "Tensor", None)
        if isinstance(tensor, type) and isinstance(array, tensor):
            # There once it is whole; an import statement takes its time each time.
            front = getattr(sys.modules["aiter_attn"], "torch", None)
            if front is None:
                from aiter_attn import torch as front

            return getattr(front, name, function)(*arguments, **more)
        if type(array) in _WITHOUT_FRONT:
            return function(*arguments, **more)
        if not is_array_of("jax", array):
            _WITHOUT_FRONT.add(type(array))
        elif _is_on_gpus(sys.modules["jax"], array):
            return of_jax()(*arguments, **more)
        return function(*arguments, **more)

    return call


def _is_on_gpus(jax: ModuleType, array: Any) -> bool:
    """Whether a jax array is on AMD GPUs. The core serves those on the CPU, and refuses those that
    are traced and those on other GPUs."""
    if isinstance(array, jax.core.Tracer):
        return False
    return all("rocm" in device.client.platform_version for device in array.devices())
