# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One call: borrows the caller's arrays, makes the results, runs."""

from __future__ import annotations

from typing import Any, ClassVar, Final, SupportsIndex, TypeAlias

from aiter_attn import _C
from aiter_attn._core import fp8_scales, problems
from aiter_attn._core.adapters import Array
from aiter_attn._core.adapters.generic import check_contiguous, check_rows
from aiter_attn._core.arrays import Arrays, padded
from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.options import Options
from aiter_attn._core.refusals import ARGUMENTS, asked

__all__ = ["Call", "RngState"]

RngState: TypeAlias = "tuple[SupportsIndex, SupportsIndex] | Array"

_OF_FORWARD: Final = "mha_fwd, mha_varlen_fwd"
_OF_BACKWARD: Final = "mha_bwd, mha_varlen_bwd"


class Call(Arrays):
    """A call's arrays and its problem.

    sequences: (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k) of a varlen call.
    """

    takers: ClassVar[dict[str, str]] = {
        "out": _OF_FORWARD,
        "lse": _OF_FORWARD,
        **dict.fromkeys(("dq", "dk", "dv", "dbias", "dsink", "workspace"), _OF_BACKWARD),
    }

    def __init__(
        self,
        q: Array,
        k: Array,
        v: Array,
        sequences: tuple[Array, Array, SupportsIndex, SupportsIndex] | None,
        options: Options,
        stream: int | None = None,
        *,
        alibi_slopes: Array | None = None,
        bias: Array | None = None,
        rng_state: RngState | None = None,
        sink: Array | None = None,
        scales: fp8_scales.Given | None = None,
    ) -> None:
        """scales: of a function that takes fp8."""
        given = {"q": q, "k": k, "v": v}
        if sequences is not None:
            given["cu_seqlens_q"], given["cu_seqlens_k"] = sequences[:2]
        if bias is not None:
            given["bias"] = bias
        if alibi_slopes is not None:
            given["alibi_slopes"] = alibi_slopes
        if sink is not None:
            given["sink"] = sink
        state = None
        if rng_state is None or type(rng_state) is tuple or not isinstance(rng_state, Array):
            state = problems.rng_state(options.dropout_p, rng_state)
        else:
            given["rng_state"] = rng_state
        super().__init__(given, stream)
        tensors = self.tensors
        lengths = None
        if sequences is not None:
            batch = problems.batch_of(tensors["cu_seqlens_q"], tensors["cu_seqlens_k"])
            check_contiguous("cu_seqlens_q", tensors["cu_seqlens_q"])
            check_contiguous("cu_seqlens_k", tensors["cu_seqlens_k"])
            lengths = problems.lengths(batch, *sequences[2:])
        q_tensor, k_tensor, v_tensor = tensors["q"], tensors["k"], tensors["v"]
        fp8 = None
        if scales is not None:
            fp8 = self._fp8(scales, q_tensor, k_tensor, lengths)
        self._is_fp8 = fp8 is not None
        v_columns = self._is_fp8 and _lies_by_columns(v_tensor)
        beside = problems.beside(tensors.get("bias"), tensors.get("alibi_slopes"), fp8, v_columns)
        if state is None:
            self._check_state(options.dropout_p)
        self.attention = problems.attention(q_tensor, k_tensor, v_tensor, options, lengths, beside)
        for name in ("q", "k", "v", "bias", "alibi_slopes"):
            is_wrong = name in tensors and not tensors[name].is_contiguous(1)
            if is_wrong and not (v_columns and name == "v"):
                check_rows(name, tensors[name])
        if sink is not None:
            problems.check_sink(tensors["sink"], self.attention.problem.heads_q)
            check_contiguous("sink", tensors["sink"])
        if fp8 is not None and self._stream is not None:
            _check_layout(v_tensor, v_columns, fp8.out_dtype)
        self.problem = self.attention.problem
        if state is not None and options.dropout_p > 0.0:
            self.problem = self.problem.with_dropout(*state)
        if self._stream is not None:
            self.problem = self.problem.on(*self._device, self._stream)

    def _check_state(self, dropout_p: float) -> None:
        tensor = self.tensors["rng_state"]
        problems.check_rng_state(tensor)
        check_contiguous("rng_state", tensor)
        if dropout_p == 0.0:
            del self.tensors["rng_state"]

    def _fp8(
        self, scales: fp8_scales.Given, q: _C.Tensor, k: _C.Tensor, lengths: problems.Lengths | None
    ) -> problems.Scales | None:
        """The scales as numbers; None: q is not fp8."""
        # An array with fewer dimensions is refused once the scales are read.
        batch = (*q.shape, 0)[0] if lengths is None else lengths.batch
        read = fp8_scales.read(scales, q, (0, 0, *k.shape)[-2], batch)
        if read is None or lengths is None or self._stream is None or read.out_dtype is not None:
            return read
        raise UnsupportedError(
            f"q: dtype {q.dtype}; Composable Kernel has no fp8 kernel for sequences of different "
            "lengths with an out of fp8; pass an out_dtype, sequences of one length to "
            "flash_attn_func, or float16 or bfloat16"
        )

    def forward(self, out: Any, lse: Any, wants_lse: bool = True) -> tuple[Any, Any]:
        """(out, lse): the arrays given, or new ones for None. Kernels for fp8 have no lse: it is
        None then, unless it is wanted."""
        attention = self.attention
        outputs = {"out": (out, attention.out)}
        if wants_lse or not self._is_fp8:
            outputs["lse"] = lse, attention.lse
        made = self.written(outputs, self._run_forward)
        return made[0], made[1] if len(made) > 1 else None

    def prepared(self) -> _C.PreparedForward:
        """The forward pass, once it has run, for arrays that lie as these do. Of a call without
        bias, slopes, sink, sequences and numbers in memory."""
        return _C.PreparedForward(self.problem, self.tensors)

    def prepared_backward(self) -> tuple[_C.PreparedBackward, int]:
        """The same of the backward pass, and the bytes of its workspace, from any address."""
        size = _C.bwd_workspace_size(self.problem)
        return _C.PreparedBackward(self.problem, self.tensors), padded(size)

    def probabilities(self) -> Any:
        """flash-attn's S_dmask: empty where there is no dropout, else attn_dropout_mask's uint8: 1
        where dropout keeps the weight."""
        if not self.problem.dropout_p > 0.0:
            return self.no_probabilities()
        outputs = {"kept": (None, self.attention.kept)}
        (kept,) = self.written(outputs, lambda: _C.dropout_mask(self.problem, self.tensors))
        return kept

    def backward(
        self,
        dout: Array,
        out: Array,
        lse: Array,
        gradients: tuple[Any, Any, Any],
        dbias: Any,
        workspace: Any,
        dsink: Any = None,
    ) -> tuple[Any, ...]:
        """(dq, dk, dv), dbias where bias_grad was asked for, and dsink where there is a sink: the
        gradients given, or new arrays for None."""
        attention = self.attention
        self.lend({"dout": dout, "out": out, "lse": lse})
        for name, want in (("dout", attention.out), ("out", attention.out), ("lse", attention.lse)):
            self.check(name, want)
        dq, dk, dv = gradients
        outputs = {"dq": (dq, attention.dq), "dk": (dk, attention.dk), "dv": (dv, attention.dv)}
        if self.problem.bias_grad:
            outputs["dbias"] = dbias, attention.dbias
        elif dbias is not None:
            raise ValueError(
                "dbias: given, but bias_grad is False; allowed: None, or bias_grad=True"
            )
        if "sink" in self.tensors:
            outputs["dsink"] = dsink, attention.dsink
        elif dsink is not None:
            raise ValueError("dsink: given, but sink is None; allowed: None, or with a sink")
        return tuple(self.written(outputs, self._run_backward, self._workspace_size, workspace))

    def _run_forward(self) -> None:
        asked(ARGUMENTS, _C.fwd, self.problem, self.tensors)

    def _run_backward(self) -> None:
        asked(ARGUMENTS, _C.bwd, self.problem, self.tensors)

    def _workspace_size(self) -> int:
        return _C.bwd_workspace_size(self.problem)


def _check_layout(v: _C.Tensor, is_by_columns: bool, out_dtype: str | None) -> None:
    """On a GPU. Raises UnsupportedError for a layout of v that fp8 kernels do not take."""
    strides = f"v: strides {v.strides} (in elements); Composable Kernel's fp8 kernels take"
    if out_dtype is None and not is_by_columns:
        raise UnsupportedError(
            f"{strides} v with contiguous keys; pass a view of the same shape of a contiguous "
            "[batch, heads, head size, seqlen], or an out_dtype, whose kernels take v as k lies"
        )
    if out_dtype is not None and is_by_columns:
        raise UnsupportedError(
            f"{strides} v with contiguous elements of heads where out is {out_dtype}; pass a "
            "contiguous [batch, seqlen, heads, head size]"
        )


def _lies_by_columns(v: _C.Tensor) -> bool:
    """Whether the keys of a batch of values are contiguous, and not their elements."""
    if len(v.shape) != 4 or v.is_contiguous(1):
        return False
    return v.shape[1] == 1 or v.strides[1] == 1
