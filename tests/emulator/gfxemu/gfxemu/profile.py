# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Statistics of a launch: executed instructions, and accesses of memory.

    profile = Profile("gfx942")
    device.launch(kernel, profile.instrument(program), ..., checks=Checks.none())
    profile.summary()

A program is instrumented by wrapping its functions, so that a launch without statistics does not
know of them. The estimates are of access patterns, not of time:

- LDS: an access is served in groups of as many lanes as fill the banks once; a group takes as many
  passes as the most wanted bank has different dwords to give. Lanes come in order, but for reads
  of 16 bytes, which MI300 serves in groups like 0-3 with 20-23 (AMD's article "Avoiding LDS Bank
  Conflicts on AMD GPUs Using CK-Tile Framework"); gfx950 is taken to do the same.
- Global memory: bytes asked for, of the bytes of the 128-byte lines that they lie in, instruction
  by instruction. Caches are not modelled.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from gfxemu import operands
from gfxemu.decoder import Decoding, Execute, Program
from gfxemu.disassembler import Instruction
from gfxemu.vector_memory import Access, buffer_address, global_address, in_range
from gfxemu.wave import DIVERGED, LANES, Wave

Array = np.ndarray
Probe = Callable[[Wave], None]

_LINE = 128
_BANKS = {"gfx90a": 32, "gfx942": 32, "gfx950": 64}
# Lanes in the order in which reads of 16 bytes are served.
_HALF = [*range(4), *range(20, 24), *range(4, 8), *range(16, 20),
         *range(8, 12), *range(28, 32), *range(12, 16), *range(24, 28)]  # fmt: skip
_READ_16 = np.array(_HALF + [lane + 32 for lane in _HALF])
_IN_ORDER = np.arange(LANES)
_DS = re.compile(r"ds_(read|write)(2?)(?:st64)?_[bui](\d+)")
_GLOBAL = re.compile(r"(buffer|global|flat)_(load|store|atomic)_([a-z]+\d*)")
_BYTES = {"ubyte": 1, "sbyte": 1, "byte": 1, "ushort": 2, "sshort": 2, "short": 2, "dword": 4,
          "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}  # fmt: skip
_CLASSES = (
    ("mfma", r"v_mfma"),
    ("accumulator move", r"v_accvgpr"),
    ("vector", r"v_"),
    ("LDS", r"ds_"),
    ("scratch", r"scratch_"),
    ("global", r"(buffer|global|flat)_"),
    ("scalar load", r"s_(buffer_)?load"),
    ("wait", r"s_(waitcnt|barrier|nop|sleep)"),
    ("branch", r"s_(c?branch|endpgm)"),
    ("scalar", r"s_"),
)


def instruction_class(name: str) -> str:
    return next((c for c, pattern in _CLASSES if re.match(pattern, name)), "other")


@dataclasses.dataclass
class Use:
    """`done` units of work, of which `needed` would do."""

    needed: int = 0
    done: int = 0

    @property
    def efficiency(self) -> float | None:
        return self.needed / self.done if self.done else None


class Profile:
    """Collects over all launches of the programs that it instruments."""

    def __init__(self, arch: str):
        self._banks = _BANKS[arch]
        self.classes: dict[str, int] = {}
        self.lds: dict[str, Use] = {"read": Use(), "write": Use()}
        self.memory: dict[str, Use] = {"load": Use(), "store": Use(), "atomic": Use()}
        self.opcodes: dict[str, Use] = {}

    def instrument(self, program: Program) -> Program:
        index_of = {i.address: i.index for i in program.instructions}
        functions = []
        for function, instruction in zip(program.functions, program.instructions, strict=True):
            parsed = tuple(
                operands.parse(text, program.accum_offset)
                for text in instruction.operands
                if not text.startswith(("hwreg(", "vmcnt(", "lgkmcnt(", "expcnt("))
            )
            decoding = Decoding(instruction, parsed, program.arch, program.vgprs, index_of)
            functions.append(self._counted(function, instruction, self._probe(decoding)))
        return dataclasses.replace(program, functions=functions, instrumented=True)

    def summary(self) -> dict[str, Any]:
        """JSON: counts of wave instructions, and efficiencies (null where there is no access)."""
        total = sum(self.classes.values())

        def efficiencies(uses: dict[str, Use]) -> dict[str, float | None]:
            return {n: None if u.efficiency is None else round(u.efficiency, 4)
                    for n, u in uses.items()}  # fmt: skip

        worst = {n: round(u.efficiency, 4) for n, u in sorted(self.opcodes.items()) if u.efficiency}
        return {
            "wave_instructions": total,
            "classes": dict(sorted(self.classes.items())),
            "mfma_share": round(self.classes.get("mfma", 0) / max(total, 1), 4),
            "lds_efficiency": efficiencies(self.lds),
            "global_efficiency": efficiencies(self.memory),
            "opcode_efficiency": worst,
        }

    def _counted(self, function: Execute, instruction: Instruction, probe: Probe | None) -> Execute:
        kind, classes = instruction_class(instruction.name), self.classes

        def execute(w: Wave) -> int | None:
            if probe is not None:
                probe(w)
            outcome = function(w)
            if outcome != DIVERGED:  # executed again by the parts of the batch
                classes[kind] = classes.get(kind, 0) + w.size
            return outcome

        return execute

    def _probe(self, d: Decoding) -> Probe | None:
        match = _DS.match(d.name)
        if match:
            which, two, bits = match.groups()
            register = d.vector_range(d.operands[1 if which == "read" else 0], 1)
            return self._lds_probe(d.name, self.lds[which], register, int(bits) // 8,
                                   2 if two else 1)  # fmt: skip
        match = _GLOBAL.match(d.name)
        return self._global_probe(d, *match.groups()) if match else None

    def _lds_probe(self, name: str, use: Use, register: int, size: int, accesses: int) -> Probe:
        dwords = max(size // 4, 1)
        # Groups of a power of two: three dwords take the place of four.
        group = min(self._banks // (4 if dwords == 3 else dwords), LANES)
        own = self.opcodes.setdefault(name, Use())
        order = _READ_16 if size == 16 and name.startswith("ds_read") else _IN_ORDER

        def probe(w: Wave) -> None:
            # Both accesses of a ds_read2 have the same pattern: their offsets are constants.
            lanes = w.lanes[:, order]
            first = w.v[register][:, order] >> np.uint32(2)
            passes = _passes(first, lanes, dwords, group, self._banks)
            groups = lanes.reshape(w.size, -1, group).any(axis=2).sum()
            for u in (use, own):
                u.needed += int(groups) * accesses
                u.done += passes * accesses

        return probe

    def _global_probe(self, d: Decoding, space: str, direction: str, kind: str) -> Probe:
        size = 4 if direction == "atomic" else _BYTES[kind]
        use = self.memory[direction]
        own = self.opcodes.setdefault(d.name, Use())
        store = direction != "load"
        if space == "buffer":
            where = buffer_address(d, 0 if d.instruction.flag("lds") else 1, Access(size, 1))

            def active(w: Wave) -> tuple[Array, Array]:
                addresses, offsets, records = where.resolve(w)
                valid = in_range(w, offsets, records, size)
                return addresses, w.lanes if valid is None else valid
        else:
            saddr = d.operands[2] if len(d.operands) > 2 else None
            resolve = global_address(d, d.operands[0 if store else 1], saddr)

            def active(w: Wave) -> tuple[Array, Array]:
                return resolve(w), w.lanes

        def probe(w: Wave) -> None:
            addresses, valid = active(w)
            shape = (w.size, LANES)
            needed, done = _lines(
                np.broadcast_to(addresses, shape), np.broadcast_to(valid, shape), size
            )
            for u in (use, own):
                u.needed += needed
                u.done += done

        return probe


def _passes(dwords: Array, lanes: Array, count: int, group: int, banks: int) -> int:
    """Passes over the banks that all groups of lanes take. `dwords` are first dword addresses."""
    total = 0
    wanted = dwords[..., None].astype(np.int64) + np.arange(count)
    for first in range(0, LANES, group):
        chosen = slice(first, first + group)
        for row, active in zip(wanted[:, chosen], lanes[:, chosen], strict=True):
            different = np.unique(row[active])
            if different.size:
                total += int(np.bincount(different % banks).max())
    return total


def _lines(addresses: Array, valid: Array, size: int) -> tuple[int, int]:
    """(different bytes asked for, bytes of the lines they lie in), wave by wave."""
    needed = done = 0
    for row, active in zip(addresses, valid, strict=True):
        starts = np.unique(row[active])
        if not starts.size:
            continue
        # Accesses are aligned to their size or nearly so: overlaps of different starts are rare.
        needed += starts.size * size
        lines = np.concatenate(
            [starts // np.uint64(_LINE), (starts + np.uint64(size - 1)) // np.uint64(_LINE)]
        )
        done += np.unique(lines).size * _LINE
    return needed, done
