# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.vllm by the interface of vLLM 0.33.0, against attention in float64."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import aiter_attn.vllm
import pytest
import torch
import vllm
from aiter_attn import UnsupportedError
from vllm.v1.attention.backend import AttentionType, CommonAttentionMetadata
from vllm.v1.attention.backends import registry

from python.tests.torch.reference import attention, draw

aiter_attn.vllm.register()
Backend: Any = registry.AttentionBackendEnum["AITER_ATTN"].get_class()

HEADS, KV_HEADS, SIZE, PAGE = 4, 2, 16, 8
TOLERANCES = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
# (keys before the batch, new tokens) of each request.
BATCHES = {
    "prefill": [(0, 11), (0, 3), (0, 17)],
    "decode": [(10, 1), (1, 1), (31, 1)],
    "mixed": [(12, 1), (0, 9), (7, 1), (9, 14)],
    "verified": [(5, 3), (20, 3)],
    "one": [(23, 1)],
}
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"window": (4, 0)},
    "softcap": {"softcap": 3.0},
    "alibi": {"slopes": torch.tensor([0.5, 0.25, 0.125, 0.0625])},
    "sinks": {"sink": torch.tensor([0.5, -1.0, 2.0, 0.0])},
    "all": {
        "window": (6, 0),
        "slopes": torch.tensor([0.5, 0.25, 0.125, 0.0625]),
        "sink": torch.tensor([0.5, -1.0, 2.0, 0.0]),
    },
}


def layer(case: dict[str, Any], dtype: torch.dtype = torch.float32, **options: Any) -> Any:
    window, slopes, sink = (case.get(name) for name in ("window", "slopes", "sink"))
    return Backend.get_impl_cls()(
        HEADS,
        SIZE,
        SIZE**-0.5,
        KV_HEADS,
        None if slopes is None else slopes.tolist(),
        None if window is None else window[0] + 1,
        "auto",
        case.get("softcap"),
        **{"sinks": None if sink is None else sink.to(dtype)} | options,
    )


