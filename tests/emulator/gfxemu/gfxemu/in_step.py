# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""All waves of a batch of workgroups in step: one numpy call for every wave of every workgroup.

Without races the order in which waves run changes nothing: each wave computes what it computes in
every schedule. So waves may run side by side, each a row of one `Wave` object, as long as nothing
shows that order could matter. A sign of that, or anything else out of the ordinary, ends the
attempt (`OrderMatters`, or another error), and the launch starts again with its schedule, one wave
after the other (workgroup.py). That run alone makes reports and errors.

`AccessLog` is stricter than the race detector (lds.RaceDetector), which knows one order only: in
each interval between barriers, bytes that one wave writes may not be touched by another. An access
that it lets pass is no race in any schedule.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from gfxemu.checks import Observer
from gfxemu.errors import Timeout
from gfxemu.lds import Lds, Place
from gfxemu.memory import WORDS
from gfxemu.wave import BARRIER, DIVERGED, LANES, Wave
from gfxemu.workgroup import WorkgroupBatch, step

Array = np.ndarray
_U8 = np.uint8


class OrderMatters(Exception):
    """Another order of the waves could give other results, or other findings."""


@dataclasses.dataclass(frozen=True)
class Rows:
    """The rows of the Wave: each is wave `wave` of workgroup `workgroup`, in the execution with
    poison number `copy`. All waves of a copy follow one another, and all workgroups of a wave."""

    copies: int
    waves: int
    workgroups: int

    def _numbers(self, axis: int) -> Array:
        return np.indices((self.copies, self.waves, self.workgroups))[axis].reshape(-1)

    @property
    def copy(self) -> Array:
        return self._numbers(0)

    @property
    def wave(self) -> Array:
        return self._numbers(1)

    @property
    def workgroup(self) -> Array:
        return self._numbers(2)


class SharedLds(Lds):
    """The LDS of a batch of workgroups as rows of their waves see it."""

    def __init__(self, rows: Rows, size: int, poisons: Sequence[int], drop_stores: bool):
        each = np.repeat(np.array(poisons, np.uint64), rows.workgroups)
        super().__init__(len(each), size, each, drop_stores)
        self.log = AccessLog(self._data.size, rows.waves) if rows.waves > 1 else None
        self._waves = rows.wave.astype(_U8)
        self.rows = np.arange(len(self._waves))
        self._set_bases(self._bases[1][rows.copy * rows.workgroups + rows.workgroup])

    def note_read(self, w: Wave, place: Place, pc: int, late: bool) -> None:
        if self.log is not None:
            self.log.reads[place] = self

    def note_write(
        self, w: Wave, place: Place, items: Array, pc: int, late: bool, landing: bool
    ) -> None:
        # An access that lands in the interval in which it was issued is known.
        if self.log is not None and (late or not (landing and w.late)):
            self.log.writes.append((place, self, items))

    def numbers(self, place: Place) -> Array:
        """AccessLog's number of the wave that accesses each byte of a place."""
        lanes = np.repeat(self._waves + _U8(1), LANES)
        if place.lanes is not None:
            lanes = lanes[place.lanes.reshape(-1)]
        return np.repeat(lanes, place.size)

    def bytes_of(self, place: Place) -> Array:
        """Indices of a place's bytes, in the order of take_bytes."""
        if place.words is None:
            first = self._offsets(place).astype(np.int64)
        else:
            first = place.words * place.size
        return (first[..., None] + np.arange(place.size)).reshape(-1)

    def take_bytes(self, words: dict[int, Array], place: Place) -> Array:
        return self._take(words, place).reshape(-1).view(_U8)

    def put_bytes(self, words: dict[int, Array], place: Place, data: Array) -> None:
        shape = place.addresses.shape if place.lanes is None else -1
        self._put(words, place, data.view(WORDS[place.size]).reshape(shape))

    def select(self, chosen: Array) -> SharedLds:
        """The same memory, seen by some of the waves."""
        new = object.__new__(SharedLds)
        new.__dict__.update(self.__dict__)
        new.rows, new._waves, new._places = self.rows[chosen], self._waves[chosen], {}
        new._set_bases(self._bases[1][chosen])
        return new


