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


def test_the_objects_that_builds_take() -> None:
    assert Counter((o.arch, o.schedule) for o in OBJECTS) == {
        ("gfx942", "mi300"): 12, ("gfx942", "mi308"): 12, ("gfx950", "any"): 8,
    }  # fmt: skip
    # As objects.bzl names them, by their files.
    names = set()
    for described in OBJECTS:
        path = Path(described.file)
        folder = path.parent.name
        where = described.arch if folder.startswith("fmha_") else folder.lower()
        names.add(f"fmha_{path.stem}_{where}")
    assert names == {launch.instance(o) for o in OBJECTS} and len(names) == 32


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


def test_the_header_of_arguments() -> None:
    text = launch.header(OBJECTS)
    assert "static_assert(sizeof(ForwardArguments) == 512);" in text
    assert "static_assert(offsetof(ForwardArguments, head_stride_lse) == 464);" in text
    assert "constexpr Shape kForward256NoneBatch = {256, 1, false, 0, 1, 2};" in text
    assert "constexpr Shape kForward256CausalGroup = {256, 2, true, 2, 0, 1};" in text
    assert "constexpr Shape kForward128CausalBatch = {128, 2, true, 0, 1, 2};" in text
    other = dataclasses.replace(OBJECTS[0], tiles_per_workgroup=2)
    with pytest.raises(table.TableError, match=r"launched as .*, others as \{256, 1, false"):
        launch.header([*OBJECTS, other])


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
