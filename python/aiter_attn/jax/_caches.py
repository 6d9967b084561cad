# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention over key-value caches of jax arrays: one XLA custom call, behind XLA's own scatter of
the new keys, which a program that donates its caches does in place."""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple, SupportsIndex

import jax
import jax.numpy as jnp
import numpy

from aiter_attn import _C
from aiter_attn._core import cache_problems, problems, reading
from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.options import Options, options
from aiter_attn._core.problems import ShapeDtype
from aiter_attn.jax import _ffi
from aiter_attn.jax._attention import array_of
from aiter_attn.jax._calls import device_of, with_sink

__all__ = ["flash_attn_with_kvcache"]

_NO_GRADIENT: Final = (
    "flash_attn_with_kvcache: differentiated, and attention over a cache has no backward pass; "
    "pass jax.lax.stop_gradient of its arrays, or call flash_attn_func"
)


class _Static(NamedTuple):
    """The constants of a compiled program. The arrays are q, k_cache and v_cache, and those of
    block_table, cache_seqlens, cache_batch_idx and alibi_slopes that `given` names."""

    given: tuple[str, ...]
    options: Options
    splits: int


def flash_attn_with_kvcache(
    q: jax.Array,
    k_cache: jax.Array,
    v_cache: jax.Array,
    k: jax.Array | None = None,
    v: jax.Array | None = None,
    rotary_cos: jax.Array | None = None,
    rotary_sin: jax.Array | None = None,
    cache_seqlens: SupportsIndex | jax.Array | None = None,
    cache_batch_idx: jax.Array | None = None,
    cache_leftpad: None = None,
    block_table: jax.Array | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: jax.Array | None = None,
    num_splits: SupportsIndex = 0,
    return_softmax_lse: bool = False,
    *,
    sink: jax.Array | None = None,
) -> Any:
    """Attention over a cache, as aiter_attn.flash_attn_with_kvcache has it; but arrays of jax do
    not change: with k and v the caches that have them are results. A jitted function whose caches
    are donated writes in place.

    Args:
        q: [batch, seqlen_q, heads_q, head_size], float16, bfloat16 or, on the CPU, float32.
        k_cache: [entries, seqlen_cache, heads_k, head_size], or with block_table [pages, page_size,
            heads_k, head_size]; v_cache: the same with head_size_v.
        k, v: [batch, seqlen_new, heads_k, head_size] and head_size_v: written behind the
            cache_seqlens keys of each sequence; rows behind a sequence's room are not. None:
            nothing is appended.
        cache_seqlens: an int, or int32 [batch], which may be traced.
        cache_leftpad: None alone.
        The others: as aiter_attn.flash_attn_with_kvcache has them; arrays may be traced. No two
            sequences are written to one entry or page.

    Returns:
        out, [batch, seqlen_q, heads_q, head_size_v]. With return_softmax_lse lse follows, float32
        [batch, heads_q, seqlen_q]; with k the new k_cache and v_cache follow.

    Raises:
        TypeError, ValueError: of shapes, dtypes and numbers. UnsupportedError: cache_leftpad,
        derivatives; no kernel of this build serves the call on jax's GPU. On the CPU lengths and
        pages that are out of range end the program with XLA's error, which names them.
    """
    with_lse = reading.flag("return_softmax_lse", return_softmax_lse)
    interleaved = reading.flag("rotary_interleaved", rotary_interleaved)
    if cache_leftpad is not None:
        raise UnsupportedError(
            "cache_leftpad: given; allowed in aiter_attn.jax: None, and caches whose keys begin at "
            "0 (aiter_attn.flash_attn_with_kvcache takes it with concrete arrays on the CPU)"
        )
    cache_problems.check_entries(cache_batch_idx, None, block_table)
    tables = cache_problems.appending(k, v, rotary_cos, rotary_sin, cache_seqlens)
    q, k_cache, v_cache = map(array_of, ("q", "k_cache", "v_cache"), (q, k_cache, v_cache))
    chosen = options(0.0, softmax_scale, causal, window_size, softcap)
    more = {
        "block_table": block_table,
        "cache_seqlens": cache_seqlens,
        "cache_batch_idx": cache_batch_idx,
        "alibi_slopes": alibi_slopes,
    }
    arrays = {n: _numbers(n, x, q) for n, x in more.items() if x is not None}
    splits = reading.integer("num_splits", num_splits, *cache_problems.SPLITS)
    static = _Static(tuple(arrays), chosen, splits)
    over = _over(static, (q, k_cache, v_cache, *arrays.values()))
    if sink is not None:
        sink = array_of("sink", sink)
        problems.check_sink(_shape_of(sink), over.attention.problem.heads_q)
    if k is not None and v is not None:
        k, v = array_of("k", k), array_of("v", v)
        q, k = _turned(q, k, over, arrays["cache_seqlens"], tables, interleaved, chosen)
        cache_problems.appended(over, _shape_of(k), _shape_of(v), cache_problems.Rotary())
        tokens = arrays["cache_seqlens"][:, None] + jnp.arange(k.shape[1], dtype=jnp.int32)
        places = _places(over, tokens, arrays)
        # Else XLA writes 16 bits by compare and swap, for which it reads what lies beside them.
        k_cache = k_cache.at[places].set(k, mode="drop", unique_indices=True)
        v_cache = v_cache.at[places].set(v, mode="drop", unique_indices=True)
        arrays["cache_seqlens"] = arrays["cache_seqlens"] + numpy.int32(k.shape[1])
    operands = (q, k_cache, v_cache, *arrays.values())
    _check_served(static, over, operands)
    out, lse = _forward(static)(*operands)
    out, lse = with_sink(out, lse, sink)
    results = (out, *((lse,) if with_lse else ()), *((k_cache, v_cache) if k is not None else ()))
    return results if len(results) > 1 else out


def _shape_of(array: Any) -> ShapeDtype:
    return ShapeDtype(tuple(array.shape), array.dtype.name)


def _numbers(name: str, given: Any, q: jax.Array) -> jax.Array:
    """An array of the call. Raises TypeError or ValueError where it has no number for each
    sequence."""
    # Of another dtype it would become one of int32.
    array = given if hasattr(given, "dtype") else array_of(name, given)
    if name == "cache_seqlens" and array.ndim == 0:
        if hasattr(given, "dtype"):
            cache_problems.check_numbers(name, _shape_of(array), (), "[]")
        else:
            array = numpy.int32(reading.integer(name, given))
        return jnp.full(q.shape[:1], array, jnp.int32)
    if name in ("cache_seqlens", "cache_batch_idx"):
        cache_problems.check_numbers(name, _shape_of(array), q.shape[:1], "[batch]")
    return array_of(name, array)


def _over(static: _Static, arrays: Any) -> cache_problems.Cached:
    q, k, v, *others = map(_shape_of, arrays)
    more = dict(zip(static.given, others, strict=True))
    return cache_problems.cached(
        q,
        k,
        v,
        ("k_cache", "v_cache"),
        block_table=more.get("block_table"),
        chooses_entries="cache_batch_idx" in more,
        options=static.options,
        alibi_slopes=more.get("alibi_slopes"),
        splits=static.splits,
    )


def _turned(
    q: jax.Array,
    k: jax.Array,
    over: cache_problems.Cached,
    lengths: jax.Array,
    tables: tuple[Any, Any] | None,
    interleaved: bool,
    chosen: Options,
) -> tuple[jax.Array, jax.Array]:
    """q and k, rotated as the tokens that they are."""
    if tables is None:
        return q, k
    cos, sin = map(array_of, ("rotary_cos", "rotary_sin"), tables)
    turned = cache_problems.rotary(_shape_of(cos), _shape_of(sin), _shape_of(q), interleaved)
    if turned.size % 16 or not 0 < turned.size <= q.shape[-1]:
        raise ValueError(
            f"rotary_cos: shape {cos.shape}, which rotates {turned.size} elements; allowed: a "
            f"multiple of 16 up to {q.shape[-1]}, the head size"
        )
    if turned.length < over.room:
        raise ValueError(
            f"rotary_cos: {turned.length} rows; allowed here: {over.room} or more, the room of a "
            "sequence"
        )
    has_order = chosen.causal or tuple(chosen.window_size) != (-1, -1)
    first = lengths[:, None]
    of_q = first + (jnp.arange(q.shape[1]) if has_order else jnp.zeros(q.shape[1], jnp.int32))
    of_k = first + jnp.arange(k.shape[1])
    return (
        _rotated(q, cos[of_q], sin[of_q], interleaved),
        _rotated(k, cos[of_k], sin[of_k], interleaved),
    )


def _rotated(x: jax.Array, cos: jax.Array, sin: jax.Array, interleaved: bool) -> jax.Array:
    """cos, sin: [batch, tokens, pairs]."""
    pairs = cos.shape[-1]
    cos, sin = (table[:, :, None].astype(jnp.float32) for table in (cos, sin))
    turned = x[..., : 2 * pairs].astype(jnp.float32)
    by_pairs = (pairs, 2) if interleaved else (2, pairs)
    axis = -1 if interleaved else -2
    first, second = jnp.moveaxis(turned.reshape(*x.shape[:-1], *by_pairs), axis, 0)
    both = (first * cos - second * sin, second * cos + first * sin)
    turned = jnp.stack(both, axis).reshape(turned.shape).astype(x.dtype)
    return jnp.concatenate([turned, x[..., 2 * pairs :]], -1)


def _places(over: cache_problems.Cached, tokens: jax.Array, arrays: dict[str, jax.Array]) -> Any:
    """Where tokens lie, int32 [batch, tokens]: the index of the entry or page, and the row in it.
    Those that have no place are beyond the last one, each at another."""
    entries, page_size = over.numbers["entries"], over.numbers["page_size"]
    inside = (tokens >= 0) & (tokens < over.room)
    if page_size:
        pages = jnp.clip(tokens // page_size, 0, arrays["block_table"].shape[1] - 1)
        entry = jnp.take_along_axis(arrays["block_table"], pages, axis=1)
        row = tokens % page_size
    else:
        first = arrays.get("cache_batch_idx", jnp.arange(len(tokens), dtype=jnp.int32))
        entry, row = jnp.broadcast_to(first[:, None], tokens.shape), tokens
    nowhere = entries + jnp.arange(tokens.size, dtype=jnp.int32).reshape(tokens.shape)
    return jnp.where(inside & (entry >= 0), entry, nowhere), row


def _check_served(static: _Static, over: cache_problems.Cached, arrays: Any) -> None:
    """Raises UnsupportedError where no kernel of this build serves the call on jax's GPU."""
    device = device_of(arrays)
    if device is None:
        return
    names = ["lse", *(["seqlens_k"] if "cache_seqlens" in static.given else [])]
    problem = over.attention.problem.on(_C.DEVICE_ROCM, 0, 0)
    numbers = over.numbers | {"splits": over.splits}
    _C.plan_kvcache_fwd(problem, numbers, names, device.compute_capability)


@functools.lru_cache(maxsize=256)
def _forward(static: _Static) -> Any:
    """(out, lse)"""

    def call(*arrays: jax.Array) -> tuple[jax.Array, ...]:
        over = _over(static, arrays)
        results = tuple(
            jax.ShapeDtypeStruct(r.shape, jnp.dtype(r.dtype))
            for r in (over.attention.out, over.attention.lse)
        )
        operation = jax.ffi.ffi_call(_ffi.KVCACHE_FWD, results, vmap_method="sequential")
        numbers = {
            "page_size": over.numbers["page_size"],
            "splits": over.splits,
            "has_lengths": int("cache_seqlens" in static.given),
            "has_entries": int("cache_batch_idx" in static.given),
        }
        return tuple(
            operation(*arrays, **_ffi.attributes(over.attention.problem.options() | numbers))
        )

    return _ffi.without_derivative(jax.jit(call), _NO_GRADIENT)
