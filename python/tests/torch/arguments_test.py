# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""torch tensors in host memory, as arrays that are read in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiter_attn
import aiter_attn.torch
import ml_dtypes
import numpy
import pytest
import torch


def draw(seqlen: int, heads: int) -> Any:
    rng = numpy.random.default_rng(seqlen)
    return rng.standard_normal((2, seqlen, heads, 8), dtype=numpy.float32)


def test_torch() -> None:
    arrays = [draw(5, 4), draw(7, 2), draw(7, 2)]
    for kind, dtype in (("bfloat16", ml_dtypes.bfloat16), ("float16", numpy.float16)):
        narrow = [x.astype(dtype) for x in arrays]
        tensors = [torch.from_numpy(x).to(getattr(torch, kind)) for x in arrays]
        out, lse = aiter_attn.mha_fwd(*tensors)
        want, want_lse = aiter_attn.mha_fwd(*narrow)
        assert out.dtype == getattr(torch, kind)
        numpy.testing.assert_array_equal(out.float().numpy(), want.astype(numpy.float32))
        numpy.testing.assert_array_equal(lse.numpy(), want_lse)
        gradients = aiter_attn.mha_bwd(out, *tensors, out, lse)
        assert all(isinstance(g, torch.Tensor) for g in gradients)
    tensors[0].requires_grad_()
    with pytest.raises(NotImplementedError, match=r"^q: requires_grad is set"):
        aiter_attn.mha_fwd(*tensors)
    with torch.no_grad():
        aiter_attn.mha_fwd(*tensors)
    with pytest.raises(ValueError, match="refuses DLPack"):
        aiter_attn.mha_fwd(tensors[1], tensors[1], tensors[1].to("meta"))


def test_caches() -> None:
    q, k, v, new = draw(2, 4), draw(9, 2), draw(9, 2), draw(2, 2)
    lengths = numpy.array([3, 7], numpy.int32)
    tables = numpy.linspace(-1, 1, 9 * 8, dtype=numpy.float32).reshape(9, 8)
    wide = [numpy.concatenate([x, x], axis=3) for x in (q, k, v, new)]
    for given in (5, lengths):
        tensors = [torch.from_numpy(x.copy()) for x in (*wide, wide[3])]
        seqlens = given if isinstance(given, int) else torch.from_numpy(given)
        out = aiter_attn.flash_attn_with_kvcache(
            *tensors,
            torch.from_numpy(tables),
            torch.from_numpy(tables),
            cache_seqlens=seqlens,
            causal=True,
        )
        assert isinstance(out, torch.Tensor)
        assert torch.equal(tensors[0], torch.from_numpy(wide[0]))
        cache = wide[1].copy(), wide[2].copy()
        want = aiter_attn.flash_attn_with_kvcache(
            wide[0], *cache, wide[3], wide[3], tables, tables, cache_seqlens=given, causal=True
        )
        numpy.testing.assert_array_equal(out.numpy(), want)
        numpy.testing.assert_array_equal(tensors[1].numpy(), cache[0])
    packed = torch.randn(2, 5, 3, 2, 8)
    out = aiter_attn.flash_attn_qkvpacked_func(packed)
    assert torch.equal(out, aiter_attn.flash_attn_func(*packed.unbind(2)))


def test_fp8() -> None:
    scales = {"q_descale": 0.5, "k_descale": 2.0, "v_descale": 0.25, "out_scale": 16.0}
    for kind in ("float8_e4m3fn", "float8_e4m3fnuz"):
        arrays = [draw(*n).astype(getattr(ml_dtypes, kind)) for n in ((5, 4), (7, 2), (7, 2))]
        tensors = [torch.from_numpy(x.view(numpy.uint8)).view(getattr(torch, kind)) for x in arrays]
        arrays_of_one = {name: torch.full((2, 2), scale) for name, scale in scales.items()}
        want = aiter_attn.flash_attn_func(*arrays, **scales).view(numpy.uint8)
        for given in (scales, arrays_of_one):
            out = aiter_attn.flash_attn_func(*tensors, **given)
            assert out.dtype == getattr(torch, kind)
            numpy.testing.assert_array_equal(out.view(torch.uint8).numpy(), want)


