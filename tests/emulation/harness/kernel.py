# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Launches of one kernel on an emulated device, on problems whose result is known."""

from __future__ import annotations

import dataclasses
import functools
import os
import zlib
from collections.abc import Callable
from pathlib import Path

from gfxemu import Checks, Device, LlvmMc, Report, code_object
from gfxemu.decoder import Program

from tests.emulation.harness import launches
from tests.emulation.harness.arguments import Arguments
from tests.emulation.harness.cases import Case
from tests.emulation.harness.kinds.registry import kind_of
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import Error, Expected, Inputs


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A case for an instance: its inputs, the same in every run, and the expected results."""

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
    kind = kind_of(instance)
    inputs = kind.draw(instance, case, head_sizes or head_sizes_of(instance), seed)
    return Prepared(case, inputs, kind.expected(instance, case, inputs, seed))


class Kernel:
    """One instance of a code object on an emulated device, ready to be launched on cases."""

    def __init__(self, device: Device, code: bytes, instance: Instance):
        self.device, self.instance = device, instance
        self.kernel, self.program = device.program(code, instance.name)
        # describe.py holds it against the row's block of the arch.
        self.block = (self.kernel.metadata[".max_flat_workgroup_size"], 1, 1)

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
        kind = kind_of(self.instance)
        if kind.takes_turns:
            checks = dataclasses.replace(checks or Checks(), same_barrier=False)
        arguments = Arguments(
            self.device.memory, self.instance, kind, prepared.case,
            prepared.inputs, prepared.expected, finite_gaps=finite_gaps,
        )  # fmt: skip
        try:
            launch = arguments.make()
            report = self.device.launch(
                self.kernel, self.program if change is None else change(self.program),
                grid=launch.grid, kernarg=launch.data, block=self.block,
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
