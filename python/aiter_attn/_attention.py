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
  - TypeError: not an array, or a dtype that is not listed. ValueError: shapes, strides, devices or
    numbers that do not fit. UnsupportedError (a NotImplementedError): valid, but not in this
    version, or no kernel instance of this build serves it. DriverError, OutOfMemoryError,
    CorruptError: see aiter_attn._errors.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Final, Literal, SupportsIndex, overload

from aiter_attn import _C
from aiter_attn._arrays import (
    DEFAULT_STREAM,
    SAME_STREAM,
    Array,
    ArrayT,
    device_name,
    framework_of,
)
from aiter_attn._errors import UnsupportedError

__all__ = [
    "flash_attn_func",
    "flash_attn_varlen_func",
    "mha_bwd",
    "mha_fwd",
    "mha_varlen_bwd",
    "mha_varlen_fwd",
]

_INT32_MAX: Final = 2**31 - 1
_BATCH_DIMS: Final = ("batch", "seqlen", "heads", "head size")
_VARLEN_DIMS: Final = ("total tokens", "heads", "head size")
# The library aligns the workspace itself.
_WORKSPACE_ALIGNMENT: Final = 256


@overload
def flash_attn_func(
    q: ArrayT,
    k: Array,
    v: Array,
    dropout_p: float = ...,
    softmax_scale: float | None = ...,
    causal: bool = ...,
    window_size: tuple[int, int] = ...,
    softcap: float = ...,
    alibi_slopes: Array | None = ...,
    deterministic: bool = ...,
    return_attn_probs: Literal[False] = ...,
) -> ArrayT: ...
@overload
def flash_attn_func(
    q: ArrayT,
    k: Array,
    v: Array,
    dropout_p: float = ...,
    softmax_scale: float | None = ...,
    causal: bool = ...,
    window_size: tuple[int, int] = ...,
    softcap: float = ...,
    alibi_slopes: Array | None = ...,
    deterministic: bool = ...,
    *,
    return_attn_probs: Literal[True],
) -> tuple[ArrayT, Any, Any]: ...
@overload
def flash_attn_func(
    q: ArrayT,
    k: Array,
    v: Array,
    dropout_p: float = ...,
    softmax_scale: float | None = ...,
    causal: bool = ...,
    window_size: tuple[int, int] = ...,
    softcap: float = ...,
    alibi_slopes: Array | None = ...,
    deterministic: bool = ...,
    return_attn_probs: bool = ...,
) -> ArrayT | tuple[ArrayT, Any, Any]: ...
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
) -> ArrayT | tuple[ArrayT, Any, Any]:
    """Attention with the arguments of flash-attn's flash_attn_func.

    Args:
        q: [batch, seqlen_q, heads_q, head_size]
        k: [batch, seqlen_k, heads_k, head_size]; heads_k divides heads_q, and query head h sees
            key head h // (heads_q // heads_k).
        v: [batch, seqlen_k, heads_k, head_size_v]
        dropout_p: 0.0; dropout is not in this version.
        softmax_scale: factor of q k^T; None: 1 / sqrt(head_size).
        causal: query i sees keys up to i + seqlen_k - seqlen_q (bottom-right aligned).
        window_size: (left, right): query i sees the keys from i + seqlen_k - seqlen_q - left to
            i + seqlen_k - seqlen_q + right; -1: no bound. causal sets right to 0.
        softcap: 0.0; capped scores are not in this version.
        alibi_slopes: None; ALiBi is not in this version.
        deterministic: about the backward pass; the forward pass always gives the same bits.
        return_attn_probs: see Returns.

    Returns:
        out, [batch, seqlen_q, heads_q, head_size_v], dtype of q; a row that sees no key is 0.
        With return_attn_probs: (out, lse, probs). lse, [batch, heads_q, seqlen_q], float32, is
        the log of the sum of exp of the masked, scaled scores (-inf: no key). probs has shape [0],
        as flash-attn's has without dropout: it never holds the probabilities then.

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    _refuse(dropout_p, softcap, alibi_slopes)
    out, lse = mha_fwd(q, k, v, softmax_scale=softmax_scale, causal=causal, window_size=window_size)
    return (out, lse, _no_probabilities(q)) if return_attn_probs else out


@overload
def flash_attn_varlen_func(
    q: ArrayT,
    k: Array,
    v: Array,
    cu_seqlens_q: Array,
    cu_seqlens_k: Array,
    max_seqlen_q: SupportsIndex,
    max_seqlen_k: SupportsIndex,
    dropout_p: float = ...,
    softmax_scale: float | None = ...,
    causal: bool = ...,
    window_size: tuple[int, int] = ...,
    softcap: float = ...,
    alibi_slopes: Array | None = ...,
    deterministic: bool = ...,
    return_attn_probs: Literal[False] = ...,
    block_table: Array | None = ...,
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
    dropout_p: float = ...,
    softmax_scale: float | None = ...,
    causal: bool = ...,
    window_size: tuple[int, int] = ...,
    softcap: float = ...,
    alibi_slopes: Array | None = ...,
    deterministic: bool = ...,
    *,
    return_attn_probs: Literal[True],
    block_table: Array | None = ...,
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
    dropout_p: float = ...,
    softmax_scale: float | None = ...,
    causal: bool = ...,
    window_size: tuple[int, int] = ...,
    softcap: float = ...,
    alibi_slopes: Array | None = ...,
    deterministic: bool = ...,
    return_attn_probs: bool = ...,
    block_table: Array | None = ...,
) -> ArrayT | tuple[ArrayT, Any, Any]: ...
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
) -> ArrayT | tuple[ArrayT, Any, Any]:
    """Attention over sequences of different lengths, with flash_attn_varlen_func's arguments.

    Args:
        q: [total_q, heads_q, head_size]: the sequences one after the other.
        k: [total_k, heads_k, head_size]
        v: [total_k, heads_k, head_size_v]
        cu_seqlens_q: [batch + 1], int32, on q's device: where each sequence of q begins, and last
            total_q.
        cu_seqlens_k: likewise for k and v.
        max_seqlen_q: the greatest length of a sequence of q.
        max_seqlen_k: likewise for k and v.
        block_table: None; a paged key-value cache is not in this version.
        The others: see flash_attn_func, with the lengths of each sequence.

    Returns:
        out, [total_q, heads_q, head_size_v], dtype of q; a row that sees no key is 0.
        With return_attn_probs: (out, lse, probs), lse [heads_q, total_q], float32, and probs of
        shape [0] (see flash_attn_func).

    Raises:
        TypeError, ValueError, UnsupportedError, DriverError: see the module.
    """
    _refuse(dropout_p, softcap, alibi_slopes)
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
    return (out, lse, _no_probabilities(q)) if return_attn_probs else out


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
    call = _Call(q, stream)
    problem, loaded = call.problem(q, k, v, softmax_scale, causal, window_size)
    return call.forward(problem, loaded, out, lse)


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
    call = _Call(q, stream)
    call.sequences(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    problem, loaded = call.problem(q, k, v, softmax_scale, causal, window_size)
    return call.forward(problem, loaded, out, lse)


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
    call = _Call(q, stream)
    problem, loaded = call.problem(q, k, v, softmax_scale, causal, window_size)
    return call.backward(problem, loaded, dout, out, lse, deterministic, (dq, dk, dv), workspace)


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
    call = _Call(q, stream)
    call.sequences(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    problem, loaded = call.problem(q, k, v, softmax_scale, causal, window_size)
    return call.backward(problem, loaded, dout, out, lse, deterministic, (dq, dk, dv), workspace)


class _Call:
    """One call: its device and stream, and every array it borrows, held until it has returned."""

    def __init__(self, lead: Array, stream: int | None) -> None:
        self._lead = lead
        self._framework = framework_of("q", lead)
        self._device = self._framework.device("q", lead)
        if self._device[0] not in (_C.DEVICE_CPU, _C.DEVICE_ROCM):
            raise ValueError(
                f"q: on {device_name(self._device)}; allowed: CPU (host memory) and ROCm (AMD "
                "GPUs); copy the arrays to one of them"
            )
        # stream as given, for results: None leaves them to the stream that the caller works on.
        self._given_stream = stream
        # What the work is queued on; None: there is none, in host memory.
        self._stream: int | None = None
        # Whether that is the stream on which q's framework queues its own work.
        self._same_stream = False
        if self._device[0] == _C.DEVICE_ROCM:
            if stream is None:
                stream = self._framework.current_stream(lead)
                self._same_stream = stream is not None
            self._stream = DEFAULT_STREAM if stream is None else stream
            if self._stream < 0:
                raise ValueError(f"stream: {stream}; allowed: a hipStream_t as int, or None")
        elif stream is not None:
            raise ValueError("stream: the arrays are in host memory; pass stream=None")
        self._problem = _C.Problem()
        self._cu_seqlens: tuple[_C.Tensor, _C.Tensor] | tuple[None, None] = (None, None)

    @property
    def _varlen(self) -> bool:
        return self._cu_seqlens[0] is not None

    def sequences(
        self,
        cu_seqlens_q: Array,
        cu_seqlens_k: Array,
        max_seqlen_q: SupportsIndex,
        max_seqlen_k: SupportsIndex,
    ) -> None:
        """Makes the call a varlen call; before problem()."""
        starts = []
        for name, array in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
            tensor = self._borrow(name, array)
            if tensor.dtype != "int32":
                raise TypeError(f"{name}: dtype {tensor.dtype}; allowed: int32")
            if len(tensor.shape) != 1 or tensor.shape[0] < 1:
                raise ValueError(f"{name}: shape {tensor.shape}; allowed: [batch + 1]")
            _check_contiguous(name, tensor)
            starts.append(tensor)
        if starts[0].shape != starts[1].shape:
            raise ValueError(
                f"cu_seqlens_k: {starts[1].shape[0]} entries, but cu_seqlens_q has "
                f"{starts[0].shape[0]}; both have batch + 1"
            )
        self._cu_seqlens = (starts[0], starts[1])
        self._problem.batch = _int32("cu_seqlens_q: its length", starts[0].shape[0] - 1)
        self._problem.seqlen_q = _int32("max_seqlen_q", max_seqlen_q)
        self._problem.seqlen_k = _int32("max_seqlen_k", max_seqlen_k)

    def problem(
        self,
        q: Array,
        k: Array,
        v: Array,
        softmax_scale: float | None,
        causal: bool,
        window_size: tuple[int, int],
    ) -> tuple[_C.Problem, dict[str, _C.Tensor]]:
        """What is asked for, and q, k, v; checked against each other."""
        dims = _VARLEN_DIMS if self._varlen else _BATCH_DIMS
        loaded: dict[str, _C.Tensor] = {}
        for name, array in (("q", q), ("k", k), ("v", v)):
            tensor = self._borrow(name, array)
            if tensor.dtype not in _C.DTYPES:
                raise TypeError(
                    f"{name}: dtype {tensor.dtype}; allowed: float16, bfloat16, and on the CPU "
                    "float32"
                )
            if len(tensor.shape) != len(dims):
                raise ValueError(f"{name}: shape {tensor.shape}; allowed: [{', '.join(dims)}]")
            loaded[name] = tensor
            self._check_tensor(name, tensor, loaded["q"].dtype)
        heads_q, head_size = loaded["q"].shape[-2:]
        heads_k, head_size_v = loaded["k"].shape[-2], loaded["v"].shape[-1]
        if min(heads_q, heads_k) < 1 or heads_q % heads_k:
            raise ValueError(
                f"k: {heads_k} heads (shape {loaded['k'].shape}), but q has {heads_q}; q's must be "
                "a multiple of k's, and neither 0"
            )
        if min(head_size, head_size_v) < 1:
            raise ValueError(f"q, v: head sizes {head_size}, {head_size_v}; allowed: 1 or more")
        tokens_q, tokens_k = loaded["q"].shape[:-2], loaded["k"].shape[:-2]
        batch = tokens_q[:-1]  # () in varlen mode
        _check_shape("k", loaded["k"], (*batch, tokens_k[-1], heads_k, head_size), dims)
        _check_shape("v", loaded["v"], (*tokens_k, heads_k, head_size_v), dims)

        problem = self._problem
        problem.device_type, problem.device_id = self._device
        problem.stream = self._stream or 0
        problem.dtype = _C.DTYPES[loaded["q"].dtype]
        problem.heads_q = _int32("q: heads", heads_q)
        problem.heads_k = heads_k
        problem.head_size_qk = _int32("q: head size", head_size)
        problem.head_size_v = _int32("v: head size", head_size_v)
        if self._varlen:
            problem.total_q = _int32("q: total tokens", tokens_q[0])
            problem.total_k = _int32("k: total tokens", tokens_k[0])
        else:
            problem.batch = _int32("q: batch", batch[0])
            problem.seqlen_q = _int32("q: seqlen", tokens_q[-1])
            problem.seqlen_k = _int32("k: seqlen", tokens_k[-1])
        problem.softmax_scale = _scale(softmax_scale, head_size)
        problem.mask, problem.window_left, problem.window_right = _mask(causal, window_size)
        return problem, loaded

    def forward(
        self,
        problem: _C.Problem,
        loaded: dict[str, _C.Tensor],
        out: Array | None,
        lse: Array | None,
    ) -> tuple[Any, Any]:
        q, k, v = loaded["q"], loaded["k"], loaded["v"]
        inputs = list(loaded.values())
        made_out, out_tensor = self._output(
            "out", out, (*q.shape[:-1], problem.head_size_v), q.dtype, inputs
        )
        made_lse, lse_tensor = self._output("lse", lse, self._lse_shape(problem), "float32", inputs)
        cu_seqlens_q, cu_seqlens_k = self._cu_seqlens
        _C.fwd(problem, q, k, v, out_tensor, lse_tensor, cu_seqlens_q, cu_seqlens_k)
        return self._result(out, made_out), self._result(lse, made_lse)

    def backward(
        self,
        problem: _C.Problem,
        loaded: dict[str, _C.Tensor],
        dout: Array,
        out: Array,
        lse: Array,
        deterministic: bool,
        gradients: Sequence[Array | None],
        workspace: Array | None,
    ) -> tuple[Any, Any, Any]:
        if deterministic and self._device[0] == _C.DEVICE_ROCM:
            raise UnsupportedError(
                "deterministic=True: on the GPU, this version sums dq in the order the hardware "
                "takes; pass deterministic=False, or arrays in host memory"
            )
        q, k, v = loaded["q"], loaded["k"], loaded["v"]
        dims = _VARLEN_DIMS if self._varlen else _BATCH_DIMS
        for name, array in (("dout", dout), ("out", out)):
            tensor = self._borrow(name, array)
            self._check_tensor(name, tensor, q.dtype)
            _check_shape(name, tensor, (*q.shape[:-1], problem.head_size_v), dims)
            loaded[name] = tensor
        lse_tensor = self._borrow("lse", lse)
        if lse_tensor.dtype != "float32":
            raise TypeError(f"lse: dtype {lse_tensor.dtype}; allowed: float32")
        lse_dims = ("heads", "total tokens") if self._varlen else ("batch", "heads", "seqlen")
        _check_shape("lse", lse_tensor, self._lse_shape(problem), lse_dims)
        _check_contiguous("lse", lse_tensor)

        inputs = [*loaded.values(), lse_tensor]
        made: list[Any] = []
        outputs: list[_C.Tensor] = []
        for name, given, like in zip(("dq", "dk", "dv"), gradients, (q, k, v), strict=True):
            array, tensor = self._output(name, given, like.shape, q.dtype, [*inputs, *outputs])
            made.append(array)
            outputs.append(tensor)
        dq, dk, dv = outputs
        arguments = (problem, loaded["dout"], q, k, v, loaded["out"], lse_tensor, dq, dk, dv)
        cu_seqlens_q, cu_seqlens_k = self._cu_seqlens
        size = _C.bwd_workspace_size(*arguments, cu_seqlens_q, cu_seqlens_k)
        scratch = self._workspace(workspace, size)
        _C.bwd(*arguments, cu_seqlens_q, cu_seqlens_k, scratch)
        results = [self._result(g, m) for g, m in zip(gradients, made, strict=True)]
        return results[0], results[1], results[2]

    def _borrow(self, name: str, array: Any) -> _C.Tensor:
        framework = framework_of(name, array)
        device = framework.device(name, array)
        if device != self._device:
            raise ValueError(
                f"{name}: on {device_name(device)}, but q is on {device_name(self._device)}; all "
                "arrays of a call are on one device"
            )
        stream = self._stream
        if self._same_stream and framework is self._framework:
            stream = SAME_STREAM  # the work is queued behind what made the array
        return framework.borrow(name, array, stream)

    def _check_tensor(self, name: str, tensor: _C.Tensor, dtype: str) -> None:
        if tensor.dtype != dtype:
            raise TypeError(
                f"{name}: dtype {tensor.dtype}, but q has {dtype}; q, k, v, out and the gradients "
                "have one dtype"
            )
        _check_rows(name, tensor)

    def _output(
        self,
        name: str,
        given: Any,
        shape: Sequence[int],
        dtype: str,
        others: Sequence[_C.Tensor],
    ) -> tuple[Any, _C.Tensor]:
        """The array to write and its memory: the caller's, checked, or a new one."""
        if given is None:
            kind = None if dtype != "float32" else dtype
            array = self._framework.empty(name, self._lead, shape, kind, self._given_stream)
        else:
            array = given
            if not framework_of(name, array).writable:
                raise ValueError(f"{name}: {type(array).__name__} is immutable; pass {name}=None")
        tensor = self._borrow(name, array)
        if tensor.dtype != dtype:
            raise TypeError(f"{name}: dtype {tensor.dtype}; allowed: {dtype}")
        if tensor.shape != tuple(shape):
            raise ValueError(f"{name}: shape {tensor.shape}; allowed: {tuple(shape)}")
        if given is None:
            return array, tensor
        if tensor.read_only:
            raise ValueError(f"{name}: is read-only; pass a writable array or {name}=None")
        if name == "lse":
            _check_contiguous(name, tensor)
        else:
            _check_rows(name, tensor)
        if 0 not in tensor.shape and any(tensor.data == other.data for other in others):
            raise ValueError(f"{name}: is the memory of another argument; pass one of its own")
        return array, tensor

    def _result(self, given: Any, made: Any) -> Any:
        return made if given is not None else self._framework.result(made, self._lead)

    def _workspace(self, given: Any, size: int) -> _C.Tensor | None:
        if size == 0:
            return None
        padded = size + _WORKSPACE_ALIGNMENT - 1
        if given is None:
            if not self._framework.stream_ordered:
                raise TypeError(
                    f"workspace: when {type(self._lead).__name__} uses memory again is not known; "
                    f"pass workspace= of {padded} bytes and keep it until the stream is done"
                )
            given = self._framework.empty(
                "workspace", self._lead, (padded,), "uint8", self._given_stream
            )
        tensor = self._borrow("workspace", given)
        _check_contiguous("workspace", tensor)
        if tensor.read_only:
            raise ValueError("workspace: is read-only; pass a writable array or workspace=None")
        return tensor

    def _lse_shape(self, problem: _C.Problem) -> tuple[int, ...]:
        if self._varlen:
            return problem.heads_q, problem.total_q
        return problem.batch, problem.heads_q, problem.seqlen_q


