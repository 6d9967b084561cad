# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the pack of kernels' sources, headers and listings of headers."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from kernels.compile_kit.by_digest import packer_lines

_FILES = flags.DEFINE_multi_string("file", [], "to be packed")
_PACKER = flags.DEFINE_string("packer", None, "the program: packer OUT LIST", required=True)
_PACK = flags.DEFINE_string("pack", None, "to be written", required=True)


def main(_arguments: Sequence[str]) -> int:
    listed = Path(_PACK.value).with_suffix(".list")
    listed.write_text(packer_lines(map(Path, _FILES.value)), "utf-8")
    return subprocess.run([_PACKER.value, _PACK.value, listed], check=False).returncode


if __name__ == "__main__":
    app.run(main)
