# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Norms by operators: differentiable functions, and the operators of their passes."""

from __future__ import annotations

from typing import Any

import torch

from aiter_attn import _C
from aiter_attn._core import norms, reading
from aiter_attn.torch import _tracing
from aiter_attn.torch._arguments import check_given_tensors, check_tensors
from aiter_attn.torch._operators import operator, restored, save

__all__ = [
    "layer_norm",
    "layer_norm_bwd",
    "layer_norm_fwd",
    "rms_norm",
    "rms_norm_bwd",
    "rms_norm_fwd",
    "softmax",
    "softmax_bwd",
    "softmax_fwd",
]


def rms_norm_fwd(
    x: torch.Tensor,
    gamma: torch.Tensor,
    *,
    residual: torch.Tensor | None = None,
    epsilon: float = 1e-6,
    zero_centred: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """aiter_attn.rms_norm_fwd, differentiable by x, gamma and residual.

    Returns:
        (y, rstd, h); h is None without a residual, and rstd is not differentiable.

    Arguments, raises: see aiter_attn.rms_norm_fwd.
    """
    check_tensors(x=x, gamma=gamma)
    check_given_tensors(residual=residual)
    zero_centred = reading.flag("zero_centred", zero_centred)
    y, rstd, h = _rms_norm_fwd(x, gamma, residual, epsilon, zero_centred)
    return y, rstd, None if residual is None else h


def rms_norm(
    x: torch.Tensor,
    gamma: torch.Tensor,
    *,
    residual: torch.Tensor | None = None,
    epsilon: float = 1e-6,
    zero_centred: bool = False,
) -> Any:
    """y of rms_norm_fwd; with residual (y, x + residual). Arguments, raises: see there."""
    y, _, h = rms_norm_fwd(x, gamma, residual=residual, epsilon=epsilon, zero_centred=zero_centred)
    return y if h is None else (y, h)


def layer_norm_fwd(
    x: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor | None = None,
    *,
    residual: torch.Tensor | None = None,
    epsilon: float = 1e-5,
    zero_centred: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """aiter_attn.layer_norm_fwd, differentiable by x, gamma, beta and residual.

    Returns:
        (y, mean, rstd, h); h is None without a residual, and mean and rstd are not differentiable.

    Arguments, raises: see aiter_attn.layer_norm_fwd.
    """
    check_tensors(x=x, gamma=gamma)
    check_given_tensors(beta=beta, residual=residual)
    zero_centred = reading.flag("zero_centred", zero_centred)
    y, mean, rstd, h = _layer_norm_fwd(x, gamma, beta, residual, epsilon, zero_centred)
    return y, mean, rstd, None if residual is None else h


def layer_norm(
    x: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor | None = None,
    *,
    residual: torch.Tensor | None = None,
    epsilon: float = 1e-5,
    zero_centred: bool = False,
) -> Any:
    """y of layer_norm_fwd; with residual (y, x + residual). Arguments, raises: see there."""
    options: Any = {"residual": residual, "epsilon": epsilon, "zero_centred": zero_centred}
    y, _, _, h = layer_norm_fwd(x, gamma, beta, **options)
    return y if h is None else (y, h)


def softmax_fwd(
    x: torch.Tensor, *, scale: float = 1.0, mask: torch.Tensor | None = None, causal: bool = False
) -> torch.Tensor:
    """aiter_attn.softmax_fwd, differentiable by x. Arguments, returns, raises: see there."""
    check_tensors(x=x)
    check_given_tensors(mask=mask)
    y: torch.Tensor = _softmax_fwd(x, mask, scale, reading.flag("causal", causal))
    return y


def softmax(
    x: torch.Tensor, *, scale: float = 1.0, mask: torch.Tensor | None = None, causal: bool = False
) -> torch.Tensor:
    """y of softmax_fwd. Arguments, raises: see there."""
    return softmax_fwd(x, scale=scale, mask=mask, causal=causal)


def rms_norm_bwd(
    dy: torch.Tensor,
    x: torch.Tensor,
    gamma: torch.Tensor,
    rstd: torch.Tensor,
    *,
    dh: torch.Tensor | None = None,
    zero_centred: bool = False,
) -> Any:
    """aiter_attn.rms_norm_bwd, which has no derivative. Arguments, returns, raises: see there."""
    check_tensors(dy=dy, x=x, gamma=gamma, rstd=rstd)
    check_given_tensors(dh=dh)
    return _rms_norm_bwd(dy, x, gamma, rstd, dh, reading.flag("zero_centred", zero_centred))


def layer_norm_bwd(
    dy: torch.Tensor,
    x: torch.Tensor,
    gamma: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    *,
    dh: torch.Tensor | None = None,
    zero_centred: bool = False,
) -> Any:
    """aiter_attn.layer_norm_bwd, which has no derivative. Arguments, returns, raises: see there."""
    check_tensors(dy=dy, x=x, gamma=gamma, mean=mean, rstd=rstd)
    check_given_tensors(dh=dh)
    return _layer_norm_bwd(dy, x, gamma, mean, rstd, dh, reading.flag("zero_centred", zero_centred))


def softmax_bwd(
    dy: torch.Tensor, y: torch.Tensor, *, scale: float = 1.0, causal: bool = False
) -> Any:
    """aiter_attn.softmax_bwd, which has no derivative. Arguments, returns, raises: see there."""
    check_tensors(dy=dy, y=y)
    return _softmax_bwd(dy, y, scale, reading.flag("causal", causal))


def _packed(tensor: torch.Tensor | None) -> Any:
    """Norms want one stride over all rows."""
    return None if tensor is None else tensor.contiguous()


def _check(**tensors: torch.Tensor | None) -> None:
    """Raises as the call would, as far as it is known before there is memory."""
    _tracing.check_devices("x", **tensors)
    for name, tensor in tensors.items():
        dtype = None if tensor is None else _tracing.described(tensor).dtype
        if dtype is not None and dtype not in _C.DTYPES:
            raise TypeError(f"{name}: dtype {dtype}; allowed: {', '.join(_C.DTYPES)}")


def _like(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape)


def _forward(kind: int, x: Any, gamma: Any, beta: Any, residual: Any, *options: Any) -> Any:
    """The results of an operator; h is empty without a residual, and RMSNorm has no mean."""
    arrays = map(_packed, (x, gamma, beta, residual))
    y, mean, rstd, h = norms.forward(kind, *arrays, *options)
    statistics = (rstd,) if mean is None else (mean, rstd)
    return y, *statistics, x.new_empty(0) if h is None else h


def _fake_forward(kind: int, x: Any, gamma: Any, beta: Any, residual: Any) -> Any:
    _check(x=x, gamma=gamma, beta=beta, residual=residual)
    count = 2 if kind == _C.NORM_LAYER else 1
    statistics = [x.new_empty(x.shape[:-1], dtype=torch.float32) for _ in range(count)]
    return _like(x), *statistics, x.new_empty(0) if residual is None else _like(x)


def _backward(kind: int, *arguments: Any) -> Any:
    """arguments: dy, x, gamma, mean, rstd, dh, zero_centred."""
    dy, x, gamma, mean, rstd, dh = map(_packed, arguments[:-1])
    gradients = norms.backward(kind, dy, x, gamma, mean, rstd, dh, arguments[-1])
    return gradients if kind == _C.NORM_LAYER else gradients[:2]


def _differentiated(backward: Any, ctx: Any, dy: Any, *others: Any) -> tuple[Any, ...]:
    (x, gamma, *beta, residual, _, zero_centred), (y, *statistics, h) = restored(ctx)
    *_, dh = others  # statistics have no gradient
    if residual is None:
        h, dh = x, None
    if dy is None:  # of a result that nothing was made of
        dy = torch.zeros_like(y)
    dx, dgamma, *dbeta = backward(dy, h, gamma, *statistics, dh, zero_centred)
    dbeta = [None if b is None else db for b, db in zip(beta, dbeta, strict=True)]
    return dx, dgamma, *dbeta, None if residual is None else dx, None, None


def _softmax_forward(x: Any, mask: Any, scale: float, causal: bool) -> Any:
    return norms.softmax_forward(_packed(x), scale, _packed(mask), causal)


def _fake_softmax_forward(x: Any, mask: Any, *_: Any) -> Any:
    _check(x=x)
    _tracing.check_devices("x", x=x, mask=mask)
    return _like(x)


def _differentiated_softmax(ctx: Any, dy: Any) -> tuple[Any, ...]:
    (_, _, scale, causal), (y,) = restored(ctx)
    return _softmax_bwd(dy, y, scale, causal), None, None, None


_rms_norm_bwd = operator(
    "rms_norm_bwd(Tensor dy, Tensor x, Tensor gamma, Tensor rstd, Tensor? dh, bool zero_centred)"
    " -> (Tensor dx, Tensor dgamma)",
    lambda dy, x, gamma, *rest: _backward(_C.NORM_RMS, dy, x, gamma, None, *rest),
    lambda dy, x, gamma, *_: (_like(x), _like(gamma)),
)
_layer_norm_bwd = operator(
    "layer_norm_bwd(Tensor dy, Tensor x, Tensor gamma, Tensor mean, Tensor rstd, Tensor? dh, "
    "bool zero_centred) -> (Tensor dx, Tensor dgamma, Tensor dbeta)",
    lambda *arguments: _backward(_C.NORM_LAYER, *arguments),
    lambda dy, x, gamma, *_: (_like(x), _like(gamma), _like(gamma)),
)
_softmax_bwd = operator(
    "softmax_bwd(Tensor dy, Tensor y, float scale, bool causal) -> Tensor dx",
    lambda dy, y, scale, causal: norms.softmax_backward(_packed(dy), _packed(y), scale, causal),
    lambda dy, y, *_: _like(y),
)
_rms_norm_fwd = operator(
    "rms_norm_fwd(Tensor x, Tensor gamma, Tensor? residual, float epsilon, bool zero_centred)"
    " -> (Tensor y, Tensor rstd, Tensor h)",
    lambda x, gamma, *rest: _forward(_C.NORM_RMS, x, gamma, None, *rest),
    lambda x, gamma, residual, *_: _fake_forward(_C.NORM_RMS, x, gamma, None, residual),
    lambda ctx, inputs, output: save(ctx, inputs, output, constant=[1]),
    lambda ctx, *given: _differentiated(_rms_norm_bwd, ctx, *given),
)
_layer_norm_fwd = operator(
    "layer_norm_fwd(Tensor x, Tensor gamma, Tensor? beta, Tensor? residual, float epsilon, "
    "bool zero_centred) -> (Tensor y, Tensor mean, Tensor rstd, Tensor h)",
    lambda *arguments: _forward(_C.NORM_LAYER, *arguments),
    lambda *arguments: _fake_forward(_C.NORM_LAYER, *arguments[:4]),
    lambda ctx, inputs, output: save(ctx, inputs, output, constant=[1, 2]),
    lambda ctx, *given: _differentiated(_layer_norm_bwd, ctx, *given),
)
_softmax_fwd = operator(
    "softmax_fwd(Tensor x, Tensor? mask, float scale, bool causal) -> Tensor y",
    _softmax_forward,
    _fake_softmax_forward,
    lambda ctx, inputs, output: save(ctx, inputs, (output,), constant=[]),
    _differentiated_softmax,
)
