# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The table of AITER's forward kernels: its expansion, its arguments, and mistakes in it."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernels.aiter_asm import table
from kernels.aiter_asm.table import AsmObject, TableError

TEXT = Path("kernels/aiter_asm/forward.toml").read_text("utf-8")
OBJECTS = {f"{o.schedule} {o.name}": o for o in table.read(TEXT)}
CAUSAL_GROUP = OBJECTS["mi308 fwd_hd128_bf16_causal_rtne_group"]
PLAIN = OBJECTS["mi300 fwd_hd128_bf16_rtz"]


def test_objects() -> None:
    assert len(OBJECTS) == 24
    assert CAUSAL_GROUP.file == ("gfx942/fmha_v3_fwd/MI308/fwd_hd128_bf16_causal_rtne_group.co")
    assert CAUSAL_GROUP.symbol == "_ZN5aiter37fmha_fwd_hd128_bf16_causal_rtne_groupE"
    assert (CAUSAL_GROUP.mask, CAUSAL_GROUP.mode, PLAIN.mask, PLAIN.mode) == (
        "causal", "group", "none", "batch",
    )  # fmt: skip


@pytest.mark.parametrize(("longest", "plain", "causal"), [
    (1, 1, 1), (256, 1, 1), (257, 2, 1), (512, 2, 1), (513, 3, 2), (1024, 4, 2),
])  # fmt: skip
def test_grids(longest: int, plain: int, causal: int) -> None:
    assert PLAIN.workgroups(longest, heads_q=6, batch=5) == (plain, 6, 5)
    assert CAUSAL_GROUP.workgroups(longest, heads_q=6, batch=5) == (6, 5, causal)


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
    ('dtype = "bf16"', "", r"family forward_d128: missing \['dtype'\]"),
    ("tile_k = 32", "tile_k = 32\nstages = 2", r"unknown \['stages'\]"),
    ('layout = "forward"', 'layout = "fwd"', "layout 'fwd'; use forward"),
    ('arch = "gfx942"', 'arch = "gfx950"', "arch 'gfx950' has no elf_machine; use gfx942"),
    ('batch = ["tiles", "heads_q", "batch"]', 'batch = ["tiles", "heads_q"]', "it orders tiles"),
    ("causal = 2", "", r"tiles_per_workgroup: missing \['causal'\]"),
    ('offset = 80, kind = "f32"', 'offset = 80, kind = "f64"', "kind 'f64'; use pointer, u32"),
    ("offset = 80,", "offset = 98,", "seqlen_q overlaps scale"),
    ("offset = 496,", "offset = 508,", "padded_seqstart_k is beyond its 512 bytes"),
])  # fmt: skip
def test_mistakes_in_a_table(old: str, new: str, message: str) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(TableError, match=message):
        table.read(TEXT.replace(old, new))


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