def dense(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


Q, K = dense(2, 5, 4, 8), dense(2, 7, 2, 8)


def test_the_negative_bit_is_no_silent_sign() -> None:
    """Torch keeps it beside the memory, which alone is shared."""
    negative, gamma = torch._neg_view(Q), torch.ones(8)
    assert negative.is_neg()
    want = aiter_attn.flash_attn_func(-Q, K, K)
    assert torch.equal(aiter_attn.flash_attn_func(negative, K, K), want)
    for call in (
        lambda: aiter_attn.mha_fwd(negative, K, K),
        lambda: aiter_attn.mha_bwd(Q, negative, K, K, Q, torch.zeros(2, 4, 5)),
        lambda: aiter_attn.rms_norm_fwd(negative, gamma),
        lambda: aiter_attn.softmax_fwd(negative),
    ):
        with pytest.raises(ValueError, match=r"^[qx]: its negative bit is set.*resolve_neg\(\)"):
            call()
    cache, new = torch._neg_view(K), dense(2, 1, 2, 8)
    with pytest.raises(ValueError, match=r"^k_cache: its negative bit is set"):
        aiter_attn.flash_attn_with_kvcache(Q, cache, K, new, new, cache_seqlens=3)


FP8 = (Q / 8).to(torch.float8_e4m3fn)
WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a nested tensor": (
        lambda: aiter_attn.flash_attn_func(torch.nested.nested_tensor([Q[0], Q[1]]), K, K),
        TypeError,
        r"^q: a nested tensor; allowed: one array.*flash_attn_varlen_func",
    ),
    "a jagged tensor": (
        lambda: aiter_attn.flash_attn_func(
            Q, torch.nested.nested_tensor([K[0]], layout=torch.jagged), K
        ),
        TypeError,
        r"^k: a nested tensor; allowed",
    ),
    "a sparse tensor": (
        lambda: aiter_attn.flash_attn_func(Q, K, K.to_sparse()),
        TypeError,
        r"^v: layout torch.sparse_coo; allowed: torch.strided: pass v.to_dense\(\)",
    ),
    "a sparse tensor by DLPack": (
        lambda: aiter_attn.mha_fwd(Q, K.to_sparse(), K),
        TypeError,
        r"^k: layout torch.sparse_coo; allowed",
    ),
    "a tensor of bool": (
        lambda: aiter_attn.flash_attn_func(Q.bool(), K, K),
        TypeError,
        r"^q: dtype bool; allowed: float16",
    ),
    "no dimensions": (
        lambda: aiter_attn.flash_attn_func(Q, K, torch.tensor(1.0)),
        ValueError,
        r"^v: shape \(\); allowed: \[batch, seqlen",
    ),
    "slopes of no dimensions": (
        lambda: aiter_attn.flash_attn_func(Q, K, K, alibi_slopes=torch.tensor(1.0)),
        ValueError,
        r"^alibi_slopes: shape \(\); allowed here",
    ),
    "no packed tensor": (
        lambda: aiter_attn.flash_attn_kvpacked_func(Q, None),  # type: ignore[call-overload]
        TypeError,
        r"^kv: None; allowed",
    ),
    "no keys": (
        lambda: aiter_attn.flash_attn_func(Q, None, K),  # type: ignore[call-overload]
        TypeError,
        r"^k: None; allowed",
    ),
    "splits beyond 64 bits": (
        lambda: aiter_attn.flash_attn_with_kvcache(Q, K, K, num_splits=2**100),
        ValueError,
        r"^num_splits: 12676\d+; allowed: 1 to 128",
    ),
    "a length beyond 64 bits": (
        lambda: aiter_attn.flash_attn_with_kvcache(Q, K, K, cache_seqlens=2**100),
        ValueError,
        r"^cache_seqlens: 12676\d+; allowed: 0 to",
    ),
    "a scale that is no number": (
        lambda: aiter_attn.flash_attn_func(
            FP8, FP8, FP8, q_descale=torch.tensor([torch.nan]), k_descale=1.0, v_descale=1.0,
            out_scale=1.0,
        ),
        ValueError,
        r"^q_descale: nan; allowed: a number above 0",
    ),
    "torch.func": (
        lambda: torch.func.grad(lambda q: aiter_attn.flash_attn_func(q, K, K).sum())(Q),
        NotImplementedError,
        r"^q: torch.func differentiates by it.*torch.autograd.grad",
    ),
    "torch.func of a norm": (
        lambda: torch.func.hessian(lambda x: aiter_attn.torch.softmax(x).sum())(Q),
        NotImplementedError,
        r"^x: torch.func differentiates by it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_refused_by_its_name(wrong: str) -> None:
    call, kind, message = WRONG[wrong]
    with pytest.raises(kind, match=message):
        call()


def test_a_window_beyond_64_bits_is_no_bound() -> None:
    got = aiter_attn.flash_attn_func(Q, K, K, window_size=(2**100, -(2**100)))
    assert torch.equal(got, aiter_attn.flash_attn_func(Q, K, K))
