# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""flash_attn functions of torch tensors: numbers and gradients against float64, and refusals."""

from __future__ import annotations

from typing import Any

import aiter_attn
import aiter_attn.torch
import pytest
import torch

from python.tests.torch.reference import attention, check_gradients, draw

SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
# flash_attn_func's options, and the reference's.
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "causal": ({"causal": True}, {"causal": True}),
    "window": ({"window_size": (2, 1)}, {"window": (2, 1)}),
    "alibi": ({"alibi_slopes": SLOPES}, {"slopes": SLOPES}),
    "softcap": ({"softcap": 1.5}, {"softcap": 1.5}),
    "deterministic": ({"deterministic": True}, {}),
}


def inputs(head_size_v: int = 16) -> list[torch.Tensor]:
    return [draw(2, 5, 4, 16), draw(2, 7, 2, 16), draw(2, 7, 2, head_size_v, seed=1)]


@pytest.mark.parametrize("name", OPTIONS)
def test_batch(name: str) -> None:
    given, of_reference = OPTIONS[name]
    check_gradients(
        lambda q, k, v: aiter_attn.flash_attn_func(q, k, v, **given),
        lambda q, k, v: attention(q, k, v, **of_reference),
        inputs(8),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow(dtype: torch.dtype) -> None:
    narrow = [x.detach().to(dtype).requires_grad_() for x in inputs()]
    check_gradients(
        lambda q, k, v: aiter_attn.flash_attn_func(q, k, v, causal=True),
        lambda q, k, v: attention(q, k, v, causal=True),
        narrow,
        tolerance=8 * torch.finfo(dtype).eps,
    )


@pytest.mark.parametrize("name", OPTIONS)
def test_varlen(name: str) -> None:
    given, of_reference = OPTIONS[name]
    starts_q, starts_k = (torch.tensor(x, dtype=torch.int32) for x in ([0, 3, 8], [0, 6, 10]))

    def reference(q: Any, k: Any, v: Any) -> torch.Tensor:
        parts = []
        for i in range(2):
            of_q, of_k = (slice(*starts[i : i + 2]) for starts in (starts_q, starts_k))
            parts.append(attention(q[None, of_q], k[None, of_k], v[None, of_k], **of_reference)[0])
        return torch.cat(parts)

    check_gradients(
        lambda q, k, v: aiter_attn.flash_attn_varlen_func(
            q, k, v, starts_q, starts_k, 5, 6, **given
        ),
        reference,
        [draw(8, 4, 16), draw(10, 2, 16), draw(10, 2, 16, seed=1)],
    )


@pytest.mark.parametrize("shape", [(2, 4, 5, 7), (1, 4, 1, 7), (1, 1, 5, 7)])
def test_bias_has_a_gradient(shape: tuple[int, ...]) -> None:
    check_gradients(
        lambda q, k, v, bias: aiter_attn.torch.mha_fwd(q, k, v, bias=bias)[0],
        lambda q, k, v, bias: attention(q, k, v, bias=bias),
        [*inputs(), draw(*shape)],
    )


@pytest.mark.parametrize("name", ["plain", "causal", "window"])
def test_a_sink_has_a_gradient(name: str) -> None:
    given, of_reference = OPTIONS[name]
    sink = draw(4)
    check_gradients(
        lambda q, k, v, sink: aiter_attn.flash_attn_func(q, k, v, sink=sink, **given),
        lambda q, k, v, sink: attention(q, k, v, sink=sink, **of_reference),
        [*inputs(8), sink],
    )
    fixed = sink.detach()
    check_gradients(
        lambda q, k, v: aiter_attn.flash_attn_func(q, k, v, sink=fixed, **given),
        lambda q, k, v: attention(q, k, v, sink=fixed, **of_reference),
        inputs(8),
    )
    check_gradients(
        lambda sink: aiter_attn.flash_attn_func(*(x.detach() for x in inputs()), sink=sink),
        lambda sink: attention(*(x.detach() for x in inputs()), sink=sink),
        [sink],
    )


def test_a_sink_of_packed_sequences_beside_a_bias_and_dropout() -> None:
    starts = torch.tensor([0, 5], dtype=torch.int32), torch.tensor([0, 7], dtype=torch.int32)
    check_gradients(
        lambda q, k, v, sink: aiter_attn.flash_attn_varlen_func(q, k, v, *starts, 5, 7, sink=sink),
        lambda q, k, v, sink: attention(q[None], k[None], v[None], sink=sink)[0],
        [draw(5, 4, 16), draw(7, 2, 16), draw(7, 2, 16, seed=1), draw(4)],
    )
    check_gradients(
        lambda q, k, v, bias, sink: aiter_attn.torch.mha_fwd(q, k, v, bias=bias, sink=sink)[0],
        lambda q, k, v, bias, sink: attention(q, k, v, bias=bias, sink=sink),
        [*inputs(), draw(1, 4, 1, 7), draw(4)],
    )
    dropout = {"dropout_p": 0.25, "rng_state": (3, 4)}
    kept = aiter_attn.flash_attn_func(*inputs(), return_attn_probs=True, **dropout)[2]
    check_gradients(
        lambda q, k, v, sink: aiter_attn.flash_attn_func(q, k, v, sink=sink, **dropout),
        lambda q, k, v, sink: attention(q, k, v, sink=sink, kept=kept, dropout_p=0.25),
        [*inputs(), draw(4)],
    )


def test_sinks_that_are_none() -> None:
    q, k, v = inputs()
    for sink, kind, message in (
        (draw(2), ValueError, r"^sink: shape \(2,\); allowed here: \(4,\) \[heads of q\]"),
        (draw(4).double(), TypeError, r"^sink: dtype float64; allowed: float32"),
        ([0.0] * 4, TypeError, r"^sink: \[0.0, 0.0, 0.0, 0.0\]; allowed beside torch tensors"),
        (draw(4).to("meta"), ValueError, r"^sink: "),
    ):
        with pytest.raises(kind, match=message):
            aiter_attn.flash_attn_func(q, k, v, sink=sink)
    wide = draw(8)[::2]
    with_gaps = aiter_attn.flash_attn_func(q, k, v, sink=wide)
    assert torch.equal(with_gaps, aiter_attn.flash_attn_func(q, k, v, sink=wide.contiguous()))


def test_packed() -> None:
    starts = torch.tensor([0, 6], dtype=torch.int32)
    check_gradients(
        lambda qkv: aiter_attn.flash_attn_qkvpacked_func(qkv, causal=True),
        lambda qkv: attention(*qkv.unbind(2), causal=True),
        [draw(2, 6, 3, 2, 16)],
    )
    check_gradients(
        lambda q, kv: aiter_attn.flash_attn_kvpacked_func(q, kv, 0.0, None, True),
        lambda q, kv: attention(q, *kv.unbind(2), causal=True),
        [draw(2, 5, 4, 16), draw(2, 6, 2, 2, 16)],
    )
    check_gradients(
        lambda qkv: aiter_attn.flash_attn_varlen_qkvpacked_func(qkv, starts, 6, causal=True),
        lambda qkv: attention(*qkv[None].unbind(2), causal=True)[0],
        [draw(6, 3, 2, 16)],
    )
    check_gradients(
        lambda q, kv: aiter_attn.flash_attn_varlen_kvpacked_func(q, kv, starts, starts, 6, 6),
        lambda q, kv: attention(q[None], *kv[None].unbind(2))[0],
        [draw(6, 4, 16), draw(6, 2, 2, 16)],
    )
    with pytest.raises(ValueError, match=r"^qkv: shape .* allowed: \[batch, seqlen, 3, heads"):
        aiter_attn.flash_attn_qkvpacked_func(draw(2, 6, 2, 2, 16))


def test_strides_are_any() -> None:
    """Heads before tokens, a last dimension that is not contiguous, and a gradient of stride 0."""
    turned = [x.detach().mT.contiguous().mT.requires_grad_() for x in inputs()]
    assert turned[0].stride(3) != 1
    expected = torch.autograd.grad(attention(*turned).sum(), turned)
    out = aiter_attn.flash_attn_func(*turned)
    for got, want in zip(torch.autograd.grad(out.sum(), turned), expected, strict=True):
        torch.testing.assert_close(got, want, atol=2e-5, rtol=2e-5)


def test_lse_and_probabilities() -> None:
    q, k, v = inputs()
    out, lse, probs = aiter_attn.flash_attn_func(q, k, v, return_attn_probs=True)
    want, want_lse, _ = aiter_attn.flash_attn_func(
        *(x.detach().numpy() for x in (q, k, v)), return_attn_probs=True
    )
    assert torch.equal(out, torch.from_numpy(want))
    assert torch.equal(lse, torch.from_numpy(want_lse))
    assert probs.shape == (0,)
    assert out.requires_grad
    assert not lse.requires_grad


def test_without_a_second_derivative() -> None:
    q, k, v = inputs()
    out = aiter_attn.flash_attn_func(q, k, v)
    (dq,) = torch.autograd.grad(out.sum(), q, create_graph=True)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^aiter_attn::mha_bwd: has no deriv"):
        torch.autograd.grad(dq.sum(), q)


def test_without_forward_mode() -> None:
    """Tangents would be lost without a word."""
    q, k, v = (x.detach() for x in inputs())
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^k: has a tangent, but there are no"):
        torch.func.jvp(lambda k: aiter_attn.flash_attn_func(q, k, v), (k,), (k,))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("place", [0, 1])
def test_vmap(place: int) -> None:
    q = draw(3, 2, 5, 2, 16).detach()
    got = torch.vmap(lambda q: aiter_attn.flash_attn_func(q, q, q), in_dims=place)(q)
    for one, x in zip(got, q.unbind(place), strict=True):
        assert torch.equal(one, aiter_attn.flash_attn_func(x, x, x))


def test_gradients_of_tensors_that_lie_alike_and_not() -> None:
    """A check that is made once serves no other values, strides, lengths or options."""
    q, k, v = (x.detach() for x in inputs())
    apart = torch.empty(2, 5, 4, 32)[..., :16]
    for tensors, causal, dout in (
        ((q, k, v), False, torch.ones_like(q)),
        ((2 * q, k + 1, v - 1), False, draw(2, 5, 4, 16).detach()),
        ((q, k, v), False, apart.copy_(q)),
        ((q, k, v), False, torch.ones(()).expand(q.shape)),
        ((q, k, v), True, torch.ones_like(q)),
        ((q, k[:, :6], v[:, :6]), True, torch.ones_like(q)),
        ((apart.copy_(q), k, v), True, torch.ones_like(q)),
        ((q, k, v), True, torch.ones_like(q)),
    ):
        leaves = [x.requires_grad_() for x in (y.detach() for y in tensors)]
        wide = [x.double().detach().requires_grad_() for x in tensors]
        out = aiter_attn.flash_attn_func(*leaves, causal=causal)
        got = torch.autograd.grad(out, leaves, dout)
        want = torch.autograd.grad(attention(*wide, causal=causal), wide, dout.double())
        for x, y in zip(got, want, strict=True):
            torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_gradient_through_vmap() -> None:
    """Within, no tensor says that it requires one."""
    q = draw(3, 2, 5, 2, 16)
    _, k, v = (x.detach() for x in inputs())
    k, v = k[:, :5, :2, :16], v[:, :5, :2, :16]
    got = torch.vmap(lambda q: aiter_attn.flash_attn_func(q, k, v))(q)
    want = torch.stack([aiter_attn.flash_attn_func(one, k, v) for one in q])
    assert torch.equal(*(torch.autograd.grad((x * x).sum(), q)[0] for x in (got, want)))


def test_refusals() -> None:
    q, k, v = inputs()
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^alibi_slopes: requires_grad is set"):
        aiter_attn.flash_attn_func(q, k, v, alibi_slopes=SLOPES.clone().requires_grad_())
    with pytest.raises(ValueError, match=r"^v: on meta, but q is on cpu; all tensors of a call"):
        aiter_attn.flash_attn_func(q, k, v.to("meta"))
    with pytest.raises(TypeError, match=r"^k: a ndarray; allowed beside torch tensors"):
        aiter_attn.flash_attn_func(q, k.detach().numpy(), v)
    with pytest.raises(TypeError, match=r"^q: dtype float64; allowed"):
        aiter_attn.flash_attn_func(*(x.double() for x in (q, k, v)))
    with pytest.raises(ValueError, match=r"^k: 3 heads .*, but q has 4"):
        aiter_attn.flash_attn_func(q, draw(2, 7, 3, 16), draw(2, 7, 3, 16))
    with pytest.raises(ValueError, match=r"^rng_state: dtype torch.int32, .*allowed: \(seed, off"):
        aiter_attn.flash_attn_func(q, k, v, 0.5, rng_state=torch.zeros(2, dtype=torch.int32))
    with pytest.raises(ValueError, match=r"^rng_state: \(1, -1\); allowed: \(seed, offset\)"):
        aiter_attn.flash_attn_func(q, k, v, 0.5, rng_state=(1, -1))
    starts = torch.tensor([0, 5], dtype=torch.int32)
    with pytest.raises(ValueError, match=r"^workspace: given; allowed beside torch tensors: None"):
        aiter_attn.flash_attn_varlen_func(
            q[0], k[0], v[0], starts, starts, 5, 5, workspace=torch.empty(1)
        )


def test_calls_of_tensors_that_lie_alike() -> None:
    """Each has its own numbers; one that lies otherwise is another call."""

    def check(*tensors: torch.Tensor) -> None:
        out, lse, _ = aiter_attn.flash_attn_func(*tensors, causal=True, return_attn_probs=True)
        want, want_lse = aiter_attn.mha_fwd(*(x.numpy() for x in tensors), causal=True)
        assert torch.equal(out, torch.from_numpy(want))
        assert torch.equal(lse, torch.from_numpy(want_lse))

    with torch.no_grad():
        for seed in range(4):
            q, k, v = (draw(2, 7, 4, 16, seed=3 * seed + i).detach() for i in range(3))
            check(q, k, v)
            check(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1))
            check(q[:, ::2], k, v)
            check(q, k.half().float(), v)
    with pytest.raises(TypeError, match=r"^v: dtype float16"):
        aiter_attn.flash_attn_func(q, k, v.half())


