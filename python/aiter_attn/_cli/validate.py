# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn validate`: on this machine's GPU, what the emulator proves without one."""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import functools
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiter_attn
from aiter_attn._cli import doctor, files, info, machine
from aiter_attn._cli.hardware import peers

if TYPE_CHECKING:
    from aiter_attn._cli.hardware.memory import Memory

__all__ = ["add_to", "number_above", "opened", "validate"]

FORMAT = "aiter-attn validation"
FORMAT_VERSION = 1
_WIDTH = 100
PASSED, FOUND, NOTHING = 0, 1, 2  # exit statuses
_DOCTOR = "next: aiter-attn doctor says why, and what mends it"


def add_to(commands: Any) -> None:
    """Adds the command to argparse's sub-commands."""
    added = commands.add_parser(
        "validate",
        help="runs the kernels on this machine's GPU against float64; writes one file to send",
        description="Runs each kernel that this build has for the GPU: numbers against float64, "
        "repeats against each other, guard bytes beside all arrays, times. Needs numpy and "
        "ml_dtypes, no framework. Exit status 0: all that ran passed; 1: something was found; 2: "
        "nothing was validated, as without a GPU.",
    )
    added.add_argument("--device", type=number_above(-1), default=0, metavar="N", help="default: 0")
    added.add_argument(
        "--kernels", metavar="GLOB", help="only calls with a kernel whose name, key, arch, kind or "
        "provider fits, such as 'bwd*'; and norms of such a name: 'rms_norm'",
    )  # fmt: skip
    added.add_argument(
        "--repeat", type=number_above(0), default=10, metavar="N",
        help="how often each call is made; default: 10",
    )  # fmt: skip
    added.add_argument(
        "--seconds", type=number_above(0), metavar="N", help="begins no call after so many"
    )
    added.add_argument("--seed", type=number_above(-1), default=0, metavar="N", help="default: 0")
    added.add_argument(
        "--timed", type=number_above(-1), default=5, metavar="N",
        help="runs whose time is taken, of each call; default: 5; 0: none",
    )  # fmt: skip
    added.add_argument("--quick", action="store_true", help="without the calls that fill a GPU")
    added.add_argument("--list", action="store_true", help="only the calls, and what they reach")
    added.add_argument(
        "--output", metavar="FILE", help="default: aiter-attn-validation-ARCH-TIME.json here"
    )
    added.set_defaults(run=validate)


def number_above(least: int) -> Callable[[str], int]:
    """A type for argparse: whole numbers greater than `least`."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least
        if number <= least:
            raise argparse.ArgumentTypeError(f"{text!r}; allowed: a whole number from {least + 1}")
        return number

    return read


def opened(command: str, device: int) -> tuple[Memory, str] | None:
    """The memory of a GPU that this build has kernels for, and its arch; None: there is none, and
    standard error has the reason and the next step."""
    try:
        import ml_dtypes  # noqa: F401  (bfloat16)
        import numpy  # noqa: F401
    except ImportError as error:
        _tell(command, f"{error}; next: pip install numpy ml_dtypes")
        return None
    from aiter_attn._cli.hardware import memory

    try:
        found = dict(memory.gpus())
        if device not in found:
            there = ", ".join(f"{number} {arch}" for number, arch in found.items())
            _tell(command, f"--device {device}: no such GPU; there are: {there or 'none'}")
            return None
        arch = found[device]
        built = sorted({kernel["arch"] for kernel in aiter_attn.kernels()})
        if arch not in built:
            _tell(
                command,
                f"device {device} is {arch}; this build has kernels for "
                f"{', '.join(built) or 'no arch'}; next: install a wheel for {arch}, or build one "
                f"with --//kernels:archs={arch}",
            )
            return None
        return memory.Memory(device), arch
    except (aiter_attn.DriverError, memory.HipError, OSError) as error:
        _tell(command, f"no GPU to run on: {error}; {_DOCTOR}")
        return None


def _tell(command: str, text: str) -> None:
    print(f"{command}: {text}", file=sys.stderr)


def _machine_facts(memory: Memory, arch: str) -> dict[str, Any]:
    told = info.facts()
    findings = doctor.examine(machine.Machine(), told)
    free, total = memory.bytes_free_and_total()
    return {
        "gpu": {
            "device": memory.device,
            "name": memory.name(),
            "arch": arch,
            "memory_bytes": total,
            "free_bytes": free,
        },
        "runtime": {"file": memory.runtime, "version": memory.runtime_version()},
        "system": {"kernel": platform.release(), "machine": platform.machine(),
                   "cpus": os.cpu_count()},
        "info": {name: value for name, value in told.items() if name != "kernels"},
        "doctor": [
            {"part": f.part, "state": f.state, "text": f.text, "next": f.next} for f in findings
        ],
    }  # fmt: skip


def _torch(device: int) -> str:
    """The version of the torch whose times are taken, or why none are."""
    if why := peers.why_no_torch(f"cuda:{device}"):
        return f"none: {why}"
    return str(importlib.import_module("torch").__version__)


class _Progress:
    """A line for each case, with an estimate of the time that is left."""

    def __init__(self, total: int, limit: int | None) -> None:
        self.total, self.limit = total, limit
        self.start = time.monotonic()
        self.done = 0

    def seconds(self) -> float:
        return time.monotonic() - self.start

    def is_over(self) -> bool:
        return self.limit is not None and self.seconds() >= self.limit

    def tell(self, verdict: str, name: str, detail: str) -> None:
        self.done += 1
        left = self.seconds() / self.done * (self.total - self.done)
        if self.limit is not None:
            left = min(left, max(0.0, self.limit - self.seconds()))
        counts = f"{self.done:>{len(str(self.total))}}/{self.total} {verdict:<6} "
        end = f"  {detail}  {left:.0f} s left"
        room = max(20, _WIDTH - len(counts) - len(end))
        shown = name if len(name) <= room else name[: room - 3] + "..."
        print(counts + shown + end, flush=True)


def _output_file(given: str | None, arch: str) -> Path:
    """Raises ValueError for a file that is there."""
    now = datetime.datetime.now(datetime.timezone.utc)
    path = Path(given or f"aiter-attn-validation-{arch}-{now:%Y%m%dT%H%M%SZ}.json")
    if path.exists():
        raise ValueError(
            f"--output {path}: is there, and nothing is written over it; name another file, or "
            "remove it"
        )
    if not path.parent.is_dir():
        raise ValueError(f"--output {path}: no such folder; make it, or name another file")
    return path


def _kernel_words(kernels: Sequence[Any]) -> list[dict[str, str]]:
    return [{name: k[name] for name in ("kind", "name", "provider", "key")} for k in kernels]


def _guarded(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of a case; an error is its finding, or the reason why it was left out."""
    from aiter_attn._cli.hardware.memory import HipError

    try:
        found = run()
    except aiter_attn.UnsupportedError as error:
        return {"verdict": "left out", "why": str(error), "findings": []}
    except (aiter_attn.AttnError, HipError, MemoryError) as error:
        if "hipRTC" in str(error):  # a machine without a compiler runs all but these
            return {"verdict": "left out", "why": str(error), "findings": []}
        return {"verdict": "FAILED", "findings": [f"error: {type(error).__name__}: {error}"]}
    return {"verdict": "FAILED" if found["findings"] else "ok", **found}


