# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Vector memory: buffer, global, flat and scratch instructions (CDNA3 ISA, "Vector Memory").

Raw buffers: each 32-bit component is checked by itself, `offset + 4 * i + size <= num_records` with
offset = voffset + inst_offset, a sum of 32 bits, + soffset, not wrapped any more; README.md ("Range
checks of buffers") has the sources. Indexed buffers (idxen): `index < num_records` alone decides,
for all components. Components out of range read as zero and are not written. An access that the
check lets pass must lie in a registered buffer; an access that the descriptor allows but no
allocation backs is a MemoryFault.

gfx90a reaches its scratch through a buffer, whose descriptor is SCRATCH. An access there may begin
at any byte: a lane's bytes follow each other.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator

import numpy as np

from gfxemu.checks import COMPARED, LEFT_OUT
from gfxemu.decoder import Decoding, Execute, opcodes
from gfxemu.errors import MemoryFault, UnsupportedInstruction
from gfxemu.memory import WORDS, Update
from gfxemu.operands import Operand, scalar32, scalar64, to_lanes32, to_lanes64
from gfxemu.pending import (
    RETIRED,
    Issue,
    LdsStore,
    Pending,
    VectorResult,
    deliver,
    issue_lgkm,
    issue_vector_memory,
)
from gfxemu.scalars import Scalar
from gfxemu.vector_float import to_bfloat16
from gfxemu.wave import LANES, M0, LaneMask, Wave

Array = np.ndarray
_U32, _U64 = np.uint32, np.uint64
_LANE = np.arange(LANES, dtype=np.uint64)


@dataclasses.dataclass(frozen=True)
class Access:
    """The type part of an opcode: `size` bytes per component, `count` components."""

    size: int
    count: int
    signed: bool = False
    half: int | None = None  # d16: which half of the register

    @property
    def bits(self) -> np.uint32 | None:
        return None if self.half is None else _U32(0xFFFF << 16 * self.half)

    @property
    def total(self) -> int:
        return self.size * self.count

    @property
    def registers(self) -> int:
        return -(-self.total // 4)

    def to_registers(self, items: Array) -> Array:
        """Items [workgroup][lane] (memory.WORDS[total]) as uint32 [register][workgroup][lane]."""
        if self.total <= 4:
            words = items.astype(_U32)
            if self.signed:
                shift = 32 - 8 * self.size
                words = ((words << _U32(shift)).view(np.int32) >> np.int32(shift)).view(_U32)
            if self.half is not None:
                words = words << _U32(16) if self.half else words & _U32(0xFFFF)
            return words[None]
        return items.view(_U32).reshape(*items.shape, -1).transpose(2, 0, 1)

    def to_items(self, registers: Array) -> Array:
        """The inverse, for stores."""
        if self.total <= 4:
            words = registers[0]
            return (words >> _U32(16) if self.half else words).astype(WORDS[self.size])
        packed = np.ascontiguousarray(registers.transpose(1, 2, 0))
        return packed.view(WORDS[self.total])[..., 0]


_TYPES = {"ubyte": (1, False), "sbyte": (1, True), "byte": (1, False),
          "ushort": (2, False), "sshort": (2, True), "short": (2, False)}  # fmt: skip


def parse_access(text: str) -> Access:
    """`dwordx4`, `ushort`, `short_d16_hi`, ..."""
    match = re.fullmatch(r"dword(?:x([234]))?", text)
    if match:
        return Access(4, int(match[1] or 1))
    base, d16, high = re.fullmatch(r"([a-z]+?)(_d16)?(_hi)?", text).groups()  # type: ignore
    size, signed = _TYPES[base]
    return Access(size, 1, signed, (1 if high else 0) if d16 else None)


_LOADS = ("ubyte", "sbyte", "ushort", "sshort", "dword", "dwordx2", "dwordx3", "dwordx4",
          "short_d16", "short_d16_hi", "ubyte_d16", "ubyte_d16_hi", "sbyte_d16",
          "sbyte_d16_hi")  # fmt: skip
_STORES = ("byte", "short", "dword", "dwordx2", "dwordx3", "dwordx4", "short_d16_hi", "byte_d16_hi")


def _access(d: Decoding) -> Access:
    """The bytes that a load or a store accesses. Coherence and streaming hints have no effect
    here."""
    for name in ("sc0", "sc1", "nt"):
        d.instruction.flag(name)
    return parse_access(d.name.split("_", 2)[2])


def _atomic(d: Decoding) -> Access:
    if d.instruction.flag("sc0"):
        raise UnsupportedInstruction(f"atomics that return: {d.instruction!r}")
    for name in ("sc1", "nt"):
        d.instruction.flag(name)
    return Access(4, 1)


def _in_all_lanes(w: Wave, addresses: Array) -> Array:
    shape = (w.size, LANES)
    return addresses if addresses.shape == shape else np.broadcast_to(addresses, shape)


def _load_items(w: Wave, access: Access, addresses: Array, valid: LaneMask | None) -> Array:
    """Registers' worth of data; zero where not valid."""
    memory = w.group.memory
    if access.total == 12:
        parts = [_load_items(w, Access(4, 1), addresses + _U64(4 * i), valid) for i in range(3)]
        return np.concatenate(parts)
    addresses = _in_all_lanes(w, addresses)
    if valid is None:
        items = memory.load(addresses, access.total, w.copies)
    else:
        items = np.zeros(addresses.shape, WORDS[access.total])
        chosen = addresses[valid]
        if chosen.size:
            items[valid] = memory.load(chosen, access.total, w.copies_of(valid))
    return access.to_registers(items)


def _store_items(
    w: Wave, access: Access, addresses: Array, valid: LaneMask | None, registers: Array
) -> None:
    memory = w.group.memory
    addresses = _in_all_lanes(w, addresses)
    if access.total == 12:
        for i in range(3):
            part = registers[i : i + 1]
            _store_items(w, Access(4, 1), addresses + _U64(4 * i), valid, part)
        return
    items = access.to_items(registers)
    if valid is None:
        memory.store(addresses.reshape(-1), access.total, items.reshape(-1), w.copies_of(None))
    elif valid.any():
        memory.store(addresses[valid], access.total, items[valid], w.copies_of(valid))


def _observe(
    w: Wave,
    pc: int,
    addresses: Array,
    valid: LaneMask | None,
    access: Access | None = None,
    first: int = 0,
) -> None:
    """Shows an observer the addresses and, of a store, what `access` stores from `first` on."""
    observer = w.group.observer
    if observer is None:
        return
    observer.observe_lanes(pc, "the address", _in_all_lanes(w, addresses), valid)
    if access is None:
        return
    data = w.regs[first : first + access.registers]
    if access.size < 4:
        data = (data >> _U32(16) if access.half else data) & _U32((1 << 8 * access.size) - 1)
    observer.observe_lanes(pc, "the stored value", data, valid)


# Buffer instructions.

# Words of a descriptor: the lane's own memory, by a stride and add_tid that no other buffer here
# has.
SCRATCH = (0, 1 << 31 | 1 << 16, 0, 1 << 23)
_SWIZZLE, _ADD_TID = 0xC000_0000, 1 << 23  # bits of its second and its last word
_INDEX_UNIT = _U64(16)  # no access is wider


def _scratch_bytes(w: Wave, offsets: Array, size: int) -> Iterator[tuple[tuple[Array, ...], Array]]:
    """For each byte: the (workgroup, dword, lane) indices of active lanes, and its shift there."""
    groups, lanes = np.nonzero(w.lanes)
    start = np.broadcast_to(offsets, (w.size, LANES))[groups, lanes].astype(np.int64)
    if start.size:
        _check_scratch(w, int(start.min()), int(start.max()) + size)
    for byte in range(size):
        place = start + byte
        yield (groups, place >> 2, lanes), ((place & 3) * 8).astype(_U32)


def _load_scratch(w: Wave, access: Access, offsets: Array) -> Array:
    items = np.zeros((access.registers, w.size, LANES), _U32)
    for byte, (index, shift) in enumerate(_scratch_bytes(w, offsets, access.total)):
        value = w.scratch[index] >> shift & _U32(0xFF)
        items[byte // 4, index[0], index[2]] |= value << _U32(byte % 4 * 8)
    return items if access.size == 4 else access.to_registers(items[0])


def _store_scratch(w: Wave, access: Access, offsets: Array, registers: Array) -> None:
    for byte, (index, shift) in enumerate(_scratch_bytes(w, offsets, access.total)):
        word = registers[byte // 4] >> _U32(16) if access.half else registers[byte // 4]
        value = word[index[0], index[2]] >> _U32(byte % 4 * 8) & _U32(0xFF)
        kept = w.scratch[index] & ~(_U32(0xFF) << shift)
        w.scratch[index] = kept | value << shift


@dataclasses.dataclass(frozen=True)
class _BufferAddress:
    pc: int
    access: Access
    resource: int
    vindex: int | None
    voffset: int | None
    soffset: Callable[[Wave], Scalar]
    immediate: int

    def resolve(self, w: Wave) -> tuple[Array, Array, Scalar | Array | None]:
        """(addresses, offsets for the range check, num_records), broadcastable to lanes.

        num_records None: the addresses are offsets into each lane's scratch.
        """
        s = self.resource
        low, high, size, flags = words = [w.read32(s + i) for i in range(4)]
        soffset = self.soffset(w)
        offsets = _U64(self.immediate)
        if self.voffset is not None:
            offsets = (w.v[self.voffset] + _U32(self.immediate)).astype(_U64)
        if _is_swizzled(high, flags):
            if all(np.all(word == wanted) for word, wanted in zip(words, SCRATCH, strict=True)):
                offsets = to_lanes64(soffset) + offsets
                return offsets, offsets, None
            raise UnsupportedInstruction("swizzled buffers, and add_tid, are not implemented")
        start = low | (high & 0xFFFF) << (32 if type(high) is int else _U64(32))
        addresses = to_lanes64(start + soffset) + offsets
        records = size if type(size) is int else to_lanes64(size)
        if self.vindex is not None:
            return self._indexed(w, addresses, high, records)
        if type(soffset) is not int or soffset:
            offsets = self._checked(w, offsets, to_lanes64(soffset), records)
        return addresses, offsets, records

    def _indexed(
        self, w: Wave, addresses: Array, high: Scalar, records: Scalar | Array
    ) -> tuple[Array, Array, Scalar | Array]:
        """Adds the index in strides. The check sees it in units that hold any access whole."""
        stride = to_lanes64(high) >> _U64(16) & _U64(0x3FFF)
        if not stride.all():
            raise UnsupportedInstruction("an index into a buffer without a stride")
        index = w.v[self.vindex].astype(_U64)
        records = records << 4 if type(records) is int else records * _INDEX_UNIT
        return addresses + index * stride, index * _INDEX_UNIT, records

    def _checked(self, w: Wave, offsets: Array, soffset: Array, records: Scalar | Array) -> Array:
        """The offsets that the range check sees, by the launch's rule (Checks.soffset)."""
        rule = w.group.checks.soffset
        if rule == LEFT_OUT:
            return offsets
        counted = offsets + soffset
        if rule == COMPARED:
            differs = self._components(offsets, records) != self._components(counted, records)
            lanes = int(np.count_nonzero(differs & w.lanes))
            if lanes:
                decided = w.group.soffset_decided
                decided[self.pc] = decided.get(self.pc, 0) + lanes
        return counted

    def _components(self, offsets: Array, records: Scalar | Array) -> Array:
        """The number of components in range."""
        left = np.where(offsets < records, records - offsets, _U64(0))
        return np.minimum(left, _U64(self.access.total)) // _U64(self.access.size)


def _is_swizzled(high: Scalar, flags: Scalar) -> bool:
    if type(high) is int and type(flags) is int:
        return bool(high & _SWIZZLE or flags & _ADD_TID)
    return bool(np.any(high & _SWIZZLE) or np.any(flags & _ADD_TID))


def buffer_address(d: Decoding, first: int, access: Access) -> _BufferAddress:
    """Operands from position `first`: vaddr (or off), resource, soffset. With an index and an
    offset, vaddr is both."""
    instruction = d.instruction
    idxen, offen = instruction.flag("idxen"), instruction.flag("offen")
    vaddr, resource, soffset = d.operands[first : first + 3]
    register = d.vector_range(vaddr, idxen + offen) if idxen or offen else 0
    return _BufferAddress(
        pc=d.pc,
        access=access,
        resource=resource.index,
        vindex=register if idxen else None,
        voffset=register + idxen if offen else None,
        soffset=scalar32(soffset),
        immediate=instruction.int_modifier("offset"),
    )


def in_range(w: Wave, offsets: Array, records: Scalar | Array | None, size: int) -> LaneMask | None:
    """Lanes that are active and whose `size` bytes are in range; None means all."""
    if records is None:
        raise UnsupportedInstruction("scratch in a buffer is loaded and stored; nothing else is")
    if w.all_lanes:
        least = records if type(records) is int else int(records.min())
        if int(offsets.max()) + size <= least:
            return None
    return np.logical_and(w.lanes, offsets + _U64(size) <= records)


def _is_split(
    w: Wave, access: Access, offsets: Array, records: Scalar | Array, valid: LaneMask
) -> bool:
    """Whether a lane has its first component in range but not its last."""
    begins = np.logical_and(w.lanes, offsets + _U64(access.size) <= records)
    return access.count > 1 and bool((begins & ~valid).any())


@opcodes(*(f"buffer_load_{t}" for t in _LOADS))
def _buffer_load(d: Decoding) -> Execute:
    access = _access(d)
    if d.instruction.flag("lds"):
        return _buffer_load_to_lds(d, access)
    to = d.destination(access.registers)
    where, pc, bits = buffer_address(d, 1, access), d.pc, access.bits

    def execute(w: Wave) -> None:
        addresses, offsets, records = where.resolve(w)
        if records is None:
            values = _load_scratch(w, access, offsets)
            deliver(w, VectorResult(to, values, w.active, bits), issue_vector_memory)
            return
        valid = in_range(w, offsets, records, access.total)
        _observe(w, pc, addresses, valid)
        if valid is not None and _is_split(w, access, offsets, records, valid):
            part = Access(4, 1)
            values = np.concatenate([
                _load_items(w, part, addresses + _U64(4 * i),
                            in_range(w, offsets + _U64(4 * i), records, 4))
                for i in range(access.count)
            ])  # fmt: skip
        else:
            values = _load_items(w, access, addresses, valid)
        deliver(w, VectorResult(to, values, w.active, bits), issue_vector_memory)

    return execute


def _buffer_load_to_lds(d: Decoding, access: Access) -> Execute:
    """LDS address: M0 + inst_offset + lane * bytes, of M0 as many bits as the arch's LDS needs.
    Lanes out of range write zeros."""
    if access.total not in (4, 16):
        raise UnsupportedInstruction(f"loads of {access.total} bytes to LDS: {d.instruction!r}")
    where, pc = buffer_address(d, 0, access), d.pc
    base_bits = 0x3_FFFC if d.arch == "gfx950" else 0xFFFC
    lane_offsets = _LANE * _U64(access.total) + _U64(where.immediate)

    def execute(w: Wave) -> None:
        addresses, offsets, records = where.resolve(w)
        valid = in_range(w, offsets, records, access.total)
        _observe(w, pc, addresses, valid)
        values = _load_items(w, access, addresses, valid)
        items = access.to_items(values)
        to = to_lanes64(w.read32(M0) & base_bits) + lane_offsets
        to = np.broadcast_to(to.astype(_U32), (w.size, LANES))
        place = w.group.lds.place(to, access.total, w.active, store=True)
        store = LdsStore(place, items, pc, w.group.epoch)
        if w.late:
            w.group.lds.note_write(w, place, items, pc, late=False, landing=False)
            issue_vector_memory(w, store)
        else:
            store.land(w)

    return execute


@opcodes(*(f"buffer_store_{t}" for t in _STORES))
def _buffer_store(d: Decoding) -> Execute:
    access = _access(d)
    data = d.vector_range(d.operands[0], access.registers)
    where, pc = buffer_address(d, 1, access), d.pc

    def execute(w: Wave) -> None:
        addresses, offsets, records = where.resolve(w)
        if records is None:
            _store_scratch(w, access, offsets, w.regs[data : data + access.registers])
            if w.late:
                issue_vector_memory(w, RETIRED)
            return
        valid = in_range(w, offsets, records, access.total)
        _observe(w, pc, addresses, valid, access, data)
        if valid is not None and _is_split(w, access, offsets, records, valid):
            for i in range(access.count):
                inside = in_range(w, offsets + _U64(4 * i), records, 4)
                _store_items(w, Access(4, 1), addresses + _U64(4 * i), inside,
                             w.regs[data + i : data + i + 1])  # fmt: skip
        else:
            _store_items(w, access, addresses, valid, w.regs[data : data + access.registers])
        if w.late:
            issue_vector_memory(w, RETIRED)

    return execute


@dataclasses.dataclass(frozen=True)
class _PackedAdd:
    """Sums of both halves of dwords, in the way of numpy's ufuncs: one lane after the other."""

    add: Callable[[Array, Array], Array]  # of uint16 encodings

    def at(self, dwords: Array, indices: Array, values: Array) -> None:
        index, halves = indices.astype(np.int64), values[..., None].view(np.uint16)
        memory = dwords[..., None].view(np.uint16)
        while index.size:
            # Different dwords at once; of lanes that share one the first, the others next time.
            _, first = np.unique(index, return_index=True)
            memory[index[first]] = self.add(memory[index[first]], halves[first])
            index, halves = np.delete(index, first), np.delete(halves, first, axis=0)


def _add_float16(a: Array, b: Array) -> Array:
    return (a.view(np.float16) + b.view(np.float16)).view(np.uint16)


def _add_bfloat16(a: Array, b: Array) -> Array:
    x, y = ((half.astype(_U32) << _U32(16)).view(np.float32) for half in (a, b))
    return to_bfloat16(x + y).astype(np.uint16)


# The operation of an atomic and how it sees its operand.
_ATOMICS: dict[str, tuple[Update, type]] = {
    "add_f32": (np.add, np.float32),
    "pk_add_f16": (_PackedAdd(_add_float16), np.uint32),
    "pk_add_bf16": (_PackedAdd(_add_bfloat16), np.uint32),
    "umax": (np.maximum, np.uint32),
}


def _operation(d: Decoding) -> tuple[Update, type]:
    return _ATOMICS[d.name.partition("_atomic_")[2]]


@opcodes(*(f"buffer_atomic_{n}" for n in _ATOMICS if n != "umax"))
def _buffer_atomic(d: Decoding) -> Execute:
    operation, kind = _operation(d)
    access, data = _atomic(d), d.vector_range(d.operands[0], 1)
    where, pc = buffer_address(d, 1, access), d.pc

    def execute(w: Wave) -> None:
        addresses, offsets, records = where.resolve(w)
        valid = in_range(w, offsets, records, 4)
        _observe(w, pc, addresses, valid, access, data)
        _update(w, operation, addresses, valid, w.v[data].view(kind))

    return execute


def _update(
    w: Wave, operation: Update, addresses: Array, valid: LaneMask | None, data: Array
) -> None:
    chosen = np.ones((w.size, LANES), bool) if valid is None else valid
    if chosen.any():
        addresses = np.broadcast_to(addresses, chosen.shape)[chosen]
        w.group.memory.update(operation, addresses, data[chosen], w.copies_of(chosen))
    if w.late:
        issue_vector_memory(w, RETIRED)


# Global and flat instructions.


def global_address(d: Decoding, vaddr: Operand, saddr: Operand | None) -> Callable[[Wave], Array]:
    immediate = d.instruction.int_modifier("offset")
    offset = _U64(immediate & 0xFFFF_FFFF_FFFF_FFFF)
    if saddr is None or saddr.kind == "off":
        first = d.vector_range(vaddr, 2)

        def from_vector(w: Wave) -> Array:
            low, high = w.v[first].astype(_U64), w.v[first + 1].astype(_U64)
            return (low | high << _U64(32)) + offset

        return from_vector
    base, first = scalar64(saddr), d.vector_range(vaddr, 1)

    def from_scalar(w: Wave) -> Array:
        return to_lanes64(base(w)) + w.v[first].astype(_U64) + offset

    return from_scalar


def _saddr(d: Decoding) -> Operand | None:
    return d.operands[2] if len(d.operands) > 2 else None


def _issue_flat(w: Wave, pending: Pending) -> None:
    """Flat instructions count both ways; they may turn out to be LDS accesses."""
    issue_vector_memory(w, pending)
    issue_lgkm(w, RETIRED)


def _issue(d: Decoding) -> Issue:
    return _issue_flat if d.name.startswith("flat_") else issue_vector_memory


@opcodes(*(f"{s}_load_{t}" for s in ("global", "flat") for t in _LOADS))
def _global_load(d: Decoding) -> Execute:
    access, pc, issue = _access(d), d.pc, _issue(d)
    to = d.destination(access.registers)
    address = global_address(d, d.operands[1], _saddr(d))
    bits = access.bits

    def execute(w: Wave) -> None:
        addresses = address(w)
        lanes = w.active
        _observe(w, pc, addresses, lanes)
        values = _load_items(w, access, addresses, lanes)
        deliver(w, VectorResult(to, values, lanes, bits), issue)

    return execute


@opcodes(*(f"{s}_store_{t}" for s in ("global", "flat") for t in _STORES))
def _global_store(d: Decoding) -> Execute:
    access, pc, issue = _access(d), d.pc, _issue(d)
    address = global_address(d, d.operands[0], _saddr(d))
    data = d.vector_range(d.operands[1], access.registers)

    def execute(w: Wave) -> None:
        addresses = address(w)
        lanes = w.active
        _observe(w, pc, addresses, lanes, access, data)
        _store_items(w, access, addresses, lanes, w.regs[data : data + access.registers])
        if w.late:
            issue(w, RETIRED)

    return execute


@opcodes(*(f"global_atomic_{n}" for n in _ATOMICS))
def _global_atomic(d: Decoding) -> Execute:
    operation, kind = _operation(d)
    address = global_address(d, d.operands[0], _saddr(d))
    access, data, pc = _atomic(d), d.vector_range(d.operands[1], 1), d.pc

    def execute(w: Wave) -> None:
        addresses = address(w)
        lanes = w.active
        _observe(w, pc, addresses, lanes, access, data)
        _update(w, operation, addresses, lanes, w.v[data].view(kind))

    return execute


# Scratch: private memory of each lane, [workgroup][dword][lane].


@dataclasses.dataclass(frozen=True)
class _ScratchAddress:
    vaddr: int | None
    saddr: Callable[[Wave], Scalar] | None
    immediate: int

    def resolve(self, w: Wave) -> int | Array:
        """A byte offset: an int where all lanes agree, else int64 [workgroup][lane]."""
        total: int | Array = self.immediate
        if self.saddr is not None:
            scalar = self.saddr(w)
            total = (
                scalar + total
                if type(scalar) is int
                else to_lanes32(scalar).astype(np.int64) + total
            )
        if self.vaddr is not None:
            total = w.v[self.vaddr].astype(np.int64) + total
        return total


def _scratch_address(d: Decoding, vaddr: Operand, saddr: Operand) -> _ScratchAddress:
    return _ScratchAddress(
        d.vector_range(vaddr, 1) if vaddr.kind == "v" else None,
        scalar32(saddr) if saddr.kind == "s" else None,
        d.instruction.int_modifier("offset"),
    )


def _check_scratch(w: Wave, low: int, high: int) -> None:
    size = w.scratch.shape[1] * 4
    if low < 0 or high > size:
        raise MemoryFault(
            f"scratch access of [{low:#x}, {high:#x}); the kernel has {size:#x} bytes"
        )


def _scratch_rows(w: Wave, offset: int | Array, size: int) -> tuple[Array, Array, Array, Array]:
    """(workgroup, dword, lane, shift) indices of one component."""
    offsets = np.broadcast_to(np.asarray(offset), (w.size, LANES))
    active = offsets[w.lanes]
    if active.size:
        _check_scratch(w, int(active.min()), int(active.max()) + size)
    offsets = np.where(w.lanes, offsets, 0)
    if (offsets % size).any():
        raise MemoryFault(f"misaligned scratch access of {size} bytes")
    shift = ((offsets & 3) * 8).astype(_U32)
    return np.arange(w.size)[:, None], offsets >> 2, _LANE.astype(np.int64)[None, :], shift


@opcodes(*(f"scratch_load_{t}" for t in _LOADS))
def _scratch_load(d: Decoding) -> Execute:
    access = _access(d)
    count = access.registers
    to, where = d.destination(count), _scratch_address(d, d.operands[1], d.operands[2])
    bits = access.bits

    def execute(w: Wave) -> None:
        offset = where.resolve(w)
        if type(offset) is int and access.size == 4 and not offset & 3:
            _check_scratch(w, offset, offset + access.total)
            row = offset >> 2
            values = w.scratch[:, row : row + count].transpose(1, 0, 2).copy()
        else:
            parts = []
            for i in range(access.count):
                a, b, c, shift = _scratch_rows(w, offset + 4 * i, access.size)
                word = w.scratch[a, b, c]
                if access.size < 4:
                    word = (word >> shift) & _U32((1 << 8 * access.size) - 1)
                    parts.append(access.to_registers(word))
                else:
                    parts.append(word[None])
            values = np.concatenate(parts)
        deliver(w, VectorResult(to, values, w.active, bits), issue_vector_memory)

    return execute


@opcodes(*(f"scratch_store_{t}" for t in _STORES))
def _scratch_store(d: Decoding) -> Execute:
    access = _access(d)
    count = access.registers
    data = d.vector_range(d.operands[1], count)
    where = _scratch_address(d, d.operands[0], d.operands[2])

    def execute(w: Wave) -> None:
        offset = where.resolve(w)
        if type(offset) is int and access.size == 4 and not offset & 3:
            _check_scratch(w, offset, offset + access.total)
            row = offset >> 2
            rows, values = w.scratch[:, row : row + count], w.regs[data : data + count]
            if w.all_lanes:
                rows[...] = values.transpose(1, 0, 2)
            else:
                np.copyto(rows, values.transpose(1, 0, 2), where=w.lanes[:, None, :])
        else:
            for i in range(access.count):
                a, b, c, shift = _scratch_rows(w, offset + 4 * i, access.size)
                value = w.v[data + i] >> _U32(16) if access.half else w.v[data + i]
                if access.size < 4:
                    mask = _U32((1 << 8 * access.size) - 1)
                    value = (w.scratch[a, b, c] & ~(mask << shift)) | ((value & mask) << shift)
                chosen = np.nonzero(w.lanes)
                w.scratch[chosen[0], b[chosen], chosen[1]] = value[chosen]
        if w.late:
            issue_vector_memory(w, RETIRED)

    return execute
