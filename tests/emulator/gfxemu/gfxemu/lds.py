# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Local data share: storage of a batch of workgroups, race detection, DS instructions.

CDNA3 ISA, "LDS". Accesses beyond the workgroup's allocation are MemoryFaults here; hardware drops
stores there silently, and so does an Lds that is told to.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import numpy as np

from gfxemu.decoder import Decoding, Execute, opcodes
from gfxemu.errors import MemoryFault, UnsupportedInstruction
from gfxemu.memory import WORDS, gather, scatter
from gfxemu.pending import (
    Group,
    LdsRead,
    LdsStore,
    Pending,
    VectorResult,
    deliver,
    issue_lgkm,
    land_lds_stores,
)
from gfxemu.scalars import Scalar
from gfxemu.vector_memory import Access
from gfxemu.wave import LANES, LaneMask, Wave

Array = np.ndarray
_U32, _U64 = np.uint32, np.uint64


@dataclasses.dataclass(frozen=True)
class Clash:
    """Two accesses that no barrier orders: program counters, waves, and where."""

    first_pc: int
    second_pc: int
    first_write: bool
    second_write: bool
    unwaited: str  # "read", "write": what was issued before the last barrier and not waited for
    first_wave: int
    second_wave: int
    address: int

    @property
    def kind(self) -> str:
        return f"unwaited-{self.unwaited}" if self.unwaited else "race"