def _refuse(dropout_p: float, softcap: float, alibi_slopes: Array | None) -> None:
    """What flash-attn has and this version has not."""
    if not 0.0 <= dropout_p < 1.0:
        raise ValueError(f"dropout_p: {dropout_p}; allowed: 0.0 (a probability below 1)")
    if dropout_p != 0.0:
        raise UnsupportedError(
            f"dropout_p: {dropout_p}; attention dropout is not in this version: pass 0.0"
        )
    if softcap != 0.0:
        raise UnsupportedError(
            f"softcap: {softcap}; capped scores are not in this version: pass 0.0"
        )
    if alibi_slopes is not None:
        raise UnsupportedError("alibi_slopes: ALiBi is not in this version: pass None")


def _no_probabilities(q: Array) -> Any:
    """What flash-attn gives as S_dmask where there is no dropout."""
    framework = framework_of("q", q)
    return framework.result(framework.empty("probs", q, (0,), None, None), q)


def _scale(softmax_scale: float | None, head_size: int) -> float:
    return 1.0 / math.sqrt(head_size) if softmax_scale is None else float(softmax_scale)


def _mask(causal: bool, window_size: tuple[int, int]) -> tuple[int, int, int]:
    """(attn_mask, window_left, window_right) of the C ABI."""
    try:
        left, right = (operator.index(bound) for bound in window_size)
    except (TypeError, ValueError):
        raise TypeError(
            f"window_size: {window_size!r}; allowed: two integers (left, right), -1: no bound"
        ) from None
    if not all(-1 <= bound <= _INT32_MAX for bound in (left, right)):
        raise ValueError(f"window_size: ({left}, {right}); allowed: 0 or more, or -1: no bound")
    if causal:
        right = 0
    if left == -1 and right == -1:
        return _C.MASK_NONE, -1, -1
    return _C.MASK_BOTTOM_RIGHT, left, right


