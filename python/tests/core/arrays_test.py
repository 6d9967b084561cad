# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Arrays on their way in and out: views, protocols, results in the caller's framework,
lifetimes."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import aiter_attn
import ml_dtypes
import numpy
import pytest
from aiter_attn import _C

from tests.support.python.dlpack_exporter import Exporter


def draw(*shape: int, dtype: Any = numpy.float16, seed: int = 0) -> Any:
    return numpy.random.default_rng(seed).standard_normal(shape).astype(dtype)


def fresh(dtype: Any = numpy.float16) -> list[Any]:
    return [draw(2, n, heads, 8, dtype=dtype, seed=n) for n, heads in ((5, 4), (7, 2), (7, 2))]


VIEWS: dict[str, Callable[[Any], Any]] = {
    "[batch, heads, seqlen, head size] in memory": lambda x: numpy.ascontiguousarray(
        x.transpose(0, 2, 1, 3)
    ).transpose(0, 2, 1, 3),
    "[seqlen, batch, ...] in memory": lambda x: numpy.ascontiguousarray(
        x.transpose(1, 0, 2, 3)
    ).transpose(1, 0, 2, 3),
    "every other row": lambda x: numpy.repeat(x, 2, axis=1)[:, ::2],
    "backwards": lambda x: numpy.ascontiguousarray(x[:, ::-1])[:, ::-1],
    "part of wider rows": lambda x: numpy.pad(x, ((0, 0), (0, 0), (0, 0), (3, 5)))[..., 3:11],
    "read-only": lambda x: numpy.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
}


