# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Registers of one wave of a batch of workgroups.

`Wave` number i holds wave i of every workgroup of a batch: the workgroups execute the same
instruction together, so that one numpy call does 64 lanes x B workgroups of work. They must agree
on every branch; where they do not, the scheduler splits the batch (`select`).

Vector registers are rows of one array [register][workgroup][lane]. An SGPR pair that holds a lane
mask (VCC, EXEC, the results of v_cmp) is kept as a bool array [workgroup][lane] and packed into
integers only when something reads it as a number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gfxemu import scalars
from gfxemu.pending import Pending
from gfxemu.scalars import MASK32, Condition, Scalar

if TYPE_CHECKING:
    from gfxemu.workgroup import WorkgroupBatch

LANES = 64
VCC, M0, EXEC = 106, 124, 126
MOVED = -1  # the vector register behind all others: what an instruction got from other lanes
_SGPR_COUNT = 128
LaneMask = np.ndarray

# Results of an instruction's function: None continues, a number >= 0 jumps to that index.
END, BARRIER, DIVERGED = -1, -2, -3


class Wave:
    __slots__ = (
        "_scc",
        "all_lanes",
        "copies",
        "diverged",
        "executed",
        "f",
        "flush_denormals",
        "group",
        "index",
        "lanes",
        "late",
        "lgkm_queue",
        "masks",
        "pc",
        "poison",
        "regs",
        "s",
        "scalar_poison",
        "scratch",
        "size",
        "v",
        "vm_queue",
    )  # fmt: skip

    def __init__(self, group: WorkgroupBatch, index: int, size: int, vgprs: int, scratch: int,
                 poison: Scalar, late: bool, copies: np.ndarray | None = None):  # fmt: skip
        """`copies` says which of memory.Copies each workgroup sees: uint64 [workgroup][1]."""
        self.group, self.index, self.size = group, index, size
        self.late, self.copies = late, copies
        self._set_poison(poison)
        self.set_registers(np.full((vgprs, size, LANES), self.poison, np.uint32))
        # Scratch is private to a lane: [workgroup][dword][lane], so that the usual access (every
        # lane at the same offset) is one row.
        self.scratch = np.full((size, -(-scratch // 4), LANES), self.poison[..., None], np.uint32)
        self.s: list[Scalar] = [self.scalar_poison] * _SGPR_COUNT
        self.masks: list[LaneMask | None] = [None] * (_SGPR_COUNT // 2)
        self._scc: Condition | LaneMask = 0
        self.flush_denormals = True
        self.pc = 0
        self.executed = 0
        self.diverged: np.ndarray | None = None
        self.vm_queue: list[Pending] = []
        self.lgkm_queue: list[Pending] = []
        self.set_exec_mask(np.ones((size, LANES), bool))

    def _set_poison(self, poison: Scalar) -> None:
        self.scalar_poison = poison
        as_lanes = poison if type(poison) is int else poison[:, None]
        self.poison = np.asarray(as_lanes, np.uint32)

    def copies_of(self, lanes: LaneMask | None) -> np.ndarray | None:
        """The copies of memory that these lanes see, one after the other."""
        if self.copies is None:
            return None
        copies = np.broadcast_to(self.copies, (self.size, LANES))
        return copies.reshape(-1) if lanes is None else copies[lanes]

    @property
    def active(self) -> LaneMask | None:
        """The lanes that EXEC enables; None: all of them."""
        return None if self.all_lanes else self.lanes

    def set_registers(self, regs: np.ndarray) -> None:
        self.regs = regs
        moved = np.zeros((1, *regs.shape[1:]), np.uint32)
        self.v = [*regs, *moved]
        self.f = [*regs.view(np.float32), *moved.view(np.float32)]

    # Scalar registers.

    def read32(self, i: int) -> Scalar:
        if self.masks[i >> 1] is not None:
            self._pack(i >> 1)
        return self.s[i]

    def read64(self, i: int) -> Scalar:
        if self.masks[i >> 1] is not None:
            self._pack(i >> 1)
        low, high = self.s[i], self.s[i + 1]
        if type(low) is int and type(high) is int:
            return low | high << 32
        return np.asarray(low, np.uint64) | np.asarray(high, np.uint64) << np.uint64(32)

    def write32(self, i: int, value: Scalar) -> None:
        if i >= EXEC:
            self.set_exec_bits(i, value)
            return
        if self.masks[i >> 1] is not None:
            self._pack(i >> 1)
            self.masks[i >> 1] = None
        self.s[i] = value

    def write64(self, i: int, value: Scalar) -> None:
        if i == EXEC:
            self.set_exec_mask(self.unpack(value))
            return
        self.masks[i >> 1] = None
        if type(value) is int:
            self.s[i], self.s[i + 1] = value & MASK32, value >> 32
        else:
            self.s[i], self.s[i + 1] = value & np.uint64(MASK32), value >> np.uint64(32)

    # Lane masks.

    def read_mask(self, i: int) -> LaneMask:
        mask = self.masks[i >> 1]
        return self.unpack(self.read64(i)) if mask is None else mask

    def write_mask(self, i: int, mask: LaneMask) -> None:
        if i == EXEC:
            self.set_exec_mask(mask)
        else:
            self.masks[i >> 1] = mask

    def set_exec_mask(self, mask: LaneMask) -> None:
        self.lanes = self.masks[EXEC >> 1] = mask
        self.all_lanes = bool(mask.all())

    @contextlib.contextmanager
    def only(self, mask: LaneMask) -> Iterator[None]:
        """Vector instructions write no lanes but those of `mask` meanwhile; EXEC stays."""
        lanes, all_lanes = self.lanes, self.all_lanes
        self.lanes = lanes & mask
        self.all_lanes = bool(self.lanes.all())
        try:
            yield
        finally:
            self.lanes, self.all_lanes = lanes, all_lanes

    def set_exec_bits(self, i: int, half: Scalar) -> None:
        """Write EXEC_LO or EXEC_HI."""
        low, high = (half, self.read32(EXEC + 1)) if i == EXEC else (self.read32(EXEC), half)
        both = np.asarray(low, np.uint64) | np.asarray(high, np.uint64) << np.uint64(32)
        self.set_exec_mask(self.unpack(both if both.ndim else int(both)))

    def unpack(self, value: Scalar) -> LaneMask:
        words = np.empty((self.size, 1), "<u8")
        words[:, 0] = value
        return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").view(bool)

    def _pack(self, pair: int) -> None:
        """Make s[] agree with a lane mask; the mask stays valid beside it."""
        mask = np.ascontiguousarray(self.masks[pair])
        words = np.packbits(mask, axis=1, bitorder="little").view("<u8")[:, 0]
        value = scalars.collapse(words)
        if type(value) is int:
            self.s[2 * pair], self.s[2 * pair + 1] = value & MASK32, value >> 32
        else:
            self.s[2 * pair] = value & np.uint64(MASK32)
            self.s[2 * pair + 1] = value >> np.uint64(32)

    # SCC: a condition, or a lane mask whose "any bit set" it stands for.

    @property
    def scc(self) -> Condition:
        value = self._scc
        if type(value) is int:
            return value
        if value.ndim == 2:
            value = value.any(axis=1)
        if self.size == 1:
            value = int(value[0])
        self._scc = value
        return value

    @scc.setter
    def scc(self, value: Condition | LaneMask) -> None:
        self._scc = value

    # Vector registers.

    def write_vector(self, i: int, value: np.ndarray) -> None:
        """Write 32-bit lanes (any uint32 shape that broadcasts) under EXEC."""
        if self.all_lanes:
            self.v[i][...] = value
        else:
            np.copyto(self.v[i], value, where=self.lanes)

    def write_float(self, i: int, value: np.ndarray) -> None:
        if self.all_lanes:
            self.f[i][...] = value
        else:
            np.copyto(self.f[i], value, where=self.lanes)

    def write_vector64(self, i: int, value: np.ndarray) -> None:
        """Write uint64 lanes to registers i, i+1."""
        value = np.asarray(value)
        self.write_vector(i, value.astype(np.uint32))
        self.write_vector(i + 1, (value >> np.uint64(32)).astype(np.uint32))

    # Control.

    def set_denormals(self, flush: bool) -> None:
        self.flush_denormals = flush
        self.group.denormals.flush(flush)

    def decide(self, condition: Condition, target: int, pc: int) -> int | None:
        """The outcome of the branch at `pc`, taken where `condition` holds."""
        if self.group.observer is not None:
            self.group.observer.observe(pc, "the branch", np.asarray(condition))
        if type(condition) is int:
            return target if condition else None
        if condition.all():
            return target
        if not condition.any():
            return None
        self.diverged = condition
        return DIVERGED

    def select(self, group: WorkgroupBatch, chosen: np.ndarray) -> Wave:
        """A copy of this wave for the chosen workgroups (indices) of its batch."""
        new = object.__new__(Wave)
        new.group, new.index, new.size = group, self.index, len(chosen)
        new.late = self.late
        new.copies = None if self.copies is None else self.copies[chosen]
        new._set_poison(scalars.pick(self.scalar_poison, chosen))
        new.set_registers(np.ascontiguousarray(self.regs[:, chosen]))
        new.scratch = np.ascontiguousarray(self.scratch[chosen])
        new.s = [scalars.pick(x, chosen) for x in self.s]
        new.masks = [None if m is None else m[chosen] for m in self.masks]
        new.set_exec_mask(new.masks[EXEC >> 1])
        scc = self._scc
        new._scc = scc if type(scc) is int else scc[chosen]
        new.flush_denormals = self.flush_denormals
        new.pc, new.executed, new.diverged = self.pc, self.executed, None
        new.vm_queue = [p.select(group.lds, chosen) for p in self.vm_queue]
        new.lgkm_queue = [p.select(group.lds, chosen) for p in self.lgkm_queue]
        return new
