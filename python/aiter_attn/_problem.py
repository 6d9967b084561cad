# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""From shapes, dtypes and options to the problem, and to what its results look like.

Pure functions: no memory is read and no device is asked. So they serve a call, a question about one
(explain), and whoever evaluates a call in the abstract: a torch fake kernel, a JAX abstract
evaluation. Messages begin with the argument's name.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Final, NamedTuple, Protocol, SupportsFloat, SupportsIndex

from aiter_attn import _C

__all__ = [
    "Attention",
    "HasShape",
    "Lengths",
    "ShapeDtype",
    "attention",
    "batch_of",
    "check",
    "lengths",
    "results",
]

_INT32_MAX: Final = 2**31 - 1
_BATCH: Final = ("batch", "seqlen", "heads", "head size")
_GROUP: Final = ("total tokens", "heads", "head size")
_LSE: Final = {_BATCH: ("batch", "heads", "seqlen"), _GROUP: ("heads", "total tokens")}


class HasShape(Protocol):
    """A _C.Tensor, a ShapeDtype."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...


class ShapeDtype(NamedTuple):
    """An array without its memory; dims are its dimensions' names, for messages."""

    shape: tuple[int, ...]
    dtype: str
    dims: tuple[str, ...] = ()


class Lengths(NamedTuple):
    """What varlen mode (the C ABI's group mode) has beyond shapes: sequences, greatest lengths."""

    batch: int
    max_seqlen_q: int
    max_seqlen_k: int


class Attention(NamedTuple):
    """A problem in host memory (Problem.on puts it elsewhere), and the results of its passes."""

    problem: _C.Problem
    out: ShapeDtype
    lse: ShapeDtype
    dq: ShapeDtype
    dk: ShapeDtype
    dv: ShapeDtype


def attention(
    q: HasShape,
    k: HasShape,
    v: HasShape,
    softmax_scale: SupportsFloat | None = None,
    causal: bool = False,
    window_size: tuple[SupportsIndex, SupportsIndex] = (-1, -1),
    sequences: Lengths | None = None,
) -> Attention:
    """q, k, v are [batch, seqlen, heads, head size], with sequences [total, heads, head size].

    Raises TypeError or ValueError for what no device would take. Results are remembered.
    """
    scale = None if softmax_scale is None else _float("softmax_scale", softmax_scale)
    left, right = _window(window_size)
    right = 0 if causal else right
    return _attention(
        q.shape, q.dtype, k.shape, k.dtype, v.shape, v.dtype, scale, left, right, sequences
    )


def results(q: tuple[int, ...], v: tuple[int, ...], dtype: str) -> tuple[ShapeDtype, ShapeDtype]:
    """(out, lse) for the shapes of q and v and q's dtype; sizes may be a tracer's symbols."""
    dims = _BATCH if len(q) == 4 else _GROUP
    *batch, tokens, heads, _ = q
    lse = (*batch, heads, tokens)
    return ShapeDtype((*q[:-1], v[-1]), dtype, dims), ShapeDtype(lse, "float32", _LSE[dims])


def lengths(
    batch: SupportsIndex, max_seqlen_q: SupportsIndex, max_seqlen_k: SupportsIndex
) -> Lengths:
    return Lengths(
        _int32("batch", batch),
        _int32("max_seqlen_q", max_seqlen_q),
        _int32("max_seqlen_k", max_seqlen_k),
    )


def batch_of(cu_seqlens_q: HasShape, cu_seqlens_k: HasShape) -> int:
    """How many sequences begin there; both are [batch + 1], int32."""
    for name, starts in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        if starts.dtype != "int32":
            raise TypeError(f"{name}: dtype {starts.dtype}; allowed: int32")
        if len(starts.shape) != 1 or starts.shape[0] < 1:
            raise ValueError(f"{name}: shape {starts.shape}; allowed: [batch + 1]")
    if cu_seqlens_q.shape != cu_seqlens_k.shape:
        raise ValueError(
            f"cu_seqlens_k: {cu_seqlens_k.shape[0]} entries, but cu_seqlens_q has "
            f"{cu_seqlens_q.shape[0]}; both have batch + 1"
        )
    return cu_seqlens_q.shape[0] - 1


