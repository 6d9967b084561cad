# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The launch table's rows and the manifest, from instances and metadata."""

import pytest

from kernels.private import launch_table
from kernels.private.launch_table import TableError

TILE = {"seqlen_q": 128, "seqlen_k": 64, "head_size_qk": 64, "head_size_v": 64}


def instance(name: str, kind: str, **traits: object) -> dict[str, object]:
    return {
        "name": name,
        "symbol": name,
        "kind": kind,
        "traits": {"dtype": "bf16", **traits},
        "tile": TILE,
        "head_size_alignment": 8,
        "block_size": 256,
    }


DOCUMENTS = [
    {
        "instances": [
            instance("b", "bwd_dq_dk_dv", mode="batch", deterministic=True),
            instance("f", "fwd", mode="group", bias="alibi", mask=True, lse=True),
            instance("unused", "fwd", mode="group"),
        ],
        "variant_sets": {
            "two": [
                {"instance": "f", "launch": "fwd_launch_0"},
                {"instance": "b", "launch": "bwd_launch_0"},
            ]
        },
    },
    {"instances": [instance("sum", "sum_heads")]},
]


def record(name: str, arch: str) -> dict[str, object]:
    return {
        "arch": arch,
        "data_symbol": f"data_{name}_{arch}",
        "instance": name,
        "kernel": {"vgpr_count": 1},
        "key": "k" * 64,
        "packed_size": 5,
        "sha256": "s" * 64,
        "size": 10,
    }


def code_objects(archs, names=("f", "b", "sum")):
    return {(name, arch): record(name, arch) for name in names for arch in archs}


def rows():
    return launch_table.table_rows(DOCUMENTS, "two")


def test_rows_are_the_sets_in_order_then_the_others():
    assert [(row["name"], row["launch"]) for row in rows()] == [
        ("f", "fwd_launch_0"),
        ("b", "bwd_launch_0"),
        ("sum", None),
    ]


def test_source():
    archs = ["gfx942", "gfx950"]
    text = launch_table.table_source(rows(), code_objects(archs), archs, "two")
    assert text.index('.name = "f"') < text.index('.name = "b"') < text.index('.name = "sum"')
    assert ".make_fwd = ck_fmha::fwd_launch_0" in text
    assert ".make_bwd = ck_fmha::bwd_launch_0" in text
    assert "void fwd_launch_0(const attn_fwd_args&, KernelLaunch*);" in text
    assert "void bwd_launch_0(const attn_bwd_args&, const BwdBuffers&, KernelLaunch*);" in text
    assert ".bias = Bias::kAlibi" in text
    assert ".group_mode = true" in text
    assert ".kind = Kind::kSumHeads" in text
    assert 'kArchs[] = {"gfx942", "gfx950"}' in text
    assert ".code_objects = kCodeObjects + 4" in text
    assert '.variant_set = "two"' in text
    for name in ("f", "b", "sum"):
        for arch in archs:
            assert text.count(f"extern const unsigned char data_{name}_{arch}[]") == 1


def test_manifest():
    document = launch_table.manifest(rows(), code_objects(["gfx942"]), ["gfx942"], "two", "id")
    assert document["variant_set"] == "two"
    assert document["toolchain"] == "id"
    assert [i["name"] for i in document["instances"]] == ["f", "b", "sum"]
    assert document["instances"][0]["traits"]["lse"] is True
    assert document["instances"][0]["code_objects"]["gfx942"] == {
        "kernel": {"vgpr_count": 1},
        "key": "k" * 64,
        "packed_size": 5,
        "sha256": "s" * 64,
        "size": 10,
    }


def test_completeness():
    launch_table.check_complete(rows(), code_objects(["gfx942"]), ["gfx942"])
    with pytest.raises(TableError, match="no code object of b for gfx950"):
        launch_table.check_complete(rows(), code_objects(["gfx942"]), ["gfx942", "gfx950"])
    extra = code_objects(["gfx942"], ("f", "b", "sum", "stray"))
    with pytest.raises(TableError, match="no row names: stray for gfx942"):
        launch_table.check_complete(rows(), extra, ["gfx942"])
