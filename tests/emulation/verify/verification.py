# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Execute one code object: all cases with all checks, one in other schedules too, and statistics.

Nothing is judged here (verdict.py does): errors are measured, and what is found gets a signature,
its kind and the opcodes that take part.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
import zlib
from typing import Any

import numpy as np
from attention import from_storage
from gfxemu import Checks, Device, EmulationError, Report
from gfxemu.profile import Profile
from launches import Instance

from tests.emulation.verify.cases import Case, cases
from tests.emulation.verify.harness import Kernel, Outcome, Overwritten, outputs_of
from tests.emulation.verify.reference import (
    UNIT,
    Expected,
    Inputs,
    add_partial_dq,
    add_partial_results,
    draw,
    reference,
)

FORMAT = 1
_OPCODE = re.compile(r"0x[0-9a-f]+: (\w+)")
TOGETHER = "sliced:8"
OTHER_SCHEDULES = ("barrier", "random:7")


@dataclasses.dataclass(frozen=True)
class Error:
    rms: float
    largest: float
    where: tuple[int, ...]


def measure(actual: np.ndarray, expected: Expected) -> Error:
    """The error in units. Where infinity is expected, nothing else is right; NaN is right only
    where the output had to stay as it was."""
    judged = ~np.isnan(expected.value)
    if not judged.any():
        return Error(0.0, 0.0, ())
    finite = np.isfinite(expected.value)
    with np.errstate(invalid="ignore"):
        distance = np.abs(actual - np.where(finite, expected.value, 0.0)) / expected.unit
    units = np.where(finite, distance, np.where(actual == expected.value, 0.0, np.inf))
    units = np.where(np.isnan(units), np.inf, units)
    units = np.where(judged, units, 0.0)
    where = np.unravel_index(int(units.argmax()), units.shape)
    largest = float(units[where])
    rms = float(np.sqrt(np.sum(units**2) / judged.sum())) if np.isfinite(largest) else float("inf")
    return Error(rms, largest, tuple(int(i) for i in where))


def features_of(instance: Instance) -> list[str]:
    """What an instance does beyond plain attention, and which dimensions must fill their tiles."""
    flags = {
        "bias gradient": instance.bias_grad,
        "dropout": instance.dropout,
        "soft cap": instance.logits_soft_cap,
        "skips short queries": instance.skip_min_seqlen_q and instance.group_mode,
        "deterministic": instance.deterministic,
        "paged": instance.paged_kv,
        "no lse": instance.kind.startswith("fwd") and not instance.lse,
    }
    bias = {"none": [], "elementwise": ["bias"], "alibi": ["ALiBi"]}[instance.bias]
    return bias + [name for name, has in flags.items() if has]


def _sum_over_groups(case: Case, dtype: str, inputs: Inputs) -> Expected:
    """What sum_heads makes of q: float32 sums, rounded once."""
    values = from_storage(inputs.q, dtype)
    tokens, _, size = values.shape
    grouped = values.reshape(tokens, case.heads_k, -1, size)
    total = grouped.sum(axis=2)
    spread = UNIT["fp32"] * np.abs(grouped).sum(axis=2) * 2
    return Expected(total, UNIT[dtype] * np.abs(total) + spread + 1e-30)


