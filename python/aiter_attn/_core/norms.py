# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One call of LayerNorm, RMSNorm or softmax: its arrays, its problem, its results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
)
from aiter_attn._core.arrays import Arrays, those_given
from aiter_attn._core.errors import UnsupportedError

__all__ = [
    "SCALES",
    "backward",
    "check_gamma",
    "forward",
    "mask_kind",
    "mask_repeat",
    "read_epsilon",
    "read_scale",
    "softmax_backward",
    "softmax_forward",
]

# Gets the numbers and the arrays of a call that has run.
Keep = Callable[[dict[str, Any], dict[str, _C.Tensor]], None]

_DTYPES: Final = tuple(_C.DTYPES)
_GPUS: Final = (_C.DEVICE_CUDA, _C.DEVICE_ROCM)


class Norm(Arrays):
    """The arrays of a call, and where it runs."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self._given = given
        self._made: dict[str, tuple[Any, Any, GenericAdapter]] = {}  # like which, and by whom
        self.place: dict[str, int] = {}
        if self._stream is not None:
            kind, index = self._device
            self.place = {"device_type": kind, "device_id": index, "stream": self._stream}

    def _check_device(self) -> None:
        if self._device[0] not in _GPUS:
            raise UnsupportedError(
                f"{self._lead_name}: on {device_name(self._device)}; allowed: CPU (host memory), "
                "CUDA (NVIDIA GPUs) and ROCm (AMD GPUs); copy the arrays to one of them"
            )

    def has(
        self, name: str, shape: tuple[int, ...] | None = None, dtype: str | None = None
    ) -> _C.Tensor:
        """An array, checked. shape, dtype: those that it must have; None: any of at least one
        dimension, any listed."""
        tensor = self.tensors[name]
        allowed = _DTYPES if dtype is None else (dtype,)
        if tensor.dtype not in allowed:
            raise TypeError(f"{name}: dtype {tensor.dtype}; allowed: {', '.join(allowed)}")
        if shape is None and not tensor.shape:
            raise ValueError(f"{name}: shape (); allowed: at least one dimension")
        if shape is not None and tensor.shape != shape:
            raise ValueError(f"{name}: shape {tensor.shape}; allowed: {shape}")
        check_rows(name, tensor)
        return tensor

    def has_written(self, name: str, shape: tuple[int, ...], dtype: str) -> None:
        """An array of the caller's that is changed, checked."""
        given = self._given[name]
        if not adapter_of(name, given).writable:
            raise ValueError(f"{name}: {type(given).__name__} is immutable")
        if self.has(name, shape, dtype).read_only:
            raise ValueError(f"{name}: is read-only; pass a writable array")

    def overwrite(self, name: str, given: str, dtype: str) -> None:
        """A result takes the place of an array of the caller's, which is dense."""
        tensor = self.tensors[given]
        self.has_written(given, tensor.shape, dtype)
        self.tensors[name] = tensor
        array = self._given[given]
        self._made[name] = array, None, adapter_of(given, array)

    def lend_barrier(self) -> None:
        """Lends the memory by which the library shares long rows out, where there is any."""
        # The stream that work is known to be queued on, which is the framework's own.
        if self._own_stream == SAME_STREAM and self._stream is not None:
            barrier = self._adapter.barrier(self._lead, self._stream)
            if barrier is not None:
                self.borrow("barrier", barrier)

    def lend_workspace(self, size: int) -> None:
        if size == 0:
            return
        if not self._adapter.stream_ordered:
            raise TypeError(
                f"{self._lead_name}: when {type(self._lead).__name__} uses memory again is not "
                "known; on a GPU, pass torch or cupy arrays"
            )
        self.make_workspace(size, None)

    def make_like(
        self,
        name: str,
        like: str,
        shape: tuple[int, ...],
        dtype: str | None = None,
        seen_as: str | None = None,
    ) -> None:
        """A result, by the framework of the array `like`; dtype None: of its dtype. seen_as: the
        dtype as which the caller gets its bytes."""
        given = self._given[like]
        adapter = self._adapter if given is self._lead else adapter_of(like, given)
        # Another framework would hand the memory out in the order of its own current stream.
        stream = None if adapter is self._adapter else self._stream
        want = shape, dtype or self.tensors[like].dtype
        try:
            made = self.make(name, adapter, given, want, dtype, stream)
        except TypeError as error:
            takers = "torch or cupy" if self.place else "numpy, torch or jax"
            raise TypeError(f"{error}; pass {like} as a {takers} array") from error
        if seen_as is not None:  # an array that cannot be had is refused before any other is
            # written
            made = adapter.seen_as(name, made, seen_as)
        self._made[name] = made, given, adapter

    def result(self, name: str) -> Any:
        made, like, adapter = self._made[name]
        return made if like is None else adapter.result(made, like)


