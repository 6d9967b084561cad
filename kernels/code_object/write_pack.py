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
_OBJECTS = flags.DEFINE_multi_string("object", [], "METADATA=CODE_OBJECT, files")


def packer_lines(objects: Iterable[tuple[Path, Path]]) -> str:
    """The list that packer reads: key, sha256 and path of each code object, in the order of their
    keys.

    objects  the description of each (JSON with its key and sha256), and the code object
    """
    lines = []
    for metadata, code_object in objects:
        record = json.loads(metadata.read_text("ascii"))
        lines.append(f"{record['key']} {record['sha256']} {code_object}\n")
    return "".join(sorted(lines))


def main(_arguments: Sequence[str]) -> int:
    pairs = (pair.split("=") for pair in _OBJECTS.value)
    objects = [(Path(metadata), Path(code_object)) for metadata, code_object in pairs]
    listed = Path(_OUT.value).with_suffix(".list")
    listed.write_text(packer_lines(objects), "utf-8")
    return subprocess.run([_PACKER.value, _OUT.value, listed], check=False).returncode


if __name__ == "__main__":
    app.run(main)
