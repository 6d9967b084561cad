# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn validate` of norms and softmax, whose kernels hipRTC compiles in this process."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiter_attn._cli.hardware import cases, norms
from aiter_attn._cli.hardware.memory import Memory
from aiter_attn._cli.main import main

from tests.emulator.hip.emulated_hip import Runtime

HIPRTC = Path(os.environ["HIPRTC"]).absolute()
# The libraries that hipRTC and its compiler load, each after those that it needs: the loader of the
# tests' own Python knows no folder but its own.
NEEDED = (
    "libz.so.1", "libzstd.so.1", "libffi.so.8", "libmd.so.0", "libbsd.so.0", "libtinfo.so.6",
    "libedit.so.2", "libstdc++.so.6", "libz3.so.4", "libxml2.so.16", "libnuma.so.1",
    "libLLVM.so.21.1", "libamd_comgr.so.3",
)  # fmt: skip
CASES = [
    norms.Case("rms_norm", "float16", 7, 100),
    norms.Case("layer_norm", "bfloat16", 5, 100),
    norms.Case("layer_norm", "float32", 600, 64),
    norms.Case("softmax", "bfloat16", 7, 100),
]


@pytest.fixture(autouse=True)
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in NEEDED:
        ctypes.CDLL(str(HIPRTC.with_name(library)))
    monkeypatch.setattr(Memory, "flushed_bytes", 1 << 16)
    os.environ["AITER_ATTN_HIPRTC_LIBRARY"] = str(HIPRTC)
    os.environ["AITER_ATTN_CACHE_DIR"] = str(tmp_path)
    os.environ["AMD_COMGR_CACHE"] = "0"  # a folder of the user's


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
