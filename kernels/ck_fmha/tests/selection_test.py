# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which instances variant sets pick out of upstream's real pool."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from kernels.ck_fmha.ckgen.emission import RecordedCandidate
from kernels.ck_fmha.ckgen.pool import Pool, instances_of
from kernels.ck_fmha.ckgen.schema import DEFAULT_LIMIT, known_values, parse_variant_set
from kernels.ck_fmha.ckgen.selection import select, select_instances
from kernels.variants.values import VariantSetError


def picked(pool: Pool, text: str):
    known = known_values([candidate.traits for candidate in pool.candidates])
    return select(parse_variant_set(text, "set.toml", known), pool.candidates)


def refusal(pool: Pool, text: str) -> str:
    with pytest.raises(VariantSetError) as caught:
        picked(pool, text)
    return str(caught.value)


def shipped(pool: Pool, name: str):
    (path,) = [p for p in os.environ["VARIANTS"].split() if Path(p).stem == name]
    return picked(pool, Path(path).read_text("utf-8"))


def test_core_is_48_instances_and_eight_of_gfx950(pool: Pool):
    core = instances_of(shipped(pool, "core"))
    transposed = [i for i in core if i.traits.get("transposed_loads")]
    found = {(i.kind, i.traits["dtype"], i.traits["mode"], i.traits["mask"]) for i in transposed}
    assert found == {
        *(("fwd", dtype, "batch", mask) for dtype in ("fp16", "bf16") for mask in (False, True)),
        # In group mode a mask stands in for none; with bf16 and a mask registers are spilt.
        *(("bwd_dq_dk_dv", dtype, "batch", False) for dtype in ("fp16", "bf16")),
        *(("bwd_dq_dk_dv", "fp16", mode, True) for mode in ("batch", "group")),
    }
    assert len(transposed) == 8
    assert {(i.traits["head_size_qk"], i.traits["max_seqlen_q"]) for i in transposed} == {(128, 0)}
    assert not any(i.traits.get("max_seqlen_k") for i in transposed)
    instances = [i for i in core if i not in transposed]
    assert Counter(i.kind for i in instances) == {
        "fwd": 16,
        "bwd_dot_do_o": 8,
        "bwd_dq_dk_dv": 16,
        "bwd_convert_dq": 8,
    }
    for instance in instances:
        traits = instance.traits
        assert traits["head_size_qk"] == traits["head_size_v"] in (64, 128)
        assert traits["dtype"] in ("fp16", "bf16")
        # Backward's largest kernel always checks the bounds of lengths.
        assert traits.get("pad_seqlen_q", True) is True
    for kind, axes in (("fwd", 16), ("bwd_dq_dk_dv", 16)):
        of_kind = [i.traits for i in instances if i.kind == kind]
        products = {(t["dtype"], t["head_size_qk"], t["mode"], t["mask"]) for t in of_kind}
        assert len(products) == axes
        assert all(t.get("pad_seqlen_k", True) for t in of_kind)


def test_smoke_is_one_of_each_kind(pool: Pool):
    instances = instances_of(shipped(pool, "smoke"))
    assert [i.kind for i in instances] == [
        "fwd",
        "bwd_dot_do_o",
        "bwd_dq_dk_dv",
        "bwd_convert_dq",
    ]


def test_bench_is_families_of_eight_and_four_and_what_is_alone(pool: Pool):
    instances = instances_of(shipped(pool, "bench"))
    families = Counter((i.kind, i.traits["head_size_qk"]) for i in instances)
    assert {key: n for key, n in families.items() if key[0] in ("fwd", "bwd_dq_dk_dv")} == {
        ("fwd", 64): 8,
        ("fwd", 128): 8,
        ("fwd", 192): 1,
        ("fwd", 256): 8,
        ("bwd_dq_dk_dv", 64): 8,
        ("bwd_dq_dk_dv", 128): 8,
        ("bwd_dq_dk_dv", 256): 1,
    }


