# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The reading of upstream's generator, held against upstream's own output."""

import dataclasses
import importlib
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kernels.ck_fmha.ckgen.directions import (
    DIRECTIONS,
    KINDS,
    Candidate,
    PoolError,
    bwd_candidate,
)
from kernels.ck_fmha.ckgen.pool import Pool, instances_of
from kernels.launch_table.traits import TABLE, TraitValue


def all_instances(pool: Pool):
    return {i.name: i for candidate in pool.candidates for i in candidate.instances}


def upstream_names(fmha_dir: Path) -> set[str]:
    """Of every kernel that upstream's generator would write."""
    sys.path.insert(0, str(fmha_dir))
    fwd, bwd, split, paged, append, prefill = (
        importlib.import_module(f"codegen.ops.{d.module}")
        for d in DIRECTIONS.values()
        if d.api_pool
    )
    sys.path.remove(str(fmha_dir))
    archs = ["gfx942"]
    listed = [
        # It has what the others have, too; so of backward.
        fwd.get_fwd_blobs(["gfx950"], "", 600, [-1], "simplified")[1],
        # fp8, most of which the filter leaves out.
        [k for k in fwd.get_fwd_blobs(archs, "", 0, [-1], "simplified")[1] if "fp8" in k.F_dtype],
        *bwd.get_bwd_blobs(["gfx950"], "", 600, "simplified", [-1])[1:],
        split.get_fwd_splitkv_blobs(archs, "", 600, "simplified", [-1]),
        split.get_fwd_splitkv_combine_blobs(archs, "", 600, [-1]),
        paged.get_fwd_blobs(archs, "", 600, [-1], "simplified")[1],
        append.get_fwd_appendkv_blobs(archs, "", 600, "simplified", [-1])[1],
        prefill.get_fwd_blobs("", 600, [-1], "simplified")[1],
    ]
    checked_in = {file.stem for file in fmha_dir.glob("instances/*.cpp")}
    return checked_in | {kernel.name for kernels in listed for kernel in kernels}


def listed_form(name: str) -> str:
    """The instance that upstream lists and which differs in a choice that it had once: column-major
    v of fp8, with a soft cap too, and least lengths over pages."""
    if "_fp8_" in name:
        return name.replace("_vc_", "_vr_").replace("_logits_", "_nlogits_")
    return name.replace("_skip_", "_nskip_") if "_qr_pagedkv_" in name else name


def test_every_instance_is_one_of_upstreams(pool: Pool, fmha_dir: Path):
    names = upstream_names(fmha_dir)
    known = all_instances(pool).keys()
    assert {listed_form(name) for name in known} <= names
    assert len([name for name in known if name not in names]) == 72
    # All of them but those that store their random numbers, combining kernels of no split kernel,
    # those with two ways to check head sizes, fp8 to fp8 for v by rows, in caches and without
    # scales, the small tiles of batch prefill, transposed loads that others come before, and those
    # for few queries that read an elementwise bias wrong.
    left_out = names - known
    assert left_out and all(
        "storerandval" in name
        or "_splitkv_combine_" in name
        or "_pd1dv8_" in name
        or "_fp8_" in name
        or re.search("_fp8(bf16|fp32)_.*_nsquant_", name)
        or ("_batch_prefill_" in name and "_b64x" in name)
        or ("_d64_" in name and "_b128x" in name and "_qr_async_trload_" in name)
        or re.search("_maxq(16|32)_.*_bias_", name)
        for name in left_out
    )


def test_the_registries_have_what_the_table_of_traits_has(pool: Pool):
    assert DIRECTIONS.keys() == TABLE.directions.keys()
    kinds = [kind for entry in TABLE.directions.values() for kind in entry["kinds"]]
    assert sorted(KINDS) == sorted(kinds)
    for candidate in pool.candidates:
        all_kinds = TABLE.directions[candidate.direction]["kinds"]
        # Of few queries backward writes dq at once.
        writes_dq = candidate.direction == "bwd" and candidate.traits["max_seqlen_q"]
        expected = all_kinds[:-1] if writes_dq else all_kinds
        assert [i.kind for i in candidate.instances] == expected
        assert candidate.traits.keys() == TABLE.of_direction(candidate.direction).keys()


