# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The verdict on a result of verification.py: right numbers, and no findings but known ones.

It is apart from the execution, so that a change of gates or expectations executes nothing again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from tests.emulation import known_findings


@dataclasses.dataclass(frozen=True)
class Gate:
    """The errors allowed, in the reference's units: root mean square, and of any element."""

    rms: float
    largest: float

    def allows(self, rms: float, largest: float) -> bool:
        return rms <= self.rms and largest <= self.largest

    def __str__(self) -> str:
        return f"{self.rms} (at most {self.largest})"


# fp16 probabilities are truncated, not rounded (v_cvt_pkrtz_f16_f32): twice the unit. delta is one
# float32 sum over the head size, an error of the order of its root.
GATES = {"o": Gate(0.9, 4.0), "dk": Gate(0.9, 4.0), "dv": Gate(0.9, 4.0), "dq_acc": Gate(0.9, 4.0),
         "dbias": Gate(0.9, 4.0), "dq": Gate(0.8, 1.01), "sum": Gate(0.8, 1.01),
         "k": Gate(0.8, 1.01), "v": Gate(0.8, 1.01), "q": Gate(0.8, 1.01),
         "lse": Gate(0.5, 2.0), "delta": Gate(0.9, 6.0), "kept": Gate(0.0, 0.0),
         "dsink": Gate(0.9, 4.0)}  # fmt: skip
# dq where some of its conversions truncate.
_TRUNCATED = Gate(0.8, 2.0)
# Waves advance together: here numbers must be right, with any races.
TOGETHER = "sliced:8"
# The outputs that the known races may spoil in other schedules, by the kind of the kernel. A race
# with memory, which makes them depend on unwritten data, spoils them in every schedule.
_SPOILT = {
    "bwd_dq_dk_dv": ("dq_acc",),
    "fwd": ("o", "lse"),
    "fwd_splitkv_combine": ("o", "lse"),
    "fwd_v3": ("o",),
}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The failures, and the known defects (letters of docs/races.md) that were found."""

    failures: list[str]
    defects: list[str]
    worst_rms: float
    worst: float  # of any element

    def __str__(self) -> str:
        if self.failures:
            return "FAIL"
        return f"known: {', '.join(self.defects)}" if self.defects else "pass"


def gates_of(known: Collection[str], kind: str = "") -> dict[str, Gate]:
    """The gates of a code object's outputs, by its kernel's kind and the signatures that are known
    of it."""
    if kind == "bwd_dq_dk_dv":  # computed, and not converted alone
        return GATES | {"dq": GATES["dk"]}
    truncated = any(signature.startswith("overwritten-constant") for signature in known)
    return GATES | ({"dq": _TRUNCATED} if truncated else {})


def excused(kind: str, name: str, run: Mapping[str, Any], known: Collection[str]) -> bool:
    """Whether an output may be wrong in a run, because of a race that is known."""
    racy = any(signature.startswith("race") for signature in known)
    spoilt = with_memory(known) or (racy and run["schedule"] != TOGETHER)
    return spoilt and name in _SPOILT.get(kind, ())


def with_memory(known: Collection[str]) -> bool:
    """Whether a race that is known is one with memory."""
    return any(signature.startswith("uninitialised: buffer_store") for signature in known)


def judge(result: Mapping[str, Any], known: Mapping[str, str] | None = None) -> Verdict:
    """The verdict; `known` replaces what is known of the code object: signatures and defects."""
    if known is None:
        known = known_findings.known_of(result)
    gates = gates_of(known, result["kind"])
    failures, rms, largest = [], [0.0], [0.0]
    for run in result["runs"]:
        for name, error in run.get("errors", {}).items():
            if excused(result["kind"], name, run, known):
                continue
            rms.append(float(error["rms"]))
            largest.append(float(error["largest"]))
            if not gates[name].allows(rms[-1], largest[-1]):
                failures.append(
                    f"{run['case']} [{run['schedule']}]: {name} is {rms[-1]:.2f} units off (at "
                    f"most {largest[-1]:.3g}, at {error['where']}); allowed: {gates[name]}"
                )
    found = {finding["signature"]: finding["message"] for finding in result["findings"]}
    for signature in sorted(found.keys() - known.keys()):
        failures.append(f"new finding: {signature}\n{found[signature]}")
    for signature in sorted(known.keys() - found.keys()):
        failures.append(f"not found any more, strike it out of known_findings.json: {signature}")
    defects = sorted({known[signature] for signature in found.keys() & known.keys()})
    return Verdict(failures, defects, max(rms), max(largest))
