# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""AITER's kernels in the emulator: each as its table says it is, and right, with every check on;
the defects of defects.toml are found where they are said to be, and nowhere else. Each is executed
in a random schedule, too, on a small problem; schedules.json has the findings of these."""

from __future__ import annotations

import json
import os
import re
import zlib
from pathlib import Path

import pytest

from kernels.aiter_asm import table
from kernels.aiter_asm.table import AsmObject
from tests.emulation.aiter_asm import launches
from tests.emulation.aiter_asm.launches import Result
from tests.emulation.aiter_asm.problems import Problem, brief, meets, problems
from tests.emulation.verify.verdict import GATES, Gate

# Truncated numbers are off by up to twice as much as rounded ones, and all the same way.
_TRUNCATED = Gate(1.2, 4.0)
# Of outputs that are rounded from sums, which are off themselves.
_GATES = GATES | {"dq": Gate(0.9, 4.0), "dk, summed": GATES["dk"], "dv, summed": GATES["dv"]}

# By defect, the outputs that its races may make wrong.
_AFFECTED = {
    "P": {"o", "lse"},
    "Q": {"dk", "dv", "dk, summed", "dv, summed"},
    "R": {"o", "lse"},
}
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
_SCHEDULES = json.loads(Path(__file__).with_name("schedules.json").read_text("utf-8"))
_OBJECTS = [
    chosen
    for chosen in launches.objects().objects
    if f"{chosen.direction} {chosen.arch}" == _KERNELS
]


def _launch(chosen: AsmObject, problem: Problem, schedule: str = "sliced:8") -> Result:
    if chosen.direction == "forward":
        return launches.forward(chosen, problem.case, gap=problem.gap, schedule=schedule)
    return launches.backward(
        chosen, problem.case, head_size=problem.head_size, gap=problem.gap,
        behind=problem.behind, schedule=schedule,
    )  # fmt: skip


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
    met = [d for d in chosen.defects if meets(d, chosen, problem)]
    letters = {d.letter for d in met}
    faults = [_FAULTS[letter] for letter in sorted(letters) if letter in _FAULTS]
    if faults:
        assert any(re.search(f, result.fault, re.DOTALL) for f in faults), f"{where}: {result}"
        return
    assert not result.fault, f"{where}: {result.fault}"
    found = set(result.signatures)
    wanted = {signature for d in met for signature in d.findings}
    allowed = wanted.union(*(d.accompanied_by for d in met))
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


@pytest.mark.parametrize("chosen", _OBJECTS, ids=lambda chosen: chosen.file)
def test_object_in_a_random_schedule(chosen: AsmObject) -> None:
    """Its findings are a file of the outputs of the test, in the form of schedules.json."""
    problem, schedule = brief(chosen), f"random:{zlib.crc32(chosen.file.encode())}"
    result = _launch(chosen, problem, schedule)
    assert not result.fault, f"{chosen.file}: {schedule}: {result.fault}"
    found = set(result.signatures)
    wrong = {name for name, fine in _right(chosen, result).items() if not fine}
    met = [d for d in chosen.defects if meets(d, chosen, problem)]
    assert found <= {signature for d in met for signature in (*d.findings, *d.accompanied_by)}
    assert wrong <= set().union(*(_AFFECTED.get(d.letter, set()) for d in met))
    assert result.gaps_untouched
    entry = {"schedule": schedule, "findings": sorted(found), "wrong": sorted(wrong)}
    if found or wrong:
        outputs = Path(os.environ["TEST_UNDECLARED_OUTPUTS_DIR"], "schedules.jsonl")
        with outputs.open("a", encoding="utf-8") as file:
            file.write(json.dumps({chosen.file: entry}) + "\n")
    assert _SCHEDULES.get(chosen.file) == (entry if found or wrong else None)


def test_every_file_is_described_or_left_out() -> None:
    known = launches.objects()
    described = {chosen.file for chosen in known.objects}
    paths = {path.partition("/hsa/")[2] for path in os.environ["AITER_ASM_OBJECTS"].split()}
    folders = {path.split("/")[1] for path in paths}
    mine = {name for name in described | known.left_out.keys() if name.split("/")[1] in folders}
    assert paths == mine
    assert not paths & known.missing.keys()
