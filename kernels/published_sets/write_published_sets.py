# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the table of published_sets.h from the files of the published sets."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from absl import app, flags

from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.launch_table.traits import TABLE, TraitValue
from kernels.matrix.counts import PUBLISHED_SETS, Row, rows_of_set

_POOL = flags.DEFINE_string("pool", None, "pool.json of @ck_fmha", required=True)
_ARCHS_FILE = flags.DEFINE_string("archs_file", None, "archs.json of @archs", required=True)
_SETS = flags.DEFINE_multi_string("set", None, "a variant set file", required=True)
_SOURCE = flags.DEFINE_string("source", None, "the C++ source", required=True)


_PADDING = [
    name for name, trait in TABLE.traits.items() if trait.match == "padding" and not trait.is_size
]


@dataclasses.dataclass(frozen=True)
class Kernel:
    """PublishedKernel without its sets; traits are numbers, in the order of the struct."""

    kind: int
    traits: tuple[int, ...]
    alignment: int
    tiles: tuple[int, ...]
    left_out: int

    def apart(self) -> tuple[object, ...]:
        """All that bounds checks do not change."""
        exact = [
            number
            for trait, number in zip(TABLE.traits.values(), self.traits, strict=True)
            if trait.match != "padding"
        ]
        paged = self.traits[list(TABLE.traits).index("paged_kv")]
        return (self.kind, *exact, self.left_out, self.tiles[1] if paged else 0)

    def serves_all_of(self, other: Kernel) -> bool:
        """Whether it has the other's traits, and makes the bounds checks that the other does."""
        checks = [list(TABLE.traits).index(name) for name in _PADDING]
        return (
            self.apart() == other.apart()
            and all(self.traits[i] >= other.traits[i] for i in checks)
            and self.alignment <= other.alignment
        )


def _kernel(row: Row, archs: Sequence[str]) -> Kernel:
    traits: Mapping[str, TraitValue] = row["traits"]
    # A tile matters where bounds are not checked, and that of keys in pages, too.
    tiles = [
        0 if traits.get(name, True) else row["tile"].get(name.removeprefix("pad_"), 0)
        for name in _PADDING
    ]
    if traits.get("paged_kv"):
        tiles[_PADDING.index("pad_seqlen_k")] = row["tile"]["seqlen_k"]
    return Kernel(
        TABLE.kind_number(row["kind"]),
        tuple(
            TABLE.number(trait, traits[name]) if name in traits else 0
            for name, trait in TABLE.traits.items()
        ),
        row["head_size_alignment"],
        tuple(tiles),
        sum(1 << archs.index(arch) for arch in row.get("left_out", {})),
    )


def by_kernel(sets: Mapping[str, Iterable[Row]], archs: Sequence[str]) -> dict[Kernel, int]:
    """Kernel -> the bits of the sets that have it, without those that others make superfluous."""
    found: dict[Kernel, int] = {}
    for number, rows in enumerate(sets.values()):
        for row in rows:
            kernel = _kernel(row, archs)
            found[kernel] = found.get(kernel, 0) | 1 << number
    alike: dict[tuple[object, ...], list[Kernel]] = {}
    for kernel in found:
        alike.setdefault(kernel.apart(), []).append(kernel)
    return {
        kernel: bits
        for kernel, bits in found.items()
        if not any(
            other != kernel and other.serves_all_of(kernel) and found[other] & bits == bits
            for other in alike[kernel.apart()]
        )
    }


def source(sets: Mapping[str, Iterable[Row]], archs: Sequence[str]) -> str:
    """The C++ source. sets are in ascending order of size."""
    types = [trait.type if trait.type in TABLE.enums else "" for trait in TABLE.traits.values()]
    lines = []
    for kernel, bits in by_kernel(sets, archs).items():
        traits = ", ".join(
            f"{type_}{{{number}}}" if type_ else str(number)
            for type_, number in zip(types, kernel.traits, strict=True)
        )
        rest = ", ".join(map(str, (kernel.alignment, *kernel.tiles)))
        lines.append(
            f"    {{{{Kind{{{kernel.kind}}}, {traits}}}, {rest}, {bits:#x}, "
            f"{kernel.left_out:#x}}},\n"
        )
    named = ", ".join(json.dumps(name) for name in sets)
    order = "".join(
        f'static_assert(std::string_view(kArchs[{number}].name) == "{arch}");\n'
        for number, arch in enumerate(archs)
    )
    return f"""// Generated from the files of variant sets. Do not edit.
#include "kernels/published_sets/published_sets.h"

#include <iterator>
#include <string_view>

#include "kernels/archs/archs.h"

namespace AITER_ATTN_NAMESPACE::kernels {{

{order}
const char* const kPublishedSets[] = {{{named}}};
const size_t kPublishedSetCount = std::size(kPublishedSets);

const PublishedKernel kPublishedKernels[] = {{
{"".join(lines)}}};
const size_t kPublishedKernelCount = std::size(kPublishedKernels);

}}  // namespace AITER_ATTN_NAMESPACE::kernels
"""


def published_sets(pool: RecordedPool, files: Iterable[Path]) -> dict[str, list[Row]]:
    """The published sets of the files, from the smallest to the greatest."""
    rows = {file.stem: rows_of_set(pool, file) for file in files if file.stem in PUBLISHED_SETS}
    return dict(sorted(rows.items(), key=lambda item: len(item[1])))


def main(_arguments: Sequence[str]) -> None:
    pool = RecordedPool(Path(_POOL.value).read_text("utf-8"))
    archs = list(json.loads(Path(_ARCHS_FILE.value).read_text("utf-8")))
    sets = published_sets(pool, map(Path, _SETS.value))
    Path(_SOURCE.value).write_text(source(sets, archs), "utf-8")


if __name__ == "__main__":
    app.run(main)
