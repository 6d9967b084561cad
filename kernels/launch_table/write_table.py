# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the launch table of one build: the blob, the C++ around it, and the manifest (JSON)."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

from kernels.archs.archs import Arch, ComputeUnit, read_archs
from kernels.archs.occupancy import waves_per_simd
from kernels.code_object import spec as specs
from kernels.launch_table.specified import specified
from kernels.launch_table.table import (
    CodeObjects,
    LaunchTable,
    Row,
    TableError,
    beside,
    check_complete,
    check_specified,
    launch_table,
    of_archs,
)
from kernels.launch_table.traits import TABLE

MANIFEST_FORMAT = 3

_VARIANT_SET = flags.DEFINE_string("variant_set", None, "the set's name", required=True)
_ARCHS = flags.DEFINE_multi_string("arch", [], "sorted")
_TOOLCHAIN = flags.DEFINE_string("toolchain", None, "the toolchain's identity", required=True)
_ROWS = flags.DEFINE_multi_string("rows", None, "files of rows, in order", required=True)
_METADATA = flags.DEFINE_multi_string(
    "metadata", [], "what is known of each code object; .spec is beside it"
)
_ON_DEMAND = flags.DEFINE_multi_string(
    "on_demand", [], "JSON of a kernel that is not compiled, see specified.py"
)
_ON_DEMAND_ROWS = flags.DEFINE_multi_string("on_demand_rows", [], "files of their rows, in order")
_ROWS_OF = flags.DEFINE_multi_string("rows_of_arch", [], "rows of these archs' targets are taken")
_ARCHS_FILE = flags.DEFINE_string("archs_file", None, "archs.json of @archs", required=True)
_BLOB = flags.DEFINE_string("blob", None, "the table", required=True)
_SOURCE = flags.DEFINE_string("source", None, "the C++ around it", required=True)
_MANIFEST = flags.DEFINE_string("manifest", None, "the same as JSON", required=True)


def table_source(table: LaunchTable, blob: str) -> str:
    """The C++ that defines launch_table(). blob: the file's path for the compiler."""
    declared = []
    for name in table.launches:
        *namespaces, function = name.split("::")
        text = f"void {function}(const LaunchArgs&, Launch*);"
        for namespace in reversed(namespaces):
            text = f"namespace {namespace} {{ {text} }}"
        declared.append(text + "\n")
    listed = "".join(f"    {name},\n" for name in table.launches)
    return f"""// Generated. Do not edit.
#include "kernels/launch_table/launch_table.h"
#include "kernels/private/embed.h"

ATTN_EMBED(attn_launch_table, "{blob}");

namespace AITER_ATTN_NAMESPACE::kernels {{

{"".join(declared)}
const LaunchTable& launch_table() {{
  static constexpr MakeLaunch launches[] = {{
{listed}    nullptr,
  }};
  // Made by the compiler: there is no first use, at which another thread might fork.
  static constexpr LaunchTable table(attn_launch_table, launches, {len(table.launches)});
  return table;
}}

}}  // namespace AITER_ATTN_NAMESPACE::kernels
"""


def manifest(
    rows: Sequence[Row],
    code_objects: CodeObjects,
    archs: Mapping[str, Arch],
    variant_set: str,
    toolchain: str,
) -> dict[str, Any]:
    """The manifest of the same table, for people and tools.

    Beside what describe.py knows of a code object stands how many of its waves fit on a SIMD.
    archs has the facts of the build's archs.
    """
    shown = []
    for row in rows:
        per_arch = {
            arch: _shown(code_objects[row["name"], arch], facts.compute_unit)
            for arch, facts in archs.items()
            if (row["name"], arch) in code_objects
        }
        fields = {field: value for field, value in row.items() if field != "launch"}
        left_out = {a: why for a, why in fields.pop("left_out", {}).items() if a in archs}
        if left_out:
            fields["left_out"] = left_out
        provider = TABLE.provider_of[row["kind"]]
        symbol = row.get("symbol", row["name"])
        shown.append({**fields, "provider": provider, "symbol": symbol, "code_objects": per_arch})
    return {
        "format": MANIFEST_FORMAT,
        "variant_set": variant_set,
        "archs": list(archs),
        # Those whose kernels are built and not executed by this project's tests.
        "not_executed": [name for name, facts in archs.items() if not facts.executed],
        "toolchain": toolchain,
        "instances": shown,
    }


def _known(row: Row) -> dict[str, Any]:
    """A kernel that may not be built: the launch table has its keys."""
    provider = TABLE.provider_of[row["kind"]]
    return {**{field: row[field] for field in ("name", "kind", "traits")}, "provider": provider}


def _shown(code_object: Mapping[str, Any], unit: ComputeUnit) -> dict[str, Any]:
    shown = {f: value for f, value in code_object.items() if f not in ("arch", "instance", "spec")}
    return {**shown, "waves_per_simd": waves_per_simd(code_object["kernel"], unit)}


def _records(paths: Sequence[Path]) -> dict[tuple[str, str], Mapping[str, Any]]:
    records = []
    for path in paths:
        spec = specs.parse(path.with_suffix(".spec").read_bytes())
        records.append({**json.loads(path.read_text("ascii")), "spec": spec})
    return {(record["instance"], record["arch"]): record for record in records}


def _rows(paths: Sequence[str]) -> list[Row]:
    return [row for path in paths for row in json.loads(Path(path).read_text("utf-8"))]


def main(_arguments: Sequence[str]) -> int:
    code_objects = _records([Path(path) for path in _METADATA.value])
    on_demand = specified(map(json.loads, _ON_DEMAND.value))
    known, variant_set = read_archs(_ARCHS_FILE.value), _VARIANT_SET.value
    archs = {name: known[name] for name in _ARCHS.value}
    every_arch = sorted({*archs, *(arch for _, arch in on_demand)})
    rows = of_archs(_rows(_ROWS.value), _ROWS_OF.value)
    on_demand_rows = of_archs(_rows(_ON_DEMAND_ROWS.value), every_arch)
    try:
        check_complete(rows, code_objects, list(archs))
        check_specified(on_demand_rows, on_demand, code_objects)
        wave_sizes = {name: known[name].wave_size for name in every_arch}
        table = launch_table(
            beside(rows, on_demand_rows), {**on_demand, **code_objects}, wave_sizes, variant_set
        )
        document = manifest(rows, code_objects, archs, variant_set, _TOOLCHAIN.value)
        if on_demand_rows:
            document["on_demand"] = [_known(row) for row in on_demand_rows]
    except TableError as error:
        print(error, file=sys.stderr)
        return 1
    Path(_BLOB.value).write_bytes(table.blob)
    Path(_SOURCE.value).write_text(table_source(table, _BLOB.value), "utf-8")
    Path(_MANIFEST.value).write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    app.run(main)
