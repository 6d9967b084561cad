# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fused attention, forward and backward, in batch and varlen (group) mode.

The algorithm is FlashAttention (arXiv:2205.14135) and FlashAttention-2 (arXiv:2307.08691), with
groups of query heads that share keys and values (GQA, arXiv:2305.13245). On AMD GPUs it is run by
Composable Kernel's kernels (include/ck_tile/ops/fmha/kernel/fmha_fwd_kernel.hpp and
fmha_bwd_kernel.hpp), on the CPU by this library's own reference.

Rules of every function here
  - Arrays are numpy, torch, cupy or (on the CPU) jax arrays, or anything else that exports DLPack.
    flash_attn_func and flash_attn_varlen_func take jax's on AMD GPUs, too: aiter_attn.jax has them.
    They are read in place. Results are made by the framework of `q`, on its device.
  - All arrays of a call are on one device: host memory (the CPU reference) or an AMD GPU.
  - GPU work is queued and not waited for: on the current stream of q's framework, or on `stream`
    (a hipStream_t as int). Whoever passes `stream` keeps the arrays alive until it has got there.
  - q, k, v, their gradients and `out` have one dtype: float16, bfloat16, or on the CPU float32; in
    flash_attn_func and flash_attn_varlen_func fp8, too. Scores and sums are float32. The last
    dimension is contiguous, the others have any stride.
  - Where a result is of q's framework but not of its dtype or rank, as lse is, its type is Any.
  - Where this differs from flash-attn 2, docs/semantics.md says how and why.
  - TypeError: not an array, or a dtype that is not listed. ValueError: shapes, strides, devices or
    numbers that do not fit. UnsupportedError (a NotImplementedError): valid, but not in this
    version, or no kernel instance of this build serves it. DriverError, OutOfMemoryError,
    CorruptError: see aiter_attn._core.errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypedDict, overload

from aiter_attn._core import cache_problems, fp8_scales, reading, used_rows
from aiter_attn._core.adapters import Array, ArrayT
from aiter_attn._core.cache_call import CacheCall, Keys
from aiter_attn._core.call import Call, RngState
from aiter_attn._core.fp8_scales import Scale
from aiter_attn._core.options import options
from aiter_attn._functions.fronts import by_front

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "flash_attn_func",
    "flash_attn_varlen_func",
    "mha_bwd",
    "mha_fwd",
    "mha_varlen_bwd",
    "mha_varlen_fwd",
]


class Keywords(TypedDict, total=False):
    """Options that a call may set by name; the functions themselves have the rest."""

    dropout_p: float
    softmax_scale: float | None
    causal: bool
    window_size: tuple[int, int]
    softcap: float
    alibi_slopes: Array | None
    deterministic: bool
    rng_state: RngState | None
    sink: Array | None


class _Fp8Keywords(Keywords, total=False):
    q_descale: Scale
    k_descale: Scale
    v_descale: Scale
    out_scale: Scale
    out_dtype: Any