def _row_shape(name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """(rows, columns) of the array `name`."""
    if shape[-1] == 0:
        raise ValueError(f"{name}: shape {shape}; allowed: a last dimension of at least 1")
    return math.prod(shape[:-1]), shape[-1]


def _weight_of(tensors: Mapping[str, Any]) -> str:
    """The array that has the dtype of weights; without one, x."""
    return next(name for name in ("gamma", "beta", "x") if name in tensors)


def _numbers(kind: int, call: Norm, zero_centred: bool, epsilon: float) -> dict[str, Any]:
    tensors = call.tensors
    rows, hidden = _row_shape("x", tensors["x"].shape)
    dtype = _C.DTYPES[tensors["x"].dtype]
    return {
        "kind": kind,
        "rows": rows,
        "hidden": hidden,
        "x_dtype": dtype,
        "weight_dtype": _C.DTYPES[tensors[_weight_of(tensors)].dtype],
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


def check_gamma(given: Any, zero_centred: Any) -> None:
    if given is None and reading.flag("zero_centred", zero_centred):
        raise ValueError("zero_centred: True without gamma; allowed: False, or pass gamma")


def forward(
    kind: int,
    x: Any,
    gamma: Array | None,
    beta: Array | None,
    residual: Array | None,
    epsilon: float,
    zero_centred: bool,
    fp8: tuple[str | None, Array | None, Array | None] = (None, None, None),
    in_place: bool = False,
    scales: str | None = None,
    keep: Keep | None = None,
    statistics: bool = True,
) -> tuple[Any, ...]:
    """(y, mean, rstd, h) of rms_norm_fwd or layer_norm_fwd; None for the mean of RMSNorm, for mean
    and rstd without statistics, and for h without a residual. fp8: y_dtype, scale and amax. scales:
    of SCALES; they are the last result then."""
    y_dtype, scale, amax = fp8
    given = {"x": x, "gamma": gamma}
    if gamma is None or not (beta is residual is scale is amax is None):
        given = those_given(x=x, gamma=gamma, beta=beta, residual=residual, scale=scale, amax=amax)
        check_gamma(gamma, zero_centred)
    call = Norm(given)
    tensor = call.has("x")
    _, hidden = _row_shape("x", tensor.shape)
    if gamma is not None:
        call.has("gamma", (hidden,))
    if beta is not None:
        call.has("beta", (hidden,), None if gamma is None else call.tensors["gamma"].dtype)
    if residual is not None:
        call.has("residual", tensor.shape, tensor.dtype)
        if in_place:
            call.overwrite("sum", "residual", tensor.dtype)
        else:
            call.make_like("sum", "x", tensor.shape)
    numbers = _numbers(kind, call, zero_centred, read_epsilon(epsilon))
    y_dtype = tensor.dtype if y_dtype is None else y_dtype
    dtypes = _C.DTYPES | _C.FP8_DTYPES
    if not isinstance(y_dtype, str) or y_dtype not in dtypes:
        raise ValueError(f"y_dtype: {reading.shown(y_dtype)}; allowed: None, {', '.join(dtypes)}")
    numbers["y_dtype"] = dtypes[y_dtype]
    if y_dtype in _C.DTYPES:
        if scale is not None or amax is not None:
            name = "scale" if scale is not None else "amax"
            raise ValueError(f"{name}: is for fp8 results; pass such a y_dtype, or {name}=None")
        if scales is not None:
            raise ValueError(f"y_dtype: {y_dtype}; allowed: {', '.join(_C.FP8_DTYPES)}")
        if not in_place:
            call.make_like("y", "x", tensor.shape, None if y_dtype == tensor.dtype else y_dtype)
        elif y_dtype != tensor.dtype:
            raise ValueError(
                f"y_dtype: {y_dtype}, but in_place is True and x has {tensor.dtype}; allowed: None"
            )
        else:
            call.overwrite("y", "x", tensor.dtype)
    else:
        # Not every framework exports fp8; all export its bytes.
        call.make_like("y", "x", tensor.shape, "uint8", y_dtype)
        if scale is not None:
            call.has("scale", (1,), "float32")
        if amax is not None:
            call.has_written("amax", (1,), "float32")
        if scales is not None:
            _make_scales(call, numbers, scales)
    has_mean = statistics and kind == _C.NORM_LAYER
    if statistics:
        call.make_like("rstd", "x", tensor.shape[:-1], "float32")
    if has_mean:
        call.make_like("mean", "x", tensor.shape[:-1], "float32")
    call.lend_barrier()
    _C.norm_fwd(numbers, call.tensors)
    if keep is not None:
        keep(numbers, call.tensors)
    mean = call.result("mean") if has_mean else None
    rstd = call.result("rstd") if statistics else None
    total = call.result("sum") if residual is not None else None
    results = call.result("y"), mean, rstd, total
    return results if scales is None else (*results, call.result("scales"))


SCALES: Final = {"rows": _C.NORM_SCALES_ROWS, "blocks": _C.NORM_SCALES_BLOCKS}
_BLOCK: Final = 32  # columns with a scale


def _make_scales(call: Norm, numbers: dict[str, Any], scales: str) -> None:
    if scales not in SCALES:
        raise ValueError(f"scales: {reading.shown(scales)}; allowed: {', '.join(SCALES)}")
    *rows, hidden = call.tensors["x"].shape
    if scales == "rows":
        call.make_like("scales", "x", tuple(rows), "float32")
    elif hidden % _BLOCK:
        raise ValueError(
            f"x: shape {call.tensors['x'].shape}; allowed with blocks: a last dimension that "
            f"{_BLOCK} divides"
        )
    else:
        call.make_like("scales", "x", (*rows, hidden // _BLOCK), "uint8")
    numbers["scales_kind"] = SCALES[scales]


def backward(
    kind: int,
    dy: Any,
    x: Array,
    gamma: Array | None,
    mean: Array | None,
    rstd: Array,
    dh: Array | None,
    zero_centred: bool,
    of_gamma: bool = True,
    of_beta: bool = True,
    keep: Keep | None = None,
) -> tuple[Any, Any, Any]:
    """(dx, dgamma, dbeta) of rms_norm_bwd or layer_norm_bwd; dbeta is LayerNorm's, else None. None
    for those that are not wanted, too; without gamma there is no dgamma."""
    of_gamma = of_gamma and gamma is not None
    of_beta = of_beta and kind == _C.NORM_LAYER
    statistics: dict[str, Any] = {"rstd": rstd}
    if kind != _C.NORM_RMS:
        statistics["mean"] = mean
    given = {"x": x, "dy": dy, **statistics}
    if gamma is not None:
        given["gamma"] = gamma
    check_gamma(gamma, zero_centred)
    if dh is not None:
        given["dh"] = dh
    call = Norm(given)
    tensor = call.has("x")
    _, hidden = _row_shape("x", tensor.shape)
    call.has("dy", tensor.shape)
    if gamma is not None:
        call.has("gamma", (hidden,))
    for name in statistics:
        check_contiguous(name, call.has(name, tensor.shape[:-1], "float32"))
    if dh is not None:
        call.has("dh", tensor.shape, tensor.dtype)
    call.make_like("dx", "x", tensor.shape)
    if of_gamma:
        call.make_like("dgamma", "gamma", (hidden,))
    if of_beta:
        call.make_like("dbeta", _weight_of(call.tensors), (hidden,))
    numbers = _numbers(kind, call, zero_centred, 0.0)
    if call.place:
        call.lend_workspace(_C.norm_bwd_workspace_size(numbers, call.tensors))
    _C.norm_bwd(numbers, call.tensors)
    if keep is not None:
        keep(numbers, call.tensors)
    dgamma = call.result("dgamma") if of_gamma else None
    return call.result("dx"), dgamma, call.result("dbeta") if of_beta else None


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


def softmax_forward(x: Any, scale: Any, mask: Any, causal: Any, keep: Keep | None = None) -> Any:
    """y of softmax_fwd."""
    call = Norm({"x": x} if mask is None else {"x": x, "mask": mask})
    tensor = call.has("x")
    kind, repeat = mask_kind(causal, mask), 0
    if mask is not None:
        given = call.has("mask", dtype="uint8")
        repeat = mask_repeat(given.shape, tensor.shape)
        check_contiguous("mask", given)
    call.make_like("y", "x", tensor.shape)
    call.lend_barrier()
    numbers = _softmax_numbers(call, "x", scale, kind, repeat)
    _C.softmax_fwd(numbers, call.tensors)
    if keep is not None:
        keep(numbers, call.tensors)
    return call.result("y")


def softmax_backward(dy: Any, y: Any, scale: Any, causal: Any, keep: Keep | None = None) -> Any:
    """dx of softmax_bwd."""
    call = Norm({"y": y, "dy": dy})
    tensor = call.has("y")
    call.has("dy", tensor.shape, tensor.dtype)
    call.make_like("dx", "y", tensor.shape)
    kind = mask_kind(causal, None)
    call.lend_barrier()
    numbers = _softmax_numbers(call, "y", scale, kind, 0)
    _C.softmax_bwd(numbers, call.tensors)
    if keep is not None:
        keep(numbers, call.tensors)
    return call.result("dx")