def check(name: str, given: HasShape, want: ShapeDtype) -> None:
    """Raises TypeError or ValueError where `given` is not what the call wants there."""
    if given.dtype != want.dtype:
        as_q = ", as q has; q, k, v, out and the gradients have one dtype"
        raise TypeError(
            f"{name}: dtype {given.dtype}; allowed here: {want.dtype}"
            f"{as_q if want.dims[-1] == 'head size' else ''}"
        )
    if given.shape == want.shape:
        return
    if len(given.shape) == len(want.shape):
        wrong = ", ".join(
            f"{dim} {have} instead of {size}"
            for dim, have, size in zip(want.dims, given.shape, want.shape, strict=True)
            if have != size
        )
    else:
        wrong = f"{len(given.shape)} dimensions instead of {len(want.shape)}"
    raise ValueError(
        f"{name}: shape {given.shape}; allowed here: {want.shape} [{', '.join(want.dims)}]: {wrong}"
    )


@functools.lru_cache(maxsize=1024)
def _attention(
    q: tuple[int, ...],
    q_dtype: str,
    k: tuple[int, ...],
    k_dtype: str,
    v: tuple[int, ...],
    v_dtype: str,
    scale: float | None,
    left: int,
    right: int,
    sequences: Lengths | None,
) -> Attention:
    dims = _BATCH if sequences is None else _GROUP
    for name, shape, dtype in (("q", q, q_dtype), ("k", k, k_dtype), ("v", v, v_dtype)):
        if dtype not in _C.DTYPES:
            raise TypeError(
                f"{name}: dtype {dtype}; allowed: float16, bfloat16, and on the CPU float32"
            )
        if len(shape) != len(dims):
            raise ValueError(f"{name}: shape {shape}; allowed: [{', '.join(dims)}]")
    (*batch, seqlen_q, heads_q, head_size), (*_, seqlen_k, heads_k, _), head_size_v = q, k, v[-1]
    if min(heads_q, heads_k) < 1 or heads_q % heads_k:
        raise ValueError(
            f"k: {heads_k} heads (shape {k}), but q has {heads_q}; q's must be a multiple of k's, "
            "and neither 0"
        )
    if min(head_size, head_size_v) < 1:
        raise ValueError(f"q, v: head sizes {head_size}, {head_size_v}; allowed: 1 or more")
    dk = ShapeDtype((*batch, seqlen_k, heads_k, head_size), q_dtype, dims)
    dv = ShapeDtype((*k[:-1], head_size_v), q_dtype, dims)
    check("k", ShapeDtype(k, k_dtype), dk)
    check("v", ShapeDtype(v, v_dtype), dv)

    if sequences is None:
        extents = {
            "mode": _C.MODE_BATCH,
            "batch": _int32("q: batch", batch[0]),
            "seqlen_q": _int32("q: seqlen", seqlen_q),
            "seqlen_k": _int32("k: seqlen", seqlen_k),
        }
    else:
        extents = {
            "mode": _C.MODE_GROUP,
            "batch": sequences.batch,
            "seqlen_q": sequences.max_seqlen_q,
            "seqlen_k": sequences.max_seqlen_k,
            "total_q": _int32("q: total tokens", seqlen_q),
            "total_k": _int32("k: total tokens", seqlen_k),
        }
    problem = _C.Problem(
        **extents,
        dtype=_C.DTYPES[q_dtype],
        heads_q=_int32("q: heads", heads_q),
        heads_k=heads_k,
        head_size_qk=_int32("q: head size", head_size),
        head_size_v=_int32("v: head size", head_size_v),
        softmax_scale=1.0 / math.sqrt(head_size) if scale is None else scale,
        mask=_C.MASK_NONE if left == right == -1 else _C.MASK_BOTTOM_RIGHT,
        window_left=left,
        window_right=right,
    )
    out, lse = results(q, v, q_dtype)
    return Attention(problem, out, lse, ShapeDtype(q, q_dtype, dims), dk, dv)


def _window(window_size: tuple[SupportsIndex, SupportsIndex]) -> tuple[int, int]:
    try:
        left, right = window_size
        left, right = operator.index(left), operator.index(right)
    except (TypeError, ValueError):
        raise TypeError(
            f"window_size: {window_size!r}; allowed: two integers (left, right), -1: no bound"
        ) from None
    if not (-1 <= left <= _INT32_MAX and -1 <= right <= _INT32_MAX):
        raise ValueError(f"window_size: ({left}, {right}); allowed: 0 or more, or -1: no bound")
    return left, right


def _float(name: str, value: SupportsFloat) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: {value!r}; allowed: a number, or None") from None


def _int32(what: str, value: SupportsIndex) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what}: {value!r}; allowed: an integer") from None
    if not 0 <= number <= _INT32_MAX:
        raise ValueError(f"{what}: {number}; allowed: 0 to {_INT32_MAX}")
    return number
