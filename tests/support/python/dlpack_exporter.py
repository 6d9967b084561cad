# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A producer of DLPack written here, so that a test can choose every field of a capsule."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy

# Not pythonapi's: others set argument types there.
_PyCapsule_New = ctypes.PyDLL(None).PyCapsule_New
_PyCapsule_New.restype = ctypes.py_object
_PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

KDL_CPU, KDL_CUDA, KDL_ROCM = 1, 2, 10
# name -> (DLDataTypeCode, bits)
_DTYPES = {
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


# The memory that exported capsules point into: a consumer may give one back after its exporter is
# gone.
_HELD: list[Any] = []

_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


class Exporter:
    """Host memory of a numpy array, exported as the arguments say.

    Attributes:
        streams: the stream of every export, in order.
        released: how many of the exports were given back.
    """

    def __init__(
        self,
        array: numpy.ndarray[Any, Any],
        *,
        device: tuple[int, int] = (KDL_CPU, 0),
        dtype: str | None = None,
        version: tuple[int, int] | None = (1, 0),
        read_only: bool = False,
        with_strides: bool = True,
        byte_offset: int = 0,
        told: Any = None,
        fields: dict[str, Any] | None = None,
    ) -> None:
        """version None: the protocol from before DLPack 1.0, which knows no max_version.

        told: the answer of __dlpack_device__, where that is not `device`. fields: of the capsule's
        tensor, as they are to be; shape and strides are sequences, or None.
        """
        self.array = array
        self.location = device
        self.kind = dtype or array.dtype.name
        self.version = version
        self.read_only = read_only
        self.with_strides = with_strides
        self.byte_offset = byte_offset
        self.told = device if told is None else told
        self.fields = fields or {}
        self.streams: list[int | None] = []
        self.released = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.told  # type: ignore[no-any-return]  # tests tell what is none

    def __dlpack__(self, *, stream: int | None = None, **newer: Any) -> Any:
        if self.version is None and newer:
            raise TypeError(f"__dlpack__() got an unexpected argument {next(iter(newer))!r}")
        self.streams.append(stream)
        array = self.array
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        strides = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
        code, bits = _DTYPES[self.kind]
        tensor = _Tensor(
            array.ctypes.data - self.byte_offset,
            *self.location,
            array.ndim,
            code,
            bits,
            1,
            shape,
            strides if self.with_strides else None,
            self.byte_offset,
        )

        for name, value in self.fields.items():
            if name in ("shape", "strides") and value is not None:
                value = (ctypes.c_int64 * len(value))(*value)
            setattr(tensor, name, value)

        def release(_: int) -> None:
            self.released += 1

        deleter = _Deleter(release)
        managed: _Managed | _ManagedVersioned
        if self.version is None:
            managed, name = _Managed(tensor, None, deleter), b"dltensor"
        else:
            managed = _ManagedVersioned(*self.version, None, deleter, int(self.read_only), tensor)
            name = b"dltensor_versioned"
        _HELD.append((managed, deleter, array, shape, strides, name, tensor))
        return _PyCapsule_New(ctypes.addressof(managed), name, None)


class Namespace:
    """The part of the array API standard that results are made with, as bad as `make` is."""

    float32, uint8 = numpy.dtype("float32"), numpy.dtype("uint8")

    def __init__(self, make: Any) -> None:
        self.make = make

    def empty(self, shape: tuple[int, ...], *, dtype: Any, device: Any) -> Any:
        array = self.make(shape, dtype)
        return Standard(array, self.make, read_only=not array.flags.writeable)


class Standard(Exporter):
    device = "cpu"

    def __init__(self, array: Any, make: Any, **more: Any) -> None:
        super().__init__(array, **more)
        self.dtype, self.make = array.dtype, make

    def __array_namespace__(self) -> Namespace:
        return Namespace(self.make)
