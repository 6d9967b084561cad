# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The table of which published sets have which kernels, held against the sets' files."""

import json
import os
from pathlib import Path

import pytest

from kernels.ck_fmha.ckgen.emission import RecordedCandidate, RecordedPool
from kernels.ck_fmha.ckgen.schema import VariantSet, parse_variant_set
from kernels.ck_fmha.ckgen.selection import admits
from kernels.launch_table.traits import TABLE, Trait, TraitValue
from kernels.matrix.counts import PUBLISHED_SETS
from kernels.published_sets import write_published_sets

POOL = RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))
ARCHS = list(json.loads(Path(os.environ["ARCHS"]).read_text("utf-8")))
FILES = [Path(path) for path in os.environ["VARIANTS"].split()]
SETS = write_published_sets.published_sets(POOL, FILES)
KERNELS = write_published_sets.by_kernel(SETS, ARCHS)


def parsed(name: str) -> VariantSet:
    (path,) = [file for file in FILES if file.stem == name]
    return parse_variant_set(path.read_text("utf-8"), name, POOL.known_values)


def is_admitted(variant_set: VariantSet, candidate: RecordedCandidate) -> bool:
    return any(admits(selector, candidate) for selector in variant_set.selectors)


def value_of(trait: Trait, number: int) -> TraitValue:
    """The value that has the number; the first of all for a trait that a kernel does not have."""
    return next((v for v in trait.values if TABLE.number(trait, v) == number), trait.values[0])


def traits_of(kernel: write_published_sets.Kernel) -> dict[str, int]:
    return dict(zip(TABLE.traits, kernel.traits, strict=True))


def smallest(direction: str, **wanted: TraitValue) -> str:
    """The smallest set by the table that has a kernel of the direction with these traits."""
    kinds = TABLE.directions[direction]["kinds"]
    main = max(kinds, key=lambda each: len(TABLE.of_kind(each)))
    numbers = {name: TABLE.number(TABLE.traits[name], value) for name, value in wanted.items()}
    bits = 0
    for kernel, sets in KERNELS.items():
        of_main = kernel.kind == TABLE.kind_number(main)
        if of_main and numbers.items() <= traits_of(kernel).items():
            bits |= sets
    return next((name for place, name in enumerate(SETS) if bits >> place & 1), "none")


def test_published_sets_come_from_the_smallest_to_the_greatest():
    assert SETS.keys() == set(PUBLISHED_SETS)
    sizes = [len(rows) for rows in SETS.values()]
    assert sizes == sorted(sizes)
    assert next(iter(SETS)) == "core" and list(SETS)[-1] == "full"


@pytest.mark.parametrize("name", PUBLISHED_SETS)
def test_the_table_has_a_kernel_for_all_that_the_file_admits_and_no_more(name: str):
    variant_set = parsed(name)
    bit = 1 << list(SETS).index(name)
    admitted = {
        (TABLE.kind_number(row["kind"]), TABLE.exact_key(row["kind"], row["traits"]))
        for candidate in POOL.candidates
        if is_admitted(variant_set, candidate)
        for row in (POOL.rows[instance] for instance in candidate.instances)
    }
    in_table = set()
    for kernel, sets in KERNELS.items():
        if sets & bit:
            kind = list(TABLE.kinds)[kernel.kind]
            values = {
                name: value if TABLE.traits[name].is_size else value_of(TABLE.traits[name], value)
                for name, value in traits_of(kernel).items()
            }
            in_table.add((kernel.kind, TABLE.exact_key(kind, values)))
    assert in_table == admitted


@pytest.mark.parametrize(
    ("direction", "wanted", "expected"),
    [
        ("fwd", {"lse": False, "mask": False, "bias": "none", "dropout": False}, "inference"),
        ("fwd", {"dropout": True}, "te"),
        ("bwd", {"dropout": True}, "te"),
        ("fwd", {"bias": "elementwise"}, "te"),
        ("fwd", {"bias": "elementwise", "lse": False}, "jax"),
        ("bwd", {"bias": "alibi", "deterministic": True}, "te"),
        ("bwd", {"bias": "elementwise", "bias_grad": False}, "te"),
        ("fwd", {"bias": "alibi", "lse": False}, "inference"),
        ("fwd", {"logits_soft_cap": True}, "inference"),
        ("fwd", {"logits_soft_cap": True, "dropout": True}, "full"),
        ("fwd", {"head_size_qk": 256}, "inference"),
        ("fwd", {"head_size_qk": 256, "dropout": True}, "te"),
        ("fwd", {"dtype": "fp8"}, "full"),
        ("fwd", {"dtype": "fp8", "dropout": True}, "none"),
        ("fwd", {"dtype": "fp8bf16"}, "inference"),
        ("fwd", {"dtype": "fp8bf16", "bias": "elementwise"}, "full"),
        ("fwd", {"dtype": "fp8fp32", "mode": "group"}, "inference"),
        ("fwd", {"dtype": "fp8fp32", "head_size_qk": 64}, "none"),
        ("fwd_splitkv", {"paged_kv": True}, "inference"),
        ("fwd_splitkv", {"bias": "elementwise"}, "full"),
        ("fwd_appendkv", {"rotary": "halves"}, "inference"),
        ("fwd_batch_prefill", {"dropout": True}, "full"),
    ],
)
def test_a_trait_names_a_set_whose_file_admits_it(
    direction: str, wanted: dict[str, TraitValue], expected: str
):
    asked = [
        candidate
        for candidate in POOL.candidates
        if candidate.direction == direction
        and all(candidate.traits[name] == value for name, value in wanted.items())
    ]
    assert smallest(direction, **wanted) == expected
    for name in SETS:
        variant_set = parsed(name)
        admitted = any(is_admitted(variant_set, candidate) for candidate in asked)
        assert (
            not admitted or name == expected or list(SETS).index(name) > list(SETS).index(expected)
        )
        assert admitted or name != expected
