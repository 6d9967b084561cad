# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fused attention, forward and backward, in batch and varlen (group) mode.

The algorithm is FlashAttention (arXiv:2205.14135) and FlashAttention-2 (arXiv:2307.08691), with
groups of query heads that share keys and values (GQA, arXiv:2305.13245). On AMD GPUs it is run by
Composable Kernel's kernels (include/ck_tile/ops/fmha/kernel/fmha_fwd_kernel.hpp and
fmha_bwd_kernel.hpp), on the CPU by this library's own reference.

What holds for every function here
  - Arrays are numpy, torch, cupy or (on the CPU) jax arrays, or anything else that exports DLPack.
    They are read in place. Results are made by the framework of `q`, on its device.
  - All arrays of a call are on one device: host memory (the CPU reference) or an AMD GPU.
  - GPU work is queued and not waited for: on the current stream of q's framework, or on `stream`
    (a hipStream_t as int). Whoever passes `stream` keeps the arrays alive until it has got there.
  - q, k, v, their gradients and `out` have one dtype: float16, bfloat16, or on the CPU float32.
    Scores and sums are float32. The last dimension is contiguous, the others have any stride.
  - Where a result is of q's framework but not of its dtype or rank, as lse is, its type is Any.
  - Where this differs from flash-attn 2, docs/semantics.md says how and why.
  - TypeError: not an array, or a dtype that is not listed. ValueError: shapes, strides, devices or
    numbers that do not fit. UnsupportedError (a NotImplementedError): valid, but not in this
    version, or no kernel instance of this build serves it. DriverError, OutOfMemoryError,
    CorruptError: see aiter_attn._errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypedDict, overload

from aiter_attn import _arguments
from aiter_attn._call import Call
from aiter_attn._errors import UnsupportedError
from aiter_attn._frameworks import Array, ArrayT, framework_of

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


class _Options(TypedDict, total=False):
    """What a call by name may set; the functions themselves say the rest."""

    dropout_p: float
    softmax_scale: float | None
    causal: bool
    window_size: tuple[int, int]
    softcap: float
    alibi_slopes: Array | None
    deterministic: bool


