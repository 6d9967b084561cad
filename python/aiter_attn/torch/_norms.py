# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Norms by operators: differentiable functions, and the operators of their passes."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch

from aiter_attn import _C
from aiter_attn._core import norms, reading
from aiter_attn.torch import _prepared, _tracing
from aiter_attn.torch._arguments import check_given_tensors, check_tensors
from aiter_attn.torch._operators import Short, function, operator, run, run_unwatched
from aiter_attn.torch._watched import is_compiling, is_watched, is_watched_since

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

# The tensors of a call, in their order.
_OF_RMS_NORM: Final = ("x", "gamma", "residual")
_OF_LAYER_NORM: Final = ("x", "gamma", "beta", "residual")


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
    arguments = x, gamma, residual, epsilon, reading.flag("zero_centred", zero_centred)
    y, rstd, h = _run(_rms_norm_fwd, _OF_RMS_NORM, arguments)
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
    made = None
    if not is_compiling():  # first, as what follows cannot be traced
        made = _CALLS["rms_norm"].run_unwatched(x, gamma, residual, epsilon, zero_centred)
    if made is None:
        arguments = x, gamma, residual, epsilon, reading.flag("zero_centred", zero_centred)
        made = _run(_rms_norm_fwd, _OF_RMS_NORM, arguments, _SHORT["rms_norm"])
    return made[0] if residual is None else (made[0], made[-1])


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
    arguments = x, gamma, beta, residual, epsilon, reading.flag("zero_centred", zero_centred)
    y, mean, rstd, h = _run(_layer_norm_fwd, _OF_LAYER_NORM, arguments)
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
    made = None
    if not is_compiling():
        made = _CALLS["layer_norm"].run_unwatched(x, gamma, beta, residual, epsilon, zero_centred)
    if made is None:
        arguments = x, gamma, beta, residual, epsilon, reading.flag("zero_centred", zero_centred)
        made = _run(_layer_norm_fwd, _OF_LAYER_NORM, arguments, _SHORT["layer_norm"])
    return made[0] if residual is None else (made[0], made[-1])


def softmax_fwd(
    x: torch.Tensor, *, scale: float = 1.0, mask: torch.Tensor | None = None, causal: bool = False
) -> torch.Tensor:
    """aiter_attn.softmax_fwd, differentiable by x. Arguments, returns, raises: see there."""
    if not is_compiling():
        made = _CALLS["softmax"].run_unwatched(x, mask, scale, causal)
        if made is not None:
            first: torch.Tensor = made[0]
            return first
    arguments = x, mask, scale, reading.flag("causal", causal)
    y: torch.Tensor = _run(_softmax_fwd, ("x", "mask"), arguments)
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
    tensors = dy, x, gamma, rstd, dh
    dx, dgamma = run(_rms_norm_bwd, (*tensors, zero_centred, True), tensors)
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
    tensors = dy, x, gamma, mean, rstd, dh
    dx, dgamma, dbeta = run(_layer_norm_bwd, (*tensors, zero_centred, True), tensors)
    return dx, None if gamma is None else dgamma, dbeta


def softmax_bwd(
    dy: torch.Tensor, y: torch.Tensor, *, scale: float = 1.0, causal: bool = False
) -> Any:
    """aiter_attn.softmax_bwd, which has no derivative. Arguments, returns, raises: see there."""
    check_tensors(dy=dy, y=y)
    return run(_softmax_bwd, (dy, y, scale, reading.flag("causal", causal)), (dy, y))


def _run(
    operator: Any, names: tuple[str, ...], arguments: tuple[Any, ...], short: Short | None = None
) -> Any:
    """operator(*arguments). names: of its tensors, which come first, and of which all but x may be
    None. short: as run_unwatched() takes it."""
    tensors = arguments[: len(names)]
    if tensors[0] is not None and not is_watched(tensors):
        return run_unwatched(operator, arguments, tensors, short)
    x, *others = tensors
    check_tensors(x=x)
    check_given_tensors(**dict(zip(names[1:], others, strict=True)))
    return operator(*arguments)


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


