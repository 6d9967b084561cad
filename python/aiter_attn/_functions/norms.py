# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""LayerNorm (arXiv:1607.06450), RMSNorm (arXiv:1910.07467) and softmax over the last dimension,
forward and backward.

rms_norm, layer_norm and softmax serve torch tensors by aiter_attn.torch, which differentiates them,
and jax arrays on AMD GPUs by aiter_attn.jax. Their passes, _fwd and _bwd, are this module's for all
arrays, and record no gradient. aiter_attn.torch and aiter_attn.jax have passes of the same names as
operators and as custom calls.

Rules of every function here
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
    largest |y| before that, or stays as it is if that is larger.
  - The last dimension is contiguous; all others together have one stride.
  - zero_centred: gamma is stored less 1. gamma None: 1, which zero_centred is not for.
  - in_place: y takes the place of x and h that of residual, which are writable. Nothing else of a
    call may share memory with a result, x and residual among themselves included.
  - weight_gradients False: dgamma and dbeta are not made, and are None. Without gamma dgamma is
    None, too.
  - TypeError: not an array, or a dtype that is not listed. ValueError: shapes, strides, devices or
    numbers that do not fit. UnsupportedError (a NotImplementedError): arrays on another device, or
    on a GPU that is too old. DriverError: no driver, or no compiler.
"""

from __future__ import annotations

from typing import Any

from aiter_attn import _C
from aiter_attn._core import norms, reading
from aiter_attn._core.adapters import Array, ArrayT
from aiter_attn._functions.fronts import by_front

__all__ = [
    "layer_norm",
    "layer_norm_bwd",
    "layer_norm_fwd",
    "rms_norm",
    "rms_norm_bwd",
    "rms_norm_fwd",
    "rms_norm_quantised",
    "softmax",
    "softmax_bwd",
    "softmax_fwd",
]


@by_front
def rms_norm(
    x: ArrayT,
    gamma: Array | None,
    *,
    residual: Array | None = None,
    epsilon: float = 1e-6,
    zero_centred: bool = False,
) -> Any:
    """RMSNorm over the last dimension: y of rms_norm_fwd, with residual (y, h).

    Args, raises: see rms_norm_fwd.
    """
    y, _, h = rms_norm_fwd(x, gamma, residual=residual, epsilon=epsilon, zero_centred=zero_centred)
    return y if residual is None else (y, h)


@by_front
def layer_norm(
    x: ArrayT,
    gamma: Array | None,
    beta: Array | None = None,
    *,
    residual: Array | None = None,
    epsilon: float = 1e-5,
    zero_centred: bool = False,
) -> Any:
    """LayerNorm over the last dimension: y of layer_norm_fwd, with residual (y, h).

    Args, raises: see layer_norm_fwd.
    """
    y, _, _, h = layer_norm_fwd(
        x, gamma, beta, residual=residual, epsilon=epsilon, zero_centred=zero_centred
    )
    return y if residual is None else (y, h)


@by_front
def softmax(
    x: ArrayT, *, scale: float = 1.0, mask: Array | None = None, causal: bool = False
) -> Any:
    """Softmax over the last dimension: y of softmax_fwd.

    Args, raises: see softmax_fwd.
    """
    return softmax_fwd(x, scale=scale, mask=mask, causal=causal)


def rms_norm_fwd(
    x: ArrayT,
    gamma: Array | None,
    *,
    residual: Array | None = None,
    epsilon: float = 1e-6,
    zero_centred: bool = False,
    y_dtype: str | None = None,
    scale: Array | None = None,
    amax: Array | None = None,
    in_place: bool = False,
) -> tuple[ArrayT, Any, ArrayT | None]:
    """y = h / sqrt(mean(h^2) + epsilon) * gamma, with h = x, or x + residual.

    Args:
        x: [..., hidden]
        gamma: [hidden], or None.
        residual: shape and dtype of x; None: nothing is added.
        epsilon: 0 or more.
        zero_centred: see the module.
        y_dtype, scale, amax, in_place: see the module.

    Returns:
        (y, rstd, h): y as x; rstd, [...], float32, is 1 / sqrt(mean(h^2) + epsilon), for
        rms_norm_bwd; h = x + residual, rounded to the dtype of x, or None without a residual.

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    y, _, rstd, h = norms.forward(
        _C.NORM_RMS, x, gamma, None, residual, epsilon, zero_centred, (y_dtype, scale, amax),
        reading.flag("in_place", in_place),
    )  # fmt: skip
    return y, rstd, h


