# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention of jax arrays with flash-attn's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex, TypeAlias

import jax
import jax.numpy as jnp
import numpy

from aiter_attn._core import problems, reading
from aiter_attn._core.options import Options, options
from aiter_attn.jax._calls import Static, attention, dropout_mask, problem_of

__all__ = ["RngState", "array_of", "flash_attn_func", "flash_attn_varlen_func"]

RngState: TypeAlias = "tuple[SupportsIndex, SupportsIndex] | jax.Array"


def flash_attn_func(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: jax.Array | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    bias: jax.Array | None = None,
    rng_state: RngState | None = None,
    sink: jax.Array | None = None,
) -> Any:
    """Attention of jax arrays, as aiter_attn.flash_attn_func has it.

    Args:
        q: [batch, seqlen_q, heads_q, head_size]
        k: [batch, seqlen_k, heads_k, head_size]
        v: [batch, seqlen_k, heads_k, head_size_v]
        alibi_slopes: float32, [heads_q] or [batch, heads_q]; not differentiated.
        bias: the term that is added to the scores, [batch, heads_q, seqlen_q, seqlen_k], dtype of
        q; any of
            the first three may be 1, which serves all. Not beside alibi_slopes.
        rng_state: with dropout (seed, offset), Python integers: constants of the program. Or four
            words of any random numbers, uint32 [4], which may be traced: jax.random.bits(key, (4,),
            "uint32"). The low words of seed and offset come first.
        sink: float32 [heads_q]: one more score of every query of a head, of a key whose value is 0.
        return_attn_probs: see Returns.
        The others: as aiter_attn.flash_attn_func has them.

    Returns:
        out, [batch, seqlen_q, heads_q, head_size_v], dtype of q. With return_attn_probs
        (out, lse, probs): lse [batch, heads_q, seqlen_q], float32; probs [0], or with dropout
        uint8 [batch, heads_q, seqlen_q, seqlen_k]: 1 where a weight stays, 0 where it is dropped.

    Raises:
        TypeError, ValueError: of shapes, dtypes and numbers. UnsupportedError: no kernel of this
        build serves the call on jax's GPU.
    """
    chosen = options(dropout_p, softmax_scale, causal, window_size, softcap, deterministic)
    more = {"alibi_slopes": alibi_slopes, "bias": bias}
    return _attention((q, k, v), None, chosen, more, sink, return_attn_probs, rng_state)


def flash_attn_varlen_func(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    cu_seqlens_q: jax.Array,
    cu_seqlens_k: jax.Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: jax.Array | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    rng_state: RngState | None = None,
    sink: jax.Array | None = None,
) -> Any:
    """Attention over packed sequences, as aiter_attn.flash_attn_varlen_func has it.

    Args:
        q: [total_q, heads_q, head_size]; k: [total_k, heads_k, head_size];
        v: [total_k, heads_k, head_size_v]
        cu_seqlens_q, cu_seqlens_k: int32, [batch + 1]; they may be traced. The last number is the
            number of tokens.
        max_seqlen_q, max_seqlen_k: the greatest lengths, Python integers.
        The others: see flash_attn_func.

    Returns:
        out, [total_q, heads_q, head_size_v], dtype of q. With return_attn_probs (out, lse, probs):
        lse [heads_q, total_q], float32; probs [0], or with dropout uint8
        [heads_q, total_q, max_seqlen_k]: 1 where a weight stays.

    Raises:
        TypeError, ValueError, UnsupportedError: see flash_attn_func.
    """
    most = (
        reading.integer("max_seqlen_q", max_seqlen_q),
        reading.integer("max_seqlen_k", max_seqlen_k),
    )
    chosen = options(dropout_p, softmax_scale, causal, window_size, softcap, deterministic)
    arrays = q, k, v, cu_seqlens_q, cu_seqlens_k
    more = {"alibi_slopes": alibi_slopes}
    return _attention(arrays, most, chosen, more, sink, return_attn_probs, rng_state)


def _attention(
    arrays: Sequence[Any],
    most: tuple[int, int] | None,
    chosen: Options,
    given: dict[str, jax.Array | None],
    sink: jax.Array | None,
    return_attn_probs: bool,
    rng_state: RngState | None,
) -> Any:
    with_lse = reading.flag("return_attn_probs", return_attn_probs)
    last = [(name, array) for name, array in given.items() if array is not None]
    if len(last) > 1:
        raise ValueError("bias, alibi_slopes: both given; allowed: one of them")
    state = _words(chosen.dropout_p, rng_state)
    names = ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")
    whole = [array_of(name, array) for name, array in zip(names, arrays, strict=False)]
    static = Static(most, chosen, last[0][0] if last else "")
    whole += [jnp.asarray(words) for words in state]
    whole += [array_of(name, array) for name, array in last]
    heads_q = problem_of(static, whole).problem.heads_q
    of_call, operands = static, whole
    if sink is not None:
        sink = array_of("sink", sink)
        problems.check_sink(problems.ShapeDtype(sink.shape, sink.dtype.name), heads_q)
        of_call, operands = static._replace(has_sink=True), [*whole, sink]
    out, lse = attention(of_call, *operands)
    if not with_lse:
        return out
    has_dropout = chosen.dropout_p > 0.0
    probs = dropout_mask(static, *whole) if has_dropout else jnp.zeros((0,), out.dtype)
    return out, jax.lax.stop_gradient(lse), probs


def array_of(name: str, array: Any) -> jax.Array:
    try:
        return jnp.asarray(array)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: {reading.shown(array)} is no array of jax: {error}") from error


def _words(dropout_p: float, given: RngState | None) -> list[Any]:
    """rng_state as the custom calls take it; [] without dropout."""
    if isinstance(given, (jax.Array, numpy.ndarray)):
        allowed = 'uint32 (4,), such as jax.random.bits(key, (4,), "uint32") makes of a key'
        if given.dtype != jnp.uint32:
            raise TypeError(f"rng_state: dtype {given.dtype}; allowed: {allowed}")
        if given.shape != (4,):
            raise ValueError(f"rng_state: shape {given.shape}; allowed: {allowed}")
        words: Any = given
    else:
        state = problems.rng_state(dropout_p, given)
        words = numpy.array(state, numpy.uint64).view(numpy.uint32)
    return [words] if dropout_p > 0.0 else []
