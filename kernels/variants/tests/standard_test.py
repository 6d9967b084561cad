# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The set `standard` is the union of te, jax and inference, less the kernels that a rule names."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from kernels.ck_fmha.ckgen.emission import RecordedCandidate, RecordedPool
from kernels.ck_fmha.ckgen.schema import parse_variant_set
from kernels.ck_fmha.ckgen.selection import select
from kernels.launch_table.traits import TraitValue

POOL = RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))
FILES = {Path(path).stem: Path(path) for path in os.environ["VARIANTS"].split()}

Key = tuple[str, str, tuple[tuple[str, TraitValue], ...]]


def key_of(candidate: RecordedCandidate, **changed: TraitValue) -> Key:
    traits = {**candidate.traits, **changed}
    return candidate.direction, candidate.target, tuple(sorted(traits.items()))


def selected(name: str) -> dict[Key, RecordedCandidate]:
    text = FILES[name].read_text("utf-8")
    variant_set = parse_variant_set(text, name, POOL.known_values)
    return {key_of(c): c for c in select(variant_set, POOL.candidates)}


CORE, STANDARD = selected("core"), selected("standard")
UNION = selected("te") | selected("jax") | selected("inference")
# With the forms that check vectors of eight elements where the union has those that check each one.
POSSIBLE = UNION | {
    key_of(candidate): candidate
    for candidate in POOL.candidates
    if candidate.traits.get("head_size_step") == 8 and key_of(candidate, head_size_step=1) in UNION
}


def pads(candidate: RecordedCandidate) -> bool:
    return bool(candidate.traits["pad_head_size_qk"] or candidate.traits["pad_head_size_v"])


def checks_elements(candidate: RecordedCandidate) -> bool:
    return candidate.traits.get("head_size_step") == 1 and pads(candidate)


# ---- which kernels are left out --------------------------------------------------------------


def without_lse(candidate: RecordedCandidate) -> bool:
    return candidate.traits.get("lse") is False and key_of(candidate, lse=True) in UNION


def with_transposed_loads(candidate: RecordedCandidate) -> bool:
    has_others = candidate.direction != "fwd_v3"  # V3 has no other form.
    return bool(candidate.traits.get("transposed_loads")) and (
        has_others and key_of(candidate) not in CORE
    )


def for_lesser_head_sizes(candidate: RecordedCandidate) -> bool:
    return (
        candidate.direction == "bwd"
        and pads(candidate)
        and candidate.traits["head_size_qk"] not in (128, 256)
    )


def splits_of_small_heads(candidate: RecordedCandidate) -> bool:
    return candidate.direction == "fwd_splitkv" and candidate.traits["head_size_qk"] in (32, 96)


RULES = (
    without_lse,
    with_transposed_loads,
    for_lesser_head_sizes,
    splits_of_small_heads,
    checks_elements,
)


def test_each_kernel_of_the_union_is_there_or_a_rule_leaves_it_out():
    ruled = {key for key, c in POSSIBLE.items() if not any(rule(c) for rule in RULES)}
    assert STANDARD.keys() == ruled


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_leaves_out_what_no_other_does(rule):
    others = [other for other in RULES if other is not rule]
    assert any(
        rule(candidate) and not any(other(candidate) for other in others)
        for candidate in POSSIBLE.values()
    )


def test_what_trains_and_infers_the_common_models_is_there_as_in_core():
    assert CORE.keys() <= STANDARD.keys()


# ---- which problems are served ---------------------------------------------------------------

_SIZES = ("head_size_qk", "head_size_v")
# Traits that a problem does not have; lse may be there where none is wanted.
_NOT_ASKED = {
    *_SIZES,
    "head_size_step",
    "lse",
    "max_seqlen_q",
    "max_seqlen_k",
    "pad_head_size_qk",
    "pad_head_size_v",
    "pad_seqlen_k",
    "pad_seqlen_q",
    "transposed_loads",
}


def asked(candidate: RecordedCandidate) -> Mapping[str, TraitValue]:
    return {n: value for n, value in candidate.traits.items() if n not in _NOT_ASKED}


def alignment(candidate: RecordedCandidate) -> int:
    """Head sizes that it serves are multiples of this."""
    if not pads(candidate):
        return 32  # as all whole head sizes
    return max(POOL.rows[name]["head_size_alignment"] for name in candidate.instances)


def tile_of_pages(candidate: RecordedCandidate) -> int:
    """A page has a multiple of so many keys."""
    if not candidate.traits.get("paged_kv"):
        return 1
    (tile,) = {
        POOL.rows[name]["tile"]["seqlen_k"]
        for name in candidate.instances
        if "seqlen_k" in POOL.rows[name]["tile"] and "combine" not in POOL.rows[name]["kind"]
    }
    return int(tile)


def archs_without(candidate: RecordedCandidate) -> set[str]:
    return {a for name in candidate.instances for a in POOL.rows[name].get("left_out", {})}


def serves_all_of(one: RecordedCandidate, other: RecordedCandidate) -> bool:
    """Whether it serves each problem that the other does; backward: whose head sizes are multiples
    of 8."""
    mine, others = one.traits, other.traits
    any_length = all(mine.get(name, True) for name in ("pad_seqlen_q", "pad_seqlen_k"))
    for size, pad in zip(_SIZES, ("pad_head_size_qk", "pad_head_size_v"), strict=True):
        same = mine[size] == others[size] and mine[pad] >= others[pad]
        if not same and not (mine[size] >= others[size] and mine[pad]):
            return False
    least = 8 if one.direction == "bwd" else 1
    return (
        (one.direction, one.target) == (other.direction, other.target)
        and asked(one) == asked(other)
        and mine.get("lse", True) >= others.get("lse", False)
        and any_length
        and mine.get("max_seqlen_q", 0) == mine.get("max_seqlen_k", 0) == 0
        and alignment(one) <= max(least, alignment(other))
        and tile_of_pages(other) % tile_of_pages(one) == 0
        and archs_without(one) <= archs_without(other)
    )


def test_each_problem_that_the_union_serves_is_served_but_for_odd_head_sizes_of_backward():
    alike: dict[tuple[object, ...], list[RecordedCandidate]] = {}
    for candidate in STANDARD.values():
        key = (candidate.direction, candidate.target, *sorted(asked(candidate).items()))
        alike.setdefault(key, []).append(candidate)
    for other in UNION.values():
        key = (other.direction, other.target, *sorted(asked(other).items()))
        assert any(serves_all_of(one, other) for one in alike.get(key, [])), other
