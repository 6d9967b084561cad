# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax_aiter.mha. Results are tuples, as they are there."""

from __future__ import annotations

import secrets
import sys
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy
from jax.experimental import io_callback

from aiter_attn import jax as front
from aiter_attn._core.errors import UnsupportedError
from aiter_attn.compat import _names

__all__ = ["flash_attn_func", "flash_attn_varlen"]

_COLUMNS: Final = 8  # of which kernels' head sizes are multiples


def flash_attn_func(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    bias: jax.Array | None = None,
    alibi_slopes: jax.Array | None = None,
    deterministic: bool = True,
    return_lse: bool = False,
    return_attn_probs: bool = False,
    cu_seqlens_q: jax.Array | None = None,
    cu_seqlens_kv: jax.Array | None = None,
    *,
    rng_state: front.RngState | None = None,
) -> tuple[jax.Array, ...]:
    """aiter_attn.jax.flash_attn_func, with the arguments of jax_aiter.mha.flash_attn_func.

    Args:
        q: [batch, seqlen_q, heads_q, head_size]
        k: [batch, seqlen_k, heads_k, head_size]
        v: [batch, seqlen_k, heads_k, head_size_v]. Head sizes that 8 does not divide are padded in
            the program.
        cu_seqlens_q, cu_seqlens_kv: int32 [batch + 1]: sequence i is the first
            cu_seqlens[i + 1] - cu_seqlens[i] rows of batch entry i, and ends there: causal and
            window_size are aligned at its last query and key. Rows behind it give 0, and -inf in
            lse. None: whole. Not beside bias.
        bias: [seqlen_q, seqlen_k], dtype of q; its gradient is the sum over batch and heads.
        alibi_slopes: float32, [heads_q] or [batch, heads_q]; its gradient is 0.
        rng_state: with dropout, which weights are dropped; None: drawn for each call, also of a
            compiled program, which asks Python for it (jax.experimental.io_callback), and so is
            neither exported nor checkpointed. jax.random.bits(key, (4,), "uint32") is part of it.
        return_lse: whether the result has lse, [batch, heads_q, seqlen_q], float32.
        return_attn_probs: whether it has probs: [0], or with dropout those of
            aiter_attn.jax.flash_attn_func.
        The others: see aiter_attn.jax.flash_attn_func.

    Returns:
        (out,), then lse and probs, where they are asked for.

    Raises:
        UnsupportedError: cu_seqlens beside bias. TypeError, ValueError: see
        aiter_attn.jax.flash_attn_func.
    """
    if bias is not None and bias.ndim != 2:
        raise ValueError(f"bias: shape {bias.shape}; allowed: [seqlen_q, seqlen_k]")
    slopes = None if alibi_slopes is None else jax.lax.stop_gradient(alibi_slopes)
    options: dict[str, Any] = {
        "dropout_p": dropout_p,
        "softmax_scale": softmax_scale,
        "causal": causal,
        "window_size": window_size,
        "deterministic": deterministic,
        "rng_state": _drawn(dropout_p, rng_state, q, k, v),
    }
    if cu_seqlens_q is None and cu_seqlens_kv is None:
        added = None if bias is None else bias[None, None]
        results = _padded(
            front.flash_attn_func, q, k, v, alibi_slopes=slopes, bias=added, **options
        )
    elif bias is not None:
        raise UnsupportedError("bias: with cu_seqlens; allowed: one of them")
    else:
        results = _first_rows(q, k, v, cu_seqlens_q, cu_seqlens_kv, slopes, options)
    out, lse, probs = results
    return (out, *([lse] if return_lse else []), *([probs] if return_attn_probs else []))


def flash_attn_varlen(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    cu_seqlens_q: jax.Array,
    cu_seqlens_k: jax.Array,
    max_seqlen_q: int = 0,
    max_seqlen_k: int = 0,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    deterministic: bool = False,
    return_lse: bool = False,
    *,
    rng_state: front.RngState | None = None,
) -> tuple[jax.Array, ...]:
    """aiter_attn.jax.flash_attn_varlen_func, with the arguments of jax_aiter.mha.flash_attn_varlen.

    Args:
        max_seqlen_q, max_seqlen_k: the greatest lengths; 0: those of cu_seqlens, and where these
            are traced the number of tokens.
        rng_state: see flash_attn_func, as for head sizes.
        The others: see aiter_attn.jax.flash_attn_varlen_func.

    Returns:
        (out,), with return_lse (out, lse): lse [heads_q, total_q], float32.

    Raises:
        TypeError, ValueError: see aiter_attn.jax.flash_attn_varlen_func.
    """
    out, lse, _ = _padded(
        front.flash_attn_varlen_func,
        q,
        k,
        v,
        cu_seqlens_q,
        cu_seqlens_k,
        _greatest(max_seqlen_q, cu_seqlens_q, q),
        _greatest(max_seqlen_k, cu_seqlens_k, k),
        dropout_p=dropout_p,
        softmax_scale=softmax_scale,
        causal=causal,
        window_size=window_size,
        deterministic=deterministic,
        rng_state=_drawn(dropout_p, rng_state, q, k, v),
    )
    return (out, lse) if return_lse else (out,)


