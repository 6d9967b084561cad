# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Rows, the header of arguments and descriptions, by the table of kernels."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from pathlib import Path

import pytest

from kernels.aiter_asm import descriptions, launch, table
from kernels.code_object import spec as specs

OBJECTS = launch.shipped()
FORWARD = launch.of_direction(OBJECTS, "forward")
BACKWARD = launch.of_direction(OBJECTS, "backward")


def test_the_objects_that_builds_take() -> None:
    assert Counter((o.arch, o.schedule) for o in FORWARD) == {
        ("gfx942", "mi300"): 12, ("gfx942", "mi308"): 12, ("gfx950", "any"): 8,
    }  # fmt: skip
    assert Counter((o.arch, o.mode, o.head_size_qk) for o in BACKWARD) == {
        # 128: for any lengths, and for whole tiles.
        ("gfx942", "batch", 64): 12, ("gfx942", "batch", 128): 12 + 8, ("gfx942", "batch", 192): 12,
        ("gfx942", "group", 64): 12, ("gfx942", "group", 128): 24, ("gfx942", "group", 192): 12,
        # 192 with 192 (recompiled), and with 128.
        ("gfx950", "batch", 64): 12, ("gfx950", "batch", 128): 6, ("gfx950", "batch", 192): 12 + 4,
        ("gfx950", "group", 64): 12, ("gfx950", "group", 128): 6, ("gfx950", "group", 192): 12,
    }  # fmt: skip
    assert {o.accumulator for o in BACKWARD} == {"a32"}
    # Kinds are together, and smaller head sizes are tried first.
    assert [*FORWARD, *BACKWARD] == OBJECTS
    sizes = [(not o.pads_seqlen, o.head_size_qk, o.head_size_v) for o in BACKWARD]
    assert sizes == sorted(sizes)
    # As objects.bzl names them, by their files.
    names = set()
    for described in OBJECTS:
        path = Path(described.file)
        folder = path.parent.name
        where = described.arch if folder.startswith("fmha_") else folder.lower()
        names.add(f"fmha_{path.stem}_{where}")
    assert names == {launch.instance(o) for o in OBJECTS} and len(names) == 32 + 92 + 64


def test_rows() -> None:
    archs = ["gfx90a", "gfx942", "gfx950"]
    rows = {row["name"]: row for row in (launch.row(o, archs) for o in OBJECTS)}
    row = rows["fmha_fwd_hd128_bf16_causal_rtz_group_mi308"]
    assert row["symbol"] == "_ZN5aiter36fmha_fwd_hd128_bf16_causal_rtz_groupE"
    assert row["launch"] == "aiter_asm::forward_256_causal_group"
    assert row["left_out"]["gfx90a"] == "AITER has this kernel for gfx942"
    assert row["traits"] | {"rounding": 0} == row["traits"] | {"rounding": 0, "mask": True}
    assert (row["traits"]["rounding"], row["traits"]["schedule"]) == ("toward_zero", "mi308")
    assert not rows["fmha_fwd_hd128_bf16_rtne_mi300"]["traits"]["mask"]
    row = rows["fmha_fwd_hd192_hd128_bf16_group_gfx950"]
    assert row["launch"] == "aiter_asm::forward_128_none_group"
    assert set(row["left_out"]) == {"gfx90a", "gfx942"}
    assert row["traits"]["schedule"] == "any" and row["traits"]["head_size_qk"] == 192


