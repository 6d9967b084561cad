# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The library's C ABI (aiter/norm.h) on torch tensors, with the signatures of operations.py."""

from __future__ import annotations

import ctypes
import re
from ctypes import c_float, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path

import torch

from tests.bench.norms.operations import (
    BLOCK_SCALES,
    MASKS,
    NO_SCALES,
    ROW_SCALES,
    turn_counter,
)

_CUDA = 2  # attn_device_type
_LAYER, _RMS = 1, 2  # attn_norm_kind
_DTYPES = {
    torch.float16: 1,
    torch.bfloat16: 2,
    torch.float32: 3,
    torch.float8_e4m3fn: 4,
    torch.float8_e5m2: 5,
}


class _Rows(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("stride", c_int64)]


_FIELDS = Path(__file__).parents[3] / "aiter/fields.h"
_TYPES = {
    "uint32_t": c_uint32,
    "int32_t": c_int32,
    "uint64_t": c_uint64,
    "int64_t": c_int64,
    "float": c_float,
    "attn_rows": _Rows,
}


def _struct(name: str) -> type[ctypes.Structure]:
    """A struct of the C ABI, by its list of fields."""
    lists = _FIELDS.read_text(encoding="utf-8")
    found = re.search(rf"#define {name.upper()}_FIELDS\(X\)((?:.*\\\n)*.*)", lists)
    fields = re.findall(r"X\(\w+, ([^,]+), (\w+)\)", found[1])
    types = [(field, c_void_p if c.endswith("*") else _TYPES[c]) for c, field in fields]
    return type(name, (ctypes.Structure,), {"_fields_": types})


_NormProblem, _NormForward, _NormBackward = map(
    _struct, ("attn_norm_problem", "attn_norm_fwd_args", "attn_norm_bwd_args")
)
_SoftmaxProblem, _SoftmaxForward, _SoftmaxBackward = map(
    _struct, ("attn_softmax_problem", "attn_softmax_fwd_args", "attn_softmax_bwd_args")
)


def _rows(t: torch.Tensor | None) -> _Rows:
    return _Rows(t.data_ptr(), t.stride(0)) if t is not None else _Rows(None, 0)


def _pointer(t: torch.Tensor | None) -> int | None:
    return t.data_ptr() if t is not None else None


def _sized(structure: type[ctypes.Structure], /, **fields: object) -> ctypes.Structure:
    return structure(struct_size=ctypes.sizeof(structure), **fields)