class Run:
    """A batch as vLLM's runner makes it, whose cache has NaN wherever no key is."""

    def __init__(
        self,
        requests: list[tuple[int, int]],
        dtype: torch.dtype = torch.float32,
        tokens_first: bool = False,
        padding: int = 0,
    ) -> None:
        old, new = (torch.tensor(x) for x in zip(*requests, strict=True))
        lengths, tokens = old + new, int(new.sum())
        shape = int(lengths.sum()), KV_HEADS, SIZE
        self.keys, self.values = (draw(*shape, dtype=dtype, seed=i).detach() for i in (1, 2))
        self.query = draw(tokens + padding, HEADS, SIZE, dtype=dtype).detach()
        self.requests = requests
        width = int(lengths.max() - 1) // PAGE + 1
        # Page 0 is the null block; unused entries of the table name it.
        order = torch.randperm(len(requests) * width, generator=torch.Generator().manual_seed(1))
        table = (order + 1).int().view(len(requests), width)
        pages = 1 + len(requests) * width
        if tokens_first:
            cache = torch.full((pages, PAGE, KV_HEADS, 2 * SIZE), torch.nan, dtype=dtype)
            self.cache = cache.transpose(1, 2)
        else:
            self.cache = torch.full((pages, KV_HEADS, PAGE, 2 * SIZE), torch.nan, dtype=dtype)
        starts = lengths.cumsum(0) - lengths
        places, slots = [], []
        for b, (before, added) in enumerate(requests):
            for i in range(before + added):
                page = int(table[b, i // PAGE])
                row = int(starts[b]) + i
                if i < before:
                    self.cache[page, :, i % PAGE, :SIZE] = self.keys[row]
                    self.cache[page, :, i % PAGE, SIZE:] = self.values[row]
                else:
                    places.append(row)
                    slots.append(page * PAGE + i % PAGE)
        self.new_keys, self.new_values = self.keys[places], self.values[places]
        self.slots = torch.tensor(slots + [-1] * padding)
        begins = torch.nn.functional.pad(new.cumsum(0), (1, 0)).int()
        self.common = CommonAttentionMetadata(
            query_start_loc=begins,
            query_start_loc_cpu=begins,
            seq_lens=lengths.int(),
            num_reqs=len(requests),
            num_actual_tokens=tokens + padding,
            max_query_len=int(new.max()),
            max_seq_len=int(lengths.max()) + 100,  # an upper bound
            block_table_tensor=table,
            slot_mapping=self.slots,
        )

    def metadata(self) -> Any:
        builder = Backend.get_builder_cls()(SimpleNamespace(), ["0"], None, torch.device("cpu"))
        return builder.build(0, self.common)

    def forward(self, impl: Any) -> torch.Tensor:
        padded = torch.nn.functional.pad
        more = len(self.query) - len(self.new_keys)
        new = (padded(x, (0, 0, 0, 0, 0, more)) for x in (self.new_keys, self.new_values))
        key, value = new
        impl.do_kv_cache_update(None, key, value, self.cache, self.slots)
        output = torch.full_like(self.query, 7.0)
        result = impl.forward(None, self.query, key, value, self.cache, self.metadata(), output)
        assert result is output
        return output

    def want(self, causal: bool = True, **case: Any) -> torch.Tensor:
        outs, row, start = [], 0, 0
        for before, added in self.requests:
            end = start + before + added
            one = slice(start, end)
            q = self.query[None, row : row + added]
            outs.append(
                attention(q, self.keys[None, one], self.values[None, one], causal=causal, **case)[0]
            )
            row, start = row + added, end
        return torch.cat(outs)


def compare(got: torch.Tensor, want: torch.Tensor) -> None:
    tolerance = TOLERANCES[got.dtype]
    torch.testing.assert_close(got[: len(want)].double(), want, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("batch", BATCHES)
def test_batches(batch: str, case: str) -> None:
    run = Run(BATCHES[batch])
    compare(run.forward(layer(CASES[case])), run.want(**CASES[case]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("batch", BATCHES)
def test_dtypes_and_layouts(batch: str, dtype: torch.dtype) -> None:
    for tokens_first in (False, True):
        run = Run(BATCHES[batch], dtype, tokens_first)
        compare(run.forward(layer(CASES["sinks"], dtype)), run.want(**CASES["sinks"]))


@pytest.mark.parametrize("batch", ["decode", "mixed"])
def test_padding_is_neither_computed_nor_cached(batch: str) -> None:
    run = Run(BATCHES[batch], padding=5)
    got = run.forward(layer({}))
    compare(got, run.want())
    assert (got[-5:] == 7.0).all()
    assert run.cache[0].isnan().all(), "the null block is as it was"


def test_which_function_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    from aiter_attn.vllm import _backend

    called = []
    for name in ("flash_attn_varlen_func", "flash_attn_with_kvcache"):
        function = getattr(_backend, name)
        monkeypatch.setattr(
            _backend,
            name,
            lambda *args, _f=function, _n=name, **named: called.append(_n) or _f(*args, **named),
        )
    for batch in BATCHES.values():
        Run(batch).forward(layer({}))
    varlen, decode = "flash_attn_varlen_func", "flash_attn_with_kvcache"
    assert called == [varlen, decode, varlen, varlen, decode]


@pytest.mark.parametrize("window", [None, 4])
def test_layers_of_encoders(window: int | None) -> None:
    run = Run(BATCHES["prefill"])
    run.common.causal = False
    impl = layer({}, attn_type=AttentionType.ENCODER_ONLY)
    options: dict[str, Any] = {"causal": False}
    if window is not None:
        impl = layer({"window": (window, 0)}, attn_type=AttentionType.ENCODER_ONLY)
        options["window"] = (window, window)
    compare(run.forward(impl), run.want(**options))
    assert run.cache.isnan().all(), "they have no cache"


def test_a_layer_that_reads_another_layers_cache() -> None:
    run = Run(BATCHES["mixed"])
    impl = layer({})
    run.forward(impl)
    output = torch.empty_like(run.query)
    compare(
        impl.forward(None, run.query, None, None, run.cache, run.metadata(), output), run.want()
    )


def test_measuring_memory() -> None:
    run = Run(BATCHES["one"])
    output = torch.full_like(run.query, torch.nan)
    layer({}).forward(None, run.query, None, None, run.cache, None, output)
    assert (output == 0).all()


def test_answers() -> None:
    assert Backend.get_name() == "AITER_ATTN" and not Backend.forward_includes_kv_cache_update
    assert Backend.supports_sink() and Backend.supports_sliding_window()
    assert not (Backend.supports_non_causal() or Backend.is_mla())
    assert not Backend.supports_device_cpu_query_lens_mismatch()
    heads = [size for size in (0, 8, 20, 64, 80, 128, 256, 264) if Backend.supports_head_size(size)]
    assert heads == [8, 64, 80, 128, 256]
    assert [size for size in (16, 64, 128, 256) if Backend.supports_block_size(size)] == [128, 256]
    small = Backend.get_supported_kernel_block_sizes(SimpleNamespace(head_size=64))
    assert [x.base for x in small] == [64]
    kinds = [kind.value for kind in AttentionType if Backend.supports_attn_type(kind)]
    assert kinds == ["decoder", "encoder", "encoder_only"]
    rest = (128, False, False, False, False, None)
    for taken in (None, "auto", "bfloat16"):
        assert Backend.supports_combination(64, torch.bfloat16, taken, *rest) is None
    reason = Backend.supports_combination(64, torch.float16, "bfloat16", *rest)
    assert reason == "kv_cache_dtype bfloat16 with torch.float16; allowed: auto"


def test_features_that_are_not_served() -> None:
    with pytest.raises(UnsupportedError, match=r"kv_cache_dtype: fp8; allowed: auto.*--kv-cache"):
        Backend.get_impl_cls()(HEADS, SIZE, 1.0, KV_HEADS, None, None, "fp8")
    with pytest.raises(UnsupportedError, match=r"attn_type: encoder_decoder; allowed.*TRITON_ATTN"):
        layer({}, attn_type=AttentionType.ENCODER_DECODER.value)
    run = Run(BATCHES["one"])
    given = None, run.query, None, None
    for causal in (False, torch.tensor([True])):
        run.common.causal = causal
        with pytest.raises(UnsupportedError, match=r"causal: .* decoder's layer; allowed: True"):
            layer({}).forward(*given, run.cache, run.metadata(), run.query)
    run.common.causal = True
    with pytest.raises(UnsupportedError, match=r"output_scale: given.*fuse_attn_quant"):
        layer({}).forward(*given, run.cache, run.metadata(), run.query, torch.ones(1))
    with pytest.raises(
        UnsupportedError, match=r"kv_cache: shape .*allowed: \[pages, 2, page size, 32"
    ):
        layer({}).forward(*given, run.cache[..., 1:], run.metadata(), run.query)


def test_a_second_registration() -> None:
    before = list(registry.AttentionBackendEnum)
    aiter_attn.vllm.register()
    aiter_attn.vllm.plugin()
    assert list(registry.AttentionBackendEnum) == before


def test_another_backend_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    member = registry.AttentionBackendEnum["AITER_ATTN"]
    monkeypatch.setitem(registry._ATTN_OVERRIDES, member, "theirs.Backend")
    for function in (aiter_attn.vllm.register, aiter_attn.vllm.plugin):
        with pytest.raises(
            ValueError, match=r"AITER_ATTN: registered as theirs\.Backend.*VLLM_PLUG"
        ):
            function()
    assert registry._ATTN_OVERRIDES[member] == "theirs.Backend"


def test_another_version(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(vllm, "__version__", "0.34.1")
    monkeypatch.setattr(registry, "register_backend", pytest.fail)
    with pytest.raises(UnsupportedError, match=r"vllm: version 0\.34\.1; allowed: 0\.33"):
        aiter_attn.vllm.register()
    with caplog.at_level(logging.WARNING):
        aiter_attn.vllm.plugin()
    assert "AITER_ATTN is not registered. vllm: version 0.34.1; allowed: 0.33" in caplog.text
