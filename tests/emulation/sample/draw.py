# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Draws kernel instances from CK's whole matrix, and writes the repository of their sources.

Per kind of kernel, instances are taken one after the other: each time the one that shows the most
pairs of trait values that no instance before it has shown, and among equals the first of an order
that the seed shuffles. So a small sample has every value of every trait, and most pairs of them.

Standard library only: it runs while repositories are fetched, before anything is built.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import itertools
import json
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ckgen.emission import kernel_entry
from ckgen.pool import (
    CK_KINDS,
    MASK_IMPLEMENTATION,
    RECEIPT,
    WAVEFRONT_SIZE,
    Instance,
    Pool,
)
from ckgen.schema import TraitValue

KIND_SPLITKV = "fwd_splitkv"
KIND_COMBINE = "fwd_splitkv_combine"
KIND_PAGEDKV = "fwd_pagedkv"

# How many of each kind are drawn. dq_dk_dv and fwd are nearly all of what CK has.
COUNTS = {
    "fwd": 16,
    "bwd_dq_dk_dv": 14,
    "bwd_dot_do_o": 1,
    "bwd_convert_dq": 3,
    KIND_SPLITKV: 6,
    KIND_COMBINE: 2,
    KIND_PAGEDKV: 4,
}

_BIAS = {"no": "none", "bias": "elementwise", "alibi": "alibi"}
# CK's template of both split kernels is a class template: of the general form for any lengths, and
# of up to 2**3 splits.
_TYPES = {
    KIND_SPLITKV: "instance<true>::fmha_kernel",
    KIND_COMBINE: "instance<3>::fmha_kernel",
    KIND_PAGEDKV: "fmha_kernel_0",
}
_COMBINE_WAVES, _COMBINE_TILE = 4, 32
_TABLE = "launch/table.cc"
_PER_FILE = 10  # host code: bounds the memory of a compile
_CANNOT_BE_PAIRED = ("head_size_qk", "head_size_v")  # one follows from the other, nearly always


@dataclasses.dataclass(frozen=True)
class Drawn:
    """An instance: `text` is CK's source up to the definition of `kernel`, its type."""

    name: str
    kind: str
    traits: Mapping[str, TraitValue]
    tile_seqlen_q: int
    tile_seqlen_k: int
    block_size: int
    text: str
    kernel: str

    def device_source(self) -> str:
        return self.text + kernel_entry(self.name, self.kernel, self.block_size)

    def launch_function(self) -> str:
        """What makes the instance's kernel arguments. The names of CK's text are its own here."""
        lines = self.text.splitlines()
        text = "\n".join(line for line in lines if not line.startswith(("#include", "//")))
        return (
            f"\nnamespace of_{self.name} {{\n{text}\nusing Kernel = {self.kernel};\n"
            f"static_assert(Kernel::kBlockSize == {self.block_size});\n}}\n"
            f"void launch_{self.name}(const DirectArgs& args, KernelLaunch* launch) {{\n"
            f"  make_{self.kind}<of_{self.name}::Kernel>(args, launch);\n"
            "}\n"
        )


def _cut(text: str) -> str:
    """CK's text before what connects the instance to CK's own dispatcher."""
    head, found, _ = text.partition("using trait_0 =")
    if not found:
        raise ValueError("CK's template has no alias trait_0")
    return head.rstrip() + "\n"


def _from_pool(instance: Instance) -> Drawn:
    return Drawn(
        name=instance.name,
        kind=instance.kind,
        traits=instance.traits,
        tile_seqlen_q=instance.tile.seqlen_q,
        tile_seqlen_k=instance.tile.seqlen_k,
        block_size=instance.block_size,
        text=instance.render(0),
        kernel=instance.kernel_alias(0),
    )


def _traits(kernel: Any) -> dict[str, TraitValue]:
    """Of a kernel for a split or a paged cache: the fields that its description has."""
    pipeline = kernel.F_pipeline
    traits: dict[str, TraitValue] = {
        "dtype": kernel.F_dtype,
        "head_size_qk": kernel.F_hdim,
        "head_size_v": kernel.F_hdim,
        "mode": kernel.F_mode,
    }
    flags = {"lse": "F_lse", "logits_soft_cap": "F_logits", "paged_kv": "F_pagedkv",
             "skip_min_seqlen_q": "F_skip", "pad_seqlen_q": "F_spad", "pad_seqlen_k": "F_skpad",
             "pad_head_size_qk": "F_dpad", "pad_head_size_v": "F_dvpad"}  # fmt: skip
    traits |= {t: getattr(pipeline, f) == "t" for t, f in flags.items() if hasattr(pipeline, f)}
    if hasattr(pipeline, "F_mask"):
        traits |= {"mask": pipeline.F_mask == "s_mask", "bias": _BIAS[pipeline.F_bias]}
    return traits


def _from_kernel(kernel: Any, kind: str) -> Drawn:
    tile = kernel.F_tile
    combine = kind == KIND_COMBINE
    waves = _COMBINE_WAVES if combine else tile.F_rm0 * tile.F_rn0 * tile.F_rk0
    return Drawn(
        name=kernel.name,
        kind=kind,
        traits=_traits(kernel),
        tile_seqlen_q=_COMBINE_TILE if combine else tile.F_bm0,
        tile_seqlen_k=0 if combine else tile.F_bn0,
        block_size=waves * WAVEFRONT_SIZE,
        text=_cut(kernel.template),
        kernel=_TYPES[kind],
    )


