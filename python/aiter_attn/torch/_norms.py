# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Norms by operators: differentiable functions, and the operators of their passes."""

from __future__ import annotations

from typing import Any

import torch

from aiter_attn import _C
from aiter_attn._core import norms, reading
from aiter_attn.torch import _prepared, _tracing
from aiter_attn.torch._arguments import check_given_tensors, check_tensors
from aiter_attn.torch._operators import operator, restored, run, save

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
    gamma: torch.Tensor | None,
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
    check_tensors(x=x)
    check_given_tensors(gamma=gamma, residual=residual)
    zero_centred = reading.flag("zero_centred", zero_centred)
    arguments = x, gamma, residual, epsilon, zero_centred
    y, rstd, h = run(_rms_norm_fwd, arguments, arguments[:3])
    return y, rstd, None if residual is None else h


def rms_norm(
    x: torch.Tensor,
    gamma: torch.Tensor | None,
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
    gamma: torch.Tensor | None,
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
    check_tensors(x=x)
    check_given_tensors(gamma=gamma, beta=beta, residual=residual)
    zero_centred = reading.flag("zero_centred", zero_centred)
    arguments = x, gamma, beta, residual, epsilon, zero_centred
    y, mean, rstd, h = run(_layer_norm_fwd, arguments, arguments[:4])
    return y, mean, rstd, None if residual is None else h


def layer_norm(
    x: torch.Tensor,
    gamma: torch.Tensor | None,
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
    arguments = x, mask, scale, reading.flag("causal", causal)
    y: torch.Tensor = run(_softmax_fwd, arguments, arguments[:1])
    return y


def softmax(
    x: torch.Tensor, *, scale: float = 1.0, mask: torch.Tensor | None = None, causal: bool = False
) -> torch.Tensor:
    """y of softmax_fwd. Arguments, raises: see there."""
    return softmax_fwd(x, scale=scale, mask=mask, causal=causal)


def rms_norm_bwd(
    dy: torch.Tensor,
    x: torch.Tensor,
    gamma: torch.Tensor | None,
    rstd: torch.Tensor,
    *,
    dh: torch.Tensor | None = None,
    zero_centred: bool = False,
) -> Any:
    """aiter_attn.rms_norm_bwd, which has no derivative. Arguments, returns, raises: see there."""
    check_tensors(dy=dy, x=x, rstd=rstd)
    check_given_tensors(gamma=gamma, dh=dh)
    zero_centred = reading.flag("zero_centred", zero_centred)
    dx, dgamma = _rms_norm_bwd(dy, x, gamma, rstd, dh, zero_centred, True)
    return dx, None if gamma is None else dgamma


def layer_norm_bwd(
    dy: torch.Tensor,
    x: torch.Tensor,
    gamma: torch.Tensor | None,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    *,
    dh: torch.Tensor | None = None,
    zero_centred: bool = False,
) -> Any:
    """aiter_attn.layer_norm_bwd, which has no derivative. Arguments, returns, raises: see there."""
    check_tensors(dy=dy, x=x, mean=mean, rstd=rstd)
    check_given_tensors(gamma=gamma, dh=dh)
    zero_centred = reading.flag("zero_centred", zero_centred)
    dx, dgamma, dbeta = _layer_norm_bwd(dy, x, gamma, mean, rstd, dh, zero_centred, True)
    return dx, None if gamma is None else dgamma, dbeta


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


def _forward(
    kind: int,
    x: torch.Tensor,
    gamma: torch.Tensor | None,
    beta: torch.Tensor | None,
    residual: torch.Tensor | None,
    epsilon: float,
    zero_centred: bool,
) -> Any:
    """The results of an operator; h is empty without a residual, and RMSNorm has no mean."""
    arrays = x, gamma, beta, residual
    options = kind, epsilon, zero_centred
    signature = ("norm", *map(_prepared.lies, arrays), options)
    prepared = _prepared.find(signature)
    if prepared is not None:
        results = prepared(x, gamma, beta, residual)
        return (*results, x.new_empty(0)) if residual is None else results

    def keep(numbers: Any, tensors: Any) -> None:
        of_rows = x.shape[:-1], torch.float32
        made = (
            ("y", (x.shape, x.dtype)),
            ("mean", of_rows if kind == _C.NORM_LAYER else None),
            ("rstd", of_rows),
            ("sum", None if residual is None else (x.shape, x.dtype)),
        )
        _keep(signature, _C.PreparedNorm, numbers, tensors,
              {"x": x, "gamma": gamma, "beta": beta, "residual": residual}, made)  # fmt: skip

    y, mean, rstd, h = norms.forward(
        kind, _packed(x), _packed(gamma), _packed(beta), _packed(residual),
        epsilon, zero_centred, keep=keep,
    )  # fmt: skip
    statistics = (rstd,) if mean is None else (mean, rstd)
    return y, *statistics, x.new_empty(0) if h is None else h


def _keep(
    signature: Any,
    kind: Any,
    numbers: Any,
    tensors: Any,
    given: dict[str, torch.Tensor | None],
    made: Any,
) -> None:
    """Prepares the calls of a signature whose tensors the library gets as they are."""
    if all(x is None or x.is_contiguous() for x in given.values()):
        device = next(x.device for x in given.values() if x is not None)
        prepared = _prepared.PreparedRows(kind, numbers, tensors, tuple(given), made, device)
        _prepared.keep(signature, prepared)


def _fake_forward(kind: int, x: Any, gamma: Any, beta: Any, residual: Any) -> Any:
    _check(x=x, gamma=gamma, beta=beta, residual=residual)
    count = 2 if kind == _C.NORM_LAYER else 1
    statistics = [x.new_empty(x.shape[:-1], dtype=torch.float32) for _ in range(count)]
    return _like(x), *statistics, x.new_empty(0) if residual is None else _like(x)


def _backward(
    kind: int,
    dy: torch.Tensor,
    x: torch.Tensor,
    gamma: torch.Tensor | None,
    mean: torch.Tensor | None,
    rstd: torch.Tensor,
    dh: torch.Tensor | None,
    zero_centred: bool,
    weights: bool,
) -> Any:
    """Gradients of weights are empty where they are not wanted, as that of no gamma is."""
    arrays = dy, x, gamma, mean, rstd, dh
    signature = ("norm_bwd", *map(_prepared.lies, arrays), (kind, zero_centred, weights))
    layer = kind == _C.NORM_LAYER
    like = x if gamma is None else gamma
    of_gamma, of_beta = weights and gamma is not None, weights and layer
    prepared = _prepared.find(signature)
    if prepared is not None:
        dx, *gradients = prepared(*arrays)
        dgamma = gradients.pop(0) if of_gamma else None
        dbeta = gradients.pop(0) if of_beta else None
    else:

        def keep(numbers: Any, tensors: Any) -> None:
            of_weight = x.shape[-1:], like.dtype
            workspace = tensors.get("workspace")
            made = (
                ("dx", (x.shape, x.dtype)),
                ("dgamma", of_weight if of_gamma else None),
                ("dbeta", of_weight if of_beta else None),
                ("workspace", None if workspace is None else (workspace.shape, torch.uint8)),
            )
            names = ("dy", "x", "gamma", "mean", "rstd", "dh")
            given = dict(zip(names, arrays, strict=True))
            _keep(signature, _C.PreparedNormBackward, numbers, tensors, given, made)

        dx, dgamma, dbeta = norms.backward(
            kind, _packed(dy), _packed(x), _packed(gamma), _packed(mean), _packed(rstd),
            _packed(dh), zero_centred, of_gamma, of_beta, keep,
        )  # fmt: skip
    results = dx, like.new_empty(0) if dgamma is None else dgamma
    return (*results, like.new_empty(0) if dbeta is None else dbeta) if layer else results


def _fake_backward(x: Any, gamma: Any, weights: bool, layer: bool) -> Any:
    like = x if gamma is None else gamma
    shape = x.shape[-1:] if weights else 0
    dgamma = like.new_empty(0 if gamma is None else shape)
    return (_like(x), dgamma, like.new_empty(shape)) if layer else (_like(x), dgamma)


def _differentiated(backward: Any, ctx: Any, dy: Any, *others: Any) -> tuple[Any, ...]:
    (x, gamma, *beta, residual, _, zero_centred), (y, *statistics, h) = restored(ctx)
    *_, dh = others  # statistics have no gradient
    if residual is None:
        h, dh = x, None
    if dy is None:  # of a result that nothing was made of
        dy = torch.zeros_like(y)
    weights = ctx.needs_input_grad[1] or (len(beta) > 0 and ctx.needs_input_grad[2])
    inputs = dy, h, gamma, *statistics, dh
    dx, dgamma, *dbeta = run(backward, (*inputs, zero_centred, weights), inputs)
    dgamma = None if gamma is None or not weights else dgamma
    dbeta = [None if b is None or not weights else db for b, db in zip(beta, dbeta, strict=True)]
    return dx, dgamma, *dbeta, None if residual is None else dx, None, None


def _softmax_forward(x: Any, mask: Any, scale: float, causal: bool) -> Any:
    signature = "softmax", _prepared.lies(x), _prepared.lies(mask), scale, causal
    prepared = _prepared.find(signature)
    if prepared is not None:
        return prepared(x, mask)[0]

    def keep(numbers: Any, tensors: Any) -> None:
        made = (("y", (x.shape, x.dtype)),)
        _keep(signature, _C.PreparedSoftmax, numbers, tensors, {"x": x, "mask": mask}, made)

    return norms.softmax_forward(_packed(x), scale, _packed(mask), causal, keep)


def _softmax_backward(dy: Any, y: Any, scale: float, causal: bool) -> Any:
    signature = "softmax_bwd", _prepared.lies(dy), _prepared.lies(y), scale, causal
    prepared = _prepared.find(signature)
    if prepared is not None:
        return prepared(dy, y)[0]

    def keep(numbers: Any, tensors: Any) -> None:
        made = (("dx", (y.shape, y.dtype)),)
        _keep(signature, _C.PreparedSoftmaxBackward, numbers, tensors, {"dy": dy, "y": y}, made)

    return norms.softmax_backward(_packed(dy), _packed(y), scale, causal, keep)


def _fake_softmax_forward(x: Any, mask: Any, *_: Any) -> Any:
    _check(x=x)
    _tracing.check_devices("x", x=x, mask=mask)
    return _like(x)


def _differentiated_softmax(ctx: Any, dy: Any) -> tuple[Any, ...]:
    (_, _, scale, causal), (y,) = restored(ctx)
    return run(_softmax_bwd, (dy, y, scale, causal), (dy, y)), None, None, None


_rms_norm_bwd = operator(
    "rms_norm_bwd(Tensor dy, Tensor x, Tensor? gamma, Tensor rstd, Tensor? dh, bool zero_centred, "
    "bool weight_gradients) -> (Tensor dx, Tensor dgamma)",
    lambda dy, x, gamma, *rest: _backward(_C.NORM_RMS, dy, x, gamma, None, *rest),
    lambda dy, x, gamma, *rest: _fake_backward(x, gamma, rest[-1], False),
)
_layer_norm_bwd = operator(
    "layer_norm_bwd(Tensor dy, Tensor x, Tensor? gamma, Tensor mean, Tensor rstd, Tensor? dh, "
    "bool zero_centred, bool weight_gradients) -> (Tensor dx, Tensor dgamma, Tensor dbeta)",
    lambda *arguments: _backward(_C.NORM_LAYER, *arguments),
    lambda dy, x, gamma, *rest: _fake_backward(x, gamma, rest[-1], True),
)
_softmax_bwd = operator(
    "softmax_bwd(Tensor dy, Tensor y, float scale, bool causal) -> Tensor dx",
    _softmax_backward,
    lambda dy, y, *_: _like(y),
)
_rms_norm_fwd = operator(
    "rms_norm_fwd(Tensor x, Tensor? gamma, Tensor? residual, float epsilon, bool zero_centred)"
    " -> (Tensor y, Tensor rstd, Tensor h)",
    lambda x, gamma, *rest: _forward(_C.NORM_RMS, x, gamma, None, *rest),
    lambda x, gamma, residual, *_: _fake_forward(_C.NORM_RMS, x, gamma, None, residual),
    lambda ctx, inputs, output: save(ctx, inputs, output, constant=[1]),
    lambda ctx, *given: _differentiated(_rms_norm_bwd, ctx, *given),
)
_layer_norm_fwd = operator(
    "layer_norm_fwd(Tensor x, Tensor? gamma, Tensor? beta, Tensor? residual, float epsilon, "
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
