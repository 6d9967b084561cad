# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Global memory: registered buffers and nothing else.

A buffer is any writable numpy array at an address: one that a runtime gives, or one that `register`
invents, with unmapped guard space on both sides. Any access outside of a registered buffer is a
MemoryFault that names the nearest one. A buffer may know which of its bytes were ever written.
"""

from __future__ import annotations

import bisect
import dataclasses

import numpy as np

from gfxemu.errors import MemoryFault

_GUARD = 1 << 20
_FIRST_ADDRESS = 0x7E00_0000_0000
# numpy types that move n bytes at once. complex128 only carries 16 bytes; nothing computes on it.
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


@dataclasses.dataclass
class Buffer:
    name: str
    address: int
    data: np.ndarray  # uint8, one dimension
    written: np.ndarray | None = None  # bool, which bytes were; None: all count as written

    def __post_init__(self) -> None:
        self.end = self.address + len(self.data)
        self.words = _words(self.data)
        self._marks = None if self.written is None else _words(self.written.view(np.uint8))

    def mark_written(self, offsets: np.ndarray, size: int) -> None:
        if self._marks is not None:
            ones = np.full((*offsets.shape, size), 1, np.uint8)
            scatter(self._marks, offsets, size, ones.view(WORDS[size])[..., 0])

    def poison(self, pattern: int) -> None:
        """Fill what nobody wrote with a repeated 32-bit pattern."""
        if self.written is not None and not self.written.all():
            repeated = np.resize(np.array([pattern], np.uint32).view(np.uint8), len(self.data))
            np.copyto(self.data, repeated, where=~self.written)

    def __str__(self) -> str:
        return f"{self.name} [{self.address:#x}, {self.end:#x})"


class Memory:
    def __init__(self) -> None:
        self._addresses: list[int] = []
        self._buffers: list[Buffer] = []
        self._next = _FIRST_ADDRESS

    def register(
        self, array: np.ndarray, name: str, address: int | None = None,
        written: np.ndarray | None = None,
    ) -> int:  # fmt: skip
        """Map a C-contiguous array; returns its device address.

        The array is used in place. Without an address one is invented, 4 KiB aligned. `written` has
        a bool for every byte, False where the content counts as nobody's; stores set it.
        """
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise ValueError(f"buffer {name} must be contiguous and writable")
        data = array.reshape(-1).view(np.uint8)
        if address is None:
            address = self._next
            self._next += (len(data) + _GUARD + 0xFFF) & ~0xFFF
        at = bisect.bisect(self._addresses, address)
        buffer = Buffer(name, address, data, written)
        before = self._buffers[at - 1] if at else None
        after = self._buffers[at] if at < len(self._buffers) else None
        if (before and before.end > address) or (after and buffer.end > after.address):
            raise ValueError(
                f"{buffer} overlaps {before if before and before.end > address else after}"
            )
        self._addresses.insert(at, address)
        self._buffers.insert(at, buffer)
        return address

    def unregister(self, address: int) -> None:
        at = bisect.bisect_left(self._addresses, address)
        if at == len(self._addresses) or self._addresses[at] != address:
            raise MemoryFault(f"no buffer starts at {address:#x}")
        del self._addresses[at], self._buffers[at]

    def buffers(self) -> list[Buffer]:
        return list(self._buffers)

    def find(self, low: int, high: int) -> Buffer:
        """The buffer that holds all bytes of [low, high)."""
        at = bisect.bisect_right(self._addresses, low) - 1
        if at >= 0 and high <= self._buffers[at].end:
            return self._buffers[at]
        raise MemoryFault(self._complain(low, high))

    def load(self, addresses: np.ndarray, size: int) -> np.ndarray:
        """Items of `size` bytes at uint64 addresses, as WORDS[size] in the addresses' shape."""
        low, high = int(addresses.min()), int(addresses.max()) + size
        at = bisect.bisect_right(self._addresses, low) - 1
        if at < 0 or high > self._buffers[at].end:
            return self._load_apart(addresses, size)
        buffer = self._buffers[at]
        offsets = addresses - np.uint64(buffer.address)
        return gather(buffer.words, offsets, size)

    def store(self, addresses: np.ndarray, size: int, data: np.ndarray) -> None:
        """Write WORDS[size] items; where addresses repeat, the last one wins."""
        for buffer, chosen in self._partition(addresses, size):
            offsets = addresses[chosen] - np.uint64(buffer.address)
            scatter(buffer.words, offsets, size, data[chosen])
            buffer.mark_written(offsets, size)

    def update(self, operation: np.ufunc, addresses: np.ndarray, data: np.ndarray) -> None:
        """Atomic read-modify-writes of 32-bit items, one after the other in lane order."""
        for buffer, chosen in self._partition(addresses, 4):
            offsets = addresses[chosen] - np.uint64(buffer.address)
            if (offsets & np.uint64(3)).any():
                raise MemoryFault(f"misaligned atomic in {buffer}")
            operation.at(buffer.words[4].view(data.dtype), offsets >> np.uint64(2), data[chosen])

    def _partition(self, addresses: np.ndarray, size: int):
        low, high = int(addresses.min()), int(addresses.max()) + size
        at = bisect.bisect_right(self._addresses, low) - 1
        if at >= 0 and high <= self._buffers[at].end:
            yield self._buffers[at], slice(None)
            return
        left = np.ones(addresses.shape, bool)
        while left.any():
            first = int(addresses[left].min())
            buffer = self.find(first, first + size)
            inside = left & (addresses < np.uint64(buffer.end))
            last = int(addresses[inside].max())
            self.find(last, last + size)
            yield buffer, inside
            left &= ~inside

    def _load_apart(self, addresses: np.ndarray, size: int) -> np.ndarray:
        out = np.empty(addresses.shape, WORDS[size])
        for buffer, chosen in self._partition(addresses, size):
            out[chosen] = gather(buffer.words, addresses[chosen] - np.uint64(buffer.address), size)
        return out

    def _complain(self, low: int, high: int) -> str:
        at = bisect.bisect_right(self._addresses, low)
        near = [str(b) for b in self._buffers[max(at - 1, 0) : at + 1]]
        where = " and ".join(near) or "none"
        return f"global access of [{low:#x}, {high:#x}) is in no buffer; nearest: {where}"


def _words(data: np.ndarray) -> dict[int, np.ndarray]:
    return {n: data[: len(data) // n * n].view(t) for n, t in WORDS.items()}


def gather(words: dict[int, np.ndarray], offsets: np.ndarray, size: int) -> np.ndarray:
    """Items of `size` bytes at byte offsets (uint64, already checked against the bounds)."""
    shift = size.bit_length() - 1
    if shift and (offsets & np.uint64(size - 1)).any():
        item = np.empty((*offsets.shape, size), np.uint8)
        for i in range(size):
            item[..., i] = words[1][offsets + np.uint64(i)]
        return item.view(WORDS[size])[..., 0]
    return words[size].take(offsets >> np.uint64(shift) if shift else offsets)


def scatter(words: dict[int, np.ndarray], offsets: np.ndarray, size: int, data: np.ndarray) -> None:
    shift = size.bit_length() - 1
    if shift and (offsets & np.uint64(size - 1)).any():
        item = np.ascontiguousarray(data)[..., None].view(np.uint8)
        for i in range(size):
            words[1][offsets + np.uint64(i)] = item[..., i]
    else:
        words[size][offsets >> np.uint64(shift) if shift else offsets] = data
