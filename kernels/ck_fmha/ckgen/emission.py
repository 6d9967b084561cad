# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The files of the generated repository, as text. Nothing here depends on where it is written."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence

from ckgen.pool import (
    KIND_CONVERT_DQ,
    KIND_DOT_DO_O,
    KIND_DQ_DK_DV,
    KIND_FWD,
    Candidate,
    Instance,
    Pool,
)
from ckgen.schema import Arch
from ckgen.selection import instances_of

FORMAT = 1

_NOTICE = "Generated from CK's own instance description. Do not edit."

# The traits that change neither a kernel's arguments nor its grid.
_NOT_IN_LAUNCH = (
    "dtype",
    "pad_seqlen_q",
    "pad_seqlen_k",
    "pad_head_size_qk",
    "pad_head_size_v",
)
# Layouts per host file: bounds the memory of one compile where a set has many.
_LAYOUTS_PER_FILE = 16

# Kind -> the header of the launch code, and the function template in it.
_HOST_CODE = {
    KIND_FWD: ("launch_fwd.h", "make_fwd_launch"),
    KIND_DOT_DO_O: ("launch_bwd.h", "make_dot_do_o_launch"),
    KIND_DQ_DK_DV: ("launch_bwd.h", "make_dq_dk_dv_launch"),
    KIND_CONVERT_DQ: ("launch_bwd.h", "make_convert_dq_launch"),
}
_FWD_PARAMETERS = "const attn_fwd_args& args, KernelLaunch* launch"
_BWD_PARAMETERS = "const attn_bwd_args& args, const BwdBuffers& buffers, KernelLaunch* launch"


def kernel_entry(name: str, kernel: str, block_size: int) -> str:
    """The entry point `name` of a kernel type, behind CK's text that defines the type.

    The entry does what CK's own (ck_tile::kentry) does, under a name that needs no demangling.
    """
    return f"""
using Kernel = {kernel};
static_assert(Kernel::kBlockSize == {block_size});

extern "C" __global__ __launch_bounds__(Kernel::kBlockSize, Kernel::kBlockPerCu) void
{name}(Kernel::Kargs kargs)
{{
    Kernel{{}}(kargs);
}}
"""


def instance_source(instance: Instance) -> str:
    """The device code of one instance: CK's type, and an entry point of the instance's name."""
    entry = kernel_entry(instance.name, instance.kernel_alias(0), instance.block_size)
    return f"// {_NOTICE}\n" + instance.render(0) + entry


@dataclasses.dataclass(frozen=True)
class LaunchCode:
    """The host files of a variant set, and which of their functions serves each instance."""

    files: Mapping[str, str]
    functions: Mapping[str, str]


def _launch_layout(instance: Instance) -> tuple[object, ...]:
    traits = tuple((k, v) for k, v in instance.traits.items() if k not in _NOT_IN_LAUNCH)
    return (instance.kind, dataclasses.astuple(instance.tile), instance.block_size, traits)


def launch_code(instances: Sequence[Instance]) -> LaunchCode:
    """Host code that makes kernel arguments and grids, one function per launch layout.

    Instances that differ only in traits that no launch depends on share a function, made from the
    first of them.
    """
    by_layout: dict[tuple[object, ...], list[Instance]] = {}
    for instance in instances:
        by_layout.setdefault(_launch_layout(instance), []).append(instance)
    by_kind: dict[str, list[list[Instance]]] = {}
    for sharing in by_layout.values():
        by_kind.setdefault(sharing[0].kind, []).append(sharing)

    files: dict[str, str] = {}
    functions: dict[str, str] = {}
    for kind, layouts in by_kind.items():
        for start in range(0, len(layouts), _LAYOUTS_PER_FILE):
            text = [
                f"// {_NOTICE}\n",
                f'#include "kernels/ck_fmha/{_HOST_CODE[kind][0]}"\n',
            ]
            for index, sharing in enumerate(layouts[start : start + _LAYOUTS_PER_FILE], start):
                representative = sharing[0]
                function = f"{kind}_launch_{index}"
                functions.update({instance.name: function for instance in sharing})
                text.append(_launch_function(representative, index, function))
            files[f"{kind}_{start // _LAYOUTS_PER_FILE}.cpp"] = "".join(text)
    return LaunchCode(files, functions)


