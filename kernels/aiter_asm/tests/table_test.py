# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The table of AITER's kernels: its expansion, its arguments, and mistakes in it."""

from __future__ import annotations

import copy
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernels.aiter_asm import table
from kernels.aiter_asm.table import AsmObject, TableError

TEXT, BACKWARD, DEFECTS = (
    Path(f"kernels/aiter_asm/{name}.toml").read_text("utf-8")
    for name in ("forward", "backward", "defects")
)
TABLE = table.read_table(TEXT, BACKWARD, DEFECTS)
OBJECTS = {o.file: o for o in TABLE.objects}
CAUSAL_GROUP = OBJECTS["gfx942/fmha_v3_fwd/MI308/fwd_hd128_bf16_causal_rtne_group.co"]
PLAIN = OBJECTS["gfx942/fmha_v3_fwd/MI300/fwd_hd128_bf16_rtz.co"]
NATIVE = OBJECTS["gfx950/fmha_v3_bwd/bwd_hd128_bf16_causal_br_a16_psskddv_group.co"]
RECOMPILED = OBJECTS["gfx950/fmha_v3_bwd/bwd_hd64_fp16_causal_a32_pssk.co"]


def test_objects() -> None:
    counts = Counter((o.arch, o.direction) for o in TABLE.objects)
    assert counts == {
        ("gfx942", "forward"): 24, ("gfx942", "backward"): 120,
        ("gfx950", "forward"): 8, ("gfx950", "backward"): 92, ("gfx950", "dq_shuffle"): 3,
    }  # fmt: skip
    assert (len(TABLE.left_out), len(TABLE.missing)) == (8, 8)
    assert CAUSAL_GROUP.symbol == "_ZN5aiter37fmha_fwd_hd128_bf16_causal_rtne_groupE"
    assert (CAUSAL_GROUP.mask, CAUSAL_GROUP.mode, PLAIN.mask, PLAIN.mode) == (
        "causal", "group", "none", "batch",
    )  # fmt: skip


def test_traits_of_backward_objects() -> None:
    traits = ("arch", "dtype", "mask", "mode", "rounding", "accumulator", "padding", "shuffle")
    assert [getattr(NATIVE, trait) for trait in traits] == [
        "gfx950", "bf16", "causal", "group", "rtne", "a16", "both", "bwd_hd128_dq_shuffle_group",
    ]  # fmt: skip
    assert [getattr(RECOMPILED, trait) for trait in traits] == [
        "gfx950", "fp16", "causal_top_left", "batch", "rtz", "a32", "seqlen", "",
    ]  # fmt: skip
    assert NATIVE.symbol == "_ZN5aiter47fmha_bwd_hd128_bf16_causal_br_a16_psskddv_groupE"
    assert RECOMPILED.symbol == "_ZN5aiter44fmha_bwd_hd64_fp16_causal_a32_pssk_recompileE"
    paddings = {(o.padding, o.pads_seqlen, o.pads_head) for o in TABLE.objects}
    assert paddings == {
        ("none", False, False), ("seqlen", True, False), ("head", False, True),
        ("both", True, True),
    }  # fmt: skip
    of_sixteen_bits = {o.layout.name for o in TABLE.objects if o.shuffle}
    assert of_sixteen_bits == {"backward_native"}


def test_defects() -> None:
    letters = {o.file: "".join(d.letter for d in o.defects) for o in TABLE.objects}
    assert (letters[PLAIN.file], letters[CAUSAL_GROUP.file]) == ("U", "")
    assert (letters[NATIVE.file], letters[RECOMPILED.file]) == ("QTY", "")
    folder = "gfx942/fmha_v3_bwd/"
    assert letters[folder + "bwd_hd128_bf16_causal_a32_rtne.co"] == "VW"
    assert letters[folder + "bwd_hd128_bf16_causal_a32_rtne_psskddv.co"] == ""
    assert letters[folder + "bwd_hd128_fp16_swa_a32_psskddv.co"] == "S"
    assert letters["gfx950/fmha_v3_fwd/fwd_hd192_hd128_bf16_causal.co"] == "PRX"


@pytest.mark.parametrize(("old", "new", "message"), [
    ('when = "always"', 'when = "often"', "defect R: when 'often'; use always, two_tiles"),
    ('"numbers_behind"', '"luck"', "defect S: avoided_by 'luck'; use , tiles_as_sequences"),
    ("changes_results = false\n", "", r"defect V: missing \['changes_results'\]"),
    ("fwd_hd192_hd128_*.co", "fwd_hd64_*.co", "defect R: no object is .*fwd_hd64"),
])  # fmt: skip
def test_mistakes_in_defects(old: str, new: str, message: str) -> None:
    assert DEFECTS.count(old) == 1
    with pytest.raises(TableError, match=message):
        table.read(TEXT, BACKWARD, DEFECTS.replace(old, new))


