# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What archs.toml leaves out, by a made-up architecture."""

import ast
import json
import os
from pathlib import Path

import pytest

from kernels.ck_fmha import generate
from kernels.ck_fmha.ckgen.archs import left_out, parse_archs
from kernels.ck_fmha.ckgen.emission import pool_files
from kernels.ck_fmha.ckgen.pool import Pool, instances_of
from kernels.ck_fmha.ckgen.values import VariantSetError
from kernels.launch_table.traits import TraitValue

TEXT = """
[gfx000]
products = "Instinct M0"

[[gfx000.left_out]]
because = "no room for deterministic sums"
deterministic = true
direction = "bwd"
bias_grad = true

[[gfx000.left_out]]
because = "no wide tiles"
direction = "bwd"
head_size_qk = 256

[gfx001]
products = "Instinct M1"
"""


def refusal(text: str, known: dict[str, list[TraitValue]], pool: Pool) -> str:
    with pytest.raises(VariantSetError) as caught:
        left_out(parse_archs(text, "archs.toml", known), pool.candidates)
    return str(caught.value)


def test_nothing_is_left_out_of_the_architectures_that_there_are(
    known: dict[str, list[TraitValue]], pool: Pool
):
    archs = parse_archs(Path(os.environ["ARCHS"]).read_text("utf-8"), "archs.toml", known)
    assert {"gfx942", "gfx950"} <= archs.keys()
    assert left_out({arch: archs[arch] for arch in ("gfx942", "gfx950")}, pool.candidates) == {}


def test_an_instance_is_left_out_where_nothing_that_has_it_is_there(
    known: dict[str, list[TraitValue]], pool: Pool
):
    found = left_out(parse_archs(TEXT, "archs.toml", known), pool.candidates)
    for instance in instances_of(pool.candidates):
        traits, backward = instance.traits, instance.kind.startswith("bwd_")
        wide = backward and traits["head_size_qk"] == 256
        # The other two kernels of such a pass are also of passes that are there.
        costly = instance.kind == "bwd_dq_dk_dv" and traits["deterministic"] and traits["bias_grad"]
        assert (instance.name in found) == bool(wide or costly), instance.name
        if wide and not costly:
            assert found[instance.name] == {"gfx000": "no wide tiles"}
        elif costly:
            assert found[instance.name] == {"gfx000": "no room for deterministic sums"}


def test_what_is_left_out_is_in_rows_and_packages_with_its_reason(
    known: dict[str, list[TraitValue]], pool: Pool, tmp_path: Path
):
    files = pool_files(pool.candidates, parse_archs(TEXT, "archs.toml", known))
    rows = json.loads(files["pool.json"])["rows"]
    assert {row.get("left_out", {}).get("gfx000") for row in rows.values()} == {
        None,
        "no wide tiles",
        "no room for deterministic sums",
    }
    _, _, build = files["bwd/fp16_d256/BUILD.bazel"].partition("PIPELINES = ")
    pipelines, _, excluded = build.partition("LEFT_OUT = ")
    names = {name for of in ast.literal_eval(pipelines).values() for name in of}
    assert ast.literal_eval(excluded.partition("instances_package")[0]).keys() == names
    assert "LEFT_OUT = {}\n" in files["fwd/fp16_d256/BUILD.bazel"]

    wanted = {p: t for p, t in files.items() if p == "pool.json" or p.startswith("launch/")}
    generate.write_files(wanted, tmp_path)
    chosen = tmp_path / "wide.toml"
    chosen.write_text('[[variants]]\ndirection = ["fwd", "bwd"]\nhead_size_qk = 256\n')
    instances = generate.variant_set_files(tmp_path / "pool.json", chosen)["instances.bzl"]
    literal = instances.partition("LEFT_OUT = ")[2].partition("# The host code")[0]
    assert {name.startswith("fmha_bwd_") for name in ast.literal_eval(literal)} == {True}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gfx000 = 1\n", "archs.toml: gfx000 must be written as a table, [gfx000]."),
        ("[gfx000]\nprodcuts = 1\n", "[gfx000]: unknown key 'prodcuts'; did you mean 'products'?"),
        ("[gfx000]\nleft_out = 1\n", "gfx000: write left_out as [[gfx000.left_out]] tables."),
        ('[[gfx000.left_out]]\ndtype = "fp16"\n', "#1: says no reason; write because = "),
        ('[[gfx000.left_out]]\nbecause = "x"\ndtipe = "fp16"\n', "did you mean 'dtype'?"),
        (
            '[[gfx000.left_out]]\nbecause = "x"\ndirection = "bwd"\nhead_size_qk = 96\n',
            "[[gfx000.left_out]] #1: leaves nothing out; remove it.",
        ),
        ("[gfx000", "archs.toml: not TOML"),
    ],
)
def test_refusals(text: str, expected: str, known: dict[str, list[TraitValue]], pool: Pool):
    message = refusal(text, known, pool)
    assert message.startswith("archs.toml: ")
    assert expected in message
