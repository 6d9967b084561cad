# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Every file that an action of the wheel reads is tracked by git or locked by sha256."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e import action_graph, clone, origins, other_system, tracing
from toolchains.bazel import vendor
from toolchains.debian import lock

# With the actions of AITER's objects, which smoke alone is built without.
_FLAGS = ("--//kernels:variants=smoke", "--//kernels:providers=ck,asm")
WHEEL = "//python:attn_wheel"
# Groups of the lock that no action of the wheel uses.
UNRELATED = {
    *("clang_tidy", "clang_tools", "compiler_rt", "faketime", "googletest", "licences"),
    *("nginx", "npm", "other_system"),
    "torch",
}


@pytest.fixture(scope="module")
def execution_root(other: clone.Clone) -> Path:
    other.build(*_FLAGS, "--remote_download_outputs=all", WHEEL)
    return Path(other.bazel("info", "execution_root").stdout.split()[-1])


@pytest.fixture(scope="module")
def actions(other: clone.Clone, execution_root: Path) -> list[action_graph.Action]:
    flags = ("--include_param_files", "--output=jsonproto")
    said = other.bazel("aquery", *_FLAGS, *flags, f"deps({WHEEL})", stderr=subprocess.PIPE)
    return action_graph.parse(json.loads(said.stdout))


def test_every_input_is_tracked_or_locked(
    other: clone.Clone, execution_root: Path, actions: list[action_graph.Action]
) -> None:
    leaves = action_graph.leaves(actions)
    assert len(leaves) > 1000
    # External repositories lie beside the execution roots; there are links only to some of them.
    folder = execution_root.parent.parent
    listed = subprocess.run(
        ["git", "ls-files", "-z"],
        cwd=clone.workspace(),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    shelf = other_system.locked_files()
    groups = lock.read(lock.LOCK)
    related, unrelated = (
        {p.sha256 for name in names for p in groups[name].packages}
        for names in (set(groups) - UNRELATED, UNRELATED)
    )
    archives = {
        shelf / file.sha256: str(about["file"])
        for file, about in vendor.locked(os.environ).items()
        if file.sha256 not in unrelated - related
    }
    tracked = set(listed.split("\0"))
    assert origins.unexplained(leaves, folder, other.root, tracked, archives) == []


def test_actions_look_at_nothing_of_the_host(
    tmp_path: Path, execution_root: Path, actions: list[action_graph.Action]
) -> None:
    """One action of each kind runs again under strace, and makes the same files."""

    def made(action: action_graph.Action) -> list[Path]:
        # Lists of headers are Bazel's own and not kept.
        return [execution_root / o for o in action.outputs if not o.endswith(".d")]

    def size(action: action_graph.Action) -> int:
        return sum(file.stat().st_size for file in made(action))

    # Some make files that the wheel does not need, and were not run. The smallest is the quickest.
    ran = [a for a in actions if all(file.is_file() for file in made(a))]
    by_kind: dict[str, action_graph.Action] = {}
    for action in sorted((a for a in ran if a.arguments), key=size, reverse=True):
        by_kind[action.mnemonic] = action
    assert {"CppCompile", "CppLink", "HipCodeObject", "LaunchTable", "Wheel"} <= set(by_kind)
    strace = other_system.command("strace")
    places = {p: (execution_root / p).resolve() for a in by_kind.values() for p in a.inputs}
    seen = {}
    for kind, action in by_kind.items():
        folder = tmp_path / kind
        text = tracing.run(action, execution_root, folder, strace)
        seen[kind] = tracing.foreign(tracing.looked_at(text, folder), places)
        for file in made(action):
            again = folder / file.relative_to(execution_root)
            assert again.read_bytes() == file.read_bytes(), f"{kind}: {again}"
    assert {kind: paths for kind, paths in seen.items() if paths} == {}


def test_a_look_at_the_host_is_noticed(tmp_path: Path) -> None:
    action = action_graph.Action(
        "Careless", ("/bin/sh", "-c", "read x < /etc/hostname; : > out"), {}, frozenset(), (), {}
    )
    text = tracing.run(action, tmp_path, tmp_path / "action", other_system.command("strace"))
    assert "/etc/hostname" in tracing.foreign(tracing.looked_at(text, tmp_path / "action"), {})
