# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes both sides of the parity of dispatch, over the instances of one variant set.

Upstream's side is its generated dispatchers, and for each instance a stub that records the pick and
makes the launch by upstream's host code of the instance's own type. This library's is a launch
table, whose rows have a key, a size and no code, and its launch functions. A second table has the
rows of AITER's assembly as well, for a measurement.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

from kernels.aiter_asm import launch as asm
from kernels.archs.archs import Arch, read_archs
from kernels.ck_fmha.ckgen import emission
from kernels.ck_fmha.ckgen.archs import left_out, target_of
from kernels.ck_fmha.ckgen.directions import (
    KINDS,
    Candidate,
    Instance,
    PoolError,
    bwd_candidate,
    direction_of,
)
from kernels.ck_fmha.ckgen.pool import Pool, instances_of
from kernels.ck_fmha.ckgen.schema import known_values, parse_variant_set
from kernels.ck_fmha.ckgen.selection import select
from kernels.launch_table.table import LaunchTable, launch_table
from kernels.launch_table.traits import TABLE

_FMHA_DIR = flags.DEFINE_string("fmha_dir", None, "upstream's 01_fmha folder", required=True)
_SET = flags.DEFINE_string("variant_set", None, "the variant set file", required=True)
_ARCHS = flags.DEFINE_string("archs", None, "archs.json of @archs", required=True)
_ROWS = flags.DEFINE_multi_string("rows", [], "rows of our own kernels")
_ASM_ROWS = flags.DEFINE_string("asm_rows", None, "rows that go with AITER's", required=True)
_ARCH = flags.DEFINE_string("arch", None, "the arch that both sides dispatch for", required=True)
_OUT = flags.DEFINE_string("out", None, "the folder of the written files", required=True)
_PARTS = flags.DEFINE_integer("parts", 1, "files that each side of a direction is spread over")

DIRECTIONS = (
    "fwd",
    "bwd",
    "fwd_splitkv",
    "fwd_pagedkv",
    "fwd_appendkv",
    "fwd_batch_prefill",
    "fwd_v3",
)
_NOTICE = "// Generated. Do not edit.\n"


@dataclasses.dataclass(frozen=True)
class Stub:
    """The function of an instance of a kind that upstream's dispatcher calls.

    declared  by upstream, for every instance's file to specialise
    args      its argument
    make      upstream's function that makes kernel arguments and a grid
    """

    declared: str
    args: str
    make: str


STUBS = {
    "fwd": Stub("float fmha_fwd_", "fmha_fwd_args", "fmha_fwd_create_kargs_and_grids"),
    **{
        f"bwd_{kind}": Stub(
            f"void fmha_bwd_{kind}_oneshot_",
            "fmha_bwd_args",
            f"fmha_bwd_{kind}_create_kargs_and_grids",
        )
        for kind in ("dot_do_o", "dq_dk_dv", "convert_dq")
    },
    "fwd_pagedkv": Stub(
        "float fmha_fwd_pagedkv_",
        "fmha_fwd_pagedkv_args",
        "fmha_fwd_pagedkv_create_kargs_and_grids",
    ),
    "fwd_appendkv": Stub(
        "float fmha_fwd_appendkv_",
        "fmha_fwd_appendkv_args",
        "fmha_fwd_appendkv_create_kargs_and_grids",
    ),
    "fwd_batch_prefill": Stub(
        "float fmha_batch_prefill_",
        "fmha_batch_prefill_args",
        "fmha_batch_prefill_create_kargs_and_grids",
    ),
    # These choose between forms of the instance at run time, by upstream's text.
    "fwd_splitkv": Stub("void fmha_fwd_splitkv_oneshot_", "fmha_fwd_splitkv_args", ""),
    "fwd_splitkv_combine": Stub(
        "void fmha_fwd_splitkv_combine_oneshot_", "fmha_fwd_splitkv_args", ""
    ),
}


_ONESHOT = re.compile(r"template<>\s*void \w+<\w+, [\w:]+>\([^)]*\)\s*(\{.*?\n\})", re.DOTALL)


def _without_includes(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith(("#include", "//")))


def _launching(instance: Instance, behind: str) -> tuple[str, str]:
    """Declarations beside the instance's types, and the statements that store its launch."""
    kind, declared = KINDS[instance.kind], STUBS[instance.kind]
    if declared.make:
        return "", (
            f"using Kernel = of::{kind.kernel};\n"
            f"        store<Kernel>({declared.make}<Kernel>(args), launch);"
        )
    # Upstream's own function, up to make_kernel(), which records here.
    forms, found, _ = behind.partition("template<>")
    body = _ONESHOT.search(behind)
    if not found or not body:
        raise PoolError(f"{instance.name}: upstream's text has no function that runs it")
    run = f"inline void run_any(const ck_tile::stream_config& s, {declared.args} a)\n"
    form, _, _ = kind.kernel.rpartition("::")
    return (
        _without_includes(forms) + "\n" + run + body.group(1),
        f"store_run(&of::run_any, &of::{form}::run, args, launch);",
    )


