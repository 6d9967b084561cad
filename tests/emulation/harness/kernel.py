# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Launches of one kernel on an emulated device, on problems whose result is known."""

from __future__ import annotations

import dataclasses
import functools
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from gfxemu import Checks, Device, LlvmMc, Report, code_object
from gfxemu.decoder import Program

from tests.emulation.harness import launches
from tests.emulation.harness.append import draw_append, expected_append
from tests.emulation.harness.arguments import Arguments
from tests.emulation.harness.cases import Case
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import (
    UNIT,
    Error,
    Expected,
    Inputs,
    add_partial_dq,
    add_partial_results,
    draw,
    from_storage,
    kept_of,
    reference,
)


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A case for an instance: its inputs, the same in every run, and what is expected."""

    case: Case
    inputs: Inputs
    expected: dict[str, Expected]


@dataclasses.dataclass
class Outcome:
    """A launch's report, and the errors of its outputs."""

    report: Report
    errors: dict[str, Error]


def head_sizes_of(instance: Instance) -> tuple[int, int]:
    """The largest that the instance takes, of q and k, and of v and o."""
    return instance.head_size_qk or 64, instance.head_size_v or 64


def prepare(instance: Instance, case: Case, head_sizes: tuple[int, int] | None = None) -> Prepared:
    """`head_sizes` are those of q and k, and of v and o; by default the instance's own."""
    seed = zlib.crc32(f"{case}".encode())
    backward = instance.kind.startswith("bwd")
    sizes = head_sizes or head_sizes_of(instance)
    if instance.kind == "fwd_appendkv":
        added = draw_append(case, instance.dtype, sizes, seed)
        return Prepared(case, added, expected_append(case, instance.dtype, added))
    if instance.kind == "dropout_mask":
        return Prepared(case, draw(case, "fp16", sizes, seed, backward), {"kept": kept_of(case)})
    inputs = draw(case, instance.dtype, sizes, seed, backward)
    if instance.kind == "sum_heads":
        expected = {"sum": _sum_over_groups(case, instance.dtype, inputs)}
    elif instance.kind == "fwd_splitkv_combine":
        expected = add_partial_results(case, instance.dtype, inputs, seed)
    else:
        expected = reference(case, instance.dtype, inputs)
        if instance.kind == "bwd_convert_dq":
            expected["dq"] = add_partial_dq(
                case, instance.dtype, inputs, instance.tile_seqlen_k, instance.deterministic, seed
            )
    return Prepared(case, inputs, expected)


def _sum_over_groups(case: Case, dtype: str, inputs: Inputs) -> Expected:
    """What sum_heads makes of q: float32 sums, rounded once."""
    values = from_storage(inputs.q, dtype)
    tokens, _, size = values.shape
    grouped = values.reshape(tokens, case.heads_k, -1, size)
    total = grouped.sum(axis=2)
    spread = UNIT["fp32"] * np.abs(grouped).sum(axis=2) * 2
    return Expected(total, UNIT[dtype] * np.abs(total) + spread + 1e-30)


class Kernel:
    """One instance of a code object on an emulated device, ready to be launched on cases."""

    def __init__(self, device: Device, code: bytes, instance: Instance):
        self.device, self.instance = device, instance
        self.kernel, self.program = device.program(code, instance.name)

    def __str__(self) -> str:
        return f"{self.instance}-{self.device.arch}"

    @property
    def name(self) -> str:
        """As known_findings.json has it."""
        return f"{self.instance.name}.{self.device.arch}"

    def run(
        self,
        prepared: Prepared,
        *,
        schedule: str,
        checks: Checks | None = None,
        change: Callable[[Program], Program] | None = None,
        finite_gaps: bool = False,
        limit: int = 2_000_000,
        in_step: bool = True,
    ) -> Outcome:
        """Launch once. Raises EmulationError and Overwritten.

        `change` makes the program that runs in place of the kernel's own. With `finite_gaps` there
        are numbers in place of NaNs behind the heads of inputs. `limit` is of instructions. Without
        `in_step` the waves are executed one after the other, as the schedule says.
        """
        arguments = Arguments(
            self.device.memory, self.instance, prepared.case, prepared.inputs, prepared.expected,
            finite_gaps=finite_gaps,
        )  # fmt: skip
        try:
            launch = arguments.make()
            report = self.device.launch(
                self.kernel, self.program if change is None else change(self.program),
                grid=launch.grid, kernarg=launch.data, block=self.instance.block,
                schedule=schedule, checks=checks, uninitialised=arguments.unwritten,
                instruction_limit=limit, in_step=in_step,
            )  # fmt: skip
            errors = {n: prepared.expected[n].error(x) for n, x in arguments.read().items()}
            return Outcome(report, errors)
        finally:
            arguments.release()


@functools.cache
def code_objects() -> dict[tuple[str, str], bytes]:
    """(arch, instance) -> code object: the files that EMULATION_CODE_OBJECTS names."""
    out = {}
    for path in os.environ["EMULATION_CODE_OBJECTS"].split():
        data = Path(path).read_bytes()
        parsed = code_object.parse(data)
        (symbol,) = parsed.kernels
        out[parsed.arch, symbol] = data
    return out


@functools.cache
def kernels() -> list[Kernel]:
    """Those of code_objects, each arch's on one emulated device."""
    by_name = {instance.name: instance for instance in launches.instances()}
    return [
        Kernel(_device(arch), code, by_name[symbol])
        for (arch, symbol), code in sorted(code_objects().items())
    ]


@functools.cache
def _device(arch: str) -> Device:
    return Device(arch, LlvmMc.from_environment())
