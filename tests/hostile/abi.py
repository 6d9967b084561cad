# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The C ABI through ctypes, on memory with forbidden pages around it."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from pathlib import Path
from typing import Any

import numpy

from tests.emulation.harness.structs import structures
from tests.hostile.memory import Array

OK, INVALID_ARGUMENT, UNSUPPORTED, ABI_MISMATCH, DRIVER, OUT_OF_MEMORY = range(6)
CPU, CUDA, ROCM = 1, 2, 10
BATCH, GROUP = 1, 2
DTYPES = {1: "float16", 2: "bfloat16", 3: "float32"}
# Values that the struct_size of any struct may have (aiter/attn.h).
MOST_STRUCT_SIZE = 64 << 10

_STRUCTS = (
    "attn_tensor",
    "attn_problem",
    "attn_fwd_args",
    "attn_bwd_args",
    "attn_dropout_mask_args",
    "attn_kvcache",
    "attn_kvcache_fwd_args",
    "attn_append_kv_args",
    "attn_rows",
    "attn_norm_problem",
    "attn_norm_fwd_args",
    "attn_norm_bwd_args",
    "attn_softmax_problem",
    "attn_softmax_fwd_args",
    "attn_softmax_bwd_args",
    "RecordedCall",
)


@functools.cache
def _layout() -> Path:
    return Path(os.environ["ABI_LAYOUT"]).absolute()


@functools.cache
def struct(name: str) -> type[ctypes.Structure]:
    """Its class, by the name in C."""
    return dict(zip(_STRUCTS, structures(_layout(), _STRUCTS), strict=True))[name]


@functools.cache
def _library() -> tuple[ctypes.CDLL, str]:
    layout = ctypes.CDLL(str(_layout()))
    layout.abi_namespace.restype = ctypes.c_char_p
    prefix: bytes = layout.abi_namespace()
    return ctypes.CDLL(os.path.abspath(os.environ["ABI_LIBRARY"])), prefix.decode()


def _of_extension(name: str) -> Any:
    from aiter_attn import _C

    find = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(_C.FIND_FUNCTION)
    return ctypes.CFUNCTYPE(ctypes.c_int)(find(name.encode()))


@functools.cache
def function(name: str) -> Any:
    """attn_NAME of the library ABI_LIBRARY; without that variable, of aiter_attn's extension."""
    if "ABI_LIBRARY" in os.environ:
        library, prefix = _library()
        found = getattr(library, f"{prefix}_attn_{name}")
    else:
        found = _of_extension(name)
    if name in ("last_error", "version"):
        found.restype = ctypes.c_char_p
    return found


def last_error() -> str:
    """Raises UnicodeDecodeError where it is not UTF-8."""
    text: bytes = function("last_error")()
    return text.decode()


class Arena:
    """Memory with a page before and one behind that no access may touch.

    bytes is all of it as uint8, and address where that begins.
    """

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        size = -(-size // page) * page
        self._map = mmap.mmap(-1, size + 2 * page)
        everything = numpy.frombuffer(self._map, numpy.uint8)
        self.bytes: Array = everything[page:-page]
        self.address: int = self.bytes.ctypes.data
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for forbidden in (self.address - page, self.address + size):
            if protect(forbidden, page, 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")

    def view(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any
    ) -> Array | None:
        """The array there; strides are in elements. None where any of it lies elsewhere."""
        kind = numpy.dtype(dtype)
        try:
            return numpy.ndarray(
                shape,
                kind,
                self.bytes,
                address - self.address,
                tuple(s * kind.itemsize for s in strides),
            )
        except (ValueError, TypeError, OverflowError, MemoryError):
            return None

    def place(self, made: ctypes.Structure, at: int) -> Any:
        """A struct there, on bytes that are zero as far as any struct_size may say."""
        self.bytes[at : at + MOST_STRUCT_SIZE] = 0
        ctypes.memmove(self.address + at, ctypes.byref(made), ctypes.sizeof(made))
        return type(made).from_address(self.address + at)
