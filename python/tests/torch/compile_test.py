# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""torch.compile without a break, on static and on changing shapes; and refusals during tracing, on
an MI300X that is not here."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import aiter_attn
import aiter_attn.torch
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from python.tests.torch.reference import attention, check_gradients, draw


def compiled(function: Callable[..., Any], dynamic: bool = False) -> Callable[..., Any]:
    # Not inductor: it takes a C++ compiler. All before it is the same.
    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=dynamic)


def inputs(seqlen: int) -> list[torch.Tensor]:
    return [draw(2, seqlen, 4, 16), draw(2, 7, 2, 16), draw(2, 7, 2, 16, seed=1)]


@pytest.mark.parametrize("dynamic", [False, True])
def test_forward_and_backward(dynamic: bool) -> None:
    function = compiled(lambda q, k, v: aiter_attn.flash_attn_func(q, k, v, causal=True), dynamic)
    for seqlen in (5, 6):
        check_gradients(function, lambda q, k, v: attention(q, k, v, causal=True), inputs(seqlen))


def test_one_graph_for_all_lengths() -> None:
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    function = torch.compile(aiter_attn.flash_attn_func, fullgraph=True, backend=backend)
    for seqlen in (5, 6, 8, 11):
        q, k, v = (x.detach() for x in inputs(seqlen))
        torch._dynamo.mark_dynamic(q, 1)
        assert torch.equal(function(q, k, v), aiter_attn.flash_attn_func(q, k, v))
    assert len(graphs) == 1


@torch._dynamo.config.patch(capture_scalar_outputs=True)
def test_a_window_of_tensors() -> None:
    q, k, v = inputs(5)

    def function(q: Any, window: Any) -> Any:
        return aiter_attn.flash_attn_func(q, k, v, window_size=(window[0] + 1, window[1]))

    traced = compiled(function)
    for window in ((2, 0), (0, 3)):
        want = aiter_attn.flash_attn_func(q, k, v, window_size=(window[0] + 1, window[1]))
        assert torch.equal(traced(q, torch.tensor(window)), want)


def test_varlen_and_packed() -> None:
    starts = torch.tensor([0, 2, 6], dtype=torch.int32)
    qkv = draw(6, 3, 2, 16)

    def function(qkv: Any) -> Any:
        return aiter_attn.flash_attn_varlen_qkvpacked_func(qkv, starts, 4, causal=True)

    check_gradients(compiled(function), lambda x: function(x).double(), [qkv])


def test_dropout_draws_anew_in_each_call() -> None:
    q, k, v = inputs(5)

    def function(q: Any, k: Any, v: Any) -> Any:
        return aiter_attn.flash_attn_func(q, k, v, 0.5, return_attn_probs=True)

    traced = compiled(function)
    torch.manual_seed(1)
    first, second = traced(q, k, v), traced(q, k, v)
    assert not torch.equal(first[2], second[2])
    for out, _, kept in (first, second):
        # The backward pass drops what the forward pass did.
        got = torch.autograd.grad(out.sum(), (q, k, v))
        want = torch.autograd.grad(attention(q, k, v, kept=kept, dropout_p=0.5).sum(), (q, k, v))
        torch.testing.assert_close(got, want, atol=2e-5, rtol=2e-5)


def test_numbers_that_change() -> None:
    """Which torch makes symbols of, so that it compiles once."""
    q = draw(1, 6, 2, 16).detach()
    starts = torch.tensor([0, 2, 6], dtype=torch.int32)

    def function(left: int, longest: int, cached: int) -> Any:
        return (
            aiter_attn.flash_attn_func(q, q, q, window_size=(left, 0)),
            aiter_attn.flash_attn_varlen_func(q[0], q[0], q[0], starts, starts, longest, longest),
            aiter_attn.flash_attn_with_kvcache(q, q, q, cache_seqlens=cached),
        )

    traced = compiled(function, dynamic=True)
    for numbers in ((2, 4, 3), (3, 5, 4)):
        for got, want in zip(traced(*numbers), function(*numbers), strict=True):
            assert torch.equal(got, want)


