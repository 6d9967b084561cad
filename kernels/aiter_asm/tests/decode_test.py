# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The table of AITER's kernels of decoding: its expansion, its arguments, and mistakes in it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kernels.aiter_asm import decode, table
from kernels.aiter_asm.table import TableError

FORWARD, TEXT = (
    Path(f"kernels/aiter_asm/{name}.toml").read_text("utf-8") for name in ("forward", "decode")
)
OBJECTS = {o.file: o for o in decode.read(FORWARD, TEXT)}


def test_objects() -> None:
    assert Counter((o.arch, o.kind) for o in OBJECTS.values()) == {
        ("gfx942", "paged"): 40, ("gfx942", "latent"): 16,
        ("gfx950", "paged"): 36, ("gfx950", "latent"): 20,
    }  # fmt: skip
    assert sum(not o.selected for o in OBJECTS.values()) == 4


def test_traits() -> None:
    traits = ("q_dtype", "kv_dtype", "queries", "probabilities", "heads", "tokens", "page", "lds")
    for name, values in {
        "gfx950/pa/pa_fp16_noquant_gqa16_1tg_4w":
            ("fp16", "fp16", "fp16", "fp16", 16, (1, 1), 16, 163840),
        "gfx942/pa/pa_bf16_pertokenInt8_gqa8_1tg_4w_mtp_msk1":
            ("bf16", "int8", "int8", "int8", 8, (1, 4), 16, 65536),
        "gfx942/pa/pa_fp16_pertokenFp8_gqa8_2tg_4w_uhp":
            ("fp16", "fp8", "fp8", "fp16", 8, (1, 1), 16, 32768),
        "gfx942/pa/pa_bf16_pertokenFp8_gqa10_1tg_4w_qlen3_msk1":
            ("bf16", "fp8", "fp8", "fp8", 10, (3, 3), 1024, 65536),
        "gfx950/mla/mla_a8w8_qh16_qseqlen4_gqaratio16_ps_page":
            ("fp8", "fp8", "fp8", "fp8", 16, (3, 4), None, 163840),
        "gfx942/mla/mla_pfl_bf16_a16w16_causal_subQ128_mqa128":
            ("bf16", "bf16", "bf16", "bf16", 128, (1, None), 1, 65536),
    }.items():  # fmt: skip
        assert tuple(getattr(OBJECTS[name + ".co"], trait) for trait in traits) == values
    chosen = OBJECTS["gfx950/mla/mla_a8w8_qh16_qseqlen4_gqaratio16.co"]
    assert chosen.symbol == "_ZN5aiter33mla_a8w8_qh16_qseqlen4_gqaratio16E"
    assert (chosen.layout.size, chosen.layout.arguments[-1].name) == (320, "splits_of_16_bits")


def test_a_part_of_a_layout() -> None:
    short = OBJECTS["gfx942/mla/mla_dec_stage1_bf16_a16w16_subQ16_mqa16.co"].layout
    assert (short.size, short.arguments[-1].name) == (208, "page_log2")
    block = short.pack({argument.name: 1 for argument in short.arguments})
    assert len(block) == 208
    with pytest.raises(TableError, match=r"unknown \['seqstart_q'\]"):
        short.pack({"seqstart_q": 1, **{argument.name: 1 for argument in short.arguments}})


def test_defects() -> None:
    letters = {name: [d.letters for d in o.defects] for name, o in OBJECTS.items()}
    assert letters["gfx942/pa/pa_bf16_noquant_gqa8_1tg_4w.co"] == ["Z", "AA", "AB"]
    assert letters["gfx942/pa/pa_bf16_pertokenFp8_gqa10_1tg_4w_qlen2_msk1.co"] == ["Z"]
    assert all("Z" in letters[name] for name in letters if "/mla/" in name)


@pytest.mark.parametrize(("old", "new", "message"), [
    ('kind = "paged"\nqueries', 'kind = "pages"\nqueries',
     "family paged_8bit: kind 'pages'; use paged, latent"),
    ("heads = 10\n", "", r"family paged_large_blocks: missing \['heads'\]"),
    ("heads = 10\n", "heads = 10\ntokens = '1'\n", "large_blocks: tokens: has a value, and"),
    ('tokens = "5-8"', 'tokens = "5 to 8"', "tokens '5 to 8'; use N, N-M or N-any"),
    ('page = "any"', 'page = "all"', "latent_fp8_pages: page 'all'; use a number of keys or any"),
    ('page = "1024"', 'page = "1024"\narch_of = 1', r"unknown \['arch_of'\]"),
    ('layout = "latent_256"', 'layout = "latent_255"', "layout 'latent_255'; use paged"),
    ('size = 208\npart_of = "latent_320"', 'size = 208\npart_of = "latent_288"',
     "layout latent_208: part_of 'latent_288'; use paged, latent_320"),
    ('when = "scaled_keys"', 'when = "scales"', "defect AJ: when 'scales'; use always"),
    ('"*/mla/mla_pfl_*"', '"*/mla/mla_prefill_*"', "defect AC: no object is .*mla_prefill"),
    ("[defect.AK]", "[defects.AK]", "section 'defects'; use family, layout, defect"),
    ("subQ128_mqa128\"\narch = [\"gfx942\", \"gfx950\"]", "subQ128_mqa128\"\narch = [\"gfx90a\"]",
     "family latent_128_heads: arch 'gfx90a'; use gfx942, gfx950"),
])  # fmt: skip
def test_mistakes_in_the_table(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(TableError, match=message):
        decode.read(FORWARD, TEXT.replace(old, new, 1))


def test_an_object_described_twice() -> None:
    with pytest.raises(TableError, match=r"qlen1_msk1\.co is described twice"):
        decode.read(FORWARD, TEXT.replace('2 = "qlen2"', '2 = "qlen1"'))


def test_an_object_that_is_not_as_its_table_says() -> None:
    chosen = OBJECTS["gfx942/pa/pa_bf16_pertokenFp8_gqa8_2tg_4w.co"]
    sizes = {"pointer": (8, "global_buffer"), "u32": (4, "by_value"), "f32": (4, "by_value")}
    metadata: dict[str, Any] = {
        ".symbol": chosen.symbol + ".kd",
        ".kernarg_segment_size": 240,
        ".reqd_workgroup_size": [256, 1, 1],
        ".group_segment_fixed_size": 32768,
        ".args": [
            {".name": a.metadata, ".offset": a.offset, ".size": sizes[a.kind][0],
             ".value_kind": sizes[a.kind][1]}
            for a in chosen.layout.arguments
        ],
    }  # fmt: skip
    table.compare(chosen, 0x4C, metadata)
    with pytest.raises(TableError, match=r"2tg_4w\.co: ELF machine is 79, the table says 76"):
        table.compare(chosen, 0x4F, metadata)
    metadata[".args"].pop()
    with pytest.raises(TableError, match=r"argument None, the table says \('GQA', 224, 4"):
        table.compare(chosen, 0x4C, metadata)