@pytest.mark.parametrize(("longest", "plain", "causal"), [
    (1, 1, 1), (256, 1, 1), (257, 2, 1), (512, 2, 1), (513, 3, 2), (1024, 4, 2),
])  # fmt: skip
def test_grids(longest: int, plain: int, causal: int) -> None:
    assert PLAIN.workgroups(longest, heads_q=6, batch=5) == (plain, 6, 5)
    assert CAUSAL_GROUP.workgroups(longest, heads_q=6, batch=5) == (6, 5, causal)


@pytest.mark.parametrize(("file", "tiles"), [
    ("bwd_hd128_bf16_a32_psskddv", 3), ("bwd_hd128_bf16_causal_br_a32_psskddv_group", 2),
    ("bwd_hd128_bf16_swa_a32_rtz_psskddv", 4), ("bwd_hd64_fp16_causal_a16", 2),
    ("bwd_hd192_fp16_a32_psskddv", 10), ("bwd_hd192_hd128_fp16_a32_pssk", 4),
    ("bwd_hd192_dq_shuffle", 10),
])  # fmt: skip
def test_grids_of_backward_objects(file: str, tiles: int) -> None:
    chosen = OBJECTS[f"gfx950/fmha_v3_bwd/{file}.co"]
    assert chosen.workgroups(600, heads_q=6, batch=5) == (tiles, 6, 5)


def test_options() -> None:
    assert [PLAIN.option(20000, heads) for heads in (3, 8)] == [5, 5]
    assert [CAUSAL_GROUP.option(300, heads) for heads in (3, 8, 12, 16)] == [3, 5, 3, 5]
    assert [CAUSAL_GROUP.option(longest, 8) for longest in (16384, 16385)] == [5, 3]


def test_arguments() -> None:
    layout = PLAIN.layout
    values: dict[str, float] = {a.name: i + 1 for i, a in enumerate(layout.arguments)}
    values["scale"] = 0.5
    block = layout.pack(values)
    assert len(block) == 512
    assert struct.unpack_from("<QQ", block, 0) == (1, 0)
    assert struct.unpack_from("<fIII", block, 80) == (0.5, 0, 0, 0)
    assert struct.unpack_from("<Q", block, 496) == (32,)


def test_no_forward_kernel_has_an_argument_for_a_soft_cap() -> None:
    """Nor any other but these floating-point numbers: docs/asm-findings.md says so."""
    layouts = {o.layout for o in TABLE.objects if o.direction == "forward"}
    assert [[a.name for a in x.arguments if a.kind == "f32"] for x in layouts] == [["scale"]]


def test_arguments_of_other_kinds() -> None:
    values: dict[str, float] = {a.name: 0 for a in NATIVE.layout.arguments}
    block = NATIVE.layout.pack(values | {"seqstart_q": 1 << 40, "mask_x": -2})
    assert struct.unpack_from("<Q", block, 592) == (1 << 40,)
    assert struct.unpack_from("<i", block, 672) == (-2,)


@pytest.mark.parametrize(("change", "message"), [
    ({"scale": None}, r"missing \['scale'\], unknown \[\]"),
    ({"scales": 1}, r"missing \[\], unknown \['scales'\]"),
    ({"stride_k": 1 << 32}, "stride_k = 4294967296 is no u32"),
    ({"batch_stride_q": -2}, "batch_stride_q = -2 is no u32"),
    ({"q": 0.5}, "q = 0.5 is no pointer"),
])  # fmt: skip
def test_arguments_that_do_not_fit(change: dict[str, Any], message: str) -> None:
    values: dict[str, Any] = {a.name: 1 for a in PLAIN.layout.arguments} | change
    with pytest.raises(TableError, match=f"layout forward: .*{message}"):
        PLAIN.layout.pack({name: value for name, value in values.items() if value is not None})


