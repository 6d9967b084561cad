# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""This package among torch's implementations of flash attention. torch's operators of these are for
GPUs: the tests have them computed on the CPU, too."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

import aiter_attn.torch
import pytest
import torch
from aiter_attn.torch import _provider
from torch.nn import attention as registry
from torch.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out

from python.tests.torch.reference import attention, check_gradients, draw

_ON_CPU = "aiter_attn on the CPU"
STARTS_Q = torch.tensor([0, 5, 6, 13], dtype=torch.int32)
STARTS_K = torch.tensor([0, 7, 11, 20], dtype=torch.int32)
LONGEST = 7, 9


@pytest.fixture
def active() -> Iterator[None]:
    on_cpu = functools.partial(_provider.activate, "CPU")
    registry.register_flash_attention_impl(_ON_CPU, register_fn=on_cpu)
    registry.activate_flash_attention_impl(_ON_CPU)
    yield
    registry.restore_flash_attention_impl()


def test_torch_lists_it_and_needs_a_gpu_for_it() -> None:
    assert aiter_attn.torch
    assert _provider.NAME in registry.list_flash_attention_impls()
    _provider.register()  # once more changes nothing
    with pytest.raises(
        aiter_attn.UnsupportedError,
        match=rf"^aiter_attn: torch {re.escape(torch.__version__)} has no AMD GPU here; allowed: a",
    ):
        registry.activate_flash_attention_impl(_provider.NAME)
    assert registry.current_flash_attention_impl() is None


def test_torchs_own_operators_are_back_where_it_is_left(active: None) -> None:
    q = draw(1, 2, 5, 8).detach()
    torch.ops.aten._scaled_dot_product_flash_attention(q, q, q)
    registry.restore_flash_attention_impl()
    with pytest.raises(NotImplementedError, match="CPU"):
        torch.ops.aten._scaled_dot_product_flash_attention(q, q, q)
    registry.activate_flash_attention_impl(_ON_CPU)  # as often as one likes
    torch.ops.aten._scaled_dot_product_flash_attention(q, q, q)


def by_heads(function: Any, *arrays: Any, **options: Any) -> torch.Tensor:
    """function of [batch, seqlen, heads, head size] for [batch, heads, seqlen, head size]."""
    return function(*(x.transpose(1, 2) for x in arrays), **options).transpose(1, 2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [(6, 6), (4, 9)], ids=str)
def test_the_operator_of_scaled_dot_product_attention(
    active: None, lengths: tuple[int, int], causal: bool
) -> None:
    """Its causal mask is aligned at the last."""
    seqlen_q, seqlen_k = lengths
    arrays = [draw(2, 4, seqlen_q, 16), draw(2, 2, seqlen_k, 16), draw(2, 2, seqlen_k, 16, seed=1)]
    check_gradients(
        lambda *x: torch.ops.aten._scaled_dot_product_flash_attention(*x, 0.0, causal)[0],
        lambda *x: by_heads(attention, *x, causal=causal),
        arrays,
    )


def test_results_lie_as_compiled_code_takes_them_to(active: None) -> None:
    q = draw(2, 5, 4, 16).detach().transpose(1, 2)
    operator = torch.ops.aten._scaled_dot_product_flash_attention.default
    made = operator(q, q, q)
    with torch._subclasses.fake_tensor.FakeTensorMode() as mode:
        fake = operator(*(mode.from_tensor(q),) * 3)
    for real, expected in zip(made[:2], fake[:2], strict=True):
        assert (real.shape, real.stride(), real.dtype) == (
            expected.shape, expected.stride(), expected.dtype,
        )  # fmt: skip
    assert made[4:6] == fake[4:6] == (5, 5)


def test_dropout_drops_the_same_weights_in_both_passes(active: None) -> None:
    """Weights of queries alike are alike, and values 1: a result is how many keys stay."""
    q, k = torch.zeros(2, 4, 64, 8), torch.zeros(2, 4, 32, 8)
    v = torch.ones(2, 4, 32, 8, requires_grad=True)
    torch.manual_seed(0)
    out = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.25)[0]
    torch.testing.assert_close(out.mean(), torch.tensor(1.0), rtol=0.05, atol=0)
    (gradient,) = torch.autograd.grad(out.sum(), v)
    torch.testing.assert_close((gradient * v).sum(), out.sum(), rtol=1e-5, atol=0)
    torch.manual_seed(0)
    again = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.25)[0]
    assert torch.equal(again, out)


def inputs(heads_k: int = 4) -> list[torch.Tensor]:
    return [draw(13, 4, 16), draw(20, heads_k, 16), draw(20, heads_k, 16, seed=1)]


def packed(*arrays: torch.Tensor, used: Any = None, **options: Any) -> torch.Tensor:
    """The reference, one sequence after the other; used: how many of its keys."""
    parts = []
    for b in range(3):
        of_q, of_k = (slice(starts[b], starts[b + 1]) for starts in (STARTS_Q, STARTS_K))
        q, k, v = arrays[0][of_q], arrays[1][of_k], arrays[2][of_k]
        if used is not None:
            k, v = k[: used[b]], v[: used[b]]
        parts.append(attention(q[None], k[None], v[None], **options)[0])
    return torch.cat(parts)


