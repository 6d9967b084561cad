# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Calls around torch's dispatcher: made where nothing watches, and not seen by what does."""

from __future__ import annotations

import contextlib
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import aiter_attn
import aiter_attn.torch
import pytest
import torch
from aiter_attn import _C
from aiter_attn.torch import _norms, _operators, _watched
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from python.tests.torch.reference import draw

OURS = aiter_attn.torch
X, GAMMA = draw(4, 6, 32).detach(), draw(32, seed=1).detach()
DY = draw(4, 6, 32, seed=2).detach()
OPERATOR = torch.ops.aiter_attn.rms_norm_fwd.default


def norm(x: Any, gamma: Any = GAMMA) -> Any:
    return OURS.rms_norm(x, gamma)


WANT = norm(X)


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=0)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ways that calls took: "short" around the dispatcher, "torch's" through it."""
    taken: list[str] = []

    def is_watched(tensors: Any) -> bool:
        taken.append("torch's" if _watched.is_watched(tensors) else "short")
        return taken[-1] == "torch's"

    class Calls:
        """Prepared calls, and those of them that were short."""

        def __init__(self, calls: Any) -> None:
            self.run, self.signature, self._calls = calls.run, calls.signature, calls

        def run_unwatched(self, *given: Any) -> Any:
            made = self._calls.run_unwatched(*given)
            if made is not None:
                taken.append("short")
            return made

    monkeypatch.setattr(_norms, "is_watched", is_watched)
    monkeypatch.setattr(_operators, "is_watched", is_watched)
    for name in ("rms_norm", "layer_norm", "softmax"):
        monkeypatch.setitem(_norms._CALLS, name, Calls(_norms._CALLS[name]))
    return taken


PLAIN: dict[str, Callable[[], Any]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "autocast that is off": lambda: torch.autocast("cpu", enabled=False),
    "nothing": contextlib.nullcontext,
    "deterministic": lambda: deterministic(),
    "hooks of what is saved": lambda: torch.autograd.graph.save_on_cpu(),
}


def nothing(*given: Any) -> None:
    """Of prepared calls: there is none."""


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_calls_go_around_the_dispatcher(name: str, calls: list[str]) -> None:
    with PLAIN[name]():
        got = norm(X)
        own = norm(torch.nn.Parameter(X), torch.nn.Parameter(GAMMA))
        strided = norm(X.transpose(0, 1))
    assert calls == ["short"] * 3
    for result in (got, own.detach(), strided.transpose(0, 1)):
        same(result, WANT)
    assert own.requires_grad is (name not in ("no_grad", "inference_mode"))
    assert got.is_inference() is (name == "inference_mode")


@pytest.mark.parametrize("name", PLAIN)
def test_both_ways_give_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, dtypes and gradients: autocast, too, casts nothing of a norm in either."""
    results = []
    for watched in (False, True):
        if watched:
            for module in (_norms, _operators):
                monkeypatch.setattr(module, "is_watched", lambda tensors: True)
            unknown: Any = types.SimpleNamespace(
                run=nothing, run_unwatched=nothing, signature=nothing
            )
            for operation in _norms._CALLS:
                monkeypatch.setitem(_norms._CALLS, operation, unknown)
        x, gamma = X.clone().requires_grad_(), GAMMA.clone().requires_grad_()
        with PLAIN[name]():
            out = [
                *OURS.rms_norm_fwd(x, gamma, residual=DY),
                *OURS.layer_norm_fwd(x, gamma, residual=DY),
                OURS.softmax(x),
                OURS.flash_attn_func(*(X.reshape(1, 4, 6, 32),) * 3),
            ]
        for got in [y for y in out if y.requires_grad]:
            out += torch.autograd.grad(got, (x, gamma), DY, retain_graph=True, allow_unused=True)
        results.append(out)
    for a, b in zip(*results, strict=True):
        assert (a is None) is (b is None)
        if a is not None:
            assert (a.dtype, a.requires_grad) == (b.dtype, b.requires_grad)
            same(a.detach(), b.detach())


def test_a_thread_of_its_own(calls: list[str]) -> None:
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(norm(X)))
    thread.start()
    thread.join()
    assert calls == ["short"]
    same(got[0], WANT)


