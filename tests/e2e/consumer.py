# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A project beside a clone of this one, which depends on it as a Bazel module: consumer/, with
CMake's on_device.c."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.e2e import clone

VARIANTS = "--@aiter_attn//kernels:variants=smoke"


class Consumer(clone.Clone):
    """A clone whose bazel() runs in the other project, by the clone's bazelw."""

    def __init__(self, base: Path) -> None:
        super().__init__(base, "elsewhere", disk_cache=clone.shared_disk_cache())
        self.folder = self.root.parent / "consumer"
        shutil.copytree(self.root / "tests/e2e/consumer", self.folder)
        shutil.copy(self.root / "tests/consumers/cmake/on_device.c", self.folder)
        (self.folder / "bazelw").symlink_to("../checkout/bazelw")
        self.wrapper = ["env", "-C", str(self.folder)]

    def outputs(self, *args: str) -> list[Path]:
        """The files that a build of these targets with these flags has made."""
        said = self.bazel("cquery", "--output=files", *args).stdout
        return [self.folder / line for line in said.splitlines() if line.startswith("bazel-out/")]