WINDOWS: dict[tuple[int, int], dict[str, Any]] = {
    (-1, -1): {},
    (-1, 0): {"causal": True},
    (2, 0): {"window": (2, 0)},
    (1, 2): {"window": (1, 2)},
}


@pytest.mark.parametrize("heads_k", [4, 2])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_varlen(active: None, window: tuple[int, int], heads_k: int) -> None:
    check_gradients(
        lambda *x: varlen_attn(
            *x, STARTS_Q, STARTS_K, *LONGEST, window_size=window, enable_gqa=heads_k < 4
        ),
        lambda *x: packed(*x, **WINDOWS[window]),
        inputs(heads_k),
    )


def test_varlen_with_a_scale_and_the_lse(active: None) -> None:
    q, k, v = (x.detach() for x in inputs())
    out, lse = varlen_attn(
        q, k, v, STARTS_Q, STARTS_K, *LONGEST, scale=0.5, return_aux=AuxRequest(lse=True)
    )
    torch.testing.assert_close(out.double(), packed(2 * q, k, v), rtol=1e-5, atol=1e-5)
    assert lse.shape == (4, 13)
    want = torch.einsum("ihd,jhd->hij", q[:5], k[:7]).mul(0.5).logsumexp(2)
    torch.testing.assert_close(lse[:, :5], want, rtol=1e-5, atol=1e-5)


def test_varlen_into_given_memory(active: None) -> None:
    q, k, v = (x.detach() for x in inputs())
    out = torch.full_like(q, 7)
    got = varlen_attn_out(out, q, k, v, STARTS_Q, STARTS_K, *LONGEST)
    assert got.data_ptr() == out.data_ptr()
    assert torch.equal(out, varlen_attn(q, k, v, STARTS_Q, STARTS_K, *LONGEST))


def test_varlen_of_the_keys_that_are_used(active: None) -> None:
    q, k, v = (x.detach() for x in inputs())
    used = torch.tensor([3, 4, 8], dtype=torch.int32)
    out = varlen_attn(q, k, v, STARTS_Q, STARTS_K, *LONGEST, seqused_k=used, window_size=(-1, 0))
    want = packed(q, k, v, used=used, causal=True)
    torch.testing.assert_close(out.double(), want, rtol=1e-5, atol=1e-5)


def test_varlen_of_keys_in_pages(active: None) -> None:
    q, k, v = (x.detach() for x in inputs())
    lengths = STARTS_K.diff()
    table = torch.tensor([[3, 0, 9], [1, 9, 9], [4, 2, 5]], dtype=torch.int32)
    pages = []
    for array in (k, v):
        memory = torch.full((6, 4, *array.shape[1:]), torch.nan)
        for b, length in enumerate(lengths.tolist()):
            for j in range(length):
                memory[table[b, j // 4], j % 4] = array[STARTS_K[b] + j]
        pages.append(memory)
    out = varlen_attn(
        q, *pages, STARTS_Q, None, *LONGEST, seqused_k=lengths.contiguous(), block_table=table
    )
    torch.testing.assert_close(out.double(), packed(q, k, v), rtol=1e-5, atol=1e-5)


def test_refusals_have_torchs_names(active: None) -> None:
    q, k, v = (x.detach() for x in inputs())
    lengths = (STARTS_Q, STARTS_K, *LONGEST)
    forward = torch.ops.aten._flash_attention_forward
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^return_debug_mask: True; allowed: F"):
        forward(q, k, v, *lengths, 0.0, False, True)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^num_splits: 3; allowed: None, and"):
        varlen_attn(q, k, v, *lengths, num_splits=3)
    varlen_attn(q, k, v, *lengths, num_splits=1)  # keys are not split
    with pytest.raises(TypeError, match=r"^query: dtype float64; allowed"):
        varlen_attn(q.double(), k.double(), v.double(), *lengths)
    with pytest.raises(ValueError, match=r"^max_q: "):
        varlen_attn(q, k, v, STARTS_Q, STARTS_K, -1, 9)
    with pytest.raises(ValueError, match=r"^scale: -1.0"):
        varlen_attn(q, k, v, *lengths, scale=-1.0)
    used = torch.tensor([3, 4, 8], dtype=torch.int32)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"cum_seq_q is None; allowed: packed"):
        x = q[None]
        forward(x, x, x, None, None, 13, 13, 0.0, False, False, seqused_k=used)
    with pytest.raises(ValueError, match=r"^cum_seq_k, seqused_k: None; allowed with block_table"):
        varlen_attn(q, k[None], v[None], STARTS_Q, None, *LONGEST, block_table=used[:, None])


def test_compiled(active: None) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return varlen_attn(q, k, v, STARTS_Q, STARTS_K, *LONGEST, window_size=(-1, 0))

    check_gradients(
        torch.compile(function, backend="aot_eager", fullgraph=True),
        lambda *x: packed(*x, causal=True),
        inputs(),
    )
