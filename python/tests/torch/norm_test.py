# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Norms and softmax of torch tensors: gradients against torch's own in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiter_attn
import aiter_attn.torch
import pytest
import torch
from aiter_attn.torch import _prepared
from torch.nn import functional

from python.tests.torch.reference import check_gradients, draw

X, RESIDUAL = draw(3, 5, 32), draw(3, 5, 32, seed=1)
GAMMA, BETA = draw(32, seed=2), draw(32, seed=3)
WEIGHTS = draw(3, 5, 32, seed=4).detach()
OURS = aiter_attn.torch


def rms(x: Any, gamma: Any) -> Any:
    return functional.rms_norm(x.double(), (32,), gamma.double(), 1e-6)


def layer(x: Any, gamma: Any, beta: Any = None) -> Any:
    of_double = None if beta is None else beta.double()
    return functional.layer_norm(x.double(), (32,), gamma.double(), of_double, 1e-5)


def both(given: tuple[Any, Any]) -> Any:
    """One result of a norm and its sum, so that gradients come from either."""
    y, total = given
    return y + WEIGHTS * total


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[torch.Tensor]]] = {
    "rms": (OURS.rms_norm, rms, [X, GAMMA]),
    "rms, zero-centred": (
        lambda x, gamma: OURS.rms_norm(x, gamma, zero_centred=True),
        lambda x, gamma: rms(x, gamma.double() + 1),
        [X, GAMMA],
    ),
    "rms, residual": (
        lambda x, gamma, residual: both(OURS.rms_norm(x, gamma, residual=residual)),
        lambda x, gamma, residual: both((rms(x + residual, gamma), (x + residual).double())),
        [X, GAMMA, RESIDUAL],
    ),
    "rms, the sum alone": (
        lambda x, gamma, residual: OURS.rms_norm(x, gamma, residual=residual)[1],
        lambda x, gamma, residual: (x + residual).double() + 0 * gamma,
        [X, GAMMA, RESIDUAL],
    ),
    "layer": (OURS.layer_norm, layer, [X, GAMMA, BETA]),
    "layer, no beta": (OURS.layer_norm, layer, [X, GAMMA]),
    "rms, no gamma": (
        lambda x: OURS.rms_norm(x, None),
        lambda x: rms(x, torch.ones(32)),
        [X],
    ),
    "layer, no gamma": (
        lambda x, beta: OURS.layer_norm(x, None, beta),
        lambda x, beta: layer(x, torch.ones(32), beta),
        [X, BETA],
    ),
    "rms, gamma without gradient": (
        lambda x: OURS.rms_norm(x, GAMMA.detach()),
        lambda x: rms(x, GAMMA.detach()),
        [X],
    ),
    "layer, residual": (
        lambda x, gamma, beta, residual: both(OURS.layer_norm(x, gamma, beta, residual=residual)),
        lambda x, gamma, beta, residual: both(
            (layer(x + residual, gamma, beta), (x + residual).double())
        ),
        [X, GAMMA, BETA, RESIDUAL],
    ),
    "softmax": (
        lambda x: OURS.softmax(x, scale=0.5),
        lambda x: (x.double() * 0.5).softmax(-1),
        [X],
    ),
    "rows that are strided": (
        lambda x, gamma: OURS.rms_norm(x.transpose(0, 1), gamma),
        lambda x, gamma: rms(x.transpose(0, 1), gamma),
        [X, GAMMA],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients(name: str, compiled: bool) -> None:
    function, reference, inputs = CASES[name]
    if compiled:
        torch.compiler.reset()
        function = torch.compile(function, fullgraph=True, backend="aot_eager")
    check_gradients(function, reference, inputs)


def test_operators() -> None:
    operators = torch.ops.aiter_attn
    for residual in (None, RESIDUAL):
        torch.library.opcheck(operators.rms_norm_fwd.default, (X, GAMMA, residual, 1e-6, True))
        torch.library.opcheck(
            operators.layer_norm_fwd.default, (X, GAMMA, BETA, residual, 1e-5, False)
        )
    torch.library.opcheck(operators.softmax_fwd.default, (X, None, 0.5, True))


def test_refusals() -> None:
    y = OURS.softmax(X)
    (dx,) = torch.autograd.grad((y * WEIGHTS).sum(), X, create_graph=True)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^aiter_attn::softmax_bwd: has no der"):
        torch.autograd.grad(dx.sum(), X)
    with pytest.raises(ValueError, match=r"^gamma: on meta, but x is on cpu"):
        OURS.rms_norm(X, GAMMA.to("meta"))
    with pytest.raises(TypeError, match=r"^gamma: \[1\.0\]; allowed beside torch tensors"):
        OURS.rms_norm(X, [1.0])
    with pytest.raises(ValueError, match=r"^gamma: shape \(31,\); allowed: \(32,\)"):
        OURS.rms_norm(X, GAMMA[:31])


def test_the_passes_are_the_packages() -> None:
    """The operators of the passes against the package's own functions, bit by bit; and the package
    chooses the front for what is differentiated."""
    x, residual, gamma, beta = (t.detach() for t in (X, RESIDUAL, GAMMA, BETA))
    given: Any = {"residual": residual, "epsilon": 1e-3, "zero_centred": True}
    for name, arrays in (("rms_norm", (x, gamma)), ("layer_norm", (x, gamma, beta))):
        forward, backward = (f"{name}_{suffix}" for suffix in ("fwd", "bwd"))
        for options in ({}, given):
            want = getattr(aiter_attn, forward)(*arrays, **options)
            got = getattr(OURS, forward)(*arrays, **options)
            assert (got[-1] is None) is (not options)
            same(got, want)
            statistics = want[1:-1]
            lifted = {"dh": residual, "zero_centred": True} if options else {}
            inputs = WEIGHTS, x if want[-1] is None else want[-1], gamma, *statistics
            want = getattr(aiter_attn, backward)(*inputs, **lifted)
            same(getattr(OURS, backward)(*inputs, **lifted), want)
    y = aiter_attn.softmax_fwd(x, causal=True)
    same([OURS.softmax_fwd(x, causal=True)], [y])
    same([OURS.softmax_bwd(WEIGHTS, y)], [aiter_attn.softmax_bwd(WEIGHTS, y)])


def test_calls_of_a_signature_are_prepared_once() -> None:
    """The later calls give the same for other tensors, and refuse what shares memory."""
    _prepared._KEPT.clear()
    x, gamma = X.detach(), GAMMA.detach()
    y, rstd, h = OURS.rms_norm_fwd(x, gamma, residual=x)
    kept = list(_prepared._KEPT.values())
    assert len(kept) == 1
    other, weight = 2 * x, gamma + 1
    got = OURS.rms_norm_fwd(other, weight, residual=x)
    same(got, aiter_attn.rms_norm_fwd(other, weight, residual=x))
    assert list(_prepared._KEPT.values()) == kept
    same(OURS.rms_norm_fwd(x, gamma, residual=x), (y, rstd, h))
    for options in ({"epsilon": 1e-3}, {"zero_centred": True}, {"residual": x}):
        same(OURS.rms_norm_fwd(x, gamma, **options), aiter_attn.rms_norm_fwd(x, gamma, **options))
    dy = WEIGHTS
    for _ in range(2):
        same(OURS.rms_norm_bwd(dy, x, gamma, rstd), aiter_attn.rms_norm_bwd(dy, x, gamma, rstd))
        same([OURS.softmax(x)], [aiter_attn.softmax_fwd(x)])
        same([OURS.softmax_bwd(dy, y)], [aiter_attn.softmax_bwd(dy, y)])
        # Rows that are not dense are copied, and never prepared.
        turned = x.transpose(0, 1)
        same([OURS.rms_norm(turned, gamma)], [OURS.rms_norm(turned.contiguous(), gamma)])
    with pytest.raises(ValueError, match="epsilon: nan; allowed: a finite number"):
        OURS.rms_norm(x, gamma, epsilon=float("nan"))


def same(got: Any, want: Any) -> None:
    for a, b in zip(got, want, strict=True):
        assert (a is None) is (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_the_package_chooses_the_front() -> None:
    assert aiter_attn.rms_norm(X, GAMMA).requires_grad
    assert aiter_attn.layer_norm(X, GAMMA, residual=RESIDUAL)[1].requires_grad
    assert aiter_attn.softmax(X).requires_grad
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^x: requires_grad is set"):
        aiter_attn.rms_norm_fwd(X, GAMMA)
