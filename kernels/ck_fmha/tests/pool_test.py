# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The reading of CK's generator, held against what CK itself writes."""

import importlib
import re
import sys
from pathlib import Path

import pytest
from ckgen.pool import Pool, PoolError


@pytest.fixture(scope="module")
def ck(fmha_dir: Path):
    """CK's two generator modules."""
    sys.path.insert(0, str(fmha_dir))
    yield [importlib.import_module(f"codegen.ops.fmha_{d}") for d in ("fwd", "bwd")]
    sys.path.remove(str(fmha_dir))


def all_instances(pool: Pool):
    return {i.name: i for candidate in pool.candidates for i in candidate.instances}


def test_every_instance_is_one_of_cks(pool: Pool, ck):
    fwd, bwd = ck
    _, kernels = fwd.get_fwd_blobs("", 600, [-1], "simplified")
    _, *by_kind = bwd.get_bwd_blobs("", 600, "simplified", [-1])
    names = {kernel.name for kernel in kernels}
    names |= {kernel.name for kernels in by_kind for kernel in kernels}
    assert all_instances(pool).keys() <= names
    # All of them but those that store their random numbers.
    left_out = names - all_instances(pool).keys()
    assert left_out and all("storerandval" in name for name in left_out)


def test_traits_say_what_the_name_says(pool: Pool):
    """CK's names spell most traits; they are read here only, to check the objects."""
    spelled = {
        "mask": ("_mask", "_nmask"),
        "lse": ("_lse", "_nlse"),
        "logits_soft_cap": ("_logits", "_nlogits"),
        "skip_min_seqlen_q": ("_skip", "_nskip"),
        "bias_grad": ("_dbias", "_ndbias"),
        "deterministic": ("_deterministic", "_ndeterministic"),
    }
    for instance in all_instances(pool).values():
        name, traits = instance.name + "_", instance.traits
        assert f"_d{traits['head_size_qk']}_{traits['dtype']}_" in name
        assert f"_{traits['mode']}_" in name
        for trait, (yes, no) in spelled.items():
            if trait in traits:
                assert (yes if traits[trait] else no) + "_" in name, (trait, name)
        if "dropout" in traits:
            assert ("_ndropout_" in name) != traits["dropout"]
        if "bias" in traits:
            word = {"none": "_nbias_", "elementwise": "_bias_", "alibi": "_alibi_"}
            assert word[traits["bias"]] in name
        padding = "".join(
            letters
            for trait, letters in (
                ("pad_seqlen_q", "s"),
                ("pad_seqlen_k", "sk"),
                ("pad_head_size_qk", "d"),
                ("pad_head_size_v", "dv"),
            )
            if traits.get(trait)
        )
        assert (f"_p{padding}_" if padding else "_npad_") in name


def test_tiles_say_what_the_name_says(pool: Pool):
    for instance in all_instances(pool).values():
        if instance.kind in ("fwd", "bwd_dq_dk_dv"):
            match = re.search(r"_b(\d+)x(\d+)x", instance.name)
            assert match
            expected = tuple(map(int, match.groups()))
            assert (instance.tile.seqlen_q, instance.tile.seqlen_k) == expected


def test_order_is_the_order_in_cks_dispatchers(pool: Pool):
    """The branches of a generated dispatcher come as the candidates do, per type and size."""
    for direction, dispatcher, line in (
        ("fwd", pool.fwd_dispatcher, r"using trait_ = .*"),
        ("bwd", pool.bwd_dispatcher, r"using dq_dk_dv_trait_ = .*"),
    ):
        candidates = [
            c
            for c in pool.candidates
            if c.direction == direction
            and (c.traits["dtype"], c.traits["head_size_qk"]) == ("bf16", 128)
            and c.traits["pad_seqlen_q"]
        ]
        assert len(candidates) > 100
        one_by_one = [re.findall(line, dispatcher([c])) for c in candidates]
        assert all(len(branches) == 1 for branches in one_by_one)
        assert re.findall(line, dispatcher(candidates)) == [b for (b,) in one_by_one]


def test_render_ends_behind_the_kernels_alias(pool: Pool):
    for kind in ("fwd", "bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq"):
        instance = next(i for i in all_instances(pool).values() if i.kind == kind)
        text = instance.render(7)
        assert f"using {instance.kernel_alias(7)} =" in text
        assert text.endswith(";\n")
        assert "iostream" not in text
        assert "launch_kernel" not in text
        assert "_0 " not in text


def test_known_values(pool: Pool):
    known = pool.known_values()
    assert known["dtype"] == ["bf16", "fp16"]
    assert known["mode"] == ["batch", "group"]
    assert known["bias"] == ["alibi", "elementwise", "none"]
    assert {64, 128} <= set(known["head_size_qk"])


def test_not_cks_folder(tmp_path: Path):
    with pytest.raises(PoolError, match="not CK's 01_fmha"):
        Pool(tmp_path)
