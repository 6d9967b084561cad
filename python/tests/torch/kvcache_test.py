# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention over key-value caches of torch tensors: as of numpy's arrays, and in compiled code."""

from __future__ import annotations

from typing import Any

import aiter_attn
import numpy
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from python.tests.torch.reference import draw

LENGTHS = torch.tensor([3, 7], dtype=torch.int32)
TABLE = torch.tensor([[0, 1], [2, 0]], dtype=torch.int32)
ENTRIES = torch.tensor([2, 0], dtype=torch.int32)
LEFT_OUT = torch.tensor([1, 4], dtype=torch.int32)


def made(*shape: int, seed: int = 0) -> torch.Tensor:
    return draw(*shape, seed=seed).detach()


def arrays(*tensors: Any) -> list[Any]:
    return [x.numpy().copy() if isinstance(x, torch.Tensor) else x for x in tensors]


@pytest.mark.parametrize(
    "options",
    [
        {"cache_seqlens": 5, "causal": True},
        {"cache_seqlens": LENGTHS, "window_size": (3, 0)},
        {"cache_seqlens": LENGTHS, "cache_batch_idx": ENTRIES, "softcap": 2.0},
        {"cache_seqlens": LENGTHS, "block_table": TABLE, "softmax_scale": 0.3},
        {"cache_seqlens": LENGTHS, "cache_batch_idx": ENTRIES, "cache_leftpad": LEFT_OUT},
        {"alibi_slopes": torch.tensor([0.5, 0.25, 0.125, 0.1]), "num_splits": 2},
        {"cache_seqlens": LENGTHS, "sink": torch.tensor([0.5, -1.0, 2.0, 0.0])},
    ],
)
def test_as_numpys(options: dict[str, Any]) -> None:
    given = made(2, 2, 4, 16), made(3, 9, 2, 16), made(3, 9, 2, 16, seed=1)
    got = aiter_attn.flash_attn_with_kvcache(*given, return_softmax_lse=True, **options)
    of_numpy = dict(zip(options, arrays(*options.values()), strict=True))
    want = aiter_attn.flash_attn_with_kvcache(*arrays(*given), return_softmax_lse=True, **of_numpy)
    for tensor, array in zip(got, want, strict=True):
        numpy.testing.assert_array_equal(tensor, array)
    out = aiter_attn.flash_attn_with_kvcache(*given, **options)
    assert torch.equal(out, got[0])


def step(
    q: Any, k_cache: Any, v_cache: Any, new: Any, table: Any, lengths: Any, left_out: Any = None
) -> Any:
    """A turn of generation: appended keys are rotated."""
    return aiter_attn.flash_attn_with_kvcache(
        q,
        k_cache,
        v_cache,
        new,
        new,
        table,
        table,
        cache_seqlens=lengths,
        cache_leftpad=left_out,
        causal=True,
    )


@pytest.mark.parametrize("left_out", [None, LEFT_OUT])
@pytest.mark.parametrize("lengths", [5, LENGTHS])
@pytest.mark.parametrize("dynamic", [False, True])
def test_appended_in_compiled_code(lengths: Any, dynamic: bool, left_out: Any) -> None:
    q, new, table = made(2, 2, 4, 16), made(2, 2, 2, 16), made(9, 8)
    caches = made(2, 9, 2, 16), made(2, 9, 2, 16, seed=1)
    changed = [x.clone() for x in caches]
    torch.compiler.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    out = compiled(q, *changed, new, table, lengths, left_out)
    of_numpy = arrays(q, *caches, new, table, lengths, left_out)
    numpy.testing.assert_array_equal(out, step(*of_numpy))
    for cache, want, before in zip(changed, of_numpy[1:3], caches, strict=True):
        numpy.testing.assert_array_equal(cache, want)
        assert not torch.equal(cache, before)


def test_pages_of_a_varlen_call() -> None:
    starts_q, starts_k = (torch.tensor(x, dtype=torch.int32) for x in ([0, 1, 4], [0, 5, 17]))
    given = made(4, 4, 16), made(3, 9, 2, 16), made(3, 9, 2, 16, seed=1), starts_q, starts_k
    got = aiter_attn.flash_attn_varlen_func(
        *given, 3, 12, causal=True, block_table=TABLE, return_attn_probs=True
    )
    want = aiter_attn.flash_attn_varlen_func(
        *arrays(*given), 3, 12, causal=True, block_table=TABLE.numpy(), return_attn_probs=True
    )
    for tensor, array in zip(got, want, strict=True):
        numpy.testing.assert_array_equal(tensor, array)


def test_operators() -> None:
    operators = torch.ops.aiter_attn
    q, k, v = made(2, 2, 4, 16), made(3, 9, 2, 16), made(3, 9, 2, 16, seed=1)
    new, table = made(2, 2, 2, 16), made(9, 8)
    sink = torch.tensor([-1.0, 0.0, 0.5, 2.0])
    options = (None, sink, None, True, -1, -1, 0.0)
    cached = (LENGTHS, None, None, LEFT_OUT, None, 0, *options)
    for with_lse in (False, True):
        torch.library.opcheck(operators.mha_fwd_kvcache.default, (q, k, v, *cached, with_lse))
    appended = (new, new, table, table, True)
    torch.library.opcheck(
        operators.mha_fwd_kvcache_append.default,
        (q, k.clone(), v.clone(), *appended, *cached, True),
    )
    starts_q, starts_k = (torch.tensor(x, dtype=torch.int32) for x in ([0, 1, 4], [0, 5, 17]))
    torch.library.opcheck(
        operators.mha_varlen_fwd_paged.default,
        (made(4, 4, 16), k, v, starts_q, starts_k, 3, 12, TABLE, *options, True),
    )


def test_refusals() -> None:
    q, k, v = made(2, 2, 4, 16), made(3, 9, 2, 16), made(3, 9, 2, 16)
    function = aiter_attn.flash_attn_with_kvcache
    with pytest.raises(
        aiter_attn.UnsupportedError, match=r"^q: requires_grad is set, but .* cache"
    ):
        function(q.clone().requires_grad_(), k, v)
    with torch.no_grad():
        function(q.clone().requires_grad_(), k, v)
    starts = torch.tensor([0, 4], dtype=torch.int32)
    with pytest.raises(
        aiter_attn.UnsupportedError, match=r"^k: requires_grad is set, but .* cache"
    ):
        aiter_attn.flash_attn_varlen_func(
            q[0], k.clone().requires_grad_(), v, starts, starts, 4, 4, block_table=TABLE[:1]
        )
    with pytest.raises(ValueError, match=r"^k: given, but v is None"):
        function(q, k, v, q[:, :, :2], cache_seqlens=3)
    with pytest.raises(ValueError, match=r"^k_cache: on meta, but q is on cpu"):
        function(q, k.to("meta"), v)
    with pytest.raises(ValueError, match=r"^cache_seqlens"):
        function(q, k, v, cache_seqlens=torch.tensor([3, 70], dtype=torch.int32))
    with pytest.raises(ValueError, match=r"^cache_leftpad\[1\]: 7; allowed here: 0 to 5"):
        function(q, k, v, cache_seqlens=5, cache_leftpad=LENGTHS)
    with (
        FakeTensorMode(),
        pytest.raises(aiter_attn.UnsupportedError, match=r"^cache_leftpad: given .* on a GPU"),
    ):
        on_gpu = [torch.empty(x.shape, device="cuda") for x in (q, k, v)]
        left_out = torch.empty(2, dtype=torch.int32, device="cuda")
        function(*on_gpu, cache_leftpad=left_out)
