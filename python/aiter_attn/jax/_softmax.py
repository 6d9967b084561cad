# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Softmax as a function of jax arrays: one XLA custom call for each pass."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy

from aiter_attn import _C
from aiter_attn._core import norms
from aiter_attn.jax import _ffi
from aiter_attn.jax._manual import as_primal, as_varying
from aiter_attn.jax._norms import by_rows, like

__all__ = ["softmax", "softmax_bwd", "softmax_fwd"]


class Static(NamedTuple):
    """The constants of a compiled program."""

    mask_kind: int
    scale: float

    @property
    def attributes(self) -> dict[str, Any]:
        return _ffi.attributes({name: getattr(self, name) for name in _C.SOFTMAX_OPTIONS})


def softmax(
    x: jax.Array, *, scale: float = 1.0, mask: jax.Array | None = None, causal: bool = False
) -> jax.Array:
    """softmax(scale * x) over the last dimension.

    Args:
        x: [..., queries, columns], float16, bfloat16 or float32.
        scale: finite.
        mask, causal: as aiter_attn.softmax_fwd takes them; mask is not differentiated.

    Returns:
        y, as x.

    Raises:
        TypeError, ValueError: of shapes, dtypes and numbers, while jax traces.
    """
    static, matrices, masks = _given(x, scale, mask, causal)
    return _softmax_of(static, matrices, *masks).reshape(jnp.shape(x))


def softmax_fwd(
    x: jax.Array, *, scale: float = 1.0, mask: jax.Array | None = None, causal: bool = False
) -> jax.Array:
    """y of softmax, without derivative."""
    static, matrices, masks = _given(x, scale, mask, causal)
    return _call(_forward(static), matrices, *masks).reshape(jnp.shape(x))


def softmax_bwd(
    dy: jax.Array, y: jax.Array, *, scale: float = 1.0, causal: bool = False
) -> jax.Array:
    """dx of aiter_attn.softmax_bwd, without derivative."""
    static, matrices, _ = _given(y, scale, None, causal, "y")
    dy = jnp.asarray(dy)
    if (dy.shape, dy.dtype) != (jnp.shape(y), matrices.dtype):
        raise ValueError(
            f"dy: shape {dy.shape} and dtype {dy.dtype.name}; allowed here: {jnp.shape(y)} and "
            f"{matrices.dtype.name}, as y has"
        )
    return _call(_backward(static), matrices, dy.reshape(matrices.shape)).reshape(dy.shape)


def _given(
    x: Any, scale: Any, mask: Any, causal: Any, name: str = "x"
) -> tuple[Static, jax.Array, list[jax.Array]]:
    """The constants, x as [matrices, queries, columns], and the mask, if there is one."""
    x = jnp.asarray(x)
    if x.dtype.name not in _C.DTYPES:
        raise TypeError(f"{name}: dtype {x.dtype.name}; allowed: {', '.join(_C.DTYPES)}")
    if x.ndim < 1 or x.shape[-1] == 0:
        raise ValueError(f"{name}: shape {x.shape}; allowed: a last dimension of at least 1")
    rows = x.shape[-2] if x.ndim > 1 else 1
    matrices = x.reshape(math.prod(x.shape[:-2]), rows, x.shape[-1])
    masks = [] if mask is None else [jnp.asarray(mask)]
    for given in masks:
        if given.dtype.name != "uint8":
            raise TypeError(f"mask: dtype {given.dtype.name}; allowed: uint8")
        norms.mask_repeat(given.shape, x.shape)
    kind = norms.mask_kind(causal, mask)
    return Static(kind, norms.read_scale(scale)), matrices, masks


def _call(operation: Any, *operands: jax.Array) -> jax.Array:
    (result,) = as_varying(operation(*operands), operands)
    return result


@functools.lru_cache(maxsize=256)
def _forward(static: Static) -> Any:
    has_mask = static.mask_kind == _C.SOFTMAX_MASK_EXPLICIT

    def call(x: jax.Array, *mask: jax.Array) -> tuple[jax.Array, ...]:
        operation = jax.ffi.ffi_call(_ffi.SOFTMAX_FWD, (like(x),))
        return tuple(operation(x, *mask, **static.attributes))

    # Which mask serves a matrix follows from the matrix's place.
    return _ffi.without_derivative(jax.jit(by_rows(call, [True, *[False] * has_mask], has_mask)))


@functools.lru_cache(maxsize=256)
def _backward(static: Static) -> Any:
    # Columns that a mask hid are 0 in y.
    is_causal = static.mask_kind == _C.SOFTMAX_MASK_CAUSAL
    kind = _C.SOFTMAX_MASK_CAUSAL if is_causal else _C.SOFTMAX_MASK_NONE
    attributes = static._replace(mask_kind=kind).attributes

    def call(y: jax.Array, dy: jax.Array) -> tuple[jax.Array, ...]:
        operation = jax.ffi.ffi_call(_ffi.SOFTMAX_BWD, (like(y),))
        return tuple(operation(y, dy, **attributes))

    return _ffi.without_derivative(jax.jit(by_rows(call, [True, True], False)))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _softmax_of(static: Static, x: jax.Array, *mask: jax.Array) -> jax.Array:
    return _call(_forward(static), x, *mask)


def _softmax_fwd(static: Static, x: jax.Array, *mask: jax.Array) -> tuple[Any, Any]:
    y = _call(_forward(static), x, *mask)
    return y, (y, x, mask)


def _softmax_bwd(static: Static, kept: Any, dy: jax.Array) -> tuple[Any, ...]:
    y, x, mask = kept
    nothing = [numpy.zeros(m.shape, jax.dtypes.float0) for m in mask]
    return as_primal(_call(_backward(static), y, dy), x), *nothing


_softmax_of.defvjp(_softmax_fwd, _softmax_bwd)
