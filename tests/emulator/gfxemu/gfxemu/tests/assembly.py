# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Small kernels written as text, launched without a code object around them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from gfxemu import Checks, Device, LlvmMc, Report
from gfxemu.code_object import Kernel, KernelDescriptor
from gfxemu.decoder import Program, decode

VGPRS, LDS_BYTES, SCRATCH_BYTES = 64, 1024, 64
_BLOCK = 256

DESCRIPTOR = KernelDescriptor(
    group_segment_size=LDS_BYTES,
    private_segment_size=SCRATCH_BYTES,
    kernarg_size=16,
    entry=0,
    vgprs=VGPRS,
    accum_offset=VGPRS,
    float_mode=0xC0,
    user_sgprs=2,
    workgroup_id=(True, False, False),
    enabled=frozenset({"kernarg_segment_ptr"}),
    kernarg_preload=0,
)

# s[0:1] kernel arguments {in, out}, s2 workgroup. Afterwards s[4:5] and s[6:7] are this
# workgroup's 256 dwords of both, v1 is 4 * work-item, v2 the input.
PROLOGUE = (
    "s_load_dwordx4 s[4:7], s[0:1], 0x0",
    "s_lshl_b32 s8, s2, 10",
    "v_lshlrev_b32 v1, 2, v0",
    "s_waitcnt lgkmcnt(0)",
    "s_add_u32 s4, s4, s8",
    "s_addc_u32 s5, s5, 0",
    "s_add_u32 s6, s6, s8",
    "s_addc_u32 s7, s7, 0",
    "global_load_dword v2, v1, s[4:5]",
    "s_waitcnt vmcnt(0)",
)
EPILOGUE = ("global_store_dword v1, v4, s[6:7]", "s_endpgm")
# Every wave hands its input to the wave before it, through LDS.
ROTATE = (
    *PROLOGUE,
    "ds_write_b32 v1, v2",
    "s_waitcnt lgkmcnt(0) // writes done",
    "s_barrier",
    "v_add_u32 v3, 0x100, v1",
    "v_and_b32 v3, 0x3ff, v3",
    "ds_read_b32 v4, v3",
    "s_waitcnt lgkmcnt(0) // reads done",
    *EPILOGUE,
)


@functools.cache
def program(lines: tuple[str, ...], arch: str = "gfx942") -> Program:
    Device(arch, LlvmMc.from_environment())  # registers the opcodes
    tool = LlvmMc.from_environment()
    code = tool.assemble(lines, arch)
    return decode(tool.disassemble(code, arch), arch, VGPRS, VGPRS)


def without(lines: Sequence[str], removed: str) -> tuple[str, ...]:
    assert lines.count(removed) == 1
    return tuple(line for line in lines if line != removed)


def replaced(lines: Sequence[str], old: str, new: str) -> tuple[str, ...]:
    assert lines.count(old) == 1
    return tuple(new if line == old else line for line in lines)


class Launch:
    """One launch of a text kernel over `workgroups` x 256 dwords."""

    def __init__(self, lines: Sequence[str], *, workgroups: int = 3, schedule: str = "sliced:2",
                 checks: Checks | None = None, uninitialised_input: bool = False,
                 limit: int = 10_000, block: int = _BLOCK, in_step: bool = True,
                 arch: str = "gfx942"):  # fmt: skip
        device = Device(arch, LlvmMc.from_environment())
        count = workgroups * _BLOCK
        self.input = np.arange(1000, 1000 + count, dtype=np.uint32)
        self.output = np.zeros(count, np.uint32)
        addresses = [
            device.memory.register(self.input, "in"),
            device.memory.register(self.output, "out"),
        ]
        uninitialised = [addresses[1], *([addresses[0]] if uninitialised_input else [])]
        self.report: Report = device.launch(
            Kernel("text", DESCRIPTOR, b"", {}), program(tuple(lines), arch),
            grid=(workgroups, 1, 1), block=(block, 1, 1),
            kernarg=np.array(addresses, np.uint64).tobytes(), schedule=schedule,
            checks=checks or Checks(), uninitialised=uninitialised, instruction_limit=limit,
            in_step=in_step,
        )  # fmt: skip
        self.kinds = [f.kind for f in self.report.findings]
