# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of a wave instruction in the emulator with all checks: in step, and wave after wave.

    ./bazelw run --config=cache //tests/bench:emulator [-- --only=TEXT --rounds=N]

The kernels of `smoke` are launched on the problems that they are verified on, in both ways in
turns. Counted is processor time, the least of the rounds, for all problems together. An instruction
of one wave counts once in each of the two executions by which unwritten data is found.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from absl import app, flags
from gfxemu import Device, LlvmMc, Report, code_object

from tests.emulation.harness import launches
from tests.emulation.harness.kernel import Kernel, prepare
from tests.emulation.harness.kinds.registry import cases

_ARGUMENTS = flags.DEFINE_string("arguments", None, "the library of kernel arguments")
_LLVM_MC = flags.DEFINE_string("llvm_mc", None, "llvm-mc with the AMDGPU target")
_ONLY = flags.DEFINE_string("only", "", "measure the kernels whose names contain this")
_ROUNDS = flags.DEFINE_integer("rounds", 3, "launches of which the quickest counts", lower_bound=1)

# A launch of one problem: in step or not.
Launch = Callable[[bool], Report]


def chosen(names: Sequence[str], text: str) -> list[str]:
    """Those that contain the text. Raises ValueError where none does."""
    found = [name for name in names if text in name]
    if not found:
        raise ValueError(f"--only={text}: no kernel has that in its name; there are\n" +
                         "\n".join(f"  {name}" for name in names))  # fmt: skip
    return found


def measure(problems: Sequence[Launch], rounds: int) -> tuple[str, ...]:
    """Cells of a row: how many problems could be executed in step, wave instructions, microseconds
    of one in step and wave after wave, and the ratio."""
    seconds = {True: 0.0, False: 0.0}
    count = in_step = 0
    for launch in problems:
        reports: dict[bool, list[Report]] = {True: [], False: []}
        for _ in range(rounds):
            for way in seconds:
                reports[way].append(launch(way))
        for way in seconds:
            seconds[way] += min(report.seconds for report in reports[way])
        in_step += reports[True][0].in_step
        count += reports[False][0].wave_instructions
    each = {way: 1e6 * total / max(count, 1) for way, total in seconds.items()}
    ratio = each[False] / each[True] if each[True] else 0.0
    return (f"{in_step} of {len(problems)}", f"{count}", f"{each[True]:.2f}", f"{each[False]:.2f}",
            f"{ratio:.1f}")  # fmt: skip


def _problems(kernel: Kernel) -> list[Launch]:
    prepared = [prepare(kernel.instance, case) for case in cases(kernel.instance)]

    def launch(problem: int, in_step: bool) -> Report:
        return kernel.run(prepared[problem], schedule="sliced:8", in_step=in_step).report

    return [lambda way, i=i: launch(i, way) for i in range(len(prepared))]


def _run(paths: Sequence[str]) -> None:
    os.environ["EMULATION_LAUNCHES"] = _ARGUMENTS.value
    instances = {instance.name: instance for instance in launches.instances()}
    codes = {}
    for path in paths:
        code = Path(path).read_bytes()
        parsed = code_object.parse(code)
        codes.update({name: (parsed.arch, code) for name in parsed.kernels})
    devices: dict[str, Device] = {}
    print("| kernel | in step | wave instructions | us in step | us one by one | ratio |")
    print("|---|---|---|---|---|---|")
    for name in chosen(sorted(codes), _ONLY.value):
        arch, code = codes[name]
        device = devices.setdefault(arch, Device(arch, LlvmMc(_LLVM_MC.value)))
        kernel = Kernel(device, code, instances[name])
        print(f"| {kernel} | {' | '.join(measure(_problems(kernel), _ROUNDS.value))} |", flush=True)


def main(arguments: Sequence[str]) -> None:
    try:
        _run(arguments[1:])
    except ValueError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    app.run(main)
