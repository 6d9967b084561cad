# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The form of a variant set file, and the messages about one of another form."""

import os
from pathlib import Path

import pytest

from kernels.ck_fmha.ckgen.schema import DEFAULT_LIMIT, documentation, parse_variant_set
from kernels.launch_table.traits import TABLE, TraitValue
from kernels.qola.receipts import RECEIPTS
from kernels.variants.values import VariantSetError

KNOWN = {
    "dtype": ["bf16", "fp16"],
    "head_size_qk": [64, 96, 128],
    "head_size_v": [64, 128],
    "mode": ["batch", "group"],
    "bias": ["alibi", "elementwise", "none"],
    **{name: [False, True] for name, t in TABLE.traits.items() if t.is_flag and name != "mode"},
}


def parse(text: str):
    return parse_variant_set(text, "set.toml", KNOWN).selectors


def refusal(text: str) -> str:
    with pytest.raises(VariantSetError) as caught:
        parse(text)
    message = str(caught.value)
    assert message.startswith("set.toml: ")
    return message


def test_scalars_lists_and_omitted_keys():
    (selector,) = parse('[[variants]]\ndirection = "fwd"\ndtype = ["bf16", "fp16"]\nlse = true\n')
    assert selector.directions == ("fwd",)
    assert selector.admitted == {"dtype": ("bf16", "fp16"), "lse": (True,)}
    (selector,) = parse("[[variants]]\n")
    assert selector.directions == tuple(TABLE.directions)
    assert selector.admitted == {}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "head_size_qk = [64, 128, 64]",
            "[[variants]] #1: head_size_qk lists 64 twice; remove one.",
        ),
        ("mask = [true, true]", "mask lists true twice"),
        ('direction = ["fwd", "fwd"]', "direction lists fwd twice"),
    ],
)
def test_repeated_values_are_refused(line: str, expected: str):
    assert expected in refusal(f"[[variants]]\n{line}\n")


def test_repeated_values_of_qola_fold():
    (selector,) = parse('[[mha_fwd_variants]]\ndtype = ["bf16", "bf16"]\nhas_mask = [true, true]\n')
    assert selector.admitted == {"dtype": ("bf16",), "mask": (True,)}


def test_the_limit():
    assert parse_variant_set("[[variants]]\n", "set.toml", KNOWN).limit == DEFAULT_LIMIT
    assert parse_variant_set("limit = 9\n[[variants]]\n", "set.toml", KNOWN).limit == 9


def test_tables_keep_their_order():
    selectors = parse('[[variants]]\ndtype = "bf16"\n[[variants]]\ndtype = "fp16"\n')
    assert [s.admitted["dtype"] for s in selectors] == [("bf16",), ("fp16",)]
    assert [s.where for s in selectors] == [f"set.toml: [[variants]] #{n}" for n in (1, 2)]


def test_qola_tables():
    fwd, bwd = parse(
        """
        [[mha_fwd_variants]]
        dtype = ["bf16", "fp16"]
        has_bias = false
        has_alibi = [false, true]
        has_mask = true
        has_lse = true
        has_dropout = false
        has_skip = false
        has_sink = false
        receipt = 600

        [[mha_bwd_variants]]
        has_bias = true
        has_dbias = [true, false]
        deterministic = false
        """
    )
    assert fwd.directions == ("fwd",)
    assert fwd.within == RECEIPTS[600][1]["fwd"]
    assert bwd.within == ()
    assert fwd.admitted == {
        "dtype": ("bf16", "fp16"),
        "bias": ("none", "alibi"),
        "mask": (True,),
        "lse": (True,),
        "dropout": (False,),
        "skip_min_seqlen_q": (False,),
    }
    assert bwd.directions == ("bwd",)
    # As in QoLA, an elementwise bias comes before ALiBi.
    assert bwd.admitted == {
        "bias": ("elementwise",),
        "bias_grad": (True, False),
        "deterministic": (False,),
    }


def test_qola_tables_take_this_schemas_keys_too():
    (selector,) = parse('[[mha_fwd_variants]]\nmode = "group"\nhas_mask = false\n')
    assert selector.admitted == {"mode": ("group",), "mask": (False,)}


def test_unknown_key_names_it_the_allowed_and_the_nearest():
    message = refusal('[[variants]]\ndtpye = "bf16"\n')
    assert "[[variants]] #1" in message
    assert "unknown key 'dtpye'" in message
    assert "did you mean 'dtype'?" in message
    assert "head_size_qk" in message