class AccessLog:
    """The LDS accesses since the last barrier, judged all together at the next one."""

    def __init__(self, size: int, waves: int):
        # To each byte of LDS: 0 for no wave, 1 + the wave that wrote it, or several.
        self._several = _U8(waves + 1)
        owners = np.zeros(size, _U8)
        self._owners = {n: owners.view(t) for n, t in WORDS.items()}
        self.reads: dict[Place, SharedLds] = {}
        self.writes: list[tuple[Place, SharedLds, Array]] = []

    def barrier(self) -> None:
        """Raises OrderMatters."""
        written = {place: lds for place, lds, _ in self.writes}
        shared = []
        for place, lds in written.items():
            own = lds.numbers(place)
            before = lds.take_bytes(self._owners, place)
            others = (before != own) & (before != 0)
            lds.put_bytes(self._owners, place, own)
            # Of several waves in one instruction the last one is there now.
            others |= lds.take_bytes(self._owners, place) != own
            if others.any():
                shared.append(lds.bytes_of(place)[others])
        if shared:
            self._check_shared(np.concatenate(shared))
        ranges = [_range(place) for place in written]
        for place, lds in self.reads.items():
            low, high = _range(place)
            if any(low < end and start < high for start, end in ranges):
                found = lds.take_bytes(self._owners, place)
                if ((found != lds.numbers(place)) & (found != 0)).any():
                    raise OrderMatters("a wave reads what another writes")
        if written:
            self._owners[1].fill(0)
        self.reads, self.writes = {}, []

    def _check_shared(self, at: Array) -> None:
        """Several waves that write a byte must write the same value each time."""
        owners = self._owners[1]
        owners[at] = self._several
        values = np.zeros(owners.size, np.int16) - 1
        for place, lds, items in self.writes:
            active = items if place.lanes is None else items[place.lanes]
            data = np.ascontiguousarray(active).reshape(-1).view(_U8)
            where = lds.bytes_of(place)
            several = owners[where] == self._several
            where, data = where[several], data[several]
            known = values[where]
            values[where] = data
            if ((known != data) & (known >= 0)).any() or (values[where] != data).any():
                raise OrderMatters("waves write different values to the same bytes")


def _range(place: Place) -> tuple[int, int]:
    """First and last byte of a place's addresses."""
    if place.range is None:
        active = place.addresses if place.lanes is None else place.addresses[place.lanes]
        low, high = (int(active.min()), int(active.max()) + place.size) if active.size else (0, 0)
        place.range = low, high
    return place.range


class Twins(Observer):
    """Of both executions at once: the rows of the second follow those of the first.

    Raises OrderMatters where they differ.
    """

    def observe(self, pc: int, what: str, data: Array) -> None:
        half = len(data) // 2 if data.ndim else 0
        if half and (data[:half] != data[half:]).any():
            raise OrderMatters(f"{what} depends on unwritten data")

    def observe_lanes(self, pc: int, what: str, data: Array, lanes: Array | None) -> None:
        half = data.shape[-2] // 2
        differs = data[..., :half, :] != data[..., half:, :]
        if lanes is not None:
            if (lanes[:half] != lanes[half:]).any():
                raise OrderMatters(f"EXEC depends on unwritten data, and with it {what}")
            differs &= lanes[:half]
        if differs.any():
            raise OrderMatters(f"{what} depends on unwritten data")


def run_in_step(batch: WorkgroupBatch, rows: Rows, limit: int) -> int:
    """Execute a batch that has one Wave of these rows; returns the number of wave instructions.

    Raises OrderMatters, or the EmulationError of an instruction; both say no more than that the
    schedule must decide.
    """
    log, count = batch.lds.log, 0
    streams = [batch]
    while streams:
        waiting = []
        while streams:
            current = streams.pop()
            wave = current.waves[0]
            current.denormals.flush(wave.flush_denormals)
            executed = wave.executed
            outcome = step(current, wave, limit + 1 - executed)
            count += (wave.executed - executed) * current.size
            if wave.executed > limit:
                raise Timeout(f"more than {limit} instructions")
            if outcome == DIVERGED:
                taken = np.nonzero(wave.diverged)[0]
                others = np.nonzero(~wave.diverged)[0]
                streams += [current.select(others), current.select(taken)]
            elif outcome == BARRIER:
                waiting.append(current)
        if batch.checks.same_barrier:
            _check_meeting(waiting, rows)
        if log is not None:
            log.barrier()
        for stream in waiting:
            stream.epoch += 1
        streams = waiting
    return count


def _check_meeting(waiting: list[WorkgroupBatch], rows: Rows) -> None:
    """All waves of a workgroup must have come to the same barrier, or have ended."""
    at = np.full((rows.copies, rows.waves, rows.workgroups), -1)
    for stream in waiting:
        at.reshape(-1)[stream.lds.rows] = stream.waves[0].pc
    if (at != at[:, :1]).any():
        raise OrderMatters("waves do not meet at a barrier")
