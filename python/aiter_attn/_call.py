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
        self.attention = _problem.attention(
            self._borrow("q", q),
            self._borrow("k", k),
            self._borrow("v", v),
            softmax_scale,
            causal,
            window_size,
            lengths,
        )
        for name in ("q", "k", "v"):
            check_rows(name, self._tensors[name])
        self.problem = self.attention.problem
        if self._stream is not None:
            self.problem = self.problem.on(*self._device, self._stream)

    def forward(self, out: Any, lse: Any) -> tuple[Any, Any]:
        """(out, lse): the arrays given, or new ones for None."""
        made_out, made_lse = self._output("out", out), self._output("lse", lse)
        _C.fwd(self.problem, self._tensors)
        return self._result(out, made_out), self._result(lse, made_lse)

    def backward(
        self,
        dout: Array,
        out: Array,
        lse: Array,
        deterministic: bool,
        gradients: tuple[Any, Any, Any],
        workspace: Any,
    ) -> tuple[Any, Any, Any]:
        """(dq, dk, dv): the gradients given, or new arrays for None."""
        if _arguments.flag("deterministic", deterministic) and self._device[0] == _C.DEVICE_ROCM:
            raise UnsupportedError(
                "deterministic=True: on the GPU, this version sums dq in the order the hardware "
                "takes; pass deterministic=False, or arrays in host memory"
            )
        for name, array, want in (
            ("dout", dout, self.attention.out),
            ("out", out, self.attention.out),
            ("lse", lse, self.attention.lse),
        ):
            self._check(name, self._borrow(name, array), want)
        dq, dk, dv = gradients
        made_dq, made_dk = self._output("dq", dq), self._output("dk", dk)
        made_dv = self._output("dv", dv)
        self._borrow_workspace(workspace, _C.bwd_workspace_size(self.problem))
        _C.bwd(self.problem, self._tensors)
        return self._result(dq, made_dq), self._result(dk, made_dk), self._result(dv, made_dv)

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
            dtype = want.dtype if name == "lse" else None
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
    rank = 1 if want.dims[-1] == "head size" else len(want.shape)
    return tensor.fits(want.shape, want.dtype, rank, written)


def _check_writable(name: str, tensor: _C.Tensor) -> None:
    if tensor.read_only:
        raise ValueError(f"{name}: is read-only; pass a writable array or {name}=None")
