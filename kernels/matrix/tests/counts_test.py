# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The counts of the project's own sets: golden, and counted a second time without our selection.

The second count reads the fields of upstream's generator itself, by the purposes of the sets. It
uses neither the table of traits nor candidates.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernels.archs.archs import read_archs
from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.ckgen.schema import parse_variant_set
from kernels.ck_fmha.ckgen.selection import select
from kernels.matrix.counts import GOLDEN_SETS, UPDATE, golden, rows_of_set

README = Path(os.environ["README"])
GOLDEN = Path(os.environ["GOLDEN"])

# (direction, head size, dtype) -> kernel instances.
Counts = Counter[tuple[str, str, str]]


@pytest.fixture(scope="module")
def pool() -> RecordedPool:
    return RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))


def file_of(name: str) -> Path:
    return README.parent / f"{name}.toml"


def test_golden(pool: RecordedPool) -> None:
    archs = sorted(read_archs(os.environ["ARCHS"]))
    found = golden({name: rows_of_set(pool, file_of(name)) for name in GOLDEN_SETS}, archs)
    assert found == GOLDEN.read_text("ascii"), (
        f"the sets have other kernel instances than before; if that is meant, {UPDATE}"
    )


# ---- the second count --------------------------------------------------------------------------


def modules() -> dict[str, Any]:
    folder = str(Path(os.environ["CK_GENERATOR"]).parent)
    sys.path.insert(0, folder)
    try:
        return {
            name: importlib.import_module(f"codegen.ops.fmha_{name}")
            for name in (
                "fwd",
                "bwd",
                "fwd_splitkv",
                "pagedkv_prefill",
                "fwd_appendkv",
                "batch_prefill",
            )
        }
    finally:
        sys.path.remove(folder)


def transposed(kernel: Any) -> bool:
    """Backward's largest kernel has a field of its own."""
    fields = getattr(kernel, "F_pipeline", kernel)
    return getattr(fields, "F_trload", "f") == "t"


# Upstream's names of archs, each with one that it takes for such.
TARGETS = {"": "gfx942", "@gfx12": "gfx1201"}
# Those that another has more forward and backward kernels than.
WITH_MORE = {"gfx942": "gfx950"}


def forward_kernels(fwd: Any, arch: str) -> Iterator[Any]:
    """Those of receipt 600 for 16 bits, and those of fp8 with scales: with results of fp8 for v by
    columns, which upstream lists no more, without bounds checks, and where there is no bias with a
    soft cap; with results of bf16 and fp32 as they are listed. Of
    gfx950, which has all of gfx9, transposed loads of head size 64 are for few queries alone: for
    others upstream tries a kernel of every arch first."""
    with_all = WITH_MORE.get(arch, arch)
    for kernel in fwd.get_fwd_blobs([with_all], "", 600, [-1], "simplified")[1]:
        late = transposed(kernel) and (kernel.F_hdim, kernel.F_tile.F_bm0) == (64, 128)
        if kernel.F_dtype in ("fp16", "bf16") and not late:
            yield kernel
    for kernel in fwd.get_fwd_blobs([arch], "", 0, [-1], "simplified")[1]:
        p = kernel.F_pipeline
        if kernel.F_dtype in ("fp8bf16", "fp8fp32") and p.F_squant == "t":
            yield kernel
        if kernel.F_dtype == "fp8" and (p.F_squant, p.F_spad) == ("t", "f"):
            for logits in ("f", "t") if p.F_bias == "no" else ("f",):
                columns = dataclasses.replace(p, F_vlayout="col", F_logits=logits)
                yield dataclasses.replace(kernel, F_pipeline=columns)


@dataclasses.dataclass(frozen=True)
class ThirdVersion:
    """Of a source that is checked in: fmha_fwd_v3_d128_DTYPE_MASK.cpp."""

    F_dtype: str