def _forward(name: str, x: Any, gamma: Any, *more: Any) -> tuple[Any, ...]:
    """(y, mean, rstd, h) without the mean of RMSNorm; None for what is not made: h without a
    residual, and mean and rstd where y is asked for alone. name: of the calls. more: beta of
    LayerNorm, residual, epsilon, zero_centred."""
    *beta, residual, epsilon, zero_centred = more
    if type(epsilon) is not float:
        epsilon = norms.read_epsilon(epsilon)
    calls = _CALLS[name]
    given = x, gamma, *beta, residual, epsilon, zero_centred
    prepared = calls.run(*given)
    if prepared is not None:
        results: tuple[Any, ...] = prepared
        return results
    statistics = name in _WITH_STATISTICS
    kind = _C.NORM_LAYER if beta else _C.NORM_RMS

    def keep(numbers: Any, tensors: Any) -> None:
        of_rows = (x.shape[:-1], torch.float32) if statistics else None
        made = [
            ("y", (x.shape, x.dtype)),
            *([("mean", of_rows)] if beta else []),
            ("rstd", of_rows),
            ("sum", None if residual is None else (x.shape, x.dtype)),
        ]
        arrays = {"x": x, "gamma": gamma, **({"beta": beta[0]} if beta else {})}
        arrays["residual"] = residual
        _keep(calls.signature(*given), _C.PreparedNorm, numbers, tensors, arrays, made)

    y, mean, rstd, h = norms.forward(
        kind,
        _packed(x),
        _packed(gamma),
        _packed(beta[0] if beta else None),
        _packed(residual),
        epsilon,
        zero_centred,
        keep=keep,
        statistics=statistics,
    )
    return (y, mean, rstd, h) if beta else (y, rstd, h)


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
        prepared = _prepared.prepare_rows(kind, numbers, tensors, tuple(given), made, device)
        _prepared.keep(signature, prepared)


def _fake_forward(kind: int, x: Any, gamma: Any, beta: Any, residual: Any) -> Any:
    _check(x=x, gamma=gamma, beta=beta, residual=residual)
    count = 2 if kind == _C.NORM_LAYER else 1
    statistics = [x.new_empty(x.shape[:-1], dtype=torch.float32) for _ in range(count)]
    return _like(x), *statistics, x.new_empty(0) if residual is None else _like(x)


def _backward(name: str, dy: Any, x: Any, gamma: Any, *more: Any) -> Any:
    """(dx, dgamma, dbeta), without the dbeta of RMSNorm; None for gradients that are not wanted,
    and for that of no gamma. name: of the calls. more: mean of LayerNorm, rstd, dh, zero_centred,
    and whether gradients of weights are wanted."""
    given = dy, x, gamma, *more
    calls = _CALLS[name]
    prepared = calls.run(*given)
    if prepared is not None:
        return prepared
    *mean, rstd, dh, zero_centred, weights = more
    kind = _C.NORM_LAYER if mean else _C.NORM_RMS
    like = x if gamma is None else gamma
    of_gamma, of_beta = weights and gamma is not None, weights and len(mean) > 0

    def keep(numbers: Any, tensors: Any) -> None:
        of_weight = x.shape[-1:], like.dtype
        workspace = tensors.get("workspace")
        made = [
            ("dx", (x.shape, x.dtype)),
            ("dgamma", of_weight if of_gamma else None),
            *([("dbeta", of_weight if of_beta else None)] if mean else []),
            ("workspace", None if workspace is None else (workspace.shape, torch.uint8)),
        ]
        arrays = {"dy": dy, "x": x, "gamma": gamma, **({"mean": mean[0]} if mean else {})}
        arrays |= {"rstd": rstd, "dh": dh}
        _keep(calls.signature(*given), _C.PreparedNormBackward, numbers, tensors, arrays, made)

    dx, dgamma, dbeta = norms.backward(
        kind,
        _packed(dy),
        _packed(x),
        _packed(gamma),
        _packed(mean[0] if mean else None),
        _packed(rstd),
        _packed(dh),
        zero_centred,
        of_gamma,
        of_beta,
        keep,
    )
    return (dx, dgamma, dbeta) if mean else (dx, dgamma)


def _fake_backward(x: Any, gamma: Any, weights: bool, layer: bool) -> Any:
    like = x if gamma is None else gamma

    def gradient(wanted: bool) -> Any:
        return like.new_empty(x.shape[-1:]) if wanted else x.new_empty(0)

    made = _like(x), gradient(weights and gamma is not None)
    return (*made, gradient(weights)) if layer else made


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    """Keeps what _differentiated() needs."""
    ctx.mark_non_differentiable(*output[1:-1])
    _save_alone(ctx, inputs, output)


