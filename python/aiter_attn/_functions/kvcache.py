# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention over the key-value caches of inference: in place or in pages (PagedAttention,
arXiv:2309.06180), with new keys appended and rotated (RoPE, arXiv:2104.09864) in the same call.

Rules of every function here, beside those of attention.py
  - There is no backward pass, no dropout and no elementwise bias.
  - In host memory every length and every page number that is used is checked. On the GPU they are
    not read: the caller must keep them in range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypedDict, overload

from aiter_attn._core import cache_problems, reading
from aiter_attn._core.adapters import Array, ArrayT
from aiter_attn._core.cache_call import CacheCall, Keys
from aiter_attn._core.options import options
from aiter_attn._functions.fronts import by_front

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["flash_attn_with_kvcache", "mha_batch_prefill"]


class _Keywords(TypedDict, total=False):
    """Options that a call may set by name; the functions themselves have the rest."""

    softmax_scale: float | None
    causal: bool
    window_size: tuple[int, int]
    softcap: float
    alibi_slopes: Array | None
    sink: Array | None


class _CacheKeywords(_Keywords, total=False):
    k: Array | None
    v: Array | None
    rotary_cos: Array | None
    rotary_sin: Array | None
    cache_seqlens: SupportsIndex | Array | None
    cache_batch_idx: Array | None
    cache_leftpad: Array | None
    block_table: Array | None
    rotary_interleaved: bool
    num_splits: SupportsIndex
    workspace: Array | None


@overload
def flash_attn_with_kvcache(
    q: ArrayT, k_cache: Array, v_cache: Array, **options: Unpack[_CacheKeywords]
) -> ArrayT: ...
@overload
def flash_attn_with_kvcache(
    q: ArrayT,
    k_cache: Array,
    v_cache: Array,
    *,
    return_softmax_lse: Literal[True],
    **options: Unpack[_CacheKeywords],
) -> tuple[ArrayT, Any]: ...
@overload
def flash_attn_with_kvcache(
    q: ArrayT,
    k_cache: Array,
    v_cache: Array,
    *by_place: Any,
    return_softmax_lse: bool = ...,
    **options: Unpack[_CacheKeywords],
) -> Any: ...
@by_front
def flash_attn_with_kvcache(
    q: ArrayT,
    k_cache: Array,
    v_cache: Array,
    k: Array | None = None,
    v: Array | None = None,
    rotary_cos: Array | None = None,
    rotary_sin: Array | None = None,
    cache_seqlens: SupportsIndex | Array | None = None,
    cache_batch_idx: Array | None = None,
    cache_leftpad: Array | None = None,
    block_table: Array | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: Array | None = None,
    num_splits: SupportsIndex = 0,
    return_softmax_lse: bool = False,
    *,
    sink: Array | None = None,
    workspace: Array | None = None,
) -> ArrayT | tuple[ArrayT, Any]:
    """Attention over a cache, with the arguments of flash-attn's flash_attn_with_kvcache, and
    sink and workspace.

    With k and v they are first appended to the cache, in place. A call that is refused leaves the
    cache as it was.

    Args:
        q: [batch, seqlen_q, heads_q, head_size]; it is never changed.
        k_cache: [entries, seqlen_cache, heads_k, head_size], of which sequence b has entry b, or
            cache_batch_idx[b]; with block_table [pages, page_size, heads_k, head_size].
        v_cache: the same with head_size_v.
        k: [batch, seqlen_new, heads_k, head_size]: written behind the cache_seqlens keys of each
            sequence, and attended to. None: nothing is appended.
        v: [batch, seqlen_new, heads_k, head_size_v]
        rotary_cos: [seqlen_rotary, rotary_size / 2], dtype of q: rotates the first rotary_size
            elements of k's and q's heads; a multiple of 16. Only with k. Key j of k is rotated as
            token cache_seqlens + j; query i as token cache_seqlens + i where causal or a window is
            set, else as token cache_seqlens. None: nothing is rotated.
        rotary_sin: the same of the sines.
        cache_seqlens: how many keys each sequence has in the cache, before k: an int for all, or
            int32 [batch]. None: as many as it has room for; not with k.
        cache_batch_idx: int32 [batch]; not with block_table. None: 0, 1, 2, ...
        cache_leftpad: int32 [batch]: how many of the first keys of each sequence are left out, at
            most cache_seqlens: masks, ALiBi and lse are those of the others alone, and the keys
            that are left out are not read; k is written, and rotated, where it is without. In host
            memory, not with block_table. None: none is.
        block_table: int32 [batch, pages of a sequence], contiguous: the pages of each sequence in
            their order. On the GPU kernels want pages in multiples of their tile of keys, and for
            k pages of 63 keys, or of seqlen_new - 1.
        softmax_scale, causal, window_size, softcap: see flash_attn_func, where seqlen_k is the
            length after appending; but a window has no bound from the room of a sequence on.
        rotary_interleaved: True: elements 2 i and 2 i + 1 are a pair (GPT-J); False: i and
            i + rotary_size / 2 (GPT-NeoX).
        alibi_slopes, sink: see flash_attn_func.
        num_splits: workgroups that share the keys of a tile of queries, up to 128; 1: none do; 0:
            as many as fill the GPU. The CPU ignores it.
        return_softmax_lse: see Returns.
        workspace: scratch memory on q's device, bytes; None: a new array from q's framework. The
            error for one that is too small, or that must be passed, has the size.

    Returns:
        out, [batch, seqlen_q, heads_q, head_size_v], dtype of q; a row that sees no key is 0.
        With return_softmax_lse: (out, lse), lse [batch, heads_q, seqlen_q], float32.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see attention.py.
    """
    with_lse = reading.flag("return_softmax_lse", return_softmax_lse)
    interleaved = reading.flag("rotary_interleaved", rotary_interleaved)
    cache_problems.check_entries(cache_batch_idx, cache_leftpad, block_table)
    tables = cache_problems.appending(k, v, rotary_cos, rotary_sin, cache_seqlens)
    call = CacheCall(
        q,
        Keys(k_cache, v_cache, ("k_cache", "v_cache")),
        block_table=block_table,
        cache_batch_idx=cache_batch_idx,
        options=options(0.0, softmax_scale, causal, window_size, softcap),
        alibi_slopes=alibi_slopes,
        sink=sink,
        splits=num_splits,
    )
    if k is not None and v is not None:
        call.append(k, v, cache_seqlens, tables, interleaved)
    elif cache_seqlens is not None:
        call.set_lengths(cache_seqlens)
    if cache_leftpad is not None:
        call.leave_out(cache_leftpad)
    out, lse = call.forward(None, with_lse, workspace)
    return (out, lse) if with_lse else out


