# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the one object with a code object in an archive many times over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from tests.consumers.archives import instances

_ARCHIVE = flags.DEFINE_string("archive", None, "of code_object_library", required=True)


def main(arguments: Sequence[str]) -> None:
    (member,) = instances(Path(_ARCHIVE.value))
    for path in arguments[1:]:
        Path(path).write_bytes(member)


if __name__ == "__main__":
    app.run(main)
