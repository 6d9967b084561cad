# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""LayerNorm (arXiv:1607.06450), RMSNorm (arXiv:1910.07467) and softmax over the last dimension,
forward and backward.

What holds for every function here
  - Arrays are numpy, torch, cupy or jax arrays, or anything else that exports DLPack, in host
    memory, on an NVIDIA GPU (CUDA) or an AMD GPU (ROCm); of jax, in host memory. All arrays of a
    call are on one device. They are read in place. Results are made by the framework of the array
    whose dtype they have; mean and rstd, by that of x.
  - On a GPU, work is queued on the stream that the framework of x (softmax_bwd: y) works on, where
    that is torch or cupy, else on the default stream. All results are ready on that stream, also
    those of other frameworks. The first call of a shape compiles its kernel.
  - x, gamma and their like have the dtypes float16, bfloat16 or float32. Results have the dtype of
    x (dgamma and dbeta: of gamma; mean and rstd: float32). In host memory, sums are taken in double
    and each result is rounded once; on a GPU they are taken in float32.
  - y_dtype: the dtype of y; None: that of x. With "float8_e4m3fn" or "float8_e5m2" y is multiplied
    by scale ([1], float32; None: 1) before it is rounded; amax ([1], float32, changed) becomes the
    largest |y| before that, or stays what it is if that is larger.
  - The last dimension is contiguous; all others together have one stride.
  - zero_centred: gamma is stored less 1.
  - TypeError: not an array, or a dtype that is not listed. ValueError: shapes, strides, devices or
    numbers that do not fit. UnsupportedError (a NotImplementedError): arrays on another device, or
    on a GPU that is too old. DriverError: no driver, or no compiler.