@pytest.mark.parametrize("dtype", [numpy.float32, numpy.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("view", VIEWS)
def test_views_are_read_in_place(view: str, dtype: Any) -> None:
    arrays = fresh(dtype)
    out, lse = aiter_attn.mha_fwd(*arrays, causal=True)
    dout = draw(*out.shape, dtype=dtype, seed=9)
    gradients = aiter_attn.mha_bwd(dout, *arrays, out, lse, causal=True)
    views = [VIEWS[view](x) for x in arrays]
    viewed_out, viewed_lse = aiter_attn.mha_fwd(*views, causal=True)
    numpy.testing.assert_array_equal(viewed_out, out)
    numpy.testing.assert_array_equal(viewed_lse, lse)
    viewed = aiter_attn.mha_bwd(VIEWS[view](dout), *views, VIEWS[view](out), lse, causal=True)
    for got, want in zip(viewed, gradients, strict=True):
        numpy.testing.assert_array_equal(got, want)


def test_a_broadcast_batch_is_read_in_place() -> None:
    q, k, v = fresh()
    shared = [numpy.broadcast_to(x[:1], x.shape) for x in (k, v)]
    copies = [numpy.ascontiguousarray(x) for x in shared]
    numpy.testing.assert_array_equal(
        aiter_attn.flash_attn_func(q, *shared), aiter_attn.flash_attn_func(q, *copies)
    )


def test_results_go_where_the_caller_says() -> None:
    q, k, v = fresh()
    want_out, want_lse = aiter_attn.mha_fwd(q, k, v)
    packed = numpy.zeros((2, 5, 3, 4, 8), numpy.float16)
    out, lse = packed[:, :, 1], numpy.empty((2, 4, 5), numpy.float32)
    got = aiter_attn.mha_fwd(q, k, v, out=out, lse=lse)
    assert got[0] is out
    assert got[1] is lse
    numpy.testing.assert_array_equal(packed[:, :, 1], want_out)
    assert not packed[:, :, ::2].any()
    numpy.testing.assert_array_equal(lse, want_lse)


def test_gradients_may_be_parts_of_one_array() -> None:
    q, k, v = (draw(2, 6, 2, 8, seed=i) for i in range(3))
    out, lse = aiter_attn.mha_fwd(q, k, v)
    want = aiter_attn.mha_bwd(out, q, k, v, out, lse)
    packed = numpy.empty((2, 6, 3, 2, 8), numpy.float16)
    dq, dk, dv = (packed[:, :, i] for i in range(3))
    got = aiter_attn.mha_bwd(out, q, k, v, out, lse, dq=dq, dk=dk, dv=dv)
    assert [x is y for x, y in zip(got, (dq, dk, dv), strict=True)] == [True] * 3
    for i in range(3):
        numpy.testing.assert_array_equal(packed[:, :, i], want[i])


@pytest.mark.parametrize("version", [(1, 0), (1, 3), None], ids=["1.0", "1.3", "before 1.0"])
@pytest.mark.parametrize("with_strides", [True, False], ids=["strides", "no strides"])
@pytest.mark.parametrize("byte_offset", [0, 64])
def test_any_producer_of_dlpack_will_do(
    version: tuple[int, int] | None, with_strides: bool, byte_offset: int
) -> None:
    arrays = fresh()
    want, want_lse = aiter_attn.mha_fwd(*arrays)
    out, lse = numpy.empty_like(want), numpy.empty_like(want_lse)
    exporters = [
        Exporter(x, version=version, with_strides=with_strides, byte_offset=byte_offset)
        for x in (*arrays, out, lse)
    ]
    got = aiter_attn.mha_fwd(*exporters[:3], out=exporters[3], lse=exporters[4])
    assert got[0] is exporters[3]
    numpy.testing.assert_array_equal(out, want)
    numpy.testing.assert_array_equal(lse, want_lse)
    assert [e.released for e in exporters] == [1] * 5
    assert [e.streams for e in exporters] == [[None]] * 5


@pytest.mark.parametrize("kind", [3, 11], ids=["CUDA", "ROCm"])
def test_pinned_host_memory_is_host_memory(kind: int) -> None:
    q, k, v = fresh()
    want, _ = aiter_attn.mha_fwd(q, k, v)
    out, _ = aiter_attn.mha_fwd(q, Exporter(k, device=(kind, 1)), Exporter(v, device=(kind, 0)))
    numpy.testing.assert_array_equal(out, want)


def test_bfloat16_through_dlpack() -> None:
    arrays = fresh(ml_dtypes.bfloat16)
    want, want_lse = aiter_attn.mha_fwd(*arrays)
    bits = [x.view(numpy.uint16) for x in (*arrays, numpy.empty_like(want))]
    exporters = [Exporter(x, dtype="bfloat16") for x in bits]
    aiter_attn.mha_fwd(*exporters[:3], out=exporters[3], lse=Exporter(numpy.empty_like(want_lse)))
    numpy.testing.assert_array_equal(bits[3].view(ml_dtypes.bfloat16), want)


class Namespace:
    """The part of the array API standard that results are made with."""

    float32 = numpy.dtype("float32")

    def empty(self, shape: tuple[int, ...], *, dtype: Any, device: Any) -> Any:
        assert device == "cpu"
        return StandardArray(numpy.empty(shape, dtype))


class StandardArray(Exporter):
    device = "cpu"

    def __init__(self, array: Any) -> None:
        super().__init__(array)
        self.dtype = array.dtype

    def __array_namespace__(self) -> Namespace:
        return Namespace()


def test_results_by_the_array_api_standard() -> None:
    arrays = fresh()
    want = aiter_attn.flash_attn_func(*arrays)
    got = aiter_attn.flash_attn_func(*(StandardArray(x) for x in arrays))
    assert isinstance(got, StandardArray)
    numpy.testing.assert_array_equal(got.array, want)


def test_a_producer_that_cannot_make_results_is_told_to_pass_them() -> None:
    q, k, v = (Exporter(x) for x in fresh())
    with pytest.raises(TypeError, match=r"^out: cannot be made for Exporter.*pass out= with shape"):
        aiter_attn.mha_fwd(q, k, v)
    assert [x.released for x in (q, k, v)] == [1] * 3


def test_memory_is_held_as_long_as_the_tensor() -> None:
    array = draw(1, 2, 1, 8)
    watched = weakref.ref(array)
    tensor = _C.Tensor.from_buffer(array, "float16")
    del array
    gc.collect()
    assert watched() is not None
    del tensor
    gc.collect()
    assert watched() is None

    exporter = Exporter(draw(1, 2, 1, 8))
    tensor = _C.Tensor.from_dlpack(exporter.__dlpack__())
    assert exporter.released == 0
    del tensor
    assert exporter.released == 1


def test_a_capsule_is_used_once() -> None:
    capsule = Exporter(draw(1, 2, 1, 8)).__dlpack__()
    _C.Tensor.from_dlpack(capsule)
    with pytest.raises(TypeError, match='"used_dltensor_versioned" is no unused DLPack capsule'):
        _C.Tensor.from_dlpack(capsule)


def test_other_threads_run_while_a_call_computes() -> None:
    q = draw(4, 256, 4, 64, dtype=numpy.float32)
    steps = 0
    done = threading.Event()

    def count() -> None:
        nonlocal steps
        while not done.wait(0.001):
            steps += 1

    counter = threading.Thread(target=count)
    counter.start()
    before = steps
    aiter_attn.flash_attn_func(q, q, q)
    during = steps - before
    done.set()
    counter.join()
    assert during > 0


def test_threads_do_not_see_each_others_errors() -> None:
    good, bad = draw(1, 3, 1, 8), draw(1, 3, 1, 8)
    failures: list[str] = []

    def call(index: int) -> None:
        for _ in range(50):
            try:
                aiter_attn.mha_fwd(good, good, bad, softmax_scale=float(-1 - index))
            except ValueError as error:
                if str(-1 - index) not in str(error):
                    failures.append(str(error))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
