# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Programs that another process runs, by jax.export; and what XLA makes around a custom call."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import aiter_attn.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

front = aiter_attn.jax


def draw(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


Q, K, V = draw(1, 2, 6, 4, 8), draw(2, 2, 7, 2, 8), draw(3, 2, 7, 2, 8)
STATE = np.arange(4, dtype=np.uint32)
LENGTHS = np.array([3, 6], np.int32)


def attention(q: Any, k: Any, v: Any, state: Any, lengths: Any) -> Any:
    """Every custom call of attention, with gradients."""

    def loss(q: Any, k: Any, v: Any) -> Any:
        out, _, kept = front.flash_attn_func(
            q, k, v, causal=True, dropout_p=0.25, rng_state=state, return_attn_probs=True
        )
        masked = front.dot_product_attention(q, k, v, key_value_seq_lengths=lengths)
        return (out * masked).sum(), (out, kept, masked)

    return jax.grad(loss, (0, 1, 2), has_aux=True)(q, k, v)


def norms(x: Any, gamma: Any) -> Any:
    def loss(x: Any, gamma: Any) -> Any:
        y = front.softmax(front.layer_norm(front.rms_norm(x, gamma), None), causal=True)
        return (y * y).sum(), y

    return jax.grad(loss, (0, 1), has_aux=True)(x, gamma)


K_NEW, V_NEW = draw(6, 2, 2, 2, 16), draw(7, 2, 2, 2, 16)
Q16, K_CACHE, V_CACHE = draw(8, 2, 2, 4, 16), draw(9, 2, 12, 2, 16), draw(10, 2, 12, 2, 16)
TABLE = np.array([[4, 0, 3], [1, 5, 2]], np.int32)
ANGLES = draw(11, 12, 8)


def caches(q: Any, k: Any, v: Any, more_k: Any, more_v: Any, lengths: Any, angles: Any) -> Any:
    """The custom call over caches: appended to with rotation, and by chosen entries."""
    out, k, v = front.flash_attn_with_kvcache(
        q, k, v, more_k, more_v, jnp.cos(angles), jnp.sin(angles), lengths, causal=True
    )
    chosen = front.flash_attn_with_kvcache(
        q, k, v, cache_seqlens=lengths, cache_batch_idx=lengths[::-1] // 6, return_softmax_lse=True
    )
    return out, k, v, chosen


def pages(q: Any, k: Any, v: Any, more_k: Any, more_v: Any, lengths: Any, table: Any) -> Any:
    k, v = (x.reshape(6, 4, 2, 16) for x in (k, v))
    return front.flash_attn_with_kvcache(
        q, k, v, more_k, more_v, cache_seqlens=lengths, block_table=table
    )


OVER_CACHES = [Q16, K_CACHE, V_CACHE, K_NEW, V_NEW, LENGTHS]

PROGRAMS: dict[str, tuple[Any, list[np.ndarray]]] = {
    "attention": (attention, [Q, K, V, STATE, LENGTHS]),
    "caches": (caches, [*OVER_CACHES, ANGLES]),
    "pages": (pages, [*OVER_CACHES, TABLE]),
    "norms": (norms, [draw(4, 2, 6, 6), draw(5, 6)]),
}

_OTHER_PROCESS = """
import sys
import jax, jax.export
import numpy
for name in sys.argv[2:]:
    __import__(name)
folder = sys.argv[1]
given = numpy.load(folder + "/given.npz")
program = jax.export.deserialize(bytearray(open(folder + "/program", "rb").read()))
results = jax.tree.leaves(program.call(*given.values()))
numpy.savez(folder + "/results.npz", *results)
"""


def run(folder: Path, *modules: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _OTHER_PROCESS, str(folder), *modules]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_in_another_process(name: str, tmp_path: Path) -> None:
    function, arrays = PROGRAMS[name]
    compiled = jax.jit(function)
    export = jax.export.export(
        compiled, disabled_checks=front.export_checks(), platforms=["cpu", "rocm"]
    )
    (tmp_path / "program").write_bytes(export(*arrays).serialize())
    np.savez(tmp_path / "given.npz", *arrays)
    got = run(tmp_path, "aiter_attn.jax")
    assert got.returncode == 0, got.stderr
    results = np.load(tmp_path / "results.npz").values()
    for result, want in zip(results, jax.tree.leaves(compiled(*arrays)), strict=True):
        np.testing.assert_array_equal(result, want)
    # Without the custom calls XLA names the one that it lacks.
    lacks = run(tmp_path)
    assert lacks.returncode != 0
    assert re.search(r"aiter_attn_\w+", lacks.stderr)


def test_any_number_of_rows() -> None:
    """Of norms, whose extents are those of their arrays; a problem of attention is of constants."""
    export = {"disabled_checks": front.export_checks()}
    (rows,) = jax.export.symbolic_shape("b")
    x, gamma = jax.ShapeDtypeStruct((rows, 32), np.float32), draw(1, 32)
    exported = jax.export.export(jax.jit(front.rms_norm), **export)(x, gamma)
    again = jax.export.deserialize(exported.serialize())
    for count in (1, 5):
        given = draw(count, count, 32)
        np.testing.assert_array_equal(again.call(given, gamma), front.rms_norm(given, gamma))
    q = jax.ShapeDtypeStruct((rows, 6, 4, 8), np.float32)
    with pytest.raises(TypeError, match=r"^q: batch: b; allowed: an integer"):
        jax.export.export(jax.jit(lambda q: front.flash_attn_func(q, q, q)), **export)(q)


def test_what_is_not_allowed_is_named() -> None:
    with pytest.raises(ValueError, match="aiter_attn_fwd"):
        jax.export.export(jax.jit(front.flash_attn_func))(Q, K, V)


def test_a_sharded_program_is_exported_within_shard_map() -> None:
    mesh = jax.make_mesh((2,), ("x",))
    on = PartitionSpec("x")
    arrays = [jax.device_put(a, NamedSharding(mesh, on)) for a in (Q, K, V)]
    checks = {"disabled_checks": front.export_checks()}
    mapped = jax.jit(
        jax.shard_map(front.flash_attn_func, mesh=mesh, in_specs=(on,) * 3, out_specs=on)
    )
    again = jax.export.deserialize(jax.export.export(mapped, **checks)(*arrays).serialize())
    np.testing.assert_array_equal(again.call(*arrays), mapped(*arrays))
    with pytest.raises(NotImplementedError, match="host_callbacks"):
        jax.export.export(jax.jit(front.flash_attn_func), **checks)(*arrays)


def operations(function: Any, *arrays: Any) -> list[str]:
    """The names of a compiled program's operations, those within fusions too."""
    text = jax.jit(function).lower(*arrays).compile().as_text()
    return re.findall(r"^\s+(?:ROOT )?%\S+ = (?:\([^=]*\)|\S+) ([\w-]+)\(", text, re.MULTILINE)


# None of these moves an array.
PLAIN = {"bitcast", "constant", "custom-call", "get-tuple-element", "parameter", "tuple"}


def test_nothing_is_copied_around_a_custom_call() -> None:
    """Arrays go in and come out as they lie: also those that a projection makes and one takes."""
    forward = operations(lambda q, k, v: front.flash_attn_func(q, k, v, causal=True), Q, K, V)
    assert forward.count("custom-call") == 1
    assert set(forward) <= PLAIN
    dout = draw(6, *Q.shape)

    def gradients(q: Any, k: Any, v: Any, dout: Any) -> Any:
        out, pull = jax.vjp(lambda *x: front.flash_attn_func(*x, causal=True), q, k, v)
        return out, *pull(dout)

    both = operations(gradients, Q, K, V, dout)
    assert both.count("custom-call") == 2
    assert set(both) <= PLAIN
    x, gamma, dy = draw(1, 4, 16), draw(2, 16), draw(3, 4, 16)

    def of_norm(x: Any, gamma: Any, dy: Any) -> Any:
        y, rstd, _ = front.rms_norm_fwd(x, gamma)
        return y, front.rms_norm_bwd(dy, x, gamma, rstd), front.softmax(y)

    assert set(operations(of_norm, x, gamma, dy)) <= PLAIN


def test_nothing_is_copied_between_projections_and_a_custom_call() -> None:
    weights = [draw(i, 32, 32) for i in range(4)]

    def layer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
        q, k, v = ((x @ w).reshape(2, 6, 4, 8) for w in (wq, wk, wv))
        return front.flash_attn_func(q, k, v).reshape(2, 6, 32) @ wo

    made = operations(layer, draw(9, 2, 6, 32), *weights)
    assert "custom-call" in made
    assert not {"copy", "transpose"} & set(made)
    # The test sees them where they are.
    turned = operations(lambda q, k: front.flash_attn_func(q.swapaxes(1, 2), k, k), *(
        draw(1, 2, 4, 6, 8), jnp.asarray(K)))  # fmt: skip
    assert {"copy", "transpose"} & set(turned)