def upstream(arch: str) -> Iterator[tuple[str, str, str, str, Any]]:
    """(direction, kind, head size, name, fields) of every kernel of receipt 600 that can be had,
    and of fp8, which that leaves out."""
    ck = modules()
    archs = [arch]
    arguments = ("", 600, [-1], "simplified")
    for kernel in forward_kernels(ck["fwd"], arch):
        sizes = (kernel.F_hdim, kernel.F_tile.F_bn1)
        size = str(sizes[0]) if sizes[0] == sizes[1] else "{}x{}".format(*sizes)
        yield "fwd", "fwd", size, kernel.name, kernel
    for kernel in ck["pagedkv_prefill"].get_fwd_blobs(archs, *arguments)[1]:
        # Upstream has those that leave short sequences out, and lists them no more.
        for skips in ("nskip", "skip"):
            name = kernel.name.replace("nskip", skips)
            yield "fwd_pagedkv", "fwd_pagedkv", str(kernel.F_hdim), name, kernel
    splits = ck["fwd_splitkv"].get_fwd_splitkv_blobs(archs, "", 600, "simplified", [-1])
    for kernel in splits:
        yield "fwd_splitkv", "split", str(kernel.F_hdim), kernel.name, kernel
    split_sizes = {kernel.F_hdim for kernel in splits}
    for kernel in ck["fwd_splitkv"].get_fwd_splitkv_combine_blobs(archs, "", 600, [-1]):
        # No split pads its head size and not its queries.
        pads = (kernel.F_pipeline.F_spad, kernel.F_pipeline.F_dvpad)
        if kernel.F_hdim in split_sizes and pads != ("f", "t"):
            yield "fwd_splitkv", "combine", str(kernel.F_hdim), kernel.name, kernel
    for kernel in ck["fwd_appendkv"].get_fwd_appendkv_blobs(archs, "", 600, "simplified", [-1])[1]:
        # Receipt 600 means nothing there: fp8 is listed too.
        if kernel.F_dtype in ("fp16", "bf16"):
            yield "fwd_appendkv", "fwd_appendkv", str(kernel.F_hdim), kernel.name, kernel
    for kernel in ck["batch_prefill"].get_fwd_blobs(*arguments)[1]:
        if (
            arch.startswith("gfx9") and kernel.F_tile.F_bm0 == 128
        ):  # the smaller tile is for some calls of a few queries
            yield "fwd_batch_prefill", "prefill", str(kernel.F_hdim), kernel.name, kernel
    if arch in WITH_MORE:
        for file in Path(os.environ["CK_GENERATOR"]).parent.glob("instances/*.cpp"):
            *_, size, dtype, _ = file.stem.split("_")
            yield "fwd_v3", "v3", size.removeprefix("d"), file.stem, ThirdVersion(dtype)
    with_all = [WITH_MORE.get(arch, arch)]
    _, dots, mains, converts = ck["bwd"].get_bwd_blobs(with_all, "", 600, "simplified", [-1])
    for kind, kernels in (("dot_do_o", dots), ("main", mains), ("convert_dq", converts)):
        for kernel in kernels:
            # A kernel that stores its random numbers is for debugging; of those that check one
            # head size by elements and the other by eight, none is taken, nor of those for few
            # queries with an elementwise bias, of which they read the wrong rows.
            pads = (getattr(kernel, "F_dpad", 0), getattr(kernel, "F_dvpad", 0))
            wrong = kind == "main" and kernel.F_tile.max_seq_q and kernel.F_bias == "bias"
            if "storerandval" not in kernel.name and set(pads) != {1, 8} and not wrong:
                yield "bwd", kind, str(kernel.F_hdim), kernel.name, kernel


Wanted = dict[str, Callable[[Any], bool]]  # kind -> whether a kernel of it is wanted


def padded(fields: Any) -> bool:
    # With transposed loads lengths are free, and not said to be padded.
    return getattr(fields, "F_trload", "f") == "t" or (fields.F_spad, fields.F_skpad) == ("t", "t")


def forward(lse: str, *, group_bias: tuple[str, ...] = ("no",)) -> Callable[[Any], bool]:
    def wanted(kernel: Any) -> bool:
        p = kernel.F_pipeline
        biases = group_bias if kernel.F_mode == "group" else ("no", "bias", "alibi")
        if kernel.F_dtype not in ("fp16", "bf16"):
            return False
        return padded(p) and p.F_bias in biases and p.F_lse in lse and p.F_logits + p.F_skip == "ff"

    return wanted


def training(lse: str, backward: Callable[[Any], bool]) -> Wanted:
    def main(kernel: Any) -> bool:
        return (
            kernel.F_dpad == kernel.F_dvpad
            and kernel.F_dpad != 8
            and (kernel.F_mode == "batch" or kernel.F_bias == "no")
            and backward(kernel)
        )

    return {
        "fwd": forward(lse),
        "main": main,
        "dot_do_o": lambda kernel: kernel.F_spad == "t",
        # Tiles of 192 keys are transposed loads', which check a head size by eight elements.
        "convert_dq": lambda kernel: (
            kernel.F_spad == "t" and (kernel.F_bn0 != 192 or kernel.F_dpad == "f")
        ),
    }