class RaceDetector:
    """Barriers are the only order between waves of a workgroup: two accesses of the same bytes by
    different waves in the same epoch (number of barriers passed), one of them a write, race.

    Independent of the schedule that happened to run. An access that no s_waitcnt completes before
    a barrier spans it, and is noted again, as late, when it lands. Cells are `grain` bytes; an
    access is stored as 2 * pc + late. Two writes of the same value do not race.
    """

    def __init__(self, workgroups: int, size: int, waves: int, grain: int):
        cells = -(-size // grain)
        self.grain, self.waves, self.cells = grain, waves, cells
        shape = (workgroups, cells)
        self.write_epoch = np.full(shape, -1, np.int32)
        self.write_wave = np.zeros(shape, np.int8)
        self.write_pc = np.zeros(shape, np.int32)
        self.write_value = np.zeros(shape, WORDS[grain])
        self.read_epoch = np.full((waves, *shape), -1, np.int32)
        self.read_pc = np.zeros((waves, *shape), np.int32)
        self.clashes: dict[tuple[int, int, str], Clash] = {}

    def note(
        self,
        wave: int,
        epoch: int,
        pc: int,
        addresses: Array,
        size: int,
        lanes: LaneMask | None,
        items: Array | None = None,
        late: bool = False,
    ) -> None:
        """Note a read, or a write of `items`."""
        pc = 2 * pc + late
        rows = np.arange(len(self.write_epoch), dtype=np.int64)[:, None] * self.cells
        index = rows + addresses.astype(np.int64) // self.grain
        if lanes is not None:
            index = index[lanes]
        count = size // self.grain
        index = (index.reshape(-1, 1) + np.arange(count)).reshape(-1)
        write_epoch, write_wave = self.write_epoch.reshape(-1), self.write_wave.reshape(-1)
        clash = write_epoch[index] == epoch
        clash &= write_wave[index] != wave
        values = None
        if items is not None:
            chosen = np.ascontiguousarray(items if lanes is None else items[lanes])
            values = chosen.reshape(-1).view(self.write_value.dtype)
            if clash.any():
                clash &= self.write_value.reshape(-1)[index] != values
        if clash.any():
            at = int(index[clash.argmax()])
            self._report(at, self.write_pc, True, int(write_wave[at]), pc, items is not None, wave)
        if values is None:
            self.read_epoch[wave].reshape(-1)[index] = epoch
            self.read_pc[wave].reshape(-1)[index] = pc
            return
        for reader in range(self.waves):
            if reader == wave:
                continue
            seen = self.read_epoch[reader].reshape(-1)[index] == epoch
            if seen.any():
                at = int(index[seen.argmax()])
                self._report(at, self.read_pc[reader], False, reader, pc, True, wave)
        write_epoch[index] = epoch
        write_wave[index] = wave
        self.write_pc.reshape(-1)[index] = pc
        self.write_value.reshape(-1)[index] = values

    def _report(
        self,
        at: int,
        pcs: Array,
        first_write: bool,
        first_wave: int,
        pc: int,
        write: bool,
        wave: int,
    ) -> None:
        first, first_late = divmod(int(pcs.reshape(-1)[at]), 2)
        second, second_late = divmod(pc, 2)
        unwaited = ""
        if (first_late and not first_write) or (second_late and not write):
            unwaited = "read"
        elif first_late or second_late:
            unwaited = "write"
        key = (min(first, second), max(first, second), unwaited)
        if key not in self.clashes:
            address = at % self.cells * self.grain
            self.clashes[key] = Clash(
                first, second, first_write, write, unwaited, first_wave, wave, address
            )

    def select(self, chosen: Array) -> RaceDetector:
        new = object.__new__(RaceDetector)
        new.grain, new.waves, new.cells = self.grain, self.waves, self.cells
        new.write_epoch, new.write_wave = self.write_epoch[chosen], self.write_wave[chosen]
        new.write_pc, new.write_value = self.write_pc[chosen], self.write_value[chosen]
        new.read_epoch = np.ascontiguousarray(self.read_epoch[:, chosen])
        new.read_pc = np.ascontiguousarray(self.read_pc[:, chosen])
        new.clashes = dict(self.clashes)
        return new


class Place:
    """The bytes that one execution of an instruction accesses, after the check of their bounds.

    `words` are indices of the active lanes' items, or None where an item is not aligned. `range`
    is what in_step.AccessLog knows of it.
    """

    __slots__ = ("addresses", "lanes", "range", "size", "words")

    def __init__(self, addresses: Array, size: int, lanes: LaneMask | None, words: Array | None):
        self.addresses, self.size, self.lanes, self.words = addresses, size, lanes, words
        self.range: tuple[int, int] | None = None


class Lds:
    def __init__(self, workgroups: int, size: int, poison: Scalar, drop_stores: bool = False):
        self.size, self._drop_stores = size, drop_stores
        self._row = -(-max(size, 16) // 16) * 16
        dwords = np.empty((workgroups, self._row // 4), _U32)
        dwords[...] = poison if type(poison) is int else poison[:, None]
        self._set_data(dwords.view(np.uint8))
        self._places: dict[tuple[int, int, int], tuple[bytes, Place]] = {}
        self.races: RaceDetector | None = None

    def _set_data(self, data: Array) -> None:
        self._data = data
        flat = data.reshape(-1)
        self._words = {n: flat.view(t) for n, t in WORDS.items()}
        self._set_bases((np.arange(len(data)) * self._row)[:, None])

    def _set_bases(self, bases: Array) -> None:
        """Where the LDS of each row's workgroup begins."""
        self._bases = {n: bases // n for n in WORDS}

    def place(self, addresses: Array, size: int, lanes: LaneMask | None, store: bool) -> Place:
        """Raises MemoryFault. `addresses` are those of all lanes."""
        if store and self._drop_stores:
            inside = addresses.astype(_U64) + _U64(size) <= self.size
            lanes = inside if lanes is None else lanes & inside
        active = addresses if lanes is None else addresses[lanes]
        if active.size:
            highest = int(active.max())
            if highest + size > self.size:
                raise MemoryFault(
                    f"LDS access of [{highest:#x}, {highest + size:#x}); "
                    f"the workgroup has {self.size:#x} bytes"
                )
        return Place(addresses, size, lanes, self._words_at(addresses, active, size, lanes))

    def _words_at(
        self, addresses: Array, active: Array, size: int, lanes: LaneMask | None
    ) -> Array | None:
        if size == 1:
            words = addresses + self._bases[1]
        elif int(np.bitwise_or.reduce(active, axis=None)) & (size - 1):
            return None
        else:
            words = (addresses >> _U32(size.bit_length() - 1)) + self._bases[size]
        return words if lanes is None else words[lanes]

    def place_of(
        self, w: Wave, pc: int, register: int, offset: int, size: int, store: bool
    ) -> Place:
        """That of a DS instruction: often the same again when a loop comes back to it."""
        values, lanes = w.v[register], w.active
        content = values.tobytes() if lanes is None else values.tobytes() + lanes.tobytes()
        key = (pc, offset, w.index)
        known = self._places.get(key)
        if known is not None and known[0] == content:
            return known[1]
        # Byte addresses wrap at 32 bits.
        place = self.place(values + _U32(offset), size, lanes, store)
        self._places[key] = (content, place)
        return place

    def _take(self, words: dict[int, Array], place: Place) -> Array:
        """The items of a place's active lanes, from memory of this layout."""
        if place.words is None:
            return gather(words, self._offsets(place), place.size)
        return words[place.size].take(place.words)

    def _put(self, words: dict[int, Array], place: Place, items: Array) -> None:
        if place.words is None:
            scatter(words, self._offsets(place), place.size, items)
        else:
            words[place.size][place.words] = items

    def _offsets(self, place: Place) -> Array:
        offsets = place.addresses.astype(_U64) + self._bases[1].astype(_U64)
        return offsets if place.lanes is None else offsets[place.lanes]

    def load(self, w: Wave, place: Place, pc: int) -> Array:
        """Items [workgroup][lane]; inactive lanes read as zero."""
        self.note_read(w, place, pc, late=False)
        active = self._take(self._words, place)
        if place.lanes is None:
            return active
        items = np.zeros(place.addresses.shape, WORDS[place.size])
        items[place.lanes] = active
        return items

    def store(self, w: Wave, place: Place, items: Array, pc: int, late: bool) -> None:
        """`late` if a barrier passed since the instruction was issued."""
        self.note_write(w, place, items, pc, late, landing=True)
        self._put(self._words, place, items if place.lanes is None else items[place.lanes])

    def note_read(self, w: Wave, place: Place, pc: int, late: bool) -> None:
        """A read; `late` if it was issued before a barrier and is only known to be done now."""
        if self.races is not None:
            self.races.note(w.index, w.group.epoch, pc, place.addresses, place.size, place.lanes,
                            late=late)  # fmt: skip

    def note_write(
        self, w: Wave, place: Place, items: Array, pc: int, late: bool, landing: bool
    ) -> None:
        """A write, when it is issued and when it lands: it may happen at either time."""
        if self.races is not None:
            self.races.note(w.index, w.group.epoch, pc, place.addresses, place.size, place.lanes,
                            items, late)  # fmt: skip

    def select(self, chosen: Array) -> Lds:
        new = object.__new__(Lds)
        new.size, new._row, new._drop_stores = self.size, self._row, self._drop_stores
        new._set_data(np.ascontiguousarray(self._data[chosen]))
        new._places = {}
        new.races = None if self.races is None else self.races.select(chosen)
        return new

    def select_place(self, place: Place, chosen: Array) -> Place:
        """A place of the whole, in this selection `chosen` of it."""
        lanes = None if place.lanes is None else place.lanes[chosen]
        addresses = place.addresses[chosen]
        active = addresses if lanes is None else addresses[lanes]
        return Place(addresses, place.size, lanes,
                     self._words_at(addresses, active, place.size, lanes))  # fmt: skip


# DS instructions.

_NAME = re.compile(r"ds_(read|write)(2?)(st64)?_([bui])(\d+)(_d16)?(_hi)?")


@dataclasses.dataclass(frozen=True)
class _DsForm:
    access: Access
    offsets: tuple[int, ...]  # one or two byte offsets


def _form(d: Decoding) -> _DsForm:
    match = _NAME.fullmatch(d.name)
    assert match
    _, two, stride64, kind, bits, d16, high = match.groups()
    size = int(bits) // 8
    half = (1 if high else 0) if d16 else None
    access = Access(min(size, 4), max(size // 4, 1), kind == "i", half)
    if two:
        unit = size * (64 if stride64 else 1)
        offsets = tuple(d.instruction.int_modifier(f"offset{i}") * unit for i in range(2))
    else:
        offsets = (d.instruction.int_modifier("offset"),)
    return _DsForm(access, offsets)


def _observe_address(w: Wave, pc: int, register: int) -> None:
    if w.group.observer is not None:
        w.group.observer.observe_lanes(pc, "the LDS address", w.v[register], w.active)


def _parts(access: Access) -> list[tuple[int, Access]]:
    """(byte offset, access) pieces that memory can move at once: 12 bytes go as 3 x 4."""
    if access.total == 12:
        return [(4 * i, Access(4, 1)) for i in range(3)]
    return [(0, access)]


@opcodes(
    "ds_read_u8",
    "ds_read_i8",
    "ds_read_u16",
    "ds_read_i16",
    "ds_read_b32",
    "ds_read_b64",
    "ds_read_b96",
    "ds_read_b128",
    "ds_read2_b32",
    "ds_read2_b64",
    "ds_read2st64_b32",
    "ds_read2st64_b64",
    "ds_read_u8_d16",
    "ds_read_u8_d16_hi",
    "ds_read_i8_d16",
    "ds_read_i8_d16_hi",
    "ds_read_u16_d16",
    "ds_read_u16_d16_hi",
)
def _read(d: Decoding) -> Execute:
    form, pc = _form(d), d.pc
    access = form.access
    each = access.registers
    to = d.destination(each * len(form.offsets))
    address = d.vector_range(d.operands[1], 1)

    # (offset, first register, access) of what is moved at once.
    parts = [
        (offset + extra, to + i * each + extra // 4, part)
        for i, offset in enumerate(form.offsets)
        for extra, part in _parts(access)
    ]
    bits = access.bits

    def execute(w: Wave) -> None:
        _observe_address(w, pc, address)
        if w.late:
            land_lds_stores(w)
        group, results = w.group, []
        lds = group.lds
        for offset, first, part in parts:
            place = lds.place_of(w, pc, address, offset, part.total, store=False)
            values = part.to_registers(lds.load(w, place, pc))
            results.append(LdsRead(place, pc, group.epoch, first, values, bits))
        if len(results) == 1:
            deliver(w, results[0], issue_lgkm)
        else:
            _deliver_group(w, results)

    return execute


@opcodes("ds_read_b64_tr_b8", "ds_read_b64_tr_b16")
def _read_transposed(d: Decoding) -> Execute:
    """gfx950: each 16 lanes read 4 rows of 16 halves, a row with 4 lanes, or 8 rows of 16 bytes, a
    row with 2; lane i gets column i."""
    item: type = np.uint8 if d.name.endswith("b8") else np.uint16
    pc, to, offset = d.pc, d.destination(2), d.instruction.int_modifier("offset")
    address = d.vector_range(d.operands[1], 1)

    def execute(w: Wave) -> None:
        if not w.all_lanes:
            raise UnsupportedInstruction("a transposing read with lanes switched off")
        _observe_address(w, pc, address)
        if w.late:
            land_lds_stores(w)
        lds = w.group.lds
        place = lds.place_of(w, pc, address, offset, 8, store=False)
        rows = np.ascontiguousarray(lds.load(w, place, pc)).view(item)
        columns = rows.reshape(w.size, LANES // 16, -1, 16).swapaxes(2, 3)
        pairs = np.ascontiguousarray(columns).view(_U32).reshape(w.size, LANES, 2)
        values = pairs.transpose(2, 0, 1)
        deliver(w, LdsRead(place, pc, w.group.epoch, to, values, None), issue_lgkm)

    return execute


def _deliver_group(w: Wave, results: list[LdsRead]) -> None:
    """Several results that count as one operation."""
    queue: list[Pending] = []
    for result in results:
        deliver(w, result, lambda _, pending: queue.append(pending))
    if w.late:
        issue_lgkm(w, Group(queue))


@opcodes(
    "ds_write_b8",
    "ds_write_b16",
    "ds_write_b32",
    "ds_write_b64",
    "ds_write_b96",
    "ds_write_b128",
    "ds_write2_b32",
    "ds_write2_b64",
    "ds_write2st64_b32",
    "ds_write2st64_b64",
    "ds_write_b8_d16_hi",
    "ds_write_b16_d16_hi",
)
def _write(d: Decoding) -> Execute:
    form, pc = _form(d), d.pc
    if d.name.endswith("_d16_hi"):
        form = dataclasses.replace(form, access=dataclasses.replace(form.access, half=1))
    access = form.access
    count = access.registers
    address = d.vector_range(d.operands[0], 1)
    sources = [d.vector_range(op, count) for op in d.operands[1:]]

    parts = [
        (offset + extra, source + extra // 4, part)
        for offset, source in zip(form.offsets, sources, strict=True)
        for extra, part in _parts(access)
    ]

    def execute(w: Wave) -> None:
        _observe_address(w, pc, address)
        group = w.group
        lds = group.lds
        stores: list[Pending] = []
        for offset, first, part in parts:
            place = lds.place_of(w, pc, address, offset, part.total, store=True)
            items = part.to_items(w.regs[first : first + part.registers])
            if w.late:
                lds.note_write(w, place, items, pc, late=False, landing=False)
            stores.append(LdsStore(place, items, pc, group.epoch))
        store = stores[0] if len(stores) == 1 else Group(stores)
        if w.late:
            issue_lgkm(w, store)
        else:
            store.land(w)

    return execute


@opcodes("ds_bpermute_b32", "ds_permute_b32")
def _permute(d: Decoding) -> Execute:
    """Move data between lanes; addresses are bytes, modulo 256. bpermute pulls: inactive source
    lanes give 0. permute pushes: lanes that none sends to get 0, and the highest sender wins."""
    to = d.destination()
    address, source = (d.vector_range(op, 1) for op in d.operands[1:])
    offset, pull = _U32(d.instruction.int_modifier("offset")), d.name == "ds_bpermute_b32"

    def execute(w: Wave) -> None:
        other = (w.v[address] + offset) >> _U32(2) & _U32(LANES - 1)
        if pull:
            values = _pulled(w, source, other)
        else:
            values = np.zeros((w.size, LANES), _U32)
            for lane in range(LANES):
                senders = np.nonzero(w.lanes[:, lane])[0]
                values[senders, other[senders, lane]] = w.v[source][senders, lane]
        deliver(w, VectorResult(to, values[None], w.active), issue_lgkm)

    return execute


@opcodes("ds_swizzle_b32")
def _swizzle(d: Decoding) -> Execute:
    """Pull from a lane of the same 32, chosen by the instruction; inactive source lanes give 0."""
    to, source = d.destination(), d.vector_range(d.operands[1], 1)
    choice = _swizzled(d)
    others = np.array([lane & 32 | choice(lane & 31) for lane in range(LANES)])

    def execute(w: Wave) -> None:
        values = _pulled(w, source, np.broadcast_to(others, (w.size, LANES)))
        deliver(w, VectorResult(to, values[None], w.active), issue_lgkm)

    return execute


def _swizzled(d: Decoding) -> Callable[[int], int]:
    """lane -> source lane, in 32 lanes. The assembler has names for the modes of the offset."""
    text = d.instruction.text_modifier("offset")
    mode, *values = text.removeprefix("swizzle(").removesuffix(")").split(",")
    if mode == "QUAD_PERM":
        quad = [int(v) for v in values]
        return lambda lane: lane & ~3 | quad[lane & 3]
    if mode == "SWAP":
        return lambda lane: lane ^ int(values[0])
    if mode == "REVERSE":
        return lambda lane: lane ^ (int(values[0]) - 1)
    if mode == "BROADCAST":
        size, chosen = (int(v) for v in values)
        return lambda lane: lane & ~(size - 1) | chosen
    if mode == "BITMASK_PERM":
        bits = values[0].strip('"')
        kept = int("".join("1" if b in "pi" else "0" for b in bits), 2)
        flipped = int("".join("1" if b in "1i" else "0" for b in bits), 2)
        return lambda lane: lane & kept ^ flipped
    raise UnsupportedInstruction(f"offset {text} of {d.instruction!r}")


def _pulled(w: Wave, source: int, other: np.ndarray) -> np.ndarray:
    rows = np.arange(w.size)[:, None]
    return np.where(w.lanes[rows, other], w.v[source][rows, other], _U32(0))
