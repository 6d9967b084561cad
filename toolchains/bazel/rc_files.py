# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The rc files of Bazel that users write, beside the project's own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

_OPTION = "--bazelrc"


def text(top: str, startup: Sequence[str], home: str) -> str:
    """Returns the contents of the rc files that Bazel reads beside .bazelrc, one after the other.

    Args:
      top: the workspace, whose user.bazelrc is one of them.
      startup: Bazel's arguments; those before the command may name files.
      home: the user's home, whose .bazelrc is one of them.
    """
    files = [os.path.join(home, ".bazelrc"), os.path.join(top, "user.bazelrc")]
    for at, word in enumerate(startup):
        if word == _OPTION:
            files += startup[at + 1 : at + 2]
        elif word.startswith(f"{_OPTION}="):
            files.append(word.partition("=")[2])
        elif word == "--":
            break
    contents = []
    for file in files:
        # One that cannot be read is Bazel's to complain of.
        with contextlib.suppress(OSError), open(file, encoding="utf-8", errors="replace") as opened:
            contents.append(opened.read())
    return "\n".join(contents)
