# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""cupy: results from its memory pool, on the current stream of the array's device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from aiter_attn import _C
from aiter_attn._core.adapters.generic import GenericAdapter


class Adapter(GenericAdapter):
    exact = True
    stream_ordered = True

    def current_stream(self, array: Any) -> int:
        with array.device:
            return int(self.module.cuda.get_current_stream().ptr)

    def borrow(
        self, name: str, array: Any, device: tuple[int, int], stream: int | None
    ) -> _C.Tensor:
        with array.device:
            return super().borrow(name, array, device, stream)

    def empty(
        self, name: str, like: Any, shape: Sequence[int], dtype: str | None, stream: int | None
    ) -> Any:
        on_stream: AbstractContextManager[Any] = nullcontext()
        if stream is not None:
            on_stream = self.module.cuda.ExternalStream(stream, like.device.id)
        with like.device, on_stream:
            return self.module.empty(tuple(shape), dtype or like.dtype)

    def full(self, name: str, like: Any, shape: Sequence[int], value: int) -> Any:
        with like.device:
            return self.module.full(tuple(shape), value, dtype="int32")

    def copy(self, name: str, array: Any) -> Any:
        with array.device:
            return array.copy(order="C")
