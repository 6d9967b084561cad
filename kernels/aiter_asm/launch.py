# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The parts of the build that follow from the table of AITER's kernels: the rows of the launch
table, and the block of kernel arguments for C++."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernels.aiter_asm import table
from kernels.aiter_asm.table import Argument, AsmObject, Layout

_CXX_TYPES = {
    "pointer": "const void*", "untyped_pointer": "const void*", "u32": "uint32_t",
    "i32": "int32_t", "f32": "float",
}  # fmt: skip
# Of backward, the layouts of the objects that builds take, which add to dq in float32: without the
# one for windows.
_BACKWARD = ("backward_general", "backward_group", "backward_native", "backward_plain")
# The kinds of rows, in their order in a launch table.
_KINDS = ("fwd_asm", "bwd_asm", "bwd_asm_whole")
# As traits of a launch table call them.
_MASK_SHAPES = {"none": "none", "causal_top_left": "top_left", "causal": "bottom_right"}
_ROUNDINGS = {"rtne": "nearest_even", "rtna": "nearest_away", "rtz": "toward_zero"}


def read_shipped(*texts: str) -> list[AsmObject]:
    """Those objects of a table (TOML) that builds take, kinds together, and in the order in which
    their head sizes are tried. Raises TableError."""
    shipped = [
        o for o in table.read(*texts)
        if o.direction == "forward" or (o.layout.name in _BACKWARD and o.accumulator == "a32")
    ]  # fmt: skip
    return sorted(shipped, key=lambda o: (_KINDS.index(_kind(o)[0]), o.head_size_qk, o.head_size_v))


def of_direction(objects: Iterable[AsmObject], direction: str) -> list[AsmObject]:
    return [o for o in objects if o.direction == direction]


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
    """The name of its launch, which objects of the same arguments and grid share."""
    if described.direction == "backward":
        return f"{described.layout.name}_{described.tile_k}_{described.tiles_per_workgroup}"
    return f"forward_{described.tile_q}_{described.mask}_{described.mode}"


def _kind(described: AsmObject) -> tuple[str, dict[str, Any]]:
    """The kind of an object's row, and the traits that this kind alone has."""
    if described.direction == "backward":
        return "bwd_asm" if described.pads_seqlen else "bwd_asm_whole", {
            "mask_shape": _MASK_SHAPES[described.mask],
            "pad_head_size_qk": described.pads_head,
            "pad_head_size_v": described.pads_head,
        }
    return "fwd_asm", {"mask": described.mask != "none", "schedule": described.schedule}


def row(described: AsmObject, archs: Iterable[str]) -> dict[str, Any]:
    """The object's row, for builds of any of these archs."""
    kind, traits = _kind(described)
    return {
        "name": instance(described),
        "symbol": described.symbol,
        "kind": kind,
        "traits": {
            "dtype": described.dtype,
            "head_size_qk": described.head_size_qk,
            "head_size_v": described.head_size_v,
            "mode": described.mode,
            "rounding": _ROUNDINGS[described.rounding],
            "pad_seqlen_q": described.pads_seqlen,
            "pad_seqlen_k": described.pads_seqlen,
            **traits,
        },
        "tile": {
            "seqlen_q": described.tile_q if described.pads_seqlen else described.multiple,
            "seqlen_k": described.tile_k if described.pads_seqlen else described.multiple,
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


def _arguments(layout: Layout) -> str:
    """The name of its struct."""
    return f"{layout.name}_arguments".title().replace("_", "")


def _field(argument: Argument) -> str:
    """Its name in C++, where `do` is no name."""
    return "do_" if argument.name == "do" else argument.name


def _struct(layout: Layout) -> str:
    name, lines, at = _arguments(layout), [], 0
    for argument in layout.arguments:
        if argument.offset > at:
            lines.append(f"  unsigned char unused{at}[{argument.offset - at}];\n")
        lines.append(f"  {_CXX_TYPES[argument.kind]} {_field(argument)};\n")
        at = argument.offset + argument.size
    if layout.size > at:
        lines.append(f"  unsigned char unused{at}[{layout.size - at}];\n")
    held = "".join(
        f"static_assert(offsetof({name}, {_field(a)}) == {a.offset});\n" for a in layout.arguments
    )
    return (
        f"struct {name} {{\n{''.join(lines)}}};\n"
        f"static_assert(sizeof({name}) == {layout.size});\n{held}"
    )


def _launches(direction: str, arguments: Mapping[str, str]) -> str:
    """A macro of a direction's launches: by their names, what follows these."""
    listed = "".join(f" \\\n  X({name}, {arguments[name]})" for name in sorted(arguments))
    return f"#define AITER_ASM_{direction}_LAUNCHES(X){listed}"


def _shapes(objects: Sequence[AsmObject]) -> dict[str, str]:
    """By the names of launches of forward, their shapes. Raises TableError where objects that
    share a name differ."""
    shapes: dict[str, str] = {}
    for o in objects:
        dimensions = ", ".join(str(o.grid.index(name)) for name in ("tiles", "heads_q", "batch"))
        masked = "true" if o.mask == "causal" else "false"
        shape = f"{o.tile_q}, {o.tiles_per_workgroup}, {masked}, {dimensions}"
        if shapes.setdefault(_shape(o), shape) != shape:
            raise table.TableError(f"{o.file}: launched as {shape}, others as {shapes[_shape(o)]}")
    return shapes


def _header(table_file: str, body: str) -> str:
    return f"""// Generated from {table_file}. Do not edit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm {{

{body}
}}  // namespace AITER_ATTN_NAMESPACE::kernels::aiter_asm
"""


def forward_header(objects: Sequence[AsmObject]) -> str:
    """The C++ header of forward's objects, which share one layout. Raises TableError."""
    layouts = {o.layout for o in objects}
    if len(layouts) != 1:
        raise table.TableError(f"one layout is wanted, there are {sorted(x.name for x in layouts)}")
    return _header(
        "forward.toml",
        f"""{_struct(layouts.pop())}
// Launches of objects: name, rows of a tile, tiles of a workgroup, whether they are causal, and the
// dimensions of the grid for tiles, heads of q and batches.
{_launches("FORWARD", _shapes(objects))}
""",
    )


def backward_header(objects: Sequence[AsmObject]) -> str:
    """The C++ header of backward's objects. Raises TableError."""
    for o in objects:
        if o.grid != ("tiles", "heads_q", "batch"):
            raise table.TableError(f"{o.file}: its grid is {o.grid}, others have the tiles first")
    layouts = {o.layout.name: o.layout for o in objects}
    launches = {
        _shape(o): f"{_arguments(o.layout)}, {o.tile_k}, {o.tiles_per_workgroup}" for o in objects
    }
    structs = "\n".join(_struct(layouts[name]) for name in sorted(layouts))
    return _header(
        "backward.toml",
        f"""{structs}
// Launches of objects: name, arguments, keys of a tile, tiles of a workgroup.
{_launches("BACKWARD", launches)}
""",
    )