class Dispatches(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Dispatches, Functions])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_modes_see_operators(mode: Any, requires_grad: bool) -> None:
    with mode() as watching:
        got = norm(X.clone().requires_grad_(requires_grad))
    assert OPERATOR in watching.seen
    same(got.detach(), WANT)


def test_a_default_device_is_a_mode(calls: list[str]) -> None:
    with torch.device("cpu"):
        same(norm(X), WANT)
    assert calls == ["torch's"]


class Wrapped(torch.Tensor):
    """Has dispatch of its own."""

    seen: ClassVar[list[Any]] = []

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        cls.seen.append(function)

        def plain(x: Any) -> Any:
            return x.inner if isinstance(x, cls) else x

        results = function(*tree_map(plain, args), **tree_map(plain, kwargs or {}))
        return tree_map(lambda x: cls(x) if isinstance(x, torch.Tensor) else x, results)


class Named(torch.Tensor):
    """Has functions of its own."""

    seen: ClassVar[list[Any]] = []

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        cls.seen.append(function)
        return super().__torch_function__(function, types, args, kwargs or {})


def test_subclasses_see_operators() -> None:
    for place in (0, 1):
        Wrapped.seen.clear()
        Named.seen.clear()
        given = [X, GAMMA]
        given[place] = Wrapped(given[place])
        got = norm(*given)
        assert OPERATOR in Wrapped.seen
        assert type(got) is Wrapped
        same(got.inner, WANT)
        given = [X, GAMMA]
        given[place] = given[place].as_subclass(Named)
        got = norm(*given)
        assert OPERATOR in Named.seen
        assert type(got) is Named
        same(got.as_subclass(torch.Tensor), WANT)


def test_backward_operators_see_what_hooks_make_of_saved_tensors() -> None:
    x = X.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(
        lambda saved: saved, lambda saved: saved.as_subclass(Named)
    ):
        Named.seen.clear()
        norm(x).backward(DY)
    assert torch.ops.aiter_attn.rms_norm_bwd.default in Named.seen
    y = X.clone().requires_grad_()
    norm(y).backward(DY)
    same(x.grad.as_subclass(torch.Tensor), y.grad)


def test_fake_tensors(calls: list[str]) -> None:
    with FakeTensorMode() as mode:
        made = norm(torch.empty(2, 32), torch.empty(32))
    outside = norm(mode.from_tensor(X), mode.from_tensor(GAMMA))
    assert [type(y) for y in (made, outside)] == [FakeTensor] * 2
    assert outside.shape == X.shape
    assert calls == ["torch's"] * 2
    assert norm(X.to("meta"), GAMMA.to("meta")).is_meta


def test_graphs_have_operators() -> None:
    traced = make_fx(lambda x: norm(x))(X)
    assert OPERATOR in [node.target for node in traced.graph.nodes]
    same(traced(2 * X), norm(2 * X))
    exported = torch.export.export(Module(), (X,))
    assert OPERATOR in [node.target for node in exported.graph.nodes]
    same(exported.module()(2 * X).detach(), norm(2 * X))
    torch.compiler.reset()
    graphs: list[Any] = []

    def backend(module: Any, _: Any) -> Any:
        graphs.append(module)
        return module.forward

    same(torch.compile(norm, fullgraph=True, backend=backend)(X), WANT)
    (module,) = graphs
    assert OPERATOR in [node.target for node in module.graph.nodes]


