# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""AITER's kernels of decoding in the emulator: each as its table says it is, and right; the defects
of decode.toml are found where they are said to be, and nowhere else.

Where a defect shows, the problem is executed again with loads that land at once and waves that
advance in turns of one instruction, and must be right but for the defects that persist.
"""

from __future__ import annotations

import math
import os
import re

import pytest

from kernels.aiter_asm import table
from kernels.aiter_asm.decode import DecodeDefect, DecodeObject
from tests.emulation.aiter_asm import decode_launches, launches
from tests.emulation.aiter_asm.decode_launches import Problem
from tests.emulation.aiter_asm.launches import Result
from tests.emulation.verify.verdict import GATES, Gate

# fp16 probabilities are truncated.
_TRUNCATED = Gate(1.2, 4.0)
_KIND, _ARCH = os.environ["AITER_ASM_KERNELS"].split()
_OBJECTS = [
    chosen for chosen in decode_launches.objects() if (chosen.kind, chosen.arch) == (_KIND, _ARCH)
]
_PARTIAL = (37, 300)


def _problems(chosen: DecodeObject) -> list[Problem]:
    least, most = chosen.tokens
    if chosen.kind == "paged":
        assert most
        problems = [Problem("tiles in part", _PARTIAL, tokens) for tokens in range(least, most + 1)]
        problems += [
            Problem("whole tiles", (256, 512), least),
            Problem("NaN in keys of no sequence", _PARTIAL, least, unseen=True),
            Problem("blocks of a whole tile", (241,), least),
        ]
        if any(a.name == "heads_q_per_head_k" for a in chosen.layout.arguments):
            problems.append(Problem("fewer heads", _PARTIAL, least, heads=chosen.heads - 3))
        return problems
    tokens = most or 5
    lengths = (20, 37) if chosen.work == "prefill" else _PARTIAL
    page = 1 if chosen.page else 16
    problems = [
        Problem("tiles in part", lengths, tokens, page=page),
        Problem("NaN in keys of no sequence", lengths, tokens, unseen=True, page=page),
    ]
    if chosen.work == "grid":
        problems.append(Problem("two parts", lengths, tokens, splits=2))
    if chosen.kv_dtype == "fp8":
        problems.append(Problem("a scale of 1", lengths, tokens, scale_kv=1.0, page=page))
    return problems


def _meets(defect: DecodeDefect, chosen: DecodeObject, problem: Problem) -> bool:
    """Whether a launch of the problem meets the defect: WHEN in decode.py."""
    heads = problem.heads or chosen.heads
    return {
        "always": True,
        "unseen_nan": problem.unseen,
        "sixteen_blocks": any(240 < length < 256 for length in problem.lengths),
        "two_tiles": max(problem.lengths) >= 512,
        "partial_tile": any(length % 256 for length in problem.lengths),
        "many_rows": problem.tokens * heads > 16,
        "more_than_two_tokens": problem.tokens > 2,
        "three_tokens": problem.tokens == 3,
        "scaled_keys": problem.scale_kv != 1,
        "splits": problem.splits > 1,
    }[defect.when]


def _shown(chosen: DecodeObject, result: Result) -> list[str]:
    """All that the emulator has against a launch."""
    if result.fault:
        return [result.fault]
    gate = _TRUNCATED if "fp16" in (chosen.q_dtype, chosen.probabilities) else GATES["o"]
    wrong = [
        f"wrong: {name}"
        for name, error in result.errors.items()
        if not (GATES["lse"] if name == "lse" else gate).allows(error.rms, error.largest)
    ]
    return [*result.signatures, *wrong]


def _check(chosen: DecodeObject, result: Result, met: list[DecodeDefect], where: str) -> list[str]:
    """Each thing shown is a defect's, and each defect is shown, as far as the kernel came. NaN
    hides what else is wrong."""
    shown = _shown(chosen, result)
    patterns = [pattern for defect in met for pattern in defect.shown_by]
    if any(defect.changes_results for defect in met):
        patterns.append("wrong: ")
    for thing in shown:
        assert any(re.match(p, thing, re.DOTALL) for p in patterns), f"{where}: new: {thing}"
    if result.fault:
        return shown
    is_nan = not all(math.isfinite(error.rms) for error in result.errors.values())
    for defect in met:
        if is_nan and not any(pattern.startswith("wrong") for pattern in defect.shown_by):
            continue
        assert any(re.match(p, thing) for p in defect.shown_by for thing in shown), (
            f"{where}: {defect.letters} is gone, though expected: {shown}"
        )
    assert result.in_step or result.signatures, f"{where}: not executed in step"
    return shown


@pytest.mark.parametrize("chosen", _OBJECTS, ids=lambda chosen: chosen.file)
def test_object(chosen: DecodeObject) -> None:
    table.check(chosen, launches.code(chosen.file))
    right = 0
    for problem in _problems(chosen):
        where = f"{chosen.file}: {problem}"
        met = [defect for defect in chosen.defects if _meets(defect, chosen, problem)]
        result = decode_launches.launch(chosen, problem)
        shown = _check(chosen, result, met, where)
        if shown:
            met = [defect for defect in met if defect.persists]
            result = decode_launches.launch(chosen, problem, late=False, schedule="sliced:1")
            where += ", loads land at once"
            shown = _check(chosen, result, met, where)
        assert result.fault or result.errors
        wrong = [thing for thing in shown if thing.startswith(("wrong", "MemoryFault"))]
        right += not wrong
        if wrong:
            spoilers = [d for d in met if any("wrong" in p or "Fault" in p for p in d.shown_by)]
            assert spoilers, f"{where}: {wrong}: {result.errors}"
    assert right, f"{chosen.file}: right in no problem"


def test_every_file_is_described() -> None:
    described = {chosen.file for chosen in decode_launches.objects()}
    assert {
        path.partition("/hsa/")[2] for path in os.environ["AITER_ASM_OBJECTS"].split()
    } == described