def stub(instance: Instance, number: int) -> str:
    """The specialisation for one instance: its own types, up to the trait that it is known by."""
    kind, declared = KINDS[instance.kind], STUBS[instance.kind]
    _, found, behind = instance.upstream.template.partition(kind.end)
    if not found:
        raise PoolError(f"{instance.name}: upstream's text has no {kind.end!r}")
    known_by, _, behind = behind.partition(";")
    trait = kind.end.removeprefix("using ").removesuffix("=").strip()
    arch = getattr(instance.upstream, "F_arch", None)
    of_arch = f", {arch.tag}" if arch else ""
    returns = " return 0;" if declared.declared.startswith("float") else ""
    beside, statements = _launching(instance, behind)
    return f"""
namespace of_{number} {{
{_without_includes(instance.text())}
{kind.end}{known_by};
{beside}
}} // namespace of_{number}
template <>
{declared.declared}<of_{number}::{trait}{of_arch}>(const ck_tile::stream_config&, {declared.args})
{{
    pick<{declared.args}>("{instance.name}", [](const {declared.args}& args, Launch* launch) {{
        namespace of = of_{number};
        {statements}
    }});{returns}
}}
"""


def as_listed(candidate: Candidate, arch: str) -> Candidate:
    """The candidate as upstream lists it for an arch: kernels of forward and backward have its
    name."""
    if candidate.direction == "bwd":
        factory = sys.modules[type(candidate.api_trait).__module__].get_factory(arch)
        listed = bwd_candidate(dataclasses.replace(candidate.api_trait, arch=factory.arch))
        return dataclasses.replace(listed, target=candidate.target)
    if candidate.direction != "fwd":
        return candidate
    (instance,) = candidate.instances
    factory = sys.modules[type(instance.upstream).__module__].get_factory(arch)
    kernel = dataclasses.replace(instance.upstream, F_arch=factory.arch)
    return dataclasses.replace(
        candidate,
        instances=(dataclasses.replace(instance, upstream=kernel),),
        api_trait=kernel.api_trait(),
    )


def for_idle_gpus(candidate: Candidate) -> list[Candidate]:
    """Upstream's further candidates beside one, for calls that leave compute units idle.

    Each kernel of batch prefill is there once more with a smaller tile of queries. No variant set
    has these, but upstream's dispatcher picks them.
    """
    if candidate.direction != "fwd_batch_prefill":
        return []
    (instance,) = candidate.instances
    kernel = instance.upstream
    factory = sys.modules[type(kernel).__module__].CustomFactory
    found = []
    for tile in factory.get_hdim_tile_size_dict(kernel.F_dtype)[kernel.F_hdim]:
        if str(tile.F_constraint) == "true":
            continue
        other = dataclasses.replace(kernel, F_tile=tile)
        found.append(
            dataclasses.replace(
                candidate,
                instances=(dataclasses.replace(instance, name=other.name, upstream=other),),
                api_trait=other.api_trait(),
            )
        )
    if not found:
        raise PoolError(f"{instance.name}: upstream has no smaller tile of queries")
    return found


def stubs_file(direction: str, instances: Sequence[Instance]) -> str:
    header = "fmha_bwd.hpp" if direction == "bwd" else "fmha_fwd.hpp"
    return (
        f"{_NOTICE}"
        '#include "ck_tile/ops/fmha/block/variants.hpp"\n'
        f'#include "{header}"\n'
        '#include "tests/dispatch/upstream_stub.h"\n'
        "using namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity;\n"
        "#define make_kernel recorded_kernel\n"
        + "".join(stub(instance, number) for number, instance in enumerate(instances))
    )


def launch_file(direction: str, texts: Sequence[str]) -> str:
    namespace = "AITER_ATTN_NAMESPACE::kernels::ck_fmha"
    header = KINDS[next(iter(TABLE.directions[direction]["kinds"]))].header
    return (
        f'{_NOTICE}#include "kernels/ck_fmha/launch/{header}"\n\nnamespace {namespace} {{\n'
        + "".join(texts)
        + f"\n}} // namespace {namespace}\n"
    )


