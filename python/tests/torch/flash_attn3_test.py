# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.compat.flash_attn_interface, called as flash-attn 3 is."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import aiter_attn.compat.flash_attn_interface
import pytest
import torch
from aiter_attn import UnsupportedError

from python.tests.torch.reference import attention, check_gradients, draw

aiter_attn.compat.flash_attn_interface.install()

import flash_attn_interface  # noqa: E402
from flash_attn_interface import (  # noqa: E402
    flash_attn_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_with_kvcache,
)

STARTS_Q = torch.tensor([0, 5, 6, 13], dtype=torch.int32)
STARTS_K = torch.tensor([0, 7, 11, 20], dtype=torch.int32)


def inputs() -> list[torch.Tensor]:
    return [draw(2, 5, 4, 16), draw(2, 7, 2, 16), draw(2, 7, 2, 16, seed=1)]


@pytest.mark.parametrize(
    ("options", "of_reference"),
    [
        ({}, {}),
        ({"causal": True}, {"causal": True}),
        ({"window_size": (2, 1), "num_splits": 0}, {"window": (2, 1)}),
        ({"softcap": 1.5, "pack_gqa": True, "sm_margin": 4}, {"softcap": 1.5}),
    ],
    ids=str,
)
def test_numbers_and_gradients(options: dict[str, Any], of_reference: dict[str, Any]) -> None:
    check_gradients(
        lambda *x: flash_attn_func(*x, **options),
        lambda *x: attention(*x, **of_reference),
        inputs(),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_sink_of_the_models_dtype(dtype: torch.dtype) -> None:
    sink = draw(4, seed=9).detach().to(dtype).requires_grad_()
    check_gradients(
        lambda q, k, v, sink: flash_attn_func(q, k, v, causal=True, s_aux=sink),
        lambda q, k, v, sink: attention(q, k, v, causal=True, sink=sink),
        [*inputs(), sink],
        tolerance=2e-5 if dtype == torch.float32 else 2e-2,
    )


def test_compiled() -> None:
    sink = draw(4).detach()
    check_gradients(
        torch.compile(
            lambda *x: flash_attn_func(*x, causal=True, s_aux=sink),
            backend="aot_eager",
            fullgraph=True,
        ),
        lambda *x: attention(*x, causal=True, sink=sink),
        inputs(),
    )


def test_options_by_place() -> None:
    q, k, v = (x.detach() for x in inputs())
    want = aiter_attn.flash_attn_func(q, k, v, softmax_scale=0.5, causal=True)
    assert torch.equal(flash_attn_func(q, k, v, 0.5, True), want)
    lengths = (STARTS_Q, STARTS_K, 7, 9)
    q, k = draw(13, 4, 16).detach(), draw(20, 4, 16).detach()
    want = aiter_attn.flash_attn_varlen_func(q, k, k, *lengths, softmax_scale=0.5, causal=True)
    assert torch.equal(flash_attn_varlen_func(q, k, k, *lengths, None, None, 0.5, True), want)


def test_lse_is_a_second_result() -> None:
    q, k, v = (x.detach() for x in inputs())
    out, lse = flash_attn_func(q, k, v, return_attn_probs=True)
    assert torch.equal(out, flash_attn_func(q, k, v))
    assert lse.shape == (2, 4, 5)
    q, k = draw(13, 4, 16).detach(), draw(20, 4, 16).detach()
    out, lse = flash_attn_varlen_func(q, k, k, STARTS_Q, STARTS_K, 7, 9, return_attn_probs=True)
    assert (out.shape, lse.shape) == ((13, 4, 16), (4, 13))


def test_the_keys_that_are_used_and_a_sink_of_packed_sequences() -> None:
    q, k, sink = draw(13, 4, 16).detach(), draw(20, 4, 16).detach(), draw(4).detach()
    used = torch.tensor([3, 4, 8], dtype=torch.int32)
    out = flash_attn_varlen_func(q, k, k, STARTS_Q, STARTS_K, 7, 9, seqused_k=used, s_aux=sink)
    for b in range(3):
        rows = slice(int(STARTS_Q[b]), int(STARTS_Q[b + 1]))
        keys = k[None, STARTS_K[b] : STARTS_K[b] + used[b]]
        want = attention(q[None, rows], keys, keys, sink=sink)[0]
        torch.testing.assert_close(out[rows].double(), want, rtol=1e-5, atol=1e-5)


def test_fp8_gives_bfloat16() -> None:
    """A descale that is not given is 1."""
    q, k, v = (x.detach().to(torch.float8_e4m3fn) for x in inputs())
    scales = {"q_descale": torch.full((2, 2), 0.5), "v_descale": torch.tensor([0.25])}
    out, lse = flash_attn_func(q, k, v, causal=True, return_attn_probs=True, **scales)
    want, of_want, _ = aiter_attn.flash_attn_func(
        q, k, v, causal=True, return_attn_probs=True, q_descale=0.5, k_descale=1.0, v_descale=0.25,
        out_dtype=torch.bfloat16,
    )  # fmt: skip
    assert out.dtype == torch.bfloat16
    assert torch.equal(out, want) and torch.equal(lse, of_want)
    starts = [torch.tensor([0, x.shape[1]], dtype=torch.int32) for x in (q, k)]
    packed = flash_attn_varlen_func(
        q[0], k[0], v[0], *starts, q.shape[1], k.shape[1], causal=True, **scales | {
            "q_descale": torch.tensor([0.5])
        },
    )  # fmt: skip
    assert torch.equal(packed, want[0])


def test_packed_arrays() -> None:
    qkv = draw(2, 5, 3, 4, 16).detach()
    want = flash_attn_func(*qkv.unbind(2), causal=True)
    assert torch.equal(flash_attn_qkvpacked_func(qkv, causal=True), want)
    heads = torch.cat([qkv[:, :, 0], qkv[:, :, 1, :2], qkv[:, :, 2, :2]], 2)
    want = flash_attn_func(qkv[:, :, 0], qkv[:, :, 1, :2], qkv[:, :, 2, :2])
    assert torch.equal(flash_attn_qkvpacked_func(heads, num_heads_q=4), want)
    for wrong in (0, 8, 5):
        with pytest.raises(ValueError, match=rf"^num_heads_q: {wrong}, with qkv of shape"):
            flash_attn_qkvpacked_func(heads, num_heads_q=wrong)


def test_a_cache_in_pages_that_is_appended_to() -> None:
    q, new, sink = draw(2, 1, 4, 16).detach(), draw(2, 1, 2, 16).detach(), draw(4).detach()
    keys = draw(2, 8, 2, 16, seed=3).detach()
    pages, table = keys.reshape(4, 4, 2, 16).clone(), torch.arange(4, dtype=torch.int32)
    lengths = torch.tensor([5, 3], dtype=torch.int32)
    out, lse = flash_attn_with_kvcache(
        q, pages, pages.clone(), new, new,
        cache_seqlens=lengths, page_table=table.reshape(2, 2), causal=True, s_aux=sink,
        return_softmax_lse=True,
    )  # fmt: skip
    assert lse.shape == (2, 4, 1)
    for b, length in enumerate(lengths.tolist()):
        of_b = torch.cat([keys[b : b + 1, :length], new[b : b + 1]], 1)
        want = attention(q[b : b + 1], of_b, of_b, causal=True, sink=sink)
        torch.testing.assert_close(out[b : b + 1].double(), want, rtol=1e-5, atol=1e-5)


ONE = torch.ones(1)
REFUSALS: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "qv": (flash_attn_func, {"qv": ONE}, UnsupportedError, "qv: given; allowed: None; pass q a"),
    "a scale without fp8": (
        flash_attn_func,
        {"k_descale": ONE},
        UnsupportedError,
        "k_descale: given; allowed: None; flash_attn_func takes it beside q, k and v of fp8",
    ),
    "chunks": (flash_attn_func, {"attention_chunk": 64}, UnsupportedError, "attention_chunk: 6"),
    "splits": (flash_attn_func, {"num_splits": 2}, UnsupportedError, "num_splits: 2; allowed:"),
    "a sink": (flash_attn_func, {"s_aux": ONE}, ValueError, "s_aux: shape (1,); allowed here"),
    "an integer sink": (
        flash_attn_func, {"s_aux": [0.5] * 4}, TypeError, "s_aux: [0.5, 0.5, 0.5, 0.5]; allowed"
    ),
    "packed queries": (
        flash_attn_with_kvcache,
        {"cu_seqlens_q": STARTS_Q},
        UnsupportedError,
        "cu_seqlens_q: given; allowed: None; aiter_attn.flash_attn_varlen_func takes packed",
    ),
    "metadata": (
        flash_attn_with_kvcache,
        {"scheduler_metadata": ONE},
        UnsupportedError,
        "scheduler_metadata: given; allowed: None; splits are chosen from the shapes",
    ),
    "a table": (
        flash_attn_with_kvcache,
        {"page_table": torch.zeros(3, 2, dtype=torch.int32), "cache_seqlens": 1},
        ValueError,
        "page_table: shape (3, 2)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_refused(name: str) -> None:
    function, changes, kind, message = REFUSALS[name]
    with pytest.raises(kind, match="^" + re.escape(message)):
        function(*(x.detach() for x in inputs()), **changes)


def test_names_that_are_not_there() -> None:
    with pytest.raises(
        AttributeError, match=r"^flash_attn_interface.flash_attn_combine: not in ai"
    ):
        flash_attn_interface.flash_attn_combine  # noqa: B018


def test_the_original_that_is_imported_already_stays() -> None:
    code = (
        "import sys, types; sys.modules['flash_attn_interface'] = types.ModuleType('x'); "
        "import aiter_attn.compat.flash_attn_interface as ours; ours.install()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: flash_attn_interface: imported already" in done.stderr
