# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Where Bazel has the sandboxes of its actions.

A sandbox is a link for each input, a thousand and more. On a disk with a journal, a cold build can
spend an eighth of its time on making them. `--sandbox_base=` of a command goes back to the disk.
"""

from __future__ import annotations

import os

MEMORY = "/dev/shm"  # noqa: S108  (Bazel makes a folder of its own in it)

# Beside links there are the files that an action has written so far, some tens of megabytes.
# Containers often have 64 MB there.
_LEAST_FREE = 1 << 30


def settings(folder: str, memory: str = MEMORY) -> list[str]:
    """Returns the options of Bazel for sandboxes in memory, where there is room for them.

    folder  with memory.bazelrc, whose path is `memory`
    """
    if not os.path.ismount(memory) or not os.access(memory, os.W_OK | os.X_OK):
        return []
    free = os.statvfs(memory)
    if free.f_bavail * free.f_frsize < _LEAST_FREE:
        return []
    return [f"--bazelrc={folder}/memory.bazelrc"]
