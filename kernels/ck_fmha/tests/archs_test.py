# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Made-up archs: one that instances are left out for, and one of waves of 32."""

import ast
import dataclasses
import json
import os
from pathlib import Path

import pytest

from kernels.archs.archs import Arch, read_archs
from kernels.ck_fmha import generate
from kernels.ck_fmha.ckgen.archs import left_out, target_of
from kernels.ck_fmha.ckgen.emission import pool_files
from kernels.ck_fmha.ckgen.pool import Pool, instances_of, targets_of
from kernels.variants.values import VariantSetError

REAL = read_archs(os.environ["ARCHS"])


def arch(*left_out: dict[str, object], wave_size: int = 64) -> Arch:
    return dataclasses.replace(REAL["gfx942"], left_out=left_out, wave_size=wave_size)


MADE_UP = {
    "gfx9000": arch(
        {
            "because": "no room for deterministic sums",
            "deterministic": True,
            "direction": "bwd",
            "bias_grad": True,
        },
        {"because": "no wide tiles", "direction": "bwd", "head_size_qk": 256},
    ),
    "gfx9001": arch(wave_size=32),
}


def test_transposed_loads_alone_are_left_out_of_archs_among_what_their_target_has(whole_pool: Pool):
    for target, archs in {"gfx9": ("gfx942", "gfx950"), "gfx12": ("gfx1200", "gfx1201")}.items():
        of_target = [c for c in whole_pool.candidates if c.target == target]
        found = left_out({arch: REAL[arch] for arch in archs}, of_target)
        transposed = {i.name for i in instances_of(of_target) if i.traits.get("transposed_loads")}
        # Those that add up what only transposed loads leave.
        transposed |= {
            i.name
            for i in instances_of(of_target)
            if i.kind == "bwd_convert_dq" and i.tile.seqlen_k == 192
        }
        assert of_target
        assert found.keys() == transposed
        assert all(without.keys() == {"gfx942"} for without in found.values())
        assert bool(transposed) == (target == "gfx9")
        if target == "gfx9":
            assert left_out({"gfx90a": REAL["gfx90a"]}, of_target).keys() > transposed


def test_what_upstream_has_for_other_archs_alone_is_left_out_by_name(whole_pool: Pool):
    # gfx950 has all that there is for gfx9.
    found = left_out({name: REAL[name] for name in ("gfx950", "gfx1201")}, whole_pool.candidates)
    targets = targets_of(whole_pool.candidates)
    for name, of in targets.items():
        assert (
            found.get(name, {})
            == {
                ("gfx12",): {"gfx950": "Composable Kernel has it for gfx12 alone"},
                ("gfx9",): {"gfx1201": "Composable Kernel has it for gfx9 alone"},
                ("gfx9", "gfx12"): {},
            }[tuple(of)]
        ), name
    assert {tuple(of) for of in targets.values()} == {("gfx9",), ("gfx12",), ("gfx9", "gfx12")}


def test_no_package_of_the_first_target_has_another_source_for_the_others(whole_pool: Pool):
    """Keys of the kernels for gfx9 depend on their sources alone, and these on nothing of gfx12."""
    gfx9 = {name: record for name, record in REAL.items() if name.startswith("gfx9")}
    of_gfx9 = [c for c in whole_pool.candidates if c.target == "gfx9"]
    alone, together = pool_files(of_gfx9, gfx9), pool_files(whole_pool.candidates, REAL)
    sources = {path for path in alone if path.endswith((".cpp", ".inc"))}
    assert sources
    for path in sources:
        assert together[path] == alone[path], path
    groups, more = (json.loads(files["pool.json"])["groups"] for files in (alone, together))
    assert {name: more[name] for name in groups} == groups


def test_an_arch_that_upstream_has_nothing_for_is_refused():
    assert target_of("gfx1201") == "gfx12"
    with pytest.raises(VariantSetError) as caught:
        target_of("gfx1100")
    assert "kernels/archs/gfx1100.json: Composable Kernel has kernels for gfx9, gfx12 alone" in str(
        caught.value
    )


