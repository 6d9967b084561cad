# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention by operators: of separate and of packed arrays, and over key-value caches.
torch.compile traces what is here."""

from __future__ import annotations

from typing import Any, Final

import torch

from aiter_attn._core import cache_problems, fp8_scales, problems, reading, used_rows
from aiter_attn._core.cache_problems import SPLITS, appending, check_entries
from aiter_attn._core.fp8_scales import Scale
from aiter_attn.torch import _caches, _fp8, _mha, _tracing
from aiter_attn.torch._arguments import (
    cast,
    check_given_tensors,
    check_inference,
    check_no_workspace,
    check_tensors,
    size,
)
from aiter_attn.torch._operators import run
from aiter_attn.torch._used import split

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
    "mha_fwd",
    "mha_varlen_fwd",
    "random_state",
]

_OVER_CACHE: Final = "attention over a key-value cache"
_GREATEST_DRAWN: Final = 2**62


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    rng_state: Any = None,
    sink: torch.Tensor | None = None,
    q_descale: Scale = None,
    k_descale: Scale = None,
    v_descale: Scale = None,
    out_scale: Scale = None,
    out_dtype: torch.dtype | str | None = None,
) -> Any:
    """aiter_attn.flash_attn_func, differentiable by q, k, v and sink where they are not fp8.

    Args:
        rng_state: with dropout (seed, offset), or int64 [2] in host memory or where q is; None:
            drawn from torch's default generator on the CPU.
        The others: see aiter_attn.flash_attn_func.

    Returns, raises: see there. lse and probs of return_attn_probs are not differentiable.
    """
    with_lse = reading.flag("return_attn_probs", return_attn_probs)
    numbers = dropout_p, softmax_scale, causal, window_size, softcap, deterministic
    chosen = _all_options(*numbers, alibi_slopes, rng_state, sink)
    scales = q_descale, k_descale, v_descale, out_scale, _fp8.name_of(out_dtype)
    if _fp8.is_fp8(q, scales):
        return _fp8.attend(q, k, v, (), chosen, scales, with_lse)
    return _attend(q, k, v, (), chosen, with_lse)


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
    *,
    seqused_q: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    rng_state: Any = None,
    sink: torch.Tensor | None = None,
    workspace: None = None,
    q_descale: Scale = None,
    k_descale: Scale = None,
    v_descale: Scale = None,
    out_scale: Scale = None,
    out_dtype: torch.dtype | str | None = None,
) -> Any:
    """aiter_attn.flash_attn_varlen_func, differentiable by q, k, v and sink, but neither with
    block_table nor with fp8.

    Args:
        rng_state: see flash_attn_func.
        workspace: None: torch's allocator has it.
        The others: see aiter_attn.flash_attn_varlen_func.

    Returns, raises: see there. lse and probs of return_attn_probs are not differentiable.
    """
    with_lse = reading.flag("return_attn_probs", return_attn_probs)
    check_no_workspace(workspace)
    sequences = _sequences(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    scales = q_descale, k_descale, v_descale, out_scale, _fp8.name_of(out_dtype)
    if seqused_q is not None or seqused_k is not None:
        used_rows.check(seqused_q, seqused_k, block_table, scales)
        sequences, alibi_slopes = split(q, k, sequences, (seqused_q, seqused_k), alibi_slopes)
    if block_table is not None:
        cache_problems.check_no_dropout(dropout_p)
        fp8_scales.check_none(scales, "there is no fp8 beside block_table")
        over = (alibi_slopes, sink, *_options(softmax_scale, causal, window_size, softcap))
        return _attend_paged(q, k, v, sequences, block_table, over, with_lse)
    numbers = dropout_p, softmax_scale, causal, window_size, softcap, deterministic
    chosen = _all_options(*numbers, alibi_slopes, rng_state, sink)
    if _fp8.is_fp8(q, scales):
        return _fp8.attend(q, k, v, sequences, chosen, scales, with_lse)
    return _attend(q, k, v, sequences, chosen, with_lse)


def mha_fwd(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    dropout_p: float = 0.0,
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    deterministic: bool = False,
    rng_state: Any = None,
    sink: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """aiter_attn.mha_fwd, differentiable by q, k, v, bias and sink.

    Args:
        deterministic: about the backward pass.
        rng_state: see flash_attn_func.
        The others: see aiter_attn.mha_fwd.

    Returns:
        (out, lse); lse is not differentiable.

    Raises: see aiter_attn.mha_fwd.
    """
    numbers = dropout_p, softmax_scale, causal, window_size, softcap, deterministic
    chosen = _all_options(*numbers, alibi_slopes, rng_state, sink)
    return _forward(q, k, v, bias, (), chosen)[:2]


def mha_varlen_fwd(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    dropout_p: float = 0.0,
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    deterministic: bool = False,
    rng_state: Any = None,
    sink: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """aiter_attn.mha_varlen_fwd, differentiable by q, k, v, bias and sink; see mha_fwd."""
    sequences = _sequences(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    numbers = dropout_p, softmax_scale, causal, window_size, softcap, deterministic
    chosen = _all_options(*numbers, alibi_slopes, rng_state, sink)
    return _forward(q, k, v, bias, sequences, chosen)[:2]


def flash_attn_qkvpacked_func(qkv: torch.Tensor, *options: Any, **more: Any) -> Any:
    """flash_attn_func of qkv's parts, [batch, seqlen, 3, heads, head_size]; its gradient is one
    tensor, too. See aiter_attn.flash_attn_qkvpacked_func."""
    return flash_attn_func(*_parts("qkv", qkv, 3), *options, **more)


def flash_attn_kvpacked_func(q: torch.Tensor, kv: torch.Tensor, *options: Any, **more: Any) -> Any:
    """flash_attn_func of q and kv's parts, [batch, seqlen_k, 2, heads_k, head_size]. See
    aiter_attn.flash_attn_kvpacked_func."""
    return flash_attn_func(q, *_parts("kv", kv, 2), *options, **more)


def flash_attn_varlen_qkvpacked_func(
    qkv: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: int, *options: Any, **more: Any
) -> Any:
    """flash_attn_varlen_func of qkv's parts, [total, 3, heads, head_size]. See
    aiter_attn.flash_attn_varlen_qkvpacked_func."""
    parts = _parts("qkv", qkv, 3, is_varlen=True)
    lengths = (cu_seqlens, cu_seqlens, max_seqlen, max_seqlen)
    arguments: tuple[Any, ...] = (*parts, *lengths, *options)
    return flash_attn_varlen_func(*arguments, **more)


def flash_attn_varlen_kvpacked_func(
    q: torch.Tensor,
    kv: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    *options: Any,
    **more: Any,
) -> Any:
    """flash_attn_varlen_func of q and kv's parts, [total_k, 2, heads_k, head_size]. See
    aiter_attn.flash_attn_varlen_kvpacked_func."""
    parts = _parts("kv", kv, 2, is_varlen=True)
    lengths = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    arguments: tuple[Any, ...] = (q, *parts, *lengths, *options)
    return flash_attn_varlen_func(*arguments, **more)


def flash_attn_with_kvcache(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    k: torch.Tensor | None = None,
    v: torch.Tensor | None = None,
    rotary_cos: torch.Tensor | None = None,
    rotary_sin: torch.Tensor | None = None,
    cache_seqlens: int | torch.Tensor | None = None,
    cache_batch_idx: torch.Tensor | None = None,
    cache_leftpad: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: torch.Tensor | None = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
    *,
    sink: torch.Tensor | None = None,
    workspace: None = None,
) -> Any:
    """aiter_attn.flash_attn_with_kvcache of tensors. There is no backward pass, as in flash-attn:
    a tensor that requires a gradient is an UnsupportedError.

    Args:
        workspace: None: torch's allocator has it.
        The others: see aiter_attn.flash_attn_with_kvcache.

    Returns, raises: see there.
    """
    check_entries(cache_batch_idx, cache_leftpad, block_table)
    appending(k, v, rotary_cos, rotary_sin, cache_seqlens)
    check_no_workspace(workspace)
    more = {"k": k, "v": v, "alibi_slopes": alibi_slopes, "sink": sink}
    tables = {"rotary_cos": rotary_cos, "rotary_sin": rotary_sin}
    check_tensors(q=q, k_cache=k_cache, v_cache=v_cache)
    chooses = {"cache_batch_idx": cache_batch_idx, "cache_leftpad": cache_leftpad}
    check_given_tensors(**more, **tables, **chooses, block_table=block_table)
    check_inference(_OVER_CACHE, q=q, k_cache=k_cache, v_cache=v_cache, **more, **tables)
    is_array = isinstance(cache_seqlens, torch.Tensor)
    is_number = not is_array and cache_seqlens is not None
    chosen = (
        cache_seqlens if is_array else None,
        size("cache_seqlens", cache_seqlens) if is_number else None,
        cache_batch_idx,
        cache_leftpad,
        block_table,
        size("num_splits", num_splits, *SPLITS),
        alibi_slopes,
        sink,
        *_options(softmax_scale, causal, window_size, softcap),
        reading.flag("return_softmax_lse", return_softmax_lse),
    )
    if k is None:
        out, lse = _caches.mha_fwd_kvcache(*cast(q), k_cache, v_cache, *chosen)
    else:
        _check_no_negative(k_cache=k_cache, v_cache=v_cache)
        q, k, v, rotary_cos, rotary_sin = cast(q, k, v, rotary_cos, rotary_sin)
        interleaved = reading.flag("rotary_interleaved", rotary_interleaved)
        out, lse = _caches.mha_fwd_kvcache_append(
            q, k_cache, v_cache, k, v, rotary_cos, rotary_sin, interleaved, *chosen
        )
    return (out, lse) if return_softmax_lse else out


def _options(
    softmax_scale: Any, causal: Any, window_size: Any, softcap: Any
) -> tuple[float | None, bool, int, int, float]:
    """The options that all operators take, in their order, of which window_size is two."""
    if softmax_scale is not None:
        softmax_scale = reading.number("softmax_scale", softmax_scale, "a number, or None")
    return (
        softmax_scale,
        reading.flag("causal", causal),
        *_window(window_size),
        reading.number("softcap", softcap, "a number above 0; 0.0: no cap"),
    )


def _window(window_size: Any) -> tuple[int, int]:
    allowed = "two integers (left, right), -1: no bound"
    if torch.compiler.is_compiling():
        # operator.index of a tensor is not traced.
        left, right = window_size
        left = left.item() if isinstance(left, torch.Tensor) else left
        return left, right.item() if isinstance(right, torch.Tensor) else right
    left, right = reading.pair("window_size", window_size, allowed)
    # Keys are never that many, and an operator takes 64 bits.
    most = reading.INT32_MAX
    if -1 <= left <= most and -1 <= right <= most:
        return left, right
    return max(-1, min(left, most)), max(-1, min(right, most))


def _all_options(
    dropout_p: Any,
    softmax_scale: Any,
    causal: Any,
    window_size: Any,
    softcap: Any,
    deterministic: Any,
    alibi_slopes: torch.Tensor | None,
    rng_state: Any,
    sink: torch.Tensor | None,
) -> tuple[Any, ...]:
    """The last arguments of an operator of attention: _mha.Options, but for bias. torch 2.6 traces
    tuples without names."""
    check_given_tensors(alibi_slopes=alibi_slopes, sink=sink)
    probability = reading.number("dropout_p", dropout_p, "a probability below 1; 0.0: none")
    return (
        alibi_slopes,
        None if probability == 0.0 else random_state(probability, rng_state),
        sink,
        probability,
        *_options(softmax_scale, causal, window_size, softcap),
        reading.flag("deterministic", deterministic)
        or torch.are_deterministic_algorithms_enabled(),
    )


def random_state(dropout_p: float, given: Any) -> torch.Tensor:
    """Seed and offset. Drawn in host memory: the library gets them as numbers, without a wait."""
    if given is None:
        return torch.randint(_GREATEST_DRAWN, (2,), dtype=torch.int64, device="cpu")
    if isinstance(given, torch.Tensor):
        if given.dtype != torch.int64 or given.shape != (2,):
            raise ValueError(
                f"rng_state: dtype {given.dtype}, shape {tuple(given.shape)}; allowed: (seed, "
                "offset), or an int64 tensor of shape (2,), in host memory or where q is"
            )
        return given
    # int64 with the same bits.
    state = [x - 2**64 if x >= 2**63 else x for x in problems.rng_state(dropout_p, given)]
    return torch.tensor(state, dtype=torch.int64, device="cpu")


def _parts(name: str, packed: Any, count: int, is_varlen: bool = False) -> Any:
    check_tensors(**{name: packed})
    along = problems.check_packed(name, _tracing.described(packed), count, is_varlen)
    return packed.unbind(along)


def _forward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    bias: torch.Tensor | None,
    sequences: tuple[Any, ...],
    chosen: tuple[Any, ...],
) -> tuple[torch.Tensor, torch.Tensor, tuple[Any, ...]]:
    """(out, lse, the operator's arguments)"""
    check_tensors(q=q, k=k, v=v)
    if bias is not None:
        check_tensors(bias=bias)
        (bias,) = cast(bias, like=q)
    arguments = (*cast(q, k, v), *sequences, bias, *chosen)
    forward = _mha.mha_varlen_fwd if sequences else _mha.mha_fwd
    tensors = (q, k, v, bias, *sequences[:2], *chosen[:3])
    return *run(forward, arguments, tensors), arguments


def _attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    sequences: tuple[Any, ...],
    chosen: tuple[Any, ...],
    with_lse: bool,
) -> Any:
    """out; with_lse (out, lse, probs)."""
    out, lse, arguments = _forward(q, k, v, None, sequences, chosen)
    if not with_lse:
        return out
    has_dropout = chosen[1] is not None
    if not has_dropout:
        return out, lse, out.new_empty(0)
    mask = _mha.mha_varlen_dropout_mask if sequences else _mha.mha_dropout_mask
    with torch.no_grad():
        return out, lse, mask(*arguments)


