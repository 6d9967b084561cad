# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel's manifest: the parts that are put together, and the packages that are not locked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from python.private import make_manifest


def package(name: str, version: str, digit: str) -> dict[str, str]:
    return {"name": name, "version": version, "sha256": digit * 64}


LOCK = {
    "groups": {
        "llvm": {"packages": [package("clang", "1", "a"), package("libc6", "2.41", "b")]},
        "rocm": {"packages": [package("hip", "6", "c")]},
    }
}


def test_what_is_locked_is_not_named() -> None:
    used = [package("libc6", "2.41", "b"), package("hip", "6", "c")]
    assert make_manifest.not_locked(LOCK, used) == []


def test_what_is_not_is_named_once_whatever_tree_it_is_in() -> None:
    used = [package("libc6", "2.42", "d"), package("hip", "6", "e"), package("libc6", "2.42", "d")]
    assert make_manifest.not_locked(LOCK, used) == ["hip 6", "libc6 2.42"]


def test_the_manifest_is_kept_beside_it(tmp_path: Path) -> None:
    files = {
        "manifest": {"toolchain": "0", "instances": [{"name": "x"}]},
        "norms": [{"name": "rms_forward_bf16_4096"}],
        "lock": LOCK,
        "llvm": [package("clang", "2", "f")],
        "rocm": [package("hip", "6", "c")],
    }
    for name, data in files.items():
        (tmp_path / name).write_text(json.dumps(data))
    run = [sys.executable, make_manifest.__file__]
    run += [f"--{name}={tmp_path / name}" for name in ("out", "manifest", "norms", "lock")]
    run += [f"--used={tmp_path / name}" for name in ("llvm", "rocm")]
    subprocess.run(run, check=True)
    got = json.loads((tmp_path / "out").read_text())
    added = {"norms": files["norms"], "not_locked": ["clang 2"]}
    assert got == files["manifest"] | added
    headers = {"version": "3.12.1", "sha256": "1" * 64}
    (tmp_path / "headers").write_text(json.dumps(headers))
    subprocess.run([*run, f"--machine_headers={tmp_path / 'headers'}"], check=True)
    got = json.loads((tmp_path / "out").read_text())
    assert got == files["manifest"] | added | {"machine_headers": headers}