def matrix(fmha_dir: Path) -> dict[str, list[Drawn]]:
    """Every instance of CK's, by kind, in the order of their names."""
    instances: dict[str, Instance] = {}
    for candidate in Pool(fmha_dir).candidates:
        instances |= {i.name: i for i in candidate.instances}
    out: dict[str, list[Drawn]] = {kind: [] for kind in (*CK_KINDS, *_TYPES)}
    for instance in instances.values():
        out[instance.kind].append(_from_pool(instance))
    split = importlib.import_module("codegen.ops.fmha_fwd_splitkv")
    paged = importlib.import_module("codegen.ops.fmha_pagedkv_prefill")
    _, split_kernels = split.get_fwd_splitkv_blobs("", RECEIPT, MASK_IMPLEMENTATION, [-1])
    combine_kernels = split.get_fwd_splitkv_combine_blobs("", RECEIPT, [-1])
    _, paged_kernels = paged.get_fwd_blobs("", RECEIPT, [-1], MASK_IMPLEMENTATION)
    # The asynchronous pipeline is listed, for head sizes 96 and 160, but CK does not have it.
    out[KIND_SPLITKV] = [
        _from_kernel(k, KIND_SPLITKV) for k in split_kernels if k.F_pipeline.tag == "qr"
    ]
    out[KIND_COMBINE] = [_from_kernel(k, KIND_COMBINE) for k in combine_kernels]
    # Those without pages are the plain forward kernels again.
    out[KIND_PAGEDKV] = [
        _from_kernel(k, KIND_PAGEDKV) for k in paged_kernels if k.F_pipeline.F_pagedkv == "t"
    ]
    for drawn in out.values():
        drawn.sort(key=lambda d: d.name)
    return out


def _pairs(drawn: Drawn) -> set[tuple[Any, ...]]:
    singles = sorted(drawn.traits.items())
    pairs = {
        (a, b)
        for a, b in itertools.combinations(singles, 2)
        if not {a[0], b[0]} <= set(_CANNOT_BE_PAIRED)
    }
    return pairs | {(single,) for single in singles}


def sample(candidates: Sequence[Drawn], count: int, rng: random.Random) -> list[Drawn]:
    """`count` of the candidates, as the module says."""
    shuffled = rng.sample(candidates, len(candidates))
    shown: set[tuple[Any, ...]] = set()
    pairs = {d.name: _pairs(d) for d in shuffled}
    chosen: list[Drawn] = []
    for _ in range(count):
        best = max(
            (d for d in shuffled if d not in chosen), key=lambda d: len(pairs[d.name] - shown)
        )
        chosen.append(best)
        shown |= pairs[best.name]
    return chosen


def _table(instances: Sequence[Drawn]) -> str:
    """The C++ table of the instances (sample_table.h)."""
    rows = []
    for d in instances:
        t = {"bias": "none", **d.traits}
        flags = ", ".join(
            str(bool(t.get(name, False))).lower()
            for name in ("mask", "bias_grad", "lse", "dropout", "logits_soft_cap",
                         "skip_min_seqlen_q", "deterministic", "pad_seqlen_q", "pad_seqlen_k",
                         "pad_head_size_qk", "pad_head_size_v", "paged_kv")
        )  # fmt: skip
        group = str(t["mode"] == "group").lower()
        rows.append(
            f'    {{{{"{d.name}", "{d.kind}", "{t["dtype"]}", "{t["bias"]}", '
            f"{t['head_size_qk']}, {t['head_size_v']}, {d.tile_seqlen_q}, {d.tile_seqlen_k}, "
            f"{d.block_size}, {group}, {flags}}}, launch_{d.name}}},\n"
        )
    declarations = "".join(
        f"void launch_{d.name}(const DirectArgs&, KernelLaunch*);\n" for d in instances
    )
    return (
        '#include "tests/emulation/sample/sample_table.h"\n\n'
        + declarations
        + "\nconst SampleRow kSampleRows[] = {\n"
        + "".join(rows)
        + f"}};\nconst unsigned kSampleRowCount = {len(instances)};\n"
    )


def repository_files(instances: Sequence[Drawn], seed: int) -> dict[str, str]:
    files = {_TABLE: _table(instances)}
    for drawn in instances:
        files[f"instances/{drawn.name}.cpp"] = drawn.device_source()
    for direction in ("fwd", "bwd"):
        own = [d for d in instances if d.kind.startswith(direction)]
        for start in range(0, len(own), _PER_FILE):
            files[f"launch/{direction}_{start // _PER_FILE}.cpp"] = (
                f'#include "tests/emulation/sample/direct_{direction}.h"\n'
                + "".join(d.launch_function() for d in own[start : start + _PER_FILE])
            )
    sources = sorted(path for path in files if path.startswith("launch/") and path != _TABLE)
    listing = {drawn.name: drawn.block_size for drawn in instances}
    files["instances.bzl"] = (
        f'"""Generated: drawn with seed {seed}. Do not edit."""\n\n'
        f"SEED = {seed}\n\n"
        "# Instance -> work-items per workgroup.\n"
        f"BLOCK_SIZES = {json.dumps(listing, indent=4)}\n\n"
        "# The host code that makes their kernel arguments.\n"
        f"LAUNCH_SOURCES = {json.dumps(sources, indent=4)}\n"
    )
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fmha-dir", type=Path, required=True, help="CK's 01_fmha example folder")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, help="the repository's folder; none: print the draw")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    candidates = matrix(options.fmha_dir)
    instances = [d for kind in COUNTS for d in sample(candidates[kind], COUNTS[kind], rng)]
    for kind, count in COUNTS.items():
        print(f"{kind}: {count} of {len(candidates[kind])}, seed {options.seed}")
    if options.out is None:
        print("\n".join(d.name for d in instances))
        return 0
    for path, text in repository_files(instances, options.seed).items():
        target = options.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
