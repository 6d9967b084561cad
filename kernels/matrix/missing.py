# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels that no cache has, and the time that compiling them takes.

Bazel alone knows under which digest a cache has an action's outputs, so it is asked, by a build in
which compiles of kernels cannot run: their sandbox has a mount whose source cannot exist, which
Bazel finds out before it starts a compiler and after it has looked into its caches (its own of the
checkout, the disk cache, a server). Outputs that are found there are taken, as by any build; each
other compile fails at once, and the build's events name it. No option of this enters an action's
digest.
"""

from __future__ import annotations

import dataclasses
import heapq
import json
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.groups.cost import CostModel

# The actions that compile: a group to modules, a source or a module to a code object.
GROUP, OBJECT = "HipCompileGroup", "HipCodeObject"

_NOWHERE = "/dev/null/no_compile_of_a_kernel_runs_in_this_build"
_REFUSED = "MOUNT_SOURCE_DOES_NOT_EXIST"
# Options of a build that asks.
ASKING = (
    "--keep_going",
    # Actions of other kinds run, in the sandbox that knows no mounts.
    "--spawn_strategy=processwrapper-sandbox",
    *(f"--strategy={mnemonic}=linux-sandbox" for mnemonic in (GROUP, OBJECT)),
    f"--sandbox_add_mount_pair={_NOWHERE}:/tmp",
    "--noshow_progress",
    "--show_result=0",
    # An error says why Bazel cannot answer. It is also said of each compile that is refused.
    "--ui_event_filters=-info,-warning,-debug,-stderr",
)


class MissingError(Exception):
    """Bazel could not say what its caches lack."""


@dataclasses.dataclass(frozen=True)
class Compile:
    """A compile of which no cache has the outputs.

    mnemonic  GROUP or OBJECT
    target    "groups/PACKAGE:NAME" or "PACKAGE:INSTANCE[.grouped]", without the arch
    module    whether an OBJECT is made of its group's module
    """

    mnemonic: str
    target: str
    module: bool = False


def refused(events: Iterable[str], arch: str) -> list[Compile]:
    """The compiles that a build's events name. Raises MissingError for any other failure."""
    found = {}
    for line in events:
        event = json.loads(line)
        action = event.get("action")
        if action is None or action.get("success"):
            continue
        label, mnemonic = action.get("label", ""), action.get("type", "")
        detail = action.get("failureDetail", {})
        if detail.get("sandbox", {}).get("code") != _REFUSED or mnemonic not in (GROUP, OBJECT):
            raise MissingError(
                f"{mnemonic} of {label} failed: {detail.get('message', 'no reason')}"
            )
        target = label.partition("//")[2].removesuffix(f".{arch}")
        module = mnemonic == OBJECT and "-disable-llvm-passes" in action.get("commandLine", [])
        found[mnemonic, target] = Compile(mnemonic, target, module)
    return list(found.values())


def ask(root: Path, variant_set: str, arch: str, options: Sequence[str]) -> list[Compile]:
    """The compiles that a build of a set for an arch would have to run. Raises MissingError.

    root     the checkout
    options  of that build
    """
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "events")
        command = [
            "./bazelw",
            "build",
            # Those of a build with the set, which then finds its targets analysed.
            f"--//kernels:variants={variant_set}",
            f"--//kernels:archs={arch}",
            *options,
            *ASKING,
            f"--build_event_json_file={events}",
            f"@variant_sets//{variant_set}:{arch}",
        ]
        done = subprocess.run(command, cwd=root, text=True, capture_output=True)
        # 1: not all was built.
        if done.returncode not in (0, 1) or not events.exists():
            raise MissingError(_reason(done.stderr, done.returncode))
        found = refused(events.read_text("utf-8").splitlines(), arch)
        if done.returncode and not found:
            raise MissingError(_reason(done.stderr, done.returncode))
    return found


def _reason(stderr: str, status: int) -> str:
    said = [line for line in stderr.splitlines() if line.startswith("ERROR:")] or [""]
    hint = ""
    if "linux-sandbox" in said[0]:
        hint = (
            "; Bazel has no linux-sandbox here, which needs user namespaces: "
            "ask on a machine that has them"
        )
    return f"./bazelw build failed with exit status {status}: {said[0]}{hint}"


def wall_seconds(tasks: Iterable[float], jobs: int) -> float:
    """The time until all tasks are done, the longest first, by so many workers."""
    free = [0.0] * jobs
    for seconds in sorted(tasks, reverse=True):
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def report(
    compiles: Iterable[Compile],
    names: Sequence[str],
    model: CostModel,
    pool: RecordedPool,
    jobs: int,
) -> dict[str, Any]:
    """The code objects that a set lacks, counted, and their time; for JSON.

    names  the set's instances for the arch
    jobs   how many compiles run at a time, each on a processor of its own
    """
    in_groups = {name for name, label in pool.labels(names).items() if label.endswith(".grouped")}
    tasks = []
    lacking: set[str] = set()
    groups = alone = 0
    for compile_ in compiles:
        package, _, name = compile_.target.partition(":")
        if compile_.mnemonic == GROUP:
            members = pool.groups[f"{package.removeprefix('groups/')}:{name}"]
            group = {member.partition(":")[2] for member in members}
            tasks.append(model.compile_of_group(pool.rows[member] for member in group))
            tasks += [model.seconds_of_object] * len(group & in_groups)
            lacking |= group & in_groups
            groups += 1
        else:
            instance = name.removesuffix(".grouped")
            row = pool.rows[instance]
            tasks.append(model.seconds_of_object if compile_.module else model.alone(row))
            lacking.add(instance)
            alone += not compile_.module
    return {
        "code_objects": len(lacking),
        "groups": groups,
        "alone": alone,
        "cpu_seconds": round(sum(tasks)),
        "jobs": jobs,
        "seconds": round(wall_seconds(tasks, jobs)),
    }


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{seconds / 3600:.1f} h"


def text(missing: dict[str, Any], instances: int) -> str:
    """A line for people."""
    if not missing["code_objects"]:
        return f"The caches lack none of the {instances:,} code objects.\n"
    return (
        f"The caches lack {missing['code_objects']:,} of {instances:,} code objects "
        f"({missing['groups']} compile groups, {missing['alone']} alone): about "
        f"{duration(missing['cpu_seconds'])} of processor time, "
        f"{duration(missing['seconds'])} with --jobs={missing['jobs']}.\n"
    )
