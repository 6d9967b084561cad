# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes sources that embed code objects of others, and find them by name; a file is named
hsa/ARCH/SUBDIR/NAME.co, as in AITER's tree, and must be for that arch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import app, flags

from kernels.code_object.metadata import MetadataError, read_metadata

_NAME = flags.DEFINE_string("name", None, "prefix of the functions", required=True)
_FILES = flags.DEFINE_multi_string("file", [], "a code object")
_HEADER = flags.DEFINE_string("header", None, "to be written", required=True)
_SOURCE = flags.DEFINE_string("source", None, "to be written", required=True)

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_PLACE = re.compile(r"(?:.*/)?(hsa/(gfx[0-9a-f]+)/(?:[\w.+-]+/)*[\w.+-]+\.(?:co|hsaco))")
_TARGET = re.compile(r"amdgcn-amd-amdhsa--(gfx[0-9a-f]+)(?::[\w+:-]+)?")

_HEADER_TEXT = """\
/* Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
 *
 * Embedded code objects, by their names. Written by kernels/code_object/write_foreign.py; do not
 * edit.
 */
#ifndef {guard}
#define {guard}

#include <stddef.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* The bytes of hsa/ARCH/SUBDIR/NAME.co, 16-byte aligned: for hipModuleLoadData. NULL, and 0 in
 * *size, where no such file is embedded. size may be NULL. Memory is never released. */
__attribute__((visibility("hidden"))) const void* {name}_find(const char* path, size_t* size);

/* The number of files, and their names in order; NULL from that number on. */
__attribute__((visibility("hidden"))) size_t {name}_count(void);
__attribute__((visibility("hidden"))) const char* {name}_path(size_t index);

#ifdef __cplusplus
}}
#endif

#endif /* {guard} */
"""
_SOURCE_TEXT = """\
// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// Written by kernels/code_object/write_foreign.py; do not edit.
#include "{header}"

#include <stdlib.h>
#include <string.h>

#include "kernels/private/embed.h"

{embedded}
namespace {{

struct File {{
  const char* path;
  const unsigned char *data, *end;
}};

// Sorted by path; the last one ends the list.
const File kFiles[] = {{
{rows}    {{nullptr, nullptr, nullptr}},
}};

int compare(const void* path, const void* file) {{
  return strcmp(static_cast<const char*>(path), static_cast<const File*>(file)->path);
}}

}}  // namespace

size_t {name}_count(void) {{ return sizeof(kFiles) / sizeof(*kFiles) - 1; }}

const char* {name}_path(size_t index) {{
  return index < {name}_count() ? kFiles[index].path : nullptr;
}}

const void* {name}_find(const char* path, size_t* size) {{
  const auto* const file = static_cast<const File*>(
      bsearch(path, kFiles, {name}_count(), sizeof(*kFiles), compare));
  if (size) *size = file ? static_cast<size_t>(file->end - file->data) : 0;
  return file ? file->data : nullptr;
}}
"""


class ForeignError(Exception):
    """A file that cannot be embedded."""


def arch_of(code_object: bytes) -> str:
    """The arch that a code object says it is for. Raises ForeignError."""
    try:
        target = str(read_metadata(code_object).get("amdhsa.target", ""))
    except MetadataError as error:
        raise ForeignError(str(error)) from None
    match = _TARGET.fullmatch(target)
    if not match:
        raise ForeignError(
            f'its metadata has the target "{target}", and not amdgcn-amd-amdhsa--ARCH: code '
            "objects of version 4 or later have one"
        )
    return match[1]


def place_of(path: str, code_object: bytes) -> str:
    """The name in the library. Raises ForeignError where the file is not what its place says."""
    match = _PLACE.fullmatch(path)
    if not match:
        raise ForeignError(
            f"{path}: must be named hsa/ARCH/SUBDIR/NAME.co or .hsaco, with letters, digits and "
            "_.+- in its parts: move the file there"
        )
    try:
        arch = arch_of(code_object)
    except ForeignError as error:
        raise ForeignError(f"{path}: {error}") from None
    if arch != match[2]:
        raise ForeignError(
            f"{path}: is for {arch}, but lies in the folder of {match[2]}: move the file to "
            f"hsa/{arch}, or take the one for {match[2]}"
        )
    return match[1]


def places(files: Mapping[str, bytes]) -> dict[str, str]:
    """Name in the library -> path, sorted as strcmp does. Raises ForeignError."""
    found: dict[str, str] = {}
    for path, code_object in files.items():
        place = place_of(path, code_object)
        if place in found:
            raise ForeignError(f"{path}: {found[place]} has the name {place}, too: leave one out")
        found[place] = path
    return dict(sorted(found.items(), key=lambda item: item[0].encode()))


def texts(name: str, header: str, files: Mapping[str, bytes]) -> tuple[str, str]:
    """The header, by the path that the source includes it by, and the source.

    Raises ForeignError.
    """
    if not _IDENTIFIER.fullmatch(name):
        raise ForeignError(
            f'the name is "{name}", which is no C identifier: use letters, digits and underscores'
        )
    found = places(files)
    embedded = "".join(
        f'ATTN_EMBED({name}_file_{i}, "{path}");\n' for i, path in enumerate(found.values())
    )
    rows = "".join(
        f'    {{"{place}", {name}_file_{i}, {name}_file_{i}_end}},\n'
        for i, place in enumerate(found)
    )
    guard = f"{name.upper()}_H_"
    return (
        _HEADER_TEXT.format(guard=guard, name=name),
        _SOURCE_TEXT.format(header=header, embedded=embedded, rows=rows, name=name),
    )


def main(_arguments: Sequence[str]) -> None:
    files = {path: Path(path).read_bytes() for path in _FILES.value}
    try:
        header, source = texts(_NAME.value, _HEADER.value, files)
    except ForeignError as error:
        raise SystemExit(f"code_object_files: error: {error}") from None
    Path(_HEADER.value).write_text(header, "ascii")
    Path(_SOURCE.value).write_text(source, "ascii")


if __name__ == "__main__":
    app.run(main)