def test_sources_of_another_wave_are_beside_the_others(pool: Pool):
    files = pool_files(pool.candidates, MADE_UP)
    sources = {path for path in files if path.endswith(".cpp")}
    narrow = {path for path in sources if "/wave32/" in path}
    # Those that the arch of waves of 64 lacks have no source for it.
    absent = left_out(MADE_UP, pool.candidates)
    assert sources - narrow == {
        path.replace("/wave32/", "/") for path in narrow if Path(path).stem not in absent
    }
    for instance in instances_of(pool.candidates):
        if instance.kind == "fwd" and "waves" in instance.block:
            break
    (path,) = (path for path in narrow if path.endswith(f"/{instance.name}.cpp"))
    asserted = "static_assert(Kernel::kBlockSize == {});\n"
    assert asserted.format(32 * instance.block["waves"]) in files[path]
    assert asserted.format(64 * instance.block["waves"]) in files[path.replace("/wave32/", "/")]


def test_an_instance_is_left_out_where_nothing_that_has_it_is_there(pool: Pool):
    found = left_out(MADE_UP, pool.candidates)
    for instance in instances_of(pool.candidates):
        traits, backward = instance.traits, instance.kind.startswith("bwd_")
        wide = backward and traits["head_size_qk"] == 256
        # The other two kernels of such a pass are also of passes that are there.
        costly = instance.kind == "bwd_dq_dk_dv" and traits["deterministic"] and traits["bias_grad"]
        assert (instance.name in found) == bool(wide or costly), instance.name
        if wide and not costly:
            assert found[instance.name] == {"gfx9000": "no wide tiles"}
        elif costly:
            assert found[instance.name] == {"gfx9000": "no room for deterministic sums"}


def test_what_is_left_out_is_in_rows_and_packages_with_its_reason(pool: Pool, tmp_path: Path):
    files = pool_files(pool.candidates, MADE_UP)
    rows = json.loads(files["pool.json"])["rows"]
    assert {row.get("left_out", {}).get("gfx9000") for row in rows.values()} == {
        None,
        "no wide tiles",
        "no room for deterministic sums",
    }
    _, _, build = files["bwd/fp16_d256/BUILD.bazel"].partition("PIPELINES = ")
    pipelines, _, excluded = build.partition("LEFT_OUT = ")
    pipelines = pipelines.partition("GROUPS = ")[0]
    names = {name for of in ast.literal_eval(pipelines).values() for name in of}
    assert ast.literal_eval(excluded.partition("instances_package")[0]).keys() == names
    assert "LEFT_OUT = {}\n" in files["fwd/fp16_d256/BUILD.bazel"]

    wanted = {p: t for p, t in files.items() if p == "pool.json" or p.startswith("launch/")}
    generate.write_files(wanted, tmp_path)
    chosen = tmp_path / "wide.toml"
    chosen.write_text('[[variants]]\ndirection = ["fwd", "bwd"]\nhead_size_qk = 256\n')
    instances = generate.variant_set_files(tmp_path / "pool.json", chosen)["instances.bzl"]
    literal = instances.partition("LEFT_OUT = ")[2].partition("# Target ->")[0]
    assert {name.startswith("fmha_bwd_") for name in ast.literal_eval(literal)} == {True}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"dtipe": "fp16"}, "did you mean 'dtype'?"),
        ({"direction": "bwd", "head_size_qk": 192}, "leaves nothing out; remove it."),
    ],
)
def test_refusals(table: dict[str, object], expected: str, pool: Pool):
    with pytest.raises(VariantSetError) as caught:
        left_out({"gfx9000": arch({"because": "x", **table})}, pool.candidates)
    assert str(caught.value).startswith("kernels/archs/gfx9000.json: left_out #1: ")
    assert expected in str(caught.value)
