# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Figures of a real code object, and of small pieces of code whose figures are known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.resources import measure
from kernels.resources.disassembly import Instruction, loops
from kernels.resources.figures import (
    ToolError,
    disassemble,
    estimated_cycles,
    figures,
    main_loop,
)

_SYMBOL = "attn_sum_heads_fp16"
_MCA = Path(os.environ["MCA"])


def _code(*lines: str, target: int | None = None) -> list[Instruction]:
    """Four bytes each; the last branches to the target, an index."""
    goes = None if target is None else 4 * target
    return [
        Instruction(4 * i, line, goes if i == len(lines) - 1 else None)
        for i, line in enumerate(lines)
    ]


def test_a_real_kernel_is_disassembled_to_its_end_and_its_loops_are_found() -> None:
    instructions = disassemble(Path(os.environ["SUM_HEADS"]), _SYMBOL, Path(os.environ["OBJDUMP"]))
    assert "s_endpgm" in [instruction.name for instruction in instructions]
    found = figures(instructions, "gfx942", _MCA)
    # Its main loop sums the heads of a group: eight additions and a load for each.
    main = main_loop(loops(instructions))
    assert main is not None
    assert main.count("global_load") >= 1
    assert found.loop == len(main.instructions) < found.instructions == len(instructions)
    assert found.waits >= 1
    assert found.loop_scratch == 0
    assert found.cycles is not None
    assert found.cycles >= found.loop - found.waits - found.nops


def test_a_kernel_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ToolError, match=r"objdump failed: .*absent"):
        disassemble(Path("absent.hsaco"), _SYMBOL, Path(os.environ["OBJDUMP"]))


def test_an_object_of_several_kernels_is_refused_by_name(tmp_path: Path) -> None:
    metadata = tmp_path / "norm.json"
    metadata.write_text(
        json.dumps({"instance": "norm", "arch": "gfx942", "kernels": {"a": {}, "b": {}}})
    )
    given = {"code_object": "x", "metadata": metadata, "spec": "x", "objdump": "x", "mca": "x"}
    done = subprocess.run(
        [
            sys.executable,
            "-B",
            measure.__file__,
            *(f"--{k}={v}" for k, v in given.items()),
            "--out=x",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 1
    assert done.stderr == (
        "norm, gfx942: it has 2 kernels; only code objects of one kernel are measured\n"
    )


def test_what_llvm_mca_does_not_know_is_an_error_with_its_words() -> None:
    with pytest.raises(ToolError, match=r"mca failed: [^$]*no_such_instruction"):
        estimated_cycles(_code("no_such_instruction v0"), "gfx942", 1, _MCA)


def test_lanes_in_loops_alone_are_counted() -> None:
    code = _code(
        "v_writelane_b32 v1, s0, 3",
        "v_readlane_b32 s0, v1, 3",
        "v_readlane_b32 s1, v1, 4",
        "s_cbranch_scc1 0",
        target=1,
    )
    assert figures(code, "gfx942", _MCA).loop_lanes == 2


def test_scratch_in_loops_alone_is_counted() -> None:
    code = _code(
        "scratch_load_dword v1, off, off offset:16",
        "v_add_f32_e32 v0, v0, v1",
        "scratch_store_dword off, v0, off offset:16",
        "s_waitcnt vmcnt(0)",
        "s_nop 0",
        "s_cbranch_scc1 0",
        target=1,
    )
    found = figures(code, "gfx942", _MCA)
    assert (found.loop_scratch, found.loop, found.waits, found.nops) == (1, 5, 1, 1)


def test_the_main_loop_is_the_one_with_most_matrix_instructions() -> None:
    loop = ["v_add_f32_e32 v0, v0, v1"] * 9
    code = [Instruction(4 * i, text) for i, text in enumerate(loop)]
    code.append(Instruction(36, "s_cbranch_scc1 0", 0))
    code.append(Instruction(40, "v_mfma_f32_32x32x8_bf16_1k a[0:15], v[0:1], v[2:3], a[0:15]"))
    code.append(Instruction(44, "s_cbranch_vccz 0", 40))
    code.append(Instruction(48, "s_endpgm"))
    main = main_loop(loops(code))
    assert main is not None
    assert main.head == 40


def test_cycles_are_of_one_turn_and_of_all_where_nothing_turns() -> None:
    # A chain of dependent instructions: each takes its latency, in every turn.
    chain = ["v_exp_f32_e32 v0, v0"] * 4
    straight = figures(_code(*chain, "s_endpgm"), "gfx942", _MCA)
    turning = figures(_code(*chain, "s_cbranch_scc1 0", target=0), "gfx942", _MCA)
    longer = figures(_code(*chain * 2, "s_cbranch_scc1 0", target=0), "gfx942", _MCA)
    assert straight.loop == 0
    assert straight.cycles
    assert turning.cycles
    assert longer.cycles
    assert 1.5 < longer.cycles / turning.cycles < 2.5


def test_llvm_mca_ends_where_a_wide_multiplication_would_hold_it() -> None:
    code = _code(
        "ds_read_b128 v[124:127], v83 offset:16640",
        "v_add_u32_e32 v104, s0, v200",
        "v_mfma_f32_16x16x16_bf16 v[66:69], v[112:113], a[8:9], v[66:69]",
        "ds_read_b128 v[110:113], v83 offset:20736",
        "v_mad_u64_u32 v[82:83], s[0:1], v104, s25, v[82:83]",
        "v_mfma_f32_16x16x16_bf16 v[98:101], v[124:125], a[2:3], v[66:69]",
    )
    cycles = estimated_cycles(code, "gfx942", 1, _MCA)
    assert cycles is not None
    assert cycles < 100
    # Without the substitute it waits for ever; when it ends, the substitute can go.
    text = "".join(instruction.text + "\n" for instruction in code)
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(
            [str(_MCA), "-mtriple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "--iterations=1"],
            input=text,
            capture_output=True,
            text=True,
            timeout=3,
            check=False,
        )