def _sequences(
    cu_seqlens_q: Any, cu_seqlens_k: Any, max_seqlen_q: Any, max_seqlen_k: Any
) -> tuple[Any, ...]:
    check_tensors(cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k)
    longest = size("max_seqlen_q", max_seqlen_q), size("max_seqlen_k", max_seqlen_k)
    return cu_seqlens_q, cu_seqlens_k, *longest


def _attend_paged(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    sequences: tuple[Any, ...],
    block_table: torch.Tensor,
    options: tuple[Any, ...],
    with_lse: bool,
) -> Any:
    """flash_attn_varlen_func with block_table. sequences: its offsets and greatest lengths.
    options: slopes and sink first."""
    check_tensors(q=q, k=k, v=v, block_table=block_table)
    more = {"alibi_slopes": options[0], "sink": options[1]}
    check_given_tensors(**more)
    check_inference(_OVER_CACHE, q=q, k=k, v=v, **more)
    arguments = (*cast(q), k, v, *sequences, block_table, *options, with_lse)
    out, lse = _caches.mha_varlen_fwd_paged(*arguments)
    return (out, lse, out.new_empty(0)) if with_lse else out


def _check_no_negative(**caches: torch.Tensor) -> None:
    """Raises ValueError for what torch cannot write in place."""
    for name, cache in caches.items():
        if not torch.compiler.is_compiling() and cache.is_neg():
            raise ValueError(
                f"{name}: its negative bit is set, and k and v are appended in place; pass a "
                "tensor without it: resolve_neg() gives one"
            )
