# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Global memory: registered buffers and nothing else.

A buffer is any writable numpy array at an address: one that a runtime gives, or one that `register`
invents, with unmapped guard space on both sides. Any access outside of a registered buffer is a
MemoryFault that names the nearest one. A buffer may know which of its bytes were ever written.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from gfxemu.errors import MemoryFault

_GUARD = 1 << 20
_FIRST_ADDRESS = 0x7E00_0000_0000
# numpy types that move n bytes at once. complex128 only carries 16 bytes; nothing computes on it.
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


class Update(Protocol):
    """An operation that changes items of an array in place, as numpy's ufuncs do."""

    def at(self, items: np.ndarray, indices: np.ndarray, values: np.ndarray, /) -> None:
        """Where indices repeat, one value after the other."""


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
        """Fill unwritten bytes with a repeated 32-bit pattern."""
        if self.written is not None and not self.written.all():
            repeated = np.resize(np.array([pattern], np.uint32).view(np.uint8), len(self.data))
            np.copyto(self.data, repeated, where=~self.written)

    def fill(self, pattern: int) -> None:
        """Write a repeated 32-bit pattern."""
        self.words[4][...] = pattern
        rest = len(self.data) % 4
        self.data[len(self.data) - rest :] = list(pattern.to_bytes(4, "little")[:rest])

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
        a bool for every byte, False where the content counts as unwritten; stores set it.
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

    def dwords(self, address: int, count: int) -> np.ndarray:
        """[copy][dword] at a multiple of four; ordinary memory is one copy."""
        buffer = self.find(address, address + 4 * count)
        start = address - buffer.address
        return buffer.data[start : start + 4 * count].view(np.uint32)[None]

    # `copies` says which copy an address means where memory has several (Copies).

    def load(
        self, addresses: np.ndarray, size: int, copies: np.ndarray | None = None
    ) -> np.ndarray:
        """Items of `size` bytes at uint64 addresses, as WORDS[size] in the addresses' shape."""
        low, high = int(addresses.min()), int(addresses.max()) + size
        at = bisect.bisect_right(self._addresses, low) - 1
        if at < 0 or high > self._buffers[at].end:
            return self._load_apart(addresses, size, copies)
        words, offsets = self._locate(self._buffers[at], addresses, copies)
        return gather(words, offsets, size)

    def store(
        self, addresses: np.ndarray, size: int, data: np.ndarray, copies: np.ndarray | None = None
    ) -> None:
        """Write WORDS[size] items; where addresses repeat, the last one wins."""
        for buffer, chosen in self._partition(addresses, size):
            of = None if copies is None else copies[chosen]
            words, offsets = self._locate(buffer, addresses[chosen], of)
            scatter(words, offsets, size, data[chosen])
            if buffer.written is not None:
                buffer.mark_written(addresses[chosen] - np.uint64(buffer.address), size)

    def update(
        self, operation: Update, addresses: np.ndarray, data: np.ndarray,
        copies: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Atomic read-modify-writes of 32-bit items, one after the other in lane order."""
        for buffer, chosen in self._partition(addresses, 4):
            of = None if copies is None else copies[chosen]
            words, offsets = self._locate(buffer, addresses[chosen], of)
            if (offsets & np.uint64(3)).any():
                raise MemoryFault(f"misaligned atomic in {buffer}")
            operation.at(words[4].view(data.dtype), offsets >> np.uint64(2), data[chosen])

    def _locate(
        self, buffer: Buffer, addresses: np.ndarray, copies: np.ndarray | None
    ) -> tuple[dict[int, np.ndarray], np.ndarray]:
        """The words that hold a buffer, and the offsets of addresses in them."""
        return buffer.words, addresses - np.uint64(buffer.address)

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

    def _load_apart(
        self, addresses: np.ndarray, size: int, copies: np.ndarray | None
    ) -> np.ndarray:
        out = np.empty(addresses.shape, WORDS[size])
        if copies is not None:
            copies = np.broadcast_to(copies, addresses.shape)
        for buffer, chosen in self._partition(addresses, size):
            of = None if copies is None else copies[chosen]
            words, offsets = self._locate(buffer, addresses[chosen], of)
            out[chosen] = gather(words, offsets, size)
        return out

    def _complain(self, low: int, high: int) -> str:
        at = bisect.bisect_right(self._addresses, low)
        near = [str(b) for b in self._buffers[max(at - 1, 0) : at + 1]]
        where = " and ".join(near) or "none"
        return f"global access of [{low:#x}, {high:#x}) is in no buffer; nearest: {where}"


class Copies(Memory):
    """Copies of a memory, one for each poison, side by side in one array. They differ in the
    content of unwritten bytes alone. The last one replaces the memory on `commit`."""

    def __init__(self, memory: Memory, poisons: Sequence[int], uninitialised: Sequence[int]):
        self._addresses, self._originals = memory._addresses, memory._buffers
        self._next = memory._next
        starts, size = [], 0
        for buffer in self._originals:
            starts.append(size)
            size += -(-len(buffer.data) // 16) * 16
        self.size, self._count = size, len(poisons)
        data = np.empty(len(poisons) * size, np.uint8)
        self._all = _words(data)
        self._starts = dict(zip(self._addresses, starts, strict=True))
        for copy, poison in enumerate(poisons):
            self._buffers = []
            for original, start in zip(self._originals, starts, strict=True):
                part = data[copy * size + start :][: len(original.data)]
                part[...] = original.data
                written = None if original.written is None else original.written.copy()
                buffer = Buffer(original.name, original.address, part, written)
                if buffer.address in uninitialised:
                    buffer.fill(poison)
                else:
                    buffer.poison(poison)
                self._buffers.append(buffer)

    def commit(self) -> None:
        for buffer, original in zip(self._buffers, self._originals, strict=True):
            original.data[...] = buffer.data
            if original.written is not None:
                original.written[...] = buffer.written

    def dwords(self, address: int, count: int) -> np.ndarray:
        buffer = self.find(address, address + 4 * count)
        start = self._starts[buffer.address] + address - buffer.address
        copies = self._all[1].reshape(self._count, self.size)
        return copies[:, start : start + 4 * count].view(np.uint32)

    def _locate(
        self, buffer: Buffer, addresses: np.ndarray, copies: np.ndarray | None
    ) -> tuple[dict[int, np.ndarray], np.ndarray]:
        base = buffer.address - self._starts[buffer.address]
        offsets = addresses - np.uint64(base & 0xFFFF_FFFF_FFFF_FFFF)
        return self._all, offsets if copies is None else offsets + copies * np.uint64(self.size)


def _words(data: np.ndarray) -> dict[int, np.ndarray]:
    return {n: data[: len(data) // n * n].view(t) for n, t in WORDS.items()}


def gather(words: dict[int, np.ndarray], offsets: np.ndarray, size: int) -> np.ndarray:
    """Items of `size` bytes at byte offsets (uint64, already checked against the bounds)."""
    if _misaligned(offsets, size):
        item = np.empty((*offsets.shape, size), np.uint8)
        for i in range(size):
            item[..., i] = words[1][offsets + np.uint64(i)]
        return item.view(WORDS[size])[..., 0]
    return words[size].take(_item_index(offsets, size))


def scatter(words: dict[int, np.ndarray], offsets: np.ndarray, size: int, data: np.ndarray) -> None:
    if _misaligned(offsets, size):
        item = np.ascontiguousarray(data)[..., None].view(np.uint8)
        for i in range(size):
            words[1][offsets + np.uint64(i)] = item[..., i]
    else:
        words[size][_item_index(offsets, size)] = data


def _misaligned(offsets: np.ndarray, size: int) -> bool:
    return size > 1 and bool(int(np.bitwise_or.reduce(offsets, axis=None)) & (size - 1))


def _item_index(offsets: np.ndarray, size: int) -> np.ndarray:
    shift = size.bit_length() - 1
    return (offsets >> np.uint64(shift) if shift else offsets).view(np.int64)