def _launch_function(instance: Instance, index: int, function: str) -> str:
    kernel = instance.kernel_alias(index)
    is_fwd = instance.kind == KIND_FWD
    parameters = _FWD_PARAMETERS if is_fwd else _BWD_PARAMETERS
    arguments = "args, launch" if is_fwd else "args, buffers, launch"
    _, maker = _HOST_CODE[instance.kind]
    return (
        f"\n// {instance.name}\n"
        + instance.render(index)
        + f"""
static_assert({kernel}::kBlockSize == {instance.block_size});

namespace aiter_attn::ck_fmha {{
void {function}({parameters})
{{
    {maker}<{kernel}>({arguments});
}}
}} // namespace aiter_attn::ck_fmha
"""
    )


def instance_record(instance: Instance) -> dict[str, object]:
    """What instances.json says of an instance."""
    return {
        "name": instance.name,
        "symbol": instance.name,
        "kind": instance.kind,
        "traits": dict(instance.traits),
        "tile": dataclasses.asdict(instance.tile),
        "head_size_alignment": instance.head_size_alignment,
        "block_size": instance.block_size,
    }


def _starlark(value: object) -> str:
    """JSON of strings, lists and dicts is Starlark; this is its formatted form."""
    return json.dumps(value, indent=4)


def repository_files(
    pool: Pool,
    variant_sets: Mapping[str, Sequence[Candidate]],
    archs: Sequence[Arch],
) -> dict[str, str]:
    """Path -> text of every generated file but the BUILD files."""
    files: dict[str, str] = {}
    everything: dict[str, Instance] = {}
    sets: dict[str, list[dict[str, str]]] = {}
    launch_files: dict[str, list[str]] = {}
    for name, candidates in sorted(variant_sets.items()):
        instances = instances_of(candidates)
        everything.update({instance.name: instance for instance in instances})
        launch = launch_code(instances)
        launch_files[name] = [f"launch/{name}/{path}" for path in launch.files]
        files.update({f"launch/{name}/{path}": text for path, text in launch.files.items()})
        sets[name] = [
            {"instance": instance.name, "launch": launch.functions[instance.name]}
            for instance in instances
        ]
        files[f"dispatch/{name}/fmha_fwd_api.cpp"] = pool.fwd_dispatcher(list(candidates))
        files[f"dispatch/{name}/fmha_bwd_api.cpp"] = pool.bwd_dispatcher(list(candidates))

    for instance in everything.values():
        files[f"instances/{instance.name}.cpp"] = instance_source(instance)
    document = {
        "format": FORMAT,
        "archs": {arch.name: dataclasses.asdict(arch) for arch in archs},
        "instances": [instance_record(everything[name]) for name in sorted(everything)],
        "variant_sets": sets,
    }
    files["instances.json"] = json.dumps(document, indent=1) + "\n"
    files["known.bzl"] = (
        f'"""{_NOTICE}"""\n\n'
        f"ARCHS = {_starlark([arch.name for arch in archs])}\n\n"
        f"VARIANT_SETS = {_starlark(sorted(sets))}\n"
    )
    files["instances.bzl"] = (
        f'"""{_NOTICE}"""\n\n'
        "# Instance -> work-items per workgroup.\n"
        "BLOCK_SIZES = "
        + _starlark({name: everything[name].block_size for name in sorted(everything)})
        + "\n\n# Variant set -> its instances.\n"
        "INSTANCES_OF = "
        + _starlark({name: [entry["instance"] for entry in sets[name]] for name in sets})
        + "\n\n# Variant set -> the host files that make its kernels' arguments.\n"
        f"LAUNCH_SOURCES_OF = {_starlark(launch_files)}\n"
    )
    return files