def _padded(function: Any, q: Any, k: Any, v: Any, *more: Any, **options: Any) -> Any:
    """(out, lse, probs) of the function, with head sizes that 8 divides: more columns of 0."""

    def wide(x: jax.Array) -> jax.Array:
        missing = -x.shape[-1] % _COLUMNS
        return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)]) if missing else x

    if options["softmax_scale"] is None:
        options["softmax_scale"] = q.shape[-1] ** -0.5
    out, lse, probs = function(wide(q), wide(k), wide(v), *more, return_attn_probs=True, **options)
    return out[..., : v.shape[-1]], lse, probs


def _greatest(given: int, starts: Any, x: jax.Array) -> int:
    if given != 0:
        return given
    if isinstance(starts, jax.core.Tracer):
        return int(x.shape[0])
    return int(numpy.diff(numpy.asarray(starts)).max(initial=0))


def _first_rows(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    starts_q: Any,
    starts_k: Any,
    slopes: jax.Array | None,
    options: dict[str, Any],
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Of sequences that are the first rows of batch entries: a varlen call over all rows, of which
    those behind a sequence are one more, so that nothing is copied."""
    batch, seqlen_q, heads_q, _ = q.shape
    seqlen_k = k.shape[1]
    rows_q = _lengths("cu_seqlens_q", starts_q, batch, seqlen_q)
    rows_k = _lengths("cu_seqlens_kv", starts_k, batch, seqlen_k)
    packed = (x.reshape(-1, *x.shape[2:]) for x in (q, k, v))
    if slopes is not None and slopes.ndim == 2:
        slopes = jnp.repeat(slopes, 2, axis=0)
    out, lse, probs = _padded(
        front.flash_attn_varlen_func,
        *packed,
        _bounds(rows_q, seqlen_q),
        _bounds(rows_k, seqlen_k),
        seqlen_q,
        seqlen_k,
        alibi_slopes=slopes,
        **options,
    )
    within = jnp.arange(seqlen_q) < rows_q[:, None]
    out = jnp.where(within[..., None, None], out.reshape(batch, seqlen_q, *out.shape[1:]), 0)
    lse = jnp.where(within[:, None], lse.reshape(heads_q, batch, seqlen_q).swapaxes(0, 1), -jnp.inf)
    if probs.size > 0:
        probs = probs.reshape(heads_q, batch, seqlen_q, seqlen_k).swapaxes(0, 1)
    return out, lse, probs


def _lengths(name: str, starts: Any, batch: int, seqlen: int) -> jax.Array:
    if starts is None:
        return jnp.full((batch,), seqlen, jnp.int32)
    starts = jnp.asarray(starts)
    if starts.dtype != jnp.int32 or starts.shape != (batch + 1,):
        raise ValueError(
            f"{name}: dtype {starts.dtype}, shape {starts.shape}; allowed here: int32, "
            f"{(batch + 1,)} [batch + 1]"
        )
    rows = starts[1:] - starts[:-1]
    if not isinstance(rows, jax.core.Tracer) and bool(((rows < 0) | (rows > seqlen)).any()):
        raise ValueError(f"{name}: lengths {rows.tolist()}; allowed here: 0 to {seqlen}")
    return jnp.clip(rows, 0, seqlen)  # traced ones: in memory that is the array's


def _bounds(rows: jax.Array, seqlen: int) -> jax.Array:
    """cu_seqlens of each entry's sequence and of the rows behind it."""
    first = jnp.arange(len(rows), dtype=jnp.int32) * seqlen
    ends = jnp.stack([first + rows, first + seqlen], axis=1)
    return jnp.concatenate([jnp.zeros(1, jnp.int32), ends.reshape(-1)])


def _drawn(dropout_p: float, rng_state: Any, *arrays: Any) -> Any:
    if dropout_p == 0.0 or rng_state is not None:
        return rng_state
    if any(isinstance(array, jax.core.Tracer) for array in arrays):
        return io_callback(_words, jax.ShapeDtypeStruct((4,), jnp.uint32))
    return _words()


def _words() -> numpy.ndarray:
    """rng_state: a random seed, and offset 0."""
    return numpy.array([secrets.randbits(32), secrets.randbits(32), 0, 0], numpy.uint32)


def __getattr__(name: str) -> Any:
    if name == "mha":  # jax_aiter.mha.mha is a module there
        return sys.modules[__name__]
    raise _names.missing("jax_aiter.mha", name, __all__)
