# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One call of LayerNorm, RMSNorm or softmax: its arrays, its problem, its results."""

from __future__ import annotations

import math
from typing import Any, Final

from aiter_attn import _C
from aiter_attn._core import reading
from aiter_attn._core.adapters import Array, adapter_of
from aiter_attn._core.adapters.generic import (
    SAME_STREAM,
    GenericAdapter,
    check_contiguous,
    check_rows,
    device_name,
    dlpack_stream,
)
from aiter_attn._core.errors import UnsupportedError

__all__ = [
    "backward",
    "forward",
    "mask_kind",
    "mask_repeat",
    "read_epsilon",
    "read_scale",
    "softmax_backward",
    "softmax_forward",
]

_CPU: Final = (_C.DEVICE_CPU, 0)
_GPUS: Final = (_C.DEVICE_CUDA, _C.DEVICE_ROCM)
# The library aligns the workspace itself.
_WORKSPACE_ALIGNMENT: Final = 256


class Norm:
    """The arrays of a call by their names, borrowed as long as it lives, and where it runs: on the
    device of `lead`, on the stream that its framework's work is queued on."""

    def __init__(self, name: str, lead: Array) -> None:
        self.tensors: dict[str, _C.Tensor] = {}
        self._given: dict[str, Any] = {}
        self._made: dict[str, tuple[Any, str]] = {}  # a result, and like which array it is made
        self._lead, self._lead_name = lead, name
        self._adapter = adapter_of(name, lead)
        self._device = self._adapter.device(name, lead)
        self.place: dict[str, int] = {}
        # The streams that DLPack's producers are told: those of lead's framework, and all others.
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
        stream = self._adapter.current_stream(lead)
        self._stream = dlpack_stream(self._device[0], stream or 0)
        # Earlier work of the framework is queued on its own stream, as the new work will be.
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
        """shape, dtype: those that it must have; None: any of at least one dimension, any
        listed."""
        adapter = adapter_of(name, array)
        device = adapter.device(name, array)
        if device != self._device:
            raise ValueError(
                f"{name}: on {device_name(device)}, but {self._lead_name} is on "
                f"{device_name(self._device)}; all arrays of a call are on one device"
            )
        tensor = adapter.borrow(name, array, device, self._stream_of(adapter))
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

    def _stream_of(self, adapter: GenericAdapter) -> int | None:
        return self._own_stream if adapter is self._adapter else self._stream

    def written(self, name: str, array: Any, shape: tuple[int, ...], dtype: str) -> None:
        """An array of the caller's that is changed."""
        if not adapter_of(name, array).writable:
            raise ValueError(f"{name}: {type(array).__name__} is immutable")
        if self.borrow(name, array, shape, dtype).read_only:
            raise ValueError(f"{name}: is read-only; pass a writable array")

    def lend_barrier(self) -> None:
        """The grid barrier by which the library shares long rows out, where there is one."""
        if self._barrier_of is not None:
            barrier = self._adapter.barrier(self._lead, self._barrier_of)
            if barrier is not None:
                self.borrow("barrier", barrier)

    def lend_workspace(self, size: int) -> None:
        if size == 0:
            return
        adapter, lead = self._adapter, self._lead
        if not adapter.stream_ordered:
            raise TypeError(
                f"{self._lead_name}: when {type(lead).__name__} uses memory again is not known; on "
                "a GPU, pass torch or cupy arrays"
            )
        padded = (size + _WORKSPACE_ALIGNMENT - 1,)
        made = adapter.empty("workspace", lead, padded, "uint8", None)
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
        adapter = adapter_of(like, given)
        # Another framework would hand the memory out in the order of its own current stream.
        stream = None if adapter is self._adapter else self.place.get("stream")
        try:
            made = adapter.empty(name, given, shape, dtype, stream)
            # Results for jax are written to numpy arrays.
            maker = adapter_of(name, made)
            tensor = maker.borrow(name, made, self._device, self._stream_of(maker))
            adapter.check_made(name, given, tensor, shape, dtype or self.tensors[like].dtype)
        except TypeError as error:
            takers = "numpy, torch or jax" if self._device == _CPU else "torch or cupy"
            raise TypeError(f"{error}; pass {like} as a {takers} array") from error
        if seen_as is not None:  # an array that cannot be had is refused before any other is
            # written
            made = adapter.seen_as(name, made, seen_as)
        self.tensors[name], self._made[name] = tensor, (made, like)

    def result(self, name: str) -> Any:
        made, like = self._made[name]
        return adapter_of(like, self._given[like]).result(made, self._given[like])


def _row_shape(name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """(rows, columns) of the array `name`."""
    if shape[-1] == 0:
        raise ValueError(f"{name}: shape {shape}; allowed: a last dimension of at least 1")
    return math.prod(shape[:-1]), shape[-1]


def _numbers(kind: int, call: Norm, zero_centred: bool, epsilon: float) -> dict[str, Any]:
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
        "zero_centred": int(reading.flag("zero_centred", zero_centred)),
        "epsilon": epsilon,
    }


