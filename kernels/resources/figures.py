# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The figures of a kernel's machine code."""

from __future__ import annotations

import dataclasses
import functools
import re
import resource
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernels.resources.disassembly import (
    Instruction,
    Loop,
    count,
    innermost,
    loops,
    parse,
)
from kernels.resources.waits import early_uses

# Turns of a loop that llvm-mca goes through: the second number less the first is the steady state.
_TURNS = (2, 6)
# A loop of a thousand instructions takes it a quarter of a second.
_MOST_SECONDS = 20
_CYCLES = re.compile(r"^Total Cycles:\s+(\d+)$", re.MULTILINE)
# llvm-mca 22 waits for ever at v_mad_u64_u32 behind v_mfma with loads from LDS under way. It
# gets the multiplication of the low halves instead, which takes the same unit.
_WIDE_MULTIPLY = re.compile(
    r"v_mad_[iu]64_[iu]32 v\[(?P<low>\d+):\d+\], [^,]+, (?P<a>[^,]+), (?P<b>[^,]+), .*"
)
_LANES = ("v_readlane_", "v_writelane_")
_MATRIX = ("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_")


class ToolError(Exception):
    """One of LLVM's programs failed; the message has its own."""


class OutOfTimeError(ToolError):
    """It did not end in time."""


@dataclasses.dataclass(frozen=True)
class Figures:
    """
    instructions      of the kernel
    loop_scratch      accesses to scratch in any loop
    loop_lanes        reads and writes of single lanes in any loop: of spilt scalar registers
    early             uses of a register while a load into it is under way; None but for gfx9
    loop              instructions in a turn of the main loop; 0 where there is none
    waits, nops       s_waitcnt and s_nop among them
    cycles            of a turn of the main loop, or of the kernel where there is none: llvm-mca's
                      estimate for one wave alone; None where it comes to no end

    All are None for a kernel that is not disassembled.
    """

    instructions: int | None = None
    loop_scratch: int | None = None
    loop_lanes: int | None = None
    early: int | None = None
    loop: int | None = None
    waits: int | None = None
    nops: int | None = None
    cycles: int | None = None


def main_loop(found: Sequence[Loop]) -> Loop | None:
    """Of a kernel's loops the one that holds no other and does most matrix work, then most work."""
    return max(
        innermost(found),
        key=lambda loop: (loop.count(_MATRIX), len(loop.instructions)),
        default=None,
    )


def run(command: Sequence[str], given: str = "", seconds: int = _MOST_SECONDS) -> str:
    """A program's output, given some input. Raises ToolError, OutOfTimeError.

    seconds  of processor time, at most
    """
    done = subprocess.run(
        command,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=functools.partial(resource.setrlimit, resource.RLIMIT_CPU, (seconds, seconds)),
    )
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise OutOfTimeError(f"{command[0]}: ended after {seconds} s of processor time")
    if done.returncode:
        raise ToolError(f"{command[0]} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


def disassemble(code_object: Path, symbol: str, objdump: Path) -> list[Instruction]:
    """The instructions of a kernel. Raises ToolError, DisassemblyError."""
    return parse(run([str(objdump), "-d", "-t", str(code_object)]), symbol)


def estimated_cycles(
    instructions: Sequence[Instruction], arch: str, turns: int, mca: Path
) -> int | None:
    """Cycles for `turns` passes over the instructions, by llvm-mca. Raises ToolError.

    None where it does not come to an end, as with some code.
    """
    command = [
        str(mca),
        "-mtriple=amdgcn-amd-amdhsa",
        f"-mcpu={arch}",
        f"--iterations={turns}",
        "--all-views=false",
        "--summary-view",
    ]
    try:
        text = run(command, "".join(_for_mca(i.text) + "\n" for i in instructions))
    except OutOfTimeError:
        return None
    if match := _CYCLES.search(text):
        return int(match[1])
    raise ToolError(f"{mca} printed no line 'Total Cycles:' but {text[:200]!r}")


def figures(instructions: Sequence[Instruction], arch: str, mca: Path) -> Figures:
    """The figures of a kernel, of all its instructions. Raises DisassemblyError, ToolError.

    Args:
      instructions: all of the kernel's.
      arch: for which it was compiled.
      mca: llvm-mca.
    """
    found = loops(instructions)
    in_loops = {i.address: i for loop in found for i in loop.instructions}
    main = main_loop(found)
    turn = main.instructions if main else ()
    return Figures(
        instructions=len(instructions),
        loop_scratch=count(in_loops.values(), "scratch_"),
        loop_lanes=count(in_loops.values(), _LANES),
        early=len(early_uses(instructions)) if arch.startswith("gfx9") else None,
        loop=len(turn),
        waits=count(turn, ("s_waitcnt", "s_wait_")),  # gfx12 has one for each counter
        nops=count(turn, "s_nop"),
        cycles=_cycles(turn, instructions, arch, mca),
    )


def _for_mca(instruction: str) -> str:
    return _WIDE_MULTIPLY.sub(r"v_mul_lo_u32 v\g<low>, \g<a>, \g<b>", instruction)


def _cycles(
    turn: Sequence[Instruction], whole: Sequence[Instruction], arch: str, mca: Path
) -> int | None:
    if not turn:
        return estimated_cycles(whole, arch, 1, mca)
    few, many = (estimated_cycles(turn, arch, turns, mca) for turns in _TURNS)
    if few is None or many is None:
        return None
    return round((many - few) / (_TURNS[1] - _TURNS[0]))