class Verification:
    """Collects what is found about one instance on one device."""

    def __init__(self, device: Device, code: bytes, instance: Instance):
        self.device, self.instance = device, instance
        self.kernel = Kernel(device, code, instance)
        self.runs: list[dict[str, Any]] = []
        self.findings: dict[str, dict[str, Any]] = {}
        self.lds_stores = True  # whether a store beyond LDS stops the kernel

    def run(self) -> dict[str, Any]:
        """The result as a JSON document."""
        prepared = [(case, *self.prepare(case)) for case in self._cases()]
        for number, (case, inputs, expected) in enumerate(prepared):
            self._check(case, inputs, expected, TOGETHER, Checks())
            if number == 0:
                for schedule in OTHER_SCHEDULES:
                    self._check(case, inputs, expected, schedule, Checks(uninitialised=False))
        self._note_overwritten_constants()
        case, inputs, expected = prepared[0]
        profile = self._profile(case, inputs, expected)
        return {
            "format": FORMAT,
            "instance": self.instance.name,
            "arch": self.device.arch,
            "kind": self.instance.kind,
            "dtype": self.instance.dtype,
            "head_size": self.instance.head_size_qk,
            "mode": "group" if self.instance.group_mode else "batch",
            "mask": self.instance.mask,
            "features": features_of(self.instance),
            "findings": [self.findings[s] for s in sorted(self.findings)],
            "runs": self.runs,
            "profile": profile,
        }

    def _cases(self) -> list[Case]:
        if self.instance.kind != "sum_heads":
            return cases(self.instance)
        return [
            Case("two batches of 33 tokens; heads 8:2", ((33, 1),) * 2, heads_q=8, heads_k=2),
            Case("one token, one group", ((1, 1),), heads_q=3, heads_k=1),
            Case("large magnitudes", ((17, 1),), heads_q=4, heads_k=4, amplitude=1000.0),
        ]

    def prepare(self, case: Case) -> tuple[Inputs, dict[str, Expected]]:
        """Inputs of a case, the same in every run, and what is expected."""
        i = self.instance
        seed = zlib.crc32(f"{case}".encode())
        backward = i.kind.startswith("bwd")
        inputs = draw(case, i.dtype, self._head_sizes(case), seed, backward)
        if i.kind == "sum_heads":
            return inputs, {"sum": _sum_over_groups(case, i.dtype, inputs)}
        if i.kind == "fwd_splitkv_combine":
            return inputs, add_partial_results(case, i.dtype, inputs, seed)
        expected = reference(case, i.dtype, inputs)
        if i.kind == "bwd_convert_dq":
            expected["dq"] = add_partial_dq(
                case, i.dtype, inputs, i.tile_seqlen_k, i.deterministic, seed
            )
        return inputs, expected

    def _head_sizes(self, case: Case) -> tuple[int, int]:
        """Those of q and k, and of v: in a case in two less than the instance's, if it can."""
        i = self.instance
        full = i.head_size_qk or 64, i.head_size_v or 64
        if zlib.crc32(case.name.encode()) % 2:
            return full
        return full[0] - 8 * i.pad_head_size_qk, full[1] - 8 * i.pad_head_size_v

    def _check(self, case: Case, inputs: Inputs, expected: dict[str, Expected], schedule: str,
               checks: Checks) -> None:  # fmt: skip
        label = f"{case.name} [{schedule}]"
        checks = dataclasses.replace(checks, lds_stores=self.lds_stores)
        run = functools.partial(
            self.kernel.run, case, inputs, expected, schedule=schedule, checks=checks
        )
        try:
            outcome = run()
        except (EmulationError, Overwritten) as error:
            opcode = _OPCODE.search(str(error))
            at = opcode[1] if opcode else "at the end"
            signature = f"{type(error).__name__}: {at}"
            if at.startswith("ds_write") and self.lds_stores:
                # Hardware drops such stores: so do all further runs.
                self.lds_stores = False
                self._note(signature, str(error), label)
                self._check(case, inputs, expected, schedule, checks)
                return
            # Of this case alone: it would hide other mistakes in all the others.
            self._stop(f"{signature}, {case.name}", str(error), case, schedule)
            return
        errors = self._measure(outcome, expected)
        if not all(np.isfinite(e.rms) for e in errors.values()):
            finite = run(finite_gaps=True)
            if all(np.isfinite(e.rms) for e in self._measure(finite, expected).values()):
                message = (
                    "NaNs behind the heads of an input make outputs NaN; any number that is finite "
                    "does nothing"
                )
                self._note("beyond-head: NaN", message, label)
                outcome, errors = finite, self._measure(finite, expected)
        self._note_findings(outcome.report, label)
        wrong = sorted(n for n, e in errors.items() if not np.isfinite(e.rms))
        if wrong and schedule == TOGETHER:  # in the other schedules a race may be the reason
            signature = f"not finite: {', '.join(wrong)}, {case.name}"
            self._stop(signature, "NaN or infinite where it should not be", case, schedule)
            return
        self.runs.append({
            "case": case.name,
            "schedule": schedule,
            "wave_instructions": outcome.report.wave_instructions,
            "errors": {n: _finite(e) for n, e in errors.items()},
        })  # fmt: skip

    def _stop(self, signature: str, message: str, case: Case, schedule: str) -> None:
        """A run that has no errors to measure."""
        self._note(signature, message, f"{case.name} [{schedule}]")
        self.runs.append({"case": case.name, "schedule": schedule, "stopped": signature})

    def _measure(self, outcome: Outcome, expected: dict[str, Expected]) -> dict[str, Error]:
        names = outputs_of(self.instance)
        return {n: measure(outcome.outputs[n], expected[n]) for n in names}

    def _note_findings(self, report: Report, label: str) -> None:
        for finding in report.findings:
            self._note(finding.signature, finding.message, label)

    def _note(self, signature: str, message: str, run: str = "") -> None:
        """A finding of a run, or of the code itself."""
        first = {"signature": signature, "message": message, "runs": []}
        entry = self.findings.setdefault(signature, first)
        if run and run not in entry["runs"]:
            entry["runs"].append(run)

    def _note_overwritten_constants(self) -> None:
        """Rounding to bf16 adds 0x7fff and the last bit kept. CK's inline assembly writes that bit
        to an output that it does not declare as written early, so that the compiler may put it in
        the register of the constant, where that is not needed again; the result is truncated."""
        instructions = self.kernel.program.instructions
        roundings = [
            (bit, total)
            for bit, total in itertools.pairwise(instructions)
            if bit.name == "v_bfe_u32" and bit.operands[2:] == ("16", "1")
            and total.name == "v_add3_u32" and total.operands[2] == bit.operands[0]
        ]  # fmt: skip
        wrong = [(bit, total) for bit, total in roundings if total.operands[3] == bit.operands[0]]
        if wrong:
            message = (
                f"the rounding constant is overwritten before it is added, in {len(wrong)} of "
                f"{len(roundings)} roundings\n    {wrong[0][0]!r}\n    {wrong[0][1]!r}"
            )
            self._note("overwritten-constant: v_add3_u32, v_bfe_u32", message)

    def _profile(self, case: Case, inputs: Inputs, expected: dict[str, Expected]) -> dict[str, Any]:
        profile = Profile(self.device.arch)
        try:
            checks = dataclasses.replace(Checks.none(), lds_stores=self.lds_stores)
            self.kernel.run(case, inputs, expected, schedule=TOGETHER, checks=checks,
                            change=profile.instrument)  # fmt: skip
        except (EmulationError, Overwritten) as error:
            return {"case": case.name, "stopped": str(error)}
        return {"case": case.name, **profile.summary()}


def _finite(error: Error) -> dict[str, Any]:
    """JSON has no infinity."""

    def number(x: float) -> float | str:
        return round(x, 4) if np.isfinite(x) else "inf"

    return {"rms": number(error.rms), "largest": number(error.largest), "where": list(error.where)}


def verify(device: Device, code: bytes, instance: Instance) -> dict[str, Any]:
    return Verification(device, code, instance).run()
