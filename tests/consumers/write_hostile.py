# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes a C++ source that defines, for all to see, the names that libraries define inside: each
function ends the process. The names that the libraries export are not among them: whoever defines
those first is who the loader takes, by its rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags
from elftools.elf.elffile import ELFFile

_LIBRARIES = flags.DEFINE_multi_string("library", None, "A shared object.", required=True)
_OUT = flags.DEFINE_string("out", None, "The source.", required=True)

# The library's, Composable Kernel's, the C ABI's; not those of libraries that others use as well.
_OURS = re.compile(r"^_Z.*(aiter|ck_tile)|_attn_|^attn_")
# The functions of AITER's own libraries, and of Composable Kernel's example.
_THEIRS = (
    "_ZN5aiter7mha_fwdENS_12mha_fwd_argsERKN7ck_tile13stream_configE",
    "_ZN5aiter7mha_bwdENS_12mha_bwd_argsERKN7ck_tile13stream_configE",
    "_ZN7ck_tile13stream_configC1Ev",
    "_Z8fmha_fwd15fmha_fwd_traits13fmha_fwd_argsRKN7ck_tile13stream_configE",
    "_Z8fmha_bwd15fmha_bwd_traits13fmha_bwd_argsRKN7ck_tile13stream_configE",
)

_HEADER = """\
// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
// Written by tests/consumers/write_hostile.py; do not edit.
extern "C" int hostile() { return {count}; }
"""
_FUNCTION = """\
asm(".text\\n.globl \\"{name}\\"\\n.type \\"{name}\\", @function\\n"
    "\\"{name}\\": call abort@PLT\\n");
"""


def names(library: Path) -> set[str]:
    """All functions of a library but those that it exports."""
    with library.open("rb") as file:
        elf = ELFFile(file)
        exported = {s.name for s in elf.get_section_by_name(".dynsym").iter_symbols()}
        inside = {
            s.name
            for s in elf.get_section_by_name(".symtab").iter_symbols()
            if s["st_info"]["type"] == "STT_FUNC" and s["st_shndx"] != "SHN_UNDEF"
        }
    return {name for name in inside if _OURS.search(name)} - {n.split("@")[0] for n in exported}


def main(argv: Sequence[str]) -> None:
    del argv
    all_names = set(_THEIRS).union(*(names(Path(library)) for library in _LIBRARIES.value))
    functions = "".join(_FUNCTION.format(name=name) for name in sorted(all_names))
    text = _HEADER.replace("{count}", str(len(all_names))) + functions
    Path(_OUT.value).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
