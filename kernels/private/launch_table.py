# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the launch table (C++) and the manifest (JSON) of the code objects of one build."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MANIFEST_FORMAT = 1

_KINDS = {
    "fwd": "kFwd",
    "bwd_dot_do_o": "kBwdDotDoO",
    "bwd_dq_dk_dv": "kBwdDqDkDv",
    "bwd_convert_dq": "kBwdConvertDq",
    "sum_heads": "kSumHeads",
}
_DTYPES = {"fp16": "ATTN_DTYPE_FP16", "bf16": "ATTN_DTYPE_BF16"}
_BIASES = {"none": "kNone", "elementwise": "kElementwise", "alibi": "kAlibi"}
# The flags of struct Traits, in its order; bias comes between mask and bias_grad.
_FLAGS = (
    "bias_grad",
    "lse",
    "dropout",
    "logits_soft_cap",
    "skip_min_seqlen_q",
    "deterministic",
    "pad_seqlen_q",
    "pad_seqlen_k",
    "pad_head_size_qk",
    "pad_head_size_v",
)
_FWD_PARAMETERS = "const attn_fwd_args&, KernelLaunch*"
_BWD_PARAMETERS = "const attn_bwd_args&, const BwdBuffers&, KernelLaunch*"


class TableError(Exception):
    """The code objects and the instances do not fit together."""


def _bool(value: object) -> str:
    return "true" if value else "false"


def _traits(instance: Mapping[str, Any]) -> str:
    traits = instance["traits"]
    fields = [
        f".kind = Kind::{_KINDS[instance['kind']]}",
        f".dtype = {_DTYPES[traits['dtype']]}",
        f".head_size_qk = {traits.get('head_size_qk', 0)}",
        f".head_size_v = {traits.get('head_size_v', 0)}",
        f".group_mode = {_bool(traits.get('mode') == 'group')}",
        f".mask = {_bool(traits.get('mask'))}",
        f".bias = Bias::{_BIASES[traits.get('bias', 'none')]}",
        *(f".{flag} = {_bool(traits.get(flag))}" for flag in _FLAGS),
    ]
    return "{\n              " + ",\n              ".join(fields) + ",\n          }"


def _code_object_row(record: Mapping[str, Any]) -> str:
    return (
        f'    {{"{record["arch"]}", "{record["key"]}",\n'
        f'     "{record["sha256"]}",\n'
        f"     {record['size']}, {record['data_symbol']}, {record['packed_size']}}},\n"
    )


def _instance_row(instance: Mapping[str, Any], first: int, archs: Sequence[str]) -> str:
    tile = instance["tile"]
    launch = instance["launch"]
    is_fwd = instance["kind"] == "fwd"
    make_fwd = f"ck_fmha::{launch}" if launch and is_fwd else "nullptr"
    make_bwd = f"ck_fmha::{launch}" if launch and not is_fwd else "nullptr"
    return f"""    {{
        .name = "{instance["name"]}",
        .symbol = "{instance["symbol"]}",
        .traits =
          {_traits(instance)},
        .tile_seqlen_q = {tile["seqlen_q"]},
        .tile_seqlen_k = {tile["seqlen_k"]},
        .tile_head_size_qk = {tile["head_size_qk"]},
        .tile_head_size_v = {tile["head_size_v"]},
        .head_size_alignment = {instance["head_size_alignment"]},
        .block_size = {instance["block_size"]},
        .make_fwd = {make_fwd},
        .make_bwd = {make_bwd},
        .code_objects = kCodeObjects + {first},
        .code_object_count = {len(archs)},
    }},
"""


