# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Load code objects and launch their kernels.

    device = Device("gfx942", LlvmMc.from_environment())
    address = device.memory.register(array, "q")
    kernel, program = device.program(code, "kernel")
    report = device.launch(kernel, program, grid=(2, 1, 1), block=(256, 1, 1), kernarg=packed)

A launch is synchronous. Decoded kernels are cached by the digest of the code object.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import re
import struct
import time
from collections.abc import Mapping, Sequence

import numpy as np

from gfxemu import code_object, decoder, vector_memory
from gfxemu.checks import POISONS, Checks, Comparer, ControlFlowDiffers, Finding, Observer, Recorder
from gfxemu.code_object import CodeObject, Kernel
from gfxemu.decoder import Program
from gfxemu.disassembler import LlvmMc
from gfxemu.errors import EmulationError, UnsupportedInstruction
from gfxemu.float_environment import Float32Denormals
from gfxemu.in_step import Rows, SharedLds, Twins, run_in_step
from gfxemu.lds import Clash, Lds, RaceDetector
from gfxemu.memory import Copies, Memory
from gfxemu.scalars import Scalar
from gfxemu.wave import LANES, Wave
from gfxemu.workgroup import Schedule, Sliced, WorkgroupBatch, run

Dim3 = tuple[int, int, int]
_LDS_LIMIT = {"gfx90a": 64 << 10, "gfx942": 64 << 10, "gfx950": 160 << 10}
_SUB_DWORD_LDS = re.compile(r"ds_(read|write)_[bui](8|16)\b|ds_(read|write)_[bui](8|16)_")
# The number of workgroups that run in step. More is faster per workgroup until caches overflow.
_BATCH = 16
# The same of waves in step.
_ROWS = 96


@dataclasses.dataclass
class Report:
    """The report of a launch. `wave_instructions` counts every wave of every workgroup, in each
    execution; `seconds` is processor time. `in_step` if the waves were executed in step."""

    kernel: str
    wave_instructions: int
    seconds: float
    findings: list[Finding]
    in_step: bool = False

    @property
    def microseconds_per_instruction(self) -> float:
        return 1e6 * self.seconds / max(self.wave_instructions, 1)

    def raise_findings(self) -> None:
        if self.findings:
            lines = "\n".join(str(f) for f in self.findings)
            raise EmulationError(f"{len(self.findings)} findings in {self.kernel}:\n{lines}")


