# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The files of the generated repositories, as text. Nothing depends on where they are written.

@ck_fmha has the whole pool: a package per direction, dtype and head sizes (and target, where it is
not the first) with a source per instance, packages of compile groups, the launch functions, and
pool.json, from which a variant set is selected without upstream's generator. The repository of a
set has labels into the pool, rows for the launch table, and host files that hold the launch
functions of its instances.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kernels.archs.archs import Arch, block_size
from kernels.ck_fmha.ckgen.archs import left_out
from kernels.ck_fmha.ckgen.directions import (
    HOST_WAVE_SIZE,
    KINDS,
    TARGETS,
    Candidate,
    Instance,
    direction_of,
)
from kernels.ck_fmha.ckgen.headers import TABLE as HEADERS_TABLE
from kernels.ck_fmha.ckgen.headers import Sections, check_source
from kernels.ck_fmha.ckgen.pool import instances_of, targets_of
from kernels.ck_fmha.ckgen.schema import known_values
from kernels.ck_fmha.groups.cost import FIGURES, CostModel
from kernels.ck_fmha.groups.groups import Groups, cut
from kernels.launch_table.traits import TABLE, TraitValue

_NOTICE = "Generated from upstream's description of the instance. Do not edit."
_NAMESPACE = "AITER_ATTN_NAMESPACE::kernels::ck_fmha"

# Launch functions per host file: bounds the memory of one compile where a set has many.
_LAUNCHES_PER_FILE = 16


# Upstream's pipelines with transposed loads assert on the device: that is a call, and a hidden
# argument that no launch fills. In the recipe it would change the keys of all other kernels.
_NO_ASSERTS = "#define NDEBUG\n"


def instance_source(instance: Instance, wave_size: int) -> str:
    """The device code of one instance: upstream's type, and an entry point of the instance's name.

    The entry does what upstream's own (ck_tile::kentry) does, under a name that needs no
    demangling.
    """
    no_asserts = _NO_ASSERTS if instance.traits.get("transposed_loads") else ""
    return f"""// {_NOTICE}
{no_asserts}{instance.text()}
using Kernel = {KINDS[instance.kind].kernel};
static_assert(Kernel::kBlockSize == {block_size(instance.block, wave_size)});

extern "C" __global__ __launch_bounds__(Kernel::kBlockSize, Kernel::kBlockPerCu) void
{instance.name}(Kernel::Kargs kargs)
{{
    Kernel{{}}(kargs);
}}
"""


def _launch_layout(instance: Instance) -> tuple[object, ...]:
    traits = tuple((k, v) for k, v in instance.traits.items() if TABLE.traits[k].launch)
    tile = dataclasses.astuple(instance.tile)
    return (instance.kind, tile, tuple(instance.block.items()), instance.scaled, traits)


def launch_function(instance: Instance) -> tuple[str, str]:
    """(name, text) of the C++ function that makes the instance's kernel arguments and grid.

    It is named by a digest of its inputs, and weak: variant sets that share it link together.
    """
    lines = instance.text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith(("#include", "//")))
    kind = KINDS[instance.kind]
    work_items = block_size(instance.block, HOST_WAVE_SIZE)
    digest = hashlib.sha256(f"{kind}\n{work_items}\n{text}".encode()).hexdigest()
    name = f"{instance.kind}_{digest[:16]}"
    return (
        name,
        f"""
// {instance.name}
namespace of_{name} {{
{text}
using Kernel = {kind.kernel};
static_assert(Kernel::kBlockSize == {work_items});
}} // namespace of_{name}
[[gnu::weak]] void {name}(const LaunchArgs& args, Launch* launch)
{{
    {kind.launch}<of_{name}::Kernel>(args, launch);
}}
""",
    )


def launch_functions(instances: Iterable[Instance]) -> tuple[dict[str, str], dict[str, str]]:
    """(instance -> its launch function, launch function -> text).

    Instances that differ only in traits that no launch depends on share the function of the first.
    """
    by_layout: dict[tuple[object, ...], str] = {}
    texts: dict[str, str] = {}
    names = {}
    for instance in instances:
        layout = _launch_layout(instance)
        if layout not in by_layout:
            by_layout[layout], text = launch_function(instance)
            texts[by_layout[layout]] = text
        names[instance.name] = by_layout[layout]
    return names, texts


def _package(instance: Instance, targets: Sequence[str]) -> str:
    """Those that the first target lacks have packages of their own: no other changes by them."""
    traits = instance.traits
    sizes = dict.fromkeys((traits["head_size_qk"], traits["head_size_v"]))
    shape = "x".join(str(size) for size in sizes)
    of = "" if TARGETS[0] in targets else f"_{targets[0]}"
    return f"{direction_of(instance.kind)}/{traits['dtype']}_d{shape}{of}"