"""

from __future__ import annotations

import math
from typing import Any, Final

from aiter_attn import _C, _arguments
from aiter_attn._errors import UnsupportedError
from aiter_attn._frameworks import Array, ArrayT, framework_of
from aiter_attn._frameworks.generic import (
    SAME_STREAM,
    Framework,
    check_contiguous,
    check_rows,
    device_name,
    dlpack_stream,
)

__all__ = [
    "layer_norm_bwd",
    "layer_norm_fwd",
    "rms_norm_bwd",
    "rms_norm_fwd",
    "softmax_bwd",
    "softmax_fwd",
]

_CPU: Final = (_C.DEVICE_CPU, 0)
_GPUS: Final = (_C.DEVICE_CUDA, _C.DEVICE_ROCM)
# The library aligns the workspace itself.
_WORKSPACE_ALIGNMENT: Final = 256


class _Call:
    """The arrays of a call by their names, borrowed as long as it lives, and where it runs: on the
    device of `lead`, on the stream that its framework's work is queued on."""

    def __init__(self, name: str, lead: Array) -> None:
        self.tensors: dict[str, _C.Tensor] = {}
        self._given: dict[str, Any] = {}
        self._made: dict[str, tuple[Any, str]] = {}  # a result, and like which array it is made
        self._lead, self._lead_name = lead, name
        self._framework = framework_of(name, lead)
        self._device = self._framework.device(name, lead)
        self.place: dict[str, int] = {}
        # What DLPack's producers are told: those of lead's framework, and all others.
        self._own_stream: int | None = None
        self._stream: int | None = None
        self._barrier_of: int | None = None  # the stream that work is known to be queued on
        if self._device == _CPU:
            return
        if self._device[0] not in _GPUS:
            raise UnsupportedError(
                f"{name}: on {device_name(self._device)}; allowed: CPU (host memory), CUDA (NVIDIA "
                "GPUs) and ROCm (AMD GPUs); copy the arrays to one of them"
            )
        stream = self._framework.current_stream(lead)
        self._stream = dlpack_stream(self._device[0], stream or 0)
        # What the framework made before is queued on its own stream, as the work will be.
        self._own_stream = self._stream if stream is None else SAME_STREAM
        self._barrier_of = stream
        kind, index = self._device
        self.place = {"device_type": kind, "device_id": index, "stream": stream or 0}

    def borrow(
        self,
        name: str,
        array: Any,
        shape: tuple[int, ...] | None = None,
        dtype: str | None = None,
    ) -> _C.Tensor:
        """shape, dtype: what it must have; None: any of at least one dimension, any listed."""
        framework = framework_of(name, array)
        device = framework.device(name, array)
        if device != self._device:
            raise ValueError(
                f"{name}: on {device_name(device)}, but {self._lead_name} is on "
                f"{device_name(self._device)}; all arrays of a call are on one device"
            )
        tensor = framework.borrow(name, array, device, self._stream_of(framework))
        allowed = tuple(_C.DTYPES) if dtype is None else (dtype,)
        if tensor.dtype not in allowed:
            raise TypeError(f"{name}: dtype {tensor.dtype}; allowed: {', '.join(allowed)}")
        if shape is None and not tensor.shape:
            raise ValueError(f"{name}: shape (); allowed: at least one dimension")
        if shape is not None and tensor.shape != shape:
            raise ValueError(f"{name}: shape {tensor.shape}; allowed: {shape}")
        check_rows(name, tensor)
        self.tensors[name], self._given[name] = tensor, array
        return tensor

    def vector(self, name: str, array: Any, count: int, dtype: str | None = None) -> _C.Tensor:
        return self.borrow(name, array, (count,), dtype)

    def _stream_of(self, framework: Framework) -> int | None:
        return self._own_stream if framework is self._framework else self._stream

    def written(self, name: str, array: Any, shape: tuple[int, ...], dtype: str) -> None:
        """An array of the caller's that is changed."""
        if not framework_of(name, array).writable:
            raise ValueError(f"{name}: {type(array).__name__} is immutable")
        if self.borrow(name, array, shape, dtype).read_only:
            raise ValueError(f"{name}: is read-only; pass a writable array")

    def lend_barrier(self) -> None:
        """What the library shares long rows out by, where there is one."""
        if self._barrier_of is not None:
            barrier = self._framework.barrier(self._lead, self._barrier_of)
            if barrier is not None:
                self.borrow("barrier", barrier)

    def lend_workspace(self, size: int) -> None:
        if size == 0:
            return
        framework, lead = self._framework, self._lead
        if not framework.stream_ordered:
            raise TypeError(
                f"{self._lead_name}: when {type(lead).__name__} uses memory again is not known; on "
                "a GPU, pass torch or cupy arrays"
            )
        padded = (size + _WORKSPACE_ALIGNMENT - 1,)
        made = framework.empty("workspace", lead, padded, "uint8", None)
        self.borrow("workspace", made, padded, "uint8")

    def make(
        self,
        name: str,
        like: str,
        shape: tuple[int, ...],
        dtype: str | None = None,
        seen_as: str | None = None,
    ) -> None:
        """A result, by the framework of the array `like`; dtype None: of its dtype. seen_as: what
        the caller gets its bytes as."""
        given = self._given[like]
        framework = framework_of(like, given)
        # Another framework would hand the memory out in the order of its own current stream.
        stream = None if framework is self._framework else self.place.get("stream")
        try:
            made = framework.empty(name, given, shape, dtype, stream)
            # What jax's results are written to is numpy's.
            maker = framework_of(name, made)
            tensor = maker.borrow(name, made, self._device, self._stream_of(maker))
            framework.check_made(name, given, tensor, shape, dtype or self.tensors[like].dtype)
        except TypeError as error:
            takers = "numpy, torch or jax" if self._device == _CPU else "torch or cupy"
            raise TypeError(f"{error}; pass {like} as a {takers} array") from error
        if seen_as is not None:  # what cannot be had is told before any array is written
            made = framework.seen_as(name, made, seen_as)
        self.tensors[name], self._made[name] = tensor, (made, like)

    def result(self, name: str) -> Any:
        made, like = self._made[name]
        return framework_of(like, self._given[like]).result(made, self._given[like])