# For type checkers: return_attn_probs decides the type of the result. Options by name are checked
# one by one; options by place are not, and the result of such a call is Any.
@overload
def flash_attn_func(q: ArrayT, k: Array, v: Array, **options: Unpack[_Fp8Keywords]) -> ArrayT: ...
@overload
def flash_attn_func(
    q: ArrayT,
    k: Array,
    v: Array,
    *,
    return_attn_probs: Literal[True],
    **options: Unpack[_Fp8Keywords],
) -> tuple[ArrayT, Any, Any]: ...
@overload
def flash_attn_func(
    q: ArrayT,
    k: Array,
    v: Array,
    *by_place: Any,
    return_attn_probs: bool = ...,
    **options: Unpack[_Fp8Keywords],
) -> Any: ...
@by_front
def flash_attn_func(
    q: ArrayT,
    k: Array,
    v: Array,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    rng_state: RngState | None = None,
    sink: Array | None = None,
    q_descale: Scale = None,
    k_descale: Scale = None,
    v_descale: Scale = None,
    out_scale: Scale = None,
    out_dtype: str | None = None,
) -> ArrayT | tuple[ArrayT, Any, Any]:
    """Attention with the arguments of flash-attn's flash_attn_func, and rng_state.

    Args:
        q: [batch, seqlen_q, heads_q, head_size]
        k: [batch, seqlen_k, heads_k, head_size]; heads_k divides heads_q, and query head h sees
            key head h // (heads_q // heads_k).
        v: [batch, seqlen_k, heads_k, head_size_v]
        dropout_p: the probability, below 1, with which a weight is dropped; those that stay are
            divided by 1 - dropout_p. Which are dropped follows from rng_state alone: another call
            with the same gives the same.
        softmax_scale: factor of q k^T, above 0; None: 1 / sqrt(head_size).
        causal: query i sees keys up to i + seqlen_k - seqlen_q (bottom-right aligned).
        window_size: (left, right): query i sees the keys from i + seqlen_k - seqlen_q - left to
            i + seqlen_k - seqlen_q + right. A number below 0, or of seqlen_k or more, is no bound,
            as in flash-attn. causal sets right to 0.
        softcap: a scaled score s becomes softcap * tanh(s / softcap); 0.0: it does not. On the GPU
            without a backward pass.
        alibi_slopes: float32, [heads_q] or [batch, heads_q]: -slope * |i + seqlen_k - seqlen_q - j|
            is added to the score of query i and key j; with causal slope * j, which differs by a
            number per query, in lse alone. None: nothing is.
        deterministic: about the backward pass; the forward pass always gives the same bits.
        return_attn_probs: see Returns.
        rng_state: with dropout (seed, offset), integers below 2**64, or int64 or uint64 [2], an
            array of them on q's device, which on a GPU is read when the kernels run. Batch entry b
            and head h take the offsets from offset + (b * heads_q + h) * 64 on: a next call with
            the same seed adds batch * heads_q * 64. flash-attn draws them from torch's generator.
        sink: float32 [heads_q], on q's device: one more score of every query of a head, of a key
            whose value is 0 (an attention sink of gpt-oss). It counts in lse. -inf is as
            none. On the GPU not with fp8. None: there is none.
        q_descale, k_descale, v_descale: with fp8, the factors that make elements of q, k and v the
            numbers that they stand for: a float, or in host memory flash-attn 3's float32 array
            [batch, heads_k] whose entries are all the same. 1.0 where elements are the numbers.
        out_scale: the same, the factor of an out of fp8 before it is rounded; None with out_dtype.
        out_dtype: with fp8, "bfloat16" (flash-attn 3's) or "float32", of torch tensors torch's
            dtypes, too: out holds the result itself. None: as q has.

    fp8: q, k and v are float8_e4m3fn or float8_e4m3fnuz, the one of the GPU's arch. v may have
    the strides of a contiguous [batch, heads_k, head_size_v, seqlen_k]: on the GPU it must without
    out_dtype, and must not with one.

    Returns:
        out, [batch, seqlen_q, heads_q, head_size_v], dtype of q, or out_dtype; a row that sees no
        key is 0.
        With return_attn_probs: (out, lse, probs). lse, [batch, heads_q, seqlen_q], float32, is
        the log of the sum of exp of the masked scores; for a row that sees no key the sink, or
        without one -inf, where flash-attn has +inf. Without dropout probs has shape [0], as
        flash-attn's has. With dropout it is uint8, [batch, heads_q, seqlen_q, seqlen_k]: 1 where a
        weight stays, 0 where it is dropped. It never holds the probabilities.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    with_lse = reading.flag("return_attn_probs", return_attn_probs)
    scales = q_descale, k_descale, v_descale, out_scale, out_dtype
    chosen = options(dropout_p, softmax_scale, causal, window_size, softcap, deterministic)
    call = Call(
        q,
        k,
        v,
        None,
        chosen,
        alibi_slopes=alibi_slopes,
        rng_state=rng_state,
        sink=sink,
        scales=scales,
    )
    out, lse = call.forward(None, None, with_lse)
    return (out, lse, call.probabilities()) if with_lse else out


class _VarlenKeywords(_Fp8Keywords, total=False):
    block_table: Array | None
    seqused_q: Array | None
    seqused_k: Array | None
    workspace: Array | None


@overload
def flash_attn_varlen_func(
    q: ArrayT,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    **options: Unpack[_VarlenKeywords],
) -> ArrayT: ...
@overload
def flash_attn_varlen_func(
    q: ArrayT,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    *,
    return_attn_probs: Literal[True],
    **options: Unpack[_VarlenKeywords],
) -> tuple[ArrayT, Any, Any]: ...
@overload
def flash_attn_varlen_func(
    q: ArrayT,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    *by_place: Any,
    return_attn_probs: bool = ...,
    **options: Unpack[_VarlenKeywords],
) -> Any: ...
@by_front
def flash_attn_varlen_func(
    q: ArrayT,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: Array | None = None,
    *,
    seqused_q: Array | None = None,
    seqused_k: Array | None = None,
    rng_state: RngState | None = None,
    sink: Array | None = None,
    workspace: Array | None = None,
    q_descale: Scale = None,
    k_descale: Scale = None,
    v_descale: Scale = None,
    out_scale: Scale = None,
    out_dtype: str | None = None,
) -> ArrayT | tuple[ArrayT, Any, Any]:
    """Attention over sequences of different lengths, with flash_attn_varlen_func's arguments.

    Args:
        q: [total_q, heads_q, head_size]: the sequences one after the other.
        k: [total_k, heads_k, head_size]
        v: [total_k, heads_k, head_size_v]
        cu_seqlens_q: [batch + 1], int32, on q's device: where each sequence of q begins, and last
            total_q. (Tokens behind the last sequence: pass q without them.)
        cu_seqlens_k: the same for k and v.
        max_seqlen_q: the greatest length of a sequence of q.
        max_seqlen_k: the same for k and v.
        block_table: int32 [batch, pages of a sequence], contiguous: k and v are then
            [pages, page_size, heads_k, head_size], and have the keys of each sequence in these
            pages, in their order, cu_seqlens_k[b + 1] - cu_seqlens_k[b] of sequence b. Without
            dropout. None: k and v are packed.
        seqused_q: int32 [batch]: how many of the first queries of each sequence are used; out of
            the others is 0, their lse -inf, or the sink. max_seqlen_q is of all. In host memory,
            neither with block_table nor with fp8. None: all are.
        seqused_k: the same of k and v: masks, ALiBi and lse are those of the keys that are used,
            and the others are not read.
        workspace: with block_table, see flash_attn_with_kvcache.
        q_descale, k_descale, v_descale, out_scale, out_dtype: see flash_attn_func. fp8 is without
            block_table here, and on the GPU with out_dtype.
        The others: see flash_attn_func, with the lengths of each sequence; but a window has no
            bound from max_seqlen_k on.

    Returns:
        out, [total_q, heads_q, head_size_v], dtype of q, or out_dtype; a row that sees no key is 0.
        With return_attn_probs: (out, lse, probs), lse [heads_q, total_q], float32, and probs as
        flash_attn_func has it, with dropout [heads_q, total_q, max_seqlen_k].

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    with_lse = reading.flag("return_attn_probs", return_attn_probs)
    scales = q_descale, k_descale, v_descale, out_scale, out_dtype
    chosen = options(dropout_p, softmax_scale, causal, window_size, softcap, deterministic)
    sequences = cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k
    if seqused_q is not None or seqused_k is not None:
        used_rows.check(seqused_q, seqused_k, block_table, scales)
        of_q, of_k = used_rows.sides(sequences, (seqused_q, seqused_k), (q, k))
        starts = used_rows.split(of_q, of_k)
        alibi_slopes = used_rows.per_part(alibi_slopes, starts[0])
        sequences = *starts, max_seqlen_q, max_seqlen_k
    if block_table is not None:
        cache_problems.check_no_dropout(dropout_p)
        fp8_scales.check_none(scales, "there is no fp8 beside block_table")
        over = CacheCall(
            q,
            Keys(k, v),
            sequences=sequences,
            block_table=block_table,
            options=chosen,
            alibi_slopes=alibi_slopes,
            sink=sink,
        )
        out, lse = over.forward(None, with_lse, workspace)
        return (out, lse, over.no_probabilities()) if with_lse else out
    if workspace is not None:
        raise ValueError("workspace: given, but block_table is None; allowed: None without it")
    call = Call(
        q,
        k,
        v,
        sequences,
        chosen,
        alibi_slopes=alibi_slopes,
        rng_state=rng_state,
        sink=sink,
        scales=scales,
    )
    out, lse = call.forward(None, None, with_lse)
    return (out, lse, call.probabilities()) if with_lse else out