def row(
    instance: Instance, launch: str, left_out: Mapping[str, str], targets: Sequence[str]
) -> dict[str, Any]:
    """The launch table's row of an instance.

    launch    its function, without a namespace
    left_out  arch -> why there is none for it
    targets   that it is of: tables without an arch of these do not have the row
    """
    return {
        "name": instance.name,
        "kind": instance.kind,
        "traits": dict(instance.traits),
        "tile": dataclasses.asdict(instance.tile),
        "head_size_alignment": instance.head_size_alignment,
        "block": dict(instance.block),
        "launch": f"ck_fmha::{launch}",
        "targets": list(targets),
        **({"left_out": dict(left_out)} if left_out else {}),
    }


def _json(value: object) -> str:
    """Also Starlark, where there are strings, numbers, lists and dicts."""
    return json.dumps(value, indent=1) + "\n"


def _groups_files(
    groups: Groups, rows: Mapping[str, Mapping[str, Any]], sections: Mapping[str, str]
) -> dict[str, str]:
    """Path -> text of the packages of compile groups: a package per direction and head sizes.

    rows      instance -> its row
    sections  instance -> its section of headers.toml
    """
    packages: dict[str, dict[str, Sequence[str]]] = {}
    left: dict[str, dict[str, Sequence[str]]] = {}
    section_of: dict[str, dict[str, str]] = {}
    for group, members in groups.items():
        package, _, name = group.partition(":")
        packages.setdefault(package, {})[name] = members
        # All members have the same.
        first = members[0].partition(":")[2]
        section_of.setdefault(package, {})[name] = sections[first]
        if archs := rows[first].get("left_out"):
            left.setdefault(package, {})[name] = sorted(archs)
    return {
        f"groups/{package}/BUILD.bazel": (
            f"# {_NOTICE}\n"
            'load("@aiter_attn//kernels/ck_fmha/private:packages.bzl", "groups_package")\n\n'
            "# Group -> its members.\n"
            f"GROUPS = {_json(of_package)}\n"
            "# Group -> its section of headers.toml.\n"
            f"SECTIONS = {_json(section_of[package])}\n"
            "# Group -> archs that it is left out for.\n"
            f"LEFT_OUT = {_json(left.get(package, {}))}\n"
            "groups_package(GROUPS, LEFT_OUT, SECTIONS)\n"
        )
        for package, of_package in packages.items()
    }


def pool_files(candidates: Sequence[Candidate], archs: Mapping[str, Arch]) -> dict[str, str]:
    """Path -> text of @ck_fmha. Raises VariantSetError for a record of archs, and HeadersError."""
    instances = instances_of(candidates)
    table = Sections(HEADERS_TABLE.read_text("utf-8"))
    section_of = {i.name: table.of(i.pipeline) for i in instances}
    excluded = left_out(archs, candidates)
    targets = targets_of(candidates)
    package_of = {i.name: _package(i, targets[i.name]) for i in instances}
    launches, launch_texts = launch_functions(instances)
    rows = {
        i.name: row(i, launches[i.name], excluded.get(i.name, {}), targets[i.name])
        for i in instances
    }
    members = {i.name: f"{package_of[i.name]}:{i.name}" for i in instances}
    groups = cut(
        {members[name]: of for name, of in rows.items()},
        {members[i.name]: i.tag for i in instances},
    )
    group_of = {member: group for group, of_group in groups.items() for member in of_group}
    packages: dict[str, dict[str, dict[str, Mapping[str, int]]]] = {}
    files = {f"launch/{name}.inc": text for name, text in launch_texts.items()}
    for instance in instances:
        package = package_of[instance.name]
        pipelines = packages.setdefault(package, {})
        pipelines.setdefault(instance.pipeline, {})[instance.name] = instance.block
        absent = excluded.get(instance.name, {})
        section = table.by_name[section_of[instance.name]]
        for wave_size in {arch.wave_size for name, arch in archs.items() if name not in absent}:
            folder = package if wave_size == HOST_WAVE_SIZE else f"{package}/wave{wave_size}"
            path = f"{folder}/{instance.name}.cpp"
            files[path] = instance_source(instance, wave_size)
            check_source(files[path], section, path)
    known = {package: sorted(pipelines) for package, pipelines in sorted(packages.items())}
    files["pipelines.bzl"] = (
        f"# {_NOTICE}\n"
        '"""The pipelines of each package, which machine_options.bzl goes by."""\n\n'
        f"PIPELINES = {_json(known)}"
    )
    for package, pipelines in packages.items():
        of_package = {name for names in pipelines.values() for name in names}
        left = {name: sorted(archs) for name, archs in excluded.items() if name in of_package}
        grouped = {
            name: group_of[members[name]]
            for name in sorted(of_package)
            if members[name] in group_of
        }
        files[f"{package}/BUILD.bazel"] = (
            f"# {_NOTICE}\n"
            'load("@aiter_attn//kernels/ck_fmha/private:packages.bzl", "instances_package")\n\n'
            "# Pipeline -> instance -> waves or work-items per workgroup.\n"
            f"PIPELINES = {_json(pipelines)}\n"
            "# Instance -> its compile group.\n"
            f"GROUPS = {_json(grouped)}\n"
            "# Pipeline -> its section of headers.toml.\n"
            f"SECTIONS = {_json({name: table.of(name) for name in pipelines})}\n"
            "# Instance -> archs that it is left out for.\n"
            f"LEFT_OUT = {_json(left)}\n"
            "instances_package(PIPELINES, LEFT_OUT, GROUPS, SECTIONS)\n"
        )
    files |= _groups_files(groups, rows, section_of)
    document = {
        "known_values": known_values([candidate.traits for candidate in candidates]),
        "rows": rows,
        "packages": package_of,
        "groups": groups,
        "candidates": [
            [c.direction, c.traits, [instance.name for instance in c.instances], c.target]
            for c in candidates
        ],
    }
    files["pool.json"] = json.dumps(document) + "\n"
    return files


