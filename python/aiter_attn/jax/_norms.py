# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""LayerNorm and RMSNorm as functions of jax arrays: one XLA custom call for each pass. Functions of
both passes have gradients; the passes by themselves, _fwd and _bwd, have none."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from aiter_attn import _C
from aiter_attn._core import norms, reading
from aiter_attn.jax import _ffi
from aiter_attn.jax._manual import Pass, as_primal, as_varying

__all__ = [
    "layer_norm",
    "layer_norm_bwd",
    "layer_norm_fwd",
    "rms_norm",
    "rms_norm_bwd",
    "rms_norm_fwd",
]


class Static(NamedTuple):
    """The constants of a compiled program."""

    kind: int
    epsilon: float
    zero_centred: bool
    has_residual: bool

    @property
    def attributes(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in _C.NORM_OPTIONS}
        return _ffi.attributes({**options, "has_residual": self.has_residual})


def rms_norm(
    x: jax.Array,
    gamma: jax.Array | None,
    *,
    residual: jax.Array | None = None,
    epsilon: float = 1e-6,
    zero_centred: bool = False,
) -> Any:
    """RMSNorm (arXiv:1910.07467): x / sqrt(mean(x^2) + epsilon) * gamma, over the last dimension.

    Args:
        x: [..., hidden], float16, bfloat16 or float32.
        gamma: [hidden], one of these dtypes; None: 1, which zero_centred is not for.
        residual: as x; then x + residual is normalised, rounded to x's dtype. None: x.
        epsilon: 0 or more.
        zero_centred: gamma is stored less 1.

    Returns:
        y, as x; with a residual (y, x + residual).

    Raises:
        TypeError, ValueError: of shapes, dtypes and numbers, while jax traces.
    """
    return _apply(_C.NORM_RMS, x, [("gamma", gamma)], residual, epsilon, zero_centred)


def layer_norm(
    x: jax.Array,
    gamma: jax.Array | None,
    beta: jax.Array | None = None,
    *,
    residual: jax.Array | None = None,
    epsilon: float = 1e-5,
    zero_centred: bool = False,
) -> Any:
    """LayerNorm (arXiv:1607.06450) over the last dimension: (x - mean) / sqrt(variance + epsilon)
    * gamma + beta. beta is [hidden], dtype of gamma, or None: 0; all else is as in rms_norm.
    """
    weights = [("gamma", gamma), ("beta", beta)]
    return _apply(_C.NORM_LAYER, x, weights, residual, epsilon, zero_centred)


