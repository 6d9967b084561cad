# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The metadata in a code object."""

from __future__ import annotations

import io
from typing import Any

import msgpack
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

_NT_AMDGPU_METADATA = 32


class MetadataError(Exception):
    """The bytes are no code object, or not the promised one."""


def read_metadata(code_object: bytes) -> dict[str, Any]:
    """The metadata of a code object, as LLVM's AMDGPU guide names its fields.

    Raises MetadataError.
    """
    try:
        elf = ELFFile(io.BytesIO(code_object))
        if elf["e_machine"] != "EM_AMDGPU":
            raise MetadataError(f"an ELF file for {elf['e_machine']}, not EM_AMDGPU")
        for section in elf.iter_sections():
            for note in section.iter_notes() if isinstance(section, NoteSection) else ():
                if (note["n_name"], note["n_type"]) == ("AMDGPU", _NT_AMDGPU_METADATA):
                    return msgpack.unpackb(note["n_descdata"])
    except (ConstructError, ELFError, ValueError, msgpack.UnpackException) as error:
        raise MetadataError(f"not a code object: {error}") from error
    raise MetadataError("no AMDGPU metadata note")
