# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""TransformerEngine's calls in a library that CMake builds by TransformerEngine's lines, linked
with QoLA's shared libraries, and with the archive: on a device, against float64."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.consumers import cmake_project
from tests.consumers.attention import Attention, Consumer
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulator.hip.hip import Hip

_CASE = Case("causal", ((77, 130),) * 2, 4, 2, mask=MASK_BOTTOM_RIGHT, window=(-1, 0))


def files(variable: str) -> list[Path]:
    return [Path(path).absolute() for path in os.environ[variable].split()]


def install(prefix: Path) -> Path:
    """QoLA's output tree, with the archive; the folder of the libraries."""
    for header in files("HEADERS"):
        # Below the folder of the pin, or that of the declarations.
        name = str(header).rpartition("/include/" if "/include/" in str(header) else "/")[2]
        (prefix / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(header, prefix / "include" / name)
    (prefix / "lib").mkdir()
    for library in files("LIBRARIES"):
        shutil.copy(library, prefix / "lib")
    return prefix / "lib"


@pytest.mark.parametrize("static", ["OFF", "ON"])
def test_forward_and_backward(tmp_path: Path, hip: Hip, arch: str, static: str) -> None:
    libraries = install(tmp_path / "a prefix")
    # The other form is not there to be taken by mistake.
    for other in libraries.glob("*.so" if static == "ON" else "*.a"):
        other.unlink()
    (project,) = files("TE_PROJECT")
    cmake_project.configure(
        tmp_path / "build", project.parent, f"-DAITER_STATIC_LINK={static}",
        f"-DAITER_MHA_PATH={libraries}", f"-DSOURCES={';'.join(map(str, files('SOURCES')))}",
        f"-DSOURCE_ROOT={Path.cwd()}",
    ).check_returncode()  # fmt: skip
    done = cmake_project.ninja(tmp_path / "build")
    assert done.returncode == 0, done.stdout + done.stderr
    library = tmp_path / "build/libck_fused_attn.so"
    assert (b"te_libmha_fwd.so" in library.read_bytes()) == (static == "OFF")
    problem = Attention(hip, Consumer(library), arch, _CASE)
    assert problem.forward() == 0
    assert problem.backward() == 0
    problem.check()
