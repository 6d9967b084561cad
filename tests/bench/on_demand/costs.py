# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The cost of processes, and the choice of kernels, of measurements of single compiles."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Cost:
    """Seconds: of the processors, and on the clock."""

    cpu: float
    wall: float


def chosen(specs: Sequence[Path], pattern: str) -> list[Path]:
    """Raises ValueError for a pattern that is none, or that finds none."""
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"--only={pattern} is no regular expression: {error}") from error
    found = [spec for spec in specs if wanted.search(spec.stem)]
    if not found:
        names = "\n  ".join(spec.stem for spec in specs)
        raise ValueError(f"--only={pattern} finds none of:\n  {names}")
    return found


def first_use(command: Sequence[str], cwd: Path | None = None) -> tuple[Cost, str]:
    """The cost of a process and of all that it starts, and what it says."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, cwd=cwd)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        out.seek(0)
        return Cost(usage.ru_utime + usage.ru_stime, wall), out.read().decode()
