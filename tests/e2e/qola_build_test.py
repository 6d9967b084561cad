# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A manifest of few kernels, built by Bazel in a fresh clone: the output tree and its libraries."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiter.compat.qola import qola
from aiter.compat.qola.tree import ENTRIES
from tests.e2e import clone

MANIFEST = """
[qola]
aiter_commit = "7a24cd8"
namespace = "tiny"
[build]
architectures = ["gfx942"]
[[modules]]
name = "libmha_fwd"
mode = "cpp_itfs"
receipt = 700
hsa_subdirs = []
[[modules]]
name = "libmha_bwd"
mode = "cpp_itfs"
receipt = 700
hsa_subdirs = []
[[mha_fwd_variants]]
dtype = "fp16"
head_size_qk = 64
mode = "batch"
has_mask = true
has_bias = false
has_alibi = false
has_dropout = false
pad_seqlen_k = true
transposed_loads = false
[[mha_bwd_variants]]
dtype = "fp16"
head_size_qk = 64
mode = "batch"
has_mask = true
has_bias = false
has_alibi = false
has_dropout = false
deterministic = false
pad_seqlen_q = true
pad_head_size_qk = false
pad_head_size_v = false
transposed_loads = false
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[clone.Clone]:
    made = clone.Clone(tmp_path, "qola", clone.shared_disk_cache())
    yield made
    made.close()


def test_a_manifest_is_built(
    project: clone.Clone,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name, value in (clone.stranger_environment() | {"HOME": str(project.home)}).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "m.toml").write_text(MANIFEST)
    arguments = ["build", "--manifest=m.toml", "--output-dir=out"]
    arguments += [f"--bazel-flag=--disk_cache={project.disk_cache}", "--bazel-flag=--jobs=2"]
    # The clone's Bazel has an output root of its own.
    bazel = project.root / "bazelw"
    real = bazel.rename(project.root / "real_bazelw")
    bazel.write_text(f'#!/bin/sh\nexec {real} --output_user_root={project.output_root} "$@"\n')
    bazel.chmod(0o755)
    files = (Path(os.environ[name]) for name in ("POOL", "ARCHS", "HIP_VERSIONS"))
    status = qola.main(
        arguments,
        qola.read_facts(*files),
        {"BUILD_WORKSPACE_DIRECTORY": str(project.root), "BUILD_WORKING_DIRECTORY": str(tmp_path)},
    )
    said = capfd.readouterr()
    assert status == 0, said.err[-8000:]
    assert said.out.splitlines()[-1] == "Build complete: 2/2 succeeded, 0 failed."

    out = tmp_path / "out"
    assert sorted(path.name for path in out.iterdir()) == list(ENTRIES)
    assert sorted(path.name for path in (out / "include").iterdir()) == [
        "bias.hpp",
        "ck_tile",
        "fmha_bwd.hpp",
        "fmha_fwd.hpp",
        "mask.hpp",
        "mha_bwd.h",
        "mha_fwd.h",
        "qola_common.h",
        "qola_config.h",
        "qola_mha_bwd.h",
        "qola_mha_fwd.h",
        "quant.hpp",
    ]
    assert "#define QOLA_NAMESPACE tiny\n" in (out / "include/qola_config.h").read_text()
    record = json.loads((out / "manifest.json").read_text())
    assert record["summary"] == {"total": 2, "success": 2, "failed": 0}
    for module in record["modules"]:
        ctypes.CDLL(module["so_path"])
        this = module["md_name"].removeprefix("tiny_lib")
        assert f"N4qola4tiny7{this}E".encode() in Path(module["so_path"]).read_bytes()
