# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Functions that serve a framework's arrays by the framework's own: as operators that it
differentiates, traces and compiles.

A front is a module with functions of the same names and arguments. It is imported with the first of
its arrays, so that importing aiter_attn imports no framework. What it lacks is the package's own.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from aiter_attn._frameworks import is_array_of

__all__ = ["by_framework"]


# Classes of arrays that the package's own functions serve, wherever the arrays are.
_WITHOUT_FRONT: set[type] = set()


def _front_of(array: Any) -> ModuleType | None:
    # torch.compile traces this: plain statements, and an import that it can follow.
    if is_array_of("torch", array):
        from aiter_attn import torch as front

        return front
    if type(array) in _WITHOUT_FRONT:
        return None
    if is_array_of("jax", array) and _is_on_gpus(sys.modules["jax"], array):
        from aiter_attn.jax import _eager

        return _eager
    if not is_array_of("jax", array):
        _WITHOUT_FRONT.add(type(array))
    return None


def _is_on_gpus(jax: ModuleType, array: Any) -> bool:
    """Whether a jax array is on AMD GPUs. The package's own functions serve those on the CPU, and
    say what they do not take."""
    if isinstance(array, jax.core.Tracer):
        return False
    return all("rocm" in device.client.platform_version for device in array.devices())


def by_framework(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, or the front's of its name where the first argument is the front's."""
    name = function.__name__
    first = next(iter(inspect.signature(function).parameters))

    @functools.wraps(function)
    def call(*arguments: Any, **more: Any) -> Any:
        front = _front_of(arguments[0] if arguments else more.get(first))
        if front is None:
            return function(*arguments, **more)
        return getattr(front, name, function)(*arguments, **more)

    return call