def _int32(what: str, value: SupportsIndex) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what}: {value!r}; allowed: an integer") from None
    if not 0 <= number <= _INT32_MAX:
        raise ValueError(f"{what}: {number}; allowed: 0 to {_INT32_MAX}")
    return number


def _check_shape(name: str, tensor: _C.Tensor, shape: tuple[int, ...], dims: Sequence[str]) -> None:
    if tensor.shape == shape:
        return
    if len(tensor.shape) == len(shape):
        wrong = ", ".join(
            f"{dim} {have} instead of {want}"
            for dim, have, want in zip(dims, tensor.shape, shape, strict=True)
            if have != want
        )
    else:
        wrong = f"{len(tensor.shape)} dimensions instead of {len(shape)}"
    raise ValueError(
        f"{name}: shape {tensor.shape}; allowed here: {shape} [{', '.join(dims)}]: {wrong}"
    )


def _check_rows(name: str, tensor: _C.Tensor) -> None:
    if tensor.shape and tensor.shape[-1] > 1 and tensor.strides[-1] != 1:
        raise ValueError(
            f"{name}: strides {tensor.strides} (in elements); the last must be 1: pass a copy "
            "whose last dimension is contiguous"
        )


def _check_contiguous(name: str, tensor: _C.Tensor) -> None:
    if 0 in tensor.shape:
        return
    expected = 1
    for extent, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if extent > 1 and stride != expected:
            raise ValueError(
                f"{name}: strides {tensor.strides} (in elements) of shape {tensor.shape}; it must "
                "be contiguous: pass a contiguous copy"
            )
        expected *= extent
