# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn's own functions on concrete jax arrays of emulated GPUs; against float64."""

from __future__ import annotations

from typing import Any

import aiter_attn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from aiter_attn._core.options import Options
from aiter_attn.jax._calls import Static, dropout_mask

from tests.emulator.hip.emulated_hip import Runtime
from tests.support.python.attention import attention, relative_error

# Half a unit of bfloat16's last place.
_ROUNDING = 2.0**-9


def draw(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(jnp.bfloat16)


def qkv() -> list[Any]:
    return [draw(0, 1, 33, 2, 64), draw(1, 1, 47, 1, 64), draw(2, 1, 47, 1, 64)]


def turned(x: Any) -> Any:
    """A program whose result is not there yet when the call that takes it is made."""
    return jax.jit(lambda y: jnp.flip(y, 1) * 2)(x)


def attention64(*arrays: Any) -> np.ndarray:
    """out of q, k and v, without a mask."""
    batches = zip(*(np.asarray(x) for x in arrays), strict=True)
    return np.stack([attention(*batch)[0] for batch in batches])


def places(runtime: Runtime) -> set[int]:
    """The devices of our kernels, none of which was queued on a default stream."""
    ours = [x for x in runtime.launches if "fmha" in x.symbol]
    assert 0 not in {x.stream for x in ours}
    return {x.device for x in ours}


@pytest.mark.parametrize("number", [0, 1])
def test_between_programs_of_xla(runtime: Runtime, number: int) -> None:
    device = jax.devices()[number]
    arrays = qkv()
    # None of the arrays is waited for by hand, and none is kept.
    out = aiter_attn.flash_attn_func(*(turned(jax.device_put(x, device)) for x in arrays))
    assert isinstance(out, jax.Array) and out.devices() == {device} and out.dtype == jnp.bfloat16
    doubled = jax.jit(lambda x: x.astype(jnp.float32) * 2)(out)
    del out
    want = attention64(*(np.flip(x, 1) * 2 for x in arrays))
    assert relative_error(doubled, 2 * want) < 2 * _ROUNDING
    assert places(runtime) == {number}


def test_sequences_and_what_else_is_returned(runtime: Runtime) -> None:
    q, k, v = (x[0] for x in qkv())
    starts = [np.array([0, 10, 33], np.int32), np.array([0, 30, 47], np.int32)]
    given = [jax.device_put(x) for x in (q, k, v, *starts)]
    out, lse, probs = aiter_attn.flash_attn_varlen_func(*given, 23, 30, return_attn_probs=True)
    for (i, j), (m, n) in zip(((0, 10), (10, 33)), ((0, 30), (30, 47)), strict=True):
        want = attention64(q[None, i:j], k[None, m:n], v[None, m:n])
        assert relative_error(out[i:j], want[0]) < 2 * _ROUNDING
    assert lse.shape == (2, 33) and lse.dtype == jnp.float32 and probs.shape == (0,)
    assert places(runtime) == {0}


def test_a_sharded_array_runs_on_both(runtime: Runtime) -> None:
    arrays = [np.repeat(x, 2, 0) for x in qkv()]
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("batch",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    out = aiter_attn.flash_attn_func(*(jax.device_put(x, sharding) for x in arrays))
    assert relative_error(out, attention64(*arrays)) < 2 * _ROUNDING
    assert places(runtime) == {0, 1}


def test_which_weights_dropout_keeps(runtime: Runtime) -> None:
    """The mask alone: the wheel has no attention kernel with dropout."""
    state, arrays = (5, 2**63), [x.astype(np.float16) for x in qkv()]
    _, _, want = aiter_attn.flash_attn_func(
        *arrays, dropout_p=0.3, rng_state=state, return_attn_probs=True
    )
    static = Static(None, Options(dropout_p=0.3), "")
    words = np.array(state, np.uint64).view(np.uint32)
    number_kept = jax.jit(lambda *x: (kept := dropout_mask(static, *x), kept.astype(int).sum()))
    kept, number = number_kept(*map(jax.device_put, (*arrays, words)))
    np.testing.assert_array_equal(kept, want)
    assert number == want.sum()
    (launch,) = (x for x in runtime.launches if x.symbol == "attn_dropout_mask_u8")
    assert launch.stream != 0


def test_packed_arrays(runtime: Runtime) -> None:
    arrays = q, k, v = qkv()
    kv = jax.device_put(np.stack([k, v], 2))
    out = aiter_attn.flash_attn_kvpacked_func(jax.device_put(q), kv, 0.0, 0.125)
    assert relative_error(out, attention64(*arrays)) < 2 * _ROUNDING
    starts = jax.device_put(np.array([0, 47], np.int32))
    packed = jax.device_put(np.stack([k[0], k[0], v[0]], 1))
    out = aiter_attn.flash_attn_varlen_qkvpacked_func(packed, starts, 47)
    assert relative_error(out, attention64(k, k, v)[0]) < 2 * _ROUNDING
    assert places(runtime) == {0}


def test_consumers_of_dlpack_get_the_result(runtime: Runtime) -> None:
    arrays = qkv()
    out = aiter_attn.flash_attn_func(*(turned(jax.device_put(x)) for x in arrays))
    # Exported at once, as torch.from_dlpack(out) has it, and read behind that on the stream that
    # the consumer names.
    tensor = aiter_attn._C.Tensor.from_dlpack(out.__dlpack__(stream=0))
    assert (tensor.device[0], tensor.shape) == (aiter_attn._C.DEVICE_ROCM, (1, 33, 2, 64))
    seen = jax.dlpack.from_dlpack(out)
    assert seen.unsafe_buffer_pointer() == out.unsafe_buffer_pointer()
    want = attention64(*(np.flip(x, 1) * 2 for x in arrays))
    for array in (
        seen,
        np.from_dlpack(jax.device_put(out, jax.devices("cpu")[0]).view(jnp.uint16)),
    ):
        got = np.asarray(array).view(jnp.bfloat16)
        assert relative_error(got, want) < 2 * _ROUNDING


def test_refusals(runtime: Runtime) -> None:
    given = [jax.device_put(x) for x in qkv()]
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^q: is being traced .*aiter_attn\.jax"):
        jax.jit(aiter_attn.flash_attn_func)(*given)
    for call in (
        aiter_attn.mha_fwd,
        lambda q, k, v: aiter_attn.rms_norm_fwd(q, jnp.ones(64, q.dtype)),
    ):
        with pytest.raises(
            aiter_attn.UnsupportedError, match=r"^[qx]: a jax array on ROCm:0, whose"
        ):
            call(*given)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^k: given .* do not change; call"):
        aiter_attn.flash_attn_with_kvcache(*given, *given[1:], cache_seqlens=0)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^no fwd_splitkv.*=core; build with"):
        aiter_attn.flash_attn_with_kvcache(*given)
    with pytest.raises(
        ValueError, match=r"^kv: shape \(1, 47, 1, 64\); allowed: \[\.\.\., 2, heads"
    ):
        aiter_attn.flash_attn_kvpacked_func(*given[:2])
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^q_descale: given .* pass None, or"):
        aiter_attn.flash_attn_func(*given, q_descale=2.0)
    with pytest.raises(aiter_attn.UnsupportedError, match="gfx942"):
        aiter_attn.flash_attn_func(*([jnp.zeros((1, 8, 1, 520), jnp.bfloat16)] * 3))
    assert not [x for x in runtime.launches if "fmha" in x.symbol]