def rms_norm_fwd(
    x: jax.Array,
    gamma: jax.Array | None,
    *,
    residual: jax.Array | None = None,
    epsilon: float = 1e-6,
    zero_centred: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """(y, rstd, h) of aiter_attn.rms_norm_fwd, without derivative."""
    static, arrays = _given(_C.NORM_RMS, x, [("gamma", gamma)], residual, epsilon, zero_centred)
    y, rstd, *rest = as_varying(_forward(static)(*arrays), arrays)
    return y, rstd, rest.pop() if static.has_residual else None


def layer_norm_fwd(
    x: jax.Array,
    gamma: jax.Array | None,
    beta: jax.Array | None = None,
    *,
    residual: jax.Array | None = None,
    epsilon: float = 1e-5,
    zero_centred: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array | None]:
    """(y, mean, rstd, h) of aiter_attn.layer_norm_fwd, without derivative."""
    weights = [("gamma", gamma), ("beta", beta)]
    static, arrays = _given(_C.NORM_LAYER, x, weights, residual, epsilon, zero_centred)
    y, rstd, mean, *rest = as_varying(_forward(static)(*arrays), arrays)
    return y, mean, rstd, rest.pop() if static.has_residual else None


def rms_norm_bwd(
    dy: jax.Array,
    x: jax.Array,
    gamma: jax.Array | None,
    rstd: jax.Array,
    *,
    dh: jax.Array | None = None,
    zero_centred: bool = False,
) -> tuple[Any, ...]:
    """(dx, dgamma) of aiter_attn.rms_norm_bwd, without derivative; dgamma is None without gamma."""
    return _gradients(_C.NORM_RMS, dy, x, gamma, {"rstd": rstd}, dh, zero_centred)


def layer_norm_bwd(
    dy: jax.Array,
    x: jax.Array,
    gamma: jax.Array | None,
    mean: jax.Array,
    rstd: jax.Array,
    *,
    dh: jax.Array | None = None,
    zero_centred: bool = False,
) -> tuple[Any, ...]:
    """(dx, dgamma, dbeta) of aiter_attn.layer_norm_bwd, without derivative; dgamma is None without
    gamma."""
    statistics = {"rstd": rstd, "mean": mean}
    return _gradients(_C.NORM_LAYER, dy, x, gamma, statistics, dh, zero_centred)


def _given(
    kind: int,
    x: Any,
    weights: Sequence[tuple[str, Any]],
    residual: Any,
    epsilon: float,
    zero_centred: bool,
) -> tuple[Static, list[jax.Array]]:
    """The constants and the operands of a forward pass. A custom call has all weights: one that
    is None is a constant of the program."""
    static = Static(
        kind,
        norms.read_epsilon(epsilon),
        _zero_centred(zero_centred, dict(weights)["gamma"]),
        residual is not None,
    )
    x = jnp.asarray(x)
    given = [(name, jnp.asarray(weight)) for name, weight in weights if weight is not None]
    _check(["x", *(name for name, _ in given)], [x, *(weight for _, weight in given)])
    dtype = given[0][1].dtype if given else x.dtype
    made = dict(given)
    arrays = [x, *(made.get(name, _constant(name, x, dtype)) for name, _ in weights)]
    if residual is not None:
        arrays.append(jnp.asarray(residual))
        _check_like("residual", arrays[-1], arrays[0].shape, arrays[0].dtype.name)
    return static, arrays


def _apply(*given: Any) -> Any:
    """Of _given()'s arguments."""
    static, arrays = _given(*given)
    y, total = _norm_of(static, *arrays)
    return (y, total) if static.has_residual else y


def _gradients(
    kind: int,
    dy: Any,
    x: Any,
    gamma: Any,
    statistics: Mapping[str, Any],
    dh: Any,
    zero_centred: bool,
) -> tuple[Any, ...]:
    static = Static(kind, 0.0, _zero_centred(zero_centred, gamma), dh is not None)
    x = jnp.asarray(x)
    weights = [] if gamma is None else [jnp.asarray(gamma)]
    _check(["x", "gamma"][: 1 + len(weights)], [x, *weights])
    weight = weights[0] if weights else _constant("gamma", x, x.dtype)
    operands = [jnp.asarray(dy), x, weight, *map(jnp.asarray, statistics.values())]
    _check_like("dy", operands[0], x.shape, x.dtype.name)
    for name, statistic in zip(statistics, operands[3:], strict=True):
        _check_like(name, statistic, x.shape[:-1], "float32")
    if dh is not None:
        operands.append(jnp.asarray(dh))
        _check_like("dh", operands[-1], x.shape, x.dtype.name)
    dx, dgamma, *dbeta = as_varying(_backward(static)(*operands), operands)
    return dx, None if gamma is None else dgamma, *dbeta


def _zero_centred(value: Any, gamma: Any) -> bool:
    norms.check_gamma(gamma, value)
    return reading.flag("zero_centred", value)


def _constant(name: str, x: jax.Array, dtype: Any) -> jax.Array:
    """The weight that changes nothing."""
    return jnp.full(x.shape[-1:], 1 if name == "gamma" else 0, dtype)


def _check_like(name: str, array: jax.Array, shape: tuple[int, ...], dtype: str) -> None:
    if (array.shape, array.dtype.name) != (shape, dtype):
        raise ValueError(
            f"{name}: shape {array.shape} and dtype {array.dtype.name}; allowed here: {shape} and "
            f"{dtype}"
        )


def _check(names: Sequence[str], arrays: Sequence[jax.Array]) -> None:
    for name, array in zip(names, arrays, strict=True):
        if array.dtype.name not in _C.DTYPES:
            raise TypeError(f"{name}: dtype {array.dtype.name}; allowed: {', '.join(_C.DTYPES)}")
    x, *weights = arrays
    if x.ndim < 1 or x.shape[-1] == 0:
        raise ValueError(f"x: shape {x.shape}; allowed: a last dimension of at least 1")
    for name, weight in zip(names[1:], weights, strict=True):
        if weight.shape != x.shape[-1:]:
            raise ValueError(f"{name}: shape {weight.shape}; allowed here: {x.shape[-1:]}")
        if weight.dtype != weights[0].dtype:
            raise TypeError(
                f"{name}: dtype {weight.dtype.name}; allowed here: {weights[0].dtype.name}, as "
                "gamma has"
            )


def like(array: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def _of_rows(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape[:-1], jnp.float32)


def by_rows(call: Pass, is_row: Sequence[bool], sums: int) -> Any:
    """The call, and what vmap makes of it: more rows, where the weights are the same for all and
    nothing is summed over rows; else one call after the other.

    is_row: of each operand, whether it has x's rows.
    """
    mapped = custom_vmap(call)

    def rule(size: int, is_mapped: Sequence[bool], *arrays: jax.Array) -> tuple[Any, Any]:
        shared = any(m and not r for m, r in zip(is_mapped, is_row, strict=True))
        whole = [
            a if m else jnp.broadcast_to(a, (size, *a.shape))
            for a, m in zip(arrays, is_mapped, strict=True)
        ]
        if shared or sums:
            results = jax.lax.map(lambda each: mapped(*each), tuple(whole))
        else:
            results = mapped(
                *(w if r else a for a, w, r in zip(arrays, whole, is_row, strict=True))
            )
        return tuple(results), (True,) * len(results)

    mapped.def_vmap(rule)
    return mapped


@functools.lru_cache(maxsize=256)
def _forward(static: Static) -> Any:
    """(y, rstd), then (mean,) of LayerNorm, then (sum,) with a residual."""
    is_layer = static.kind == _C.NORM_LAYER

    def call(x: jax.Array, *rest: jax.Array) -> tuple[jax.Array, ...]:
        results = [like(x), *[_of_rows(x)] * (2 if is_layer else 1)]
        results += [like(x)] if static.has_residual else []
        operation = jax.ffi.ffi_call(_ffi.NORM_FWD, tuple(results))
        return tuple(operation(x, *rest, **static.attributes))

    is_row = [True, *[False] * (2 if is_layer else 1), *[True] * static.has_residual]
    return _ffi.without_derivative(jax.jit(by_rows(call, is_row, 0)))


@functools.lru_cache(maxsize=256)
def _backward(static: Static) -> Any:
    """(dx, dgamma), then (dbeta,) of LayerNorm."""
    is_layer = static.kind == _C.NORM_LAYER

    def call(dy: jax.Array, x: jax.Array, gamma: jax.Array, *rest: jax.Array) -> Any:
        results = [like(x), *[like(gamma)] * (2 if is_layer else 1)]
        operation = jax.ffi.ffi_call(_ffi.NORM_BWD, tuple(results))
        return tuple(operation(dy, x, gamma, *rest, **static.attributes))

    is_row = [True, True, False, *[True] * (2 if is_layer else 1), *[True] * static.has_residual]
    return _ffi.without_derivative(jax.jit(by_rows(call, is_row, 1)))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _norm_of(static: Static, *arrays: jax.Array) -> Any:
    """(y, what was normalised)"""
    return _norm_fwd(static, *arrays)[0]


def _norm_fwd(static: Static, *arrays: jax.Array) -> tuple[Any, Any]:
    y, rstd, *rest = as_varying(_forward(static)(*arrays), arrays)
    total = rest.pop() if static.has_residual else arrays[0]
    return (y, total), (arrays, total, (rstd, *rest))


def _norm_bwd(static: Static, kept: Any, cotangents: Any) -> tuple[jax.Array, ...]:
    arrays, total, statistics = kept
    dy, dh = cotangents
    operands = (dy, total, arrays[1], *statistics, *((dh,) if static.has_residual else ()))
    dx, *weights = as_varying(_backward(static)(*operands), operands)
    if not static.has_residual:
        return as_primal(dx + dh, arrays[0]), *map(as_primal, weights, arrays[1:])
    of_weights = map(as_primal, weights, arrays[1:-1])
    return as_primal(dx, arrays[0]), *of_weights, as_primal(dx, arrays[-1])


_norm_of.defvjp(_norm_fwd, _norm_bwd)