def test_traits_say_what_the_name_says(pool: Pool):
    """Upstream's names spell most traits; they are read here only, to check the objects."""
    spelled = {
        "mask": ("_mask", "_nmask"),
        "lse": ("_lse", "_nlse"),
        "logits_soft_cap": ("_logits", "_nlogits"),
        "skip_min_seqlen_q": ("_skip", "_nskip"),
        "bias_grad": ("_dbias", "_ndbias"),
        "deterministic": ("_deterministic", "_ndeterministic"),
    }
    for instance in all_instances(pool).values():
        if instance.kind == "fwd_v3":
            continue  # below
        name, traits = instance.name + "_", instance.traits
        assert f"_d{traits['head_size_qk']}_{traits['dtype']}_" in name
        if "mode" in traits:
            assert f"_{traits['mode']}_" in name
        for trait, (yes, no) in spelled.items():
            if trait in traits:
                assert (yes if traits[trait] else no) + "_" in name, (trait, name)
        if "dropout" in traits:
            assert ("_ndropout_" in name) != traits["dropout"]
        if "bias" in traits:
            word = {"none": "_nbias_", "elementwise": "_bias_", "alibi": "_alibi_"}
            assert word[traits["bias"]] in name
        # Backward's largest kernels say by how many elements they check.
        if instance.kind == "bwd_dq_dk_dv":
            step = traits["head_size_step"]
            assert step == 8 or not re.search("_p(d|dv|d8dv)8_", name)
            for checked in (f"d{step}", f"d{step}dv{step}", f"dv{step}"):
                name = name.replace(f"_p{checked}_", f"_p{checked.replace(str(step), '')}_")
        # With transposed loads lengths are free, and the name does not say so.
        transposed = traits.get("transposed_loads", False)
        assert bool(re.search("_qr_async_trload_|_trload_$", name)) == transposed
        padding = "".join(
            letters
            for trait, letters in (
                ("pad_seqlen_q", "" if transposed else "s"),
                ("pad_seqlen_k", "" if transposed else "sk"),
                ("pad_head_size_qk", "d"),
                ("pad_head_size_v", "dv"),
            )
            if traits.get(trait)
        )
        assert (f"_p{padding}_" if padding else "_npad_") in name
        if instance.kind == "fwd_appendkv":
            assert ("_pagedkv_" in name) == traits["paged_kv"]
            word = {"none": "", "halves": "_half_", "interleaved": "_inter_"}[traits["rotary"]]
            assert word in name and (word or ("_half_" not in name and "_inter_" not in name))
        elif "paged_kv" in traits:
            assert ("_npagedkv_" in name) != traits["paged_kv"]


def test_the_third_version_is_what_its_header_says(pool: Pool, fmha_dir: Path):
    """Its tile and traits, which are the same for all; names spell the dtype and the mask."""
    header = (fmha_dir / "fmha_fwd_v3_impl.hpp").read_text()
    flat = re.sub(r"\s+", " ", re.sub(r"//.*", "", header))
    assert "fmha_block_tile = sequence<256, 32, 128, 128, 32, 128>;" in flat
    assert "fmha_block_warps = sequence<8, 1, 1>;" in flat
    assert "TileFmhaFwdV3Traits<true, true, false, false, false, -1" in flat
    found = [i for i in instances_of(pool.candidates) if i.kind == "fwd_v3"]
    assert [i.name for i in found] == [
        f"fmha_fwd_v3_d128_{dtype}_{mask}"
        for dtype in ("bf16", "fp16")
        for mask in ("mask", "nmask")
    ]
    for instance in found:
        tile, traits = instance.tile, instance.traits
        assert (tile.seqlen_q, tile.seqlen_k, instance.block) == (256, 32, {"waves": 8})
        assert traits["head_size_qk"] == traits["head_size_v"] == 128 and not traits["lse"]
        mask = "mask" if traits["mask"] else "nmask"
        assert instance.name.endswith(f"_{traits['dtype']}_{mask}") and not traits["window"]
        padded = [name for name in traits if name.startswith("pad_") and traits[name]]
        assert padded == ["pad_seqlen_q", "pad_seqlen_k"]
        assert traits["mode"] == "batch"  # without lengths of their own