@dataclasses.dataclass(frozen=True)
class RecordedCandidate:
    """A candidate of pool.json."""

    direction: str
    traits: Mapping[str, TraitValue]
    instances: tuple[str, ...]
    target: str


class RecordedPool:
    """pool.json: the pool without upstream's generator."""

    def __init__(self, text: str):
        document = json.loads(text)
        self.known_values: dict[str, list[TraitValue]] = document["known_values"]
        self.rows: dict[str, dict[str, Any]] = document["rows"]
        self.packages: dict[str, str] = document["packages"]
        self.groups: Groups = document["groups"]
        self.candidates = [
            RecordedCandidate(direction, traits, tuple(names), target)
            for direction, traits, names, target in document["candidates"]
        ]

    def labels(self, names: Iterable[str]) -> dict[str, str]:
        """Instance -> the label of the way in which it is compiled for a build of all of these,
        whichever costs less: by itself, or (.grouped) with its group."""
        wanted = set(names)
        model = CostModel(FIGURES.read_text("utf-8"), self.rows)
        grouped = {
            name for of_these, _ in model.grouped(wanted, self.groups.values()) for name in of_these
        }
        return {
            name: f"@ck_fmha//{self.packages[name]}:{name}{'.grouped' * (name in grouped)}"
            for name in sorted(wanted)
        }


def set_files(
    pool: RecordedPool,
    chosen: Iterable[str],
    launch_text: Callable[[str], str],
    beside: Iterable[str] = (),
) -> dict[str, str]:
    """Path -> text of a variant set's repository but its BUILD file.

    chosen       the names of its instances
    launch_text  launch function -> its text in the pool
    beside       the names of others: each is compiled as in a build of all of these
    """
    wanted = set(chosen)
    rows = [r for name, r in pool.rows.items() if name in wanted]  # the pool's order
    # Target -> header -> functions, each with the first target that needs it.
    needed: dict[str, dict[str, dict[str, None]]] = {target: {} for target in TARGETS}
    placed: set[str] = set()
    for target in TARGETS:
        for each in (each for each in rows if target in each["targets"]):
            function = each["launch"].removeprefix("ck_fmha::")
            if function not in placed:
                needed[target].setdefault(KINDS[each["kind"]].header, {})[function] = None
                placed.add(function)
    files = {"rows.json": json.dumps(rows, indent=1) + "\n"}
    sources: dict[str, list[str]] = {target: [] for target in TARGETS}
    for target, header, names in (
        (target, header, list(functions))
        for target, by_header in needed.items()
        for header, functions in by_header.items()
    ):
        of = "" if target == TARGETS[0] else f"{target}_"
        for start in range(0, len(names), _LAUNCHES_PER_FILE):
            path = f"launch/{of}{header.removesuffix('.h')}_{start // _LAUNCHES_PER_FILE}.cpp"
            sources[target].append(path)
            files[path] = (
                f'// {_NOTICE}\n#include "kernels/ck_fmha/launch/{header}"\n\n'
                f"namespace {_NAMESPACE} {{\n"
                + "".join(launch_text(name) for name in names[start : start + _LAUNCHES_PER_FILE])
                + f"\n}} // namespace {_NAMESPACE}\n"
            )
    labels = pool.labels(wanted.union(beside))
    files["instances.bzl"] = (
        f'"""{_NOTICE}"""\n\n'
        "# Instance -> its label; a code object's is that with .ARCH behind it.\n"
        f"INSTANCES = {_json({r['name']: labels[r['name']] for r in rows})}\n"
        "# Instance -> archs that it is left out for, and why.\n"
        f"LEFT_OUT = {_json({r['name']: r['left_out'] for r in rows if 'left_out' in r})}\n"
        "# Target -> the host code that makes their kernel arguments, beside that of the first.\n"
        f"LAUNCH_SOURCES = {_json(sources)}"
    )
    return files
