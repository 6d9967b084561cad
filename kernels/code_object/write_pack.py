# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the code objects of a build as one pack: embedded_pack.h has its format.

The pack is made by the program `packer`; it gets what the descriptions know of each code object.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from absl import app, flags

_PACKER = flags.DEFINE_string("packer", None, "the program: packer OUT LIST", required=True)
_OUT = flags.DEFINE_string("out", None, "the pack", required=True)
_METADATA = flags.DEFINE_multi_string("metadata", [], "what describe.py wrote")


def packer_lines(metadata: Iterable[Path]) -> str:
    """What packer reads: key, sha256 and path of each code object, in the order of their keys.

    metadata  what describe.py wrote, each with the .hsaco beside it
    """
    lines = []
    for path in metadata:
        record = json.loads(path.read_text("ascii"))
        lines.append(f"{record['key']} {record['sha256']} {path.with_suffix('.hsaco')}\n")
    return "".join(sorted(lines))


def main(_arguments: Sequence[str]) -> int:
    objects = Path(_OUT.value).with_suffix(".list")
    objects.write_text(packer_lines(map(Path, _METADATA.value)), "utf-8")
    return subprocess.run([_PACKER.value, _OUT.value, objects], check=False).returncode


if __name__ == "__main__":
    app.run(main)
