# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import struct

import pytest

from kernels.code_object.write_pack_file import pack_file

# Two entries, and a frame behind them.
INDEX = struct.pack("<8sQ24x", b"ATTNPCK2", 2) + bytes(range(88)) * 2
PACK = INDEX + b"frames"


def test_the_head_says_what_the_library_checks() -> None:
    file = pack_file(PACK, "1.2.3", "aiter-attn-kernels-gfx942-core")
    assert file[:8] == b"ATTNPKF1"
    assert file[8:40].rstrip(b"\0") == b"1.2.3"
    assert file[40:104].rstrip(b"\0") == b"aiter-attn-kernels-gfx942-core"
    assert struct.unpack("<QQ", file[104:120]) == (len(PACK), len(INDEX))
    assert file[120:152] == hashlib.sha256(INDEX).digest()
    assert file[152:] == PACK


@pytest.mark.parametrize(
    ("version", "distribution", "message"),
    [
        ("", "one", "'' has 0 letters; allowed: 1 to 31"),
        ("1" * 32, "one", "has 32 letters; allowed: 1 to 31"),
        ("1", "x" * 64, "has 64 letters; allowed: 1 to 63"),
    ],
)
def test_names_that_do_not_fit(version: str, distribution: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pack_file(PACK, version, distribution)
