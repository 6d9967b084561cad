# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax's own programs on emulated GPUs: devices, copies, and kernels that XLA generates."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.emulator.hip.emulated_hip import Runtime

_ARCHS = os.environ["EMULATED_HIP_DEVICES"].split(",")
_RNG = np.random.default_rng(0)
_X = _RNG.standard_normal((33, 40)).astype(np.float32)


def test_devices() -> None:
    found = jax.devices()
    assert [(d.platform, d.device_kind) for d in found] == [
        ("gpu", f"AMD {arch} (emulated)") for arch in _ARCHS
    ]
    assert jax.default_backend() == "gpu"


@pytest.mark.parametrize("shape", [(), (3, 4), (1000, 100)])
def test_copies_there_and_back(shape: tuple[int, ...]) -> None:
    data = np.asarray(_RNG.standard_normal(shape), np.float32)
    there = jax.device_put(data)
    assert there.devices() == {jax.devices()[0]}
    np.testing.assert_array_equal(np.asarray(there), data)


_PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "elementwise": (lambda x: x * 2 + 1, lambda x: x * 2 + 1),
    "exp": (lambda x: jnp.exp(-x), lambda x: np.exp(-x)),
    "sum": (lambda x: x.sum(), lambda x: x.sum()),
    "sum of rows": (lambda x: x.sum(1), lambda x: x.sum(1)),
    "greatest of columns": (lambda x: x.max(0), lambda x: x.max(0)),
    "transposition": (lambda x: x.T + 0, lambda x: x.T),
    "pad and slice": (lambda x: jnp.pad(x, 1)[:, 1:], lambda x: np.pad(x, 1)[:, 1:]),
    "product": (lambda x: x @ x.T, lambda x: x @ x.T),
    "softmax": (
        lambda x: jax.nn.softmax(x, -1),
        lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    ),
    "loop": (lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * 2 + i, x), lambda x: x * 8 + 4),
    "choice": (
        lambda x: jax.lax.cond(x[0, 0] > 0, lambda y: y * 2, lambda y: y - 1, x),
        lambda x: x * 2 if x[0, 0] > 0 else x - 1,
    ),
    "gradient": (jax.grad(lambda x: (x * x).sum()), lambda x: 2 * x),
}


@pytest.mark.parametrize("name", _PROGRAMS)
def test_kernels_of_xla(name: str, runtime: Runtime) -> None:
    program, definition = _PROGRAMS[name]
    got = np.asarray(jax.jit(program)(_X))
    np.testing.assert_allclose(got, definition(_X.astype(np.float64)), rtol=2e-5, atol=2e-5)
    assert runtime.launches


def test_bfloat16_is_rounded_to_nearest_even(runtime: Runtime) -> None:
    got = np.asarray(jax.jit(lambda x: x.astype(jnp.bfloat16))(_X))
    np.testing.assert_array_equal(got, _X.astype(jnp.bfloat16))
    assert runtime.launches


def test_random_numbers_are_those_of_the_cpu() -> None:
    key = jax.random.key(7)
    got = np.asarray(jax.random.normal(key, (300,)))
    with jax.default_device(jax.devices("cpu")[0]):
        expected = np.asarray(jax.random.normal(jax.random.key(7), (300,)))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_donated_memory_is_used_again(runtime: Runtime) -> None:
    x = jax.device_put(_X)
    got = jax.jit(lambda y: y + 1, donate_argnums=0)(x)
    np.testing.assert_allclose(np.asarray(got), _X + 1)
    assert x.is_deleted()


def test_a_sharded_program_runs_on_both(runtime: Runtime) -> None:
    mesh = jax.make_mesh((2,), ("batch",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    x = jax.device_put(_X[:32], sharding)
    got = jax.jit(lambda y: jnp.exp(y).sum(1))(x)
    assert got.sharding.is_equivalent_to(sharding, 1)
    expected = np.exp(_X[:32].astype(np.float64)).sum(1)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=2e-5)
    assert {launch.device for launch in runtime.launches} == {0, 1}
