# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""AITER's kernels in the emulator: each as its table says it is, and right, with every check on;
the defects of defects.toml are found where they are said to be, and nowhere else."""

from __future__ import annotations

import os
import re

import pytest

from kernels.aiter_asm import table
from kernels.aiter_asm.table import AsmObject
from tests.emulation.aiter_asm import launches
from tests.emulation.aiter_asm.launches import Result
from tests.emulation.aiter_asm.problems import Problem, meets, problems
from tests.emulation.verify.verdict import GATES, Gate

# Truncated numbers are off by up to twice as much as rounded ones, and all the same way.
_TRUNCATED = Gate(1.2, 4.0)
# Of outputs that are rounded from sums, which are off themselves.
_GATES = GATES | {"dq": Gate(0.9, 4.0), "dk, summed": GATES["dk"], "dv, summed": GATES["dv"]}

# By defect, the findings that show it, and others that may come with them.
_RACES = {
    "P": ({"race: buffer_load_dwordx4, ds_read_b64_tr_b16"},
          {"unwaited-write: buffer_load_dwordx4",
           "unwaited-read: buffer_load_dwordx4, ds_read_b128"}),
    "Q": ({"race: ds_read_b64, ds_write_b128"}, set()),
    "R": ({"race: buffer_load_dwordx4, ds_read_b128"},
          {"unwaited-read: buffer_load_dwordx4, ds_read_b64_tr_b16"}),
    "U": ({"uninitialised: buffer_store_dword", "uninitialised: buffer_store_dwordx4"}, set()),
    "V": ({"unwaited-read: ds_read_b128, ds_write_b32"}, set()),
}  # fmt: skip
# By defect, what stops the kernel: it reaches beyond its buffers.
_FAULTS = {
    "S": r"MemoryFault.*nearest: (lse|q|k|v|do|dk|dv|dq_acc|delta) .*: buffer_load_dword ",
    "T": r"MemoryFault.*: buffer_load_dwordx4 ",
    "W": r"MemoryFault.*(: buffer_load_dword |: buffer_atomic_)",
}
# By defect, the outputs that are wrong with it, in any schedule.
_WRONG = {"U": {"lse"}, "X": {"lse"}, "Y": {"dk", "dv", "dk, summed", "dv, summed"}}
_MAY_BE_WRONG = {"U": {"o"}}

_KERNELS = os.environ["AITER_ASM_KERNELS"]
_OBJECTS = [
    chosen
    for chosen in launches.objects().objects
    if f"{chosen.direction} {chosen.arch}" == _KERNELS
]


def _launch(chosen: AsmObject, problem: Problem) -> Result:
    if chosen.direction == "forward":
        return launches.forward(chosen, problem.case, gap=problem.gap)
    return launches.backward(
        chosen, problem.case, head_size=problem.head_size, gap=problem.gap, behind=problem.behind
    )


def _right(chosen: AsmObject, result: Result) -> dict[str, bool]:
    """By output, whether it is as near as its rounding allows."""
    return {
        name: (_TRUNCATED if chosen.rounding == "rtz" and name != "lse" else _GATES[name]).allows(
            error.rms, error.largest
        )
        for name, error in result.errors.items()
    }


def _check(chosen: AsmObject, problem: Problem, result: Result) -> None:
    where = f"{chosen.file}: {problem}"
    letters = {d.letter for d in chosen.defects if meets(d, chosen, problem)}
    faults = [_FAULTS[letter] for letter in sorted(letters) if letter in _FAULTS]
    if faults:
        assert any(re.search(f, result.fault, re.DOTALL) for f in faults), f"{where}: {result}"
        return
    assert not result.fault, f"{where}: {result.fault}"
    found = set(result.signatures)
    wanted = set().union(*(_RACES[x][0] for x in letters if x in _RACES))
    allowed = wanted.union(*(_RACES[x][1] for x in letters if x in _RACES))
    assert wanted <= found, f"{where}: gone, though expected: {wanted - found}"
    assert found <= allowed, f"{where}: new: {[result.signatures[x] for x in found - allowed]}"
    assert result.in_step or found, f"{where}: not executed in step"
    assert result.gaps_untouched, f"{where}: a gap was written"
    spoilt = set().union(*(_WRONG.get(x, set()) for x in letters)) & result.errors.keys()
    either = set().union(*(_MAY_BE_WRONG.get(x, set()) for x in letters))
    right = _right(chosen, result)
    wrong = {name for name, fine in right.items() if not fine} - either
    assert wrong == spoilt, f"{where}: wrong: {wrong}; expected: {spoilt}: {result.errors}"


@pytest.mark.parametrize("chosen", _OBJECTS, ids=lambda chosen: chosen.file)
def test_object(chosen: AsmObject) -> None:
    table.check(chosen, launches.code(chosen.file))
    if chosen.shuffle:
        (finish,) = (
            o for o in launches.objects().objects
            if (o.folder, o.name) == (chosen.folder, chosen.shuffle)
        )  # fmt: skip
        table.check(finish, launches.code(finish.file))
    for problem in problems(chosen):
        _check(chosen, problem, _launch(chosen, problem))


def test_every_file_is_described_or_left_out() -> None:
    known = launches.objects()
    described = {chosen.file for chosen in known.objects}
    paths = {path.partition("/hsa/")[2] for path in os.environ["AITER_ASM_OBJECTS"].split()}
    folders = {path.split("/")[1] for path in paths}
    mine = {name for name in described | known.left_out.keys() if name.split("/")[1] in folders}
    assert paths == mine
    assert not paths & known.missing.keys()
