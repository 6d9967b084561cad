# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Functions that serve a framework's arrays by the framework's own: as operators that it
differentiates, traces and compiles.

A front is a subpackage with functions of the same names and arguments. It is imported with the
first of its arrays, so that importing aiter_attn imports no framework.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["by_framework"]


def _front_of(array: Any) -> ModuleType | None:
    # torch.compile traces this: plain statements, and an import that it can follow.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        from aiter_attn import torch as front

        return front
    return None


def by_framework(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, or the front's of its name where the first argument is the front's."""
    name = function.__name__
    first = next(iter(inspect.signature(function).parameters))

    @functools.wraps(function)
    def call(*arguments: Any, **more: Any) -> Any:
        front = _front_of(arguments[0] if arguments else more.get(first))
        if front is None:
            return function(*arguments, **more)
        return getattr(front, name)(*arguments, **more)

    return call
