# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One call: borrows the caller's arrays, makes the results, runs."""

from __future__ import annotations

from typing import Any, Final, SupportsFloat, SupportsIndex

from aiter_attn import _C, _arguments, _problem
from aiter_attn._errors import UnsupportedError
from aiter_attn._frameworks import Array, framework_of
from aiter_attn._frameworks.generic import (
    DEFAULT_STREAM,
    SAME_STREAM,
    check_contiguous,
    check_rows,
    device_name,
)

__all__ = ["Call"]

# The library aligns the workspace itself.
_WORKSPACE_ALIGNMENT: Final = 256
_GREATEST_STREAM: Final = 2**64 - 1


class Call:
    """Its device, stream and problem, and every array it borrows, held as long as it lives.

    sequences: (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k) of a varlen call.
    """

    def __init__(
        self,
        q: Array,
        k: Array,
        v: Array,
        sequences: tuple[Array, Array, SupportsIndex, SupportsIndex] | None,
        softmax_scale: SupportsFloat | None,
        causal: bool,
        window_size: tuple[int, int],
        stream: int | None,
        *,
        dropout_p: SupportsFloat = 0.0,
        softcap: SupportsFloat = 0.0,
        alibi_slopes: Array | None = None,
        bias: Array | None = None,
        rng_state: tuple[SupportsIndex, SupportsIndex] | None = None,
        bias_grad: bool = False,
        deterministic: bool = False,
        min_seqlen_q: SupportsIndex = 0,
    ) -> None:
        self._lead = q
        self._framework = framework_of("q", q)
        self._device = self._framework.device("q", q)
        # What results are made on: None leaves them to the stream that the caller works on.
        self._given_stream = stream
        # What the work is queued on, None in host memory; and what a producer is told that makes
        # its arrays ready for that, if it is q's framework.
        self._stream, self._own_stream = self._choose_stream(stream)
        self._tensors: dict[str, _C.Tensor] = {}

        lengths = None
        if sequences is not None:
            starts_q, starts_k, max_seqlen_q, max_seqlen_k = sequences
            batch = _problem.batch_of(
                self._borrow("cu_seqlens_q", starts_q), self._borrow("cu_seqlens_k", starts_k)
            )
            for name in ("cu_seqlens_q", "cu_seqlens_k"):
                check_contiguous(name, self._tensors[name])
            lengths = _problem.lengths(batch, max_seqlen_q, max_seqlen_k)
        q_tensor, k_tensor = self._borrow("q", q), self._borrow("k", k)
        v_tensor = self._borrow("v", v)
        chosen = _problem.options(
            dropout_p,
            softcap,
            self._borrow_if_given("bias", bias),
            self._borrow_if_given("alibi_slopes", alibi_slopes),
            _arguments.flag("bias_grad", bias_grad),
            _arguments.flag("deterministic", deterministic),
            min_seqlen_q,
        )
        state = _problem.rng_state(chosen.dropout_p, rng_state)
        self.attention = _problem.attention(
            q_tensor, k_tensor, v_tensor, softmax_scale, causal, window_size, lengths, chosen
        )
        for name in ("q", "k", "v", "bias", "alibi_slopes"):
            if name in self._tensors:
                check_rows(name, self._tensors[name])
        self.problem = self.attention.problem
        if chosen.dropout_p > 0.0:
            self.problem = self.problem.with_dropout(*state)
        if self._stream is not None:
            self.problem = self.problem.on(*self._device, self._stream)

    def forward(self, out: Any, lse: Any) -> tuple[Any, Any]:
        """(out, lse): the arrays given, or new ones for None."""
        made_out, made_lse = self._output("out", out), self._output("lse", lse)
        _C.fwd(self.problem, self._tensors)
        return self._result(out, made_out), self._result(lse, made_lse)

    def kept_weights(self) -> Any:
        """uint8, as attn_dropout_mask gives it: 1 where dropout keeps the weight."""
        if self._device[0] != _C.DEVICE_CPU:
            raise UnsupportedError(
                "return_attn_probs: with dropout, this version tells which weights stay for arrays "
                "in host memory only; pass return_attn_probs=False, or the same rng_state with "
                "such arrays"
            )
        made = self._output("kept", None)
        _C.dropout_mask(self.problem, self._tensors)
        return self._result(None, made)

    def backward(
        self,
        dout: Array,
        out: Array,
        lse: Array,
        gradients: tuple[Any, Any, Any],
        dbias: Any,
        workspace: Any,
    ) -> tuple[Any, ...]:
        """(dq, dk, dv), and dbias where bias_grad was asked for: the gradients given, or new arrays
        for None."""
        for name, array, want in (
            ("dout", dout, self.attention.out),
            ("out", out, self.attention.out),
            ("lse", lse, self.attention.lse),
        ):
            self._check(name, self._borrow(name, array), want)
        dq, dk, dv = gradients
        made_dq, made_dk = self._output("dq", dq), self._output("dk", dk)
        made_dv = self._output("dv", dv)
        wants_dbias = bool(self.problem.bias_grad)
        if dbias is not None and not wants_dbias:
            raise ValueError(
                "dbias: given, but bias_grad is False; allowed: None, or bias_grad=True"
            )
        made_dbias = self._output("dbias", dbias) if wants_dbias else None
        self._borrow_workspace(workspace, _C.bwd_workspace_size(self.problem))
        _C.bwd(self.problem, self._tensors)
        results = self._result(dq, made_dq), self._result(dk, made_dk), self._result(dv, made_dv)
        return (*results, self._result(dbias, made_dbias)) if wants_dbias else results

    def _choose_stream(self, stream: int | None) -> tuple[int | None, int | None]:
        """(the stream, and what q's framework is told of it)"""
        if self._device[0] == _C.DEVICE_CPU:
            if stream is not None:
                raise ValueError("stream: the arrays are in host memory; pass stream=None")
            return None, None
        if self._device[0] != _C.DEVICE_ROCM:
            raise ValueError(
                f"q: on {device_name(self._device)}; allowed: CPU (host memory) and ROCm (AMD "
                "GPUs); copy the arrays to one of them"
            )
        if stream is not None:
            stream = _arguments.integer(
                "stream", stream, _GREATEST_STREAM, "a hipStream_t as int, or None"
            )
            return stream, stream
        stream = self._framework.current_stream(self._lead)
        if stream is None:
            return DEFAULT_STREAM, DEFAULT_STREAM
        return stream, SAME_STREAM  # the work is queued behind what made the array

    def _borrow(self, name: str, array: Any) -> _C.Tensor:
        framework = framework_of(name, array)
        device = framework.device(name, array)
        if device != self._device:
            raise ValueError(
                f"{name}: on {device_name(device)}, but q is on {device_name(self._device)}; all "
                "arrays of a call are on one device"
            )
        stream = self._own_stream if framework is self._framework else self._stream
        tensor = self._tensors[name] = framework.borrow(name, array, device, stream)
        return tensor

    def _borrow_if_given(self, name: str, array: Any) -> _C.Tensor | None:
        return None if array is None else self._borrow(name, array)

    def _check(
        self, name: str, tensor: _C.Tensor, want: _problem.ShapeDtype, written: bool = False
    ) -> None:
        if _fits(tensor, want, written):
            return
        _problem.check(name, tensor, want)
        (check_contiguous if name == "lse" else check_rows)(name, tensor)
        if written:
            _check_writable(name, tensor)

    def _output(self, name: str, given: Any) -> Any:
        """The array to write: the caller's, checked, or a new one."""
        want: _problem.ShapeDtype = getattr(self.attention, name)
        if given is None:
            dtype = want.dtype if name in ("lse", "kept") else None
            framework, like = self._framework, self._lead
            try:
                made = framework.empty(name, like, want.shape, dtype, self._given_stream)
                framework.check_made(name, like, self._borrow(name, made), want.shape, want.dtype)
            except TypeError as error:
                raise TypeError(f"{error}; {_to_pass(name, want)}") from error
            return made
        if not framework_of(name, given).writable:
            raise ValueError(f"{name}: {type(given).__name__} is immutable; pass {name}=None")
        self._check(name, self._borrow(name, given), want, written=True)
        return given

    def _result(self, given: Any, made: Any) -> Any:
        return made if given is not None else self._framework.result(made, self._lead)

    def _borrow_workspace(self, given: Any, size: int) -> None:
        if given is None:
            if size == 0:
                return
            padded = size + _WORKSPACE_ALIGNMENT - 1
            if not self._framework.stream_ordered:
                raise TypeError(
                    f"workspace: when {type(self._lead).__name__} uses memory again is not known; "
                    f"pass workspace= of {padded} bytes and keep it until the stream is done"
                )
            given = self._framework.empty(
                "workspace", self._lead, (padded,), "uint8", self._given_stream
            )
        tensor = self._borrow("workspace", given)
        check_contiguous("workspace", tensor)
        _check_writable("workspace", tensor)


def _to_pass(name: str, want: _problem.ShapeDtype) -> str:
    """What a caller does for whom a result cannot be made, in words."""
    takers = "mha_fwd, mha_varlen_fwd" if name in ("out", "lse") else "mha_bwd, mha_varlen_bwd"
    return f"pass {name}= with shape {want.shape} and dtype {want.dtype} to {takers}"


def _fits(tensor: _C.Tensor, want: _problem.ShapeDtype, written: bool) -> bool:
    """The usual case in one question; why not is another's to say. lse is all contiguous."""
    rank = len(want.shape) if want.dims[-1] in ("seqlen", "total tokens") else 1
    return tensor.fits(want.shape, want.dtype, rank, written)


def _check_writable(name: str, tensor: _C.Tensor) -> None:
    if tensor.read_only:
        raise ValueError(f"{name}: is read-only; pass a writable array or {name}=None")
