# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""torch tensors in host memory, as arrays that are read in place."""

from __future__ import annotations

from typing import Any

import aiter_attn
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