def read_epsilon(value: Any) -> float:
    epsilon = reading.number("epsilon", value, "a finite number from 0 on")
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon: {epsilon}; allowed: a finite number from 0 on")
    return epsilon


def forward(
    kind: int,
    x: Any,
    gamma: Array,
    beta: Array | None,
    residual: Array | None,
    epsilon: float,
    zero_centred: bool,
    fp8: tuple[str | None, Array | None, Array | None] = (None, None, None),
) -> tuple[Any, Any, Any, Any]:
    """(y, mean, rstd, h) of rms_norm_fwd or layer_norm_fwd; None for the mean of RMSNorm, and for h
    without a residual. fp8: y_dtype, scale and amax."""
    call = Norm("x", x)
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
        raise ValueError(f"y_dtype: {reading.shown(y_dtype)}; allowed: None, {', '.join(dtypes)}")
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
    mean = call.result("mean") if kind == _C.NORM_LAYER else None
    total = call.result("sum") if residual is not None else None
    return call.result("y"), mean, call.result("rstd"), total


def backward(
    kind: int,
    dy: Any,
    x: Array,
    gamma: Array,
    mean: Array | None,
    rstd: Array,
    dh: Array | None,
    zero_centred: bool,
) -> tuple[Any, Any, Any]:
    """(dx, dgamma, dbeta) of rms_norm_bwd or layer_norm_bwd; dbeta is LayerNorm's, else None."""
    call = Norm("x", x)
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
    dbeta = call.result("dbeta") if kind == _C.NORM_LAYER else None
    return call.result("dx"), call.result("dgamma"), dbeta


def read_scale(value: Any) -> float:
    scale = reading.number("scale", value, "a finite number")
    if not math.isfinite(scale):
        raise ValueError(f"scale: {scale}; allowed: a finite number")
    return scale


def mask_kind(causal: Any, mask: Any) -> int:
    """A SOFTMAX_MASK of _C."""
    is_causal = reading.flag("causal", causal)
    if mask is None:
        return _C.SOFTMAX_MASK_CAUSAL if is_causal else _C.SOFTMAX_MASK_NONE
    if is_causal:
        raise ValueError("mask: with causal=True; allowed: one of the two")
    return _C.SOFTMAX_MASK_EXPLICIT


def mask_repeat(mask: tuple[int, ...], x: tuple[int, ...]) -> int:
    """The number of x's matrices that share one of the masks; of both arrays' shapes."""
    matrices = math.prod(x[:-2])
    fits = len(x) > 1 and len(mask) == 3 and mask[1:] == x[-2:]
    if not fits or mask[0] == 0 or matrices % mask[0] != 0:
        raise ValueError(
            f"mask: shape {mask}; allowed: [masks, queries, columns] of x, whose shape is {x}, and "
            f"masks that divide its {matrices} matrices"
        )
    return max(1, matrices // mask[0])


def _softmax_numbers(call: Norm, name: str, scale: Any, kind: int, repeat: int) -> dict[str, Any]:
    """Of the array `name`."""
    tensor = call.tensors[name]
    rows, columns = _row_shape(name, tensor.shape)
    return {
        "mask_kind": kind,
        "rows": rows,
        "columns": columns,
        "queries": max(1, tensor.shape[-2]) if len(tensor.shape) > 1 else 1,
        "mask_repeat": repeat,
        "dtype": _C.DTYPES[tensor.dtype],
        "scale": read_scale(scale),
        **call.place,
    }


def softmax_forward(x: Any, scale: Any, mask: Any, causal: Any) -> Any:
    """y of softmax_fwd."""
    call = Norm("x", x)
    tensor = call.borrow("x", x)
    kind, repeat = mask_kind(causal, mask), 0
    if mask is not None:
        given = call.borrow("mask", mask, dtype="uint8")
        repeat = mask_repeat(given.shape, tensor.shape)
        check_contiguous("mask", given)
    call.make("y", "x", tensor.shape)
    call.lend_barrier()
    _C.softmax_fwd(_softmax_numbers(call, "x", scale, kind, repeat), call.tensors)
    return call.result("y")


def softmax_backward(dy: Any, y: Any, scale: Any, causal: Any) -> Any:
    """dx of softmax_bwd."""
    call = Norm("y", y)
    tensor = call.borrow("y", y)
    call.borrow("dy", dy, tensor.shape, tensor.dtype)
    call.make("dx", "y", tensor.shape)
    kind = mask_kind(causal, None)
    call.lend_barrier()
    _C.softmax_bwd(_softmax_numbers(call, "y", scale, kind, 0), call.tensors)
    return call.result("dx")
