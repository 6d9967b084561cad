# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Arrays whose producers are wrong about them: each is taken by its true form, or refused by name.

A producer may say anything that its memory bears out or that is seen to be nonsense. That memory
is where a capsule says it is cannot be checked, so none here lies about that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import strategies as st

from tests.hostile.calls import arguments, attempt, function_of
from tests.hostile.explore import Counts, explore, parts
from tests.hostile.memory import Array
from tests.hostile.problems import Arrays, Problem, problems
from tests.support.python.dlpack_exporter import KDL_CUDA, KDL_ROCM, Exporter


def _lying_subclass(**properties: Any) -> Callable[[Array], Array]:
    """An ndarray whose class says something else of it."""
    members = {name: property(lambda self, v=value: v) for name, value in properties.items()}
    kind = type("Lying", (numpy.ndarray,), members)
    return lambda array: array.view(kind)


def _bytes_as(dtype: Any) -> Callable[[Array], Array]:
    """int8 that say they are of another dtype, as many elements as there are."""
    lying = _lying_subclass(dtype=numpy.dtype(dtype))
    return lambda array: lying(numpy.zeros(array.shape, numpy.int8))


class _Returning:
    """A producer whose two methods return these, or raise those that are exceptions."""

    def __init__(self, device: Any, capsule: Any) -> None:
        self._device, self._capsule = device, capsule

    def __dlpack_device__(self) -> Any:
        return self._device

    def __dlpack__(self, **options: Any) -> Any:
        if self._capsule in (BufferError, RuntimeError):
            raise self._capsule("no")
        return self._capsule


def _used_capsule() -> Any:
    """Arrays that numpy has been given already."""
    capsule = Exporter(numpy.zeros((1, 1, 1, 1), numpy.float32)).__dlpack__()
    numpy.from_dlpack(_Returning((1, 0), capsule))
    return capsule


_TOLD = (
    *(None, 5, "ab", {1: 2}, (), (1,), (1, 0, 0), ("a", "b"), (1, None), (None, 0), (1.0, 0)),
    *((1, -1), (-1, 0), (0, 0), (2**40, 0), (1, 2**40)),
    *((KDL_CUDA, 0), (KDL_ROCM, 0), (KDL_ROCM, -1)),
)
_FIELDS: tuple[dict[str, Any], ...] = (
    *({"ndim": n} for n in (-(2**31), -1, 0, 1, 2, 3, 5, 64, 2**31 - 1)),
    *({"code": n} for n in (0, 1, 3, 4, 5, 6, 17, 255)),
    *({"bits": n} for n in (0, 1, 4, 8, 12, 16, 32, 64, 128, 255)),
    *({"lanes": n} for n in (0, 2, 4, 65535)),
    *({"device_type": n} for n in (0, -1, 2, 3, 10, 11, 2**31 - 1)),
    *({"device_id": n} for n in (-1, 1, 2**31 - 1)),
    {"data": None},
    {"byte_offset": 1},
    {"shape": None},
    {"shape": (-1, -1, -1, -1)},
    {"shape": (0, 0, 0, 0), "strides": (0, 0, 0, 0)},
    {"shape": (2**62, 2**62, 2**62, 2**62), "strides": (0, 0, 0, 0)},
    {"shape": (2**31, 1, 1, 1), "strides": (0, 0, 0, 1)},
    {"strides": (0, 0, 0, 0)},
    {"strides": (-(2**63), -(2**63), -(2**63), 1)},
    {"strides": (0, 0, 0, 2**62)},
)
_PRODUCERS: tuple[Callable[[Array], Any], ...] = (
    *(lambda x, told=told: Exporter(x, told=told) for told in _TOLD),
    *(lambda x, fields=fields: Exporter(x, fields=fields) for fields in _FIELDS),
    # Without strides it is contiguous, which only a copy is for any layout.
    lambda x: Exporter(numpy.ascontiguousarray(x), fields={"strides": None}),
    *(lambda x, v=v: Exporter(x, version=v) for v in (None, (0, 9), (1, 7), (2, 0), (2**31, 0))),
    *(
        lambda x, got=got: _Returning((1, 0), got)
        for got in (None, 5, "dltensor", object(), BufferError, RuntimeError)
    ),
    lambda x: Exporter(x, read_only=True),
    lambda x: Exporter(x, byte_offset=64),
    lambda x: _Returning((1, 0), _used_capsule()),
    lambda x: Exporter,
    _bytes_as(numpy.float32),
    _bytes_as(numpy.float16),
    _bytes_as(numpy.int32),
    _lying_subclass(dtype=numpy.dtype(numpy.float64)),
    _lying_subclass(dtype=None),
    _lying_subclass(shape=(1, 1, 1, 1)),
    _lying_subclass(strides=(0, 0, 0, 0)),
    _lying_subclass(__array_interface__=None),
    _lying_subclass(__dlpack_device__=None, __dlpack__=None),
)


@dataclasses.dataclass(frozen=True)
class Produced:
    """Calls of which one array is of an odd producer; first, count: of the pairs of both."""

    problem: Problem
    kind: str
    first: int
    count: int


def produced_calls() -> st.SearchStrategy[Produced]:
    kinds = st.sampled_from(("fwd", "bwd", "func"))
    return st.builds(Produced, problems(), kinds, st.integers(0, 1 << 16), st.integers(1, 16))


def _produced_calls(produced: Produced, counts: Counts) -> None:
    problem = produced.problem
    arrays = Arrays(problem)
    function = function_of(problem, produced.kind)
    outputs = {"fwd": ("out", "lse"), "bwd": ("dq", "dk", "dv"), "func": ()}[produced.kind]
    given = arguments(problem, arrays, function) | {name: arrays[name] for name in outputs}
    names = [name for name, value in given.items() if isinstance(value, numpy.ndarray)]
    for number in range(produced.first, produced.first + produced.count):
        name = names[number % len(names)]
        array = arrays[name]
        odd = _PRODUCERS[number // len(names) % len(_PRODUCERS)](array)
        attempt(counts, function, given | {name: odd})
        arrays.require_untouched(but=outputs)


@parts()
def test_an_odd_producer_is_seen_through_or_named(
    part: int, capsys: pytest.CaptureFixture[str]
) -> None:
    explore(_produced_calls, produced_calls(), part, capsys)
