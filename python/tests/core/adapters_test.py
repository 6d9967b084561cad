# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Modules that have a framework's name and are none, or not yet: nothing of them is asked."""

from __future__ import annotations

import sys
import types
import unittest.mock
from typing import Any

import aiter_attn
import numpy
import pytest
from aiter_attn._core import adapters

from tests.support.python.calls import K, Q


class Lazy(types.ModuleType):
    """A module whose attributes are made when they are asked for, and cannot be."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class OtherArray:
    """A class of a user's own module."""


def with_class(name: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.Tensor = module.Array = module.ndarray = OtherArray  # type: ignore[attr-defined]
    return module


IN_PLACE = {
    "imported by another thread": types.ModuleType,
    "a mock": lambda name: unittest.mock.MagicMock(name=name),
    "what forbids the import": lambda name: None,
    "lazy": Lazy,
    "a stub with a class": with_class,
}


@pytest.mark.parametrize("name", ["torch", "jax", "cupy", "generic", "__init__"])
@pytest.mark.parametrize("kind", IN_PLACE)
def test_a_module_of_that_name(monkeypatch: pytest.MonkeyPatch, kind: str, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, IN_PLACE[kind](name))
    monkeypatch.setattr(adapters, "_OF_TYPE", {})
    out = aiter_attn.flash_attn_func(Q, K, K)
    assert isinstance(out, numpy.ndarray)
    y, *_ = aiter_attn.rms_norm_fwd(Q, Q[0, 0, 0])
    assert isinstance(y, numpy.ndarray)
    with pytest.raises(TypeError, match=r"^q: list is no array; allowed: numpy, torch, "):
        aiter_attn.flash_attn_func([1.0], K, K)  # type: ignore[call-overload]
