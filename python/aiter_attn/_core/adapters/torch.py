# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""torch: results from its caching allocator, on the current stream of the tensor's device."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

from aiter_attn import _C
from aiter_attn._core.adapters.generic import SAME_STREAM, GenericAdapter
from aiter_attn._core.errors import UnsupportedError

_WORDS: Final = 2  # of a barrier
_OF_GRAPHS: Final = 1 << 14  # barriers of a device


class Adapter(GenericAdapter):
    exact = True
    stream_ordered = True

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        names = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2")
        self._fp8 = {getattr(module, name): name for name in names if hasattr(module, name)}
        self._barriers: dict[tuple[int, int], Any] = {}
        # By device: memory of the barriers of captured calls, and those that are taken.
        self._of_graphs: dict[int, tuple[Any, Any]] = {}
        # The functions behind tensors' own methods of DLPack, where nothing is to be waited for.
        # Those take longer than all else that a small call costs.
        self._export = module.utils.dlpack.to_dlpack
        self._places: dict[Any, tuple[int, int]] = {}
        # Private in torch, and what it lacks where it knows no GPUs: a stream without its object.
        self.raw_stream = getattr(module._C, "_cuda_getCurrentRawStream", self._stream_of)
        # Private, too: the public ones make sure each time that CUDA is ready.
        self.current_device = getattr(module._C, "_cuda_getDevice", module.cuda.current_device)
        self.is_capturing = getattr(
            module._C, "_cuda_isCurrentStreamCapturing", module.cuda.is_current_stream_capturing
        )

    def device(self, name: str, array: Any) -> tuple[int, int]:
        place = self._places.get(array.device)
        if place is None:
            place = self._places[array.device] = super().device(name, array)
        return place

    def current_stream(self, array: Any) -> int:
        return int(self.raw_stream(array.get_device()))

    def _stream_of(self, index: int) -> int:
        return int(self.module.cuda.current_stream(index).cuda_stream)

    def borrow(
        self, name: str, array: Any, device: tuple[int, int], stream: int | None
    ) -> _C.Tensor:
        if array.requires_grad and self.module.is_grad_enabled():
            raise UnsupportedError(
                f"{name}: requires_grad is set, and this function records no autograd graph; "
                "call a function of aiter_attn.torch, or under torch.no_grad()"
            )
        if array.is_neg():
            raise ValueError(
                f"{name}: its negative bit is set, which DLPack does not tell; pass a tensor "
                "without it: resolve_neg() gives one"
            )
        if array.dtype in self._fp8:
            # Not every version exports fp8; all export its bytes.
            kind, array = self._fp8[array.dtype], array.view(self.module.uint8)
            return self.borrow(name, array, device, stream).seen_as(kind)
        if stream is None or stream == SAME_STREAM:
            try:
                return _C.Tensor.from_dlpack(self._export(array))
            except (BufferError, RuntimeError, ValueError) as error:
                check_layout(self.module, name, array)
                raise ValueError(
                    f"{name}: {type(array).__name__} refuses DLPack: {error}"
                ) from error
        if array.requires_grad:
            array = array.detach()
        with self.module.cuda.device(array.device):
            return super().borrow(name, array, device, stream)

    def empty(
        self, name: str, like: Any, shape: Sequence[int], dtype: str | None, stream: int | None
    ) -> Any:
        torch = self.module
        kind = like.dtype if dtype is None else getattr(torch, dtype)
        if stream is None:
            return like.new_empty(shape, dtype=kind)
        # The allocator hands memory out again in the order of the stream it was taken on.
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, like.device)):
            return like.new_empty(shape, dtype=kind)

    def full(self, name: str, like: Any, shape: Sequence[int], value: int) -> Any:
        torch = self.module
        return torch.full(tuple(shape), value, dtype=torch.int32, device=like.device)

    def integers(self, name: str, like: Any, numbers: Sequence[int]) -> Any:
        torch = self.module
        return torch.tensor(numbers, dtype=torch.int32, device=like.device)

    def copy(self, name: str, array: Any) -> Any:
        return array.detach().clone(memory_format=self.module.contiguous_format)

    def barrier(self, array: Any, stream: int) -> Any:
        index = array.get_device()
        if self._captures_on(index):
            return self._barrier_of_graph(index)
        barrier = self._barriers.get((index, stream))
        if barrier is None:
            if index not in self._of_graphs:
                words = self._zeros(_WORDS * _OF_GRAPHS, array.device)
                # Graphs run on any stream.
                self.module.cuda.current_stream(array.device).synchronize()
                self._of_graphs[index] = words, itertools.count()
            barrier = self._barriers[index, stream] = self._zeros(_WORDS, array.device)
        return barrier

    def _barrier_of_graph(self, index: int) -> Any:
        """One that no other call gets: a graph may run at any time later, beside other work. None
        where this device's were not made before the capture, or are all taken: the call shares
        rows out in advance then."""
        if index not in self._of_graphs:
            return None
        words, taken = self._of_graphs[index]
        first = _WORDS * next(taken)
        return words[first : first + _WORDS] if first < _WORDS * _OF_GRAPHS else None

    def _zeros(self, count: int, device: Any) -> Any:
        return self.module.zeros(count, dtype=self.module.float32, device=device)

    def _captures_on(self, index: int) -> bool:
        """Whether the stream of a device does."""
        if self.current_device() == index:  # the usual case, without a context
            return bool(self.is_capturing())
        with self.module.cuda.device(index):
            return bool(self.is_capturing())

    def seen_as(self, name: str, array: Any, dtype: str) -> Any:
        return array.view(getattr(self.module, dtype))


def check_layout(torch: Any, name: str, tensor: Any) -> None:
    """Raises TypeError for a tensor whose memory is not that of one array."""
    # torch.compile traces this.
    if tensor.is_nested:
        raise TypeError(
            f"{name}: a nested tensor; allowed: one array; flash_attn_varlen_func takes values() "
            "of a nested tensor of layout torch.jagged, and its offsets() as int32"
        )
    if tensor.layout is not torch.strided:
        raise TypeError(
            f"{name}: layout {tensor.layout}; allowed: torch.strided: pass {name}.to_dense()"
        )
