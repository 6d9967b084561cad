# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""attn_archive of 2,000 objects below a folder with a space in its name: it has them all."""

from __future__ import annotations

import io
import os
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tests.consumers.archives import members

_ENTRY = 32  # bytes of an instance in the list of linked_code_objects.h


def test_all_objects_are_in_the_archive() -> None:
    (member,) = members(Path(os.environ["ARCHIVE"]))
    section = ELFFile(io.BytesIO(member)).get_section_by_name("attn_code_objects")
    assert section["sh_size"] == int(os.environ["COUNT"]) * _ENTRY