@pytest.mark.parametrize("bias", [None, (2, 4, 5, 7)])
@pytest.mark.parametrize("dropout_p", [0.0, 0.25])
@pytest.mark.parametrize("sink", [False, True], ids=["no sink", "a sink"])
def test_operators(bias: tuple[int, ...] | None, dropout_p: float, sink: bool) -> None:
    """torch's own examination: schema, autograd registration, fake kernels, compiled code."""
    operators = torch.ops.aiter_attn
    q, k, v = inputs()
    state = torch.tensor([3, 4]) if dropout_p else None
    beside = (None if bias is None else draw(*bias), None, state, draw(4) if sink else None)
    options = (*beside, dropout_p, None, bias is None, -1, -1, 0.0, False)
    torch.library.opcheck(operators.mha_fwd.default, (q, k, v, *options))
    with torch.no_grad():
        out, lse = operators.mha_fwd(q, k, v, *options)
    constant = [x.detach() if isinstance(x, torch.Tensor) else x for x in (q, k, v, *options)]
    torch.library.opcheck(operators.mha_dropout_mask.default, tuple(constant))
    torch.library.opcheck(operators.mha_bwd.default, (out, out, lse, bias is not None, *constant))


def test_varlen_operators() -> None:
    operators = torch.ops.aiter_attn
    q, k, v = draw(8, 4, 16), draw(10, 2, 16), draw(10, 2, 16, seed=1)
    starts_q, starts_k = (torch.tensor(x, dtype=torch.int32) for x in ([0, 3, 8], [0, 6, 10]))
    rest = (starts_q, starts_k, 5, 6, None, SLOPES, None, None, 0.0, None, True, -1, -1, 0.0, False)
    torch.library.opcheck(operators.mha_varlen_fwd.default, (q, k, v, *rest))
    with torch.no_grad():
        out, lse = operators.mha_varlen_fwd(q, k, v, *rest)
    constant = [x.detach() for x in (q, k, v)]
    torch.library.opcheck(operators.mha_varlen_dropout_mask.default, (*constant, *rest))
    torch.library.opcheck(
        operators.mha_varlen_bwd.default, (out, out, lse, False, *constant, *rest)
    )