def test_fp8_comes_last_and_has_what_launches_rely_on(pool: Pool):
    """Static quantisation, and column-major v of those to fp8, which no trait says."""
    forward = [c for c in pool.candidates if c.direction == "fwd"]
    fp8 = [c for c in forward if str(c.traits["dtype"]).startswith("fp8")]
    dtypes = Counter(c.traits["dtype"] for c in fp8)
    assert dtypes == {"fp8": 24, "fp8bf16": 54, "fp8fp32": 18} and forward[-96:] == fp8
    for instance in all_instances(pool).values():
        dtype = str(instance.traits["dtype"])
        if instance.kind == "fwd":
            assert ("_vc_" in instance.name) == (dtype == "fp8")
            assert ("_squant_" in instance.name) == dtype.startswith("fp8")
        else:
            assert not dtype.startswith("fp8")


def test_tiles_say_what_the_name_says(pool: Pool):
    for instance in all_instances(pool).values():
        if instance.kind in (
            "fwd",
            "bwd_dq_dk_dv",
            "fwd_splitkv",
            "fwd_pagedkv",
            "fwd_appendkv",
            "fwd_batch_prefill",
        ):
            match = re.search(r"_b(\d+)x(\d+)x", instance.name)
            assert match
            expected = tuple(map(int, match.groups()))
            assert (instance.tile.seqlen_q, instance.tile.seqlen_k) == expected


def test_transposed_loads_serve_what_upstreams_dispatcher_asks_them_for(pool: Pool):
    """Its conditions: any lengths, but for smaller tiles than the greatest as many queries as one
    has; nothing else comes before them for the same problems."""
    forward = [c for c in pool.candidates if c.direction == "fwd"]
    transposed = [c for c in forward if c.traits["transposed_loads"]]
    assert len(transposed) == 80
    for candidate in transposed:
        traits, (instance,) = candidate.traits, candidate.instances
        # One for any number decides which tile is the greatest.
        others = [
            c
            for c in forward
            if (c.traits["dtype"], c.traits["head_size_qk"], c.traits["head_size_v"])
            == (traits["dtype"], traits["head_size_qk"], traits["head_size_v"])
            and c.instances[0].tile.seqlen_q == 128
        ]
        text = pool.dispatcher(
            "fwd", [candidate, dataclasses.replace(others[-1], api_trait=gfx950s(others[-1]))]
        )
        condition = text.partition("t.is_group_mode == ")[2].partition("using trait_")[0]
        assert "a.seqlen_k" not in condition and "a.seqlen_q %" not in condition
        most = re.findall(r"a\.seqlen_q <= (\d+)", condition)
        assert [int(number) for number in most] == [n for n in [traits["max_seqlen_q"]] if n]
        assert traits["mode"] == "batch" and instance.head_size_alignment == 8


def test_backwards_transposed_loads_go_by_the_conditions_of_upstreams_dispatcher(pool: Pool):
    """Any lengths, but as many queries as a tile has where dq is written at once, and few keys
    where others are for any number; without the kernel that converts dq where that is written."""
    backward = [c for c in pool.candidates if c.direction == "bwd"]
    transposed = [c for c in backward if c.traits["transposed_loads"]]
    tiles = {
        (c.traits["head_size_qk"], c.instances[1].tile.seqlen_q, c.instances[1].tile.seqlen_k): (
            c.traits["max_seqlen_q"], c.traits["max_seqlen_k"], c.instances[1].tag
        )
        for c in transposed
    }  # fmt: skip
    assert tiles == {
        (64, 32, 16): (32, 0, "trload_qr_qtr_dor"),
        (64, 32, 128): (0, 256, "trload_kr_ktr_vr"),
        (128, 16, 16): (16, 0, "trload_qr_qtr_dor"),
        (128, 32, 128): (0, 256, "trload_kr_ktr_vr"),
        (128, 16, 192): (0, 0, "trload_kr_ktr_vr"),
    }
    for candidate in transposed:
        text, traits = pool.dispatcher("bwd", [candidate]), candidate.traits
        condition = text.partition("t.is_group_mode == ")[2].partition("using dot_do_o_trait_")[0]
        for most, length in (("max_seqlen_q", "q"), ("max_seqlen_k", "k")):
            found = re.findall(rf"a\.seqlen_{length} <= (\d+)", condition)
            assert [int(number) for number in found] == [n for n in [traits[most]] if n]
        assert ("std::conditional_t<true, convert_dq_trait_" in text) == (
            traits["max_seqlen_q"] == 0
        )
        if traits["max_seqlen_q"]:
            assert (traits["mode"], traits["mask"]) == ("batch", False)
        assert traits["head_size_step"] == (8 if traits["pad_head_size_qk"] else 1)
        assert traits["pad_head_size_qk"] == traits["pad_head_size_v"]
    # Only others check one head size alone, or each element.
    assert {c.traits["head_size_step"] for c in backward} == {1, 8}


