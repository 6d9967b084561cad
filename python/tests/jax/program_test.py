# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.jax in jax's programs, on four CPU devices: numbers against the definition in float64,
each transformation against calls without it, and refusals while jax traces."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import aiter_attn
import aiter_attn.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from aiter_attn._cli import selftest
from aiter_attn.jax import _ffi
from jax.sharding import NamedSharding, PartitionSpec

flash_attn_func = aiter_attn.jax.flash_attn_func
flash_attn_varlen_func = aiter_attn.jax.flash_attn_varlen_func


@dataclasses.dataclass(frozen=True)
class Options:
    """A call's options, and their effect on the scores of one sequence."""

    causal: bool = False
    window_size: tuple[int, int] = (-1, -1)
    softcap: float = 0.0
    softmax_scale: float | None = None

    def given(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def draw(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def qkv(batch: int = 2, heads: tuple[int, int] = (4, 2)) -> list[np.ndarray]:
    return [draw(1, batch, 9, heads[0], 16), draw(2, batch, 11, heads[1], 16),
            draw(3, batch, 11, heads[1], 8)]  # fmt: skip


def softmax64(q: Any, k: Any, v: Any, options: Options, bias: Any = 0.0, sink: Any = None) -> Any:
    """The definition, [batch, seqlen, heads, size], in float64 and differentiable by jax."""
    q, k, v, bias = (jnp.asarray(x, jnp.float64) for x in (q, k, v, bias))
    k, v = (jnp.repeat(x, q.shape[2] // x.shape[2], 2) for x in (k, v))
    scale = options.softmax_scale or q.shape[-1] ** -0.5
    scores = jnp.einsum("bihd,bjhd->bhij", q, k) * scale
    if options.softcap:
        scores = options.softcap * jnp.tanh(scores / options.softcap)
    at = jnp.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1]
    key = jnp.arange(k.shape[1])
    left, right = options.window_size
    right = 0 if options.causal else right
    seen = (left < 0) | (key >= at - left)
    seen &= (right < 0) | (key <= at + right)
    scores = jnp.where(seen, scores + bias, -jnp.inf)
    if sink is not None:  # a score more, whose weight is left out
        column = jnp.asarray(sink, jnp.float64)[None, :, None, None]
        scores = jnp.concatenate([scores, jnp.broadcast_to(column, (*scores.shape[:3], 1))], -1)
    weights = jax.nn.softmax(scores, -1)[..., : k.shape[1]]
    return jnp.einsum("bhij,bjhe->bihe", weights, v)


def weighted(function: Callable[..., Any], weights: Any) -> Callable[..., Any]:
    return lambda *arrays: (function(*arrays) * weights).sum()


def close(got: Any, want: Any) -> None:
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=2e-5)


_OPTIONS = [
    Options(),
    Options(causal=True),
    Options(window_size=(3, 1), softmax_scale=0.3),
    Options(softcap=2.0, causal=True),
]


@pytest.mark.parametrize("options", _OPTIONS, ids=str)
def test_numbers_and_gradients(options: Options) -> None:
    arrays, weights = qkv(), draw(4, 2, 9, 4, 8)

    def ours(*given: Any) -> Any:
        return flash_attn_func(*given, **options.given())

    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else _x64():
        want = softmax64(*arrays, options)
        wanted = jax.grad(weighted(lambda *x: softmax64(*x, options), weights), (0, 1, 2))(*arrays)
    close(jax.jit(ours)(*arrays), want)
    close(jax.jit(jax.grad(weighted(ours, weights), (0, 1, 2)))(*arrays), wanted)


def _x64() -> Any:
    from jax.experimental import enable_x64

    return enable_x64()


@pytest.mark.parametrize("shape", [(2, 4, 9, 11), (1, 4, 1, 11), (1, 1, 9, 11), (2, 1, 1, 11)])
def test_the_gradient_of_a_bias_is_summed_where_it_serves_all(shape: tuple[int, ...]) -> None:
    arrays, weights = [*qkv(), draw(5, *shape)], draw(4, 2, 9, 4, 8)

    def ours(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return flash_attn_func(q, k, v, bias=bias)

    def definition(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return softmax64(q, k, v, Options(), bias)

    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else _x64():
        wanted = jax.grad(weighted(definition, weights), (0, 1, 2, 3))(*arrays)
    close(jax.jit(jax.grad(weighted(ours, weights), (0, 1, 2, 3)))(*arrays), wanted)
    # The bias's gradient is computed only where it is asked for.
    program = jax.jit(jax.grad(weighted(ours, weights))).lower(*arrays).as_text()
    assert "bias_grad = 0" in program


SINK = np.array([0.5, -1.0, 2.0, 0.25], np.float32)


@pytest.mark.parametrize("options", _OPTIONS[:3], ids=str)
def test_a_sink_and_its_gradient(options: Options) -> None:
    arrays, weights = [*qkv(), SINK], draw(4, 2, 9, 4, 8)

    def ours(q: Any, k: Any, v: Any, sink: Any) -> Any:
        return flash_attn_func(q, k, v, sink=sink, **options.given())

    def definition(q: Any, k: Any, v: Any, sink: Any) -> Any:
        return softmax64(q, k, v, options, sink=sink)

    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else _x64():
        want = definition(*arrays)
        wanted = jax.grad(weighted(definition, weights), (0, 1, 2, 3))(*arrays)
    close(jax.jit(ours)(*arrays), want)
    close(jax.jit(jax.grad(weighted(ours, weights), (0, 1, 2, 3)))(*arrays), wanted)
    close(jax.jit(jax.grad(weighted(ours, weights), 3))(*arrays), wanted[3])
    close(jax.jit(jax.grad(weighted(ours, weights), 0))(*arrays), wanted[0])


def test_a_sink_gives_what_the_package_gives() -> None:
    arrays, weights, bias = qkv(), draw(4, 2, 9, 4, 8), draw(5, 1, 4, 9, 11)
    options = {"dropout_p": 0.3, "rng_state": (5, 2**63)}

    def ours(q: Any, k: Any, v: Any, bias: Any, sink: Any) -> Any:
        return flash_attn_func(q, k, v, bias=bias, sink=sink, **options)

    got = jax.jit(jax.grad(weighted(ours, weights), (0, 1, 2, 3, 4)))(*arrays, bias, SINK)
    given = options | {"bias": bias, "sink": SINK}
    out, lse = aiter_attn.mha_fwd(*arrays, **given)
    close(ours(*arrays, bias, SINK), out)
    close(got, aiter_attn.mha_bwd(weights, *arrays, out, lse, bias_grad=True, **given))
    # A window of which the first rows see no key: their lse is the sink.
    given = {"window_size": (0, 0), "return_attn_probs": True, "sink": SINK}
    q, k, v = arrays[0], arrays[1][:, :5], arrays[2][:, :5]
    _, lse, _ = flash_attn_func(q, k, v, **given)
    close(lse, aiter_attn.flash_attn_func(q, k, v, **given)[1])
    np.testing.assert_array_equal(lse[0, :, 0], SINK)
    starts_q, starts_k = np.array([0, 3, 3, 10], np.int32), np.array([0, 5, 9, 20], np.int32)
    q, k, v = draw(1, 10, 4, 16), draw(2, 20, 2, 16), draw(3, 20, 2, 16)
    packed, weights = (q, k, v, starts_q, starts_k), draw(4, 10, 4, 16)

    def varlen(*x: Any) -> Any:
        return flash_attn_varlen_func(*x[:5], 7, 11, causal=True, sink=x[5])

    got = jax.jit(jax.grad(weighted(varlen, weights), (0, 1, 2, 5)))(*packed, SINK)
    more = {"causal": True, "sink": SINK}
    out, lse = aiter_attn.mha_varlen_fwd(*packed, 7, 11, **more)
    of_keys = packed[3:]
    close(got, aiter_attn.mha_varlen_bwd(weights, q, k, v, out, lse, *of_keys, 7, 11, **more))


def test_a_sink_in_mapped_and_sharded_programs() -> None:
    (q, k, v), weights = qkv(heads=(4, 4)), draw(4, 2, 9, 4, 8)
    loss = weighted(lambda q, k, v, sink: flash_attn_func(q, k, v, sink=sink), weights)
    stacked = np.stack([q, 2 * q]), np.stack([SINK, SINK + 1])
    got = jax.jit(jax.vmap(jax.grad(loss, (0, 3)), (0, None, None, 0)))(
        stacked[0], k, v, stacked[1]
    )
    each = [jax.grad(loss, (0, 3))(one, k, v, sink) for one, sink in zip(*stacked, strict=True)]
    close(got, jax.tree.map(lambda *x: np.stack(x), *each))

    wanted = jax.value_and_grad(loss, (0, 1, 2, 3))(q, k, v, SINK)
    mesh = mesh_of(x=2, y=2)
    sharding = NamedSharding(mesh, PartitionSpec("x", None, "y"))
    given = [jax.device_put(x, sharding) for x in (q, k, v)]
    given.append(jax.device_put(SINK, NamedSharding(mesh, PartitionSpec("y"))))
    close(jax.jit(jax.value_and_grad(loss, (0, 1, 2, 3)))(*given), wanted)

    # Each device has batch entries of its own, and all have the sinks.
    on, all_have = PartitionSpec("x"), PartitionSpec()
    mapped = _shard_map()(
        lambda q, k, v, sink: flash_attn_func(q, k, v, sink=sink),
        mesh=mesh,
        in_specs=(on, on, on, all_have),
        out_specs=on,
    )
    close(
        jax.jit(jax.value_and_grad(weighted(mapped, weights), (0, 1, 2, 3)))(q, k, v, SINK), wanted
    )


def test_sinks_that_are_none() -> None:
    arrays = qkv()
    with pytest.raises(ValueError, match=r"^sink: shape \(2,\); allowed here: \(4,\)"):
        flash_attn_func(*arrays, sink=SINK[:2])
    with pytest.raises(TypeError, match=r"^sink: dtype float16; allowed: float32"):
        jax.jit(flash_attn_func)(*arrays, sink=SINK.astype(np.float16))


def test_lengths_by_cu_seqlens() -> None:
    starts_q, starts_k = np.array([0, 3, 3, 10], np.int32), np.array([0, 5, 9, 20], np.int32)
    q, k, v = draw(1, 10, 4, 16), draw(2, 20, 2, 16), draw(3, 20, 2, 16)
    weights = draw(4, 10, 4, 16)

    def ours(q: Any, k: Any, v: Any, starts_q: Any, starts_k: Any) -> Any:
        return flash_attn_varlen_func(q, k, v, starts_q, starts_k, 7, 11, causal=True)

    given = (q, k, v, starts_q, starts_k)
    plain = aiter_attn.flash_attn_varlen_func(*given, 7, 11, causal=True)
    close(jax.jit(ours)(*given), plain)
    got = jax.jit(jax.grad(weighted(ours, weights), (0, 1, 2)))(*given)
    out, lse = aiter_attn.mha_varlen_fwd(*given, 7, 11, causal=True)
    close(
        got, aiter_attn.mha_varlen_bwd(weights, q, k, v, out, lse, *given[3:], 7, 11, causal=True)
    )


def test_options_that_the_package_has_give_the_same() -> None:
    arrays, slopes = qkv(), np.array([0.5, 0.25, 0.125, 1.0], np.float32)
    for options in ({"alibi_slopes": slopes, "causal": True},
                    {"dropout_p": 0.3, "rng_state": (5, 2**63)}):  # fmt: skip
        got = jax.jit(lambda *x, options=options: flash_attn_func(*x, **options))(*arrays)
        close(got, aiter_attn.flash_attn_func(*arrays, **options))
    # By words that are traced, too.
    state = np.array([5, 2**63], np.uint64)
    words = jnp.asarray(state.view(np.uint32))
    weights, options = draw(4, 2, 9, 4, 8), {"dropout_p": 0.3}
    got = jax.jit(
        jax.grad(
            lambda q, k, v, words: (
                flash_attn_func(q, k, v, rng_state=words, **options) * weights
            ).sum(),
            (0, 1, 2),
        )
    )(*arrays, words)
    result = aiter_attn.mha_fwd(*arrays, rng_state=state, **options)
    want = aiter_attn.mha_bwd(weights, *arrays, *result, rng_state=state, **options)
    close(got, want)
    out, lse, probs = flash_attn_func(*arrays, return_attn_probs=True)
    close((out, lse), aiter_attn.mha_fwd(*arrays))
    assert probs.shape == (0,)


def test_the_weights_that_dropout_keeps() -> None:
    arrays, bias = qkv(), draw(5, 1, 4, 9, 11)
    options = {"dropout_p": 0.3, "rng_state": (5, 2**63), "return_attn_probs": True}
    want = np.asarray(aiter_attn.flash_attn_func(*arrays, **options)[2])
    assert want.dtype == np.uint8

    def ours(*x: Any) -> Any:
        out, _, kept = flash_attn_func(*x, bias=bias, **options)
        return out.sum(), kept

    sharded = jax.device_put(arrays[0], NamedSharding(mesh_of(x=2, y=2), PartitionSpec("x")))
    for q in (arrays[0], sharded):
        _, kept = jax.jit(ours)(q, *arrays[1:])
        np.testing.assert_array_equal(kept, want)
    (_, kept), gradients = jax.jit(jax.value_and_grad(ours, (0, 1, 2), has_aux=True))(*arrays)
    np.testing.assert_array_equal(kept, want)
    close(gradients, jax.grad(lambda *x: ours(*x)[0], (0, 1, 2))(*arrays))

    starts_q, starts_k = np.array([0, 3, 3, 10], np.int32), np.array([0, 5, 9, 20], np.int32)
    q, k, v = draw(1, 10, 4, 16), draw(2, 20, 2, 16), draw(3, 20, 2, 16)
    given = (q, k, v, starts_q, starts_k)
    got = jax.jit(lambda *x: flash_attn_varlen_func(*x, 7, 11, **options))(*given)
    wanted = aiter_attn.flash_attn_varlen_func(*given, 7, 11, **options)
    close(got[:2], wanted[:2])
    np.testing.assert_array_equal(got[2], wanted[2])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_dtypes(dtype: str) -> None:
    arrays = [x.astype(jnp.dtype(dtype)) for x in qkv()]
    got = flash_attn_func(*arrays)
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.asarray(got), aiter_attn.flash_attn_func(*arrays))


def test_vmap_adds_batch_entries() -> None:
    (q, k, v), weights = qkv(), draw(4, 2, 9, 4, 8)
    stacked = np.stack([q, 2 * q, -q]), np.stack([k, k + 1, k - 1])
    for bias in (draw(5, 4, 9, 11)[None], draw(5, 2, 4, 9, 11)):

        def ours(q: Any, k: Any, v: Any, bias: Any = bias) -> Any:
            return flash_attn_func(q, k, v, causal=True, bias=bias)

        gradient = jax.grad(weighted(ours, weights), (0, 1, 2))
        for function in (ours, gradient):
            got = jax.jit(jax.vmap(function, (0, 0, None)))(*stacked, v)
            each = [function(*pair, v) for pair in zip(*stacked, strict=True)]
            close(got, jax.tree.map(lambda *x: np.stack(x), *each))


def test_rematerialisation_gives_the_same_gradients() -> None:
    arrays, weights = qkv(), draw(4, 2, 9, 4, 8)
    loss = weighted(lambda *x: flash_attn_func(*x, causal=True), weights)
    close(jax.jit(jax.grad(jax.checkpoint(loss)))(*arrays), jax.grad(loss)(*arrays))


def mesh_of(**axes: int) -> Any:
    devices = np.array(jax.devices()).reshape(tuple(axes.values()))
    return jax.sharding.Mesh(devices, tuple(axes))


@pytest.mark.parametrize(
    ("heads", "axis", "part"), [((4, 4), "y", 2), ((4, 2), "y", 2), ((4, 1), None, 4)]
)
def test_sharded_programs_split_batch_and_heads(
    heads: tuple[int, int], axis: str | None, part: int
) -> None:
    arrays, weights = qkv(heads=heads), draw(4, 2, 9, 4, 8)
    loss = weighted(lambda *x: flash_attn_func(*x, causal=True), weights)
    wanted = jax.value_and_grad(loss, (0, 1, 2))(*arrays)
    sharding = NamedSharding(mesh_of(x=2, y=2), PartitionSpec("x", None, axis))
    given = [jax.device_put(x, sharding) for x in arrays]
    compiled = jax.jit(jax.value_and_grad(loss, (0, 1, 2))).lower(*given).compile()
    close(compiled(*given), wanted)
    program = compiled.as_text()
    assert f"f32[1,9,{part},8]" in program  # of one device, batch entry and heads
    assert "all-gather" not in program
    for gradient in compiled(*given)[1]:
        assert gradient.sharding.is_equivalent_to(sharding, 4)


def test_what_devices_cannot_share_is_gathered() -> None:
    """Two heads of keys among four devices; and dropout, whose weights follow from the place."""
    arrays = qkv()
    for sharding, options in (
        (NamedSharding(mesh_of(y=4), PartitionSpec(None, None, "y")), {}),
        (NamedSharding(mesh_of(x=2, y=2), PartitionSpec("x")),
         {"dropout_p": 0.5, "rng_state": (3, 0)}),
    ):  # fmt: skip
        q = jax.device_put(arrays[0], sharding)
        got = jax.jit(lambda *x, options=options: flash_attn_func(*x, **options))(q, *arrays[1:])
        close(got, flash_attn_func(*arrays, **options))


def _shard_map() -> Callable[..., Any]:
    if hasattr(jax, "shard_map"):
        return jax.shard_map
    from jax.experimental.shard_map import shard_map

    return shard_map


def test_shard_map() -> None:
    arrays, weights = qkv(batch=4), draw(4, 4, 9, 4, 8)
    mesh, on = mesh_of(x=4), PartitionSpec("x")

    def whole(q: Any, k: Any, v: Any) -> Any:
        return flash_attn_func(q, k, v, causal=True)

    for keys in (on, PartitionSpec()):  # also keys that all devices share
        given = arrays if keys == on else [arrays[0], *(x[:1] for x in arrays[1:])]
        mapped = _shard_map()(whole, mesh=mesh, in_specs=(on, keys, keys), out_specs=on)
        repeated = [jnp.broadcast_to(x, (4, *x.shape[1:])) for x in given]
        close(jax.jit(mapped)(*given), whole(*repeated))
        got = jax.jit(jax.grad(weighted(mapped, weights), (0, 1, 2)))(*given)
        wanted = jax.grad(weighted(whole, weights), (0, 1, 2))(*repeated)
        wanted = [w.sum(0, keepdims=True) if len(x) == 1 else w
                  for w, x in zip(wanted, given, strict=True)]  # fmt: skip
        close(got, wanted)


def test_pmap() -> None:
    arrays, weights = qkv(batch=8), draw(4, 2, 9, 4, 8)

    def whole(q: Any, k: Any, v: Any) -> Any:
        return flash_attn_func(q, k, v, causal=True)

    gradient = jax.grad(weighted(whole, weights), (0, 1, 2))
    got = jax.pmap(gradient)(*(x.reshape(4, 2, *x.shape[1:]) for x in arrays))
    for i in range(4):
        close([x[i] for x in got], gradient(*(x[2 * i : 2 * i + 2] for x in arrays)))


def test_donated_operands_are_read_first() -> None:
    arrays = [jnp.asarray(x) for x in (draw(1, 2, 9, 4, 16), draw(2, 2, 9, 4, 16))]
    want = np.asarray(flash_attn_func(arrays[0], arrays[1], arrays[1]))
    program = jax.jit(lambda q, k: flash_attn_func(q, k, k), donate_argnums=0)
    np.testing.assert_array_equal(np.asarray(program(*arrays)), want)


def test_a_call_is_one_custom_call_and_no_callback() -> None:
    text = str(jax.make_jaxpr(flash_attn_func)(*qkv()))
    assert text.count("ffi_call[") == 1 and "callback" not in text
    program = jax.jit(flash_attn_func).lower(*qkv()).as_text()
    assert program.count("stablehlo.custom_call @aiter_attn_fwd") == 1


def rms(x: Any, gamma: Any, residual: Any = 0.0) -> Any:
    """The definition, in float64."""
    total, gamma = (jnp.asarray(a, jnp.float64) for a in (x + residual, gamma))
    return total / jnp.sqrt((total**2).mean(-1, keepdims=True) + 1e-6) * gamma


def layer(x: Any, gamma: Any, beta: Any) -> Any:
    x, gamma, beta = (jnp.asarray(a, jnp.float64) for a in (x, gamma, beta))
    spread = jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (x - x.mean(-1, keepdims=True)) / spread * gamma + beta


def test_norms_and_their_gradients() -> None:
    x, residual, weights = (draw(i, 2, 5, 24) for i in range(3))
    gamma, beta = draw(4, 24), draw(5, 24)

    def with_residual(x: Any, gamma: Any, residual: Any) -> Any:
        y, total = aiter_attn.jax.rms_norm(x, gamma, residual=residual)
        return y + 3 * total  # the residual stream has a gradient of its own

    def its_definition(x: Any, gamma: Any, residual: Any) -> Any:
        return rms(x, gamma, residual) + 3 * (x + residual)

    for ours, definition, arrays in (
        (aiter_attn.jax.rms_norm, rms, (x, gamma)),
        (aiter_attn.jax.layer_norm, layer, (x, gamma, beta)),
        (with_residual, its_definition, (x, gamma, residual)),
    ):
        every = tuple(range(len(arrays)))
        with jax.enable_x64(True) if hasattr(jax, "enable_x64") else _x64():
            want = definition(*arrays)
            wanted = jax.grad(weighted(definition, weights), every)(*arrays)
        close(jax.jit(ours)(*arrays), want)
        close(jax.jit(jax.grad(weighted(ours, weights), every))(*arrays), wanted)


def test_vmap_of_norms() -> None:
    stacked, gammas = draw(1, 3, 5, 24), draw(2, 3, 24)

    def gradient(x: Any, gamma: Any) -> Any:
        return jax.grad(lambda *a: (aiter_attn.jax.rms_norm(*a) ** 2).sum(), (0, 1))(x, gamma)

    for function in (aiter_attn.jax.rms_norm, gradient):
        for axes in ((0, None), (0, 0), (None, 0)):
            given = [
                a if axis == 0 else a[0] for a, axis in zip((stacked, gammas), axes, strict=True)
            ]
            each = [
                function(*(a[i] if axis == 0 else a for a, axis in zip(given, axes, strict=True)))
                for i in range(3)
            ]
            got = jax.jit(jax.vmap(function, axes))(*given)
            close(got, jax.tree.map(lambda *a: np.stack(a), *each))


def test_passes_of_norms_are_the_packages() -> None:
    """The custom calls of the passes against the package's own functions, bit by bit."""
    x, residual, dy, dh = (draw(i, 2, 5, 24) for i in range(4))
    gamma, beta = draw(4, 24), draw(5, 24)
    front = aiter_attn.jax
    given: Any
    for given in ({}, {"residual": residual, "zero_centred": True, "epsilon": 1e-3}):
        more = {n: v for n, v in given.items() if n == "zero_centred"}
        rms_of, layer_of = (
            jax.jit(lambda *a, f=f: f(*a, **given))  # noqa: B023  # called at once
            for f in (front.rms_norm_fwd, front.layer_norm_fwd)
        )
        rms_want = aiter_attn.rms_norm_fwd(x, gamma, **given)
        layer_want = aiter_attn.layer_norm_fwd(x, gamma, beta, **given)
        same(rms_of(x, gamma), rms_want)
        same(layer_of(x, gamma, beta), layer_want)
        same(front.layer_norm_fwd(x, gamma, **given),
             aiter_attn.layer_norm_fwd(x, gamma, **given))  # fmt: skip
        _, rstd, h = rms_want
        arrays = dy, x if h is None else h, gamma, rstd
        same(front.rms_norm_bwd(*arrays, dh=dh, **more),
             aiter_attn.rms_norm_bwd(*arrays, dh=dh, **more))  # fmt: skip
        _, mean, rstd, h = layer_want
        arrays = dy, x if h is None else h, gamma, mean, rstd
        same(front.layer_norm_bwd(*arrays, **more), aiter_attn.layer_norm_bwd(*arrays, **more))


def test_norms_without_gamma() -> None:
    """As with a gamma of 1, in values and in gradients; of what is not there, there is none."""
    x, residual, weights, beta = (*(draw(i, 2, 5, 24) for i in range(3)), draw(4, 24))
    ones = np.ones(24, np.float32)
    front = aiter_attn.jax

    def of_rms(gamma: Any) -> Any:
        return lambda x, residual: sum(front.rms_norm(x, gamma, residual=residual))

    def of_layer(gamma: Any) -> Any:
        return lambda x, beta: front.layer_norm(x, gamma, beta)

    for norm, other in ((of_rms, residual), (of_layer, beta)):
        same(jax.jit(norm(None))(x, other), norm(ones)(x, other))
        got, want = (jax.grad(weighted(norm(gamma), weights), (0, 1)) for gamma in (None, ones))
        same(jax.jit(got)(x, other), want(x, other))
    half = jnp.asarray(x, jnp.bfloat16)
    assert front.rms_norm(half, None).dtype == jnp.bfloat16
    same(front.layer_norm(half, None, jnp.asarray(beta)), front.layer_norm(half, ones, beta))
    y, rstd, h = front.rms_norm_fwd(x, None)
    same((y, rstd, h), aiter_attn.rms_norm_fwd(x, None))
    dx, dgamma = front.rms_norm_bwd(weights, x, None, rstd)
    assert dgamma is None
    same(dx, aiter_attn.rms_norm_bwd(weights, x, None, rstd)[0])
    _, mean, rstd, _ = front.layer_norm_fwd(x, None)
    dx, dgamma, dbeta = front.layer_norm_bwd(weights, x, None, mean, rstd)
    assert dgamma is None
    want = aiter_attn.layer_norm_bwd(weights, x, None, mean, rstd)
    same((dx, dbeta), (want[0], want[2]))
    with pytest.raises(ValueError, match=r"^zero_centred: True without gamma"):
        front.rms_norm(x, None, zero_centred=True)


def same(got: Any, want: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, got, want)


MASK = np.random.default_rng(9).integers(0, 2, (2, 5, 7), np.uint8)


@pytest.mark.parametrize(
    "given",
    [{}, {"scale": 0.5}, {"causal": True}, {"mask": MASK}, {"mask": MASK[:1], "scale": 2.0}],
    ids=str,
)
def test_softmax_and_its_gradient(given: Any) -> None:
    x, weights = draw(1, 4, 5, 7), draw(2, 4, 5, 7)
    front = aiter_attn.jax
    want = aiter_attn.softmax_fwd(x, **given)
    assert (want == 0).any() == bool(given.keys() & {"causal", "mask"})
    same(jax.jit(lambda x: front.softmax(x, **given))(x), want)
    same(front.softmax_fwd(x, **given), want)
    less = {name: value for name, value in given.items() if name != "mask"}
    dx = aiter_attn.softmax_bwd(weights, want, **less)
    same(front.softmax_bwd(weights, want, **less), dx)
    same(jax.jit(jax.grad(weighted(lambda x: front.softmax(x, **given), weights)))(x), dx)
    # Mapped over, every slice is as by itself: also one of a single row, which has no other above.
    same(jax.vmap(lambda x: front.softmax(x, **given))(np.stack([x, -x])),
         np.stack([want, aiter_attn.softmax_fwd(-x, **given)]))  # fmt: skip
    if "mask" not in given:
        rows = jax.vmap(lambda x: front.softmax(x, **given))(x[0])
        same(rows, np.stack([aiter_attn.softmax_fwd(row, **given) for row in x[0]]))


_Q, _K, _V = qkv()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: flash_attn_func(_Q, _K, _V[:, :5]), ValueError, r"^v: shape .* seqlen 5 instead"),
        (lambda: flash_attn_func(_Q, _K[..., :1, :], _V), ValueError, r"^v: .* heads 2 instead"),
        (lambda: flash_attn_func(_Q.astype(int), _K, _V), TypeError, r"^q: dtype int32; allowed"),
        (lambda: flash_attn_func(_Q, _K, _V, dropout_p=0.1), ValueError, "^rng_state: None, but"),
        (
            lambda: flash_attn_func(_Q, _K, _V, 0.1, rng_state=np.zeros(2, np.uint64)),
            TypeError,
            "^rng_state: dtype uint64; allowed: uint32",
        ),
        (
            lambda: flash_attn_func(_Q, _K, _V, 0.1, rng_state=np.zeros(2, np.uint32)),
            ValueError,
            r"^rng_state: shape \(2,\)",
        ),
        (lambda: flash_attn_func(_Q, _K, _V, 1.5), ValueError, r"^dropout_p: 1\.5; allowed"),
        (lambda: aiter_attn.jax.rms_norm(_Q, _K[0, 0, 0, :3]), ValueError, r"^gamma: shape \(3,\)"),
        (lambda: aiter_attn.jax.rms_norm(_Q, _K[0, 0, 0], epsilon=-1), ValueError, "^epsilon: -1"),
        (
            lambda: aiter_attn.jax.rms_norm_bwd(_Q, _Q, _K[0, 0, 0], _Q[..., 0, 0]),
            ValueError,
            r"^rstd: shape .* allowed here: \(",
        ),
        (lambda: aiter_attn.jax.softmax(_Q, scale=np.inf), ValueError, "^scale: inf"),
        (lambda: aiter_attn.jax.softmax(_Q[0, 0, 0, 0]), ValueError, r"^x: shape \(\)"),
        (lambda: aiter_attn.jax.softmax(_Q > 0), TypeError, "^x: dtype bool"),
        (
            lambda: aiter_attn.jax.softmax(_Q, mask=np.zeros((1, 2, 3), np.uint8)),
            ValueError,
            r"^mask: shape \(1, 2, 3\)",
        ),
        (
            lambda: aiter_attn.jax.softmax(_Q, mask=np.zeros((1, 2, 3), np.int32)),
            TypeError,
            "^mask: dtype int32",
        ),
        (
            lambda: aiter_attn.jax.softmax(
                _Q, mask=np.zeros((1, *_Q.shape[2:]), np.uint8), causal=True
            ),
            ValueError,
            "^mask: with causal=True",
        ),
        (
            lambda: aiter_attn.jax.softmax_bwd(_Q[0], _Q),
            ValueError,
            "^dy: shape ",
        ),
        (
            lambda: aiter_attn.jax.rms_norm(_Q, _K[0, 0, 0], residual=_K),
            ValueError,
            "^residual: shape",
        ),
        (
            lambda: jax.grad(
                lambda s: flash_attn_func(_Q, _K, _V, alibi_slopes=s).sum()
            )(np.ones(4, np.float32)),
            aiter_attn.UnsupportedError,
            "^alibi_slopes: differentiated",
        ),
        (
            lambda: jax.hessian(lambda q: flash_attn_func(q, _K, _V).sum())(jnp.asarray(_Q)),
            aiter_attn.UnsupportedError,
            r"^aiter_attn.jax: a second derivative.*jax.grad",
        ),
        (
            lambda: jax.hessian(
                lambda x: aiter_attn.jax.rms_norm(x, _K[0, 0, 0]).sum()
            )(jnp.asarray(_Q)),
            aiter_attn.UnsupportedError,
            "^aiter_attn.jax: a second derivative",
        ),
        (
            lambda: flash_attn_func(_Q, _K, _V, 0.1, rng_state=jax.random.key(0)),
            TypeError,
            r"^rng_state: dtype key<fry>; allowed: uint32 \(4,\), such as jax.random.bits",
        ),
        (lambda: flash_attn_func(_Q, None, _V), TypeError, "^k: None is no array of jax"),
        (
            lambda: jax.vmap(
                lambda q: flash_attn_func(q, _K, _V, 0.1, rng_state=(0, 0))
            )(jnp.asarray(_Q)[None]),
            aiter_attn.UnsupportedError,
            "^jax.vmap with dropout_p",
        ),
        (
            lambda: jax.vmap(
                lambda q: flash_attn_varlen_func(
                    q, _K[0], _V[0], np.array([0, 9], np.int32), np.array([0, 11], np.int32), 9, 11
                )
            )(jnp.asarray(_Q)),
            aiter_attn.UnsupportedError,
            "^jax.vmap of a varlen call",
        ),
    ],
)  # fmt: skip
def test_refused_while_jax_traces(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        jax.jit(call).lower()


def test_selftest_covers_jax() -> None:
    rows = list(selftest.run(framework="jax"))
    assert len(rows) > 20
    assert [row.case for row in rows if not row.passed or len(row.errors) != 5] == []


def test_an_old_jax_is_refused_by_its_version() -> None:
    with pytest.raises(ImportError, match=r"jax 0\.5\.3; allowed: 0\.6 or newer"):
        _ffi.check_version((0, 5, 3))


def test_the_package_itself_imports_no_jax() -> None:
    program = "import aiter_attn, sys; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