class Module(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gamma = torch.nn.Parameter(GAMMA)

    def forward(self, x: torch.Tensor) -> Any:
        return norm(x, self.gamma)


def test_profilers_see_operators(calls: list[str]) -> None:
    with torch.autograd.profiler.profile() as profile:
        norm(X)
    assert calls == ["torch's"]
    assert "aiter_attn::rms_norm_fwd" in [event.name for event in profile.function_events]


def test_transforms() -> None:
    same(torch.vmap(norm)(X), WANT)
    same(torch.vmap(norm, in_dims=1, out_dims=1)(X), WANT)
    same(torch.func.functionalize(norm)(X), WANT)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^x: torch\.func differentiates by it"):
        torch.func.grad(lambda x: norm(x).sum())(X)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^x: has a tangent"):
        torch.func.jvp(norm, (X,), (X,))


def test_lazy_negatives() -> None:
    both = torch.complex(DY, X)
    negative = both.conj().imag
    assert negative.is_neg()
    same(norm(negative), norm(-X))
    weight = torch.complex(GAMMA, GAMMA).conj().imag
    same(norm(X, weight), norm(X, -GAMMA))


def test_what_is_changed_in_place() -> None:
    """As of torch's own functions: what a backward pass needs may not be changed before it."""
    x, gamma = X.clone().requires_grad_(), GAMMA.clone().requires_grad_()
    want = torch.autograd.grad(norm(x, gamma), (x, gamma), DY)
    y = norm(x, gamma)
    y.add_(1)  # which it does not need
    for got, value in zip(torch.autograd.grad(y, (x, gamma), DY), want, strict=True):
        same(got, value)
    leaf = X.clone().requires_grad_()
    copy = leaf.clone()
    y = norm(copy, gamma)
    copy.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = OURS.softmax(leaf)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_views_that_overlap_and_what_shares_memory() -> None:
    broadcast = X[:1].expand(4, 6, 32)
    same(norm(broadcast), norm(broadcast.clone()))
    same(OURS.rms_norm(X, GAMMA, residual=X)[1], X + X)


def test_second_derivatives_are_refused() -> None:
    for function, name in ((norm, "rms_norm_bwd"), (OURS.softmax, "softmax_bwd")):
        x = X.clone().requires_grad_()
        (dx,) = torch.autograd.grad((function(x) * DY).sum(), x, create_graph=True)
        with pytest.raises(aiter_attn.UnsupportedError, match=rf"^aiter_attn::{name}: has no der"):
            dx.sum().backward()


def test_numbers_and_arguments_are_read() -> None:
    same(OURS.rms_norm(X, GAMMA, epsilon=1), OURS.rms_norm(X, GAMMA, epsilon=1.0))
    same(OURS.softmax(X, scale=2), OURS.softmax(X, scale=2.0))
    with pytest.raises(TypeError, match="epsilon"):
        OURS.rms_norm(X, GAMMA, epsilon=[1.0])
    with pytest.raises(TypeError, match="scale"):
        OURS.softmax(X, scale=[1.0])
    with pytest.raises(TypeError, match=r"^x: None; allowed beside torch tensors"):
        OURS.rms_norm(None, GAMMA)
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        OURS.rms_norm(X, GAMMA, out=X)


def test_a_call_that_is_not_differentiated_makes_y_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No statistics; and the operator, which has them, gives the same y."""
    made: list[Any] = []
    forward = _norms.norms.forward

    def seen(*arguments: Any, **more: Any) -> Any:
        made.append(forward(*arguments, **more))
        return made[-1]

    monkeypatch.setattr(_norms.norms, "forward", seen)
    _norms._prepared._KEPT.clear()
    for _ in range(2):  # the second is remembered
        same(OURS.rms_norm(X, GAMMA), OPERATOR(X, GAMMA, None, 1e-6, False)[0])
        assert OURS.layer_norm(X, GAMMA).shape == X.shape
    assert [[x is not None for x in results] for results in made] == [
        [True, False, False, False],
        [True, False, True, False],
        [True, False, False, False],
    ]


def test_a_torch_without_what_is_asked_takes_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_watched, "WATCHER", None)
    monkeypatch.setitem(_norms._CALLS, "rms_norm", _C.PreparedCalls(None, {}, "", 3, (), None))
    assert _watched.is_watched((X,))
    same(norm(X), WANT)


def test_prepared_calls_refuse_what_is_none() -> None:
    calls = _C.PreparedCalls(_watched.WATCHER, {}, "of none", 2, (), None)
    with pytest.raises(TypeError, match="2 tensors come first; given: 1 arguments"):
        calls.signature(X)
    assert calls.run(X, GAMMA) is None
    # A number that is neither float nor bool is left to what reads it.
    kept: Any = {calls.signature(X, GAMMA, 1.0): "no prepared pass"}
    calls = _C.PreparedCalls(_watched.WATCHER, kept, "of none", 2, (), None)
    assert calls.run_unwatched(X, GAMMA, 1) is None
    with pytest.raises(RuntimeError):
        calls.run_unwatched(X, GAMMA, 1.0)
    with pytest.raises(TypeError, match='no function is named "modes"'):
        _C.Watcher()  # type: ignore[call-arg]
