# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn validate` of norms and softmax, whose kernels hipRTC compiles in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiter_attn._cli.hardware import cases, norms
from aiter_attn._cli.hardware.memory import Memory
from aiter_attn._cli.main import main

from tests.emulation.wheel.compiler import load_compiler
from tests.emulator.hip.emulated_hip import Runtime

CASES = [
    norms.Case("rms_norm", "float16", 7, 100),
    norms.Case("layer_norm", "bfloat16", 5, 100),
    norms.Case("layer_norm", "float32", 600, 64),
    norms.Case("softmax", "bfloat16", 7, 100),
]


@pytest.fixture(autouse=True)
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Memory, "flushed_bytes", 1 << 16)
    load_compiler(tmp_path)


def validated(
    chosen: list[norms.Case], path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, dict[str, Any]]:
    monkeypatch.setattr(norms, "cases", lambda quick: chosen)
    monkeypatch.setattr(cases, "candidates", lambda arch, quick: ())
    arguments = ("--repeat", "2", "--timed", "1", "--output", str(path))
    return main(["validate", *arguments]), json.loads(path.read_text())


def test_norms(runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, report = validated(CASES, tmp_path / "x.json", monkeypatch)
    assert status == 0, report["cases"]
    assert report["summary"]["passed"] == len(CASES)
    for case, outputs in zip(report["cases"], (4, 6, 6, 2), strict=True):
        assert len(case["errors"]) == outputs
        assert set(case["milliseconds"]) == {"forward", "backward"}
    assert {launch.symbol for launch in runtime.launches} >= {
        "norm_forward", "norm_backward", "softmax_forward", "softmax_backward",
    }  # fmt: skip


def test_a_wrong_gradient_is_found(
    runtime: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import aiter_attn

    right = aiter_attn.softmax_bwd

    def wrong(dy: Any, y: Any) -> Any:
        dx: Any = right(dy, y)
        dx.memory.wait()
        dx.memory.to_device(dx.address + 21, np.array([0x41], np.uint8))
        return dx

    monkeypatch.setattr(aiter_attn, "softmax_bwd", wrong)
    status, report = validated(CASES[3:], tmp_path / "x.json", monkeypatch)
    assert status == 1
    assert report["cases"][0]["findings"][0].startswith("numbers: dx: repeat 0 is wrong by ")
