# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""numpy: read through the buffer protocol, as numpy exports no bfloat16 through DLPack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiter_attn import _C
from aiter_attn._core.adapters.generic import GenericAdapter


class Adapter(GenericAdapter):
    exact = True

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self._ndarray = module.ndarray
        self._masked = module.ma.MaskedArray
        self._float32 = module.dtype("float32")
        # dtype.name is slow.
        self._names = {module.dtype(name): name for name in ("float16", "float32", "int32")}

    def device(self, name: str, array: Any) -> tuple[int, int]:
        return _C.DEVICE_CPU, 0

    def borrow(
        self, name: str, array: Any, device: tuple[int, int], stream: int | None
    ) -> _C.Tensor:
        if type(array) is not self._ndarray:
            if isinstance(array, self._masked):
                raise TypeError(f"{name}: a masked array would lose its mask; pass its .data")
            # A subclass may tell another dtype than its memory has, and a mock has no memory.
            try:
                array = self._ndarray.view(array, self._ndarray)
            except TypeError as error:
                raise TypeError(f"{name}: {type(array).__name__} is no array: {error}") from error
        kind = self._names.get(array.dtype)
        if kind is None:
            if not array.dtype.isnative:
                raise TypeError(
                    f"{name}: dtype {array.dtype.str} is not in this machine's byte order"
                )
            kind = array.dtype.name
            # The dtypes of ml_dtypes have no buffer format; their bits do.
            if kind == "bfloat16":
                array = array.view(self.module.uint16)
            elif kind.startswith("float8"):
                array = array.view(self.module.uint8)
        try:
            return _C.Tensor.from_buffer(array, kind)
        except (BufferError, ValueError) as error:
            raise ValueError(f"{name}: {error}") from error

    def empty(
        self, name: str, like: Any, shape: Sequence[int], dtype: str | None, stream: int | None
    ) -> Any:
        kind = like.dtype if dtype is None else self._float32 if dtype == "float32" else dtype
        return self.module.empty(shape, kind)

    def full(self, name: str, like: Any, shape: Sequence[int], value: int) -> Any:
        return self.module.full(shape, value, "int32")

    def integers(self, name: str, like: Any, numbers: Sequence[int]) -> Any:
        return self.module.array(numbers, "int32")

    def copy(self, name: str, array: Any) -> Any:
        return self.module.array(array, order="C")

    def seen_as(self, name: str, array: Any, dtype: str) -> Any:
        try:
            return array.view(dtype)
        except TypeError as error:
            raise TypeError(f"{name}: numpy has no {dtype}; import ml_dtypes first") from error