class Library:
    """The library of the file `path`, whose symbols are those of the namespace `aiter`.

    Its calls are of one case: a layer norm or not, zero-centred or not, of a mask.
    """

    def __init__(
        self, path: str, layer: bool = False, zero_centred: bool = False, mask: str = "none"
    ) -> None:
        self._library = ctypes.CDLL(path)
        self._library.aiter_attn_last_error.restype = ctypes.c_char_p
        self._layer, self._zero_centred = layer, zero_centred
        self._mask = MASKS.index(mask)

    def call(self, name: str, *arguments: object) -> None:
        """Raises RuntimeError with the library's message."""
        if getattr(self._library, f"aiter_attn_{name}")(*arguments):
            raise RuntimeError(f"{name}: {self._library.aiter_attn_last_error().decode()}")

    def _problem(
        self, x: torch.Tensor, weight: torch.Tensor | None, y: torch.Tensor, epsilon: float
    ) -> ctypes.Structure:
        return _sized(
            _NormProblem,
            kind=_LAYER if self._layer else _RMS,
            device_type=_CUDA,
            stream=torch.cuda.current_stream().cuda_stream,
            rows=x.shape[0],
            hidden=x.shape[1],
            x_dtype=_DTYPES[x.dtype],
            weight_dtype=_DTYPES[(x if weight is None else weight).dtype],
            y_dtype=_DTYPES[y.dtype],
            zero_centred=int(self._zero_centred),
            epsilon=epsilon,
        )

    def _run(
        self,
        name: str,
        arguments: ctypes.Structure,
        *kept: object,
        counter: torch.Tensor | None = None,
    ):
        """counter: what the call leaves at zeros."""
        pointer = ctypes.byref(arguments)

        def run(keep: object = (arguments, kept)) -> None:
            self.call(name, pointer)

        run.counter = counter
        return run

    def norm_forward(
        self, x, gamma, beta, y, mean, rstd, epsilon, residual, total, scale, amax, scales
    ):
        problem = self._problem(x, beta if gamma is None else gamma, y, epsilon)
        barrier = turn_counter()
        kind = NO_SCALES
        if scales is not None:
            kind = ROW_SCALES if scales.dtype == torch.float32 else BLOCK_SCALES
        arguments = _sized(
            _NormForward,
            problem=ctypes.addressof(problem),
            x=_rows(x),
            y=_rows(y),
            residual=_rows(residual),
            sum=_rows(total),
            gamma=_pointer(gamma),
            beta=_pointer(beta),
            mean=_pointer(mean) if self._layer else None,
            rstd=_pointer(rstd),
            scale=_pointer(scale),
            amax=_pointer(amax),
            barrier=barrier.data_ptr(),
            scales=_pointer(scales),
            scales_kind=kind,
        )
        return self._run("norm_fwd", arguments, problem, counter=barrier)

    def norm_backward(self, x, dy, gamma, mean, rstd, dx, dgamma, dbeta, dh):
        problem = self._problem(x, dbeta if gamma is None else gamma, dy, 0.0)
        arguments = _sized(
            _NormBackward,
            problem=ctypes.addressof(problem),
            x=_rows(x),
            dy=_rows(dy),
            dx=_rows(dx),
            dh=_rows(dh),
            gamma=_pointer(gamma),
            mean=_pointer(mean) if self._layer else None,
            rstd=rstd.data_ptr(),
            dgamma=_pointer(dgamma),
            dbeta=_pointer(dbeta),
        )
        size = c_uint64()
        self.call("norm_bwd_workspace_size", ctypes.byref(arguments), ctypes.byref(size))
        workspace = torch.full((size.value,), 0xFF, dtype=torch.uint8, device="cuda")
        arguments.workspace, arguments.workspace_size = workspace.data_ptr(), size.value
        return self._run("norm_bwd", arguments, problem, workspace)

    def _softmax_problem(
        self, x: torch.Tensor, scale: float, queries: int, repeat: int
    ) -> ctypes.Structure:
        return _sized(
            _SoftmaxProblem,
            mask_kind=self._mask,
            device_type=_CUDA,
            stream=torch.cuda.current_stream().cuda_stream,
            rows=x.shape[0],
            columns=x.shape[1],
            queries=queries,
            mask_repeat=repeat if MASKS[self._mask] == "explicit" else 0,
            dtype=_DTYPES[x.dtype],
            scale=scale,
        )

    def softmax_forward(self, x, y, scale, queries, mask, mask_repeat):
        problem = self._softmax_problem(x, scale, queries, mask_repeat)
        barrier = turn_counter()
        arguments = _sized(
            _SoftmaxForward,
            problem=ctypes.addressof(problem),
            x=_rows(x),
            y=_rows(y),
            mask=_pointer(mask),
            barrier=barrier.data_ptr(),
        )
        return self._run("softmax_fwd", arguments, problem, counter=barrier)

    def softmax_backward(self, y, dy, dx, scale, queries):
        problem = self._softmax_problem(y, scale, queries, 1)
        barrier = turn_counter()
        arguments = _sized(
            _SoftmaxBackward,
            problem=ctypes.addressof(problem),
            y=_rows(y),
            dy=_rows(dy),
            dx=_rows(dx),
            barrier=barrier.data_ptr(),
        )
        return self._run("softmax_bwd", arguments, problem, counter=barrier)
