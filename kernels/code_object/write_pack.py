# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the compressed code objects of a build as one pack: embedded_pack.h has its format."""

from __future__ import annotations

import argparse
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MAGIC = b"ATTNPCK1"
HEADER = struct.Struct("<8sQ")
ENTRY = struct.Struct("<32s32sQQQ")


def pack_index(records: Mapping[str, Mapping[str, Any]]) -> bytes:
    """What comes before the frames, which follow in the order of their keys.

    records  key -> what is known of the code object (describe.py)
    """
    offset = HEADER.size + len(records) * ENTRY.size
    index = bytearray(HEADER.pack(MAGIC, len(records)))
    for key, record in sorted(records.items()):
        sha256, packed_size = bytes.fromhex(record["sha256"]), record["packed_size"]
        index += ENTRY.pack(bytes.fromhex(key), sha256, offset, packed_size, record["size"])
        offset += packed_size
    return bytes(index)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("metadata", type=Path, nargs="*", help="with the .zst beside it")
    options = parser.parse_args()
    records, frames = {}, {}
    for path in options.metadata:
        record = json.loads(path.read_text("ascii"))
        records[record["key"]] = record
        frames[record["key"]] = path.with_suffix(".zst")
    with options.out.open("wb") as out:
        out.write(pack_index(records))
        for key in sorted(frames):
            out.write(frames[key].read_bytes())


if __name__ == "__main__":
    main()
