# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.jax on emulated GPUs: its custom calls beside kernels that XLA generates, in one
program, on XLA's streams; against float64."""

from __future__ import annotations

import os
from typing import Any

import aiter_attn
import aiter_attn.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.emulation.wheel.wheel_contents import KINDS
from tests.emulator.hip.emulated_hip import Runtime
from tests.support.python.attention import attention, gradients, relative_error

_ARCHS = os.environ["EMULATED_HIP_DEVICES"].split(",")
# Half a unit of bfloat16's last place.
_ROUNDING = 2.0**-9


def draw(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(jnp.bfloat16)


def qkv(batch: int = 1) -> list[Any]:
    return [draw(0, batch, 33, 2, 64), draw(1, batch, 47, 1, 64), draw(2, batch, 47, 1, 64)]


def loss(q: Any, k: Any, v: Any) -> Any:
    """With XLA's kernels on both sides of the call, and behind its gradient."""
    out = aiter_attn.jax.flash_attn_func(q * 2, k, jnp.tanh(v), causal=True)
    return (out.astype(jnp.float32) ** 2).sum() / 2


def gradients64(q: Any, k: Any, v: Any) -> list[np.ndarray]:
    """The gradients of loss, by hand."""
    of_batches = []
    for x, key, value in zip(*(np.asarray(a, np.float64) for a in (q * 2, k, v)), strict=True):
        y = np.tanh(value)
        out, _ = attention(x, key, y, causal=True)
        dx, dk, dy = gradients(out, x, key, y, causal=True)
        of_batches.append((2 * dx, dk, dy * (1 - y**2)))
    return [np.stack(each) for each in zip(*of_batches, strict=True)]


def test_a_gradient_in_one_program(runtime: Runtime) -> None:
    arrays = qkv()
    program = jax.jit(jax.grad(loss, (0, 1, 2)))
    text = program.lower(*arrays).as_text()
    assert "@aiter_attn_fwd" in text and "@aiter_attn_bwd" in text and "callback" not in text
    got = program(*arrays)
    for name, ours, want in zip("qkv", got, gradients64(*arrays), strict=True):
        error = relative_error(ours, want)
        print(f"d{name}: relative rms error {error:.1e}")
        assert error < 4 * _ROUNDING
    launched = [KINDS[launch.symbol] for launch in runtime.launches if launch.symbol in KINDS]
    backward = ["bwd_dot_do_o", "bwd_asm", "bwd_convert_dq", "sum_heads", "sum_heads"]
    assert launched == ["fwd", *backward]
    others = [launch.symbol for launch in runtime.launches if launch.symbol not in KINDS]
    print("kernels of XLA:", ", ".join(others))
    assert others
    # All on a stream of XLA's, none on the default one.
    assert 0 not in {launch.stream for launch in runtime.launches if launch.symbol in KINDS}


def test_a_sharded_gradient_runs_on_both(runtime: Runtime) -> None:
    arrays = qkv(batch=2)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("batch",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    given = [jax.device_put(x, sharding) for x in arrays]
    got = jax.jit(jax.grad(lambda *x: jax.shard_map(
        lambda *y: loss(*y)[None], mesh=mesh, in_specs=sharding.spec, out_specs=sharding.spec
    )(*x).sum(), (0, 1, 2)))(*given)  # fmt: skip
    for ours, want in zip(got, gradients64(*arrays), strict=True):
        assert relative_error(ours, want) < 4 * _ROUNDING
    on = {launch.device for launch in runtime.launches if launch.symbol in KINDS}
    assert on == {0, 1}


def test_pmap_runs_on_both(runtime: Runtime) -> None:
    arrays = qkv(batch=2)
    got = jax.pmap(jax.grad(loss, (0, 1, 2)))(*(x[:, None] for x in arrays))
    for ours, want in zip(got, gradients64(*arrays), strict=True):
        assert relative_error(ours[:, 0], want) < 4 * _ROUNDING
    on = {launch.device for launch in runtime.launches if launch.symbol in KINDS}
    assert on == {0, 1}


def test_what_no_kernel_serves_is_refused_while_jax_traces(runtime: Runtime) -> None:
    q = draw(0, 1, 8, 1, 520)
    with pytest.raises(aiter_attn.UnsupportedError, match=_ARCHS[0]):
        jax.jit(aiter_attn.jax.flash_attn_func).lower(q, q, q)
    with jax.default_device(jax.devices("cpu")[0]):
        jax.jit(aiter_attn.jax.flash_attn_func).lower(q, q, q)
    assert not runtime.launches