class Device:
    """One emulated GPU: an arch, its memory and the kernels decoded so far."""

    def __init__(self, arch: str, assembler: LlvmMc):
        if arch not in _LDS_LIMIT:
            raise ValueError(f"arch {arch!r}: the emulator knows {', '.join(sorted(_LDS_LIMIT))}")
        decoder.load_all()
        self.arch, self.memory = arch, Memory()
        self._assembler = assembler
        self._objects: dict[bytes, CodeObject] = {}
        self._programs: dict[tuple[bytes, str], Program] = {}

    def load(self, code: bytes) -> CodeObject:
        """Parse a code object (cached); refuses one of another arch."""
        digest = hashlib.sha256(code).digest()
        if digest not in self._objects:
            parsed = code_object.parse(code)
            if parsed.arch != self.arch:
                raise EmulationError(f"a {parsed.arch} code object on an emulated {self.arch}")
            self._objects[digest] = parsed
        return self._objects[digest]

    def program(self, code: bytes, symbol: str) -> tuple[Kernel, Program]:
        """The decoded kernel (cached). Raises UnsupportedInstruction for what is not known."""
        kernel = self.load(code).kernel(symbol)
        key = (hashlib.sha256(code).digest(), kernel.name)
        if key not in self._programs:
            d = kernel.descriptor
            listing = self._assembler.disassemble(kernel.code, self.arch, d.entry)
            program = decoder.decode(listing, self.arch, d.vgprs, d.accum_offset)
            self._programs[key] = program
        return kernel, self._programs[key]

    def launch(
        self,
        kernel: Kernel,
        program: Program,
        *,
        grid: Dim3,
        block: Dim3,
        kernarg: bytes,
        dynamic_lds: int = 0,
        schedule: str = "sliced:8",
        checks: Checks | None = None,
        uninitialised: Sequence[int] = (),
        instruction_limit: int = 20_000_000,
        in_step: bool = True,
        image: int | None = None,
    ) -> Report:
        """Execute a grid of workgroups: of the kernel's own program, or of one changed by a test.

        `uninitialised` names registered buffers (by address) whose contents count as unwritten,
        beside the bytes that a buffer's own `written` says so of. With `in_step` the waves of a
        sliced schedule are executed in step where that gives the same (in_step.py). `image` is the
        address of the code object's image where it is registered, with what variables hold; without
        one a fresh copy is there for this launch.
        Raises EmulationError; findings that do not stop the execution are in the report. With
        `checks.uninitialised` the kernel executes twice, and memory keeps the second result.
        """
        checks = checks or Checks()
        _check_sizes(self.arch, kernel, grid, block, kernarg, dynamic_lds)
        job = _Job(kernel, program, grid, block, dynamic_lds, schedule, checks, instruction_limit)
        arguments = np.zeros(max(kernel.descriptor.kernarg_size, len(kernarg), 16), np.uint8)
        arguments[: len(kernarg)] = np.frombuffer(kernarg, np.uint8)
        _fill_hidden(arguments, kernel, job)
        packet = np.frombuffer(_dispatch_packet(job), np.uint8).copy()
        own = [
            self.memory.register(arguments, "kernel arguments"),
            self.memory.register(packet, "dispatch packet"),
        ]
        if image is None:  # kernels read their constants there
            code = np.frombuffer(kernel.image or b"\0", np.uint8).copy()
            own.append(self.memory.register(code, "code object"))
        addresses = own if image is None else [*own, image]
        start = time.process_time()
        try:
            sliced = isinstance(Schedule.parse(schedule), Sliced)
            if in_step and sliced and not program.instrumented:
                count = self._execute_in_step(job, addresses, uninitialised)
                if count is not None:
                    return Report(kernel.name, count, time.process_time() - start, [], True)
            if checks.uninitialised:
                return self._launch_twice(job, addresses, uninitialised, start)
            findings, count = self._execute(job, addresses, POISONS[0], uninitialised, None)
            return Report(kernel.name, count, time.process_time() - start, findings)
        finally:
            for address in own:
                self.memory.unregister(address)

    def _execute_in_step(
        self, job: _Job, addresses: list[int], uninitialised: Sequence[int]
    ) -> int | None:
        """Execute all waves in step, with both poisons at once; memory changes at the end only.

        Gives None where the schedule must decide, for any reason: the execution that follows
        finds it again.
        """
        poisons = POISONS if job.checks.uninitialised else POISONS[:1]
        observer = Twins() if job.checks.uninitialised else None
        memory = Copies(self.memory, poisons, uninitialised)
        count, each = 0, max(_ROWS // (job.waves * len(poisons)), 1)
        try:
            with Float32Denormals() as denormals, np.errstate(all="ignore"):
                for first in range(0, len(job.workgroups), each):
                    ids = job.workgroups[first : first + each]
                    rows = Rows(len(poisons), job.waves, len(ids))
                    batch = job.make_step_batch(
                        rows, ids, memory, addresses, poisons, denormals, observer
                    )
                    count += run_in_step(batch, rows, job.instruction_limit)
                    if batch.soffset_decided:
                        return None
        except Exception:
            return None
        memory.commit()
        return count

    def _launch_twice(
        self, job: _Job, addresses: list[int], uninitialised: Sequence[int], start: float
    ) -> Report:
        before = [
            (b, b.data.copy(), None if b.written is None else b.written.copy())
            for b in self.memory.buffers()
        ]
        recorder = Recorder()
        _, first = self._execute(job, addresses, POISONS[0], uninitialised, recorder)
        for buffer, data, written in before:
            buffer.data[...] = data
            if buffer.written is not None:
                buffer.written[...] = written
        comparer = Comparer(recorder.log)
        findings: list[Finding] = []
        count = 0
        try:
            findings, count = self._execute(job, addresses, POISONS[1], uninitialised, comparer)
        except ControlFlowDiffers:
            pass  # the difference that led here is recorded
        except EmulationError:
            # It did not happen in the first execution, so poison led to it.
            if not comparer.differences:
                raise
        instructions = job.program.instructions
        for (pc, what), times in comparer.differences.items():
            message = f"{what} depends on unwritten data ({times} times): {instructions[pc]!r}"
            findings.append(_finding(job.program, "uninitialised", message, {pc}))
        return Report(job.kernel.name, first + count, time.process_time() - start, findings)

    def _execute(
        self, job: _Job, addresses: list[int], poison: int, uninitialised: Sequence[int],
        observer: Observer | None,
    ) -> tuple[list[Finding], int]:  # fmt: skip
        for buffer in self.memory.buffers():
            buffer.poison(poison)
            if buffer.address in uninitialised:
                buffer.fill(poison)
        clashes: dict[tuple[int, int, str], Clash] = {}
        decided: collections.Counter[int] = collections.Counter()
        count = 0
        with Float32Denormals() as denormals, np.errstate(all="ignore"):
            for first in range(0, len(job.workgroups), _BATCH):
                ids = job.workgroups[first : first + _BATCH]
                batch = job.make_batch(ids, self.memory, addresses, poison, denormals, observer)
                for ended in run(batch, Schedule.parse(job.schedule), job.instruction_limit):
                    count += sum(w.executed for w in ended.waves) * ended.size
                    if ended.lds.races is not None:
                        clashes.update(ended.lds.races.clashes)
                decided.update(batch.soffset_decided)
        findings = _race_findings(job.program, list(clashes.values()))
        return findings + _soffset_findings(job.program, decided), count


@dataclasses.dataclass(frozen=True)
class _Job:
    kernel: Kernel
    program: Program
    grid: Dim3
    block: Dim3
    dynamic_lds: int
    schedule: str
    checks: Checks
    instruction_limit: int

    @property
    def workgroups(self) -> list[Dim3]:
        gx, gy, gz = self.grid
        return [(x, y, z) for z in range(gz) for y in range(gy) for x in range(gx)]

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def waves(self) -> int:
        return -(-self.threads // LANES)

    @property
    def lds_grain(self) -> int:
        """Bytes that are distinguished when accesses of LDS are compared."""
        one = any(_SUB_DWORD_LDS.match(i.name) for i in self.program.instructions)
        return 1 if one else 4

    @property
    def lds_size(self) -> int:
        return self.kernel.descriptor.group_segment_size + self.dynamic_lds

    def make_batch(
        self, ids: list[Dim3], memory: Memory, addresses: list[int], poison: int,
        denormals: Float32Denormals, observer: Observer | None,
    ) -> WorkgroupBatch:  # fmt: skip
        d = self.kernel.descriptor
        lds = Lds(len(ids), self.lds_size, poison, drop_stores=not self.checks.lds_stores)
        if self.checks.races and self.waves > 1 and self.lds_size:
            lds.races = RaceDetector(len(ids), self.lds_size, self.waves, self.lds_grain)
        batch = WorkgroupBatch(
            ids, self.program, memory, lds, denormals, observer, self.checks, addresses[2]
        )
        for index in range(self.waves):
            wave = Wave(batch, index, batch.size, d.vgprs, d.private_segment_size, poison,
                        self.checks.late_landing)  # fmt: skip
            self._initialise(wave, np.full(batch.size, index), addresses)
            batch.add_wave(wave)
        return batch

    def make_step_batch(
        self, rows: Rows, ids: list[Dim3], memory: Copies, addresses: list[int],
        poisons: Sequence[int], denormals: Float32Denormals, observer: Observer | None,
    ) -> WorkgroupBatch:  # fmt: skip
        """One Wave with a row for every wave of the workgroups in each copy of memory."""
        d = self.kernel.descriptor
        lds = SharedLds(rows, self.lds_size, poisons, drop_stores=not self.checks.lds_stores)
        batch = WorkgroupBatch(
            ids * (rows.waves * rows.copies), self.program, memory, lds, denormals, observer,
            self.checks, addresses[2],
        )  # fmt: skip
        poison: Scalar = poisons[0]
        copies = None
        if rows.copies > 1:
            poison = np.array(poisons, np.uint64)[rows.copy]
            copies = rows.copy.astype(np.uint64)[:, None]
        wave = Wave(batch, 0, batch.size, d.vgprs, d.private_segment_size, poison,
                    self.checks.late_landing, copies)  # fmt: skip
        self._initialise(wave, rows.wave, addresses)
        batch.add_wave(wave)
        return batch

    def _initialise(self, wave: Wave, numbers: np.ndarray, addresses: list[int]) -> None:
        """Initial register state: LLVM's AMDGPU guide, "Initial Kernel Execution State"."""
        d = self.kernel.descriptor
        wave.flush_denormals = d.flush_f32_denormals
        values = {"kernarg_segment_ptr": addresses[0], "dispatch_ptr": addresses[1]}
        for name, first, count in code_object.user_sgpr_layout(d):
            if name == "private_segment_buffer":
                for index, word in enumerate(vector_memory.SCRATCH):
                    wave.write32(first + index, word)
                continue
            if name == "flat_scratch_init":  # accesses through flat addresses are not implemented
                wave.write64(first, 0)
                continue
            if name not in values:
                raise EmulationError(f"{self.kernel.name} asks for {name}, which is not provided")
            assert count == 2
            wave.write64(first, values[name])
        register = d.user_sgprs
        for axis in range(3):
            if d.workgroup_id[axis]:
                column = np.array([i[axis] for i in wave.group.ids], np.uint64)
                wave.write32(register, int(column[0]) if (column == column[0]).all() else column)
                register += 1
        if "private_segment_buffer" in d.enabled:
            wave.write32(register, 0)  # the wave's offset in it, which kernels add
        items = numbers[:, None] * LANES + np.arange(LANES)
        bx, by, _ = self.block
        packed = items % bx | items // bx % by << 10 | items // (bx * by) << 20
        wave.v[0][...] = packed.astype(np.uint32)
        wave.set_exec_mask(items < self.threads)


def _check_sizes(
    arch: str, kernel: Kernel, grid: Dim3, block: Dim3, kernarg: bytes, dynamic_lds: int
) -> None:
    """The errors a HIP launch reports."""
    threads = block[0] * block[1] * block[2]
    limit = kernel.metadata.get(".max_flat_workgroup_size", 1024)
    if not 0 < threads <= limit or min(grid) < 1:
        raise EmulationError(f"grid {grid}, block {block}: {kernel.name} allows 1..{limit} items")
    size = kernel.descriptor.group_segment_size + dynamic_lds
    if size > _LDS_LIMIT[arch]:
        raise EmulationError(f"{size} bytes of LDS; {arch} has {_LDS_LIMIT[arch]}")
    if kernel.descriptor.kernarg_preload:
        raise EmulationError(f"{kernel.name} preloads kernel arguments, which is not implemented")
    if len(kernarg) > max(kernel.descriptor.kernarg_size, 16):
        raise EmulationError(
            f"{len(kernarg)} bytes of kernel arguments; "
            f"{kernel.name} takes {kernel.descriptor.kernarg_size}"
        )


def _fill_hidden(arguments: np.ndarray, kernel: Kernel, job: _Job) -> None:
    """The hidden arguments of code object V5 that depend on the launch; the others stay zero."""
    values: dict[str, int] = {}
    for axis, name in enumerate("xyz"):
        values[f"hidden_block_count_{name}"] = job.grid[axis]
        values[f"hidden_group_size_{name}"] = job.block[axis]
        values[f"hidden_remainder_{name}"] = 0
        values[f"hidden_global_offset_{name}"] = 0
    values["hidden_grid_dims"] = 3 if job.grid[2] > 1 else 2 if job.grid[1] > 1 else 1
    values["hidden_dynamic_lds_size"] = job.dynamic_lds
    for kind, offset, size in kernel.hidden_arguments():
        if kind not in values and kind != "hidden_none":
            raise UnsupportedInstruction(f"{kernel.name} declares {kind}, which is not provided")
        raw = values.get(kind, 0).to_bytes(size, "little")
        arguments[offset : offset + size] = np.frombuffer(raw, np.uint8)


def _dispatch_packet(job: _Job) -> bytes:
    """hsa_kernel_dispatch_packet_t; grid sizes count work-items."""
    items = tuple(g * b for g, b in zip(job.grid, job.block, strict=True))
    private = job.kernel.descriptor.private_segment_size
    head = struct.pack("<HHHHHHIIIII", 2, 3, *job.block, 0, *items, private, job.lds_size)
    return head.ljust(64, b"\0")


def _race_findings(program: Program, clashes: Sequence[Clash]) -> list[Finding]:
    """Races one by one; unwaited accesses, which come in whole tiles, one finding per kind."""
    findings = []
    groups: dict[str, list[Clash]] = {}
    for clash in clashes:
        groups.setdefault(clash.kind, []).append(clash)
    for kind, members in groups.items():
        if kind == "race":
            findings.extend(_race_finding(program, kind, [clash]) for clash in members)
        else:
            findings.append(_race_finding(program, kind, members))
    return findings


def _soffset_findings(program: Program, decided: Mapping[int, int]) -> list[Finding]:
    return [
        _finding(program, "soffset", f"soffset decides the range check of {lanes} lanes: "
                 f"{program.instructions[pc]!r}", {pc})
        for pc, lanes in sorted(decided.items())
    ]  # fmt: skip


def _race_finding(program: Program, kind: str, clashes: list[Clash]) -> Finding:
    instructions, c = program.instructions, clashes[0]
    first, second = instructions[c.first_pc], instructions[c.second_pc]
    verb = ["reads", "writes"]
    why = "no barrier between"
    if c.unwaited:
        why = "a barrier, but no s_waitcnt before it, between"
    more = f"\n    and {len(clashes) - 1} more pairs" if len(clashes) > 1 else ""
    message = (
        f"{why}: wave {c.first_wave} {verb[c.first_write]} and wave {c.second_wave} "
        f"{verb[c.second_write]} LDS {c.address:#x}\n    {first!r}\n    {second!r}{more}"
    )
    return _finding(
        program, kind, message, {pc for x in clashes for pc in (x.first_pc, x.second_pc)}
    )


def _finding(program: Program, kind: str, message: str, pcs: set[int]) -> Finding:
    opcodes = {program.instructions[pc].name for pc in pcs}
    return Finding(kind, message, tuple(sorted(opcodes)))