def mha_fwd(
    q: ArrayT,
    k: Array,
    v: Array,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    out: ArrayT | None = None,
    lse: Array | None = None,
    stream: int | None = None,
    dropout_p: float = 0.0,
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    bias: Array | None = None,
    rng_state: RngState | None = None,
    sink: Array | None = None,
) -> tuple[ArrayT, Any]:
    """The forward pass in batch mode.

    Args:
        q, k, v, softmax_scale, causal, window_size: see flash_attn_func.
        out: where to write the result, [batch, seqlen_q, heads_q, head_size_v]; None: a new array.
        lse: where to write it, [batch, heads_q, seqlen_q], float32, contiguous; None: a new array.
        stream: the hipStream_t to work on; None: the current stream of q's framework.
        dropout_p, softcap, alibi_slopes, rng_state, sink: see flash_attn_func.
        bias: added to the scores, [batch, heads_q, seqlen_q, seqlen_k], dtype of q; any of
            the first three may be 1, which serves all. Not beside alibi_slopes.

    Returns:
        (out, lse). mha_bwd needs lse.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    chosen = options(dropout_p, softmax_scale, causal, window_size, softcap)
    call = Call(
        q,
        k,
        v,
        None,
        chosen,
        stream,
        alibi_slopes=alibi_slopes,
        bias=bias,
        rng_state=rng_state,
        sink=sink,
    )
    return call.forward(out, lse)


def mha_varlen_fwd(
    q: ArrayT,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    min_seqlen_q: SupportsIndex = 0,
    out: ArrayT | None = None,
    lse: Array | None = None,
    stream: int | None = None,
    dropout_p: float = 0.0,
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    bias: Array | None = None,
    rng_state: RngState | None = None,
    sink: Array | None = None,
) -> tuple[ArrayT, Any]:
    """The forward pass in varlen mode.

    Args:
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale, causal,
            window_size: see flash_attn_varlen_func.
        min_seqlen_q: sequences of this many queries or fewer are left out: their rows of out and
            lse stay as they are, in new arrays undefined. 0: none is.
        out: where to write the result, [total_q, heads_q, head_size_v]; None: a new array.
        lse: where to write it, [heads_q, total_q], float32, contiguous; None: a new array.
        stream: the hipStream_t to work on; None: the current stream of q's framework.
        dropout_p, softcap, alibi_slopes, rng_state, sink: see flash_attn_func.
        bias: added to the scores, [heads_q, total_q, max_seqlen_k], dtype of q; either of
            the first two may be 1, which serves all. Not beside alibi_slopes.

    Returns:
        (out, lse). mha_varlen_bwd needs lse.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    sequences = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    chosen = options(
        dropout_p, softmax_scale, causal, window_size, softcap, min_seqlen_q=min_seqlen_q
    )
    call = Call(
        q,
        k,
        v,
        sequences,
        chosen,
        stream,
        alibi_slopes=alibi_slopes,
        bias=bias,
        rng_state=rng_state,
        sink=sink,
    )
    return call.forward(out, lse)