def test_rows_of_backward() -> None:
    rows = {row["name"]: row for row in (launch.row(o, ["gfx942", "gfx950"]) for o in BACKWARD)}
    row = rows["fmha_bwd_hd128_bf16_causal_br_a32_rtna_pssk_group_gfx942"]
    assert (row["kind"], row["launch"]) == ("bwd_asm", "aiter_asm::backward_group_192_2")
    assert row["symbol"] == "_ZN5aiter49fmha_bwd_hd128_bf16_causal_br_a32_rtna_pssk_groupE"
    assert row["traits"] == {
        "dtype": "bf16", "head_size_qk": 128, "head_size_v": 128, "mode": "group",
        "mask_shape": "bottom_right", "rounding": "nearest_away", "pad_seqlen_q": True,
        "pad_seqlen_k": True, "pad_head_size_qk": False, "pad_head_size_v": False,
    }  # fmt: skip
    row = rows["fmha_bwd_hd192_fp16_causal_a32_psskddv_gfx942"]
    assert row["launch"] == "aiter_asm::backward_general_64_2"
    assert row["traits"]["rounding"] == "toward_zero" and row["traits"]["pad_head_size_v"]
    assert row["traits"]["mask_shape"] == "top_left"
    assert row["tile"]["seqlen_k"] == 64
    assert set(row["left_out"]) == {"gfx950"}
    row = rows["fmha_bwd_hd192_hd128_fp16_causal_a32_pssk_gfx950"]
    assert row["launch"] == "aiter_asm::backward_native_192_2"
    assert row["traits"]["rounding"] == "nearest_even" and row["traits"]["head_size_v"] == 128
    row = rows["fmha_bwd_hd128_bf16_causal_a32_rtne_gfx942"]
    assert (row["kind"], row["launch"]) == ("bwd_asm_whole", "aiter_asm::backward_plain_192_2")
    assert row["tile"]["seqlen_q"] == row["tile"]["seqlen_k"] == 64
    assert not row["traits"]["pad_seqlen_q"] and not row["traits"]["pad_head_size_qk"]
    row = rows["fmha_bwd_hd64_fp16_a32_pssk_gfx950"]
    assert row["symbol"] == "_ZN5aiter37fmha_bwd_hd64_fp16_a32_pssk_recompileE"


def test_the_header_of_backwards_arguments() -> None:
    text = launch.backward_header(BACKWARD)
    assert "static_assert(sizeof(BackwardGeneralArguments) == 272);" in text
    assert "static_assert(offsetof(BackwardGroupArguments, do_) == 48);" in text
    assert "  X(backward_general_64_2, BackwardGeneralArguments, 64, 2)" in text
    assert "  X(backward_group_192_1, BackwardGroupArguments, 192, 1)" in text
    assert "  X(backward_plain_192_2, BackwardPlainArguments, 192, 2)" in text
    other = dataclasses.replace(BACKWARD[0], grid=("heads_q", "tiles", "batch"))
    with pytest.raises(table.TableError, match=r"its grid is \('heads_q', .* have the tiles first"):
        launch.backward_header([*BACKWARD, other])


def test_the_header_of_arguments() -> None:
    text = launch.forward_header(FORWARD)
    assert "static_assert(sizeof(ForwardArguments) == 512);" in text
    assert "static_assert(offsetof(ForwardArguments, head_stride_lse) == 464);" in text
    assert "  X(forward_256_none_batch, 256, 1, false, 0, 1, 2)" in text
    assert "  X(forward_256_causal_group, 256, 2, true, 2, 0, 1)" in text
    assert "  X(forward_128_causal_batch, 128, 2, true, 0, 1, 2)" in text
    other = dataclasses.replace(OBJECTS[0], tiles_per_workgroup=2)
    with pytest.raises(table.TableError, match=r"launched as .*, others as 256, 1, false"):
        launch.forward_header([*FORWARD, other])


def test_a_file_that_the_table_has_not() -> None:
    assert descriptions.find(OBJECTS, "external/a/" + OBJECTS[0].file) == OBJECTS[0]
    with pytest.raises(table.TableError, match=r"MI300/other\.co: no object of the table; it has"):
        descriptions.find(OBJECTS, "external/gfx942/fmha_v3_fwd/MI300/other.co")


def test_an_object_that_is_not_as_its_table_says() -> None:
    with pytest.raises(table.TableError, match="not a code object of one kernel"):
        descriptions.describe(OBJECTS[0], b"\x7fELF")


def test_the_spec_of_a_foreign_object_is_its_digest() -> None:
    sha256 = hashlib.sha256(b"bytes").hexdigest()
    spec = specs.ForeignSpec("gfx942", sha256)
    text = spec.canonical()
    assert text == f'{{"arch":"gfx942","format":1,"object":"{sha256}"}}'.encode()
    assert spec.key() == hashlib.sha256(text).hexdigest()
    assert specs.parse(text) == spec
    with pytest.raises(ValueError, match="canonical"):
        specs.parse(b" " + text)
    with pytest.raises(ValueError, match="not a code object's spec"):
        specs.parse(b"[]")
