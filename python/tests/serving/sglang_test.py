# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.sglang by the interface of SGLang 0.5.23, against attention in float64."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import aiter_attn.sglang
import pytest
import sglang
import torch
from aiter_attn import UnsupportedError
from sglang.srt import server_args
from sglang.srt.layers.attention import attention_registry
from sglang.srt.layers.radix_attention import AttentionType, RadixAttention
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool
from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode

from python.tests.torch.reference import attention, draw

aiter_attn.sglang.register()

HEADS, KV_HEADS, SIZE, SIZE_V = 4, 2, 16, 24
TOLERANCES = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
# The mode, and (keys before the batch, new tokens) of each request.
BATCHES: dict[str, tuple[ForwardMode, list[tuple[int, int]]]] = {
    "prefill": (ForwardMode.EXTEND, [(0, 11), (0, 3), (0, 17)]),
    "prefix": (ForwardMode.EXTEND, [(12, 5), (0, 9), (3, 14)]),
    "decode": (ForwardMode.DECODE, [(10, 1), (1, 1), (31, 1)]),
    "mixed": (ForwardMode.MIXED, [(12, 1), (0, 9), (7, 1), (9, 14)]),
}
SINKS = torch.tensor([0.5, -1.0, 2.0, 0.0])
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"window": (4, 0)},
    "softcap": {"softcap": 3.0},
    "sinks": {"sink": SINKS},
    "all": {"window": (6, 0), "sink": SINKS},
}


def runner(dtype: torch.dtype = torch.float32, page: int = 1, **changed: Any) -> Any:
    fields = {
        "use_mla_backend": False,
        "is_hybrid_swa": False,
        "model_config": SimpleNamespace(is_encoder_decoder=False),
        "dtype": dtype,
        "kv_cache_dtype": dtype,
        "req_to_token_pool": ReqToTokenPool(9, 64),
        "token_to_kv_pool": MHATokenToKVPool(240, page, dtype, KV_HEADS, SIZE, 2, SIZE_V),
    }
    return SimpleNamespace(**fields | changed)


def backend(**changed: Any) -> Any:
    return attention_registry.ATTENTION_BACKENDS["aiter_attn"](runner(**changed))


def layer(case: dict[str, Any], **changed: Any) -> RadixAttention:
    options = {
        "logit_cap": case.get("softcap", 0.0),
        "v_head_dim": SIZE_V,
        "sliding_window_size": case.get("window", (-1, 0))[0],
    }
    return RadixAttention(HEADS, SIZE, SIZE**-0.5, KV_HEADS, 1, **options | changed)


class Run:
    """A batch as SGLang's scheduler makes it: the cache's slots are in no order."""

    def __init__(self, batch: str, dtype: torch.dtype = torch.float32) -> None:
        mode, self.requests = BATCHES[batch]
        self.runner = runner(dtype)
        old, new = (torch.tensor(x) for x in zip(*self.requests, strict=True))
        lengths = old + new
        total = int(lengths.sum())
        self.keys = draw(total, KV_HEADS, SIZE, dtype=dtype, seed=1).detach()
        self.values = draw(total, KV_HEADS, SIZE_V, dtype=dtype, seed=2).detach()
        self.query = draw(int(new.sum()), HEADS * SIZE, dtype=dtype).detach()
        # Slot 0 is that of padding.
        order = torch.randperm(240, generator=torch.Generator().manual_seed(1)) + 1
        rows = torch.tensor([5, 2, 7, 1][: len(self.requests)])
        cache, table = self.runner.token_to_kv_pool, self.runner.req_to_token_pool.req_to_token
        cache.k_buffer[:], cache.v_buffer[:] = 9.0, 9.0
        is_new = torch.zeros(total, dtype=torch.bool)
        start = 0
        for row, (before, added) in zip(rows, self.requests, strict=True):
            end = start + before + added
            table[row, : end - start] = order[start:end]
            is_new[start + before : end] = True
            start = end
        slots = order[:total]
        cache.k_buffer[1, slots[~is_new]] = self.keys[~is_new]
        cache.v_buffer[1, slots[~is_new]] = self.values[~is_new]
        self.new = self.keys[is_new], self.values[is_new]
        is_extend = mode != ForwardMode.DECODE
        self.batch = ForwardBatch(
            forward_mode=mode,
            batch_size=len(self.requests),
            req_pool_indices=rows,
            seq_lens=lengths,
            out_cache_loc=slots[is_new],
            seq_lens_sum=total,
            seq_lens_cpu=lengths,
            extend_seq_lens=new.int() if is_extend else None,
            extend_prefix_lens=old.int() if is_extend else None,
            extend_seq_lens_cpu=new.tolist() if is_extend else None,
        )

    def forward(self, at: RadixAttention, **options: Any) -> torch.Tensor:
        served = attention_registry.ATTENTION_BACKENDS["aiter_attn"](self.runner)
        served.init_forward_metadata(self.batch)
        return served.forward(self.query, *self.new, at, self.batch, **options)

    def want(self, causal: bool = True, **case: Any) -> torch.Tensor:
        outs, row, start = [], 0, 0
        for before, added in self.requests:
            end = start + before + added
            q = self.query[None, row : row + added].unflatten(2, (HEADS, SIZE))
            k, v = self.keys[None, start:end], self.values[None, start:end]
            outs.append(attention(q, k, v, causal=causal, **case)[0].flatten(1))
            row, start = row + added, end
        return torch.cat(outs)