def plain(kernel: Any) -> bool:
    """Of core: without bias and dropout, deterministic is off."""
    p = getattr(kernel, "F_pipeline", None)
    if p is not None and not isinstance(p, str):
        return forward("t")(kernel) and p.F_bias == "no" and p.F_dropout == "f"
    return (
        getattr(kernel, "F_spad", "t") == "t"
        and getattr(kernel, "F_bias", "no") == "no"
        and getattr(kernel, "F_dropout", "no") == "no"
        and getattr(kernel, "F_deterministic", "f") == "f"
        and {getattr(kernel, "F_dpad", 0), getattr(kernel, "F_dvpad", 0)} <= {0, "f"}
    )


def core(kernel: Any) -> bool:
    tile = getattr(kernel, "F_tile", None)
    value_size = getattr(tile, "F_bn1", kernel.F_hdim)
    if kernel.F_hdim not in (64, 128) or value_size not in (64, 128) or not plain(kernel):
        return False
    if not transposed(kernel):
        return True
    if not hasattr(kernel, "F_pipeline"):
        taken = kernel.F_dtype == "fp16" or (kernel.F_mode, kernel.F_mask) == ("batch", "s_no")
        has_mask = kernel.F_mode == "batch" or kernel.F_mask == "s_mask"
        return (kernel.F_hdim, tile.F_bn0) == (128, 192) and taken and has_mask
    return (kernel.F_hdim, tile.F_bm0, kernel.F_pipeline.F_dpad) == (128, 128, "f")


def smoke(kernel: Any) -> bool:
    if transposed(kernel):
        return False
    mask = getattr(kernel, "F_mask", None) or getattr(
        getattr(kernel, "F_pipeline", None), "F_mask", "s_mask"
    )
    return plain(kernel) and (kernel.F_hdim, kernel.F_dtype, kernel.F_mode, mask) == (
        64,
        "fp16",
        "batch",
        "s_mask",
    )


def cached(kernel: Any) -> bool:
    """Of inference, split and paged keys."""
    return padded(kernel.F_pipeline) and kernel.F_pipeline.F_bias in ("no", "alibi")


def standard_forward(kernel: Any) -> bool:
    p = kernel.F_pipeline
    if kernel.F_dtype == "fp8" or p.F_skip == "t" or not padded(p):
        return False
    if kernel.F_dtype not in ("fp16", "bf16"):
        return p.F_bias != "bias"
    if transposed(kernel):
        return core(kernel)
    inferred = p.F_dropout == "f" and p.F_bias == ("no" if p.F_logits == "t" else "alibi")
    return p.F_lse == "t" and (forward("t")(kernel) or inferred)


def standard_backward(kernel: Any) -> bool:
    """Of its largest kernels."""
    if transposed(kernel):
        return core(kernel)
    asked = kernel.F_mode == "batch" or kernel.F_bias == "no"
    return asked and (kernel.F_dpad, kernel.F_dvpad) in (
        [(0, 0), (8, 8)] if kernel.F_hdim in (128, 256) else [(0, 0)]
    )


def serves_head_sizes(kernel: Any) -> bool:
    """Of backward's smaller kernels: those which check head sizes are for 128 and 256."""
    pads = {getattr(kernel, "F_dpad", "f"), getattr(kernel, "F_dvpad", "f")}
    return pads == {"f"} or kernel.F_hdim in (128, 256)


_TRAINED = ("fwd", "main", "dot_do_o", "convert_dq")
SETS: dict[str, Wanted] = {
    "smoke": dict.fromkeys(_TRAINED, smoke),
    "core": dict.fromkeys(_TRAINED, core),
    "te": training("t", lambda kernel: True),
    "jax": training(
        "tf", lambda kernel: kernel.F_dbias == ("t" if kernel.F_bias == "bias" else "f")
    ),
    "inference": {
        "fwd": lambda kernel: (
            padded(kernel.F_pipeline)
            and kernel.F_pipeline.F_bias != "bias"
            and kernel.F_pipeline.F_dropout + kernel.F_pipeline.F_skip == "ff"
        ),
        "split": cached,
        "combine": lambda kernel: kernel.F_pipeline.F_spad == "t",
        "fwd_pagedkv": cached,
        "fwd_appendkv": lambda kernel: True,
        "prefill": lambda kernel: cached(kernel) and kernel.F_pipeline.F_dropout == "f",
        "v3": lambda kernel: True,
    },
    "standard": {
        "fwd": standard_forward,
        "main": standard_backward,
        "dot_do_o": lambda kernel: kernel.F_spad == "t" and serves_head_sizes(kernel),
        "convert_dq": lambda kernel: (
            kernel.F_spad == "t" and kernel.F_bn0 != 192 and serves_head_sizes(kernel)
        ),
        "split": lambda kernel: cached(kernel) and kernel.F_hdim in (64, 128, 256),
        "combine": lambda kernel: (
            (kernel.F_pipeline.F_spad, kernel.F_pipeline.F_lse) == ("t", "t")
            and kernel.F_hdim in (64, 128, 256)
        ),
        "fwd_pagedkv": cached,
        "fwd_appendkv": lambda kernel: True,
        "prefill": lambda kernel: (
            cached(kernel) and (kernel.F_pipeline.F_dropout, kernel.F_pipeline.F_lse) == ("f", "t")
        ),
        "v3": lambda kernel: True,
    },
    "full": dict.fromkeys(
        (
            "fwd",
            "main",
            "dot_do_o",
            "convert_dq",
            "split",
            "combine",
            "fwd_pagedkv",
            "fwd_appendkv",
            "prefill",
            "v3",
        ),
        lambda kernel: True,
    ),
}


