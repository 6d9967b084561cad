# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the code objects of an arch as a kpack, ROCm's archive of kernels.

Format 1, as the readers of rocm-systems' shared/kpack take it: a head of 16 bytes (KPAK, the
version, the offset of the table of contents); from byte 64 on the frames, each a code object
compressed by zstd; and the table, a MessagePack map. In it a kernel is found by the name of its
instance, which is in the library's manifest, too, and the arch.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgpack
from absl import app, flags

_PACKER = flags.DEFINE_string("packer", None, "packer --frames OUT LIST", required=True)
_OUT = flags.DEFINE_string("out", None, "the kpack", required=True)
_ARCH = flags.DEFINE_string("arch", None, "of the code objects", required=True)
_OBJECTS = flags.DEFINE_multi_string("object", [], "METADATA=CODE_OBJECT, files")

_GROUP = "aiter_attn"
_VERSION = 1
_HEAD = struct.Struct("<4sIQ")
_FRAMES_AT = 64


def table_of_contents(arch: str, sizes: Iterable[tuple[str, int]], packed: int) -> dict[str, Any]:
    """The table of an archive.

    Args:
      arch: of all its code objects.
      sizes: (instance, bytes) of each code object, in the order of the frames.
      packed: bytes of all frames, with their numbers.
    """
    return {
        "format_version": _VERSION,
        "group_name": _GROUP,
        "gfx_arch_family": arch,
        "gfx_arches": [arch],
        "compression_scheme": "zstd-per-kernel",
        "zstd_offset": _FRAMES_AT,
        "zstd_size": packed,
        "toc": {
            instance: {arch: {"type": "hsaco", "ordinal": ordinal, "original_size": size}}
            for ordinal, (instance, size) in enumerate(sizes)
        },
    }


def kpack(frames: bytes, table: dict[str, Any]) -> bytes:
    """The archive of frames as `packer --frames` writes them."""
    head = _HEAD.pack(b"KPAK", _VERSION, _FRAMES_AT + len(frames))
    return head.ljust(_FRAMES_AT, b"\0") + frames + msgpack.packb(table)


def main(_arguments: Sequence[str]) -> None:
    records = []
    for pair in _OBJECTS.value:
        metadata, code_object = map(Path, pair.split("="))
        records.append((json.loads(metadata.read_text("ascii")), code_object))
    records.sort(key=lambda record: record[0]["instance"])
    out = Path(_OUT.value)
    listed, frames = out.with_suffix(".list"), out.with_suffix(".frames")
    lines = (f"{record['key']} {record['sha256']} {path}\n" for record, path in records)
    listed.write_text("".join(lines), "utf-8")
    subprocess.run([_PACKER.value, "--frames", frames, listed], check=True)
    packed = frames.read_bytes()
    sizes = [(record["instance"], path.stat().st_size) for record, path in records]
    out.write_bytes(kpack(packed, table_of_contents(_ARCH.value, sizes, len(packed))))


if __name__ == "__main__":
    app.run(main)
