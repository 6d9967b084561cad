# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Producers of arrays that do not tell the truth: a lie is an error, never an access."""

from __future__ import annotations

import unittest.mock
from typing import Any

import aiter_attn
import numpy
import pytest

from tests.support.python.calls import (
    LSE,
    OUT,
    K,
    Q,
    Refusal,
    backward,
    check_refused,
    draw,
    flash,
    forward,
)
from tests.support.python.dlpack_exporter import KDL_CPU, KDL_CUDA, KDL_ROCM, Exporter, Standard

FAR = 2**62
# Fields of a capsule's tensor, and the messages about them.
FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "ndim below 0": ({"ndim": -1}, "ndim is -1; allowed: 0 to 64"),
    "ndim below 0 without a shape": ({"ndim": -1, "shape": None}, "ndim is -1; allowed: 0 to 64"),
    "an absurd ndim": ({"ndim": 2**31 - 1}, "ndim is 2147483647; allowed: 0 to 64"),
    "no shape": ({"shape": None}, "shape is NULL; allowed: ndim extents, here 4"),
    "an extent below 0": ({"shape": (2, -5, 4, 8)}, "shape[1] is -5; allowed: 0 or more"),
    "no data": ({"data": None}, "data is NULL; allowed: an address, as the array has entries"),
    "no bits": ({"bits": 0}, "dtype.bits is 0; allowed: 1 or more"),
    "no lanes": ({"lanes": 0}, "dtype.lanes is 0; allowed: 1"),
    "vectors": ({"lanes": 4}, "dtype.lanes is 4; allowed: 1"),
    "a stride beyond 64 bits": (
        {"shape": (2, 5, 4, 8), "strides": (FAR, 1, 1, 1)},
        f"strides[0] is {FAR}; allowed: strides that stay in the address space over 2 entries of "
        "2 bytes",
    ),
    "a stride that overflows over its entries": (
        {"shape": (2, 5, 4, 8), "strides": (1, FAR, 1, 1)},
        f"strides[1] is {FAR}; allowed: strides that stay",
    ),
    "the least stride": ({"strides": (-(2**63), 1, 1, 1)}, f"strides[0] is {-(2**63)}; allowed"),
    "strides that overflow together": (
        {"shape": (2, 2, 2, 2), "strides": (FAR // 2 - 1, FAR // 2 - 1, FAR // 2 - 1, 1)},
        f"strides[2] is {FAR // 2 - 1}; allowed: strides that stay",
    ),
    "entries before the address space": (
        {"strides": (-(2**60), 1, 1, 1)},
        "byte_offset is 0; allowed: an offset from data with which all entries",
    ),
    "an offset beyond the address space": (
        {"byte_offset": 2**64 - 1},
        f"byte_offset is {2**64 - 1}; allowed: an offset from data",
    ),
    "extents beyond 64 bits": (
        {"shape": (2, FAR, FAR, 8), "strides": None},
        f"shape[2] is {FAR}; allowed: extents whose product fits 64 bits",
    ),
}


@pytest.mark.parametrize("version", [(1, 0), None], ids=["1.0", "before 1.0"])
@pytest.mark.parametrize("wrong", FIELDS)
def test_fields_of_a_capsule(wrong: str, version: tuple[int, int] | None) -> None:
    fields, message = FIELDS[wrong]
    exporter = Exporter(Q, version=version, fields=fields)
    with pytest.raises(ValueError, match=r"^q: Exporter\.__dlpack__\(\): ") as caught:
        forward(q=exporter)
    assert message in str(caught.value)
    assert exporter.released == 1


@pytest.mark.parametrize("strides", [(0, 0, 0, 0), (FAR, FAR, FAR, 7)], ids=["zeros", "huge"])
@pytest.mark.parametrize("shape", [(0, 5, 4, 8), (2, 0, 4, 8)])
@pytest.mark.parametrize("data", [None, 0x1000])
def test_an_empty_array_has_any_strides_and_data(
    shape: tuple[int, ...], strides: tuple[int, ...], data: int | None
) -> None:
    def empty(*shape: int, dtype: Any = numpy.float16) -> Exporter:
        array = numpy.zeros(shape, dtype)
        return Exporter(array, fields={"strides": strides[: len(shape)], "data": data})

    k = draw(shape[0], 7, 2, 8)
    out, lse = empty(*shape), empty(shape[0], 4, shape[1], dtype=numpy.float32)
    q, dq = empty(*shape), empty(*shape)
    assert forward(q=q, k=k, v=k, out=out, lse=lse) == (out, lse)
    dk, dv = numpy.ones_like(k), numpy.ones_like(k)
    backward(dout=out, q=q, k=k, v=k, out=out, lse=lse, dq=dq, dk=dk, dv=dv)
    assert not dk.any()
    assert not dv.any()


class NoCapsule(Exporter):
    def __init__(self, what: Any) -> None:
        super().__init__(K)
        self.what = what

    def __dlpack__(self, **_: Any) -> Any:
        return self.what


class Subclass(numpy.ndarray):
    """Of int8, and tells another dtype."""

    dtype = numpy.dtype("float32")  # type: ignore[assignment]


WRONG: dict[str, Refusal] = {
    "DLPack of the future": (
        forward,
        {"k": Exporter(K, version=(2, 0))},
        ValueError,
        "k: Exporter.__dlpack__(): major version 2; allowed: 1",
    ),
    "nothing for a capsule": (
        forward,
        {"k": NoCapsule(None)},
        TypeError,
        "k: NoCapsule.__dlpack__(): NoneType is no DLPack capsule; allowed: one that the DLPack",
    ),
    "a number for a capsule": (
        forward,
        {"k": NoCapsule(5)},
        TypeError,
        "k: NoCapsule.__dlpack__(): int is no DLPack capsule",
    ),
    "an array for a capsule": (
        backward,
        {"dq": NoCapsule(K)},
        TypeError,
        "dq: NoCapsule.__dlpack__(): numpy.ndarray is no DLPack capsule",
    ),
    # Devices.
    "no device": (
        forward,
        {"q": Exporter(Q, told=())},
        TypeError,
        "q: Exporter.__dlpack_device__(): (); allowed: two integers (device type, device id)",
    ),
    "a number for a device": (
        forward,
        {"k": Exporter(K, told=5)},
        TypeError,
        "k: Exporter.__dlpack_device__(): 5; allowed: two integers (device type, device id)",
    ),
    "names for a device": (
        forward,
        {"k": Exporter(K, told=("a", "b"))},
        TypeError,
        "k: Exporter.__dlpack_device__(): ('a', 'b'); allowed: two integers",
    ),
    "a device beyond 32 bits": (
        forward,
        {"q": Exporter(Q, device=(KDL_ROCM, 0), told=(KDL_ROCM, 2**40))},
        ValueError,
        "q: Exporter is on ROCm:1099511627776 by __dlpack_device__(), but on ROCm:0 by its",
    ),
    "a GPU's memory told to be the host's": (
        forward,
        {"k": Exporter(K, device=(KDL_CUDA, 1), told=(KDL_CPU, 0))},
        ValueError,
        "k: Exporter is on CPU by __dlpack_device__(), but on CUDA:1 by its DLPack capsule; both",
    ),
    "host memory told to be a GPU's": (
        forward,
        {"q": Exporter(Q, told=(KDL_ROCM, 0)), "stream": 1},
        ValueError,
        "q: Exporter is on ROCm:0 by __dlpack_device__(), but on CPU by its DLPack capsule",
    ),
    "another GPU's memory": (
        forward,
        {"q": Exporter(Q, device=(KDL_ROCM, 1), told=(KDL_ROCM, 0))},
        ValueError,
        "q: Exporter is on ROCm:0 by __dlpack_device__(), but on ROCm:1 by its DLPack capsule",
    ),
    # Objects that are no arrays at all.
    "numpy's class": (
        flash,
        {"q": numpy.ndarray},
        TypeError,
        "q: the class ndarray is no array; pass an array of it",
    ),
    "a producer's class": (flash, {"k": Exporter}, TypeError, "k: the class Exporter is no array"),
    "a mock": (
        flash,
        {"k": unittest.mock.NonCallableMock(spec=numpy.ndarray)},
        TypeError,
        "k: NonCallableMock is no array",
    ),
    # numpy's subclasses are read by their memory.
    "a subclass of another dtype": (
        forward,
        {name: numpy.zeros((1, 4, 1, 8), numpy.int8).view(Subclass) for name in ("q", "k", "v")},
        TypeError,
        "q: dtype int8; allowed: float16, bfloat16, and on the CPU float32",
    ),
    # Results that have no memory to be written.
    "an lse without memory": (
        forward,
        {"lse": Exporter(LSE.copy(), fields={"data": None})},
        ValueError,
        "lse: Exporter.__dlpack__(): data is NULL",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_refused(wrong: str) -> None:
    check_refused(WRONG[wrong])


def test_no_device_at_all() -> None:
    exporter = Exporter(Q)
    exporter.told = None
    with pytest.raises(TypeError, match=r"^q: Exporter\.__dlpack_device__\(\): None; allowed: two"):
        forward(q=exporter)


def test_pinned_host_memory_may_be_told_as_such_or_not() -> None:
    forward(k=Exporter(K, device=(3, 0), told=(KDL_CPU, 0)), v=Exporter(K, device=(11, 1)))


def fortran(shape: tuple[int, ...], dtype: Any) -> Any:
    return numpy.zeros(shape, dtype, order="F" if dtype == numpy.float32 else "C")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            fortran,
            r"lse: Standard's namespace made it with shape \(2, 4, 5\), .* strides \(1, 2, 8",
        ),
        (lambda shape, dtype: numpy.zeros((*shape, 1), dtype), "out: Standard's namespace made it"),
        (lambda shape, _: numpy.zeros(shape, "int32"), "out: Standard's .* dtype int32 "),
    ],
    ids=["Fortran order", "another shape", "another dtype"],
)
def test_results_that_a_namespace_makes_are_checked(make: Any, message: str) -> None:
    q, k, v = (Standard(x, make) for x in (Q, K, K))
    with pytest.raises(TypeError, match=f"^{message}.*; pass .*= with shape .* to mha_fwd"):
        aiter_attn.flash_attn_func(q, k, v)


def test_who_cannot_make_results_is_told_which_function_takes_them() -> None:
    q, k = Exporter(Q), Exporter(K)
    with pytest.raises(TypeError, match=r"^out: .*pass out= with .* to mha_fwd, mha_varlen_fwd$"):
        aiter_attn.flash_attn_func(q, k, k)
    with pytest.raises(TypeError, match=r"^dq: .*pass dq= with .* to mha_bwd, mha_varlen_bwd$"):
        backward(q=q, k=k, v=k, dout=Q, out=draw(*Q.shape), lse=LSE)


def test_the_reader_takes_what_it_should() -> None:
    out, lse = numpy.ones_like(OUT[..., :8]), numpy.ones_like(LSE)
    flat = {"strides": None, "byte_offset": 0}
    forward(v=Exporter(K, fields=flat), out=Exporter(out, fields=flat), lse=Exporter(lse))
    assert not out.any()
    numpy.testing.assert_allclose(lse, numpy.log(7.0), rtol=1e-6)