# For type checkers: return_attn_probs says what comes back. Options by name are checked one by one;
# options by place are not, and the result of such a call is Any.
@overload
def flash_attn_func(q: ArrayT, k: Array, v: Array, **options: Unpack[_Options]) -> ArrayT: ...
@overload
def flash_attn_func(
    q: ArrayT, k: Array, v: Array, *, return_attn_probs: Literal[True], **options: Unpack[_Options]
) -> tuple[ArrayT, Any, Any]: ...
@overload
def flash_attn_func(
    q: ArrayT,
    k: Array,
    v: Array,
    *by_place: Any,
    return_attn_probs: bool = ...,
    **options: Unpack[_Options],
) -> Any: ...
def flash_attn_func(  # type: ignore[misc]  # fewer than *by_place
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
) -> ArrayT | tuple[ArrayT, Any, Any]:
    """Attention with the arguments of flash-attn's flash_attn_func.

    Args:
        q: [batch, seqlen_q, heads_q, head_size]
        k: [batch, seqlen_k, heads_k, head_size]; heads_k divides heads_q, and query head h sees
            key head h // (heads_q // heads_k).
        v: [batch, seqlen_k, heads_k, head_size_v]
        dropout_p: 0.0; dropout is not in this version.
        softmax_scale: factor of q k^T, above 0; None: 1 / sqrt(head_size).
        causal: query i sees keys up to i + seqlen_k - seqlen_q (bottom-right aligned).
        window_size: (left, right): query i sees the keys from i + seqlen_k - seqlen_q - left to
            i + seqlen_k - seqlen_q + right. A number below 0, or of seqlen_k or more, is no bound,
            as in flash-attn. causal sets right to 0.
        softcap: 0.0; capped scores are not in this version.
        alibi_slopes: None; ALiBi is not in this version.
        deterministic: about the backward pass; the forward pass always gives the same bits.
        return_attn_probs: see Returns.

    Returns:
        out, [batch, seqlen_q, heads_q, head_size_v], dtype of q; a row that sees no key is 0.
        With return_attn_probs: (out, lse, probs). lse, [batch, heads_q, seqlen_q], float32, is
        the log of the sum of exp of the masked, scaled scores; -inf for a row that sees no key,
        where flash-attn has +inf. probs has shape [0], as flash-attn's has without dropout: it
        never holds the probabilities then.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    _refuse(dropout_p, softcap, alibi_slopes)
    with_lse = _arguments.flag("return_attn_probs", return_attn_probs)
    out, lse = mha_fwd(q, k, v, softmax_scale=softmax_scale, causal=causal, window_size=window_size)
    return (out, lse, _no_probabilities(q)) if with_lse else out


class _VarlenOptions(_Options, total=False):
    block_table: Array | None


@overload
def flash_attn_varlen_func(
    q: ArrayT,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    **options: Unpack[_VarlenOptions],
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
    **options: Unpack[_VarlenOptions],
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
    **options: Unpack[_VarlenOptions],
) -> Any: ...
def flash_attn_varlen_func(  # type: ignore[misc]  # fewer than *by_place
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
) -> ArrayT | tuple[ArrayT, Any, Any]:
    """Attention over sequences of different lengths, with flash_attn_varlen_func's arguments.

    Args:
        q: [total_q, heads_q, head_size]: the sequences one after the other.
        k: [total_k, heads_k, head_size]
        v: [total_k, heads_k, head_size_v]
        cu_seqlens_q: [batch + 1], int32, on q's device: where each sequence of q begins, and last
            total_q. (Tokens behind the last sequence: pass q without them.)
        cu_seqlens_k: likewise for k and v.
        max_seqlen_q: the greatest length of a sequence of q.
        max_seqlen_k: likewise for k and v.
        block_table: None; a paged key-value cache is not in this version.
        The others: see flash_attn_func, with the lengths of each sequence; but a window has no
            bound from max_seqlen_k on.

    Returns:
        out, [total_q, heads_q, head_size_v], dtype of q; a row that sees no key is 0.
        With return_attn_probs: (out, lse, probs), lse [heads_q, total_q], float32, and probs of
        shape [0] (see flash_attn_func).

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    _refuse(dropout_p, softcap, alibi_slopes)
    with_lse = _arguments.flag("return_attn_probs", return_attn_probs)
    if block_table is not None:
        raise UnsupportedError(
            "block_table: a paged key-value cache is not in this version; gather the pages into k "
            "and v and pass block_table=None"
        )
    out, lse = mha_varlen_fwd(
        q,
        k,
        v,
        cu_seqlens_q,
        cu_seqlens_k,
        max_seqlen_q,
        max_seqlen_k,
        softmax_scale=softmax_scale,
        causal=causal,
        window_size=window_size,
    )
    return (out, lse, _no_probabilities(q)) if with_lse else out


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
) -> tuple[ArrayT, Any]:
    """The forward pass in batch mode.

    Args:
        q, k, v, softmax_scale, causal, window_size: see flash_attn_func.
        out: where to write the result, [batch, seqlen_q, heads_q, head_size_v]; None: a new array.
        lse: likewise, [batch, heads_q, seqlen_q], float32, contiguous.
        stream: the hipStream_t to work on; None: the current stream of q's framework.

    Returns:
        (out, lse). lse is what mha_bwd needs.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    return Call(q, k, v, None, softmax_scale, causal, window_size, stream).forward(out, lse)


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
    out: ArrayT | None = None,
    lse: Array | None = None,
    stream: int | None = None,
) -> tuple[ArrayT, Any]:
    """The forward pass in varlen mode.

    Args:
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale, causal,
            window_size: see flash_attn_varlen_func.
        out: where to write the result, [total_q, heads_q, head_size_v]; None: a new array.
        lse: likewise, [heads_q, total_q], float32, contiguous.
        stream: the hipStream_t to work on; None: the current stream of q's framework.

    Returns:
        (out, lse). lse is what mha_varlen_bwd needs.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    sequences = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    call = Call(q, k, v, sequences, softmax_scale, causal, window_size, stream)
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
    dq: ArrayT | None = None,
    dk: ArrayT | None = None,
    dv: ArrayT | None = None,
    workspace: Array | None = None,
    stream: int | None = None,
) -> tuple[ArrayT, ArrayT, ArrayT]:
    """The backward pass in batch mode: gradients of sum(out * dout).

    Args:
        dout: gradient of out, [batch, seqlen_q, heads_q, head_size_v].
        q, k, v, softmax_scale, causal, window_size: as mha_fwd got them.
        out, lse: as mha_fwd gave them.
        deterministic: the same bits every time: what the CPU does anyway; not on the GPU in this
            version, where dq is summed in the order the hardware takes.
        dq, dk, dv: where to write the gradients, shaped as q, k and v; None: new arrays.
        workspace: scratch memory on q's device, bytes; None: a new array from q's framework. The
            error for one that is too small, or that must be passed, has the size.
        stream: the hipStream_t to work on; None: the current stream of q's framework.

    Returns:
        (dq, dk, dv), shaped as q, k and v. dk and dv are summed over the query heads of a group.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    call = Call(q, k, v, None, softmax_scale, causal, window_size, stream)
    return call.backward(dout, out, lse, deterministic, (dq, dk, dv), workspace)


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
    dq: ArrayT | None = None,
    dk: ArrayT | None = None,
    dv: ArrayT | None = None,
    workspace: Array | None = None,
    stream: int | None = None,
) -> tuple[ArrayT, ArrayT, ArrayT]:
    """The backward pass in varlen mode.

    Args:
        dout: gradient of out, [total_q, heads_q, head_size_v].
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale, causal,
            window_size: as mha_varlen_fwd got them.
        out, lse: as mha_varlen_fwd gave them.
        deterministic, dq, dk, dv, workspace, stream: see mha_bwd.

    Returns:
        (dq, dk, dv), shaped as q, k and v.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    sequences = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    call = Call(q, k, v, sequences, softmax_scale, causal, window_size, stream)
    return call.backward(dout, out, lse, deterministic, (dq, dk, dv), workspace)


def _refuse(dropout_p: float, softcap: float, alibi_slopes: Array | None) -> None:
    """What flash-attn has and this version has not."""
    dropout = _arguments.number("dropout_p", dropout_p, "0.0 (a probability below 1)")
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"dropout_p: {dropout}; allowed: 0.0 (a probability below 1)")
    if dropout != 0.0:
        raise UnsupportedError(
            f"dropout_p: {dropout}; attention dropout is not in this version: pass 0.0"
        )
    cap = _arguments.number("softcap", softcap, "0.0: no cap")
    if cap != 0.0:
        raise UnsupportedError(f"softcap: {cap}; capped scores are not in this version: pass 0.0")
    if alibi_slopes is not None:
        raise UnsupportedError("alibi_slopes: ALiBi is not in this version: pass None")


def _no_probabilities(q: Array) -> Any:
    """What flash-attn gives as S_dmask where there is no dropout."""
    framework = framework_of("q", q)
    return framework.result(framework.empty("probs", q, (0,), None, None), q)
