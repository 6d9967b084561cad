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
from gfxemu import Checks, Device, EmulationError, Report
from gfxemu.checks import COMPARED
from gfxemu.profile import Profile

from tests.emulation.harness.arguments import Overwritten
from tests.emulation.harness.cases import Case
from tests.emulation.harness.kernel import Kernel, Prepared, head_sizes_of, prepare
from tests.emulation.harness.kinds.registry import cases, kind_of
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import Error

FORMAT = 1
_OPCODE = re.compile(r"0x[0-9a-f]+: (\w+)")
TOGETHER = "sliced:8"
OTHER_SCHEDULES = ("barrier", "random:7")


def features_of(instance: Instance) -> list[str]:
    """The features of an instance beyond plain attention, and the dimensions that must fill
    tiles."""
    flags = {
        "bias gradient": instance.bias_grad,
        "dropout": instance.dropout,
        "soft cap": instance.logits_soft_cap,
        "skips short queries": instance.skip_min_seqlen_q and instance.group_mode,
        "deterministic": instance.deterministic,
        "paged": instance.paged_kv,
        "no lse": kind_of(instance).writes_lse and not instance.lse,
        f"rotary by {instance.rotary}": instance.rotary == "halves",
        f"rotary {instance.rotary}": instance.rotary == "interleaved",
    }
    bias = {"none": [], "elementwise": ["bias"], "alibi": ["ALiBi"]}[instance.bias]
    return bias + [name for name, has in flags.items() if has]


def prepare_for_verification(instance: Instance, case: Case) -> Prepared:
    """In one case of two with head sizes below the instance's, if it can."""
    size_qk, size_v = head_sizes_of(instance)
    if zlib.crc32(case.name.encode()) % 2 == 0:
        size_qk -= 8 * instance.pad_head_size_qk
        size_v -= 8 * instance.pad_head_size_v
    return prepare(instance, case, (size_qk, size_v))


class Verification:
    """Collects the findings of one instance on one device."""

    def __init__(self, device: Device, code: bytes, instance: Instance):
        self.device, self.instance = device, instance
        self.kernel = Kernel(device, code, instance)
        self.runs: list[dict[str, Any]] = []
        self.findings: dict[str, dict[str, Any]] = {}
        self.lds_stores = True  # whether a store beyond LDS stops the kernel

    def run(self) -> dict[str, Any]:
        """The result as a JSON document."""
        prepared = [prepare_for_verification(self.instance, case) for case in cases(self.instance)]
        for number, problem in enumerate(prepared):
            self._check(problem, TOGETHER, Checks(soffset=COMPARED))
            if number == 0 and "stopped" not in self.runs[-1]:
                for schedule in OTHER_SCHEDULES:
                    self._check(problem, schedule, Checks(uninitialised=False))
        self._note_overwritten_constants()
        profile = self._profile(prepared[0])
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
            "traits": self.instance.named_traits(),
            "findings": [self.findings[s] for s in sorted(self.findings)],
            "runs": self.runs,
            "profile": profile,
        }

    def _check(self, prepared: Prepared, schedule: str, checks: Checks) -> None:
        case = prepared.case
        label = f"{case.name} [{schedule}]"
        checks = dataclasses.replace(checks, lds_stores=self.lds_stores)
        run = functools.partial(self.kernel.run, prepared, schedule=schedule, checks=checks)
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
                self._check(prepared, schedule, checks)
                return
            # Of this case alone: it would hide other mistakes in all the others.
            self._stop(f"{signature}, {case.name}", str(error), case, schedule)
            return
        if _wrong(outcome.errors):
            finite = run(finite_gaps=True)
            if not _wrong(finite.errors):
                message = (
                    "NaNs behind the heads of an input make outputs NaN; any number that is finite "
                    "does nothing"
                )
                self._note("beyond-head: NaN", message, label)
                outcome = finite
        self._note_findings(outcome.report, label)
        wrong = _wrong(outcome.errors)
        if wrong and schedule == TOGETHER:  # in the other schedules a race may be the reason
            signature = f"not finite: {', '.join(wrong)}, {case.name}"
            self._stop(signature, "NaN or infinite where it should not be", case, schedule)
            return
        self.runs.append({
            "case": case.name,
            "schedule": schedule,
            "wave_instructions": outcome.report.wave_instructions,
            "errors": {n: _finite(e) for n, e in outcome.errors.items()},
        })  # fmt: skip

    def _stop(self, signature: str, message: str, case: Case, schedule: str) -> None:
        """A run that has no errors to measure."""
        self._note(signature, message, f"{case.name} [{schedule}]")
        self.runs.append({"case": case.name, "schedule": schedule, "stopped": signature})

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
        """Rounding to bf16 adds 0x7fff and the last bit kept. Upstream's assembly writes that bit
        to an output that it does not declare as written early, so that the compiler may put it in
        the register of the constant, where that is not needed again: the result is truncated.
        """
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

    def _profile(self, prepared: Prepared) -> dict[str, Any]:
        case, profile = prepared.case, Profile(self.device.arch)
        try:
            checks = dataclasses.replace(Checks.none(), lds_stores=self.lds_stores)
            self.kernel.run(prepared, schedule=TOGETHER, checks=checks, change=profile.instrument)
        except (EmulationError, Overwritten) as error:
            return {"case": case.name, "stopped": str(error)}
        return {"case": case.name, **profile.summary()}


def _wrong(errors: dict[str, Error]) -> list[str]:
    """The outputs that have NaN or infinity where they should not."""
    return sorted(name for name, error in errors.items() if not np.isfinite(error.rms))


def _finite(error: Error) -> dict[str, Any]:
    """JSON has no infinity."""

    def number(x: float) -> float | str:
        return round(x, 4) if np.isfinite(x) else "inf"

    return {"rms": number(error.rms), "largest": number(error.largest), "where": list(error.where)}


def verify(device: Device, code: bytes, instance: Instance) -> dict[str, Any]:
    return Verification(device, code, instance).run()
