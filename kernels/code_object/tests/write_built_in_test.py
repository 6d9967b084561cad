# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The list of the kernels that a library has built in."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernels.code_object import write_built_in


def record(instance: str, arch: str, **more: Any) -> dict[str, Any]:
    return {"arch": arch, "instance": instance, "key": f"key of {instance}.{arch}", **more}


def test_a_kernel_is_one_entry_whatever_the_archs() -> None:
    records = [
        record("soft", "sm_90", size=2),
        record("norm", "sm_90", size=1),
        record("soft", "gfx942", size=3, kernels={"softmax": {"vgpr_count": 9}}),
    ]
    assert write_built_in.built_in(records, {"soft": "softmax", "norm": "rms"}) == [
        {
            "name": "norm",
            "operation": "rms",
            "code_objects": {"sm_90": {"key": "key of norm.sm_90", "size": 1}},
        },
        {
            "name": "soft",
            "operation": "softmax",
            "code_objects": {
                "gfx942": {
                    "key": "key of soft.gfx942",
                    "size": 3,
                    "kernels": {"softmax": {"vgpr_count": 9}},
                },
                "sm_90": {"key": "key of soft.sm_90", "size": 2},
            },
        },
    ]


def test_a_kernel_without_an_operation_is_an_error() -> None:
    with pytest.raises(KeyError, match="norm"):
        write_built_in.built_in([record("norm", "sm_90")], {"soft": "softmax"})


def test_the_program(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(record("norm", "sm_90")))
    program = [sys.executable, write_built_in.__file__, f"--out={tmp_path / 'out'}"]
    subprocess.run(program, check=True)
    assert json.loads((tmp_path / "out").read_text()) == []
    chosen = [f"--metadata={tmp_path / 'a.json'}", "--operation=norm=rms"]
    subprocess.run([*program, *chosen], check=True)
    (entry,) = json.loads((tmp_path / "out").read_text())
    assert entry["operation"] == "rms"
