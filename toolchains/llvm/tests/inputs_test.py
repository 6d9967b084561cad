# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The toolchain's part of an action's inputs stays small: remote execution uploads all of it."""

import os
import pathlib

import pytest

HERE = pathlib.Path("toolchains/llvm/tests")

# Kind of action -> most files, most MB. The compiler's libraries alone are 250 MB; headers,
# libraries of the target, and tools that an action does not run can grow unseen.
BUDGET = {
    "compile": (1300, 275),
    "link": (90, 280),
    "archive": (25, 215),
    "hip": (1400, 290),
}


def inputs(kind: str) -> list[pathlib.Path]:
    listing = (HERE / f"{kind}_inputs.txt").read_text("utf-8")
    return [pathlib.Path(line) for line in listing.splitlines()]


@pytest.mark.parametrize("kind", BUDGET)
def test_an_action_has_few_inputs(kind):
    files = inputs(kind)
    most_files, most_megabytes = BUDGET[kind]
    megabytes = sum(os.path.getsize(file) for file in files) / 1e6
    print(f"{kind}: {len(files)} files, {megabytes:.0f} MB")
    assert len(files) <= most_files
    assert megabytes <= most_megabytes


def test_a_compile_has_no_linker_and_no_library_of_the_target():
    names = {file.name for file in inputs("compile")}
    assert not names & {"lld", "ld.lld", "llvm-ar", "libc.so", "libstdc++.a"}


def test_a_link_has_no_header():
    assert [file for file in inputs("link") if file.suffix == ".h"] == []


def test_libstdcxx_can_only_be_linked_statically():
    names = {file.name for file in inputs("link") if "sysroot" in str(file)}
    assert "libstdc++.a" in names
    assert not names & {"libstdc++.so", "libgcc_s.so", "libgcc_s.so.1"}
