# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the table of configurations and the kernels' sources as C++ of the library."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from kernels.norm.configuration import (
    OPERATIONS,
    Configuration,
    Entry,
    Split,
    load,
    load_split,
)

_TABLE = flags.DEFINE_string("table", None, "configurations.toml", required=True)
_FILES = flags.DEFINE_multi_string("file", [], "a source or header, to be embedded")
_CONFIGURATIONS = flags.DEFINE_string("configurations", None, "C++ to write", required=True)
_SOURCES = flags.DEFINE_string("sources", None, "C++ to write", required=True)

_PIECE = 8000  # bytes of a string literal: compilers limit them


def _enumerator(operation: str) -> str:
    return "k" + operation.title().replace("_", "")


def _initialiser(c: Configuration | Split) -> str:
    return "{" + ", ".join(str(number) for number in dataclasses.astuple(c)) + "}"


def configurations(table: dict[str, Entry], split: Split) -> str:
    """Defines the variables that configurations.h declares."""
    lines = [
        "// Generated from configurations.toml. Do not edit.",
        '#include "kernels/norm/configurations.h"',
        "namespace AITER_ATTN_NAMESPACE::kernels {",
        "namespace {",
    ]
    for operation in OPERATIONS:
        lines.append(f"constexpr TunedRow {operation}_rows[] = {{")
        for hidden, configuration in table[operation].tuned:
            lines.append(f"    {{{hidden}, {_initialiser(configuration)}}},")
        lines.append("};")
        lines.append(f"constexpr RowConfigurations {operation} = {{")
        lines.append(f"    {operation}_rows, {len(table[operation].tuned)},")
        lines.append(f"    {_initialiser(table[operation].general)}}};")
    lines += [
        "}  // namespace",
        "const RowConfigurations& row_configurations(RowOperation operation) {",
        "  switch (operation) {",
    ]
    for operation in OPERATIONS:
        lines.append(f"    case RowOperation::{_enumerator(operation)}: return {operation};")
    lines += ["  }", "  __builtin_unreachable();", "}"]
    lines += [f"RowSplit row_split() {{ return {_initialiser(split)}; }}", "}  // namespace"]
    return "\n".join(lines) + "\n"


def _literal(text: str) -> str:
    if '")AITER"' in text:
        raise ValueError("a source has the end of a raw string")
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
    return "\n".join(f'R"AITER({piece})AITER"' for piece in pieces)


def sources(files: Sequence[Path]) -> str:
    """Defines the variables that sources.h declares."""
    lines = [
        "// Generated from the kernels' sources. Do not edit.",
        '#include "kernels/norm/sources.h"',
        "namespace AITER_ATTN_NAMESPACE::kernels {",
        "namespace {",
    ]
    for kind, suffix in (("source", ".cpp"), ("header", ".h")):
        lines.append(f"constexpr RowSource {kind}_files[] = {{")
        for file in sorted(files, key=lambda file: file.name):
            if file.suffix == suffix:
                lines.append(f'    {{"{file.name}", {_literal(file.read_text("utf-8"))}}},')
        lines.append("};")
    lines.append("}  // namespace")
    for kind in ("source", "header"):
        lines.append(f"RowSources row_{kind}s() {{")
        lines.append(f"  return {{{kind}_files, sizeof({kind}_files) / sizeof({kind}_files[0])}};")
        lines.append("}")
    lines.append("}  // namespace")
    return "\n".join(lines) + "\n"


def main(_argv: Sequence[str]) -> None:
    table = Path(_TABLE.value)
    text = configurations(load(table), load_split(table))
    Path(_CONFIGURATIONS.value).write_text(text, encoding="utf-8")
    Path(_SOURCES.value).write_text(sources([Path(f) for f in _FILES.value]), encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