def _save_alone(ctx: Any, inputs: Any, output: Any) -> tuple[Any, ...]:
    """Keeps what _differentiated() needs of a call that gives no statistics: fewer results take
    less time. Returns y and h alone."""
    x, gamma, *beta, residual, _, zero_centred = inputs
    y, *statistics, h = output
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x if residual is None else h, gamma, *statistics)
    ctx.others = residual is not None, [b is not None for b in beta], zero_centred
    return y, h


def _differentiated(backward: Any, ctx: Any, dy: Any, *others: Any, run: Any = run) -> Any:
    """run: that of the operator `backward`."""
    h, gamma, *statistics = ctx.saved_tensors
    has_residual, has_beta, zero_centred = ctx.others
    dh = others[-1] if has_residual else None  # statistics have no gradient
    if dy is None:  # of a result that nothing was made of
        dy = torch.zeros_like(h)
    wants = ctx.needs_input_grad
    weights = wants[1] or (len(has_beta) > 0 and wants[2])
    inputs = dy, h, gamma, *statistics, dh
    dx, dgamma, *dbeta = run(backward, (*inputs, zero_centred, weights), inputs)
    dgamma = dgamma if weights and gamma is not None else None
    dbeta = [db if weights and b else None for db, b in zip(dbeta, has_beta, strict=True)]
    return dx, dgamma, *dbeta, dx if has_residual else None, None, None


def _run_since(
    name: str, backward: Any, arguments: tuple[Any, ...], tensors: tuple[Any, ...]
) -> Any:
    """run() where nothing watched the forward pass. name: of the calls. tensors: gradients, the
    first and the last of them, and what was saved."""
    made = _CALLS[name].run_unwatched(*arguments)
    if made is not None:
        return made
    dy, *saved, dh = tensors
    if is_watched_since((dy, dh), saved):
        return backward(*arguments)
    return run_unwatched(backward, arguments, tensors)


def _softmax_forward(x: Any, mask: Any, scale: float, causal: bool) -> Any:
    if type(scale) is not float:
        scale = norms.read_scale(scale)
    calls, given = _CALLS["softmax"], (x, mask, scale, causal)
    prepared = calls.run(*given)
    if prepared is not None:
        return prepared[0]

    def keep(numbers: Any, tensors: Any) -> None:
        made = (("y", (x.shape, x.dtype)),)
        arrays = {"x": x, "mask": mask}
        _keep(calls.signature(*given), _C.PreparedSoftmax, numbers, tensors, arrays, made)

    return norms.softmax_forward(_packed(x), scale, _packed(mask), causal, keep)


def _softmax_backward(dy: Any, y: Any, scale: float, causal: bool) -> Any:
    if type(scale) is not float:
        scale = norms.read_scale(scale)
    calls, given = _CALLS["softmax_bwd"], (dy, y, scale, causal)
    prepared = calls.run(*given)
    if prepared is not None:
        return prepared[0]

    def keep(numbers: Any, tensors: Any) -> None:
        made = (("dx", (y.shape, y.dtype)),)
        arrays = {"dy": dy, "y": y}
        _keep(calls.signature(*given), _C.PreparedSoftmaxBackward, numbers, tensors, arrays, made)

    return norms.softmax_backward(_packed(dy), _packed(y), scale, causal, keep)


def _fake_softmax_forward(x: Any, mask: Any, *_: Any) -> Any:
    _check(x=x)
    _tracing.check_devices("x", x=x, mask=mask)
    return _like(x)


