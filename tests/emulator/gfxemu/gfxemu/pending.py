# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Results of memory instructions that have not arrived yet.

With late landing (checks.py) a load's destination holds poison until an s_waitcnt forces the
result out, and an LDS write is invisible to other waves until then: the worst case the hardware
may choose. CDNA3 ISA, "Manually Inserted Wait States" and S_WAITCNT: vector memory operations
count VM_CNT and return in order; LDS operations count LGKM_CNT and return in order; scalar loads
count LGKM_CNT and return in any order.

The counters have 6 and 4 bits, and an instruction that would overflow one is not issued until
there is room: more than 63 vector memory and 15 LDS operations are never under way. Compilers
rely on it and leave out the wait for an operation with that many later ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gfxemu import scalars
from gfxemu.scalars import Scalar

if TYPE_CHECKING:
    from gfxemu.lds import Lds, Place
    from gfxemu.wave import Wave


class Pending:
    """An operation that counts but has nothing left to deliver (a store, an atomic)."""

    ordered = True
    is_lds_store = False

    def land(self, wave: Wave) -> None:
        """Make the result visible."""

    def select(self, lds: Lds, chosen: np.ndarray) -> Pending:
        """The part that belongs to the chosen workgroups of a split batch."""
        return self


class VectorResult(Pending):
    """Values [register][workgroup][lane] for VGPRs from `first` on.

    Only the lanes given and only the bits given are written (d16 loads fill half a register).
    """

    def __init__(self, first: int, values: np.ndarray, lanes: np.ndarray | None,
                 bits: np.uint32 | None = None):  # fmt: skip
        self.first, self.values, self.lanes, self.bits = first, values, lanes, bits

    def land(self, wave: Wave) -> None:
        write_registers(wave, self.first, self.values, self.lanes, self.bits)

    def select(self, lds: Lds, chosen: np.ndarray) -> VectorResult:
        lanes = None if self.lanes is None else self.lanes[chosen]
        return VectorResult(self.first, self.values[:, chosen], lanes, self.bits)


def write_registers(wave: Wave, first: int, values: np.ndarray, lanes: np.ndarray | None,
                    bits: np.uint32 | None) -> None:  # fmt: skip
    destination = wave.regs[first : first + len(values)]
    if bits is not None:
        values = (destination & ~bits) | (values & bits)
    if lanes is None:
        destination[...] = values
    else:
        np.copyto(destination, values, where=lanes)


class LdsRead(VectorResult):
    """A ds_read: it must have happened before other waves write the bytes again."""

    def __init__(self, place: Place, pc: int, epoch: int, first: int, values: np.ndarray,
                 bits: np.uint32 | None = None):  # fmt: skip
        super().__init__(first, values, place.lanes, bits)
        self.place, self.pc, self.epoch = place, pc, epoch

    def land(self, wave: Wave) -> None:
        super().land(wave)
        if self.epoch != wave.group.epoch:
            wave.group.lds.note_read(wave, self.place, self.pc, late=True)

    def select(self, lds: Lds, chosen: np.ndarray) -> LdsRead:
        return LdsRead(lds.select_place(self.place, chosen), self.pc, self.epoch, self.first,
                       self.values[:, chosen], self.bits)  # fmt: skip


class ScalarResult(Pending):
    ordered = False

    def __init__(self, first: int, values: list[Scalar]):
        self.first, self.values = first, values

    def land(self, wave: Wave) -> None:
        for i, value in enumerate(self.values):
            wave.write32(self.first + i, value)

    def select(self, lds: Lds, chosen: np.ndarray) -> ScalarResult:
        return ScalarResult(self.first, [scalars.pick(v, chosen) for v in self.values])


class LdsStore(Pending):
    """An LDS write, by ds_write or by a buffer load with the lds bit.

    items[workgroup][lane] (memory.WORDS) go to a place.
    """

    is_lds_store = True

    def __init__(self, place: Place, items: np.ndarray, pc: int, epoch: int):
        self.place, self.items, self.pc, self.epoch = place, items, pc, epoch

    def land(self, wave: Wave) -> None:
        group = wave.group
        group.lds.store(wave, self.place, self.items, self.pc, self.epoch != group.epoch)

    def select(self, lds: Lds, chosen: np.ndarray) -> LdsStore:
        place = lds.select_place(self.place, chosen)
        return LdsStore(place, self.items[chosen], self.pc, self.epoch)


class Group(Pending):
    """Several results of one instruction (ds_read2, ds_write2)."""

    def __init__(self, parts: list[Pending]):
        self.parts = parts
        self.is_lds_store = parts[0].is_lds_store

    def land(self, wave: Wave) -> None:
        for part in self.parts:
            part.land(wave)

    def select(self, lds: Lds, chosen: np.ndarray) -> Group:
        return Group([p.select(lds, chosen) for p in self.parts])


RETIRED = Pending()


_VM_LIMIT, _LGKM_LIMIT = 63, 15


def issue_vector_memory(wave: Wave, pending: Pending) -> None:
    """Count an operation that VM_CNT counts."""
    wave.vm_queue.append(pending)
    if len(wave.vm_queue) > _VM_LIMIT:
        wait_vector_memory(wave, _VM_LIMIT)


def issue_lgkm(wave: Wave, pending: Pending) -> None:
    """Count an operation that LGKM_CNT counts."""
    wave.lgkm_queue.append(pending)
    if len(wave.lgkm_queue) > _LGKM_LIMIT:
        wait_lgkm(wave, _LGKM_LIMIT)


Issue = Callable[["Wave", Pending], None]


def deliver(wave: Wave, result: VectorResult, issue: Issue) -> None:
    """Land a load's result now, or poison its destination and issue it."""
    if not wave.late:
        result.land(wave)
        return
    if result.lanes is None and result.bits is None:
        wave.regs[result.first : result.first + len(result.values)] = wave.poison
    else:
        poison = np.broadcast_to(wave.poison, result.values.shape)
        write_registers(wave, result.first, poison, result.lanes, result.bits)
    issue(wave, result)


def wait_vector_memory(wave: Wave, count: int) -> None:
    """s_waitcnt vmcnt(count)"""
    queue = wave.vm_queue
    while len(queue) > count:
        queue.pop(0).land(wave)


def wait_lgkm(wave: Wave, count: int) -> None:
    """s_waitcnt lgkmcnt(count): only the results that must have arrived in every order the ISA
    allows.

    An LDS operation has arrived for certain once no more than `count` - 1 LDS operations issued
    after it could still be under way; a scalar load only when the count is zero.
    """
    queue = wave.lgkm_queue
    if count == 0:
        while queue:
            queue.pop(0).land(wave)
        return
    in_order = [p for p in queue if p.ordered]
    for pending in in_order[: max(len(in_order) - count, 0)]:
        queue.remove(pending)
        pending.land(wave)


def land_lds_stores(wave: Wave) -> None:
    """Deliver this wave's own LDS writes: its later LDS operations come after them in order."""
    for i, pending in enumerate(wave.lgkm_queue):
        if pending.is_lds_store:
            pending.land(wave)
            wave.lgkm_queue[i] = RETIRED
