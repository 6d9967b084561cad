# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A library that CMake has built with //aiter:dist computes on a device, against float64."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.consumers import cmake_project, on_device
from tests.emulator.hip.hip import Hip


@pytest.mark.parametrize("static", ["OFF", "ON"])
def test_forward_and_backward(tmp_path: Path, hip: Hip, arch: str, static: str) -> None:
    prefix = cmake_project.unpack(tmp_path / "a prefix")
    cmake_project.build(tmp_path / "build", prefix, static)
    on_device.check(tmp_path / "build/libon_device.so", hip, arch)
