# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.compat.flash_attn_cute, called as flash-attn 4 is."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import aiter_attn.compat.flash_attn_cute
import pytest
import torch
from aiter_attn import UnsupportedError

from python.tests.torch.reference import attention, check_gradients, draw

aiter_attn.compat.flash_attn_cute.install()

import flash_attn.cute  # noqa: E402
from flash_attn.cute import flash_attn_func  # noqa: E402
from flash_attn.cute.interface import flash_attn_varlen_func  # noqa: E402

STARTS_Q = torch.tensor([0, 5, 6, 13], dtype=torch.int32)
STARTS_K = torch.tensor([0, 7, 11, 20], dtype=torch.int32)


def inputs() -> list[torch.Tensor]:
    return [draw(2, 5, 4, 16), draw(2, 7, 2, 16), draw(2, 7, 2, 16, seed=1)]


def packed() -> tuple[torch.Tensor, torch.Tensor]:
    return draw(13, 4, 16).detach(), draw(20, 4, 16).detach()


@pytest.mark.parametrize(
    ("options", "of_reference"),
    [
        ({}, {}),
        ({"causal": True}, {"causal": True}),
        ({"window_size": (2, 1), "num_splits": 0}, {"window": (2, 1)}),
        ({"window_size": (2, None), "pack_gqa": True}, {"window": (2, -1)}),
        ({"softcap": 1.5}, {"softcap": 1.5}),
    ],
    ids=str,
)
def test_numbers_and_gradients(options: dict[str, Any], of_reference: dict[str, Any]) -> None:
    check_gradients(
        lambda *x: flash_attn_func(*x, **options)[0],
        lambda *x: attention(*x, **of_reference),
        inputs(),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_learnable_sink(dtype: torch.dtype) -> None:
    sink = draw(4, seed=9).detach().to(dtype).requires_grad_()
    check_gradients(
        lambda q, k, v, sink: flash_attn_func(q, k, v, causal=True, learnable_sink=sink)[0],
        lambda q, k, v, sink: attention(q, k, v, causal=True, sink=sink),
        [*inputs(), sink],
        tolerance=2e-5 if dtype == torch.float32 else 2e-2,
    )


def test_the_result_is_a_pair() -> None:
    q, k, v = (x.detach() for x in inputs())
    out, none = flash_attn_func(q, k, v)
    assert none is None
    again, lse = flash_attn_func(q, k, v, return_lse=True)
    assert torch.equal(out, again)
    assert lse.shape == (2, 4, 5)
    q, k = packed()
    out, lse = flash_attn_varlen_func(
        q, k, k, cu_seqlens_q=STARTS_Q, cu_seqlens_k=STARTS_K, return_lse=True
    )
    assert (out.shape, lse.shape) == ((13, 4, 16), (4, 13))


def test_options_by_place() -> None:
    q, k, v = (x.detach() for x in inputs())
    want = aiter_attn.flash_attn_func(q, k, v, softmax_scale=0.5, causal=True, window_size=(3, 0))
    got, _ = flash_attn_func(q, k, v, None, None, 0.5, True, (3, 0))
    assert torch.equal(got, want)
    q, k = packed()
    want = aiter_attn.flash_attn_varlen_func(q, k, k, STARTS_Q, STARTS_K, 7, 9, causal=True)
    got, _ = flash_attn_varlen_func(q, k, k, None, STARTS_Q, STARTS_K, 7, 9, 0, causal=True)
    assert torch.equal(got, want)


def test_packed_sequences_without_their_greatest_lengths() -> None:
    q, k = packed()
    sink, used = draw(4).detach(), torch.tensor([3, 4, 8], dtype=torch.int32)
    out, _ = flash_attn_varlen_func(
        *(q, k, k),
        cu_seqlens_q=STARTS_Q,
        cu_seqlens_k=STARTS_K,
        seqused_k=used,
        learnable_sink=sink,
    )
    for b in range(3):
        rows = slice(int(STARTS_Q[b]), int(STARTS_Q[b + 1]))
        keys = k[None, STARTS_K[b] : STARTS_K[b] + used[b]]
        want = attention(q[None, rows], keys, keys, sink=sink)[0]
        torch.testing.assert_close(out[rows].double(), want, rtol=1e-5, atol=1e-5)


def test_keys_in_pages() -> None:
    q = packed()[0]
    pages = draw(6, 8, 4, 16).detach()
    table = torch.tensor([[4, 0], [2, 1], [5, 3]], dtype=torch.int32)
    lengths = torch.tensor([0, 7, 11, 20], dtype=torch.int32)
    options = {"cu_seqlens_q": STARTS_Q, "cu_seqlens_k": lengths, "page_table": table}
    out, _ = flash_attn_varlen_func(q, pages, pages, max_seqlen_k=9, **options)
    for b in range(3):
        rows = slice(int(STARTS_Q[b]), int(STARTS_Q[b + 1]))
        keys = pages[table[b].long()].reshape(1, 16, 4, 16)[:, : lengths[b + 1] - lengths[b]]
        want = attention(q[None, rows], keys, keys)[0]
        torch.testing.assert_close(out[rows].double(), want, rtol=1e-5, atol=1e-5)
    with pytest.raises(UnsupportedError, match="max_seqlen_k: None, but page_table is given"):
        flash_attn_varlen_func(q, pages, pages, **options)


ONE = torch.ones(1)
REFUSALS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "qv": ({"qv": ONE}, UnsupportedError, "qv: given; allowed: None; pass q a"),
    "scores": ({"score_mod": len}, UnsupportedError, "score_mod: given; allowed: None; softcap"),
    "masks": ({"mask_mod": len}, UnsupportedError, "mask_mod: given; allowed: None; causal"),
    "blocks": (
        {"block_sparse_tensors": ONE},
        UnsupportedError,
        "block_sparse_tensors: given; allowed: None; there are no",
    ),
    "splits": ({"num_splits": 2}, UnsupportedError, "num_splits: 2; allowed:"),
    "a sink": ({"learnable_sink": ONE}, ValueError, "learnable_sink: shape (1,); allowed here"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused(name: str) -> None:
    changes, kind, message = REFUSALS[name]
    with pytest.raises(kind, match="^" + re.escape(message)):
        flash_attn_func(*(x.detach() for x in inputs()), **changes)


@pytest.mark.parametrize("name", ["cu_seqlens_q", "cu_seqlens_k"])
def test_sequences_that_are_not_packed(name: str) -> None:
    q, k = packed()
    starts = {"cu_seqlens_q": STARTS_Q, "cu_seqlens_k": STARTS_K} | {name: None}
    with pytest.raises(UnsupportedError, match=rf"^{name}: None; allowed: the starts of packed"):
        flash_attn_varlen_func(q, k, k, **starts)


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match=r"^flash_attn\.cute\.flash_attn_combine: not in ai"):
        flash_attn.cute.flash_attn_combine  # noqa: B018


def run(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_original_that_is_imported_already_stays() -> None:
    done = run(
        "import sys, types; sys.modules['flash_attn.cute'] = types.ModuleType('x'); "
        "import aiter_attn.compat.flash_attn_cute as ours; ours.install()"
    )
    assert "ImportError: flash_attn.cute: imported already" in done.stderr


def test_beside_a_flash_attn_that_is_there() -> None:
    done = run(
        "import sys, types; sys.modules['flash_attn'] = types.ModuleType('flash_attn'); "
        "import aiter_attn.compat.flash_attn_cute as ours; ours.install(); "
        "from flash_attn.cute import flash_attn_func as f; assert f is ours.flash_attn_func; "
        "assert not hasattr(sys.modules['flash_attn'], 'flash_attn_func')"
    )
    assert done.returncode == 0, done.stderr