def _row_shape(name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """(rows, columns) of the array `name`."""
    if shape[-1] == 0:
        raise ValueError(f"{name}: shape {shape}; allowed: a last dimension of at least 1")
    return math.prod(shape[:-1]), shape[-1]


def _numbers(kind: int, call: _Call, zero_centred: bool, epsilon: float) -> dict[str, Any]:
    tensors = call.tensors
    rows, hidden = _row_shape("x", tensors["x"].shape)
    dtype = _C.DTYPES[tensors["x"].dtype]
    return {
        "kind": kind,
        "rows": rows,
        "hidden": hidden,
        "x_dtype": dtype,
        "weight_dtype": _C.DTYPES[tensors["gamma"].dtype],
        "y_dtype": _C.DTYPES[tensors["dy"].dtype] if "dy" in tensors else dtype,
        **call.place,
        "zero_centred": int(_arguments.flag("zero_centred", zero_centred)),
        "epsilon": epsilon,
    }


def read_epsilon(value: Any) -> float:
    epsilon = _arguments.number("epsilon", value, "a finite number from 0 on")
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon: {epsilon}; allowed: a finite number from 0 on")
    return epsilon


def _forward(
    kind: int,
    x: Any,
    gamma: Array,
    beta: Array | None,
    residual: Array | None,
    epsilon: float,
    zero_centred: bool,
    fp8: tuple[str | None, Array | None, Array | None],
) -> _Call:
    """fp8: y_dtype, scale and amax."""
    call = _Call("x", x)
    tensor = call.borrow("x", x)
    _, hidden = _row_shape("x", tensor.shape)
    weights = call.vector("gamma", gamma, hidden)
    if beta is not None:
        call.vector("beta", beta, hidden, weights.dtype)
    if residual is not None:
        call.borrow("residual", residual, tensor.shape, tensor.dtype)
        call.make("sum", "x", tensor.shape)
    numbers = _numbers(kind, call, zero_centred, read_epsilon(epsilon))
    y_dtype, scale, amax = fp8
    y_dtype = tensor.dtype if y_dtype is None else y_dtype
    dtypes = _C.DTYPES | _C.FP8_DTYPES
    if not isinstance(y_dtype, str) or y_dtype not in dtypes:
        raise ValueError(
            f"y_dtype: {_arguments.shown(y_dtype)}; allowed: None, {', '.join(dtypes)}"
        )
    numbers["y_dtype"] = dtypes[y_dtype]
    if y_dtype in _C.DTYPES:
        if scale is not None or amax is not None:
            name = "scale" if scale is not None else "amax"
            raise ValueError(f"{name}: is for fp8 results; pass such a y_dtype, or {name}=None")
        call.make("y", "x", tensor.shape, None if y_dtype == tensor.dtype else y_dtype)
    else:
        # Not every framework exports fp8; all export its bytes.
        call.make("y", "x", tensor.shape, "uint8", y_dtype)
        if scale is not None:
            call.borrow("scale", scale, (1,), "float32")
        if amax is not None:
            call.written("amax", amax, (1,), "float32")
    call.make("rstd", "x", tensor.shape[:-1], "float32")
    if kind == _C.NORM_LAYER:
        call.make("mean", "x", tensor.shape[:-1], "float32")
    call.lend_barrier()
    _C.norm_fwd(numbers, call.tensors)
    return call


def _backward(
    kind: int,
    dy: Any,
    x: Array,
    gamma: Array,
    mean: Array | None,
    rstd: Array,
    dh: Array | None,
    zero_centred: bool,
) -> _Call:
    call = _Call("x", x)
    tensor = call.borrow("x", x)
    _, hidden = _row_shape("x", tensor.shape)
    call.borrow("dy", dy, tensor.shape)
    call.vector("gamma", gamma, hidden)
    for name, statistic in (("rstd", rstd), ("mean", mean)):
        if statistic is None:
            continue
        check_contiguous(name, call.borrow(name, statistic, tensor.shape[:-1], "float32"))
    if dh is not None:
        call.borrow("dh", dh, tensor.shape, tensor.dtype)
    call.make("dx", "x", tensor.shape)
    call.make("dgamma", "gamma", (hidden,))
    if kind == _C.NORM_LAYER:
        call.make("dbeta", "gamma", (hidden,))
    numbers = _numbers(kind, call, zero_centred, 0.0)
    if call.place:
        call.lend_workspace(_C.norm_bwd_workspace_size(numbers, call.tensors))
    _C.norm_bwd(numbers, call.tensors)
    return call


def rms_norm_fwd(
    x: ArrayT,
    gamma: Array,
    *,
    residual: Array | None = None,
    epsilon: float = 1e-6,
    zero_centred: bool = False,
    y_dtype: str | None = None,
    scale: Array | None = None,
    amax: Array | None = None,
) -> tuple[ArrayT, Any, ArrayT | None]:
    """y = h / sqrt(mean(h^2) + epsilon) * gamma, with h = x, or x + residual.

    Args:
        x: [..., hidden]
        gamma: [hidden]
        residual: shape and dtype of x; None: nothing is added.
        epsilon: 0 or more.
        zero_centred: see the module.
        y_dtype, scale, amax: see the module.

    Returns:
        (y, rstd, h): y as x; rstd, [...], float32, is 1 / sqrt(mean(h^2) + epsilon), for
        rms_norm_bwd; h = x + residual, rounded to the dtype of x, or None without a residual.

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    fp8 = y_dtype, scale, amax
    call = _forward(_C.NORM_RMS, x, gamma, None, residual, epsilon, zero_centred, fp8)
    total = call.result("sum") if residual is not None else None
    return call.result("y"), call.result("rstd"), total


def rms_norm_bwd(
    dy: Array,
    x: ArrayT,
    gamma: Array,
    rstd: Array,
    *,
    dh: Array | None = None,
    zero_centred: bool = False,
) -> tuple[ArrayT, Any]:
    """(dx, dgamma) of rms_norm_fwd: gradients by x, or by x + residual, and gamma.

    Args:
        dy: gradient by y, [..., hidden]
        x: as rms_norm_fwd got it, or the h that it gave.
        gamma: [hidden]
        rstd: as rms_norm_fwd gave it.
        dh: gradient by h that comes another way, added to dx; shape and dtype of x.
        zero_centred: see the module.

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    call = _backward(_C.NORM_RMS, dy, x, gamma, None, rstd, dh, zero_centred)
    return call.result("dx"), call.result("dgamma")


def layer_norm_fwd(
    x: ArrayT,
    gamma: Array,
    beta: Array | None = None,
    *,
    residual: Array | None = None,
    epsilon: float = 1e-5,
    zero_centred: bool = False,
    y_dtype: str | None = None,
    scale: Array | None = None,
    amax: Array | None = None,
) -> tuple[ArrayT, Any, Any, ArrayT | None]:
    """y = (h - mean) * rstd * gamma + beta, with h = x, or x + residual.

    Args:
        x: [..., hidden]
        gamma: [hidden]
        beta: shape and dtype of gamma; None: 0.
        residual: shape and dtype of x; None: nothing is added.
        epsilon: 0 or more.
        zero_centred: see the module.
        y_dtype, scale, amax: see the module.

    Returns:
        (y, mean, rstd, h): y as x; mean and rstd = 1 / sqrt(variance + epsilon), [...], float32,
        for layer_norm_bwd; h = x + residual, rounded to the dtype of x, or None without a residual.

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    fp8 = y_dtype, scale, amax
    call = _forward(_C.NORM_LAYER, x, gamma, beta, residual, epsilon, zero_centred, fp8)
    total = call.result("sum") if residual is not None else None
    return call.result("y"), call.result("mean"), call.result("rstd"), total


def layer_norm_bwd(
    dy: Array,
    x: ArrayT,
    gamma: Array,
    mean: Array,
    rstd: Array,
    *,
    dh: Array | None = None,
    zero_centred: bool = False,
) -> tuple[ArrayT, Any, Any]:
    """(dx, dgamma, dbeta) of layer_norm_fwd. Arguments are those of rms_norm_bwd, and mean.

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    call = _backward(_C.NORM_LAYER, dy, x, gamma, mean, rstd, dh, zero_centred)
    return call.result("dx"), call.result("dgamma"), call.result("dbeta")


def _softmax_numbers(
    call: _Call, name: str, scale: float, mask_kind: int, mask_repeat: int
) -> dict[str, Any]:
    """Of the array `name`."""
    tensor = call.tensors[name]
    rows, columns = _row_shape(name, tensor.shape)
    scale = _arguments.number("scale", scale, "a finite number")
    if not math.isfinite(scale):
        raise ValueError(f"scale: {scale}; allowed: a finite number")
    return {
        "mask_kind": mask_kind,
        "rows": rows,
        "columns": columns,
        "queries": max(1, tensor.shape[-2]) if len(tensor.shape) > 1 else 1,
        "mask_repeat": mask_repeat,
        "dtype": _C.DTYPES[tensor.dtype],
        "scale": scale,
        **call.place,
    }


def softmax_fwd(
    x: ArrayT, *, scale: float = 1.0, mask: Array | None = None, causal: bool = False
) -> ArrayT:
    """softmax(scale * x) over the last dimension.

    Args:
        x: [..., queries, columns]
        scale: finite.
        mask: [masks, queries, columns], uint8, contiguous: where it is 1 the scaled score is
            -10000, and a row whose largest score is -10000 gives zeros, as in Transformer Engine;
            a NaN that is not masked makes its row NaN.
            masks divides the number of x's matrices: as many, one after the other, share one.
        causal: query q has the first q + columns - queries + 1 columns; the others give 0.

    Returns:
        y, as x.

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    call = _Call("x", x)
    tensor = call.borrow("x", x)
    kind, repeat = _C.SOFTMAX_MASK_NONE, 0
    if _arguments.flag("causal", causal):
        kind = _C.SOFTMAX_MASK_CAUSAL
    if mask is not None:
        if causal:
            raise ValueError("mask: with causal=True; allowed: one of the two")
        kind, repeat = _C.SOFTMAX_MASK_EXPLICIT, _borrow_mask(call, mask, tensor.shape)
    call.make("y", "x", tensor.shape)
    call.lend_barrier()
    _C.softmax_fwd(_softmax_numbers(call, "x", scale, kind, repeat), call.tensors)
    y: ArrayT = call.result("y")
    return y


def _borrow_mask(call: _Call, mask: Array, shape: tuple[int, ...]) -> int:
    """How many matrices share one of the masks."""
    tensor = call.borrow("mask", mask, dtype="uint8")
    matrices = math.prod(shape[:-2])
    fits = len(shape) > 1 and len(tensor.shape) == 3 and tensor.shape[1:] == shape[-2:]
    if not fits or tensor.shape[0] == 0 or matrices % tensor.shape[0] != 0:
        raise ValueError(
            f"mask: shape {tensor.shape}; allowed: [masks, queries, columns] of x, whose shape is "
            f"{shape}, and masks that divide its {matrices} matrices"
        )
    check_contiguous("mask", tensor)
    return max(1, matrices // tensor.shape[0])


def softmax_bwd(dy: Array, y: ArrayT, *, scale: float = 1.0, causal: bool = False) -> ArrayT:
    """dx = scale * y * (dy - sum(y * dy)), with the y of softmax_fwd.

    Args:
        dy: gradient by y, shape and dtype of y.
        y: as softmax_fwd gave it, with whatever mask.
        scale: as softmax_fwd got it.
        causal: likewise: columns that take no part give 0.

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    call = _Call("y", y)
    tensor = call.borrow("y", y)
    call.borrow("dy", dy, tensor.shape, tensor.dtype)
    call.make("dx", "y", tensor.shape)
    causal = _arguments.flag("causal", causal)
    kind = _C.SOFTMAX_MASK_CAUSAL if causal else _C.SOFTMAX_MASK_NONE
    call.lend_barrier()
    _C.softmax_bwd(_softmax_numbers(call, "y", scale, kind, 0), call.tensors)
    dx: ArrayT = call.result("dx")
    return dx