# Not every file of the folder: a user's own set is not for our tests.
SHIPPED = (
    "bench",
    "beside_asm",
    "caches",
    "core",
    "directions",
    "full",
    "inference",
    "jax",
    "races",
    "smoke",
    "standard",
    "te",
    "transposed",
)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_set_is_within_its_limit(pool: Pool, name: str):
    (path,) = [p for p in os.environ["VARIANTS"].split() if Path(p).stem == name]
    known = known_values([candidate.traits for candidate in pool.candidates])
    variant_set = parse_variant_set(Path(path).read_text("utf-8"), path, known)
    assert select_instances(variant_set, named(pool))


def named(pool: Pool) -> list[RecordedCandidate]:
    return [
        RecordedCandidate(c.direction, c.traits, tuple(i.name for i in c.instances), c.target)
        for c in pool.candidates
    ]


def chosen_names(pool: Pool, text: str) -> list[str]:
    known = known_values([candidate.traits for candidate in pool.candidates])
    return select_instances(parse_variant_set(text, "set.toml", known), named(pool))


def test_a_product_that_explodes_is_refused_with_count_and_limit(pool: Pool):
    total = len(instances_of(pool.candidates))
    with pytest.raises(VariantSetError) as caught:
        chosen_names(pool, "[[variants]]\n")
    assert str(caught.value) == (
        f"set.toml: selects {total} kernel instances for each arch, and its limit is "
        f"{DEFAULT_LIMIT}. Narrow its tables, or write `limit = {total}` above the first of them."
    )
    assert len(chosen_names(pool, f"limit = {total}\n[[variants]]\n")) == total
    with pytest.raises(VariantSetError, match=rf"selects {total} .* its limit is {total - 1}\."):
        chosen_names(pool, f"limit = {total - 1}\n[[variants]]\n")


def test_the_limit_is_of_instances_not_of_candidates(pool: Pool):
    """Candidates of one backward pass share two of their kernels."""
    table = '[[variants]]\ndirection = "bwd"\nhead_size_qk = 64\ndtype = "fp16"\n'
    names = chosen_names(pool, table)
    assert len(names) == len(set(names)) < 3 * len(picked(pool, table))
    assert chosen_names(pool, f"limit = {len(names)}\n{table}") == names


def test_all_that_qolas_tables_can_say_is_within_the_default_limit(pool: Pool):
    everything = chosen_names(pool, "[[mha_fwd_variants]]\n[[mha_bwd_variants]]\n")
    forward_and_backward = [c for c in pool.candidates if c.direction in ("fwd", "bwd")]
    assert len(everything) == len(instances_of(forward_and_backward))


def test_the_limit_is_of_one_targets_instances(pool: Pool, whole_pool: Pool):
    text = '[[variants]]\ndirection = "fwd"\nhead_size_qk = 64\n'
    known = known_values([candidate.traits for candidate in whole_pool.candidates])
    of_gfx9 = len(chosen_names(pool, text))
    limited = parse_variant_set(f"limit = {of_gfx9}\n{text}", "set.toml", known)
    assert len(select_instances(limited, named(whole_pool))) > of_gfx9
    less = parse_variant_set(f"limit = {of_gfx9 - 1}\n{text}", "set.toml", known)
    with pytest.raises(VariantSetError, match=f"selects {of_gfx9} kernel instances for each arch"):
        select_instances(less, named(whole_pool))


def test_an_omitted_key_admits_every_value(pool: Pool):
    everything = picked(pool, "[[variants]]\n")
    assert everything == pool.candidates


def test_a_list_is_the_sum_of_its_values(pool: Pool):
    both = picked(pool, '[[variants]]\ndirection = "fwd"\ndtype = ["fp16", "bf16"]\n')
    fp16 = picked(pool, '[[variants]]\ndirection = "fwd"\ndtype = "fp16"\n')
    bf16 = picked(pool, '[[variants]]\ndirection = "fwd"\ndtype = "bf16"\n')
    assert both == fp16 + bf16


