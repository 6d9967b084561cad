# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Bazel, run in a source tree by a bench."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


class Workspace:
    """A source tree. A command that ends otherwise than it should ends the bench with what Bazel
    said."""

    def __init__(self, root: Path, startup: Sequence[str] = ()):
        self.root = root
        self._startup = startup

    def bazel(self, *arguments: str, statuses: Sequence[int] = (0,)) -> str:
        command = ["./bazelw", *self._startup, *arguments]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True)
        if done.returncode not in statuses:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        return done.stdout
