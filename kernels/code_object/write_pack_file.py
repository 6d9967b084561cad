# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Makes the file of a pack, NAME.attnpack, which aiter/runtime/store/pack_file.h describes: a head,
by which the library knows what it is, before the pack."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

_PACK = flags.DEFINE_string("pack", None, "the pack", required=True)
_OUT = flags.DEFINE_string("out", None, "its file", required=True)
_VERSION = flags.DEFINE_string("version", None, "of the library that it is for", required=True)
_DISTRIBUTION = flags.DEFINE_string("distribution", None, "what brings it", required=True)

_HEAD = struct.Struct("<8s32s64sQQ32s")
_PACK_HEAD = struct.Struct("<8sQ24x")
_ENTRY_SIZE = 88


def pack_file(pack: bytes, version: str, distribution: str) -> bytes:
    """The file of a pack. Raises ValueError for a name that does not fit into the head."""
    names = []
    for text, room in ((version, 32), (distribution, 64)):
        name = text.encode("ascii")
        if not 0 < len(name) < room:
            raise ValueError(f"{text!r} has {len(name)} letters; allowed: 1 to {room - 1}")
        names.append(name)
    _, count = _PACK_HEAD.unpack_from(pack)
    index = pack[: _PACK_HEAD.size + count * _ENTRY_SIZE]
    digest = hashlib.sha256(index).digest()
    return _HEAD.pack(b"ATTNPKF1", *names, len(pack), len(index), digest) + pack


def main(_arguments: Sequence[str]) -> None:
    pack = Path(_PACK.value).read_bytes()
    made = pack_file(pack, _VERSION.value, _DISTRIBUTION.value)
    Path(_OUT.value).write_bytes(made)


if __name__ == "__main__":
    app.run(main)