def table_source(
    instances: Sequence[Mapping[str, Any]],
    code_objects: Mapping[tuple[str, str], Mapping[str, Any]],
    archs: Sequence[str],
    variant_set: str,
) -> str:
    """The C++ of the table.

    instances     rows in table order, each with its "launch" function or None
    code_objects  (instance, arch) -> metadata record
    """
    data = []
    rows = []
    launches: dict[str, str] = {}
    for number, instance in enumerate(instances):
        records = [code_objects[instance["name"], arch] for arch in archs]
        data += records
        rows.append(_instance_row(instance, number * len(archs), archs))
        if instance["launch"]:
            launches[instance["launch"]] = (
                _FWD_PARAMETERS if instance["kind"] == "fwd" else _BWD_PARAMETERS
            )
    declared_data = "".join(
        f'extern const unsigned char {r["data_symbol"]}[] __attribute__((visibility("hidden")));\n'
        for r in data
    )
    declared_launches = "".join(
        f"void {name}({parameters});\n" for name, parameters in launches.items()
    )
    return f"""// Generated. Do not edit.
#include "aiter/launch_table.h"

extern "C" {{
{declared_data}}}

namespace aiter_attn {{
namespace ck_fmha {{
{declared_launches}}}  // namespace ck_fmha

namespace {{

const CodeObject kCodeObjects[] = {{
{"".join(_code_object_row(r) for r in data)}}};

const Instance kInstances[] = {{
{"".join(rows)}}};

const char* const kArchs[] = {{{", ".join(f'"{arch}"' for arch in archs)}}};

}}  // namespace

const LaunchTable& launch_table() {{
  static const LaunchTable table = {{
      .instances = kInstances,
      .instance_count = {len(instances)},
      .archs = kArchs,
      .arch_count = {len(archs)},
      .variant_set = "{variant_set}",
  }};
  return table;
}}

}}  // namespace aiter_attn
"""


def manifest(
    instances: Sequence[Mapping[str, Any]],
    code_objects: Mapping[tuple[str, str], Mapping[str, Any]],
    archs: Sequence[str],
    variant_set: str,
    toolchain: str,
) -> dict[str, Any]:
    """The manifest of the same table, for people and tools."""
    left_out = ("arch", "instance", "data_symbol")
    shown = []
    for instance in instances:
        per_arch = {
            arch: {
                field: value
                for field, value in code_objects[instance["name"], arch].items()
                if field not in left_out
            }
            for arch in archs
        }
        fields = {field: value for field, value in instance.items() if field != "launch"}
        shown.append({**fields, "code_objects": per_arch})
    return {
        "format": MANIFEST_FORMAT,
        "variant_set": variant_set,
        "archs": list(archs),
        "toolchain": toolchain,
        "instances": shown,
    }


def table_rows(documents: Sequence[Mapping[str, Any]], variant_set: str) -> list[Mapping[str, Any]]:
    """The instances of a variant set in table order, then those that belong to every set."""
    first, *others = documents
    known = {instance["name"]: instance for instance in first["instances"]}
    rows: list[Mapping[str, Any]] = [
        {**known[entry["instance"]], "launch": entry["launch"]}
        for entry in first["variant_sets"][variant_set]
    ]
    for document in others:
        rows += [{**instance, "launch": None} for instance in document["instances"]]
    return rows


def check_complete(
    instances: Sequence[Mapping[str, Any]],
    code_objects: Mapping[tuple[str, str], object],
    archs: Sequence[str],
) -> None:
    """Raises TableError unless there is one code object per instance and arch, and no other."""
    wanted = {(instance["name"], arch) for instance in instances for arch in archs}
    for problem, pairs in (
        ("no code object of", wanted - code_objects.keys()),
        ("a code object that no row names:", code_objects.keys() - wanted),
    ):
        if pairs:
            name, arch = sorted(pairs)[0]
            raise TableError(f"{problem} {name} for {arch}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--variant-set", required=True)
    parser.add_argument("--archs", required=True, help="comma-separated, sorted")
    parser.add_argument("--toolchain", required=True)
    parser.add_argument("--instances", type=Path, action="append", required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("metadata", type=Path, nargs="+")
    options = parser.parse_args()
    archs = options.archs.split(",")
    documents = [json.loads(path.read_text("utf-8")) for path in options.instances]
    records = [json.loads(path.read_text("utf-8")) for path in options.metadata]
    code_objects = {(record["instance"], record["arch"]): record for record in records}
    rows = table_rows(documents, options.variant_set)
    try:
        check_complete(rows, code_objects, archs)
    except TableError as error:
        print(error, file=sys.stderr)
        return 1
    options.source.write_text(table_source(rows, code_objects, archs, options.variant_set), "utf-8")
    document = manifest(rows, code_objects, archs, options.variant_set, options.toolchain)
    options.manifest.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
