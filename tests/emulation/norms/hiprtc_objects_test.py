# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Code objects that hipRTC made at run time, beside those of the same shapes ahead of time."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from kernels.code_object.metadata import kernel_records
from kernels.code_object.spec import CodeObjectSpec


def _paths(variable: str) -> dict[str, Path]:
    """By shape and arch."""
    return {Path(path).stem: Path(path) for path in os.environ[variable].split()}


RUN_TIME, AHEAD_OF_TIME = _paths("RUN_TIME"), _paths("AHEAD_OF_TIME")
SPECS = _paths("SPECS")
SHAPES = json.loads(Path(os.environ["NORM_SHAPES"]).read_text())
# Facts that a launch goes by; registers are each compiler's own choice.
LAUNCH = ("kernarg_size", "lds_size", "max_workgroup_size", "wavefront_size")


def test_there_are_shapes_of_each_source_and_arch() -> None:
    sources = {SHAPES[name.split(".")[0]]["source"] for name in RUN_TIME}
    assert sources == {shape["source"] for shape in SHAPES.values()}
    assert {name.split(".")[1] for name in RUN_TIME} == set(os.environ["ARCHS"].split())


@pytest.mark.parametrize("name", RUN_TIME)
def test_they_are_launched_alike(name: str) -> None:
    shape, arch = name.split(".")
    threads = SHAPES[shape]["kernels"]
    # Raises where the arch, the kernels or their workgroups are others.
    here, there = (
        kernel_records(paths[name].read_bytes(), arch, threads)
        for paths in (RUN_TIME, AHEAD_OF_TIME)
    )
    for kernel in threads:
        for field in LAUNCH:
            assert here[kernel][field] == there[kernel][field], field
        assert here[kernel]["vgpr_count"] <= 512


@pytest.mark.parametrize("name", RUN_TIME)
def test_the_key_is_of_this_compiler(name: str) -> None:
    spec = CodeObjectSpec.parse(SPECS[name].read_bytes())
    assert spec.arch == name.split(".")[1]
    # ROCm's hipRTC, 6.4 and others, says 9.0. Both libraries have a build ID, which tells them
    # apart: the key is the same on every machine.
    assert re.fullmatch("hiprtc 9.0 [0-9a-f]{40} comgr [0-9a-f]{40}", spec.toolchain)