def _cases(
    memory: Memory, planned: Sequence[Any], norm_cases: Sequence[Any], arguments: argparse.Namespace
) -> Iterator[Any]:
    """The facts of each case before it is run, and its run."""
    from aiter_attn._cli.hardware import attention, norms

    often = arguments.repeat, arguments.timed
    for number, each in enumerate(planned):
        known = {
            "case": each.case.name,
            "operation": "attention",
            "kernels": {
                "forward": _kernel_words(each.forward),
                "backward": _kernel_words(each.backward),
            },
        }
        seed = arguments.seed + number
        yield known, functools.partial(attention.run_case, memory, each, seed, *often)
    for number, case in enumerate(norm_cases, len(planned)):
        known = {"case": case.name, "operation": case.operation, "kernels": {}}
        seed = arguments.seed + number
        yield known, functools.partial(norms.run_case, memory, case, seed, *often)


def validate(arguments: argparse.Namespace) -> int:
    """The exit status: see the command's help."""
    found = opened("validate", arguments.device)
    if found is None:
        return NOTHING
    memory, arch = found
    from aiter_attn._cli.hardware import cases, norms

    try:
        path = _output_file(arguments.output, arch)
    except ValueError as error:
        _tell("validate", str(error))
        return NOTHING
    print(f"device {arguments.device}: {memory.name()} ({arch}), {memory.runtime}")
    print("choosing calls that reach the kernels of this build", flush=True)
    planned = cases.choose(cases.candidates(arch, arguments.quick), arch, arguments.kernels)
    unreached = cases.unreached(planned, arch, arguments.kernels)
    norm_cases = [
        case
        for case in norms.cases(arguments.quick)
        if arguments.kernels is None or fnmatch.fnmatch(case.operation, arguments.kernels)
    ]
    names = [each.case.name for each in planned] + [case.name for case in norm_cases]
    if not names:
        _tell(
            "validate",
            f"--kernels {arguments.kernels}: no call reaches such a kernel; `aiter-attn info "
            "--kernels` lists those that there are",
        )
        return NOTHING
    if arguments.list:
        for each in planned:
            kinds = ", ".join(kernel["kind"] for kernel in each.kernels)
            print(f"{each.case.name}: {kinds}")
        for case in norm_cases:
            print(case.name)
        print(f"{len(names)} calls; {len(unreached)} kernels that none reaches")
        return PASSED
    report = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "arguments": {
            name: getattr(arguments, name)
            for name in ("device", "kernels", "quick", "repeat", "seconds", "seed", "timed")
        },
        "machine": _machine_facts(memory, arch),
        "torch": _torch(arguments.device),
    }
    print(f"torch beside ours: {report['torch']}")
    runs = _cases(memory, planned, norm_cases, arguments)
    results = _run_all(memory, runs, names, arguments.seconds, path, report)
    return _finish(report, results, names, planned, unreached, path)


