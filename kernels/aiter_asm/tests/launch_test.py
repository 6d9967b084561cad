# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Rows, the header of arguments and descriptions, by the table of kernels."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kernels.aiter_asm import descriptions, launch, table
from kernels.code_object import spec as specs

TEXT = Path("kernels/aiter_asm/forward.toml").read_text("utf-8")
OBJECTS = launch.read_shipped(TEXT)


def test_the_objects_that_builds_take() -> None:
    assert len(OBJECTS) == 24
    assert {o.schedule for o in OBJECTS} == {"mi300", "mi308"}
    # As objects.bzl names them, by their files.
    assert {launch.instance(o) for o in OBJECTS} == {
        f"fmha_{Path(o.file).stem}_{Path(o.file).parent.name.lower()}" for o in OBJECTS
    }
    assert len({launch.instance(o) for o in OBJECTS}) == 24


def test_rows() -> None:
    rows = {row["name"]: row for row in (launch.row(o, ["gfx90a", "gfx942"]) for o in OBJECTS)}
    row = rows["fmha_fwd_hd128_bf16_causal_rtz_group_mi308"]
    assert row["symbol"] == "_ZN5aiter36fmha_fwd_hd128_bf16_causal_rtz_groupE"
    assert row["launch"] == "aiter_asm::forward_causal_group"
    assert row["left_out"] == {"gfx90a": "AITER has this kernel for gfx942"}
    assert row["traits"] | {"rounding": 0} == row["traits"] | {"rounding": 0, "mask": True}
    assert (row["traits"]["rounding"], row["traits"]["schedule"]) == ("toward_zero", "mi308")
    assert not rows["fmha_fwd_hd128_bf16_rtne_mi300"]["traits"]["mask"]


def test_the_header_of_arguments() -> None:
    text = launch.header(OBJECTS)
    assert "static_assert(sizeof(ForwardArguments) == 512);" in text
    assert "static_assert(offsetof(ForwardArguments, head_stride_lse) == 464);" in text
    assert "constexpr Shape kNoneBatch = {256, 1, false, 0, 1, 2};" in text
    assert "constexpr Shape kCausalGroup = {256, 2, true, 2, 0, 1};" in text
    others = [o for o in table.read(TEXT) if o.arch == "gfx950"]
    with pytest.raises(table.TableError, match=r"launched as .*, others as \{256, 1, false"):
        launch.header([*OBJECTS, *(o for o in others if o.tile_q == 128)])


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
