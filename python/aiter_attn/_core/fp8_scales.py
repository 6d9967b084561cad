# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The scales of fp8 as callers pass them: numbers, or flash-attn 3's arrays of one number; and the
dtype of its results."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from aiter_attn import _C
from aiter_attn._core import reading
from aiter_attn._core.adapters import Array, adapter_of
from aiter_attn._core.adapters.generic import device_name
from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.problems import HasShape, Scales

__all__ = ["Given", "Scale", "check_none", "check_out_dtype", "read"]

Scale: TypeAlias = "float | Array | None"
# The scales, and the dtype of the result: None, as q has.
Given: TypeAlias = "tuple[Scale, Scale, Scale, Scale, str | None]"

_MEANINGS: Final = {
    "q_descale": "the factor of q's elements",
    "k_descale": "the factor of k's elements",
    "v_descale": "the factor of v's elements",
    "out_scale": "the factor of the result before it is rounded",
}
_OUT_DTYPES: Final = ("bfloat16", "float32")


def check_none(given: Given, because: str) -> None:
    """Raises ValueError where a call that has no fp8 gets a scale, or an out_dtype."""
    q, k, v, out, out_dtype = given
    if q is k is v is out is None and out_dtype is None:
        return
    for name, value in zip(Scales._fields, given, strict=True):
        if value is not None:
            what = "scales are" if name in _MEANINGS else "it is"
            raise ValueError(
                f"{name}: {reading.shown(value)}, but {because}; allowed here: None, as {what} "
                "for fp8"
            )


def read(given: Given, q: HasShape, heads_k: int, batch: int) -> Scales | None:
    """q: of the dtype that q, k and v have. None: it has no scales.

    Raises TypeError, ValueError or UnsupportedError for what are no scales of it, or none.
    """
    if q.dtype not in _C.FORWARD_FP8_DTYPES:
        if not q.dtype.startswith("float8"):  # such a dtype is what is wrong then
            check_none(given, f"q is {q.dtype}")
        return None
    q_descale, k_descale, v_descale, out_scale, out_dtype = given
    shape = batch, heads_k
    of_out = 0.0
    if out_dtype is None:
        of_out = _number("out_scale", out_scale, q.dtype, shape)
    else:
        check_out_dtype(out_dtype, out_scale, q.dtype)
    return Scales(
        _number("q_descale", q_descale, q.dtype, shape),
        _number("k_descale", k_descale, q.dtype, shape),
        _number("v_descale", v_descale, q.dtype, shape),
        of_out,
        out_dtype,
    )


def check_out_dtype(given: Any, out_scale: Scale, dtype: str) -> None:
    """dtype: q's. Raises TypeError or ValueError for what is no other dtype of out, or a scale
    beside it."""
    if not isinstance(given, str) or given not in _OUT_DTYPES:
        error = ValueError if isinstance(given, str) else TypeError
        names = ", ".join(f'"{name}"' for name in _OUT_DTYPES)
        raise error(
            f"out_dtype: {reading.shown(given)}; allowed here: {names}, or None: {dtype}, as q has"
        )
    if out_scale is not None:
        raise ValueError(
            f"out_scale: {reading.shown(out_scale)}, but out_dtype is {given}; allowed: None, as "
            "such an out holds the result itself"
        )


def _number(name: str, scale: Any, dtype: str, shape: tuple[int, int]) -> float:
    allowed = f"a number above 0, {_MEANINGS[name]}; 1.0: it stays as it is"
    if scale is None:
        raise ValueError(f"{name}: None, but q is {dtype}; allowed: {allowed}")
    if isinstance(scale, Array):
        scale = _only_number(name, scale, shape)
    number = reading.number(name, scale, allowed)
    if not 0.0 < number < float("inf"):
        raise ValueError(f"{name}: {number}; allowed: {allowed}")
    return number


def _only_number(name: str, array: Any, shape: tuple[int, int]) -> float:
    adapter = adapter_of(name, array)
    device = adapter.device(name, array)
    if device[0] != _C.DEVICE_CPU:
        raise UnsupportedError(
            f"{name}: on {device_name(device)}; Composable Kernel's fp8 kernels take scales as "
            "numbers, and no call waits to read a GPU's memory; pass a float"
        )
    tensor = adapter.borrow(name, array, device, None)
    if tensor.dtype != "float32":
        raise TypeError(f"{name}: dtype {tensor.dtype}; allowed: float32, or a float")
    if tensor.shape not in ((), (1,), shape):
        raise ValueError(
            f"{name}: shape {tensor.shape}; allowed here: {shape} [batch, heads_k], (1,), (), or a "
            "float"
        )
    number = tensor.only_number()
    if number is None:
        raise UnsupportedError(
            f"{name}: entries that differ; Composable Kernel's fp8 kernels have one scale for all "
            "batch entries and heads; quantise by one, and pass it as a float"
        )
    return number