def _run_all(
    memory: Memory,
    runs: Iterator[Any],
    names: Sequence[str],
    seconds: int | None,
    path: Path,
    report: dict[str, Any],
) -> list[dict[str, Any]]:
    """The cases' results. A GPU's fault may end the process: a file beside the report has what was
    done by then, and which case ran, a line of JSON each."""
    progress = _Progress(len(names), seconds)
    results: list[dict[str, Any]] = []
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as journal:

        def note(line: dict[str, Any]) -> None:
            journal.write(json.dumps(line) + "\n")
            journal.flush()

        note(report)
        print(f"if the GPU ends this process, send {partial}", flush=True)
        try:
            for known, run in runs:
                if progress.is_over():
                    break
                note({"begins": known["case"]})
                result = {**known, **_guarded(run)}
                results.append(result)
                note(result)
                _tell_result(progress, result)
                if _is_lost(memory):
                    print("the GPU does not answer any more: the other calls are left out")
                    break
        except KeyboardInterrupt:
            print("interrupted: the report has what was done")
    report["seconds"] = round(progress.seconds(), 3)
    return results


def _is_lost(memory: Memory) -> bool:
    from aiter_attn._cli.hardware.memory import HipError

    try:
        memory.wait()
    except HipError:
        return True
    return False


def _tell_result(progress: _Progress, result: dict[str, Any]) -> None:
    detail = ""
    if errors := result.get("errors"):
        detail = f"{max(errors.values()):.2f} ulp"
        if times := result["milliseconds"]:
            detail += f", {_least(times)} ms"
        if times := result.get("torch_milliseconds"):
            detail += f" (torch {_least(times)})"
    progress.tell(result["verdict"], result["case"], detail)
    for finding in [*result["findings"], *([result["why"]] if "why" in result else [])]:
        print(f"    {finding}"[: 4 * _WIDTH], flush=True)


def _least(times: dict[str, Any]) -> str:
    """Of each pass."""
    return " + ".join(f"{of_pass['least']:.3f}" for of_pass in times.values())


def _finish(
    report: dict[str, Any],
    results: list[dict[str, Any]],
    names: Sequence[str],
    planned: Sequence[Any],
    unreached: Sequence[Any],
    path: Path,
) -> int:
    """Writes the report; the exit status."""
    counts = {
        verdict: sum(result["verdict"] == verdict for result in results)
        for verdict in ("ok", "FAILED", "left out")
    }
    ran = {
        kernel["key"]
        for result in results
        if result["verdict"] != "left out"
        for kernels in result["kernels"].values()
        for kernel in kernels
    }
    begun = {result["case"] for result in results}
    not_begun = [name for name in names if name not in begun]
    every = {kernel["key"]: kernel for each in planned for kernel in each.kernels}
    not_run = [kernel for key, kernel in every.items() if key not in ran]
    report["summary"] = {
        "passed": counts["ok"],
        "failed": counts["FAILED"],
        "left_out": counts["left out"],
        "not_begun": not_begun,
        "kernels_run": len(ran),
        "kernels_not_run": _kernel_words(not_run),
        "kernels_not_reached": _kernel_words(unreached),
    }
    report["cases"] = results
    files.write_new(path, (json.dumps(report, indent=1) + "\n").encode())
    path.with_name(path.name + ".partial").unlink(missing_ok=True)
    _tell_kernels("not reached by any call of this command", unreached)
    for result in results:
        if result["verdict"] == "FAILED":
            print(f"FAILED {result['case']}")
    status = FOUND if counts["FAILED"] else PASSED if counts["ok"] else NOTHING
    step = (
        f"send {path} with a report of the defect"
        if status == FOUND
        else f"keep or send {path}"
        if not not_begun and status == PASSED
        else "run it again without --seconds for the rest"
        if not_begun
        else _DOCTOR.removeprefix("next: ")
    )
    total = len(every) + len(unreached)
    print(
        f"{counts['ok']} passed, {counts['FAILED']} failed, {counts['left out']} left out, "
        f"{len(not_begun)} not begun; {len(ran)} of {total} kernels ran; next: {step}"
    )
    return status


def _tell_kernels(what: str, kernels: Sequence[Any]) -> None:
    if not kernels:
        return
    kinds: dict[str, int] = {}
    for kernel in kernels:
        kinds[kernel["kind"]] = kinds.get(kernel["kind"], 0) + 1
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"{what}: {told}; the file has their names")