def test_unknown_value_names_it_the_allowed_and_the_nearest():
    message = refusal('[[variants]]\ndtype = ["bf16", "fp61"]\n')
    assert "unknown value 'fp61' for dtype; did you mean 'fp16'?" in message
    assert "Allowed: bf16, fp16." in message


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (127, "'127' for head_size_qk; did you mean 128, which serves lesser ones? Allowed: "),
        (80, "'80' for head_size_qk; did you mean 96, which serves lesser ones? Allowed: "),
        (129, "'129' for head_size_qk. Allowed: 64, 96, 128."),
    ],
)
def test_unknown_head_size_names_the_next_that_serves_it(size: int, said: str):
    assert said in refusal(f"[[variants]]\nhead_size_qk = {size}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[variants]]\nhead_size_qk = 80\n", "Allowed: 64, 96, 128."),
        ("[[variants]]\nhead_size_qk = true\n", "unknown value 'true' for head_size_qk"),
        ("[[variants]]\nmask = 1\n", "unknown value '1' for mask"),
        ('[[variants]]\nmask = "causal"\n', "unknown value 'causal' for mask"),
        ("[[variants]]\nmask = []\n", "mask is an empty list"),
        ("[[variants]]\nmask = 0.5\n", "mask = 0.5"),
        ('[[variants]]\ndirection = "forward"\n', "unknown value 'forward' for direction"),
        (
            '[[variants]]\ndirection = "bwd"\nlse = true\n',
            "lse is a trait of fwd, fwd_v3, fwd_splitkv, fwd_pagedkv, fwd_batch_prefill only",
        ),
        ('[[variants]]\ndirection = "fwd"\ndeterministic = true\n', "is a trait of bwd only"),
        ("[[variants]]\nhas_mask = true\n", "did you mean 'mask'?"),
        ("limit = 0\n[[variants]]\n", "limit = 0: it is the most kernel instances"),
        ("limit = true\n[[variants]]\n", "limit = true: it is the most kernel instances"),
        ('limit = "9"\n[[variants]]\n', "an integer from 1; 8000 where it is left out"),
        ("limit = 9\n", "selects nothing: it has no table"),
        ("limti = 9\n[[variants]]\n", "unknown table 'limti'; did you mean 'limit'?"),
        ("[[varaints]]\n", "unknown table 'varaints'; did you mean 'variants'?"),
        ("variants = 1\n", "must be written as [[variants]] tables"),
        ("[variants]\n", "must be written as [[variants]] tables"),
        ("", "selects nothing: it has no table"),
        ("variants", "not TOML"),
        ('[[mha_fwd_variants]]\ndirection = "fwd"\n', "unknown key 'direction'"),
        ("[[mha_fwd_variants]]\nhas_sink = true\n", "has_sink = true selects nothing"),
        ('[[variants]]\nschedule = "mi300"\n', "unknown key 'schedule'"),
        ("[[mha_bwd_variants]]\nhas_lse = true\n", "unknown key 'has_lse'"),
        ("[[mha_fwd_variants]]\nreceipt = 100\n", "receipt 100 is not known. Allowed: 600 (AITER"),
        ("[[mha_bwd_variants]]\nreceipt = true\n", "receipt True is not known. Allowed: 600"),
        ('[[mha_bwd_variants]]\nreceipt = "700"\n', "receipt '700' is not known"),
        ("[[variants]]\nreceipt = 600\n", "unknown key 'receipt'"),
        ("[[mha_fwd_variants]]\nhas_bias = 2\n", "unknown value '2' for has_bias"),
        (
            '[[mha_fwd_variants]]\nhas_bias = true\nbias = "none"\n',
            "has_bias/has_alibi and bias both set bias",
        ),
        ("[[mha_fwd_variants]]\nhas_mask = true\nmask = true\n", "both set mask"),
        ('[qola]\nnamespace = "te"\n', "--//aiter:namespace"),
        ('[build]\narchitectures = ["gfx950"]\n', "--//kernels:archs"),
        ('[[modules]]\nname = "libmha_fwd"\n', "the Bazel target that is asked for"),
    ],
)
def test_refusals(text: str, expected: str):
    assert expected in refusal(text)


def test_the_readme_has_the_table_of_keys(known: dict[str, list[TraitValue]]):
    """Where the table has changed, this is what the README must hold in its place."""
    assert documentation(known) in Path(os.environ["README"]).read_text("utf-8")
