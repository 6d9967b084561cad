# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The parts of the build that follow from the table of AITER's kernels: the rows of the launch
table, and the block of kernel arguments for C++."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kernels.aiter_asm import table
from kernels.aiter_asm.table import AsmObject, Layout

_CXX_TYPES = {"pointer": "const void*", "u32": "uint32_t", "f32": "float"}
# As traits of a launch table call them.
_ROUNDINGS = {"rtne": "nearest_even", "rtna": "nearest_away", "rtz": "toward_zero"}


def read_shipped(*texts: str) -> list[AsmObject]:
    """Those objects of a table (TOML) that builds take: forward's. Raises TableError."""
    return [o for o in table.read(*texts) if o.direction == "forward"]


def shipped() -> list[AsmObject]:
    """The same, of the table beside this module."""
    files = ("forward.toml", "backward.toml", "defects.toml")
    return read_shipped(*(Path(__file__).with_name(file).read_text("utf-8") for file in files))


def instance(described: AsmObject) -> str:
    """The name of an object's row: schedules, and archs, have the same symbols."""
    return f"fmha_{described.name}_{_folder(described)}"


def _folder(described: AsmObject) -> str:
    return described.arch if described.schedule == "any" else described.schedule


def _shape(described: AsmObject) -> str:
    """The name of its launch, which objects of the same tiles, mask and mode share."""
    return f"forward_{described.tile_q}_{described.mask}_{described.mode}"


def row(described: AsmObject, archs: Iterable[str]) -> dict[str, Any]:
    """The object's row, for builds of any of these archs."""
    return {
        "name": instance(described),
        "symbol": described.symbol,
        "kind": "fwd_asm",
        "traits": {
            "dtype": described.dtype,
            "head_size_qk": described.head_size_qk,
            "head_size_v": described.head_size_v,
            "mode": described.mode,
            "mask": described.mask != "none",
            "rounding": _ROUNDINGS[described.rounding],
            "schedule": described.schedule,
            "pad_seqlen_q": True,
            "pad_seqlen_k": True,
        },
        "tile": {
            "seqlen_q": described.tile_q,
            "seqlen_k": described.tile_k,
            "head_size_qk": described.head_size_qk,
            "head_size_v": described.head_size_v,
        },
        "head_size_alignment": 8,
        "block": {"work_items": described.block},
        "launch": f"aiter_asm::{_shape(described)}",
        "left_out": {
            arch: f"AITER has this kernel for {described.arch}"
            for arch in archs
            if arch != described.arch
        },
    }


def _struct(layout: Layout) -> str:
    lines, at = [], 0
    for argument in layout.arguments:
        if argument.offset > at:
            lines.append(f"  unsigned char unused{at}[{argument.offset - at}];\n")
        lines.append(f"  {_CXX_TYPES[argument.kind]} {argument.name};\n")
        at = argument.offset + argument.size
    if layout.size > at:
        lines.append(f"  unsigned char unused{at}[{layout.size - at}];\n")
    held = "".join(
        f"static_assert(offsetof(ForwardArguments, {a.name}) == {a.offset});\n"
        for a in layout.arguments
    )
    return (
        f"struct ForwardArguments {{\n{''.join(lines)}}};\n"
        f"static_assert(sizeof(ForwardArguments) == {layout.size});\n{held}"
    )


def _shapes(objects: Sequence[AsmObject]) -> str:
    """The launches of the objects, by their names. Raises TableError where objects that share a
    name differ."""
    shapes: dict[str, str] = {}
    for o in objects:
        dimensions = ", ".join(str(o.grid.index(name)) for name in ("tiles", "heads_q", "batch"))
        masked = "true" if o.mask == "causal" else "false"
        name = f"k{_shape(o).title().replace('_', '')}"
        shape = f"{{{o.tile_q}, {o.tiles_per_workgroup}, {masked}, {dimensions}}}"
        if shapes.setdefault(name, shape) != shape:
            raise table.TableError(f"{o.file}: launched as {shape}, others as {shapes[name]}")
    return "".join(f"inline constexpr Shape {name} = {text};\n" for name, text in shapes.items())


def header(objects: Sequence[AsmObject]) -> str:
    """The C++ header of these objects, which share one layout. Raises TableError."""
    layouts = {o.layout for o in objects}
    if len(layouts) != 1:
        raise table.TableError(f"one layout is wanted, there are {sorted(x.name for x in layouts)}")
    return f"""// Generated from forward.toml. Do not edit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm {{

{_struct(layouts.pop())}
// Launches of objects: the last three are dimensions of the grid.
struct Shape {{
  uint32_t tile_q, tiles_per_workgroup;
  bool causal;
  int tiles, heads_q, batch;
}};
{_shapes(objects)}
}}  // namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm
"""
