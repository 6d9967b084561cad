# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax, on the CPU: its arrays are immutable, so results are written by numpy and handed over.

On GPUs XLA does not learn when work of others that reads an array is done, and may hand its memory
out again before. So those are refused; aiter_attn.jax takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aiter_attn import _C
from aiter_attn._core.adapters.generic import GenericAdapter, device_name
from aiter_attn._core.errors import UnsupportedError


class Adapter(GenericAdapter):
    writable = False
    exact = True
    hands_over = True

    def device(self, name: str, array: Any) -> tuple[int, int]:
        if isinstance(array, self.module.core.Tracer):
            raise UnsupportedError(
                f"{name}: is being traced (jax.jit, jax.grad, ...), but this function takes "
                "concrete arrays; for programs there are aiter_attn.jax.flash_attn_func and "
                "flash_attn_varlen_func"
            )
        device = super().device(name, array)
        if device[0] != _C.DEVICE_CPU:
            raise UnsupportedError(
                f"{name}: a jax array on {device_name(device)}, whose memory jax may use again "
                "before this function's kernels are done; of jax, it takes arrays on the CPU "
                "(jax.device_put(x, jax.devices('cpu')[0])); flash_attn_func, "
                "flash_attn_varlen_func and aiter_attn.jax's functions take those on AMD GPUs"
            )
        return device

    def empty(
        self, name: str, like: Any, shape: Sequence[int], dtype: str | None, stream: int | None
    ) -> Any:
        import numpy  # jax has it

        return numpy.empty(tuple(shape), dtype or like.dtype)

    def full(self, name: str, like: Any, shape: Sequence[int], value: int) -> Any:
        return self.module.numpy.full(shape, value, "int32", device=like.device)

    def integers(self, name: str, like: Any, numbers: Sequence[int]) -> Any:
        import numpy

        return self.module.device_put(numpy.array(numbers, "int32"), like.device)

    def copy(self, name: str, array: Any) -> Any:
        import numpy

        return numpy.array(array)

    def result(self, array: Any, like: Any) -> Any:
        return self.module.device_put(array, like.device)

    def seen_as(self, name: str, array: Any, dtype: str) -> Any:
        return array.view(self.module.numpy.dtype(dtype))
