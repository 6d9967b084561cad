# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Operators that leave the process: exported programs, pickled functions, modules and errors."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import aiter_attn
import aiter_attn.torch
import pytest
import torch

from python.tests.torch.reference import attention, draw

STARTS = torch.tensor([0, 3, 10], dtype=torch.int32)


class Attention(torch.nn.Module):
    """Projections around attention, whose function is an attribute."""

    def __init__(self, function: Any = aiter_attn.flash_attn_func) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.project = torch.nn.Linear(32, 96)
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x).unflatten(-1, (3, 2, 16)).unbind(2)
        return self.function(q, k, v, causal=True).flatten(2)


class Packed(torch.nn.Module):
    def forward(self, q: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        return aiter_attn.flash_attn_varlen_func(q, q, q, starts, starts, 7, 7)


class Norm(torch.nn.Module):
    def forward(self, x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
        return aiter_attn.rms_norm(x, gamma)


def loaded(exported: Any) -> Any:
    """The program as another process gets it."""
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    return torch.export.load(file).module()


def names(exported: Any) -> list[str]:
    targets = (str(node.target) for node in exported.graph.nodes if node.op == "call_function")
    return [target for target in targets if target.startswith("aiter_attn.")]


def test_a_module_is_exported_and_loaded() -> None:
    module, x = Attention().eval(), draw(2, 5, 32).detach()
    exported = torch.export.export(module, (x,))
    assert names(exported) == ["aiter_attn.mha_fwd.default"]
    torch.testing.assert_close(loaded(exported)(x), module(x))


def test_a_program_takes_other_lengths() -> None:
    module, x = Attention().eval(), draw(2, 5, 32).detach()
    lengths = {0: torch.export.Dim("batch", max=64), 1: torch.export.Dim("seqlen", max=64)}
    program = loaded(torch.export.export(module, (x,), dynamic_shapes=(lengths,)))
    other = draw(3, 9, 32).detach()
    torch.testing.assert_close(program(other), module(other))


def test_packed_sequences_and_norms_are_exported() -> None:
    q = draw(10, 2, 16).detach()
    exported = torch.export.export(Packed(), (q, STARTS))
    assert names(exported) == ["aiter_attn.mha_varlen_fwd.default"]
    moved = torch.tensor([0, 6, 10], dtype=torch.int32)
    program = loaded(exported)
    assert torch.equal(program(q, moved), Packed()(q, moved))
    x, gamma = draw(4, 32).detach(), draw(32).detach()
    exported = torch.export.export(Norm(), (x, gamma))
    assert names(exported) == ["aiter_attn.rms_norm_fwd.default"]
    torch.testing.assert_close(loaded(exported)(x, gamma), Norm()(x, gamma))


def test_a_call_that_is_refused_is_refused_as_it_is_exported() -> None:
    q = draw(2, 5, 3, 16).detach()
    with pytest.raises(Exception, match="k: 2 heads"):
        torch.export.export(Pair(), (q, draw(2, 5, 2, 16).detach()))


class Pair(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return aiter_attn.flash_attn_func(q, k, k)


def test_modules_are_copied_and_pickled() -> None:
    module, x = Attention(), draw(2, 5, 32).detach()
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    for other in (copy.deepcopy(module), torch.load(file, weights_only=False)):
        assert torch.equal(other(x), module(x))


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301  # of this test's own bytes


@pytest.mark.parametrize("name", sorted({*aiter_attn.__all__} & {*aiter_attn.torch.__all__}))
def test_functions_are_pickled_by_their_names(name: str) -> None:
    for module in (aiter_attn, aiter_attn.torch):
        function = getattr(module, name)
        assert pickled(function) is function


def test_errors_and_explanations_are_pickled() -> None:
    """As a pool of processes hands them back."""
    q = draw(2, 5, 3, 16).detach()
    with pytest.raises(ValueError, match="k: 2 heads") as caught:
        aiter_attn.flash_attn_func(q, draw(2, 5, 2, 16).detach(), draw(2, 5, 2, 16).detach())
    got = pickled(caught.value)
    assert (type(got), str(got)) == (type(caught.value), str(caught.value))
    with pytest.raises(aiter_attn.UnsupportedError) as refused:
        aiter_attn.explain(*[(1, 5, 2, 1024)] * 3, dtype="float16", arch="gfx942")
    got = pickled(refused.value)
    assert (type(got), str(got)) == (aiter_attn.UnsupportedError, str(refused.value))
    told = aiter_attn.explain(q, q, q)
    assert pickled(told) == told


def test_torch_func_does_not_differentiate_scaled_dot_product_attention() -> None:
    """torch asks no operator there, and a gradient would be lost: refused by torch's names."""
    q, k, v = (draw(1, 3, 2, 8, seed=i).detach() for i in range(3))
    function = aiter_attn.torch.scaled_dot_product_attention
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^key: torch.func differentiates by it"):
        torch.func.jacrev(lambda k: function(q, k, v).sum())(k)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^value: has a tangent, but there are"):
        torch.func.jvp(lambda v: function(q, k, v), (v,), (v,))
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^attn_mask: torch.func differentiates"):
        torch.func.grad(lambda m: function(q, k, v, m).sum())(torch.zeros(2, 2))


def test_torch_func_calls_modules_without_their_weights() -> None:
    module, x = Attention(), draw(2, 5, 32).detach()
    weights = dict(module.named_parameters())
    out = torch.func.functional_call(module, weights, (x,))
    got = torch.autograd.grad(out.square().sum(), list(weights.values()))
    q, k, v = module.project(x).unflatten(-1, (3, 2, 16)).unbind(2)
    want = attention(q, k, v, causal=True)
    torch.testing.assert_close(out.double(), want.flatten(2), rtol=1e-5, atol=1e-5)
    for one, other in zip(
        got, torch.autograd.grad(want.square().sum(), list(weights.values())), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_vmap_of_scaled_dot_product_attention() -> None:
    q, k = draw(3, 2, 4, 5, 8).detach(), draw(2, 4, 7, 8).detach()
    function = aiter_attn.torch.scaled_dot_product_attention
    got = torch.vmap(lambda q: function(q, k, k, is_causal=True))(q)
    for one, x in zip(got, q, strict=True):
        assert torch.equal(one, function(x, k, k, is_causal=True))