def mha_bwd(
    dout: Array,
    q: ArrayT,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    deterministic: bool = False,
    bias_grad: bool = False,
    dq: ArrayT | None = None,
    dk: ArrayT | None = None,
    dv: ArrayT | None = None,
    dbias: ArrayT | None = None,
    dsink: Array | None = None,
    workspace: Array | None = None,
    stream: int | None = None,
    dropout_p: float = 0.0,
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    bias: Array | None = None,
    rng_state: RngState | None = None,
    sink: Array | None = None,
) -> tuple[ArrayT, ...]:
    """The backward pass in batch mode: gradients of sum(out * dout).

    Args:
        dout: gradient of out, [batch, seqlen_q, heads_q, head_size_v].
        q, k, v, softmax_scale, causal, window_size: as mha_fwd got them.
        out, lse: as mha_fwd gave them.
        deterministic: the same bits every time, as always on the CPU. On the GPU dq is summed
            in a fixed order then, which takes more workspace; else in the order the hardware takes.
        bias_grad: whether the gradient of the bias is wanted.
        dq, dk, dv: where to write the gradients, shaped as q, k and v; None: new arrays.
        dbias: where to write it, shaped as bias.
        dsink: where to write the gradient of sink, float32 [heads_q], contiguous.
        workspace: scratch memory on q's device, bytes; None: a new array from q's framework. The
            error for one that is too small, or that must be passed, has the size.
        stream: the hipStream_t to work on; None: the current stream of q's framework.
        dropout_p, softcap, alibi_slopes, bias, rng_state: as mha_fwd got them. On the GPU there is
            no backward pass with softcap.
        sink: as mha_fwd got it; None where its gradient is not wanted: the others follow from out
            and lse.

    Returns:
        (dq, dk, dv), shaped as q, k and v, then with bias_grad dbias, and with a sink dsink, which
        is summed in a fixed order. dk and dv are summed over the query heads of a group. dbias is
        summed over the dimensions that are 1 in the bias; for the gradient of every score pass a
        bias that is broadcast to all of them: a view does. On the GPU those are rounded to q's
        dtype before they are summed, and lie in the workspace.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    chosen = options(
        dropout_p, softmax_scale, causal, window_size, softcap, deterministic, bias_grad
    )
    call = Call(
        q,
        k,
        v,
        None,
        chosen,
        stream,
        alibi_slopes=alibi_slopes,
        bias=bias,
        rng_state=rng_state,
        sink=sink,
    )
    return call.backward(dout, out, lse, (dq, dk, dv), dbias, workspace, dsink)


def mha_varlen_bwd(
    dout: Array,
    q: ArrayT,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    *,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    deterministic: bool = False,
    bias_grad: bool = False,
    dq: ArrayT | None = None,
    dk: ArrayT | None = None,
    dv: ArrayT | None = None,
    dbias: ArrayT | None = None,
    dsink: Array | None = None,
    workspace: Array | None = None,
    stream: int | None = None,
    dropout_p: float = 0.0,
    softcap: float = 0.0,
    alibi_slopes: Array | None = None,
    bias: Array | None = None,
    rng_state: RngState | None = None,
    sink: Array | None = None,
) -> tuple[ArrayT, ...]:
    """The backward pass in varlen mode.

    Args:
        dout: gradient of out, [total_q, heads_q, head_size_v].
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale, causal,
            window_size: as mha_varlen_fwd got them.
        out, lse: as mha_varlen_fwd gave them.
        dbias: shaped as bias; where it is not summed, keys beyond a sequence's own have 0.
        dropout_p, softcap, alibi_slopes, bias, rng_state: as mha_varlen_fwd got them.
        deterministic, bias_grad, dq, dk, dv, sink, dsink, workspace, stream: see mha_bwd.

    Returns:
        (dq, dk, dv), shaped as q, k and v, then with bias_grad dbias, and with a sink dsink.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    sequences = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    chosen = options(
        dropout_p, softmax_scale, causal, window_size, softcap, deterministic, bias_grad
    )
    call = Call(
        q,
        k,
        v,
        sequences,
        chosen,
        stream,
        alibi_slopes=alibi_slopes,
        bias=bias,
        rng_state=rng_state,
        sink=sink,
    )
    return call.backward(dout, out, lse, (dq, dk, dv), dbias, workspace, dsink)