def test_a_captured_number_of_tokens() -> None:
    """max_seqlen that follows from a tensor's contents."""
    starts = torch.tensor([0, 2, 6], dtype=torch.int32)
    q = draw(6, 2, 16).detach()

    def function(q: Any, starts: Any) -> Any:
        longest = starts.diff().max().item()
        return aiter_attn.flash_attn_varlen_func(q, q, q, starts, starts, longest, longest)

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        assert torch.equal(compiled(function)(q, starts), function(q, starts))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fake tensors on an MI300X."""
    properties = types.SimpleNamespace(gcnArchName="gfx942:sramecc+:xnack-")
    with FakeTensorMode():
        monkeypatch.setattr(torch.version, "hip", "6.4")
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
        yield


def on_gpu(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="cuda:0")


def test_what_no_kernel_serves_is_refused_as_it_is_traced(gpu: None) -> None:
    q = on_gpu(2, 40, 4, 64)
    assert aiter_attn.flash_attn_func(q, q, q, causal=True).shape == q.shape
    large = on_gpu(2, 40, 4, 512)
    with pytest.raises(aiter_attn.UnsupportedError, match="512"):
        aiter_attn.flash_attn_func(large, large, large)
    wide = on_gpu(2, 40, 4, 64, dtype=torch.float32)
    with pytest.raises(aiter_attn.UnsupportedError, match="fp32"):
        aiter_attn.flash_attn_func(wide, wide, wide)
    narrow = on_gpu(2, 64, 4, 64, dtype=torch.float8_e4m3fn)
    scales = dict.fromkeys(("q_descale", "k_descale", "v_descale", "out_scale"), 1.0)
    with pytest.raises(aiter_attn.UnsupportedError, match="fp8"):
        aiter_attn.flash_attn_func(narrow, narrow, narrow, **scales)


def test_what_no_backward_kernel_serves_is_refused_as_it_is_traced(gpu: None) -> None:
    # The forward pass pads to any multiple of 8. A torch without GPUs records no graph of theirs.
    options = (None, None, None, None, 0.0, None, False, -1, -1, 0.0, False)

    def backward(head_size: int) -> Any:
        q = on_gpu(2, 40, 4, head_size)
        out, lse = torch.ops.aiter_attn.mha_fwd(q, q, q, *options)
        return torch.ops.aiter_attn.mha_bwd(out, out, lse, False, q, q, q, *options)

    assert backward(64)[0].shape == (2, 40, 4, 64)
    with pytest.raises(aiter_attn.UnsupportedError, match="40"):
        backward(40)


def test_the_plan_of_a_traced_call_has_its_sink(gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of backward only where the sink's gradient is wanted."""
    asked: list[tuple[bool, bool]] = []
    for backward, name in ((False, "plan_fwd"), (True, "plan_bwd")):
        plan = getattr(aiter_attn._C, name)

        def recorded(
            problem: Any, arch: Any, sink: bool, plan: Any = plan, backward: bool = backward
        ) -> Any:
            asked.append((backward, sink))
            return plan(problem, arch, sink)

        monkeypatch.setattr(aiter_attn._C, name, recorded)
    q, sink = on_gpu(2, 40, 4, 64), on_gpu(4, dtype=torch.float32)
    for given in (None, sink):
        arrays = (q, q, q, None, None, None, given, 0.0, None, True, -1, -1, 0.0, False)
        out, lse = torch.ops.aiter_attn.mha_fwd(*arrays)
        torch.ops.aiter_attn.mha_bwd(out, out, lse, False, *arrays)
    assert asked == [(False, False), (True, False), (False, True), (True, True)]
    narrow = on_gpu(2, 64, 4, 64, dtype=torch.float8_e4m3fnuz)
    scales = dict.fromkeys(("q_descale", "k_descale", "v_descale", "out_scale"), 1.0)
    with pytest.raises(aiter_attn.UnsupportedError, match="sink is set"):
        by_columns = on_gpu(2, 4, 64, 64, dtype=narrow.dtype).permute(0, 3, 1, 2)
        aiter_attn.flash_attn_func(narrow, narrow, by_columns, sink=sink, **scales)


def test_a_refusal_names_the_argument_in_compiled_code_too() -> None:
    q, *_ = inputs(5)
    with pytest.raises(Exception, match=r"k: 3 heads .*, but q has 4"):
        compiled(aiter_attn.flash_attn_func)(q, draw(2, 7, 3, 16), draw(2, 7, 3, 16))