def test_a_condition_of_another_form_is_refused(pool: Pool):
    candidate = next(c for c in pool.candidates if c.traits.get("max_seqlen_k"))

    class Other(type(candidate.api_trait)):
        extra_cond = " && (a.seqlen_k <= 256 && a.batch > 1)"

    other = Other(**vars(candidate.api_trait))
    with pytest.raises(PoolError, match=r"a\.batch > 1\)' has no launch-table field"):
        bwd_candidate(other)


def gfx950s(candidate: Candidate) -> Any:
    """A candidate's entry in the dispatcher for gfx950, which has all of them."""
    kernel = candidate.instances[0].upstream
    factory = sys.modules[type(kernel).__module__].get_factory("gfx950")
    return dataclasses.replace(candidate.api_trait, arch=factory.arch)


def test_order_is_the_order_in_upstreams_dispatchers(pool: Pool):
    """The branches of a generated dispatcher come as the candidates do, per type and size."""
    for direction, line in (
        ("fwd", r"using trait_ = .*"),
        ("bwd", r"using dq_dk_dv_trait_ = .*"),
    ):
        candidates = [
            c
            for c in pool.candidates
            if c.direction == direction
            and (c.traits["dtype"], c.traits["head_size_qk"]) == ("bf16", 128)
            and c.traits["pad_seqlen_q"]
        ]
        assert len(candidates) > 100
        one_by_one = [re.findall(line, pool.dispatcher(direction, [c])) for c in candidates]
        assert all(len(branches) == 1 for branches in one_by_one)
        assert re.findall(line, pool.dispatcher(direction, candidates)) == [
            b for (b,) in one_by_one
        ]


def test_texts_end_behind_the_kernels_type(pool: Pool):
    for kind, how in KINDS.items():
        instance = next(i for i in instances_of(pool.candidates) if i.kind == kind)
        text = instance.text()
        assert any(f"using {part} =" in text for part in how.kernel.split("::"))
        assert text.rstrip().endswith((";", "}", "} // anonymous namespace"))
        assert "iostream" not in text and "__HIP_DEVICE_COMPILE__" not in text
        assert "launch_kernel" not in text


def test_every_dispatcher_is_written(pool: Pool):
    for direction in DIRECTIONS:
        (candidate, *_) = [c for c in pool.candidates if c.direction == direction]
        text = pool.dispatcher(direction, [candidate])
        if DIRECTIONS[direction].api_pool:
            assert str(candidate.traits["head_size_qk"]) in text
        else:  # checked in: all or none
            assert "kernel_dispatch" in text
            assert "kernel_dispatch" not in pool.dispatcher(direction, [])


def test_known_values(known: dict[str, list[TraitValue]]):
    assert known["dtype"] == ["bf16", "fp16", "fp8", "fp8bf16", "fp8fp32"]
    assert known["mode"] == ["batch", "group"]
    assert known["bias"] == ["alibi", "elementwise", "none"]
    assert {64, 128} <= set(known["head_size_qk"])


def test_not_upstreams_folder(tmp_path: Path):
    with pytest.raises(PoolError, match="not upstream's 01_fmha"):
        Pool(tmp_path)
