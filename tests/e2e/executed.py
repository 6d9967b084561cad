# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Targets that tests have executed elsewhere: a shared object and a kernel.

They need compilers, linkers and Python programs. Their files of a build here are in the runfiles.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.e2e.clone import Clone, Spawns, sha256

TARGETS = os.environ["EXECUTED"].split()
_FILES = (
    "kernels/sum_heads/attn_sum_heads_fp16.gfx942.hsaco",
    "tests/support/runtime/libamdhip64.so",
)


def build(clone: Clone, *options: str) -> Spawns:
    return clone.build(*options, "--remote_download_outputs=all", *TARGETS)


def outputs(folder: Path) -> dict[str, str]:
    """Files of the targets below bazel-bin, by their digests."""
    return {name: sha256(folder / name) for name in _FILES}


def outputs_here() -> dict[str, str]:
    return outputs(Path.cwd())


def outputs_of(clone: Clone) -> dict[str, str]:
    return outputs(clone.root / "bazel-bin")