def test_tables_may_overlap_and_the_order_is_upstreams(pool: Pool):
    table = '[[variants]]\ndirection = "fwd"\n'
    overlapping = picked(pool, f'{table}dtype = "bf16"\n{table}mask = true\n')
    assert overlapping == [
        c
        for c in pool.candidates
        if c.direction == "fwd" and (c.traits["dtype"] == "bf16" or c.traits["mask"])
    ]


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (("bf16", "fp16", "bf16"), "#3 is a duplicate: [[variants]] #1 selects all that it does"),
        (("bf16", '", "'.join(["bf16", "fp16"])), "#1 is a duplicate: [[variants]] #2 selects"),
    ],
)
def test_duplicates_are_refused(pool: Pool, tables: Sequence[str], expected: str):
    table = '[[variants]]\ndirection = "fwd"\ndtype = ["%s"]\n'
    message = refusal(pool, "".join(table % dtype for dtype in tables))
    assert message.startswith("set.toml: [[variants]] ")
    assert expected in message
    assert message.endswith("remove it.")


def test_duplicates_of_qola_fold(pool: Pool):
    """Its own builder folds them, and its manifests have them."""
    table = '[[mha_fwd_variants]]\ndtype = "bf16"\nhas_bias = [false, true]\n'
    narrower = table + "has_alibi = false\nhas_mask = true\n"
    assert picked(pool, table + narrower + table) == picked(pool, table)


def test_a_trait_of_one_direction_leaves_the_other_free(pool: Pool):
    chosen = picked(pool, '[[variants]]\ndirection = ["fwd", "bwd"]\nlse = true\n')
    assert {c.direction for c in chosen} == {"fwd", "bwd"}
    assert all(c.traits["lse"] for c in chosen if c.direction == "fwd")


def test_an_empty_selection_says_which_key_is_in_the_way(pool: Pool):
    message = refusal(pool, '[[variants]]\ndirection = "bwd"\nhead_size_qk = 192\n')
    assert message.startswith("set.toml: [[variants]] #1: the selection is empty")
    assert "head_size_qk = 192" in message
    assert "128, 256, 32, 64, 96" in message


def test_a_value_that_adds_nothing_is_refused(pool: Pool):
    message = refusal(pool, '[[variants]]\ndirection = "bwd"\nhead_size_qk = [64, 192]\n')
    assert "head_size_qk = 192 selects nothing together with the other keys" in message


def test_a_direction_that_adds_nothing_is_refused(pool: Pool):
    message = refusal(pool, '[[variants]]\ndirection = ["fwd", "bwd"]\nhead_size_qk = 192\n')
    assert 'direction "bwd" selects nothing' in message


def test_split_keys_come_with_what_combines_them(pool: Pool):
    table = '[[variants]]\ndirection = "fwd_splitkv"\ndtype = "bf16"\nhead_size_qk = 128\n' + (
        'mode = "group"\nmask = true\nbias = "none"\nlogits_soft_cap = false\npaged_kv = true\n'
    )
    candidates = picked(pool, table)
    assert {c.traits["lse"] for c in candidates} == {True, False}
    for candidate in candidates:
        split, combine = candidate.instances
        assert (split.kind, combine.kind) == ("fwd_splitkv", "fwd_splitkv_combine")
        assert combine.traits["lse"] == candidate.traits["lse"]
        for trait in ("dtype", "head_size_v", "mode", "pad_seqlen_q", "pad_head_size_v"):
            assert split.traits[trait] == combine.traits[trait]
    assert len(picked(pool, table + "lse = true\n")) * 2 == len(candidates)


def test_instances_are_shared_between_candidates(pool: Pool):
    table = '[[variants]]\ndirection = "bwd"\ndtype = "fp16"\nhead_size_qk = 64\n' + (
        'mode = "batch"\nbias = "none"\ndropout = false\ndeterministic = false\n'
        "pad_seqlen_q = true\n"
        "pad_head_size_qk = false\npad_head_size_v = false\ntransposed_loads = false\n"
    )
    candidates = picked(pool, table)
    assert [c.traits["mask"] for c in candidates] == [False, True]
    assert Counter(i.kind for i in instances_of(candidates)) == {
        "bwd_dot_do_o": 1,
        "bwd_dq_dk_dv": 2,
        "bwd_convert_dq": 1,
    }
