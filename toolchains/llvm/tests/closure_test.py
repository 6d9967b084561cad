# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""LLVM's programs load their own libraries and none of the host's."""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = next(iter(pathlib.Path("..").glob("*llvm/bin/clang"))).parent.parent.absolute()
LIBRARIES = ROOT / "usr/lib/x86_64-linux-gnu"
(PROGRAMS,) = ROOT.glob("usr/lib/llvm-*/bin")
VERSION = PROGRAMS.parent.name.removeprefix("llvm-")
TOOLS = os.environ["TOOLS"].split()
DEBUGINFO_TOOLS = os.environ["DEBUGINFO_TOOLS"].split()
CLOSURE = set(os.environ["LOADER_CLOSURE"].split())


def loaded(tool: str) -> dict[str, str]:
    """The libraries that the loader would load for a tool: soname -> path."""
    loader = str(LIBRARIES / "ld-linux-x86-64.so.2")
    command = [loader, "--inhibit-cache", "--library-path", str(LIBRARIES), "--list"]
    out = subprocess.run(
        [*command, str(PROGRAMS / tool)], check=True, capture_output=True, text=True
    ).stdout
    assert "not found" not in out
    found = dict(re.findall(r"^\t(\S+) => (\S+) \(", out, re.M))
    return {pathlib.Path(name).name: path for name, path in found.items()}


@pytest.mark.parametrize("tool", TOOLS)
def test_every_library_is_the_trees_own(tool):
    foreign = {n: p for n, p in loaded(tool).items() if not p.startswith(str(LIBRARIES))}
    # The loader is the one that was started, for any path that the program names.
    foreign.pop("ld-linux-x86-64.so.2", None)
    assert foreign == {}


def test_the_closure_is_exact():
    # An action has these as inputs: one too few does not start, one too many is carried along.
    needed = {"ld-linux-x86-64.so.2"}
    for tool in TOOLS:
        if tool not in DEBUGINFO_TOOLS:
            needed |= set(loaded(tool))
    assert {n for n in needed if not n.startswith("libclang-cpp.so.")} == CLOSURE


# lld on its own only says by which names to call it.
@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool != "lld"])
def test_a_tool_runs_in_an_empty_environment(tool):
    out = subprocess.run(
        [str(ROOT / "bin" / tool), "--version"], env={}, check=True, capture_output=True, text=True
    )
    assert f" {VERSION}." in out.stdout


def test_a_tool_runs_by_a_relative_path(tmp_path):
    (tmp_path / "link").symlink_to(ROOT, target_is_directory=True)
    command = ["link/bin/llvm-mc", "--version"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0


def test_clang_takes_itself_for_the_wrapper():
    out = subprocess.run(
        [str(ROOT / "bin/clang++"), "-no-canonical-prefixes", "-print-prog-name=ld.lld"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert out.stdout.strip() == str(ROOT / "bin/ld.lld")