class _PrefillKeywords(_Keywords, total=False):
    out: Any
    stream: int | None


@overload
def mha_batch_prefill(
    q: ArrayT,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    kv_indptr: Array,
    kv_page_indices: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    **options: Unpack[_PrefillKeywords],
) -> ArrayT: ...
@overload
def mha_batch_prefill(
    q: ArrayT,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    kv_indptr: Array,
    kv_page_indices: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    *,
    return_lse: Literal[True],
    **options: Unpack[_PrefillKeywords],
) -> tuple[ArrayT, Any]: ...
def mha_batch_prefill(
    q: ArrayT,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    kv_indptr: Array,
    kv_page_indices: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    sink: Array | None = None,
    return_lse: bool = False,
    out: ArrayT | None = None,
    stream: int | None = None,
) -> ArrayT | tuple[ArrayT, Any]:
    """Attention over a cache whose keys are listed one by one: SGLang's page list.

    Args:
        q: [total_q, heads_q, head_size]: the sequences one after the other.
        k: [pages, heads_k, head_size]: the cache, a key in a page.
        v: [pages, heads_k, head_size_v]
        cu_seqlens_q: [batch + 1], int32, on q's device: where each sequence of q begins, and last
            total_q.
        kv_indptr: [batch + 1], int32: where each sequence begins in kv_page_indices, and last how
            many keys all have.
        kv_page_indices: int32, contiguous: the pages of all sequences' keys in their order. On the
            GPU kernels read 159 further entries, of pages with finite numbers.
        max_seqlen_q: the greatest length of a sequence of q.
        max_seqlen_k: the greatest number of keys of a sequence.
        softmax_scale, causal, window_size, softcap, alibi_slopes, sink: see
            flash_attn_varlen_func.
        return_lse: see Returns.
        out: where to write the result, [total_q, heads_q, head_size_v]; None: a new array.
        stream: the hipStream_t to work on; None: the current stream of q's framework.

    Returns:
        out; with return_lse (out, lse), lse [heads_q, total_q], float32.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see attention.py.
    """
    with_lse = reading.flag("return_lse", return_lse)
    call = CacheCall(
        q,
        Keys(k, v),
        sequences=(cu_seqlens_q, None, max_seqlen_q, max_seqlen_k),
        page_list=(kv_indptr, kv_page_indices),
        options=options(0.0, softmax_scale, causal, window_size, softcap),
        alibi_slopes=alibi_slopes,
        sink=sink,
        stream=stream,
    )
    made, lse = call.forward(out, with_lse)
    return (made, lse) if with_lse else made