def counted() -> dict[str, Counts]:
    found = {}
    for suffix, arch in TARGETS.items():
        kernels = {name: (*rest, fields) for *rest, name, fields in upstream(arch)}
        for variant_set, wanted in SETS.items():
            found[variant_set + suffix] = Counter(
                (direction, size, fields.F_dtype)
                for direction, kind, size, fields in kernels.values()
                if kind in wanted and wanted[kind](fields)
            )
    return found


def golden_counts() -> tuple[dict[str, int], dict[str, Counts]]:
    totals = {}
    counts = {name + suffix: Counter() for name in GOLDEN_SETS for suffix in TARGETS}
    for line in GOLDEN.read_text("ascii").splitlines():
        words = line.split()
        if words and words[0] != "#" and len(words) == 2:
            totals[words[0]] = int(words[1])
        elif words and words[0] != "#" and words[1] != "without":
            counts[words[0]][tuple(words[1:4])] = int(words[4])
    return totals, counts


def test_a_second_count_from_upstreams_generator_is_the_golden_one() -> None:
    totals, counts = golden_counts()
    found = counted()
    assert found == counts
    assert {name: sum(of.values()) for name, of in found.items()} == totals


# ---- requests are served -------------------------------------------------------------------

_FLAGS = (False, True)
_MODES_AND_BIASES = (
    *itertools.product(["batch"], ["none", "elementwise", "alibi"]),
    ("group", "none"),
)


def asked(variant_set: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(direction, traits) of every kind of call, without its sizes."""
    lse = _FLAGS if variant_set == "jax" else [True]
    for dtype, (mode, bias), mask, dropout in itertools.product(
        ["fp16", "bf16"], _MODES_AND_BIASES, _FLAGS, _FLAGS
    ):
        same = {"dtype": dtype, "mode": mode, "bias": bias, "mask": mask, "dropout": dropout}
        for each in lse:
            rest = {"lse": each, "logits_soft_cap": False, "skip_min_seqlen_q": False}
            yield "fwd", {**same, **rest}
        without = [False] if variant_set != "jax" or bias != "elementwise" else []
        for grad in [*without, *([True] if bias == "elementwise" else [])]:
            for deterministic in _FLAGS:
                yield "bwd", {**same, "bias_grad": grad, "deterministic": deterministic}


@pytest.mark.parametrize("variant_set", ["te", "jax", "standard"])
@pytest.mark.parametrize("target", ["gfx9", "gfx12"])
def test_every_call_is_served_at_any_length_and_head_size(
    pool: RecordedPool, variant_set: str, target: str
) -> None:
    file = file_of(variant_set)
    parsed = parse_variant_set(file.read_text("utf-8"), file.name, pool.known_values)
    served: dict[object, list[tuple[int, int]]] = {}
    for c in select(parsed, pool.candidates):
        if c.traits.get("transposed_loads"):
            continue  # of one arch alone
        checks = all(value for name, value in c.traits.items() if name.startswith("pad_"))
        if checks and c.target == target:
            exact = frozenset(
                (name, value)
                for name, value in c.traits.items()
                if not name.startswith(("pad_", "head_size_"))
                and name not in ("transposed_loads", "max_seqlen_q", "max_seqlen_k")
            )
            sizes = (c.traits["head_size_qk"], c.traits["head_size_v"])
            served.setdefault((c.direction, exact), []).append(sizes)
    for direction, traits in asked(variant_set):
        greatest = max(served[direction, frozenset(traits.items())])
        assert greatest == (256, 256), (direction, traits)
