# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The program that builds describe objects with, on objects that are not as they should be: real
ones, of other kernels, in the place of AITER's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.aiter_asm import describe_objects

_FILE = "gfx942/fmha_v3_fwd/MI300/fwd_hd128_bf16_rtne.co"


def _run(folder: Path, file: str, source: str) -> subprocess.CompletedProcess[str]:
    path = folder / file
    path.parent.mkdir(parents=True)
    shutil.copy(os.environ[source], path)
    tables = [
        f"--table=kernels/aiter_asm/{name}.toml" for name in ("forward", "backward", "defects")
    ]
    return subprocess.run(
        [sys.executable, "-B", describe_objects.__file__, *tables,
         f"--object={path}={folder}/out.json"],
        capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


@pytest.mark.parametrize(("file", "source", "message"), [
    (_FILE, "OF_GFX950", f"{_FILE}: ELF machine is 79, the table says 76\n"),
    (_FILE, "OF_GFX942", f"{_FILE}: .symbol is 'attn_sum_heads_fp16.kd', the table says '_ZN5ai"),
    (_FILE.replace("rtne", "rtx"), "OF_GFX942", "hd128_bf16_rtx.co: no object of the table; it"),
    (_FILE, "NO_OBJECT", f"{_FILE}: not a code object of one kernel with metadata: "),
], ids=["arch", "metadata", "name", "file"])  # fmt: skip
def test_an_object_that_is_not_as_its_table_says(
    tmp_path: Path, file: str, source: str, message: str
) -> None:
    done = _run(tmp_path, file, source)
    assert done.returncode == 1
    assert message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out.json").exists() and not (tmp_path / "out.spec").exists()