def rms_norm_quantised(
    x: ArrayT,
    gamma: Array | None,
    *,
    residual: Array | None = None,
    epsilon: float = 1e-6,
    zero_centred: bool = False,
    y_dtype: str = "float8_e4m3fn",
    scales: str = "rows",
    in_place: bool = False,
) -> tuple[ArrayT, Any, Any, ArrayT | None]:
    """rms_norm_fwd whose y is quantised with scales of its own: y is what is stored times them.

    Args:
        x, gamma, residual, epsilon, zero_centred: see rms_norm_fwd.
        y_dtype: "float8_e4m3fn" or "float8_e5m2".
        scales: "rows": [...], float32, by which the largest |y| of a row becomes the largest number
            of y_dtype; at least 2^-100. "blocks": [..., hidden / 32], uint8, MXFP8's E8M0: the
            exponent, with 127 added, of the least power of two with which each number of a block
            of 32 columns fits. NaN takes no part in scales.
        in_place: h takes the place of residual.

    Returns:
        (y, scales, rstd, h)

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    y, _, rstd, h, made = norms.forward(
        _C.NORM_RMS, x, gamma, None, residual, epsilon, zero_centred, (y_dtype, None, None),
        reading.flag("in_place", in_place), scales,
    )  # fmt: skip
    return y, made, rstd, h


def rms_norm_bwd(
    dy: Array,
    x: ArrayT,
    gamma: Array | None,
    rstd: Array,
    *,
    dh: Array | None = None,
    zero_centred: bool = False,
    weight_gradients: bool = True,
) -> tuple[ArrayT, Any]:
    """(dx, dgamma) of rms_norm_fwd: gradients by x, or by x + residual, and gamma.

    Args:
        dy: gradient by y, [..., hidden]
        x: as rms_norm_fwd got it, or the h that it gave.
        gamma: as rms_norm_fwd got it.
        rstd: as rms_norm_fwd gave it.
        dh: gradient by h that comes another way, added to dx; shape and dtype of x.
        zero_centred, weight_gradients: see the module.

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    wanted = reading.flag("weight_gradients", weight_gradients)
    dx, dgamma, _ = norms.backward(
        _C.NORM_RMS, dy, x, gamma, None, rstd, dh, zero_centred, wanted, wanted
    )
    return dx, dgamma


def layer_norm_fwd(
    x: ArrayT,
    gamma: Array | None,
    beta: Array | None = None,
    *,
    residual: Array | None = None,
    epsilon: float = 1e-5,
    zero_centred: bool = False,
    y_dtype: str | None = None,
    scale: Array | None = None,
    amax: Array | None = None,
    in_place: bool = False,
) -> tuple[ArrayT, Any, Any, ArrayT | None]:
    """y = (h - mean) * rstd * gamma + beta, with h = x, or x + residual.

    Args:
        x: [..., hidden]
        gamma: [hidden], or None.
        beta: shape and dtype of gamma; None: 0.
        residual: shape and dtype of x; None: nothing is added.
        epsilon: 0 or more.
        zero_centred: see the module.
        y_dtype, scale, amax, in_place: see the module.

    Returns:
        (y, mean, rstd, h): y as x; mean and rstd = 1 / sqrt(variance + epsilon), [...], float32,
        for layer_norm_bwd; h = x + residual, rounded to the dtype of x, or None without a residual.

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    y, mean, rstd, h = norms.forward(
        _C.NORM_LAYER, x, gamma, beta, residual, epsilon, zero_centred, (y_dtype, scale, amax),
        reading.flag("in_place", in_place),
    )  # fmt: skip
    return y, mean, rstd, h


def layer_norm_bwd(
    dy: Array,
    x: ArrayT,
    gamma: Array | None,
    mean: Array,
    rstd: Array,
    *,
    dh: Array | None = None,
    zero_centred: bool = False,
    weight_gradients: bool = True,
) -> tuple[ArrayT, Any, Any]:
    """(dx, dgamma, dbeta) of layer_norm_fwd. Arguments are those of rms_norm_bwd, and mean.

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    wanted = reading.flag("weight_gradients", weight_gradients)
    return norms.backward(_C.NORM_LAYER, dy, x, gamma, mean, rstd, dh, zero_centred, wanted, wanted)


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
    y: ArrayT = norms.softmax_forward(x, scale, mask, causal)
    return y


def softmax_bwd(dy: Array, y: ArrayT, *, scale: float = 1.0, causal: bool = False) -> ArrayT:
    """dx = scale * y * (dy - sum(y * dy)), with the y of softmax_fwd.

    Args:
        dy: gradient by y, shape and dtype of y.
        y: as softmax_fwd gave it, with any mask.
        scale: as softmax_fwd got it.
        causal: as in softmax_fwd: columns that take no part give 0.

    Raises:
        TypeError, ValueError, UnsupportedError: see the module.
    """
    dx: ArrayT = norms.softmax_backward(dy, y, scale, causal)
    return dx