def _save_softmax(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
    ctx.save_for_backward(output)
    ctx.options = inputs[2:]


def _differentiated_softmax(ctx: Any, dy: Any) -> tuple[Any, ...]:
    (y,) = ctx.saved_tensors
    return run(_softmax_bwd, (dy, y, *ctx.options), (dy, y)), None, None, None


def _softmax_alone(ctx: Any, *inputs: Any) -> tuple[torch.Tensor]:
    y = _softmax_forward(*inputs)
    _save_softmax(ctx, inputs, y)
    return (y,)


def _differentiated_softmax_alone(ctx: Any, dy: Any) -> tuple[Any, ...]:
    (y,) = ctx.saved_tensors
    made = _CALLS["softmax_bwd"].run_unwatched(dy, y, *ctx.options)
    return _differentiated_softmax(ctx, dy) if made is None else (made[0], None, None, None)


_rms_norm_bwd = operator(
    "rms_norm_bwd(Tensor dy, Tensor x, Tensor? gamma, Tensor rstd, Tensor? dh, bool zero_centred, "
    "bool weight_gradients) -> (Tensor dx, Tensor dgamma)",
    functools.partial(_backward, "rms_norm_bwd"),
    lambda dy, x, gamma, *rest: _fake_backward(x, gamma, rest[-1], False),
)
_layer_norm_bwd = operator(
    "layer_norm_bwd(Tensor dy, Tensor x, Tensor? gamma, Tensor mean, Tensor rstd, Tensor? dh, "
    "bool zero_centred, bool weight_gradients) -> (Tensor dx, Tensor dgamma, Tensor dbeta)",
    functools.partial(_backward, "layer_norm_bwd"),
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
    functools.partial(_forward, "rms_norm_fwd"),
    lambda x, gamma, residual, *_: _fake_forward(_C.NORM_RMS, x, gamma, None, residual),
    _save,
    lambda ctx, *given: _differentiated(_rms_norm_bwd, ctx, *given),
)
_layer_norm_fwd = operator(
    "layer_norm_fwd(Tensor x, Tensor? gamma, Tensor? beta, Tensor? residual, float epsilon, "
    "bool zero_centred) -> (Tensor y, Tensor mean, Tensor rstd, Tensor h)",
    functools.partial(_forward, "layer_norm_fwd"),
    lambda *arguments: _fake_forward(_C.NORM_LAYER, *arguments[:4]),
    _save,
    lambda ctx, *given: _differentiated(_layer_norm_bwd, ctx, *given),
)
_softmax_fwd = operator(
    "softmax_fwd(Tensor x, Tensor? mask, float scale, bool causal) -> Tensor y",
    _softmax_forward,
    _fake_softmax_forward,
    _save_softmax,
    _differentiated_softmax,
)


def _alone(name: str, backward: Any) -> Short:
    """The ways of a norm's call that gives y, and the sum, alone; its derivative takes the
    statistics. backward: of an operator."""
    kernel, since = functools.partial(_forward, name), functools.partial(_run_since, name + "_bwd")
    with_statistics = name + "_fwd"

    def forward(ctx: Any, *arguments: Any) -> Any:
        return _save_alone(ctx, arguments, _forward(with_statistics, *arguments))

    def differentiated(ctx: Any, *given: Any) -> Any:
        return _differentiated(backward, ctx, *given, run=since)

    return Short(kernel, function(name, forward, differentiated))


_SHORT: Final = {
    "rms_norm": _alone("rms_norm", _rms_norm_bwd),
    "layer_norm": _alone("layer_norm", _layer_norm_bwd),
}
_WITH_STATISTICS: Final = ("rms_norm_fwd", "layer_norm_fwd")
# By name: of y alone, with statistics, and of the backward pass, where all but the gradients was
# looked at before.
_CALLS: Final[dict[str, _C.PreparedCalls]] = {
    "rms_norm": _prepared.calls_of("rms_norm", 3, _SHORT["rms_norm"].differentiable),
    "rms_norm_fwd": _prepared.calls_of("rms_norm_fwd", 3),
    "rms_norm_bwd": _prepared.calls_of("rms_norm_bwd", 5, by_class=(1, 2, 3)),
    "layer_norm": _prepared.calls_of("layer_norm", 4, _SHORT["layer_norm"].differentiable),
    "layer_norm_fwd": _prepared.calls_of("layer_norm_fwd", 4),
    "layer_norm_bwd": _prepared.calls_of("layer_norm_bwd", 6, by_class=(1, 2, 3, 4)),
    "softmax": _prepared.calls_of(
        "softmax", 2, function("softmax", _softmax_alone, _differentiated_softmax_alone)
    ),
    "softmax_bwd": _prepared.calls_of("softmax_bwd", 2, by_class=(1,)),
}
