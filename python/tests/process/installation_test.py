# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A package whose extension module Python cannot load says why, with the next step."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import aiter_attn
import pytest
from aiter_attn import _missing

PACKAGE = Path(aiter_attn.__file__).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package without its extension module."""
    made = tmp_path / "site" / "aiter_attn"
    shutil.copytree(PACKAGE, made, ignore=shutil.ignore_patterns("_C.*.so", "__pycache__"))
    return made


def failure(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(path)!r}); "
         "import aiter_attn"],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: aiter_attn: ")
    assert "partially initialized" not in done.stderr
    return last


def test_the_wheel_of_another_python(copy: Path) -> None:
    (copy / "_C.cpython-39-x86_64-linux-gnu.so").touch()
    message = failure(copy.parent)
    assert "it has _C.cpython-39-x86_64-linux-gnu.so" in message
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"{sys.executable} (Python {version}) loads _C.cpython-" in message
    assert "install the wheel of this Python" in message


@pytest.mark.parametrize("file", ["_C.cpython-313-x86_64-linux-gnu.so", "no_extension"])
def test_a_free_threaded_python(copy: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flags of an interpreter tell it."""
    (copy / file).touch()
    monkeypatch.setattr(sys, "abiflags", "t")
    message = _missing.why([str(copy)])
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"{sys.executable} is Python {version}t, a free-threaded build" in message
    assert "allowed: ordinary builds of Python 3.10 or newer; install one" in message


def test_sources_without_a_build(copy: Path) -> None:
    message = failure(copy.parent)
    assert f"{copy} holds the sources without the extension module" in message
    assert "build the wheel" in message


def test_an_import_from_an_archive(copy: Path, tmp_path: Path) -> None:
    archive = tmp_path / "packages.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for file in copy.rglob("*.py"):
            made.write(file, file.relative_to(copy.parent))
    message = failure(archive)
    assert f"from inside of an archive ({archive}/aiter_attn)" in message
    assert "install the wheel with pip, or unpack" in message


def test_what_is_missing_elsewhere_is_not_blamed_on_the_wheel(copy: Path) -> None:
    (copy / "_core/problems.py").write_text("import no_such_module\n", encoding="utf-8")
    shutil.copy(next(PACKAGE.glob("_C.*.so")), copy)
    done = subprocess.run(
        [sys.executable, "-c", "import aiter_attn"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(copy.parent)},
    )
    assert "ModuleNotFoundError: No module named 'no_such_module'" in done.stderr