@pytest.mark.parametrize(("old", "new", "message"), [
    ("head_size_qk = 192\n", "", r"family forward_d192_d128_gfx950: missing \['head_size_qk'\]"),
    ("tile_k = 32", "tile_k = 32\nstages = 2", r"unknown \['stages'\]"),
    ('layout = "forward"\nname = "fwd_hd128_bf16{mask}_', 'layout = "fwd"\nname = "{mask}_',
     "layout 'fwd'; use forward"),
    ('arch = "gfx942"', 'arch = "gfx90a"', "arch 'gfx90a'; use gfx942, gfx950"),
    ("gfx950 = 0x4F", "", "arch 'gfx950'; use gfx942"),
    ("gfx942 = 0x4C\ngfx950 = 0x4F", "", "no section elf_machine"),
    ('rtna = "rtna"', 'near = "rtna"', "rounding.bf16 'near'; use rtne, rtna, rtz, none"),
    ('mi308 = "MI308"', 'mi250 = "MI308"', "schedule 'mi250'; use any, mi300, mi308"),
    ('mi308 = "MI308"', 'mi308 = "MI300"', "MI300/fwd_hd128_bf16_rtne.co is described twice"),
    ("MI308/fwd_hd128_bf16.co", "MI308/fwd_hd128_bf16_rtz.co", "left_out: .*_rtz.co: described"),
    ("[left_out]", "[unused]", "section 'unused'; use elf_machine, family"),
    ("none = 1\ncausal = 2", "none = 1", r"tiles_per_workgroup: missing \['causal'\]"),
    ('offset = 80, kind = "f32"', 'offset = 80, kind = "f64"', "kind 'f64'; use pointer, unt"),
    ("offset = 80,", "offset = 98,", "seqlen_q overlaps scale"),
    ("offset = 496,", "offset = 508,", "padded_seqstart_k is beyond its 512 bytes"),
])  # fmt: skip
def test_mistakes_in_a_table(old: str, new: str, message: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(TableError, match=message):
        table.read(TEXT.replace(old, new))


@pytest.mark.parametrize(("old", "new", "message"), [
    ('direction = "dq_shuffle"', 'direction = "shuffle"', "direction 'shuffle'; use forward"),
    ('tiles_of = "k"', 'tiles_of = "v"', "tiles_of 'v'; use q, k"),
    ('grid.group = ["tiles", "heads_q", "batch"]', 'grid.group = ["tiles", "batch"]',
     r"grid.group is \['tiles', 'batch'\]; it orders tiles, heads_q, batch"),
    ('shuffle = "bwd_hd192_dq_shuffle"', 'shuffle = "bwd_hd192_shuffle"',
     "object of dq_shuffle is .*192_shuffle.co"),
])  # fmt: skip
def test_mistakes_in_the_table_of_backward(old: str, new: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        table.read(TEXT, BACKWARD.replace(old, new))


def test_a_section_in_two_files() -> None:
    with pytest.raises(TableError, match="elf_machine: gfx942: in two files"):
        table.read(TEXT, BACKWARD, "elf_machine.gfx942 = 1")


def _metadata(described: AsmObject) -> dict[str, Any]:
    """That of an object as its table says, with a slot that is filled up."""
    kinds = {"pointer": "global_buffer", "u32": "by_value", "f32": "by_value"}
    arguments = [
        {".name": a.metadata, ".offset": a.offset, ".size": a.size, ".value_kind": kinds[a.kind]}
        for a in described.layout.arguments
    ]
    padding = {".name": "pad", ".offset": 8, ".size": 8, ".value_kind": "by_value"}
    return {
        ".symbol": described.symbol + ".kd", ".kernarg_segment_size": 512,
        ".reqd_workgroup_size": [512, 1, 1], ".group_segment_fixed_size": 65536,
        ".args": [arguments[0], padding, *arguments[1:]],
    }  # fmt: skip


@pytest.mark.parametrize(("change", "message"), [
    (lambda m: m.update({".symbol": "other.kd"}), "symbol is 'other.kd', the table says '_ZN5"),
    (lambda m: m.update({".kernarg_segment_size": 528}), "kernarg_segment_size is 528"),
    (lambda m: m.update({".reqd_workgroup_size": [256, 1, 1]}), r"workgroup_size is \[256, 1, 1\]"),
    (lambda m: m.pop(".group_segment_fixed_size"), "group_segment_fixed_size is None"),
    (lambda m: m[".args"][7].update({".offset": 100}), r"argument \('seq_len', 100, 4"),
    (lambda m: m[".args"][7].update({".name": "seqs"}), r"argument \('seqs', 96, 4"),
    (lambda m: m[".args"][2].update({".value_kind": "by_value"}), r"argument \('Q', 16, 8"),
    (lambda m: m[".args"].pop(), "argument None, the table says"),
    (lambda m: m[".args"].append(m[".args"][0]), "the table says None"),
])  # fmt: skip
def test_an_object_that_is_not_as_its_table_says(
    change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    metadata = _metadata(PLAIN)
    table.compare(PLAIN, 0x4C, metadata)
    changed = copy.deepcopy(metadata)
    change(changed)
    with pytest.raises(TableError, match=f"MI300/fwd_hd128_bf16_rtz.co: .*{message}"):
        table.compare(PLAIN, 0x4C, changed)


def test_an_object_of_another_arch() -> None:
    with pytest.raises(TableError, match="ELF machine is 79, the table says 76"):
        table.compare(PLAIN, 0x4F, _metadata(PLAIN))


def test_a_file_that_is_no_object() -> None:
    with pytest.raises(TableError, match=r"rtz\.co: not a code object of one kernel"):
        table.check(PLAIN, b"\x7fELF")