def compare(got: torch.Tensor, want: torch.Tensor) -> None:
    tolerance = TOLERANCES[got.dtype]
    torch.testing.assert_close(got.double(), want, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("batch", BATCHES)
def test_batches(batch: str, case: str) -> None:
    run, options = Run(batch), CASES[case]
    compare(run.forward(layer(options), sinks=options.get("sink")), run.want(**options))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("batch", BATCHES)
def test_dtypes(batch: str, dtype: torch.dtype) -> None:
    run = Run(batch, dtype)
    compare(run.forward(layer({}), sinks=SINKS.to(dtype)), run.want(sink=SINKS))


def test_the_list_has_the_entries_that_kernels_read_behind_it() -> None:
    run = Run("mixed")
    served = attention_registry.ATTENTION_BACKENDS["aiter_attn"](run.runner)
    served.init_forward_metadata(run.batch)
    pages = served.forward_metadata
    total = int(pages.kv_indptr[-1])
    assert len(pages.kv_indices) == total + 159
    assert (pages.kv_indices[total:] == pages.kv_indices[0]).all()
    assert pages.kv_indices.dtype == pages.kv_indptr.dtype == torch.int32


def test_keys_that_the_cache_has() -> None:
    run = Run("prefix")
    first = run.forward(layer({}))
    run.new = run.new[0] * 0, run.new[1] * 0
    assert torch.equal(run.forward(layer({}), save_kv_cache=False), first)
    run.new = None, None
    assert torch.equal(run.forward(layer({})), first)


def test_layers_of_encoders() -> None:
    run = Run("prefill")
    compare(run.forward(layer({}, attn_type=AttentionType.ENCODER_ONLY)), run.want(causal=False))


def test_an_idle_rank() -> None:
    run = Run("decode")
    run.batch.forward_mode = ForwardMode.IDLE
    run.query = run.query[:0]
    assert run.forward(layer({})).shape == (0, HEADS * SIZE_V)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"use_mla_backend": True}, r"MLA: not served.*--attention-backend, such as triton"),
        ({"is_hybrid_swa": True}, r"sliding windows: not served.*--disable-hybrid-swa-memory"),
        (
            {"model_config": SimpleNamespace(is_encoder_decoder=True)},
            r"an encoder beside a decoder",
        ),
        ({"kv_cache_dtype": torch.float8_e4m3fn}, r"a cache of torch\.float8_e4m3fn.*-dtype auto"),
    ],
)
def test_models_that_are_not_served(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        backend(**changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"is_cross_attention": True}, "layer 1: is_cross_attention; allowed"),
        ({"attn_type": AttentionType.DECODER_BIDIRECTIONAL}, "attn_type DECODER_BIDIRECTIONAL"),
        ({"pos_encoding_mode": "ALIBI"}, "pos_encoding_mode ALIBI"),
        ({"logit_cap": 3.0, "logit_capping_method": "sigmoid"}, "logit_capping_method sigmoid"),
    ],
)
def test_layers_that_are_not_served(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        Run("decode").forward(layer({}, **changed))


def test_batches_and_arguments_that_are_not_served() -> None:
    for mode in (ForwardMode.TARGET_VERIFY, ForwardMode.DRAFT_EXTEND_V2, ForwardMode.DLLM_EXTEND):
        run = Run("decode")
        run.batch.forward_mode = mode
        with pytest.raises(UnsupportedError, match=f"forward_mode: {mode.name}; allowed: DECODE"):
            run.forward(layer({}))
    run = Run("decode")
    run.batch.spec_info = object()
    with pytest.raises(UnsupportedError, match="forward_mode: DECODE, speculative"):
        run.forward(layer({}))
    before = (run := Run("decode")).runner.token_to_kv_pool.k_buffer.clone()
    with pytest.raises(UnsupportedError, match="k_rope, q_rope: given; allowed: sinks alone"):
        run.forward(layer({}), q_rope=run.query, k_rope=run.query, topk_indices=None)
    xai = layer({})
    xai.xai_temperature_len = 8
    with pytest.raises(UnsupportedError, match="xai_temperature_len"):
        run.forward(xai)
    assert torch.equal(run.runner.token_to_kv_pool.k_buffer, before), "nothing is written"
    run.runner.token_to_kv_pool.k_buffer = run.runner.token_to_kv_pool.k_buffer[:, :, None]
    with pytest.raises(UnsupportedError, match=r"the cache's layout.*SGLANG_USE_HND_KVCACHE"):
        run.forward(layer({}), save_kv_cache=False)
    with pytest.raises(UnsupportedError, match=r"graphs: asked for, of up to 8.*graph-backend-dec"):
        backend().init_cuda_graph_state(8, 8)


def test_a_second_registration() -> None:
    aiter_attn.sglang.register()
    assert server_args.ATTENTION_BACKEND_CHOICES.count("aiter_attn") == 1


def test_another_backend_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(attention_registry.ATTENTION_BACKENDS, "aiter_attn", backend)
    with pytest.raises(ValueError, match=r"aiter_attn: registered as .*backend; .*SGLANG_PLUGINS"):
        aiter_attn.sglang.register()
    assert attention_registry.ATTENTION_BACKENDS["aiter_attn"] is backend


def test_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sglang, "__version__", "0.5.24")
    monkeypatch.delitem(attention_registry.ATTENTION_BACKENDS, "aiter_attn")
    with pytest.raises(UnsupportedError, match=r"sglang: version 0\.5\.24; allowed: 0\.5\.23"):
        aiter_attn.sglang.register()
    assert "aiter_attn" not in attention_registry.ATTENTION_BACKENDS