def launches_source(names: Sequence[str]) -> str:
    """The C++ that lists the table's launch functions in the order of their numbers."""
    declared = []
    for name in names:
        *namespaces, function = name.split("::")
        text = f"void {function}(const LaunchArgs&, Launch*);"
        for namespace in namespaces:
            text = f"namespace {namespace} {{ {text} }}"
        declared.append(text + "\n")
    listed = "".join(f"      kernels::{name},\n" for name in names)
    return f"""{_NOTICE}#include "tests/dispatch/table.h"

namespace AITER_ATTN_NAMESPACE::kernels {{
{"".join(declared)}}}  // namespace AITER_ATTN_NAMESPACE::kernels

namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity {{
const std::vector<kernels::MakeLaunch>& launches() {{
  static const std::vector<kernels::MakeLaunch> all = {{
{listed}  }};
  return all;
}}
}}  // namespace AITER_ATTN_NAMESPACE::attention::dispatch_parity
"""


def files(
    pool: Pool,
    set_text: str,
    set_name: str,
    own_rows: Sequence[Mapping[str, Any]],
    asm_rows: Sequence[Mapping[str, Any]],
    archs: Mapping[str, Arch],
    arch: str,
    parts: int,
) -> dict[str, str | bytes]:
    """Path -> contents."""
    excluded = left_out(archs, pool.candidates)
    known = known_values([candidate.traits for candidate in pool.candidates])
    chosen = select(parse_variant_set(set_text, set_name, known), pool.candidates)
    chosen = [
        as_listed(candidate, arch)
        for candidate in chosen
        if candidate.direction in DIRECTIONS
        and candidate.target == target_of(arch)
        and not any(arch in excluded.get(each.name, {}) for each in candidate.instances)
    ]
    instances = instances_of(chosen)
    # As in upstream, which tries a constraint first.
    of_upstream = [
        *(other for candidate in chosen for other in for_idle_gpus(candidate)),
        *chosen,
    ]
    # Of the whole pool, as in libraries: the instances that share a function depend on their order.
    functions, texts = emission.launch_functions(instances_of(pool.candidates))
    out: dict[str, str | bytes] = {}
    for direction in DIRECTIONS:
        own = [i for i in instances if direction_of(i.kind) == direction]
        used = list(dict.fromkeys(functions[instance.name] for instance in own))
        picked = [
            i
            for i in instances_of(of_upstream)
            # upstream_v3.cpp has one stub for all of these.
            if direction_of(i.kind) == direction and i.kind in STUBS
        ]
        out[f"{direction}_dispatcher.inc"] = pool.dispatcher(direction, of_upstream)
        for part in range(parts):
            own_texts = [texts[name] for name in used[part::parts]]
            out[f"{direction}_launch_{part}.cpp"] = launch_file(direction, own_texts)
            out[f"{direction}_stubs_{part}.cpp"] = stubs_file(direction, picked[part::parts])
    rows: list[Mapping[str, Any]] = [
        *(emission.row(instance, functions[instance.name], {}, ()) for instance in instances),
        *own_rows,
    ]
    table = _table(rows, archs, arch, set_name)
    out["launch_table.blob"] = table.blob
    out["launches.cc"] = launches_source(table.launches)
    with_asm = [*rows, *(asm.row(o, []) for o in asm.shipped() if o.arch == arch), *asm_rows]
    out["with_asm.blob"] = _table(with_asm, archs, arch, set_name).blob
    return out


def _table(
    rows: Sequence[Mapping[str, Any]], archs: Mapping[str, Arch], arch: str, set_name: str
) -> LaunchTable:
    code_objects = {
        (row["name"], arch): {"key": hashlib.sha256(row["name"].encode()).hexdigest(), "size": 1}
        for row in rows
    }
    wave_sizes = {arch: archs[arch].wave_size}
    return launch_table(rows, code_objects, wave_sizes, Path(set_name).stem)


def main(_arguments: Sequence[str]) -> None:
    path = Path(_SET.value)
    own_rows = [row for rows in _ROWS.value for row in json.loads(Path(rows).read_text("utf-8"))]
    pool = Pool(Path(_FMHA_DIR.value))
    written = files(
        pool, path.read_text("utf-8"), path.name, own_rows,
        json.loads(Path(_ASM_ROWS.value).read_text("utf-8")), read_archs(_ARCHS.value),
        _ARCH.value, _PARTS.value,
    )  # fmt: skip
    for name, contents in written.items():
        data = contents if isinstance(contents, bytes) else contents.encode()
        (Path(_OUT.value) / name).write_bytes(data)


if __name__ == "__main__":
    app.run(main)
